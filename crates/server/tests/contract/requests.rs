//! Methods, formats of responses, and the order of checks, where recorded conversations do not cover them.

use std::{sync::Arc, time::Duration};

use k1s_env::Env;
use k1s_server::ServerOptions;
use k1s_store::{MemoryStore, Store};
use serde_json::{Value, json};

use crate::common::{self, Client, config_map, names};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

async fn client() -> Client {
    common::client(&common::server().await)
}

fn warnings(answer: &common::Answer) -> Vec<String> {
    answer.headers.get_all("warning").iter().map(|value| value.to_str().unwrap().to_owned()).collect()
}

/// POSTs JSON.
async fn post(client: &Client, path: &str, body: &Value) -> common::Answer {
    client.send("POST", path, &[("content-type", "application/json")], body.to_string()).await
}

#[tokio::test]
async fn discovery_allows_the_methods_that_kube_apiserver_allows() {
    let client = client().await;
    client.post(CRDS, common::definition("methods.k1s.dev")).await;
    let method = async |method: &str, path: &str| client.send(method, path, &[], "").await.status;
    for other in ["DELETE", "POST", "PUT", "PATCH", "HEAD"] {
        for path in ["/api", "/api/v1", "/apis/apps/v1", "/apis/apiregistration.k8s.io", "/version"] {
            assert_eq!(method(other, path).await, 405, "{other} {path}");
        }
        for path in ["/apis", "/apis/apps", "/apis/methods.k1s.dev", "/apis/methods.k1s.dev/v1"] {
            assert_eq!(method(other, path).await, 200, "{other} {path}");
        }
        for path in ["/api/v2", "/apis/none.k1s.dev", "/apis/none.k1s.dev/v1", "/apis/apps/v2"] {
            assert_eq!(method(other, path).await, 404, "{other} {path}");
        }
    }
    let refused = client.send("DELETE", "/api/v1", &[], "").await;
    assert_eq!(refused.json()["message"], "the server does not allow this method on the requested resource");
}

#[tokio::test]
async fn json_ends_with_a_newline_and_is_indented_for_people() {
    let client = client().await;
    client.post(MAPS, config_map("a")).await;
    client.post(CRDS, common::definition("pretty.k1s.dev")).await;
    let get = async |path: &str, headers: &[(&str, &str)]| client.send("GET", path, headers, "").await;
    let missing = &*format!("{MAPS}/none");
    let map = &*format!("{MAPS}/a");
    for path in [map, MAPS, missing, "/api", "/apis/apps/v1", "/apis/pretty.k1s.dev/v1/things"] {
        let compact = get(path, &[("user-agent", "kubectl/v1.37.0")]).await.text();
        assert!(compact.ends_with("}\n") && compact.matches('\n').count() == 1, "{path}: {compact}");
        let expected: Value = serde_json::from_str(&compact).unwrap();
        let expected = serde_json::to_string_pretty(&expected).unwrap();
        let with = if path.contains('?') { '&' } else { '?' };
        assert_eq!(get(&format!("{path}{with}pretty=true"), &[]).await.text(), expected, "{path}");
        assert_eq!(get(path, &[("user-agent", "curl/8.5.0")]).await.text(), expected, "{path}");
        assert_eq!(get(path, &[("user-agent", "Mozilla/5.0 (X11)")]).await.text(), expected, "{path}");
        assert_eq!(get(path, &[("accept", "application/json;pretty=1")]).await.text(), expected, "{path}");
        let not = get(&format!("{path}{with}pretty=false"), &[("user-agent", "curl/8.5.0")]).await;
        assert_eq!(not.text(), compact, "{path}");
    }
    let table = get(map, &[("accept", TABLE)]).await.text();
    assert!(table.ends_with("]}\n") || table.ends_with("}\n"), "{table}");
    // A client that accepts no available format gets an indented error.
    let refused = get(map, &[("accept", "text/html")]).await.text();
    assert!(refused.starts_with("{\n  \"kind\": \"Status\"") && refused.ends_with("\n}"), "{refused}");
    let version = get("/version", &[]).await.text();
    assert!(version.starts_with("{\n  \"major\"") && version.ends_with("\n}"), "{version}");
    // Other encodings and streams are not indented.
    let yaml = get(&format!("{map}?pretty=true"), &[("accept", "application/yaml")]).await;
    assert!(yaml.text().starts_with("apiVersion") || yaml.text().starts_with("kind"), "{}", yaml.text());
    let mut watch = client.watch(&format!("{MAPS}?pretty=true&resourceVersion=0")).await;
    assert_eq!(watch.event().await["type"], "ADDED");
}

#[tokio::test]
async fn a_long_list_is_indented_as_it_is_sent() {
    let client = client().await;
    let text = "x".repeat(20_000);
    for number in 0..10 {
        let mut map = config_map(&format!("m{number}"));
        map["data"] = json!({ "a": text, "b": "[{\"quoted\": \\ }]" });
        client.post(MAPS, map).await;
    }
    let compact = client.send("GET", MAPS, &[], "").await.json();
    let indented = client.send("GET", &format!("{MAPS}?pretty=1"), &[], "").await.text();
    assert_eq!(indented, serde_json::to_string_pretty(&compact).unwrap());
}

#[tokio::test]
async fn a_resource_version_on_create_is_checked_last() {
    let client = client().await;
    let map = |name: &str| {
        let mut map = config_map(name);
        map["metadata"]["resourceVersion"] = "5".into();
        map
    };
    let dry = &*format!("{MAPS}?dryRun=All");
    let echoed = client.post(dry, map("a")).await;
    assert_eq!(echoed["metadata"]["resourceVersion"], "5");
    let (code, refused) = client.call("POST", MAPS, map("a")).await;
    assert_eq!(
        (code, &refused["message"]),
        (500, &json!("resourceVersion should not be set on objects to be created"))
    );
    client.post(MAPS, config_map("a")).await;
    for path in [MAPS, dry] {
        assert_eq!(client.call("POST", path, map("A_")).await.0, 422, "{path}");
        assert_eq!(client.call("POST", path, map("a")).await.0, 409, "{path}");
        let elsewhere = path.replace("default", "nowhere");
        assert_eq!(client.call("POST", &elsewhere, map("a")).await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn a_put_that_would_create_must_not_have_a_uid() {
    let client = client().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = |name: &str, field: &str, value: &str| json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, field: value}});
    let put = async |name: &str, body: Value| client.call("PUT", &format!("{leases}/{name}"), body).await;
    let (code, refused) = put("a", lease("a", "uid", "1234")).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("Conflict")));
    let message = refused["message"].as_str().unwrap();
    assert!(message.ends_with("UID in precondition: 1234, UID in object meta: "), "{message}");
    assert_eq!(client.send("GET", &format!("{leases}/a"), &[], "").await.status, 404);
    // A numeric resourceVersion is ignored.
    assert_eq!(put("b", lease("b", "resourceVersion", "5")).await.0, 201);
    assert_eq!(put("c", lease("c", "resourceVersion", "x")).await.0, 500);
}

#[tokio::test]
async fn the_rest_of_an_expired_list_is_counted() {
    let env = Env::system();
    let store = Arc::new(MemoryStore::default());
    let client = common::client(&common::bare(&env, store.clone(), ServerOptions::default()).await);
    for number in 0..10 {
        client.post(MAPS, config_map(&format!("m{number}"))).await;
    }
    let field = "fieldSelector=metadata.name!%3Dkube-root-ca.crt";
    for query in ["limit=3".to_owned(), format!("limit=3&{field}")] {
        let first = client.get(&format!("{MAPS}?{query}")).await;
        let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
        // Another server without that page's snapshot, over a store that has compacted it.
        for number in 0..3 {
            client
                .call(
                    "PUT",
                    &format!("{MAPS}/m{number}"),
                    json!({"metadata": {"name": format!("m{number}")},
                "data": {"changed": query}}),
                )
                .await;
        }
        store.compact(store.revision().await.unwrap()).await.unwrap();
        let other = common::client(&common::bare(&env, store.clone(), ServerOptions::default()).await);
        let (code, gone) = other.call("GET", &format!("{MAPS}?{query}&continue={token}"), Value::Null).await;
        assert_eq!(code, 410, "{gone}");
        let mut token = gone["metadata"]["continue"].as_str().unwrap().to_owned();
        let (mut found, total) = (names(&first), client.get(MAPS).await["items"].as_array().unwrap().len());
        let mut revision = Value::Null;
        while !token.is_empty() {
            let list = other.get(&format!("{MAPS}?{query}&continue={token}")).await;
            found.extend(names(&list));
            let left = list["metadata"]["remainingItemCount"].as_u64();
            token = list["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
            let expected =
                (!token.is_empty() && !query.contains("field")).then_some((total - found.len()) as u64);
            assert_eq!(left, expected, "{query}: {found:?}");
            if !revision.is_null() {
                assert_eq!(list["metadata"]["resourceVersion"], revision);
            }
            revision = list["metadata"]["resourceVersion"].clone();
        }
        let all = names(&client.get(&format!("{MAPS}?{}", query.replace("limit=3", ""))).await);
        assert_eq!(found, all);
    }
}

#[tokio::test]
async fn a_list_expires_if_its_next_page_is_not_requested() {
    let (client, clock) = common::simulated(ServerOptions::default()).await;
    for number in 0..9 {
        client.post(MAPS, config_map(&format!("m{number}"))).await;
    }
    let path = format!("{MAPS}?limit=3");
    let first = client.get(&path).await;
    let next = |list: &Value| format!("{path}&continue={}", list["metadata"]["continue"].as_str().unwrap());
    clock.advance_and_settle(Duration::from_secs(299)).await;
    let second = client.get(&next(&first)).await;
    clock.advance_and_settle(Duration::from_secs(299)).await;
    assert_eq!(
        client.get(&next(&second)).await["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
    let (code, gone) = client.call("GET", &next(&first), Value::Null).await;
    assert_eq!((code, &gone["reason"]), (410, &json!("Expired")));
    client.post(MAPS, config_map("m10")).await;
    let rest = client.get(&next(&gone)).await;
    let total = client.get(MAPS).await["items"].as_array().unwrap().len() as u64;
    assert_eq!(rest["metadata"]["remainingItemCount"].as_u64(), Some(total - 6));
    assert_ne!(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn components_have_a_status() {
    let client = client().await;
    let path = "/api/v1/componentstatuses";
    let list = client.get(path).await;
    assert_eq!(names(&list), ["controller-manager", "scheduler", "etcd-0"]);
    for (name, status) in [("controller-manager", "True"), ("scheduler", "False"), ("etcd-0", "True")] {
        let one = client.get(&format!("{path}/{name}")).await;
        assert_eq!(one["conditions"][0]["status"], status, "{one}");
        let selected = client.get(&format!("{path}?fieldSelector=metadata.name%3D{name}")).await;
        assert_eq!(names(&selected), [name]);
    }
    assert_eq!(names(&client.get(&format!("{path}?labelSelector=a%3Db")).await), [""; 0]);
    let alone =
        common::bare(&Env::system(), Arc::new(MemoryStore::default()), ServerOptions::default()).await;
    let one = common::client(&alone).get(&format!("{path}/controller-manager")).await;
    assert_eq!(one["conditions"][0]["status"], "False");
}

#[tokio::test]
async fn reviews_have_no_table() {
    let client = client().await;
    let review = |group: &str, kind: &str, spec: Value| json!({"apiVersion": format!("{group}.k8s.io/v1"), "kind": kind, "spec": spec});
    let attributes = json!({"resourceAttributes": {"verb": "get", "resource": "pods"}});
    let mut of_user = attributes.clone();
    of_user["user"] = "alice".into();
    let (authn, authz) = ("authentication", "authorization");
    for (path, body) in [
        (
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            review(authz, "SelfSubjectAccessReview", attributes),
        ),
        ("/apis/authorization.k8s.io/v1/subjectaccessreviews", review(authz, "SubjectAccessReview", of_user)),
        (
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
            review(authz, "SelfSubjectRulesReview", json!({"namespace": "default"})),
        ),
        ("/apis/authentication.k8s.io/v1/tokenreviews", review(authn, "TokenReview", json!({"token": "x"}))),
        ("/apis/authentication.k8s.io/v1/selfsubjectreviews", review(authn, "SelfSubjectReview", json!({}))),
        (
            "/api/v1/namespaces/default/serviceaccounts/default/token",
            review(authn, "TokenRequest", json!({})),
        ),
    ] {
        let send = async |accept: &str| {
            let headers = [("content-type", "application/json"), ("accept", accept)];
            client.send("POST", path, &headers, body.to_string()).await
        };
        let refused = send(TABLE).await;
        assert_eq!(refused.status, 406, "{path}: {}", refused.text());
        assert_eq!(
            refused.json()["message"],
            "only the following media types are accepted: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf"
        );
        let plain = send(&format!("{TABLE},application/json")).await;
        assert_eq!((plain.status, &plain.json()["kind"]), (201, &body["kind"]), "{path}");
    }
}

#[tokio::test]
async fn a_scale_has_its_own_table() {
    let client = client().await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let labels = json!({"app": "a"});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}});
    client.post(deployments, deployment).await;
    let table = client.send("GET", &format!("{deployments}/a/scale"), &[("accept", TABLE)], "").await.json();
    assert_eq!((&table["kind"], &table["rows"][0]["cells"][1]), (&json!("Table"), &json!(3)), "{table}");
}

#[tokio::test]
async fn a_timeout_has_to_be_a_duration() {
    let client = client().await;
    let get = async |path: String| {
        let response = client.open("GET", &path, &[], "").await;
        (response.status().as_u16(), response)
    };
    for (text, why) in [
        ("abc", "time: invalid duration \"abc\""),
        ("1", "time: missing unit in duration \"1\""),
        ("1x", "time: unknown unit \"x\" in duration \"1x\""),
    ] {
        for path in [MAPS, "/healthz", "/api", &format!("{MAPS}/none")] {
            let answer = client.send("GET", &format!("{path}?timeout={text}"), &[], "").await;
            assert_eq!(answer.status, 400, "{path}");
            let message = format!("invalid timeout specified in the request URL - {why}");
            assert_eq!(answer.json()["message"], message.as_str());
        }
        assert_eq!(get(format!("{MAPS}?watch=true&timeout={text}")).await.0, 200);
    }
    for text in ["", "0", "30s", "1m0.5s"] {
        assert_eq!(get(format!("{MAPS}?timeout={text}")).await.0, 200, "{text}");
    }
}

#[tokio::test]
async fn unsupported_kinds_of_apply_are_refused_with_the_supported_ones() {
    let client = client().await;
    client.post(MAPS, config_map("a")).await;
    client.post(CRDS, common::definition("apply.k1s.dev")).await;
    let thing = json!({"apiVersion": "apply.k1s.dev/v1", "kind": "Thing", "metadata": {"name": "a"}});
    let things = "/apis/apply.k1s.dev/v1/namespaces/default/things";
    client.post(things, thing).await;
    let cbor = "application/apply-patch+cbor";
    for path in [MAPS, things] {
        let refused =
            client.send("PATCH", &format!("{path}/a?fieldManager=m"), &[("content-type", cbor)], "{}").await;
        assert_eq!(refused.status, 415, "{}", refused.text());
    }
    let refused =
        client.send("PATCH", &format!("{things}/a?fieldManager=m"), &[("content-type", cbor)], "{}").await;
    assert!(refused.text().contains("application/apply-patch+yaml"), "{}", refused.text());
}

fn versions([first, second]: [&Value; 2], conversion: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.two.k1s.dev"},
        "spec": {
            "group": "two.k1s.dev", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "conversion": conversion,
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": first}},
                {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": second}},
            ],
        },
    })
}

fn webhook() -> Value {
    json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/convert"}}})
}

#[tokio::test]
async fn objects_that_have_an_effect_get_no_warning() {
    let client = client().await;
    let ruled = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": {
        "type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]}}}}});
    let path = "/apis/apiregistration.k8s.io/v1/apiservices";
    let body = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.far.k1s.dev"},
        "spec": {"group": "far.k1s.dev", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
            "insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": "far"}}});
    let stored = post(&client, path, &body).await;
    assert_eq!((stored.status, warnings(&stored)), (201, vec![]), "{}", stored.text());
    let quiet = post(&client, CRDS, &versions([&ruled, &ruled], &webhook())).await;
    assert_eq!((quiet.status, warnings(&quiet)), (201, vec![]));
}

#[tokio::test]
async fn objects_whose_conversion_webhook_is_down_are_not_served_in_another_version() {
    let client = client().await;
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    client.post(CRDS, versions([&any, &any], &webhook())).await;
    let path = |version: &str| format!("/apis/two.k1s.dev/{version}/namespaces/default/things");
    let thing = |version: &str, name: &str| {
        json!({"apiVersion": format!("two.k1s.dev/{version}"), "kind": "Thing", "metadata": {"name": name,
            "finalizers": ["k1s.dev/wait"]}, "spec": {"x": 1}})
    };
    let (one, two) = (path("v1"), path("v2"));
    let text = "conversion webhook for two.k1s.dev/v1, Kind=Thing failed: Post \"https://127.0.0.1:1/convert?timeout=30s\": \
                dial tcp 127.0.0.1:1: connect: connection refused";
    let (code, refused) = client.call("POST", &two, thing("v2", "a")).await;
    assert_eq!(code, 500, "{refused}");
    client.post(&one, thing("v1", "a")).await;
    client.post(&one, thing("v1", "b")).await;
    assert_eq!(names(&client.get(&one).await), ["a", "b"]);
    for place in [format!("{two}/a"), two.clone()] {
        let (code, refused) = client.call("GET", &place, Value::Null).await;
        assert_eq!((code, refused["message"].as_str().unwrap()), (500, text), "{place}");
    }
    // They can be deleted through any version.
    let (code, answer) = client.call("DELETE", &format!("{two}/a"), Value::Null).await;
    assert_eq!((code, &answer["status"]), (200, &json!("Success")), "{answer}");
    assert_eq!(client.call("DELETE", &two, Value::Null).await.0, 200);
    for name in ["a", "b"] {
        let marked = client.get(&format!("{one}/{name}")).await;
        assert!(marked["metadata"]["deletionTimestamp"].is_string(), "{marked}");
        assert_eq!(marked["spec"], json!({"x": 1}));
        let free = json!({"metadata": {"finalizers": null}});
        assert_eq!(client.call("PATCH", &format!("{one}/{name}"), free).await.0, 200);
    }
    assert_eq!(names(&client.get(&one).await), [""; 0]);
}
