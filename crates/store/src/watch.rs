//! Watching: every change to the keys under a prefix, in order, from a revision on.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use smallvec::SmallVec;

use crate::{Result, Revision, types::Excerpt};

/// What to watch.
///
/// ```
/// # use k1s_store::{Revision, WatchRequest};
/// let from_now_on = WatchRequest::prefix("/pods/");
/// let resumed = WatchRequest::prefix("/pods/").after(Revision::new(812)).previous(true);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchRequest {
    /// Only keys that begin with this; empty for all keys.
    pub prefix: Bytes,
    /// Only changes later than this revision; `None` for later than now.
    pub after: Option<Revision>,
    /// Whether events carry the previous value.
    pub previous: bool,
}

impl WatchRequest {
    /// Every change from now on to the keys that begin with `prefix`.
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        Self { prefix: prefix.into(), ..Self::default() }
    }

    /// Begins with the first change later than `revision`.
    #[must_use]
    pub fn after(mut self, revision: Revision) -> Self {
        self.after = Some(revision);
        self
    }

    /// Requests previous values.
    #[must_use]
    pub fn previous(mut self, wanted: bool) -> Self {
        self.previous = wanted;
        self
    }
}

/// A change to one key.
#[derive(Clone, PartialEq, Eq)]
pub struct Event {
    /// The key.
    pub key: Bytes,
    /// Its new value; `None` if it was deleted.
    pub value: Option<Bytes>,
    /// Whether the key had no value before.
    pub created: bool,
    /// The previous value, if there was one. Set if the watch requested it, and otherwise where it costs nothing.
    pub previous: Option<Previous>,
}

/// The value that an [`Event`] replaced.
#[derive(Clone, PartialEq, Eq)]
pub struct Previous {
    /// The value.
    pub value: Bytes,
    /// The revision that had written it.
    pub revision: Revision,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The key was created.
    Created,
    /// Its value was replaced.
    Updated,
    /// It was deleted.
    Deleted,
}

impl Event {
    /// Its kind.
    pub fn kind(&self) -> EventKind {
        match (&self.value, self.created) {
            (None, _) => EventKind::Deleted,
            (Some(_), true) => EventKind::Created,
            (Some(_), false) => EventKind::Updated,
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("kind", &self.kind())
            .field("key", &self.key)
            .field("value", &self.value.as_deref().map(Excerpt))
            .field("previous", &self.previous)
            .finish()
    }
}

impl fmt::Debug for Previous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Previous")
            .field("revision", &self.revision)
            .field("value", &Excerpt(&self.value))
            .finish()
    }
}

/// Everything that one transaction changed under a watched prefix: always complete, never split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    revision: Revision,
    events: SmallVec<[Event; 1]>,
}

impl Change {
    /// The change that `revision` made.
    pub fn new(revision: Revision, events: impl IntoIterator<Item = Event>) -> Self {
        Self { revision, events: events.into_iter().collect() }
    }

    /// The revision that made it.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Its events, one per key.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Bytes of its keys and values.
    pub fn size(&self) -> usize {
        self.events
            .iter()
            .map(|event| {
                event.key.len()
                    + event.value.as_ref().map_or(0, Bytes::len)
                    + event.previous.as_ref().map_or(0, |previous| previous.value.len())
            })
            .sum()
    }

    /// The part of it under `prefix`, or `None` if there is none. Shares the change if all of it is under `prefix`.
    pub fn under(self: &Arc<Self>, prefix: &[u8]) -> Option<Arc<Self>> {
        let inside = |event: &&Event| event.key.starts_with(prefix);
        match self.events.iter().filter(inside).count() {
            0 => None,
            all if all == self.events.len() => Some(self.clone()),
            _ => Some(Arc::new(Self::new(self.revision, self.events.iter().filter(inside).cloned()))),
        }
    }
}

/// An item of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchItem {
    /// A transaction changed keys under the prefix.
    Change(Arc<Change>),
    /// Every change under the prefix up to this revision has been yielded: the place to resume from.
    Progress(Revision),
}

impl WatchItem {
    /// The revision it brings the watch to.
    pub fn revision(&self) -> Revision {
        match self {
            Self::Change(change) => change.revision(),
            Self::Progress(revision) => *revision,
        }
    }
}

/// An open watch: a stream of [`WatchItem`]s.
///
/// - **Ordered, unique**: revisions only grow, and each comes once.
/// - **Reliable**: no change under the prefix is left out between two that are yielded.
/// - **Atomic**: all events of one revision come as one [`Change`].
/// - **Resumable**: a new watch after the revision of any item continues right after it, as long as
///   that revision is not compacted.
/// - **Bounded**: a watch that is not read costs a position, not a queue. One that lags behind the
///   retained history ends with [`Error::Compacted`](crate::Error::Compacted).
///
/// It ends with `None` after the store was closed and everything was yielded; an error is the last item. A
/// watch that lags so far that it would have to read the history of a closed store ends with
/// [`Error::Closed`](crate::Error::Closed).
#[must_use = "a watch yields nothing unless it is read"]
pub struct Watch {
    items: Pin<Box<dyn Stream<Item = Result<WatchItem>> + Send>>,
    progress: Arc<dyn RequestProgress>,
}

/// The implementation of [`Watch::request_progress`].
pub trait RequestProgress: Send + Sync + 'static {
    /// Makes the watch yield a [`WatchItem::Progress`] at or after the revision that is the newest now.
    fn request_progress(&self);
}

impl Watch {
    /// A watch of its two halves.
    pub fn new(
        items: impl Stream<Item = Result<WatchItem>> + Send + 'static,
        progress: Arc<dyn RequestProgress>,
    ) -> Self {
        Self { items: Box::pin(items), progress }
    }

    /// The next item.
    pub async fn next(&mut self) -> Option<Result<WatchItem>> {
        std::future::poll_fn(|context| self.items.as_mut().poll_next(context)).await
    }

    /// Requests a [`WatchItem::Progress`] that is not older than the store's newest revision at the
    /// time of the call. Several requests may be answered by one mark.
    pub fn request_progress(&self) {
        self.progress.request_progress();
    }

    /// A handle that can do [`request_progress`](Self::request_progress) while the watch is being read.
    pub fn progress_handle(&self) -> Arc<dyn RequestProgress> {
        self.progress.clone()
    }
}

impl Stream for Watch {
    type Item = Result<WatchItem>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.items.as_mut().poll_next(context)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &'static str) -> Event {
        Event { key: key.into(), value: Some("v".into()), created: true, previous: None }
    }

    #[test]
    fn a_change_is_shared_where_all_of_it_is_seen_and_cut_where_not() {
        let change = Arc::new(Change::new(Revision::new(3), [put("/a/1"), put("/b/1")]));
        assert!(Arc::ptr_eq(&change.under(b"/").unwrap(), &change));
        assert_eq!(*change.under(b"/b/").unwrap(), Change::new(Revision::new(3), [put("/b/1")]));
        assert_eq!(change.under(b"/c/"), None);
    }
}
