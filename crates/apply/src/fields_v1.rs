//! `FieldsV1`: the JSON form of a field set, in the bytes that kube-apiserver writes.
//!
//! An element is a key: `f:name`, `k:{"name":"nginx"}`, `v:"value"` or `i:3`. A member that has longer paths under it has the
//! key `.` beside them.

use serde_json::{Map, Value};

use crate::{path::PathElement, set::FieldSet};

/// Why a `FieldsV1` cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// The value of a key, or the whole, is not an object.
    #[error("expected an object in FieldsV1, found {0}")]
    NoObject(String),
    /// A key is not `f:`, `k:`, `v:` or `i:` with a value.
    #[error("invalid key {key:?} in FieldsV1: {why}")]
    Key {
        /// The key.
        key: String,
        /// What is wrong with it.
        why: String,
    },
}

fn bad(key: &str, why: impl Into<String>) -> FieldsError {
    FieldsError::Key { key: key.into(), why: why.into() }
}

/// Appends JSON with the escapes of Go's encoder, which escapes HTML.
fn write_json(out: &mut String, value: &Value) {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        out.push_str(&text);
        return;
    }
    // Outside of strings, JSON has none of these characters.
    for c in text.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
}

impl PathElement {
    /// The key of the element in `FieldsV1`.
    pub fn to_key(&self) -> String {
        match self {
            PathElement::Field(name) => {
                let mut out = String::with_capacity(name.len() + 2);
                out.push_str("f:");
                out.push_str(name);
                out
            }
            PathElement::Key(fields) => {
                let mut out = String::from("k:{");
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write_json(&mut out, &Value::String(name.to_string()));
                    out.push(':');
                    write_json(&mut out, value);
                }
                out.push('}');
                out
            }
            PathElement::Value(value) => {
                let mut out = String::from("v:");
                write_json(&mut out, value);
                out
            }
            PathElement::Index(index) => format!("i:{index}"),
        }
    }

    /// Reads a key of `FieldsV1`.
    ///
    /// # Errors
    /// A key of another form.
    pub fn from_key(key: &str) -> Result<PathElement, FieldsError> {
        let (kind, rest) = match (key.get(..2), key.get(2..)) {
            (Some(kind), Some(rest)) => (kind, rest),
            _ => return Err(bad(key, "it has less than two characters")),
        };
        let json = || serde_json::from_str::<Value>(rest).map_err(|error| bad(key, error.to_string()));
        match kind {
            "f:" => Ok(PathElement::Field(rest.into())),
            "v:" => Ok(PathElement::Value(json()?)),
            "k:" => match json()? {
                Value::Object(fields) => Ok(PathElement::key(fields)),
                _ => Err(bad(key, "the fields of a key are an object")),
            },
            "i:" => rest.parse().map(PathElement::Index).map_err(|_| bad(key, "an index is a number")),
            _ => Err(bad(key, "expected f:, k:, v: or i:")),
        }
    }
}

impl FieldSet {
    /// The set as `FieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(self.to_map(false))
    }

    fn to_map(&self, is_member: bool) -> Map<String, Value> {
        let mut out = Map::with_capacity(self.members.len() + self.children.len() + usize::from(is_member));
        if is_member {
            out.insert(".".into(), Value::Object(Map::new()));
        }
        let mut children = self.children.iter().peekable();
        let mut members = self.members.iter().peekable();
        loop {
            match (members.peek(), children.peek()) {
                (Some(member), Some((element, child))) => {
                    if *member < element {
                        out.insert(member.to_key(), Value::Object(Map::new()));
                        members.next();
                    } else {
                        let same = *member == element;
                        out.insert(element.to_key(), Value::Object(child.to_map(same)));
                        children.next();
                        if same {
                            members.next();
                        }
                    }
                }
                (Some(member), None) => {
                    out.insert(member.to_key(), Value::Object(Map::new()));
                    members.next();
                }
                (None, Some((element, child))) => {
                    out.insert(element.to_key(), Value::Object(child.to_map(false)));
                    children.next();
                }
                (None, None) => return out,
            }
        }
    }

    /// Reads `FieldsV1`.
    ///
    /// # Errors
    /// JSON of another form.
    pub fn from_fields_v1(fields: &Value) -> Result<FieldSet, FieldsError> {
        Ok(FieldSet::from_node(fields)?.0)
    }

    /// The set of a node, and whether the node itself is a member.
    fn from_node(node: &Value) -> Result<(FieldSet, bool), FieldsError> {
        let map = match node {
            Value::Object(map) => map,
            Value::Null => return Ok((FieldSet::new(), true)),
            other => return Err(FieldsError::NoObject(other.to_string())),
        };
        let mut set = FieldSet::new();
        let mut is_member = map.is_empty();
        for (key, value) in map {
            if key == "." {
                is_member = true;
                continue;
            }
            let element = PathElement::from_key(key)?;
            let (child, member) = match value {
                Value::Object(map) if map.is_empty() => (FieldSet::new(), true),
                value => FieldSet::from_node(value)?,
            };
            if child.is_empty() {
                if member {
                    set.members.push(element);
                }
            } else {
                if member {
                    set.members.push(element.clone());
                }
                set.children.push((element, child));
            }
        }
        set.normalize();
        Ok((set, is_member))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_set_is_written_in_the_order_of_its_elements() {
        let text = r#"{"f:a":{},"f:b":{".":{},"k:{\"name\":\"x\",\"port\":80}":{".":{},"f:c":{}},"v:\"s\"":{},"v:3":{},"i:2":{}}}"#;
        let set = FieldSet::from_fields_v1(&serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(set.len(), 7);
        let numbers_first = text.replace(r#""v:\"s\"":{},"v:3":{}"#, r#""v:3":{},"v:\"s\"":{}"#);
        assert_eq!(set.to_fields_v1().to_string(), numbers_first);
        assert!(set.has(&[PathElement::field("b")]));
        assert!(set.has(&[
            PathElement::field("b"),
            PathElement::key([("port", json!(80)), ("name", json!("x"))]),
            PathElement::field("c")
        ]));
    }

    #[test]
    fn keys_are_escaped_as_go_escapes_them() {
        let element = PathElement::key([("name", json!("a<b>&\"c\""))]);
        assert_eq!(element.to_key(), "k:{\"name\":\"a\\u003cb\\u003e\\u0026\\\"c\\\"\"}");
        assert_eq!(PathElement::from_key(&element.to_key()).unwrap(), element);
    }

    #[test]
    fn other_forms_are_errors() {
        for fields in [
            json!([]),
            json!("x"),
            json!({"f:a": 1}),
            json!({"x": {}}),
            json!({"": {}}),
            json!({"k:[]": {}}),
            json!({"k:{": {}}),
            json!({"i:a": {}}),
            json!({"v:": {}}),
            json!({"ä": {}}),
        ] {
            assert!(FieldSet::from_fields_v1(&fields).is_err(), "{fields}");
        }
    }
}
