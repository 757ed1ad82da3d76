//! CEL expressions in the objects of this group.

use k1s_object::field::At;

use crate::expressions::{Compiler, Purpose};

/// Reports why the expression at `at` does not compile.
pub(super) fn check(at: At<'_, '_>, compiler: &Compiler, text: &str, purpose: Purpose) {
    if let Some(fault) = compiler.compile(text, purpose).fault() {
        at.invalid_as(text, fault.to_string());
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
