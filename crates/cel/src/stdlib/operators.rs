//! Arithmetic, order, membership and size. Equality, `&&`, `||`, `?:` and indexes are steps of their own of a program;
//! here are their signatures.

use std::{cmp::Ordering, sync::Arc};

use super::{global, member, operator};
use crate::{
    cost::{STRING_FACTOR, scaled},
    error::EvalError,
    function::{Call, Cost, Function, Overload, Style},
    syntax::ast::op,
    types::Type,
    value::{Bytes, MAX_TEXT, Value, add_lists, contains, lookup_key},
};

type Outcome<'a> = Result<Value<'a>, EvalError>;

pub(super) fn functions() -> Vec<Function> {
    let mut all = vec![
        Function::new(op::ADD, additions()),
        Function::new(op::SUBTRACT, subtractions()),
        Function::new(
            op::NOT_STRICTLY_FALSE,
            vec![operator("not_strictly_false", &[Type::Bool], Type::Bool, never)],
        ),
        Function::new(
            op::MULTIPLY,
            vec![
                operator("multiply_int64", &[Type::Int, Type::Int], Type::Int, multiply),
                operator("multiply_uint64", &[Type::Uint, Type::Uint], Type::Uint, multiply),
                operator("multiply_double", &[Type::Double, Type::Double], Type::Double, multiply),
            ],
        ),
        Function::new(
            op::DIVIDE,
            vec![
                operator("divide_int64", &[Type::Int, Type::Int], Type::Int, divide),
                operator("divide_uint64", &[Type::Uint, Type::Uint], Type::Uint, divide),
                operator("divide_double", &[Type::Double, Type::Double], Type::Double, divide),
            ],
        ),
        Function::new(
            op::MODULO,
            vec![
                operator("modulo_int64", &[Type::Int, Type::Int], Type::Int, modulo),
                operator("modulo_uint64", &[Type::Uint, Type::Uint], Type::Uint, modulo),
            ],
        ),
        Function::new(
            op::NEGATE,
            vec![
                operator("negate_int64", &[Type::Int], Type::Int, negate),
                operator("negate_double", &[Type::Double], Type::Double, negate),
            ],
        ),
        Function::new(op::NOT, vec![operator("logical_not", &[Type::Bool], Type::Bool, not)]),
    ];
    all.extend(logic());
    all.extend(orders());
    all.extend(collections());
    all
}

/// Signatures of operators that the program runs itself.
fn logic() -> Vec<Function> {
    let any = || Type::param("A");
    vec![
        Function::new(op::AND, vec![operator("logical_and", &[Type::Bool, Type::Bool], Type::Bool, never)]),
        Function::new(op::OR, vec![operator("logical_or", &[Type::Bool, Type::Bool], Type::Bool, never)]),
        Function::new(
            op::CONDITIONAL,
            vec![operator("conditional", &[Type::Bool, any(), any()], any(), never)],
        ),
        Function::new(op::EQUALS, vec![operator("equals", &[any(), any()], Type::Bool, never)]),
        Function::new(op::NOT_EQUALS, vec![operator("not_equals", &[any(), any()], Type::Bool, never)]),
    ]
}

fn collections() -> Vec<Function> {
    let (a, b) = (|| Type::param("A"), || Type::param("B"));
    let list = || Type::list(a());
    let map = || Type::map(a(), b());
    let size = |id, ty: Type, is_member: bool| {
        let overload = if is_member { member } else { global };
        overload(id, &[ty], Type::Int, size).with_style(Style::Named)
    };
    let mut in_list = operator("in_list", &[a(), list()], Type::Bool, is_in);
    in_list.cost = Some(|args, _| args.get(1).map(Value::size));
    let insert = [map(), a(), b()];
    vec![
        Function::new(
            op::INDEX,
            vec![
                operator("index_list", &[list(), Type::Int], a(), never),
                operator("index_map", &[map(), a()], b(), never),
            ],
        ),
        Function::new(op::IN, vec![in_list, operator("in_map", &[a(), map()], Type::Bool, is_in)]),
        Function::new(
            "size",
            vec![
                size("size_bytes", Type::Bytes, false),
                size("bytes_size", Type::Bytes, true),
                size("size_list", list(), false),
                size("list_size", list(), true),
                size("size_map", map(), false),
                size("map_size", map(), true),
                size("size_string", Type::String, false),
                size("string_size", Type::String, true),
            ],
        ),
        Function::new(
            op::MAP_INSERT,
            vec![
                operator("@mapInsert_map_key_value", &insert, map(), never),
                operator("@mapInsert_map_map", &[map(), map()], map(), never),
            ],
        ),
    ]
}

/// Where the program has a step of its own.
fn never<'a>(_: &[Value<'a>]) -> Outcome<'a> {
    Err(EvalError::NoSuchOverload)
}

fn additions() -> Vec<Overload> {
    let list = || Type::list(Type::param("A"));
    let both: Cost = |args, _| {
        let size: u64 = args.iter().map(Value::size).sum();
        Some(scaled(size, STRING_FACTOR))
    };
    let with_cost = |mut overload: Overload| {
        overload.cost = Some(both);
        overload
    };
    vec![
        with_cost(operator("add_bytes", &[Type::Bytes, Type::Bytes], Type::Bytes, add)),
        operator("add_double", &[Type::Double, Type::Double], Type::Double, add),
        operator("add_duration_duration", &[Type::Duration, Type::Duration], Type::Duration, add),
        operator("add_duration_timestamp", &[Type::Duration, Type::Timestamp], Type::Timestamp, add),
        operator("add_timestamp_duration", &[Type::Timestamp, Type::Duration], Type::Timestamp, add),
        operator("add_int64", &[Type::Int, Type::Int], Type::Int, add),
        operator("add_list", &[list(), list()], list(), add),
        with_cost(operator("add_string", &[Type::String, Type::String], Type::String, add)),
        operator("add_uint64", &[Type::Uint, Type::Uint], Type::Uint, add),
    ]
}

fn subtractions() -> Vec<Overload> {
    vec![
        operator("subtract_double", &[Type::Double, Type::Double], Type::Double, subtract),
        operator("subtract_duration_duration", &[Type::Duration, Type::Duration], Type::Duration, subtract),
        operator("subtract_int64", &[Type::Int, Type::Int], Type::Int, subtract),
        operator(
            "subtract_timestamp_duration",
            &[Type::Timestamp, Type::Duration],
            Type::Timestamp,
            subtract,
        ),
        operator(
            "subtract_timestamp_timestamp",
            &[Type::Timestamp, Type::Timestamp],
            Type::Duration,
            subtract,
        ),
        operator("subtract_uint64", &[Type::Uint, Type::Uint], Type::Uint, subtract),
    ]
}

fn add<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [one, two] = args else { return never(args) };
    Ok(match (one, two) {
        (Value::Int(one), Value::Int(two)) => {
            Value::Int(one.checked_add(*two).ok_or(EvalError::IntOverflow)?)
        }
        (Value::Uint(one), Value::Uint(two)) => {
            Value::Uint(one.checked_add(*two).ok_or(EvalError::UintOverflow)?)
        }
        (Value::Double(one), Value::Double(two)) => Value::Double(one + two),
        (Value::String(one), Value::String(two)) => {
            if one.len().saturating_add(two.len()) > MAX_TEXT {
                return Err(EvalError::CostLimit);
            }
            let mut text = String::with_capacity(one.len() + two.len());
            text.push_str(one);
            text.push_str(two);
            Value::from(text)
        }
        (Value::Bytes(one), Value::Bytes(two)) if one.len().saturating_add(two.len()) > MAX_TEXT => {
            return Err(EvalError::CostLimit);
        }
        (Value::Bytes(one), Value::Bytes(two)) => {
            Value::Bytes(Bytes::Shared(Arc::from([&**one, &**two].concat())))
        }
        (Value::List(one), Value::List(two)) => Value::List(add_lists(one.clone(), two)?),
        (Value::Duration(one), Value::Duration(two)) => {
            Value::Duration(one.checked_add(*two).ok_or(EvalError::IntOverflow)?)
        }
        (Value::Timestamp(moment), Value::Duration(duration))
        | (Value::Duration(duration), Value::Timestamp(moment)) => Value::Timestamp(moment.plus(*duration)?),
        _ => return never(args),
    })
}

fn subtract<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [one, two] = args else { return never(args) };
    Ok(match (one, two) {
        (Value::Int(one), Value::Int(two)) => {
            Value::Int(one.checked_sub(*two).ok_or(EvalError::IntOverflow)?)
        }
        (Value::Uint(one), Value::Uint(two)) => {
            Value::Uint(one.checked_sub(*two).ok_or(EvalError::UintOverflow)?)
        }
        (Value::Double(one), Value::Double(two)) => Value::Double(one - two),
        (Value::Duration(one), Value::Duration(two)) => {
            Value::Duration(one.checked_sub(*two).ok_or(EvalError::IntOverflow)?)
        }
        (Value::Timestamp(moment), Value::Duration(duration)) => {
            Value::Timestamp(moment.plus(duration.checked_neg().ok_or(EvalError::IntOverflow)?)?)
        }
        (Value::Timestamp(one), Value::Timestamp(two)) => Value::Duration(one.since(*two)?),
        _ => return never(args),
    })
}

fn multiply<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(match args {
        [Value::Int(one), Value::Int(two)] => {
            Value::Int(one.checked_mul(*two).ok_or(EvalError::IntOverflow)?)
        }
        [Value::Uint(one), Value::Uint(two)] => {
            Value::Uint(one.checked_mul(*two).ok_or(EvalError::UintOverflow)?)
        }
        [Value::Double(one), Value::Double(two)] => Value::Double(one * two),
        _ => return never(args),
    })
}

fn divide<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            return Err(EvalError::DivisionByZero);
        }
        [Value::Int(one), Value::Int(two)] => {
            Value::Int(one.checked_div(*two).ok_or(EvalError::IntOverflow)?)
        }
        [Value::Uint(one), Value::Uint(two)] => Value::Uint(one / two),
        [Value::Double(one), Value::Double(two)] => Value::Double(one / two),
        _ => return never(args),
    })
}

fn modulo<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            return Err(EvalError::ModulusByZero);
        }
        [Value::Int(one), Value::Int(two)] => {
            Value::Int(one.checked_rem(*two).ok_or(EvalError::IntOverflow)?)
        }
        [Value::Uint(one), Value::Uint(two)] => Value::Uint(one % two),
        _ => return never(args),
    })
}

fn negate<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Int(value)] => value.checked_neg().map(Value::Int).ok_or(EvalError::IntOverflow),
        [Value::Double(value)] => Ok(Value::Double(-value)),
        _ => never(args),
    }
}

fn not<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => never(args),
    }
}

fn is_in<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [value, Value::List(list)] => contains(list, value, &crate::work::alone()).map(Value::Bool),
        [value, Value::Map(map)] => match lookup_key(value) {
            Some(key) => Ok(Value::Bool(map.get(&key).transpose()?.is_some())),
            None => Ok(Value::Bool(false)),
        },
        [value, Value::Object(object)] => {
            Ok(Value::Bool(value.as_str().is_some_and(|name| object.get(name).is_some())))
        }
        _ => never(args),
    }
}

fn size<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
            Ok(Value::Int(i64::try_from(value.size()).unwrap_or(i64::MAX)))
        }
        _ => never(args),
    }
}

/// The overloads of an order: of values of one type, and of numbers across their types.
macro_rules! order {
    ($function:expr, $prefix:literal, $holds:expr) => {{
        let call: Call = |args| ordered(args, $holds);
        let pair = |id, one: Type, two: Type| operator(id, &[one, two], Type::Bool, call);
        let same = |id, ty: Type| pair(id, ty.clone(), ty);
        let text = |id, ty: Type| {
            let mut overload = same(id, ty);
            overload.cost = Some(shorter);
            overload
        };
        Function::new(
            $function,
            vec![
                same(concat!($prefix, "_bool"), Type::Bool),
                same(concat!($prefix, "_int64"), Type::Int),
                pair(concat!($prefix, "_int64_double"), Type::Int, Type::Double),
                pair(concat!($prefix, "_int64_uint64"), Type::Int, Type::Uint),
                same(concat!($prefix, "_uint64"), Type::Uint),
                pair(concat!($prefix, "_uint64_double"), Type::Uint, Type::Double),
                pair(concat!($prefix, "_uint64_int64"), Type::Uint, Type::Int),
                same(concat!($prefix, "_double"), Type::Double),
                pair(concat!($prefix, "_double_int64"), Type::Double, Type::Int),
                pair(concat!($prefix, "_double_uint64"), Type::Double, Type::Uint),
                text(concat!($prefix, "_string"), Type::String),
                text(concat!($prefix, "_bytes"), Type::Bytes),
                same(concat!($prefix, "_timestamp"), Type::Timestamp),
                same(concat!($prefix, "_duration"), Type::Duration),
            ],
        )
    }};
}

fn orders() -> Vec<Function> {
    vec![
        order!(op::LESS, "less", Ordering::is_lt),
        order!(op::LESS_EQUALS, "less_equals", Ordering::is_le),
        order!(op::GREATER, "greater", Ordering::is_gt),
        order!(op::GREATER_EQUALS, "greater_equals", Ordering::is_ge),
    ]
}

/// The cost of comparing texts: that of reading the shorter one.
fn shorter(args: &[Value<'_>], _: &Value<'_>) -> Option<u64> {
    Some(scaled(args.iter().map(Value::size).min()?, STRING_FACTOR))
}

fn ordered<'a>(args: &[Value<'a>], holds: fn(Ordering) -> bool) -> Outcome<'a> {
    match args {
        [one, two] => one.compare(two).map(|order| Value::Bool(holds(order))),
        _ => never(args),
    }
}
