//! What happened to an object, as a cache tells its handlers.

use std::sync::Arc;

use crate::ObjectKey;

/// A change of an object. Events carry no truth, only a reason to look: several changes may arrive as one.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<K> {
    /// The object is there, and was not before.
    Created {
        /// The object.
        object: Arc<K>,
        /// Whether it was there already when watching began.
        initial: bool,
    },
    /// The object has changed.
    Updated {
        /// As it was in the last event.
        old: Arc<K>,
        /// As it is.
        new: Arc<K>,
        /// Whether nothing has changed: everything is shown again from time to time.
        resync: bool,
    },
    /// The object is gone.
    Deleted {
        /// Its last known state.
        object: Arc<K>,
        /// Whether its end was not seen, only that it is missing: its last state may be older than it was.
        missed: bool,
    },
    /// Something outside of the cluster happened that concerns the object.
    Generic {
        /// The object.
        object: Arc<K>,
    },
}

impl<K> Event<K> {
    /// The object as it is, or was last.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Event::Created { object, .. } | Event::Deleted { object, .. } | Event::Generic { object } => {
                object
            }
            Event::Updated { new, .. } => new,
        }
    }

    /// The object as it was before, if the event is an update.
    pub fn old(&self) -> Option<&Arc<K>> {
        match self {
            Event::Updated { old, .. } => Some(old),
            _ => None,
        }
    }

    /// Whether it tells nothing new: an object of the first list, or one that is shown again.
    #[must_use]
    pub fn is_low_priority(&self) -> bool {
        matches!(self, Event::Created { initial: true, .. } | Event::Updated { resync: true, .. })
    }
}

impl<K: kube::Resource> Event<K> {
    /// The name of the object.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::of(&**self.object())
    }
}

impl<K> Clone for Event<K> {
    fn clone(&self) -> Event<K> {
        match self {
            Event::Created { object, initial } => {
                Event::Created { object: object.clone(), initial: *initial }
            }
            Event::Updated { old, new, resync } => {
                Event::Updated { old: old.clone(), new: new.clone(), resync: *resync }
            }
            Event::Deleted { object, missed } => Event::Deleted { object: object.clone(), missed: *missed },
            Event::Generic { object } => Event::Generic { object: object.clone() },
        }
    }
}
