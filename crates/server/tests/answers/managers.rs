//! Managers, which a write has as text: nobody sees or sends that text.

use serde_json::{Value, json};

use crate::client::{Answer, call, create, patch, send, server};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

/// An answer's managers, all with their fields as objects.
fn managers(answer: &Value) -> Vec<Value> {
    let entries = answer["metadata"]["managedFields"].as_array().unwrap();
    assert!(entries.iter().all(|entry| entry["fieldsV1"].is_object()), "{entries:#?}");
    entries.clone()
}

#[tokio::test]
async fn patches_can_read_and_write_managers() {
    let server = server().await;
    let created = create(&server, DEPLOYMENTS, deployment()).await;
    let path = format!("{DEPLOYMENTS}/a");
    let fields = managers(&created)[0]["fieldsV1"].clone();
    // A test of what is there, in whole and in part, also if the name is escaped.
    for (path, value) in [
        ("/metadata/managedFields/0/fieldsV1", &fields),
        ("/metadata", &created["metadata"]),
        ("/metadata/managedFields", &created["metadata"]["managedFields"]),
    ] {
        let tests = |value: &Value| json!([{"op": "test", "path": path, "value": value}]);
        assert_eq!(
            patch(&server, "json", &format!("{DEPLOYMENTS}/a"), tests(value)).await.code,
            200,
            "{path}"
        );
        let other = patch(&server, "json", &format!("{DEPLOYMENTS}/a"), tests(&json!({}))).await;
        assert_eq!(other.code, 422, "{path}: {}", other.body);
    }
    let escaped =
        r#"[{"op": "test", "path": "/metadata/managed\u0046ields/0/operation", "value": "Update"}]"#;
    assert_eq!(send(&server, "PATCH", &path, "application/json-patch+json", escaped).await.code, 200);
    // Text is not taken for fields.
    let text = json!({"metadata": {"managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1", "fieldsV1": "{\"f:spec\":{}}"}]}});
    let answer = patch(&server, "merge", &path, text).await;
    assert_eq!((answer.code, managers(&answer.body)), (200, managers(&created)));
    let mut sent = created.clone();
    sent["metadata"]["managedFields"][0]["fieldsV1"] = fields.to_string().into();
    let answer = call(&server, "PUT", &path, sent).await;
    assert_eq!((answer.code, managers(&answer.body)), (200, managers(&created)));
    // An empty list makes the object forget them.
    let answer = patch(&server, "merge", &path, json!({"metadata": {"managedFields": []}})).await;
    assert_eq!((answer.code, &answer.body["metadata"]["managedFields"]), (200, &Value::Null));
}

#[tokio::test]
async fn writes_that_change_nothing_write_nothing() {
    let server = server().await;
    let apply = async |config: Value| -> Answer {
        let path = format!("{DEPLOYMENTS}/a?fieldManager=m");
        send(&server, "PATCH", &path, "application/apply-patch+yaml", &config.to_string()).await
    };
    assert_eq!(apply(deployment()).await.code, 201);
    let before = call(&server, "GET", &format!("{DEPLOYMENTS}/a"), Value::Null).await.body;
    assert_eq!(apply(deployment()).await.body, before);
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", "namespace": "default"},
        "spec": {"replicas": 2}});
    assert_eq!(call(&server, "PUT", &format!("{DEPLOYMENTS}/a/scale"), scale).await.code, 200);
    let none = patch(&server, "merge", &format!("{DEPLOYMENTS}/a/status"), json!({})).await;
    assert_eq!(none.body, before);
    // A configuration that names a version which is not current conflicts, though it changes nothing else.
    let mut old = deployment();
    old["metadata"]["resourceVersion"] = "1".into();
    assert_eq!(apply(old).await.code, 409);
    let mut current = deployment();
    current["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
    assert_eq!(apply(current).await.body, before);
}

#[tokio::test]
async fn answers_of_deletions_and_dry_runs_have_fields() {
    let server = server().await;
    let mut object = deployment();
    object["metadata"]["finalizers"] = json!(["example.com/a"]);
    create(&server, DEPLOYMENTS, object).await;
    let path = format!("{DEPLOYMENTS}/a");
    let dry = patch(&server, "merge", &format!("{path}?dryRun=All"), json!({"spec": {"replicas": 3}})).await;
    assert_eq!((dry.code, managers(&dry.body).len()), (200, 1));
    let deleted = call(&server, "DELETE", &path, Value::Null).await;
    assert_eq!((deleted.code, managers(&deleted.body).len()), (200, 1));
}
