//! Values become JSON, as patches and messages need them.

use serde_json::{Map as JsonMap, Number, Value as Json};

use super::{Key, Value, time};
use crate::error::EvalError;

/// Maximum size of JSON, about in bytes. Values that share their parts can be much larger than what they are made of.
const MAX_SIZE: usize = 32 << 20;

impl Value<'_> {
    /// The value as JSON; an error for values that have no JSON form, or too large a one. Parts of the input come out as
    /// they are.
    pub fn to_json(&self) -> Result<Json, EvalError> {
        self.to_json_within(&mut { MAX_SIZE })
    }

    fn to_json_within(&self, left: &mut usize) -> Result<Json, EvalError> {
        let size = match self {
            Self::String(text) => text.len(),
            Self::Bytes(bytes) => bytes.len().saturating_mul(2),
            Self::Map(map) => map.len().saturating_mul(8),
            _ => 1,
        };
        *left = left.checked_sub(size.max(1)).ok_or(EvalError::CostLimit)?;
        Ok(match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Int(value) => Json::Number((*value).into()),
            Self::Uint(value) => Json::Number((*value).into()),
            Self::Double(value) => Number::from_f64(*value)
                .map(Json::Number)
                .ok_or_else(|| EvalError::new("a number that is infinite, or none, has no JSON form"))?,
            Self::String(text) => Json::String((**text).to_owned()),
            Self::Bytes(bytes) => {
                use base64::Engine as _;
                Json::String(base64::engine::general_purpose::STANDARD.encode(&**bytes))
            }
            Self::Duration(nanos) => Json::String(time::duration_text(*nanos)),
            Self::Timestamp(moment) => Json::String(moment.to_text()),
            Self::List(list) => Json::Array(
                list.iter().map(|item| item?.to_json_within(left)).collect::<Result<_, EvalError>>()?,
            ),
            Self::Map(map) => {
                if let Some((json, _)) = map.as_json() {
                    return Ok(Json::Object(json.clone()));
                }
                let mut object = JsonMap::with_capacity(map.len());
                for key in map.keys() {
                    let Some(value) = map.get(&key) else { continue };
                    let name = match &key {
                        Key::Bool(value) => value.to_string(),
                        Key::Int(value) => value.to_string(),
                        Key::Uint(value) => value.to_string(),
                        Key::String(text) => (**text).to_owned(),
                    };
                    object.insert(name, value?.to_json_within(left)?);
                }
                Json::Object(object)
            }
            Self::Object(object) => {
                let mut fields = JsonMap::with_capacity(object.fields().len());
                for (name, value) in object.fields() {
                    fields.insert(name.to_owned(), value.to_json_within(left)?);
                }
                Json::Object(fields)
            }
            Self::Preserved(json) => (*json).clone(),
            Self::Optional(Some(value)) => value.to_json_within(left)?,
            Self::Optional(None) | Self::Opaque(_) | Self::Type(_) => {
                return Err(EvalError::new(format!(
                    "a value of type '{}' has no JSON form",
                    self.type_name()
                )));
            }
        })
    }
}
