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

/// A number as an integer, if it is written as one.
fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// Compares an integer with a float, exactly: rounding the integer would not give an order.
fn compare_with_float(integer: i128, float: f64) -> Ordering {
    // The cast saturates, and 64 bits are far from the limits.
    #[expect(clippy::cast_possible_truncation)]
    let whole = float.trunc() as i128;
    integer.cmp(&whole).then_with(|| 0.0.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal))
}

/// Compares numbers by value, whether they are integers or floats.
fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    let float = |number: &Number| number.as_f64().unwrap_or_default();
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => compare_with_float(a, float(b)),
        (None, Some(b)) => compare_with_float(b, float(a)).reverse(),
        // JSON has no NaN.
        (None, None) => float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal),
    }
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
    let (left, right) = (sorted_entries(a), sorted_entries(b));
    for ((name, value), (other_name, other)) in left.iter().zip(&right) {
        let order = name.cmp(other_name).then_with(|| compare(value, other));
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
        (Value::Object(a), Value::Object(b)) => equal_fields(a, b, equal),
        _ => a == b,
    }
}

/// The same as `==`, but fields in the same order, as in most copies, are not looked up.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => equal_fields(a, b, same),
        _ => a == b,
    }
}

fn equal_fields(a: &Map<String, Value>, b: &Map<String, Value>, equal: fn(&Value, &Value) -> bool) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|((name, value), (other_name, other))| match name == other_name {
            true => equal(value, other),
            false => b.get(name).is_some_and(|other| equal(value, other)),
        })
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
        // All of it: a list with many items whose keys are objects must not have one hash for all.
        Value::Object(map) => {
            for (name, value) in sorted_entries(map) {
                name.hash(state);
                hash(value, state);
            }
        }
        Value::Null => {}
    }
}

/// Whether Go prints a character as it is. Unassigned characters are taken as printable.
fn is_printable(c: char) -> bool {
    !(c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(
            c,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e000}'..='\u{f8ff}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
        ))
}

/// Appends a string with Go's quotes.
pub(crate) fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                let _ = match code {
                    ..0x80 => write!(out, "\\x{code:02x}"),
                    0x80..0x1_0000 => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push('"');
}

/// Appends a float in scientific notation, with at least two digits of the exponent.
fn scientific(out: &mut String, float: f64) {
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    let _ = write!(out, "{digits}e{sign}{exponent:0>2}");
}

/// The largest integer up to which a float has all integers.
pub(crate) const MAX_EXACT: u64 = 1 << 53;

/// Appends a number as Go's JSON encoder writes it. Of large floats, all digits are written and not only those that tell them
/// apart: here, they are read as an integer, which has to be the same number.
pub(crate) fn json_number(out: &mut String, number: &Number) {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) if float != 0.0 && !(1e-6..1e21).contains(&float.abs()) => scientific(out, float),
        #[expect(clippy::cast_precision_loss)]
        Some(float) if float.abs() > MAX_EXACT as f64 => {
            let _ = write!(out, "{float:.0}");
        }
        Some(float) => {
            let _ = write!(out, "{float}");
        }
        None => {
            let _ = write!(out, "{number}");
        }
    }
}

/// Appends a number as Go's `%v` prints it.
fn plain_number(out: &mut String, number: &Number) {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) if float != 0.0 && !(1e-4..1e6).contains(&float.abs()) => scientific(out, float),
        Some(float) => {
            let _ = write!(out, "{float}");
        }
        None => {
            let _ = write!(out, "{number}");
        }
    }
}

/// The text of a value in a field path: `"nginx"`, `80`.
pub(crate) fn in_path(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::String(text) => quote(out, text),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => plain_number(out, number),
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
        // Nothing is between the entries, nor around them.
        Value::Object(map) => {
            for (key, value) in sorted_entries(map) {
                out.push_str(key);
                out.push('=');
                in_path(out, value);
            }
        }
    }
}

/// The entries of a map, sorted by key.
pub(crate) fn sorted_entries(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

/// The text of a value as Go's `%v` prints it: `map[a:b]`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => {
            let mut out = String::new();
            plain_number(&mut out, number);
            out
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" "))
        }
        Value::Object(map) => {
            let entries: Vec<String> = sorted_entries(map)
                .into_iter()
                .map(|(key, value)| format!("{key}:{}", plain(value)))
                .collect();
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
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => {
            let mut out = String::new();
            plain_number(&mut out, number);
            out
        }
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let entries: Vec<String> = sorted_entries(map)
                .into_iter()
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
        assert_eq!(compare(&json!(-0.0), &json!(0.0)), Ordering::Equal);
        // Rounded to a float, both would be equal to it.
        let large = 9_007_199_254_740_992.0;
        assert_eq!(compare(&json!(9_007_199_254_740_992_i64), &json!(large)), Ordering::Equal);
        assert_eq!(compare(&json!(9_007_199_254_740_993_i64), &json!(large)), Ordering::Greater);
        assert_eq!(compare(&json!(-2), &json!(-1.5)), Ordering::Less);
        assert_eq!(compare(&json!(u64::MAX), &json!(1e300)), Ordering::Less);
    }

    /// Upstream's `TestValueLess`, but for values that JSON does not have. Each entry: its name there, two values, and their order.
    #[test]
    fn values_are_ordered_as_upstream_orders_them() {
        use Ordering::{Equal, Less};
        let (one, many) = (|| json!({"carotine": 1}), || json!({"carotine": 1, "ethanol": 1}));
        let cases = [
            ("Float-1", json!(1.14), json!(3.15), Less),
            ("Float-2", json!(1.0), json!(1.0), Equal),
            ("Float-3", json!(1.0), json!(1), Equal),
            ("Float-4", json!(1.0), json!(2), Less),
            ("Float-5", json!(1.0), json!("aoeu"), Less),
            ("Float-6", json!(1.0), json!(true), Less),
            ("Float-7", json!(1.0), json!([]), Less),
            ("Float-8", json!(1.0), json!({}), Less),
            ("Float-9", json!(1.0), json!(null), Less),
            ("Int-1", json!(1), json!(2), Less),
            ("Int-2", json!(1), json!(1), Equal),
            ("Int-3", json!(1), json!(1.0), Equal),
            ("Int-4", json!(1), json!(2.0), Less),
            ("Int-5", json!(1), json!("aoeu"), Less),
            ("Int-6", json!(1), json!(true), Less),
            ("Int-7", json!(1), json!([]), Less),
            ("Int-8", json!(1), json!({}), Less),
            ("Int-9", json!(1), json!(null), Less),
            ("String-1", json!("b-12"), json!("b-9"), Less),
            ("String-2", json!("folate"), json!("folate"), Equal),
            ("String-3", json!("folate"), json!(true), Less),
            ("String-4", json!("folate"), json!([]), Less),
            ("String-5", json!("folate"), json!({}), Less),
            ("String-6", json!("folate"), json!(null), Less),
            ("Bool-1", json!(false), json!(true), Less),
            ("Bool-2", json!(false), json!(false), Equal),
            ("Bool-3", json!(true), json!(true), Equal),
            ("Bool-4", json!(false), json!([]), Less),
            ("Bool-5", json!(false), json!({}), Less),
            ("Bool-6", json!(false), json!(null), Less),
            ("List-1", json!([]), json!([]), Equal),
            ("List-2", json!([1]), json!([1]), Equal),
            ("List-3", json!([1]), json!([2]), Less),
            ("List-4", json!([1]), json!([1, 1]), Less),
            ("List-5", json!([1, 1]), json!([2]), Less),
            ("List-6", json!([]), json!({}), Less),
            ("List-7", json!([]), json!(null), Less),
            ("Map-1", one(), one(), Equal),
            ("Map-2", one(), json!({"carotine": 2}), Less),
            ("Map-3", one(), json!({"ethanol": 1}), Less),
            ("Map-4", one(), json!({"ethanol": 1, "carotine": 2}), Less),
            ("Map-5", one(), many(), Less),
            ("Map-6", many(), json!({"carotine": 2}), Less),
            ("Map-7", json!({}), json!(null), Less),
        ];
        for (name, a, b, order) in &cases {
            assert_eq!((compare(a, b), compare(b, a)), (*order, order.reverse()), "{name}");
            assert_eq!((equal(a, b), equal(b, a)), (*order == Equal, *order == Equal), "{name}");
        }
        let readme = include_str!("../tests/README.md");
        assert!(readme.contains(&format!("| value/less_test.go | {} | 0 |", cases.len())));
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
