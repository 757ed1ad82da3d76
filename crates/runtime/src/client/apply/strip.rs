//! What of an object is not part of its apply configuration.

use serde_json::{Map, Value};

/// Metadata that the server sets and no manager can own. It rejects managed fields.
const SET_BY_SERVER: [&str; 6] = [
    "managedFields",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

/// Which object is meant: its name, and the preconditions that the server checks.
pub(super) const IDENTITY: [&str; 4] = ["name", "namespace", "uid", "resourceVersion"];

/// Reduces an object to what its manager applies: no nulls, which would be owned; no metadata that the server sets; and no
/// status, or for the subresource `status` nothing else.
pub(super) fn object(object: &mut Map<String, Value>, subresource: Option<&str>) {
    fields(object);
    let to_status = subresource == Some("status");
    if to_status {
        object.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
    } else {
        object.remove("status");
    }
    if let Some(Value::Object(meta)) = object.get_mut("metadata") {
        meta.retain(|name, _| {
            let name = name.as_str();
            !SET_BY_SERVER.contains(&name) && (!to_status || IDENTITY.contains(&name))
        });
    }
}

/// Removes the fields that are null, at any depth.
pub(super) fn fields(object: &mut Map<String, Value>) {
    object.retain(|_, value| !value.is_null());
    object.values_mut().for_each(nulls);
}

fn nulls(value: &mut Value) {
    match value {
        Value::Object(object) => fields(object),
        // An item that is null stays: without it, the others would have other indexes.
        Value::Array(items) => items.iter_mut().for_each(nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stripped(value: Value, subresource: Option<&str>) -> Value {
        let Value::Object(mut map) = value else { panic!("an object") };
        object(&mut map, subresource);
        map.into()
    }

    fn read() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 3, "selfLink": "/a",
                "creationTimestamp": "2024-01-01T00:00:00Z", "deletionTimestamp": "2024-01-01T00:00:00Z",
                "deletionGracePeriodSeconds": 30, "labels": {"x": "y"}, "annotations": null, "managedFields": [{}],
            },
            "spec": {"replicas": 1, "paused": null, "list": [null, {"a": null, "b": {}}]},
            "status": {"replicas": 1, "other": null},
        })
    }

    #[test]
    fn an_object_is_applied_without_nulls_status_and_what_the_server_sets() {
        let expected = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"x": "y"}},
            "spec": {"replicas": 1, "list": [null, {"b": {}}]},
        });
        assert_eq!(stripped(read(), None), expected);
        assert_eq!(stripped(read(), Some("ephemeralcontainers")), expected);
    }

    #[test]
    fn a_status_is_applied_alone() {
        assert_eq!(
            stripped(read(), Some("status")),
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7"},
                "status": {"replicas": 1},
            })
        );
        assert_eq!(stripped(json!({}), Some("status")), json!({}));
    }
}
