//! The effect of Go's typed decoder on a JSON document.
//!
//! Go decodes into a struct and encodes that struct again; here the document is changed into the result. As in
//! Go there are two kinds of errors: a value of the wrong type is recorded and decoding continues, so that the
//! first one is reported; a type with its own decoder (times, quantities…) stops decoding, and its error takes
//! precedence over recorded ones.

use k1s_object::decode::type_name;
use k1s_object::field::quote;
use serde_json::{Map, Number, Value};

use super::gotype;
use super::scalars::{self, Layout};
use crate::table::{Field, SchemaOther, Shape, Type};

/// Maximum number of strict decoding errors, as in Go.
const MOST_STRICT_ERRORS: usize = 100;

/// The reason why a document does not fit its type, with Go's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(String);

impl DecodeError {
    pub(super) fn new(message: String) -> DecodeError {
        DecodeError(message)
    }
}

/// Decodes a single value, for types with their own decoder.
pub(super) fn alone(shape: &'static Shape, value: &mut Value) -> Result<(), DecodeError> {
    let mut decoder = Decoder { saved: None, strict: None, keys: 0 };
    decoder.value(shape, value, &Step::Root)?;
    decoder.saved.map_or(Ok(()), Err)
}

/// The value Go holds for a null item.
pub(super) fn zero_item(shape: &Shape) -> Value {
    match shape {
        Shape::Bool => Value::from(false),
        Shape::Int32 | Shape::Int64 | Shape::Uint(..) | Shape::Float64 | Shape::IntOrString => Value::from(0),
        Shape::String(_) | Shape::Bytes => Value::from(""),
        Shape::Duration => Value::from("0s"),
        Shape::Quantity => Value::from("0"),
        Shape::Struct(_) => Value::Object(Map::new()),
        Shape::SchemaOr(_, SchemaOther::Bool) => Value::from(false),
        _ => Value::Null,
    }
}

/// Changes a document into what Go has after decoding it into `ty`.
///
/// Unknown fields and nulls are dropped; times, quantities and bytes get their canonical form. With `strict`,
/// unknown fields are added to it with their messages in Go, in document order.
pub fn decode(
    ty: &'static Type,
    doc: &mut Value,
    strict: Option<&mut Vec<String>>,
) -> Result<(), DecodeError> {
    let Some(strict) = strict else { return walk(ty, doc, None) };
    let mut unknown = Vec::new();
    walk(ty, doc, Some(&mut unknown))?;
    for Unknown { message, .. } in unknown {
        remember(strict, message);
    }
    Ok(())
}

/// Decodes, and returns all strict decoding errors: unknown fields, merged with the duplicate fields that the
/// parser found.
///
/// A duplicate is its path and the number of keys before it in the document, at all levels.
pub fn decode_strict<'d>(
    ty: &'static Type,
    doc: &mut Value,
    duplicates: impl IntoIterator<Item = (&'d str, usize)>,
) -> Result<Vec<String>, DecodeError> {
    let mut unknown = Vec::new();
    walk(ty, doc, Some(&mut unknown))?;
    let mut strict = Vec::new();
    let mut unknown = unknown.into_iter().peekable();
    for (path, before) in duplicates {
        while let Some(Unknown { message, .. }) = unknown.next_if(|unknown| unknown.position < before) {
            remember(&mut strict, message);
        }
        remember(&mut strict, format!("duplicate field {}", quote(path)));
    }
    for Unknown { message, .. } in unknown {
        remember(&mut strict, message);
    }
    Ok(strict)
}

fn remember(strict: &mut Vec<String>, message: String) {
    if strict.len() < MOST_STRICT_ERRORS && !strict.contains(&message) {
        strict.push(message);
    }
}

fn walk(ty: &'static Type, doc: &mut Value, strict: Option<&mut Vec<Unknown>>) -> Result<(), DecodeError> {
    let mut decoder = Decoder { saved: None, strict, keys: 0 };
    match doc {
        Value::Object(map) => decoder.object(ty, map, &Step::Root)?,
        Value::Null => *doc = Value::Object(Map::new()),
        other => decoder.wrong(other, ty.go, &Step::Root),
    }
    decoder.saved.map_or(Ok(()), Err)
}

/// A field that the type does not have.
struct Unknown {
    /// The number of keys before it in the document.
    position: usize,
    message: String,
}

/// The number of keys of a value, at all levels.
fn count_keys(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count_keys).sum(),
        Value::Object(map) => map.values().map(|value| 1 + count_keys(value)).sum(),
        _ => 0,
    }
}

/// The position of the decoder, as a linked list on the stack, so that descending does not allocate.
enum Step<'a> {
    Root,
    Field(&'a Step<'a>, &'static Type, &'static Field),
    Key(&'a Step<'a>, &'a str),
    Index(&'a Step<'a>, usize),
}

impl Step<'_> {
    /// `spec.containers[0].name`
    fn write(&self, out: &mut String) {
        let (parent, name) = match self {
            Step::Root => return,
            Step::Index(parent, index) => {
                parent.write(out);
                out.push_str(&format!("[{index}]"));
                return;
            }
            Step::Field(parent, _, field) => (parent, field.name),
            Step::Key(parent, key) => (parent, *key),
        };
        parent.write(out);
        if !out.is_empty() {
            out.push('.');
        }
        out.push_str(name);
    }

    /// `spec.containers.name`, with the names of the structs that Go embeds: `spec.volumes.VolumeSource.secret`
    fn write_fields(&self, out: &mut String) {
        match self {
            Step::Root => {}
            Step::Key(parent, _) | Step::Index(parent, _) => parent.write_fields(out),
            Step::Field(parent, _, field) => {
                parent.write_fields(out);
                // A struct embedded in an embedded struct; there is only one.
                let twice = field.proto.is_some_and(|proto| proto.within.len() > 1);
                let outer = if twice { "RuleWithOperations" } else { "" };
                for name in [outer, field.declared_in, field.name] {
                    if !out.is_empty() && !name.is_empty() {
                        out.push('.');
                    }
                    out.push_str(name);
                }
            }
        }
    }

    /// The struct and the field of this position.
    fn field(&self) -> Option<(&'static Type, &'static Field)> {
        match self {
            Step::Root => None,
            Step::Key(parent, _) | Step::Index(parent, _) => parent.field(),
            Step::Field(_, ty, field) => Some((ty, field)),
        }
    }

    /// The Go type at this position.
    fn go_type(&self, shape: &Shape) -> String {
        self.named().map_or_else(|| gotype::of_shape(shape), str::to_owned)
    }

    fn named(&self) -> Option<&'static str> {
        match self {
            Step::Root => None,
            Step::Key(parent, _) | Step::Index(parent, _) => gotype::of_items(parent.named()?),
            Step::Field(_, _, field) => Some(field.go),
        }
    }
}

fn cannot_unmarshal(what: &str, go: &str, at: &Step<'_>) -> DecodeError {
    DecodeError(match at.field() {
        Some((ty, _)) => {
            let mut path = String::new();
            at.write_fields(&mut path);
            let owner = ty.go.rsplit('.').next().unwrap_or(ty.go);
            format!("json: cannot unmarshal {what} into Go struct field {owner}.{path} of type {go}")
        }
        None => format!("json: cannot unmarshal {what} into Go value of type {go}"),
    })
}

/// The number as it was most likely sent.
fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() >= 1e15 => {
            format!("{float:.0}")
        }
        _ => number.to_string(),
    }
}

struct Decoder<'s> {
    saved: Option<DecodeError>,
    strict: Option<&'s mut Vec<Unknown>>,
    /// Keys seen so far, counted if strict.
    keys: usize,
}

impl Decoder<'_> {
    fn save(&mut self, error: impl FnOnce() -> DecodeError) {
        if self.saved.is_none() {
            self.saved = Some(error());
        }
    }

    fn wrong(&mut self, value: &Value, go: &str, at: &Step<'_>) {
        self.save(|| cannot_unmarshal(type_name(value), go, at));
    }

    fn unknown(&mut self, name: &str, value: &Value, at: &Step<'_>) {
        let position = self.keys;
        self.skipped(value);
        if let Some(strict) = self.strict.as_deref_mut()
            && strict.len() < MOST_STRICT_ERRORS
        {
            let mut path = String::new();
            Step::Key(at, name).write(&mut path);
            strict.push(Unknown { position, message: format!("unknown field {}", quote(&path)) });
        }
    }

    /// Counts the keys of a value that is not visited.
    fn skipped(&mut self, value: &Value) {
        if self.strict.is_some() {
            self.keys += count_keys(value);
        }
    }

    fn object(
        &mut self,
        ty: &'static Type,
        map: &mut Map<String, Value>,
        at: &Step<'_>,
    ) -> Result<(), DecodeError> {
        let mut outcome = Ok(());
        map.retain(|name, value| {
            if outcome.is_err() {
                return true;
            }
            let Some(field) = ty.field(name) else {
                self.unknown(name, value, at);
                self.keys += 1;
                return false;
            };
            self.keys += 1;
            match self.field(field, value, &Step::Field(at, ty, field)) {
                Ok(keep) => keep,
                Err(error) => {
                    outcome = Err(error);
                    true
                }
            }
        });
        outcome
    }

    /// Decodes the value of a field; false if Go would not encode it.
    fn field(
        &mut self,
        field: &'static Field,
        value: &mut Value,
        at: &Step<'_>,
    ) -> Result<bool, DecodeError> {
        if !value.is_null() {
            self.value(&field.shape, value, at)?;
            return Ok(!value.is_null());
        }
        match field.shape {
            Shape::IntOrString if !field.pointer => *value = Value::from(0),
            Shape::Duration if !field.pointer => self.duration("")?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Decodes an item of a list or the value of a map, which cannot be omitted.
    fn item(&mut self, shape: &'static Shape, value: &mut Value, at: &Step<'_>) -> Result<(), DecodeError> {
        if !value.is_null() {
            return self.value(shape, value, at);
        }
        match shape {
            Shape::Duration => return self.duration(""),
            Shape::SchemaOr(_, SchemaOther::Bool) => return Err(neither_bool_nor_schema()),
            _ => *value = zero_item(shape),
        }
        Ok(())
    }

    fn duration(&mut self, text: &str) -> Result<(), DecodeError> {
        scalars::duration(text).map(|_| ()).map_err(DecodeError)
    }

    /// Decodes anything but null.
    fn value(&mut self, shape: &'static Shape, value: &mut Value, at: &Step<'_>) -> Result<(), DecodeError> {
        match (shape, &mut *value) {
            (Shape::Bool, Value::Bool(_)) | (Shape::String(_), Value::String(_)) => {}
            (Shape::Int32, Value::Number(_)) => {
                self.integer(i32::MIN.into(), i32::MAX.into(), shape, value, at)
            }
            (Shape::Int64, Value::Number(_)) => {
                self.integer(i64::MIN.into(), i64::MAX.into(), shape, value, at)
            }
            (Shape::Uint(_, most), Value::Number(_)) => self.integer(0, (*most).into(), shape, value, at),
            (Shape::Float64, Value::Number(number)) => {
                // Go encodes an integral float without a fraction.
                if let Some(float) = number.as_f64()
                    && number.is_f64()
                    && float.fract() == 0.0
                    && float.abs() < 1e18
                    && !(float == 0.0 && float.is_sign_negative())
                {
                    *number = Number::from(float as i64);
                }
            }
            (Shape::Bytes, Value::String(text)) => match scalars::base64(text) {
                Ok(Some(canonical)) => *text = canonical,
                Ok(None) => {}
                Err(error) => self.save(|| DecodeError(error)),
            },
            (Shape::Bytes, Value::Array(items)) => {
                let bytes = self.bytes(items, at);
                *value = Value::String(bytes);
            }
            (Shape::Time, _) => self.time(Layout::Seconds, value, at)?,
            (Shape::MicroTime, _) => self.time(Layout::Micros, value, at)?,
            (Shape::Duration, Value::String(text)) => {
                if let Some(canonical) = scalars::duration(text).map_err(DecodeError)? {
                    *text = canonical;
                }
            }
            (Shape::Duration, other) => return Err(cannot_unmarshal(type_name(other), "string", at)),
            (Shape::Quantity, Value::String(text)) => {
                if let Some(canonical) = scalars::quantity(text).map_err(DecodeError)? {
                    *text = canonical;
                }
            }
            (Shape::Quantity, other) => {
                let text = match other {
                    Value::Number(number) => number_text(number),
                    other => other.to_string(),
                };
                let canonical = scalars::quantity(&text).map_err(DecodeError)?;
                *value = Value::String(canonical.unwrap_or(text));
            }
            (Shape::IntOrString, Value::String(_)) => {}
            (Shape::IntOrString, other) => {
                let mut inner = Decoder { saved: None, strict: None, keys: 0 };
                inner.value(&Shape::Int32, other, at)?;
                // The integer has its own decoder, unless its type is named.
                if inner.saved.is_some() {
                    let what = match other {
                        Value::Number(number) => format!("number {}", number_text(number)),
                        other => type_name(other).to_owned(),
                    };
                    return Err(cannot_unmarshal(&what, "int32", at));
                }
            }
            (Shape::RawExtension | Shape::FieldsV1 | Shape::Json, value) => self.skipped(value),
            (Shape::SchemaOr(ty, other), _) => self.schema_or(ty, *other, value, at)?,
            (Shape::Struct(ty), Value::Object(map)) => self.object(ty, map, at)?,
            (Shape::List(shape), Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.item(shape, item, &Step::Index(at, index))?;
                }
            }
            (Shape::Map(shape), Value::Object(map)) => {
                for (key, item) in map.iter_mut() {
                    self.keys += 1;
                    self.item(shape, item, &Step::Key(at, key))?;
                }
            }
            (_, other) => {
                let go = at.go_type(shape);
                self.wrong(other, &go, at);
            }
        }
        Ok(())
    }

    fn integer(&mut self, least: i128, most: i128, shape: &Shape, value: &mut Value, at: &Step<'_>) {
        let Value::Number(number) = value else { return };
        let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        match integer {
            Some(integer) if (least..=most).contains(&integer) => {}
            // Sent as `-0`.
            None if number.as_f64().is_some_and(|float| float == 0.0 && float.is_sign_negative()) => {
                *number = Number::from(0);
            }
            _ => {
                let what = format!("number {}", number_text(number));
                self.save(|| cannot_unmarshal(&what, &at.go_type(shape), at));
            }
        }
    }

    /// Bytes sent as an array of numbers.
    fn bytes(&mut self, items: &mut [Value], at: &Step<'_>) -> String {
        let mut bytes = Vec::with_capacity(items.len());
        for (index, item) in items.iter_mut().enumerate() {
            let at = Step::Index(at, index);
            match item {
                Value::Null => bytes.push(0),
                Value::Number(_) => {
                    self.integer(0, 255, &Shape::Uint("uint8", 255), item, &at);
                    bytes.push(item.as_u64().and_then(|byte| u8::try_from(byte).ok()).unwrap_or(0));
                }
                other => self.wrong(other, "uint8", &at),
            }
        }
        scalars::base64_encode(&bytes)
    }

    fn time(&mut self, layout: Layout, value: &mut Value, at: &Step<'_>) -> Result<(), DecodeError> {
        let Value::String(text) = value else {
            return Err(cannot_unmarshal(type_name(value), "string", at));
        };
        match scalars::time(text, layout).map_err(DecodeError)? {
            Some(Some(canonical)) => *text = canonical,
            Some(None) => *value = Value::Null,
            None => {}
        }
        Ok(())
    }

    /// A schema or an alternative. Go decodes these separately: unknown fields in them are not reported, and an
    /// error stops decoding.
    fn schema_or(
        &mut self,
        ty: &'static Type,
        other: SchemaOther,
        value: &mut Value,
        at: &Step<'_>,
    ) -> Result<(), DecodeError> {
        self.skipped(value);
        let mut inner = Decoder { saved: None, strict: None, keys: 0 };
        match (&mut *value, other) {
            (Value::Object(map), _) => inner.object(ty, map, at)?,
            (Value::Bool(_), SchemaOther::Bool) => {}
            (_, SchemaOther::Bool) => return Err(neither_bool_nor_schema()),
            (Value::Array(items), SchemaOther::Array) => {
                for (index, item) in items.iter_mut().enumerate() {
                    match item {
                        Value::Object(map) => inner.object(ty, map, &Step::Index(at, index))?,
                        Value::Null => *item = Value::Object(Map::new()),
                        item => inner.wrong(item, ty.go, at),
                    }
                }
            }
            (Value::Array(items), SchemaOther::StringArray) => {
                for item in items.iter_mut() {
                    match item {
                        Value::String(_) => {}
                        Value::Null => *item = Value::from(""),
                        item => inner.wrong(item, "string", at),
                    }
                }
            }
            _ => *value = Value::Null,
        }
        inner.saved.map_or(Ok(()), Err)
    }
}

fn neither_bool_nor_schema() -> DecodeError {
    DecodeError("boolean or JSON schema expected".to_owned())
}
