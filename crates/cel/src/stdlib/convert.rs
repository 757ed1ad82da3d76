//! Conversions between types.

use std::sync::Arc;

use super::global;
use crate::{
    cost::{STRING_FACTOR, scaled},
    error::EvalError,
    function::{Cost, Function},
    types::Type,
    value::{Bytes, Text, Timestamp, Value, time},
};

type Outcome<'a> = Result<Value<'a>, EvalError>;

pub(super) fn functions() -> Vec<Function> {
    let traverses: Cost = |args, _| args.first().map(|text| scaled(text.size(), STRING_FACTOR));
    let mut to_bytes = global("string_to_bytes", &[Type::String], Type::Bytes, bytes);
    to_bytes.cost = Some(traverses);
    let mut from_bytes = global("bytes_to_string", &[Type::Bytes], Type::String, string);
    from_bytes.cost = Some(traverses);
    vec![
        Function::new("dyn", vec![global("to_dyn", &[Type::param("A")], Type::Dyn, same)]),
        Function::new(
            "type",
            vec![global("type", &[Type::param("A")], Type::type_of(Type::param("A")), type_of)],
        ),
        Function::new(
            "bool",
            vec![
                global("bool_to_bool", &[Type::Bool], Type::Bool, same),
                global("string_to_bool", &[Type::String], Type::Bool, bool),
            ],
        ),
        Function::new("bytes", vec![global("bytes_to_bytes", &[Type::Bytes], Type::Bytes, same), to_bytes]),
        Function::new(
            "double",
            vec![
                global("double_to_double", &[Type::Double], Type::Double, same),
                global("int64_to_double", &[Type::Int], Type::Double, double),
                global("string_to_double", &[Type::String], Type::Double, double),
                global("uint64_to_double", &[Type::Uint], Type::Double, double),
            ],
        ),
        Function::new(
            "duration",
            vec![
                global("duration_to_duration", &[Type::Duration], Type::Duration, same),
                global("string_to_duration", &[Type::String], Type::Duration, duration),
            ],
        ),
        Function::new(
            "int",
            vec![
                global("int64_to_int64", &[Type::Int], Type::Int, same),
                global("double_to_int64", &[Type::Double], Type::Int, int),
                global("duration_to_int64", &[Type::Duration], Type::Int, int),
                global("string_to_int64", &[Type::String], Type::Int, int),
                global("timestamp_to_int64", &[Type::Timestamp], Type::Int, int),
                global("uint64_to_int64", &[Type::Uint], Type::Int, int),
            ],
        ),
        Function::new(
            "string",
            vec![
                global("string_to_string", &[Type::String], Type::String, same),
                global("bool_to_string", &[Type::Bool], Type::String, string),
                from_bytes,
                global("double_to_string", &[Type::Double], Type::String, string),
                global("duration_to_string", &[Type::Duration], Type::String, string),
                global("int64_to_string", &[Type::Int], Type::String, string),
                global("timestamp_to_string", &[Type::Timestamp], Type::String, string),
                global("uint64_to_string", &[Type::Uint], Type::String, string),
            ],
        ),
        Function::new(
            "timestamp",
            vec![
                global("timestamp_to_timestamp", &[Type::Timestamp], Type::Timestamp, same),
                global("int64_to_timestamp", &[Type::Int], Type::Timestamp, timestamp),
                global("string_to_timestamp", &[Type::String], Type::Timestamp, timestamp),
            ],
        ),
        Function::new(
            "uint",
            vec![
                global("uint64_to_uint64", &[Type::Uint], Type::Uint, same),
                global("double_to_uint64", &[Type::Double], Type::Uint, uint),
                global("int64_to_uint64", &[Type::Int], Type::Uint, uint),
                global("string_to_uint64", &[Type::String], Type::Uint, uint),
            ],
        ),
    ]
}

fn failed<'a>(value: Option<&Value<'_>>, to: &str) -> Outcome<'a> {
    let from = value.map_or("", Value::type_name);
    Err(EvalError::new(format!("type conversion error from '{from}' to '{to}'")))
}

fn same<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    args.first().cloned().ok_or(EvalError::NoSuchOverload)
}

fn type_of<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let value = args.first().ok_or(EvalError::NoSuchOverload)?;
    Ok(Value::Type(match value {
        Value::Object(_) | Value::Opaque(_) => Text::Shared(value.type_name().into()),
        // The names of other types are static.
        Value::Null => Text::Borrowed("null_type"),
        Value::Bool(_) => Text::Borrowed("bool"),
        Value::Int(_) => Text::Borrowed("int"),
        Value::Uint(_) => Text::Borrowed("uint"),
        Value::Double(_) => Text::Borrowed("double"),
        Value::String(_) => Text::Borrowed("string"),
        Value::Bytes(_) => Text::Borrowed("bytes"),
        Value::List(_) => Text::Borrowed("list"),
        Value::Map(_) => Text::Borrowed("map"),
        Value::Type(_) => Text::Borrowed("type"),
        other => Text::Shared(other.type_name().into()),
    }))
}

fn bool<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args.first().and_then(Value::as_str) {
        Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(Value::Bool(true)),
        Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(Value::Bool(false)),
        _ => failed(args.first(), "bool"),
    }
}

fn bytes<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args.first() {
        Some(Value::String(text)) => Ok(Value::Bytes(Bytes::Shared(Arc::from(text.as_bytes())))),
        other => failed(other, "bytes"),
    }
}

fn double<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args.first() {
        Some(Value::Int(value)) => Ok(Value::Double(*value as f64)),
        Some(Value::Uint(value)) => Ok(Value::Double(*value as f64)),
        other => match other.and_then(Value::as_str).and_then(parse_double) {
            Some(value) => Ok(Value::Double(value)),
            None => failed(other, "double"),
        },
    }
}

/// Go's `ParseFloat`, without hexadecimal numbers; a number beyond all others is an error.
fn parse_double(text: &str) -> Option<f64> {
    // Underscores may be between digits.
    let digit = |at: Option<usize>| at.and_then(|at| text.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
    for (at, _) in text.match_indices('_') {
        if !digit(at.checked_sub(1)) || !digit(Some(at + 1)) {
            return None;
        }
    }
    let value: f64 = text.replace('_', "").parse().ok()?;
    let named = text.trim_start_matches(['+', '-']).starts_with(['i', 'I', 'n', 'N']);
    (value.is_finite() || named).then_some(value)
}

fn duration<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args.first().and_then(Value::as_str).and_then(time::parse_duration) {
        Some(nanos) => Ok(Value::Duration(nanos)),
        None => failed(args.first(), "google.protobuf.Duration"),
    }
}

fn int<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Int(match args.first() {
        Some(Value::Double(value)) => {
            if !(*value > i64::MIN as f64 && *value < i64::MAX as f64) {
                return Err(EvalError::IntOverflow);
            }
            *value as i64
        }
        Some(Value::Duration(nanos)) => *nanos,
        Some(Value::Timestamp(moment)) => moment.seconds(),
        Some(Value::Uint(value)) => i64::try_from(*value).map_err(|_| EvalError::IntOverflow)?,
        other => match other.and_then(Value::as_str).and_then(|text| text.parse().ok()) {
            Some(value) => value,
            None => return failed(other, "int"),
        },
    }))
}

fn uint<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Uint(match args.first() {
        Some(Value::Double(value)) => {
            if !(*value >= 0.0 && *value < u64::MAX as f64) {
                return Err(EvalError::UintOverflow);
            }
            *value as u64
        }
        Some(Value::Int(value)) => u64::try_from(*value).map_err(|_| EvalError::UintOverflow)?,
        other => {
            let text = other.and_then(Value::as_str).filter(|text| !text.starts_with('+'));
            match text.and_then(|text| text.parse().ok()) {
                Some(value) => value,
                None => return failed(other, "uint"),
            }
        }
    }))
}

fn string<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::from(match args.first() {
        Some(Value::Bool(value)) => value.to_string(),
        Some(Value::Int(value)) => value.to_string(),
        Some(Value::Uint(value)) => value.to_string(),
        Some(Value::Double(value)) => double_text(*value),
        Some(Value::Duration(nanos)) => time::duration_text(*nanos),
        Some(Value::Timestamp(moment)) => moment.to_text(),
        Some(Value::Bytes(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Err(EvalError::new("invalid UTF-8 in bytes, cannot convert to string")),
        },
        other => return failed(other, "string"),
    }))
}

/// Go's `%g`: the shortest digits, with an exponent below 1e-4 and from 1e6.
pub(crate) fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn timestamp<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Timestamp(match args.first() {
        Some(Value::Int(seconds)) => Timestamp::new(*seconds, 0)?,
        other => match other.and_then(Value::as_str).map(Timestamp::parse_checked).transpose()? {
            Some(Some(moment)) => moment,
            _ => return failed(other, "google.protobuf.Timestamp"),
        },
    }))
}
