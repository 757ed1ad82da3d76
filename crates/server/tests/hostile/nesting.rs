//! One limit on nesting, the same for all inputs, and no recursion that overflows the stack below it. Tests run on threads
//! with 2 MiB of stack, as the server's workers do.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{
    common::{self, Client},
    corpus::definition,
};

/// Maximum depth of a stored object.
const MOST: usize = 120;

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Objects within objects: `depth` levels.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!("x"), |inner, _| json!({"a": inner}))
}

fn widget(name: &str, depth: usize) -> Value {
    // The object and its spec are two levels.
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name},
        "spec": {"free": nested(depth - 2)}})
}

async fn with_widgets() -> Client {
    let client = common::client(&common::server().await);
    let spec = json!({"type": "object", "properties": {
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    let definition: Value =
        serde_json::from_str(&definition("widgets", "Widget", &spec.to_string())).unwrap();
    client.post(DEFINITIONS, definition).await;
    client
}

/// Performs every operation on an existing object.
async fn works(client: &Client, path: &str, name: &str) {
    let one = format!("{path}/{name}");
    for accept in [
        "application/json",
        "application/yaml",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ] {
        let answer = client.send("GET", &one, &[("accept", accept)], "").await;
        assert_eq!(answer.status, 200, "{one} as {accept}: {}", answer.text());
    }
    for accept in ["application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/yaml"] {
        let list = format!("{path}?includeObject=Object");
        let answer = client.send("GET", &list, &[("accept", accept)], "").await;
        assert_eq!(answer.status, 200, "{list} as {accept}: {}", answer.text());
        if accept.starts_with("application/json") {
            // A client with the default limit of `serde_json` can read it.
            serde_json::from_slice::<Value>(&answer.body).unwrap();
        }
    }
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(client.call("PATCH", &one, labels).await.0, 200, "{one}");
    let object = client.get(&one).await;
    assert_eq!(client.call("PUT", &one, object).await.0, 200, "{one}");
    assert_eq!(client.call("DELETE", &one, Value::Null).await.0, 200, "{one}");
    // Definitions wait for the deletion of their objects.
    common::eventually("it is gone", || async { client.call("GET", &one, Value::Null).await.0 == 404 }).await;
}

fn says_limit(status: u16, body: &Value) {
    assert!(matches!(status, 400 | 422), "{status} {body}");
    let message = body["message"].as_str().unwrap();
    assert!(message.contains("120"), "{message}");
}

#[tokio::test]
async fn the_deepest_object_can_be_used_and_one_level_more_is_rejected() {
    let client = with_widgets().await;
    client.post(WIDGETS, widget("deep", MOST)).await;
    works(&client, WIDGETS, "deep").await;
    let revision = |depth: usize| {
        json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "deep"},
            "revision": 1, "data": nested(depth - 1)})
    };
    client.post(REVISIONS, revision(MOST)).await;
    works(&client, REVISIONS, "deep").await;
    let (status, body) = client.call("POST", WIDGETS, widget("deeper", MOST + 1)).await;
    says_limit(status, &body);
    let (status, body) = client.call("POST", REVISIONS, revision(MOST + 1)).await;
    says_limit(status, &body);
    let (status, body) = client.call("POST", WIDGETS, widget("deepest", 127)).await;
    says_limit(status, &body);
}

#[tokio::test]
async fn no_patch_and_no_replacement_makes_an_object_too_deep() {
    let client = with_widgets().await;
    let deep = format!("{WIDGETS}/deep");
    let created = client.post(WIDGETS, widget("deep", MOST - 10)).await;
    let mut replaced = widget("deep", MOST + 1);
    replaced["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    let (status, body) = client.call("PUT", &deep, replaced).await;
    says_limit(status, &body);
    let (status, body) = client.call("PATCH", &deep, json!({"spec": {"free": nested(MOST - 1)}})).await;
    says_limit(status, &body);
    let (status, body) = client.call("PATCH", &deep, json!({"spec": nested(200)})).await;
    says_limit(status, &body);
    // A copy into itself, and a deeply nested value.
    let copy = json!([{"op": "copy", "from": "/spec", "path": "/spec/free/a/a/a/a/a/a/a/a/a/a/a/a/a"}]);
    let (status, body) = client.call("PATCH", &deep, copy).await;
    assert_eq!(status, 422, "{body}");
    let path = "/a".repeat(MOST - 13);
    let add = json!([{"op": "add", "path": format!("/spec/free{path}"), "value": nested(20)}]);
    assert_eq!(client.call("PATCH", &deep, add).await.0, 422);
    let strategic = json!({"data": nested(MOST)});
    let revision = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "r"},
        "revision": 1, "data": {}});
    client.post(REVISIONS, revision).await;
    let sent = client
        .send(
            "PATCH",
            &format!("{REVISIONS}/r"),
            &[("content-type", "application/strategic-merge-patch+json")],
            strategic.to_string(),
        )
        .await;
    says_limit(sent.status, &sent.json());
    works(&client, WIDGETS, "deep").await;
}

#[tokio::test]
async fn yaml_and_protobuf_have_the_same_limit() {
    let client = with_widgets().await;
    let yaml = |depth: usize| {
        let mut text =
            String::from("apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: deep}\nspec:\n  free: ");
        for _ in 0..depth - 2 {
            text.push_str("{a: ");
        }
        text.push('x');
        text.push_str(&"}".repeat(depth - 2));
        text
    };
    let send = async |body: String| {
        client.send("POST", WIDGETS, &[("content-type", "application/yaml")], body).await
    };
    let answer = send(yaml(MOST)).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    works(&client, WIDGETS, "deep").await;
    let refused = send(yaml(MOST + 1)).await;
    says_limit(refused.status, &refused.json());
    // JSON inside of a message: a ControllerRevision in protobuf, `data.raw` is field 2.
    let message = |number: u8, content: &[u8]| {
        let mut out = vec![(number << 3) | 2];
        let mut length = content.len();
        while length >= 0x80 {
            out.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        out.extend_from_slice(content);
        out
    };
    let revision = |depth: usize| {
        let raw = message(1, nested(depth - 1).to_string().as_bytes());
        let object = [message(1, &message(1, b"proto")), message(2, &raw), vec![3 << 3, 1]].concat();
        let kind = [message(1, b"apps/v1"), message(2, b"ControllerRevision")].concat();
        [b"k8s\0".to_vec(), message(1, &kind), message(2, &object)].concat()
    };
    let send = async |depth: usize| {
        let headers = [("content-type", "application/vnd.kubernetes.protobuf")];
        client.send("POST", REVISIONS, &headers, revision(depth)).await
    };
    let answer = send(MOST).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    works(&client, REVISIONS, "proto").await;
    let refused = send(MOST + 3).await;
    says_limit(refused.status, &refused.json());
}

/// A schema of `levels` levels: `properties` take two each.
fn schema(levels: usize, inner: &str) -> String {
    let mut text = String::new();
    for _ in 0..levels {
        text.push_str(r#"{"type":"object","properties":{"a":"#);
    }
    text.push_str(inner);
    text.push_str(&"}}".repeat(levels));
    text
}

#[tokio::test]
async fn the_deepest_definition_is_served_and_a_deeper_one_changes_nothing() {
    let client = common::client(&common::server().await);
    // `spec.versions[0].schema.openAPIV3Schema.properties` and the object itself are seven levels.
    let most = (MOST - 7 - 1) / 2;
    let deep: Value =
        serde_json::from_str(&definition("deeps", "Deep", &schema(most, r#"{"type":"string"}"#))).unwrap();
    client.post(DEFINITIONS, deep).await;
    let mut spec = String::new();
    for _ in 0..most {
        spec.push_str(r#"{"a":"#);
    }
    let _ = write!(spec, "\"x\"{}", "}".repeat(most));
    let object = |spec: &str| {
        json!({"apiVersion": "example.com/v1", "kind": "Deep", "metadata": {"name": "d"},
            "spec": serde_json::from_str::<Value>(spec).unwrap()})
    };
    let path = "/apis/example.com/v1/namespaces/default/deeps";
    // Validation, pruning and defaulting reach the deepest level.
    let (status, body) = client.call("POST", path, object(&spec.replace("\"x\"", "1"))).await;
    assert_eq!(status, 422, "{body}");
    client.post(path, object(&spec)).await;
    works(&client, path, "d").await;
    for path in ["/openapi/v3", "/openapi/v3/apis/example.com/v1", "/openapi/v2", "/apis"] {
        assert_eq!(client.send("GET", path, &[], "").await.status, 200, "{path}");
    }
    works(&client, DEFINITIONS, "deeps.example.com").await;
    for levels in [most + 1, 61, 200] {
        let text = definition("bricks", "Brick", &schema(levels, r#"{"type":"string"}"#));
        let answer = client.send("POST", DEFINITIONS, &[("content-type", "application/json")], text).await;
        says_limit(answer.status, &answer.json());
    }
    let bricks = format!("{DEFINITIONS}/bricks.example.com");
    assert_eq!(client.call("GET", &bricks, Value::Null).await.0, 404);
    assert_eq!(client.send("GET", "/apis", &[], "").await.status, 200);
}

#[tokio::test]
async fn defaults_and_alternatives_at_the_limit_are_applied() {
    let client = common::client(&common::server().await);
    // A default that is as deep as its schema has room for.
    let default = format!(
        r#"{{"type":"object","x-kubernetes-preserve-unknown-fields":true,"default":{}}}"#,
        nested(MOST - 7 - 2 - 20)
    );
    let text = definition("defaults", "Default", &schema(10, &default));
    let answer = client.send("POST", DEFINITIONS, &[("content-type", "application/json")], text).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let inner = (0..10).fold(json!({}), |inner, level| if level == 0 { inner } else { json!({"a": inner}) });
    let object = json!({"apiVersion": "example.com/v1", "kind": "Default", "metadata": {"name": "d"},
        "spec": inner});
    let path = "/apis/example.com/v1/namespaces/default/defaults";
    client.post(path, object).await;
    works(&client, path, "d").await;
    // Alternatives within alternatives.
    let levels = (MOST - 9) / 2;
    let mut alternatives = String::from(r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true"#);
    for _ in 0..levels {
        alternatives.push_str(r#","anyOf":[{"minProperties":0"#);
    }
    alternatives.push_str(&"}]".repeat(levels));
    alternatives.push('}');
    let text = definition("alts", "Alt", &alternatives);
    let answer = client.send("POST", DEFINITIONS, &[("content-type", "application/json")], text).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let path = "/apis/example.com/v1/namespaces/default/alts";
    let object =
        json!({"apiVersion": "example.com/v1", "kind": "Alt", "metadata": {"name": "a"}, "spec": {}});
    client.post(path, object).await;
    works(&client, path, "a").await;
}
