//! What webhooks are sent.

use super::*;

/// The calls without uids and with times removed.
fn plain(calls: &Calls) -> Vec<Value> {
    let mut calls = std::mem::take(&mut *calls.lock());
    for call in &mut calls {
        assert!(call["uid"].as_str().unwrap().len() == 36);
        call.as_object_mut().unwrap().remove("uid");
        for object in ["object", "oldObject"] {
            if let Some(metadata) = call[object].get_mut("metadata").and_then(Value::as_object_mut) {
                for field in ["uid", "creationTimestamp", "resourceVersion", "managedFields"] {
                    metadata.remove(field);
                }
            }
        }
    }
    calls
}

#[tokio::test]
async fn the_review_of_a_create() {
    let stage = Stage::new().await;
    let calls = stage.serve("a.k1s.dev", |_| allow());
    stage.register("Mutating", "m", &[json!({"name": "a.k1s.dev"})]).await;
    let path = format!("{CONFIGMAPS}?fieldManager=me&fieldValidation=Strict&dryRun=All");
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}, "data": {"a": "b"}});
    assert_eq!(stage.client.call("POST", &path, body).await.0, 201);
    let expected = json!({
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
        "namespace": "default", "operation": "CREATE",
        "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
        "object": {"kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"generateName": "c-", "namespace": "default"}, "data": {"a": "b"}},
        "oldObject": null, "dryRun": true,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"], "fieldManager": "me",
            "fieldValidation": "Strict"},
    });
    let mut found = plain(&calls);
    let user = found[0]["userInfo"]["username"].take();
    assert!(user.is_string());
    found[0]["userInfo"] = expected["userInfo"].clone();
    assert_eq!(found, [expected]);
}

#[tokio::test]
async fn the_reviews_of_updates_and_deletions() {
    let stage = Stage::new().await;
    let calls = stage.serve("a.k1s.dev", |_| allow());
    stage.configmap(json!({"metadata": {"name": "c"}, "data": {"a": "1"}})).await;
    stage.register("Validating", "v", &[json!({"name": "a.k1s.dev"})]).await;
    let path = format!("{CONFIGMAPS}/c");
    let client = &stage.client;
    let put = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "2"}});
    assert_eq!(client.call("PUT", &path, put).await.0, 200);
    assert_eq!(client.call("PATCH", &path, json!({"data": {"a": "3"}})).await.0, 200);
    // Without any change, too.
    assert_eq!(client.call("PATCH", &path, json!({"data": {"a": "3"}})).await.0, 200);
    let config =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"b": "x"}});
    for _ in 0..2 {
        let headers = [("content-type", "application/apply-patch+yaml")];
        let apply = format!("{path}?fieldManager=me");
        assert_eq!(client.send("PATCH", &apply, &headers, config.to_string()).await.status, 200);
    }
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
    assert_eq!(client.call("DELETE", &path, options).await.0, 200);
    let calls = plain(&calls);
    let seen: Vec<_> = calls
        .iter()
        .map(|call| {
            let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
            let data = |object: &Value| object["data"]["a"].as_str().unwrap_or("-").to_owned();
            (text(&call["operation"]), text(&call["name"]), data(&call["oldObject"]), data(&call["object"]))
        })
        .collect();
    let update = |old: &str, new: &str| ("UPDATE".into(), "c".into(), old.into(), new.into());
    let delete = ("DELETE".to_owned(), "c".to_owned(), "3".to_owned(), "-".to_owned());
    let expected =
        [update("1", "2"), update("2", "3"), update("3", "3"), update("3", "3"), update("3", "3"), delete];
    assert_eq!(seen, expected);
    assert_eq!(calls[1]["options"], json!({"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}));
    assert_eq!(
        calls[3]["options"],
        json!({"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"})
    );
    assert_eq!(
        calls[5]["options"],
        json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "propagationPolicy": "Background"})
    );
    assert_eq!(calls[5]["object"], Value::Null);
}

#[tokio::test]
async fn each_object_of_a_deleted_collection_is_reviewed() {
    let stage = Stage::new().await;
    let calls = stage.serve("a.k1s.dev", |request| match request["oldObject"]["metadata"]["name"].as_str() {
        Some("b") => json!({"allowed": false, "status": {"message": "b stays"}}),
        _ => json!({"allowed": true, "warnings": ["gone"]}),
    });
    let deletes = json!([rule(&["DELETE"], "", &["configmaps"])]);
    stage.register("Validating", "v", &[json!({"name": "a.k1s.dev", "rules": deletes})]).await;
    for name in ["a", "b"] {
        stage.configmap(json!({"metadata": {"name": name, "labels": {"x": "y"}}})).await;
    }
    let answer = stage.send("DELETE", &format!("{CONFIGMAPS}?labelSelector=x%3Dy"), &Value::Null).await;
    assert_eq!(answer.json()["message"], "admission webhook \"a.k1s.dev\" denied the request: b stays");
    assert_eq!(answer.header("warning"), "299 - \"gone\"");
    assert_eq!(calls.lock().len(), 2);
    let left = stage.client.get(&format!("{CONFIGMAPS}?labelSelector=x%3Dy")).await;
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn subresources_are_reviewed_as_the_kinds_of_their_bodies() {
    let stage = Stage::new().await;
    let all = json!([rule(&["*"], "*", &["pods/*", "deployments/*", "serviceaccounts/token"])]);
    let calls = stage.serve("a.k1s.dev", |_| allow());
    stage.register("Mutating", "m", &[json!({"name": "a.k1s.dev", "rules": all})]).await;
    let client = &stage.client;
    let pods = "/api/v1/namespaces/default/pods";
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": template["spec"]});
    client.post(pods, pod).await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    client
        .post(
            deployments,
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}),
        )
        .await;
    plain(&calls);
    let expect = |calls: &Calls, what: &str, kind: &str, operation: &str| {
        let found = plain(calls);
        assert_eq!(found.len(), 1, "{what}: {found:?}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let call = &found[0];
        let seen =
            [&call["subResource"], &call["requestSubResource"], &call["kind"]["kind"], &call["operation"]];
        assert_eq!(seen.map(text), [what, what, kind, operation]);
        call.clone()
    };
    let scale = json!({"spec": {"replicas": 3}});
    assert_eq!(client.call("PATCH", &format!("{deployments}/d/scale"), scale).await.0, 200);
    let call = expect(&calls, "scale", "Scale", "UPDATE");
    assert_eq!(
        (&call["oldObject"]["spec"]["replicas"], &call["object"]["spec"]["replicas"]),
        (&json!(1), &json!(3))
    );
    assert_eq!(call["resource"]["resource"], "deployments");
    let status = json!({"status": {"observedGeneration": 1}});
    assert_eq!(client.call("PATCH", &format!("{deployments}/d/status"), status).await.0, 200);
    expect(&calls, "status", "Deployment", "UPDATE");
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    assert_eq!(client.call("POST", &format!("{pods}/p/binding"), binding).await.0, 201);
    expect(&calls, "binding", "Binding", "CREATE");
    let (code, _) =
        client.call("POST", &format!("{pods}/p/exec?command=ls&command=-l&stdin=true"), Value::Null).await;
    assert_eq!(code, 404);
    let call = expect(&calls, "exec", "PodExecOptions", "CONNECT");
    assert_eq!(call["object"]["command"], json!(["ls", "-l"]));
    assert_eq!((&call["object"]["stdin"], &call["options"]), (&json!(true), &Value::Null));
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["a"]}});
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    client
        .post(accounts, json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "s"}}))
        .await;
    client.post(&format!("{accounts}/s/token"), token).await;
    expect(&calls, "token", "TokenRequest", "CREATE");
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    assert_eq!(client.call("POST", &format!("{pods}/p/eviction"), eviction).await.0, 201);
    expect(&calls, "eviction", "Eviction", "CREATE");
}

#[tokio::test]
async fn a_scale_can_be_changed_and_refused() {
    let stage = Stage::new().await;
    let scales = json!([rule(&["UPDATE"], "apps", &["*/scale"])]);
    stage.serve("a.k1s.dev", |_| patch(&json!([{"op": "replace", "path": "/spec/replicas", "value": 5}])));
    stage.serve("b.k1s.dev", |request| match request["object"]["spec"]["replicas"].as_i64() {
        Some(replicas) if replicas > 5 => json!({"allowed": false}),
        _ => allow(),
    });
    stage.register("Mutating", "m", &[json!({"name": "a.k1s.dev", "rules": scales})]).await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    stage
        .client
        .post(
            deployments,
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}),
        )
        .await;
    let path = format!("{deployments}/d/scale");
    let (code, answer) = stage.client.call("PATCH", &path, json!({"spec": {"replicas": 3}})).await;
    assert_eq!((code, &answer["spec"]["replicas"]), (200, &json!(5)), "{answer}");
    stage.unregister("Mutating", "m").await;
    stage.register("Validating", "v", &[json!({"name": "b.k1s.dev", "rules": scales})]).await;
    let (code, answer) = stage.client.call("PATCH", &path, json!({"spec": {"replicas": 6}})).await;
    assert_eq!(
        (code, answer["message"].as_str().unwrap()),
        (400, "admission webhook \"b.k1s.dev\" denied the request without explanation")
    );
    assert_eq!(stage.client.get(&path).await["spec"]["replicas"], 5);
}
