//! The effect of Go's conversion from unstructured content (maps and lists), which strategic merge patch and
//! apply use. The result is that of [`super::decode`], but messages and strictness differ: integral floats
//! become integers, integers wrap around, the first error stops the conversion, and unknown fields are reported
//! sorted.

use serde_json::{Map, Number, Value};

use super::{
    decode::{DecodeError, alone, zero_item},
    gotype, scalars,
};
use crate::table::{Field, Shape, Type};

/// Changes a document into what Go has after converting it from unstructured content to `ty`.
///
/// With `strict`, unknown fields are added to it with their messages in Go.
pub fn from_unstructured(
    ty: &'static Type,
    doc: &mut Value,
    strict: Option<&mut Vec<String>>,
) -> Result<(), DecodeError> {
    let mut converter = Converter { unknown: strict.is_some().then(Vec::new), path: String::new() };
    match doc {
        Value::Object(map) => converter.object(ty, map)?,
        Value::Null => *doc = Value::Object(Map::new()),
        other => return Err(cannot_restore("struct from:", other)),
    }
    if let (Some(strict), Some(mut unknown)) = (strict, converter.unknown) {
        unknown.sort_unstable();
        strict.append(&mut unknown);
    }
    Ok(())
}

/// The kind of a value in Go's reflection.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

fn cannot_restore(what: &str, value: &Value) -> DecodeError {
    let from = if what.ends_with(':') { "" } else { " from" };
    DecodeError::new(format!("cannot restore {what}{from} {}", kind(value)))
}

fn cannot_convert(value: &Value, go: &str) -> DecodeError {
    DecodeError::new(format!("cannot convert {} to {go}", kind(value)))
}

fn unrecognized(kind: &str) -> DecodeError {
    DecodeError::new(format!("unrecognized type: {kind}"))
}

struct Converter {
    unknown: Option<Vec<String>>,
    /// The path, tracked for unknown fields only. Go omits map keys.
    path: String,
}

impl Converter {
    fn object(&mut self, ty: &'static Type, map: &mut Map<String, Value>) -> Result<(), DecodeError> {
        let mut outcome = Ok(());
        map.retain(|name, value| {
            if outcome.is_err() {
                return true;
            }
            let length = self.path.len();
            if self.unknown.is_some() {
                if length > 0 {
                    self.path.push('.');
                }
                self.path.push_str(name);
            }
            let keep = match ty.field(name) {
                None => {
                    if let Some(unknown) = &mut self.unknown {
                        unknown.push(format!("unknown field \"{}\"", self.path));
                    }
                    false
                }
                Some(field) => self.field(field, value).unwrap_or_else(|error| {
                    outcome = Err(error);
                    true
                }),
            };
            self.path.truncate(length);
            keep
        });
        outcome
    }

    fn field(&mut self, field: &'static Field, value: &mut Value) -> Result<bool, DecodeError> {
        if !value.is_null() {
            self.value(&field.shape, Some(field.go), value)?;
        }
        Ok(!value.is_null())
    }

    fn item(
        &mut self,
        shape: &'static Shape,
        go: Option<&'static str>,
        value: &mut Value,
    ) -> Result<(), DecodeError> {
        if value.is_null() {
            *value = zero_item(shape);
            return Ok(());
        }
        self.value(shape, go, value)
    }

    fn value(
        &mut self,
        shape: &'static Shape,
        go: Option<&'static str>,
        value: &mut Value,
    ) -> Result<(), DecodeError> {
        let items_go = go.and_then(gotype::of_items);
        match (shape, &mut *value) {
            (Shape::Bool, Value::Bool(_)) | (Shape::String(_), Value::String(_)) => {}
            (Shape::Bool, _) => return Err(unrecognized("bool")),
            // Go could convert a number to a character, and reports that it does not.
            (Shape::String(name), Value::Number(number)) if number.is_i64() => {
                return Err(cannot_convert(value, go.unwrap_or(name)));
            }
            (Shape::String(_), _) => return Err(unrecognized("string")),
            (Shape::Int32, _) => integer(value, "int32", go, |number| i64::from(number as i32))?,
            (Shape::Int64, _) => integer(value, "int64", go, |number| number)?,
            (Shape::Uint(name, most), _) => {
                integer(value, name, go, |number| (number as u64 & *most) as i64)?;
            }
            (Shape::Float64, Value::Number(_)) => alone(shape, value)?,
            (Shape::Float64, _) => return Err(unrecognized("float64")),
            (Shape::Bytes, Value::String(text)) => {
                let canonical = scalars::base64(text);
                if let Some(canonical) = canonical
                    .map_err(|error| DecodeError::new(format!("error decoding from json: {error}")))?
                {
                    *text = canonical;
                }
            }
            (Shape::Bytes, Value::Array(items)) => {
                let mut bytes = Vec::with_capacity(items.len());
                for item in items {
                    self.item(&Shape::Uint("uint8", 255), None, item)?;
                    bytes.push(item.as_u64().and_then(|byte| u8::try_from(byte).ok()).unwrap_or(0));
                }
                *value = Value::String(scalars::base64_encode(&bytes));
            }
            (Shape::Struct(ty), Value::Object(map)) => self.object(ty, map)?,
            (Shape::Struct(_), other) => return Err(cannot_restore("struct from:", other)),
            (Shape::List(shape), Value::Array(items)) => {
                let length = self.path.len();
                for (index, item) in items.iter_mut().enumerate() {
                    if self.unknown.is_some() {
                        self.path.push_str(&format!("[{index}]"));
                    }
                    self.item(shape, items_go, item)?;
                    self.path.truncate(length);
                }
            }
            (Shape::List(_) | Shape::Bytes, other) => return Err(cannot_restore("slice", other)),
            (Shape::Map(shape), Value::Object(map)) => {
                for (_, item) in map.iter_mut() {
                    self.item(shape, items_go, item)?;
                }
            }
            (Shape::Map(_), other) => return Err(cannot_restore("map", other)),
            _ => alone(shape, value)?,
        }
        Ok(())
    }
}

fn integer(
    value: &mut Value,
    kind: &str,
    go: Option<&'static str>,
    wrap: impl FnOnce(i64) -> i64,
) -> Result<(), DecodeError> {
    let Value::Number(number) = value else {
        return Err(unrecognized(kind));
    };
    let integer = match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => integer,
        (None, Some(float)) if float.fract() == 0.0 => float as i64,
        _ => return Err(cannot_convert(value, go.unwrap_or(kind))),
    };
    *number = Number::from(wrap(integer));
    Ok(())
}
