//! Which fields of an object have changed.

use serde_json::{Map, Value};

/// Maximum number of paths; beyond it, parents are named instead of their fields.
const MAX_PATHS: usize = 64;

/// The paths in which two states of an object differ, in the order of the new one.
pub(super) fn changed_paths(old: &[u8], new: &[u8]) -> Vec<String> {
    let (Ok(Value::Object(mut old)), Ok(Value::Object(mut new))) =
        (serde_json::from_slice(old), serde_json::from_slice(new))
    else {
        return Vec::new();
    };
    // They change with every write.
    for object in [&mut old, &mut new] {
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("managedFields");
            metadata.remove("resourceVersion");
        }
    }
    let mut paths = Vec::new();
    objects("", &old, &new, &mut paths);
    paths
}

fn values(path: String, old: &Value, new: &Value, paths: &mut Vec<String>) {
    if old == new {
        return;
    }
    if paths.len() < MAX_PATHS {
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => return objects(&path, old, new, paths),
            (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
                for (index, (old, new)) in old.iter().zip(new).enumerate() {
                    values(format!("{path}[{index}]"), old, new, paths);
                }
                return;
            }
            _ => {}
        }
        paths.push(path);
    } else if paths.last().is_none_or(|last| *last != "…") {
        paths.push("…".to_owned());
    }
}

fn objects(path: &str, old: &Map<String, Value>, new: &Map<String, Value>, paths: &mut Vec<String>) {
    let absent = Value::Null;
    for (name, value) in new {
        values(member(path, name), old.get(name).unwrap_or(&absent), value, paths);
    }
    for (name, value) in old.iter().filter(|(name, _)| !new.contains_key(*name)) {
        values(member(path, name), value, &absent, paths);
    }
}

/// `spec.replicas`; a name that is not one word is a key: `metadata.labels[example.com/tier]`.
fn member(path: &str, name: &str) -> String {
    if name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-') {
        format!("{path}[{name}]")
    } else if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(old: &Value, new: &Value) -> Vec<String> {
        changed_paths(old.to_string().as_bytes(), new.to_string().as_bytes())
    }

    #[test]
    fn only_what_differs_is_named() {
        let old = json!({"metadata": {"name": "a", "resourceVersion": "1", "managedFields": [1], "labels": {"a": "1"}},
            "spec": {"replicas": 1, "list": [{"x": 1}, {"x": 2}], "gone": true}});
        let new = json!({"metadata": {"name": "a", "resourceVersion": "2", "managedFields": [2],
            "labels": {"a": "1", "example.com/tier": "b"}}, "spec": {"replicas": 2, "list": [{"x": 1}, {"x": 3}]},
            "status": {"phase": "Running"}});
        assert_eq!(
            paths(&old, &new),
            ["metadata.labels[example.com/tier]", "spec.replicas", "spec.list[1].x", "spec.gone", "status"]
        );
        assert!(paths(&new, &new).is_empty());
    }

    #[test]
    fn a_list_of_another_length_is_named_as_a_whole() {
        assert_eq!(paths(&json!({"a": [1, 2]}), &json!({"a": [1]})), ["a"]);
    }

    #[test]
    fn the_number_of_paths_is_bounded() {
        let many = |value: i32| -> Value {
            (0..1000).map(|name| (format!("f{name}"), json!(value))).collect::<Map<_, _>>().into()
        };
        let found = paths(&json!({"data": many(1)}), &json!({"data": many(2)}));
        assert_eq!(found.len(), MAX_PATHS + 1);
        assert_eq!(found[MAX_PATHS], "…");
    }
}
