//! `FieldsV1`: the JSON form of a field set, in the bytes that kube-apiserver writes.
//!
//! An element is a key: `f:name`, `k:{"name":"nginx"}`, `v:"value"` or `i:3`. A member that has longer paths under it has the
//! key `.` beside them.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::{path::PathElement, set::FieldSet, value};

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

/// Appends JSON as Go's encoder writes it: keys are sorted, and HTML is escaped.
pub(crate) fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => value::json_number(out, number),
        Value::String(text) => write_string(out, text, true),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (name, value)) in value::sorted_entries(map).into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_string(out, name, true);
                out.push(':');
                write_json(out, value);
            }
            out.push('}');
        }
    }
}

/// Appends a JSON string with the escapes of Go's encoder.
fn write_string(out: &mut String, text: &str, escape_html: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if escape_html => escape(out, c),
            '\0'..=' ' if c != ' ' => escape(out, c),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn escape(out: &mut String, c: char) {
    let _ = write!(out, "\\u{:04x}", u32::from(c));
}

/// Makes floats of integers, as Go does when it reads a key: only so are they printed in the same way. Larger integers stay, so
/// that they stay exact.
fn with_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => match (number.as_f64(), number.as_i64()) {
            (Some(float), Some(integer)) if integer.unsigned_abs() <= value::MAX_EXACT => float.into(),
            _ => number.into(),
        },
        Value::Array(items) => items.into_iter().map(with_floats).collect(),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(name, value)| (name, with_floats(value))).collect())
        }
        other => other,
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
                    write_string(&mut out, name, false);
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
        let json =
            || serde_json::from_str(rest).map(with_floats).map_err(|error| bad(key, error.to_string()));
        match kind {
            "f:" => Ok(PathElement::Field(rest.into())),
            "v:" => Ok(PathElement::value(json()?)),
            "k:" => match json()? {
                Value::Object(fields) => Ok(PathElement::key(fields)),
                Value::Null => Ok(PathElement::Key(Box::default())),
                _ => Err(bad(key, "the fields of a key are an object")),
            },
            "i:" => rest.parse().map(PathElement::Index).map_err(|_| bad(key, "an index is a number")),
            _ => Err(bad(key, "expected f:, k:, v: or i:")),
        }
    }
}

/// Whether a key has the form of an element, of a kind that is not known.
pub(crate) fn is_unknown(key: &str) -> bool {
    match key.as_bytes() {
        [kind, b':', ..] => !matches!(kind, b'f' | b'k' | b'v' | b'i'),
        _ => false,
    }
}

impl FieldSet {
    /// The set as `FieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(self.to_map(false))
    }

    /// The set as the JSON text of `FieldsV1`, without a JSON value in between.
    pub fn to_fields_v1_json(&self) -> String {
        let mut out = String::with_capacity(256);
        self.write_json(false, &mut out);
        out
    }

    fn write_json(&self, is_member: bool, out: &mut String) {
        out.push('{');
        if is_member {
            out.push_str("\".\":{}");
        }
        let mut first = !is_member;
        let mut key = |element: &PathElement, out: &mut String| {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            write_key(element, out);
        };
        let mut members = self.members.iter().peekable();
        for (element, child) in &self.children {
            while let Some(member) = members.next_if(|member| *member < element) {
                key(member, out);
                out.push_str(":{}");
            }
            let same = members.next_if(|member| *member == element).is_some();
            key(element, out);
            out.push(':');
            child.write_json(same, out);
        }
        for member in members {
            key(member, out);
            out.push_str(":{}");
        }
        out.push('}');
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
        let mut is_member = false;
        for (key, value) in map {
            if key == "." {
                is_member = true;
                continue;
            }
            // A later version may have other kinds of elements; they are dropped.
            if is_unknown(key) {
                continue;
            }
            let element = PathElement::from_key(key)?;
            let (child, member) = match value {
                Value::Object(map) if map.is_empty() => (FieldSet::new(), true),
                value => FieldSet::from_node(value)?,
            };
            set.push(element, child, member);
        }
        set.normalize();
        let is_member = is_member || set.is_empty();
        Ok((set, is_member))
    }
}

/// Appends the key of an element as a JSON string.
pub(crate) fn write_key(element: &PathElement, out: &mut String) {
    if let PathElement::Field(name) = element
        && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
    {
        out.push_str("\"f:");
        out.push_str(name);
        out.push('"');
        return;
    }
    // Encoding a string cannot fail.
    out.push_str(&serde_json::to_string(&element.to_key()).unwrap_or_default());
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
        assert_eq!(set.to_fields_v1_json(), numbers_first);
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
