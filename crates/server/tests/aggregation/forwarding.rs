//! Requests, discovery and conditions, with an extension in this process.

use std::sync::atomic::Ordering;

use super::{extension::GROUP, *};
use crate::extension::{OpenApi, Way};

const USAGES: &str = "/apis/usage.example.com/v1/namespaces/default/usages";

fn sent(answer: &Answer, name: &str) -> Vec<String> {
    let headers = answer.json()["headers"].as_array().unwrap().clone();
    let of = headers.iter().filter(|header| header[0] == name);
    of.map(|header| header[1].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_request_is_forwarded_with_its_user() {
    let stage = Stage::new().await;
    stage.serve(&Extension::new(Way::Well));
    stage.register(GROUP).await;
    // At once: the first request waits for the first check.
    let path = format!("{USAGES}/a%20b?limit=5&x=%2F");
    let headers = [
        ("authorization", "Basic secret"),
        ("x-remote-user", "root"),
        ("x-remote-extra-scopes", "all"),
        ("connection", "x-private"),
        ("x-private", "1"),
        ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
        ("x-other", "2"),
    ];
    let answer = stage.client.send("GET", &path, &headers, "").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let told = answer.json();
    assert_eq!((&told["method"], &told["path"]), (&json!("GET"), &json!(format!("{USAGES}/a%20b"))));
    assert_eq!(told["query"], "limit=5&x=%2F");
    assert_eq!(sent(&answer, "x-remote-user"), ["admin"]);
    assert_eq!(sent(&answer, "x-remote-group"), ["system:masters", "system:authenticated"]);
    assert_eq!(sent(&answer, "x-forwarded-uri"), [format!("{USAGES}/a%20b")]);
    assert_eq!(sent(&answer, "x-forwarded-host"), ["ext.ns.svc"]);
    assert_eq!(sent(&answer, "accept"), [headers[5].1]);
    assert_eq!(sent(&answer, "x-other"), ["2"]);
    for name in ["authorization", "connection", "x-private", "x-remote-extra-scopes", "x-remote-uid"] {
        assert_eq!(sent(&answer, name), Vec::<String>::new(), "{name}");
    }
    assert_eq!((answer.header("warning"), answer.header("x-hop")), ("299 - \"from the extension\"", ""));
    let user = User {
        name: "alice".into(),
        uid: "u1".into(),
        groups: vec!["system:masters".into()],
        extra: vec![("example.com/scopes".into(), vec!["a".into(), "b".into()])],
    };
    let answer = stage.as_user(user, "GET", USAGES).await;
    assert_eq!(
        (sent(&answer, "x-remote-user"), sent(&answer, "x-remote-uid")),
        (vec!["alice".into()], vec!["u1".into()])
    );
    assert_eq!(sent(&answer, "x-remote-extra-example.com%2fscopes"), ["a", "b"]);
}

#[tokio::test]
async fn authorization_comes_before_forwarding() {
    let stage = Stage::new().await;
    let extension = Extension::new(Way::Well);
    stage.serve(&extension);
    stage.register(GROUP).await;
    stage.reason(GROUP, "Passed").await;
    let before = extension.requests.load(std::sync::atomic::Ordering::SeqCst);
    let answer = stage.as_user(User::new("bob", &[]), "GET", USAGES).await;
    let message = "usages.usage.example.com is forbidden: User \"bob\" cannot list resource \"usages\" in API group \
                   \"usage.example.com\" in the namespace \"default\"";
    assert_eq!((answer.status, answer.json()["message"].as_str()), (403, Some(message)));
    assert_eq!(extension.requests.load(std::sync::atomic::Ordering::SeqCst), before);
    // A role lets bob in; the resource need not be known to this server.
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "usage"},
        "rules": [{"apiGroups": [GROUP], "resources": ["usages"], "verbs": ["list"]}]});
    stage.client.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role).await;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "usage"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "usage"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}]});
    stage.client.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await;
    let answer = stage.as_user(User::new("bob", &[]), "GET", USAGES).await;
    assert_eq!((answer.status, sent(&answer, "x-remote-user")), (200, vec!["bob".to_owned()]));
    assert_eq!(stage.as_user(User::new("bob", &[]), "GET", &format!("{USAGES}/a")).await.status, 403);
}

#[tokio::test]
async fn bodies_and_watches_are_streams() {
    let stage = Stage::new().await;
    let extension = Extension::new(Way::Well);
    stage.serve(&extension);
    stage.register(GROUP).await;
    // Beyond the limit of this server's own bodies.
    let answer = stage.client.send("POST", USAGES, &[], vec![b' '; 5 << 20]).await;
    assert_eq!((answer.status, answer.json()["body"].as_u64()), (201, Some(5 << 20)), "{}", answer.text());
    let mut watch = stage.client.watch(USAGES).await;
    assert_eq!(watch.event().await["type"], "ADDED");
    assert_eq!(watch.event().await["type"], "MODIFIED");
    assert!(extension.watched.load(std::sync::atomic::Ordering::SeqCst));
    drop(watch);
    assert!(!extension.watched.load(std::sync::atomic::Ordering::SeqCst), "the extension is told at once");
    // The server's end is the end of the watch.
    let mut watch = stage.client.watch(USAGES).await;
    watch.event().await;
    watch.event().await;
    stage.server.shutdown();
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_group_appears_in_discovery() {
    for way in [Way::Well, Way::Legacy] {
        let stage = Stage::new().await;
        stage.serve(&Extension::new(way));
        assert_eq!(stage.discovered(GROUP).await, None);
        stage.register(GROUP).await;
        let group = stage.discovered(GROUP).await.expect("the first document waits for the extension");
        let version = &group["versions"][0];
        assert_eq!(
            (&version["version"], &version["freshness"]),
            (&json!("v1"), &json!("Current")),
            "{way:?}"
        );
        let resource = &version["resources"][0];
        assert_eq!((&resource["resource"], &resource["scope"]), (&json!("usages"), &json!("Namespaced")));
        assert_eq!(resource["subresources"][0]["subresource"], "detail");
        let groups = stage.client.get("/apis").await;
        let listed = groups["groups"].as_array().unwrap().iter().any(|group| group["name"] == GROUP);
        assert!(listed, "{groups}");
        let version = json!({"groupVersion": "usage.example.com/v1", "version": "v1"});
        assert_eq!(
            stage.client.get("/apis/usage.example.com").await,
            json!({"kind": "APIGroup", "apiVersion": "v1", "name": GROUP, "versions": [version], "preferredVersion": version})
        );
        let list = stage.client.get("/apis/usage.example.com/v1").await;
        assert_eq!(list["resources"][1]["name"], "usages/detail");
        // And disappears.
        assert_eq!(stage.client.call("DELETE", &format!("{SERVICES}/v1.{GROUP}"), Value::Null).await.0, 200);
        assert_eq!(stage.discovered(GROUP).await, None);
        assert_eq!(stage.client.send("GET", "/apis/usage.example.com", &[], "").await.status, 404);
        assert_eq!(stage.client.send("GET", USAGES, &[], "").await.status, 404);
    }
}

#[tokio::test]
async fn openapi_documents_are_merged() {
    let stage = Stage::new().await;
    let before = stage.client.get("/openapi/v2").await;
    stage.serve(&Extension::new(Way::Well));
    stage.register(GROUP).await;
    stage.reason(GROUP, "Passed").await;
    let paths = stage.client.get("/openapi/v3").await["paths"].clone();
    let own = "/openapi/v3/apis/usage.example.com/v1?hash=AB12";
    assert_eq!(paths["apis/usage.example.com/v1"]["serverRelativeURL"], own);
    assert_ne!(paths["apis/apps/v1"]["serverRelativeURL"], "/openapi/v3/apis/apps/v1?hash=AB12");
    let usage = "com.example.usage.v1.Usage";
    let document = stage.client.get(own).await;
    assert_eq!(document["components"]["schemas"][usage]["description"], "How much is used.");

    let after = stage.client.get("/openapi/v2").await;
    let path = "/apis/usage.example.com/v1/namespaces/{namespace}/usages/{name}";
    let get = &after["paths"][path]["get"];
    assert_eq!(get["responses"]["200"]["schema"]["$ref"], format!("#/definitions/{usage}"));
    let kinds = &after["definitions"][usage]["x-kubernetes-group-version-kind"];
    assert_eq!(*kinds, json!([{"group": GROUP, "version": "v1", "kind": "Usage"}]));
    // All else is as it was.
    let mut rest = after.clone();
    rest["paths"].as_object_mut().unwrap().shift_remove(path);
    rest["definitions"].as_object_mut().unwrap().shift_remove(usage);
    assert!(rest == before, "the server's own part has changed");
    let gnostic = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    let answer = stage.client.send("GET", "/openapi/v2", &[("accept", gnostic)], "").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, gnostic));
    assert!(answer.body.windows(usage.len()).any(|bytes| bytes == usage.as_bytes()));
    // It is gone with its APIService.
    stage.client.call("DELETE", &format!("{SERVICES}/v1.{GROUP}"), Value::Null).await;
    assert!(stage.client.get("/openapi/v2").await == before);
}

/// A server that was described stays so while it is down, or while its documents cannot be read.
#[tokio::test]
async fn openapi_documents_stay_while_a_server_is_down() {
    let stage = Stage::new().await;
    let extension = Extension::new(Way::Well);
    stage.serve(&extension);
    stage.register(GROUP).await;
    let count = |which: usize| extension.described[which].load(Ordering::SeqCst);
    let described = || async {
        let listed = stage.client.get("/openapi/v3").await["paths"]["apis/usage.example.com/v1"].clone();
        let hash = listed["serverRelativeURL"].as_str().unwrap_or_default().split_once('=');
        let definition = &stage.client.get("/openapi/v2").await["definitions"]["com.example.usage.v1.Usage"];
        let description = definition["description"].as_str().map(str::to_owned);
        (hash.map(|(_, hash)| hash.to_owned()), description)
    };
    let is = |hash: &str, description: &str| (Some(hash.to_owned()), Some(description.to_owned()));
    let (good, changed) = (is("AB12", "How much is used."), is("CD34", "How much is used now."));
    assert_eq!(described().await, good);
    assert_eq!((count(0), count(1)), (1, 1));
    // After it was down, its documents are read again: the list, and a document that has changed.
    let restart = |published: OpenApi, documents: usize| {
        let (stage, extension) = (&stage, &extension);
        async move {
            extension.down.store(true, Ordering::SeqCst);
            stage.serve(extension);
            stage.reason(GROUP, "FailedDiscoveryCheck").await;
            let down = stage.client.get("/openapi/v2").await;
            *extension.openapi.lock() = published;
            let before = (count(0), count(1));
            extension.down.store(false, Ordering::SeqCst);
            stage.serve(extension);
            eventually(&format!("{published:?} is read"), || async {
                (count(0) - before.0, count(1) - before.1) >= (1, documents)
            })
            .await;
            // Checked after the documents were: the next check follows only when they are known.
            stage.reason(GROUP, "Passed").await;
            assert_eq!(count(1) - before.1, documents, "{published:?}");
            down["definitions"].get("com.example.usage.v1.Usage").is_some()
        }
    };
    assert!(restart(OpenApi::Refuse, 0).await);
    assert_eq!(described().await, good);
    assert!(restart(OpenApi::Good, 0).await);
    assert_eq!(described().await, good);
    assert!(restart(OpenApi::Changed, 1).await);
    eventually("the changed one", || async { described().await == changed }).await;
    // Its document cannot be read: the last one stays, and is asked for again.
    assert!(restart(OpenApi::ListOnly, 1).await);
    eventually("the hash of the list", || async { described().await == is("AB12", "How much is used now.") })
        .await;
    // One that is too large is not read again.
    assert!(restart(OpenApi::Huge, 1).await);
    let none = (Some("AB12".to_owned()), None);
    eventually("none", || async { described().await == none }).await;
    assert!(!restart(OpenApi::Huge, 0).await);
    assert_eq!(described().await, none);
}

#[tokio::test]
async fn groups_have_the_priorities_of_their_services() {
    let stage = Stage::new().await;
    stage
        .client
        .post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", common::definition("m.example.com"))
        .await;
    stage.serve(&Extension::new(Way::Well));
    let of = |group: &str, minimum: u32| {
        let mut service = service(group);
        service["spec"]["groupPriorityMinimum"] = minimum.into();
        service
    };
    for (group, minimum) in [("z.example.com", 1000), ("a.example.com", 999), ("b.example.com", 17_990)] {
        stage.client.post(SERVICES, of(group, minimum)).await;
    }
    let groups = stage.client.get("/apis").await;
    let names: Vec<&str> =
        groups["groups"].as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap()).collect();
    assert_eq!(names[..3], ["apiregistration.k8s.io", "b.example.com", "apps"]);
    assert_eq!(names[names.len() - 3..], ["m.example.com", "z.example.com", "a.example.com"]);
}

/// The reasons and messages of upstream's availability controller.
#[tokio::test]
async fn conditions_say_why_a_service_is_not_available() {
    let stage = Stage::new().await;
    stage.register(GROUP).await;
    let absent = ("False".to_owned(), "service/ext in \"ns\" is not present".to_owned());
    assert_eq!(stage.reason(GROUP, "ServiceNotFound").await, absent);
    let refused = stage.client.send("GET", USAGES, &[], "").await;
    assert_eq!((refused.status, &*refused.text()), (503, "service unavailable\n"));
    assert_eq!(refused.header("content-type"), "text/plain; charset=utf-8");
    // Its group is there, and known to be stale.
    let group = stage.discovered(GROUP).await.unwrap();
    assert_eq!(group["versions"], json!([{"version": "v1", "freshness": "Stale"}]));
    // It comes.
    let extension = Extension::new(Way::Well);
    stage.serve(&extension);
    let passed = ("True".to_owned(), "all checks passed".to_owned());
    assert_eq!(stage.reason(GROUP, "Passed").await, passed);
    assert_eq!(stage.client.send("GET", USAGES, &[], "").await.status, 200);
    let columns = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let table = stage.client.send("GET", &format!("{SERVICES}/v1.{GROUP}"), &columns, "").await.json();
    assert_eq!(
        table["rows"][0]["cells"].as_array().unwrap()[..3],
        [json!(format!("v1.{GROUP}")), json!("ns/ext"), json!("True")]
    );
    // It fails: what was known of it is shown as stale.
    extension.down.store(true, std::sync::atomic::Ordering::SeqCst);
    stage.serve(&extension);
    let url = "https://ext.ns.svc:443/apis/usage.example.com/v1";
    let failed = format!("failing or missing response from {url}: bad status from {url}: 500");
    assert_eq!(stage.reason(GROUP, "FailedDiscoveryCheck").await, ("False".to_owned(), failed));
    let group = stage.discovered(GROUP).await.unwrap();
    assert_eq!(group["versions"][0]["freshness"], "Stale");
    assert_eq!(group["versions"][0]["resources"][0]["resource"], "usages");
    // It goes.
    stage.local.remove(Some("default"), "ext.ns.svc");
    stage.reason(GROUP, "ServiceNotFound").await;
    // A Service of that name has no address here.
    let namespace = json!({"metadata": {"name": "ns"}});
    stage.client.post("/api/v1/namespaces", namespace).await;
    let object = json!({"metadata": {"name": "ext"}, "spec": {"ports": [{"port": 443}]}});
    stage.client.post("/api/v1/namespaces/ns/services", object).await;
    let (status, message) = stage.reason(GROUP, "ServiceNotReachable").await;
    assert_eq!(status, "False");
    assert!(message.starts_with("service/ext in \"ns\" has no address on this server"), "{message}");
}

/// Each tenant has its own; what serves one is not reached from another.
#[tokio::test]
async fn tenants_have_their_own() {
    let stage = Stage::new().await;
    stage.serve(&Extension::new(Way::Well));
    stage.register(GROUP).await;
    stage.reason(GROUP, "Passed").await;
    let other = common::client(&stage.server.tenant("other").await.unwrap());
    assert_eq!(other.send("GET", USAGES, &[], "").await.status, 404);
    other.post(SERVICES, service(GROUP)).await;
    let refused = other.send("GET", USAGES, &[], "").await;
    assert_eq!((refused.status, &*refused.text()), (503, "service unavailable\n"));
    // Served for all tenants, it is told which one it is.
    stage.local.serve_streams(None, "ext.ns.svc:443", Extension::new(Way::Well));
    eventually("the other tenant is served", || async {
        other.send("GET", USAGES, &[], "").await.status == 200
    })
    .await;
    let answer = other.send("GET", USAGES, &[("x-remote-extra-k1s.dev%2ftenant", "default")], "").await;
    assert_eq!(sent(&answer, "x-remote-extra-k1s.dev%2ftenant"), ["other"]);
    let answer = stage.client.send("GET", USAGES, &[], "").await;
    assert_eq!(sent(&answer, "x-remote-extra-k1s.dev%2ftenant"), Vec::<String>::new());
}

/// Another server of this kind, in the same process, as an aggregated one.
#[tokio::test]
async fn a_server_behind_a_server() {
    let stage = Stage::new().await;
    let behind = common::server().await;
    let definition = common::definition("things.example.com");
    common::client(&behind).post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    stage.local.serve_streams(Some("default"), "ext.ns.svc", behind);
    stage.register("things.example.com").await;
    let things = "/apis/things.example.com/v1/namespaces/default/things";
    let thing = json!({"apiVersion": "things.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}});
    stage.client.post(things, thing).await;
    let mut watch = stage.client.watch(things).await;
    assert_eq!(watch.brief().await.1, "a");
    assert_eq!(
        stage.discovered("things.example.com").await.unwrap()["versions"][0]["resources"][0]["resource"],
        "things"
    );
    // A server behind itself ends at the first round.
    stage.local.serve_streams(Some("default"), "loop.ns.svc", stage.server.clone());
    let mut round = service("loop.example.com");
    round["spec"]["service"]["name"] = "loop".into();
    stage.client.post(SERVICES, round).await;
    let (_, message) = stage.reason("loop.example.com", "FailedDiscoveryCheck").await;
    assert!(message.ends_with(": 508"), "{message}");
}
