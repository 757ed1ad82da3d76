//! Lists: Kubernetes' own functions (`sum`, `isSorted`, `indexOf`…) and CEL's extension library, version 3 (`slice`,
//! `flatten`, `sort`…).

use std::cmp::Ordering;

use super::{int, list_estimate, literal, size};
use crate::{
    cost::{CallEstimate, CallNodes, CostEstimate, LIST, STRING_FACTOR, SizeEstimate},
    error::EvalError,
    function::{Call, CallWithin, Function, Overload},
    types::Type,
    value::{List, Value},
    work::{self, Work},
};

/// The longest list that `lists.range` makes.
const MAX_RANGE: i64 = 1_000_000;

/// Comparing all items of longer lists with each other costs more than any expression may.
const MAX_COMPARED: usize = 10_000;

fn list<'v, 'a>(args: &'v [Value<'a>], index: usize) -> Result<&'v List<'a>, EvalError> {
    match args.get(index) {
        Some(Value::List(list)) => Ok(list),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn any<'v, 'a>(args: &'v [Value<'a>], index: usize) -> Result<&'v Value<'a>, EvalError> {
    args.get(index).ok_or(EvalError::NoSuchOverload)
}

fn is_sorted<'a>(args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let mut previous: Option<Value<'a>> = None;
    for item in list(args, 0)?.iter() {
        let item = item?;
        if let Some(previous) = &previous
            && previous.compare(&item) == Ok(Ordering::Greater)
        {
            return Ok(false.into());
        }
        previous = Some(item);
    }
    Ok(true.into())
}

fn sum<'a>(args: &[Value<'a>], zero: Value<'a>) -> Result<Value<'a>, EvalError> {
    let mut sum = zero;
    for item in list(args, 0)?.iter() {
        sum = match (sum, item?) {
            (Value::Int(one), Value::Int(two)) => {
                Value::Int(one.checked_add(two).ok_or(EvalError::IntOverflow)?)
            }
            (Value::Uint(one), Value::Uint(two)) => {
                Value::Uint(one.checked_add(two).ok_or(EvalError::UintOverflow)?)
            }
            (Value::Double(one), Value::Double(two)) => Value::Double(one + two),
            (Value::Duration(one), Value::Duration(two)) => {
                Value::Duration(one.checked_add(two).ok_or(EvalError::DurationOverflow)?)
            }
            _ => return Err(EvalError::NoSuchOverload),
        };
    }
    Ok(sum)
}

/// The first item that no other item precedes in this order.
fn extreme<'a>(args: &[Value<'a>], name: &str, better: Ordering) -> Result<Value<'a>, EvalError> {
    let mut best: Option<Value<'a>> = None;
    for item in list(args, 0)?.iter() {
        let item = item?;
        if best.as_ref().is_none_or(|best| best.compare(&item) == Ok(better)) {
            best = Some(item);
        }
    }
    best.ok_or_else(|| EvalError::new(format!("{name} called on empty list")))
}

/// Whether two values are equal; those that cannot be compared are not.
fn equal<'a>(one: &Value<'a>, two: &Value<'a>, work: &Work) -> Result<bool, EvalError> {
    match one.equals_within(two, work) {
        Err(EvalError::CostLimit) => Err(EvalError::CostLimit),
        other => Ok(other == Ok(true)),
    }
}

/// The first of these places of a list that has a value equal to another one; -1 if there is none.
fn find<'a>(
    list: &List<'a>,
    mut places: impl Iterator<Item = usize>,
    wanted: &Value<'a>,
    work: &Work,
) -> Result<i64, EvalError> {
    let found = places.find_map(|index| match list.get(index) {
        Some(Ok(item)) => match equal(&item, wanted, work) {
            Ok(false) => None,
            Ok(true) => Some(Ok(index as i64)),
            Err(error) => Some(Err(error)),
        },
        _ => None,
    });
    found.unwrap_or(Ok(-1))
}

fn index_of<'a>(args: &[Value<'a>], work: &Work) -> Result<Value<'a>, EvalError> {
    let list = list(args, 0)?;
    Ok(find(list, 0..list.len(), any(args, 1)?, work)?.into())
}

fn last_index_of<'a>(args: &[Value<'a>], work: &Work) -> Result<Value<'a>, EvalError> {
    let list = list(args, 0)?;
    Ok(find(list, (0..list.len()).rev(), any(args, 1)?, work)?.into())
}

fn includes<'a>(args: &[Value<'a>], work: &Work) -> Result<Value<'a>, EvalError> {
    let wanted = any(args, 1)?;
    Ok(match any(args, 0)? {
        Value::List(list) => (find(list, 0..list.len(), wanted, work)? >= 0).into(),
        other => equal(other, wanted, work)?.into(),
    })
}

/// The work of [`traversal_cost`], which counts nothing for empty parts.
pub(crate) fn go_through(args: &[Value<'_>], work: &Work) -> Result<(), EvalError> {
    let mut left = work.left().min(MAX_PARTS);
    let before = left;
    if let Some(first) = args.first() {
        let _ = traversal(first, &mut left);
    }
    work.take(before - left)
}

fn slice<'a>(args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let (list, start, end) = (list(args, 0)?, int(args, 1)?, int(args, 2)?);
    let wrong = |why: &str| EvalError::new(format!("cannot slice({start}, {end}), {why}"));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return Err(wrong("negative indexes not supported"));
    };
    if from > to {
        return Err(wrong("start index must be less than or equal to end index"));
    }
    if to > list.len() {
        return Err(wrong(&format!("list is length {}", list.len())));
    }
    Ok(Value::list((from..to).filter_map(|index| list.get(index)).collect::<Result<_, _>>()?))
}

fn flatten<'a>(args: &[Value<'a>], work: &Work) -> Result<Value<'a>, EvalError> {
    let depth = if args.len() > 1 { int(args, 1)? } else { 1 };
    if depth < 0 {
        return Err(EvalError::new("level must be non-negative"));
    }
    // Lists that share their parts have many more items than were made.
    fn add<'a>(list: &List<'a>, depth: i64, out: &mut Vec<Value<'a>>, work: &Work) -> Result<(), EvalError> {
        for item in list.iter() {
            work.take(WORK_OF_ITEM)?;
            match item? {
                Value::List(inner) if depth > 0 => add(&inner, depth - 1, out, work)?,
                other => out.push(other),
            }
        }
        Ok(())
    }
    let mut out = Vec::new();
    add(list(args, 0)?, depth, &mut out, work)?;
    Ok(Value::list(out))
}

/// Sorts the items of a list by the keys in another one.
fn sorted<'a>(items: &List<'a>, keys: &List<'a>) -> Result<Value<'a>, EvalError> {
    if items.len() != keys.len() {
        return Err(EvalError::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements respectively",
            items.len(),
            keys.len()
        )));
    }
    let keys = keys.values()?;
    let Some(first) = keys.first() else { return Ok(Value::List(items.clone())) };
    if first.compare(first).is_err() && !matches!(first, Value::Double(_)) {
        return Err(EvalError::new("list elements must be comparable"));
    }
    if keys.len() > 1 && keys.iter().any(|key| key.type_name() != first.type_name()) {
        return Err(EvalError::new("list elements must have the same type"));
    }
    let mut pairs: Vec<(Value<'a>, Value<'a>)> = keys.into_iter().zip(items.values()?).collect();
    // Numbers that are none have no order, and a sort must not depend on one.
    pairs.sort_by(|(one, _), (two, _)| match (one, two) {
        (Value::Double(one), Value::Double(two)) => one.total_cmp(two),
        _ => one.compare(two).unwrap_or(Ordering::Equal),
    });
    Ok(Value::list(pairs.into_iter().map(|(_, item)| item).collect()))
}

fn range<'a>(args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let size = int(args, 0)?;
    if size < 0 {
        return Err(EvalError::new(format!("lists.range: size must be non-negative, got {size}")));
    }
    if size > MAX_RANGE {
        return Err(EvalError::new(format!(
            "lists.range: size {size} exceeds maximum allowed ({MAX_RANGE})"
        )));
    }
    Ok(Value::list((0..size).map(Value::Int).collect()))
}

fn reverse<'a>(args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let mut items = list(args, 0)?.values()?;
    items.reverse();
    Ok(Value::list(items))
}

fn distinct<'a>(args: &[Value<'a>], work: &Work) -> Result<Value<'a>, EvalError> {
    let list = list(args, 0)?;
    if list.len() > MAX_COMPARED {
        return Err(EvalError::CostLimit);
    }
    let mut unique: Vec<Value<'a>> = Vec::new();
    'items: for item in list.iter() {
        let item = item?;
        for known in &unique {
            if equal(&item, known, work)? {
                continue 'items;
            }
        }
        unique.push(item);
    }
    Ok(Value::list(unique))
}

/// The cost of looking at all of a value.
/// The cost of going through all parts of a value, or `None` if there are more than any expression may go through: parts
/// that are shared count again and again.
fn traversal(value: &Value<'_>, left: &mut u64) -> Option<u64> {
    *left = left.checked_sub(1)?;
    let scan = |bytes: usize| Some((bytes as f64 * STRING_FACTOR) as u64);
    match value {
        Value::String(text) => scan(text.len()),
        Value::Bytes(bytes) => scan(bytes.len()),
        Value::List(list) => list
            .iter()
            .flatten()
            .try_fold(0u64, |sum, item| Some(sum.saturating_add(traversal(&item, left)?))),
        Value::Map(map) => map.keys().iter().try_fold(0u64, |sum, key| {
            let sum = sum.saturating_add(traversal(&key.to_value(), left)?);
            match map.get(key) {
                Some(Ok(value)) => Some(sum.saturating_add(traversal(&value, left)?)),
                _ => Some(sum),
            }
        }),
        _ => Some(1),
    }
}

/// The work of copying an item.
const WORK_OF_ITEM: u64 = 8;

/// Maximum number of parts of a value that is gone through.
const MAX_PARTS: u64 = 4_000_000;

fn traversal_cost(args: &[Value<'_>], _: &Value<'_>) -> Option<u64> {
    Some(traversal(args.first()?, &mut { MAX_PARTS }).unwrap_or(u64::MAX))
}

fn traversal_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    let target = nodes.target()?;
    if nodes.element(target).is_none() {
        // A text, or something of an unknown type.
        return Some(CallEstimate::new(nodes.size(target).cost(STRING_FACTOR)));
    }
    // One for each comparison of items, and the length of items that are text.
    let mut each = CostEstimate::fixed(1);
    if let Some(items) = nodes.element(target)
        && matches!(items.ty(), Type::String | Type::Bytes)
    {
        each = each.plus(nodes.size(&items).cost(STRING_FACTOR));
    }
    Some(CallEstimate::new(nodes.size(target).times(each)))
}

fn slice_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    let size = nodes.size(nodes.target()?);
    let (start, end) = (literal(nodes, 0, 0), literal(nodes, 1, size.max));
    // Upstream's difference of unsigned numbers, which a start behind the end makes very large.
    Some(list_estimate(1.0, SizeEstimate::fixed(end.wrapping_sub(start))))
}

fn output_cost(_: &[Value<'_>], result: &Value<'_>) -> Option<u64> {
    Some(result.size() + 1 + LIST)
}

fn flatten_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    let depth = if nodes.args().is_empty() { 1 } else { literal(nodes, 0, u64::MAX) };
    Some(list_estimate(depth as f64, nodes.size(nodes.target()?)))
}

fn flatten_cost(args: &[Value<'_>], _: &Value<'_>) -> Option<u64> {
    let depth = if args.len() > 1 { int(args, 1).ok()? as f64 } else { 1.0 };
    let factor = if depth < 0.0 { 1.0 } else { depth };
    Some(((size(args, 0) as f64 * factor) as u64).saturating_add(1 + LIST))
}

fn range_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    Some(list_estimate(1.0, SizeEstimate::fixed(literal(nodes, 0, u64::MAX))))
}

fn same_size_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    Some(list_estimate(1.0, nodes.size(nodes.target()?)))
}

fn distinct_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    let size = nodes.size(nodes.target()?);
    Some(list_estimate(2.0, size.multiply(size)))
}

fn sort_factor(text: bool) -> f64 {
    if text { 2.0 + STRING_FACTOR } else { 2.0 }
}

fn sort_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    // The keys decide: an argument, or the items themselves.
    let keys = nodes.args().first().or(nodes.target())?;
    let text = nodes.element(keys).is_some_and(|key| matches!(key.ty(), Type::String | Type::Bytes));
    let size = nodes.size(keys);
    Some(list_estimate(sort_factor(text), size.multiply(size)))
}

fn compare_all_cost(args: &[Value<'_>], _: &Value<'_>) -> Option<u64> {
    let Some(Value::List(keys)) = args.last() else { return None };
    let text = matches!(keys.get(0), Some(Ok(Value::String(_) | Value::Bytes(_))));
    let size = keys.len() as u64;
    Some(((size.saturating_mul(size) as f64 * sort_factor(text)) as u64).saturating_add(1 + LIST))
}

/// Overloads for lists of each of these types.
fn each(types: &[(&'static str, Type)], make: impl Fn(&'static str, &Type) -> Overload) -> Vec<Overload> {
    types.iter().map(|(id, item)| make(id, item)).collect()
}

macro_rules! comparable {
    ($before:literal, $after:literal) => {
        [
            (concat!($before, "int", $after), Type::Int),
            (concat!($before, "uint", $after), Type::Uint),
            (concat!($before, "double", $after), Type::Double),
            (concat!($before, "bool", $after), Type::Bool),
            (concat!($before, "duration", $after), Type::Duration),
            (concat!($before, "timestamp", $after), Type::Timestamp),
            (concat!($before, "string", $after), Type::String),
            (concat!($before, "bytes", $after), Type::Bytes),
        ]
    };
}

/// The functions of the libraries `kubernetes.lists` and `cel.lib.ext.lists`.
pub(super) fn functions() -> Vec<Function> {
    let mut functions = own_functions();
    functions.extend(extension_functions());
    functions
}

fn own_functions() -> Vec<Function> {
    let traversing = |overload: Overload| overload.with_cost(traversal_estimate, traversal_cost).traversing();
    let item = || Type::param("A");
    let of_item = |id, call: Call, within: CallWithin| {
        let params = vec![Type::list(item()), item()];
        traversing(Overload::member(id, params, Type::Int, call)).with_bound(within)
    };
    let summed: [(&'static str, Type, Call); 4] = [
        ("list_int_sum_int", Type::Int, |args| sum(args, Value::Int(0))),
        ("list_uint_sum_uint", Type::Uint, |args| sum(args, Value::Uint(0))),
        ("list_double_sum_double", Type::Double, |args| sum(args, Value::Double(0.0))),
        ("list_duration_sum_duration", Type::Duration, |args| sum(args, Value::Duration(0))),
    ];
    let to_item = |types: &[(&'static str, Type)], call: Call| {
        each(types, |id, item| {
            traversing(Overload::member(id, vec![Type::list(item.clone())], item.clone(), call))
        })
    };
    let extremes = |before: [(&'static str, Type); 8], call: Call| to_item(&before, call);
    vec![
        Function::new(
            "isSorted",
            each(&comparable!("list_", "_is_sorted_bool"), |id, item| {
                traversing(Overload::member(id, vec![Type::list(item.clone())], Type::Bool, is_sorted))
            }),
        ),
        Function::new(
            "sum",
            summed
                .into_iter()
                .map(|(id, item, call)| {
                    traversing(Overload::member(id, vec![Type::list(item.clone())], item, call))
                })
                .collect(),
        ),
        Function::new(
            "max",
            extremes(comparable!("list_max_", ""), |args| extreme(args, "max", Ordering::Less)),
        ),
        Function::new(
            "min",
            extremes(comparable!("list_min_", ""), |args| extreme(args, "min", Ordering::Greater)),
        ),
        Function::new(
            "indexOf",
            vec![of_item("list_a_index_of_int", |args| index_of(args, &work::alone()), index_of)],
        ),
        Function::new(
            "lastIndexOf",
            vec![of_item(
                "list_a_last_index_of_int",
                |args| last_index_of(args, &work::alone()),
                last_index_of,
            )],
        ),
        Function::new(
            "includes",
            vec![
                traversing(Overload::member(
                    "list_includes_dyn_dyn",
                    vec![Type::Dyn, Type::Dyn],
                    Type::Bool,
                    |args| includes(args, &work::alone()),
                ))
                .with_bound(includes),
            ],
        ),
    ]
}

fn extension_functions() -> Vec<Function> {
    let items = || Type::list(Type::param("T"));
    let sorting = |overload: Overload| overload.with_cost(sort_estimate, compare_all_cost);
    vec![
        Function::new(
            "slice",
            vec![
                Overload::member("list_slice", vec![items(), Type::Int, Type::Int], items(), slice)
                    .with_cost(slice_estimate, output_cost),
            ],
        ),
        Function::new(
            "flatten",
            vec![
                Overload::member("list_flatten", vec![Type::list(items())], items(), |args| {
                    flatten(args, &work::alone())
                })
                .with_bound(flatten)
                .with_cost(flatten_estimate, flatten_cost),
                Overload::member(
                    "list_flatten_int",
                    vec![Type::list(Type::Dyn), Type::Int],
                    Type::list(Type::Dyn),
                    |args| flatten(args, &work::alone()),
                )
                .with_bound(flatten)
                .with_cost(flatten_estimate, flatten_cost),
            ],
        ),
        Function::new(
            "sort",
            each(&comparable!("list_", "_sort"), |id, item| {
                let list_type = Type::list(item.clone());
                sorting(Overload::member(id, vec![list_type.clone()], list_type, |args| {
                    let items = list(args, 0)?;
                    sorted(items, items)
                }))
            }),
        ),
        Function::new(
            "@sortByAssociatedKeys",
            each(&comparable!("list_", "_sortByAssociatedKeys"), |id, key| {
                let params = vec![items(), Type::list(key.clone())];
                sorting(Overload::member(id, params, items(), |args| sorted(list(args, 0)?, list(args, 1)?)))
            }),
        ),
        Function::new(
            "lists.range",
            vec![
                Overload::global("lists_range", vec![Type::Int], Type::list(Type::Int), range)
                    .with_cost(range_estimate, output_cost),
            ],
        ),
        Function::new(
            "reverse",
            vec![
                Overload::member("list_reverse", vec![items()], items(), reverse)
                    .with_cost(same_size_estimate, output_cost),
            ],
        ),
        Function::new(
            "distinct",
            vec![
                Overload::member("list_distinct", vec![items()], items(), |args| {
                    distinct(args, &work::alone())
                })
                .with_bound(distinct)
                .with_cost(distinct_estimate, compare_all_cost),
            ],
        ),
    ]
}
