//! Which webhooks are called.

use super::*;

fn names(calls: &Calls) -> Vec<String> {
    let calls = std::mem::take(&mut *calls.lock());
    let name = |call: &Value| {
        let object = if call["object"].is_null() { &call["oldObject"] } else { &call["object"] };
        object["metadata"]["name"].as_str().unwrap().to_owned()
    };
    calls.iter().map(name).collect()
}

#[tokio::test]
async fn objects_are_selected_by_their_old_or_their_new_labels() {
    let stage = Stage::new().await;
    let calls = stage.serve("a.k1s.dev", |_| allow());
    let selector = json!({"matchLabels": {"guard": "1"}});
    stage.register("Validating", "v", &[json!({"name": "a.k1s.dev", "objectSelector": selector})]).await;
    stage.configmap(json!({"metadata": {"name": "plain"}})).await;
    stage.configmap(json!({"metadata": {"name": "marked", "labels": {"guard": "1"}}})).await;
    assert_eq!(names(&calls), ["marked"]);
    let label = |value: Value| json!({"metadata": {"labels": {"guard": value}}});
    let change = async |name: &str, value: Value| {
        let path = format!("{CONFIGMAPS}/{name}");
        assert_eq!(stage.client.call("PATCH", &path, label(value)).await.0, 200);
    };
    change("plain", json!("2")).await;
    assert!(names(&calls).is_empty());
    change("plain", json!("1")).await;
    change("marked", Value::Null).await;
    assert_eq!(names(&calls), ["plain", "marked"]);
    change("marked", json!("2")).await;
    assert!(names(&calls).is_empty());
    stage.client.call("DELETE", &format!("{CONFIGMAPS}/plain"), Value::Null).await;
    assert_eq!(names(&calls), ["plain"]);
}

#[tokio::test]
async fn namespaces_are_selected_by_their_labels() {
    let stage = Stage::new().await;
    let calls = stage.serve("a.k1s.dev", |_| allow());
    let selector = json!({"matchExpressions": [{"key": "env", "operator": "In", "values": ["prod"]}]});
    let rules = json!([rule(&["*"], "*", &["configmaps", "namespaces", "clusterroles"])]);
    let hook = json!({"name": "a.k1s.dev", "namespaceSelector": selector, "rules": rules});
    stage.register("Validating", "v", &[hook]).await;
    let client = &stage.client;
    let namespace = |name: &str, env: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"env": env}}});
    // A new namespace is selected by the labels that it is about to have. Its default objects are the server's own.
    client.post("/api/v1/namespaces", namespace("p", "prod")).await;
    client.post("/api/v1/namespaces", namespace("t", "test")).await;
    assert_eq!(names(&calls), ["p"]);
    for (name, namespace) in [("in", "p"), ("out", "t")] {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        client.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), body).await;
    }
    assert_eq!(names(&calls), ["in"]);
    // What is in no namespace is not selected by one.
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}});
    client.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role).await;
    assert_eq!(names(&calls), ["r"]);
    // A deleted one by those that it has.
    client.call("DELETE", "/api/v1/namespaces/t", Value::Null).await;
    assert!(!names(&calls).contains(&"t".to_owned()));
    client.call("DELETE", "/api/v1/namespaces/p", Value::Null).await;
    assert!(names(&calls).contains(&"p".to_owned()));
    // A missing one is not found before the webhook is asked.
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    let (code, answer) = client.call("POST", "/api/v1/namespaces/none/configmaps", body).await;
    assert_eq!((code, answer["message"].as_str().unwrap()), (404, "namespaces \"none\" not found"));
}

#[tokio::test]
async fn other_versions_of_a_resource_match_unless_the_policy_is_exact() {
    let stage = Stage::new().await;
    let (equivalent, exact) = (stage.serve("a.k1s.dev", |_| allow()), stage.serve("b.k1s.dev", |_| allow()));
    let rules = json!([{"operations": ["*"], "apiGroups": ["autoscaling"], "apiVersions": ["v1"],
        "resources": ["horizontalpodautoscalers"]}]);
    let hooks = [
        json!({"name": "a.k1s.dev", "rules": rules}),
        json!({"name": "b.k1s.dev", "rules": rules, "matchPolicy": "Exact"}),
    ];
    stage.register("Validating", "v", &hooks).await;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    let v2 = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3, "metrics": [{"type": "Resource", "resource":
            {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 7}}}]}});
    stage.client.post("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", v2).await;
    assert!(exact.lock().is_empty());
    let call = equivalent.lock().remove(0);
    assert_eq!(call["object"]["apiVersion"], "autoscaling/v1");
    assert_eq!(call["object"]["spec"]["targetCPUUtilizationPercentage"], 7);
    assert_eq!(call["kind"]["version"], "v1");
    assert_eq!(
        (&call["requestKind"]["version"], &call["requestResource"]["version"]),
        (&json!("v2"), &json!("v2"))
    );
    let v1 = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "i"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3}});
    stage.client.post("/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", v1).await;
    assert_eq!((exact.lock().len(), equivalent.lock().len()), (1, 1));
}

#[tokio::test]
async fn a_mutation_in_another_version_is_converted_back() {
    let stage = Stage::new().await;
    stage.serve("a.k1s.dev", |_| {
        patch(&json!([{"op": "replace", "path": "/spec/targetCPUUtilizationPercentage", "value": 9},
            {"op": "add", "path": "/metadata/labels", "value": {"seen": "v1"}}]))
    });
    let rules = json!([{"operations": ["*"], "apiGroups": ["autoscaling"], "apiVersions": ["v1"],
        "resources": ["horizontalpodautoscalers"]}]);
    stage.register("Mutating", "m", &[json!({"name": "a.k1s.dev", "rules": rules})]).await;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    let v2 = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3, "metrics": [{"type": "Resource", "resource":
            {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 7}}}]}});
    let stored =
        stage.client.post("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", v2).await;
    assert_eq!(stored["apiVersion"], "autoscaling/v2");
    assert_eq!(stored["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 9);
    assert_eq!(stored["metadata"]["labels"]["seen"], "v1");
}

#[tokio::test]
async fn custom_resources_match_in_every_version_they_are_served_in() {
    let stage = Stage::new().await;
    let calls = stage.serve("a.k1s.dev", |_| {
        patch(&json!([{"op": "add", "path": "/spec/extra", "value": 1}, {"op": "add", "path": "/spec/size", "value": 4}]))
    });
    let schema = |more: &str| {
        let mut properties =
            json!({"size": {"type": "integer"}, "color": {"type": "string", "default": "red"}});
        properties[more] = json!({"type": "string"});
        json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}})
    };
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": schema(name)});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.k1s.dev"}, "spec": {"group": "k1s.dev", "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [version("v1", true), version("v2", false)]}});
    stage.client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd).await;
    let rules = json!([rule(&["*"], "k1s.dev", &["things"])]);
    stage.register("Mutating", "m", &[json!({"name": "a.k1s.dev", "rules": rules})]).await;
    let thing =
        json!({"apiVersion": "k1s.dev/v2", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"v2": "x"}});
    let stored = stage.client.post("/apis/k1s.dev/v2/namespaces/default/things", thing).await;
    let call = calls.lock().remove(0);
    assert_eq!(
        (&call["object"]["apiVersion"], &call["requestKind"]["version"]),
        (&json!("k1s.dev/v1"), &json!("v2"))
    );
    assert_eq!(call["object"]["spec"]["color"], "red");
    assert_eq!(stored["apiVersion"], "k1s.dev/v2");
    // The patched object is pruned.
    assert_eq!(stored["spec"]["size"], 4);
    assert!(stored["spec"].get("extra").is_none(), "{stored}");
}

#[tokio::test]
async fn webhooks_never_see_what_could_lock_everybody_out() {
    let stage = Stage::new().await;
    let everything =
        json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]);
    let broken = json!({"name": "broken.k1s.dev", "rules": everything, "clientConfig": {"service": {"namespace": "none", "name": "none"}}});
    stage.register("Validating", "v", std::slice::from_ref(&broken)).await;
    stage.register("Mutating", "m", &[broken]).await;
    assert_eq!(stage.configmap(json!({"metadata": {"name": "a"}})).await.0, 500);
    let client = &stage.client;
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).await;
    let lease = |name: &str| json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}});
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    client.post(leases, lease("k1s-controllers")).await;
    assert_eq!(client.call("POST", leases, lease("other")).await.0, 500);
    // The configurations can be changed, and deleted.
    let path = format!("{}/v", configurations("Validating"));
    assert_eq!(client.call("PATCH", &path, json!({"metadata": {"labels": {"a": "b"}}})).await.0, 200);
    stage.unregister("Validating", "v").await;
    stage.unregister("Mutating", "m").await;
    assert_eq!(stage.configmap(json!({"metadata": {"name": "a"}})).await.0, 201);
}

#[tokio::test]
async fn a_change_of_a_configuration_counts_for_the_next_request() {
    let stage = Stage::new().await;
    stage.serve("a.k1s.dev", |_| json!({"allowed": false, "status": {"code": 403, "message": "no"}}));
    for round in 0..20 {
        stage.register("Validating", "v", &[json!({"name": "a.k1s.dev"})]).await;
        assert_eq!(stage.configmap(json!({"metadata": {"name": format!("a{round}")}})).await.0, 403);
        let path = format!("{}/v", configurations("Validating"));
        let hooks = json!({"webhooks": [hook(&json!({"name": "a.k1s.dev", "rules": [rule(&["DELETE"], "", &["configmaps"])]}))]});
        assert_eq!(stage.client.call("PATCH", &path, hooks).await.0, 200);
        assert_eq!(stage.configmap(json!({"metadata": {"name": format!("b{round}")}})).await.0, 201);
        stage.unregister("Validating", "v").await;
        assert_eq!(stage.configmap(json!({"metadata": {"name": format!("c{round}")}})).await.0, 201);
    }
}

#[tokio::test]
async fn a_tenants_webhooks_are_its_own() {
    let stage = Stage::new().await;
    let calls = stage.serve("a.k1s.dev", |_| allow());
    stage.register("Validating", "v", &[json!({"name": "a.k1s.dev"})]).await;
    let other = common::client(&stage.client.server.tenant("other").await.unwrap());
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    other.post(CONFIGMAPS, body.clone()).await;
    assert!(calls.lock().is_empty());
    // Nor can another tenant call what is served for this one.
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "v"}, "webhooks": [hook(&json!({"name": "a.k1s.dev", "timeoutSeconds": 1,
            "clientConfig": {"service": {"namespace": "a", "name": "b"}}}))]});
    other.post(&configurations("Validating"), configuration).await;
    stage.local.serve("default", "b.a.svc", tower::service_fn(|_| async { Ok(Response::new(Bytes::new())) }));
    let mut body = body;
    body["metadata"]["name"] = "b".into();
    let (code, answer) = other.call("POST", CONFIGMAPS, body).await;
    assert_eq!(code, 500);
    assert_eq!(
        answer["message"],
        "Internal error occurred: failed calling webhook \"a.k1s.dev\": failed to call webhook: Post \"https://b.a.svc:443/?timeout=1s\": service \"b\" not found"
    );
}
