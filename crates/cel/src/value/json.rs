//! JSON becomes values: as its declared type says, or as it is.

use serde_json::Value as Json;

use super::{Bytes, List, Map, Text, Value, time};
use crate::{
    error::EvalError,
    types::{DeclKind, DeclType},
};

impl<'a> Value<'a> {
    /// JSON of a declared type as a value. Objects and lists are not copied; their parts are read when an expression
    /// looks at them.
    pub fn from_json(json: &'a Json, decl: &'a DeclType) -> Result<Self, EvalError> {
        Self::read(json, Some(decl))
    }

    /// JSON without a declared type as a value.
    pub fn from_untyped(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Self::Int(int),
                None => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::String(Text::Borrowed(text)),
            Json::Array(items) => Self::List(List::json(items, None)),
            Json::Object(map) => Self::Map(Map::json(map, None)),
        }
    }

    /// JSON as Go decodes it without a type.
    fn decoded(json: &'a Json, decl: &'a DeclType) -> Self {
        match json {
            Json::Number(number) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            Json::Array(items) => Self::List(List::json(items, Some(decl))),
            Json::Object(map) => Self::Map(Map::json(map, Some(decl))),
            other => Self::from_untyped(other),
        }
    }

    pub(crate) fn read(json: &'a Json, decl: Option<&'a DeclType>) -> Result<Self, EvalError> {
        let Some(decl) = decl else { return Ok(Self::from_untyped(json)) };
        if matches!(decl.kind(), DeclKind::Decoded) {
            return Ok(Self::decoded(json, decl));
        }
        if json.is_null() && !matches!(decl.kind(), DeclKind::Dyn) {
            return if decl.is_nullable() {
                Ok(Self::Null)
            } else {
                Err(EvalError::new("invalid data, got null for schema with nullable=false"))
            };
        }
        match (decl.kind(), json) {
            (DeclKind::Dyn, _) => Ok(Self::from_untyped(json)),
            (DeclKind::Preserved, _) => Ok(Self::Preserved(json)),
            (DeclKind::Object(_) | DeclKind::Map(_), Json::Object(map)) => {
                Ok(Self::Map(Map::json(map, Some(decl))))
            }
            (DeclKind::List(..), Json::Array(items)) => Ok(Self::List(List::json(items, Some(decl)))),
            (DeclKind::String | DeclKind::IntOrString, Json::String(text)) => {
                Ok(Self::String(Text::Borrowed(text)))
            }
            (DeclKind::Bool, Json::Bool(value)) => Ok(Self::Bool(*value)),
            (DeclKind::Double, Json::Number(number)) => Ok(Self::Double(number.as_f64().unwrap_or(f64::NAN))),
            (DeclKind::Int | DeclKind::IntOrString, Json::Number(number)) => {
                number.as_i64().map(Self::Int).ok_or_else(|| mismatch(decl, json))
            }
            (DeclKind::Duration, Json::String(text)) => match time::parse_swagger_duration(text) {
                Some(duration) => Ok(Self::Duration(duration)),
                None => Err(EvalError::new(format!(
                    "Invalid duration {text}: unable to parse {text} as duration"
                ))),
            },
            (DeclKind::Date, Json::String(text)) => match time::Timestamp::parse_date(text) {
                Some(timestamp) => Ok(Self::Timestamp(timestamp)),
                None => Err(EvalError::new(format!("Invalid date formatted string {text}"))),
            },
            (DeclKind::DateTime, Json::String(text)) => match time::Timestamp::parse_date_time(text) {
                Some(timestamp) => Ok(Self::Timestamp(timestamp)),
                None => Err(EvalError::new(format!("Invalid date-time formatted string {text}"))),
            },
            (DeclKind::Bytes, Json::String(text)) => match base64_bytes(text) {
                Some(bytes) => Ok(Self::Bytes(Bytes::Shared(bytes.into()))),
                None => Err(EvalError::new(format!("Invalid byte formatted string {text}"))),
            },
            _ => Err(mismatch(decl, json)),
        }
    }
}

fn base64_bytes(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    // Go ignores line breaks in base64.
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

#[cold]
fn mismatch(decl: &DeclType, json: &Json) -> EvalError {
    let got = match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    };
    let expected = match decl.kind() {
        DeclKind::IntOrString => {
            return EvalError::new(
                "invalid data, expected XIntOrString value to be either a string or integer",
            );
        }
        DeclKind::Object(_) | DeclKind::Map(_) => {
            return EvalError::new("invalid data, expected a map for the provided schema with type=object");
        }
        DeclKind::List(..) => {
            return EvalError::new("invalid data, expected an array for the provided schema with type=array");
        }
        DeclKind::Bool => "bool",
        DeclKind::Int => "int",
        DeclKind::Double => "float",
        _ => "string",
    };
    EvalError::new(format!("invalid data, expected {expected}, got {got}"))
}
