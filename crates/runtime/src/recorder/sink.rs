//! Writes Events to the server: creates them, and updates their counts.

use std::{future::Future, time::Duration};

use jiff::Timestamp;
use k1s_env::Env;
use k8s_openapi::{
    api::{core::v1 as core, events::v1 as events},
    apimachinery::pkg::apis::meta::v1::{MicroTime, Time},
};
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{EventApi, correlator::Record};

pub(super) struct Sink {
    client: Client,
    env: Env,
    api: EventApi,
    answer_within: Duration,
}

/// Why an event could not be written.
#[derive(Debug)]
pub(super) enum SinkError {
    /// The Event does not exist.
    Missing(String),
    /// An Event of that name exists already, or was changed concurrently.
    Exists(String),
    /// The server rejected it.
    Refused(String),
    /// The server was not reached, or is unhealthy. The write may have been applied.
    Unavailable(String),
}

impl SinkError {
    pub(super) fn message(&self) -> &str {
        match self {
            SinkError::Missing(message)
            | SinkError::Exists(message)
            | SinkError::Refused(message)
            | SinkError::Unavailable(message) => message,
        }
    }
}

impl Sink {
    pub(super) fn new(client: Client, env: Env, api: EventApi, answer_within: Duration) -> Sink {
        Sink { client, env, api, answer_within }
    }

    pub(super) async fn create(&self, record: &Record) -> Result<(), SinkError> {
        let params = PostParams::default();
        match self.api {
            EventApi::EventsV1 => {
                let api: Api<events::Event> = Api::namespaced(self.client.clone(), &record.namespace);
                self.call(api.create(&params, &events_v1_event(record))).await
            }
            EventApi::CoreV1 => {
                let api: Api<core::Event> = Api::namespaced(self.client.clone(), &record.namespace);
                self.call(api.create(&params, &core_v1_event(record))).await
            }
        }
    }

    /// Updates the count of an existing Event.
    pub(super) async fn update(&self, record: &Record) -> Result<(), SinkError> {
        let (params, patch) = (PatchParams::default(), Patch::Merge(self.count(record)));
        match self.api {
            EventApi::EventsV1 => {
                let api: Api<events::Event> = Api::namespaced(self.client.clone(), &record.namespace);
                self.call(api.patch(&record.name, &params, &patch)).await
            }
            EventApi::CoreV1 => {
                let api: Api<core::Event> = Api::namespaced(self.client.clone(), &record.namespace);
                self.call(api.patch(&record.name, &params, &patch)).await
            }
        }
    }

    fn count(&self, record: &Record) -> Value {
        match self.api {
            EventApi::EventsV1 => {
                json!({"series": {"count": record.count, "lastObservedTime": micro(record.last)}})
            }
            EventApi::CoreV1 => {
                json!({"count": record.count, "lastTimestamp": Time(record.last), "message": record.note})
            }
        }
    }

    async fn call<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<(), SinkError> {
        match self.env.timeout(self.answer_within, call).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(kube::Error::Api(status))) => Err(match status.code {
                404 => SinkError::Missing(status.message),
                409 => SinkError::Exists(status.message),
                429 | 500.. => SinkError::Unavailable(status.message),
                _ => SinkError::Refused(status.message),
            }),
            Ok(Err(error @ (kube::Error::BuildRequest(_) | kube::Error::HttpError(_)))) => {
                Err(SinkError::Refused(error.to_string()))
            }
            Ok(Err(error)) => Err(SinkError::Unavailable(error.to_string())),
            Err(elapsed) => Err(SinkError::Unavailable(format!("no response: {elapsed}"))),
        }
    }
}

fn micro(time: Timestamp) -> MicroTime {
    MicroTime(time)
}

fn metadata(record: &Record) -> ObjectMeta {
    let annotations = &record.first.event.annotations;
    ObjectMeta {
        name: Some(record.name.clone()),
        namespace: Some(record.namespace.clone()),
        annotations: (!annotations.is_empty()).then(|| annotations.clone()),
        ..ObjectMeta::default()
    }
}

fn events_v1_event(record: &Record) -> events::Event {
    let first = &record.first;
    let event = &first.event;
    events::Event {
        metadata: metadata(record),
        event_time: Some(micro(first.at)),
        series: (record.count > 1)
            .then(|| events::EventSeries { count: record.count, last_observed_time: micro(record.last) }),
        reporting_controller: Some(first.controller.to_string()),
        reporting_instance: Some(first.instance.to_string()),
        // The API requires an action.
        action: Some(event.action.as_ref().unwrap_or(&event.reason).to_string()),
        reason: Some(event.reason.to_string()),
        regarding: Some(event.regarding.clone()),
        related: event.related.clone(),
        note: Some(record.note.clone()),
        type_: Some(event.kind.as_str().to_owned()),
        ..events::Event::default()
    }
}

fn core_v1_event(record: &Record) -> core::Event {
    let first = &record.first;
    let event = &first.event;
    core::Event {
        metadata: metadata(record),
        first_timestamp: Some(Time(first.at)),
        last_timestamp: Some(Time(record.last)),
        count: Some(record.count),
        source: Some(core::EventSource { component: Some(first.controller.to_string()), host: None }),
        reporting_component: Some(first.controller.to_string()),
        reporting_instance: Some(first.instance.to_string()),
        action: event.action.as_ref().map(ToString::to_string),
        reason: Some(event.reason.to_string()),
        involved_object: event.regarding.clone(),
        related: event.related.clone(),
        message: Some(record.note.clone()),
        type_: Some(event.kind.as_str().to_owned()),
        ..core::Event::default()
    }
}
