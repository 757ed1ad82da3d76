//! Filters of events. A handler is called only for events that its predicates accept.

use std::{collections::BTreeMap, fmt, sync::Arc};

use k1s_object::selector::LabelSelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use crate::Event;

/// Decides whether an event is handled.
pub struct Predicate<K> {
    accepts: Accepts<K>,
}

type Accepts<K> = Arc<dyn Fn(&Event<K>) -> bool + Send + Sync>;

/// A predicate that uses only metadata, and so applies to events of any kind.
#[derive(Clone)]
pub struct MetaPredicate {
    accepts: Arc<dyn Fn(&MetaEvent<'_>) -> bool + Send + Sync>,
}

/// The metadata of an event.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MetaEvent<'a> {
    /// What happened.
    pub change: Change,
    /// The previous metadata, for updates.
    pub old: Option<&'a ObjectMeta>,
    /// The current metadata, or the last one of a deleted object.
    pub new: &'a ObjectMeta,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// It was created, or listed for the first time.
    Created,
    /// It was changed, or delivered again by a resync.
    Updated,
    /// It was deleted.
    Deleted,
    /// An event from outside of the cluster.
    Generic,
}

impl<'a> MetaEvent<'a> {
    /// The metadata of an event.
    pub fn of<K: Resource>(event: &'a Event<K>) -> MetaEvent<'a> {
        let change = match event {
            Event::Created { .. } => Change::Created,
            Event::Updated { .. } => Change::Updated,
            Event::Deleted { .. } => Change::Deleted,
            Event::Generic { .. } => Change::Generic,
        };
        MetaEvent { change, old: event.old().map(|old| old.meta()), new: event.object().meta() }
    }
}

impl<K> Predicate<K> {
    /// A custom predicate.
    pub fn new(accepts: impl Fn(&Event<K>) -> bool + Send + Sync + 'static) -> Predicate<K> {
        Predicate { accepts: Arc::new(accepts) }
    }

    /// Whether the event is accepted.
    #[must_use]
    pub fn accepts(&self, event: &Event<K>) -> bool {
        (self.accepts)(event)
    }
}

impl<K: 'static> Predicate<K> {
    /// Accepts what both accept.
    #[must_use]
    pub fn and(self, other: impl Into<Predicate<K>>) -> Predicate<K> {
        let other = other.into();
        Predicate::new(move |event| self.accepts(event) && other.accepts(event))
    }

    /// Accepts what either accepts.
    #[must_use]
    pub fn or(self, other: impl Into<Predicate<K>>) -> Predicate<K> {
        let other = other.into();
        Predicate::new(move |event| self.accepts(event) || other.accepts(event))
    }

    /// Accepts what this one rejects.
    #[must_use]
    pub fn negate(self) -> Predicate<K> {
        Predicate::new(move |event| !self.accepts(event))
    }
}

impl MetaPredicate {
    /// A custom predicate.
    pub fn new(accepts: impl Fn(&MetaEvent<'_>) -> bool + Send + Sync + 'static) -> MetaPredicate {
        MetaPredicate { accepts: Arc::new(accepts) }
    }

    /// Whether the event is accepted.
    #[must_use]
    pub fn accepts(&self, event: &MetaEvent<'_>) -> bool {
        (self.accepts)(event)
    }

    /// Accepts what both accept.
    #[must_use]
    pub fn and(self, other: MetaPredicate) -> MetaPredicate {
        MetaPredicate::new(move |event| self.accepts(event) && other.accepts(event))
    }

    /// Accepts what either accepts.
    #[must_use]
    pub fn or(self, other: MetaPredicate) -> MetaPredicate {
        MetaPredicate::new(move |event| self.accepts(event) || other.accepts(event))
    }

    /// Accepts what this one rejects.
    #[must_use]
    pub fn negate(self) -> MetaPredicate {
        MetaPredicate::new(move |event| !self.accepts(event))
    }
}

impl<K: Resource + 'static> From<MetaPredicate> for Predicate<K> {
    fn from(predicate: MetaPredicate) -> Predicate<K> {
        Predicate::new(move |event| predicate.accepts(&MetaEvent::of(event)))
    }
}

/// Accepts updates with a new resource version, and so no resyncs.
#[must_use]
pub fn resource_version_changed() -> MetaPredicate {
    changed(|meta| meta.resource_version.clone())
}

/// Accepts updates that changed the generation: changes of the spec, not of the status. For kinds with a status
/// subresource; the generation of others does not change.
#[must_use]
pub fn generation_changed() -> MetaPredicate {
    changed(|meta| meta.generation)
}

/// Accepts updates that changed annotations.
#[must_use]
pub fn annotation_changed() -> MetaPredicate {
    MetaPredicate::new(|event| {
        event.old.is_none_or(|old| differ(old.annotations.as_ref(), event.new.annotations.as_ref()))
    })
}

/// Accepts updates that changed labels.
#[must_use]
pub fn label_changed() -> MetaPredicate {
    MetaPredicate::new(|event| {
        event.old.is_none_or(|old| differ(old.labels.as_ref(), event.new.labels.as_ref()))
    })
}

/// Accepts events of objects whose labels match: `app=web,tier!=test`.
///
/// # Errors
/// If the selector is invalid.
pub fn label_selector(selector: &str) -> Result<MetaPredicate, String> {
    let selector = LabelSelector::parse(selector)?;
    Ok(MetaPredicate::new(move |event| {
        let labels = event.new.labels.as_ref();
        selector.matches(|key| labels.and_then(|labels| labels.get(key)).map(String::as_str))
    }))
}

fn changed<T: PartialEq>(of: impl Fn(&ObjectMeta) -> T + Send + Sync + 'static) -> MetaPredicate {
    MetaPredicate::new(move |event| event.old.is_none_or(|old| of(old) != of(event.new)))
}

/// None and empty are equal.
fn differ(old: Option<&BTreeMap<String, String>>, new: Option<&BTreeMap<String, String>>) -> bool {
    old.filter(|map| !map.is_empty()) != new.filter(|map| !map.is_empty())
}

impl<K> Clone for Predicate<K> {
    fn clone(&self) -> Predicate<K> {
        Predicate { accepts: Arc::clone(&self.accepts) }
    }
}

impl<K> fmt::Debug for Predicate<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}

impl fmt::Debug for MetaPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MetaPredicate")
    }
}
