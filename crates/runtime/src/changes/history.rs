//! Reads changes that are older than the ring from the server's history: a watch of each kind from a revision, merged by
//! revision, up to the bookmarks that the server sends when it has nothing more.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;

use super::{Filter, Inner, follow::decode, subscription::Delivery};
use crate::client::{Error, EventType, RawEvent, RawWatchStream};

/// The lifetime of a watch is this, doubled whenever it has ended without a bookmark. Servers send one two seconds before
/// the end.
const LIFETIME: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(64);
/// The pause after a failure, and how many in a row are tolerated.
const PAUSE: Duration = Duration::from_millis(100);
const FAILURES: u32 = 6;

/// A reader of history. It is asked for one change after the other, and holds little more than one per kind.
pub(super) struct History {
    inner: Arc<Inner>,
    filter: Filter,
    /// All changes up to this revision have been delivered.
    after: u64,
    parts: Vec<Part>,
    lifetime: Duration,
    failures: u32,
}

struct Part {
    kind: usize,
    stream: RawWatchStream,
    next: Option<Delivery>,
    /// Set by a bookmark: there are no more events up to this revision.
    complete: Option<u64>,
}

pub(super) enum Read {
    Change(Delivery),
    /// Everything up to this revision has been delivered.
    CaughtUp(u64),
    /// The server no longer has the history.
    Gone,
    /// The server does not answer.
    Failed,
}

impl History {
    pub(super) fn after(inner: Arc<Inner>, filter: Filter, revision: u64) -> History {
        History { inner, filter, after: revision, parts: Vec::new(), lifetime: LIFETIME, failures: 0 }
    }

    pub(super) async fn next(&mut self) -> Read {
        loop {
            match self.read().await {
                Ok(Some(read)) => {
                    self.failures = 0;
                    return read;
                }
                // A watch has ended before its bookmark.
                Ok(None) => {
                    self.parts.clear();
                    self.lifetime = (self.lifetime * 2).min(LONGEST);
                }
                Err(error) if error.is_gone() => return Read::Gone,
                Err(error) => {
                    tracing::debug!(%error, "cannot read the history");
                    self.parts.clear();
                    self.failures += 1;
                    if self.failures > FAILURES {
                        return Read::Failed;
                    }
                    self.inner.env.sleep(PAUSE).await;
                }
            }
        }
    }

    async fn read(&mut self) -> Result<Option<Read>, Error> {
        if self.parts.is_empty() {
            self.open().await?;
        }
        for part in &mut self.parts {
            while part.next.is_none() && part.complete.is_none() {
                let Some(event) = part.stream.next().await else { return Ok(None) };
                part.take(&self.inner, event?);
            }
        }
        // A part that is complete up to a revision may have events after it that are not known.
        let limit = self.parts.iter().filter_map(|part| part.complete).min().unwrap_or(u64::MAX);
        let oldest = self
            .parts
            .iter_mut()
            .filter(|part| part.next.as_ref().is_some_and(|next| next.revision <= limit))
            .min_by_key(|part| part.next.as_ref().map(|next| next.revision));
        if let Some(change) = oldest.and_then(|part| part.next.take()) {
            self.after = change.revision;
            return Ok(Some(Read::Change(change)));
        }
        self.parts.clear();
        self.after = self.after.max(limit);
        Ok(Some(Read::CaughtUp(self.after)))
    }

    async fn open(&mut self) -> Result<(), Error> {
        let mut parts = Vec::new();
        for (kind, recorded) in self.inner.kinds.iter().enumerate() {
            if !self.filter.has_kind(kind) {
                continue;
            }
            let mut options = self.filter.watch(recorded);
            options.resource_version = Some(self.after.to_string());
            options.timeout = Some(self.lifetime);
            let stream = self.inner.readers[kind].watch_raw(&options).await?;
            parts.push(Part { kind, stream, next: None, complete: None });
        }
        self.parts = parts;
        Ok(())
    }
}

impl Part {
    fn take(&mut self, inner: &Inner, RawEvent { event, object }: RawEvent) {
        let Some((event, state)) = decode(&inner.kinds[self.kind], event, &object) else { return };
        if event == EventType::Bookmark {
            self.complete = Some(state.revision);
        } else {
            let (kind, revision, object) = (self.kind, state.revision, state.object);
            self.next = Some(Delivery { event, kind, revision, object });
        }
    }
}
