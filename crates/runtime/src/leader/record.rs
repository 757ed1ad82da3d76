//! The content of a Lease, and what follows from it. No I/O.
//!
//! Leases are parsed leniently, since invalid content must not prevent an election for ever. Unknown fields are written back.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use k1s_env::Instant;
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

/// A Lease as received from the server.
pub(crate) type Lease = DynamicObject;

/// A leader's term, as recorded in the Lease. The acquire time makes terms of the same identity distinct.
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
    /// The term after the one that the Lease shows; the first one if there is no Lease.
    pub(super) fn after(found: Option<&Lease>, identity: &str, wall: SystemTime, now: Instant) -> Term {
        let transitions = found.map_or(0, |lease| transitions(lease).saturating_add(1).min(i32::MAX.into()));
        Term { identity: identity.to_owned(), transitions, acquired: micros(wall), began: now }
    }

    /// Whether the Lease is held by this term.
    pub(super) fn holds(&self, lease: &Lease) -> bool {
        holder(lease) == Some(&*self.identity)
            && time(lease, "acquireTime") == Some(self.acquired)
            && transitions(lease) == self.transitions
    }

    /// Writes a renewal into a Lease, and keeps its unrelated fields.
    ///
    /// Other candidates detect a renewal by its time, so no two renewals of a term may have the same. The time is therefore
    /// counted from the beginning of the term: the wall clock may jump.
    pub(super) fn renew(&self, lease: &mut Lease, seconds: i32, now: Instant) {
        let passed = i64::try_from((now - self.began).as_micros()).unwrap_or(i64::MAX);
        let mut renewed = self.acquired.saturating_add(passed);
        if self.holds(lease)
            && let Some(last) = time(lease, "renewTime")
            // Slightly ahead: the last renewal of this term. Far ahead: edited by hand.
            && (0..1_000_000).contains(&last.saturating_sub(renewed))
        {
            renewed = last.saturating_add(1);
        }
        let spec = spec_mut(lease);
        spec.insert("holderIdentity".to_owned(), json!(self.identity));
        spec.insert("acquireTime".to_owned(), micro_time(self.acquired));
        spec.insert("leaseTransitions".to_owned(), json!(self.transitions));
        spec.insert("leaseDurationSeconds".to_owned(), json!(seconds));
        spec.insert("renewTime".to_owned(), micro_time(renewed));
    }
}

/// Gives a Lease back: no holder, and a short duration for clients that do not know what an empty holder means.
pub(super) fn release(lease: &mut Lease, wall: SystemTime) {
    let now = micro_time(micros(wall));
    let spec = spec_mut(lease);
    spec.insert("holderIdentity".to_owned(), json!(""));
    spec.insert("leaseDurationSeconds".to_owned(), json!(1));
    spec.insert("acquireTime".to_owned(), now.clone());
    spec.insert("renewTime".to_owned(), now);
}

/// The holder of a Lease, if any.
pub(crate) fn holder(lease: &Lease) -> Option<&str> {
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
        _ => unreachable!("set to an object above"),
    }
}

/// The last Lease read, and when: the local time, on the monotonic clock. The times in the Lease come from another machine;
/// they only show whether it was renewed.
#[derive(Debug, Clone)]
pub(crate) struct Observation {
    spec: Value,
    seen: Instant,
}

impl Observation {
    /// Records a Lease that was read. An unchanged one keeps its age. Returns whether the Lease has changed since it was
    /// last read.
    pub(crate) fn update(this: &mut Option<Observation>, lease: &Lease, now: Instant) -> bool {
        let spec = &lease.data["spec"];
        if this.as_ref().is_some_and(|known| known.spec == *spec) {
            return false;
        }
        this.replace(Observation { spec: spec.clone(), seen: now }).is_some()
    }

    /// When the Lease expires, if it has a holder. `default` is the duration of a Lease that has none.
    pub(crate) fn held_until(&self, default: Duration) -> Option<Instant> {
        holder_in(&self.spec)?;
        let seconds = self.spec["leaseDurationSeconds"].as_u64();
        let duration = seconds.filter(|seconds| *seconds > 0).map_or(default, Duration::from_secs);
        Some(self.seen + duration)
    }
}

fn micros(wall: SystemTime) -> i64 {
    Timestamp::try_from(wall).unwrap_or(Timestamp::UNIX_EPOCH).as_microsecond()
}

/// A timestamp in the format of a Lease.
fn micro_time(micros: i64) -> Value {
    let time = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX);
    json!(format!("{time:.6}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k1s_env::Env;

    const DEFAULT: Duration = Duration::from_secs(15);

    fn lease(spec: &Value) -> Lease {
        serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap()
    }

    fn first(env: &Env) -> Term {
        Term::after(None, "me", env.wall(), env.now())
    }

    #[test]
    fn an_unchanged_lease_keeps_its_age() {
        let (env, clock) = Env::simulated(1);
        let found = lease(&json!({"holderIdentity": "a", "leaseDurationSeconds": 3}));
        let mut seen = None;
        Observation::update(&mut seen, &found, env.now());
        let first = seen.as_ref().unwrap().held_until(DEFAULT).unwrap();
        clock.advance(Duration::from_secs(2));
        Observation::update(&mut seen, &found, env.now());
        assert_eq!(seen.as_ref().unwrap().held_until(DEFAULT), Some(first));
        let mut renewed = found.clone();
        renewed.data["spec"]["renewTime"] = micro_time(micros(env.wall()));
        Observation::update(&mut seen, &renewed, env.now());
        assert_eq!(seen.unwrap().held_until(DEFAULT), Some(first + Duration::from_secs(2)));
    }

    #[test]
    fn a_lease_without_a_valid_duration_is_held_for_the_default() {
        let (env, _) = Env::simulated(1);
        for spec in [
            json!({"holderIdentity": "a"}),
            json!({"holderIdentity": "a", "leaseDurationSeconds": 0}),
            json!({"holderIdentity": "a", "leaseDurationSeconds": -5}),
            json!({"holderIdentity": "a", "leaseDurationSeconds": "soon", "renewTime": 7}),
        ] {
            let mut seen = None;
            Observation::update(&mut seen, &lease(&spec), env.now());
            assert_eq!(seen.unwrap().held_until(DEFAULT), Some(env.now() + DEFAULT));
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
            assert_eq!(seen.unwrap().held_until(DEFAULT), None);
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
            assert!(term.holds(&lease));
            assert!(!seen.contains(&lease.data), "{}", lease.data);
            seen.push(lease.data.clone());
            clock.advance(Duration::from_secs(step / 2)); // at first there is no time between them
            clock.set_wall(stands);
        }
    }

    #[test]
    fn a_renewal_keeps_unknown_fields() {
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
    fn a_later_term_of_the_same_identity_does_not_hold_the_lease() {
        let (env, clock) = Env::simulated(1);
        let mut lease = lease(&Value::Null);
        first(&env).renew(&mut lease, 15, env.now());
        clock.advance(Duration::from_millis(1));
        assert!(!first(&env).holds(&lease));
    }
}
