//! The ready keys of one priority: first in, first out; or, in a queue with flows, one key of each flow in turn.

use std::collections::{HashMap, VecDeque};

use super::{
    flows::Flows,
    list::{Chain, List},
    slots::{Slot, Slots},
};

#[derive(Debug)]
pub(super) struct Band {
    pub(super) len: usize,
    order: Order,
}

#[derive(Debug)]
enum Order {
    Arrival(List),
    Turns(Box<Turns>),
}

/// A list per flow, and the order in which they have their turn.
#[derive(Debug, Default)]
struct Turns {
    lists: HashMap<u64, List>,
    /// Every flow that has a list. A list that has become empty is dropped when it would have its turn.
    next: VecDeque<u64>,
}

impl Band {
    pub(super) fn new(flows: bool) -> Band {
        let order = if flows { Order::Turns(Box::default()) } else { Order::Arrival(List::default()) };
        Band { len: 0, order }
    }

    /// Appends a ready key. The flow is ignored in a queue without flows.
    pub(super) fn push_back<R>(&mut self, slots: &mut Slots<R>, flow: u64, slot: Slot) {
        self.len += 1;
        let list = match &mut self.order {
            Order::Arrival(list) => list,
            Order::Turns(turns) => turns.lists.entry(flow).or_insert_with(|| {
                turns.next.push_back(flow);
                List::default()
            }),
        };
        list.push_back(slots, Chain::Band, slot);
    }

    /// Removes a key at any position.
    pub(super) fn unlink<R>(&mut self, slots: &mut Slots<R>, flow: u64, slot: Slot) {
        self.len -= 1;
        match &mut self.order {
            Order::Arrival(list) => list.unlink(slots, Chain::Band, slot),
            Order::Turns(turns) => {
                if let Some(list) = turns.lists.get_mut(&flow) {
                    list.unlink(slots, Chain::Band, slot);
                }
                if self.len == 0 {
                    **turns = Turns::default();
                }
            }
        }
    }

    /// The next key, if there is one whose flow is not at its limit.
    pub(super) fn head(&mut self, flows: &Flows) -> Option<Slot> {
        if self.len == 0 {
            return None;
        }
        match &mut self.order {
            Order::Arrival(list) => Some(list.head),
            Order::Turns(turns) => {
                for _ in 0..turns.next.len() {
                    let flow = *turns.next.front()?;
                    match turns.lists.get(&flow) {
                        Some(list) if list.len > 0 && flows.is_full(flow) => turns.next.rotate_left(1),
                        Some(list) if list.len > 0 => return Some(list.head),
                        _ => {
                            turns.next.pop_front();
                            turns.lists.remove(&flow);
                        }
                    }
                }
                None
            }
        }
    }

    /// Ends the turn of the flow that [`head`](Self::head) is of.
    pub(super) fn end_turn(&mut self) {
        if let Order::Turns(turns) = &mut self.order
            && !turns.next.is_empty()
        {
            turns.next.rotate_left(1);
        }
    }
}
