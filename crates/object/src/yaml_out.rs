//! Encodes JSON values as YAML in the style of Go's encoder (`sigs.k8s.io/yaml`): keys sorted, lists not indented, strings
//! plain where they are read back as strings, else quoted as Go quotes them, and several lines as a block.

mod scalar;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::scalar::{Style, by_key, double_quoted, literal, single_quoted, style};

/// The value as a YAML document.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    if is_block(value) {
        write_block(&mut out, value, 0);
    } else {
        write_member(&mut out, value, 0);
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

fn indentation(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// A list or an object that is not empty; the first line is indented already.
fn write_block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by(|(a, _), (b, _)| by_key(a, b));
            for (number, (key, value)) in entries.into_iter().enumerate() {
                if number > 0 {
                    indentation(out, indent);
                }
                write_key(out, key);
                out.push(':');
                if is_block(value) {
                    out.push('\n');
                    let inside = if value.is_array() { indent } else { indent + 2 };
                    indentation(out, inside);
                    write_block(out, value, inside);
                } else {
                    out.push(' ');
                    write_member(out, value, indent + 2);
                }
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    indentation(out, indent);
                }
                out.push_str("- ");
                if is_block(item) {
                    write_block(out, item, indent + 2);
                } else {
                    write_member(out, item, indent + 2);
                }
            }
        }
        scalar => write_member(out, scalar, indent),
    }
}

/// Everything else, and the end of its line. The lines of a block are indented.
fn write_member(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
        Value::String(text) => match style(text) {
            Style::Plain => out.push_str(text),
            Style::Single => single_quoted(out, text),
            Style::Double => double_quoted(out, text),
            Style::Literal => return literal(out, text, indent),
        },
    }
    out.push('\n');
}

/// A key is in one line.
fn write_key(out: &mut String, key: &str) {
    match style(key) {
        Style::Plain => out.push_str(key),
        Style::Single => single_quoted(out, key),
        Style::Double | Style::Literal => double_quoted(out, key),
    }
}
