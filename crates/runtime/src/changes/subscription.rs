//! Readers of the record.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    vec,
};

use bytes::Bytes;
use tokio::sync::watch;

use super::{
    Filter, Inner,
    history::{History, Read},
    state::{Current, Existing, Took},
};
use crate::cache::wire;
use crate::client::{EventType, ListOptions};

/// Where a subscription begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the existing objects, as [`EventType::Added`], the oldest revision first; then changes.
    Existing,
    /// With the next change.
    Now,
    /// With the first change after this revision. If it is no longer known, [`Step::Resync`] comes first, then the existing
    /// objects.
    After(u64),
}

/// What a subscription delivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// An existing object, or a change.
    Change(Delivery),
    /// Changes have been missed: the existing objects follow. What is not among them is gone.
    Resync,
}

/// A change as a subscription delivers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// What happened, as seen through the filter.
    pub event: EventType,
    /// The kind: an index into [`Changes::kinds`](super::Changes::kinds).
    pub kind: usize,
    /// The revision. A subscription that [resumes](Start::After) after it misses nothing.
    pub revision: u64,
    /// The object as JSON, on one line. Shared by all subscriptions.
    pub object: Bytes,
}

/// Reads changes at its own pace. Created by [`Changes::subscribe`](super::Changes::subscribe).
///
/// It holds a position in the ring. One that falls behind the ring ends, and can be resumed from the server's history.
pub struct Subscription {
    inner: Arc<Inner>,
    filter: Filter,
    mode: Mode,
    ready: VecDeque<Step>,
    ticks: watch::Receiver<u64>,
    position: Position,
}

enum Mode {
    Beginning(Start),
    Existing {
        objects: vec::IntoIter<(usize, Arc<Current>)>,
        generation: u64,
        reached: u64,
    },
    History(Box<History>),
    /// After a revision that is not recorded yet, and may never be.
    Ahead {
        generation: u64,
        revision: u64,
    },
    Live {
        generation: u64,
        after: u64,
    },
    Ended,
}

/// How far a subscription has read: for those who have to notice that it no longer reads.
#[derive(Debug, Clone)]
pub struct Position(Arc<AtomicU64>);

/// The position of a subscription that does not depend on the ring.
const ANYWHERE: u64 = u64::MAX;

impl Position {
    /// Whether the ring, which has all changes after `oldest` (see [`Changes::evictions`](super::Changes::evictions)), has
    /// lost what the subscription would read next. It will end.
    #[must_use]
    pub fn is_lost(&self, oldest: u64) -> bool {
        self.0.load(Ordering::Relaxed) < oldest
    }

    fn set(&self, revision: u64) {
        self.0.store(revision, Ordering::Relaxed);
    }
}

impl Subscription {
    pub(super) fn new(inner: Arc<Inner>, filter: Filter, start: Start) -> Subscription {
        let ticks = inner.ticks.subscribe();
        let position = Position(Arc::new(AtomicU64::new(ANYWHERE)));
        let (mode, ready) = (Mode::Beginning(start), VecDeque::new());
        let mut subscription = Subscription { inner, filter, mode, ready, ticks, position };
        // From here on, not from the first call of `next`.
        if subscription.inner.state.read().is_ready() {
            subscription.begin(start);
        }
        subscription
    }

    /// How far it has read.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position.clone()
    }

    /// The next step. `None` at the end: it has fallen behind the ring, or the record has stopped.
    ///
    /// Cancel safe: if the future is dropped, nothing is lost.
    pub async fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return Some(step);
            }
            self.ticks.borrow_and_update();
            match &mut self.mode {
                Mode::Ended => return None,
                Mode::Beginning(start) => {
                    let start = *start;
                    let (ready, closed) = {
                        let state = self.inner.state.read();
                        (state.is_ready(), state.is_closed())
                    };
                    if ready {
                        self.begin(start);
                    } else if closed || self.ticks.changed().await.is_err() {
                        self.mode = Mode::Ended;
                    }
                }
                Mode::Ahead { generation, revision } => {
                    let (generation, revision) = (*generation, *revision);
                    if is_reached(&self.inner, revision).await {
                        self.live(generation, revision);
                    } else {
                        // Of another server, or of a future that a restored backup has not seen.
                        self.resync();
                    }
                }
                Mode::Existing { objects, generation, reached } => match objects.next() {
                    Some((kind, current)) => {
                        let (revision, object) = (current.revision, current.object.clone());
                        return Some(Step::Change(Delivery {
                            event: EventType::Added,
                            kind,
                            revision,
                            object,
                        }));
                    }
                    None => self.mode = Mode::Live { generation: *generation, after: *reached },
                },
                Mode::History(history) => match history.next().await {
                    Read::Change(change) => return Some(Step::Change(change)),
                    Read::Gone => self.resync(),
                    Read::Failed => self.mode = Mode::Ended,
                    Read::CaughtUp(revision) => {
                        let state = self.inner.state.read();
                        let generation = state.generation();
                        // Otherwise the ring has moved on meanwhile: another look at the history.
                        if revision >= state.start() {
                            drop(state);
                            self.position.set(revision);
                            self.mode = Mode::Live { generation, after: revision };
                        }
                    }
                },
                Mode::Live { generation, after } => {
                    let (generation, at) = (*generation, *after);
                    let took = self.inner.state.read().take(generation, at, &self.filter);
                    match took {
                        Took::Closed | Took::Lost => self.mode = Mode::Ended,
                        Took::StartedOver => self.resync(),
                        Took::Changes(changes, position) => {
                            *after = position;
                            self.position.set(position);
                            if !changes.is_empty() {
                                self.ready.extend(changes.into_iter().map(Step::Change));
                            } else if position == at && self.ticks.changed().await.is_err() {
                                self.mode = Mode::Ended;
                            }
                        }
                    }
                }
            }
        }
    }

    /// Begins, when the record is ready.
    fn begin(&mut self, start: Start) {
        let (generation, oldest, reached) = {
            let state = self.inner.state.read();
            (state.generation(), state.start(), state.reached())
        };
        match start {
            Start::Existing => self.existing(),
            Start::Now => self.live(generation, reached),
            Start::After(revision) if revision < oldest => {
                let history = History::after(self.inner.clone(), self.filter.clone(), revision);
                self.mode = Mode::History(Box::new(history));
            }
            Start::After(revision) if revision <= reached => self.live(generation, revision),
            Start::After(revision) => self.mode = Mode::Ahead { generation, revision },
        }
    }

    fn live(&mut self, generation: u64, after: u64) {
        self.position.set(after);
        self.mode = Mode::Live { generation, after };
    }

    fn existing(&mut self) {
        let Existing { generation, reached, objects } = self.inner.state.read().existing(&self.filter);
        self.position.set(reached);
        self.mode = Mode::Existing { objects: objects.into_iter(), generation, reached };
    }

    fn resync(&mut self) {
        self.ready.push_back(Step::Resync);
        self.existing();
    }
}

/// Whether the server has reached a revision that is not recorded yet.
async fn is_reached(inner: &Inner, revision: u64) -> bool {
    let Some(reader) = inner.readers.first() else { return false };
    let newest = reader.list_raw(&ListOptions::default().limit(1)).await;
    newest.is_ok_and(|list| wire::revision(&list.resource_version) >= revision)
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("filter", &self.filter).finish_non_exhaustive()
    }
}
