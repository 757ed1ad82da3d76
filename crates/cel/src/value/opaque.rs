//! Values of libraries, and objects that expressions construct.

use std::{any::Any, fmt};

use super::Value;

/// A value that only the functions of a library understand, such as a quantity or an address.
pub trait Opaque: Any + fmt::Debug + Send + Sync {
    /// The name of its type, as `type(x)` gives it: `kubernetes.Quantity`.
    fn type_name(&self) -> &str;

    /// Whether it equals another opaque value, which may be of another type.
    fn equals(&self, other: &dyn Opaque) -> bool;

    /// The size that costs are computed with.
    fn size(&self) -> u64 {
        1
    }

    /// What `==` with another such value costs, if it is not the usual.
    fn equality_cost(&self) -> Option<u64> {
        None
    }
}

impl dyn Opaque {
    /// The value as the library's own type.
    pub fn downcast<T: Opaque>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// An object that an expression constructed: `Object.spec{replicas: 1}`.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    type_name: Box<str>,
    fields: Vec<(Box<str>, Value<'a>)>,
}

impl<'a> Object<'a> {
    /// An object of a type with these fields, in the order of the expression.
    pub fn new(type_name: &str, fields: Vec<(Box<str>, Value<'a>)>) -> Self {
        Self { type_name: type_name.into(), fields }
    }

    /// The name of its type.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// The fields that were set, by their identifiers.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&str, &Value<'a>)> {
        self.fields.iter().map(|(name, value)| (&**name, value))
    }

    /// The value of a field that was set.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.fields.iter().find(|(known, _)| &**known == name).map(|(_, value)| value)
    }
}
