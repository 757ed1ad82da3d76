//! Protobuf encoding by the table of types, back to front, so that the length of a message is known when it is
//! written.

use serde_json::{Map, Value};

use super::MAGIC;
use crate::{
    codec::scalars::{self, Instant, Layout},
    table::{Field, Proto, SchemaOther, Shape, Type},
};

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

/// Upper bound of field numbers.
pub(super) const NUMBERS: usize = 128;

/// Bytes in reverse.
struct Writer {
    out: Vec<u8>,
}

pub(super) fn enveloped(ty: &'static Type, object: &Value, api_version: &str, kind: &str) -> Vec<u8> {
    let mut writer = Writer::in_envelope();
    writer.nested(2, |writer| writer.value(ty, object));
    writer.close_envelope(api_version, kind)
}

pub(super) fn enveloped_list(
    ty: &'static Type,
    list: &Value,
    items: impl Iterator<Item = Value>,
    (api_version, kind): (&str, &str),
) -> Vec<u8> {
    let mut writer = Writer::in_envelope();
    let start = writer.out.len();
    // The items are the last field of every list.
    if let Some(Field { shape: Shape::List(shape), proto: Some(proto), .. }) = ty.field("items") {
        for item in items {
            writer.single(shape, proto.number, Some(&item));
        }
    }
    writer.value(ty, list);
    writer.varint((writer.out.len() - start) as u64);
    writer.tag(2, BYTES);
    writer.close_envelope(api_version, kind)
}

pub(super) fn watch_frame(event: &str, object: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.nested(2, |writer| writer.bytes(1, object));
    writer.bytes(1, event.as_bytes());
    let length = u32::try_from(writer.out.len()).unwrap_or(u32::MAX);
    writer.out.extend(length.to_le_bytes());
    writer.finish()
}

impl Writer {
    fn new() -> Writer {
        Writer { out: Vec::with_capacity(1024) }
    }

    fn in_envelope() -> Writer {
        let mut writer = Writer::new();
        // Encoding and type of the content, both empty.
        writer.bytes(4, b"");
        writer.bytes(3, b"");
        writer
    }

    fn close_envelope(mut self, api_version: &str, kind: &str) -> Vec<u8> {
        self.nested(1, |writer| {
            writer.bytes(2, kind.as_bytes());
            writer.bytes(1, api_version.as_bytes());
        });
        self.out.extend(MAGIC.iter().rev());
        self.finish()
    }

    fn finish(mut self) -> Vec<u8> {
        self.out.reverse();
        self.out
    }

    fn varint(&mut self, mut value: u64) {
        let start = self.out.len();
        loop {
            let byte = (value & 0x7f) as u8;
            value >>= 7;
            if value == 0 {
                self.out.push(byte);
                break;
            }
            self.out.push(byte | 0x80);
        }
        if let Some(written) = self.out.get_mut(start..) {
            written.reverse();
        }
    }

    fn tag(&mut self, number: u32, wire: u32) {
        self.varint(u64::from(number) << 3 | u64::from(wire));
    }

    fn number(&mut self, number: u32, value: u64) {
        self.varint(value);
        self.tag(number, VARINT);
    }

    fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.out.extend(bytes.iter().rev());
        self.varint(bytes.len() as u64);
        self.tag(number, BYTES);
    }

    fn nested(&mut self, number: u32, write: impl FnOnce(&mut Writer)) {
        let start = self.out.len();
        write(self);
        self.varint((self.out.len() - start) as u64);
        self.tag(number, BYTES);
    }

    fn value(&mut self, ty: &'static Type, value: &Value) {
        self.message(ty, &[], value.as_object());
    }

    /// `within` is the path to the inlined struct of this message.
    fn message(&mut self, ty: &'static Type, within: &'static [u32], map: Option<&Map<String, Value>>) {
        let depth = within.len();
        // By number: a field, or a field of an inlined struct; and the value of the field.
        let mut places = [0u16; NUMBERS];
        let mut values: [Option<&Value>; NUMBERS] = [None; NUMBERS];
        let mut numbers = 0u128;
        for (field, index) in ty.fields.iter().zip(0..) {
            if let Some(proto) = &field.proto
                && (depth == 0 || proto.within.starts_with(within))
            {
                let number = proto.within.get(depth).copied().unwrap_or(proto.number);
                if let Some(place) = places.get_mut(number as usize) {
                    *place = index;
                    numbers |= 1 << number;
                }
            }
        }
        // Few fields of a type are set: looking those up is cheaper than looking up all fields in the map.
        for (name, value) in map.into_iter().flatten() {
            if let Some(proto) = ty.field(name).and_then(|field| field.proto)
                && proto.within.len() == depth
                && (depth == 0 || proto.within == within)
                && let Some(slot) = values.get_mut(proto.number as usize)
            {
                *slot = Some(value).filter(|value| !value.is_null());
            }
        }
        while numbers != 0 {
            let number = 127 - numbers.leading_zeros();
            numbers &= !(1 << number);
            let place = places.get(number as usize).copied().unwrap_or_default();
            let Some(field) = ty.fields.get(usize::from(place)) else { continue };
            let Some(proto) = field.proto else { continue };
            match proto.within.get(..=depth) {
                Some(deeper) => self.nested(number, |writer| writer.message(ty, deeper, map)),
                None => self.field(field, proto, values.get(number as usize).copied().flatten()),
            }
        }
    }

    fn field(&mut self, field: &'static Field, proto: Proto, value: Option<&Value>) {
        match (field.shape, value) {
            (Shape::List(shape), Some(Value::Array(items))) => {
                if proto.wrapped {
                    self.nested(proto.number, |writer| writer.repeated(shape, 1, items));
                } else {
                    self.repeated(shape, proto.number, items);
                }
            }
            (Shape::Map(shape), Some(Value::Object(map))) => {
                let mut entries: Vec<(&String, &Value)> = map.iter().collect();
                entries.sort_unstable_by(|a, b| b.0.cmp(a.0));
                for (key, value) in entries {
                    self.nested(proto.number, |writer| {
                        writer.single(shape, 2, Some(value));
                        writer.bytes(1, key.as_bytes());
                    });
                }
            }
            (Shape::List(_), _) if proto.wrapped && !field.pointer => self.nested(proto.number, |_| ()),
            (Shape::List(_) | Shape::Map(_), _) | (Shape::Bytes, None) => {}
            (_, None) if field.pointer => {}
            (_, value) => self.single(&field.shape, proto.number, value),
        }
    }

    fn repeated(&mut self, shape: &'static Shape, number: u32, items: &[Value]) {
        for item in items.iter().rev() {
            self.single(shape, number, Some(item));
        }
    }

    /// A single value; None is the zero value.
    fn single(&mut self, shape: &'static Shape, number: u32, value: Option<&Value>) {
        let text = || value.and_then(Value::as_str).unwrap_or_default();
        match shape {
            Shape::Bool => {
                self.number(number, value.and_then(Value::as_bool).unwrap_or_default().into());
            }
            Shape::Int32 | Shape::Int64 => {
                self.number(number, value.and_then(Value::as_i64).unwrap_or_default() as u64);
            }
            Shape::Uint(..) => self.number(number, value.and_then(Value::as_u64).unwrap_or_default()),
            Shape::Float64 => {
                let float = value.and_then(Value::as_f64).unwrap_or_default();
                self.out.extend(float.to_be_bytes());
                self.tag(number, FIXED64);
            }
            Shape::String(_) => self.bytes(number, text().as_bytes()),
            Shape::Bytes => self.bytes(number, &scalars::base64_decode(text()).unwrap_or_default()),
            Shape::Struct(ty) => {
                self.nested(number, |writer| writer.value(ty, value.unwrap_or(&Value::Null)));
            }
            Shape::Time => self.nested(number, |writer| writer.time(text(), Layout::Seconds)),
            Shape::MicroTime => self.nested(number, |writer| writer.time(text(), Layout::Micros)),
            Shape::Duration => {
                let nanos = scalars::parse_duration(text()).unwrap_or_default();
                self.nested(number, |writer| writer.number(1, nanos as u64));
            }
            Shape::Quantity => {
                let text = if text().is_empty() { "0" } else { text() };
                self.nested(number, |writer| writer.bytes(1, text.as_bytes()));
            }
            Shape::IntOrString => {
                let integer = value.and_then(Value::as_i64).unwrap_or_default();
                let is_text = value.is_some_and(Value::is_string);
                self.nested(number, |writer| {
                    writer.bytes(3, text().as_bytes());
                    writer.number(2, integer as u64);
                    writer.number(1, is_text.into());
                });
            }
            Shape::RawExtension | Shape::FieldsV1 | Shape::Json => self.nested(number, |writer| {
                if let Some(value) = value.filter(|value| !value.is_null()) {
                    writer.bytes(1, value.to_string().as_bytes());
                }
            }),
            Shape::SchemaOr(ty, other) => {
                self.nested(number, |writer| writer.schema_or(ty, *other, value.unwrap_or(&Value::Null)));
            }
            Shape::List(shape) => self.nested(number, |writer| {
                if let Some(Value::Array(items)) = value {
                    writer.repeated(shape, 1, items);
                }
            }),
            // A map in a list or map does not occur.
            Shape::Map(_) => {}
        }
    }

    fn time(&mut self, text: &str, layout: Layout) {
        let Ok(Instant { seconds, nanos }) = scalars::parse_time(text, layout) else { return };
        if seconds == scalars::ZERO_TIME && nanos == 0 {
            return;
        }
        let nanos = if layout == Layout::Micros { nanos / 1000 * 1000 } else { 0 };
        self.number(2, nanos.into());
        self.number(1, seconds as u64);
    }

    fn schema_or(&mut self, ty: &'static Type, other: SchemaOther, value: &Value) {
        match (other, value) {
            (SchemaOther::Bool, Value::Object(_)) => {
                self.nested(2, |writer| writer.value(ty, value));
                self.number(1, 1);
            }
            (SchemaOther::Bool, _) => self.number(1, (*value == Value::Bool(true)).into()),
            (_, Value::Object(_)) => self.nested(1, |writer| writer.value(ty, value)),
            (SchemaOther::Array, Value::Array(items)) => {
                for item in items.iter().rev() {
                    self.nested(2, |writer| writer.value(ty, item));
                }
            }
            (SchemaOther::StringArray, Value::Array(items)) => {
                for item in items.iter().rev() {
                    self.bytes(2, item.as_str().unwrap_or_default().as_bytes());
                }
            }
            _ => {}
        }
    }
}
