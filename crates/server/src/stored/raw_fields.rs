//! Parses an object, but not the `fieldsV1` of its managers: they become strings that hold their JSON.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};

/// The object.
pub(super) struct ObjectSeed;
/// A value of a field at some level.
struct MemberSeed(Level);
/// The fields of `metadata`, or of a manager.
struct FieldsVisitor(Level);
struct ManagersVisitor;

/// What an object is.
#[derive(Clone, Copy)]
enum Level {
    Object,
    Metadata,
    Manager,
}

impl<'de> DeserializeSeed<'de> for ObjectSeed {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Map<String, Value>, D::Error> {
        deserializer.deserialize_map(FieldsVisitor(Level::Object))
    }
}

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Map<String, Value>, A::Error> {
        let mut out = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = match (self.0, &*name) {
                (Level::Object, "metadata") => fields.next_value_seed(MemberSeed(Level::Metadata))?,
                (Level::Metadata, "managedFields") => fields.next_value_seed(MemberSeed(Level::Manager))?,
                (Level::Manager, "fieldsV1") => {
                    Value::String(fields.next_value::<&RawValue>()?.get().to_owned())
                }
                _ => fields.next_value()?,
            };
            out.insert(name, value);
        }
        Ok(out)
    }
}

impl<'de> DeserializeSeed<'de> for MemberSeed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.0 {
            Level::Manager => deserializer.deserialize_seq(ManagersVisitor).map(Value::Array),
            level => deserializer.deserialize_map(FieldsVisitor(level)).map(Value::Object),
        }
    }
}

impl<'de> Visitor<'de> for ManagersVisitor {
    type Value = Vec<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of managers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<Value>, A::Error> {
        let mut out = Vec::new();
        while let Some(entry) = entries.next_element_seed(ManagerSeed)? {
            out.push(Value::Object(entry));
        }
        Ok(out)
    }
}

struct ManagerSeed;

impl<'de> DeserializeSeed<'de> for ManagerSeed {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Map<String, Value>, D::Error> {
        deserializer.deserialize_map(FieldsVisitor(Level::Manager))
    }
}
