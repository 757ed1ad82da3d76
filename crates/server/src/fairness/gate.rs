//! Seats: how many requests run at once, of which tenant and which priority level. A pure state machine under one lock.
//!
//! Within a tenant, levels have shares of the server's seats, as in kube-apiserver. A level can use its guaranteed part at any
//! time, and whatever else is not in use up to its maximum: what kube-apiserver redistributes every ten seconds is
//! redistributed here with every request. A freed seat goes to the level that uses the smallest part of its share.
//!
//! Between tenants, a tenant may use at most a multiple of what is left of all seats. A single tenant gets nearly all of
//! them, and however many tenants flood the server, some seats remain for the next one once those that came first have given
//! theirs back. A freed seat goes to the tenant with
//! the fewest.

use std::{collections::BTreeSet, time::Duration};

use hashbrown::HashMap;
use tokio::sync::oneshot;

use super::{
    dropped::Dropped,
    queues::{Queues, Queuing, Ticket},
};

/// The limits of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LevelLimits {
    /// Its share of the seats.
    pub(crate) nominal: usize,
    /// The part of it that is not lent to others.
    pub(crate) guaranteed: usize,
    /// The most that it can use, with what others lend.
    pub(crate) most: usize,
    /// `None`: requests that find no seat are rejected.
    pub(crate) queuing: Option<Queuing>,
    /// Whether it is limited only by what its tenant may use of the server.
    pub(crate) exempt: bool,
}

/// Maximum number of waiting requests of all tenants; each may have half of what is left of it.
const MAX_WAITING: usize = 50_000;

#[derive(Debug)]
struct Level {
    limits: LevelLimits,
    in_use: usize,
    queues: Option<Box<Queues<oneshot::Sender<()>>>>,
    dropped: Dropped,
}

impl Level {
    fn waiting(&self) -> usize {
        self.queues.as_ref().map_or(0, |queues| queues.waiting())
    }

    fn committed(&self) -> usize {
        if self.limits.exempt { 0 } else { self.in_use.max(self.limits.guaranteed) }
    }
}

#[derive(Debug, Default)]
struct Tenant {
    levels: Vec<Level>,
    in_use: usize,
    waiting: usize,
    /// The seats in use, and those that are guaranteed to levels.
    committed: usize,
    /// When it was last served after a wait, as a count.
    served: u64,
}

/// The number of a tenant, unique within a gate.
pub(super) type Member = u64;

/// The state of all seats.
#[derive(Debug)]
pub(super) struct Seats {
    /// The seats of one tenant that is alone.
    most: usize,
    /// The seats that it leaves.
    reserve: usize,
    in_use: usize,
    waiting: usize,
    tenants: HashMap<Member, Tenant>,
    next_member: Member,
    /// The tenants with waiting requests, by the seats that they use and the time when they were served.
    hungry: BTreeSet<(usize, u64, Member)>,
    turns: u64,
}

/// What a request finds.
#[derive(Debug)]
pub(super) enum Entered {
    Seat,
    Wait(Place, oneshot::Receiver<()>),
    Rejected(Rejection),
}

/// Why a request is rejected, as the metrics of kube-apiserver name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejection {
    QueueFull,
    ConcurrencyLimit,
    TimeOut,
}

/// Where a request waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) queue: u32,
    ticket: Ticket,
}

impl Seats {
    pub(super) fn new(most: usize, reserve: usize) -> Seats {
        Seats {
            most,
            reserve,
            in_use: 0,
            waiting: 0,
            tenants: HashMap::new(),
            next_member: 0,
            hungry: BTreeSet::new(),
            turns: 0,
        }
    }

    pub(super) fn join(&mut self) -> Member {
        self.next_member += 1;
        self.tenants.insert(self.next_member, Tenant::default());
        self.next_member
    }

    /// No request of the tenant has a seat or waits for one.
    pub(super) fn leave(&mut self, member: Member) {
        self.tenants.remove(&member);
    }

    /// Sets the limits of the levels of a tenant. Their numbers are their places in `levels`; there may be more than before,
    /// and never fewer.
    pub(super) fn configure(&mut self, member: Member, levels: &[LevelLimits]) {
        let Some(tenant) = self.tenants.get_mut(&member) else { return };
        for (place, limits) in levels.iter().enumerate() {
            match tenant.levels.get_mut(place) {
                Some(level) => {
                    level.limits = *limits;
                    if let (Some(queues), Some(queuing)) = (&mut level.queues, limits.queuing) {
                        queues.reconfigure(queuing);
                    }
                }
                None => {
                    let dropped = Dropped::default();
                    tenant.levels.push(Level { limits: *limits, in_use: 0, queues: None, dropped });
                }
            }
        }
        tenant.committed = tenant.levels.iter().map(Level::committed).sum();
        self.dispatch();
    }

    /// Whether the server has a seat for another request of a tenant that uses this many.
    fn has_seat(&self, in_use: usize) -> bool {
        let free = (self.most + self.reserve).saturating_sub(self.in_use);
        free > 0 && (in_use == 0 || in_use.saturating_mul(self.reserve) < self.most.saturating_mul(free))
    }

    /// Whether a level may have another seat of its tenant's.
    fn may_use(&self, tenant: &Tenant, level: &Level) -> bool {
        let limits = &level.limits;
        limits.exempt
            || level.in_use < limits.most
                && (level.in_use < limits.guaranteed.max(1) || tenant.committed < self.most)
    }

    /// Takes a seat, or a place in a queue.
    pub(super) fn enter(&mut self, member: Member, number: usize, flow: u64) -> Entered {
        let Some(tenant) = self.tenants.get(&member) else {
            return Entered::Rejected(Rejection::ConcurrencyLimit);
        };
        let Some(level) = tenant.levels.get(number) else {
            return Entered::Rejected(Rejection::ConcurrencyLimit);
        };
        if level.waiting() == 0 && self.has_seat(tenant.in_use) && self.may_use(tenant, level) {
            self.take(member, number);
            return Entered::Seat;
        }
        let Some(queuing) = level.limits.queuing else {
            return Entered::Rejected(Rejection::ConcurrencyLimit);
        };
        if tenant.waiting >= MAX_WAITING.saturating_sub(self.waiting) {
            return Entered::Rejected(Rejection::QueueFull);
        }
        let (sender, receiver) = oneshot::channel();
        let place = self.change(member, |tenant| {
            let level = tenant.levels.get_mut(number)?;
            let queues = level.queues.get_or_insert_with(|| Box::new(Queues::new(queuing)));
            let (queue, ticket) = queues.push(flow, sender)?;
            tenant.waiting += 1;
            Some(Place { queue, ticket })
        });
        match place {
            Some(place) => {
                self.waiting += 1;
                Entered::Wait(place, receiver)
            }
            None => Entered::Rejected(Rejection::QueueFull),
        }
    }

    /// Takes a seat in any case.
    pub(super) fn take(&mut self, member: Member, number: usize) {
        self.in_use += 1;
        self.change(member, |tenant| tenant.use_seat(number));
    }

    /// Gives back a seat. `queue`: the one that the request came from, and how long it took.
    pub(super) fn give_back(&mut self, member: Member, number: usize, queue: Option<(u32, Duration)>) {
        self.in_use = self.in_use.saturating_sub(1);
        self.change(member, |tenant| {
            let Some(level) = tenant.levels.get_mut(number) else { return };
            let before = level.committed();
            level.in_use = level.in_use.saturating_sub(1);
            if let (Some((queue, took)), Some(queues)) = (queue, &mut level.queues) {
                queues.finish(queue, took);
            }
            let after = level.committed();
            tenant.committed = tenant.committed + after - before;
            tenant.in_use = tenant.in_use.saturating_sub(1);
        });
        self.dispatch();
    }

    /// A request stops waiting. If it was given a seat meanwhile, that is given back.
    pub(super) fn abandon(&mut self, member: Member, number: usize, place: Place) {
        let removed = self.change(member, |tenant| {
            let queues = tenant.levels.get_mut(number).and_then(|level| level.queues.as_mut());
            let removed = queues.is_some_and(|queues| queues.remove(place.queue, place.ticket));
            tenant.waiting -= usize::from(removed);
            removed
        });
        if removed {
            self.waiting -= 1;
        } else {
            self.give_back(member, number, Some((place.queue, Duration::ZERO)));
        }
    }

    /// Gives free seats to waiting requests.
    fn dispatch(&mut self) {
        while self.waiting > 0 {
            let next = self.hungry.iter().map_while(|(in_use, _, member)| {
                // Whoever comes later uses as many seats or more.
                self.has_seat(*in_use).then_some(*member)
            });
            let next =
                next.filter_map(|member| Some((member, self.next_level(self.tenants.get(&member)?)?))).next();
            let Some((member, number)) = next else { return };
            self.turns += 1;
            let turn = self.turns;
            let woken = self.change(member, |tenant| {
                tenant.served = turn;
                tenant.use_seat(number);
                tenant.waiting -= 1;
                let queues = tenant.levels.get_mut(number).and_then(|level| level.queues.as_mut());
                queues.and_then(|queues| queues.pop())
            });
            self.waiting -= 1;
            self.in_use += 1;
            if let Some((_, request)) = woken {
                // If it does not wait any more, it gives the seat back when it notices: see `abandon`.
                let _ = request.send(());
            }
        }
    }

    /// The level that may have a tenant's next seat: of those with waiting requests, the one that uses the smallest part of
    /// its share.
    fn next_level(&self, tenant: &Tenant) -> Option<usize> {
        let levels = tenant.levels.iter().enumerate();
        let ready = levels.filter(|(_, level)| level.waiting() > 0 && self.may_use(tenant, level));
        let (number, _) = ready.min_by(|(_, a), (_, b)| {
            let part = |one: &Level, other: &Level| one.in_use.saturating_mul(other.limits.nominal.max(1));
            part(a, b).cmp(&part(b, a))
        })?;
        Some(number)
    }

    /// Changes a tenant, and its place among those that wait.
    fn change<T: Default>(&mut self, member: Member, change: impl FnOnce(&mut Tenant) -> T) -> T {
        let Some(tenant) = self.tenants.get_mut(&member) else { return T::default() };
        let place = |tenant: &Tenant| (tenant.in_use, tenant.served, member);
        let before = (tenant.waiting > 0).then(|| place(tenant));
        let changed = change(tenant);
        let after = (tenant.waiting > 0).then(|| place(tenant));
        if before != after {
            before.map(|place| self.hungry.remove(&place));
            after.map(|place| self.hungry.insert(place));
        }
        changed
    }

    /// Records that a request of a level was rejected; returns after how many seconds it should be repeated.
    pub(super) fn reject(&mut self, member: Member, number: usize, second: u64) -> u32 {
        let tenant = self.tenants.get_mut(&member);
        let level = tenant.and_then(|tenant| tenant.levels.get_mut(number));
        level.map_or(1, |level| level.dropped.record(second))
    }

    /// The seats in use and the waiting requests of a level.
    pub(super) fn level(&self, member: Member, number: usize) -> (usize, usize) {
        let level = self.tenants.get(&member).and_then(|tenant| tenant.levels.get(number));
        level.map_or((0, 0), |level| (level.in_use, level.waiting()))
    }
}

impl Tenant {
    fn use_seat(&mut self, number: usize) {
        self.in_use += 1;
        if let Some(level) = self.levels.get_mut(number) {
            let before = level.committed();
            level.in_use += 1;
            self.committed = self.committed + level.committed() - before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUING: Queuing = Queuing { queues: 64, hand_size: 6, length: 50 };

    fn level(nominal: usize, guaranteed: usize, most: usize) -> LevelLimits {
        LevelLimits { nominal, guaranteed, most, queuing: Some(QUEUING), exempt: false }
    }

    /// A server with 100 seats for one tenant, and 25 that it leaves.
    fn seats() -> Seats {
        Seats::new(100, 25)
    }

    struct Waiter(Place, oneshot::Receiver<()>);

    impl Waiter {
        fn is_served(&mut self) -> bool {
            self.1.try_recv().is_ok()
        }
    }

    /// Enters until the level is full; the number of seats.
    fn fill(seats: &mut Seats, member: Member, number: usize) -> usize {
        let mut taken = 0;
        loop {
            match seats.enter(member, number, 1) {
                Entered::Seat => taken += 1,
                Entered::Wait(place, _) => {
                    seats.abandon(member, number, place);
                    return taken;
                }
                Entered::Rejected(_) => return taken,
            }
        }
    }

    fn wait(seats: &mut Seats, member: Member, number: usize, flow: u64) -> Waiter {
        match seats.enter(member, number, flow) {
            Entered::Wait(place, receiver) => Waiter(place, receiver),
            other => panic!("it need not wait: {other:?}"),
        }
    }

    #[test]
    fn a_level_alone_gets_all_but_what_is_guaranteed_to_others() {
        let mut seats = seats();
        let one = seats.join();
        seats.configure(one, &[level(50, 10, 100), level(50, 30, 100)]);
        assert_eq!(fill(&mut seats, one, 0), 70);
        // The guaranteed seats are there at once.
        assert_eq!(fill(&mut seats, one, 1), 30);
        assert_eq!(seats.level(one, 0), (70, 0));
        // A freed seat goes to the level that uses less of its share.
        let mut greedy = wait(&mut seats, one, 0, 1);
        let mut modest = wait(&mut seats, one, 1, 2);
        seats.give_back(one, 0, None);
        assert!(modest.is_served() && !greedy.is_served());
        seats.give_back(one, 0, None);
        assert!(greedy.is_served() || seats.level(one, 0) == (68, 1));
    }

    #[test]
    fn a_level_borrows_no_more_than_it_may() {
        let mut seats = seats();
        let one = seats.join();
        seats.configure(one, &[level(50, 50, 60), level(50, 0, 50)]);
        assert_eq!(fill(&mut seats, one, 0), 60);
        assert_eq!(fill(&mut seats, one, 1), 40);
    }

    #[test]
    fn without_queues_requests_are_rejected() {
        let mut seats = seats();
        let one = seats.join();
        seats.configure(one, &[LevelLimits { queuing: None, ..level(2, 2, 2) }]);
        assert_eq!(fill(&mut seats, one, 0), 2);
        assert!(matches!(seats.enter(one, 0, 1), Entered::Rejected(Rejection::ConcurrencyLimit)));
    }

    #[test]
    fn however_many_tenants_flood_there_is_a_seat_for_the_next() {
        let mut seats = seats();
        let mut held = Vec::new();
        for tenants in 1..=20 {
            let member = seats.join();
            seats.configure(member, &[level(100, 100, 100)]);
            let taken = fill(&mut seats, member, 0);
            if tenants == 1 {
                assert_eq!(taken, 100);
            }
            held.extend(std::iter::repeat_n(member, taken));
            for flow in 0..200_u64 {
                wait(&mut seats, member, 0, flow.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            }
        }
        // Whoever came first has most of the seats; what they give back is shared.
        for member in held {
            seats.give_back(member, 0, None);
        }
        for (member, tenant) in &seats.tenants {
            assert!((5..=7).contains(&tenant.in_use), "tenant {member} has {}", tenant.in_use);
        }
        let next = seats.join();
        seats.configure(next, &[level(100, 100, 100)]);
        assert!(fill(&mut seats, next, 0) >= 1, "{} of 125 are in use", seats.in_use);
    }

    #[test]
    fn a_freed_seat_goes_to_the_tenant_with_the_fewest() {
        let mut seats = Seats::new(4, 0);
        let (flood, quiet) = (seats.join(), seats.join());
        for member in [flood, quiet] {
            seats.configure(member, &[level(4, 4, 4)]);
        }
        assert_eq!(fill(&mut seats, flood, 0), 4);
        let mut floods: Vec<Waiter> = (0..100).map(|_| wait(&mut seats, flood, 0, 1)).collect();
        let mut own: Vec<Waiter> = (0..3).map(|_| wait(&mut seats, quiet, 0, 1)).collect();
        // The quiet tenant is served until both use as much, and from then on they take turns.
        for expected in [1, 2] {
            seats.give_back(flood, 0, None);
            let served = own.iter_mut().filter_map(|one| one.1.try_recv().ok()).count();
            assert_eq!(served, 1, "{expected}");
        }
        assert_eq!((seats.level(flood, 0).0, seats.level(quiet, 0).0), (2, 2));
        seats.give_back(quiet, 0, None);
        assert_eq!(seats.level(quiet, 0).0, 2);
        assert!(!floods.iter_mut().any(Waiter::is_served));
    }

    #[test]
    fn whoever_stops_waiting_leaves_nothing_behind() {
        let mut seats = Seats::new(1, 0);
        let one = seats.join();
        seats.configure(one, &[level(1, 1, 1)]);
        assert!(matches!(seats.enter(one, 0, 1), Entered::Seat));
        let (first, second, mut third) =
            (wait(&mut seats, one, 0, 1), wait(&mut seats, one, 0, 2), wait(&mut seats, one, 0, 3));
        seats.abandon(one, 0, first.0);
        // The second one is given the seat, and does not notice.
        seats.give_back(one, 0, None);
        assert_eq!(seats.level(one, 0), (1, 1));
        seats.abandon(one, 0, second.0);
        assert!(third.is_served());
        seats.give_back(one, 0, Some((third.0.queue, Duration::ZERO)));
        assert_eq!((seats.level(one, 0), seats.in_use, seats.waiting), ((0, 0), 0, 0));
        assert!(seats.hungry.is_empty());
        assert_eq!(seats.tenants[&one].committed, 1);
        seats.leave(one);
        assert!(seats.tenants.is_empty());
    }

    /// Any sequence of steps keeps the books, and gives seats to whoever may have one.
    #[test]
    fn the_books_are_right_after_any_steps() {
        let mut random = 88_172_645_463_325_252_u64;
        let mut next = move |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            usize::try_from(random % below).unwrap()
        };
        for _ in 0..200 {
            let mut seats = Seats::new(8, 2);
            let members: Vec<Member> = (0..3).map(|_| seats.join()).collect();
            for member in &members {
                seats.configure(*member, &[level(4, 2, 8), level(4, 1, 5)]);
            }
            let mut held: Vec<(Member, usize, Option<u32>)> = Vec::new();
            let mut waits: Vec<(Member, usize, Waiter)> = Vec::new();
            for _ in 0..300 {
                let (member, number) = (members[next(3)], next(2));
                match next(5) {
                    0..=2 => match seats.enter(member, number, next(50) as u64) {
                        Entered::Seat => held.push((member, number, None)),
                        Entered::Wait(place, receiver) => {
                            waits.push((member, number, Waiter(place, receiver)))
                        }
                        Entered::Rejected(_) => {}
                    },
                    3 if !held.is_empty() => {
                        let (member, number, queue) = held.swap_remove(next(held.len() as u64));
                        seats.give_back(member, number, queue.map(|queue| (queue, Duration::from_millis(1))));
                    }
                    _ if !waits.is_empty() => {
                        let (member, number, waiter) = waits.swap_remove(next(waits.len() as u64));
                        seats.abandon(member, number, waiter.0);
                    }
                    _ => {}
                }
                let (served, waiting): (Vec<_>, Vec<_>) = waits.into_iter().partition_map_served();
                held.extend(served);
                waits = waiting;
                assert_eq!(seats.in_use, held.len());
                assert_eq!(seats.waiting, waits.len());
                assert!(seats.in_use <= 10);
                for member in &members {
                    let tenant = &seats.tenants[member];
                    assert_eq!(tenant.in_use, held.iter().filter(|one| one.0 == *member).count());
                    assert_eq!(tenant.waiting, waits.iter().filter(|one| one.0 == *member).count());
                    assert_eq!(tenant.committed, tenant.levels.iter().map(Level::committed).sum::<usize>());
                    let idle = seats.has_seat(tenant.in_use) && seats.next_level(tenant).is_some();
                    assert!(!idle, "a request waits although there is a seat for it");
                }
            }
        }
    }

    type Partitioned = (Vec<(Member, usize, Option<u32>)>, Vec<(Member, usize, Waiter)>);

    trait Partition {
        fn partition_map_served(self) -> Partitioned;
    }

    impl<I: Iterator<Item = (Member, usize, Waiter)>> Partition for I {
        fn partition_map_served(self) -> Partitioned {
            let (mut served, mut waiting) = (Vec::new(), Vec::new());
            for (member, number, mut waiter) in self {
                if waiter.is_served() {
                    served.push((member, number, Some(waiter.0.queue)));
                } else {
                    waiting.push((member, number, waiter));
                }
            }
            (served, waiting)
        }
    }
}
