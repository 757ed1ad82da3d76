//! The compiled schema of a version of a custom resource: small, shared, and ready to prune, default and
//! validate objects.
//!
//! The object of a request passes [`Structural::prune`] and [`Structural::default`] when it is decoded,
//! [`Structural::prune_stored`] and [`Structural::default`] when it is read from the store, and
//! [`Structural::validate`] before it is written.

mod compile;
mod default;
mod embedded;
pub(crate) mod formats;
mod list_types;
mod number;
mod prune;
pub(crate) mod rules;
mod unchanged;
mod validate;

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, OnceLock},
};

use regex::Regex;
use serde_json::Value;

pub(crate) use compile::Compiler;
pub use default::DefaultsTooLarge;
use formats::Format;
pub use rules::WORK as RULES_WORK;

/// The type of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// No type is specified.
    Any,
    /// `string`
    String,
    /// `number`
    Number,
    /// `integer`
    Integer,
    /// `boolean`
    Boolean,
    /// `array`
    Array,
    /// `object`
    Object,
}

impl Type {
    /// The name in a schema.
    pub fn name(self) -> &'static str {
        match self {
            Type::Any => "",
            Type::String => "string",
            Type::Number => "number",
            Type::Integer => "integer",
            Type::Boolean => "boolean",
            Type::Array => "array",
            Type::Object => "object",
        }
    }
}

/// `x-kubernetes-list-type`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// The list is replaced as a whole.
    Atomic,
    /// Items are unique.
    Set,
    /// Items are identified by their keys.
    Map,
}

/// `additionalProperties`
#[derive(Debug, Clone)]
pub enum Additional {
    /// Not specified.
    Unsaid,
    /// `additionalProperties: true` or `false`
    Bool(bool),
    /// The schema of other properties.
    Schema(Arc<Structural>),
}

/// A pattern, compiled on first use.
pub(crate) struct Pattern {
    source: Box<str>,
    compiled: OnceLock<Result<Regex, String>>,
}

impl Pattern {
    fn new(source: &str) -> Pattern {
        Pattern { source: source.into(), compiled: OnceLock::new() }
    }

    fn compiled(&self) -> &Result<Regex, String> {
        self.compiled.get_or_init(|| k1s_cel::go_regex::compile(&self.source))
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

/// Value validations. Most schemas have none, so they are allocated separately.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    format: Option<Format>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    multiple_of: Option<f64>,
    exclusive_minimum: bool,
    exclusive_maximum: bool,
    unique_items: bool,
    min_length: Option<i64>,
    max_length: Option<i64>,
    min_items: Option<i64>,
    max_items: Option<i64>,
    min_properties: Option<i64>,
    max_properties: Option<i64>,
    pattern: Option<Arc<Pattern>>,
    values: Box<[Value]>,
    /// The enum as a set, built on first use.
    known_values: OnceLock<HashSet<String>>,
    required: Box<[Arc<str>]>,
    all_of: Box<[Structural]>,
    any_of: Box<[Structural]>,
    one_of: Box<[Structural]>,
    not: Option<Box<Structural>>,
}

/// A compiled schema.
#[derive(Debug)]
pub struct Structural {
    kind: Type,
    nullable: bool,
    int_or_string: bool,
    preserve_unknown: bool,
    embedded: bool,
    atomic_map: bool,
    list_type: Option<ListType>,
    list_keys: Option<Box<[Arc<str>]>>,
    /// Sorted by name.
    properties: Box<[(Arc<str>, Structural)]>,
    additional: Additional,
    items: Option<Arc<Structural>>,
    default: Option<Box<Value>>,
    limits: Option<Box<Limits>>,
    /// `x-kubernetes-validations`; at the root also if only schemas below it have some.
    rules: Option<Box<rules::Rules>>,
}

impl Structural {
    /// Compiles an `openAPIV3Schema` of a valid definition.
    pub fn compile(schema: &Value) -> Structural {
        Compiler::default().compile(schema)
    }

    /// A schema that accepts and preserves everything, for versions without one.
    pub fn permissive() -> Structural {
        let mut schema = Compiler::default().compile(&Value::Object(serde_json::Map::new()));
        schema.preserve_unknown = true;
        schema
    }

    /// The declared type.
    pub fn kind(&self) -> Type {
        self.kind
    }

    /// Whether `null` is accepted.
    pub fn nullable(&self) -> bool {
        self.nullable
    }

    /// Whether unknown fields are preserved.
    pub fn preserves_unknown_fields(&self) -> bool {
        self.preserve_unknown
    }

    /// Whether the value is an embedded object with `apiVersion`, `kind` and `metadata`.
    pub fn is_embedded_resource(&self) -> bool {
        self.embedded
    }

    /// Whether an integer or a string is accepted.
    pub fn is_int_or_string(&self) -> bool {
        self.int_or_string
    }

    /// Whether strings have a format other than that of bytes. Server-side apply accepts any scalar there.
    pub(crate) fn has_text_format(&self) -> bool {
        let format = self.limits.as_ref().and_then(|limits| limits.format.as_ref());
        matches!(format, Some(Format::Text(_, name)) if *name != "byte")
    }

    /// The list type, if specified.
    pub fn list_type(&self) -> Option<ListType> {
        self.list_type
    }

    /// Whether the object is replaced as a whole: `x-kubernetes-map-type: atomic`.
    pub fn is_atomic_map(&self) -> bool {
        self.atomic_map
    }

    /// The key fields of a list of type map.
    pub fn list_map_keys(&self) -> impl Iterator<Item = &str> {
        self.list_keys.iter().flatten().map(AsRef::as_ref)
    }

    /// The schema of a property.
    pub fn property(&self, name: &str) -> Option<&Structural> {
        let at = self.properties.binary_search_by(|(key, _)| key.as_ref().cmp(name)).ok()?;
        self.properties.get(at).map(|(_, schema)| schema)
    }

    /// The properties, sorted by name.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &Structural)> {
        self.properties.iter().map(|(name, schema)| (name.as_ref(), schema))
    }

    /// Additional properties.
    pub fn additional(&self) -> &Additional {
        &self.additional
    }

    /// The schema of the items of a list.
    pub fn items(&self) -> Option<&Structural> {
        self.items.as_deref()
    }

    /// The default value.
    pub fn default_value(&self) -> Option<&Value> {
        self.default.as_deref()
    }

    /// The schema of a field: that of the property, or of additional properties.
    pub fn field(&self, name: &str) -> Option<&Structural> {
        self.property(name).or(match &self.additional {
            Additional::Schema(schema) => Some(schema),
            _ => None,
        })
    }

    /// The approximate memory of this schema in bytes.
    pub fn memory(&self) -> usize {
        let children = self.properties.iter().map(|(_, child)| 16 + child.memory()).sum::<usize>();
        let limits = self.limits.as_ref().map_or(0, |limits| {
            size_of::<Limits>()
                + [&limits.all_of, &limits.any_of, &limits.one_of]
                    .into_iter()
                    .flat_map(|list| list.iter())
                    .map(Structural::memory)
                    .sum::<usize>()
                + limits.required.len() * 16
                + limits.values.len() * size_of::<Value>()
        });
        let additional = match &self.additional {
            Additional::Schema(schema) => schema.memory(),
            _ => 0,
        };
        let written = self.default.as_deref().map_or(0, |value| 4 * value.to_string().len());
        let written = written + self.rules.as_deref().map_or(0, rules::Rules::memory);
        size_of::<Structural>()
            + children
            + limits
            + additional
            + written
            + self.items().map_or(0, Structural::memory)
    }
}
