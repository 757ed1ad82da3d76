//! Variables, fields and items.

use std::sync::Arc;

use super::{
    Frame, Outcome,
    node::{Attribute, Node, Qualifier, QualifierKey, Root},
};
use crate::{
    cost,
    error::EvalError,
    value::{Key, Value, lookup_key, read_field},
};

/// Bytes decoded by a unit of work.
const BYTES_DECODED: u64 = 16;

impl<'a> Frame<'a, '_> {
    pub(super) fn attribute(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        let value = self.resolve(attribute);
        self.charge(own_cost(attribute))?;
        value
    }

    /// The value of an attribute, without the cost of its root: what the branches of a conditional cost.
    fn resolve(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        let mut value = self.root(&attribute.root)?;
        self.decoded(&value)?;
        let mut optional = false;
        for (at, qualifier) in attribute.qualifiers.iter().enumerate() {
            let (next, is_optional) = match value {
                // The first qualifier of an optional, and all after an optional one, look into it.
                Value::Optional(None) if optional || at == 0 => return Ok(Value::Optional(None)),
                Value::Optional(Some(inner)) if optional || at == 0 => ((*inner).clone(), true),
                other => (other, false),
            };
            optional |= is_optional || qualifier.optional;
            let mut key = None;
            let found = self.find(&next, qualifier, &mut key);
            if matches!(found, Err(EvalError::CostLimit)) {
                return Err(EvalError::CostLimit);
            }
            if !matches!(found, Ok(None)) || !optional {
                self.charge(cost::SELECT)?;
            }
            let found = found?;
            if let Some(found) = &found {
                self.decoded(found)?;
            }
            value = match found {
                Some(found) if optional => Value::some(found),
                Some(found) => found,
                None if optional => return Ok(Value::Optional(None)),
                None => return Err(missing(&next, qualifier, key.as_ref())),
            };
        }
        Ok(value)
    }

    /// The work of reading a value: bytes are decoded by each read of the text that they are in JSON.
    pub(super) fn decoded(&mut self, value: &Value<'a>) -> Result<(), EvalError> {
        match value {
            Value::Bytes(bytes) => self.works(bytes.len() as u64 / BYTES_DECODED),
            _ => Ok(()),
        }
    }

    fn root(&mut self, root: &'a Root) -> Outcome<'a> {
        match root {
            Root::Variable(number, name, _) => self
                .variables
                .get(*number, name)
                .unwrap_or_else(|| Err(EvalError::new(format!("no such attribute(s): {name}")))),
            Root::Local(at) => self.locals.get(*at).cloned().ok_or(EvalError::NoSuchOverload),
            Root::Value(node) => self.node(node),
            Root::Conditional(condition, yes, no) => {
                let Value::Bool(condition) = self.node(condition)? else {
                    return Err(EvalError::NoSuchOverload);
                };
                match if condition { &**yes } else { &**no } {
                    Node::Attribute(attribute) => self.resolve(attribute),
                    node => self.node(node),
                }
            }
        }
    }

    /// `has(…)`
    pub(super) fn test(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        let Some((last, before)) = attribute.qualifiers.split_last() else { return Ok(Value::Bool(true)) };
        let mut value = self.root(&attribute.root)?;
        for qualifier in before {
            value = unwrapped(value);
            let mut key = None;
            let found = self.find(&value, qualifier, &mut key);
            self.charge(cost::SELECT)?;
            value = match found? {
                Some(found) => found,
                None if qualifier.optional => return Ok(Value::Bool(false)),
                None => return Err(missing(&value, qualifier, key.as_ref())),
            };
        }
        value = unwrapped(value);
        let found = self.find(&value, last, &mut None);
        self.charge(cost::SELECT)?;
        let found = found?;
        if let Some(found) = &found {
            self.decoded(found)?;
        }
        Ok(Value::Bool(found.is_some()))
    }

    /// What a qualifier finds in a value, or `None` if there is nothing. A computed key is noted.
    fn find(
        &mut self,
        value: &Value<'a>,
        qualifier: &'a Qualifier,
        computed: &mut Option<Value<'a>>,
    ) -> Result<Option<Value<'a>>, EvalError> {
        match (&qualifier.key, value) {
            (QualifierKey::Field(field, object), Value::Map(map)) => {
                if let Some((json, Some(decl))) = map.as_json()
                    && let crate::types::DeclKind::Object(known) = decl.kind()
                    && known.is(object)
                {
                    return read_field(json, &field.json, &field.decl).transpose();
                }
                map.field(&field.name).transpose()
            }
            (QualifierKey::Name(name), Value::Map(map)) => map.field(name).transpose(),
            (QualifierKey::Field(field, _), other) => by_name(other, &field.name),
            (QualifierKey::Name(name), other) => by_name(other, name),
            (QualifierKey::Constant(key), value) => by_key(value, key),
            (QualifierKey::Computed(node), value) => {
                let key = computed.insert(match node {
                    // As a key, an attribute costs as much as its qualifiers.
                    Node::Attribute(attribute) => self.resolve(attribute)?,
                    node => self.node(node)?,
                });
                by_key(value, key)
            }
        }
    }
}

/// What an attribute costs beside its qualifiers.
fn own_cost(attribute: &Attribute) -> u64 {
    match &attribute.root {
        Root::Variable(_, _, cost) => *cost,
        Root::Conditional(..) => 0,
        Root::Local(_) | Root::Value(_) => cost::SELECT,
    }
}

fn unwrapped(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Optional(Some(inner)) => Arc::unwrap_or_clone(inner),
        other => other,
    }
}

fn by_name<'a>(value: &Value<'a>, name: &str) -> Result<Option<Value<'a>>, EvalError> {
    match value {
        Value::Object(object) => Ok(object.get(name).cloned()),
        Value::List(_) => Err(EvalError::new("unsupported index type 'string' in list")),
        _ => Ok(None),
    }
}

fn by_key<'a>(value: &Value<'a>, key: &Value<'_>) -> Result<Option<Value<'a>>, EvalError> {
    match value {
        Value::Map(map) => match lookup_key(key) {
            Some(key) => map.get(&key).transpose(),
            None => Ok(None),
        },
        Value::List(list) => {
            let index = match key {
                Value::Int(index) => usize::try_from(*index).ok(),
                Value::Uint(index) => usize::try_from(*index).ok(),
                Value::Double(index) if index.fract() == 0.0 && *index >= 0.0 => Some(*index as usize),
                Value::Double(index) if index.fract() == 0.0 => None,
                Value::Double(index) => {
                    return Err(EvalError::new(format!("unsupported index value {index} in list")));
                }
                other => {
                    return Err(EvalError::new(format!(
                        "unsupported index type '{}' in list",
                        other.type_name()
                    )));
                }
            };
            index.and_then(|index| list.get(index)).transpose()
        }
        Value::Object(object) => Ok(key.as_str().and_then(|name| object.get(name)).cloned()),
        _ => Ok(None),
    }
}

#[cold]
fn missing(value: &Value<'_>, qualifier: &Qualifier, computed: Option<&Value<'_>>) -> EvalError {
    let key = match &qualifier.key {
        QualifierKey::Field(field, _) => field.name.to_string(),
        QualifierKey::Name(name) => name.to_string(),
        QualifierKey::Constant(key) => shown(key),
        QualifierKey::Computed(_) => computed.map(shown).unwrap_or_default(),
    };
    match value {
        Value::List(_) => EvalError::IndexOutOfBounds(key.into()),
        _ => EvalError::NoSuchKey(key.into()),
    }
}

/// A key in a message.
fn shown(key: &Value<'_>) -> String {
    match (key, Key::from_value(key)) {
        (_, Some(Key::Bool(value))) => value.to_string(),
        (_, Some(Key::Int(value))) => value.to_string(),
        (_, Some(Key::Uint(value))) => value.to_string(),
        (_, Some(Key::String(text))) => text.to_string(),
        (Value::Double(value), None) => value.to_string(),
        (other, None) => other.type_name().to_owned(),
    }
}
