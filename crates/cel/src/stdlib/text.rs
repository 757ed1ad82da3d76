//! Functions of strings.

use super::operator;
use crate::{
    cost::{REGEX_FACTOR, STRING_FACTOR, scaled},
    error::EvalError,
    function::{Cost, Function, Prepare},
    go_regex,
    types::Type,
    value::Value,
};

type Outcome<'a> = Result<Value<'a>, EvalError>;

pub(super) fn functions() -> Vec<Function> {
    let two = [Type::String, Type::String];
    let member = |name, id, call, cost: Cost| {
        let mut overload = operator(id, &two, Type::Bool, call);
        overload.member = true;
        overload.cost = Some(cost);
        Function::new(name, vec![overload])
    };
    let affix: Cost = |args, _| args.get(1).map(|affix| scaled(affix.size(), STRING_FACTOR));
    let mut matches = member("matches", "matches_string", matches, matching);
    let mut global = matches.overloads.clone();
    for overload in &mut global {
        overload.id = "matches";
        overload.member = false;
    }
    matches.overloads.extend(global);
    matches.overloads.iter_mut().for_each(|overload| overload.prepare = Some(PREPARE));
    vec![
        member(
            "contains",
            "contains_string",
            |args| test(args, |text, part| text.contains(part)),
            |args, _| {
                let cost = |value: &Value<'_>| scaled(value.size(), STRING_FACTOR);
                Some(cost(args.first()?).saturating_mul(cost(args.get(1)?)))
            },
        ),
        member(
            "startsWith",
            "starts_with_string",
            |args| test(args, |text, part| text.starts_with(part)),
            affix,
        ),
        member("endsWith", "ends_with_string", |args| test(args, |text, part| text.ends_with(part)), affix),
        matches,
    ]
}

fn test<'a>(args: &[Value<'a>], holds: fn(&str, &str) -> bool) -> Outcome<'a> {
    match args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(holds(text, part))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn matches<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::String(text), Value::String(pattern)] => {
            let regex = go_regex::compile(pattern).map_err(EvalError::new)?;
            Ok(Value::Bool(regex.is_match(text)))
        }
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// A constant pattern is compiled once.
const PREPARE: Prepare = |args| {
    let Some(Some(Value::String(pattern))) = args.get(1) else { return Ok(None) };
    let regex = go_regex::compile(pattern)?;
    Ok(Some(std::sync::Arc::new(move |args| match args.first() {
        Some(Value::String(text)) => Ok(Value::Bool(regex.is_match(text))),
        _ => Err(EvalError::NoSuchOverload),
    })))
};

fn matching(args: &[Value<'_>], _: &Value<'_>) -> Option<u64> {
    let text = scaled(args.first()?.size().saturating_add(1), STRING_FACTOR);
    let pattern = scaled(args.get(1)?.size(), REGEX_FACTOR);
    Some(text.saturating_mul(pattern))
}
