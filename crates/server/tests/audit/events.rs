//! The fields of events, at every level and for every verb.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use k1s_store::MemoryStore;
use serde_json::{Value, json};

use crate::{ALICE, CONFIGMAPS, Stage, USUAL, configmap, policy};

const JSON: (&str, &str) = ("content-type", "application/json");
const MERGE: (&str, &str) = ("content-type", "application/merge-patch+json");

/// A request, its code, and what its last event has as request and response object: the value of a field in it, by its
/// pointer.
type Case =
    (&'static str, &'static str, Value, u16, Option<(&'static str, Value)>, Option<(&'static str, Value)>);

/// Upstream's cases (`apiserver/pkg/endpoints/audit_test.go`) with ConfigMaps; `c` exists, with `a` and `b`.
fn cases() -> Vec<(&'static str, Case)> {
    let c = || Some(("/metadata/name", json!("c")));
    let updated =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "bla"}});
    let bla = || Some(("/data/k", json!("bla")));
    let one = "/api/v1/namespaces/default/configmaps/c";
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
    vec![
        ("get", ("GET", one, Value::Null, 200, None, c())),
        ("list", ("GET", CONFIGMAPS, Value::Null, 200, None, Some(("/items/1/metadata/name", json!("b"))))),
        (
            "create",
            (
                "POST",
                CONFIGMAPS,
                configmap("d"),
                201,
                Some(("/data/k", json!("v"))),
                Some(("/data/k", json!("v"))),
            ),
        ),
        ("not-allowed-named-create", ("POST", one, configmap("c"), 405, None, Some(("/code", json!(405))))),
        ("update", ("PUT", one, updated, 200, bla(), bla())),
        (
            "update-wrong-namespace",
            (
                "PUT",
                "/api/v1/namespaces/other/configmaps/c",
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}, "data": {"k": "bla"}}),
                400,
                bla(),
                Some(("/status", json!("Failure"))),
            ),
        ),
        (
            "patch",
            (
                "PATCH",
                one,
                json!({"data": {"k": "x"}}),
                200,
                Some(("", json!({"data": {"k": "x"}}))),
                Some(("/data/k", json!("x"))),
            ),
        ),
        (
            "delete",
            (
                "DELETE",
                "/api/v1/namespaces/default/configmaps/a",
                Value::Null,
                200,
                None,
                Some(("/status", json!("Success"))),
            ),
        ),
        (
            "delete-with-options-in-body",
            (
                "DELETE",
                "/api/v1/namespaces/default/configmaps/b",
                options.clone(),
                200,
                Some(("/propagationPolicy", json!("Background"))),
                Some(("/kind", json!("Status"))),
            ),
        ),
        (
            "deletecollection",
            (
                "DELETE",
                CONFIGMAPS,
                options,
                200,
                Some(("/kind", json!("DeleteOptions"))),
                Some(("/kind", json!("ConfigMapList"))),
            ),
        ),
        ("not-found", ("GET", one, Value::Null, 404, None, Some(("/reason", json!("NotFound"))))),
    ]
}

#[tokio::test]
async fn levels_decide_which_objects_are_recorded_for_every_verb() {
    for (level, requests, responses) in
        [("Metadata", false, false), ("Request", true, false), ("RequestResponse", true, true)]
    {
        let stage = Stage::new(policy(&[&format!("level: {level}")])).await;
        for name in ["a", "b", "c"] {
            stage.client.post(CONFIGMAPS, configmap(name)).await;
        }
        stage.events();
        for (what, (method, path, body, code, request, response)) in cases() {
            let content_type = if method == "PATCH" { MERGE } else { JSON };
            let body = if body.is_null() { String::new() } else { body.to_string() };
            let answer =
                stage.client.send(method, path, &[content_type, ("user-agent", "audit-test")], body).await;
            let (stages, event) = stage.one();
            assert_eq!(answer.status, code, "{what}: {}", answer.text());
            assert_eq!(stages, USUAL, "{what}");
            assert_eq!(event["level"], *level, "{what}");
            assert_eq!(event["responseStatus"]["code"], code, "{what}: {event}");
            assert_eq!(
                (&event["userAgent"], &event["requestURI"]),
                (&json!("audit-test"), &json!(path)),
                "{what}"
            );
            for (field, wanted, expected) in
                [("requestObject", requests, request), ("responseObject", responses, response)]
            {
                match expected.filter(|_| wanted) {
                    None => assert_eq!(event.get(field), None, "{level} {what}"),
                    Some((pointer, value)) => {
                        assert_eq!(event[field].pointer(pointer), Some(&value), "{level} {what}: {event}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn an_event_says_who_did_what_when_and_why_it_was_allowed() {
    let stage = Stage::new(policy(&["level: Metadata"])).await;
    stage.grant("", &["configmaps"], &["create"]).await;
    let headers = [
        ALICE,
        JSON,
        ("user-agent", "kubectl/v1.37"),
        ("x-forwarded-for", "10.1.2.3"),
        ("audit-id", "my-id"),
    ];
    let answer = stage.nobody.send("POST", CONFIGMAPS, &headers, configmap("a").to_string()).await;
    assert_eq!((answer.status, answer.header("audit-id")), (201, "my-id"), "{}", answer.text());
    let text = stage.text();
    let mut events = stage.events();
    assert_eq!(events.len(), 2);
    let user = json!({"username": "alice", "uid": "u-1", "groups": ["devs", "system:authenticated"]});
    for (event, stage) in events.iter_mut().zip(USUAL) {
        assert_eq!(event["stage"], stage);
        for time in ["requestReceivedTimestamp", "stageTimestamp"] {
            let at = event[time].take();
            let at = at.as_str().unwrap();
            assert!(at.len() == "2026-01-02T15:04:05.123456Z".len() && at.ends_with('Z'), "{at}");
        }
    }
    assert_eq!(
        events[0],
        json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "my-id",
            "stage": "RequestReceived", "requestURI": CONFIGMAPS, "verb": "create", "user": user,
            "sourceIPs": ["10.1.2.3"], "userAgent": "kubectl/v1.37",
            "objectRef": {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"},
            "requestReceivedTimestamp": null, "stageTimestamp": null,
        })
    );
    assert_eq!(
        events[1],
        json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "my-id",
            "stage": "ResponseComplete", "requestURI": CONFIGMAPS, "verb": "create", "user": user,
            "sourceIPs": ["10.1.2.3"], "userAgent": "kubectl/v1.37",
            "objectRef": {"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"},
            "responseStatus": {"metadata": {}, "code": 201},
            "requestReceivedTimestamp": null, "stageTimestamp": null,
            "annotations": {
                "authorization.k8s.io/decision": "allow",
                "authorization.k8s.io/reason": "RBAC: allowed by RoleBinding \"alice-may/default\" of Role \"may\" to User \"alice\"",
            },
        })
    );
    // The order of the fields is that of kube-apiserver.
    assert!(text.starts_with(r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"my-id","stage":"RequestReceived","requestURI":"#), "{text}");
}

#[tokio::test]
async fn an_update_names_the_uid_and_the_revision_that_it_was_sent_with() {
    let stage = Stage::new(policy(&["level: Metadata"])).await;
    let mut object = stage.client.post(CONFIGMAPS, configmap("a")).await;
    stage.events();
    object["data"]["k"] = json!("w");
    stage.client.call("PUT", &format!("{CONFIGMAPS}/a"), object.clone()).await;
    let (_, event) = stage.one();
    let meta = &object["metadata"];
    assert_eq!(
        event["objectRef"],
        json!({"resource": "configmaps", "namespace": "default", "name": "a", "uid": meta["uid"],
            "apiVersion": "v1", "resourceVersion": meta["resourceVersion"]})
    );
    let scale = "/apis/apps/v1/namespaces/default/deployments/d/scale";
    stage.client.send("GET", scale, &[], "").await;
    let (_, event) = stage.one();
    assert_eq!(
        event["objectRef"],
        json!({"resource": "deployments", "namespace": "default", "name": "d", "apiGroup": "apps",
            "apiVersion": "v1", "subresource": "scale"})
    );
    stage.client.send("GET", "/version", &[], "").await;
    let (_, event) = stage.one();
    assert_eq!((event.get("objectRef"), &event["verb"]), (None, &json!("get")));
}

#[tokio::test]
async fn every_request_has_an_id_of_its_own() {
    let stage = Stage::new(policy(&["{level: Metadata, nonResourceURLs: [/version]}"])).await;
    let first = stage.client.send("GET", "/version", &[], "").await;
    let (_, event) = stage.one();
    assert_eq!(event["auditID"], first.header("audit-id"));
    // Also requests that are not recorded.
    let second = stage.client.send("GET", "/healthz", &[("audit-id", "")], "").await;
    assert_eq!(stage.events(), Vec::<Value>::new());
    assert_eq!(second.header("audit-id").len(), 36);
    assert_ne!(first.header("audit-id"), second.header("audit-id"));
}

#[tokio::test]
async fn a_watch_has_an_event_when_it_starts_and_one_when_it_ends() {
    let stage = Stage::new(policy(&["level: RequestResponse"])).await;
    stage.client.post(CONFIGMAPS, configmap("a")).await;
    stage.events();
    let mut watch = stage.client.watch(CONFIGMAPS).await;
    assert_eq!(watch.event().await["type"], "ADDED");
    let (stages, started) = stage.one();
    assert_eq!(stages, ["RequestReceived", "ResponseStarted"]);
    assert_eq!(started["responseStatus"], json!({"metadata": {}, "code": 200}));
    drop(watch);
    stage.client.server.close_audit().await;
    let (stages, ended) = stage.one();
    assert_eq!(stages, ["ResponseComplete"]);
    assert_eq!((&ended["verb"], ended.get("responseObject")), (&json!("watch"), None));
    assert_eq!(ended["auditID"], started["auditID"]);
}

#[tokio::test]
async fn a_watch_that_is_refused_is_one_that_started() {
    let stage = Stage::new(policy(&["level: Metadata"])).await;
    stage.nobody.send("GET", &format!("{CONFIGMAPS}?watch=1"), &[ALICE], "").await;
    let (stages, event) = stage.one();
    assert_eq!(stages, ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
    assert_eq!(event["responseStatus"]["code"], 403);
}

#[tokio::test]
async fn stages_can_be_omitted() {
    let rules = [
        "{level: Metadata, verbs: [get], omitStages: [RequestReceived]}",
        "{level: Metadata, verbs: [watch], omitStages: [RequestReceived, ResponseStarted]}",
        "{level: Metadata, verbs: [list], omitStages: [RequestReceived, ResponseComplete]}",
    ];
    let stage = Stage::new(policy(&rules)).await;
    stage.client.get("/version").await;
    assert_eq!(stage.one().0, ["ResponseComplete"]);
    stage.client.get(CONFIGMAPS).await;
    drop(stage.client.watch(CONFIGMAPS).await);
    stage.client.server.close_audit().await;
    let (stages, event) = stage.one();
    assert_eq!((stages, &event["verb"]), (vec!["ResponseComplete".into()], &json!("watch")));
}

#[tokio::test]
async fn other_encodings_are_recorded_as_json() {
    let rules = ["{level: RequestResponse, omitStages: [RequestReceived], omitManagedFields: true}"];
    let stage = Stage::new(policy(&rules)).await;
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n";
    let both = [("content-type", "application/yaml"), ("accept", "application/yaml")];
    assert_eq!(stage.client.send("POST", CONFIGMAPS, &both, yaml).await.status, 201);
    let (_, event) = stage.one();
    assert_eq!(event["requestObject"]["metadata"]["name"], "a");
    assert_eq!(event["responseObject"]["data"], json!({"k": "v"}));
    let protobuf = ("accept", "application/vnd.kubernetes.protobuf");
    for (path, pointer) in
        [(format!("{CONFIGMAPS}/a"), "/data/k"), (CONFIGMAPS.to_owned(), "/items/0/data/k")]
    {
        let answer = stage.client.send("GET", &path, &[protobuf], "").await;
        assert!(answer.body.starts_with(b"k8s\0"));
        let (_, event) = stage.one();
        assert_eq!(event["responseObject"].pointer(pointer), Some(&json!("v")), "{event}");
        assert!(event["responseObject"]["kind"].is_string(), "{event}");
        assert!(!event.to_string().contains("managedFields"), "{event}");
    }
    let answer = stage.client.send("GET", &format!("{CONFIGMAPS}/b"), &[protobuf], "").await;
    let (_, event) = stage.one();
    assert_eq!((answer.status, &event["responseStatus"]["reason"]), (404, &json!("NotFound")));
    assert_eq!(event["responseStatus"]["details"], json!({"name": "b", "kind": "configmaps"}));
    let table = ("accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
    stage.client.send("GET", CONFIGMAPS, &[table], "").await;
    let (_, event) = stage.one();
    assert_eq!(event["responseObject"]["rows"][0]["cells"][0], "a");
    let pretty = stage.client.send("GET", &format!("{CONFIGMAPS}/a?pretty=1"), &[], "").await;
    assert!(pretty.text().contains("\n  \"kind\": \"ConfigMap\""));
    assert_eq!(stage.one().1["responseObject"]["kind"], "ConfigMap");
    let head = stage.client.send("HEAD", "/api/v1", &[], "").await;
    assert_eq!((head.body.len(), stage.one().0), (0, vec!["ResponseComplete".into()]));
    stage.client.get("/apis/apps/v1").await;
    assert_eq!(stage.one().1["responseObject"]["kind"], "APIResourceList");
    stage.client.get("/version").await;
    assert_eq!(stage.one().1.get("responseObject"), None);
}

#[tokio::test]
async fn managed_fields_are_recorded_unless_they_are_omitted() {
    let rules = [
        "{level: RequestResponse, verbs: [get], omitStages: [RequestReceived]}",
        "{level: RequestResponse, omitStages: [RequestReceived], omitManagedFields: true}",
    ];
    let stage = Stage::new(policy(&rules)).await;
    let created = stage.client.post(CONFIGMAPS, configmap("a")).await;
    assert!(created["metadata"]["managedFields"].is_array());
    let (_, event) = stage.one();
    assert_eq!(event["responseObject"]["metadata"].get("managedFields"), None);
    stage.client.call("PUT", &format!("{CONFIGMAPS}/a"), created).await;
    let (_, event) = stage.one();
    assert_eq!(event["requestObject"]["metadata"].get("managedFields"), None);
    assert_eq!(event["requestObject"]["metadata"]["name"], "a");
    stage.client.get(&format!("{CONFIGMAPS}/a")).await;
    assert!(stage.one().1["responseObject"]["metadata"]["managedFields"].is_array());
}

#[tokio::test]
async fn patches_are_recorded_as_they_are_sent() {
    let stage = Stage::new(policy(&["{level: Request, omitStages: [RequestReceived]}"])).await;
    let path = format!("{CONFIGMAPS}/a?fieldManager=me");
    let apply = ("content-type", "application/apply-patch+yaml");
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: v\n";
    assert_eq!(stage.client.send("PATCH", &path, &[apply], yaml).await.status, 201);
    let applied =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    assert_eq!(stage.one().1["requestObject"], applied);
    let patch = json!([{"op": "replace", "path": "/data/k", "value": "w"}]);
    assert_eq!(stage.client.call("PATCH", &path, patch.clone()).await.0, 200);
    let (_, event) = stage.one();
    assert_eq!((&event["requestObject"], &event["verb"]), (&patch, &json!("patch")));
    let strategic = ("content-type", "application/strategic-merge-patch+json");
    // Over several lines, which would break the log.
    let text = "{\n \"data\": {\n  \"k\": \"x\"\n }\n}";
    assert_eq!(stage.client.send("PATCH", &path, &[strategic], text).await.status, 200);
    assert_eq!(stage.one().1["requestObject"], json!({"data": {"k": "x"}}));
    let unknown = ("content-type", "text/plain");
    assert_eq!(stage.client.send("PATCH", &path, &[unknown], "{}").await.status, 415);
    assert_eq!(stage.one().1.get("requestObject"), None);
}

#[tokio::test]
async fn a_large_response_is_left_out() {
    let rules = policy(&["{level: RequestResponse, omitStages: [RequestReceived]}"]);
    let small = |options: &mut k1s_server::ServerOptions| options.audit.max_response_bytes = 2000;
    let stage = Stage::with(rules, Arc::new(MemoryStore::default()), small).await;
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        stage.client.post(CONFIGMAPS, configmap(name)).await;
        assert!(stage.one().1["responseObject"].is_object());
    }
    stage.client.get(CONFIGMAPS).await;
    stage.client.server.close_audit().await;
    let (_, event) = stage.one();
    assert_eq!(event.get("responseObject"), None);
    assert_eq!(event["annotations"]["audit.k8s.io/truncated"], "true");
}

#[tokio::test]
async fn a_streamed_list_is_recorded_when_it_is_sent() {
    let stage = Stage::new(policy(&["{level: RequestResponse, omitStages: [RequestReceived]}"])).await;
    for number in 0..600 {
        let mut object = configmap(&format!("c{number:03}"));
        object["data"]["k"] = "x".repeat(500).into();
        stage.client.post(CONFIGMAPS, object).await;
    }
    stage.events();
    let response = stage.client.open("GET", CONFIGMAPS, &[], Bytes::new()).await;
    let mut body = response.into_body();
    assert!(body.frame().await.is_some());
    drop(body);
    stage.client.get(CONFIGMAPS).await;
    stage.client.server.close_audit().await;
    let events = stage.events();
    assert_eq!(events.len(), 2);
    // The first client has gone away early: what it was not sent is not known.
    assert_eq!(events[0]["responseStatus"]["code"], 200);
    assert_eq!(events[1]["responseObject"]["items"].as_array().unwrap().len(), 601);
}
