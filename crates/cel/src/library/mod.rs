//! Kubernetes' libraries: functions beyond the standard ones, a module each.
//!
//! The functions themselves are plain functions over Rust's types; each module ends with their declarations. What
//! they cost is upstream's, as all costs decide which rules are accepted.

pub mod authz;
pub mod format;
mod go;
pub mod ip;
mod lists;
mod quantity;
mod regex;
pub mod semver;
mod sets;
pub mod strings;
mod text_format;
pub mod url;

pub(crate) use lists::go_through;

use crate::{
    cost::{CallEstimate, CallNodes, CostEstimate, STRING_FACTOR, SizeEstimate},
    error::EvalError,
    function::Function,
    value::{Opaque, Value},
};

pub(crate) use text_format::wrong_type as format_type_error;

/// The functions that all expressions of Kubernetes 1.37 can call, in every place. The standard functions and the
/// macros are not among them.
pub fn functions() -> Vec<Function> {
    [
        authz::functions(),
        format::functions(),
        ip::functions(),
        lists::functions(),
        quantity::functions(),
        regex::functions(),
        semver::functions(),
        sets::functions(),
        strings::functions(),
        url::functions(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The functions that only mutating admission policies can call beside those.
pub fn json_patch_functions() -> Vec<Function> {
    strings::json_patch_functions()
}

/// A string argument.
fn text<'v>(args: &'v [Value<'_>], index: usize) -> Result<&'v str, EvalError> {
    args.get(index).and_then(Value::as_str).ok_or(EvalError::NoSuchOverload)
}

/// An integer argument.
fn int(args: &[Value<'_>], index: usize) -> Result<i64, EvalError> {
    match args.get(index) {
        Some(Value::Int(value)) => Ok(*value),
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// An argument that is a value of a library.
fn opaque<'v, T: Opaque>(args: &'v [Value<'_>], index: usize) -> Result<&'v T, EvalError> {
    match args.get(index) {
        Some(Value::Opaque(value)) => value.downcast().ok_or(EvalError::NoSuchOverload),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn wrap<'a>(value: impl Opaque) -> Value<'a> {
    Value::Opaque(std::sync::Arc::new(value))
}

/// The size of an argument.
fn size(args: &[Value<'_>], index: usize) -> u64 {
    args.get(index).map_or(0, Value::size)
}

/// A size times a factor, rounded up.
fn scaled(size: u64, factor: f64) -> u64 {
    // A cast of a float ends at the bounds of its type.
    (size as f64 * factor).ceil() as u64
}

/// The cost of looking at each character of the first argument.
fn scan_cost(args: &[Value<'_>], _: &Value<'_>) -> Option<u64> {
    Some(scaled(size(args, 0), STRING_FACTOR))
}

/// The estimated cost of looking at each character of the first argument of a global function.
fn scan_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    Some(CallEstimate::new(nodes.size(nodes.args().first()?).cost(STRING_FACTOR)))
}

/// A cost of 1.
fn unit_cost(_: &[Value<'_>], _: &Value<'_>) -> Option<u64> {
    Some(1)
}

/// An estimated cost of 1.
fn unit_estimate(_: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    Some(CallEstimate::new(CostEstimate::fixed(1)))
}

/// The value of an argument that is an integer literal, 0 if it is negative, and otherwise a default.
fn literal(nodes: &CallNodes<'_, '_>, index: usize, default: u64) -> u64 {
    match nodes.args().get(index).and_then(|node| node.literal()) {
        Some(Value::Int(value)) => u64::try_from(*value).unwrap_or(0),
        _ => default,
    }
}

/// The cost of a call that makes a list: that of the call, of the list, and a factor for each item.
fn list_estimate(factor: f64, items: SizeEstimate) -> CallEstimate {
    let base = CostEstimate::fixed(1 + crate::cost::LIST);
    CallEstimate::sized(items.cost(factor).plus(base), items)
}
