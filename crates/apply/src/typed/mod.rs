//! Values with a schema: validation, field sets, comparison, merge, removal.

mod atomics;
mod compare;
mod created;
mod field_set;
mod merge;
mod reconcile;
mod remove;
mod validate;

use std::{borrow::Cow, fmt};

use serde_json::Value;

pub use compare::Comparison;
pub(crate) use created::{NotNew, UNOWNED_METADATA};
pub use validate::Duplicates;

use crate::{
    path::PathElement,
    schema::{List, Relationship, Schema, TypeRef},
    value,
};

/// Maximum number of errors: an object may have one for each of its values.
const MAX_ERRORS: usize = 100;
/// Maximum length of the path of an error; elements beyond it are left out.
const MAX_PATH: usize = 4 << 10;

/// An error at a path of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeError {
    /// The path; empty for the value itself.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

/// Why a value does not match its schema.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TypeErrors(pub Vec<TypeError>);

impl TypeErrors {
    fn of(message: impl Into<String>) -> TypeErrors {
        TypeErrors(vec![TypeError { path: String::new(), message: message.into() }])
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds errors, up to a limit.
    fn add(&mut self, other: TypeErrors) {
        let room = MAX_ERRORS.saturating_sub(self.0.len());
        self.0.extend(other.0.into_iter().take(room));
    }

    /// The same errors below an element.
    fn below(mut self, element: &PathElement) -> TypeErrors {
        if !self.0.is_empty() {
            let prefix = element.to_string();
            for error in self.0.iter_mut().filter(|error| error.path.len() + prefix.len() <= MAX_PATH) {
                error.path.insert_str(0, &prefix);
            }
        }
        self
    }

    fn into_result(self) -> Result<(), TypeErrors> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for TypeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |error: &TypeError| match &*error.path {
            "" => error.message.clone(),
            path => format!("{path}: {}", error.message),
        };
        match &*self.0 {
            [error] => f.write_str(&one(error)),
            errors => {
                f.write_str("errors:")?;
                errors.iter().try_for_each(|error| write!(f, "\n  {}", one(error)))
            }
        }
    }
}

impl std::error::Error for TypeErrors {}

/// A value, its schema and its API version.
#[derive(Debug, Clone)]
pub struct Typed<'a> {
    /// The value.
    pub value: Cow<'a, Value>,
    /// The schema that has its type.
    pub schema: &'a Schema,
    /// Its type.
    pub ty: TypeRef,
    /// Its API version: `apps/v1`.
    pub version: Cow<'a, str>,
}

impl<'a> Typed<'a> {
    /// A value of a type.
    pub fn new(value: &'a Value, schema: &'a Schema, ty: TypeRef, version: &'a str) -> Typed<'a> {
        Typed { value: Cow::Borrowed(value), schema, ty, version: Cow::Borrowed(version) }
    }

    /// Another value of the same type.
    #[must_use]
    pub fn with(&self, value: Value) -> Typed<'a> {
        Typed { value: Cow::Owned(value), schema: self.schema, ty: self.ty, version: self.version.clone() }
    }
}

/// The path element of a list item.
pub(crate) fn item_element(schema: &Schema, list: &List, item: &Value) -> Result<PathElement, String> {
    if list.keys.is_empty() {
        return match item {
            Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
            Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
            scalar => Ok(PathElement::value(scalar.clone())),
        };
    }
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err("associative list with keys may not have a null element".into()),
        _ => return Err("associative list with keys may not have non-map elements".into()),
    };
    let mut fields: Vec<(Box<str>, Value)> = Vec::with_capacity(list.keys.len());
    for key in &list.keys {
        if let Some(value) = map.get(&**key) {
            fields.push(((**key).into(), value.clone()));
            continue;
        }
        let Some(element) = schema.atom(list.element).and_then(|atom| atom.map.as_ref()) else {
            return Err(format!(
                "couldn't find default value for {key}: associative list may not have non-map types"
            ));
        };
        if let Some(default) = element.field(key).and_then(|field| field.default.as_ref()) {
            fields.push(((**key).into(), default.clone()));
        }
    }
    if fields.is_empty() {
        let mut keys = Vec::new();
        for key in &list.keys {
            let mut text = String::new();
            value::quote(&mut text, key);
            keys.push(text);
        }
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            keys.join(" ")
        ));
    }
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(PathElement::Key(fields.into()))
}

/// Sorts items by their path element; items with the same one keep their order.
fn sort_by_element(items: &mut [(PathElement, &Value)]) {
    if !items.is_sorted_by(|a, b| a.0 <= b.0) {
        items.sort_by(|a, b| a.0.cmp(&b.0));
    }
}

/// The items of a list; nothing for `null` and other values.
fn items(value: Option<&Value>) -> Option<&[Value]> {
    value.and_then(Value::as_array).map(Vec::as_slice)
}

/// Whether a list or map is compared, merged and owned as a whole: if it is atomic, or empty on both sides.
fn is_leaf(relationship: Relationship, left_empty: bool, right_empty: bool) -> bool {
    relationship == Relationship::Atomic || (left_empty && right_empty)
}
