//! `format`: values as text, by CEL's extension library of strings, version 2.

use super::{
    go,
    strings::{self, Clause, Piece},
};
use crate::{
    error::EvalError,
    value::{Key, List, Value, time},
};

/// The text of a format string with its arguments.
pub(super) fn format(format: &str, args: &List<'_>) -> Result<String, EvalError> {
    let mut out = String::new();
    let mut rest = format;
    let mut next = 0;
    loop {
        // An argument that is missing is noticed before what is wrong with its clause.
        if rest.starts_with('%') && !rest.starts_with("%%") && next >= args.len() {
            return Err(EvalError::new(format!("index {next} out of range")));
        }
        let Some((piece, after)) = strings::next_piece(rest).map_err(EvalError::new)? else { return Ok(out) };
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Clause(clause) => {
                let arg = args.get(next).ok_or(EvalError::NoSuchOverload)??;
                let text = write(clause, &arg)
                    .map_err(|error| EvalError::new(format!("error during formatting: {error}")))?;
                out.push_str(&text);
                next += 1;
            }
        }
        if out.len() > MAX_LENGTH {
            return Err(EvalError::CostLimit);
        }
        rest = after;
    }
}

/// Longer texts cost more than any expression may.
const MAX_LENGTH: usize = 16 << 20;

/// What is wrong with an argument of a type, in upstream's words.
pub(crate) fn wrong_type(clause: Clause, given: &str) -> String {
    let what = match clause {
        Clause::Text => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
        }
        Clause::Decimal => "decimal clause can only be used on integers",
        Clause::Fixed(_) => "fixed-point clause can only be used on doubles",
        Clause::Scientific(_) => "scientific clause can only be used on doubles",
        Clause::Binary => "only integers and bools can be formatted as binary",
        Clause::Hex(_) => "only integers, byte buffers, and strings can be formatted as hex",
        Clause::Octal => "octal clause can only be used on integers",
    };
    format!("{what}, was given {given}")
}

fn write(clause: Clause, value: &Value<'_>) -> Result<String, String> {
    let wrong = || wrong_type(clause, value.type_name());
    Ok(match (clause, value) {
        (Clause::Text, value) => return text(value),
        (Clause::Decimal, Value::Int(value)) => value.to_string(),
        (Clause::Decimal, Value::Uint(value)) => value.to_string(),
        (Clause::Fixed(digits), value) => strings::fixed(float(value).ok_or_else(wrong)?, digits),
        (Clause::Scientific(digits), value) => strings::scientific(float(value).ok_or_else(wrong)?, digits),
        (Clause::Binary, Value::Bool(value)) => u8::from(*value).to_string(),
        (Clause::Binary, Value::Int(value)) => signed(*value, |value| format!("{value:b}")),
        (Clause::Binary, Value::Uint(value)) => format!("{value:b}"),
        (Clause::Octal, Value::Int(value)) => signed(*value, |value| format!("{value:o}")),
        (Clause::Octal, Value::Uint(value)) => format!("{value:o}"),
        (Clause::Hex(upper), value) => {
            let text = match value {
                Value::Int(value) => signed(*value, |value| format!("{value:x}")),
                Value::Uint(value) => format!("{value:x}"),
                Value::String(text) => text.bytes().map(|byte| format!("{byte:02x}")).collect(),
                Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
                _ => return Err(wrong()),
            };
            if upper { text.to_uppercase() } else { text }
        }
        _ => return Err(wrong()),
    })
}

fn signed(value: i64, write: impl Fn(u64) -> String) -> String {
    let text = write(value.unsigned_abs());
    if value < 0 { format!("-{text}") } else { text }
}

/// A floating-point number, or a string that names one that is infinite or none.
fn float(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// A value by itself: `%s`.
fn text(value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => go::general(*value),
        Value::String(text) => (**text).to_owned(),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                return Err(
                    "could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string"
                        .to_owned(),
                );
            }
        },
        Value::Duration(value) => time::duration_text(*value),
        Value::Timestamp(value) => value.to_text(),
        Value::Type(name) => (**name).to_owned(),
        Value::List(_) | Value::Map(_) => {
            let mut out = String::new();
            write_nested(value, &mut out)?;
            out
        }
        _ => return Err(wrong_type(Clause::Text, value.type_name())),
    })
}

/// A value in a list or a map, which is written as a literal.
fn write_nested(value: &Value<'_>, out: &mut String) -> Result<(), String> {
    use k1s_object::field::quote;
    match value {
        Value::String(text) => out.push_str(&quote(text)),
        Value::Bytes(_) => {
            out.push('b');
            out.push_str(&quote(&text(value)?));
        }
        Value::Double(value) => match *value {
            value if value.is_nan() => out.push_str("\"NaN\""),
            value if value.is_infinite() => {
                out.push_str(if value > 0.0 { "\"+Inf\"" } else { "\"-Inf\"" });
            }
            value => out.push_str(&format!("{value:.6}")),
        },
        Value::Timestamp(value) => out.push_str(&format!("timestamp({})", quote(&value.to_text()))),
        Value::Duration(value) => {
            out.push_str(&format!("duration({})", quote(&time::duration_text(*value))));
        }
        Value::List(list) => {
            out.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_nested(&item.map_err(|error| error.to_string())?, out)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for key in map.keys() {
                let name = match &key {
                    Key::String(text) => quote(text),
                    Key::Bool(value) => value.to_string(),
                    Key::Int(value) => value.to_string(),
                    Key::Uint(value) => value.to_string(),
                };
                let Some(value) = map.get(&key) else { continue };
                let mut entry = String::new();
                write_nested(&value.map_err(|error| error.to_string())?, &mut entry)?;
                entries.push((name, entry));
            }
            entries.sort();
            out.push('{');
            for (index, (name, entry)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                out.push_str(name);
                out.push(':');
                out.push_str(entry);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Type(_) => {
            out.push_str(&text(value)?);
        }
        _ => return Err(format!("no formatting function for {}", value.type_name())),
    }
    if out.len() > MAX_LENGTH {
        return Err("the text is too long".to_owned());
    }
    Ok(())
}
