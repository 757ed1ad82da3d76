//! Text becomes a tree: tokens, the parser, and macros, which the parser expands.

pub(crate) mod ast;
mod lexer;
mod literal;
mod macros;
mod operand;
mod parser;
mod recover;

pub(crate) use macros::Macros;
pub(crate) use parser::{Parsed, Places, parse};
