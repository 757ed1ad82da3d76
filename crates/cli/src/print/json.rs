//! JSON as Go indents it: four spaces, keys sorted, `<`, `>` and `&` escaped.

use k1s_object::jsonpath::go_json;
use serde_json::Value;

/// The value, indented.
pub(crate) fn pretty(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    out
}

fn write(value: &Value, depth: usize, out: &mut String) {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("    ", depth));
    };
    match value {
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                write(item, depth + 1, out);
            }
            line(out, depth);
            out.push(']');
        }
        Value::Object(map) if !map.is_empty() => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                out.push_str(&go_json(&Value::from(key.as_str())));
                out.push_str(": ");
                write(value, depth + 1, out);
            }
            line(out, depth);
            out.push('}');
        }
        simple => out.push_str(&go_json(simple)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_indented_as_go_does() {
        let value = json!({"b": [1, {"c": "<&>"}], "a": {}, "l": []});
        let expected = "{\n    \"a\": {},\n    \"b\": [\n        1,\n        {\n            \"c\": \"\\u003c\\u0026\\u003e\"\n        }\n    ],\n    \"l\": []\n}";
        assert_eq!(pretty(&value), expected);
    }
}
