//! `GET /events`: what has changed, and what the operator has reported.

use std::{collections::BTreeSet, time::SystemTime};

use futures_util::future::BoxFuture;
use http::{Response, StatusCode};
use k1s::{
    controller::{
        changes::{Changes, Record},
        client::{Error, ListOptions, Reader},
    },
    env::Env,
    object::time::{Duration, Time},
    server::Status,
};
use k8s_openapi::api::events::v1::Event;
use serde_json::{Value, json};

use super::{
    respond::{Body, Parameters, json},
    watch::{kind, name},
};
use crate::reconciler::REPORTER;

const PARAMETERS: [&str; 8] = ["source", "type", "kind", "namespace", "name", "since", "limit", "pretty"];

/// A query: its filters are the same for both sources.
pub(super) struct Query {
    parameters: Parameters,
    of_controller: bool,
    namespace: Option<String>,
    name: Option<String>,
    since: Since,
    limit: usize,
}

enum Since {
    Always,
    Revision(u64),
    Time(Time),
}

impl Query {
    pub(super) fn parse(query: Option<&str>, env: &Env) -> Result<Query, Status> {
        let parameters = Parameters::parse(query, &PARAMETERS)?;
        let since = parameters.get("since").map(|text| since(text, time(env.wall()))).transpose()?;
        let limit = parameters.get("limit").map(|text| {
            text.parse().map_err(|_| Status::bad_request(format!("limit: {text:?} is not a number")))
        });
        let of_controller = match parameters.get("source") {
            None | Some("changes") => false,
            Some("controller") => true,
            Some(other) => {
                let message = format!("source: {other:?} is unknown; it is \"changes\" or \"controller\"");
                return Err(Status::bad_request(message));
            }
        };
        Ok(Query {
            of_controller,
            namespace: parameters.get("namespace").map(str::to_owned),
            name: parameters.get("name").map(str::to_owned),
            since: since.unwrap_or(Since::Always),
            limit: limit.transpose()?.unwrap_or(usize::MAX),
            parameters,
        })
    }

    /// Whether it asks for the Events of the operator.
    pub(super) fn is_of_controller(&self) -> bool {
        self.of_controller
    }

    pub(super) fn recorded(&self, changes: &Changes) -> Result<Response<Body>, Status> {
        Ok(list(&recorded(changes, &self.parameters, self)?))
    }

    pub(super) async fn reported(&self, live: Reader) -> Result<Response<Body>, Status> {
        let listed = events(live).await;
        let listed = listed.map_err(|error| Status::new(503, "ServiceUnavailable", error.to_string()))?;
        Ok(list(&reported(listed, &self.parameters, self)))
    }
}

/// Boxed: the compiler cannot prove for all lifetimes that the future is `Send`.
fn events(live: Reader) -> BoxFuture<'static, Result<Vec<Event>, Error>> {
    Box::pin(async move { Ok(live.list::<Event>(ListOptions::default()).await?.items) })
}

fn list(items: &[Value]) -> Response<Body> {
    json(StatusCode::OK, &json!({"items": items}))
}

/// The record of changes, newest first.
fn recorded(changes: &Changes, parameters: &Parameters, query: &Query) -> Result<Vec<Value>, Status> {
    if changes.options().log == 0 {
        return Err(Status::new(404, "NotFound", "changes are not recorded: --event-limit is 0"));
    }
    let mut types = BTreeSet::new();
    for text in parameters.list("type") {
        let text = text.to_ascii_uppercase();
        if !["ADDED", "MODIFIED", "DELETED"].contains(&&*text) {
            let message = format!("type: {text:?} is unknown; the types are ADDED, MODIFIED and DELETED");
            return Err(Status::bad_request(message));
        }
        types.insert(text);
    }
    let kinds =
        parameters.list("kind").map(|name| kind(changes, name)).collect::<Result<BTreeSet<_>, _>>()?;
    let selected = |record: &Record| {
        (types.is_empty() || types.contains(name(record.event)))
            && (kinds.is_empty() || kinds.contains(&record.kind))
            && query.selects(
                record.key.namespace(),
                record.key.name(),
                time(record.time),
                Some(record.revision),
            )
    };
    let recent = changes.recent();
    let selected = recent.iter().filter(|record| selected(record)).take(query.limit);
    Ok(selected.map(|record| shown(changes, record)).collect())
}

fn shown(changes: &Changes, record: &Record) -> Value {
    let resource = changes.kinds()[record.kind].resource();
    json!({
        "type": name(record.event),
        "object": {
            "apiVersion": resource.api_version, "kind": resource.kind,
            "namespace": record.key.namespace(), "name": record.key.name(), "uid": record.uid,
        },
        "time": time(record.time).to_micro(),
        "resourceVersion": record.revision.to_string(),
        "changed": record.paths,
    })
}

/// The Events of the operator, newest first.
fn reported(listed: Vec<Event>, parameters: &Parameters, query: &Query) -> Vec<Value> {
    let any = |name: &str, text: Option<&str>| {
        parameters.list(name).next().is_none()
            || parameters.list(name).any(|one| text.is_some_and(|text| one.eq_ignore_ascii_case(text)))
    };
    let mut events: Vec<(Time, Value)> = Vec::new();
    for event in listed {
        let about = event.regarding.clone().unwrap_or_default();
        let seen =
            event.series.as_ref().map(|series| &series.last_observed_time).or(event.event_time.as_ref());
        let seen = seen.and_then(|time| serde_json::to_value(time).ok());
        let at = seen.as_ref().and_then(Value::as_str).and_then(|text| Time::parse(text).ok());
        let at = at.unwrap_or(Time::from_unix(0, 0));
        let revision = event.metadata.resource_version.as_deref().and_then(|text| text.parse().ok());
        let is_selected = event.reporting_controller.as_deref() == Some(REPORTER)
            && any("type", event.type_.as_deref())
            && any("kind", about.kind.as_deref())
            && query.selects(
                about.namespace.as_deref(),
                about.name.as_deref().unwrap_or_default(),
                at,
                revision,
            );
        if is_selected {
            let shown = json!({
                "type": event.type_,
                "reason": event.reason,
                "message": event.note,
                "object": {
                    "apiVersion": about.api_version, "kind": about.kind,
                    "namespace": about.namespace, "name": about.name, "uid": about.uid,
                },
                "time": at.to_micro(),
                "resourceVersion": event.metadata.resource_version,
                "count": event.series.map_or(1, |series| series.count),
            });
            events.push((at, shown));
        }
    }
    events.sort_by(|(one, _), (other, _)| other.cmp(one));
    events.into_iter().take(query.limit).map(|(_, shown)| shown).collect()
}

impl Query {
    fn selects(&self, namespace: Option<&str>, name: &str, at: Time, revision: Option<u64>) -> bool {
        self.namespace.as_deref().is_none_or(|wanted| namespace == Some(wanted))
            && self.name.as_deref().is_none_or(|wanted| name == wanted)
            && match self.since {
                Since::Always => true,
                Since::Revision(since) => revision.is_some_and(|revision| revision > since),
                Since::Time(since) => at >= since,
            }
    }
}

/// `10m` ago, `2026-01-02T03:04:05Z`, or after a resource version.
fn since(text: &str, now: Time) -> Result<Since, Status> {
    if let Ok(revision) = text.parse() {
        return Ok(Since::Revision(revision));
    }
    if let Ok(time) = Time::parse(text) {
        return Ok(Since::Time(time));
    }
    match Duration::parse(text) {
        Ok(ago) if ago.0 >= 0 => {
            Ok(Since::Time(Time::from_unix(now.unix().saturating_sub(ago.as_secs()), now.nanos())))
        }
        _ => Err(Status::bad_request(format!(
            "since: {text:?} is neither a duration (10m), a time (2026-01-02T03:04:05Z) nor a resource version"
        ))),
    }
}

fn time(time: SystemTime) -> Time {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_a_time_a_duration_or_a_revision() {
        let now = Time::parse("2026-01-02T03:04:05Z").unwrap();
        let at = |text: &str| match since(text, now) {
            Ok(Since::Time(time)) => time.to_string(),
            Ok(Since::Revision(revision)) => format!("revision {revision}"),
            Ok(Since::Always) => "always".to_owned(),
            Err(status) => status.message,
        };
        assert_eq!(at("1h5s"), "2026-01-02T02:04:00Z");
        assert_eq!(at("2026-01-01T00:00:00Z"), "2026-01-01T00:00:00Z");
        assert_eq!(at("17"), "revision 17");
        assert!(at("yesterday").starts_with("since: \"yesterday\" is neither"), "{}", at("yesterday"));
        assert!(at("-5m").starts_with("since: "), "{}", at("-5m"));
    }
}
