//! The queue without clock, lock and wakers: its state, and how adds, handouts, dones and time change it.
//!
//! Every operation is given the time, and first promotes the keys that are due. So it does not matter when due times are
//! checked: the outcome is the same as if each key had become ready exactly when it was due.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
};

use k1s_env::Instant;

use super::{
    Causes, Fairness, FlowFn, Key, QueueState, WaitingKeys,
    band::Band,
    flows::{FlowIndex, FlowState, Flows},
    list::{Chain, List},
    metrics::{Counters, Snapshot},
    slots::{Again, Entry, Links, NIL, Place, Processing, Slot, Slots, Tag},
};

/// Number of priorities that keep an empty list: programs use the same few priorities repeatedly.
const MAX_EMPTY_BANDS: usize = 8;

/// Maximum number of keys that are passed over in the search for the oldest one whose flow is not at its limit.
const MAX_BLOCKED_PASSED: usize = 100;

pub(super) struct Core<R> {
    slots: Slots<R>,
    /// Ready keys by priority; first in, first out within each, or in turns of their flows.
    bands: BTreeMap<i32, Band>,
    /// All ready keys, in the order in which they became ready.
    age: List,
    /// Delayed keys by due time; ties are ordered by number.
    delayed: BTreeSet<(Instant, u32, Slot)>,
    /// Number of delayed keys that wait for the rate limiter.
    retrying: usize,
    /// The keys that are handed out, and since when.
    processing: Vec<(Slot, Instant)>,
    fairness: Fairness,
    flow_of: Option<FlowFn<R>>,
    /// Unused in a queue without flows.
    flows: Flows,
    /// Handouts in a row that passed over the oldest key.
    passed_over: u32,
    /// Wraps around, which may swap two keys that are due at the same nanosecond.
    next_number: u32,
    activity: u64,
    closed: Closed,
    counters: Counters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closed {
    No,
    /// Ready keys are still handed out.
    Draining,
    Yes,
}

/// When an added key becomes ready.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    /// `None` is now.
    pub(super) at: Option<Instant>,
    /// Whether the rate limiter set the time.
    pub(super) retry: bool,
}

/// A key that was handed out.
#[derive(Debug)]
pub(super) struct Taken<R> {
    pub(super) slot: Slot,
    pub(super) key: R,
    pub(super) priority: i32,
    pub(super) causes: Causes,
    pub(super) since: Instant,
}

#[derive(Debug)]
pub(super) enum Take<R> {
    Key(Taken<R>),
    /// No key is ready.
    Empty,
    /// No key is ready, and none will be.
    Closed,
}

/// The result of [`Core::retain`].
#[derive(Debug)]
pub(super) struct Retained<R> {
    /// Number of keys that were dropped, or whose next run was.
    pub(super) dropped: usize,
    /// All keys that were not kept.
    pub(super) forgotten: Vec<R>,
}

impl<R: Key> Core<R> {
    pub(super) fn new(
        fairness: Fairness,
        flow_of: Option<FlowFn<R>>,
        max_per_flow: Option<NonZeroUsize>,
        count_flows: bool,
    ) -> Core<R> {
        Core {
            slots: Slots::new(),
            bands: BTreeMap::new(),
            age: List::default(),
            delayed: BTreeSet::new(),
            retrying: 0,
            processing: Vec::new(),
            fairness,
            flow_of,
            flows: Flows::new(max_per_flow, count_flows),
            passed_over: 0,
            next_number: 0,
            activity: 0,
            closed: Closed::No,
            counters: Counters::default(),
        }
    }

    /// Makes keys ready that are due.
    pub(super) fn promote(&mut self, now: Instant) {
        while let Some(&(at, _, slot)) = self.delayed.first() {
            if at > now {
                break;
            }
            self.delayed.pop_first();
            self.retrying -= usize::from(self.slots.entry(slot).tag.is_retry());
            self.added(slot);
            self.activity += 1;
            self.push_ready(slot);
        }
    }

    pub(super) fn add(&mut self, now: Instant, due: Due, priority: i32, causes: Causes, key: R) {
        self.promote(now);
        if self.closed != Closed::No {
            return;
        }
        self.activity += 1;
        let at = due.at.filter(|at| *at > now);
        self.counters.retries += u64::from(at.is_some());
        let hash = self.slots.hash(&key);
        match self.slots.find(hash, &key) {
            None => {
                let since = at.unwrap_or(now);
                let place = Place::Ready(Links::NONE);
                let flow = self.flow_of.as_ref().map_or(0, |flow| self.flows.enter(flow(&key)));
                let tag = Tag::new(flow, due.retry);
                let entry = Entry { key, since, causes, priority, hash, tag, place };
                let slot = self.slots.insert(entry);
                if at.is_some() {
                    self.push_delayed(slot);
                } else {
                    self.added(slot);
                    self.push_ready(slot);
                }
            }
            Some(slot) => {
                self.slots.entry_mut(slot).causes.merge(causes);
                self.merge(now, slot, priority, at, due.retry);
            }
        }
    }

    /// Adds a key that is already in the queue.
    fn merge(&mut self, now: Instant, slot: Slot, priority: i32, at: Option<Instant>, retry: bool) {
        let entry = self.slots.entry_mut(slot);
        match &mut entry.place {
            Place::Ready(_) => {
                if priority > entry.priority {
                    let before = entry.priority;
                    entry.priority = priority;
                    self.move_band(slot, before, priority);
                }
            }
            Place::Delayed { number } => {
                let place = (entry.since, *number, slot);
                let was_retry = entry.tag.is_retry();
                entry.priority = entry.priority.max(priority);
                entry.tag.set_retry(was_retry || retry);
                match at {
                    None => {
                        entry.since = now;
                        self.delayed.remove(&place);
                        self.retrying -= usize::from(was_retry);
                        self.added(slot);
                        self.push_ready(slot);
                    }
                    Some(at) if at < entry.since => {
                        entry.since = at;
                        self.delayed.remove(&place);
                        self.retrying -= usize::from(was_retry);
                        self.push_delayed(slot);
                    }
                    Some(_) => self.retrying += usize::from(retry && !was_retry),
                }
            }
            Place::Processing(processing) => {
                let again = processing.again;
                processing.again =
                    if at.is_none() || again == Again::Ready { Again::Ready } else { Again::Delayed };
                let adds = u64::from(again != Again::Ready && at.is_none());
                self.counters.adds += adds;
                self.flows.added(entry.tag.flow(), adds);
                if again == Again::No {
                    (entry.priority, entry.since) = (priority, at.unwrap_or(now));
                    entry.tag.set_retry(retry);
                } else {
                    entry.priority = entry.priority.max(priority);
                    entry.tag.set_retry(entry.tag.is_retry() || retry);
                    entry.since = entry.since.min(at.unwrap_or(now));
                }
            }
        }
    }

    /// Hands out the next key.
    pub(super) fn take(&mut self, now: Instant) -> Take<R> {
        self.promote(now);
        let Some(slot) = self.choose() else {
            return if self.is_exhausted() { Take::Closed } else { Take::Empty };
        };
        let key = self.slots.entry(slot).key.clone();
        self.unlink_ready(slot);
        if self.flow_of.is_some() {
            self.flows.begin(self.flow(slot));
        }
        let position = self.processing.len() as u32;
        self.processing.push((slot, now));
        self.activity += 1;
        let entry = self.slots.entry_mut(slot);
        entry.tag.set_retry(false);
        entry.place = Place::Processing(Processing { position, again: Again::No, removed: false });
        self.counters.queued.observe(now - entry.since);
        Take::Key(Taken {
            slot,
            key,
            priority: entry.priority,
            causes: std::mem::take(&mut entry.causes),
            since: entry.since,
        })
    }

    /// The next key to hand out.
    fn choose(&mut self) -> Option<Slot> {
        let oldest = self.oldest();
        let (flows, bands) = (&self.flows, self.bands.values_mut().rev());
        let (head, band) = bands.filter_map(|band| Some((band.head(flows)?, band))).next()?;
        if head == oldest {
            self.passed_over = 0;
            band.end_turn();
            return Some(oldest);
        }
        self.passed_over = self.passed_over.saturating_add(1);
        match self.fairness {
            Fairness::OldestEvery(turns) if self.passed_over >= turns.get() && oldest != NIL => {
                self.passed_over = 0;
                Some(oldest)
            }
            Fairness::OldestEvery(_) | Fairness::Strict => {
                band.end_turn();
                Some(head)
            }
        }
    }

    /// The key that has been ready for the longest time, of those that may be handed out; `NIL` if it is hard to find.
    fn oldest(&self) -> Slot {
        let mut slot = self.age.head;
        if self.flows.blocked() == 0 {
            return slot;
        }
        for _ in 0..MAX_BLOCKED_PASSED {
            if slot == NIL || !self.flows.is_full(self.flow(slot)) {
                return slot;
            }
            slot = match &self.slots.entry(slot).place {
                Place::Ready(links) => links.age.next,
                _ => NIL,
            };
        }
        NIL
    }

    /// Ends the run of a key that was handed out.
    pub(super) fn done(&mut self, now: Instant, slot: Slot) {
        self.promote(now);
        let entry = self.slots.entry(slot);
        let Place::Processing(processing) = entry.place else {
            unreachable!("slot {slot} was handed out and is not processed")
        };
        let since = entry.since;
        if self.flow_of.is_some() {
            self.flows.end(self.flow(slot));
        }
        self.activity += 1;
        let (_, started) = self.processing.swap_remove(processing.position as usize);
        self.counters.worked.observe(now - started);
        if let Some((moved, _)) = self.processing.get(processing.position as usize)
            && let Place::Processing(moved) = &mut self.slots.entry_mut(*moved).place
        {
            moved.position = processing.position;
        }
        match processing.again {
            Again::No => drop(self.free(slot)),
            Again::Ready => self.push_ready(slot),
            Again::Delayed if since > now => self.push_delayed(slot),
            Again::Delayed => {
                self.added(slot);
                self.push_ready(slot);
            }
        }
    }

    /// Drops a key, or its next run if it is being processed. Returns whether there was one.
    pub(super) fn remove(&mut self, key: &R) -> bool {
        let hash = self.slots.hash(key);
        self.slots.find(hash, key).is_some_and(|slot| self.remove_slot(slot))
    }

    fn remove_slot(&mut self, slot: Slot) -> bool {
        self.activity += 1;
        let entry = self.slots.entry_mut(slot);
        match &mut entry.place {
            Place::Ready(_) => self.unlink_ready(slot),
            Place::Delayed { number } => {
                let place = (entry.since, *number, slot);
                self.retrying -= usize::from(entry.tag.is_retry());
                self.delayed.remove(&place);
            }
            Place::Processing(processing) => {
                let was = std::mem::replace(&mut processing.again, Again::No);
                processing.removed = true;
                entry.causes = Causes::none();
                return was != Again::No;
            }
        }
        self.free(slot);
        true
    }

    /// Frees the slot of a key that leaves the queue.
    fn free(&mut self, slot: Slot) -> Entry<R> {
        let entry = self.slots.free(slot);
        if self.flow_of.is_some() {
            self.flows.leave(entry.tag.flow());
        }
        entry
    }

    /// Counts a key that becomes ready.
    fn added(&mut self, slot: Slot) {
        self.counters.adds += 1;
        self.flows.added(self.slots.entry(slot).tag.flow(), 1);
    }

    pub(super) fn flow_state(&self, number: u64) -> FlowState {
        self.flows.state(number)
    }

    pub(super) fn forget_flow(&mut self, number: u64) {
        self.flows.forget(number);
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&R) -> bool) -> Retained<R> {
        let mut retained = Retained { dropped: 0, forgotten: Vec::new() };
        for slot in 0..self.slots.capacity() {
            let Some(entry) = self.slots.get(slot) else { continue };
            if keep(&entry.key) {
                continue;
            }
            retained.forgotten.push(entry.key.clone());
            retained.dropped += usize::from(self.remove_slot(slot));
        }
        retained
    }

    /// Accepts no more adds and drops delayed keys; also ready ones, unless they are to be drained. Returns the dropped
    /// entries, for the caller to free outside of the lock.
    pub(super) fn close(&mut self, drain: bool) -> Vec<Entry<R>> {
        self.activity += 1;
        self.closed = if drain && self.closed != Closed::Yes { Closed::Draining } else { Closed::Yes };
        let mut dropped = Vec::new();
        for slot in 0..self.slots.capacity() {
            let Some(entry) = self.slots.get(slot) else { continue };
            match entry.place {
                Place::Ready(_) if drain => continue,
                Place::Processing(processing) if drain && processing.again == Again::Ready => continue,
                Place::Processing(_) => {
                    let entry = self.slots.entry_mut(slot);
                    entry.causes = Causes::none();
                    if let Place::Processing(processing) = &mut entry.place {
                        processing.again = Again::No;
                    }
                }
                Place::Ready(_) => {
                    self.unlink_ready(slot);
                    dropped.push(self.free(slot));
                }
                Place::Delayed { .. } => dropped.push(self.free(slot)),
            }
        }
        self.delayed = BTreeSet::new();
        self.retrying = 0;
        dropped
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed != Closed::No
    }

    /// Whether nothing will ever be handed out again.
    pub(super) fn is_exhausted(&self) -> bool {
        self.is_closed() && self.age.len == 0 && self.ready_again().next().is_none()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.age.len == 0 && self.processing.is_empty() && self.retrying == 0
    }

    /// Number of keys that could be handed out now.
    pub(super) fn available(&self) -> usize {
        self.age.len - self.flows.blocked()
    }

    /// When the next delayed key is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.delayed.first().map(|(at, ..)| *at)
    }

    pub(super) fn activity(&self) -> u64 {
        self.activity
    }

    pub(super) fn len(&self) -> usize {
        self.age.len + self.ready_again().count()
    }

    /// The highest priority first. Recently used priorities are included even if they have no keys.
    pub(super) fn depth(&self) -> Vec<(i32, usize)> {
        let mut depth: BTreeMap<i32, usize> =
            self.bands.iter().map(|(priority, band)| (*priority, band.len)).collect();
        for entry in self.ready_again() {
            *depth.entry(entry.priority).or_default() += 1;
        }
        depth.into_iter().rev().collect()
    }

    pub(super) fn state(&self) -> QueueState {
        let later = || self.again(Again::Delayed);
        let retrying = self.retrying + later().filter(|entry| entry.tag.is_retry()).count();
        QueueState {
            ready: self.len(),
            processing: self.processing.len(),
            retrying,
            delayed: self.delayed.len() + later().count() - retrying,
            next_due: later().map(|entry| entry.since).chain(self.next_due()).min(),
        }
    }

    pub(super) fn processing(&self) -> Vec<(R, Instant)> {
        let mut all: Vec<_> = self
            .processing
            .iter()
            .map(|(slot, started)| (self.slots.entry(*slot).key.clone(), *started))
            .collect();
        all.sort_by_key(|(_, started)| *started);
        all
    }

    /// The first waiting keys in each state, at most `limit` each.
    pub(super) fn waiting(&self, limit: usize) -> WaitingKeys<R> {
        let mut waiting = WaitingKeys { ready: Vec::new(), retrying: Vec::new(), delayed: Vec::new() };
        let mut slot = self.age.head;
        while slot != NIL && waiting.ready.len() < limit {
            let entry = self.slots.entry(slot);
            waiting.ready.push(entry.key.clone());
            slot = match &entry.place {
                Place::Ready(links) => links.age.next,
                _ => NIL,
            };
        }
        let again = self.ready_again().map(|entry| entry.key.clone());
        waiting.ready.extend(again.take(limit - waiting.ready.len()));
        let later = self.delayed.iter().map(|(_, _, slot)| self.slots.entry(*slot));
        for entry in later.chain(self.again(Again::Delayed)) {
            let list = if entry.tag.is_retry() { &mut waiting.retrying } else { &mut waiting.delayed };
            if list.len() < limit {
                list.push((entry.key.clone(), entry.since));
            } else if waiting.retrying.len() == limit && waiting.delayed.len() == limit {
                break;
            }
        }
        waiting
    }

    /// Whether a key that is being processed was removed meanwhile.
    pub(super) fn is_removed(&self, slot: Slot) -> bool {
        matches!(self.slots.entry(slot).place, Place::Processing(Processing { removed: true, .. }))
    }

    /// The values of the metrics.
    pub(super) fn snapshot(&self, now: Instant) -> Snapshot {
        let ages = || self.processing.iter().map(|(_, started)| now - *started);
        Snapshot {
            counters: self.counters.clone(),
            depth: self.depth(),
            unfinished: ages().sum(),
            longest: ages().max().unwrap_or_default(),
        }
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The keys being processed that were added again in this way.
    fn again(&self, again: Again) -> impl Iterator<Item = &Entry<R>> {
        let entries = self.processing.iter().map(|(slot, _)| self.slots.entry(*slot));
        entries.filter(move |entry| matches!(&entry.place, Place::Processing(p) if p.again == again))
    }

    fn ready_again(&self) -> impl Iterator<Item = &Entry<R>> {
        self.again(Again::Ready)
    }

    /// Adds a key that is in no list to those of the ready keys.
    fn push_ready(&mut self, slot: Slot) {
        let entry = self.slots.entry_mut(slot);
        entry.place = Place::Ready(Links::NONE);
        let priority = entry.priority;
        self.push_band(slot, priority);
        self.age.push_back(&mut self.slots, Chain::Age, slot);
    }

    fn push_delayed(&mut self, slot: Slot) {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        let entry = self.slots.entry_mut(slot);
        entry.place = Place::Delayed { number };
        self.retrying += usize::from(entry.tag.is_retry());
        self.delayed.insert((entry.since, number, slot));
    }

    fn unlink_ready(&mut self, slot: Slot) {
        let priority = self.slots.entry(slot).priority;
        self.age.unlink(&mut self.slots, Chain::Age, slot);
        self.unlink_band(slot, priority);
    }

    /// The flow of a key; the same for all in a queue without flows.
    fn flow(&self, slot: Slot) -> FlowIndex {
        self.slots.entry(slot).tag.flow()
    }

    fn push_band(&mut self, slot: Slot, priority: i32) {
        let (flow, flows) = (self.flow(slot), self.flow_of.is_some());
        if flows {
            self.flows.add_ready(flow);
        }
        let band = self.bands.entry(priority).or_insert_with(|| Band::new(flows));
        band.push_back(&mut self.slots, flow, slot);
    }

    fn unlink_band(&mut self, slot: Slot, priority: i32) {
        let flow = self.flow(slot);
        if self.flow_of.is_some() {
            self.flows.remove_ready(flow);
        }
        if let Some(band) = self.bands.get_mut(&priority) {
            band.unlink(&mut self.slots, flow, slot);
            if band.len == 0 && self.bands.len() > MAX_EMPTY_BANDS {
                self.bands.remove(&priority);
            }
        }
    }

    /// Moves a key to the end of its new priority; its position by age stays.
    fn move_band(&mut self, slot: Slot, from: i32, to: i32) {
        self.unlink_band(slot, from);
        self.push_band(slot, to);
    }
}
