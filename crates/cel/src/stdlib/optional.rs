//! Optional values.

use std::sync::Arc;

use super::{global, member, operator};
use crate::{error::EvalError, function::Function, syntax::ast::op, types::Type, value::Value};

type Outcome<'a> = Result<Value<'a>, EvalError>;

pub(super) fn functions() -> Vec<Function> {
    let value = || Type::param("V");
    let optional = || Type::optional(value());
    let list = || Type::list(value());
    let map = || Type::map(Type::param("K"), value());
    let key = || Type::param("K");
    let opt = Type::optional;
    let many = [Type::list(optional())];
    vec![
        Function::new("optional.of", vec![global("optional_of", &[value()], optional(), of)]),
        Function::new(
            "optional.ofNonZeroValue",
            vec![global("optional_ofNonZeroValue", &[value()], optional(), of_non_zero)],
        ),
        Function::new("optional.none", vec![global("optional_none", &[], optional(), none)]),
        Function::new("value", vec![member("optional_value", &[optional()], value(), value_of)]),
        Function::new("hasValue", vec![member("optional_hasValue", &[optional()], Type::Bool, has_value)]),
        // These are steps of a program: the second is only computed if it is needed.
        Function::new(
            "or",
            vec![member("optional_or_optional", &[optional(), optional()], optional(), never)],
        ),
        Function::new(
            "orValue",
            vec![member("optional_orValue_value", &[optional(), value()], value(), never)],
        ),
        Function::new(
            op::OPT_SELECT,
            vec![operator("select_optional_field", &[Type::Dyn, Type::String], optional(), never)],
        ),
        Function::new(
            op::OPT_INDEX,
            vec![
                operator("list_optindex_optional_int", &[list(), Type::Int], optional(), never),
                operator("optional_list_optindex_optional_int", &[opt(list()), Type::Int], optional(), never),
                operator("map_optindex_optional_value", &[map(), key()], optional(), never),
                operator("optional_map_optindex_optional_value", &[opt(map()), key()], optional(), never),
            ],
        ),
        Function::new(
            op::INDEX,
            vec![
                operator("optional_list_index_int", &[opt(list()), Type::Int], optional(), never),
                operator("optional_map_index_value", &[opt(map()), key()], optional(), never),
            ],
        ),
        Function::new("first", vec![member("list_first", &[list()], optional(), |args| at(args, |_| 0))]),
        Function::new(
            "last",
            vec![member("list_last", &[list()], optional(), |args| {
                at(args, |length| length.saturating_sub(1))
            })],
        ),
        Function::new("optional.unwrap", vec![global("optional_unwrap", &many, list(), unwrap)]),
        Function::new("unwrapOpt", vec![member("optional_unwrapOpt", &many, list(), unwrap)]),
    ]
}

fn never<'a>(_: &[Value<'a>]) -> Outcome<'a> {
    Err(EvalError::NoSuchOverload)
}

fn of<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    args.first().cloned().map(Value::some).ok_or(EvalError::NoSuchOverload)
}

fn none<'a>(_: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Optional(None))
}

fn of_non_zero<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let is_zero = match args.first() {
        Some(Value::Null) => true,
        Some(Value::Bool(value)) => !value,
        Some(Value::Int(value) | Value::Duration(value)) => *value == 0,
        Some(Value::Uint(value)) => *value == 0,
        Some(Value::Double(value)) => *value == 0.0,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Bytes(bytes)) => bytes.is_empty(),
        Some(Value::List(list)) => list.is_empty(),
        Some(Value::Map(map)) => map.is_empty(),
        Some(Value::Object(object)) => object.fields().len() == 0,
        Some(Value::Optional(optional)) => optional.is_none(),
        // The first moment of the year 1 is Go's zero.
        Some(Value::Timestamp(moment)) => (moment.seconds(), moment.nanos()) == (-62_135_596_800, 0),
        _ => false,
    };
    if is_zero { Ok(Value::Optional(None)) } else { of(args) }
}

fn value_of<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args.first() {
        Some(Value::Optional(Some(value))) => Ok((**value).clone()),
        Some(Value::Optional(None)) => Err(EvalError::new("optional.none() dereference")),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn has_value<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args.first() {
        Some(Value::Optional(optional)) => Ok(Value::Bool(optional.is_some())),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn at<'a>(args: &[Value<'a>], index: fn(usize) -> usize) -> Outcome<'a> {
    let Some(Value::List(list)) = args.first() else { return Err(EvalError::NoSuchOverload) };
    Ok(Value::Optional(list.get(index(list.len())).transpose()?.map(Arc::new)))
}

fn unwrap<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let Some(Value::List(list)) = args.first() else { return Err(EvalError::NoSuchOverload) };
    let mut values = Vec::new();
    for item in list.iter() {
        match item? {
            Value::Optional(Some(value)) => values.push((*value).clone()),
            Value::Optional(None) => {}
            other => {
                return Err(EvalError::new(format!("value of type {} is not optional", other.type_name())));
            }
        }
    }
    Ok(Value::list(values))
}
