//! What expressions can refer to: functions, variables and types.

use std::{collections::HashMap, fmt, sync::Arc};

use crate::{
    function::{Function, Overload},
    types::{ObjectType, Type},
};

/// Functions by name. Shared by all environments that are derived from one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Functions {
    by_name: HashMap<&'static str, Vec<Arc<Overload>>>,
    /// The types of libraries, which are those of their functions' results.
    types: HashMap<Box<str>, Type>,
}

impl Functions {
    /// Adds overloads; one with a known id replaces the other.
    pub(crate) fn add(&mut self, function: Function) {
        let overloads = self.by_name.entry(function.name).or_default();
        for overload in function.overloads {
            if let Type::Opaque(opaque) = &overload.result
                && opaque.1.is_empty()
            {
                self.types.entry(opaque.0.clone()).or_insert_with(|| overload.result.clone());
            }
            match overloads.iter_mut().find(|known| known.id == overload.id) {
                Some(known) => *known = Arc::new(overload),
                None => overloads.push(Arc::new(overload)),
            }
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<(&'static str, &[Arc<Overload>])> {
        self.by_name.get_key_value(name).map(|(name, overloads)| (*name, overloads.as_slice()))
    }
}

/// A variable of an environment.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: Box<str>,
    pub(crate) ty: Type,
}

/// Finds object types by name: those that expressions may construct.
pub(crate) type Resolver = Arc<dyn Fn(&str) -> Option<ObjectType> + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct Declarations {
    pub(crate) functions: Arc<Functions>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) resolvers: Vec<Resolver>,
}

impl fmt::Debug for Declarations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declarations").field("variables", &self.variables).finish_non_exhaustive()
    }
}

impl Declarations {
    /// The variable of a name, and its number.
    pub(crate) fn variable(&self, name: &str) -> Option<(usize, &Variable)> {
        self.variables.iter().enumerate().find(|(_, variable)| &*variable.name == name)
    }

    /// The type of a name.
    pub(crate) fn type_of(&self, name: &str) -> Option<Type> {
        Some(match name {
            "bool" => Type::Bool,
            "bytes" => Type::Bytes,
            "double" => Type::Double,
            "int" => Type::Int,
            "list" => Type::list(Type::Dyn),
            "map" => Type::map(Type::Dyn, Type::Dyn),
            "null_type" => Type::Null,
            "string" => Type::String,
            "type" => Type::Type(None),
            "uint" => Type::Uint,
            "google.protobuf.Duration" => Type::Duration,
            "google.protobuf.Timestamp" => Type::Timestamp,
            "optional_type" => Type::optional(Type::Dyn),
            other => match self.functions.types.get(other) {
                Some(ty) => ty.clone(),
                None => Type::Object(self.resolvers.iter().find_map(|resolve| resolve(other))?),
            },
        })
    }
}
