//! Authentication and authorization, through the HTTP API: tokens of service accounts and reviews here, the other
//! authenticators in the modules.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod accounts;
mod bootstrap_tokens;
mod front_proxy;
mod issuer;
mod oidc;
mod upstream;
mod webhook;

use std::{sync::Arc, time::Duration};

use http::{Method, Request};
use http_body_util::BodyExt as _;
use k1s_env::Env;
use k1s_server::{ApiServer, Body, ServerOptions, Tokens, User};
use k1s_store::MemoryStore;
use serde_json::{Value, json};
use tower::Service as _;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SELF: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// A client: a server, and the headers of its requests.
#[derive(Clone)]
struct Client {
    server: ApiServer,
    headers: Vec<(&'static str, String)>,
}

impl Client {
    /// A client without credentials.
    fn of(server: &ApiServer) -> Client {
        Client { server: server.clone(), headers: Vec::new() }
    }

    fn admin(server: &ApiServer) -> Client {
        Client::of(&server.as_user(User::admin()))
    }

    fn with(&self, name: &'static str, value: impl Into<String>) -> Client {
        let mut client = self.clone();
        client.headers.push((name, value.into()));
        client
    }

    fn bearer(&self, token: &str) -> Client {
        self.with("authorization", format!("Bearer {token}"))
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let body = if body.is_null() { Body::empty() } else { body.to_string().into_bytes().into() };
        let answer = self.server.clone().call(request.body(body).unwrap()).await.unwrap();
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.call(Method::GET, path, Value::Null).await
    }

    async fn create(&self, path: &str, body: Value) -> Value {
        let (code, answer) = self.call(Method::POST, path, body).await;
        assert_eq!(code, 201, "{path}: {answer}");
        answer
    }

    /// The status code of a request that needs authentication.
    async fn code(&self) -> u16 {
        self.call(Method::POST, SELF, json!({})).await.0
    }

    /// A service account of the default namespace and a token of it.
    async fn robot(&self, spec: Value) -> String {
        self.create(ACCOUNTS, json!({"metadata": {"name": "robot"}})).await;
        self.token(spec).await
    }

    async fn token(&self, spec: Value) -> String {
        let answer = self.create(&format!("{ACCOUNTS}/robot/token"), json!({ "spec": spec })).await;
        answer["status"]["token"].as_str().unwrap().to_owned()
    }
}

async fn server() -> ApiServer {
    server_with(ServerOptions::default()).await
}

async fn server_with(options: ServerOptions) -> ApiServer {
    let store = Arc::new(MemoryStore::default());
    ApiServer::new(Env::system(), store, options).await.unwrap()
}

#[tokio::test]
async fn a_service_account_token_identifies_its_account() {
    let server = server().await;
    let token = Client::admin(&server).robot(json!({})).await;
    let robot = Client::of(&server).bearer(&token);
    let review = robot.create(SELF, json!({})).await;
    let user = &review["status"]["userInfo"];
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    assert_eq!(
        user["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    let id = user["extra"]["authentication.kubernetes.io/credential-id"][0].as_str().unwrap();
    assert!(id.starts_with("JTI="), "{id}");
    let (code, answer) = robot.get("/api/v1/namespaces/default/configmaps").await;
    assert_eq!(code, 403);
    assert_eq!(
        answer["message"],
        "configmaps is forbidden: User \"system:serviceaccount:default:robot\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    // Credentials take precedence over the default user of an in-process client.
    assert_eq!(Client::admin(&server).bearer(&token).get("/api/v1/nodes").await.0, 403);
}

#[tokio::test]
async fn a_token_is_invalid_after_its_account_is_deleted_or_recreated() {
    let server = server().await;
    let admin = Client::admin(&server);
    let token = admin.robot(json!({})).await;
    let robot = Client::of(&server).bearer(&token);
    assert_eq!(robot.code().await, 201);
    assert_eq!(admin.call(Method::DELETE, &format!("{ACCOUNTS}/robot"), Value::Null).await.0, 200);
    assert_eq!(robot.code().await, 401);
    admin.create(ACCOUNTS, json!({"metadata": {"name": "robot"}})).await;
    assert_eq!(robot.code().await, 401);
    assert_eq!(robot.get("/healthz").await.0, 401);
}

#[tokio::test]
async fn a_token_is_invalid_after_its_bound_object_is_deleted() {
    let server = server().await;
    let admin = Client::admin(&server);
    admin.robot(json!({})).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    admin.create(secrets, json!({"metadata": {"name": "s"}})).await;
    admin.create("/api/v1/nodes", json!({"metadata": {"name": "s"}})).await;
    let bound = |kind: &str| json!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": "s"}});
    for (kind, path) in [("Secret", secrets), ("Node", "/api/v1/nodes")] {
        let robot = Client::of(&server).bearer(&admin.token(bound(kind)).await);
        assert_eq!(robot.code().await, 201, "{kind}");
        assert_eq!(admin.call(Method::DELETE, &format!("{path}/s"), Value::Null).await.0, 200);
        assert_eq!(robot.code().await, 401, "{kind}");
    }
    let request = json!({"spec": bound("Secret")});
    let (code, answer) = admin.call(Method::POST, &format!("{ACCOUNTS}/robot/token"), request).await;
    assert_eq!((code, &answer["message"]), (404, &json!("secrets \"s\" not found")));
}

#[tokio::test]
async fn a_token_is_valid_in_one_tenant_only() {
    let server = server().await;
    let (one, two) = (server.tenant("one").await.unwrap(), server.tenant("two").await.unwrap());
    let token = Client::admin(&one).robot(json!({})).await;
    Client::admin(&two).robot(json!({})).await;
    assert_eq!(Client::of(&one).bearer(&token).code().await, 201);
    assert_eq!(Client::of(&two).bearer(&token).code().await, 401);
    let by_path = Client::of(&server).bearer(&token);
    for (tenant, code) in [("one", 201), ("two", 401), ("default", 401), ("nobody", 401)] {
        let path = format!("/clusters/{tenant}{SELF}");
        assert_eq!(by_path.call(Method::POST, &path, json!({})).await.0, code, "{tenant}");
    }
    assert_eq!(server.tenants(), ["default", "one", "two"]);
    let review = Client::admin(&two).create(TOKEN_REVIEWS, json!({"spec": {"token": token}})).await;
    assert_eq!(review["status"], json!({"user": {}, "error": "invalid bearer token"}));
}

#[tokio::test]
async fn a_changed_token_is_rejected() {
    let server = server().await;
    let token = Client::admin(&server).robot(json!({})).await;
    assert_eq!(Client::of(&server).bearer(&token).code().await, 201);
    let parts: Vec<&str> = token.split('.').collect();
    assert_eq!(parts.len(), 3);
    let flipped = |text: &str| {
        let (first, rest) = text.split_at(1);
        format!("{}{rest}", if first == "A" { "B" } else { "A" })
    };
    for changed in [
        format!("{}.{}.{}", parts[0], parts[1], flipped(parts[2])),
        format!("{}.{}.{}", parts[0], flipped(parts[1]), parts[2]),
        format!("{}.{}.{}", flipped(parts[0]), parts[1], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{token}x"),
        "a.b.c".into(),
        "nobody".into(),
    ] {
        assert_eq!(Client::of(&server).bearer(&changed).code().await, 401);
    }
}

#[tokio::test]
async fn a_token_expires() {
    let (env, clock) = Env::simulated(1);
    let store = Arc::new(MemoryStore::new(env.clone(), k1s_store::MemoryOptions::default()));
    let server = ApiServer::new(env, store, ServerOptions::default()).await.unwrap();
    let token = Client::admin(&server).robot(json!({"expirationSeconds": 600})).await;
    let robot = Client::of(&server).bearer(&token);
    assert_eq!(robot.code().await, 201);
    clock.advance(Duration::from_secs(600));
    assert_eq!(robot.code().await, 201, "a minute of clock skew is allowed");
    clock.advance(Duration::from_secs(61));
    assert_eq!(robot.code().await, 401);
    let review = Client::admin(&server).create(TOKEN_REVIEWS, json!({"spec": {"token": token}})).await;
    assert_eq!(review["status"]["error"], "[invalid bearer token, service account token has expired]");
}

#[tokio::test]
async fn a_token_for_another_audience_is_valid_only_in_its_review() {
    let server = server().await;
    let admin = Client::admin(&server);
    let token = admin.robot(json!({"audiences": ["vault"]})).await;
    assert_eq!(Client::of(&server).bearer(&token).code().await, 401);
    let review = async |audiences: Value| {
        admin.create(TOKEN_REVIEWS, json!({"spec": {"token": token, "audiences": audiences}})).await["status"]
            .take()
    };
    let status = review(json!(["vault", "other"])).await;
    assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &json!(["vault"])));
    assert_eq!(
        review(json!(["other"])).await,
        json!({"user": {}, "error": "[invalid bearer token, token audiences [\"vault\"] is invalid for the target audiences [\"other\"]]"})
    );
}

#[tokio::test]
async fn tokens_survive_a_restart_and_are_accepted_by_replicas() {
    let store = Arc::new(MemoryStore::default());
    let start =
        async || ApiServer::new(Env::system(), store.clone(), ServerOptions::default()).await.unwrap();
    let (first, replica) = (start().await, start().await);
    let token = Client::admin(&first).robot(json!({})).await;
    assert_eq!(Client::of(&replica).bearer(&token).code().await, 201);
    first.shutdown();
    drop(first);
    let second = start().await;
    assert_eq!(Client::of(&second).bearer(&token).code().await, 201);
    let keys = async |server: &ApiServer| Client::admin(server).get("/openid/v1/jwks").await.1;
    assert_eq!(keys(&second).await, keys(&replica).await);
    assert_eq!(keys(&second).await["keys"][0]["alg"], "ES256");
}

#[tokio::test]
async fn tokens_have_the_lifetimes_of_kubernetes() {
    let server = server().await;
    let admin = Client::admin(&server);
    admin.robot(json!({})).await;
    let path = format!("{ACCOUNTS}/robot/token");
    let cases = [
        (json!({"expirationSeconds": 599}), 422),
        (json!({"expirationSeconds": 600}), 201),
        (json!({"expirationSeconds": 4_294_967_296_u64}), 201),
        (json!({"expirationSeconds": 4_294_967_297_u64}), 422),
        (json!({"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}}), 400),
    ];
    for (spec, expected) in cases {
        let (code, answer) = admin.call(Method::POST, &path, json!({ "spec": spec })).await;
        assert_eq!(code, expected, "{spec}: {answer}");
    }
    let request = json!({"metadata": {"uid": "other"}});
    assert_eq!(admin.call(Method::POST, &path, request).await.0, 409);
    assert_eq!(admin.get(&path).await.0, 405);
}

#[tokio::test]
async fn the_issuer_publishes_its_keys() {
    let server = server().await;
    let token = Client::admin(&server).robot(json!({})).await;
    let robot = Client::of(&server).bearer(&token);
    let (code, configuration) = robot.get("/.well-known/openid-configuration").await;
    assert_eq!(code, 200);
    assert_eq!(configuration["issuer"], "https://kubernetes.default.svc.cluster.local");
    assert_eq!(configuration["id_token_signing_alg_values_supported"], json!(["ES256"]));
    assert_eq!(robot.get("/openid/v1/jwks").await.1["keys"][0]["crv"], "P-256");
    assert_eq!(Client::of(&server).get("/openid/v1/jwks").await.0, 403);
}

#[tokio::test]
async fn access_reviews_agree_with_authorization() {
    let mut options = ServerOptions::default();
    options.tokens = Tokens::parse("t,alice,7,devs").unwrap();
    let server = ApiServer::new(Env::system(), Arc::new(MemoryStore::default()), options).await.unwrap();
    let (admin, alice) = (Client::admin(&server), Client::of(&server).bearer("t"));
    let pods = json!({"verb": "get", "resource": "pods", "namespace": "default"});
    let mine = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = json!({"spec": {"resourceAttributes": pods}});
    assert_eq!(alice.create(mine, review.clone()).await["status"], json!({"allowed": false}));
    assert_eq!(admin.create(mine, review).await["status"], json!({"allowed": true}));
    let masters = json!({"spec": {"user": "bob", "groups": ["system:masters"], "resourceAttributes": pods}});
    assert_eq!(admin.create(ACCESS_REVIEWS, masters.clone()).await["status"]["allowed"], true);
    assert_eq!(alice.call(Method::POST, ACCESS_REVIEWS, masters).await.0, 403);
    let wrong = json!({"spec": {"resourceAttributes": pods}});
    let (code, answer) = admin.call(Method::POST, ACCESS_REVIEWS, wrong).await;
    assert_eq!(code, 422);
    assert_eq!(
        answer["message"],
        ".authorization.k8s.io \"\" is invalid: spec.user: Invalid value: \"\": at least one of user or group must be specified"
    );
    let rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let status = alice.create(rules, json!({"spec": {"namespace": "default"}})).await["status"].take();
    assert_eq!(
        (&status["incomplete"], status["resourceRules"].as_array().map(Vec::len)),
        (&json!(false), Some(2))
    );
}

#[tokio::test]
async fn administrators_may_impersonate_users_with_their_permissions() {
    let server = server().await;
    let admin = Client::admin(&server);
    let (code, answer) = admin.with("impersonate-user", "bob").get("/api/v1/nodes/n").await;
    assert_eq!(code, 403);
    assert_eq!(
        answer["message"],
        "nodes \"n\" is forbidden: User \"bob\" cannot get resource \"nodes\" in API group \"\" at the cluster scope"
    );
    let master = admin.with("impersonate-user", "bob").with("impersonate-group", "system:masters");
    assert_eq!(master.get("/api/v1/nodes/n").await.0, 404);
    let review = master.with("impersonate-extra-scopes", "view").create(SELF, json!({})).await;
    assert_eq!(
        review["status"]["userInfo"],
        json!({"username": "bob", "groups": ["system:masters", "system:authenticated"], "extra": {"scopes": ["view"]}})
    );
    let nobody = Client::of(&server).with("impersonate-user", "bob");
    assert_eq!(nobody.get("/api/v1/nodes/n").await.0, 403);
}
