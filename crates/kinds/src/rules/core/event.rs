//! `Event`, one stored object served as core/v1 and events.k8s.io/v1. Errors use the field names of core/v1.

use k1s_object::{At, FieldError, names};
use serde_json::{Map, Value, json};

use crate::rules::{
    FieldLabelError, NameRule, Rules, SelectableField,
    helpers::{equality::same_struct, immutable::IMMUTABLE, json::text_at},
};

/// Field names in events.k8s.io/v1 and core/v1.
const RENAMED: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("reportingController", "reportingComponent"),
];

macro_rules! field {
    ($path:literal, $($name:literal),+) => {
        SelectableField { path: $path, read: |event| text_at(event, &[$($name),+]).to_owned() }
    };
}

/// The rules of core/v1 Event.
pub(in crate::rules) static CORE: Rules = Rules {
    validate: |event| validate(event, false),
    validate_update: |new, _| validate(new, false),
    name: NameRule::PathSegment,
    create_on_update: true,
    fields: &[
        field!("involvedObject.kind", "involvedObject", "kind"),
        field!("involvedObject.namespace", "involvedObject", "namespace"),
        field!("involvedObject.name", "involvedObject", "name"),
        field!("involvedObject.uid", "involvedObject", "uid"),
        field!("involvedObject.apiVersion", "involvedObject", "apiVersion"),
        field!("involvedObject.resourceVersion", "involvedObject", "resourceVersion"),
        field!("involvedObject.fieldPath", "involvedObject", "fieldPath"),
        field!("reason", "reason"),
        field!("reportingComponent", "reportingComponent"),
        SelectableField {
            path: "source",
            read: |event| match text_at(event, &["source", "component"]) {
                "" => text_at(event, &["reportingComponent"]).to_owned(),
                component => component.to_owned(),
            },
        },
        field!("type", "type"),
    ],
    field_error: FieldLabelError::NotSupported,
    ..Rules::PLAIN
};

/// The rules of events.k8s.io/v1 Event.
pub(in crate::rules) static EVENTS: Rules = Rules {
    validate: |event| validate_events(event, None),
    validate_update: |new, old| validate_events(new, Some(old)),
    create_on_update: true,
    fields: &[
        field!("regarding.kind", "regarding", "kind"),
        field!("regarding.namespace", "regarding", "namespace"),
        field!("regarding.name", "regarding", "name"),
        field!("regarding.uid", "regarding", "uid"),
        field!("regarding.apiVersion", "regarding", "apiVersion"),
        field!("regarding.resourceVersion", "regarding", "resourceVersion"),
        field!("regarding.fieldPath", "regarding", "fieldPath"),
        field!("reason", "reason"),
        field!("reportingController", "reportingController"),
        field!("type", "type"),
    ],
    field_error: FieldLabelError::NotSupported,
    ..Rules::PLAIN
};

fn convert(event: &Value, api_version: &str, rename: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Some(event) = event.as_object() else { return event.clone() };
    let mut out = Map::new();
    for (name, value) in event {
        let name = rename(name).unwrap_or(name);
        let value = if name == "apiVersion" { api_version.into() } else { value.clone() };
        out.insert(name.to_owned(), value);
    }
    Value::Object(out)
}

/// The core/v1 view of an events.k8s.io/v1 event.
pub fn to_core(event: &Value) -> Value {
    convert(event, "v1", |name| RENAMED.iter().find(|(events, _)| *events == name).map(|(_, core)| *core))
}

/// The events.k8s.io/v1 view of a core/v1 event.
pub fn to_events(event: &Value) -> Value {
    convert(event, "events.k8s.io/v1", |name| {
        RENAMED.iter().find(|(_, core)| *core == name).map(|(events, _)| *events)
    })
}

/// A field by its name in core/v1, in either version; its path is that of core/v1.
fn field<'c, 'v>(event: At<'c, 'v>, events_view: bool, core: &'static str) -> At<'c, 'v> {
    let renamed = RENAMED.iter().find(|(_, name)| *name == core).filter(|_| events_view);
    match renamed {
        Some((name, _)) => event.get(core).with(event.get(name).value()),
        None => event.get(core),
    }
}

fn validate(event: At<'_, '_>, events_view: bool) {
    let involved = field(event, events_view, "involvedObject").get("namespace");
    let namespace = event.get("metadata").get("namespace").text();
    let mismatch = || involved.invalid_text("does not match event.namespace");
    if !event.get("eventTime").is_set() {
        let right = match involved.text() {
            "" => matches!(namespace, "" | "default"),
            involved => involved == namespace,
        };
        if !right {
            mismatch();
        }
        return;
    }
    if involved.text().is_empty() && !matches!(namespace, "default" | "kube-system") {
        mismatch();
    }
    let controller = field(event, events_view, "reportingComponent");
    // The only field whose error uses the name of its version.
    let controller =
        if events_view { event.get("reportingController").with(controller.value()) } else { controller };
    if controller.text().is_empty() {
        controller.required("");
    }
    for message in names::is_qualified_name(controller.text()) {
        controller.invalid_text(message);
    }
    for name in ["reportingInstance", "action", "reason"] {
        let at = event.get(name);
        if at.text().is_empty() {
            at.required("");
        }
        if at.text().len() > 128 {
            at.invalid_as("", "can have at most 128 characters");
        }
    }
    let message = field(event, events_view, "message");
    if message.text().len() > 1024 {
        message.invalid_as("", "can have at most 1024 characters");
    }
}

fn series(event: At<'_, '_>) {
    let series = event.get("series");
    if series.is_set() {
        if series.get("count").number() < 2 {
            series.get("count").invalid_as("", "should be at least 2");
        }
        if !series.get("lastObservedTime").is_set() {
            series.get("lastObservedTime").required("");
        }
    }
}

fn validate_events(event: At<'_, '_>, old: Option<At<'_, '_>>) {
    validate(event, true);
    match old {
        None => only_new_fields(event),
        Some(old) => unchanged(event, old),
    }
}

fn only_new_fields(event: At<'_, '_>) {
    series(event);
    if !event.get("eventTime").is_set() {
        event.get("eventTime").required("");
    }
    let kind = event.get("type");
    if !matches!(kind.text(), "Normal" | "Warning") {
        kind.invalid_as("", format!("has invalid value: {}", kind.text()));
    }
    for name in ["firstTimestamp", "lastTimestamp"] {
        let at = field(event, true, name);
        if at.is_set() {
            at.invalid_as("", "needs to be unset");
        }
    }
    if field(event, true, "count").number() != 0 {
        field(event, true, "count").invalid_as("", "needs to be unset");
    }
    let source = field(event, true, "source");
    if !source.get("component").text().is_empty() || !source.get("host").text().is_empty() {
        source.invalid_as("", "needs to be unset");
    }
}

fn unchanged(new: At<'_, '_>, old: At<'_, '_>) {
    if !same_struct(new.get("series").value(), old.get("series").value()) {
        series(new);
    }
    for name in [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reason",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingController",
        "reportingInstance",
    ] {
        let (at, before) = (field(new, true, name), field(old, true, name));
        let texts = matches!(name, "reason" | "message" | "type" | "action") || name.starts_with("reporting");
        if texts && at.text() == before.text() || !texts && same_struct(at.value(), before.value()) {
            continue;
        }
        let shown = match name {
            "involvedObject" => reference(at),
            "related" if at.is_set() => reference(at),
            "source" => json!({"Component": at.get("component").text(), "Host": at.get("host").text()}),
            "count" => at.number().into(),
            _ if texts => at.text().into(),
            _ => at.value().cloned().unwrap_or_default(),
        };
        new.check().push(FieldError::invalid(name, shown, IMMUTABLE));
    }
}

/// An object reference as Go prints its struct.
fn reference(at: At<'_, '_>) -> Value {
    let text = |name| at.get(name).text();
    json!({
        "Kind": text("kind"), "Namespace": text("namespace"), "Name": text("name"), "UID": text("uid"),
        "APIVersion": text("apiVersion"), "ResourceVersion": text("resourceVersion"), "FieldPath": text("fieldPath"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing;

    #[test]
    fn one_object_has_two_views() {
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod"},
            "reason": "r", "message": "m", "source": {"component": "c"}, "firstTimestamp": "2024-01-01T00:00:00Z",
            "count": 3, "type": "Normal", "reportingComponent": "x",
        });
        let events = to_events(&core);
        assert_eq!(
            events,
            json!({
                "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
                "regarding": {"kind": "Pod"}, "reason": "r", "note": "m", "deprecatedSource": {"component": "c"},
                "deprecatedFirstTimestamp": "2024-01-01T00:00:00Z", "deprecatedCount": 3, "type": "Normal",
                "reportingController": "x",
            })
        );
        assert_eq!(to_core(&events), core);
    }

    #[test]
    fn the_new_view_asks_for_more() {
        assert_eq!(
            testing::on_create(
                &EVENTS,
                json!({"metadata": {"namespace": "n"}, "regarding": {"namespace": "n"}, "deprecatedCount": 2})
            ),
            [
                "eventTime: Required value",
                "type: Invalid value: \"\": has invalid value: ",
                "count: Invalid value: \"\": needs to be unset",
            ]
        );
        let long = "x".repeat(1025);
        assert_eq!(
            testing::on_create(
                &EVENTS,
                json!({
                    "metadata": {"namespace": "n"}, "eventTime": "2024-01-01T00:00:00.000000Z",
                    "reportingController": "no good", "reportingInstance": "i", "action": "a", "reason": "r",
                    "regarding": {"namespace": "elsewhere"}, "note": long, "type": "Odd",
                })
            ),
            [
                "reportingController: Invalid value: \"no good\": name part must consist of alphanumeric characters, \
                 '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or \
                 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                "message: Invalid value: \"\": can have at most 1024 characters",
                "type: Invalid value: \"\": has invalid value: Odd",
            ]
        );
    }

    #[test]
    fn core_looks_at_the_namespace_alone() {
        let event = |involved: Value| json!({"metadata": {"namespace": "n"}, "involvedObject": involved});
        assert!(testing::on_create(&CORE, event(json!({"namespace": "n"}))).is_empty());
        for involved in [json!({"namespace": "elsewhere"}), json!({})] {
            let shown = involved["namespace"].as_str().unwrap_or_default();
            assert_eq!(
                testing::on_create(&CORE, event(involved.clone())),
                [format!(
                    "involvedObject.namespace: Invalid value: {shown:?}: does not match event.namespace"
                )]
            );
        }
    }

    #[test]
    fn the_new_view_may_change_only_the_series() {
        let old = json!({
            "metadata": {"namespace": "n"}, "eventTime": "2024-01-01T00:00:00.000000Z", "reportingController": "x/y",
            "reportingInstance": "i", "action": "a", "reason": "r", "regarding": {"namespace": "n"}, "note": "m",
        });
        let mut new = old.clone();
        new["note"] = "changed".into();
        new["regarding"]["name"] = "p".into();
        new["series"] = json!({"count": 1});
        assert_eq!(
            testing::on_update(&EVENTS, old.clone(), new),
            [
                "series.count: Invalid value: \"\": should be at least 2",
                "series.lastObservedTime: Required value",
                "involvedObject: Invalid value: {\"Kind\":\"\",\"Namespace\":\"n\",\"Name\":\"p\",\"UID\":\"\",\
                 \"APIVersion\":\"\",\"ResourceVersion\":\"\",\"FieldPath\":\"\"}: field is immutable",
                "message: Invalid value: \"changed\": field is immutable",
            ]
        );
        assert!(testing::on_update(&EVENTS, old.clone(), old).is_empty());
    }
}
