//! Tenants: isolated control planes that share a store.

use std::sync::Arc;

use k1s_env::Env;
use k1s_server::{ServerOptions, User};
use k1s_store::{MemoryStore, Range, Store as _};
use serde_json::json;

use crate::common::{self, Client, config_map, names};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SERVICES: &str = "/api/v1/namespaces/default/services";

async fn pair() -> (Client, Client, Client) {
    let server = common::server().await;
    let one = common::client(&server.tenant("one").await.unwrap());
    let two = common::client(&server.tenant("two").await.unwrap());
    (common::client(&server), one, two)
}

const CAN_I: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

#[tokio::test]
async fn tenants_are_created_by_an_administrators_write_and_by_call() {
    let store = Arc::new(MemoryStore::default());
    let mut options = ServerOptions::default();
    options.create_tenants = true;
    let server = common::server_with(&Env::system(), store.clone(), options).await;
    let client = common::client(&server);
    assert_eq!(server.tenants(), ["default"]);
    // Never by requests that store nothing.
    let before = store.revision().await.unwrap();
    let review = json!({"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}});
    for (method, path, body) in [
        ("GET", "", json!(null)),
        ("GET", "/healthz", json!(null)),
        ("GET", "/version", json!(null)),
        ("GET", "/apis", json!(null)),
        ("GET", "/openapi/v2", json!(null)),
        ("GET", "/metrics", json!(null)),
        ("GET", "/k1s/v1/metadata", json!(null)),
        ("GET", "/api/v1/namespaces", json!(null)),
        ("GET", "/api/v1/namespaces?watch=true", json!(null)),
        ("DELETE", "", json!(null)),
        ("DELETE", "/api/v1/namespaces/default", json!(null)),
        ("DELETE", MAPS, json!(null)),
        ("POST", &format!("{MAPS}?dryRun=All"), config_map("a")),
        ("POST", CAN_I, review),
        ("POST", "/healthz", json!({})),
    ] {
        let (status, body) = client.call(method, &format!("/clusters/one{path}"), body).await;
        assert_eq!(
            (status, &body["message"]),
            (404, &json!("tenants.k1s.dev \"one\" not found")),
            "{method} {path}"
        );
    }
    assert_eq!(store.revision().await.unwrap(), before);
    assert_eq!(server.tenants(), ["default"]);
    client.post(&format!("/clusters/one{MAPS}"), config_map("a")).await;
    let list = client.get("/clusters/one/api/v1/namespaces").await;
    assert_eq!(names(&list), ["default", "kube-node-lease", "kube-public", "kube-system"]);
    assert_eq!(
        client.get("/clusters/one/api/v1/namespaces/default/services/kubernetes").await["spec"]["clusterIP"],
        "10.0.0.1"
    );
    server.create_tenant("two").await.unwrap();
    server.create_tenant("two").await.unwrap();
    assert_eq!(server.tenants(), ["default", "one", "two"]);
    // The default tenant can also be addressed by its name.
    client.post(MAPS, config_map("a")).await;
    client.get(&format!("/clusters/default{MAPS}/a")).await;
    for name in ["UPPER", "a.b", "", "-", &"x".repeat(64)] {
        let (status, body) =
            client.call("GET", &format!("/clusters/{name}/api/v1/namespaces"), json!(null)).await;
        assert_eq!((status, &body["reason"]), (400, &json!("BadRequest")), "{name}");
        assert_eq!(server.create_tenant(name).await.unwrap_err().code, 400);
    }
}

#[tokio::test]
async fn tenants_are_created_only_by_call_by_default() {
    let options = ServerOptions::default();
    let (env, store) = (Env::system(), Arc::new(MemoryStore::default()));
    let server = common::server_with(&env, store.clone(), options.clone()).await;
    let client = common::client(&server);
    for (method, body) in [("GET", json!(null)), ("POST", config_map("a"))] {
        let (status, body) = client.call(method, &format!("/clusters/one{MAPS}"), body).await;
        assert_eq!((status, &body["reason"]), (404, &json!("NotFound")), "{method}");
    }
    assert!(store.range(Range::prefix("/one/")).await.unwrap().entries.is_empty());
    server.create_tenant("one").await.unwrap();
    client.post(&format!("/clusters/one{MAPS}"), config_map("a")).await;
    // Another server over the same store finds it.
    let again = common::client(&common::server_with(&env, store, options).await);
    again.get(&format!("/clusters/one{MAPS}/a")).await;
}

#[tokio::test]
async fn objects_definitions_and_discovery_are_isolated_between_tenants() {
    let (all, one, two) = pair().await;
    one.post(MAPS, config_map("mine")).await;
    one.post(CRDS, common::definition("own.k1s.dev")).await;
    let things = "/apis/own.k1s.dev/v1/namespaces/default/things";
    let thing = json!({"apiVersion": "own.k1s.dev/v1", "kind": "Thing", "metadata": {"name": "t"}});
    one.post(things, thing).await;
    for other in [&all, &two] {
        assert_eq!(names(&other.get(MAPS).await), ["kube-root-ca.crt"]);
        assert_eq!(other.call("GET", &format!("{MAPS}/mine"), json!(null)).await.0, 404);
        assert_eq!(other.send("GET", things, &[], "").await.status, 404);
        assert!(names(&other.get(CRDS).await).is_empty());
        assert!(!other.send("GET", "/apis", &[], "").await.text().contains("own.k1s.dev"));
        assert!(!other.send("GET", "/openapi/v3", &[], "").await.text().contains("own.k1s.dev"));
        assert!(!other.send("GET", "/metrics", &[], "").await.text().contains("things.own.k1s.dev"));
    }
    assert!(one.send("GET", "/apis", &[], "").await.text().contains("own.k1s.dev"));
    assert_eq!(names(&one.get(things).await), ["t"]);
    // The same name can have another schema in another tenant.
    let mut definition = common::definition("own.k1s.dev");
    definition["spec"]["scope"] = "Cluster".into();
    two.post(CRDS, definition).await;
    two.post(
        "/apis/own.k1s.dev/v1/things",
        json!({"apiVersion": "own.k1s.dev/v1", "kind": "Thing", "metadata": {"name": "t"}}),
    )
    .await;
    assert_eq!(two.send("GET", things, &[], "").await.status, 404);
    assert_eq!(names(&one.get("/apis/own.k1s.dev/v1/things").await), ["t"]);
    // A path cannot lead out of a tenant.
    for path in [
        "/api/v1/namespaces/..%2F..%2F..%2Fone%2Fcore%2Fconfigmaps%2Fdefault/configmaps/mine",
        "/../one/api/v1/namespaces",
    ] {
        assert_eq!(two.send("GET", path, &[], "").await.status, 404, "{path}");
    }
    let (status, _) = two.call("GET", &format!("/clusters/one{MAPS}/mine"), json!(null)).await;
    assert_eq!(status, 404);
    let token = base64::Engine::encode(
        &base64::engine::general_purpose::URL_SAFE_NO_PAD,
        json!({"v": "meta.k8s.io/v1", "rv": -1, "start": "../../../one/core/configmaps/default/a"})
            .to_string(),
    );
    assert_eq!(two.call("GET", &format!("{MAPS}?limit=1&continue={token}"), json!(null)).await.0, 400);
}

#[tokio::test]
async fn watches_and_service_addresses_are_isolated_between_tenants() {
    let (_, one, two) = pair().await;
    let mut watch = two.watch("/api/v1/configmaps?labelSelector=mark").await;
    let service =
        json!({"metadata": {"name": "web"}, "spec": {"clusterIP": "10.0.7.7", "ports": [{"port": 80}]}});
    let map = |name: &str| json!({"metadata": {"name": name, "labels": {"mark": "x"}}});
    for client in [&one, &two] {
        assert_eq!(client.post(SERVICES, service.clone()).await["spec"]["clusterIP"], "10.0.7.7");
        let again = json!({"metadata": {"name": "web-2"}, "spec": {"clusterIP": "10.0.7.7", "ports": [{"port": 80}]}});
        assert_eq!(client.call("POST", SERVICES, again).await.0, 422);
    }
    one.post(MAPS, map("first")).await;
    two.post(MAPS, map("second")).await;
    assert_eq!(watch.brief().await.1, "second");
}

#[tokio::test]
async fn a_deleted_tenant_leaves_nothing() {
    let (env, clock) = Env::simulated(3);
    let store = Arc::new(MemoryStore::new(env.clone(), k1s_store::MemoryOptions::default()));
    let server = common::server_with(&env, store.clone(), ServerOptions::default()).await;
    let of = |server: k1s_server::ApiServer| Client { server, env: env.clone() };
    let client = of(server.clone());
    let keys = || async { store.range(Range::prefix("")).await.unwrap().entries.len() };
    client.get("/api/v1/namespaces").await;
    client.get(CRDS).await;
    client.send("GET", "/apis", &[], "").await;
    clock.settle().await;
    let (tasks, stored) = (env.tasks().iter().map(|task| task.tasks).sum::<usize>(), keys().await);

    let tenant = of(server.tenant("gone").await.unwrap());
    tenant.post(CRDS, common::definition("own.k1s.dev")).await;
    for number in 0..20 {
        tenant.post(MAPS, config_map(&format!("map-{number}"))).await;
    }
    let held = json!({"metadata": {"name": "held"}});
    tenant.post("/api/v1/namespaces", held).await;
    let mut kept = config_map("kept");
    kept["metadata"]["finalizers"] = json!(["k1s.dev/never"]);
    tenant.post("/api/v1/namespaces/held/configmaps", kept).await;
    // Its deletion never completes, and continues in the background.
    tenant.call("DELETE", "/api/v1/namespaces/held", json!(null)).await;
    let watch = tenant.watch(MAPS).await.collect();
    let other = client.watch(MAPS).await.collect();
    clock.advance_and_settle(std::time::Duration::from_secs(1)).await;
    assert!(!watch.ended());

    server.delete_tenant("gone").await.unwrap();
    clock.settle().await;
    assert!(watch.ended() && !other.ended());
    assert!(store.range(Range::prefix("/gone/")).await.unwrap().entries.is_empty());
    assert_eq!(keys().await, stored);
    assert_eq!(server.tenants(), ["default"]);
    // A handle to the deleted tenant gets an error, and cannot write to the store.
    let (status, body) = tenant.call("POST", MAPS, config_map("late")).await;
    assert_eq!((status, &body["reason"]), (404, &json!("NotFound")), "{body}");
    assert_eq!(tenant.call("GET", "/api/v1/namespaces", json!(null)).await.0, 404);
    assert_eq!(keys().await, stored);
    drop((tenant, watch, other));
    clock.advance_and_settle(std::time::Duration::from_secs(5)).await;
    let left = env.tasks();
    assert!(left.iter().map(|task| task.tasks).sum::<usize>() <= tasks + 2, "{left:?}");
    // The name is free.
    assert_eq!(client.call("GET", "/clusters/gone/api/v1/namespaces", json!(null)).await.0, 404);
    server.create_tenant("gone").await.unwrap();
    let list = client.get("/clusters/gone/api/v1/namespaces").await;
    assert_eq!(names(&list), ["default", "kube-node-lease", "kube-public", "kube-system"]);
    server.delete_tenant("never-there").await.unwrap();
}

#[tokio::test]
async fn tokens_name_their_users() {
    let mut options = ServerOptions::default();
    options.tokens.insert("secret", User::admin());
    options.tokens.insert("alice", User::new("alice", &[]));
    let server =
        k1s_server::ApiServer::new(Env::system(), Arc::new(MemoryStore::default()), options).await.unwrap();
    let client = common::client(&server);
    server.create_tenant("one").await.unwrap();
    for prefix in ["", "/clusters/one"] {
        let path = format!("{prefix}/api/v1/namespaces/default");
        let send = |token: &'static str| {
            let (client, path) = (client.clone(), path.clone());
            async move { client.send("GET", &path, &[("authorization", token)], "").await }
        };
        assert_eq!(send("Bearer secret").await.status, 200);
        assert_eq!(send("bearer secret").await.status, 200);
        let unknown = send("Bearer other").await;
        assert_eq!((unknown.status, &unknown.json()["reason"]), (401, &json!("Unauthorized")));
        let alice = send("Bearer alice").await;
        assert_eq!((alice.status, &alice.json()["reason"]), (403, &json!("Forbidden")));
        assert_eq!(client.send("GET", &path, &[], "").await.status, 403);
    }
}
