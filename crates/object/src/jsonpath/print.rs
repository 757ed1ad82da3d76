//! Prints values like Go.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// A result as text: strings unquoted, objects and lists as JSON.
pub fn print(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.to_string(),
            None => shortest(number.as_f64().unwrap_or_default()),
        },
        Value::Array(_) | Value::Object(_) => go_json(value),
    }
}

/// Compact JSON as Go's `json.Marshal` encodes it: keys sorted, `<`, `>` and `&` escaped, `1.0` as `1`.
pub fn go_json(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => write_string(text, out),
        Value::Number(number) => write_number(number, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (i, (key, value)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_string(key, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        simple => {
            let _ = write!(out, "{simple}");
        }
    }
}

fn write_number(number: &Number, out: &mut String) {
    if number.is_i64() || number.is_u64() {
        let _ = write!(out, "{number}");
        return;
    }
    let value = number.as_f64().unwrap_or_default();
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        // Go's JSON encoder prints e-9 where its formatter prints e-09.
        out.push_str(&with_exponent(&format!("{value:e}")).replace("e-0", "e-"));
    } else {
        let _ = write!(out, "{value}");
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// `1.5e7` as `1.5e+07`.
fn with_exponent(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// A float as Go's `%v` prints it: the shortest digits, with an exponent from a million up and below 0.0001.
fn shortest(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.into();
    }
    shortest_digits(&format!("{value:e}"), &value.to_string())
}

/// Chooses between the scientific and the plain notation of a float.
pub(crate) fn shortest_digits(scientific: &str, plain: &str) -> String {
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    if (-4..6).contains(&exponent.unwrap_or_default()) { plain.to_owned() } else { with_exponent(scientific) }
}
