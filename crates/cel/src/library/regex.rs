//! `find` and `findAll`: what regular expressions match.

use std::sync::Arc;

use ::regex::Regex;

use super::{int, text};
use crate::{
    cost::{CallEstimate, CallNodes, REGEX_FACTOR, STRING_FACTOR, SizeEstimate},
    error::EvalError,
    function::{Function, Overload, Prepared},
    go_regex,
    types::Type,
    value::Value,
};

fn compile(pattern: &str) -> Result<Regex, EvalError> {
    go_regex::compile(pattern).map_err(|error| EvalError::new(format!("Illegal regex: {error}")))
}

/// The first match, or an empty text.
fn find<'a>(regex: &Regex, args: &[Value<'_>]) -> Result<Value<'a>, EvalError> {
    let found = regex.find(text(args, 0)?).map(|found| found.as_str().to_owned());
    Ok(found.unwrap_or_default().into())
}

/// All matches, or the first of them.
fn find_all<'a>(regex: &Regex, args: &[Value<'_>]) -> Result<Value<'a>, EvalError> {
    let limit = if args.len() > 2 { int(args, 2)? } else { -1 };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let text = text(args, 0)?;
    let mut found = Vec::new();
    // Neither Go nor this has an empty match directly after another match.
    found.extend(regex.find_iter(text).take(limit).map(|one| Value::from(one.as_str().to_owned())));
    Ok(Value::list(found))
}

fn pattern_of(constants: &[Option<&Value<'static>>]) -> Result<Option<Regex>, String> {
    match constants.get(1).copied().flatten().and_then(Value::as_str) {
        Some(pattern) => go_regex::compile(pattern).map(Some),
        None => Ok(None),
    }
}

fn prepare_find(constants: &[Option<&Value<'static>>]) -> Result<Option<Prepared>, String> {
    let prepared = |regex: Regex| -> Prepared { Arc::new(move |args| find(&regex, args)) };
    Ok(pattern_of(constants)?.map(prepared))
}

fn prepare_find_all(constants: &[Option<&Value<'static>>]) -> Result<Option<Prepared>, String> {
    let prepared = |regex: Regex| -> Prepared { Arc::new(move |args| find_all(&regex, args)) };
    Ok(pattern_of(constants)?.map(prepared))
}

fn estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    let size = nodes.size(nodes.target()?);
    // An empty text costs as one character, or else the cost of the expression would not count.
    let scan = size.plus(SizeEstimate::fixed(1)).cost(STRING_FACTOR);
    let regex = nodes.size(nodes.args().first()?).cost(REGEX_FACTOR);
    Some(CallEstimate::sized(scan.multiply(regex), SizeEstimate::range(0, size.max)))
}

fn cost(args: &[Value<'_>], _: &Value<'_>) -> Option<u64> {
    let scan = super::scaled(super::size(args, 0).saturating_add(1), STRING_FACTOR);
    Some(scan.saturating_mul(super::scaled(super::size(args, 1), REGEX_FACTOR)))
}

/// The functions of the library `kubernetes.regex`.
pub(super) fn functions() -> Vec<Function> {
    let strings = || Type::list(Type::String);
    vec![
        Function::new(
            "find",
            vec![
                Overload::member("string_find_string", vec![Type::String; 2], Type::String, |args| {
                    find(&compile(text(args, 1)?)?, args)
                })
                .with_cost(estimate, cost)
                .with_prepare(prepare_find),
            ],
        ),
        Function::new(
            "findAll",
            vec![
                Overload::member("string_find_all_string", vec![Type::String; 2], strings(), |args| {
                    find_all(&compile(text(args, 1)?)?, args)
                })
                .with_cost(estimate, cost)
                .with_prepare(prepare_find_all),
                Overload::member(
                    "string_find_all_string_int",
                    vec![Type::String, Type::String, Type::Int],
                    strings(),
                    |args| find_all(&compile(text(args, 1)?)?, args),
                )
                .with_cost(estimate, cost)
                .with_prepare(prepare_find_all),
            ],
        ),
    ]
}
