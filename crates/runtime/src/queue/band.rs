//! The ready keys of one priority: first in, first out; or, in a queue with flows, one key of each flow in turn.

use std::collections::VecDeque;

use super::{
    flows::{FlowIndex, Flows},
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
    lists: Vec<Turn>,
    /// Every flow that waits for its turn. One whose list has become empty leaves when it would have its turn.
    next: VecDeque<FlowIndex>,
}

#[derive(Debug, Clone, Default)]
struct Turn {
    list: List,
    /// Whether it is in `next`.
    waits: bool,
}

impl Turns {
    fn list(&mut self, flow: FlowIndex) -> &mut List {
        let index = flow as usize;
        if index >= self.lists.len() {
            self.lists.resize(index + 1, Turn::default());
        }
        let turn = &mut self.lists[index];
        if !turn.waits {
            turn.waits = true;
            self.next.push_back(flow);
        }
        &mut turn.list
    }
}

impl Band {
    pub(super) fn new(flows: bool) -> Band {
        let order = if flows { Order::Turns(Box::default()) } else { Order::Arrival(List::default()) };
        Band { len: 0, order }
    }

    /// Appends a ready key. The flow is ignored in a queue without flows.
    pub(super) fn push_back<R>(&mut self, slots: &mut Slots<R>, flow: FlowIndex, slot: Slot) {
        self.len += 1;
        let list = match &mut self.order {
            Order::Arrival(list) => list,
            Order::Turns(turns) => turns.list(flow),
        };
        list.push_back(slots, Chain::Band, slot);
    }

    /// Removes a key at any position.
    pub(super) fn unlink<R>(&mut self, slots: &mut Slots<R>, flow: FlowIndex, slot: Slot) {
        self.len -= 1;
        match &mut self.order {
            Order::Arrival(list) => list.unlink(slots, Chain::Band, slot),
            Order::Turns(turns) => {
                if let Some(turn) = turns.lists.get_mut(flow as usize) {
                    turn.list.unlink(slots, Chain::Band, slot);
                }
                if self.len == 0 {
                    // Flows that come next do not wait for turns of those that have nothing.
                    for flow in turns.next.drain(..) {
                        turns.lists[flow as usize].waits = false;
                    }
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
                    let turn = &mut turns.lists[flow as usize];
                    if turn.list.len == 0 {
                        turn.waits = false;
                        turns.next.pop_front();
                    } else if flows.is_full(flow) {
                        turns.next.rotate_left(1);
                    } else {
                        return Some(turn.list.head);
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
