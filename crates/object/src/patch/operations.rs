//! Parses a JSON Patch: its operations, and the errors of strict field validation.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{PatchError, json::MAX_OPERATIONS};
use crate::decode::type_name;
use crate::field::quote;

/// The type of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
    Unknown,
}

/// An operation of a JSON Patch. A missing `value` is null.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Operation {
    pub(super) op: Op,
    pub(super) path: Option<String>,
    pub(super) from: Option<String>,
    pub(super) value: Value,
}

/// Maximum number of strict validation errors.
const MAX_COMPLAINTS: usize = 100;

/// A parsed patch.
pub(super) struct Read {
    pub(super) operations: Vec<Operation>,
    pub(super) complaints: Vec<String>,
}

/// Parses the operations; with `validate`, unknown, duplicate and mistyped members are reported.
pub(super) fn read(bytes: &[u8], validate: bool) -> Result<Read, PatchError> {
    let mut reader = Reader {
        validate,
        path: String::new(),
        count: 0,
        operations: Vec::new(),
        complaints: Vec::new(),
        misshapen: None,
    };
    let mut source = serde_json::Deserializer::from_slice(bytes);
    Document(&mut reader).deserialize(&mut source).map_err(|_| PatchError::Syntax)?;
    source.end().map_err(|_| PatchError::Syntax)?;
    if let Some(text) = reader.misshapen {
        return Err(PatchError::Shape(text));
    }
    if reader.count > MAX_OPERATIONS {
        return Err(PatchError::TooManyOperations(reader.count));
    }
    Ok(Read { operations: reader.operations, complaints: reader.complaints })
}

struct Reader {
    validate: bool,
    /// The current path: `[0].value.labels`.
    path: String,
    count: usize,
    operations: Vec<Operation>,
    complaints: Vec<String>,
    /// The first structural error.
    misshapen: Option<String>,
}

impl Reader {
    fn complain(&mut self, what: &str, field: &str) {
        if !self.validate || self.complaints.len() >= MAX_COMPLAINTS {
            return;
        }
        let text = format!("json patch {what} field {}", quote(&format!("{}.{field}", self.path)));
        if !self.complaints.contains(&text) {
            self.complaints.push(text);
        }
    }

    /// Records a value of the wrong type; the message depends on validation.
    fn misshapen(&mut self, found: &str, validated: &str, plain: &str) {
        if self.misshapen.is_none() {
            self.misshapen = Some(if self.validate {
                format!("error decoding patch: json: cannot unmarshal {found} into Go {validated}")
            } else {
                format!("json: cannot unmarshal {found} into Go {plain}")
            });
        }
    }
}

/// Visitor methods for scalars, which all report the type they found.
macro_rules! scalars_are_misshapen {
    () => {
        fn visit_bool<E>(self, _: bool) -> Result<(), E> {
            self.wrong("bool");
            Ok(())
        }

        fn visit_i64<E>(self, _: i64) -> Result<(), E> {
            self.wrong("number");
            Ok(())
        }

        fn visit_u64<E>(self, _: u64) -> Result<(), E> {
            self.wrong("number");
            Ok(())
        }

        fn visit_f64<E>(self, _: f64) -> Result<(), E> {
            self.wrong("number");
            Ok(())
        }

        fn visit_str<E>(self, _: &str) -> Result<(), E> {
            self.wrong("string");
            Ok(())
        }
    };
}

/// The whole patch.
struct Document<'r>(&'r mut Reader);

impl Document<'_> {
    fn wrong(self, found: &str) {
        self.0.misshapen(found, "value of type []handlers.jsonPatchOp", "value of type jsonpatch.Patch");
    }
}

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of operations")
    }

    scalars_are_misshapen!();

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        loop {
            self.0.path = format!("[{}]", self.0.count);
            if items.next_element_seed(Item(self.0))?.is_none() {
                return Ok(());
            }
            self.0.count += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.wrong("object");
        Ok(())
    }
}

/// One operation.
struct Item<'r>(&'r mut Reader);

impl Item<'_> {
    fn wrong(self, found: &str) {
        self.0.misshapen(found, "value of type handlers.jsonPatchOp", "value of type jsonpatch.Operation");
    }

    fn keep(&mut self, operation: Operation) {
        // Operations beyond the limit are only counted.
        if self.0.operations.len() < MAX_OPERATIONS {
            self.0.operations.push(operation);
        }
    }

    /// A member that is a string or missing.
    fn text(&mut self, member: &str, value: Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text),
            Value::Null => None,
            other => {
                if self.0.validate {
                    let field = format!("struct field jsonPatchOp.{member} of type string");
                    self.0.misshapen(type_name(&other), &field, "");
                }
                None
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Item<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Item<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an operation")
    }

    scalars_are_misshapen!();

    fn visit_unit<E>(mut self) -> Result<(), E> {
        self.keep(Operation { op: Op::Unknown, path: None, from: None, value: Value::Null });
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        self.wrong("array");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let mut operation = Operation { op: Op::Unknown, path: None, from: None, value: Value::Null };
        let mut seen = [false; 4];
        while let Some(name) = members.next_key::<String>()? {
            let index = match name.as_str() {
                "op" => 0,
                "path" => 1,
                "from" => 2,
                "value" => 3,
                _ => {
                    self.0.complain("unknown", &name);
                    members.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if let Some(seen) = seen.get_mut(index)
                && std::mem::replace(seen, true)
            {
                self.0.complain("duplicate", &name);
            }
            if index == 3 {
                let at = self.0.path.len();
                self.0.path.push_str(".value");
                operation.value = members.next_value_seed(Anything(self.0))?;
                self.0.path.truncate(at);
                continue;
            }
            let value = members.next_value::<Value>()?;
            let text = self.text(&name, value);
            match index {
                0 => operation.op = text.as_deref().map_or(Op::Unknown, op),
                1 => operation.path = text,
                _ => operation.from = text,
            }
        }
        self.keep(operation);
        Ok(())
    }
}

fn op(text: &str) -> Op {
    match text {
        "add" => Op::Add,
        "remove" => Op::Remove,
        "replace" => Op::Replace,
        "move" => Op::Move,
        "copy" => Op::Copy,
        "test" => Op::Test,
        _ => Op::Unknown,
    }
}

/// The value of an operation: anything, with duplicate fields reported.
struct Anything<'r>(&'r mut Reader);

impl<'de> DeserializeSeed<'de> for Anything<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Anything<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, int: i64) -> Result<Value, E> {
        Ok(Value::Number(int.into()))
    }

    fn visit_u64<E>(self, int: u64) -> Result<Value, E> {
        Ok(Value::Number(int.into()))
    }

    fn visit_f64<E>(self, float: f64) -> Result<Value, E> {
        Ok(Number::from_f64(float).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        let at = self.0.path.len();
        loop {
            self.0.path.push_str(&format!("[{}]", list.len()));
            let item = items.next_element_seed(Anything(self.0))?;
            self.0.path.truncate(at);
            match item {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        let at = self.0.path.len();
        while let Some(key) = members.next_key::<String>()? {
            if map.contains_key(&key) {
                self.0.complain("duplicate", &key);
            }
            self.0.path.push('.');
            self.0.path.push_str(&key);
            let value = members.next_value_seed(Anything(self.0))?;
            self.0.path.truncate(at);
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
