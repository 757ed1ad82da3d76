//! What static cost estimates can ask about the arguments of a call.

use std::sync::Arc;

use super::SizeEstimate;
use crate::{
    types::{DeclType, Step, Type},
    value::Value,
};

/// Knows how large variables and their parts can be.
pub trait SizeEstimator {
    /// The size of what a path leads to, or `None` if nothing is known about it. The first element is a variable; others
    /// are fields, `@items`, `@keys`, `@values` and `@indices`.
    fn size(&self, path: &[Arc<str>], ty: &Type) -> Option<SizeEstimate>;
}

/// Knows no sizes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSizes;

impl SizeEstimator for NoSizes {
    fn size(&self, _: &[Arc<str>], _: &Type) -> Option<SizeEstimate> {
        None
    }
}

/// All variables have one declared type, as `self` and `oldSelf` of a validation rule do.
impl SizeEstimator for DeclType {
    fn size(&self, path: &[Arc<str>], _: &Type) -> Option<SizeEstimate> {
        let (_, steps) = path.split_first()?;
        let mut at = self;
        for (place, name) in steps.iter().enumerate() {
            match at.step(name)? {
                Step::Type(next) => at = next,
                // Nothing is declared about keys, which is not the same as not knowing them.
                Step::Key => return (place + 1 == steps.len()).then_some(SizeEstimate::fixed(0)),
            }
        }
        Some(SizeEstimate::range(0, at.max_elements()))
    }
}

/// An argument of a call.
#[derive(Clone, Debug)]
pub struct Node<'c> {
    pub(crate) path: Option<Vec<Arc<str>>>,
    pub(crate) ty: Type,
    pub(crate) literal: Option<&'c Value<'static>>,
    pub(crate) computed: Option<SizeEstimate>,
}

impl<'c> Node<'c> {
    /// The type of the argument.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The value of the argument, if it is a literal.
    pub fn literal(&self) -> Option<&'c Value<'static>> {
        self.literal
    }

    /// The size that the expression itself shows.
    pub fn computed_size(&self) -> Option<SizeEstimate> {
        self.computed
    }
}

/// A call whose cost is estimated.
#[derive(Clone, Copy)]
pub struct CallNodes<'n, 'c> {
    pub(crate) target: Option<&'n Node<'c>>,
    pub(crate) args: &'n [Node<'c>],
    pub(crate) sizes: &'n dyn SizeEstimator,
}

impl std::fmt::Debug for CallNodes<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallNodes")
            .field("target", &self.target)
            .field("args", &self.args)
            .finish_non_exhaustive()
    }
}

impl<'n, 'c> CallNodes<'n, 'c> {
    /// The receiver of a member function. It is not among the arguments.
    pub fn target(&self) -> Option<&'n Node<'c>> {
        self.target
    }

    /// The arguments.
    pub fn args(&self) -> &'n [Node<'c>] {
        self.args
    }

    /// How large a value can be.
    pub fn size(&self, node: &Node<'_>) -> SizeEstimate {
        node.computed
            .or_else(|| self.sizes.size(node.path.as_deref()?, &node.ty))
            .unwrap_or(SizeEstimate::UNKNOWN)
    }

    /// The items of a list, or what else a type with parameters holds first; `None` for other types.
    pub fn element(&self, list: &Node<'_>) -> Option<Node<'c>> {
        let ty = match &list.ty {
            Type::Map(map) => map.0.clone(),
            other => other.params().first()?.clone(),
        };
        let path = list.path.as_ref().map(|path| {
            let mut path = path.clone();
            path.push("@items".into());
            path
        });
        Some(Node { path, ty, literal: None, computed: None })
    }
}
