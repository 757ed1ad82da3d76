//! Requests that are refused, that fail, or that are somebody else's; and what is never recorded.

use std::{
    sync::Arc,
    task::{Context, Waker},
};

use async_trait::async_trait;
use k1s_store::{
    GetResult, MemoryStore, Range, RangeResult, Result, Revision, Stats, Store, Txn, Watch, WatchRequest,
};
use serde_json::{Value, json};

use crate::{ALICE, CONFIGMAPS, ROOT, Stage, USUAL, configmap, policy};

const REASON: &str = "authorization.k8s.io/reason";
const DECISION: &str = "authorization.k8s.io/decision";

#[tokio::test]
async fn a_forbidden_request_says_so() {
    let stage = Stage::new(policy(&["level: Metadata"])).await;
    assert_eq!(stage.nobody.send("GET", CONFIGMAPS, &[ALICE], "").await.status, 403);
    let (stages, event) = stage.one();
    assert_eq!(stages, USUAL);
    let message = "configmaps is forbidden: User \"alice\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\"";
    assert_eq!(
        event["responseStatus"],
        json!({"metadata": {}, "status": "Failure", "message": message, "reason": "Forbidden",
            "details": {"kind": "configmaps"}, "code": 403})
    );
    assert_eq!(event["annotations"], json!({DECISION: "forbid", REASON: ""}));
    assert_eq!(stage.nobody.send("GET", CONFIGMAPS, &[], "").await.status, 403);
    let (_, event) = stage.one();
    let anonymous = json!({"username": "system:anonymous", "groups": ["system:unauthenticated"]});
    assert_eq!((&event["user"], &event["annotations"][DECISION]), (&anonymous, &json!("forbid")));
    assert_eq!(stage.nobody.send("GET", "/k1s/v1/tenants", &[ALICE], "").await.status, 403);
    let (_, event) = stage.one();
    assert_eq!(event["objectRef"], json!({"resource": "tenants", "apiGroup": "k1s.dev", "apiVersion": "v1"}));
    assert_eq!(event["annotations"][DECISION], "forbid");
}

#[tokio::test]
async fn administrators_are_allowed_without_a_reason() {
    let stage = Stage::new(policy(&["level: Metadata"])).await;
    assert_eq!(stage.nobody.send("GET", CONFIGMAPS, &[ROOT], "").await.status, 200);
    stage.client.server.close_audit().await;
    let (_, event) = stage.one();
    assert_eq!(event["user"]["username"], "root");
    assert_eq!(event["annotations"], json!({DECISION: "allow", REASON: ""}));
}

#[tokio::test]
async fn a_request_that_is_not_authenticated_has_one_event() {
    let stage = Stage::new(policy(&["{level: None, users: [alice]}", "level: RequestResponse"])).await;
    let wrong = ("authorization", "Bearer wrong-token-5d2e");
    assert_eq!(stage.nobody.send("GET", CONFIGMAPS, &[wrong], "").await.status, 401);
    let (stages, event) = stage.one();
    assert_eq!(stages, ["ResponseStarted"]);
    assert_eq!(event["user"], json!({}));
    assert_eq!(
        event["responseStatus"],
        json!({"metadata": {}, "status": "Failure", "message": "Unauthorized", "reason": "Unauthorized", "code": 401})
    );
    let late = format!("{CONFIGMAPS}?timeout=soon");
    assert_eq!(stage.nobody.send("GET", &late, &[ROOT], "").await.status, 400);
    let (stages, event) = stage.one();
    assert_eq!((stages, &event["responseStatus"]["code"]), (vec!["ResponseStarted".into()], &json!(400)));
}

#[tokio::test]
async fn the_impersonated_user_is_named_beside_the_sender() {
    let stage = Stage::new(policy(&["level: Metadata"])).await;
    let headers = [
        ROOT,
        ("impersonate-user", "bob"),
        ("impersonate-group", "qa"),
        ("impersonate-extra-example.com%2fscopes", "view"),
    ];
    assert_eq!(stage.nobody.send("GET", CONFIGMAPS, &headers, "").await.status, 403);
    let (_, event) = stage.one();
    assert_eq!(event["user"]["username"], "root");
    assert_eq!(
        event["impersonatedUser"],
        json!({"username": "bob", "groups": ["qa", "system:authenticated"], "extra": {"example.com/scopes": ["view"]}})
    );
    assert_eq!(event["authenticationMetadata"], json!({"impersonationConstraint": "impersonate:user-info"}));
    assert_eq!(event["annotations"][DECISION], "forbid");
    // A sender that may not impersonate.
    let headers = [ALICE, ("impersonate-user", "bob")];
    assert_eq!(stage.nobody.send("GET", CONFIGMAPS, &headers, "").await.status, 403);
    let (stages, event) = stage.one();
    assert_eq!(stages, USUAL);
    assert_eq!((&event["user"]["username"], event.get("impersonatedUser")), (&json!("alice"), None));
    assert_eq!(event.get("annotations"), None);
}

#[tokio::test]
async fn the_policy_sees_the_sender_and_not_the_impersonated_user() {
    let stage = Stage::new(policy(&["{level: None, users: [root]}", "level: Metadata"])).await;
    stage.nobody.send("GET", "/version", &[ROOT, ("impersonate-user", "bob")], "").await;
    assert_eq!(stage.events(), Vec::<Value>::new());
}

#[tokio::test]
async fn credentials_are_never_recorded() {
    let stage = Stage::new(policy(&["level: Metadata"])).await;
    stage
        .client
        .post(
            "/api/v1/namespaces/default/serviceaccounts",
            json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "robot"}}),
        )
        .await;
    let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let issued = stage.client.post(path, request).await;
    let token = issued["status"]["token"].as_str().unwrap().to_owned();
    let bearer = format!("Bearer {token}");
    stage.nobody.send("GET", CONFIGMAPS, &[("authorization", &bearer)], "").await;
    let review =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    stage.client.post("/apis/authentication.k8s.io/v1/tokenreviews", review).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"p": "hunter2-8c1d"}});
    stage.client.post("/api/v1/namespaces/default/secrets", secret).await;
    stage.nobody.send("GET", &format!("{CONFIGMAPS}?token={token}&access_token={token}"), &[ALICE], "").await;
    stage.nobody.send("GET", "/api", &[("authorization", "Bearer wrong-token-5d2e")], "").await;
    stage
        .nobody
        .send("GET", "/api", &[("authorization", "Basic cm9vdDpodW50ZXIy"), ("cookie", "session-3e9f")], "")
        .await;
    stage.client.server.close_audit().await;
    let text = stage.text();
    assert!(
        text.contains("system:serviceaccount:default:robot") && text.contains("token=REDACTED"),
        "{text}"
    );
    let (head, signature) = token.rsplit_once('.').unwrap();
    for secret in [
        head,
        signature,
        "alice-token",
        "root-token",
        "wrong-token",
        "cm9vdDpodW50ZXIy",
        "session-3e9f",
        "hunter2",
        "aHVudGVyMi04YzFk",
    ] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[tokio::test]
async fn requests_for_tenants_name_them() {
    let create = |options: &mut k1s_server::ServerOptions| options.create_tenants = true;
    let rules = policy(&["{level: Metadata, omitStages: [RequestReceived]}"]);
    let stage = Stage::with(rules, Arc::new(MemoryStore::default()), create).await;
    stage.client.get(&format!("{CONFIGMAPS}/kube-root-ca.crt")).await;
    let (_, event) = stage.one();
    assert_eq!(event["annotations"].get("k1s.dev/tenant"), None);
    stage.client.post(&format!("/clusters/acme{CONFIGMAPS}"), configmap("a")).await;
    let (_, event) = stage.one();
    assert_eq!(event["annotations"]["k1s.dev/tenant"], "acme");
    assert_eq!(event["requestURI"], format!("/clusters/acme{CONFIGMAPS}"));
    // The policy, and the reference, are about the path within the tenant.
    assert_eq!(event["objectRef"]["resource"], "configmaps");
    let bound = stage.client.server.find_tenant("acme").await.unwrap();
    let inside = crate::client(&bound.as_user(k1s_server::User::admin()));
    inside.get(&format!("{CONFIGMAPS}/a")).await;
    let (_, event) = stage.one();
    assert_eq!(
        (&event["annotations"]["k1s.dev/tenant"], &event["requestURI"]),
        (&json!("acme"), &json!(format!("{CONFIGMAPS}/a")))
    );
    // One that does not exist, too.
    assert_eq!(stage.nobody.send("GET", "/clusters/other/api/v1/pods", &[ALICE], "").await.status, 403);
    assert_eq!(stage.one().1["annotations"]["k1s.dev/tenant"], "other");
}

/// A store that panics, or never answers, when the key of an object with a certain name is read.
struct Trap(MemoryStore);

#[async_trait]
impl Store for Trap {
    async fn revision(&self) -> Result<Revision> {
        self.0.revision().await
    }

    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<GetResult> {
        assert!(!key.ends_with(b"/trap"), "stepped into the trap");
        if key.ends_with(b"/swamp") {
            std::future::pending::<()>().await;
        }
        self.0.get(key, at).await
    }

    async fn range(&self, range: Range) -> Result<RangeResult> {
        self.0.range(range).await
    }

    async fn txn(&self, txn: Txn) -> Result<Revision> {
        self.0.txn(txn).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch> {
        self.0.watch(request).await
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        self.0.compact(revision).await
    }

    async fn stats(&self) -> Result<Stats> {
        self.0.stats().await
    }

    async fn health(&self) -> Result<()> {
        self.0.health().await
    }

    async fn close(&self) -> Result<()> {
        self.0.close().await
    }
}

async fn trapped() -> Stage {
    Stage::with(policy(&["level: Metadata"]), Arc::new(Trap(MemoryStore::default())), |_| {}).await
}

#[tokio::test]
async fn a_panic_is_a_stage() {
    let stage = trapped().await;
    assert_eq!(stage.client.send("GET", &format!("{CONFIGMAPS}/trap"), &[], "").await.status, 500);
    let (stages, event) = stage.one();
    assert_eq!(stages, ["RequestReceived", "Panic"]);
    assert_eq!(
        event["responseStatus"],
        json!({"metadata": {}, "status": "Failure", "message": "APIServer panic'd: stepped into the trap",
            "reason": "InternalError", "code": 500})
    );
}

#[tokio::test]
async fn a_request_whose_client_went_away_is_complete() {
    let stage = trapped().await;
    let path = format!("{CONFIGMAPS}/swamp");
    let mut request = Box::pin(stage.client.send("GET", &path, &[], ""));
    // Its event is written by another task, and then it waits in the swamp.
    let mut cx = Context::from_waker(Waker::noop());
    while stage.text().is_empty() {
        assert!(request.as_mut().poll(&mut cx).is_pending());
        stage.client.env.yield_now().await;
    }
    assert!(request.as_mut().poll(&mut cx).is_pending());
    stage.events();
    drop(request);
    stage.client.server.close_audit().await;
    let (stages, event) = stage.one();
    assert_eq!(stages, ["ResponseComplete"]);
    assert_eq!(event["responseStatus"]["message"], "context canceled");
}
