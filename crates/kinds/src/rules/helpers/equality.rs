//! Equality of values in the sense of `equality.Semantic.DeepEqual`: a nil slice equals an empty one.
//!
//! JSON does not tell a nil pointer from a missing value, so what counts as missing depends on the Go types that are
//! compared; each function here states its assumption.

use k1s_object::At;
use serde_json::Value;

/// Equality where `missing` tells, by field name and value, which values equal a missing one.
fn same_by(key: &str, a: Option<&Value>, b: Option<&Value>, missing: fn(&str, &Value) -> bool) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(one), None) | (None, Some(one)) => missing(key, one),
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.iter().all(|(key, value)| same_by(key, Some(value), b.get(key), missing))
                && b.iter().all(|(key, value)| a.contains_key(key) || missing(key, value))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_by("", Some(a), Some(b), missing))
        }
        (Some(a), Some(b)) => a == b || (missing(key, a) && missing(key, b)),
    }
}

/// Equality where empty strings, lists and objects equal missing ones: numbers and booleans are pointers.
pub(crate) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    same_by("", a, b, |_, value| super::json::is_empty(value))
}

/// [`same`] for the values at two positions.
pub(crate) fn unchanged(new: At<'_, '_>, old: At<'_, '_>) -> bool {
    same(new.value(), old.value())
}

/// Equality where only empty lists and objects equal missing ones: strings, too, are pointers.
pub(crate) fn same_pointers(a: Option<&Value>, b: Option<&Value>) -> bool {
    fn missing(_: &str, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.values().all(|value| missing("", value)),
            _ => false,
        }
    }
    same_by("", a, b, missing)
}

/// Equality where all zero values equal missing ones: nothing is a pointer.
pub(crate) fn same_struct(a: Option<&Value>, b: Option<&Value>) -> bool {
    fn missing(_: &str, value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(false) => true,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.values().all(|value| missing("", value)),
            Value::Bool(true) => false,
        }
    }
    same_by("", a, b, missing)
}

/// Fields of pods and workloads that are pointers in Go: `0` and `false` differ from a missing field.
const POINTERS: [&str; 36] = [
    "activeDeadlineSeconds",
    "allowPrivilegeEscalation",
    "automountServiceAccountToken",
    "backoffLimit",
    "backoffLimitPerIndex",
    "completions",
    "defaultMode",
    "enableServiceLinks",
    "expirationSeconds",
    "failedJobsHistoryLimit",
    "fsGroup",
    "hostProcess",
    "hostUsers",
    "manualSelector",
    "maxFailedIndexes",
    "maxSurge",
    "maxUnavailable",
    "minDomains",
    "mode",
    "optional",
    "parallelism",
    "partition",
    "priority",
    "privileged",
    "progressDeadlineSeconds",
    "readOnlyRootFilesystem",
    "replicas",
    "revisionHistoryLimit",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "suspend",
    "terminationGracePeriodSeconds",
    "tolerationSeconds",
];

/// Equality of pods, templates and workloads: zero values equal missing ones, except in the pointers among their
/// fields.
pub(crate) fn same_workload(a: Option<&Value>, b: Option<&Value>) -> bool {
    fn missing(key: &str, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Bool(value) => !value && !POINTERS.contains(&key),
            Value::Number(number) => number.as_i64() == Some(0) && !POINTERS.contains(&key),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
        }
    }
    same_by("", a, b, missing)
}

/// [`same_workload`] for one field of two objects.
pub(crate) fn same_workload_field(a: &Value, b: &Value, key: &str) -> bool {
    same_workload(a.get(key), b.get(key))
}
