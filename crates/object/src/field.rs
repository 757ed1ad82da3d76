//! Field errors, and positions in a JSON document that know their path.
//!
//! Validation reads a document with [`At`], a position in it. Positions are cheap to copy, and their path is built
//! only for errors. A missing field is a position without a value: like the zero value of Go, its string is empty and
//! its list has no items.
//!
//! ```
//! use k1s_object::field::Check;
//! use serde_json::json;
//!
//! let object = json!({"spec": {"ports": [{"port": 0}]}});
//! let check = Check::new();
//! for port in check.root(&object).get("spec").get("ports").items() {
//!     if port.get("port").int() == Some(0) {
//!         port.get("port").invalid("must be between 1 and 65535, inclusive");
//!     }
//!     if port.get("name").text().is_empty() {
//!         port.get("name").required("");
//!     }
//! }
//! let errors: Vec<String> = check.take().iter().map(ToString::to_string).collect();
//! assert_eq!(
//!     errors,
//!     [
//!         "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
//!         "spec.ports[0].name: Required value",
//!     ]
//! );
//! ```

mod errors;
mod steps;

use std::{cell::RefCell, fmt, fmt::Write as _};

use serde_json::{Map, Value};

use self::steps::{Segment, Steps};
pub use self::{errors::Errors, steps::MAX_LOOKS};

/// The type of a field error; determines its message and the `reason` of the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// `Not found`
    NotFound,
    /// `Required value`
    Required,
    /// `Duplicate value`
    Duplicate,
    /// `Invalid value`
    Invalid,
    /// `Unsupported value`
    NotSupported,
    /// `Forbidden`
    Forbidden,
    /// `Too long`
    TooLong,
    /// `Too many`
    TooMany,
    /// `Internal error`
    Internal,
    /// `Invalid value`, with the reason `FieldValueTypeInvalid`
    TypeInvalid,
    /// Not an error itself: the number of errors beyond the limit.
    Omitted,
}

impl ErrorKind {
    /// The message prefix.
    pub fn words(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "Not found",
            ErrorKind::Required => "Required value",
            ErrorKind::Duplicate => "Duplicate value",
            ErrorKind::Invalid | ErrorKind::TypeInvalid => "Invalid value",
            ErrorKind::NotSupported => "Unsupported value",
            ErrorKind::Forbidden => "Forbidden",
            ErrorKind::TooLong => "Too long",
            ErrorKind::TooMany => "Too many",
            ErrorKind::Internal => "Internal error",
            ErrorKind::Omitted => "",
        }
    }

    /// The `reason` of the cause in a Status.
    pub fn reason(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "FieldValueNotFound",
            ErrorKind::Required => "FieldValueRequired",
            ErrorKind::Duplicate => "FieldValueDuplicate",
            ErrorKind::Invalid => "FieldValueInvalid",
            ErrorKind::NotSupported => "FieldValueNotSupported",
            ErrorKind::Forbidden => "FieldValueForbidden",
            ErrorKind::TooLong => "FieldValueTooLong",
            ErrorKind::TooMany => "FieldValueTooMany",
            ErrorKind::Internal => "InternalError",
            ErrorKind::TypeInvalid => "FieldValueTypeInvalid",
            ErrorKind::Omitted => "",
        }
    }
}

/// The invalid value as the message shows it.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    /// No value is shown.
    Nothing,
    /// The value as JSON: strings quoted, objects and lists compact.
    Json(Value),
    /// This text, unquoted.
    Verbatim(String),
}

/// Maximum number of errors reported for one object; the others are counted. Kubernetes has no such limit, but
/// strict decoding reports at most 100.
pub const MAX_ERRORS: usize = 500;

/// Maximum total size of reported errors in bytes. An error that exceeds it is the last.
pub const MAX_ERROR_BYTES: usize = 256 << 10;

/// Maximum size of a value in a message.
const MAX_SHOWN_BYTES: usize = 64 << 10;

/// Maximum number and size of the supported values in a message.
const MAX_SUPPORTED: usize = 100;
const MAX_SUPPORTED_BYTES: usize = 4 << 10;

/// An error about a field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// Its type.
    pub kind: ErrorKind,
    /// The path: `spec.ports[0].name`; `<nil>` for the object itself where Kubernetes has it.
    pub field: String,
    /// The invalid value.
    pub value: Shown,
    /// What would be valid.
    pub detail: String,
}

impl FieldError {
    /// An error that shows `value`.
    pub fn new(
        kind: ErrorKind,
        field: impl Into<String>,
        value: Shown,
        detail: impl Into<String>,
    ) -> FieldError {
        FieldError { kind, field: field.into(), value, detail: detail.into() }
    }

    /// `Invalid value` showing `value` as JSON.
    pub fn invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> FieldError {
        FieldError::new(ErrorKind::Invalid, field, Shown::Json(value.into()), detail)
    }

    /// `Required value`.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorKind::Required, field, Shown::Nothing, detail)
    }

    /// `Forbidden`.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorKind::Forbidden, field, Shown::Nothing, detail)
    }

    /// `Duplicate value` showing `value` as JSON.
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> FieldError {
        FieldError::new(ErrorKind::Duplicate, field, Shown::Json(value.into()), "")
    }

    /// `Unsupported value` showing `value` and the supported values in this order.
    pub fn not_supported<S: AsRef<str>>(
        field: impl Into<String>,
        value: impl Into<Value>,
        supported: &[S],
    ) -> FieldError {
        let mut detail = String::new();
        for (i, one) in supported.iter().enumerate() {
            detail.push_str(if i == 0 { "supported values: " } else { ", " });
            if i >= MAX_SUPPORTED || detail.len() > MAX_SUPPORTED_BYTES {
                let _ = write!(detail, "and {} more", supported.len() - i);
                break;
            }
            let _ = write!(detail, "{:?}", one.as_ref());
        }
        FieldError::new(ErrorKind::NotSupported, field, Shown::Json(value.into()), detail)
    }

    /// `Too long`: `limit` is in bytes (Kubernetes says bytes also where it counts characters).
    pub fn too_long(field: impl Into<String>, limit: usize) -> FieldError {
        FieldError::new(
            ErrorKind::TooLong,
            field,
            Shown::Nothing,
            format!("may not be more than {limit} {}", if limit == 1 { "byte" } else { "bytes" }),
        )
    }

    /// `Too many`: `count` items where `limit` are allowed.
    pub fn too_many(field: impl Into<String>, count: usize, limit: usize) -> FieldError {
        FieldError::new(
            ErrorKind::TooMany,
            field,
            Shown::Verbatim(count.to_string()),
            format!("must have at most {limit} {}", if limit == 1 { "item" } else { "items" }),
        )
    }

    /// The number of errors beyond those reported.
    pub fn omitted(count: usize) -> FieldError {
        let plural = if count == 1 { "" } else { "s" };
        let detail = format!("and {count} more error{plural}");
        FieldError::new(ErrorKind::Omitted, "", Shown::Json(count.into()), detail)
    }

    /// The approximate size of the error in bytes.
    fn size(&self) -> usize {
        let value = match &self.value {
            Shown::Nothing => 0,
            Shown::Json(value) => size(value),
            Shown::Verbatim(text) => text.len(),
        };
        self.field.len() + self.detail.len() + value
    }

    /// The message of the cause: all but the field.
    pub fn body(&self) -> String {
        if self.kind == ErrorKind::Omitted {
            return self.detail.clone();
        }
        let mut text = String::from(self.kind.words());
        match &self.value {
            Shown::Nothing => {}
            Shown::Json(value) => {
                text.push_str(": ");
                push_cut(&mut text, &shown(value));
            }
            Shown::Verbatim(value) => {
                text.push_str(": ");
                push_cut(&mut text, value);
            }
        }
        if !self.detail.is_empty() {
            let _ = write!(text, ": {}", self.detail);
        }
        text
    }
}

/// Appends a value, truncated.
fn push_cut(out: &mut String, value: &str) {
    match value.get(..value.floor_char_boundary(MAX_SHOWN_BYTES)) {
        Some(beginning) if beginning.len() < value.len() => {
            out.push_str(beginning);
            out.push_str("...");
        }
        _ => out.push_str(value),
    }
}

/// The approximate size of a value as JSON.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| 1 + size(item)).sum::<usize>(),
        Value::Object(map) => 2 + map.iter().map(|(key, value)| 4 + key.len() + size(value)).sum::<usize>(),
        _ => 8,
    }
}

/// Strings as Go quotes them, everything else as compact JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        other => other.to_string(),
    }
}

/// A string in double quotes, escaped as Go's `%q` does.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == ErrorKind::Omitted {
            return f.write_str(&self.detail);
        }
        write!(f, "{}: {}", self.field, self.body())
    }
}

impl std::error::Error for FieldError {}

/// A validation: the errors found, and the positions visited.
#[derive(Debug, Default)]
pub struct Check<'v> {
    steps: RefCell<Steps<'v>>,
    errors: RefCell<Errors>,
    warnings: RefCell<Vec<String>>,
}

/// Maximum number of warnings of a validation; further ones are dropped.
const MAX_WARNINGS: usize = 100;

impl<'v> Check<'v> {
    /// Nothing found yet.
    pub fn new() -> Check<'v> {
        Check::default()
    }

    /// The document itself: its path is empty.
    pub fn root(&self, value: &'v Value) -> At<'_, 'v> {
        At { check: self, step: 0, way: Segment::Root, last: Segment::Root, value: Some(value) }
    }

    /// A position with this value and path, such as `metadata`.
    pub fn at(&self, path: &'v str, value: Option<&'v Value>) -> At<'_, 'v> {
        At { check: self, step: 0, way: Segment::Root, last: Segment::Field(path), value }
    }

    /// Whether the number of visited positions exceeds the limit: from then on lists appear empty.
    fn is_exhausted(&self) -> bool {
        self.steps.borrow().looks > MAX_LOOKS
    }

    /// Adds an error.
    pub fn push(&self, error: FieldError) {
        self.errors.borrow_mut().push(error);
    }

    /// Adds an error, which is built only if it is reported.
    pub fn push_with(&self, make: impl FnOnce() -> FieldError) {
        if self.is_full() {
            self.errors.borrow_mut().omit(1);
        } else {
            // Building it may visit positions of this check.
            let error = make();
            self.push(error);
        }
    }

    /// Adds errors that were collected elsewhere.
    pub fn append(&self, errors: Errors) {
        let Errors { reported, omitted, .. } = errors;
        let mut all = self.errors.borrow_mut();
        all.extend(reported);
        all.omit(omitted);
    }

    /// Whether further errors are only counted, so that expensive ones need not be built.
    pub fn is_full(&self) -> bool {
        self.errors.borrow().is_full()
    }

    /// Whether an error of one of these kinds has been found.
    pub fn has_any(&self, kinds: &[ErrorKind]) -> bool {
        self.errors.borrow().reported.iter().any(|error| kinds.contains(&error.kind))
    }

    /// Adds a warning, which the client gets whether there are errors or not.
    pub fn warn(&self, warning: String) {
        let mut warnings = self.warnings.borrow_mut();
        if warnings.len() < MAX_WARNINGS {
            warnings.push(warning);
        }
    }

    /// Removes and returns the warnings so far.
    pub fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    /// Whether there are no errors so far.
    pub fn is_ok(&self) -> bool {
        self.errors.borrow().is_empty() && !self.is_exhausted()
    }

    /// The number of errors so far.
    pub fn count(&self) -> usize {
        self.errors.borrow().len()
    }

    /// Removes and returns the errors so far. If there are more than the limit, the last one is their number.
    pub fn take(&self) -> Vec<FieldError> {
        let mut errors = self.errors.take().into_vec();
        if self.is_exhausted() {
            let detail = format!(
                "the object has too many items that depend on each other: more than {MAX_LOOKS} steps are needed \
                 to check it"
            );
            errors.insert(0, FieldError::forbidden("<nil>", detail));
        }
        errors
    }

    fn path(&self, step: u32) -> String {
        let steps = self.steps.borrow();
        let mut segments = Vec::new();
        let mut at = step;
        while let Some((parent, segment)) = steps.get(at) {
            segments.push(segment);
            at = parent;
        }
        let mut path = String::new();
        segments.iter().rev().for_each(|segment| segment.write(&mut path));
        path
    }
}

/// A position in a document: a path, and the value there, if any.
#[derive(Debug, Clone, Copy)]
pub struct At<'c, 'v> {
    check: &'c Check<'v>,
    /// The step before the last two segments, so that visiting a field of an item records no step.
    step: u32,
    way: Segment<'v>,
    last: Segment<'v>,
    value: Option<&'v Value>,
}

impl<'c, 'v> At<'c, 'v> {
    /// A position below this one.
    fn child(self, segment: Segment<'v>, value: Option<&'v Value>) -> At<'c, 'v> {
        let mut steps = self.check.steps.borrow_mut();
        steps.looks += 1;
        let step = match self.way {
            Segment::Root => self.step,
            way => steps.find_or_add(self.step, way),
        };
        At { check: self.check, step, way: self.last, last: segment, value }
    }

    /// A field of an object: `spec` to `spec.replicas`.
    pub fn get(self, name: &'v str) -> At<'c, 'v> {
        let value = self.value.and_then(|value| value.get(name));
        self.child(Segment::Field(name), value)
    }

    /// An entry of a map: `labels` to `labels[app]`.
    pub fn key(self, key: &'v str) -> At<'c, 'v> {
        let value = self.value.and_then(|value| value.get(key));
        self.child(Segment::Key(key), value)
    }

    /// An item of a list.
    pub fn index(self, index: usize) -> At<'c, 'v> {
        let value = self.value.and_then(|value| value.get(index));
        self.child(Segment::Index(index), value)
    }

    /// The same path with another value, such as the old one.
    pub fn with(self, value: Option<&'v Value>) -> At<'c, 'v> {
        At { value, ..self }
    }

    /// The items of a list; none if it is missing or not a list.
    pub fn items(self) -> impl Iterator<Item = At<'c, 'v>> {
        let items: &'v [Value] = self.value.and_then(Value::as_array).map_or(&[], Vec::as_slice);
        items
            .iter()
            .enumerate()
            .take_while(move |_| !self.check.is_exhausted())
            .map(move |(i, item)| self.child(Segment::Index(i), Some(item)))
    }

    /// The entries of a map, as `map[key]`.
    pub fn entries(self) -> impl Iterator<Item = (&'v str, At<'c, 'v>)> {
        let entries = self.map().into_iter().flatten().take_while(move |_| !self.check.is_exhausted());
        entries.map(move |(key, value)| (key.as_str(), self.child(Segment::Key(key), Some(value))))
    }

    /// The number of items or entries.
    pub fn len(self) -> usize {
        match self.value {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(map)) => map.len(),
            _ => 0,
        }
    }

    /// Whether the list, map or string is empty or missing.
    pub fn is_empty(self) -> bool {
        self.text().is_empty() && self.len() == 0
    }

    /// The value, `null` included.
    pub fn value(self) -> Option<&'v Value> {
        self.value
    }

    /// Whether the field is present and not null.
    pub fn is_set(self) -> bool {
        !matches!(self.value, None | Some(Value::Null))
    }

    /// The string; None if missing or of another type.
    pub fn str(self) -> Option<&'v str> {
        self.value.and_then(Value::as_str)
    }

    /// The string, empty when missing.
    pub fn text(self) -> &'v str {
        self.str().unwrap_or_default()
    }

    /// The integer.
    pub fn int(self) -> Option<i64> {
        self.value.and_then(Value::as_i64)
    }

    /// The integer, 0 when missing.
    pub fn number(self) -> i64 {
        self.int().unwrap_or_default()
    }

    /// The boolean.
    pub fn bool(self) -> Option<bool> {
        self.value.and_then(Value::as_bool)
    }

    /// Whether it is present and true.
    pub fn is_true(self) -> bool {
        self.bool() == Some(true)
    }

    /// The object.
    pub fn map(self) -> Option<&'v Map<String, Value>> {
        self.value.and_then(Value::as_object)
    }

    /// The path as in messages.
    pub fn path(self) -> String {
        let mut path = self.check.path(self.step);
        self.way.write(&mut path);
        self.last.write(&mut path);
        path
    }

    /// The check that collects the errors.
    pub fn check(self) -> &'c Check<'v> {
        self.check
    }

    fn json(self) -> Value {
        self.value.cloned().unwrap_or(Value::Null)
    }

    /// `Invalid value`, showing the value here (a missing string is shown as `""` by [`At::invalid_text`]).
    pub fn invalid(self, detail: impl Into<String>) {
        self.check.push_with(|| FieldError::invalid(self.path(), self.json(), detail));
    }

    /// `Invalid value`, showing the text here, `""` when missing.
    pub fn invalid_text(self, detail: impl Into<String>) {
        self.check.push_with(|| FieldError::invalid(self.path(), self.text(), detail));
    }

    /// `Invalid value`, showing `value`.
    pub fn invalid_as(self, value: impl Into<Value>, detail: impl Into<String>) {
        self.check.push_with(|| FieldError::invalid(self.path(), value, detail));
    }

    /// `Invalid value`, showing this text unquoted.
    pub fn invalid_verbatim(self, value: impl Into<String>, detail: impl Into<String>) {
        self.check.push_with(|| {
            FieldError::new(ErrorKind::Invalid, self.path(), Shown::Verbatim(value.into()), detail)
        });
    }

    /// `Required value`.
    pub fn required(self, detail: impl Into<String>) {
        self.check.push_with(|| FieldError::required(self.path(), detail));
    }

    /// `Forbidden`.
    pub fn forbidden(self, detail: impl Into<String>) {
        self.check.push_with(|| FieldError::forbidden(self.path(), detail));
    }

    /// `Duplicate value`, showing the value here.
    pub fn duplicate(self) {
        self.check.push_with(|| FieldError::duplicate(self.path(), self.json()));
    }

    /// `Unsupported value`, showing the value here and the supported values in this order.
    pub fn not_supported<S: AsRef<str>>(self, supported: &[S]) {
        self.check.push_with(|| {
            let value = if self.is_set() { self.json() } else { Value::from("") };
            FieldError::not_supported(self.path(), value, supported)
        });
    }

    /// `Not found`, showing the value here.
    pub fn not_found(self) {
        self.check
            .push_with(|| FieldError::new(ErrorKind::NotFound, self.path(), Shown::Json(self.json()), ""));
    }

    /// `Too long`.
    pub fn too_long(self, limit: usize) {
        self.check.push_with(|| FieldError::too_long(self.path(), limit));
    }

    /// `Too many`, counting the items here.
    pub fn too_many(self, limit: usize) {
        self.check.push_with(|| FieldError::too_many(self.path(), self.len(), limit));
    }
}
