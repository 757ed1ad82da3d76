//! Fair queues: requests that wait for a seat of one priority level.
//!
//! As in kube-apiserver, a flow is dealt a hand of a few queues by its hash (shuffle sharding) and its request joins the
//! shortest of them, so that a flow that fills its queues leaves most flows at least one that it has not filled. Queues are
//! served by start-time fair queuing: each has a virtual start, which the time that its requests took moves on, and the queue
//! with the earliest one is next. So queues share time, not requests.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use smallvec::SmallVec;

/// How requests of a level wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Queuing {
    pub(crate) queues: u32,
    pub(crate) hand_size: u32,
    /// Maximum number of waiting requests of a queue.
    pub(crate) length: usize,
}

/// The assumed time of a request until it has ended, in seconds: that of kube-apiserver.
const ESTIMATE: f64 = 0.003;

/// The queues of a level; `T` is a waiting request.
#[derive(Debug)]
pub(super) struct Queues<T> {
    config: Queuing,
    /// Those with requests that wait or execute.
    busy: HashMap<u32, Queue<T>>,
    waiting: usize,
    /// The virtual start of the request that was served last.
    now: f64,
    /// Breaks ties between the queues of a hand.
    dealt: usize,
    next_ticket: u64,
}

#[derive(Debug)]
struct Queue<T> {
    waiting: VecDeque<(Ticket, T)>,
    executing: usize,
    start: f64,
    /// When it was last served, as a count; ties go to the one that has waited longest.
    served: u64,
}

/// A waiting request of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(u64);

impl<T> Queues<T> {
    pub(super) fn new(config: Queuing) -> Queues<T> {
        Queues { config, busy: HashMap::new(), waiting: 0, now: 0.0, dealt: 0, next_ticket: 0 }
    }

    /// Applies to requests from now on; those in other queues than the new ones are still served.
    pub(super) fn reconfigure(&mut self, config: Queuing) {
        self.config = config;
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Adds a request of a flow; `None` if the queue that it would join is full.
    pub(super) fn push(&mut self, flow: u64, request: T) -> Option<(u32, Ticket)> {
        let number = self.choose(flow);
        let length = self.busy.get(&number).map_or(0, |queue| queue.waiting.len());
        if length >= self.config.length {
            return None;
        }
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let fresh = || Queue { waiting: VecDeque::new(), executing: 0, start: self.now, served: 0 };
        self.busy.entry(number).or_insert_with(fresh).waiting.push_back((ticket, request));
        self.waiting += 1;
        Some((number, ticket))
    }

    /// The shortest queue of a flow's hand.
    fn choose(&mut self, flow: u64) -> u32 {
        let hand = deal(flow, self.config.queues, self.config.hand_size);
        self.dealt = self.dealt.wrapping_add(1);
        let offset = self.dealt % hand.len().max(1);
        let rotated = hand.iter().cycle().skip(offset).take(hand.len());
        let length = |number: &&u32| self.busy.get(*number).map_or(0, |queue| queue.waiting.len());
        rotated.min_by_key(length).copied().unwrap_or_default()
    }

    /// The request to be served next, and its queue, whose request executes until [`Queues::finish`].
    pub(super) fn pop(&mut self) -> Option<(u32, T)> {
        let ready = self.busy.iter().filter(|(_, queue)| !queue.waiting.is_empty());
        let next = ready.min_by(|(_, a), (_, b)| a.start.total_cmp(&b.start).then(a.served.cmp(&b.served)));
        let number = *next?.0;
        let queue = self.busy.get_mut(&number)?;
        let (_, request) = queue.waiting.pop_front()?;
        self.now = self.now.max(queue.start);
        queue.start += ESTIMATE;
        queue.executing += 1;
        self.dealt = self.dealt.wrapping_add(1);
        queue.served = self.dealt as u64;
        self.waiting -= 1;
        Some((number, request))
    }

    /// Removes a request that no longer waits for its turn; false if it was served already.
    pub(super) fn remove(&mut self, number: u32, ticket: Ticket) -> bool {
        let Some(queue) = self.busy.get_mut(&number) else { return false };
        let Some(place) = queue.waiting.iter().position(|(one, _)| *one == ticket) else { return false };
        queue.waiting.remove(place);
        self.waiting -= 1;
        self.forget_if_idle(number);
        true
    }

    /// Records that a request of a queue has ended, and how long it took.
    pub(super) fn finish(&mut self, number: u32, took: Duration) {
        if let Some(queue) = self.busy.get_mut(&number) {
            queue.executing = queue.executing.saturating_sub(1);
            queue.start += took.as_secs_f64() - ESTIMATE;
            self.forget_if_idle(number);
        }
    }

    /// A queue without requests starts anew: it has no claim to the time that it did not use.
    fn forget_if_idle(&mut self, number: u32) {
        let idle =
            self.busy.get(&number).is_some_and(|queue| queue.waiting.is_empty() && queue.executing == 0);
        if idle {
            self.busy.remove(&number);
        }
    }
}

/// The hand of a flow: different queues, chosen by its hash.
fn deal(mut hash: u64, queues: u32, hand_size: u32) -> SmallVec<[u32; 8]> {
    let mut hand: SmallVec<[u32; 8]> = SmallVec::new();
    for dealt in 0..hand_size.min(queues).max(1) {
        let left = u64::from(queues.saturating_sub(dealt).max(1));
        // Of the queues that were not dealt yet, the one at this place.
        let mut card = u32::try_from(hash % left).unwrap_or_default();
        hash /= left;
        let mut sorted: SmallVec<[u32; 8]> = hand.clone();
        sorted.sort_unstable();
        for taken in sorted {
            if card >= taken {
                card += 1;
            }
        }
        hand.push(card);
    }
    hand
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn config(queues: u32, hand_size: u32, length: usize) -> Queuing {
        Queuing { queues, hand_size, length }
    }

    #[test]
    fn a_hand_has_different_queues_and_all_are_dealt_alike() {
        let mut times = [0_u32; 16];
        for number in 0..20_000_u64 {
            let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let hand = deal(hash, 16, 4);
            assert_eq!(hand.len(), 4);
            for (place, queue) in hand.iter().enumerate() {
                assert!(*queue < 16 && !hand[..place].contains(queue), "{hand:?}");
                times[*queue as usize] += 1;
            }
        }
        assert!(times.iter().all(|times| (4_500..5_500).contains(times)), "{times:?}");
        assert_eq!(deal(7, 1, 6).as_slice(), [0]);
        assert_eq!(deal(7, 3, 9).len(), 3);
    }

    #[test]
    fn a_flow_fills_its_own_queues_only() {
        let mut queues = Queues::new(config(64, 6, 50));
        let mut taken = 0;
        while queues.push(12_345_678_901, "flood").is_some() {
            taken += 1;
        }
        assert_eq!(taken, 6 * 50);
        // Of a thousand other flows, none finds all of its queues full.
        for number in 1..1000_u64 {
            let flow = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (queue, ticket) = queues.push(flow, "quiet").expect("there is an empty queue");
            assert!(queues.remove(queue, ticket));
        }
        assert_eq!(queues.waiting(), 300);
    }

    #[test]
    fn queues_share_time_and_not_requests() {
        // One seat; requests of `slow` take a second, those of `quick` a hundredth.
        let mut queues = Queues::new(config(2, 1, 10_000));
        for _ in 0..2000 {
            queues.push(0, "slow").unwrap();
            queues.push(1, "quick").unwrap();
        }
        let (mut slow, mut quick) = (0, 0);
        for _ in 0..1010 {
            match queues.pop().unwrap() {
                (queue, "slow") => {
                    slow += 1;
                    queues.finish(queue, SECOND);
                }
                (queue, _) => {
                    quick += 1;
                    queues.finish(queue, SECOND / 100);
                }
            }
        }
        assert!((9..=12).contains(&slow), "{slow} slow ones beside {quick} quick ones");
    }

    #[test]
    fn a_newcomer_is_served_next_and_has_no_claim_to_the_past() {
        let mut queues = Queues::new(config(2, 1, 100));
        for _ in 0..50 {
            queues.push(0, "old").unwrap();
        }
        for _ in 0..20 {
            let (queue, _) = queues.pop().unwrap();
            queues.finish(queue, SECOND);
        }
        for _ in 0..20 {
            queues.push(1, "new").unwrap();
        }
        let mut order = Vec::new();
        for _ in 0..10 {
            let (queue, who) = queues.pop().unwrap();
            order.push(who);
            queues.finish(queue, SECOND);
        }
        assert_eq!(order[0], "new");
        let new = order.iter().filter(|who| **who == "new").count();
        assert!((5..=6).contains(&new), "{order:?}");
    }

    #[test]
    fn a_removed_request_is_not_served() {
        let mut queues = Queues::new(config(1, 1, 3));
        let (queue, first) = queues.push(0, 1).unwrap();
        queues.push(0, 2).unwrap();
        queues.push(0, 3).unwrap();
        assert!(queues.push(0, 4).is_none(), "it is full");
        assert!(queues.remove(queue, first) && !queues.remove(queue, first));
        assert_eq!(queues.pop(), Some((0, 2)));
        assert_eq!(queues.pop(), Some((0, 3)));
        assert_eq!(queues.pop(), None);
        queues.finish(0, SECOND);
        queues.finish(0, SECOND);
        assert!(queues.busy.is_empty(), "an idle queue costs nothing");
    }
}
