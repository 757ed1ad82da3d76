//! One watch: a position that moves through history, ring and topic.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::Notify;

use super::{
    Backfill, Feed, Published,
    topics::{Read, Topic},
};
use crate::{Error, RequestProgress, Result, Revision, Watch, WatchItem, WatchRequest};

/// Maximum changes that a cursor takes at a time: enough to amortize the lock, few enough that a watch that is not
/// read holds little.
const CHUNK: usize = 64;

/// Maximum changes of the ring that a cursor visits per acquisition of the feed's lock.
const RING_SCAN: usize = 512;

pub(super) struct Cursor {
    feed: Feed,
    topic: Arc<Topic>,
    history: Arc<dyn Backfill>,
    /// The request. Its `after` is set, and advances: everything up to it has been taken.
    request: WatchRequest,
    place: Place,
    /// Taken, not yet yielded.
    ready: VecDeque<WatchItem>,
    progress: Arc<Progress>,
    ended: bool,
}

/// Where the cursor reads next.
#[derive(Clone, Copy)]
enum Place {
    /// In the backend's own history.
    History,
    /// In the feed's ring.
    Ring,
    /// In the topic, at this position.
    Topic(u64),
}

/// A request for a progress mark, and the signal that there is one.
#[derive(Default)]
struct Progress {
    wanted: AtomicBool,
    requested: Notify,
}

impl RequestProgress for Progress {
    fn request_progress(&self) {
        self.wanted.store(true, Ordering::Release);
        self.requested.notify_one();
    }
}

impl Cursor {
    pub(super) fn open(feed: Feed, mut request: WatchRequest, history: Arc<dyn Backfill>) -> Result<Self> {
        let (topic, place) = {
            let mut state = feed.shared.state.lock();
            if state.closed {
                return Err(Error::Closed);
            }
            let after = request.after.unwrap_or(state.revision);
            state.check_start(after)?;
            request.after = Some(after);
            feed.shared.watches.fetch_add(1, Ordering::Relaxed);
            let topic = state.topics.join(&request.prefix, request.previous);
            // A watch from now has nothing to catch up with, however long it is not read.
            let place = if after == state.revision { Place::Topic(topic.end()) } else { Place::Ring };
            (topic, place)
        };
        Ok(Self {
            feed,
            topic,
            history,
            request,
            place,
            ready: VecDeque::new(),
            progress: Arc::default(),
            ended: false,
        })
    }

    pub(super) fn into_watch(self) -> Watch {
        let progress = self.progress.clone();
        let items = futures_util::stream::unfold(self, |mut cursor| async move {
            let item = cursor.next().await?;
            Some((item, cursor))
        });
        Watch::new(items, progress)
    }

    async fn next(&mut self) -> Option<Result<WatchItem>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            if self.ended {
                return None;
            }
            let step = match self.place {
                Place::History => self.read_history().await,
                Place::Ring => {
                    self.read_ring();
                    Ok(())
                }
                Place::Topic(position) => {
                    self.read_topic(position).await;
                    Ok(())
                }
            };
            if let Err(error) = step {
                self.ended = true;
                return Some(Err(error));
            }
        }
    }

    fn after(&self) -> Revision {
        self.request.after.unwrap_or_default()
    }

    async fn read_history(&mut self) -> Result<()> {
        let page = self.history.backfill(&self.request).await?;
        if page.through <= self.after() {
            // The ring has later changes, or the cursor would read elsewhere.
            return Err(Error::corrupt(format!(
                "the history ends at revision {}, before the changes that were published",
                page.through
            )));
        }
        self.request.after = Some(page.through);
        self.ready.extend(page.changes.into_iter().map(WatchItem::Change));
        self.place = Place::Ring;
        Ok(())
    }

    fn read_ring(&mut self) {
        let feed = self.feed.clone();
        let state = feed.shared.state.lock();
        let after = self.after();
        if after < state.floor {
            self.place = Place::History;
            return;
        }
        let begin = state.ring.partition_point(|published| published.change.revision() <= after);
        for published in state.ring.range(begin..).take(RING_SCAN) {
            if let Some(change) = published.change.under(&self.request.prefix) {
                if !self.usable(published) {
                    self.place = Place::History;
                    return;
                }
                self.ready.push_back(WatchItem::Change(change));
            }
            self.request.after = Some(published.change.revision());
        }
        if state.ring.len() - begin <= RING_SCAN {
            // Nothing is published while the feed is locked: the topic's end is the feed's revision.
            // History may be newer than the feed: then the topic has yet to receive those changes.
            self.request.after = self.request.after.max(Some(state.revision));
            self.place = Place::Topic(self.topic.end());
        }
    }

    async fn read_topic(&mut self, position: u64) {
        let topic = self.topic.clone();
        let news = topic.news();
        tokio::pin!(news);
        // Registered before the check below, so that no later change is missed.
        news.as_mut().enable();

        // In this order: everything published when a mark is requested is included in the revision read here, and the topic
        // has everything up to that.
        let mark_wanted = self.progress.wanted.swap(false, Ordering::AcqRel);
        let published = if mark_wanted {
            // With the lock: changes that are readable already may be about to be published.
            self.feed.shared.state.lock().revision
        } else {
            self.feed.revision()
        };
        let closed = self.feed.is_closed();
        let changes = match topic.read(position, CHUNK) {
            Read::Changes(changes) if changes.is_empty() => {
                self.request.after = self.request.after.max(Some(published));
                if mark_wanted {
                    self.ready.push_back(WatchItem::Progress(self.after()));
                } else if closed {
                    self.ended = true;
                } else {
                    tokio::select! {
                        () = news => {}
                        () = self.progress.requested.notified() => {}
                    }
                }
                return;
            }
            Read::Changes(changes) => changes,
            Read::Missed => {
                self.place = Place::Ring;
                Default::default()
            }
        };
        if mark_wanted {
            // Later, after everything before it.
            self.progress.wanted.store(true, Ordering::Release);
        }
        for (taken, published) in (1..).zip(&changes) {
            if published.change.revision() > self.after() {
                if !self.usable(published) {
                    self.place = Place::History;
                    return;
                }
                self.request.after = Some(published.change.revision());
                self.ready.push_back(WatchItem::Change(published.change.clone()));
            }
            self.place = Place::Topic(position + taken);
        }
    }

    /// Whether a change has previous values, if this watch requests them.
    fn usable(&self, published: &Published) -> bool {
        published.previous || !self.request.previous
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        let shared = &self.feed.shared;
        shared.state.lock().topics.leave(&self.topic, self.request.previous);
        shared.watches.fetch_sub(1, Ordering::AcqRel);
        if self.feed.is_closed() {
            // The dispatchers may be waiting for the last watch to end.
            shared.tell_dispatchers();
        }
    }
}
