//! Protobuf decoding by the table of types.

use serde_json::{Map, Number, Value};

use super::{DEEPEST, MAGIC, ProtoError};
use crate::{
    codec::scalars::{self, Instant, Layout, ZERO_TIME},
    table::{Field, Proto, SchemaOther, Shape, Type},
};

type Lookup<'l> = &'l dyn Fn(&str, &str) -> Option<&'static Type>;

/// The content of a field on the wire.
#[derive(Clone, Copy)]
enum Content<'b> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'b [u8]),
    /// Wire types that Kubernetes does not use.
    Other(u8),
}

impl Content<'_> {
    fn wire(self) -> u8 {
        match self {
            Content::Varint(_) => 0,
            Content::Fixed64(_) => 1,
            Content::Bytes(_) => 2,
            Content::Other(wire) => wire,
        }
    }
}

fn varint(rest: &mut &[u8]) -> Result<u64, ProtoError> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, tail) = rest.split_first().ok_or(ProtoError::Eof)?;
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(ProtoError::Overflow)
}

fn take<'b>(rest: &mut &'b [u8], length: u64) -> Result<&'b [u8], ProtoError> {
    let length = usize::try_from(length).map_err(|_| ProtoError::Eof)?;
    let (head, tail) = rest.split_at_checked(length).ok_or(ProtoError::Eof)?;
    *rest = tail;
    Ok(head)
}

fn fixed64(rest: &mut &[u8]) -> Result<u64, ProtoError> {
    let bytes: [u8; 8] = take(rest, 8)?.try_into().map_err(|_| ProtoError::Eof)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The next field of a message: its number and content.
fn next<'b>(rest: &mut &'b [u8]) -> Result<Option<(u64, Content<'b>)>, ProtoError> {
    if rest.is_empty() {
        return Ok(None);
    }
    let tag = varint(rest)?;
    let number = tag >> 3;
    if number == 0 {
        return Err(ProtoError::IllegalTag(number));
    }
    let content = match (tag & 7) as u8 {
        0 => Content::Varint(varint(rest)?),
        1 => Content::Fixed64(fixed64(rest)?),
        2 => {
            let length = varint(rest)?;
            Content::Bytes(take(rest, length)?)
        }
        3 => {
            skip_group(rest)?;
            Content::Other(3)
        }
        5 => {
            take(rest, 4)?;
            Content::Other(5)
        }
        wire => return Err(ProtoError::IllegalWireType(wire)),
    };
    Ok(Some((number, content)))
}

fn skip_group(rest: &mut &[u8]) -> Result<(), ProtoError> {
    let mut open = 1usize;
    while open > 0 {
        match varint(rest)? & 7 {
            0 => {
                varint(rest)?;
            }
            1 => {
                take(rest, 8)?;
            }
            2 => {
                let length = varint(rest)?;
                take(rest, length)?;
            }
            3 => open += 1,
            4 => open -= 1,
            5 => {
                take(rest, 4)?;
            }
            wire => return Err(ProtoError::IllegalWireType(wire as u8)),
        }
    }
    Ok(())
}

/// Decodes an object in its envelope.
pub(super) fn enveloped(bytes: &[u8], lookup: Lookup<'_>, depth: usize) -> Result<Value, ProtoError> {
    if bytes.is_empty() {
        return Err(ProtoError::Empty);
    }
    let mut rest = bytes.strip_prefix(MAGIC.as_slice()).ok_or(ProtoError::Prefix)?;
    if rest.is_empty() {
        return Err(ProtoError::EmptyBody);
    }
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    while let Some((number, content)) = next(&mut rest)? {
        match (number, content) {
            (1, Content::Bytes(mut meta)) => {
                while let Some((number, content)) = next(&mut meta)? {
                    match (number, content) {
                        (1, Content::Bytes(text)) => api_version = lossy(text),
                        (2, Content::Bytes(text)) => kind = lossy(text),
                        (1, other) => return Err(wrong("apiVersion", other)),
                        (2, other) => return Err(wrong("kind", other)),
                        _ => {}
                    }
                }
            }
            (1, other) => return Err(wrong("typeMeta", other)),
            (2, Content::Bytes(bytes)) => raw = bytes,
            (2, other) => return Err(wrong("raw", other)),
            _ => {}
        }
    }
    let Some(ty) = lookup(&api_version, &kind) else {
        return Err(ProtoError::UnknownKind { api_version, kind });
    };
    let mut map = Map::new();
    for (name, text) in [("apiVersion", api_version), ("kind", kind)] {
        if !text.is_empty() {
            map.insert(name.to_owned(), Value::String(text));
        }
    }
    message(ty, raw, &mut map, lookup, depth)?;
    Ok(Value::Object(map))
}

fn wrong(field: &'static str, content: Content<'_>) -> ProtoError {
    ProtoError::WireType { field, wire: content.wire() }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Decodes a message of a type into an object that may already have some of its fields.
pub(super) fn message(
    ty: &'static Type,
    bytes: &[u8],
    map: &mut Map<String, Value>,
    lookup: Lookup<'_>,
    depth: usize,
) -> Result<(), ProtoError> {
    Reader { lookup }.message(ty, &[], bytes, map, depth)
}

/// The meaning of a field number.
enum Found {
    Field(&'static Field, Proto),
    /// An inlined struct, by the field numbers that lead to it.
    Inlined(&'static [u32]),
}

/// Looks up a field number; `within` is the path to the inlined struct of the message.
fn find(ty: &'static Type, within: &'static [u32], number: u64) -> Option<Found> {
    let depth = within.len();
    ty.fields.iter().find_map(|field| {
        let proto = field.proto.as_ref()?;
        match proto.within.get(depth) {
            None if u64::from(proto.number) == number && (depth == 0 || proto.within == within) => {
                Some(Found::Field(field, *proto))
            }
            Some(outer)
                if u64::from(*outer) == number && (depth == 0 || proto.within.starts_with(within)) =>
            {
                proto.within.get(..=depth).map(Found::Inlined)
            }
            _ => None,
        }
    })
}

#[derive(Clone, Copy)]
struct Reader<'l> {
    lookup: Lookup<'l>,
}

impl Reader<'_> {
    /// `within` is the path to the inlined struct of this message.
    fn message(
        self,
        ty: &'static Type,
        within: &'static [u32],
        bytes: &[u8],
        map: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), ProtoError> {
        if depth > DEEPEST {
            return Err(ProtoError::TooDeep);
        }
        let (mut rest, mut last) = (bytes, 0);
        while let Some((number, content)) = next(&mut rest)? {
            // Encoders write fields by ascending number, so that only a lower number can repeat a field.
            let again = number <= std::mem::replace(&mut last, number);
            match (find(ty, within, number), content) {
                (Some(Found::Field(field, proto)), _) => {
                    self.field(field, proto, content, map, again, depth)?;
                }
                (Some(Found::Inlined(deeper)), Content::Bytes(bytes)) => {
                    self.message(ty, deeper, bytes, map, depth + 1)?;
                }
                (Some(Found::Inlined(_)), _) => return Err(wrong("inlined struct", content)),
                (None, _) => {}
            }
        }
        Ok(())
    }

    fn field(
        self,
        field: &'static Field,
        proto: Proto,
        content: Content<'_>,
        map: &mut Map<String, Value>,
        again: bool,
        depth: usize,
    ) -> Result<(), ProtoError> {
        match field.shape {
            Shape::List(shape) => {
                if !matches!(map.get(field.name), Some(Value::Array(_))) {
                    map.insert(field.name.to_owned(), Value::Array(Vec::new()));
                }
                let Some(Value::Array(items)) = map.get_mut(field.name) else { return Ok(()) };
                if proto.wrapped {
                    self.wrapped(field.name, shape, content, items, depth)
                } else {
                    self.repeated(field.name, shape, content, items, depth)
                }
            }
            Shape::Map(shape) => {
                let (key, value) = self.entry(field.name, shape, content, depth)?;
                match map.get_mut(field.name) {
                    Some(Value::Object(entries)) => {
                        entries.insert(key, value);
                    }
                    _ => {
                        let entries = Map::from_iter([(key, value)]);
                        map.insert(field.name.to_owned(), Value::Object(entries));
                    }
                }
                Ok(())
            }
            Shape::Struct(ty) => {
                let Content::Bytes(bytes) = content else { return Err(wrong(field.name, content)) };
                if again && let Some(Value::Object(inner)) = map.get_mut(field.name) {
                    return self.message(ty, &[], bytes, inner, depth + 1);
                }
                let mut inner = Map::new();
                self.message(ty, &[], bytes, &mut inner, depth + 1)?;
                if field.pointer || !inner.is_empty() {
                    map.insert(field.name.to_owned(), Value::Object(inner));
                }
                Ok(())
            }
            _ => {
                let value = self.single(field.name, &field.shape, content, depth)?;
                if value.is_null() || !field.pointer && is_zero(&field.shape, &value) {
                    if again {
                        map.shift_remove(field.name);
                    }
                } else {
                    map.insert(field.name.to_owned(), value);
                }
                Ok(())
            }
        }
    }

    /// One item of a repeated field, or several packed ones.
    fn repeated(
        self,
        name: &'static str,
        shape: &'static Shape,
        content: Content<'_>,
        items: &mut Vec<Value>,
        depth: usize,
    ) -> Result<(), ProtoError> {
        let packed = match (shape, content) {
            (
                Shape::Bool | Shape::Int32 | Shape::Int64 | Shape::Uint(..) | Shape::Float64,
                Content::Bytes(packed),
            ) => packed,
            _ => {
                items.push(self.single(name, shape, content, depth)?);
                return Ok(());
            }
        };
        let mut rest = packed;
        while !rest.is_empty() {
            let content = match shape {
                Shape::Float64 => Content::Fixed64(fixed64(&mut rest)?),
                _ => Content::Varint(varint(&mut rest)?),
            };
            items.push(self.single(name, shape, content, depth)?);
        }
        Ok(())
    }

    /// A list that is a message with the repeated field 1.
    fn wrapped(
        self,
        name: &'static str,
        shape: &'static Shape,
        content: Content<'_>,
        items: &mut Vec<Value>,
        depth: usize,
    ) -> Result<(), ProtoError> {
        let Content::Bytes(mut rest) = content else { return Err(wrong(name, content)) };
        while let Some((number, content)) = next(&mut rest)? {
            if number == 1 {
                self.repeated(name, shape, content, items, depth)?;
            }
        }
        Ok(())
    }

    fn entry(
        self,
        name: &'static str,
        shape: &'static Shape,
        content: Content<'_>,
        depth: usize,
    ) -> Result<(String, Value), ProtoError> {
        let Content::Bytes(mut rest) = content else { return Err(wrong(name, content)) };
        let (mut key, mut value) = (String::new(), None);
        while let Some((number, content)) = next(&mut rest)? {
            match number {
                1 => match content {
                    Content::Bytes(text) => key = lossy(text),
                    _ => return Err(wrong(name, content)),
                },
                2 => value = Some(self.single(name, shape, content, depth)?),
                _ => {}
            }
        }
        let value = match value {
            Some(value) => value,
            None => match shape {
                Shape::Bool => Value::from(false),
                Shape::Int32 | Shape::Int64 | Shape::Uint(..) | Shape::Float64 => Value::from(0),
                Shape::String(_) => Value::from(""),
                _ => self.single(name, shape, Content::Bytes(&[]), depth)?,
            },
        };
        Ok((key, value))
    }

    /// A single value; null if Go would omit it.
    fn single(
        self,
        name: &'static str,
        shape: &'static Shape,
        content: Content<'_>,
        depth: usize,
    ) -> Result<Value, ProtoError> {
        let bytes = match (shape, content) {
            (Shape::Bool, Content::Varint(number)) => return Ok(Value::from(number != 0)),
            (Shape::Int32, Content::Varint(number)) => return Ok(Value::from(number as i32)),
            (Shape::Int64, Content::Varint(number)) => return Ok(Value::from(number as i64)),
            (Shape::Uint(_, most), Content::Varint(number)) => return Ok(Value::from(number & *most)),
            (Shape::Float64, Content::Fixed64(bits)) => return Ok(float(f64::from_bits(bits))),
            (Shape::Bool | Shape::Int32 | Shape::Int64 | Shape::Uint(..) | Shape::Float64, content) => {
                return Err(wrong(name, content));
            }
            (_, Content::Bytes(bytes)) => bytes,
            _ => return Err(wrong(name, content)),
        };
        Ok(match shape {
            Shape::String(_) => Value::String(lossy(bytes)),
            Shape::Bytes => Value::String(scalars::base64_encode(bytes)),
            Shape::Time => time(bytes, Layout::Seconds)?,
            Shape::MicroTime => time(bytes, Layout::Micros)?,
            Shape::Duration => {
                let (mut nanos, mut rest) = (0, bytes);
                while let Some((number, content)) = next(&mut rest)? {
                    match (number, content) {
                        (1, Content::Varint(value)) => nanos = value as i64,
                        (1, content) => return Err(wrong("duration", content)),
                        _ => {}
                    }
                }
                Value::String(scalars::print_duration(nanos))
            }
            Shape::Quantity => {
                let text = lossy(only("string", bytes)?);
                let canonical = scalars::quantity(&text).map_err(ProtoError::Value)?;
                Value::String(canonical.unwrap_or(text))
            }
            Shape::IntOrString => int_or_string(bytes)?,
            Shape::FieldsV1 => {
                let raw = only("raw", bytes)?;
                // Fields that are no JSON do not make a request fail: text is not taken for fields later on.
                self.raw(raw, false, depth).or_else(|_| Ok(Value::String(lossy(raw))))?
            }
            Shape::RawExtension | Shape::Json => {
                self.raw(only("raw", bytes)?, matches!(shape, Shape::RawExtension), depth)?
            }
            Shape::SchemaOr(ty, other) => self.schema_or(ty, *other, bytes, depth)?,
            Shape::Struct(ty) => {
                let mut inner = Map::new();
                self.message(ty, &[], bytes, &mut inner, depth + 1)?;
                Value::Object(inner)
            }
            Shape::List(shape) => {
                let mut items = Vec::new();
                self.wrapped(name, shape, content, &mut items, depth)?;
                if items.is_empty() { Value::Null } else { Value::Array(items) }
            }
            _ => Value::Null,
        })
    }

    fn raw(self, bytes: &[u8], objects: bool, depth: usize) -> Result<Value, ProtoError> {
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        if objects && bytes.starts_with(MAGIC) {
            if depth >= DEEPEST {
                return Err(ProtoError::TooDeep);
            }
            return enveloped(bytes, self.lookup, depth + 1);
        }
        serde_json::from_slice(bytes).map_err(|error| ProtoError::Value(error.to_string()))
    }

    fn schema_or(
        self,
        ty: &'static Type,
        other: SchemaOther,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Value, ProtoError> {
        let (mut allows, mut schema, mut items, mut rest) = (false, None, Vec::new(), bytes);
        let as_schema = |bytes: &[u8]| {
            let mut map = Map::new();
            self.message(ty, &[], bytes, &mut map, depth + 1).map(|()| Value::Object(map))
        };
        while let Some((number, content)) = next(&mut rest)? {
            match (other, number, content) {
                (SchemaOther::Bool, 1, Content::Varint(value)) => allows = value != 0,
                (SchemaOther::Bool, 2, Content::Bytes(bytes)) => schema = Some(as_schema(bytes)?),
                (SchemaOther::Array | SchemaOther::StringArray, 1, Content::Bytes(bytes)) => {
                    schema = Some(as_schema(bytes)?);
                }
                (SchemaOther::Array, 2, Content::Bytes(bytes)) => items.push(as_schema(bytes)?),
                (SchemaOther::StringArray, 2, Content::Bytes(text)) => items.push(Value::String(lossy(text))),
                (_, 1 | 2, content) => return Err(wrong("schema", content)),
                _ => {}
            }
        }
        Ok(match (schema, other) {
            (Some(schema), SchemaOther::Bool) => schema,
            (None, SchemaOther::Bool) => Value::Bool(allows),
            _ if !items.is_empty() => Value::Array(items),
            (schema, _) => schema.unwrap_or(Value::Null),
        })
    }
}

/// The bytes of field 1 of a message that has no other.
fn only<'b>(name: &'static str, bytes: &'b [u8]) -> Result<&'b [u8], ProtoError> {
    let (mut found, mut rest) = (&[][..], bytes);
    while let Some((number, content)) = next(&mut rest)? {
        match (number, content) {
            (1, Content::Bytes(bytes)) => found = bytes,
            (1, content) => return Err(wrong(name, content)),
            _ => {}
        }
    }
    Ok(found)
}

fn float(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e18 && !(value == 0.0 && value.is_sign_negative()) {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::from(0), Value::Number)
}

fn time(bytes: &[u8], layout: Layout) -> Result<Value, ProtoError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos, mut rest) = (0, 0, bytes);
    while let Some((number, content)) = next(&mut rest)? {
        match (number, content) {
            (1, Content::Varint(value)) => seconds = value as i64,
            (2, Content::Varint(value)) => nanos = value as i32,
            (1, content) => return Err(wrong("seconds", content)),
            (2, content) => return Err(wrong("nanos", content)),
            _ => {}
        }
    }
    // Go wraps around beyond its range; a year of more than four digits has no JSON form.
    const LAST: i64 = 253_402_300_799;
    if !(-62_167_219_200..=LAST).contains(&seconds) {
        return Err(ProtoError::Value("Time.MarshalJSON: year outside of range [0,9999]".to_owned()));
    }
    if layout == Layout::Seconds {
        nanos = 0;
    }
    let nanos = u32::try_from(nanos).unwrap_or(0).min(999_999_999) / 1000 * 1000;
    if seconds == ZERO_TIME && nanos == 0 {
        return Ok(Value::Null);
    }
    Ok(Value::String(scalars::print_time(Instant { seconds, nanos }, layout)))
}

fn int_or_string(bytes: &[u8]) -> Result<Value, ProtoError> {
    let (mut kind, mut number, mut text, mut rest) = (0, 0, &[][..], bytes);
    while let Some((field, content)) = next(&mut rest)? {
        match (field, content) {
            (1, Content::Varint(value)) => kind = value,
            (2, Content::Varint(value)) => number = value as i32,
            (3, Content::Bytes(bytes)) => text = bytes,
            (1, content) => return Err(wrong("type", content)),
            (2, content) => return Err(wrong("intVal", content)),
            (3, content) => return Err(wrong("strVal", content)),
            _ => {}
        }
    }
    match kind {
        0 => Ok(Value::from(number)),
        1 => Ok(Value::String(lossy(text))),
        _ => Err(ProtoError::Value("impossible IntOrString.Type".to_owned())),
    }
}

/// Whether this is the zero value: Go writes those as well.
fn is_zero(shape: &Shape, value: &Value) -> bool {
    match value {
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => match shape {
            Shape::Quantity => text == "0",
            Shape::Duration => text == "0s",
            Shape::String(_) => text.is_empty(),
            _ => false,
        },
        _ => false,
    }
}
