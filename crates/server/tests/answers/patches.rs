//! Patches of built-in and custom resources: their results and their errors.

use serde_json::{Value, json};

use crate::client::{call, create, patch, send, server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config_map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1", "b": "2"}})
}

/// Keeps only the metadata that a test can predict.
fn bare(mut merge: Value) -> Value {
    merge["metadata"] =
        json!({"uid": null, "resourceVersion": null, "creationTimestamp": null, "managedFields": null});
    merge
}

const HEAD: &str = " \"\" is invalid: patch: Invalid value: ";

#[tokio::test]
async fn errors_quote_the_patched_document() {
    let server = server().await;
    create(&server, MAPS, config_map()).await;
    let path = format!("{MAPS}/a");
    let strict = format!("{path}?fieldValidation=Strict");
    let document = |data: &str, more: &str| {
        format!(
            r#"{{\"apiVersion\":\"v1\",{more}\"data\":{data},\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"a\",\"namespace\":\"default\"}}}}"#
        )
    };
    let answer = patch(&server, "merge", &path, bare(json!({"data": []}))).await;
    assert_eq!(
        answer.message(),
        format!(
            "{HEAD}\"{}\": json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string",
            document("[]", "")
        )
    );
    assert_eq!(answer.body["details"]["causes"][0]["field"], "patch");
    let data = r#"{\"a\":\"1\",\"b\":\"2\"}"#;
    let answer = patch(&server, "merge", &strict, bare(json!({"bogus": "x"}))).await;
    assert_eq!(
        answer.message(),
        format!(
            "{HEAD}\"{}\": strict decoding error: unknown field \"bogus\"",
            document(data, r#"\"bogus\":\"x\","#)
        )
    );
    let answer = patch(&server, "merge", &path, bare(json!({"kind": "NoSuchKind"}))).await;
    assert_eq!(
        answer.message(),
        format!(
            "{HEAD}\"{}\": no kind \"NoSuchKind\" is registered for version \"v1\" in scheme \
             \"pkg/api/legacyscheme/scheme.go:30\"",
            document(data, "").replace("ConfigMap", "NoSuchKind")
        )
    );
    let answer = patch(&server, "merge", &path, bare(json!({"kind": "Secret"}))).await;
    assert_eq!(answer.code, 422);
    assert!(answer.message().ends_with("converting (v1.Secret) to (core.ConfigMap): unknown conversion"));
}

#[tokio::test]
async fn errors_quote_what_is_left_of_a_strategic_merge_patch() {
    let server = server().await;
    create(&server, MAPS, config_map()).await;
    let path = format!("{MAPS}/a");
    for (body, quoted) in [
        (json!({"data": []}), "\"map[data:[]]\": cannot restore map from slice"),
        (json!({"data": {"x": 5}}), "\"map[data:map[x:5]]\": cannot convert int64 to string"),
    ] {
        let answer = patch(&server, "strategic-merge", &path, body).await;
        assert_eq!((answer.code, answer.message()), (422, &*format!("{HEAD}{quoted}")));
    }
    let odd = json!({"metadata": {"odd": 1}, "bogus": "x"});
    let answer = patch(&server, "strategic-merge", &format!("{path}?fieldValidation=Strict"), odd).await;
    assert_eq!(
        answer.message(),
        format!(
            "{HEAD}\"map[bogus:x metadata:map[odd:1]]\": strict decoding error: unknown field \"bogus\", unknown \
             field \"metadata.odd\""
        )
    );
    // The kind in a strategic merge patch is not checked.
    let answer =
        patch(&server, "strategic-merge", &path, json!({"kind": "Secret", "data": {"c": "3"}})).await;
    assert_eq!(
        (answer.code, &answer.body["kind"], &answer.body["data"]["c"]),
        (200, &json!("ConfigMap"), &json!("3"))
    );
}

#[tokio::test]
async fn without_an_api_version_there_is_no_name() {
    let server = server().await;
    create(&server, MAPS, config_map()).await;
    let path = format!("{MAPS}/a");
    let message = "the name of the object (a based on URL) was undeterminable: name must be provided";
    for body in [json!({"apiVersion": null}), json!({"metadata": {"name": null}})] {
        let answer = patch(&server, "merge", &path, body).await;
        assert_eq!((answer.code, answer.message()), (400, message));
    }
    assert_eq!(patch(&server, "merge", &path, json!({"kind": null})).await.code, 200);
    let moved = patch(&server, "merge", &path, json!({"metadata": {"namespace": "other"}})).await;
    assert_eq!(
        moved.message(),
        "the namespace of the provided object does not match the namespace sent on the request"
    );
}

#[tokio::test]
async fn unknown_fields_are_warned_about_in_the_order_of_the_patched_document() {
    let server = server().await;
    create(&server, MAPS, config_map()).await;
    let body = json!([
        {"op": "add", "path": "/metadata/odd", "value": 1},
        {"op": "add", "path": "/bogus", "value": 1, "extra": 1},
    ]);
    let answer = patch(&server, "json", &format!("{MAPS}/a"), body).await;
    assert_eq!(answer.code, 200);
    assert_eq!(
        answer.warnings,
        [
            r#"299 - "json patch unknown field \"[1].extra\"""#,
            r#"299 - "unknown field \"bogus\"""#,
            r#"299 - "unknown field \"metadata.odd\"""#
        ]
    );
}

#[tokio::test]
async fn whole_floats_are_integers_to_strategic_merge_patch_alone() {
    let server = server().await;
    let template =
        json!({"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"app": "d"}}, "template": template});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    create(&server, deployments, json!({"metadata": {"name": "d"}, "spec": spec})).await;
    let path = format!("{deployments}/d");
    let body = r#"{"spec":{"replicas":3.0}}"#;
    let send = async |kind: &str| send(&server, "PATCH", &path, kind, body).await;
    assert_eq!(send("application/merge-patch+json").await.code, 422);
    let answer = send("application/strategic-merge-patch+json").await;
    assert_eq!((answer.code, &answer.body["spec"]["replicas"]), (200, &json!(3)));
    let gone = patch(&server, "merge", &path, json!({"spec": {"selector": null}})).await;
    assert!(
        gone.message().contains("spec.selector: Invalid value: null: field is immutable"),
        "{}",
        gone.message()
    );
}

#[tokio::test]
async fn custom_resources_do_not_support_strategic_merge_patch() {
    let server = server().await;
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    create(&server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    create(
        &server,
        widgets,
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}),
    )
    .await;
    let path = format!("{widgets}/a");
    let answer = patch(&server, "strategic-merge", &path, json!({})).await;
    assert_eq!(
        (answer.code, answer.message()),
        (
            415,
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        )
    );
    for (body, message) in [
        (
            json!({"kind": "Gadget"}),
            "Gadget.example.com \"a\" is invalid: kind: Invalid value: \"Gadget\": must be Widget",
        ),
        (
            json!({"apiVersion": "v9"}),
            "Widget \"a\" is invalid: apiVersion: Invalid value: \"v9\": must be example.com/v1",
        ),
    ] {
        let answer = patch(&server, "merge", &path, body).await;
        assert_eq!((answer.code, answer.message()), (422, message));
    }
    let object = call(&server, "GET", &path, Value::Null).await.body;
    assert_eq!(object["kind"], "Widget");
}
