//! What the fuzz target does with bytes. `tests/fuzz_yaml.rs` does the same with generated ones.

use k1s_object::{to_yaml, yaml};
use serde_json::Value;

/// How many lists and maps are in one another.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// YAML, as an applied configuration has it: what can be read is bounded, and written and read again is the same.
pub(crate) fn yaml(data: &[u8]) {
    let Ok(decoded) = yaml::decode(data) else { return };
    assert!(decoded.duplicates.len() <= 100);
    assert!(depth(&decoded.value) <= k1s_object::depth::MAX_DEPTH);
    let written = to_yaml(&decoded.value);
    let again = yaml::decode(written.as_bytes()).unwrap_or_else(|why| panic!("{why}\n{written}"));
    assert_eq!((&again.value, again.duplicates.len()), (&decoded.value, 0), "{written}");
}
