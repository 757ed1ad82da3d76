//! Who may do what beyond roles: the chain of authorizers, nodes, admission of access, and strangers at every endpoint.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod hostile;
mod nodes;
mod plugins;
mod restriction;
mod webhook;

use std::sync::Arc;

use common::Client;
use k1s_env::Env;
use k1s_server::{AdmissionPlugins, ApiServer, AuthorizationMode, AuthorizationOptions, ServerOptions, User};
use k1s_store::MemoryStore;
use serde_json::{Value, json};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// The options of a server with these plugins beside the default ones.
fn with_plugins(names: &[&str]) -> ServerOptions {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut options = ServerOptions::default();
    options.admission_plugins = AdmissionPlugins::with(&names, &[]).unwrap();
    options
}

/// The chain of these modes.
fn modes(names: &[&str]) -> AuthorizationOptions {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    AuthorizationOptions::of_modes(&names, None).unwrap()
}

async fn start(options: ServerOptions) -> ApiServer {
    ApiServer::new(Env::system(), Arc::new(MemoryStore::default()), options).await.unwrap()
}

/// A client that is this user.
fn by(server: &ApiServer, user: User) -> Client {
    common::client(&server.as_user(user))
}

fn admin(server: &ApiServer) -> Client {
    by(server, User::admin())
}

fn node(name: &str) -> User {
    User::new(format!("system:node:{name}"), &["system:nodes"])
}

fn message(answer: &Value) -> &str {
    answer["message"].as_str().unwrap_or_default()
}

/// The status of an access review for a user with these attributes of a resource.
async fn review(admin: &Client, user: &str, groups: &[&str], attributes: Value) -> Value {
    let spec = json!({"user": user, "groups": groups, "resourceAttributes": attributes});
    admin.post(REVIEWS, json!({ "spec": spec })).await["status"].take()
}

#[tokio::test]
async fn authorizers_decide_in_their_order() {
    let pods = json!({"verb": "list", "resource": "pods", "namespace": "default"});
    for (names, allowed, reason) in [
        (&["AlwaysDeny"][..], false, "alwaysdeny: Everything is forbidden."),
        (&["AlwaysDeny", "AlwaysAllow"], true, ""),
        (&["RBAC"], false, ""),
        (&["RBAC", "AlwaysAllow"], true, ""),
        (&["Node", "RBAC", "AlwaysDeny"], false, "alwaysdeny: Everything is forbidden."),
    ] {
        let mut options = ServerOptions::default();
        options.authorization = modes(names);
        let server = start(options).await;
        let status = review(&admin(&server), "alice", &["system:authenticated"], pods.clone()).await;
        assert_eq!(status["allowed"], allowed, "{names:?}");
        assert_eq!(status["reason"].as_str().unwrap_or_default(), reason, "{names:?}");
        // Administrators may do everything, and nobody who is asked in reviews gets more than in requests.
        assert_eq!(admin(&server).call("GET", "/api/v1/pods", Value::Null).await.0, 200);
        let (code, _) = by(&server, User::new("alice", &[])).call("GET", "/api/v1/pods", Value::Null).await;
        assert_eq!(code == 200, allowed, "{names:?}");
    }
    let mut options = ServerOptions::default();
    options.authorization = AuthorizationMode::AlwaysDeny.into();
    let server = start(options).await;
    let (code, answer) = by(&server, User::new("alice", &[])).call("GET", "/api/v1/pods", Value::Null).await;
    assert_eq!(
        (code, message(&answer)),
        (
            403,
            "pods is forbidden: User \"alice\" cannot list resource \"pods\" in API group \"\" at the cluster scope: alwaysdeny: Everything is forbidden."
        )
    );
}

#[tokio::test]
async fn rules_of_a_chain_are_those_of_all_authorizers() {
    let mut options = ServerOptions::default();
    options.authorization = modes(&["Node", "RBAC"]);
    let server = start(options).await;
    let rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let of = async |user: User| {
        by(&server, user).post(rules, json!({"spec": {"namespace": "default"}})).await["status"].take()
    };
    let alice = of(User::new("alice", &[])).await;
    assert_eq!((&alice["incomplete"], alice.get("evaluationError")), (&json!(false), None));
    let kubelet = of(node("n")).await;
    assert_eq!(
        (&kubelet["incomplete"], &kubelet["evaluationError"]),
        (&json!(true), &json!("node authorizer does not support user rule resolution"))
    );
}

/// A role or a binding that is changed counts for the next request, also while others change and are asked about.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_of_roles_count_for_the_next_request_under_load() {
    let server = start(ServerOptions::default()).await;
    let env = Env::system();
    let mut tasks = Vec::new();
    for number in 0..8 {
        let server = server.clone();
        tasks.push(env.spawn("changes", async move {
            let (admin, name) = (admin(&server), format!("user{number}"));
            let user = by(&server, User::new(&*name, &[]));
            admin.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
            let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{name}");
            let rules =
                |verbs: &[&str]| json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}]);
            let mut role = json!({"metadata": {"name": "r"}});
            role["rules"] = rules(&["get"]);
            admin.post(&format!("{rbac}/roles"), role).await;
            let binding = json!({"metadata": {"name": "b"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}]});
            let secrets = format!("/api/v1/namespaces/{name}/secrets");
            let read = async || user.call("GET", &secrets, Value::Null).await.0;
            for _ in 0..25 {
                admin.post(&format!("{rbac}/rolebindings"), binding.clone()).await;
                assert_eq!(read().await, 403, "the role does not allow it");
                let grant = json!({ "rules": rules(&["list"]) });
                assert_eq!(admin.call("PATCH", &format!("{rbac}/roles/r"), grant).await.0, 200);
                assert_eq!(read().await, 200, "the role was changed");
                assert_eq!(admin.call("DELETE", &format!("{rbac}/rolebindings/b"), Value::Null).await.0, 200);
                assert_eq!(read().await, 403, "the binding was deleted");
                let revoke = json!({ "rules": rules(&["get"]) });
                assert_eq!(admin.call("PATCH", &format!("{rbac}/roles/r"), revoke).await.0, 200);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}
