//! What a replica does next, given what it read. No I/O.

use super::table::Table;

/// What this replica does with a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Local {
    Idle,
    /// It works on it, with this token.
    Held(u64),
    /// It waits until the work has stopped.
    Draining,
}

/// The shards that change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// To be recorded as this replica's. Work begins when that is written.
    pub(super) claim: Vec<u32>,
    /// To be recorded as nobody's: this replica does not work on them.
    pub(super) free: Vec<u32>,
    /// Work on them has to stop, because another replica should own them.
    pub(super) drain: Vec<u32>,
    /// Somebody changed the record of a shard that this replica works on.
    pub(super) lost: Vec<u32>,
}

impl Plan {
    /// Whether the table changes.
    pub(super) fn writes(&self) -> bool {
        !self.claim.is_empty() || !self.free.is_empty()
    }
}

/// Compares the record with what is wanted.
///
/// A shard that is recorded as this session's and is not held is claimed again, with a new token: an earlier claim or release
/// may still be on its way to the server, and only a write that succeeds rules out that it is applied later.
pub(super) fn plan(
    table: &Table,
    session: &str,
    wanted: impl Fn(u32) -> bool,
    mut is_dead: impl FnMut(&str) -> bool,
    local: &[Local],
) -> Plan {
    let mut plan = Plan::default();
    for ((shard, entry), local) in (0..).zip(&table.entries).zip(local) {
        let mine = entry.owner.as_deref() == Some(session);
        match local {
            Local::Draining => {}
            Local::Held(token) if !mine || entry.token != *token => plan.lost.push(shard),
            Local::Held(_) => {
                if !wanted(shard) {
                    plan.drain.push(shard);
                }
            }
            Local::Idle if wanted(shard) => {
                if mine || entry.owner.as_deref().is_none_or(&mut is_dead) {
                    plan.claim.push(shard);
                }
            }
            Local::Idle => {
                if mine {
                    plan.free.push(shard);
                }
            }
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(owners: &[Option<&str>]) -> Table {
        let mut table = Table::new(u32::try_from(owners.len()).unwrap(), 5);
        for (entry, owner) in table.entries.iter_mut().zip(owners) {
            entry.owner = owner.map(str::to_owned);
        }
        table
    }

    #[test]
    fn only_free_and_orphaned_shards_are_claimed() {
        let table = table(&[None, Some("dead"), Some("alive"), Some("me"), None]);
        let plan = plan(&table, "me", |shard| shard < 4, |session| session == "dead", &[Local::Idle; 5]);
        assert_eq!(plan, Plan { claim: vec![0, 1, 3], ..Plan::default() });
        assert!(plan.writes());
    }

    #[test]
    fn an_unwanted_shard_is_drained_before_it_is_freed() {
        let table = table(&[Some("me"), Some("me"), Some("me")]);
        let local = [Local::Held(5), Local::Draining, Local::Idle];
        let plan = plan(&table, "me", |_| false, |_| false, &local);
        assert_eq!(plan, Plan { drain: vec![0], free: vec![2], ..Plan::default() });
    }

    #[test]
    fn a_changed_record_ends_the_work() {
        let table = table(&[None, Some("other"), Some("me"), Some("me")]);
        let local = [Local::Held(5), Local::Held(5), Local::Held(4), Local::Held(5)];
        let plan = plan(&table, "me", |_| true, |_| true, &local);
        assert_eq!(plan, Plan { lost: vec![0, 1, 2], ..Plan::default() });
        assert!(!plan.writes());
    }
}
