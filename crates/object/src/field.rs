//! Field errors, and a way through a JSON object that remembers where it is.
//!
//! Rules about objects read a value with [`At`]: a position in a document. A position costs nothing to copy and
//! knows its path only when an error asks for it. A missing field is a position too, with no value: like Go's
//! zero values, its text is empty and its list has no items.
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

use std::{cell::RefCell, fmt, fmt::Write as _};

use serde_json::{Map, Value};

/// What is wrong with a field; the words and the `reason` of a cause follow from it.
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
}

impl ErrorKind {
    /// The words an error of this kind begins with.
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
        }
    }
}

/// The offending value, as the message shows it.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    /// No value is shown.
    Nothing,
    /// The value as JSON: strings quoted, objects and lists compact.
    Json(Value),
    /// These very characters.
    Verbatim(String),
}

/// One thing wrong with one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Where: `spec.ports[0].name`; `<nil>` for the object itself where Kubernetes says so.
    pub field: String,
    /// The value at fault.
    pub value: Shown,
    /// What would be right.
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

    /// `Unsupported value` showing `value` and what is supported, in the order given.
    pub fn not_supported<S: AsRef<str>>(
        field: impl Into<String>,
        value: impl Into<Value>,
        supported: &[S],
    ) -> FieldError {
        let mut detail = String::new();
        for (i, one) in supported.iter().enumerate() {
            detail.push_str(if i == 0 { "supported values: " } else { ", " });
            let _ = write!(detail, "{:?}", one.as_ref());
        }
        FieldError::new(ErrorKind::NotSupported, field, Shown::Json(value.into()), detail)
    }

    /// `Too long`: `limit` is in bytes (Kubernetes says so of characters, too).
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

    /// The message of the cause: everything but the field.
    pub fn body(&self) -> String {
        let mut text = String::from(self.kind.words());
        match &self.value {
            Shown::Nothing => {}
            Shown::Json(value) => {
                let _ = write!(text, ": {}", shown(value));
            }
            Shown::Verbatim(value) => {
                let _ = write!(text, ": {value}");
            }
        }
        if !self.detail.is_empty() {
            let _ = write!(text, ": {}", self.detail);
        }
        text
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
        write!(f, "{}: {}", self.field, self.body())
    }
}

impl std::error::Error for FieldError {}

#[derive(Debug, Clone, Copy)]
enum Segment<'v> {
    Root,
    Field(&'v str),
    Key(&'v str),
    Index(usize),
}

/// The errors found while looking through documents, and the positions looked at.
#[derive(Debug, Default)]
pub struct Check<'v> {
    steps: RefCell<Vec<(u32, Segment<'v>)>>,
    errors: RefCell<Vec<FieldError>>,
}

impl<'v> Check<'v> {
    /// Nothing found yet.
    pub fn new() -> Check<'v> {
        Check::default()
    }

    /// The document itself: its path is empty.
    pub fn root(&self, value: &'v Value) -> At<'_, 'v> {
        self.step(0, Segment::Root, Some(value))
    }

    /// A position that stands for `value`, under a path of its own, such as `metadata`.
    pub fn at(&self, path: &'v str, value: Option<&'v Value>) -> At<'_, 'v> {
        let root = self.step(0, Segment::Root, None);
        self.step(root.step, Segment::Field(path), value)
    }

    /// Adds an error made elsewhere.
    pub fn push(&self, error: FieldError) {
        self.errors.borrow_mut().push(error);
    }

    /// Whether nothing is wrong so far.
    pub fn is_ok(&self) -> bool {
        self.errors.borrow().is_empty()
    }

    /// How many errors there are so far.
    pub fn count(&self) -> usize {
        self.errors.borrow().len()
    }

    /// The errors so far; the check goes on without them.
    pub fn take(&self) -> Vec<FieldError> {
        self.errors.take()
    }

    fn step(&self, parent: u32, segment: Segment<'v>, value: Option<&'v Value>) -> At<'_, 'v> {
        let mut steps = self.steps.borrow_mut();
        let step = u32::try_from(steps.len()).unwrap_or(u32::MAX);
        steps.push((parent, segment));
        At { check: self, step, value }
    }

    fn path(&self, step: u32) -> String {
        let steps = self.steps.borrow();
        let mut segments = Vec::new();
        let mut at = step;
        loop {
            let (parent, segment) = steps[at as usize];
            if matches!(segment, Segment::Root) {
                break;
            }
            segments.push(segment);
            at = parent;
        }
        let mut path = String::new();
        for segment in segments.iter().rev() {
            match segment {
                Segment::Root => {}
                Segment::Field(name) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(name);
                }
                Segment::Key(key) => {
                    let _ = write!(path, "[{key}]");
                }
                Segment::Index(index) => {
                    let _ = write!(path, "[{index}]");
                }
            }
        }
        path
    }
}

/// A position in a document: a value, if there is one, and the way to it.
#[derive(Debug, Clone, Copy)]
pub struct At<'c, 'v> {
    check: &'c Check<'v>,
    step: u32,
    value: Option<&'v Value>,
}

impl<'c, 'v> At<'c, 'v> {
    /// A field of an object: `spec` to `spec.replicas`.
    pub fn get(self, name: &'v str) -> At<'c, 'v> {
        let value = self.value.and_then(|value| value.get(name));
        self.check.step(self.step, Segment::Field(name), value)
    }

    /// An entry of a map: `labels` to `labels[app]`.
    pub fn key(self, key: &'v str) -> At<'c, 'v> {
        let value = self.value.and_then(|value| value.get(key));
        self.check.step(self.step, Segment::Key(key), value)
    }

    /// An item of a list.
    pub fn index(self, index: usize) -> At<'c, 'v> {
        let value = self.value.and_then(|value| value.get(index));
        self.check.step(self.step, Segment::Index(index), value)
    }

    /// The same path with another value, such as the one before an update.
    pub fn with(self, value: Option<&'v Value>) -> At<'c, 'v> {
        At { value, ..self }
    }

    /// The items of a list; none when it is missing or no list.
    pub fn items(self) -> impl Iterator<Item = At<'c, 'v>> {
        let items: &'v [Value] = self.value.and_then(Value::as_array).map_or(&[], Vec::as_slice);
        items
            .iter()
            .enumerate()
            .map(move |(i, item)| self.check.step(self.step, Segment::Index(i), Some(item)))
    }

    /// The entries of a map, as `map[key]`.
    pub fn entries(self) -> impl Iterator<Item = (&'v str, At<'c, 'v>)> {
        self.map().into_iter().flatten().map(move |(key, value)| {
            (key.as_str(), self.check.step(self.step, Segment::Key(key), Some(value)))
        })
    }

    /// How many items or entries there are.
    pub fn len(self) -> usize {
        match self.value {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(map)) => map.len(),
            _ => 0,
        }
    }

    /// Whether there are no items, entries or characters.
    pub fn is_empty(self) -> bool {
        self.text().is_empty() && self.len() == 0
    }

    /// The value, `null` included.
    pub fn value(self) -> Option<&'v Value> {
        self.value
    }

    /// Whether the field is there and not null.
    pub fn is_set(self) -> bool {
        !matches!(self.value, None | Some(Value::Null))
    }

    /// The string, or nothing when it is missing or no string.
    pub fn str(self) -> Option<&'v str> {
        self.value.and_then(Value::as_str)
    }

    /// The string, empty when missing.
    pub fn text(self) -> &'v str {
        self.str().unwrap_or_default()
    }

    /// The whole number.
    pub fn int(self) -> Option<i64> {
        self.value.and_then(Value::as_i64)
    }

    /// The whole number, 0 when missing.
    pub fn number(self) -> i64 {
        self.int().unwrap_or_default()
    }

    /// The truth value.
    pub fn bool(self) -> Option<bool> {
        self.value.and_then(Value::as_bool)
    }

    /// Whether it is there and true.
    pub fn is_true(self) -> bool {
        self.bool() == Some(true)
    }

    /// The object.
    pub fn map(self) -> Option<&'v Map<String, Value>> {
        self.value.and_then(Value::as_object)
    }

    /// The path as messages show it.
    pub fn path(self) -> String {
        self.check.path(self.step)
    }

    /// Where the errors go.
    pub fn check(self) -> &'c Check<'v> {
        self.check
    }

    fn json(self) -> Value {
        self.value.cloned().unwrap_or(Value::Null)
    }

    /// `Invalid value`, showing the value here (a missing string is shown as `""` by [`At::invalid_text`]).
    pub fn invalid(self, detail: impl Into<String>) {
        self.check.push(FieldError::invalid(self.path(), self.json(), detail));
    }

    /// `Invalid value`, showing the text here, `""` when missing.
    pub fn invalid_text(self, detail: impl Into<String>) {
        self.check.push(FieldError::invalid(self.path(), self.text(), detail));
    }

    /// `Invalid value`, showing `value`.
    pub fn invalid_as(self, value: impl Into<Value>, detail: impl Into<String>) {
        self.check.push(FieldError::invalid(self.path(), value, detail));
    }

    /// `Invalid value`, showing these very characters.
    pub fn invalid_verbatim(self, value: impl Into<String>, detail: impl Into<String>) {
        self.check.push(FieldError::new(
            ErrorKind::Invalid,
            self.path(),
            Shown::Verbatim(value.into()),
            detail,
        ));
    }

    /// `Required value`.
    pub fn required(self, detail: impl Into<String>) {
        self.check.push(FieldError::required(self.path(), detail));
    }

    /// `Forbidden`.
    pub fn forbidden(self, detail: impl Into<String>) {
        self.check.push(FieldError::forbidden(self.path(), detail));
    }

    /// `Duplicate value`, showing the value here.
    pub fn duplicate(self) {
        self.check.push(FieldError::duplicate(self.path(), self.json()));
    }

    /// `Unsupported value`, showing the text here, with what is supported in the order given.
    pub fn not_supported<S: AsRef<str>>(self, supported: &[S]) {
        let value = if self.is_set() { self.json() } else { Value::from("") };
        self.check.push(FieldError::not_supported(self.path(), value, supported));
    }

    /// `Not found`, showing the value here.
    pub fn not_found(self) {
        self.check.push(FieldError::new(ErrorKind::NotFound, self.path(), Shown::Json(self.json()), ""));
    }

    /// `Too long`.
    pub fn too_long(self, limit: usize) {
        self.check.push(FieldError::too_long(self.path(), limit));
    }

    /// `Too many`, counting the items here.
    pub fn too_many(self, limit: usize) {
        self.check.push(FieldError::too_many(self.path(), self.len(), limit));
    }
}
