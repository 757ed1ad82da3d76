//! Expiry: deletes Events after their last occurrence and, optionally, Leases that are no longer renewed.

use std::{fmt, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k1s_env::Env;
use k1s_runtime::{
    Action, Context, Kind, Manager, ObjectKey, Reconciler,
    client::{Client, DeleteOptions, Error},
    controller::{BuildError, Builder},
};
use kube::{
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use serde_json::Value;

use crate::{
    feed::{Feed, Interest, Signal},
    meta::{Meta, Resource},
};

/// Kinds that may expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    Event,
    Lease,
}

impl What {
    fn of(resource: &Resource) -> Option<What> {
        match (&*resource.group, &*resource.plural) {
            ("" | "events.k8s.io", "events") => Some(What::Event),
            ("coordination.k8s.io", "leases") => Some(What::Lease),
            _ => None,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key(What, ObjectKey);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.0, self.1)
    }
}

/// The retention per kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) events: Option<Duration>,
    pub(crate) leases: Option<Duration>,
}

impl Limits {
    fn of(self, what: What) -> Option<Duration> {
        match what {
            What::Event => self.events,
            What::Lease => self.leases,
        }
    }
}

/// Adds the controller.
pub(crate) fn add(manager: &Manager, feed: &Feed, limits: Limits) -> Result<(), BuildError> {
    let controller = Builder::<Key>::new(manager)
        .named("expiry")
        .watches_raw_source(feed.source())
        .build(Expiry { client: feed.client().clone(), env: feed.env().clone(), limits })?;
    if limits.events.is_some() {
        feed.want([Interest::all("", "events")]);
    }
    if limits.leases.is_some() {
        feed.want([Interest::all("coordination.k8s.io", "leases")]);
    }
    let (queue, env) = (controller.queue().clone(), feed.env().clone());
    feed.listen(move |signal| {
        let (Signal::Stored(resource, meta) | Signal::Deleted(resource, meta)) = signal else { return };
        let Some(what) = What::of(resource) else { return };
        let Some(limit) = limits.of(what) else { return };
        let key = Key(what, ObjectKey::new(Some(&meta.namespace), &meta.name));
        match signal {
            Signal::Deleted(..) => drop(queue.remove(&key)),
            // It cannot expire before this time; the reconcile then checks whether it has been renewed since.
            // A key that is already delayed keeps its time, so a repeated Event costs nothing here.
            _ => queue.add_after(key, earliest(meta, limit, &env)),
        }
    });
    Ok(())
}

/// Minimum time until an object can expire.
fn earliest(meta: &Meta, limit: Duration, env: &Env) -> Duration {
    let created = meta.creation_timestamp;
    let now = Timestamp::try_from(env.wall()).ok();
    let age = created.zip(now).map(|(created, now)| now.duration_since(created));
    let age = age.and_then(|age| Duration::try_from(age).ok()).unwrap_or_default();
    limit.saturating_sub(age)
}

struct Expiry {
    client: Client,
    env: Env,
    limits: Limits,
}

impl Reconciler<Key> for Expiry {
    type Error = Error;

    async fn reconcile(&self, key: Key, _: Context) -> Result<Action, Error> {
        let Key(what, key) = key;
        let Some(limit) = self.limits.of(what) else { return Ok(Action::done()) };
        let (group, version, kind, plural) = match what {
            What::Event => ("", "v1", "Event", "events"),
            What::Lease => ("coordination.k8s.io", "v1", "Lease", "leases"),
        };
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let objects =
            self.client.kind(Kind::<DynamicObject>::dynamic(ApiResource::from_gvk_with_plural(&gvk, plural)));
        let Some(object) = objects.live().get_opt(&key).await? else { return Ok(Action::done()) };
        let created = object.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let last = match what {
            What::Event => last_occurrence(&object.data, created),
            What::Lease => end(&object.data),
        };
        // A lease without a holder does not expire.
        let (Some(last), Ok(now)) = (last, Timestamp::try_from(self.env.wall())) else {
            return Ok(Action::done());
        };
        let age = now.duration_since(last);
        let limit = SignedDuration::try_from(limit).unwrap_or(SignedDuration::MAX);
        if age < limit {
            let left = Duration::try_from(limit.saturating_sub(age)).unwrap_or_default();
            return Ok(Action::requeue_after(left.max(Duration::from_millis(1))));
        }
        match objects.delete_with(&key, DeleteOptions::exactly(&object)).await {
            Ok(_) => Ok(Action::done()),
            Err(error) if error.is_not_found() => Ok(Action::done()),
            // Renewed just before the deletion.
            Err(error) if error.is_conflict() => Ok(Action::requeue_with_backoff()),
            Err(error) => Err(error),
        }
    }
}

/// When an Event was last seen.
fn last_occurrence(event: &Value, created: Option<Timestamp>) -> Option<Timestamp> {
    let times = [
        &event["lastTimestamp"],
        &event["deprecatedLastTimestamp"],
        &event["eventTime"],
        &event["series"]["lastObservedTime"],
    ];
    times.into_iter().filter_map(time).chain(created).max()
}

/// When a Lease expired, or will expire unless it is renewed.
fn end(lease: &Value) -> Option<Timestamp> {
    let spec = &lease["spec"];
    let seconds = spec["leaseDurationSeconds"].as_i64()?;
    time(&spec["renewTime"])?.checked_add(SignedDuration::from_secs(seconds)).ok()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Option<Timestamp> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn an_event_was_last_seen_at_the_latest_of_its_times() {
        let created = at("2026-01-01T00:00:00Z");
        assert_eq!(last_occurrence(&json!({}), created), created);
        let old = json!({"lastTimestamp": "2026-01-01T00:10:00Z", "eventTime": null});
        assert_eq!(last_occurrence(&old, created), at("2026-01-01T00:10:00Z"));
        let new = json!({"eventTime": "2026-01-01T00:00:00.000000Z",
            "series": {"count": 2, "lastObservedTime": "2026-01-01T00:20:00.500000Z"}});
        assert_eq!(last_occurrence(&new, created), at("2026-01-01T00:20:00.5Z"));
    }

    #[test]
    fn a_lease_ends_when_its_holder_has_not_renewed_it_in_time() {
        let lease = json!({"spec": {"renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15}});
        assert_eq!(end(&lease), at("2026-01-01T00:00:15Z"));
        assert_eq!(end(&json!({"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}})), None);
    }

    #[test]
    fn an_object_is_not_checked_before_it_can_have_expired() {
        let (env, clock) = Env::simulated(1);
        let limit = Duration::from_secs(3600);
        let created = Timestamp::try_from(env.wall()).ok();
        let meta = Meta { creation_timestamp: created, ..Meta::default() };
        clock.advance(Duration::from_secs(600));
        assert_eq!(earliest(&meta, limit, &env), Duration::from_secs(3000));
        clock.advance(Duration::from_secs(6000));
        assert_eq!(earliest(&meta, limit, &env), Duration::ZERO);
        assert_eq!(earliest(&Meta::default(), limit, &env), limit);
    }

    #[test]
    fn only_events_and_leases_expire() {
        assert_eq!(What::of(&Resource::new("", "events")), Some(What::Event));
        assert_eq!(What::of(&Resource::new("coordination.k8s.io", "leases")), Some(What::Lease));
        assert_eq!(What::of(&Resource::new("example.com", "events")), None);
    }
}
