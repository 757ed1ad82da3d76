//! An audit event, and its JSON (`audit.k8s.io/v1`).
//!
//! What is known of a request is encoded when it becomes known, and once for all events of the request. An event without objects
//! is JSON when it is recorded; one with objects becomes JSON when it is written, as they may be large.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde::Serialize;

use super::{head::Head, payload::Payload, policy::Stage};
use crate::{identity::User, time};

/// Set where an object was left out because it, or its event, is too large.
pub(super) const TRUNCATED: &str = "audit.k8s.io/truncated";

/// The outcome of a request, as `responseStatus`.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) code: u16,
    /// The Status in the response, as JSON without its type, metadata and code.
    pub(super) status: Option<Arc<str>>,
}

/// The value of an annotation.
#[derive(Debug, Clone)]
pub(super) enum Text {
    Known(&'static str),
    Shared(Arc<str>),
}

/// The annotations of an event, in the order of their keys.
#[derive(Debug, Clone, Default)]
pub(super) struct Annotations(Vec<(Cow<'static, str>, Text)>);

/// An event in the making: all that is known of a request so far.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) head: Head,
    pub(super) outcome: Option<Outcome>,
    pub(super) request: Option<Payload>,
    pub(super) response: Option<Payload>,
    pub(super) annotations: Annotations,
    /// The event that was made last.
    fields: Vec<u8>,
}

/// An event with objects.
#[derive(Debug, Clone)]
pub(super) struct Event {
    /// The fields before the objects, as JSON.
    fields: Vec<u8>,
    request: Option<Payload>,
    response: Option<Payload>,
    /// The times, as JSON.
    times: Vec<u8>,
    annotations: Annotations,
}

/// An event that is recorded.
#[derive(Debug)]
pub(super) enum Made<'a> {
    /// The fields of an event without objects, as JSON without braces.
    Fields(&'a [u8]),
    Event(Arc<Event>),
}

impl Text {
    fn as_str(&self) -> &str {
        match self {
            Text::Known(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Text {
        Text::Known(text)
    }
}

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Text {
        Text::Shared(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text::Shared(text.into())
    }
}

impl Annotations {
    fn find(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(one, _)| (**one).cmp(key))
    }

    /// Sets an annotation.
    pub(super) fn set(&mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Text>) {
        let key = key.into();
        match self.find(&key) {
            Ok(at) => self.0[at].1 = value.into(),
            Err(at) => self.0.insert(at, (key, value.into())),
        }
    }

    /// Sets an annotation, unless there is one with this key.
    pub(super) fn add<T: Into<Text>>(
        &mut self,
        key: impl Into<Cow<'static, str>>,
        value: impl FnOnce() -> T,
    ) {
        let key = key.into();
        if let Err(at) = self.find(&key) {
            self.0.insert(at, (key, value().into()));
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        for (number, (key, value)) in self.0.iter().enumerate() {
            out.extend_from_slice(if number == 0 { b",\"annotations\":{" } else { b"," });
            write_text(out, key);
            out.push(b':');
            write_text(out, value.as_str());
        }
        if !self.0.is_empty() {
            out.push(b'}');
        }
    }
}

impl Draft {
    pub(super) fn new(head: Head) -> Draft {
        let (outcome, request, response, annotations) = Default::default();
        // Room for the head, an outcome, times and two annotations.
        let fields = Vec::with_capacity(head.len() + 450);
        Draft { head, outcome, request, response, annotations, fields }
    }

    /// The event of a stage.
    pub(super) fn event(&mut self, stage: Stage, at: Timestamp) -> Made<'_> {
        let Draft { head, outcome, request, response, annotations, fields } = self;
        fields.clear();
        head.write(fields, stage);
        if let Some(outcome) = outcome {
            outcome.write(fields);
        }
        let write_times = |out: &mut Vec<u8>| {
            out.extend_from_slice(b",\"requestReceivedTimestamp\":\"");
            out.extend_from_slice(head.received());
            out.extend_from_slice(b"\",\"stageTimestamp\":\"");
            time::write_micros(out, at);
            out.push(b'"');
        };
        if request.is_none() && response.is_none() {
            write_times(fields);
            annotations.write(fields);
            return Made::Fields(fields);
        }
        let mut times = Vec::with_capacity(120);
        write_times(&mut times);
        Made::Event(Arc::new(Event {
            fields: fields.clone(),
            request: request.clone(),
            response: response.clone(),
            times,
            annotations: annotations.clone(),
        }))
    }
}

impl Event {
    /// About how many bytes the event holds.
    pub(super) fn size(&self) -> usize {
        let payload = |payload: &Option<Payload>| payload.as_ref().map_or(0, Payload::len);
        let annotations: usize =
            self.annotations.0.iter().map(|(key, value)| key.len() + value.as_str().len()).sum();
        self.fields.len() + self.times.len() + annotations + payload(&self.request) + payload(&self.response)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.fields);
        for (name, payload) in
            [(",\"requestObject\":", &self.request), (",\"responseObject\":", &self.response)]
        {
            if let Some(json) = payload.as_ref().and_then(Payload::json) {
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(&json);
            }
        }
        out.extend_from_slice(&self.times);
        self.annotations.write(out);
    }

    /// The event without its objects, and a note that they are missing.
    pub(super) fn truncated(&self) -> Event {
        let mut event = Event { request: None, response: None, ..self.clone() };
        event.annotations.set(TRUNCATED, "true");
        event
    }
}

/// How events are written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// As a line of a log.
    Line,
    /// As an item of a list, which has no type of its own.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only the webhook sends lists"))]
    Item,
}

impl Form {
    /// Writes an event in the place of what is in `out`.
    pub(super) fn write(self, out: &mut Vec<u8>, fields: impl FnOnce(&mut Vec<u8>)) {
        out.clear();
        out.extend_from_slice(match self {
            Form::Line => br#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","#,
            Form::Item => b"{",
        });
        fields(out);
        out.extend_from_slice(match self {
            Form::Line => b"}\n",
            Form::Item => b"}",
        });
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

/// Text that nearly always is UTF-8.
pub(super) fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Whether a byte is not itself in a string.
const fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Writes a string. Most have nothing to escape, which is found out many bytes at once.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    let escapes =
        |chunk: &[u8; 16]| chunk.iter().fold(0, |found, byte| found | u8::from(is_escaped(*byte))) != 0;
    let (chunks, rest) = text.as_bytes().as_chunks();
    if chunks.iter().any(escapes) || rest.iter().any(|byte| is_escaped(*byte)) {
        return write(out, &text);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// A user as a `UserInfo`.
pub(super) fn write_user(out: &mut Vec<u8>, user: &User) {
    let mut before = b'{';
    let mut key = |out: &mut Vec<u8>, name: &str| {
        out.push(before);
        out.push(b'"');
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        before = b',';
    };
    for (name, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            key(out, name);
            write_text(out, text);
        }
    }
    if !user.groups.is_empty() {
        key(out, "groups");
        for (number, group) in user.groups.iter().enumerate() {
            out.push(if number == 0 { b'[' } else { b',' });
            write_text(out, group);
        }
        out.push(b']');
    }
    if !user.extra.is_empty() {
        key(out, "extra");
        let extra: BTreeMap<&str, &[String]> =
            user.extra.iter().map(|(key, values)| (key.as_str(), values.as_slice())).collect();
        write(out, &extra);
    }
    if before == b'{' {
        out.push(b'{');
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_written_as_json() {
        let all: String = (0..=0x300).filter_map(char::from_u32).collect();
        for text in ["", "plain", "a\"b", "back\\slash", "new\nline", "\u{0}", "ü", all.as_str()] {
            let mut out = Vec::new();
            write_text(&mut out, text);
            assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }

    #[test]
    fn users_are_written_as_json() {
        let shown = |user: &User| {
            let mut out = Vec::new();
            write_user(&mut out, user);
            serde_json::from_slice::<serde_json::Value>(&out).unwrap()
        };
        assert_eq!(shown(&User::default()), json!({}));
        let groups = vec!["x".to_owned(), "y\"".to_owned()];
        assert_eq!(shown(&User { groups: groups.clone(), ..User::default() }), json!({"groups": groups}));
        let extra = [("b", "2"), ("a", "1")].map(|(key, value)| (key.to_owned(), vec![value.to_owned()]));
        let user = User { name: "a".into(), uid: "7".into(), groups: groups.clone(), extra: extra.into() };
        let expected =
            json!({"username": "a", "uid": "7", "groups": groups, "extra": {"a": ["1"], "b": ["2"]}});
        assert_eq!(shown(&user), expected);
    }

    #[test]
    fn annotations_have_an_order_and_the_last_one_set_or_the_first_one_added() {
        let mut annotations = Annotations::default();
        let mut out = Vec::new();
        annotations.write(&mut out);
        assert!(out.is_empty());
        annotations.set("b", "1");
        annotations.add("c", || "2");
        annotations.set("a", "3".to_owned());
        annotations.set("b", "4");
        annotations.add("c", || "5");
        annotations.write(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), r#","annotations":{"a":"3","b":"4","c":"2"}"#);
    }
}
