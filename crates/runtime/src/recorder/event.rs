//! An event as a program reports it.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k1s_env::Env;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventType {
    /// Informational.
    Normal,
    /// A problem that may need attention.
    Warning,
}

impl EventType {
    /// The value in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

/// An event to be recorded.
///
/// Texts longer than the API allows are truncated: notes to 1024 bytes, reasons and actions to 128.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "an event is recorded by `EventRecorder::publish`"]
pub struct NewEvent {
    pub(super) regarding: ObjectReference,
    pub(super) related: Option<ObjectReference>,
    pub(super) kind: EventType,
    pub(super) reason: Cow<'static, str>,
    pub(super) action: Option<Cow<'static, str>>,
    pub(super) note: String,
    pub(super) annotations: BTreeMap<String, String>,
}

impl NewEvent {
    /// An event about an object, with a machine-readable reason (one word) and a note for humans.
    pub fn about<K: Resource<DynamicType: Default>>(
        object: &K,
        kind: EventType,
        reason: impl Into<Cow<'static, str>>,
        note: impl Into<String>,
    ) -> NewEvent {
        NewEvent::regarding(object.object_ref(&K::DynamicType::default()), kind, reason, note)
    }

    /// The same for a reference, or for an object whose kind is known only at run time.
    pub fn regarding(
        regarding: ObjectReference,
        kind: EventType,
        reason: impl Into<Cow<'static, str>>,
        note: impl Into<String>,
    ) -> NewEvent {
        NewEvent {
            regarding,
            related: None,
            kind,
            reason: truncated(reason.into(), MAX_WORD),
            action: None,
            note: truncated(Cow::from(note.into()), MAX_NOTE).into_owned(),
            annotations: BTreeMap::new(),
        }
    }

    /// What was done, in one word; the reason by default.
    pub fn action(mut self, action: impl Into<Cow<'static, str>>) -> NewEvent {
        self.action = Some(truncated(action.into(), MAX_WORD));
        self
    }

    /// A secondary object that is involved.
    pub fn related<K: Resource<DynamicType: Default>>(self, object: &K) -> NewEvent {
        self.related_to(object.object_ref(&K::DynamicType::default()))
    }

    /// A secondary object, by reference.
    pub fn related_to(mut self, related: ObjectReference) -> NewEvent {
        self.related = Some(related);
        self
    }

    /// An annotation of the Event.
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> NewEvent {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// Its description in reports of work in flight.
    pub(super) fn description(&self) -> String {
        let name = self.regarding.name.as_deref().unwrap_or_default();
        match self.regarding.namespace.as_deref() {
            Some(namespace) => format!("{} {namespace}/{name}", self.reason),
            None => format!("{} {name}", self.reason),
        }
    }
}

/// Maximum length of a reason or an action, in bytes.
const MAX_WORD: usize = 128;
/// Maximum length of a note, in bytes.
const MAX_NOTE: usize = 1024;

/// Truncates a text to `limit` bytes, at a character boundary.
pub(super) fn truncated(text: Cow<'static, str>, limit: usize) -> Cow<'static, str> {
    const CUT: &str = "...";
    if text.len() <= limit {
        return text;
    }
    let end = text.floor_char_boundary(limit - CUT.len());
    format!("{}{CUT}", &text[..end]).into()
}

/// An event with its source and time.
#[derive(Debug, Clone)]
pub(super) struct Occurrence {
    pub(super) event: NewEvent,
    pub(super) controller: Arc<str>,
    pub(super) instance: Arc<str>,
    pub(super) at: Timestamp,
}

impl Occurrence {
    /// The namespace of its Event.
    pub(super) fn namespace(&self) -> &str {
        self.event
            .regarding
            .namespace
            .as_deref()
            .filter(|namespace| !namespace.is_empty())
            .unwrap_or("default")
    }

    /// The same for all events of the same object and type from the same source.
    pub(super) fn source_key(&self) -> String {
        let mut key = String::with_capacity(256);
        for part in [&*self.controller, &*self.instance, self.event.kind.as_str()] {
            push(&mut key, part);
        }
        push_reference(&mut key, &self.event.regarding);
        key
    }

    /// The same for all events that differ only in their note.
    pub(super) fn similar_key(&self) -> String {
        let mut key = self.source_key();
        push(&mut key, &self.event.reason);
        push(&mut key, self.event.action.as_deref().unwrap_or_default());
        if let Some(related) = &self.event.related {
            push_reference(&mut key, related);
        }
        key
    }
}

fn push(key: &mut String, part: &str) {
    key.push_str(part);
    key.push('\0');
}

/// Ignores the resourceVersion: the object stays the same when it changes.
fn push_reference(key: &mut String, reference: &ObjectReference) {
    for part in [
        &reference.api_version,
        &reference.kind,
        &reference.namespace,
        &reference.name,
        &reference.uid,
        &reference.field_path,
    ] {
        push(key, part.as_deref().unwrap_or_default());
    }
}

/// Generates unique names for Events.
#[derive(Debug, Default)]
pub(super) struct Names {
    last: i128,
}

impl Names {
    /// `object.<time in hexadecimal nanoseconds>`; a UUID, if that is not a valid name.
    pub(super) fn name(&mut self, env: &Env, object: &str, at: Timestamp) -> String {
        self.last = at.as_nanosecond().max(self.last + 1);
        let name = format!("{object}.{:x}", self.last);
        if is_subdomain(&name) { name } else { env.uuid().to_string() }
    }
}

fn is_subdomain(name: &str) -> bool {
    let alphanumeric = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    name.len() <= 253
        && name.split('.').all(|label| {
            let label = label.as_bytes();
            alphanumeric(label.first())
                && alphanumeric(label.last())
                && label.iter().all(|b| *b == b'-' || alphanumeric(Some(b)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(truncated("short".into(), 128), "short");
        let cut = truncated("ä".repeat(100).into(), 128);
        assert!(cut.len() <= 128 && cut.ends_with("ä..."), "{cut}");
        assert_eq!(truncated("x".repeat(2000).into(), MAX_NOTE).len(), MAX_NOTE);
    }

    #[test]
    fn names_are_unique_even_if_time_stands_still() {
        let (env, _) = Env::simulated(1);
        let at = Timestamp::try_from(env.wall()).unwrap();
        let mut names = Names::default();
        assert_eq!(names.name(&env, "web-0", at), "web-0.1816687ec0570000");
        assert_eq!(names.name(&env, "web-0", at), "web-0.1816687ec0570001");
    }

    #[test]
    fn an_object_whose_name_no_event_can_have_gets_a_uuid() {
        let (env, _) = Env::simulated(1);
        let at = Timestamp::try_from(env.wall()).unwrap();
        for object in ["system:node", &"a".repeat(250), "", "Upper"] {
            let name = Names::default().name(&env, object, at);
            assert_eq!(name.len(), 36, "{name}");
        }
    }

    #[test]
    fn changes_of_the_object_do_not_start_another_event() {
        let occurrence = |version: &str| Occurrence {
            event: NewEvent::regarding(
                ObjectReference { resource_version: Some(version.into()), ..ObjectReference::default() },
                EventType::Normal,
                "Reason",
                "note",
            ),
            controller: "c".into(),
            instance: "i".into(),
            at: Timestamp::UNIX_EPOCH,
        };
        assert_eq!(occurrence("1").similar_key(), occurrence("2").similar_key());
    }
}
