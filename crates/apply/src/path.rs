//! Paths to fields.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
};

use serde_json::Value;

use crate::value;

/// One step of a path. Steps are ordered: fields, then keys, then values, then indexes.
#[derive(Debug, Clone)]
pub enum PathElement {
    /// A field of a struct, or a key of a map.
    Field(Box<str>),
    /// An item of a list of objects, by the fields that identify it, sorted by name.
    Key(Box<[(Box<str>, Value)]>),
    /// An item of a set, by its value; boxed, so that elements stay small.
    Value(Box<Value>),
    /// An item of a list, by its position.
    Index(i64),
}

impl PathElement {
    /// A field or a key of a map.
    pub fn field(name: impl Into<Box<str>>) -> PathElement {
        PathElement::Field(name.into())
    }

    /// An item of a list of objects; the fields are sorted by name.
    pub fn key<N: Into<Box<str>>>(fields: impl IntoIterator<Item = (N, Value)>) -> PathElement {
        let mut fields: Vec<(Box<str>, Value)> =
            fields.into_iter().map(|(name, value)| (name.into(), value)).collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        PathElement::Key(fields.into())
    }

    /// An item of a set.
    pub fn value(value: Value) -> PathElement {
        PathElement::Value(Box::new(value))
    }

    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }
}

/// Keys are compared field by field: names first, then values.
fn compare_keys(a: &[(Box<str>, Value)], b: &[(Box<str>, Value)]) -> Ordering {
    for ((name, value), (other_name, other)) in a.iter().zip(b) {
        let order = name.cmp(other_name).then_with(|| value::compare(value, other));
        if order.is_ne() {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

impl Ord for PathElement {
    fn cmp(&self, other: &PathElement) -> Ordering {
        match (self, other) {
            (PathElement::Field(a), PathElement::Field(b)) => a.cmp(b),
            (PathElement::Key(a), PathElement::Key(b)) => compare_keys(a, b),
            (PathElement::Value(a), PathElement::Value(b)) => value::compare(a, b),
            (PathElement::Index(a), PathElement::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &PathElement) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &PathElement) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl Hash for PathElement {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            PathElement::Field(name) => name.hash(state),
            PathElement::Key(fields) => {
                for (name, value) in fields {
                    name.hash(state);
                    value::hash(value, state);
                }
            }
            PathElement::Value(value) => value::hash(value, state),
            PathElement::Index(index) => index.hash(state),
        }
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                let mut text = String::from("[");
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        text.push(',');
                    }
                    text.push_str(name);
                    text.push('=');
                    value::in_path(&mut text, value);
                }
                write!(f, "{text}]")
            }
            PathElement::Value(value) => {
                let mut text = String::new();
                value::in_path(&mut text, value);
                write!(f, "[={text}]")
            }
            PathElement::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A path: `.spec.containers[name="nginx"].image`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

impl Path {
    /// A path of fields.
    pub fn fields<'a>(names: impl IntoIterator<Item = &'a str>) -> Path {
        Path(names.into_iter().map(PathElement::field).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}

impl FromIterator<PathElement> for Path {
    fn from_iter<I: IntoIterator<Item = PathElement>>(elements: I) -> Path {
        Path(elements.into_iter().collect())
    }
}
