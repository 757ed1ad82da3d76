//! The Common Expression Language, as Kubernetes' API server uses it: expressions are parsed, type-checked with
//! upstream's words for mistakes, estimated with upstream's costs, and evaluated over JSON that is borrowed, not copied.
//! No I/O, no clock, no tasks.
//!
//! The modules: [`types`], types of expressions, and declared types, which are what a schema says about values; [`value`];
//! [`function`], how functions are declared; [`library`], the functions of Kubernetes; [`cost`]; [`error`].

mod check;
pub mod cost;
mod declarations;
mod env;
pub mod error;
mod escape;
mod estimate;
mod eval;
pub mod function;
pub mod go_regex;
pub mod library;
mod stdlib;
mod syntax;
pub mod types;
pub mod value;
mod work;

pub use cost::{CostEstimate, SizeEstimate};
pub use env::{Ast, Env, EnvBuilder};
pub use error::{CompileError, EvalError, Issue};
pub use escape::{escape, unescape};
pub use eval::{Evaluation, Program, Variables};
pub use function::{Function, Overload};
pub use types::{DeclKind, DeclType, Field, ListType, ObjectType, Type};
pub use value::Value;
pub use work::Work;
