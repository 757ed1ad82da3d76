//! The hook for CEL expressions.
//!
//! This crate has no CEL compiler. The rules pass every expression to a [`Compiler`]; through
//! [`crate::rules::Rules`] that is [`accept_all`]. A server with a CEL compiler calls [`super::validate`] with
//! its own.

use k1s_object::field::{At, ErrorKind, FieldError, Shown};

/// The use of an expression, which decides the variables and the result type it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A match condition: yields a bool.
    MatchCondition,
    /// A variable: yields anything.
    Variable,
    /// A validation: yields a bool.
    Validation,
    /// The message of a validation: yields a string.
    Message,
    /// The value of an audit annotation: yields a string or null.
    AuditAnnotation,
    /// A mutation: yields an object to apply.
    ApplyConfiguration,
    /// A mutation: yields a list of JSON patch operations.
    JsonPatch,
}

/// An expression of an object.
#[derive(Debug, Clone)]
pub struct Expression<'v> {
    /// The expression.
    pub text: &'v str,
    /// Its use.
    pub purpose: Purpose,
    /// Whether it may name `params`.
    pub params: bool,
    /// Whether it may name `authorizer`.
    pub authorizer: bool,
    /// The variables it may name as `variables.x`: name and expression, in order.
    pub variables: Vec<(&'v str, &'v str)>,
}

/// The error in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// `Required value`
    Required(String),
    /// `Invalid value`, showing the expression
    Invalid(String),
    /// `Internal error`
    Internal(String),
}

/// Checks an expression.
pub type Compiler<'a> = &'a dyn Fn(&Expression<'_>) -> Result<(), Fault>;

/// A compiler that accepts everything.
pub fn accept_all(_: &Expression<'_>) -> Result<(), Fault> {
    Ok(())
}

/// Reports the error in `expression` at `at`.
pub(super) fn check(at: At<'_, '_>, compiler: Compiler<'_>, expression: &Expression<'_>) {
    let Err(fault) = compiler(expression) else { return };
    match fault {
        Fault::Required(why) => at.required(why),
        Fault::Invalid(why) => at.invalid_as(expression.text, why),
        Fault::Internal(why) => {
            at.check().push(FieldError::new(ErrorKind::Internal, at.path(), Shown::Nothing, why));
        }
    }
}

/// Whether a variable can have this name.
pub(super) fn is_identifier(name: &str) -> bool {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c == '_' || c.is_ascii_alphabetic())
        && chars.all(|c| c == '_' || c.is_ascii_alphanumeric())
        && !RESERVED.contains(&name)
}
