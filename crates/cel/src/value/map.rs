//! Maps: of JSON, of constants, or of computed values.

use std::{
    hash::{BuildHasher, Hash, Hasher},
    sync::Arc,
};

use hashbrown::{DefaultHashBuilder, HashTable};
use serde_json::Value as Json;

use super::{Text, Value};
use crate::{
    error::EvalError,
    escape::{escape, unescape},
    types::{DeclKind, DeclType},
};

type JsonMap = serde_json::Map<String, Json>;

/// A map. JSON values become values when they are looked at.
#[derive(Clone, Debug)]
pub struct Map<'a>(Entries<'a>);

#[derive(Clone, Debug)]
enum Entries<'a> {
    Json(&'a JsonMap, Option<&'a DeclType>),
    Constant(&'a MapBuilder<'a>),
    Shared(Arc<MapBuilder<'a>>),
}

/// The key of a map.
#[derive(Clone, Debug)]
pub enum Key<'a> {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer without a sign. It is the same key as the equal `Int`.
    Uint(u64),
    /// A string.
    String(Text<'a>),
}

impl<'a> Key<'a> {
    /// The key that a value is, if it can be one. A whole floating-point number finds the integer.
    pub fn from_value(value: &Value<'a>) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(Self::Bool(*value)),
            Value::Int(value) => Some(Self::Int(*value)),
            Value::Uint(value) => Some(Self::Uint(*value)),
            Value::String(text) => Some(Self::String(text.clone())),
            _ => None,
        }
    }

    /// The key as a value.
    pub fn to_value(&self) -> Value<'a> {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Uint(value) => Value::Uint(*value),
            Self::String(text) => Value::String(text.clone()),
        }
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(one), Self::Bool(two)) => one == two,
            (Self::Int(one), Self::Int(two)) => one == two,
            (Self::Uint(one), Self::Uint(two)) => one == two,
            (Self::Int(int), Self::Uint(uint)) | (Self::Uint(uint), Self::Int(int)) => {
                u64::try_from(*int) == Ok(*uint)
            }
            (Self::String(one), Self::String(two)) => one == two,
            _ => false,
        }
    }
}

impl Eq for Key<'_> {}

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Bool(value) => value.hash(state),
            // The same for an unsigned number, which is an equal key.
            #[allow(clippy::cast_sign_loss)]
            Self::Int(value) => (*value as u64).hash(state),
            Self::Uint(value) => value.hash(state),
            Self::String(text) => (**text).hash(state),
        }
    }
}

/// Entries of a map in the making, and of a map that is complete. They keep their order.
#[derive(Clone, Debug, Default)]
pub struct MapBuilder<'a> {
    entries: Vec<(Key<'a>, Value<'a>)>,
    /// Places in `entries`; empty while there are few.
    index: HashTable<usize>,
    hasher: DefaultHashBuilder,
}

/// Up to so many entries are searched one by one.
const FEW: usize = 8;

impl<'a> MapBuilder<'a> {
    /// The place of a key.
    fn find(&self, key: &Key<'_>) -> Option<usize> {
        if self.entries.len() <= FEW {
            return self.entries.iter().position(|(known, _)| known == key);
        }
        let is_it = |at: &usize| self.entries.get(*at).is_some_and(|(known, _)| known == key);
        self.index.find(self.hasher.hash_one(key), is_it).copied()
    }

    /// The value of a key.
    pub fn get(&self, key: &Key<'_>) -> Option<&Value<'a>> {
        self.entries.get(self.find(key)?).map(|(_, value)| value)
    }

    /// Adds an entry, unless the key is there already: then the answer is `false`.
    pub fn insert(&mut self, key: Key<'a>, value: Value<'a>) -> bool {
        if self.find(&key).is_some() {
            return false;
        }
        self.entries.push((key, value));
        if self.entries.len() > FEW {
            let first = if self.index.is_empty() { 0 } else { self.entries.len() - 1 };
            for at in first..self.entries.len() {
                let (entries, hasher) = (&self.entries, &self.hasher);
                let hash = |at: &usize| entries.get(*at).map_or(0, |(key, _)| hasher.hash_one(key));
                self.index.insert_unique(hash(&at), at, hash);
            }
        }
        true
    }

    /// Adds an entry, or replaces the value of its key.
    pub fn set(&mut self, key: Key<'a>, value: Value<'a>) {
        match self.find(&key).and_then(|at| self.entries.get_mut(at)) {
            Some(entry) => entry.1 = value,
            None => {
                self.insert(key, value);
            }
        }
    }

    /// The map.
    pub fn build(self) -> Map<'a> {
        Map(Entries::Shared(Arc::new(self)))
    }
}

impl<'a> Map<'a> {
    /// A JSON object, with its declared type: of a map or of an object.
    pub fn json(map: &'a JsonMap, decl: Option<&'a DeclType>) -> Self {
        Self(Entries::Json(map, decl))
    }

    /// The same map, without counting references to it.
    pub(crate) fn borrowed(&'a self) -> Self {
        match &self.0 {
            Entries::Shared(map) => Self(Entries::Constant(map)),
            _ => self.clone(),
        }
    }

    fn made(&self) -> Option<&MapBuilder<'a>> {
        match &self.0 {
            Entries::Json(..) => None,
            Entries::Constant(map) => Some(map),
            Entries::Shared(map) => Some(map),
        }
    }

    /// The entries, to add some: a copy, unless nothing else refers to them.
    pub(crate) fn into_builder(self) -> Result<MapBuilder<'a>, EvalError> {
        match self.0 {
            Entries::Shared(map) => Ok(Arc::try_unwrap(map).unwrap_or_else(|shared| (*shared).clone())),
            Entries::Constant(map) => Ok(map.clone()),
            Entries::Json(..) => {
                let mut builder = MapBuilder::default();
                for key in self.keys() {
                    if let Some(value) = self.get(&key) {
                        builder.insert(key, value?);
                    }
                }
                Ok(builder)
            }
        }
    }

    /// The number of entries; for an object, of its JSON properties.
    pub fn len(&self) -> usize {
        match &self.0 {
            Entries::Json(map, _) => map.len(),
            Entries::Constant(map) => map.entries.len(),
            Entries::Shared(map) => map.entries.len(),
        }
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key. Reading JSON that is not of its declared type is an error.
    pub fn get(&self, key: &Key<'_>) -> Option<Result<Value<'a>, EvalError>> {
        match (&self.0, key) {
            (Entries::Json(..), Key::String(name)) => self.field(name),
            // The keys of JSON are strings.
            (Entries::Json(_, Some(decl)), _) if !matches!(decl.kind(), DeclKind::Decoded) => {
                Some(Err(EvalError::NoSuchOverload))
            }
            (Entries::Json(..), _) => None,
            _ => self.made()?.get(key).cloned().map(Ok),
        }
    }

    /// The value of a field of an object, or of a string key.
    pub fn field(&self, name: &str) -> Option<Result<Value<'a>, EvalError>> {
        let Entries::Json(map, decl) = &self.0 else {
            return self.made()?.entries_by_text(name).cloned().map(Ok);
        };
        match decl.map(DeclType::kind) {
            Some(DeclKind::Decoded) => {
                // A name with an escape sequence stands for the property alone.
                let plain = name.contains("__").then(|| unescape(name)).flatten();
                map.get(plain.as_deref().unwrap_or(name)).map(|json| Value::read(json, *decl))
            }
            Some(DeclKind::Object(object)) => {
                let field = object.field(name)?;
                read_field(map, &field.json, &field.decl)
            }
            Some(DeclKind::Map(values)) => map.get(name).map(|json| Value::read(json, Some(values))),
            _ => map.get(name).map(|json| Ok(Value::from_untyped(json))),
        }
    }

    /// The JSON and the declared type of what was read from JSON.
    pub(crate) fn as_json(&self) -> Option<(&'a JsonMap, Option<&'a DeclType>)> {
        match &self.0 {
            Entries::Json(map, decl) => Some((map, *decl)),
            _ => None,
        }
    }

    /// The first entry.
    pub(crate) fn first(&self) -> Option<(Key<'a>, Result<Value<'a>, EvalError>)> {
        let key = match &self.0 {
            Entries::Json(map, None) => Key::String(Text::Borrowed(map.keys().next()?)),
            Entries::Json(..) => self.keys().into_iter().next()?,
            _ => self.made()?.entries.first()?.0.clone(),
        };
        let value = self.get(&key)?;
        Some((key, value))
    }

    /// The keys in order. Of an object: the declared fields that are present.
    pub fn keys(&self) -> Vec<Key<'a>> {
        let Entries::Json(map, decl) = &self.0 else {
            let entries = self.made().map_or(&[][..], |map| &map.entries);
            return entries.iter().map(|(key, _)| key.clone()).collect();
        };
        match decl.map(DeclType::kind) {
            Some(DeclKind::Object(object)) => map
                .iter()
                .filter_map(|(name, _)| {
                    // Most names are their own escaped form, and then belong to the input.
                    let field = object.property(name)?;
                    Some(if *field.name == **name {
                        Key::String(Text::Borrowed(name))
                    } else {
                        Key::String(Text::Shared(escape(name)?.into()))
                    })
                })
                .collect(),
            _ => map.keys().map(|name| Key::String(Text::Borrowed(name))).collect(),
        }
    }
}

impl<'a> MapBuilder<'a> {
    fn entries_by_text(&self, name: &str) -> Option<&Value<'a>> {
        self.get(&Key::String(Text::Borrowed(name)))
    }
}

/// Reads a field of an object. A null of an object is the same as an absent field.
pub(crate) fn read_field<'a>(
    map: &'a JsonMap,
    json_name: &str,
    decl: &'a DeclType,
) -> Option<Result<Value<'a>, EvalError>> {
    let json = map.get(json_name).filter(|json| !json.is_null())?;
    Some(Value::read(json, Some(decl)))
}
