//! Why a key was queued.

use std::{collections::VecDeque, fmt, sync::Arc};

use crate::ObjectKey;

/// What happened to an object, or to the key itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CauseEvent {
    /// The object was created.
    Created,
    /// The object was changed.
    Updated,
    /// The object was deleted.
    Deleted,
    /// An event from outside of the cluster: from a channel, or a program's own source.
    Generic,
    /// The object existed when the watch began.
    Initial,
    /// A periodic resync; nothing happened.
    Resync,
    /// The reconciler requested another run.
    Requeue,
    /// The reconciler requested another run after a delay.
    RequeueAfter,
    /// The last run failed.
    Retry,
}

impl CauseEvent {
    fn as_str(self) -> &'static str {
        match self {
            CauseEvent::Created => "created",
            CauseEvent::Updated => "updated",
            CauseEvent::Deleted => "deleted",
            CauseEvent::Generic => "event",
            CauseEvent::Initial => "listed",
            CauseEvent::Resync => "resync",
            CauseEvent::Requeue => "requeue",
            CauseEvent::RequeueAfter => "requeue after a delay",
            CauseEvent::Retry => "retry",
        }
    }
}

/// In lower case: `updated`, `listed` (for [`CauseEvent::Initial`]), `retry`.
impl fmt::Display for CauseEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An object's resource version: opaque, but stored as a number if it is one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceVersion(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Number(u64),
    Text(Arc<str>),
}

impl ResourceVersion {
    /// From the text in the metadata; `None` if it is empty.
    #[must_use]
    pub fn new(text: &str) -> Option<ResourceVersion> {
        // A number must print exactly as it was written.
        let canonical = !text.starts_with(['0', '+']);
        match text.parse() {
            Ok(number) if canonical => Some(ResourceVersion(Repr::Number(number))),
            _ if text.is_empty() => None,
            _ => Some(ResourceVersion(Repr::Text(text.into()))),
        }
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Number(number) => number.fmt(f),
            Repr::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One reason why a key was queued. Printed as `Deployment.apps default/web updated (rv 17)`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cause {
    /// What happened.
    pub event: CauseEvent,
    /// The kind of the object, as in kubectl: `Deployment.apps`. Empty if there is no object.
    pub kind: Arc<str>,
    /// The object that the event is about. For a child this is the child, not the key that was queued.
    pub object: Option<ObjectKey>,
    /// The object's resource version after the event.
    pub resource_version: Option<ResourceVersion>,
}

impl Cause {
    /// A cause without an object: a requeue, a retry.
    #[must_use]
    pub fn new(event: CauseEvent) -> Cause {
        Cause { event, kind: Arc::default(), object: None, resource_version: None }
    }

    /// An event of an object.
    #[must_use]
    pub fn object(
        event: CauseEvent,
        kind: impl Into<Arc<str>>,
        object: ObjectKey,
        resource_version: Option<&str>,
    ) -> Cause {
        let resource_version = resource_version.and_then(ResourceVersion::new);
        Cause { event, kind: kind.into(), object: Some(object), resource_version }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.kind.is_empty() {
            write!(f, "{} ", self.kind)?;
        }
        if let Some(object) = &self.object {
            write!(f, "{object} ")?;
        }
        write!(f, "{}", self.event)?;
        if let Some(resource_version) = &self.resource_version {
            write!(f, " (rv {resource_version})")?;
        }
        Ok(())
    }
}

/// The causes of one run, oldest first: the newest [`MAX`](Causes::MAX), and the number of older ones that were dropped.
///
/// Does not allocate while it is empty.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Causes(List);

/// A single cause is by far the most common case.
#[derive(Clone, Default, PartialEq, Eq)]
enum List {
    #[default]
    Empty,
    One(Box<Cause>),
    Many(Box<Many>),
}

#[derive(Clone, PartialEq, Eq)]
struct Many {
    causes: VecDeque<Cause>,
    dropped: u64,
}

impl Causes {
    /// Maximum number of causes that are kept.
    pub const MAX: usize = 16;

    /// No causes.
    #[must_use]
    pub const fn none() -> Causes {
        Causes(List::Empty)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self.0, List::Empty)
    }

    /// Number of causes kept.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            List::Empty => 0,
            List::One(_) => 1,
            List::Many(many) => many.causes.len(),
        }
    }

    /// Number of older causes that were dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        match &self.0 {
            List::Many(many) => many.dropped,
            List::Empty | List::One(_) => 0,
        }
    }

    /// Adds the newest cause. A repetition of the last one is ignored.
    pub fn push(&mut self, cause: Cause) {
        match std::mem::take(&mut self.0) {
            List::Empty => self.0 = List::One(Box::new(cause)),
            List::One(first) if *first == cause => self.0 = List::One(first),
            List::One(first) => {
                let mut many = Many { causes: VecDeque::with_capacity(4), dropped: 0 };
                many.causes.push_back(*first);
                many.push(cause);
                self.0 = List::Many(Box::new(many));
            }
            List::Many(mut many) => {
                many.push(cause);
                self.0 = List::Many(many);
            }
        }
    }

    /// Adds newer causes.
    pub fn merge(&mut self, newer: Causes) {
        if self.is_empty() {
            *self = newer;
            return;
        }
        match newer.0 {
            List::Empty => {}
            List::One(cause) => self.push(*cause),
            List::Many(many) => {
                for cause in many.causes {
                    self.push(cause);
                }
                self.drop_more(many.dropped);
            }
        }
    }

    fn drop_more(&mut self, dropped: u64) {
        // A list that has dropped causes is full, and so is one that it was merged into.
        if let List::Many(many) = &mut self.0 {
            many.dropped = many.dropped.saturating_add(dropped);
        }
    }

    /// The causes, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Cause> + Clone {
        let (one, many) = match &self.0 {
            List::Empty => (None, None),
            List::One(cause) => (Some(cause.as_ref()), None),
            List::Many(many) => (None, Some(many.causes.iter())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

impl Many {
    fn push(&mut self, cause: Cause) {
        if self.causes.back() == Some(&cause) {
            return;
        }
        if self.causes.len() == Causes::MAX {
            self.causes.pop_front();
            self.dropped = self.dropped.saturating_add(1);
        }
        self.causes.push_back(cause);
    }
}

impl From<Cause> for Causes {
    fn from(cause: Cause) -> Causes {
        Causes(List::One(Box::new(cause)))
    }
}

impl FromIterator<Cause> for Causes {
    fn from_iter<I: IntoIterator<Item = Cause>>(causes: I) -> Causes {
        let mut all = Causes::none();
        all.extend(causes);
        all
    }
}

impl Extend<Cause> for Causes {
    fn extend<I: IntoIterator<Item = Cause>>(&mut self, causes: I) {
        for cause in causes {
            self.push(cause);
        }
    }
}

/// `Pod default/a created (rv 3); Pod default/b deleted (rv 5); and 4 earlier`.
impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, cause) in self.iter().enumerate() {
            let separator = if at == 0 { "" } else { "; " };
            write!(f, "{separator}{cause}")?;
        }
        match self.dropped() {
            0 => Ok(()),
            dropped => write!(f, "; and {dropped} earlier"),
        }
    }
}

impl fmt::Debug for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(number: usize) -> Cause {
        let key = ObjectKey::namespaced("default", "web");
        Cause::object(CauseEvent::Updated, "Deployment.apps", key, Some(&number.to_string()))
    }

    #[test]
    fn a_cause_is_printed_with_its_object_and_resource_version() {
        assert_eq!(numbered(17).to_string(), "Deployment.apps default/web updated (rv 17)");
        assert_eq!(Cause::new(CauseEvent::Retry).to_string(), "retry");
        let node = Cause::object(CauseEvent::Initial, "Node", ObjectKey::cluster("a"), None);
        assert_eq!(node.to_string(), "Node a listed");
    }

    #[test]
    fn a_resource_version_prints_as_it_was_written() {
        for text in ["17", "017", "+17", "18446744073709551615", "18446744073709551616", "abc", "0"] {
            assert_eq!(ResourceVersion::new(text).unwrap().to_string(), text);
        }
        assert_eq!(ResourceVersion::new(""), None);
    }

    #[test]
    fn the_newest_sixteen_are_kept_and_the_others_counted() {
        let mut causes: Causes = (0..10).map(numbered).collect();
        assert_eq!((causes.len(), causes.dropped()), (10, 0));
        causes.merge((10..40).map(numbered).collect());
        assert_eq!((causes.len(), causes.dropped()), (16, 24));
        assert!(causes.iter().eq((24..40).map(numbered).collect::<Vec<_>>().iter()));
        assert!(causes.to_string().ends_with("(rv 39); and 24 earlier"), "{causes}");
    }

    #[test]
    fn repeated_causes_are_merged() {
        let mut causes = Causes::from(numbered(1));
        causes.push(numbered(1));
        assert_eq!(causes, Causes::from(numbered(1)));
        causes.extend([numbered(2), numbered(2), numbered(1)]);
        assert_eq!(causes.len(), 3);
    }

    #[test]
    fn an_empty_list_takes_two_words_and_no_allocation() {
        assert_eq!(size_of::<Causes>(), 16);
        assert!(Causes::none().is_empty());
        assert_eq!(Causes::none().iter().count(), 0);
    }
}
