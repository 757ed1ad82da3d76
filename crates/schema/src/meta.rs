//! The metadata of an object: unknown fields and empty values are dropped, wrong types rejected with Go's
//! messages.

use k1s_object::decode::type_name;
use serde_json::{Map, Value};

/// The treatment of metadata that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Reject the request.
    Refuse,
    /// Drop the field: the object comes from the store.
    Drop,
}

enum Kind {
    Text(&'static str),
    Int,
    Bool,
    Time,
    Texts,
    TextMap,
    Raw,
    List(&'static str, &'static [(&'static str, Kind)]),
}

const OWNER: &[(&str, Kind)] = &[
    ("apiVersion", Kind::Text("string")),
    ("kind", Kind::Text("string")),
    ("name", Kind::Text("string")),
    ("uid", Kind::Text("types.UID")),
    ("controller", Kind::Bool),
    ("blockOwnerDeletion", Kind::Bool),
];

const MANAGED: &[(&str, Kind)] = &[
    ("manager", Kind::Text("string")),
    ("operation", Kind::Text("v1.ManagedFieldsOperationType")),
    ("apiVersion", Kind::Text("string")),
    ("time", Kind::Time),
    ("fieldsType", Kind::Text("string")),
    ("fieldsV1", Kind::Raw),
    ("subresource", Kind::Text("string")),
];

const OBJECT_META: &[(&str, Kind)] = &[
    ("name", Kind::Text("string")),
    ("generateName", Kind::Text("string")),
    ("namespace", Kind::Text("string")),
    ("selfLink", Kind::Text("string")),
    ("uid", Kind::Text("types.UID")),
    ("resourceVersion", Kind::Text("string")),
    ("generation", Kind::Int),
    ("creationTimestamp", Kind::Time),
    ("deletionTimestamp", Kind::Time),
    ("deletionGracePeriodSeconds", Kind::Int),
    ("labels", Kind::TextMap),
    ("annotations", Kind::TextMap),
    ("ownerReferences", Kind::List("OwnerReference", OWNER)),
    ("finalizers", Kind::Texts),
    ("managedFields", Kind::List("ManagedFieldsEntry", MANAGED)),
];

/// Changes `metadata` into what decoding into an `ObjectMeta` and encoding it again would give: unknown fields
/// (their names are added to `unknown`) and empty values are dropped.
///
/// # Errors
/// With [`Malformed::Refuse`], the message of Go's JSON decoder about the first value of a wrong type.
pub fn coerce(metadata: &mut Value, malformed: Malformed, unknown: &mut Vec<String>) -> Result<(), String> {
    let word = type_name(metadata);
    let Value::Object(map) = metadata else {
        if metadata.is_null() {
            *metadata = Value::Object(Map::new());
            return Ok(());
        }
        // Without an object there are no fields; stored values stay as they are.
        return match malformed {
            Malformed::Drop => Ok(()),
            Malformed::Refuse => {
                Err(format!("json: cannot unmarshal {word} into Go value of type v1.ObjectMeta"))
            }
        };
    };
    let mut failed = None;
    map.retain(|key, value| {
        let Some((name, kind)) = OBJECT_META.iter().find(|(name, _)| *name == key) else {
            unknown.push(key.clone());
            return false;
        };
        match decode(value, kind, "ObjectMeta", name, name, unknown) {
            Ok(()) => !is_zero(value),
            Err(error) => {
                failed.get_or_insert(error);
                false
            }
        }
    });
    match (failed, malformed) {
        (Some(error), Malformed::Refuse) => Err(error),
        _ => Ok(()),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) => false,
    }
}

fn decode(
    value: &mut Value,
    kind: &Kind,
    owner: &str,
    names: &str,
    place: &str,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    let wrong = |value: &Value, wanted: &str| {
        Err(format!(
            "json: cannot unmarshal {} into Go struct field {owner}.{names} of type {wanted}",
            type_name(value)
        ))
    };
    match kind {
        Kind::Text(wanted) if !value.is_string() => wrong(value, wanted),
        Kind::Bool if !value.is_boolean() => wrong(value, "bool"),
        Kind::Int => match value.as_i64() {
            Some(_) => Ok(()),
            None => match value {
                Value::Number(number) => Err(format!(
                    "json: cannot unmarshal number {number} into Go struct field {owner}.{names} of type int64"
                )),
                other => wrong(other, "int64"),
            },
        },
        Kind::Time => match value {
            Value::String(text) => time(text).map(|whole| *text = whole),
            other => wrong(other, "string"),
        },
        Kind::Texts => match value {
            Value::Array(list) => list.iter_mut().try_for_each(|item| text(item, &wrong)),
            other => wrong(other, "[]string"),
        },
        Kind::TextMap => match value {
            Value::Object(map) => map.values_mut().try_for_each(|item| text(item, &wrong)),
            other => wrong(other, "map[string]string"),
        },
        Kind::List(name, fields) => {
            let Value::Array(list) = value else { return wrong(value, &format!("[]v1.{name}")) };
            for (index, item) in list.iter_mut().enumerate() {
                let Value::Object(map) = item else {
                    if item.is_null() {
                        continue;
                    }
                    return wrong(item, &format!("v1.{name}"));
                };
                let mut failed = None;
                map.retain(|key, value| {
                    let Some((field, kind)) = fields.iter().find(|(field, _)| *field == key) else {
                        unknown.push(format!("{place}[{index}].{key}"));
                        return false;
                    };
                    if let Err(error) = decode(
                        value,
                        kind,
                        name,
                        &format!("{names}.{field}"),
                        &format!("{place}[{index}].{field}"),
                        unknown,
                    ) {
                        failed.get_or_insert(error);
                    }
                    !value.is_null()
                });
                if let Some(error) = failed {
                    return Err(error);
                }
            }
            Ok(())
        }
        Kind::Text(_) | Kind::Bool | Kind::Raw => Ok(()),
    }
}

fn text(item: &mut Value, wrong: &impl Fn(&Value, &str) -> Result<(), String>) -> Result<(), String> {
    match item {
        Value::String(_) => Ok(()),
        Value::Null => {
            *item = Value::from("");
            Ok(())
        }
        other => wrong(other, "string"),
    }
}

/// Times have a precision of seconds, in UTC.
fn time(text: &str) -> Result<String, String> {
    match text.parse::<jiff::Timestamp>().and_then(|time| jiff::Timestamp::from_second(time.as_second())) {
        Ok(time) => Ok(time.to_string()),
        Err(_) => Err(format!(
            "parsing time \"{text}\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"{text}\" as \"2006\""
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_and_empty_fields_go() {
        let mut metadata = json!({"name": "p", "foo": 1, "creationTimestamp": null, "deletionTimestamp": "2024-01-02T04:04:05.5+01:00", "labels": {}, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u", "x": 1}]});
        let mut unknown = Vec::new();
        coerce(&mut metadata, Malformed::Refuse, &mut unknown).unwrap();
        assert_eq!(
            metadata,
            json!({"name": "p", "deletionTimestamp": "2024-01-02T03:04:05Z", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u"}]})
        );
        assert_eq!(unknown, ["foo", "ownerReferences[0].x"]);
    }

    #[test]
    fn wrong_types_are_refused_in_go_words() {
        for (metadata, error) in [
            (
                json!({"labels": {"a": 5}}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
            ),
            (
                json!({"name": []}),
                "json: cannot unmarshal array into Go struct field ObjectMeta.name of type string",
            ),
            (json!("x"), "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
            (
                json!({"ownerReferences": [{"name": true}]}),
                "json: cannot unmarshal bool into Go struct field OwnerReference.ownerReferences.name of type string",
            ),
        ] {
            assert_eq!(coerce(&mut metadata.clone(), Malformed::Refuse, &mut Vec::new()).unwrap_err(), error);
            assert_eq!(coerce(&mut metadata.clone(), Malformed::Drop, &mut Vec::new()), Ok(()));
        }
    }
}
