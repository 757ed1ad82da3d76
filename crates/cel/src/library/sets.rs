//! Lists as sets: CEL's extension library `sets`.

use super::size;
use crate::{
    cost::{CallEstimate, CallNodes, CostEstimate},
    error::EvalError,
    function::{Call, CallWithin, Function, Overload},
    types::Type,
    value::{List, Value},
    work::{self, Work},
};

/// More comparisons cost more than any expression may.
const MAX_COMPARISONS: usize = 100_000_000;

fn lists<'v, 'a>(args: &'v [Value<'a>]) -> Result<(&'v List<'a>, &'v List<'a>), EvalError> {
    match args {
        [Value::List(one), Value::List(two)] => {
            if one.len().saturating_mul(two.len()) > MAX_COMPARISONS {
                return Err(EvalError::CostLimit);
            }
            Ok((one, two))
        }
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// Whether a list has an item. An item that cannot be compared is an error if no other is equal.
fn has<'a>(list: &List<'a>, wanted: &Value<'a>, work: &Work) -> Result<bool, EvalError> {
    let mut failed = None;
    for item in list.iter() {
        match item.and_then(|item| item.equals_within(wanted, work)) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(EvalError::CostLimit) => return Err(EvalError::CostLimit),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(false), Err)
}

fn contains<'a>(list: &List<'a>, part: &List<'a>, work: &Work) -> Result<bool, EvalError> {
    for item in part.iter() {
        if !has(list, &item?, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects<'a>(one: &List<'a>, two: &List<'a>, work: &Work) -> Result<bool, EvalError> {
    for item in one.iter().flatten() {
        match has(two, &item, work) {
            Ok(true) => return Ok(true),
            Err(EvalError::CostLimit) => return Err(EvalError::CostLimit),
            Ok(false) | Err(_) => {}
        }
    }
    Ok(false)
}

fn contains_list<'a>(args: &[Value<'a>], work: &Work) -> Result<Value<'a>, EvalError> {
    let (list, part) = lists(args)?;
    Ok(contains(list, part, work)?.into())
}

fn equivalent_list<'a>(args: &[Value<'a>], work: &Work) -> Result<Value<'a>, EvalError> {
    let (one, two) = lists(args)?;
    Ok((contains(one, two, work)? && contains(two, one, work)?).into())
}

fn intersects_list<'a>(args: &[Value<'a>], work: &Work) -> Result<Value<'a>, EvalError> {
    let (one, two) = lists(args)?;
    Ok(intersects(one, two, work)?.into())
}

fn cost(args: &[Value<'_>], factor: u64) -> Option<u64> {
    Some(size(args, 0).saturating_mul(size(args, 1)).saturating_mul(factor).saturating_add(1))
}

fn estimate(nodes: &CallNodes<'_, '_>, factor: f64) -> Option<CallEstimate> {
    let (one, two) = (nodes.size(nodes.args().first()?), nodes.size(nodes.args().get(1)?));
    Some(CallEstimate::new(one.multiply(two).cost(factor).plus(CostEstimate::fixed(1))))
}

/// The functions of the library `cel.lib.ext.sets`.
pub(super) fn functions() -> Vec<Function> {
    let overload = |id, call: Call, within: CallWithin| {
        let items = || Type::list(Type::param("T"));
        Overload::global(id, vec![items(), items()], Type::Bool, call).with_bound(within)
    };
    let contains_list =
        overload("list_sets_contains_list", |args| contains_list(args, &work::alone()), contains_list);
    let equivalent_list =
        overload("list_sets_equivalent_list", |args| equivalent_list(args, &work::alone()), equivalent_list);
    let intersects_list =
        overload("list_sets_intersects_list", |args| intersects_list(args, &work::alone()), intersects_list);
    vec![
        Function::new(
            "sets.contains",
            vec![contains_list.with_cost(|nodes| estimate(nodes, 1.0), |args, _| cost(args, 1))],
        ),
        Function::new(
            "sets.equivalent",
            vec![equivalent_list.with_cost(|nodes| estimate(nodes, 2.0), |args, _| cost(args, 2))],
        ),
        Function::new(
            "sets.intersects",
            vec![intersects_list.with_cost(|nodes| estimate(nodes, 1.0), |args, _| cost(args, 1))],
        ),
    ]
}
