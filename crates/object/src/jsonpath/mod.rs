//! The `JSONPath` of printer columns and of kubectl: `{.spec.containers[*].image}`.
//!
//! This is the dialect of `k8s.io/client-go/util/jsonpath`, with its errors: fields, wildcards, indexes, slices,
//! unions, filters, recursive descent, and `range`…`end` around several expressions.

mod eval;
mod parse;
mod print;

use std::borrow::Cow;

use serde_json::Value;

pub(crate) use print::shortest_digits;
pub use print::{go_json, print};

/// A node of a path.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Text(String),
    List(Vec<Node>),
    Field(String),
    Identifier(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    Wildcard,
    Recursive,
    Array([Param; 3]),
    Union(Vec<Vec<Node>>),
    Filter { left: Vec<Node>, right: Vec<Node>, operator: String },
}

/// A bound of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Param {
    value: i64,
    known: bool,
    /// Whether this end is implied by a single index.
    derived: bool,
}

/// A template: text with expressions in braces.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    nodes: Vec<Node>,
    allow_missing_keys: bool,
}

impl JsonPath {
    /// Parses a template such as `{.metadata.name}`; the error is Go's.
    pub fn parse(template: &str) -> Result<JsonPath, String> {
        Ok(JsonPath { nodes: parse::template(template)?, allow_missing_keys: false })
    }

    /// Missing fields yield nothing instead of an error.
    #[must_use]
    pub fn allow_missing_keys(mut self) -> JsonPath {
        self.allow_missing_keys = true;
        self
    }

    /// The values found by each expression.
    pub fn find<'v>(&self, value: &'v Value) -> Result<Vec<Vec<Cow<'v, Value>>>, String> {
        eval::find(&self.nodes, self.allow_missing_keys, value)
    }

    /// The template with its expressions replaced by their results.
    pub fn execute(&self, value: &Value) -> Result<String, String> {
        let mut text = String::new();
        for results in self.find(value)? {
            for (i, result) in results.iter().enumerate() {
                if i > 0 {
                    text.push(' ');
                }
                text.push_str(&print(result));
            }
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests;
