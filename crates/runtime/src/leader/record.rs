//! What a Lease says, and what follows from it. Nothing here waits or sends.
//!
//! A Lease is read as loosely as it can be: one that somebody has written nonsense into must not keep everybody from
//! leading for ever. And it is written back with all that was in it.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use k1s_env::Instant;
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

/// A Lease as the server gave it.
pub(super) type Lease = DynamicObject;

/// A candidate's term in office, as its Leases show it. The time of acquisition makes terms of one identity distinct.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    pub(super) identity: String,
    pub(super) transitions: i64,
    /// When it began, on the wall clock, in microseconds.
    acquired: i64,
    /// The same on the monotonic clock.
    began: Instant,
}

impl Term {
    /// The term that follows on what the Lease shows; the first one if there is none.
    pub(super) fn after(found: Option<&Lease>, identity: &str, wall: SystemTime, now: Instant) -> Term {
        let transitions = found.map_or(0, |lease| transitions(lease).saturating_add(1).min(i32::MAX.into()));
        Term { identity: identity.to_owned(), transitions, acquired: micros(wall), began: now }
    }

    /// Whether the Lease is of this term.
    pub(super) fn is_shown_by(&self, lease: &Lease) -> bool {
        holder(lease) == Some(&*self.identity)
            && time(lease, "acquireTime") == Some(self.acquired)
            && transitions(lease) == self.transitions
    }

    /// Writes a renewal into a Lease, and leaves alone what is not about it.
    ///
    /// Others know by the time of renewal that there was one, so in a term no two of them may be the same. That is why
    /// it does not follow the wall clock, which may jump, but counts from the beginning of the term.
    pub(super) fn renew(&self, lease: &mut Lease, seconds: i32, now: Instant) {
        let passed = i64::try_from((now - self.began).as_micros()).unwrap_or(i64::MAX);
        let mut renewed = self.acquired.saturating_add(passed);
        if self.is_shown_by(lease)
            && let Some(last) = time(lease, "renewTime")
            // A little more, and it is this term's own. Much more, and somebody wrote it by hand.
            && (0..1_000_000).contains(&last.saturating_sub(renewed))
        {
            renewed = last.saturating_add(1);
        }
        let spec = spec_mut(lease);
        spec.insert("holderIdentity".to_owned(), json!(self.identity));
        spec.insert("acquireTime".to_owned(), shown(self.acquired));
        spec.insert("leaseTransitions".to_owned(), json!(self.transitions));
        spec.insert("leaseDurationSeconds".to_owned(), json!(seconds));
        spec.insert("renewTime".to_owned(), shown(renewed));
    }
}

/// Gives a Lease back: nobody holds it, and its end is near for those who don't know what that means.
pub(super) fn release(lease: &mut Lease, wall: SystemTime) {
    let now = shown(micros(wall));
    let spec = spec_mut(lease);
    spec.insert("holderIdentity".to_owned(), json!(""));
    spec.insert("leaseDurationSeconds".to_owned(), json!(1));
    spec.insert("acquireTime".to_owned(), now.clone());
    spec.insert("renewTime".to_owned(), now);
}

/// Who holds a Lease, if anybody.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    lease.data.get("spec").and_then(holder_in)
}

fn holder_in(spec: &Value) -> Option<&str> {
    spec.get("holderIdentity")?.as_str().filter(|holder| !holder.is_empty())
}

fn transitions(lease: &Lease) -> i64 {
    lease.data["spec"]["leaseTransitions"].as_i64().unwrap_or(0)
}

fn time(lease: &Lease, field: &str) -> Option<i64> {
    lease.data["spec"][field].as_str()?.parse::<Timestamp>().ok().map(Timestamp::as_microsecond)
}

fn spec_mut(lease: &mut Lease) -> &mut Map<String, Value> {
    if !lease.data.is_object() {
        lease.data = json!({});
    }
    let spec = &mut lease.data["spec"];
    match spec {
        Value::Object(_) => {}
        _ => *spec = Value::Object(Map::new()),
    }
    match spec {
        Value::Object(spec) => spec,
        _ => unreachable!("it was made an object"),
    }
}

/// What was last seen of the Lease, and when: the local moment, on the monotonic clock. The times inside the Lease are
/// those of another machine; all they tell is whether it was renewed.
#[derive(Debug, Clone)]
pub(super) struct Observation {
    spec: Value,
    seen: Instant,
}

impl Observation {
    /// Takes note of a Lease that was read. One that says the same as before is as old as it was. Returns whether it has changed
    /// since it was last read.
    pub(super) fn update(this: &mut Option<Observation>, lease: &Lease, now: Instant) -> bool {
        let spec = &lease.data["spec"];
        if this.as_ref().is_some_and(|known| known.spec == *spec) {
            return false;
        }
        this.replace(Observation { spec: spec.clone(), seen: now }).is_some()
    }

    /// Until when it is to be left alone, if somebody holds it. A Lease that does not say for how long is held for
    /// `otherwise`.
    pub(super) fn held_until(&self, otherwise: Duration) -> Option<Instant> {
        holder_in(&self.spec)?;
        let seconds = self.spec["leaseDurationSeconds"].as_u64();
        let duration = seconds.filter(|seconds| *seconds > 0).map_or(otherwise, Duration::from_secs);
        Some(self.seen + duration)
    }
}

fn micros(wall: SystemTime) -> i64 {
    Timestamp::try_from(wall).unwrap_or(Timestamp::UNIX_EPOCH).as_microsecond()
}

/// A moment as a Lease has it.
fn shown(micros: i64) -> Value {
    let moment = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX);
    json!(format!("{moment:.6}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k1s_env::Env;

    const OTHERWISE: Duration = Duration::from_secs(15);

    fn lease(spec: &Value) -> Lease {
        serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap()
    }

    fn first(env: &Env) -> Term {
        Term::after(None, "me", env.wall(), env.now())
    }

    #[test]
    fn the_same_record_seen_again_does_not_get_younger() {
        let (env, clock) = Env::simulated(1);
        let found = lease(&json!({"holderIdentity": "a", "leaseDurationSeconds": 3}));
        let mut seen = None;
        Observation::update(&mut seen, &found, env.now());
        let first = seen.as_ref().unwrap().held_until(OTHERWISE).unwrap();
        clock.advance(Duration::from_secs(2));
        Observation::update(&mut seen, &found, env.now());
        assert_eq!(seen.as_ref().unwrap().held_until(OTHERWISE), Some(first));
        let mut renewed = found.clone();
        renewed.data["spec"]["renewTime"] = shown(micros(env.wall()));
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
            json!({"holderIdentity": "a", "leaseDurationSeconds": "soon", "renewTime": 7}),
        ] {
            let mut seen = None;
            Observation::update(&mut seen, &lease(&spec), env.now());
            assert_eq!(seen.unwrap().held_until(OTHERWISE), Some(env.now() + OTHERWISE));
        }
    }

    #[test]
    fn a_lease_without_a_holder_is_free() {
        let (env, _) = Env::simulated(1);
        for found in [
            lease(&Value::Null),
            lease(&json!("nonsense")),
            lease(&json!({"leaseDurationSeconds": 3})),
            lease(&json!({"holderIdentity": "", "leaseDurationSeconds": 1})),
        ] {
            let mut seen = None;
            Observation::update(&mut seen, &found, env.now());
            assert_eq!(seen.unwrap().held_until(OTHERWISE), None);
        }
    }

    #[test]
    fn no_two_renewals_of_a_term_are_the_same_whatever_the_wall_clock_shows() {
        let (env, clock) = Env::simulated(1);
        let term = first(&env);
        let mut lease = lease(&Value::Null);
        let mut seen = Vec::new();
        let stands = env.wall();
        for step in 0..6 {
            term.renew(&mut lease, 15, env.now());
            assert!(term.is_shown_by(&lease));
            assert!(!seen.contains(&lease.data), "{}", lease.data);
            seen.push(lease.data.clone());
            clock.advance(Duration::from_secs(step / 2)); // at first there is no time between them
            clock.set_wall(stands);
        }
    }

    #[test]
    fn a_renewal_keeps_what_it_does_not_know() {
        let (env, _) = Env::simulated(1);
        let mut lease = lease(&json!({"strategy": "OldestEmulationVersion", "holderIdentity": 7}));
        first(&env).renew(&mut lease, 15, env.now());
        assert_eq!(lease.data["spec"]["strategy"], "OldestEmulationVersion");
        assert_eq!(holder(&lease), Some("me"));
        assert_eq!(lease.data["spec"]["renewTime"], "2025-01-01T00:00:00.000000Z");
    }

    #[test]
    fn transitions_count_changes_of_the_holder() {
        let (env, _) = Env::simulated(1);
        let after = |spec: Value| Term::after(Some(&lease(&spec)), "me", env.wall(), env.now()).transitions;
        assert_eq!(first(&env).transitions, 0);
        assert_eq!(after(Value::Null), 1);
        assert_eq!(after(json!({"leaseTransitions": 7})), 8);
        assert_eq!(after(json!({"leaseTransitions": i32::MAX})), i64::from(i32::MAX));
    }

    #[test]
    fn another_term_of_the_same_identity_is_not_ours() {
        let (env, clock) = Env::simulated(1);
        let mut lease = lease(&Value::Null);
        first(&env).renew(&mut lease, 15, env.now());
        clock.advance(Duration::from_millis(1));
        assert!(!first(&env).is_shown_by(&lease));
    }
}
