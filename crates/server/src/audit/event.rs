//! An audit event, and its JSON (`audit.k8s.io/v1`).

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use jiff::{Timestamp, fmt::temporal::DateTimePrinter};
use serde::Serialize;

use super::{
    payload::Payload,
    policy::{Level, Stage},
};
use crate::identity::User;

/// Set where an object was left out because it, or its event, is too large.
pub(super) const TRUNCATED: &str = "audit.k8s.io/truncated";

/// What is known of a request when its sender is authenticated. It is encoded once, and shared by the events of the request.
#[derive(Debug)]
pub(super) struct Origin {
    /// `"auditID":…`
    pub(super) id: String,
    /// `"requestURI":…,"verb":…,"user":…`
    pub(super) who: String,
    /// `,"sourceIPs":…,"userAgent":…`
    pub(super) from: String,
    pub(super) received: Timestamp,
}

/// What a request is for, as `objectRef`.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectReference {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) api_group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) resource_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) subresource: String,
}

/// The outcome of a request, as `responseStatus`.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) code: u16,
    /// The Status in the response, as JSON without its type, metadata and code.
    pub(super) status: Option<Arc<str>>,
}

/// The annotations of an event.
pub(super) type Annotations = BTreeMap<Cow<'static, str>, String>;

/// One event of a request.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(super) level: Level,
    pub(super) stage: Stage,
    pub(super) at: Timestamp,
    pub(super) origin: Arc<Origin>,
    /// `,"impersonatedUser":…`, with what belongs to it.
    pub(super) impersonated: Option<Arc<str>>,
    pub(super) object: Option<ObjectReference>,
    pub(super) outcome: Option<Outcome>,
    pub(super) request: Option<Payload>,
    pub(super) response: Option<Payload>,
    pub(super) annotations: Annotations,
}

impl Event {
    /// About how many bytes the event holds.
    pub(super) fn size(&self) -> usize {
        let payload = |payload: &Option<Payload>| payload.as_ref().map_or(0, Payload::len);
        let annotations: usize = self.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
        let text = self.origin.id.len() + self.origin.who.len() + self.origin.from.len();
        400 + text + annotations + payload(&self.request) + payload(&self.response)
    }

    /// The event as a line of a log.
    pub(super) fn write_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","#);
        self.write_fields(out);
        out.extend_from_slice(b"}\n");
    }

    /// The event as an item of a list, which has no type of its own.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only the webhook sends lists"))]
    pub(super) fn write_item(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        self.write_fields(out);
        out.push(b'}');
    }

    /// The event without its objects, and a note that they are missing.
    pub(super) fn truncated(&self) -> Event {
        let mut event = Event { request: None, response: None, ..self.clone() };
        event.annotations.insert(TRUNCATED.into(), "true".into());
        event
    }

    fn write_fields(&self, out: &mut Vec<u8>) {
        let mut text = |text: &str| out.extend_from_slice(text.as_bytes());
        text(r#""level":""#);
        text(self.level.as_str());
        text(r#"","#);
        text(&self.origin.id);
        text(r#","stage":""#);
        text(self.stage.as_str());
        text(r#"","#);
        text(&self.origin.who);
        text(self.impersonated.as_deref().unwrap_or_default());
        text(&self.origin.from);
        if let Some(object) = &self.object {
            text(r#","objectRef":"#);
            write(out, object);
        }
        if let Some(outcome) = &self.outcome {
            outcome.write(out);
        }
        for (name, payload) in [("requestObject", &self.request), ("responseObject", &self.response)] {
            if let Some(json) = payload.as_ref().and_then(Payload::json) {
                out.extend_from_slice(format!(",\"{name}\":").as_bytes());
                out.extend_from_slice(&json);
            }
        }
        let mut times = String::with_capacity(120);
        write_time(&mut times, ",\"requestReceivedTimestamp\":\"", self.origin.received);
        write_time(&mut times, "\",\"stageTimestamp\":\"", self.at);
        times.push('"');
        out.extend_from_slice(times.as_bytes());
        if !self.annotations.is_empty() {
            out.extend_from_slice(br#","annotations":"#);
            write(out, &self.annotations);
        }
    }
}

impl Outcome {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#","responseStatus":{"metadata":{}"#);
        if let Some(status) = self.status.as_deref().filter(|status| !status.is_empty()) {
            out.push(b',');
            out.extend_from_slice(status.as_bytes());
        }
        if self.code != 0 {
            out.extend_from_slice(format!(",\"code\":{}", self.code).as_bytes());
        }
        out.push(b'}');
    }
}

/// Writing to memory does not fail, and neither does the encoding of strings and maps of strings.
pub(super) fn write(out: &mut Vec<u8>, value: &impl Serialize) {
    let _ = serde_json::to_writer(out, value);
}

/// A timestamp as a `metav1.MicroTime`.
fn write_time(out: &mut String, before: &str, at: Timestamp) {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));
    out.push_str(before);
    let _ = PRINTER.print_timestamp(&at, out);
}

/// A user as a `UserInfo`.
pub(super) fn user_info(user: &User) -> impl Serialize + '_ {
    #[derive(Serialize)]
    struct UserInfo<'a> {
        #[serde(skip_serializing_if = "str::is_empty")]
        username: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        uid: &'a str,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        groups: &'a [String],
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        extra: BTreeMap<&'a str, &'a [String]>,
    }
    let extra = user.extra.iter().map(|(key, values)| (key.as_str(), values.as_slice())).collect();
    UserInfo { username: &user.name, uid: &user.uid, groups: &user.groups, extra }
}
