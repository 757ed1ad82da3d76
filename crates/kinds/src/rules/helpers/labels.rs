//! Labels, annotations and label selectors.

pub(crate) use k1s_object::meta::{validate_annotations as annotations, validate_labels as labels};
use k1s_object::{
    At,
    meta::validate_label_name,
    names,
    selector::{LabelSelector, validate_label_selector},
};
use serde_json::{Map, Value};

use super::errors::invalid_each;

/// A label selector. Returns whether it is valid.
pub(crate) fn selector(at: At<'_, '_>) -> bool {
    let before = at.check().count();
    validate_label_selector(at, false);
    at.check().count() == before
}

/// Whether a label selector has no requirement.
pub(crate) fn is_empty(selector: Option<&Value>) -> bool {
    let empty = |key: &str| match selector.and_then(|selector| selector.get(key)) {
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        _ => true,
    };
    empty("matchLabels") && empty("matchExpressions")
}

/// Whether a label selector matches these labels; a missing or invalid one matches nothing, an empty one everything.
pub(crate) fn matches(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    LabelSelector::from_json(selector).is_ok_and(|selector| selector.matches_labels(labels))
}

/// Whether a selector that is a plain map matches these labels.
pub(crate) fn map_matches(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    let wanted = selector.and_then(Value::as_object);
    wanted.is_none_or(|wanted| {
        wanted.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
    })
}

/// A label selector as a string: `app=a,tier in (b,x)`.
pub(crate) fn text(selector: Option<&Value>) -> String {
    LabelSelector::from_json(selector).map(|selector| selector.to_string()).unwrap_or_default()
}

/// A selector that is a plain map as a string: `app=a,tier=x`.
pub(crate) fn map_text(labels: Option<&Map<String, Value>>) -> String {
    let mut parts: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    parts.sort_unstable();
    parts.join(",")
}

/// `In` needs values, `Exists` must have none. Unknown operators are accepted.
pub(crate) fn values_for_operator(at: At<'_, '_>) {
    match at.get("operator").text() {
        "In" | "NotIn" if at.get("values").is_empty() => {
            at.get("values").required("must be specified when `operator` is 'In' or 'NotIn'");
        }
        "In" | "NotIn" => {}
        "Exists" | "DoesNotExist" if !at.get("values").is_empty() => {
            at.get("values").forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        _ => {}
    }
}

/// A requirement on labels; the operator is not checked.
pub(crate) fn label_requirement(at: At<'_, '_>) {
    values_for_operator(at);
    validate_label_name(at.get("key"));
    for value in at.get("values").items() {
        invalid_each(value, names::is_valid_label_value(value.text()));
    }
}

/// Whether a stored selector has a value that is not a valid label value.
pub(crate) fn has_invalid_label_value(selector: At<'_, '_>) -> bool {
    selector.get("matchExpressions").items().any(|one| {
        one.get("values").items().any(|value| !names::is_valid_label_value(value.text()).is_empty())
    })
}
