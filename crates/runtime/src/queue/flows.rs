//! How many keys of each flow are ready and processed, in a queue with flows.

use std::{collections::HashMap, num::NonZeroUsize};

#[derive(Debug)]
pub(super) struct Flows {
    /// Maximum number of keys of a flow that are processed at once.
    limit: usize,
    all: HashMap<u64, Flow>,
    /// Number of ready keys that cannot be handed out, because their flow is at its limit.
    blocked: usize,
}

#[derive(Debug, Default)]
struct Flow {
    ready: usize,
    processing: usize,
}

impl Flows {
    pub(super) fn new(limit: Option<NonZeroUsize>) -> Flows {
        Flows { limit: limit.map_or(usize::MAX, NonZeroUsize::get), all: HashMap::new(), blocked: 0 }
    }

    pub(super) fn blocked(&self) -> usize {
        self.blocked
    }

    /// Whether no more keys of a flow may be handed out.
    pub(super) fn is_full(&self, flow: u64) -> bool {
        self.all.get(&flow).is_some_and(|one| one.processing >= self.limit)
    }

    pub(super) fn add_ready(&mut self, flow: u64) {
        self.change(flow, |one| one.ready += 1);
    }

    pub(super) fn remove_ready(&mut self, flow: u64) {
        self.change(flow, |one| one.ready -= 1);
    }

    pub(super) fn begin(&mut self, flow: u64) {
        self.change(flow, |one| one.processing += 1);
    }

    pub(super) fn end(&mut self, flow: u64) {
        self.change(flow, |one| one.processing -= 1);
    }

    fn change(&mut self, flow: u64, change: impl FnOnce(&mut Flow)) {
        let limit = self.limit;
        let blocked = |one: &Flow| if one.processing >= limit { one.ready } else { 0 };
        let one = self.all.entry(flow).or_default();
        let before = blocked(one);
        change(one);
        self.blocked = self.blocked - before + blocked(one);
        if one.ready == 0 && one.processing == 0 {
            self.all.remove(&flow);
        }
    }
}
