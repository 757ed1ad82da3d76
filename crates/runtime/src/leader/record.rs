//! What a Lease says, and what follows from it. Nothing here waits or sends.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use k1s_env::Instant;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};

/// A candidate's term in office, as its Leases show it. The time of acquisition makes terms of one identity distinct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) identity: String,
    pub(super) acquired: MicroTime,
    pub(super) transitions: i32,
}

impl Term {
    /// The term that follows on what the Lease shows; the first one if there is none.
    pub(super) fn after(found: Option<&Lease>, identity: &str, wall: SystemTime) -> Term {
        let transitions = found.map_or(0, |lease| {
            let before = lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or(0);
            before.saturating_add(1)
        });
        Term { identity: identity.to_owned(), acquired: micro(wall), transitions }
    }

    /// Whether the Lease is of this term.
    pub(super) fn is_shown_by(&self, lease: &Lease) -> bool {
        lease.spec.as_ref().is_some_and(|spec| {
            spec.holder_identity.as_deref() == Some(&*self.identity)
                && spec.acquire_time.as_ref() == Some(&self.acquired)
                && spec.lease_transitions.unwrap_or(0) == self.transitions
        })
    }

    /// Writes a renewal into a Lease, and leaves alone what is not about it.
    pub(super) fn renew(&self, lease: &mut Lease, seconds: i32, wall: SystemTime) {
        let spec = lease.spec.get_or_insert_default();
        let renewed = another_moment(micro(wall), spec.renew_time.as_ref());
        spec.holder_identity = Some(self.identity.clone());
        spec.acquire_time = Some(self.acquired.clone());
        spec.lease_transitions = Some(self.transitions);
        spec.lease_duration_seconds = Some(seconds);
        spec.renew_time = Some(renewed);
    }
}

/// Gives a Lease back: nobody holds it, and its end is near for those who don't know what that means.
pub(super) fn release(lease: &mut Lease, wall: SystemTime) {
    let spec = lease.spec.get_or_insert_default();
    let now = another_moment(micro(wall), spec.renew_time.as_ref());
    spec.holder_identity = Some(String::new());
    spec.lease_duration_seconds = Some(1);
    spec.acquire_time = Some(now.clone());
    spec.renew_time = Some(now);
}

/// What was last seen of the Lease, and when: the local moment, on the monotonic clock. The times inside the Lease are
/// those of another machine; all they tell is whether it was renewed.
#[derive(Debug, Clone)]
pub(super) struct Observation {
    spec: LeaseSpec,
    seen: Instant,
}

impl Observation {
    /// Takes note of a Lease that was read. One that says the same as before is as old as it was.
    pub(super) fn update(this: &mut Option<Observation>, lease: &Lease, now: Instant) {
        let spec = lease.spec.clone().unwrap_or_default();
        match this {
            Some(known) if known.spec == spec => {}
            _ => *this = Some(Observation { spec, seen: now }),
        }
    }

    /// Who holds it, if anybody.
    pub(super) fn holder(&self) -> Option<&str> {
        self.spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }

    /// Until when it is to be left alone, if somebody holds it. A Lease that does not say for how long is held for
    /// `otherwise`.
    pub(super) fn held_until(&self, otherwise: Duration) -> Option<Instant> {
        self.holder()?;
        let seconds = self.spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = seconds.filter(|seconds| *seconds > 0).map_or(otherwise, Duration::from_secs);
        Some(self.seen + duration)
    }
}

/// A moment as a Lease can hold it.
fn micro(wall: SystemTime) -> MicroTime {
    let moment = Timestamp::try_from(wall).unwrap_or(Timestamp::UNIX_EPOCH);
    MicroTime(Timestamp::from_microsecond(moment.as_microsecond()).unwrap_or(Timestamp::UNIX_EPOCH))
}

/// Others know by the time of renewal that there was one, so no two of them may be the same, whatever the wall clock does.
fn another_moment(now: MicroTime, last: Option<&MicroTime>) -> MicroTime {
    if last != Some(&now) {
        return now;
    }
    Timestamp::from_microsecond(now.0.as_microsecond().saturating_add(1)).map_or(now, MicroTime)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k1s_env::Env;
    use serde_json::{Value, json};

    const OTHERWISE: Duration = Duration::from_secs(15);

    fn lease(spec: Value) -> Lease {
        serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap()
    }

    #[test]
    fn the_same_record_seen_again_does_not_get_younger() {
        let (env, clock) = Env::simulated(1);
        let found = lease(json!({"holderIdentity": "a", "leaseDurationSeconds": 3}));
        let mut seen = None;
        Observation::update(&mut seen, &found, env.now());
        let first = seen.as_ref().unwrap().held_until(OTHERWISE).unwrap();
        clock.advance(Duration::from_secs(2));
        Observation::update(&mut seen, &found, env.now());
        assert_eq!(seen.as_ref().unwrap().held_until(OTHERWISE), Some(first));
        let mut renewed = found.clone();
        renewed.spec.as_mut().unwrap().renew_time = Some(micro(env.wall()));
        Observation::update(&mut seen, &renewed, env.now());
        assert_eq!(seen.unwrap().held_until(OTHERWISE), Some(first + Duration::from_secs(2)));
    }

    #[test]
    fn a_lease_without_a_sensible_duration_is_held_for_ours() {
        let (env, _) = Env::simulated(1);
        for spec in [
            json!({"holderIdentity": "a"}),
            json!({"holderIdentity": "a", "leaseDurationSeconds": 0}),
            json!({"holderIdentity": "a", "leaseDurationSeconds": -5}),
        ] {
            let mut seen = None;
            Observation::update(&mut seen, &lease(spec), env.now());
            assert_eq!(seen.unwrap().held_until(OTHERWISE), Some(env.now() + OTHERWISE));
        }
    }

    #[test]
    fn a_lease_without_a_holder_is_free() {
        let (env, _) = Env::simulated(1);
        for found in [
            Lease::default(),
            lease(json!({"leaseDurationSeconds": 3})),
            lease(json!({"holderIdentity": "", "leaseDurationSeconds": 1})),
        ] {
            let mut seen = None;
            Observation::update(&mut seen, &found, env.now());
            assert_eq!(seen.unwrap().held_until(OTHERWISE), None);
        }
    }

    #[test]
    fn a_renewal_differs_from_the_one_before_even_if_the_clock_stands() {
        let (env, _) = Env::simulated(1);
        let term = Term::after(None, "me", env.wall());
        let mut lease = Lease::default();
        term.renew(&mut lease, 15, env.wall());
        let first = lease.clone();
        term.renew(&mut lease, 15, env.wall());
        assert_ne!(lease, first);
        assert!(term.is_shown_by(&lease));
    }

    #[test]
    fn transitions_count_changes_of_the_holder() {
        let (env, _) = Env::simulated(1);
        assert_eq!(Term::after(None, "me", env.wall()).transitions, 0);
        assert_eq!(Term::after(Some(&Lease::default()), "me", env.wall()).transitions, 1);
        let found = lease(json!({"leaseTransitions": 7}));
        assert_eq!(Term::after(Some(&found), "me", env.wall()).transitions, 8);
    }

    #[test]
    fn another_term_of_the_same_identity_is_not_ours() {
        let (env, clock) = Env::simulated(1);
        let mut lease = Lease::default();
        let earlier = Term::after(None, "me", env.wall());
        earlier.renew(&mut lease, 15, env.wall());
        clock.advance(Duration::from_millis(1));
        assert!(!Term::after(None, "me", env.wall()).is_shown_by(&lease));
    }
}
