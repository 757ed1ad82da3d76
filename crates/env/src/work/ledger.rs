//! Bookkeeping of units of work, without locking or waking; guarded by the tracker's lock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::report::{ComponentStats, Description, RunningWork};
use crate::instant::Instant;
use crate::waiters::{Released, Waiters};

/// A component's index in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ComponentId(usize);

/// A unit's slot in the ledger, until it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitId {
    component: ComponentId,
    slot: usize,
}

/// How a unit ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Succeeded,
    Failed,
    Panicked,
}

/// The parts of an ended unit that are handled after releasing the lock.
pub(super) struct Ended {
    pub(super) released: Released,
    /// Carried here to be freed.
    _description: Description,
}

/// All components and their units.
pub(super) struct Ledger {
    accepting: bool,
    in_flight: usize,
    /// Units begun so far in all components; orders units by age.
    begun: u64,
    components: Vec<Account>,
    by_name: BTreeMap<Arc<str>, ComponentId>,
    waiters: Waiters,
}

struct Account {
    name: Arc<str>,
    accepting: bool,
    units: Units,
    peak: usize,
    started: u64,
    succeeded: u64,
    failed: u64,
    panicked: u64,
    refused: u64,
    waiters: Waiters,
}

impl Ledger {
    pub(super) fn new() -> Ledger {
        Ledger {
            accepting: true,
            in_flight: 0,
            begun: 0,
            components: Vec::new(),
            by_name: BTreeMap::new(),
            waiters: Waiters::default(),
        }
    }

    pub(super) fn component(&mut self, name: &str) -> (ComponentId, Arc<str>) {
        if let Some((name, id)) = self.by_name.get_key_value(name) {
            return (*id, Arc::clone(name));
        }
        let id = ComponentId(self.components.len());
        let name: Arc<str> = name.into();
        self.components.push(Account::new(Arc::clone(&name)));
        self.by_name.insert(Arc::clone(&name), id);
        (id, name)
    }

    fn account(&self, id: ComponentId) -> &Account {
        &self.components[id.0]
    }

    fn account_mut(&mut self, id: ComponentId) -> &mut Account {
        &mut self.components[id.0]
    }

    /// Checks whether a unit may begin and begins it. A refused unit returns its description.
    pub(super) fn begin(
        &mut self,
        id: ComponentId,
        description: Description,
        now: Instant,
    ) -> Result<UnitId, Description> {
        let account = &mut self.components[id.0];
        if !self.accepting || !account.accepting {
            account.refused += 1;
            return Err(description);
        }
        let slot = account.units.insert(Unit { description, since: now, number: self.begun });
        account.started += 1;
        account.peak = account.peak.max(account.units.len);
        self.begun += 1;
        self.in_flight += 1;
        Ok(UnitId { component: id, slot })
    }

    pub(super) fn end(&mut self, unit: UnitId, end: End) -> Ended {
        let account = &mut self.components[unit.component.0];
        let description = account.units.remove(unit.slot);
        match end {
            End::Succeeded => account.succeeded += 1,
            End::Failed => account.failed += 1,
            End::Panicked => {
                account.failed += 1;
                account.panicked += 1;
            }
        }
        let mut released = Released::default();
        if account.units.len == 0 {
            released.add(account.waiters.take());
        }
        self.in_flight -= 1;
        if self.in_flight == 0 {
            released.add(self.waiters.take());
        }
        Ended { released, _description: description }
    }

    pub(super) fn set_accepting(&mut self, only: Option<ComponentId>, accepting: bool) {
        match only {
            Some(id) => self.account_mut(id).accepting = accepting,
            None => self.accepting = accepting,
        }
    }

    pub(super) fn in_flight(&self, only: Option<ComponentId>) -> usize {
        match only {
            Some(id) => self.account(id).units.len,
            None => self.in_flight,
        }
    }

    /// A receiver that completes when nothing is in flight; `None` if nothing is now.
    pub(super) fn wait_idle(&mut self, only: Option<ComponentId>) -> Option<oneshot::Receiver<()>> {
        if self.in_flight(only) == 0 {
            return None;
        }
        let waiters = match only {
            Some(id) => &mut self.account_mut(id).waiters,
            None => &mut self.waiters,
        };
        Some(waiters.join())
    }

    pub(super) fn stats(&self, id: ComponentId, now: Instant) -> ComponentStats {
        let account = self.account(id);
        ComponentStats {
            name: Arc::clone(&account.name),
            accepting: self.accepting && account.accepting,
            started: account.started,
            in_flight: account.units.len,
            peak: account.peak,
            succeeded: account.succeeded,
            failed: account.failed,
            panicked: account.panicked,
            refused: account.refused,
            oldest: account.units.iter().map(|unit| unit.since).min().map(|since| now - since),
        }
    }

    pub(super) fn all_stats(&self, now: Instant) -> Vec<ComponentStats> {
        self.by_name.values().map(|id| self.stats(*id, now)).collect()
    }

    pub(super) fn running(&self, only: Option<ComponentId>, now: Instant) -> Vec<Running> {
        let accounts = match only {
            Some(id) => std::slice::from_ref(self.account(id)),
            None => &self.components[..],
        };
        let mut units: Vec<(&Account, &Unit)> = accounts
            .iter()
            .flat_map(|account| account.units.iter().map(move |unit| (account, unit)))
            .collect();
        units.sort_unstable_by_key(|(_, unit)| (unit.since, unit.number));
        let running = |(account, unit): (&Account, &Unit)| Running {
            component: Arc::clone(&account.name),
            description: unit.description.clone(),
            age: now - unit.since,
        };
        units.into_iter().map(running).collect()
    }
}

/// A unit in flight with its description not yet formatted.
pub(super) struct Running {
    component: Arc<str>,
    description: Description,
    age: Duration,
}

impl Running {
    /// To be called without the lock: formatting a description may run foreign code.
    pub(super) fn shown(self) -> RunningWork {
        RunningWork { component: self.component, description: self.description.into_text(), age: self.age }
    }
}

impl Account {
    fn new(name: Arc<str>) -> Account {
        Account {
            name,
            accepting: true,
            units: Units::default(),
            peak: 0,
            started: 0,
            succeeded: 0,
            failed: 0,
            panicked: 0,
            refused: 0,
            waiters: Waiters::default(),
        }
    }
}

struct Unit {
    description: Description,
    since: Instant,
    number: u64,
}

/// Units in flight, in reused slots: beginning a unit allocates only when more are in flight than ever before.
#[derive(Default)]
struct Units {
    slots: Vec<Slot>,
    /// Head of the free list.
    free: Option<usize>,
    len: usize,
}

enum Slot {
    Taken(Unit),
    Free { next: Option<usize> },
}

impl Units {
    fn insert(&mut self, unit: Unit) -> usize {
        self.len += 1;
        let Some(slot) = self.free else {
            self.slots.push(Slot::Taken(unit));
            return self.slots.len() - 1;
        };
        if let Slot::Free { next } = std::mem::replace(&mut self.slots[slot], Slot::Taken(unit)) {
            self.free = next;
        }
        slot
    }

    /// Frees the slot and returns the unit's description.
    fn remove(&mut self, slot: usize) -> Description {
        match std::mem::replace(&mut self.slots[slot], Slot::Free { next: self.free }) {
            Slot::Taken(unit) => {
                self.len -= 1;
                self.free = Some(slot);
                unit.description
            }
            // A `UnitId` is issued once and ends once.
            Slot::Free { .. } => unreachable!("a unit of work ended twice"),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Unit> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Taken(unit) => Some(unit),
            Slot::Free { .. } => None,
        })
    }
}
