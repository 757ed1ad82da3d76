//! Fields that may not change.

use k1s_object::At;
use serde_json::Value;

use super::{
    equality::same_workload,
    go_values::{go_selector, sorted},
};

/// The detail of an error about a changed field.
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// The same for data of a `ConfigMap` or Secret with `immutable`.
pub(crate) const IMMUTABLE_WHEN_SET: &str = "field is immutable when `immutable` is set";

/// A string that may not change; the error shows the new one.
pub(crate) fn immutable_text(new: At<'_, '_>, old: At<'_, '_>) {
    if new.text() != old.text() {
        new.invalid_text(IMMUTABLE);
    }
}

/// A field of a workload that may not change; the error shows the new value with sorted maps, as Go does.
pub(crate) fn immutable(new: At<'_, '_>, old: Option<&Value>) {
    if !same_workload(new.value(), old) {
        new.invalid_as(new.value().map_or(Value::Null, sorted), IMMUTABLE);
    }
}

/// A label selector that may not change.
pub(crate) fn immutable_selector(new: At<'_, '_>, old: Option<&Value>) {
    if !same_workload(new.value(), old) {
        let set = new.value().filter(|selector| !selector.is_null());
        new.invalid_as(set.map_or(Value::Null, go_selector), IMMUTABLE);
    }
}

/// `Invalid value: null: field is immutable`, the error of declarative validation.
pub(crate) fn report_immutable(at: At<'_, '_>) {
    at.invalid_as(Value::Null, IMMUTABLE);
}
