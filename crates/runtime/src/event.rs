//! Events: the changes of objects that a cache delivers to its handlers.

use std::sync::Arc;

use crate::ObjectKey;

/// A change of an object. Several changes may arrive as one event: handlers should read the current state.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<K> {
    /// The object is new to the cache.
    Created {
        /// The object.
        object: Arc<K>,
        /// Whether it existed already when the watch started.
        initial: bool,
    },
    /// The object has changed.
    Updated {
        /// The state in the previous event.
        old: Arc<K>,
        /// The current state.
        new: Arc<K>,
        /// Whether nothing has changed: a periodic resync.
        resync: bool,
    },
    /// The object is gone.
    Deleted {
        /// Its last known state.
        object: Arc<K>,
        /// Whether the delete event was missed and the object was absent from a list: its state may be outdated.
        missed: bool,
    },
    /// An external event that concerns the object.
    Generic {
        /// The object.
        object: Arc<K>,
    },
}

impl<K> Event<K> {
    /// The current or last known state of the object.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Event::Created { object, .. } | Event::Deleted { object, .. } | Event::Generic { object } => {
                object
            }
            Event::Updated { new, .. } => new,
        }
    }

    /// The previous state, if the event is an update.
    pub fn old(&self) -> Option<&Arc<K>> {
        match self {
            Event::Updated { old, .. } => Some(old),
            _ => None,
        }
    }

    /// Whether it is from the initial list or a resync.
    #[must_use]
    pub fn is_low_priority(&self) -> bool {
        matches!(self, Event::Created { initial: true, .. } | Event::Updated { resync: true, .. })
    }
}

impl<K: kube::Resource> Event<K> {
    /// The key of the object.
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
