//! Schemas for structured merge: which values are replaced as a whole, and how list items are identified.

use std::borrow::Cow;

use serde_json::Value;

/// Whether the parts of a list or map are owned one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relationship {
    /// Replaced as a whole, and owned by one manager.
    Atomic,
    /// Items or fields are merged and owned one by one.
    Granular,
}

/// The type of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// An integer or a float.
    Numeric,
    /// A string.
    String,
    /// `true` or `false`.
    Boolean,
    /// Any scalar.
    Untyped,
}

/// A list.
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    /// The type of its items.
    pub element: TypeRef,
    /// Granular lists are sets, or lists of objects that are identified by `keys`.
    pub relationship: Relationship,
    /// The fields that identify an item; empty for a set.
    pub keys: Vec<Cow<'static, str>>,
}

/// A struct or a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Map {
    /// The fields of a struct, sorted by name.
    pub fields: Vec<Field>,
    /// The type of all other keys; `None` if there may be none.
    pub element: Option<TypeRef>,
    /// Whether it is replaced as a whole.
    pub relationship: Relationship,
}

impl Map {
    /// The field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let at = self.fields.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
        self.fields.get(at)
    }

    /// The type of a key.
    pub fn type_of(&self, name: &str) -> Option<TypeRef> {
        self.field(name).map(|field| field.ty).or(self.element)
    }
}

/// A field of a struct.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name in JSON.
    pub name: Cow<'static, str>,
    /// Its type.
    pub ty: TypeRef,
    /// Its default, which identifies list items that omit a key.
    pub default: Option<Value>,
}

/// A type: one shape, or several if its values may be of different kinds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Atom {
    /// Scalars are allowed.
    pub scalar: Option<Scalar>,
    /// Lists are allowed.
    pub list: Option<List>,
    /// Maps are allowed.
    pub map: Option<Map>,
}

impl Atom {
    /// A scalar.
    #[must_use]
    pub fn scalar(scalar: Scalar) -> Atom {
        Atom { scalar: Some(scalar), ..Atom::default() }
    }

    /// A list.
    #[must_use]
    pub fn list(list: List) -> Atom {
        Atom { list: Some(list), ..Atom::default() }
    }

    /// A struct or a map.
    #[must_use]
    pub fn map(map: Map) -> Atom {
        Atom { map: Some(map), ..Atom::default() }
    }
}

/// A type of a [`Schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeId(u32);

/// A reference to a type. A field may say otherwise than its type whether it is replaced as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeRef {
    id: TypeId,
    relationship: Option<Relationship>,
}

impl TypeRef {
    /// The same type with another relationship.
    #[must_use]
    pub fn with(self, relationship: Relationship) -> TypeRef {
        TypeRef { relationship: Some(relationship), ..self }
    }
}

impl From<TypeId> for TypeRef {
    fn from(id: TypeId) -> TypeRef {
        TypeRef { id, relationship: None }
    }
}

/// A set of types that may refer to each other, and so be recursive.
///
/// ```
/// use k1s_apply::schema::{Atom, Field, List, Map, Relationship, Scalar, Schema};
///
/// let mut schema = Schema::new();
/// let string = schema.add(Atom::scalar(Scalar::String));
/// let tags = schema.add(Atom::list(List { element: string.into(), relationship: Relationship::Granular, keys: vec![] }));
/// let field = |name: &'static str, ty| Field { name: name.into(), ty, default: None };
/// let root = schema.add(Atom::map(Map {
///     fields: vec![field("name", string.into()), field("tags", tags.into())],
///     element: None,
///     relationship: Relationship::Granular,
/// }));
/// assert!(schema.atom(root.into()).is_some());
/// ```
#[derive(Debug)]
pub struct Schema {
    types: Vec<Atom>,
}

impl Default for Schema {
    fn default() -> Schema {
        Schema::new()
    }
}

impl Schema {
    /// A schema that has only the deduced and the atomic type.
    #[must_use]
    pub fn new() -> Schema {
        let mut schema = Schema { types: Vec::new() };
        let (deduced, atomic) = (Schema::deduced(), schema.atomic());
        schema.types.push(Atom {
            scalar: Some(Scalar::Untyped),
            list: Some(List { element: atomic, relationship: Relationship::Atomic, keys: Vec::new() }),
            map: Some(Map {
                fields: Vec::new(),
                element: Some(deduced),
                relationship: Relationship::Granular,
            }),
        });
        schema.types.push(Atom {
            scalar: Some(Scalar::Untyped),
            list: Some(List { element: atomic, relationship: Relationship::Atomic, keys: Vec::new() }),
            map: Some(Map { fields: Vec::new(), element: Some(atomic), relationship: Relationship::Atomic }),
        });
        schema
    }

    /// The type of values that are replaced as a whole, whatever they are.
    #[must_use]
    pub fn atomic(&self) -> TypeRef {
        TypeId(1).into()
    }

    /// The type of values without a schema: maps are granular, lists atomic.
    #[must_use]
    pub fn deduced() -> TypeRef {
        TypeId(0).into()
    }

    /// Adds a type.
    pub fn add(&mut self, atom: Atom) -> TypeId {
        let id = TypeId(u32::try_from(self.types.len()).unwrap_or(u32::MAX));
        self.types.push(atom);
        id
    }

    /// Reserves a type that is set later, for types that refer to themselves.
    pub fn reserve(&mut self) -> TypeId {
        self.add(Atom::default())
    }

    /// Sets a reserved type. The fields of a map are sorted.
    pub fn set(&mut self, id: TypeId, atom: Atom) {
        if let Some(slot) = self.types.get_mut(id.0 as usize) {
            *slot = atom;
            if let Some(map) = &mut slot.map {
                map.fields.sort_by(|a, b| a.name.cmp(&b.name));
            }
        }
    }

    /// The shapes of a type.
    pub fn atom(&self, ty: TypeRef) -> Option<&Atom> {
        self.types.get(ty.id.0 as usize)
    }

    /// The shape of a value: the one of its kind if the type has it, else the first of map, scalar and list.
    pub(crate) fn shape(&self, ty: TypeRef, value: Option<&Value>) -> Option<Shape<'_>> {
        let atom = self.atom(ty)?;
        let map =
            || atom.map.as_ref().map(|map| Shape::Map(map, ty.relationship.unwrap_or(map.relationship)));
        // A relationship is that of the map if the type has one.
        let list = || {
            atom.list.as_ref().map(|list| {
                let own = ty.relationship.filter(|_| atom.map.is_none());
                Shape::List(list, own.unwrap_or(list.relationship))
            })
        };
        let scalar = || atom.scalar.map(Shape::Scalar);
        let fitting = match value {
            Some(Value::Number(_) | Value::String(_) | Value::Bool(_)) => scalar(),
            Some(Value::Array(_)) => list(),
            Some(Value::Object(_)) => map(),
            Some(Value::Null) | None => None,
        };
        fitting.or_else(map).or_else(scalar).or_else(list)
    }

    /// Whether two values have the same shape. `null` has all shapes of the type.
    pub(crate) fn same_shape(&self, ty: TypeRef, a: &Value, b: &Value) -> bool {
        let Some(atom) = self.atom(ty) else { return true };
        let kind = |value: &Value| match value {
            Value::Number(_) | Value::String(_) | Value::Bool(_) if atom.scalar.is_some() => 1,
            Value::Array(_) if atom.list.is_some() => 2,
            Value::Object(_) if atom.map.is_some() => 3,
            _ => 0,
        };
        let shapes =
            u8::from(atom.scalar.is_some()) + u8::from(atom.list.is_some()) + u8::from(atom.map.is_some());
        shapes == 1 || kind(a) == kind(b)
    }
}

/// The shape of one value, with its relationship.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape<'a> {
    Scalar(Scalar),
    List(&'a List, Relationship),
    Map(&'a Map, Relationship),
}
