//! The types that expressions are checked with.

mod decl;

use std::{fmt, sync::Arc};

pub(crate) use decl::Step;
pub use decl::{DeclKind, DeclType, Field, ListType, ObjectType};

/// A type of CEL. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Type {
    /// The type of an expression with an error; it agrees with every other, so that one mistake is reported once.
    Error,
    /// Anything: checked when the expression runs.
    Dyn,
    /// The type of `null`.
    Null,
    /// `true` and `false`.
    Bool,
    /// Integers of 64 bits.
    Int,
    /// Integers of 64 bits, without a sign.
    Uint,
    /// Floating-point numbers.
    Double,
    /// Unicode text.
    String,
    /// Bytes.
    Bytes,
    /// A span of time.
    Duration,
    /// A moment.
    Timestamp,
    /// A list of items of one type.
    List(Arc<Type>),
    /// A map: key and value.
    Map(Arc<(Type, Type)>),
    /// An object with named fields.
    Object(ObjectType),
    /// A type of a library, by name, with its parameters: `kubernetes.Quantity`, `optional_type(int)`.
    Opaque(Arc<(Box<str>, Vec<Type>)>),
    /// The type of types; of one type if it is known.
    Type(Option<Arc<Type>>),
    /// A type parameter in the declaration of a function.
    Param(Arc<str>),
    /// A type that the checker has yet to find.
    Var(u32),
}

/// The name of CEL's optional type.
pub(crate) const OPTIONAL: &str = "optional_type";

impl Type {
    /// A list of items of a type.
    pub fn list(items: Self) -> Self {
        Self::List(Arc::new(items))
    }

    /// A map of keys of one type to values of another.
    pub fn map(keys: Self, values: Self) -> Self {
        Self::Map(Arc::new((keys, values)))
    }

    /// A type of a library without parameters.
    pub fn opaque(name: &str) -> Self {
        Self::Opaque(Arc::new((name.into(), Vec::new())))
    }

    /// `optional_type(T)`.
    pub fn optional(of: Self) -> Self {
        Self::Opaque(Arc::new((OPTIONAL.into(), vec![of])))
    }

    /// The type of a type.
    pub fn type_of(of: Self) -> Self {
        Self::Type(Some(Arc::new(of)))
    }

    /// A type parameter of a declaration: the same name stands for the same type throughout one overload.
    pub fn param(name: &str) -> Self {
        Self::Param(name.into())
    }

    /// What an optional holds, or `None` for other types.
    pub fn optional_of(&self) -> Option<&Self> {
        match self {
            Self::Opaque(opaque) if &*opaque.0 == OPTIONAL => opaque.1.first(),
            _ => None,
        }
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// The name that values of the type have when an expression runs, such as `google.protobuf.Timestamp`.
    pub fn runtime_name(&self) -> &str {
        match self {
            Self::Error => "error",
            Self::Dyn => "dyn",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Object(object) => object.name(),
            Self::Opaque(opaque) => &opaque.0,
            Self::Type(_) => "type",
            Self::Param(name) => name,
            Self::Var(_) => "_var",
        }
    }

    pub(crate) fn params(&self) -> &[Self] {
        match self {
            Self::List(items) => std::slice::from_ref(items),
            Self::Opaque(opaque) => &opaque.1,
            Self::Type(Some(of)) => std::slice::from_ref(of),
            _ => &[],
        }
    }

    /// Whether two types are the same, down to their parameters.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Map(one), Self::Map(two)) => one.0.same(&two.0) && one.1.same(&two.1),
            (Self::Object(one), Self::Object(two)) => one.name() == two.name(),
            (Self::Param(one), Self::Param(two)) => one == two,
            (Self::Var(one), Self::Var(two)) => one == two,
            (Self::Opaque(one), Self::Opaque(two)) if one.0 != two.0 => false,
            _ => {
                let (one, two) = (self.params(), other.params());
                std::mem::discriminant(self) == std::mem::discriminant(other)
                    && one.len() == two.len()
                    && one.iter().zip(two).all(|(one, two)| one.same(two))
            }
        }
    }
}

/// Types as error messages of the checker name them: `map(string, list(int))`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Map(map) => write!(f, "map({}, {})", map.0, map.1),
            Self::Var(number) => write!(f, "_var{number}"),
            other => {
                f.write_str(other.runtime_name())?;
                for (at, param) in other.params().iter().enumerate() {
                    write!(f, "{}{param}", if at == 0 { "(" } else { ", " })?;
                }
                if other.params().is_empty() { Ok(()) } else { f.write_str(")") }
            }
        }
    }
}
