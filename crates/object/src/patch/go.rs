//! Prints values like Go, for the error messages of strategic merge patch.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// A value as Go's `%v` prints it after decoding from JSON: `map[data:map[x:5] list:[a <nil>]]`.
pub fn printed(value: &Value) -> String {
    let mut out = String::new();
    print(value, &mut out);
    out
}

/// A list of values as Go prints it.
pub(super) fn printed_list(values: &[Value]) -> String {
    let mut out = String::new();
    print_list(values, &mut out, print);
    out
}

/// A value as `%s` prints it, with the error marker of Go for values other than strings.
pub(super) fn printed_as_text(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Null => out.push_str("%!s(<nil>)"),
        _ => print_as_text(value, &mut out),
    }
    out
}

/// The Go type of the value.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn print(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => print_number(number, out),
        Value::String(text) => out.push_str(text),
        Value::Array(items) => print_list(items, out, print),
        Value::Object(_) => print_map(value, out, print),
    }
}

fn print_as_text(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::String(text) => out.push_str(text),
        Value::Array(items) => print_list(items, out, print_as_text),
        Value::Object(_) => print_map(value, out, print_as_text),
        Value::Bool(_) | Value::Number(_) => {
            let _ = write!(out, "%!s({}=", type_name(value));
            print(value, out);
            out.push(')');
        }
    }
}

fn print_list(items: &[Value], out: &mut String, each: fn(&Value, &mut String)) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        each(item, out);
    }
    out.push(']');
}

fn print_map(value: &Value, out: &mut String, each: fn(&Value, &mut String)) {
    let mut entries: Vec<(&String, &Value)> = value.as_object().into_iter().flatten().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    out.push_str("map[");
    for (index, (key, item)) in entries.into_iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        out.push_str(key);
        out.push(':');
        each(item, out);
    }
    out.push(']');
}

fn print_number(number: &Number, out: &mut String) {
    match (number.as_i64(), number.as_f64()) {
        (Some(int), _) => {
            let _ = write!(out, "{int}");
        }
        (None, Some(float)) => print_float(float, out),
        (None, None) => {
            let _ = write!(out, "{number}");
        }
    }
}

/// `%g` with as many digits as needed: an exponent of at least two digits if it is below -4 or above 5.
fn print_float(float: f64, out: &mut String) {
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let _ = write!(out, "{float}");
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{digits}e{sign}{:02}", exponent.unsigned_abs());
    }
}
