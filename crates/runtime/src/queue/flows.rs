//! The flows of a queue: how many keys of each are ready and processed, and how often one has become ready.

use std::{collections::HashMap, num::NonZeroUsize};

/// The index of a flow, as long as it has keys or is counted. Keys remember theirs, so that a flow is looked up once for each key,
/// not with each change of it.
pub(super) type FlowIndex = u32;

/// What a queue has of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FlowState {
    /// Keys that are ready.
    pub ready: usize,
    /// How often a key has become ready; adds that were merged don't count.
    pub adds: u64,
}

#[derive(Debug)]
pub(super) struct Flows {
    /// Maximum number of keys of a flow that are processed at once.
    limit: usize,
    /// Whether a flow without keys is kept, with its count of adds, until it is forgotten.
    counted: bool,
    indexes: HashMap<u64, FlowIndex>,
    all: Vec<Flow>,
    free: Vec<FlowIndex>,
    /// Number of ready keys that cannot be handed out, because their flow is at its limit.
    blocked: usize,
}

#[derive(Debug, Default)]
struct Flow {
    number: u64,
    /// In whichever state.
    keys: usize,
    ready: usize,
    processing: usize,
    adds: u64,
    kept: bool,
}

impl Flows {
    pub(super) fn new(limit: Option<NonZeroUsize>, counted: bool) -> Flows {
        Flows {
            limit: limit.map_or(usize::MAX, NonZeroUsize::get),
            counted,
            indexes: HashMap::new(),
            all: Vec::new(),
            free: Vec::new(),
            blocked: 0,
        }
    }

    pub(super) fn blocked(&self) -> usize {
        self.blocked
    }

    /// A key of a flow comes into the queue.
    pub(super) fn enter(&mut self, number: u64) -> FlowIndex {
        let index = match self.indexes.get(&number) {
            Some(index) => *index,
            None => self.begin_flow(number),
        };
        let flow = &mut self.all[index as usize];
        flow.keys += 1;
        flow.kept = self.counted;
        index
    }

    fn begin_flow(&mut self, number: u64) -> FlowIndex {
        let flow = Flow { number, ..Flow::default() };
        let index = match self.free.pop() {
            Some(index) => {
                self.all[index as usize] = flow;
                index
            }
            None => {
                self.all.push(flow);
                // There are no more flows than keys.
                (self.all.len() - 1) as FlowIndex
            }
        };
        self.indexes.insert(number, index);
        index
    }

    /// A key leaves the queue.
    pub(super) fn leave(&mut self, index: FlowIndex) {
        self.all[index as usize].keys -= 1;
        self.end_if_unused(index);
    }

    fn end_if_unused(&mut self, index: FlowIndex) {
        let flow = &self.all[index as usize];
        if flow.keys == 0 && !flow.kept {
            self.indexes.remove(&flow.number);
            self.free.push(index);
        }
    }

    /// Does not keep a flow any longer than it has keys.
    pub(super) fn forget(&mut self, number: u64) {
        if let Some(index) = self.indexes.get(&number).copied() {
            let flow = &mut self.all[index as usize];
            flow.kept = false;
            flow.adds = 0;
            self.end_if_unused(index);
        }
    }

    pub(super) fn state(&self, number: u64) -> FlowState {
        let flow = self.indexes.get(&number).and_then(|index| self.all.get(*index as usize));
        flow.map_or_else(FlowState::default, |flow| FlowState { ready: flow.ready, adds: flow.adds })
    }

    /// Whether no more keys of a flow may be handed out.
    pub(super) fn is_full(&self, index: FlowIndex) -> bool {
        self.all.get(index as usize).is_some_and(|one| one.processing >= self.limit)
    }

    /// Counts keys that become ready; in a queue without flows nothing.
    pub(super) fn added(&mut self, index: FlowIndex, keys: u64) {
        if let Some(flow) = self.all.get_mut(index as usize) {
            flow.adds += keys;
        }
    }

    pub(super) fn add_ready(&mut self, index: FlowIndex) {
        self.change(index, |one| one.ready += 1);
    }

    pub(super) fn remove_ready(&mut self, index: FlowIndex) {
        self.change(index, |one| one.ready -= 1);
    }

    pub(super) fn begin(&mut self, index: FlowIndex) {
        self.change(index, |one| one.processing += 1);
    }

    pub(super) fn end(&mut self, index: FlowIndex) {
        self.change(index, |one| one.processing -= 1);
    }

    /// Changes a flow; in a queue without flows there is none.
    fn change(&mut self, index: FlowIndex, change: impl FnOnce(&mut Flow)) {
        let limit = self.limit;
        let blocked = |one: &Flow| if one.processing >= limit { one.ready } else { 0 };
        let Some(one) = self.all.get_mut(index as usize) else { return };
        let before = blocked(one);
        change(one);
        self.blocked = self.blocked - before + blocked(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_ends_with_its_last_key_unless_it_is_counted() {
        for counted in [false, true] {
            let mut flows = Flows::new(None, counted);
            let first = flows.enter(7);
            flows.add_ready(first);
            flows.added(first, 1);
            assert_eq!(flows.enter(7), first);
            assert_eq!(flows.state(7), FlowState { ready: 1, adds: 1 });
            flows.remove_ready(first);
            flows.leave(first);
            flows.leave(first);
            assert_eq!(flows.state(7).adds, u64::from(counted));
            assert_eq!(flows.enter(8) == first, !counted, "its index is used again");
            flows.forget(7);
            assert_eq!(flows.state(7), FlowState::default());
            assert_eq!(flows.indexes.len(), 1);
        }
    }

    #[test]
    fn a_flow_that_is_forgotten_stays_until_its_last_key_has_left() {
        let mut flows = Flows::new(NonZeroUsize::new(1), true);
        let flow = flows.enter(7);
        flows.begin(flow);
        flows.forget(7);
        assert!(flows.is_full(flow));
        flows.end(flow);
        flows.leave(flow);
        assert!(flows.indexes.is_empty());
        assert_eq!(flows.enter(9), flow);
    }
}
