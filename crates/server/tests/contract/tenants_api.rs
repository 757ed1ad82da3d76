//! `/k1s/v1/tenants`, and tenants under unauthenticated requests, slow stores and several servers.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use k1s_env::Env;
use k1s_server::{ApiServer, ServerOptions, User};
use k1s_store::{MemoryOptions, MemoryStore, Range, Store};
use serde_json::{Value, json};

use crate::{
    common::{self, Client, config_map, names},
    spy::Spy,
};

const TENANTS: &str = "/k1s/v1/tenants";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

/// The keys of a tenant.
async fn keys(store: &dyn Store, tenant: &str) -> usize {
    store.range(Range::prefix(format!("/{tenant}/"))).await.unwrap().entries.len()
}

/// A server with the anonymous user and alice, and a client of the administrator.
async fn guarded(store: Arc<dyn Store>) -> (ApiServer, Client) {
    let mut options = ServerOptions::default();
    options.tokens.insert("alice", User::new("alice", &[]));
    let server = ApiServer::new(Env::system(), store, options).await.unwrap();
    let admin = common::client(&server.as_user(User::admin()));
    (server, admin)
}

#[tokio::test]
async fn tenants_are_created_listed_and_deleted() {
    let store = Arc::new(MemoryStore::default());
    let (env, options) = (Env::system(), ServerOptions::default());
    let server = common::server_with(&env, store.clone(), options.clone()).await;
    let client = common::client(&server);
    let made = client.post(TENANTS, named("one")).await;
    assert_eq!((&made["kind"], &made["apiVersion"]), (&json!("Tenant"), &json!("k1s.dev/v1")));
    assert_eq!((&made["metadata"]["name"], &made["status"]["phase"]), (&json!("one"), &json!("Active")));
    for field in ["uid", "creationTimestamp", "resourceVersion"] {
        assert!(made["metadata"][field].as_str().is_some_and(|text| !text.is_empty()), "{made}");
    }
    assert_eq!(client.get(&format!("{TENANTS}/one")).await, made);
    let again = client.call("POST", TENANTS, named("one")).await;
    assert_eq!((again.0, &again.1["message"]), (409, &json!("tenants.k1s.dev \"one\" already exists")));
    client.post(&format!("/clusters/one{MAPS}"), config_map("a")).await;

    // All tenants in the store, opened by any server, in pages.
    for name in ["one-1", "one0", "zz"] {
        let body = json!({"kind": "Tenant", "apiVersion": "k1s.dev/v1", "metadata": {"name": name}});
        client.post(TENANTS, body).await;
    }
    let other = common::server_with(&env, store.clone(), options).await;
    assert_eq!(other.stored_tenants().await.unwrap(), ["default", "one", "one-1", "one0", "zz"]);
    assert_eq!(other.tenants(), ["default"]);
    let other = common::client(&other);
    let list = other.get(TENANTS).await;
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("TenantList"), &json!("k1s.dev/v1")));
    let mut all = names(&list);
    all.sort();
    assert_eq!(all, ["default", "one", "one-1", "one0", "zz"]);
    assert!(list["metadata"].get("continue").is_none() && list["items"][0].get("kind").is_none());
    let (mut paged, mut next) = (Vec::new(), String::new());
    loop {
        let page = other.get(&format!("{TENANTS}?limit=2&continue={next}")).await;
        assert!(names(&page).len() <= 2);
        paged.extend(names(&page));
        match page["metadata"]["continue"].as_str() {
            Some(token) => next = token.to_owned(),
            None => break,
        }
    }
    assert_eq!(paged, names(&list));

    let gone = client.call("DELETE", &format!("{TENANTS}/one"), json!(null)).await;
    assert_eq!((gone.0, &gone.1["status"]), (200, &json!("Success")));
    assert_eq!(gone.1["details"]["uid"], made["metadata"]["uid"]);
    assert_eq!(keys(&*store, "one").await, 0);
    for (method, path) in [
        ("GET", format!("{TENANTS}/one")),
        ("DELETE", format!("{TENANTS}/one")),
        ("GET", "/clusters/one/apis".into()),
    ] {
        let (status, body) = client.call(method, &path, json!(null)).await;
        assert_eq!((status, &body["message"]), (404, &json!("tenants.k1s.dev \"one\" not found")), "{path}");
    }
    assert!(!names(&client.get(TENANTS).await).contains(&"one".to_owned()));
    // The name is free.
    assert_ne!(client.post(TENANTS, named("one")).await["metadata"]["uid"], made["metadata"]["uid"]);
}

#[tokio::test]
async fn invalid_requests_are_rejected_with_a_helpful_message() {
    let server = common::server().await;
    let client = common::client(&server);
    for name in ["UPPER", "a.b", "", "-", &"x".repeat(64)] {
        let (status, body) = client.call("POST", TENANTS, named(name)).await;
        assert_eq!((status, &body["reason"]), (422, &json!("Invalid")), "{name}");
        assert_eq!(body["details"]["causes"][0]["field"], "metadata.name", "{body}");
    }
    for body in [
        "",
        "{",
        "[]x",
        r#"{"kind":"Pod","metadata":{"name":"a"}}"#,
        r#"{"apiVersion":"v1","metadata":{"name":"a"}}"#,
    ] {
        assert_eq!(client.send("POST", TENANTS, &[], body).await.status, 400, "{body}");
    }
    assert_eq!(client.call("POST", &format!("{TENANTS}?dryRun=All"), named("a")).await.0, 400);
    assert_eq!(client.call("GET", &format!("{TENANTS}?continue=%25"), json!(null)).await.0, 400);
    for (method, path) in
        [("PUT", "/a"), ("PATCH", "/a"), ("POST", "/a"), ("DELETE", ""), ("PUT", ""), ("PATCH", "")]
    {
        let (status, body) = client.call(method, &format!("{TENANTS}{path}"), named("a")).await;
        assert_eq!((status, &body["reason"]), (405, &json!("MethodNotAllowed")), "{method} {path}");
    }
    assert_eq!(client.call("GET", &format!("{TENANTS}/UPPER"), json!(null)).await.0, 404);
    assert_eq!(client.send("GET", &format!("{TENANTS}/a/b"), &[], "").await.status, 404);
    let (status, body) = client.call("DELETE", &format!("{TENANTS}/default"), json!(null)).await;
    assert_eq!((status, &body["reason"]), (403, &json!("Forbidden")));
    assert_eq!(server.tenants(), ["default"]);

    // DELETE of a tenant's path is rejected, not ignored.
    server.create_tenant("x").await.unwrap();
    for path in ["/clusters/x", "/clusters/x/"] {
        let (status, body) = client.call("DELETE", path, json!(null)).await;
        assert_eq!((status, &body["reason"]), (405, &json!("MethodNotAllowed")));
        assert!(body["message"].as_str().unwrap().contains("DELETE /k1s/v1/tenants/x"), "{body}");
    }
    client.get("/clusters/x/api/v1/namespaces/default").await;
    // The API is not available within a tenant.
    let inside = common::client(&server.tenant("x").await.unwrap());
    assert_eq!(inside.send("GET", TENANTS, &[], "").await.status, 404);
    assert_eq!(client.send("GET", &format!("/clusters/x{TENANTS}"), &[], "").await.status, 404);
    assert_eq!(inside.call("GET", "/clusters/default/api/v1/namespaces", json!(null)).await.0, 404);
    inside.get("/clusters/x/api/v1/namespaces").await;
}

#[tokio::test]
async fn unauthorized_users_create_no_tenants() {
    let store = Spy::new();
    let (server, admin) = guarded(store.clone()).await;
    let stranger = common::client(&server);
    let alice = [("authorization", "Bearer alice")];
    let before = store.revision().await.unwrap();
    for (method, path) in
        [("GET", TENANTS), ("POST", TENANTS), ("GET", "/k1s/v1/tenants/a"), ("DELETE", "/k1s/v1/tenants/a")]
    {
        for who in [&[][..], &alice] {
            let answer = stranger.send(method, path, who, named("a").to_string()).await;
            assert_eq!(
                (answer.status, &answer.json()["reason"]),
                (403, &json!("Forbidden")),
                "{method} {path}"
            );
        }
    }
    let mut read = 0;
    for (number, path) in ["/healthz", "/version", "/api/v1/pods", "/apis", "/metrics", ""].iter().enumerate()
    {
        for method in ["GET", "POST", "DELETE"] {
            for (who, headers) in [("nobody", &[][..]), ("alice", &alice)] {
                let path = format!("/clusters/none-{number}-{who}{path}");
                store.take_gets();
                let answer = stranger.send(method, &path, headers, config_map("a").to_string()).await;
                assert_eq!(answer.status, 403, "{method} {path}: {}", answer.text());
                read += store.take_gets().len();
            }
        }
    }
    // Whether somebody may do something depends on the roles of the tenant, so each request looks for it, once.
    assert_eq!(read, 36);
    // Nor is the store read for unknown tokens.
    for token in ["x", "a.b.c", "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.AAAA"] {
        let headers = [("authorization", &*format!("Bearer {token}"))];
        assert_eq!(stranger.send("GET", "/clusters/none/healthz", &headers, "").await.status, 401);
    }
    let headers = [("impersonate-user", "admin"), ("impersonate-group", "system:masters")];
    assert_eq!(stranger.send("GET", "/clusters/none/healthz", &headers, "").await.status, 403);
    assert_eq!(store.take_gets(), [""; 0]);
    assert_eq!(store.revision().await.unwrap(), before);
    assert_eq!(server.tenants(), ["default"]);
    // An existing tenant is found for every user.
    admin.post(TENANTS, named("there")).await;
    assert_eq!(stranger.send("GET", "/clusters/there/healthz", &[], "").await.status, 200);
}

#[tokio::test]
async fn a_slow_lookup_does_not_delay_others() {
    let store = Spy::new();
    let (server, admin) = guarded(store.clone()).await;
    server.create_tenant("there").await.unwrap();
    drop(server);
    let (server, _) = guarded(store.clone()).await;
    let client = common::client(&server.as_user(User::admin()));
    store.hold(Some("/slow"));
    store.take_gets();
    let look = |name: String| {
        let client = client.clone();
        async move { client.call("GET", &format!("/clusters/{name}/api/v1/namespaces"), json!(null)).await.0 }
    };
    let env = Env::system();
    let waiting: Vec<_> = (0..100).map(|_| env.spawn("slow", look("slow-one".into()))).collect();
    common::eventually("the store is asked", || async { store.waiting() == 1 }).await;
    // Lookups of other tenants complete meanwhile.
    assert_eq!(look("there".into()).await, 200);
    assert_eq!(look("none".into()).await, 404);
    assert_eq!(admin.call("POST", TENANTS, named("new")).await.0, 201);
    // Any number of names causes only a bounded number of concurrent reads.
    let many: Vec<_> = (0..200).map(|number| env.spawn("slow", look(format!("slow-{number}")))).collect();
    common::eventually("as many are read as may be", || async { store.waiting() == 32 }).await;
    for _ in 0..100 {
        env.yield_now().await;
    }
    assert_eq!(store.waiting(), 32);
    store.hold(None);
    for answer in join_all(waiting).await.into_iter().chain(join_all(many).await) {
        assert_eq!(answer.unwrap(), 404);
    }
    let gets = store.take_gets();
    let of_one = gets.iter().filter(|key| key.starts_with(b"/slow-one/")).count();
    assert!(of_one <= 2, "{of_one} reads for one name");
}

#[tokio::test]
async fn unauthenticated_lookups_are_limited() {
    let store = Spy::new();
    let (server, admin) = guarded(store.clone()).await;
    store.hold(Some("/slow"));
    let stranger = common::client(&server);
    let env = Env::system();
    let waiting: Vec<_> = (0..8)
        .map(|number| {
            let stranger = stranger.clone();
            let path = format!("/clusters/slow-{number}/healthz");
            env.spawn("slow", async move { stranger.send("GET", &path, &[], "").await.status })
        })
        .collect();
    common::eventually("they wait", || async { store.waiting() == 8 }).await;
    let more = stranger.send("GET", "/clusters/other/healthz", &[], "").await;
    assert_eq!((more.status, more.header("retry-after")), (429, "1"));
    assert_eq!(admin.call("GET", "/clusters/other/healthz", json!(null)).await.0, 404);
    assert_eq!(stranger.send("GET", "/healthz", &[], "").await.status, 200);
    store.hold(None);
    for answer in join_all(waiting).await {
        assert_eq!(answer.unwrap(), 403);
    }
}

#[tokio::test]
async fn writes_during_the_deletion_of_a_tenant_leave_nothing_behind() {
    let store = Arc::new(MemoryStore::default());
    let (env, options) = (Env::system(), ServerOptions::default());
    // Two servers over one store: both write, one deletes.
    let one = common::bare(&env, store.clone(), options.clone()).await;
    let two = common::bare(&env, store.clone(), options).await;
    for _ in 0..5 {
        one.create_tenant("busy").await.unwrap();
        let before = keys(&*store, "busy").await;
        let mut writers = Vec::new();
        for (server, writer) in [(&one, 0), (&two, 1), (&one, 2), (&two, 3)] {
            let client = common::client(&server.tenant("busy").await.unwrap());
            writers.push(env.spawn("writer", async move {
                for number in 0.. {
                    let name = format!("w{writer}-{number}");
                    let (status, body) = client.call("POST", MAPS, config_map(&name)).await;
                    if status != 201 {
                        assert_eq!((status, &body["reason"]), (404, &json!("NotFound")), "{body}");
                        return number;
                    }
                    // Lets other tasks run.
                    client.env.yield_now().await;
                }
                0
            }));
        }
        common::eventually("they write", || async { keys(&*store, "busy").await > before + 20 }).await;
        let client = common::client(&one);
        assert_eq!(client.call("DELETE", &format!("{TENANTS}/busy"), json!(null)).await.0, 200);
        assert_eq!(keys(&*store, "busy").await, 0);
        let written: usize = join_all(writers).await.into_iter().map(|written| written.unwrap()).sum();
        assert!(written > 20);
        assert_eq!(keys(&*store, "busy").await, 0);
    }
}

#[tokio::test]
async fn a_server_notices_that_another_one_has_deleted_a_tenant() {
    let (env, clock) = Env::simulated(3);
    let store = Arc::new(MemoryStore::new(env.clone(), MemoryOptions::default()));
    let server = || common::bare(&env, store.clone(), ServerOptions::default());
    let (one, two) = (server().await, server().await);
    let of = |server: &ApiServer| Client { server: server.clone(), env: env.clone() };
    let (here, there) = (of(&one), of(&two));
    here.post(TENANTS, named("shared")).await;
    there.post(&format!("/clusters/shared{MAPS}"), config_map("a")).await;
    let watch = there.watch(&format!("/clusters/shared{MAPS}")).await.collect();
    assert_eq!(here.call("DELETE", &format!("{TENANTS}/shared"), json!(null)).await.0, 200);
    // Reads notice soon, and sooner after a 404.
    clock.advance_and_settle(Duration::from_secs(2)).await;
    assert_eq!(there.call("GET", &format!("/clusters/shared{MAPS}"), json!(null)).await.0, 200);
    there.call("POST", &format!("/clusters/shared{MAPS}"), config_map("b")).await;
    clock.settle().await;
    assert!(watch.ended() && two.tenants() == ["default"]);
    here.post(TENANTS, named("shared")).await;
    there.post(&format!("/clusters/shared{MAPS}"), config_map("a")).await;
    let watch = there.watch(&format!("/clusters/shared{MAPS}")).await.collect();
    assert_eq!(here.call("DELETE", &format!("{TENANTS}/shared"), json!(null)).await.0, 200);
    clock.advance_and_settle(Duration::from_secs(11)).await;
    there.call("GET", &format!("/clusters/shared{MAPS}"), json!(null)).await;
    clock.settle().await;
    assert_eq!(there.call("GET", &format!("/clusters/shared{MAPS}"), json!(null)).await.0, 404);
    assert!(watch.ended() && two.tenants() == ["default"]);
    // A tenant created again under the name is another one; writes notice at once.
    here.post(TENANTS, named("shared")).await;
    let handle = of(&two.find_tenant("shared").await.unwrap());
    there.get("/clusters/shared/api/v1/namespaces/default").await;
    handle.post(MAPS, config_map("a")).await;
    assert_eq!(here.call("DELETE", &format!("{TENANTS}/shared"), json!(null)).await.0, 200);
    here.post(TENANTS, named("shared")).await;
    for (method, path, body) in [
        ("POST", MAPS.to_owned(), config_map("late")),
        ("PATCH", "/api/v1/namespaces/default".to_owned(), json!({"metadata": {"labels": {"a": "b"}}})),
        ("DELETE", "/api/v1/namespaces/default/serviceaccounts/default".to_owned(), json!(null)),
    ] {
        let (status, body) = handle.call(method, &path, body).await;
        assert_eq!(
            (status, &body["message"]),
            (404, &json!("tenants.k1s.dev \"shared\" not found")),
            "{method}"
        );
    }
    assert_eq!(names(&there.get(&format!("/clusters/shared{MAPS}")).await), ["kube-root-ca.crt"]);
    // A new handle is bound to the current tenant.
    for make in [true, false] {
        assert_eq!(here.call("DELETE", &format!("{TENANTS}/shared"), json!(null)).await.0, 200);
        here.post(TENANTS, named("shared")).await;
        let handle = if make { two.tenant("shared").await } else { two.find_tenant("shared").await };
        of(&handle.unwrap()).post(MAPS, config_map("new")).await;
    }
}

#[tokio::test]
async fn interrupted_creations_and_deletions_are_completed() {
    let store = Spy::new();
    let (_, client) = guarded(store.clone()).await;
    let phase = || async { client.get(&format!("{TENANTS}/half")).await["status"]["phase"].clone() };
    // In the middle of a creation.
    store.let_through(Some(6));
    assert_eq!(client.call("POST", TENANTS, named("half")).await.0, 500);
    store.let_through(None);
    assert_eq!(phase().await, "Creating");
    assert_eq!(client.call("GET", "/clusters/half/api/v1/namespaces", json!(null)).await.0, 404);
    assert_eq!(client.call("POST", TENANTS, named("half")).await.0, 201);
    assert_eq!(names(&client.get("/clusters/half/api/v1/namespaces").await).len(), 4);
    // In the middle of a deletion.
    for number in 0..200 {
        client.post(&format!("/clusters/half{MAPS}"), config_map(&format!("map-{number}"))).await;
    }
    store.let_through(Some(2));
    assert_eq!(client.call("DELETE", &format!("{TENANTS}/half"), json!(null)).await.0, 500);
    store.let_through(None);
    assert_eq!(phase().await, "Terminating");
    assert!(keys(&*store, "half").await > 1);
    assert_eq!(client.call("GET", "/clusters/half/api/v1/namespaces", json!(null)).await.0, 404);
    let (status, body) = client.call("POST", TENANTS, named("half")).await;
    assert_eq!((status, &body["reason"]), (409, &json!("AlreadyExists")));
    assert!(body["message"].as_str().unwrap().starts_with("object is being deleted: "), "{body}");
    let mut creating = ServerOptions::default();
    creating.create_tenants = true;
    let creating = common::client(&common::bare(&Env::system(), store.clone(), creating).await);
    let (status, _) = creating.call("POST", &format!("/clusters/half{MAPS}"), config_map("a")).await;
    assert_eq!(status, 409);
    assert_eq!(client.call("DELETE", &format!("{TENANTS}/half"), json!(null)).await.0, 200);
    assert_eq!(keys(&*store, "half").await, 0);
    client.post(TENANTS, named("half")).await;
}

#[tokio::test]
async fn several_servers_start_on_an_empty_store() {
    let store = Spy::new();
    let servers = join_all((0..4).map(|_| guarded(store.clone()))).await;
    let clients = servers.iter().map(|(_, client)| client);
    let made = join_all(clients.clone().map(|client| client.call("POST", TENANTS, named("one")))).await;
    let mut answers: Vec<u16> = made.into_iter().map(|(status, _)| status).collect();
    answers.sort_unstable();
    assert_eq!(answers, [201, 409, 409, 409]);
    for (number, client) in clients.enumerate() {
        for tenant in ["default", "one"] {
            let path = format!("/clusters/{tenant}{MAPS}");
            client.post(&path, config_map(&format!("map-{number}"))).await;
            assert_eq!(names(&client.get(&path).await).len(), number + 2);
            let service = format!("/clusters/{tenant}/api/v1/namespaces/default/services/kubernetes");
            assert_eq!(client.get(&service).await["spec"]["clusterIP"], "10.0.0.1");
        }
    }
}

#[tokio::test]
async fn a_tenant_of_an_older_version_can_be_used() {
    let store = Arc::new(MemoryStore::default());
    let (env, options) = (Env::system(), ServerOptions::default());
    let client = common::client(&common::bare(&env, store.clone(), options.clone()).await);
    client.post(TENANTS, named("old")).await;
    let key = "/old/k1s/ready/";
    let mark = store.get(key.as_bytes(), None).await.unwrap().entry.unwrap();
    store.update(key.into(), "1".into(), mark.revision).await.unwrap();
    let client = common::client(&common::bare(&env, store.clone(), options).await);
    client.post(&format!("/clusters/old{MAPS}"), config_map("a")).await;
    let old = client.get(&format!("{TENANTS}/old")).await;
    assert_eq!((&old["status"]["phase"], old["metadata"].get("uid")), (&json!("Active"), None));
    assert_eq!(client.call("DELETE", &format!("{TENANTS}/old"), json!(null)).await.0, 200);
    assert_eq!(keys(&*store, "old").await, 0);
}
