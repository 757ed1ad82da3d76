//! Labels, annotations and label selectors.

pub(crate) use k1s_object::meta::{validate_annotations as annotations, validate_labels as labels};
use k1s_object::{
    At,
    selector::{LabelSelector, validate_label_selector},
};
use serde_json::{Map, Value};

/// A label selector. Whether it can be used to select.
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

/// Whether a label selector selects these labels; a missing or wrong one selects nothing, an empty one everything.
pub(crate) fn matches(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    LabelSelector::from_json(selector).is_ok_and(|selector| selector.matches_labels(labels))
}

/// Whether a plain map of labels selects these labels.
pub(crate) fn map_matches(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    let wanted = selector.and_then(Value::as_object);
    wanted.is_none_or(|wanted| {
        wanted.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
    })
}

/// A label selector as text: `app=a,tier in (b,x)`.
pub(crate) fn text(selector: Option<&Value>) -> String {
    LabelSelector::from_json(selector).map(|selector| selector.to_string()).unwrap_or_default()
}

/// A plain map of labels as text: `app=a,tier=x`.
pub(crate) fn map_text(labels: Option<&Map<String, Value>>) -> String {
    let mut parts: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    parts.sort_unstable();
    parts.join(",")
}
