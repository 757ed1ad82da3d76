//! The options of a sharding.

use std::time::Duration;

use super::assign;
use crate::leader::{InvalidOptions, LeaderElectionOptions};

/// How replicas share work. All replicas must have the same name, namespace and number of shards; the times should be the same.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ShardingOptions {
    /// The name of the group of replicas. Part of the names of its Leases, and a label of theirs.
    pub name: String,
    /// The namespace of the Leases. If empty (the default), the namespace of the pod that this program runs in.
    pub namespace: String,
    /// The identity of this replica, unique among them; `host_uuid` if not given. A replica that restarts with the same
    /// identity gets the same shards, once its old Lease has expired or was released.
    pub identity: Option<String>,
    /// The number of shards, 64 by default: a few times as many as there will ever be replicas. It is recorded in the cluster.
    pub shards: u32,
    /// The share of this replica, relative to the weights of the others. 1 by default; a replica with 0 takes no shards.
    pub weight: u32,
    /// How long the other replicas wait after they last saw this one's Lease renewed, before they take its shards. Leases
    /// store whole seconds; fractions are rounded up.
    pub lease_duration: Duration,
    /// How long this replica keeps its shards without a successful renewal. Must be less than the lease duration.
    pub renew_deadline: Duration,
    /// The interval between two renewals, and between two looks at the other replicas.
    pub retry_period: Duration,
    /// How long work on a shard may take to stop before the shard is given to another replica nevertheless. Its token is
    /// invalid then. 30 seconds by default.
    pub drain_timeout: Duration,
}

/// Maximum number of shards: their record has to fit in the annotations of an object.
pub const MAX_SHARDS: u32 = 4096;

impl Default for ShardingOptions {
    fn default() -> ShardingOptions {
        let LeaderElectionOptions { lease_duration, renew_deadline, retry_period, .. } =
            LeaderElectionOptions::default();
        ShardingOptions {
            name: String::new(),
            namespace: String::new(),
            identity: None,
            shards: 64,
            weight: 1,
            lease_duration,
            renew_deadline,
            retry_period,
            drain_timeout: Duration::from_secs(30),
        }
    }
}

/// Invalid options of a sharding.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidShardingOptions {
    /// The name is not the name of an object.
    #[error(
        "the name of a sharding must have 1 to 40 lower case letters, digits and dashes, and begin and end with a letter \
         or digit, got {0:?}"
    )]
    Name(String),
    /// There are too few or too many shards.
    #[error("shards must be between 1 and {MAX_SHARDS}, got {0}")]
    Shards(u32),
    /// The times, the identity or the namespace, which are those of an election.
    #[error(transparent)]
    Lease(#[from] InvalidOptions),
}

impl ShardingOptions {
    /// A group of replicas with this name, whose Leases are in this namespace.
    pub fn new(name: impl Into<String>, namespace: impl Into<String>) -> ShardingOptions {
        ShardingOptions { name: name.into(), namespace: namespace.into(), ..ShardingOptions::default() }
    }

    /// A group of replicas whose Leases are in the namespace of the pod that this program runs in.
    pub fn in_pod(name: impl Into<String>) -> ShardingOptions {
        ShardingOptions { name: name.into(), ..ShardingOptions::default() }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// The first problem found.
    pub fn validate(&self) -> Result<(), InvalidShardingOptions> {
        self.member_lease("any").map(drop)
    }

    /// The options of the Lease by which a replica of this identity is a member.
    pub(super) fn member_lease(
        &self,
        identity: &str,
    ) -> Result<LeaderElectionOptions, InvalidShardingOptions> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let ends = self.name.starts_with('-') || self.name.ends_with('-');
        if self.name.is_empty() || self.name.len() > 40 || ends || !self.name.chars().all(fits) {
            return Err(InvalidShardingOptions::Name(self.name.clone()));
        }
        if !(1..=MAX_SHARDS).contains(&self.shards) {
            return Err(InvalidShardingOptions::Shards(self.shards));
        }
        let options = LeaderElectionOptions {
            id: member_name(&self.name, &member_id(identity)),
            namespace: self.namespace.clone(),
            identity: Some(self.identity.clone().unwrap_or_else(|| identity.to_owned())),
            lease_duration: self.lease_duration,
            renew_deadline: self.renew_deadline,
            retry_period: self.retry_period,
            ..LeaderElectionOptions::default()
        };
        Ok(options.in_namespace()?)
    }

    /// The name of the Lease that records the shards.
    pub(super) fn table_name(&self) -> String {
        format!("{}-shards", self.name)
    }
}

/// The part of a member's Lease name that stands for its identity, which may not be a valid name.
pub(super) fn member_id(identity: &str) -> String {
    format!("{:016x}", assign::hash(&[identity.as_bytes()]))
}

/// The name of a member's Lease.
pub(super) fn member_name(name: &str, member: &str) -> String {
    format!("{name}-shards-{member}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut ShardingOptions)) -> String {
        let mut options = ShardingOptions::new("fleet", "default");
        change(&mut options);
        options.validate().unwrap_err().to_string()
    }

    #[test]
    fn the_defaults_are_those_of_leader_election() {
        let options = ShardingOptions::new("fleet", "default");
        assert_eq!(options.validate(), Ok(()));
        let lease = options.member_lease("me").unwrap();
        let default = LeaderElectionOptions::default();
        assert_eq!(lease.lease_duration, default.lease_duration);
        assert_eq!(lease.renew_deadline, default.renew_deadline);
        assert_eq!(lease.retry_period, default.retry_period);
        assert_eq!(lease.identity.as_deref(), Some("me"));
    }

    #[test]
    fn options_that_cannot_work_are_refused() {
        let second = Duration::from_secs(1);
        for name in ["", "-a", "a-", "Fleet", "a.b", &"a".repeat(41)] {
            assert!(refused(|o| name.clone_into(&mut o.name)).contains("the name of a sharding"), "{name}");
        }
        assert!(refused(|o| o.shards = 0).contains("shards must be between 1 and 4096, got 0"));
        assert!(refused(|o| o.shards = 5000).contains("got 5000"));
        assert!(refused(|o| o.renew_deadline = 15 * second).contains("lease_duration (15s) must be greater"));
        assert!(refused(|o| o.retry_period = Duration::ZERO).contains("retry_period"));
        assert!(refused(|o| o.identity = Some(String::new())).contains("identity"));
    }
}
