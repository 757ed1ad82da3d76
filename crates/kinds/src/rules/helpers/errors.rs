//! Field errors that [`At`] has no method for.

use k1s_object::{
    At, Check, FieldError,
    field::{ErrorKind, Shown},
};
use serde_json::Value;

/// One `Invalid value` for each message, showing the text here.
pub(crate) fn invalid_each(at: At<'_, '_>, messages: Vec<String>) {
    for message in messages {
        at.invalid_text(message);
    }
}

/// `Duplicate value`, showing `value`.
pub(crate) fn duplicate(at: At<'_, '_>, value: impl Into<Value>) {
    at.check().push(FieldError::duplicate(at.path(), value));
}

/// `Unsupported value`, showing `value`.
pub(crate) fn not_supported(at: At<'_, '_>, value: impl Into<Value>, supported: &[&str]) {
    at.check().push(FieldError::not_supported(at.path(), value, supported));
}

/// `Too many` for something other than the items at this position.
pub(crate) fn too_many(at: At<'_, '_>, count: usize, limit: usize) {
    at.check().push(FieldError::too_many(at.path(), count, limit));
}

/// `Internal error`.
pub(crate) fn internal(at: At<'_, '_>, detail: impl Into<String>) {
    at.check().push(FieldError::new(ErrorKind::Internal, at.path(), Shown::Nothing, detail));
}

/// `Invalid value` without a value.
pub(crate) fn invalid_omitted(at: At<'_, '_>, detail: impl Into<String>) {
    at.check().push(FieldError::new(ErrorKind::Invalid, at.path(), Shown::Nothing, detail));
}

/// Whether `validate` reports an error for `value`.
pub(crate) fn finds_fault(value: Option<&Value>, validate: impl Fn(At<'_, '_>)) -> bool {
    let Some(value) = value else { return false };
    let check = Check::new();
    validate(check.root(value));
    !check.is_ok()
}
