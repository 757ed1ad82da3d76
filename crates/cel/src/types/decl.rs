//! Declared types: what a schema says about values, beyond their CEL type.

use std::{
    fmt,
    sync::{Arc, LazyLock, OnceLock},
};

use super::Type;

/// The declared type of a value: how its JSON is read, and how large it can be. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DeclType(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    kind: DeclKind,
    cel: Type,
    nullable: bool,
    max_elements: u64,
    min_serialized_size: u64,
}

/// How JSON values of a declared type are read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DeclKind {
    /// Any JSON, read as it is.
    Dyn,
    /// Any JSON, read as Go decodes it without a type: numbers are floating-point, and properties are also found by their
    /// escaped names.
    Decoded,
    /// A string or an integer (`x-kubernetes-int-or-string`).
    IntOrString,
    /// `true` or `false`.
    Bool,
    /// An integer.
    Int,
    /// A number.
    Double,
    /// A string.
    String,
    /// A base64 string (format `byte`).
    Bytes,
    /// A date, read as a timestamp (format `date`).
    Date,
    /// A moment (format `date-time`).
    DateTime,
    /// A duration (format `duration`).
    Duration,
    /// A list.
    List(DeclType, ListType),
    /// A map from strings to values of one type.
    Map(DeclType),
    /// An object with fields.
    Object(ObjectType),
    /// Data without a type (`x-kubernetes-preserve-unknown-fields`): it can only be compared.
    Preserved,
}

/// `x-kubernetes-list-type`: how lists are compared and added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// In order.
    Atomic,
    /// As sets of scalars.
    Set,
    /// As maps, by the named keys (names of JSON properties).
    Map(Arc<[Box<str>]>),
}

impl DeclType {
    fn new(kind: DeclKind, cel: Type, max_elements: u64, min_serialized_size: u64) -> Self {
        Self(Arc::new(Inner { kind, cel, nullable: false, max_elements, min_serialized_size }))
    }

    /// A value of any type.
    pub fn dynamic() -> Self {
        static DYN: LazyLock<DeclType> = LazyLock::new(|| DeclType::new(DeclKind::Dyn, Type::Dyn, 0, 1));
        DYN.clone()
    }

    /// JSON as Go decodes it without a type.
    pub fn decoded() -> Self {
        static DECODED: LazyLock<DeclType> =
            LazyLock::new(|| DeclType::new(DeclKind::Decoded, Type::Dyn, 0, 1));
        DECODED.clone()
    }

    /// `x-kubernetes-int-or-string`, with the maximum length of its string form.
    pub fn int_or_string(max_length: u64) -> Self {
        Self::new(DeclKind::IntOrString, Type::Dyn, max_length, 1)
    }

    /// A boolean.
    pub fn bool() -> Self {
        Self::new(DeclKind::Bool, Type::Bool, 0, 4)
    }

    /// An integer.
    pub fn int() -> Self {
        Self::new(DeclKind::Int, Type::Int, 0, 1)
    }

    /// A number.
    pub fn double() -> Self {
        Self::new(DeclKind::Double, Type::Double, 0, 1)
    }

    /// A string, with its maximum length in bytes.
    pub fn string(max_length: u64) -> Self {
        Self::new(DeclKind::String, Type::String, max_length, 2)
    }

    /// A base64 string, with its maximum length.
    pub fn bytes(max_length: u64) -> Self {
        Self::new(DeclKind::Bytes, Type::Bytes, max_length, 2)
    }

    /// A date.
    pub fn date() -> Self {
        Self::new(DeclKind::Date, Type::Timestamp, 12, 12)
    }

    /// A date and time.
    pub fn date_time() -> Self {
        Self::new(DeclKind::DateTime, Type::Timestamp, 32, 21)
    }

    /// A duration.
    pub fn duration() -> Self {
        Self::new(DeclKind::Duration, Type::Duration, 32, 3)
    }

    /// A list of at most so many items.
    pub fn list(items: Self, max_items: u64, list_type: ListType) -> Self {
        let cel = Type::list(items.cel().clone());
        Self::new(DeclKind::List(items, list_type), cel, max_items, 2)
    }

    /// A map of strings to at most so many values.
    pub fn map(values: Self, max_properties: u64) -> Self {
        let cel = Type::map(Type::String, values.cel().clone());
        Self::new(DeclKind::Map(values), cel, max_properties, 2)
    }

    /// An object, with the length of its shortest JSON.
    pub fn object(object: ObjectType, min_serialized_size: u64) -> Self {
        let cel = Type::Object(object.clone());
        Self::new(DeclKind::Object(object), cel, 0, min_serialized_size)
    }

    /// Data without a type, which rules can only compare as a part of an object.
    pub fn preserved() -> Self {
        Self::new(DeclKind::Preserved, Type::Dyn, 0, 1)
    }

    /// The same type, with `null` as a value.
    #[must_use]
    pub fn nullable(&self) -> Self {
        Self(Arc::new(Inner {
            kind: self.0.kind.clone(),
            cel: self.0.cel.clone(),
            nullable: true,
            max_elements: self.0.max_elements,
            min_serialized_size: self.0.min_serialized_size,
        }))
    }

    /// How JSON of this type is read.
    pub fn kind(&self) -> &DeclKind {
        &self.0.kind
    }

    /// The type of expressions that yield such a value.
    pub fn cel(&self) -> &Type {
        &self.0.cel
    }

    /// Whether `null` is a value.
    pub fn is_nullable(&self) -> bool {
        self.0.nullable
    }

    /// The most characters, items or entries that a value has; 0 for types without a size.
    pub fn max_elements(&self) -> u64 {
        self.0.max_elements
    }

    /// The length of the shortest JSON of a value.
    pub fn min_serialized_size(&self) -> u64 {
        self.0.min_serialized_size
    }

    /// The type at one step of a path of a cost estimate: `@items`, `@values`, `@keys` or a field.
    pub(crate) fn step(&self, name: &str) -> Option<Step<'_>> {
        match (&self.0.kind, name) {
            (DeclKind::List(items, _), "@items" | "@values") => Some(Step::Type(items)),
            (DeclKind::Map(values), "@values" | "@items") => Some(Step::Type(values)),
            (DeclKind::Map(_), "@keys") => Some(Step::Key),
            (DeclKind::Object(object), name) => object.exact_field(name).map(|field| Step::Type(&field.decl)),
            _ => None,
        }
    }
}

/// Where a step of a path leads.
pub(crate) enum Step<'t> {
    Type(&'t DeclType),
    /// To the keys of a map: strings of unknown length.
    Key,
}

/// An object type: a name, and fields that are computed when they are first asked for. Cheap to clone.
#[derive(Clone)]
pub struct ObjectType(Arc<ObjectInner>);

struct ObjectInner {
    name: Box<str>,
    /// Any field, of any type.
    open: bool,
    fields: OnceLock<Fields>,
    load: Box<dyn Fn() -> Vec<Field> + Send + Sync>,
}

/// A field of an object type.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its identifier in expressions: the escaped property name.
    pub name: Box<str>,
    /// The property name in JSON.
    pub json: Box<str>,
    /// Its type.
    pub decl: DeclType,
}

#[derive(Debug, Default)]
struct Fields {
    /// Sorted by `name`.
    by_name: Vec<Field>,
    /// Places in `by_name`, sorted by `json`.
    by_json: Vec<u32>,
}

impl ObjectType {
    /// A type with these fields.
    pub fn new(name: &str, fields: Vec<Field>) -> Self {
        Self::lazy(name, move || fields.clone())
    }

    /// A type whose fields are computed once, when they are first needed. The function must answer the same
    /// each time; types may refer to themselves through it.
    pub fn lazy(name: &str, load: impl Fn() -> Vec<Field> + Send + Sync + 'static) -> Self {
        Self::made(name, false, Box::new(load))
    }

    /// A type whose objects have any fields, of any types.
    pub fn open(name: &str) -> Self {
        Self::made(name, true, Box::new(Vec::new))
    }

    fn made(name: &str, open: bool, load: Box<dyn Fn() -> Vec<Field> + Send + Sync>) -> Self {
        Self(Arc::new(ObjectInner { name: name.into(), open, fields: OnceLock::new(), load }))
    }

    /// The type of a field.
    pub fn field_type(&self, name: &str) -> Option<Type> {
        match self.field(name) {
            Some(field) => Some(field.decl.cel().clone()),
            None => self.0.open.then_some(Type::Dyn),
        }
    }

    /// The name of the type.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    fn fields(&self) -> &Fields {
        self.0.fields.get_or_init(|| {
            let mut by_name = (self.0.load)();
            by_name.sort_by(|one, two| one.name.cmp(&two.name));
            by_name.dedup_by(|one, two| one.name == two.name);
            let mut by_json: Vec<u32> = (0..).take(by_name.len()).collect();
            by_json.sort_by_key(|at| by_name.get(*at as usize).map(|field| field.json.clone()));
            Fields { by_name, by_json }
        })
    }

    /// The field with an identifier.
    pub fn field(&self, name: &str) -> Option<&Field> {
        // Since 1.33, a reserved word also names its property as it is: `self.namespace`.
        self.exact_field(name).or_else(|| {
            let reserved = crate::escape::is_reserved(name);
            reserved.then(|| self.exact_field(&format!("__{name}__"))).flatten()
        })
    }

    /// The field with an identifier. Estimates know fields by this one only.
    fn exact_field(&self, name: &str) -> Option<&Field> {
        let fields = &self.fields().by_name;
        let at = fields.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
        fields.get(at)
    }

    /// The field for a JSON property.
    pub fn property(&self, json: &str) -> Option<&Field> {
        let fields = self.fields();
        let property = |at: &u32| fields.by_name.get(*at as usize);
        let found = fields
            .by_json
            .binary_search_by(|at| property(at).map_or("", |field| &*field.json).cmp(json))
            .ok()?;
        property(fields.by_json.get(found)?)
    }

    /// All fields, sorted by name.
    pub fn all_fields(&self) -> &[Field] {
        &self.fields().by_name
    }

    /// Whether both are the same declaration, not only types of one name.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for ObjectType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the fields: they may lead back to this type.
        write!(f, "ObjectType({})", self.0.name)
    }
}
