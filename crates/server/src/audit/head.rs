//! The part of a request's events that does not depend on its outcome: who wants what, when and from where.

use jiff::Timestamp;

use super::{
    event::{text_of, write_text},
    policy::{Level, Stage},
};
use crate::time;

/// Where something is inserted into a head, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Stage,
    /// Whom the sender impersonates.
    Impersonated,
    /// What the object in the body says about itself, if the path does not.
    Namespace,
    Name,
    Uid,
    ResourceVersion,
    /// The end, behind which the time is.
    End,
}

const MARKS: usize = Mark::End as usize + 1;

/// The head of a request's events, encoded once: fields as JSON without braces.
#[derive(Debug)]
pub(super) struct Head {
    text: Vec<u8>,
    marks: [usize; MARKS],
    /// What the `objectRef` says, and may not be said again.
    is_told: [bool; MARKS],
    /// Whether the request is for a resource.
    has_reference: bool,
}

impl Head {
    /// Begins a head, which is then written part by part, each followed by its [mark](Head::mark).
    pub(super) fn new(level: Level, id: &[u8]) -> Head {
        let mut text = Vec::with_capacity(700);
        text.extend_from_slice(b"\"level\":\"");
        text.extend_from_slice(level.as_str().as_bytes());
        text.extend_from_slice(b"\",\"auditID\":");
        write_text(&mut text, &text_of(id));
        text.extend_from_slice(b",\"stage\":\"");
        let mut head = Head { text, marks: [0; MARKS], is_told: [false; MARKS], has_reference: false };
        head.mark(Mark::Stage);
        head.text.push(b'"');
        head
    }

    pub(super) fn text(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// What is inserted there comes behind what was written so far.
    pub(super) fn mark(&mut self, mark: Mark) {
        self.set(mark, self.text.len());
    }

    fn set(&mut self, mark: Mark, place: usize) {
        if let Some(one) = self.marks.get_mut(mark as usize) {
            *one = place;
        }
    }

    fn at(&self, mark: Mark) -> usize {
        self.marks.get(mark as usize).copied().unwrap_or_default()
    }

    /// Writes the `objectRef`; an empty name or namespace can be told later.
    pub(super) fn reference(&mut self, fields: &Reference<'_>) {
        self.has_reference = true;
        self.text.extend_from_slice(b",\"objectRef\":{\"resource\":");
        write_text(&mut self.text, fields.resource);
        for (mark, key, text) in
            [(Mark::Namespace, "namespace", fields.namespace), (Mark::Name, "name", fields.name)]
        {
            self.field(key, text);
            self.mark(mark);
            self.told(mark, !text.is_empty());
        }
        self.mark(Mark::Uid);
        self.field("apiGroup", fields.group);
        self.field("apiVersion", fields.version);
        self.mark(Mark::ResourceVersion);
        self.field("subresource", fields.subresource);
        self.text.push(b'}');
    }

    fn told(&mut self, mark: Mark, told: bool) {
        if let Some(one) = self.is_told.get_mut(mark as usize) {
            *one = told;
        }
    }

    fn field(&mut self, key: &str, text: &str) {
        if !text.is_empty() {
            self.text.extend_from_slice(b",\"");
            self.text.extend_from_slice(key.as_bytes());
            self.text.extend_from_slice(b"\":");
            write_text(&mut self.text, text);
        }
    }

    /// Ends the head.
    pub(super) fn end(mut self, received: Timestamp) -> Head {
        self.mark(Mark::End);
        time::write_micros(&mut self.text, received);
        self
    }

    /// Inserts JSON, which begins with a comma.
    pub(super) fn insert(&mut self, mark: Mark, json: &[u8]) {
        let at = self.at(mark);
        self.text.splice(at..at, json.iter().copied());
        // Marks in the same place come behind it, too.
        self.marks.iter_mut().skip(mark as usize).for_each(|one| *one += json.len());
    }

    /// Adds to the `objectRef` what the object in the body says about itself, unless the path has said it.
    pub(super) fn refer(&mut self, mark: Mark, text: &str) {
        let key = match mark {
            Mark::Namespace => "namespace",
            Mark::Name => "name",
            Mark::Uid => "uid",
            Mark::ResourceVersion => "resourceVersion",
            Mark::Stage | Mark::Impersonated | Mark::End => return,
        };
        let is_told = self.is_told.get(mark as usize).is_some_and(|told| *told);
        if text.is_empty() || is_told || !self.has_reference {
            return;
        }
        let mut json = format!(",\"{key}\":").into_bytes();
        write_text(&mut json, text);
        self.insert(mark, &json);
        self.told(mark, true);
    }

    /// The length of the head in an event.
    pub(super) fn len(&self) -> usize {
        self.at(Mark::End)
    }

    /// Writes the head of an event.
    pub(super) fn write(&self, out: &mut Vec<u8>, stage: Stage) {
        let (before, after) = self.text.split_at(self.at(Mark::Stage).min(self.text.len()));
        out.extend_from_slice(before);
        out.extend_from_slice(stage.as_str().as_bytes());
        out.extend_from_slice(after.get(..self.len() - before.len()).unwrap_or_default());
    }

    /// When the request was received, as text.
    pub(super) fn received(&self) -> &[u8] {
        self.text.get(self.len()..).unwrap_or_default()
    }
}

/// What an `objectRef` says.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reference<'a> {
    pub(super) resource: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) subresource: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(head: &Head) -> String {
        let mut out = Vec::new();
        head.write(&mut out, Stage::ResponseComplete);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_becomes_known_later_is_inserted_in_its_place() {
        let mut head = Head::new(Level::Metadata, b"id");
        head.text().extend_from_slice(b",\"user\":{}");
        head.mark(Mark::Impersonated);
        head.text().extend_from_slice(b",\"userAgent\":\"x\"");
        let reference =
            Reference { resource: "pods", version: "v1", subresource: "log", ..Reference::default() };
        head.reference(&reference);
        let mut head = head.end(Timestamp::UNIX_EPOCH);
        let begin = r#""level":"Metadata","auditID":"id","stage":"ResponseComplete","user":{}"#;
        let plain = r#""resource":"pods","apiVersion":"v1","subresource":"log""#;
        assert_eq!(shown(&head), format!(r#"{begin},"userAgent":"x","objectRef":{{{plain}}}"#));
        head.refer(Mark::ResourceVersion, "7");
        head.refer(Mark::Name, "a");
        head.refer(Mark::Uid, "u");
        head.refer(Mark::Uid, "other");
        head.refer(Mark::Namespace, "ns");
        head.refer(Mark::Name, "");
        head.insert(Mark::Impersonated, br#","impersonatedUser":{}"#);
        let told = r#""resource":"pods","namespace":"ns","name":"a","uid":"u","apiVersion":"v1","resourceVersion":"7","subresource":"log""#;
        let expected = format!(r#"{begin},"impersonatedUser":{{}},"userAgent":"x","objectRef":{{{told}}}"#);
        assert_eq!(shown(&head), expected);
        assert_eq!(head.received(), b"1970-01-01T00:00:00.000000Z");
        assert_eq!(head.len() + "ResponseComplete".len(), expected.len());
    }

    #[test]
    fn a_path_is_no_object() {
        let mut head = Head::new(Level::Metadata, b"\"");
        head.mark(Mark::Impersonated);
        let mut head = head.end(Timestamp::UNIX_EPOCH);
        head.refer(Mark::Name, "a");
        assert_eq!(shown(&head), r#""level":"Metadata","auditID":"\"","stage":"ResponseComplete""#);
    }
}
