//! Labels, annotations and label selectors: checked, matched and written as text.

use k1s_object::{At, names};
use serde_json::{Map, Value};

use super::check::messages;

/// How many bytes all annotations together may have.
const ANNOTATIONS_SIZE: usize = 256 * 1024;

/// A map of labels.
pub(super) fn labels(at: At<'_, '_>) {
    for (key, value) in at.entries() {
        for message in names::is_qualified_name(key) {
            at.invalid_as(key, message);
        }
        for message in names::is_valid_label_value(value.text()) {
            at.invalid_as(value.text(), message);
        }
    }
}

/// A map of annotations.
pub(super) fn annotations(at: At<'_, '_>) {
    let mut size = 0_usize;
    for (key, value) in at.entries() {
        for message in names::is_qualified_name(&key.to_lowercase()) {
            at.invalid_as(key, message);
        }
        size = size.saturating_add(key.len()).saturating_add(value.text().len());
    }
    if size > ANNOTATIONS_SIZE {
        at.too_long(ANNOTATIONS_SIZE);
    }
}

/// A label selector. Whether it can be used to select.
pub(super) fn selector(at: At<'_, '_>) -> bool {
    if !at.is_set() {
        return true;
    }
    let before = at.check().count();
    labels(at.get("matchLabels"));
    for expression in at.get("matchExpressions").items() {
        let values = expression.get("values");
        match expression.get("operator").text() {
            "In" | "NotIn" if values.is_empty() => {
                values.required("must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => expression.get("operator").invalid_text("not a valid selector operator"),
        }
        let key = expression.get("key");
        messages(key, names::is_qualified_name(key.text()));
        for value in values.items() {
            messages(value, names::is_valid_label_value(value.text()));
        }
    }
    at.check().count() == before
}

/// Whether a label selector has no requirement.
pub(super) fn is_empty(selector: Option<&Value>) -> bool {
    let empty = |key: &str| match selector.and_then(|selector| selector.get(key)) {
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        _ => true,
    };
    empty("matchLabels") && empty("matchExpressions")
}

/// Whether a label selector selects these labels; a missing one selects nothing, an empty one everything.
pub(super) fn matches(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    let Some(selector) = selector.filter(|selector| selector.is_object()) else { return false };
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    let simple = wanted.is_none_or(|wanted| wanted.iter().all(|(key, value)| label(key) == value.as_str()));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    simple
        && expressions.is_none_or(|list| {
            list.iter().all(|one| {
                let has = label(one.get("key").and_then(Value::as_str).unwrap_or_default());
                let among = || {
                    let values = one.get("values").and_then(Value::as_array);
                    values.is_some_and(|values| values.iter().any(|value| value.as_str() == has))
                };
                match one.get("operator").and_then(Value::as_str).unwrap_or_default() {
                    "In" => has.is_some() && among(),
                    "NotIn" => has.is_none() || !among(),
                    "Exists" => has.is_some(),
                    "DoesNotExist" => has.is_none(),
                    _ => false,
                }
            })
        })
}

/// Whether a plain map of labels selects these labels.
pub(super) fn map_matches(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    let wanted = selector.and_then(Value::as_object);
    wanted.is_none_or(|wanted| {
        wanted.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
    })
}

/// A label selector as text: `app=a,tier in (b,x)`.
pub(super) fn text(selector: Option<&Value>) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    let labels = selector.and_then(|selector| selector.get("matchLabels")).and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    let expressions =
        selector.and_then(|selector| selector.get("matchExpressions")).and_then(Value::as_array);
    for one in expressions.into_iter().flatten() {
        let key = one.get("key").and_then(Value::as_str).unwrap_or_default();
        let values = one.get("values").and_then(Value::as_array);
        let mut values: Vec<&str> = values.into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match one.get("operator").and_then(Value::as_str).unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), text));
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

/// A plain map of labels as text: `app=a,tier=x`.
pub(super) fn map_text(labels: Option<&Map<String, Value>>) -> String {
    let mut parts: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    parts.sort_unstable();
    parts.join(",")
}
