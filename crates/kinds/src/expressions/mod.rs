//! CEL expressions of admission: match conditions, policies, and their variables.
//!
//! [`Compiler`] compiles the expressions of one object, and an [`Evaluator`] evaluates them with the [`Input`] of a request. Objects are read
//! without a schema, as kube-apiserver does: `object` is a map, and times and quantities are strings.

mod access;
mod compile;
mod conditions;
mod environment;
mod input;
mod typed;

pub use access::AccessConditions;
pub use compile::{Compiled, Compiler, Fault, Purpose};
pub use conditions::{Conditions, Matched};
pub use environment::Scope;
pub use input::{Authorizers, Budget, Evaluator, Failure, Input, OUT_OF_BUDGET};
pub use typed::{TypeCheck, decl_type};
