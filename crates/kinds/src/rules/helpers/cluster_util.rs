//! What the rules of this folder share: filling in, comparing, and the checks that many kinds make.

use k1s_object::{
    field::{At, Check},
    meta::validate_label_name,
    names,
    quantity::Quantity,
};
use serde_json::{Map, Value};

/// A struct that Go holds by value: it is there even when the client left it out.
pub(crate) fn structure<'v>(parent: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    let slot = parent.as_object_mut()?.entry(name).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    slot.is_object().then_some(slot)
}

/// A struct behind a pointer: only when it is there.
pub(crate) fn pointer<'v>(parent: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    parent.get_mut(name).filter(|value| value.is_object())
}

/// The items of a list.
pub(crate) fn items<'v>(parent: &'v mut Value, name: &str) -> impl Iterator<Item = &'v mut Value> + use<'v> {
    parent.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Sets a field that is not there.
pub(crate) fn default(parent: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(map) = parent.as_object_mut()
        && map.get(name).is_none_or(Value::is_null)
    {
        map.insert(name.into(), value.into());
    }
}

/// Sets a field that is not there, or has Go's zero value.
pub(crate) fn default_zero(parent: &mut Value, name: &str, value: impl Into<Value>) {
    let zero = parent
        .get(name)
        .is_none_or(|at| nothing(at) || at.as_i64() == Some(0) || at.as_bool() == Some(false));
    if zero && let Some(map) = parent.as_object_mut() {
        map.insert(name.into(), value.into());
    }
}

/// Takes a field from `old`: what it has there, or nothing.
pub(crate) fn keep(new: &mut Value, old: &Value, name: &str) {
    let Some(new) = new.as_object_mut() else { return };
    match old.get(name) {
        Some(value) => {
            new.insert(name.into(), value.clone());
        }
        None => {
            new.shift_remove(name);
        }
    }
}

/// The metadata that `/status` does not change, taken from `old`.
pub(crate) fn reset_meta_for_status(new: &mut Value, old: &Value) {
    let (Some(meta), Some(before)) = (structure(new, "metadata"), old.get("metadata")) else { return };
    for name in ["deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences"]
    {
        keep(meta, before, name);
    }
}

/// Before an update of `/status` that changes nothing of the metadata.
pub(crate) fn status_alone(new: &mut Value, old: &Value) {
    crate::rules::only_status(new, old);
    reset_meta_for_status(new, old);
}

/// Sets `metadata.generation`.
pub(crate) fn set_generation(object: &mut Value, generation: i64) {
    if let Some(meta) = structure(object, "metadata").and_then(Value::as_object_mut) {
        meta.insert("generation".into(), generation.into());
    }
}

/// The text at a JSON pointer, empty when missing.
pub(crate) fn text_at(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Whether Go would see nothing here: no pointer, no text, no items, no entries.
pub(crate) fn nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Whether two values mean the same: empty lists, maps and texts are as good as missing ones.
pub(crate) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a.filter(|a| !nothing(a)), b.filter(|b| !nothing(b))) {
        (None, None) => true,
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.iter().all(|(key, value)| same(Some(value), b.get(key)))
                && b.iter().all(|(key, value)| a.contains_key(key) || nothing(value))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b)))
        }
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

/// Whether a field is the same in both.
pub(crate) fn unchanged(new: At<'_, '_>, old: At<'_, '_>) -> bool {
    same(new.value(), old.value())
}

/// One `Invalid value` for each message, showing the text here.
pub(crate) fn invalid_each(at: At<'_, '_>, messages: Vec<String>) {
    for message in messages {
        at.invalid_text(message);
    }
}

/// `Unsupported value` when the field is set to anything else.
pub(crate) fn one_of_if_set(at: At<'_, '_>, supported: &[&str]) {
    if at.is_set() && !supported.contains(&at.text()) {
        at.not_supported(supported);
    }
}

/// `must be greater than or equal to 0`, showing 0 for a missing number.
pub(crate) fn non_negative(at: At<'_, '_>) {
    if at.number() < 0 {
        at.invalid("must be greater than or equal to 0");
    }
}

/// `Invalid value: null: field is immutable`: what generated checks say of a field that changed.
pub(crate) fn immutable(at: At<'_, '_>) {
    at.invalid_as(Value::Null, "field is immutable");
}

/// `25%` or a whole number that is not negative.
pub(crate) fn int_or_percent(at: At<'_, '_>) {
    match at.str() {
        Some(text) => {
            let wrong = names::is_valid_percent(text);
            if wrong.is_empty() {
                let digits = text.trim_end_matches('%').trim_start_matches('0');
                if digits.len() > 3 || digits.parse::<u32>().is_ok_and(|percent| percent > 100) {
                    at.invalid_text("must not be greater than 100%");
                }
            }
            invalid_each(at, wrong);
        }
        None => non_negative(at),
    }
}

/// `In` needs values, `Exists` has none; nobody minds operators that nobody knows.
pub(crate) fn values_for_operator(at: At<'_, '_>) {
    match at.get("operator").text() {
        "In" | "NotIn" if at.get("values").is_empty() => {
            at.get("values").required("must be specified when `operator` is 'In' or 'NotIn'");
        }
        "In" | "NotIn" => {}
        "Exists" | "DoesNotExist" if !at.get("values").is_empty() => {
            at.get("values").forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "Exists" | "DoesNotExist" => {}
        _ => {}
    }
}

/// A requirement on labels, with any operator.
pub(crate) fn label_requirement(at: At<'_, '_>) {
    values_for_operator(at);
    validate_label_name(at.get("key"));
    for value in at.get("values").items() {
        invalid_each(value, names::is_valid_label_value(value.text()));
    }
}

/// Whether a selector in store has a value that is no label value.
pub(crate) fn has_invalid_label_value(selector: At<'_, '_>) -> bool {
    selector.get("matchExpressions").items().any(|one| {
        one.get("values").items().any(|value| !names::is_valid_label_value(value.text()).is_empty())
    })
}

/// Whether looking at `value` with `look` finds anything wrong.
pub(crate) fn finds_fault(value: Option<&Value>, look: impl Fn(At<'_, '_>)) -> bool {
    let Some(value) = value else { return false };
    let check = Check::new();
    look(check.root(value));
    !check.is_ok()
}

/// `metav1.Condition`s.
pub(crate) fn conditions(at: At<'_, '_>) {
    let mut seen = std::collections::HashSet::new();
    for condition in at.items() {
        let kind = condition.get("type").text();
        if seen.contains(&kind) {
            condition.check().push(k1s_object::field::FieldError::duplicate(condition.path(), kind));
        }
        seen.insert(kind);
        if kind.is_empty() {
            condition.get("type").required("is required");
        } else {
            invalid_each(condition.get("type"), names::is_qualified_name(kind));
        }
        let status = condition.get("status");
        if status.text().is_empty() {
            status.required("");
        } else {
            one_of_if_set(status, &["False", "True", "Unknown"]);
        }
        if condition.get("observedGeneration").number() < 0 {
            condition.get("observedGeneration").invalid("must be greater than or equal to zero");
        }
        if !condition.get("lastTransitionTime").is_set() {
            condition.get("lastTransitionTime").required("");
        }
        let reason = condition.get("reason");
        if reason.text().is_empty() {
            reason.required("");
        } else {
            invalid_each(reason, names::is_valid_condition_reason(reason.text()));
            if reason.text().len() > 1024 {
                reason.too_long(1024);
            }
        }
        if condition.get("message").text().len() > 32 * 1024 {
            condition.get("message").too_long(32 * 1024);
        }
    }
}

/// The name of a CSI or DRA driver: a DNS subdomain in any case of at most 63 characters.
pub(crate) fn driver_name(at: At<'_, '_>) {
    let name = at.text();
    if name.is_empty() {
        return at.required("");
    }
    if name.len() > 63 {
        at.too_long(63);
    }
    invalid_each(at, names::is_dns1123_subdomain(&name.to_lowercase()));
}

/// Deprecated labels of nodes, and what to say of them.
pub(crate) fn deprecated_node_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#,
        "beta.kubernetes.io/os" => r#"deprecated since v1.14; use "kubernetes.io/os" instead"#,
        "failure-domain.beta.kubernetes.io/region" => {
            r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#
        }
        "beta.kubernetes.io/instance-type" => {
            r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => {
            "deprecated since v1.22; use Taints and Tolerations instead"
        }
        "node-role.kubernetes.io/master" => r#"use "node-role.kubernetes.io/control-plane" instead"#,
        _ => return None,
    })
}

/// A Go struct as its JSON shows it: these fields under Go's names, `null` where there is nothing.
pub(crate) fn go_struct(at: At<'_, '_>, fields: &[(&str, &str)]) -> Value {
    let field = |(name, json): &(&str, &str)| {
        let value = at.value().and_then(|value| value.get(*json)).cloned().unwrap_or(Value::Null);
        ((*name).to_owned(), value)
    };
    Value::Object(fields.iter().map(field).collect())
}

/// The same for a struct whose missing texts are shown as `""`.
pub(crate) fn go_texts(at: At<'_, '_>, fields: &[(&str, &str)]) -> Value {
    let field = |(name, json): &(&str, &str)| {
        let text = at.value().and_then(|value| value.get(*json)).and_then(Value::as_str).unwrap_or_default();
        ((*name).to_owned(), Value::from(text))
    };
    Value::Object(fields.iter().map(field).collect())
}

/// The sign of a quantity: -1, 0 or 1. A missing one is zero.
pub(crate) fn quantity_sign(at: At<'_, '_>) -> i32 {
    at.value().and_then(|value| Quantity::from_json(value).ok()).map_or(0, |quantity| quantity.sign())
}

/// A quantity that is not negative.
pub(crate) fn non_negative_quantity(at: At<'_, '_>) {
    if quantity_sign(at) < 0 {
        at.invalid("must be greater than or equal to 0");
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! What is wrong with an object, as the list of a Status would say it.

    use k1s_object::field::Check;
    use serde_json::Value;

    use crate::rules::Rules;

    fn texts(check: &Check<'_>) -> Vec<String> {
        check.take().iter().map(ToString::to_string).collect()
    }

    /// On create, after defaults and preparation.
    pub(crate) fn on_create(rules: &Rules, mut object: Value) -> Vec<String> {
        (rules.defaults)(&mut object);
        (rules.prepare_create)(&mut object);
        let check = Check::new();
        (rules.validate)(check.root(&object));
        texts(&check)
    }

    /// On update.
    pub(crate) fn on_update(rules: &Rules, mut object: Value, mut old: Value) -> Vec<String> {
        (rules.defaults)(&mut object);
        (rules.defaults)(&mut old);
        (rules.prepare_update)(&mut object, &old);
        let (check, before) = (Check::new(), Check::new());
        (rules.validate_update)(check.root(&object), before.root(&old));
        texts(&check)
    }

    /// On update of `/status`.
    pub(crate) fn on_status(rules: &Rules, mut object: Value, old: &Value) -> Vec<String> {
        (rules.defaults)(&mut object);
        (rules.prepare_status)(&mut object, old);
        let (check, before) = (Check::new(), Check::new());
        (rules.validate_status)(check.root(&object), before.root(old));
        texts(&check)
    }
}
