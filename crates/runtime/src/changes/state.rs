//! The objects, the ring and the log: what readers see. Pure.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::SystemTime,
};

use bytes::Bytes;
use tokio::sync::watch;

use super::{Change, ChangesOptions, Filter, Record, subscription::Delivery};
use crate::{ObjectKey, client::EventType};

pub(super) type Labels = BTreeMap<String, String>;

/// An object as it is now.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) key: ObjectKey,
    pub(super) uid: String,
    pub(super) revision: u64,
    pub(super) labels: Arc<Labels>,
    pub(super) object: Bytes,
}

/// An event of a watch, decoded as far as needed.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) kind: usize,
    pub(super) event: EventType,
    pub(super) state: Current,
    pub(super) paths: Vec<String>,
}

/// Maximum number of changes examined, and delivered, per lock.
const EXAMINED: usize = 1024;
const DELIVERED: usize = 64;
/// What a change costs besides its object.
const OVERHEAD: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The first lists are not complete.
    Starting,
    Following,
    Closed,
}

#[derive(Debug)]
pub(super) struct State {
    options: ChangesOptions,
    phase: Phase,
    /// Incremented when the record starts over: changes between two generations are unknown.
    generation: u64,
    objects: Vec<BTreeMap<ObjectKey, Arc<Current>>>,
    ring: VecDeque<Arc<Change>>,
    ring_bytes: usize,
    /// The ring has all changes after this revision.
    start: u64,
    /// Everything up to this revision is recorded.
    reached: u64,
    log: VecDeque<Arc<Record>>,
    evictions: watch::Sender<u64>,
}

/// What a reader found at its position.
#[derive(Debug)]
pub(super) enum Took {
    /// These changes, and the position after them.
    Changes(Vec<Delivery>, u64),
    /// The changes after its position are no longer in the ring.
    Lost,
    /// The record has started over.
    StartedOver,
    Closed,
}

/// The objects that a reader begins with, the oldest revision first.
pub(super) struct Existing {
    pub(super) generation: u64,
    pub(super) reached: u64,
    pub(super) objects: Vec<(usize, Arc<Current>)>,
}

impl State {
    pub(super) fn new(kinds: usize, options: ChangesOptions) -> State {
        State {
            options,
            phase: Phase::Starting,
            generation: 0,
            objects: (0..kinds).map(|_| BTreeMap::new()).collect(),
            ring: VecDeque::new(),
            ring_bytes: 0,
            start: 0,
            reached: 0,
            log: VecDeque::new(),
            evictions: watch::Sender::new(0),
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.phase == Phase::Following
    }

    pub(super) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    pub(super) fn close(&mut self) {
        self.phase = Phase::Closed;
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn start(&self) -> u64 {
        self.start
    }

    pub(super) fn reached(&self) -> u64 {
        self.reached
    }

    pub(super) fn evictions(&self) -> watch::Receiver<u64> {
        self.evictions.subscribe()
    }

    pub(super) fn log(&self) -> impl DoubleEndedIterator<Item = &Arc<Record>> {
        self.log.iter()
    }

    pub(super) fn current(&self, kind: usize, key: &ObjectKey) -> Option<&Arc<Current>> {
        self.objects[kind].get(key)
    }

    /// Begins with these objects of each kind, listed at a revision.
    pub(super) fn begin(&mut self, objects: Vec<Vec<Current>>, revision: u64) {
        self.generation += 1;
        self.phase = Phase::Following;
        self.objects = objects
            .into_iter()
            .map(|kind| kind.into_iter().map(|current| (current.key.clone(), Arc::new(current))).collect())
            .collect();
        self.ring.clear();
        self.ring_bytes = 0;
        (self.start, self.reached) = (revision, revision);
        self.evictions.send_replace(revision);
    }

    /// Records changes in the order of their revisions; all changes up to `reached` are recorded then.
    ///
    /// # Errors
    /// If one of them is older than what is recorded: it came too late.
    pub(super) fn record(&mut self, batch: Vec<Incoming>, reached: u64, now: SystemTime) -> Result<(), ()> {
        for incoming in batch {
            let Incoming { kind, event, state, paths } = incoming;
            if state.revision <= self.reached {
                return Err(());
            }
            if self.options.log > 0 {
                if self.log.len() >= self.options.log {
                    self.log.pop_front();
                }
                let Current { key, uid, revision, .. } = &state;
                let (key, uid, revision) = (key.clone(), uid.clone(), *revision);
                self.log.push_back(Arc::new(Record { event, kind, key, uid, revision, time: now, paths }));
            }
            let state = Arc::new(state);
            let old = match event {
                EventType::Deleted => self.objects[kind].remove(&state.key),
                _ => self.objects[kind].insert(state.key.clone(), state.clone()),
            };
            self.push(Change {
                event,
                kind,
                key: state.key.clone(),
                revision: state.revision,
                labels: state.labels.clone(),
                old_labels: old.map(|old| old.labels.clone()),
                object: state.object.clone(),
            });
        }
        self.reached = self.reached.max(reached);
        Ok(())
    }

    fn push(&mut self, change: Change) {
        self.ring_bytes += change.object.len() + OVERHEAD;
        self.ring.push_back(Arc::new(change));
        let before = self.start;
        while self.ring.len() > self.options.ring.max(1)
            || (self.ring_bytes > self.options.ring_bytes && self.ring.len() > 1)
        {
            let Some(oldest) = self.ring.pop_front() else { break };
            self.ring_bytes -= oldest.object.len() + OVERHEAD;
            self.start = oldest.revision;
        }
        if self.start != before {
            self.evictions.send_replace(self.start);
        }
    }

    /// The changes after a position that a filter selects.
    pub(super) fn take(&self, generation: u64, after: u64, filter: &Filter) -> Took {
        match self.phase {
            Phase::Closed => return Took::Closed,
            _ if generation != self.generation => return Took::StartedOver,
            _ if after < self.start => return Took::Lost,
            _ => {}
        }
        let from = self.ring.partition_point(|change| change.revision <= after);
        let (mut selected, mut position) = (Vec::new(), after);
        for (examined, change) in self.ring.range(from..).enumerate() {
            // A transaction can change several objects: they have the same revision, and stay together.
            let full = examined >= EXAMINED || selected.len() >= DELIVERED;
            if full && change.revision != position {
                return Took::Changes(selected, position);
            }
            position = change.revision;
            if let Some(event) = filter.event(change) {
                let (kind, revision, object) = (change.kind, change.revision, change.object.clone());
                selected.push(Delivery { event, kind, revision, object });
            }
        }
        Took::Changes(selected, self.reached.max(position))
    }

    /// The objects that a filter selects.
    pub(super) fn existing(&self, filter: &Filter) -> Existing {
        let mut objects: Vec<(usize, Arc<Current>)> = self
            .objects
            .iter()
            .enumerate()
            .flat_map(|(kind, objects)| objects.values().map(move |current| (kind, current)))
            .filter(|(kind, current)| filter.matches(*kind, &current.key, &current.labels))
            .map(|(kind, current)| (kind, current.clone()))
            .collect();
        // A reader that is interrupted resumes after the last revision it has seen.
        objects.sort_by_key(|(_, current)| current.revision);
        Existing { generation: self.generation, reached: self.reached, objects }
    }
}
