//! The values of expressions. They borrow the JSON that they come from, and the program with its constants.

mod bytes;
mod compare;
mod convert;
mod json;
mod list;
mod map;
mod opaque;
mod text;
pub(crate) mod time;

use std::sync::Arc;

pub use bytes::Bytes;
pub(crate) use compare::{add_lists, contains, lookup_key};
pub use list::List;
pub(crate) use map::read_field;
pub use map::{Key, Map, MapBuilder};
pub use opaque::{Object, Opaque};
pub use text::Text;
pub use time::Timestamp;

/// Maximum length in bytes of a string or bytes that an expression makes: more than a request has.
pub const MAX_TEXT: usize = 4 << 20;

/// A value of CEL.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer without a sign.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// Text.
    String(Text<'a>),
    /// Bytes.
    Bytes(Bytes<'a>),
    /// A duration in nanoseconds.
    Duration(i64),
    /// A moment.
    Timestamp(Timestamp),
    /// A list.
    List(List<'a>),
    /// A map, or an object that was read from JSON.
    Map(Map<'a>),
    /// An object that the expression constructed.
    Object(Arc<Object<'a>>),
    /// A type, by its name.
    Type(Text<'a>),
    /// An optional value.
    Optional(Option<Arc<Value<'a>>>),
    /// A value of a library.
    Opaque(Arc<dyn Opaque>),
    /// JSON that expressions cannot look into, only compare.
    Preserved(&'a serde_json::Value),
}

impl<'a> Value<'a> {
    /// A string that the value owns.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    /// A list of values.
    pub fn list(items: Vec<Value<'a>>) -> Self {
        Self::List(List::new(items))
    }

    /// An optional with a value.
    pub fn some(value: Value<'a>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The name of the value's type, as `type(x)` gives it.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Object(object) => object.type_name(),
            Self::Type(_) => "type",
            Self::Optional(_) => crate::types::OPTIONAL,
            Self::Opaque(opaque) => opaque.type_name(),
            Self::Preserved(_) => "unknown",
        }
    }

    /// The size that costs are computed with: characters, bytes, items or entries, and 1 for values without a size.
    pub fn size(&self) -> u64 {
        match self {
            Self::String(text) => text.chars().count() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Optional(Some(value)) => value.size(),
            Self::Opaque(opaque) => opaque.size(),
            _ => 1,
        }
    }
}

impl Value<'static> {
    /// The value again, borrowed: without counting references to what is shared.
    pub(crate) fn borrowed(&self) -> Value<'_> {
        match self {
            Self::String(text) => Value::String(Text::Borrowed(text)),
            Self::Type(name) => Value::Type(Text::Borrowed(name)),
            Self::Bytes(bytes) => Value::Bytes(Bytes::Borrowed(bytes)),
            Self::List(list) => Value::List(list.borrowed()),
            Self::Map(map) => Value::Map(map.borrowed()),
            other => other.clone(),
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::String(Text::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::string(text)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}
