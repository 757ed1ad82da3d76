//! The encoding of watch events: lines of JSON or frames of protobuf, with objects, metadata or tables.

use bytes::Bytes;
use k1s_object::Status;
use k1s_store::Revision;
use serde_json::{Value, json};

use crate::{
    cache::Event,
    context::Cx,
    negotiate::{Accepted, Form, Media},
    resource::Source,
    respond,
    stored::Stored,
    table,
};

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchEventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

impl WatchEventType {
    fn name(self) -> &'static str {
        match self {
            WatchEventType::Added => "ADDED",
            WatchEventType::Modified => "MODIFIED",
            WatchEventType::Deleted => "DELETED",
            WatchEventType::Bookmark => "BOOKMARK",
            WatchEventType::Error => "ERROR",
        }
    }
}

/// Encodes events in the negotiated form.
pub(super) struct Encoder {
    accepted: Accepted,
    /// Only the first table has column definitions.
    columns_sent: bool,
    failure: Option<Status>,
}

impl Encoder {
    pub(super) fn new(cx: &Cx) -> Encoder {
        Encoder { accepted: cx.accepted, columns_sent: false, failure: None }
    }

    /// Ends the watch with an ERROR event.
    pub(super) fn fail(&mut self, status: Status) {
        self.failure = Some(status);
    }

    /// The ERROR event of a watch that failed.
    pub(super) fn take_failure(&mut self) -> Option<Bytes> {
        let status = self.failure.take()?;
        let mut out = Vec::new();
        self.frame(
            &mut out,
            WatchEventType::Error,
            &status.to_json(),
            "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
        );
        Some(out.into())
    }

    /// The encoded event that watchers of whole objects in JSON share; `None` for another form.
    pub(super) fn shared_line(
        &self,
        cx: &Cx,
        event: &Event,
        event_type: WatchEventType,
        stored: &Stored,
    ) -> Option<Bytes> {
        let natural = match (&event.old, &event.new) {
            (None, Some(_)) => WatchEventType::Added,
            (Some(_), Some(_)) => WatchEventType::Modified,
            _ => WatchEventType::Deleted,
        };
        if self.accepted != Accepted::JSON || event_type != natural || !cx.resource.shows_as_stored(stored) {
            return None;
        }
        let line = event.line.get_or_init(|| {
            let mut out = Vec::new();
            write_line(&mut out, cx, event_type, stored);
            out.into()
        });
        Some(line.clone())
    }

    /// Appends one event.
    pub(super) fn write(&mut self, cx: &Cx, out: &mut Vec<u8>, event_type: WatchEventType, stored: &Stored) {
        if self.accepted == Accepted::JSON && cx.resource.shows_as_stored(stored) {
            write_line(out, cx, event_type, stored);
            return;
        }
        match cx.resource.read(stored) {
            Ok(value) => self.write_value(cx, out, event_type, &value),
            // An ERROR event would end this watch, and every later one.
            Err(why) => {
                tracing::error!(resource = cx.resource.plural, revision = %stored.revision, %why, "an unreadable object is left out");
            }
        }
    }

    fn write_value(&mut self, cx: &Cx, out: &mut Vec<u8>, event_type: WatchEventType, value: &Value) {
        match self.accepted.form {
            Form::Object => {
                let name = match &cx.resource.source {
                    Source::BuiltIn(built_in) => built_in.kind.ty.name,
                    Source::Custom(_) => "",
                };
                self.frame(out, event_type, value, name);
            }
            Form::Partial | Form::PartialList => {
                let value = respond::partial(self.accepted, value);
                self.frame(
                    out,
                    event_type,
                    &value,
                    "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata",
                );
            }
            Form::Table => {
                let include = table::include(cx).unwrap_or(table::Include::Metadata);
                let meta = json!({"resourceVersion": value["metadata"]["resourceVersion"]});
                let with_columns = !std::mem::replace(&mut self.columns_sent, true);
                let value = table::build(cx, &meta, std::iter::once(value), include, with_columns);
                self.frame(out, event_type, &value, "io.k8s.apimachinery.pkg.apis.meta.v1.Table");
            }
        }
    }

    /// A bookmark: an object of the kind with only a resourceVersion.
    pub(super) fn bookmark(&mut self, cx: &Cx, revision: Revision, initial_events_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_events_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let mut value =
            json!({"kind": cx.resource.kind, "apiVersion": cx.resource.api_version, "metadata": metadata});
        cx.resource.finish(&mut value);
        let mut out = Vec::new();
        self.write_value(cx, &mut out, WatchEventType::Bookmark, &value);
        out.into()
    }

    fn frame(&self, out: &mut Vec<u8>, event_type: WatchEventType, object: &Value, type_name: &str) {
        if self.accepted.media == Media::Protobuf
            && let Some(ty) = k1s_kinds::type_by_name(type_name)
        {
            let (api_version, name) = (object["apiVersion"].as_str(), object["kind"].as_str());
            let encoded = k1s_kinds::protobuf::encode(
                ty,
                object,
                api_version.unwrap_or_default(),
                name.unwrap_or_default(),
            );
            out.extend_from_slice(&k1s_kinds::protobuf::watch_frame(event_type.name(), &encoded));
            return;
        }
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(event_type.name().as_bytes());
        out.extend_from_slice(b"\",\"object\":");
        let _ = serde_json::to_writer(&mut *out, object);
        out.extend_from_slice(b"}\n");
    }
}

fn write_line(out: &mut Vec<u8>, cx: &Cx, event_type: WatchEventType, stored: &Stored) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(event_type.name().as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    stored.write(out, &cx.resource.kind, &cx.resource.api_version);
    out.extend_from_slice(b"}\n");
}
