//! Who may do what: roles and bindings, their bootstrap, and everything that must not get around them.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::stream;
use k1s_env::Env;
use k1s_server::{ApiServer, AuthorizationMode, ServerOptions, Tokens, User};
use k1s_store::{
    GetResult, MemoryStore, Range, RangeResult, Result as StoreResult, Revision, Stats, Store, Txn, Watch,
    WatchRequest,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::common::{self, Client, bare};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn options() -> ServerOptions {
    let mut tokens = Tokens::new();
    tokens.insert("root", User::admin());
    tokens.insert("alice", User::new("alice", &["devs"]));
    tokens.insert("bob", User::new("bob", &[]));
    let mut options = ServerOptions::default();
    options.tokens = tokens;
    options
}

/// A server whose requests without credentials are anonymous, and a client that is its administrator.
async fn server(store: Arc<dyn Store>) -> (Client, Client) {
    let server = ApiServer::new(Env::system(), store, options()).await.unwrap();
    (common::client(&server), common::client(&server.as_user(User::admin())))
}

async fn as_user(client: &Client, token: &str, method: &str, path: &str, body: Value) -> (u16, Value) {
    let bearer = format!("Bearer {token}");
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let headers = [("authorization", &*bearer), ("content-type", kind)];
    let answer = client.send(method, path, &headers, body.to_string()).await;
    (answer.status, serde_json::from_slice(&answer.body).unwrap_or(Value::Null))
}

fn role(name: &str, rules: Value) -> Value {
    let mut role = json!({"metadata": {"name": name}});
    role["rules"] = rules;
    role
}

fn binding(name: &str, kind: &str, role: &str, subject: (&str, &str)) -> Value {
    json!({"metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": subject.0, "name": subject.1}]})
}

fn reader() -> Value {
    json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}])
}

fn message(answer: &Value) -> &str {
    answer["message"].as_str().unwrap_or_default()
}

/// A store that several servers write to. Its watches can be held up: they say nothing of what happens until they are let go.
struct Shared {
    inner: Arc<dyn Store>,
    held: watch::Receiver<bool>,
}

#[async_trait]
impl Store for Shared {
    async fn revision(&self) -> StoreResult<Revision> {
        self.inner.revision().await
    }

    async fn get(&self, key: &[u8], at: Option<Revision>) -> StoreResult<GetResult> {
        self.inner.get(key, at).await
    }

    async fn range(&self, range: Range) -> StoreResult<RangeResult> {
        self.inner.range(range).await
    }

    async fn txn(&self, txn: Txn) -> StoreResult<Revision> {
        self.inner.txn(txn).await
    }

    async fn watch(&self, request: WatchRequest) -> StoreResult<Watch> {
        let watch = self.inner.watch(request).await?;
        let progress = watch.progress_handle();
        let items = stream::unfold((watch, self.held.clone()), async |(mut watch, mut held)| {
            let item = watch.next().await?;
            held.wait_for(|held| !held).await.ok()?;
            Some((item, (watch, held)))
        });
        Ok(Watch::new(items, progress))
    }

    async fn compact(&self, revision: Revision) -> StoreResult<()> {
        self.inner.compact(revision).await
    }

    async fn stats(&self) -> StoreResult<Stats> {
        self.inner.stats().await
    }

    async fn close(&self) -> StoreResult<()> {
        self.inner.close().await
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// However late a server learns of what another one writes: it waits for roles and bindings, and for nothing else.
#[tokio::test]
async fn a_right_that_another_server_takes_away_is_waited_for() {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let (hold, held) = watch::channel(false);
    let at_once = watch::channel(false);
    let (_, admin) = server(Arc::new(Shared { inner: inner.clone(), held: at_once.1 })).await;
    let (late, _) = server(Arc::new(Shared { inner, held })).await;
    let (roles, bindings) =
        (format!("{RBAC}/namespaces/default/roles"), format!("{RBAC}/namespaces/default/rolebindings"));
    let ask = async |path: &str| {
        let answer = as_user(&late, "alice", "GET", path, Value::Null);
        Env::system().timeout(Duration::from_millis(300), answer).await.ok().map(|answer| answer.0)
    };
    admin.post(&roles, role("r", reader())).await;
    admin.post(&bindings, binding("b", "Role", "r", ("Group", "devs"))).await;
    admin.post(MAPS, json!({"metadata": {"name": "old"}})).await;
    assert_eq!((ask(MAPS).await, ask(&format!("{MAPS}/old")).await), (Some(200), Some(200)));

    hold.send_replace(true);
    admin.post(MAPS, json!({"metadata": {"name": "new"}})).await;
    admin.call("DELETE", &format!("{MAPS}/old"), Value::Null).await;
    // A cache that does not know of these is not read.
    assert_eq!(
        (ask(&format!("{MAPS}/new")).await, ask(&format!("{MAPS}/old")).await),
        (Some(200), Some(404))
    );
    admin.call("DELETE", &format!("{bindings}/b"), Value::Null).await;
    assert_eq!(ask(&format!("{MAPS}/new")).await, None, "nobody knows yet what it may");
    hold.send_replace(false);
    assert_eq!((ask(&format!("{MAPS}/new")).await, ask(MAPS).await), (Some(403), Some(403)));
}

#[tokio::test]
async fn a_change_of_a_role_counts_for_the_next_request() {
    let (outside, admin) = server(Arc::new(MemoryStore::default())).await;
    let (roles, bindings) =
        (format!("{RBAC}/namespaces/default/roles"), format!("{RBAC}/namespaces/default/rolebindings"));
    let get = async || as_user(&outside, "alice", "GET", &format!("{MAPS}/x"), Value::Null).await.0;
    for _ in 0..20 {
        assert_eq!(get().await, 403);
        admin.post(&roles, role("r", reader())).await;
        assert_eq!(get().await, 403);
        admin.post(&bindings, binding("b", "Role", "r", ("Group", "devs"))).await;
        assert_eq!(get().await, 404);
        admin.call("PATCH", &format!("{roles}/r"), json!({"rules": []})).await;
        assert_eq!(get().await, 403);
        admin.call("PATCH", &format!("{roles}/r"), json!({"rules": reader()})).await;
        assert_eq!(get().await, 404);
        admin.call("DELETE", &format!("{roles}/r"), Value::Null).await;
        let (code, answer) = as_user(&outside, "alice", "GET", &format!("{MAPS}/x"), Value::Null).await;
        assert_eq!(code, 403);
        assert_eq!(
            message(&answer),
            "configmaps \"x\" is forbidden: User \"alice\" cannot get resource \"configmaps\" in API group \"\" in the namespace \"default\": rbac: RBAC: role.rbac.authorization.k8s.io \"r\" not found"
        );
        admin.call("DELETE", &format!("{bindings}/b"), Value::Null).await;
    }
}

#[tokio::test]
async fn the_initial_roles_are_written_when_they_are_needed_and_repaired_after_a_restart() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let (outside, admin) = server(store.clone()).await;
    let policy = async || {
        let range = Range::prefix(bytes::Bytes::from_static(b"/default/rbac.authorization.k8s.io/"));
        store.range(range).await.unwrap().entries.len()
    };
    admin.get("/api/v1/namespaces").await;
    admin.post(MAPS, json!({"metadata": {"name": "a"}})).await;
    admin.call("DELETE", "/api/v1/namespaces/kube-node-lease", Value::Null).await;
    for path in ["/healthz", "/version", "/api", MAPS] {
        outside.send("GET", path, &[], "").await;
    }
    assert_eq!(policy().await, 0, "neither administrators nor strangers need roles");
    assert_eq!(as_user(&outside, "alice", "GET", "/api", Value::Null).await.0, 200);
    assert_eq!(policy().await, 73 + 54 + 7 + 7);
    let edit = admin.get(&format!("{RBAC}/clusterroles/edit")).await;
    assert!(edit["rules"].as_array().unwrap().len() > 20, "{edit}");
    assert_eq!(edit["metadata"]["managedFields"][1]["manager"], "clusterrole-aggregation-controller");
    // Anybody may change them, or opt out of their repair.
    let discovery = format!("{RBAC}/clusterroles/system:discovery");
    admin
        .call("PATCH", &discovery, json!({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/mine"]}]}))
        .await;
    assert_eq!(as_user(&outside, "alice", "GET", "/api", Value::Null).await.0, 403);
    let off = json!({"rules": null, "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}});
    admin.call("PATCH", &format!("{RBAC}/clusterroles/system:basic-user"), off).await;
    admin.call("DELETE", &format!("{RBAC}/clusterroles/system:aggregate-to-edit"), Value::Null).await;

    let (outside, admin) = server(store.clone()).await;
    assert_eq!(as_user(&outside, "alice", "GET", "/api", Value::Null).await.0, 200);
    let repaired = admin.get(&discovery).await;
    assert_eq!(repaired["rules"][0]["nonResourceURLs"], json!(["/mine"]));
    assert_eq!(admin.get(&format!("{RBAC}/clusterroles/system:basic-user")).await["rules"], json!(null));
    let again = admin.get(&format!("{RBAC}/clusterroles/edit")).await;
    assert_eq!(again["rules"], edit["rules"], "aggregated again");
    assert_eq!(policy().await, 141);
}

#[tokio::test]
async fn nobody_gets_around_the_rules() {
    let (outside, admin) = server(Arc::new(MemoryStore::default())).await;
    admin.post(MAPS, json!({"metadata": {"name": "a"}})).await;
    let account = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let foreign = "/clusters/other/api/v1/namespaces/default/serviceaccounts/default/token";
    admin.post("/k1s/v1/tenants", json!({"metadata": {"name": "other"}})).await;
    let token = async |path: &str| {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        admin.post(path, body).await["status"]["token"].as_str().unwrap().to_owned()
    };
    let (own, foreign) =
        (format!("Bearer {}", token(account).await), format!("Bearer {}", token(foreign).await));
    // Every kind of endpoint, with what it may answer to somebody without rights.
    let endpoints = [
        ("GET", MAPS),
        ("GET", "/api/v1/configmaps?watch=true"),
        ("POST", MAPS),
        ("PUT", "/api/v1/namespaces/default/configmaps/a"),
        ("PATCH", "/api/v1/namespaces/default/configmaps/a"),
        ("DELETE", "/api/v1/namespaces/default/configmaps/a"),
        ("DELETE", MAPS),
        ("GET", "/api/v1/watch/configmaps"),
        ("GET", "/api/v1/namespaces/default/pods/p/log"),
        ("POST", "/api/v1/namespaces/default/pods/p/eviction"),
        ("POST", account),
        ("GET", "/apis/apps/v1/namespaces/default/deployments/d/scale"),
        ("PUT", "/api/v1/namespaces/default/finalize"),
        ("GET", "/apis/none.example.com/v1/things"),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("GET", "/metrics"),
        ("GET", "/healthz/ping"),
        ("GET", "/"),
        ("GET", "/k1s/v1/tenants"),
        ("POST", "/k1s/v1/tenants"),
        ("DELETE", "/k1s/v1/tenants/other"),
        ("GET", "/k1s/v1/metadata"),
        ("GET", "/clusters/other/api/v1/namespaces"),
        ("GET", "/clusters/none/api/v1/namespaces"),
        ("OPTIONS", "/api/v1/namespaces"),
        ("HEAD", "/healthz"),
    ];
    let smuggled: &[&[(&str, &str)]] = &[
        &[],
        &[("x-remote-user", "admin"), ("x-remote-group", "system:masters")],
        &[("impersonate-user", "admin")],
        &[("impersonate-user", "admin"), ("impersonate-group", "system:masters")],
        &[("impersonate-group", "system:masters")],
        &[("impersonate-user", ""), ("impersonate-uid", "1")],
        &[("impersonate-extra-a", "b")],
    ];
    for who in [None, Some("Bearer alice"), Some(&*own), Some(&*foreign), Some("Bearer nobody")] {
        for (method, path) in endpoints {
            for more in smuggled {
                let mut headers: Vec<(&str, &str)> = more.to_vec();
                headers.extend(who.map(|who| ("authorization", who)));
                // Only the first one counts.
                headers.push((
                    "authorization",
                    if who.is_some() { "Bearer root" } else { "Basic cm9vdDpyb290" },
                ));
                let code = outside.send(method, path, &headers, "{}").await.status;
                let elsewhere = path.starts_with("/clusters/");
                let in_other = path.starts_with("/clusters/other/");
                let expected: &[u16] = match who {
                    Some("Bearer nobody") => &[401],
                    Some(who) if who == own && elsewhere => &[401],
                    Some(who) if who == foreign && !in_other => &[401],
                    // Groups without a user are not understood.
                    _ if more.iter().all(|(name, _)| *name != "x-remote-user") && !more.is_empty() => {
                        &[403, 400]
                    }
                    _ => &[403],
                };
                assert!(expected.contains(&code), "{method} {path} {headers:?}: {code}");
            }
        }
    }
    assert_eq!(admin.get(&format!("{MAPS}/a")).await["metadata"]["name"], "a");
}

#[tokio::test]
async fn an_owner_of_one_tenant_has_no_rights_in_another_nor_over_the_server() {
    let (outside, admin) = server(Arc::new(MemoryStore::default())).await;
    admin.post("/k1s/v1/tenants", json!({"metadata": {"name": "other"}})).await;
    let owner = binding("alice", "ClusterRole", "cluster-admin", ("User", "alice"));
    admin.post(&format!("{RBAC}/clusterrolebindings"), owner).await;
    let call = async |headers: &[(&str, &str)], method: &str, path: &str| {
        let mut all = vec![("authorization", "Bearer alice")];
        all.extend(headers);
        outside.send(method, path, &all, "{}").await.status
    };
    let masters = [("impersonate-user", "x"), ("impersonate-group", "system:masters")];
    for headers in [&[][..], &masters] {
        assert_eq!(call(headers, "GET", "/api/v1/secrets").await, 200);
        for (method, path) in [
            ("GET", "/clusters/other/api/v1/secrets"),
            ("GET", "/k1s/v1/tenants"),
            ("GET", "/k1s/v1/tenants/other"),
            ("DELETE", "/k1s/v1/tenants/other"),
        ] {
            assert_eq!(call(headers, method, path).await, 403, "{method} {path} {headers:?}");
        }
    }
}

#[tokio::test]
async fn nobody_grants_more_than_they_have() {
    let (outside, admin) = server(Arc::new(MemoryStore::default())).await;
    let roles = format!("{RBAC}/namespaces/default/roles");
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let admin_of_ns = binding("alice", "ClusterRole", "admin", ("User", "alice"));
    admin.post(&bindings, admin_of_ns).await;
    let alice =
        async |method: &str, path: &str, body: Value| as_user(&outside, "alice", method, path, body).await;
    let nodes = json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]);
    // Created by a PUT, a POST or an apply.
    let (code, answer) = alice("PUT", &format!("{roles}/r"), role("r", nodes.clone())).await;
    assert_eq!(code, 403, "{answer}");
    assert!(message(&answer).ends_with(
        "is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\"]}"
    ), "{answer}");
    let mut applied = role("r", nodes.clone());
    applied["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
    applied["kind"] = "Role".into();
    let headers = [("authorization", "Bearer alice"), ("content-type", "application/apply-patch+yaml")];
    let path = format!("{roles}/r?fieldManager=m");
    assert_eq!(outside.send("PATCH", &path, &headers, applied.to_string()).await.status, 403);
    assert_eq!(alice("POST", &format!("{roles}?dryRun=All"), role("r", nodes.clone())).await.0, 403);
    // A role that exceeds hers: she can change neither it nor a binding of it, but its owners and finalizers.
    admin.post(&roles, role("big", nodes)).await;
    admin.post(&bindings, binding("big", "Role", "big", ("User", "bob"))).await;
    for (path, change) in [
        (format!("{roles}/big"), json!({"metadata": {"labels": {"a": "b"}}})),
        (format!("{bindings}/big"), json!({"subjects": []})),
    ] {
        assert_eq!(alice("PATCH", &path, change).await.0, 403, "{path}");
        let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}]);
        let (code, answer) = alice("PATCH", &path, json!({"metadata": {"ownerReferences": owner}})).await;
        assert_eq!(code, 200, "{answer}");
    }
    // With the verbs, she may.
    let verbs = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["bind", "escalate"], "resourceNames": ["big"]}]);
    admin.post(&roles, role("verbs", verbs)).await;
    admin.post(&bindings, binding("verbs", "Role", "verbs", ("User", "alice"))).await;
    assert_eq!(
        alice("PATCH", &format!("{roles}/big"), json!({"metadata": {"labels": {"a": "b"}}})).await.0,
        200
    );
    assert_eq!(alice("POST", &bindings, binding("mine", "Role", "big", ("User", "alice"))).await.0, 201);
    // Dangling bindings of hers are told.
    admin.post(&bindings, binding("dangling", "Role", "nope", ("User", "alice"))).await;
    let secrets = json!([{"apiGroups": ["x"], "resources": ["y"], "verbs": ["z"]}]);
    let (_, answer) = alice("POST", &roles, role("s", secrets)).await;
    assert!(message(&answer).contains("; resolution errors: ["), "{answer}");
}

#[tokio::test]
async fn with_always_allow_everybody_who_is_authenticated_may_do_everything() {
    let mut options = options();
    options.authorization = AuthorizationMode::AlwaysAllow.into();
    let server = bare(&Env::system(), Arc::new(MemoryStore::default()), options).await;
    let outside = common::client(&server.as_user(User {
        name: "system:anonymous".into(),
        groups: vec!["system:unauthenticated".into()],
        ..User::default()
    }));
    assert_eq!(as_user(&outside, "alice", "GET", "/api/v1/secrets", Value::Null).await.0, 200);
    assert_eq!(outside.send("GET", "/api/v1/secrets", &[], "").await.status, 403);
    assert_eq!(as_user(&outside, "alice", "GET", "/k1s/v1/tenants", Value::Null).await.0, 403);
}
