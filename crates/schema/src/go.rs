//! Numbers and values in the format of Go, for error messages of kube-apiserver.

use std::fmt::Write as _;

use k1s_object::field::Shown;
use serde_json::{Number, Value};

/// The Go type of a JSON value.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A number as in the API machinery: integers that fit are `int64`, all others `float64`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum GoNumber {
    Int(i64),
    Float(f64),
}

impl GoNumber {
    pub(crate) fn of(number: &Number) -> GoNumber {
        match number.as_i64() {
            Some(int) => GoNumber::Int(int),
            None => GoNumber::Float(number.as_f64().unwrap_or_default()),
        }
    }

    pub(crate) fn float(self) -> f64 {
        match self {
            GoNumber::Int(int) => int as f64,
            GoNumber::Float(float) => float,
        }
    }

    pub(crate) fn shown(self) -> Shown {
        match self {
            GoNumber::Int(int) => Shown::Verbatim(int.to_string()),
            GoNumber::Float(value) => Shown::Verbatim(float(value)),
        }
    }
}

/// A float as `%v` prints it: the shortest digits, with an exponent below 1e-4 and from 1e6 on.
pub(crate) fn float(value: f64) -> String {
    with_exponent_from(value, 1e6)
}

/// A float as Go's JSON encoder writes it: with an exponent only for very small numbers and from 1e21 on.
pub(crate) fn json_float(value: f64) -> String {
    with_exponent_from(value, 1e21)
}

fn with_exponent_from(value: f64, limit: f64) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    let magnitude = value.abs();
    if (1e-4..limit).contains(&magnitude) {
        return format!("{value}");
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, power) = match exponent.strip_prefix('-') {
                Some(power) => ('-', power),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{power:0>2}")
        }
        None => text,
    }
}

/// Converts integral floats to integers: an object with `2.0` is stored and returned with `2`. Only after
/// validation, which distinguishes them.
pub fn settle_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|_| number.is_f64())
                && float.fract() == 0.0
                && float.abs() < 9.0e15
            {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(settle_numbers),
        Value::Object(map) => map.values_mut().for_each(settle_numbers),
        _ => {}
    }
}

/// A value as a field error shows it.
pub(crate) fn shown(value: &Value) -> Shown {
    match value {
        Value::Number(number) => GoNumber::of(number).shown(),
        Value::Object(_) | Value::Array(_) => json(&sorted(value)),
        other => Shown::Json(other.clone()),
    }
}

/// A value as Go's JSON encoder encodes it, with HTML characters escaped.
pub(crate) fn json(value: &Value) -> Shown {
    let mut text = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(text, "\\u{:04x}", c as u32);
            }
            c => text.push(c),
        }
    }
    Shown::Verbatim(text)
}

/// The value with the keys of all objects sorted, as Go encodes maps.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            Value::Object(fields.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// Whether a float is integral within the tolerance of the schema validator.
pub(crate) fn is_whole(value: f64) -> bool {
    const LIMIT: f64 = ((1u64 << 53) - 1) as f64;
    const EPSILON: f64 = 1e-9;
    if !value.is_finite() || value.abs() > LIMIT {
        return false;
    }
    // Halves are rounded away from zero, as in Go.
    let rounded = value.round();
    value == rounded || (rounded != 0.0 && (value - rounded).abs() < EPSILON * rounded.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_printed_as_go_does() {
        for (value, text) in [
            (1.0, "1"),
            (0.5, "0.5"),
            (-0.001, "-0.001"),
            (1e21, "1e+21"),
            (123456789.25, "1.2345678925e+08"),
            (123456.25, "123456.25"),
            (1e6, "1e+06"),
            (0.00001, "1e-05"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn objects_are_shown_sorted_and_escaped() {
        assert_eq!(
            shown(&serde_json::json!({"b": "<x>", "a": [1.0]})),
            Shown::Verbatim(r#"{"a":[1.0],"b":"\u003cx\u003e"}"#.to_owned())
        );
    }

    #[test]
    fn whole_numbers_tolerate_rounding() {
        assert!(is_whole(3.0));
        assert!(is_whole(-3.0));
        assert!(!is_whole(3.5));
        assert!(is_whole(0.3 / 0.1));
        assert!(!is_whole(1e300));
    }
}
