//! Objects in objects (`x-kubernetes-embedded-resource`), which several managers apply.

use k1s_server::ApiServer;
use serde_json::{Value, json};

use crate::client::{Answer, call, create, send, server};

const PATH: &str = "/apis/example.com/v1/namespaces/default/stamps/a";

/// A server with a kind that has any object in `spec.template`, and lists of them in `spec.more`.
async fn with_stamps() -> ApiServer {
    let server = server().await;
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    let spec = json!({"type": "object", "properties": {
        "template": embedded, "more": {"type": "array", "items": embedded}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "stamps.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "stamps", "kind": "Stamp"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}});
    create(&server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    server
}

/// A configuration with an embedded ConfigMap.
fn stamp(metadata: &Value, data: &Value) -> Value {
    let mut template =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "t"}, "data": data});
    template["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    json!({"apiVersion": "example.com/v1", "kind": "Stamp", "metadata": {"name": "a"}, "spec": {"template": template}})
}

async fn apply(server: &ApiServer, manager: &str, config: &Value) -> Answer {
    let path = format!("{PATH}?fieldManager={manager}");
    send(server, "PATCH", &path, "application/apply-patch+yaml", &config.to_string()).await
}

/// What a manager owns of the template.
fn owned<'a>(object: &'a Value, manager: &str) -> &'a Value {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let own = entries.iter().find(|entry| entry["manager"] == manager).unwrap_or(&Value::Null);
    &own["fieldsV1"]["f:spec"]["f:template"]
}

#[tokio::test]
async fn the_metadata_of_an_embedded_object_is_owned_field_by_field() {
    let server = with_stamps().await;
    let first = stamp(&json!({"labels": {"x": "1"}, "finalizers": ["example.com/one"]}), &json!({"k": "1"}));
    let answer = apply(&server, "one", &first).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    let second = stamp(&json!({"labels": {"y": "2"}, "finalizers": ["example.com/two"]}), &json!({"l": "2"}));
    let answer = apply(&server, "two", &second).await;
    assert_eq!(answer.code, 200, "{}", answer.body);
    let template = &answer.body["spec"]["template"];
    assert_eq!(
        (&template["metadata"], &template["data"]),
        (
            &json!({"name": "t", "labels": {"x": "1", "y": "2"}, "finalizers": ["example.com/one", "example.com/two"]}),
            &json!({"k": "1", "l": "2"})
        )
    );
    for (manager, label, key) in [("one", "f:x", "f:k"), ("two", "f:y", "f:l")] {
        let finalizer = format!("v:\"example.com/{manager}\"");
        // What has a schema is owned without itself; what is only preserved, with itself.
        let expected = json!({"f:apiVersion": {}, "f:kind": {}, "f:data": {".": {}, key: {}},
            "f:metadata": {"f:name": {}, "f:labels": {label: {}}, "f:finalizers": {finalizer: {}}}});
        assert_eq!(owned(&answer.body, manager), &expected, "{manager}");
    }

    let taken = stamp(
        &json!({"labels": {"x": "2", "y": "2"}, "finalizers": ["example.com/two"]}),
        &json!({"l": "2"}),
    );
    let conflict = apply(&server, "two", &taken).await;
    assert_eq!(
        (conflict.code, conflict.message()),
        (409, "Apply failed with 1 conflict: conflict with \"one\": .spec.template.metadata.labels.x")
    );
    assert_eq!(
        conflict.body["details"]["causes"],
        json!([{"reason": "FieldManagerConflict", "message": "conflict with \"one\"",
            "field": ".spec.template.metadata.labels.x"}])
    );

    // What one no longer applies goes, and what the other has stays.
    let answer = apply(&server, "one", &stamp(&json!({}), &json!({"k": "1"}))).await;
    assert_eq!(
        (answer.code, &answer.body["spec"]["template"]["metadata"]),
        (200, &json!({"name": "t", "labels": {"y": "2"}, "finalizers": ["example.com/two"]}))
    );
    // Both may have the same finalizer; it stays until nobody has it.
    let both = stamp(&json!({"finalizers": ["example.com/two"]}), &json!({"k": "1"}));
    assert_eq!(apply(&server, "one", &both).await.code, 200);
    let without = stamp(&json!({}), &json!({"l": "2"}));
    let answer = apply(&server, "two", &without).await;
    assert_eq!(answer.body["spec"]["template"]["metadata"]["finalizers"], json!(["example.com/two"]));
    let answer = apply(&server, "one", &stamp(&json!({}), &json!({"k": "1"}))).await;
    assert_eq!(answer.body["spec"]["template"]["metadata"], json!({"name": "t"}));
    let twice = stamp(&json!({"finalizers": ["example.com/a", "example.com/a"]}), &json!({"k": "1"}));
    let answer = apply(&server, "one", &twice).await;
    assert_eq!(answer.code, 500, "{}", answer.body);
    assert!(
        answer
            .message()
            .contains(".spec.template.metadata.finalizers: duplicate entries for key [=\"example.com/a\"]"),
        "{}",
        answer.message()
    );
}

#[tokio::test]
async fn an_updater_takes_a_label_of_an_embedded_object_alone() {
    let server = with_stamps().await;
    let first = stamp(&json!({"labels": {"x": "1", "y": "1"}}), &json!({"k": "1"}));
    let created = apply(&server, "one", &first).await;
    assert_eq!(created.code, 201, "{}", created.body);
    let mut changed = created.body.clone();
    changed["spec"]["template"]["metadata"]["labels"]["x"] = "2".into();
    let answer = call(&server, "PUT", &format!("{PATH}?fieldManager=put"), changed).await;
    assert_eq!(answer.code, 200, "{}", answer.body);
    assert_eq!(owned(&answer.body, "put"), &json!({"f:metadata": {"f:labels": {"f:x": {}}}}));
    assert_eq!(owned(&answer.body, "one")["f:metadata"], json!({"f:name": {}, "f:labels": {"f:y": {}}}));
    let conflict = apply(&server, "one", &first).await;
    assert_eq!(
        (conflict.code, conflict.message()),
        (
            409,
            "Apply failed with 1 conflict: conflict with \"put\" using example.com/v1: .spec.template.metadata.labels.x"
        )
    );
}

#[tokio::test]
async fn embedded_objects_in_an_atomic_list_are_owned_with_it() {
    let server = with_stamps().await;
    let more = |label: &str| {
        json!({"apiVersion": "example.com/v1", "kind": "Stamp", "metadata": {"name": "a"}, "spec": {"more": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "t", "labels": {"x": label}}}]}})
    };
    let created = apply(&server, "one", &more("1")).await;
    assert_eq!(created.code, 201, "{}", created.body);
    let entry = &created.body["metadata"]["managedFields"][0];
    assert_eq!(entry["fieldsV1"], json!({"f:spec": {"f:more": {}}}));
    let conflict = apply(&server, "two", &more("2")).await;
    assert_eq!(
        (conflict.code, conflict.message()),
        (409, "Apply failed with 1 conflict: conflict with \"one\": .spec.more")
    );
}
