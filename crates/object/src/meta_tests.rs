//! Errors in `metadata`.

use serde_json::json;

use super::*;
use crate::field::Check;
use crate::names::name_is_dns_subdomain;

fn create(meta: &Value, namespaced: bool) -> Vec<String> {
    let check = Check::new();
    validate_create(check.at("metadata", Some(meta)), namespaced, &name_is_dns_subdomain);
    check.take().iter().map(ToString::to_string).collect()
}

fn update(new: &Value, old: &Value) -> Vec<String> {
    let check = Check::new();
    validate_update(check.at("metadata", Some(new)), check.at("metadata", Some(old)));
    check.take().iter().map(ToString::to_string).collect()
}

#[test]
fn names_and_namespaces_are_required_where_they_belong() {
    assert_eq!(create(&json!({"name": "a", "namespace": "default"}), true), [""; 0]);
    assert_eq!(
        create(&json!({}), true),
        [
            "metadata.name: Required value: name or generateName is required",
            "metadata.namespace: Required value",
        ]
    );
    assert_eq!(
        create(&json!({"name": "a", "namespace": "x", "generation": -1}), false),
        [
            "metadata.namespace: Forbidden: not allowed on this type",
            "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
        ]
    );
    let long = create(&json!({"name": "a", "namespace": "a.b"}), true);
    assert_eq!(long, ["metadata.namespace: Invalid value: \"a.b\": must not contain dots"]);
}

#[test]
fn labels_annotations_and_finalizers_have_keys() {
    let errors = create(
        &json!({
            "name": "a",
            "labels": {"/x": "y"},
            "annotations": {"EXAMPLE.com/x": "y", "": "z"},
            "finalizers": ["orphan", "foregroundDeletion"],
        }),
        false,
    );
    assert_eq!(
        errors.first().map(String::as_str),
        Some("metadata.labels: Invalid value: \"/x\": prefix part must be non-empty")
    );
    assert_eq!(
        errors.get(1).map(String::as_str),
        Some("metadata.annotations: Invalid value: \"\": name part must be non-empty")
    );
    assert_eq!(
        errors.last().map(String::as_str),
        Some(
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set"
        )
    );
    let big = create(&json!({"name": "a", "annotations": {"a": "x".repeat(256 * 1024)}}), false);
    assert_eq!(big, ["metadata.annotations: Too long: may not be more than 262144 bytes"]);
}

#[test]
fn finalizers_of_kubernetes_kinds_have_domains() {
    let meta = json!({"finalizers": ["x", "kubernetes", "example.com/x"]});
    let check = Check::new();
    validate_kube_finalizers(check.at("metadata", Some(&meta)));
    let errors: Vec<String> = check.take().iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "metadata.finalizers[0]: Invalid value: \"x\": name is neither a standard finalizer name nor is it fully qualified"
        ]
    );
}

#[test]
fn owner_references_are_complete_and_have_one_controller() {
    let errors = create(
        &json!({"name": "a", "ownerReferences": [
            {"apiVersion": "a/b/c"},
            {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "1", "controller": true},
            {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "2", "controller": true},
        ]}),
        false,
    );
    assert_eq!(
        errors,
        [
            "metadata.ownerReferences[0].apiVersion: Invalid value: \"a/b/c\": must be <group>/<version> or <version>",
            "metadata.ownerReferences[0].kind: Required value: must not be empty",
            "metadata.ownerReferences[0].name: Required value: must not be empty",
            "metadata.ownerReferences[0].uid: Required value: must not be empty",
            r#"metadata.ownerReferences[1]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"e","uid":"1","controller":true}: /v1, Kind=Event is disallowed from being an owner"#,
            r#"metadata.ownerReferences: Invalid value: [{"apiVersion":"a/b/c","kind":"","name":"","uid":""},{"apiVersion":"v1","kind":"Event","name":"e","uid":"1","controller":true},{"apiVersion":"v1","kind":"Pod","name":"p","uid":"2","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for Event/e and Pod/p"#,
        ]
    );
}

#[test]
fn managed_fields_have_a_shape() {
    let errors = create(
        &json!({"name": "a", "managedFields": [
            {"manager": "m\n", "fieldsType": "V2"},
            {"operation": "Patch", "subresource": "s".repeat(257), "manager": "m".repeat(129)},
        ]}),
        false,
    );
    assert_eq!(
        errors,
        [
            "metadata.managedFields[0].operation: Required value: must not be empty",
            "metadata.managedFields[0].fieldsType: Invalid value: \"V2\": must be `FieldsV1`",
            "metadata.managedFields[0].manager: Invalid value: \"m\\n\": invalid character U+000A (at position 1)",
            "metadata.managedFields[1].operation: Unsupported value: \"Patch\": supported values: \"Apply\", \"Update\"",
            "metadata.managedFields[1].manager: Too long: may not be more than 128 bytes",
            "metadata.managedFields[1].subresource: Too long: may not be more than 256 bytes",
        ]
    );
}

#[test]
fn some_metadata_never_changes() {
    let old = json!({
        "name": "a", "namespace": "n", "uid": "1", "resourceVersion": "5", "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z",
        "deletionGracePeriodSeconds": 0, "finalizers": ["a/b"],
    });
    assert_eq!(update(&old, &old), [""; 0]);
    let new = json!({
        "name": "b", "uid": "2", "generation": 1, "creationTimestamp": "2026-01-01T01:00:00+01:00",
        "deletionGracePeriodSeconds": 5, "finalizers": ["x/z", "a/b", "x/y"],
    });
    assert_eq!(
        update(&new, &old),
        [
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"x/y\", \"x/z\"}",
            "metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
            "metadata.generation: Invalid value: 1: must not be decremented",
            "metadata.name: Invalid value: \"b\": field is immutable",
            "metadata.namespace: Invalid value: \"\": field is immutable",
            "metadata.uid: Invalid value: \"2\": field is immutable",
            "metadata.deletionTimestamp: Invalid value: null: field is immutable",
            "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable",
        ]
    );
}
