//! Order, equality and text of JSON values as Kubernetes' field sets define them.

use std::{
    cmp::Ordering,
    fmt::Write,
    hash::{Hash, Hasher},
};

use serde_json::{Map, Number, Value};

/// The rank of a value's type: numbers, strings, booleans, lists, maps, null.
fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Compares integers exactly and everything else as floats.
fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a.cmp(&b);
    }
    if let (Some(a), Some(b)) = (a.as_u64(), b.as_u64()) {
        return a.cmp(&b);
    }
    let float = |number: &Number| number.as_f64().unwrap_or_default();
    float(a).total_cmp(&float(b))
}

/// A total order of JSON values. Numbers are compared by value: `1` equals `1.0`.
pub(crate) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let first = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
            first.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => compare_maps(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Maps are compared as lists of entries that are sorted by key.
fn compare_maps(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    let sorted = |map: &Map<String, Value>| {
        let mut keys: Vec<String> = map.keys().cloned().collect();
        keys.sort_unstable();
        keys
    };
    let (left, right) = (sorted(a), sorted(b));
    for (x, y) in left.iter().zip(&right) {
        let order = x.cmp(y).then_with(|| match (a.get(x), b.get(y)) {
            (Some(x), Some(y)) => compare(x, y),
            _ => Ordering::Equal,
        });
        if order.is_ne() {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

/// Whether two values are equal. Numbers are compared by value, and the order of keys does not matter.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || compare_numbers(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => a == b,
    }
}

/// Hashes a value such that equal values have equal hashes.
pub(crate) fn hash<H: Hasher>(value: &Value, state: &mut H) {
    rank(value).hash(state);
    match value {
        Value::Number(number) => {
            // -0.0 and 0 are equal.
            let float = number.as_f64().unwrap_or_default() + 0.0;
            float.to_bits().hash(state);
        }
        Value::String(text) => text.hash(state),
        Value::Bool(flag) => flag.hash(state),
        Value::Array(items) => items.iter().for_each(|item| hash(item, state)),
        Value::Object(map) => map.len().hash(state),
        Value::Null => {}
    }
}

/// Appends a string with Go's quotes.
pub(crate) fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The text of a value in a field path: `"nginx"`, `80`.
pub(crate) fn in_path(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::String(text) => quote(out, text),
        Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                in_path(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, value)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(';');
                }
                out.push_str(key);
                out.push('=');
                in_path(out, value);
            }
            out.push('}');
        }
    }
}

/// The text of a value as Go's `%v` prints it: `map[a:b]`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" "))
        }
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{key}:{}", plain(value))).collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

/// The text of a value as Go's `%#v` prints it: `map[string]interface {}{"a":"b"}`.
pub(crate) fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => {
            let mut out = String::new();
            quote(&mut out, text);
            out
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| {
                    let mut out = String::new();
                    quote(&mut out, key);
                    format!("{out}:{}", go_syntax(value))
                })
                .collect();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
    }
}

/// The Go type of a decoded JSON value.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn types_are_ordered_and_numbers_compare_by_value() {
        let ordered = [
            json!(-1),
            json!(1.5),
            json!(2),
            json!("a"),
            json!("b"),
            json!(false),
            json!(true),
            json!([]),
            json!([1]),
            json!({}),
            json!({"a": 1}),
            json!({"a": 2}),
            json!(null),
        ];
        for (i, a) in ordered.iter().enumerate() {
            for (j, b) in ordered.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} {b}");
                assert_eq!(equal(a, b), i == j, "{a} {b}");
            }
        }
        assert!(equal(&json!({"a": 1, "b": [1.0]}), &json!({"b": [1], "a": 1.0})));
        assert_eq!(compare(&json!(1), &json!(1.0)), Ordering::Equal);
    }

    #[test]
    fn values_are_printed_as_go_prints_them() {
        let value = json!({"b": [1, "x", null], "a": {"k": true}});
        assert_eq!(plain(&value), "map[a:map[k:true] b:[1 x <nil>]]");
        assert_eq!(
            go_syntax(&value),
            r#"map[string]interface {}{"a":map[string]interface {}{"k":true}, "b":[]interface {}{1, "x", interface {}(nil)}}"#
        );
    }
}
