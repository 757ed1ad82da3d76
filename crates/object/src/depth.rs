//! The limit on the nesting of objects.
//!
//! Everything that reads, traverses or stores an object relies on it: request bodies, patches, definitions,
//! stored bytes. A traversal may recurse a few times per level, so this limit bounds the stack. It leaves room
//! below the 128 levels that `serde_json` reads by default, so that clients which use it can read an object
//! inside a list, a table or a watch event.

use serde_json::Value;

use crate::field::{ErrorKind, FieldError, Shown};

/// Maximum nesting of objects and lists. Go reads 10000 levels; the deepest definitions in use have about 40.
pub const MAX_DEPTH: usize = 120;

/// Whether a value is nested deeper than [`MAX_DEPTH`].
pub fn is_too_deep(value: &Value) -> bool {
    exceeds(value, MAX_DEPTH)
}

/// Whether containers are nested deeper than `levels`. Recurses no deeper than that.
fn exceeds(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| exceeds(item, levels - 1)),
        Value::Object(map) => levels == 0 || map.values().any(|value| exceeds(value, levels - 1)),
        _ => false,
    }
}

/// Errors for the fields of an object that are nested too deeply.
pub fn check(object: &Value) -> Vec<FieldError> {
    let fields = object.as_object().into_iter().flatten();
    fields
        .filter(|(_, value)| exceeds(value, MAX_DEPTH - 1))
        .map(|(name, _)| FieldError::new(ErrorKind::Invalid, name, Shown::Nothing, too_deep()))
        .collect()
}

/// The message for an object that is nested too deeply.
pub fn too_deep() -> String {
    format!("must not be nested more than {MAX_DEPTH} levels deep")
}

/// Whether JSON text, valid or not, is nested deeper than [`MAX_DEPTH`].
pub fn is_too_deep_json(json: &[u8]) -> bool {
    exceeds_json(json, MAX_DEPTH)
}

/// Whether JSON text, valid or not, is nested deeper than `levels`.
pub fn exceeds_json(json: &[u8], levels: usize) -> bool {
    // Small objects have fewer brackets, and counting those is faster than tracking the nesting.
    if opening_brackets(json) <= levels {
        return false;
    }
    let (mut depth, mut at) = (0_usize, 0_usize);
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => at += rest_of_string(json.get(at..).unwrap_or_default()),
            b'{' | b'[' => {
                depth += 1;
                if depth > levels {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// The number of `{` and `[`, which differ in one bit.
fn opening_brackets(json: &[u8]) -> usize {
    // Counted in bytes, many at once, as long as they do not overflow.
    let count = |chunk: &[u8]| chunk.iter().map(|byte| u8::from(byte & !0x20 == b'[')).sum::<u8>();
    json.chunks(usize::from(u8::MAX)).map(|chunk| usize::from(count(chunk))).sum()
}

/// The length of the rest of a string after its opening quote, including the closing one.
fn rest_of_string(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', rest.get(at..).unwrap_or_default()) {
        at += found + 1;
        if rest.get(at - 1) == Some(&b'"') {
            return at;
        }
        // The escaped character.
        at += 1;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_opening_brackets_are_counted_and_nothing_else() {
        let all: Vec<u8> = (0..=u8::MAX).cycle().take(256 * 7).collect();
        assert_eq!(opening_brackets(&all), 2 * 7);
        assert_eq!(opening_brackets(&b"[".repeat(1000)), 1000);
        assert_eq!(opening_brackets(b""), 0);
    }

    fn lists(depth: usize) -> Value {
        (1..depth).fold(Value::Array(Vec::new()), |inner, _| Value::Array(vec![inner]))
    }

    #[test]
    fn the_limit_is_inclusive_for_values_and_for_text() {
        for (depth, too_deep) in [(1, false), (MAX_DEPTH, false), (MAX_DEPTH + 1, true), (5000, true)] {
            let value = lists(depth.min(MAX_DEPTH + 1));
            assert_eq!(is_too_deep(&value), too_deep, "{depth}");
            let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            assert_eq!(is_too_deep_json(text.as_bytes()), too_deep, "{depth}");
        }
        let brackets = serde_json::json!({"text": "[{\"".repeat(1000), "wide": vec![lists(1); 1000]});
        assert!(!is_too_deep(&brackets));
        assert!(!is_too_deep_json(brackets.to_string().as_bytes()));
    }

    #[test]
    fn errors_name_the_field_and_the_limit() {
        let object = serde_json::json!({"spec": lists(MAX_DEPTH), "data": lists(MAX_DEPTH - 1)});
        let errors: Vec<String> = check(&object).iter().map(ToString::to_string).collect();
        assert_eq!(errors, ["spec: Invalid value: must not be nested more than 120 levels deep"]);
    }
}
