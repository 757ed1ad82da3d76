//! Resolution of scalars in YAML 1.1.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Number, Value};

use super::Key;
use crate::decode::Error;
use crate::field::quote;
use crate::jsonpath::shortest_digits;

/// A null key in Go.
pub(super) const NULL_KEY: &str = "<nil>";

/// A scalar with its YAML 1.1 type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar<'t> {
    Null,
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Float(f64),
    Text(Cow<'t, str>),
}

impl Scalar<'_> {
    pub(super) fn to_json(&self) -> Result<Value, Error> {
        Ok(match self {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(*value),
            Scalar::Int(value) => Value::from(*value),
            // Go encodes the number as JSON and decodes it again, where it does not fit an integer.
            Scalar::Unsigned(value) => Value::from(*value as f64),
            Scalar::Float(value) => {
                let whole = value.fract() == 0.0 && value.abs() < 9_223_372_036_854_775_808.0;
                let number = if whole { Some(Number::from(*value as i64)) } else { Number::from_f64(*value) };
                let shown = if value.is_nan() {
                    "NaN"
                } else if *value > 0.0 {
                    "+Inf"
                } else {
                    "-Inf"
                };
                number
                    .map(Value::Number)
                    .ok_or_else(|| Error::new(format!("json: unsupported value: {shown}")))?
            }
            Scalar::Text(text) => Value::String(text.to_string()),
        })
    }

    pub(super) fn to_key(&self) -> Result<Key, Error> {
        let plain = |text: String| Key { shown: text.clone(), text };
        Ok(match self {
            Scalar::Text(text) => Key { text: text.to_string(), shown: quote(text) },
            Scalar::Bool(value) => plain(value.to_string()),
            Scalar::Int(value) => plain(value.to_string()),
            Scalar::Float(value) => plain(float_key(*value)),
            Scalar::Unsigned(value) => {
                return Err(Error::new(format!("unsupported map key of type: uint64, key: {value:#x}")));
            }
            // A map may not have such a key; the error is reported with the value.
            Scalar::Null => Key { text: String::new(), shown: NULL_KEY.into() },
        })
    }
}

/// A float key as go-yaml prints it: the shortest form of the 32-bit number.
fn float_key(value: f64) -> String {
    if value.is_nan() {
        return ".nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.into();
    }
    let narrow = value as f32;
    shortest_digits(&format!("{narrow:e}"), &narrow.to_string())
}

/// A scalar by its tag, or by its form if it is plain and has no tag.
pub(super) fn scalar<'t>(text: &'t str, plain: bool, tag: Option<&str>) -> Result<Scalar<'t>, Error> {
    let core = tag.map(|tag| tag.strip_prefix("tag:yaml.org,2002:").unwrap_or_default());
    match core {
        None if !plain => Ok(Scalar::Text(text.into())),
        None => Ok(resolve(text)),
        Some("binary") => {
            let bytes = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            bytes
                .map(|text| Scalar::Text(text.into()))
                .ok_or_else(|| Error::new("yaml: !!binary value contains invalid base64 data"))
        }
        Some(wanted @ ("int" | "float" | "bool" | "null")) => {
            let resolved = resolve(text);
            let (found, resolved) = match resolved {
                Scalar::Null => ("null", resolved),
                Scalar::Bool(_) => ("bool", resolved),
                Scalar::Int(number) if wanted == "float" => ("float", Scalar::Float(number as f64)),
                Scalar::Int(_) | Scalar::Unsigned(_) => ("int", resolved),
                Scalar::Float(_) => ("float", resolved),
                Scalar::Text(_) => ("str", resolved),
            };
            if found == wanted {
                return Ok(resolved);
            }
            Err(Error::new(format!("yaml: cannot decode !!{found} `{text}` as a !!{wanted}")))
        }
        Some(_) => Ok(Scalar::Text(text.into())),
    }
}

/// Resolves a plain scalar.
fn resolve(text: &str) -> Scalar<'_> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Scalar::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let number = match text.as_bytes().first() {
        Some(b'.') => parse_float(text),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            let plain = text.replace('_', "");
            parse_int(&plain).or_else(|| parse_float(&plain))
        }
        _ => None,
    };
    number.unwrap_or(Scalar::Text(text.into()))
}

/// An integer in Go syntax: decimal, `0x1f`, `0o17`, `017` or `0b11`.
fn parse_int(text: &str) -> Option<Scalar<'static>> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, digits.get(2..)?),
        Some("0o") => (8, digits.get(2..)?),
        Some("0b") => (2, digits.get(2..)?),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    let number = i128::from(magnitude) * if negative { -1 } else { 1 };
    match i64::try_from(number) {
        Ok(number) => Some(Scalar::Int(number)),
        Err(_) if !negative && !text.starts_with('+') => Some(Scalar::Unsigned(magnitude)),
        Err(_) => None,
    }
}

fn parse_float(text: &str) -> Option<Scalar<'static>> {
    let numeric = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    text.parse::<f64>().ok().filter(|number| numeric && number.is_finite()).map(Scalar::Float)
}
