//! Who else is there, from the Leases of the group.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use k1s_env::Instant;

use super::options::{member_id, member_name};
use crate::leader::record::{Lease, Observation, holder};

/// The label of all Leases of a group; its value is the group's name.
pub(super) const GROUP: &str = "sharding.k1s.dev/name";
/// The annotation of a member's Lease that tells its terms apart.
pub(super) const SESSION: &str = "sharding.k1s.dev/session";
/// The annotation of a member's Lease with its weight.
pub(super) const WEIGHT: &str = "sharding.k1s.dev/weight";

/// The annotation of a member's Lease with its number of shards.
pub(super) const SHARDS: &str = "sharding.k1s.dev/shards";

/// A replica of the group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Member {
    /// Its identity.
    pub identity: String,
    /// Its weight.
    pub weight: u32,
}

/// A session's name: that of its member, and something unique.
pub(super) fn session_name(identity: &str, unique: &str) -> String {
    format!("{}.{unique}", member_id(identity))
}

/// What was observed of the other members, over time.
#[derive(Debug)]
pub(super) struct Members {
    /// The name of the group.
    name: String,
    shards: u32,
    lease_duration: Duration,
    /// By the names of their Leases.
    seen: BTreeMap<String, Option<Observation>>,
    /// Sessions that own shards and have no Lease, and since when that is known.
    missing: BTreeMap<String, Instant>,
}

/// The members at one time.
#[derive(Debug)]
pub(super) struct View {
    /// Those that are alive, as far as this replica knows; sorted.
    pub(super) members: Vec<Member>,
    /// Leases that nobody holds any more.
    unused: Vec<Lease>,
    /// The session of each member's Lease, and whether it is alive.
    sessions: BTreeMap<String, (Option<String>, bool)>,
    /// When the request for the Leases was sent, and when the response arrived.
    sent: Instant,
    received: Instant,
}

impl View {
    /// The Leases that nobody holds and whose sessions own nothing.
    pub(super) fn unused_by<'a>(&self, owners: impl Iterator<Item = &'a str>) -> Vec<Lease> {
        if self.unused.is_empty() {
            return Vec::new();
        }
        let owners: BTreeSet<&str> = owners.collect();
        let unused =
            |lease: &&Lease| annotation(lease, SESSION).is_none_or(|session| !owners.contains(session));
        self.unused.iter().filter(unused).cloned().collect()
    }
}

fn annotation<'a>(lease: &'a Lease, name: &str) -> Option<&'a str> {
    lease.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

impl Members {
    pub(super) fn new(name: &str, shards: u32, lease_duration: Duration) -> Members {
        Members {
            name: name.to_owned(),
            shards,
            lease_duration,
            seen: BTreeMap::new(),
            missing: BTreeMap::new(),
        }
    }

    /// Records the members' Leases as they were read by a request in this time.
    ///
    /// A Lease counts as expired if it was the same for its whole duration, from the end of the first request that returned it
    /// to the beginning of the last one.
    pub(super) fn observe(&mut self, leases: Vec<Lease>, sent: Instant, received: Instant) -> View {
        let mut view =
            View { members: Vec::new(), unused: Vec::new(), sessions: BTreeMap::new(), sent, received };
        let names = |lease: &Lease| lease.metadata.name.clone().unwrap_or_default();
        self.seen.retain(|name, _| leases.iter().any(|lease| lease.metadata.name.as_ref() == Some(name)));
        for lease in leases {
            let seen = self.seen.entry(names(&lease)).or_default();
            Observation::update(seen, &lease, received);
            let until = seen.as_ref().and_then(|seen| seen.held_until(self.lease_duration));
            let alive = until.is_some_and(|until| sent < until);
            let session = annotation(&lease, SESSION).map(str::to_owned);
            // A replica with another number of shards refuses to take any.
            let agrees =
                annotation(&lease, SHARDS).and_then(|shards| shards.parse().ok()) == Some(self.shards);
            if let Some(identity) = holder(&lease).filter(|_| alive && agrees) {
                let weight = annotation(&lease, WEIGHT).and_then(|weight| weight.parse().ok()).unwrap_or(1);
                view.members.push(Member { identity: identity.to_owned(), weight });
            }
            view.sessions.insert(names(&lease), (session, alive));
            if !alive {
                view.unused.push(lease);
            }
        }
        view.members.sort();
        view.members.dedup_by(|one, other| one.identity == other.identity);
        view
    }

    /// Whether a session that owns shards has ended for certain.
    pub(super) fn is_dead(&mut self, view: &View, session: &str) -> bool {
        let member = session.split_once('.').map_or(session, |(member, _)| member);
        if let Some((current, alive)) = view.sessions.get(&member_name(&self.name, member)) {
            self.missing.remove(session);
            // A Lease is acquired only when its last session has ended.
            return current.as_deref() != Some(session) || !alive;
        }
        // Its Lease was deleted, which it may not know yet.
        let since = *self.missing.entry(session.to_owned()).or_insert(view.received);
        view.sent >= since + self.lease_duration
    }

    /// Forgets sessions that own nothing any more.
    pub(super) fn retain(&mut self, owners: impl Iterator<Item = impl AsRef<str>>) {
        if !self.missing.is_empty() {
            let owners: Vec<_> = owners.collect();
            self.missing.retain(|session, _| owners.iter().any(|owner| owner.as_ref() == session));
        }
    }
}

#[cfg(test)]
mod tests {
    use k1s_env::Env;
    use serde_json::json;

    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn lease(identity: &str, session: &str, renewed: u32) -> Lease {
        serde_json::from_value(json!({
            "metadata": {
                "name": member_name("fleet", &member_id(identity)),
                "annotations": {SESSION: session_name(identity, session), WEIGHT: "3", SHARDS: "64"},
            },
            "spec": {"holderIdentity": identity, "leaseDurationSeconds": 15, "renewTime": renewed.to_string()},
        }))
        .unwrap()
    }

    fn released(identity: &str) -> Lease {
        let mut lease = lease(identity, "1", 1);
        lease.data["spec"]["holderIdentity"] = json!("");
        lease
    }

    #[test]
    fn a_lease_expires_when_it_was_the_same_between_two_requests_for_its_duration() {
        let (env, clock) = Env::simulated(1);
        let mut members = Members::new("fleet", 64, LEASE);
        let session = session_name("a", "1");
        let start = env.now();
        // Received 2 s after it was sent: it may have been renewed in between.
        clock.advance(Duration::from_secs(2));
        let view = members.observe(vec![lease("a", "1", 1)], start, env.now());
        assert_eq!(view.members, [Member { identity: "a".to_owned(), weight: 3 }]);
        let seen = env.now();
        clock.advance(LEASE);
        // Sent too early, although it is late now.
        let view =
            members.observe(vec![lease("a", "1", 1)], seen + LEASE - Duration::from_nanos(1), env.now());
        assert!(!members.is_dead(&view, &session));
        let view = members.observe(vec![lease("a", "1", 1)], seen + LEASE, env.now());
        assert!(members.is_dead(&view, &session));
        assert!(view.members.is_empty());
        assert!(view.unused_by([&*session].into_iter()).is_empty());
        assert_eq!(view.unused_by(["other"].into_iter()).len(), 1);
        let view = members.observe(vec![lease("a", "1", 2)], seen + LEASE, env.now());
        assert!(!members.is_dead(&view, &session));
    }

    #[test]
    fn a_released_lease_and_a_follower_end_a_session() {
        let (env, _) = Env::simulated(1);
        let mut members = Members::new("fleet", 64, LEASE);
        let session = session_name("a", "1");
        let view = members.observe(vec![released("a")], env.now(), env.now());
        assert!(members.is_dead(&view, &session));
        assert!(view.members.is_empty());
        let view = members.observe(vec![lease("a", "2", 1)], env.now(), env.now());
        assert!(members.is_dead(&view, &session));
        assert!(!members.is_dead(&view, &session_name("a", "2")));
    }

    #[test]
    fn a_session_without_a_lease_may_live_for_the_lease_duration() {
        let (env, clock) = Env::simulated(1);
        let mut members = Members::new("fleet", 64, LEASE);
        let session = session_name("a", "1");
        let view = members.observe(Vec::new(), env.now(), env.now());
        assert!(!members.is_dead(&view, &session));
        clock.advance(LEASE - Duration::from_secs(1));
        let view = members.observe(Vec::new(), env.now(), env.now());
        assert!(!members.is_dead(&view, &session));
        clock.advance(Duration::from_secs(1));
        let view = members.observe(Vec::new(), env.now(), env.now());
        assert!(members.is_dead(&view, &session));
        // It created its Lease again, which another replica has deleted since.
        let view = members.observe(vec![lease("a", "1", 1)], env.now(), env.now());
        assert!(!members.is_dead(&view, &session));
        let view = members.observe(Vec::new(), env.now(), env.now());
        assert!(!members.is_dead(&view, &session));
        members.retain(["other"].iter());
        assert!(members.missing.is_empty());
    }
}
