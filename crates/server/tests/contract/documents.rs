//! Discovery, OpenAPI, health and metrics.

use futures_util::future::join_all;
use k1s_env::Env;
use k1s_server::ServerOptions;
use serde_json::json;

use crate::{
    common::{self, Client, config_map},
    spy::Spy,
};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test]
async fn aggregated_discovery_is_sent_once() {
    let client = common::client(&common::server().await);
    for path in ["/api", "/apis"] {
        let accept = [("accept", AGGREGATED)];
        let first = client.send("GET", path, &accept, "").await;
        assert_eq!((first.status, first.header("content-type")), (200, AGGREGATED));
        assert_eq!(first.header("vary"), "Accept");
        assert_eq!(first.json()["kind"], "APIGroupDiscoveryList");
        let tag = first.header("etag").to_owned();
        assert!(tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"'), "{tag}");
        let again = client.send("GET", path, &[accept[0], ("if-none-match", &tag)], "").await;
        assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, &*tag));
        let other = client.send("GET", path, &[accept[0], ("if-none-match", "\"other\"")], "").await;
        assert_eq!(other.status, 200);
    }
    let before = client.send("GET", "/apis", &[("accept", AGGREGATED)], "").await;
    client.post(CRDS, common::definition("new.k1s.dev")).await;
    let after = client
        .send("GET", "/apis", &[("accept", AGGREGATED), ("if-none-match", before.header("etag"))], "")
        .await;
    assert_eq!(after.status, 200);
    assert!(after.text().contains("new.k1s.dev") && !before.text().contains("new.k1s.dev"));
    let groups = client.get("/apis").await;
    let group =
        groups["groups"].as_array().unwrap().iter().find(|group| group["name"] == "new.k1s.dev").unwrap();
    assert_eq!(group["preferredVersion"]["groupVersion"], "new.k1s.dev/v1");
    let list = client.get("/apis/new.k1s.dev/v1").await;
    assert_eq!(
        (&list["resources"][0]["singularName"], &list["resources"][0]["namespaced"]),
        (&json!("thing"), &json!(true))
    );
    assert_eq!(client.get("/apis/new.k1s.dev").await["kind"], "APIGroup");
    assert_eq!(client.send("GET", "/apis/none.k1s.dev", &[], "").await.status, 404);
    assert_eq!(client.get("/api").await["versions"], json!(["v1"]));
}

#[tokio::test]
async fn openapi_documents_are_found_by_their_hash() {
    let client = common::client(&common::server().await);
    let index = client.send("GET", "/openapi/v3", &[], "").await.json();
    let url = |index: &serde_json::Value, name: &str| {
        index["paths"][name]["serverRelativeURL"].as_str().unwrap_or_default().to_owned()
    };
    let core = url(&index, "api/v1");
    let (path, _) = core.split_once("?hash=").unwrap();
    let document = client.send("GET", &core, &[], "").await;
    assert_eq!((document.status, document.header("cache-control")), (200, "public, immutable"));
    let old = client.send("GET", &format!("{path}?hash=0123"), &[], "").await;
    assert_eq!((old.status, old.header("location")), (301, &*core));
    assert_eq!(client.send("GET", path, &[], "").await.body, document.body);
    let document = document.json();
    let patch = &document["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "", "kind": "ConfigMap", "version": "v1"})
    );
    let parameters: Vec<_> = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap_or_default())
        .collect();
    assert!(parameters.contains(&"fieldValidation") && parameters.contains(&"dryRun"), "{parameters:?}");
    assert_eq!(client.send("GET", "/openapi/v3/apis/none/v1", &[], "").await.status, 404);

    client.post(CRDS, common::definition("new.k1s.dev")).await;
    let index = client.send("GET", "/openapi/v3", &[], "").await.json();
    let first = url(&index, "apis/new.k1s.dev/v1");
    assert_eq!(client.send("GET", &first, &[], "").await.status, 200);
    assert_eq!(url(&index, "api/v1"), core);
    let patch = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties", "value": {"spec": {"type": "string"}}}]);
    assert_eq!(client.call("PATCH", &format!("{CRDS}/things.new.k1s.dev"), patch).await.0, 200);
    let second = url(&client.send("GET", "/openapi/v3", &[], "").await.json(), "apis/new.k1s.dev/v1");
    assert_ne!(first, second);
    let moved = client.send("GET", &first, &[], "").await;
    assert_eq!((moved.status, moved.header("location")), (301, &*second));

    let gnostic = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    assert_eq!(client.send("GET", "/openapi/v2", &[("accept", gnostic)], "").await.status, 200);
    assert_eq!(client.send("GET", "/openapi/v2", &[("accept", "text/html")], "").await.status, 406);
}

#[tokio::test]
async fn health_endpoints_report_their_checks() {
    let server = common::server().await;
    let client = common::client(&server);
    for endpoint in ["/healthz", "/livez", "/readyz"] {
        let answer = client.send("GET", endpoint, &[], "").await;
        assert_eq!((answer.status, &*answer.text()), (200, "ok"));
        let verbose = client.send("GET", &format!("{endpoint}?verbose"), &[], "").await.text();
        assert!(verbose.contains("[+]ping ok\n") && verbose.contains("[+]etcd ok\n"), "{verbose}");
        assert!(verbose.ends_with(&format!("{} check passed\n", &endpoint[1..])), "{verbose}");
        let without = client.send("GET", &format!("{endpoint}?verbose&exclude=etcd"), &[], "").await.text();
        assert!(without.contains("[+]etcd excluded: ok\n"), "{without}");
        assert_eq!(client.send("GET", &format!("{endpoint}/ping"), &[], "").await.text(), "ok");
        assert_eq!(client.send("GET", &format!("{endpoint}/none"), &[], "").await.status, 404);
    }
    let version = client.get("/version").await;
    assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("37")));
    // These endpoints are open to every user; others are not.
    let stranger =
        common::client(&server.as_user(k1s_server::User { name: "x".into(), ..Default::default() }));
    assert_eq!(stranger.send("GET", "/readyz", &[], "").await.status, 200);
    assert_eq!(stranger.send("GET", "/version", &[], "").await.status, 200);
    for path in ["/metrics", "/apis", "/api/v1/namespaces", "/openapi/v3", "/apis/none/v1/none"] {
        assert_eq!(stranger.send("GET", path, &[], "").await.status, 403, "{path}");
    }
}

#[tokio::test]
async fn a_closed_store_fails_the_health_checks() {
    use k1s_store::Store as _;
    let store = std::sync::Arc::new(k1s_store::MemoryStore::default());
    let env = k1s_env::Env::system();
    let client =
        common::client(&common::server_with(&env, store.clone(), k1s_server::ServerOptions::default()).await);
    store.close().await.unwrap();
    let answer = client.send("GET", "/readyz", &[], "").await;
    assert_eq!(answer.status, 500);
    assert!(answer.text().contains("[-]etcd failed"), "{}", answer.text());
    let (status, body) = client.call("GET", "/api/v1/namespaces/default", json!(null)).await;
    assert_eq!((status, &body["reason"]), (503, &json!("ServiceUnavailable")));
    let (status, _) = client.call("GET", "/api/v1/namespaces", json!(null)).await;
    assert_eq!(status, 503);
}

#[tokio::test]
async fn requests_watches_and_objects_are_counted() {
    let client = common::client(&common::server().await);
    let maps = "/api/v1/namespaces/default/configmaps";
    client.post(maps, config_map("a")).await;
    client.post(maps, config_map("b")).await;
    client.call("POST", maps, config_map("b")).await;
    let watch = client.watch(maps).await;
    let metrics = || async {
        let answer = client.send("GET", "/metrics", &[], "").await;
        assert_eq!(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
        answer.text()
    };
    let text = metrics().await;
    for line in [
        r#"apiserver_request_total{code="201",group="",resource="configmaps",subresource="",verb="POST",version="v1"} 2"#,
        r#"apiserver_request_total{code="409",group="",resource="configmaps",subresource="",verb="POST",version="v1"} 1"#,
        r#"apiserver_longrunning_requests{group="",resource="configmaps",verb="WATCH",version="v1"} 1"#,
        r#"apiserver_request_duration_seconds_count{group="",resource="configmaps",subresource="",verb="POST",version="v1"} 3"#,
        r#"apiserver_storage_objects{resource="configmaps"} 6"#,
        r#"apiserver_storage_objects{resource="namespaces"} 4"#,
        // This one.
        "apiserver_current_inflight_requests 1",
        "# TYPE apiserver_request_total counter",
        "# TYPE apiserver_request_duration_seconds histogram",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
    }
    drop(watch);
    let text = metrics().await;
    assert!(text.contains(
        r#"apiserver_longrunning_requests{group="",resource="configmaps",verb="WATCH",version="v1"} 0"#
    ));
    // Each other line is a name with labels and a number.
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(
            value.parse::<f64>().is_ok() && name.starts_with(|first: char| first.is_ascii_lowercase()),
            "{line}"
        );
    }
}

#[tokio::test]
async fn requests_for_unknown_resources_do_not_grow_the_metrics() {
    let client = common::client(&common::server().await);
    client.send("GET", "/apis/none.k1s.dev/v1/nothing", &[], "").await;
    let size = || async { client.send("GET", "/metrics", &[], "").await.text().lines().count() };
    size().await;
    let before = size().await;
    for number in 0..50 {
        client.send("GET", &format!("/apis/none{number}.k1s.dev/v{number}/nothing{number}"), &[], "").await;
        client.send("GET", &format!("/api/v1/namespaces/default/pods/x/sub{number}"), &[], "").await;
    }
    let after = size().await;
    // At most a constant number of new series, not one for each made-up name.
    assert!(after < before + 40, "{before} lines became {after}");
}

/// The number of OpenAPI and discovery documents built so far.
async fn built(client: &Client) -> u64 {
    let text = client.send("GET", "/metrics", &[], "").await.text();
    let line = text.lines().find_map(|line| line.strip_prefix("k1s_documents_built_total "));
    line.unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openapi_is_built_once_and_sent_to_clients_without_it() {
    const GNOSTIC: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let server = common::server().await;
    let client = common::client(&server);
    let other = common::client(&server.tenant("other").await.unwrap());
    let paths = [
        ("/openapi/v3", "*/*"),
        ("/openapi/v3/api/v1", "application/json"),
        ("/openapi/v2", "application/json"),
        ("/openapi/v2", GNOSTIC),
    ];
    let send = |client: &Client, (path, accept): (&'static str, &'static str), tag: String| {
        let client = client.clone();
        async move { client.send("GET", path, &[("accept", accept), ("if-none-match", &tag)], "").await }
    };
    let mut tags = Vec::new();
    for (number, one) in paths.into_iter().enumerate() {
        // Concurrently, from two tenants whose documents are the same.
        let clients = [&client, &other, &client, &other, &client, &other];
        let asked = clients.map(|client| Env::system().spawn("client", send(client, one, String::new())));
        let answers: Vec<_> = join_all(asked).await.into_iter().map(|answer| answer.unwrap()).collect();
        let tag = answers[0].header("etag").to_owned();
        assert!(tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"'), "{one:?}: {tag}");
        for answer in &answers {
            assert_eq!((answer.status, answer.header("etag")), (200, &*tag), "{one:?}");
            assert_eq!((answer.header("vary"), &answer.body), ("Accept", &answers[0].body), "{one:?}");
        }
        let known = send(&client, one, format!("\"x\", {tag}")).await;
        assert_eq!((known.status, known.body.len(), known.header("etag")), (304, 0, &*tag), "{one:?}");
        assert_eq!(send(&client, one, "\"x\"".into()).await.status, 200, "{one:?}");
        assert_eq!(built(&client).await, number as u64 + 1, "{one:?}");
        tags.push(tag);
    }
    // A definition causes new documents only where it is included, and only in its own tenant.
    client.post(CRDS, common::definition("new.k1s.dev")).await;
    for (one, tag) in paths.into_iter().zip(&tags) {
        let status = if one.0 == "/openapi/v3/api/v1" { 304 } else { 200 };
        assert_eq!(send(&client, one, tag.clone()).await.status, status, "{one:?}");
        assert_eq!(send(&other, one, tag.clone()).await.status, 304, "{one:?}");
    }
    let own = ("/openapi/v3/apis/new.k1s.dev/v1", "*/*");
    let first = send(&client, own, String::new()).await;
    assert_eq!((first.status, built(&client).await), (200, 8));
    assert_eq!(send(&other, own, String::new()).await.status, 404);
    // The same definition in another tenant uses the same documents, which are cached.
    other.post(CRDS, common::definition("new.k1s.dev")).await;
    assert_eq!(send(&other, own, first.header("etag").into()).await.status, 304);
    for one in paths {
        let (here, there) = (send(&client, one, String::new()).await, send(&other, one, String::new()).await);
        assert_eq!(here.body, there.body, "{one:?}");
    }
    assert_eq!(built(&client).await, 8);
    // A change that is not published causes none.
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(client.call("PATCH", &format!("{CRDS}/things.new.k1s.dev"), label).await.0, 200);
    assert_eq!(send(&client, own, first.header("etag").into()).await.status, 304);
    let patch = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties", "value": {"spec": {"type": "string"}}}]);
    assert_eq!(client.call("PATCH", &format!("{CRDS}/things.new.k1s.dev"), patch).await.0, 200);
    assert_eq!(send(&client, own, first.header("etag").into()).await.status, 200);
    assert_eq!(send(&other, own, first.header("etag").into()).await.status, 304);
    // The documents are gone with their definition.
    assert_eq!(other.call("DELETE", &format!("{CRDS}/things.new.k1s.dev"), json!(null)).await.0, 200);
    common::eventually("it is not published", || async {
        send(&other, own, String::new()).await.status == 404
    })
    .await;
    assert_eq!(send(&other, paths[0], tags[0].clone()).await.status, 304);
}

#[tokio::test]
async fn a_scrape_does_not_read_all_objects_to_count_them() {
    let store = Spy::new();
    let server = common::bare(&Env::system(), store.clone(), ServerOptions::default()).await;
    let client = common::client(&server);
    let maps = "/api/v1/namespaces/default/configmaps";
    let counted = || async {
        let text = client.send("GET", "/metrics", &[], "").await.text();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("apiserver_storage_objects{resource=\"configmaps\"} "));
        line.unwrap().parse::<usize>().unwrap()
    };
    let before = counted().await;
    let read = store.ranges("/default/");
    assert!(read > 0);
    for number in 1..=20 {
        client.post(maps, config_map(&format!("map-{number}"))).await;
        assert_eq!(counted().await, before + number);
    }
    client.call("PATCH", &format!("{maps}/map-1"), json!({"data": {"a": "b"}})).await;
    client.call("DELETE", &format!("{maps}/map-2"), json!(null)).await;
    assert_eq!(counted().await, before + 19);
    assert_eq!(store.ranges("/default/"), read);
}

#[tokio::test]
async fn concurrent_health_checks_share_one_call_to_the_store() {
    let store = Spy::new();
    let server = k1s_server::ApiServer::new(Env::system(), store.clone(), ServerOptions::default()).await;
    let client = common::client(&server.unwrap().as_user(k1s_server::User::admin()));
    for check in ["/readyz/etcd", "/readyz/store"] {
        store.hold(Some(""));
        let before = store.revisions();
        let ask = || {
            let client = client.clone();
            Env::system().spawn("client", async move { client.send("GET", check, &[], "").await.status })
        };
        let asked: Vec<_> = (0..100).map(|_| ask()).collect();
        common::eventually("the store is asked", || async { store.waiting() == 1 }).await;
        for _ in 0..100 {
            Env::system().yield_now().await;
        }
        assert_eq!(store.waiting(), 1, "{check}");
        store.hold(None);
        for answer in join_all(asked).await {
            assert_eq!(answer.unwrap(), 200, "{check}");
        }
        assert!(store.revisions() <= before + 2, "{check}");
    }
}

#[tokio::test]
async fn concurrent_requests_for_unknown_resources_share_one_call_to_the_store() {
    let store = Spy::new();
    let mut options = ServerOptions::default();
    options.default_user = Some(k1s_server::User::new("alice", &[]));
    let server = k1s_server::ApiServer::new(Env::system(), store.clone(), options).await;
    let client = common::client(&server.unwrap());
    assert_eq!(client.send("GET", "/apis", &[], "").await.status, 200);
    store.hold(Some(""));
    let before = store.revisions();
    let ask = |number| {
        let (client, path) = (client.clone(), format!("/apis/none-{number}.k1s.dev/v1"));
        Env::system().spawn("client", async move { client.send("GET", &path, &[], "").await.status })
    };
    let asked: Vec<_> = (0..100).map(ask).collect();
    common::eventually("the store is asked", || async { store.waiting() == 1 }).await;
    store.hold(None);
    for answer in join_all(asked).await {
        assert_eq!(answer.unwrap(), 404);
    }
    assert!(store.revisions() <= before + 2);
}

#[tokio::test]
async fn kinds_of_the_same_name_in_two_groups_are_distinguished() {
    let client = common::client(&common::server().await);
    for (group, text) in [("one.k1s.dev", "The one."), ("two.k1s.dev", "The other.")] {
        let mut definition = common::definition(group);
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object", "description": text, "properties": {"spec": {"type": "object", "properties": {
                "port": {"x-kubernetes-int-or-string": true}}}}});
        client.post(CRDS, definition).await;
    }
    let swagger = client.send("GET", "/openapi/v2", &[], "").await.json();
    for (group, name, text) in [
        ("one.k1s.dev", "dev.k1s.one.v1.Thing", "The one."),
        ("two.k1s.dev", "dev.k1s.two.v1.Thing", "The other."),
    ] {
        let document = client.send("GET", &format!("/openapi/v3/apis/{group}/v1"), &[], "").await.json();
        let kind = json!({"group": group, "kind": "Thing", "version": "v1"});
        let list = &document["paths"][format!("/apis/{group}/v1/namespaces/{{namespace}}/things")]["get"];
        assert_eq!(list["x-kubernetes-group-version-kind"], kind);
        // As kubectl finds the schema.
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let of_kind = |schema: &&serde_json::Value| {
            schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|kinds| kinds.contains(&kind))
        };
        let found: Vec<_> = schemas.values().filter(of_kind).collect();
        assert_eq!((found.len(), &found[0]["description"]), (1, &json!(text)));
        let either = json!([{"type": "integer"}, {"type": "string"}]);
        assert_eq!(found[0]["properties"]["spec"]["properties"]["port"]["anyOf"], either);
        let creation =
            &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"]["creationTimestamp"];
        assert!(creation["description"].as_str().unwrap().starts_with("CreationTimestamp is a timestamp"));
        let definition = &swagger["definitions"][name];
        assert_eq!(
            (&definition["description"], &definition["x-kubernetes-group-version-kind"]),
            (&json!(text), &json!([kind]))
        );
    }
}

#[tokio::test]
async fn with_a_store_that_cannot_write_a_server_is_live_but_not_ready() {
    use k1s_store_disk::{DiskOptions, DiskStore};
    let dir = tempfile::tempdir().unwrap();
    let (env, folder) = (k1s_env::Env::system(), dir.path().join("data"));
    let store = DiskStore::open(env.clone(), &folder, DiskOptions::default()).unwrap();
    let store = std::sync::Arc::new(store);
    let client =
        common::client(&common::server_with(&env, store, k1s_server::ServerOptions::default()).await);
    assert!(client.send("GET", "/readyz?verbose", &[], "").await.text().contains("[+]store ok\n"));
    assert_eq!(client.send("GET", "/livez/store", &[], "").await.status, 404);
    std::fs::rename(&folder, dir.path().join("elsewhere")).unwrap();
    let answer = client.send("GET", "/readyz", &[], "").await;
    assert_eq!(answer.status, 500);
    let text = answer.text();
    assert!(text.contains("[-]store failed: ") && text.contains("removed, moved or replaced"), "{text}");
    assert_eq!(client.send("GET", "/readyz/store", &[], "").await.status, 500);
    assert_eq!(client.send("GET", "/livez", &[], "").await.status, 200);
    // Existing objects can still be read.
    assert_eq!(client.send("GET", "/api/v1/namespaces/default", &[], "").await.status, 200);
}
