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
async fn an_apply_that_changes_nothing_has_the_warnings_of_a_put_that_changes_nothing() {
    let server = server().await;
    let meta = |name: &str| json!({"name": name});
    let cases = [
        (
            "/api/v1/namespaces/default/persistentvolumeclaims",
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta("a"), "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}}}),
            "spec.resources.requests[storage]: fractional byte value",
        ),
        (
            "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta("a"), "spec": {
                "podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.1.2.3/8"}}]}]}}),
            "spec.ingress[0].from[0].ipBlock.cidr: ",
        ),
        (
            "/api/v1/nodes",
            json!({"apiVersion": "v1", "kind": "Node", "metadata": meta("a"), "spec": {"externalID": "x"}}),
            "spec.externalID: this field is deprecated",
        ),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta("a"), "provisioner": "p",
                "allowedTopologies": [{"matchLabelExpressions": [
                    {"key": "failure-domain.beta.kubernetes.io/zone", "values": ["z"]}]}]}),
            "allowedTopologies[0].matchLabelExpressions[0].key: ",
        ),
    ];
    for (path, config, expected) in cases {
        let path = format!("{path}/a");
        let apply = async || {
            let path = format!("{path}?fieldManager=m");
            send(&server, "PATCH", &path, "application/apply-patch+yaml", &config.to_string()).await
        };
        let created = apply().await;
        assert_eq!(created.code, 201, "{}", created.body);
        let before = call(&server, "GET", &path, Value::Null).await.body;
        let again = apply().await;
        assert_eq!((again.code, &again.body), (200, &before));
        assert!(
            again.warnings.iter().any(|warning| warning.contains(expected)),
            "{path}: {:?}",
            again.warnings
        );
        let put = call(&server, "PUT", &path, before).await;
        assert_eq!((put.code, put.warnings), (200, again.warnings), "{}", put.body);
    }
}

#[tokio::test]
async fn an_apply_that_changes_nothing_is_refused_by_rules_that_ask_for_a_change() {
    let server = server().await;
    let grows = json!([{"rule": "self > oldSelf", "message": "must grow"}]);
    let spec = json!({"type": "object", "properties": {"n": {"type": "integer", "x-kubernetes-validations": grows}}});
    let counters = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "counters.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "counters", "kind": "Counter"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec,
                    "status": {"type": "object", "properties": {"seen": {"type": "integer"}}}}}}}]}});
    create(&server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", counters).await;
    let path = "/apis/example.com/v1/namespaces/default/counters/a";
    let counter = |rest: Value| {
        let mut counter =
            json!({"apiVersion": "example.com/v1", "kind": "Counter", "metadata": {"name": "a"}});
        counter.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        counter
    };
    let apply = async |at: &str, rest: Value| -> Answer {
        let path = format!("{path}{at}fieldManager=m");
        send(&server, "PATCH", &path, "application/apply-patch+yaml", &counter(rest).to_string()).await
    };
    let one = || json!({"spec": {"n": 1}});
    assert_eq!(apply("?", one()).await.code, 201);
    let before = call(&server, "GET", path, Value::Null).await.body;
    let refused = "Counter.example.com \"a\" is invalid: spec.n: Invalid value: 1: must grow";
    let put = call(&server, "PUT", path, before.clone()).await;
    assert_eq!((put.code, put.message()), (422, refused));
    let mut answers = vec![apply("?", one()).await, apply("?dryRun=All&", one()).await];
    // Rules of the whole object are evaluated on a write of its status, too.
    answers.push(apply("/status?", json!({"status": {}})).await);
    answers.push(apply("/status?", json!({"status": {}})).await);
    for answer in answers {
        assert_eq!((answer.code, answer.message()), (422, refused));
    }
    assert_eq!(call(&server, "GET", path, Value::Null).await.body, before);
    assert_eq!(apply("?", json!({"spec": {"n": 2}})).await.code, 200);
    // Without the field, no rule compares anything.
    assert_eq!(apply("?", json!({})).await.code, 200);
    let before = call(&server, "GET", path, Value::Null).await.body;
    assert_eq!(apply("?", json!({})).await.body, before);
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
