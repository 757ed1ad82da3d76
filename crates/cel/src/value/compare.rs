//! Equality and order.

use std::{cmp::Ordering, collections::HashMap};

use serde_json::Value as Json;

use super::{Key, List, Map, Value};
use crate::{
    error::EvalError,
    types::{DeclKind, ListType, ObjectType},
    work::Work,
};

/// Maximum number of parts that one comparison looks at: more than an object has.
const WORK: u64 = 2_000_000;
/// The work of finding an item of a set or a map by its key.
const WORK_OF_KEY: u64 = 4;

impl<'a> Value<'a> {
    /// Whether two values are equal (`==`). Values of different types are not; numbers are compared across types. Very
    /// large ones are not compared: [`EvalError::CostLimit`].
    pub fn equals(&self, other: &Value<'a>) -> Result<bool, EvalError> {
        self.equals_within(other, &Work::new(WORK))
    }

    /// Whether two values are equal, if so many comparisons of parts are enough to tell. What values share is compared
    /// again and again, so that there is no other bound.
    pub(crate) fn equals_within(&self, other: &Value<'a>, work: &Work) -> Result<bool, EvalError> {
        work.take(1)?;
        Ok(match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(one), Self::Bool(two)) => one == two,
            (Self::Int(one), Self::Int(two)) => one == two,
            (Self::String(one), Self::String(two)) => one == two,
            (
                Self::Int(_) | Self::Uint(_) | Self::Double(_),
                Self::Int(_) | Self::Uint(_) | Self::Double(_),
            ) => numbers(self, other) == Some(Ordering::Equal),
            (Self::Bytes(one), Self::Bytes(two)) => **one == **two,
            (Self::Duration(one), Self::Duration(two)) => one == two,
            (Self::Timestamp(one), Self::Timestamp(two)) => one == two,
            (Self::Type(one), Self::Type(two)) => one == two,
            (Self::List(one), Self::List(two)) => lists(one, two, work)?,
            (Self::Map(one), Self::Map(two)) => maps(one, two, work)?,
            (Self::Optional(None), Self::Optional(None)) => true,
            (Self::Optional(Some(one)), Self::Optional(Some(two))) => one.equals_within(two, work)?,
            (Self::Opaque(one), Self::Opaque(two)) => one.equals(&**two),
            (Self::Preserved(one), Self::Preserved(two)) => same_json(one, two, work)?,
            (Self::Object(one), Self::Object(two)) => {
                if one.type_name() != two.type_name() || one.fields().len() != two.fields().len() {
                    return Ok(false);
                }
                for (name, value) in one.fields() {
                    let Some(other) = two.get(name) else { return Ok(false) };
                    if !value.equals_within(other, work)? {
                        return Ok(false);
                    }
                }
                true
            }
            _ => false,
        })
    }

    /// The order of two values (`<`), if values of their types have one.
    pub fn compare(&self, other: &Value<'a>) -> Result<Ordering, EvalError> {
        Ok(match (self, other) {
            (Self::Int(one), Self::Int(two)) => one.cmp(two),
            (Self::Bool(one), Self::Bool(two)) => one.cmp(two),
            (Self::String(one), Self::String(two)) => (**one).cmp(&**two),
            (Self::Bytes(one), Self::Bytes(two)) => (**one).cmp(&**two),
            (Self::Duration(one), Self::Duration(two)) => one.cmp(two),
            (Self::Timestamp(one), Self::Timestamp(two)) => one.cmp(two),
            (
                Self::Int(_) | Self::Uint(_) | Self::Double(_),
                Self::Int(_) | Self::Uint(_) | Self::Double(_),
            ) => {
                return numbers(self, other).ok_or_else(|| EvalError::new("NaN values cannot be ordered"));
            }
            _ => return Err(EvalError::NoSuchOverload),
        })
    }
}

/// The order of two numbers of any type; `None` if one is not a number.
fn numbers(one: &Value<'_>, two: &Value<'_>) -> Option<Ordering> {
    match (one, two) {
        (Value::Int(one), Value::Int(two)) => Some(one.cmp(two)),
        (Value::Uint(one), Value::Uint(two)) => Some(one.cmp(two)),
        (Value::Double(one), Value::Double(two)) => one.partial_cmp(two),
        (Value::Int(one), Value::Uint(two)) => {
            Some(u64::try_from(*one).map_or(Ordering::Less, |one| one.cmp(two)))
        }
        (Value::Double(one), Value::Int(two)) => {
            double_with(*one, i64::MIN as f64, i64::MAX as f64, *two as f64)
        }
        (Value::Double(one), Value::Uint(two)) => double_with(*one, 0.0, u64::MAX as f64, *two as f64),
        _ => numbers(two, one).map(Ordering::reverse),
    }
}

/// Compares as upstream does: beyond the bounds of the integer at once, and else as floating-point numbers.
fn double_with(one: f64, least: f64, most: f64, two: f64) -> Option<Ordering> {
    if one < least {
        Some(Ordering::Less)
    } else if one > most {
        Some(Ordering::Greater)
    } else {
        one.partial_cmp(&two)
    }
}

fn lists<'a>(one: &List<'a>, two: &List<'a>, work: &Work) -> Result<bool, EvalError> {
    if one.len() != two.len() {
        return Ok(false);
    }
    match one.list_type() {
        ListType::Atomic => {
            for (one, two) in one.iter().zip(two.iter()) {
                if !one?.equals_within(&two?, work)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        ListType::Set => {
            work.take(WORK_OF_KEY.saturating_mul(one.len() as u64))?;
            let items = set_of(one)?;
            let mut seen = HashMap::with_capacity(items.len());
            for item in two.iter() {
                let key = set_key(&item?)?;
                if !items.contains_key(&key) {
                    return Ok(false);
                }
                seen.insert(key, ());
            }
            Ok(seen.len() == items.len())
        }
        ListType::Map(keys) => {
            work.take(WORK_OF_KEY.saturating_mul(one.len() as u64))?;
            let mut items = HashMap::with_capacity(one.len());
            for item in one.iter() {
                let item = item?;
                items.insert(map_key(&item, keys), item);
            }
            let mut seen = HashMap::with_capacity(items.len());
            for item in two.iter() {
                let item = item?;
                let key = map_key(&item, keys);
                let Some(known) = items.get(&key) else { return Ok(false) };
                if !known.equals_within(&item, work)? {
                    return Ok(false);
                }
                seen.insert(key, ());
            }
            Ok(seen.len() == items.len())
        }
    }
}

/// `+` of lists: sets and maps are merged, others appended.
pub(crate) fn add_lists<'a>(one: List<'a>, two: &List<'a>) -> Result<List<'a>, EvalError> {
    let decl = one.decl();
    match one.list_type() {
        ListType::Atomic => one.extended(two),
        ListType::Set => {
            let mut known = set_of(&one)?;
            let mut items = one.values()?;
            for item in two.iter() {
                let item = item?;
                if known.insert(set_key(&item)?, ()).is_none() {
                    items.push(item);
                }
            }
            Ok(List::declared(items, decl))
        }
        ListType::Map(keys) => {
            let mut items = one.values()?;
            // Items of `two` with one key are all appended, as upstream does.
            let places: HashMap<_, _> =
                items.iter().enumerate().map(|(at, item)| (map_key(item, keys), at)).collect();
            for item in two.iter() {
                let item = item?;
                match places.get(&map_key(&item, keys)).and_then(|at| items.get_mut(*at)) {
                    Some(place) => *place = item,
                    None => items.push(item),
                }
            }
            Ok(List::declared(items, decl))
        }
    }
}

/// An item of a set, or the key of an item of a list map: comparable and hashable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Scalar {
    Absent,
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(u64),
    String(Box<str>),
    Bytes(Box<[u8]>),
    Duration(i64),
    Timestamp(i64, u32),
    Other(Box<str>),
}

fn scalar(value: &Value<'_>) -> Option<Scalar> {
    Some(match value {
        Value::Null => Scalar::Null,
        Value::Bool(value) => Scalar::Bool(*value),
        Value::Int(value) => Scalar::Int(*value),
        Value::Uint(value) => Scalar::Uint(*value),
        // Both zeros are one number.
        Value::Double(value) => Scalar::Double(if *value == 0.0 { 0 } else { value.to_bits() }),
        Value::String(text) => Scalar::String((**text).into()),
        Value::Bytes(bytes) => Scalar::Bytes((**bytes).into()),
        Value::Duration(value) => Scalar::Duration(*value),
        Value::Timestamp(value) => Scalar::Timestamp(value.seconds(), value.nanos()),
        Value::List(_) | Value::Map(_) => return None,
        other => Scalar::Other(format!("{other:?}").into()),
    })
}

fn set_key(value: &Value<'_>) -> Result<Scalar, EvalError> {
    scalar(value)
        .ok_or_else(|| EvalError::new("listSet operations are only supported on lists of scalar values"))
}

fn set_of(list: &List<'_>) -> Result<HashMap<Scalar, ()>, EvalError> {
    list.iter().map(|item| Ok((set_key(&item?)?, ()))).collect()
}

/// The keys of an item of a list map; a missing key is a key like any other.
fn map_key(item: &Value<'_>, keys: &[Box<str>]) -> Vec<Scalar> {
    let key = |name: &str| match item {
        Value::Map(map) => match map.as_json() {
            Some((json, _)) => scalar(&Value::from_untyped(json.get(name)?)),
            None => scalar(&map.field(name)?.ok()?),
        },
        Value::Object(object) => scalar(object.get(name)?),
        _ => None,
    };
    keys.iter().map(|name| key(name).unwrap_or(Scalar::Absent)).collect()
}

fn maps<'a>(one: &Map<'a>, two: &Map<'a>, work: &Work) -> Result<bool, EvalError> {
    if one.len() != two.len() {
        return Ok(false);
    }
    if let Some((json, Some(decl))) = one.as_json()
        && let DeclKind::Object(object) = decl.kind()
    {
        return objects(json, object, one, two, work);
    }
    for key in one.keys() {
        let (Some(one), Some(two)) = (one.get(&key), two.get(&key)) else { return Ok(false) };
        if !one?.equals_within(&two?, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Objects of a declared type: fields are compared with their types, and what the schema does not know as JSON.
fn objects<'a>(
    json: &'a serde_json::Map<String, Json>,
    object: &ObjectType,
    one: &Map<'a>,
    two: &Map<'a>,
    work: &Work,
) -> Result<bool, EvalError> {
    let other_json = two.as_json();
    for (name, value) in json {
        let Some(field) = object.property(name) else {
            let Some((other, _)) = other_json else { return Err(EvalError::NoSuchOverload) };
            // As upstream: an unknown property that the other object does not have makes no difference.
            if let Some(other) = other.get(name)
                && !same_json(value, other, work)?
            {
                return Ok(false);
            }
            continue;
        };
        match (one.field(&field.name), two.field(&field.name)) {
            (None, None) => {}
            (Some(one), Some(two)) => {
                if !one?.equals_within(&two?, work)? {
                    return Ok(false);
                }
            }
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Whether two pieces of JSON are the same; the order of properties does not matter.
fn same_json(one: &Json, two: &Json, work: &Work) -> Result<bool, EvalError> {
    work.take(1)?;
    match (one, two) {
        (Json::Object(one), Json::Object(two)) => {
            if one.len() != two.len() {
                return Ok(false);
            }
            for (name, value) in one {
                let Some(other) = two.get(name) else { return Ok(false) };
                if !same_json(value, other, work)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Json::Array(one), Json::Array(two)) => {
            if one.len() != two.len() {
                return Ok(false);
            }
            for (one, two) in one.iter().zip(two) {
                if !same_json(one, two, work)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(one == two),
    }
}

/// Whether a list contains a value (`in`).
pub(crate) fn contains<'a>(list: &List<'a>, value: &Value<'a>, work: &Work) -> Result<bool, EvalError> {
    let mut error = None;
    for item in list.iter() {
        match item.and_then(|item| item.equals_within(value, work)) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(EvalError::CostLimit) => return Err(EvalError::CostLimit),
            Err(other) => error = error.or(Some(other)),
        }
    }
    error.map_or(Ok(false), Err)
}

/// The key with which a value is looked up: whole floating-point numbers find integers.
pub(crate) fn lookup_key<'a>(value: &Value<'a>) -> Option<Key<'a>> {
    match value {
        Value::Double(double) if double.fract() == 0.0 => {
            // Within the range in which every whole number is exact, and beyond it as the cast gives it.
            if (i64::MIN as f64..i64::MAX as f64).contains(double) {
                Some(Key::Int(*double as i64))
            } else if (0.0..u64::MAX as f64).contains(double) {
                Some(Key::Uint(*double as u64))
            } else {
                None
            }
        }
        other => Key::from_value(other),
    }
}
