//! What mutating webhooks may do, and in which order.

use super::*;

#[tokio::test]
async fn a_patch_is_stored_and_returned_and_has_no_manager() {
    let stage = Stage::new().await;
    stage.serve("a.k1s.dev", |_| {
        patch(&json!([{"op": "add", "path": "/metadata/labels", "value": {"by": "webhook"}},
            {"op": "add", "path": "/data/more", "value": "x"}, {"op": "add", "path": "/unknown", "value": 1}]))
    });
    stage.register("Mutating", "m", &[json!({"name": "a.k1s.dev"})]).await;
    let (code, made) = stage.configmap(json!({"metadata": {"name": "c"}, "data": {"a": "b"}})).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(
        (&made["metadata"]["labels"], &made["data"]),
        (&json!({"by": "webhook"}), &json!({"a": "b", "more": "x"}))
    );
    assert!(made.get("unknown").is_none());
    let stored = stage.client.get(&format!("{CONFIGMAPS}/c")).await;
    assert_eq!(stored, made);
    let fields = &stored["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(fields, &json!({"f:data": {".": {}, "f:a": {}}}));
}

#[tokio::test]
async fn an_apply_that_changes_nothing_is_mutated_all_the_same() {
    let stage = Stage::new().await;
    let config =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}});
    let headers = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{CONFIGMAPS}/c?fieldManager=me");
    let apply = async || stage.client.send("PATCH", &path, &headers, config.to_string()).await;
    assert_eq!(apply().await.status, 201);
    stage.serve("a.k1s.dev", |_| patch(&json!([{"op": "add", "path": "/data/more", "value": "x"}])));
    stage.register("Mutating", "m", &[json!({"name": "a.k1s.dev"})]).await;
    let answer = apply().await;
    assert_eq!((answer.status, &answer.json()["data"]["more"]), (200, &json!("x")));
    let before = answer.json();
    assert_eq!(apply().await.json()["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn webhooks_are_called_by_configuration_and_position() {
    let stage = Stage::new().await;
    let order = Arc::new(Mutex::new(Vec::new()));
    for host in ["one.k1s.dev", "two.k1s.dev", "three.k1s.dev"] {
        let order = order.clone();
        stage.serve(host, move |request| {
            let seen = request["object"]["data"]["seen"].as_str().unwrap_or_default().to_owned();
            order.lock().push(host);
            patch(
                &json!([{"op": "add", "path": "/data", "value": {"seen": format!("{seen}{}", &host[..3])}}]),
            )
        });
    }
    stage.register("Mutating", "b", &[json!({"name": "three.k1s.dev"})]).await;
    stage.register("Mutating", "a", &[json!({"name": "two.k1s.dev"}), json!({"name": "one.k1s.dev"})]).await;
    let (_, made) = stage.configmap(json!({"metadata": {"name": "c"}})).await;
    assert_eq!(made["data"]["seen"], "twoonethr");
    assert_eq!(*order.lock(), ["two.k1s.dev", "one.k1s.dev", "three.k1s.dev"]);
}

/// Upstream's rules of reinvocation: a webhook is called again if it asks for that, was called before, and something has
/// changed since; at most once.
#[tokio::test]
async fn webhooks_are_reinvoked_if_needed() {
    let stage = Stage::new().await;
    let first = stage.serve("first.k1s.dev", |request| match request["object"]["data"]["side"] {
        Value::Null => allow(),
        _ => patch(&json!([{"op": "add", "path": "/data/first", "value": "saw it"}])),
    });
    let second = stage.serve("second.k1s.dev", |request| match request["object"]["data"]["side"] {
        Value::Null => patch(&json!([{"op": "add", "path": "/data", "value": {"side": "car"}}])),
        _ => allow(),
    });
    let labelled = stage.serve("labelled.k1s.dev", |_| allow());
    let hooks = |policy: &str| {
        [
            json!({"name": "first.k1s.dev", "reinvocationPolicy": policy}),
            json!({"name": "second.k1s.dev", "reinvocationPolicy": policy}),
            // One that the first round has not called is not called in the second.
            json!({"name": "labelled.k1s.dev", "reinvocationPolicy": policy, "objectSelector": {"matchLabels": {"x": "y"}}}),
        ]
    };
    let counts = |calls: [&Calls; 3]| calls.map(|calls| std::mem::take(&mut *calls.lock()).len());
    stage.register("Mutating", "m", &hooks("Never")).await;
    let (_, made) = stage.configmap(json!({"metadata": {"name": "never"}})).await;
    assert_eq!(counts([&first, &second, &labelled]), [1, 1, 0]);
    assert!(made["data"].get("first").is_none());
    stage.unregister("Mutating", "m").await;
    stage.register("Mutating", "m", &hooks("IfNeeded")).await;
    let (_, made) = stage.configmap(json!({"metadata": {"name": "needed"}})).await;
    // The first changes the object in the second round, in which the second one has its turn after it.
    assert_eq!(counts([&first, &second, &labelled]), [2, 2, 0]);
    assert_eq!(made["data"], json!({"side": "car", "first": "saw it"}));
    // Nothing changes: nobody is called again.
    let (_, made) = stage
        .configmap(json!({"metadata": {"name": "as-is"}, "data": {"side": "x", "first": "saw it"}}))
        .await;
    assert_eq!(counts([&first, &second, &labelled]), [1, 1, 0]);
    assert_eq!(made["data"], json!({"side": "x", "first": "saw it"}));
}

#[tokio::test]
async fn what_a_webhook_makes_is_validated_and_completed() {
    let stage = Stage::new().await;
    stage.serve("a.k1s.dev", |request| {
        let operations = request["object"]["metadata"]["annotations"]["patch"].as_str().unwrap_or("[]");
        patch(&serde_json::from_str(operations).unwrap())
    });
    stage.register("Mutating", "m", &[json!({"name": "a.k1s.dev"})]).await;
    let try_patch = async |name: &str, operations: Value| {
        let annotations = json!({"patch": operations.to_string()});
        stage
            .configmap(json!({"metadata": {"name": name, "annotations": annotations}, "data": {"a": "b"}}))
            .await
    };
    let (code, answer) = try_patch("a", json!([{"op": "add", "path": "/data/b ad", "value": "x"}])).await;
    assert_eq!((code, &answer["reason"]), (422, &json!("Invalid")), "{answer}");
    assert_eq!(answer["details"]["causes"][0]["field"], "data[b ad]");
    // A uid is the server's to give.
    let (code, made) = try_patch("b", json!([{"op": "add", "path": "/metadata/uid", "value": "mine"}])).await;
    assert_eq!(code, 201);
    assert_ne!(made["metadata"]["uid"], "mine");
    let (code, answer) =
        try_patch("c", json!([{"op": "replace", "path": "/metadata/namespace", "value": "other"}])).await;
    assert_eq!(
        (code, answer["message"].as_str().unwrap()),
        (400, "the namespace of the provided object does not match the namespace sent on the request")
    );
    let (code, answer) = try_patch("d", json!([{"op": "replace", "path": "/data", "value": "text"}])).await;
    assert_eq!((code, &answer["reason"]), (500, &json!("InternalError")), "{answer}");
    let (code, answer) = try_patch("e", json!([{"op": "remove", "path": "/data/none"}])).await;
    assert_eq!((code, &answer["reason"]), (500, &json!("InternalError")), "{answer}");
    // An existing object keeps its uid.
    let change = json!({"metadata": {"annotations": {"patch": json!([{"op": "replace", "path": "/metadata/uid", "value": "mine"}]).to_string()}}});
    let (code, answer) = stage.client.call("PATCH", &format!("{CONFIGMAPS}/b"), change).await;
    assert_eq!((code, &answer["details"]["causes"][0]["field"]), (422, &json!("metadata.uid")), "{answer}");
    let stored = stage.client.get(&format!("{CONFIGMAPS}/b")).await;
    assert_eq!(stored["metadata"]["uid"], made["metadata"]["uid"]);
}

#[tokio::test]
async fn the_defaults_of_added_fields_are_set() {
    let stage = Stage::new().await;
    let container = json!({"name": "side", "image": "side"});
    stage.serve("a.k1s.dev", move |_| {
        patch(&json!([{"op": "add", "path": "/spec/containers/-", "value": container}]))
    });
    let rules = json!([rule(&["CREATE"], "", &["pods"])]);
    stage.register("Mutating", "m", &[json!({"name": "a.k1s.dev", "rules": rules})]).await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    let made = stage.client.post("/api/v1/namespaces/default/pods", pod).await;
    let side = &made["spec"]["containers"][1];
    assert_eq!(
        (&side["imagePullPolicy"], &side["terminationMessagePolicy"]),
        (&json!("Always"), &json!("File"))
    );
    assert_eq!(made["spec"]["tolerations"].as_array().unwrap().len(), 2);
}

/// Upstream's `TestAdmission`. Each entry: its name there, the field that the webhook replaces and by what, and whether the entry is
/// invalid then.
const BROKEN: [(&str, &str, &str, bool); 5] = [
    ("invalid APIVersion", "apiVersion", "", true),
    ("invalid Operation", "operation", "invalid operation", true),
    ("invalid fieldsType", "fieldsType", "invalid fieldsType", true),
    ("invalid fieldsV1", "fieldsV1", "{invalid}", true),
    ("invalid manager", "manager", "", false),
];

#[tokio::test]
async fn managers_that_a_webhook_breaks_are_restored() {
    let stage = Stage::new().await;
    stage.serve("a.k1s.dev", |request| {
        let name = request["object"]["metadata"]["name"].as_str().unwrap();
        let (_, field, value, _) = BROKEN[name[1..].parse::<usize>().unwrap()];
        patch(&json!([{"op": "add", "path": "/data", "value": {"x": "y"}},
            {"op": "replace", "path": format!("/metadata/managedFields/0/{field}"), "value": value}]))
    });
    stage.register("Mutating", "m", &[json!({"name": "a.k1s.dev"})]).await;
    for (number, (case, field, _, restored)) in BROKEN.into_iter().enumerate() {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("c{number}"), "labels": {"test-label": "x"}}});
        let path = format!("{CONFIGMAPS}/c{number}?fieldManager=test");
        let headers = [("content-type", "application/apply-patch+yaml")];
        let answer = stage.client.send("PATCH", &path, &headers, body.to_string()).await;
        assert_eq!((answer.status, &answer.json()["data"]["x"]), (201, &json!("y")), "{case}");
        let warned = answer
            .header("warning")
            .contains(".metadata.managedFields was in an invalid state after admission");
        assert_eq!(warned, restored, "{case}: {}", answer.header("warning"));
        let mut entries = answer.json()["metadata"]["managedFields"].clone();
        assert!(entries[0].as_object_mut().unwrap().remove("time").is_some(), "{case}");
        let mut expected = json!([{"manager": "test", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:test-label": {}}}}}]);
        if !restored {
            expected[0].as_object_mut().unwrap().remove(field);
        }
        assert_eq!(entries, expected, "{case}");
    }
    let readme = include_str!("../../../apply/tests/README.md");
    assert!(readme.contains(&format!("| fieldmanager/admission_test.go | {} | 0 |", BROKEN.len())));
}

#[tokio::test]
async fn a_delete_cannot_be_patched() {
    let stage = Stage::new().await;
    stage.configmap(json!({"metadata": {"name": "c"}})).await;
    stage.serve("a.k1s.dev", |_| patch(&json!([{"op": "add", "path": "/data", "value": {}}])));
    stage.register("Mutating", "m", &[json!({"name": "a.k1s.dev"})]).await;
    let (code, answer) = stage.client.call("DELETE", &format!("{CONFIGMAPS}/c"), Value::Null).await;
    assert_eq!(code, 500);
    assert_eq!(
        answer["message"],
        "Internal error occurred: admission webhook \"a.k1s.dev\" attempted to modify the object, which is not supported for this operation"
    );
}

#[tokio::test]
async fn a_create_that_is_retried_is_validated_by_webhooks_once() {
    let stage = Stage::new().await;
    let calls = stage.serve("a.k1s.dev", |_| allow());
    stage.register("Validating", "v", &[json!({"name": "a.k1s.dev"})]).await;
    stage.configmap(json!({"metadata": {"name": "warm"}})).await;
    calls.lock().clear();
    // The namespace changes under the feet of the next create: its revision, which is known, is not the current one.
    let change = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(stage.client.call("PATCH", "/api/v1/namespaces/default", change).await.0, 200);
    assert_eq!(stage.configmap(json!({"metadata": {"generateName": "c-"}})).await.0, 201);
    assert_eq!(calls.lock().len(), 1);
}
