//! Tokens that a webhook knows.

use std::sync::atomic::Ordering;

use k1s_server::TokenWebhookOptions;

use super::{
    issuer::{Issuer, Page},
    *,
};

/// A server that asks this webhook about tokens.
pub(crate) async fn asking(webhook: &Issuer, change: impl FnOnce(&mut TokenWebhookOptions)) -> ApiServer {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webhook.kubeconfig");
    std::fs::write(folder.path().join("ca.pem"), webhook.authority.certificate()).unwrap();
    let file = format!(
        "{{current-context: c, contexts: [{{name: c, context: {{cluster: w, user: u}}}}], clusters: [{{name: w, cluster: {{server: '{}/review', certificate-authority: ca.pem}}}}], users: [{{name: u, user: {{token: for-the-webhook}}}}]}}",
        webhook.url
    );
    std::fs::write(&path, file).unwrap();
    let mut options = ServerOptions::default();
    let mut webhook = TokenWebhookOptions::new(&path);
    change(&mut webhook);
    options.authentication.webhook = Some(webhook);
    server_with(options).await
}

pub(crate) fn answer(version: &str, status: &Value) -> Page {
    Page::Body(json!({"apiVersion": format!("authentication.k8s.io/{version}"), "kind": "TokenReview", "status": status}).to_string())
}

pub(crate) const OURS: &str = "https://kubernetes.default.svc.cluster.local";

pub(crate) async fn review(server: &ApiServer, spec: Value) -> Value {
    Client::admin(server).create(TOKEN_REVIEWS, json!({ "spec": spec })).await["status"].take()
}

#[tokio::test]
async fn a_webhook_says_whose_a_token_is() {
    let webhook = Issuer::start(&[]).await;
    let bob = json!({"authenticated": true, "user": {"username": "bob", "uid": "u1", "groups": ["devs"], "extra": {"a": ["b"]}}});
    webhook.pages.set("/review", answer("v1beta1", &bob));
    let server = asking(&webhook, |_| {}).await;
    let client = Client::of(&server).bearer("opaque");
    let user = json!({"username": "bob", "uid": "u1", "groups": ["devs", "system:authenticated"], "extra": {"a": ["b"]}});
    assert_eq!(client.create(SELF, json!({})).await["status"]["userInfo"], user);
    let (asked, authorization) = webhook.pages.last.lock().clone();
    assert_eq!(authorization, "Bearer for-the-webhook");
    assert_eq!(
        (&asked["apiVersion"], &asked["kind"]),
        (&json!("authentication.k8s.io/v1beta1"), &json!("TokenReview"))
    );
    assert_eq!(asked["spec"], json!({"token": "opaque", "audiences": [OURS]}));
    // Remembered; other audiences are another question.
    assert_eq!(client.code().await, 201);
    assert_eq!(webhook.pages.count("/review"), 1);
    let status = review(&server, json!({"token": "opaque", "audiences": ["vault", OURS]})).await;
    assert_eq!((&status["user"], &status["audiences"]), (&user, &json!([OURS])));
    assert_eq!(webhook.pages.count("/review"), 2);
    // Of a token for nobody here, the audiences decide.
    assert_eq!(
        review(&server, json!({"token": "opaque", "audiences": ["vault"]})).await,
        json!({"user": {}, "error": "invalid bearer token"})
    );
    let for_vault = json!({"authenticated": true, "audiences": ["vault"], "user": {"username": "bob"}});
    webhook.pages.set("/review", answer("v1beta1", &for_vault));
    assert_eq!(Client::of(&server).bearer("vaults").code().await, 401);
    assert_eq!(
        review(&server, json!({"token": "vaults", "audiences": ["vault"]})).await["authenticated"],
        true
    );
    // A user of all tenants, and nobody to those that do not exist.
    server.tenant("one").await.unwrap();
    webhook.pages.set("/review", answer("v1beta1", &bob));
    assert_eq!(client.call(Method::POST, &format!("/clusters/one{SELF}"), json!({})).await.0, 201);
    assert_eq!(client.get("/clusters/nobody/api").await.0, 403);
    // Tokens that are known here are not sent anywhere.
    let before = webhook.pages.count("/review");
    let admin = Client::admin(&server);
    let robot = admin.robot(json!({})).await;
    assert_eq!(Client::of(&server).bearer(&robot).code().await, 201);
    assert_eq!(webhook.pages.count("/review"), before);
}

#[tokio::test]
async fn concurrent_reviews_of_a_token_are_one_call() {
    let webhook = Issuer::start(&[]).await;
    webhook.pages.set("/review", Page::Hang);
    let server = asking(&webhook, |options| options.version = "v1".into()).await;
    let clients: Vec<_> = (0..50).map(|_| Client::of(&server).bearer("opaque")).collect();
    let all = futures_util::future::join_all(clients.iter().map(Client::code));
    let release = async {
        while webhook.pages.in_flight.load(Ordering::SeqCst) == 0 {
            Env::system().yield_now().await;
        }
        webhook
            .pages
            .set("/review", answer("v1", &json!({"authenticated": true, "user": {"username": "bob"}})));
    };
    let (codes, ()) = futures_util::future::join(all, release).await;
    assert_eq!(codes, vec![201; 50]);
    assert_eq!(webhook.pages.count("/review"), 1);
}

#[tokio::test]
async fn a_webhook_that_fails_knows_no_token() {
    let webhook = Issuer::start(&[]).await;
    let server = asking(&webhook, |options| options.version = "v1".into()).await;
    let error = async |token: &str| {
        review(&server, json!({ "token": token })).await["error"].as_str().unwrap().to_owned()
    };
    webhook.pages.set("/review", answer("v1", &json!({"authenticated": false})));
    assert_eq!(error("a").await, "invalid bearer token");
    webhook.pages.set("/review", answer("v1", &json!({"authenticated": false, "error": "revoked"})));
    assert_eq!(error("b").await, "[invalid bearer token, revoked]");
    assert_eq!(Client::of(&server).bearer("b").get("/api").await.1["message"], "Unauthorized");
    webhook.pages.set("/review", Page::Status(403));
    assert_eq!(error("c").await, "[invalid bearer token, unknown]");
    for wrong in [
        Page::Body("<html>".into()),
        Page::Body("{}".into()),
        answer("v1beta1", &json!({"authenticated": true, "user": {"username": "eve"}})),
    ] {
        webhook.pages.set("/review", wrong);
        assert!(
            error("d").await.starts_with(
                "[invalid bearer token, the webhook for tokens answered with something else than "
            )
        );
        assert_eq!(Client::of(&server).bearer("d").code().await, 401);
    }
    // A failure is not remembered, and one that may pass is tried again.
    webhook.pages.set("/review", answer("v1", &json!({"authenticated": true, "user": {"username": "bob"}})));
    assert_eq!(Client::of(&server).bearer("d").code().await, 201);
    webhook.pages.set("/review", Page::Status(503));
    let before = webhook.pages.count("/review");
    let flaky = Client::of(&server).bearer("e");
    let recover = async {
        while webhook.pages.count("/review") == before {
            Env::system().yield_now().await;
        }
        webhook
            .pages
            .set("/review", answer("v1", &json!({"authenticated": true, "user": {"username": "bob"}})));
    };
    let (code, ()) = futures_util::future::join(flaky.code(), recover).await;
    assert_eq!(code, 201);
    // No version that does not exist.
    let mut options = ServerOptions::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k");
    std::fs::write(&path, "{current-context: c, contexts: [{name: c, context: {cluster: w}}], clusters: [{name: w, cluster: {server: 'https://localhost:1'}}]}").unwrap();
    let mut webhook = TokenWebhookOptions::new(&path);
    webhook.version = "v2".into();
    options.authentication.webhook = Some(webhook);
    let refused = ApiServer::new(Env::system(), Arc::new(MemoryStore::default()), options).await.unwrap_err();
    assert!(
        refused.message.ends_with(
            "unsupported authentication webhook version \"v2\", supported versions are \"v1\", \"v1beta1\""
        ),
        "{}",
        refused.message
    );
}
