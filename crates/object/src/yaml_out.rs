//! Encodes JSON values as YAML in the style of Go's encoder: keys sorted, lists not indented.

use serde_json::Value;

/// The value as a YAML document.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => write_block(&mut out, value, 0),
        Value::Array(items) if !items.is_empty() => write_block(&mut out, value, 0),
        scalar => {
            write_scalar(&mut out, scalar);
            out.push('\n');
        }
    }
    out
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn write_block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            for (number, key) in keys.into_iter().enumerate() {
                if number > 0 {
                    out.extend(std::iter::repeat_n(' ', indent));
                }
                write_text(out, key);
                out.push(':');
                write_member(out, map.get(key).unwrap_or(&Value::Null), indent);
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    out.extend(std::iter::repeat_n(' ', indent));
                }
                out.push_str("- ");
                if is_block(item) {
                    write_block(out, item, indent + 2);
                } else {
                    write_scalar(out, item);
                    out.push('\n');
                }
            }
        }
        scalar => {
            write_scalar(out, scalar);
            out.push('\n');
        }
    }
}

/// The value after `key:`.
fn write_member(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            write_block(out, value, indent);
        }
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent + 2));
            write_block(out, value, indent + 2);
        }
        Value::String(text) if is_literal(text) => {
            out.push_str(if text.ends_with('\n') { " |\n" } else { " |-\n" });
            for line in text.lines() {
                if !line.is_empty() {
                    out.extend(std::iter::repeat_n(' ', indent + 2));
                    out.push_str(line);
                }
                out.push('\n');
            }
        }
        scalar => {
            out.push(' ');
            write_scalar(out, scalar);
            out.push('\n');
        }
    }
}

/// Whether a text of several lines can be a literal block.
fn is_literal(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && !text.ends_with("\n\n")
        && !text.chars().any(|c| c.is_control() && c != '\n')
}

fn write_scalar(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => write_text(out, text),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

/// A string, quoted where it would be read as another type.
fn write_text(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
    } else {
        // A JSON string is a double-quoted YAML scalar.
        out.push_str(&Value::from(text).to_string());
    }
}

fn is_plain(text: &str) -> bool {
    let starts_wrong = text.starts_with([
        ' ', '-', '?', ':', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`',
        '=', '<', '~', '.', '+',
    ]) || text.starts_with(|c: char| c.is_ascii_digit());
    let word = text.to_ascii_lowercase();
    let reserved = matches!(
        word.as_str(),
        "" | "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" | "nan" | "inf" | "infinity"
    );
    !starts_wrong
        && !reserved
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !text
            .chars()
            .any(|c| c.is_control() || c == '\u{85}' || c == '\u{feff}' || c == '\u{2028}' || c == '\u{2029}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_looks_as_go_writes_it() {
        let value = json!({"versions": [{"version": "v1", "groupVersion": "apps/v1"}], "kind": "APIGroup",
            "empty": {}, "none": [], "text": "a\nb\n", "number": 3, "quoted": "true", "nested": {"a": {"b": [1, [2]]}}});
        assert_eq!(
            to_string(&value),
            "empty: {}\nkind: APIGroup\nnested:\n  a:\n    b:\n    - 1\n    - - 2\nnone: []\nnumber: 3\nquoted: \"true\"\n\
             text: |\n  a\n  b\nversions:\n- groupVersion: apps/v1\n  version: v1\n"
        );
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
            "[a-z0-9:. #\n-]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-zA-Z0-9.:/ -]{0,8}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn is_written_by_clients(value: &Value) -> bool {
        match value {
            Value::String(text) => !text.chars().any(char::is_control) || is_literal(text),
            Value::Array(items) => items.iter().all(is_written_by_clients),
            Value::Object(map) => map.values().all(is_written_by_clients),
            _ => true,
        }
    }

    proptest! {
        #[test]
        fn written_yaml_is_read_back(value in values().prop_filter("printable", is_written_by_clients)) {
            let text = to_string(&value);
            let read = crate::yaml::decode(text.as_bytes());
            prop_assert_eq!(read.map(|read| read.value), Ok(value), "{}", text);
        }
    }
}
