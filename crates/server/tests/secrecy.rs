//! Credentials appear neither in what the server logs, at any level, nor in its responses.

#![cfg(feature = "tls")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;
#[path = "auth/issuer.rs"]
#[allow(dead_code, reason = "a part is used here")]
mod issuer;
#[path = "common/listening.rs"]
mod listening;

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http_body_util::BodyExt as _;
use issuer::{Issuer, Page, RSA_1, RSA_3, signed};
use k1s_env::Env;
use k1s_server::{TokenWebhookOptions, User};
use parking_lot::Mutex;
use serde_json::{Value, json};

const SELF: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// What all threads of this process log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn has(&self, text: &str) -> bool {
        memchr::memmem::find(&self.0.lock(), text.as_bytes()).is_some()
    }
}

/// A credential as a client sends it.
struct Sent {
    what: &'static str,
    /// The header, if it is one.
    header: String,
    /// The query of the path.
    query: String,
    /// What must not appear anywhere.
    secret: String,
    is_good: bool,
}

fn bearer(what: &'static str, token: &str, secret: &str, is_good: bool) -> Sent {
    let header = format!("authorization: Bearer {token}\r\n");
    Sent { what, header, query: String::new(), secret: secret.to_owned(), is_good }
}

fn header(what: &'static str, header: String, secret: &str) -> Sent {
    Sent { what, header: header + "\r\n", query: String::new(), secret: secret.to_owned(), is_good: false }
}

/// The part of a JSON Web Token that is of no use to anybody but its owner.
fn signature(token: &str) -> &str {
    token.rsplit('.').next().unwrap()
}

/// The same token with another signature.
fn forged(token: &str) -> String {
    let signature = signature(token);
    let turned: String = signature.chars().rev().collect();
    token.replace(signature, &turned)
}

async fn post(client: &common::Client, path: &str, body: Value) -> Value {
    let answer = client.send("POST", path, &[], body.to_string().into_bytes()).await;
    assert_eq!(answer.status, 201, "{path}: {}", answer.text());
    answer.json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_are_neither_logged_nor_returned() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone());
    tracing::subscriber::set_global_default(subscriber.finish()).unwrap();

    let (oidc, webhook) = (Issuer::start(&[("a", RSA_1)]).await, Issuer::start(&[]).await);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webhook.kubeconfig");
    std::fs::write(folder.path().join("ca.pem"), webhook.authority.certificate()).unwrap();
    let file = json!({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "w", "user": "u"}}],
        "clusters": [{"name": "w", "cluster": {"server": format!("{}/review", webhook.url), "certificate-authority": "ca.pem"}}],
        "users": [{"name": "u", "user": {"token": "servers-own-5d0c11"}}]});
    std::fs::write(&path, file.to_string()).unwrap();
    let reviewed = |status: Value| {
        let review =
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status});
        webhook.pages.set("/review", Page::Body(review.to_string()));
    };
    reviewed(json!({"authenticated": false}));
    let jwt = oidc.config();
    let served = listening::served(None, |options| {
        options.tokens.insert("static-good-83c1f0", User::new("alice", &[]));
        options.authentication.bootstrap_tokens = true;
        options.authentication.configuration.jwt = vec![jwt];
        let mut webhook = TokenWebhookOptions::new(&path);
        webhook.version = "v1".into();
        options.authentication.webhook = Some(webhook);
    })
    .await;
    let admin = common::client(&served.server.as_user(User::admin()));
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    post(&admin, accounts, json!({"metadata": {"name": "robot"}})).await;
    let account = async || {
        let issued = post(&admin, &format!("{accounts}/robot/token"), json!({"spec": {}})).await;
        issued["status"]["token"].as_str().unwrap().to_owned()
    };
    let encoded = |text: &str| BASE64_STANDARD.encode(text);
    let data = json!({"token-id": encoded("foobar"), "token-secret": encoded("bootstrapgood123"),
        "usage-bootstrap-authentication": encoded("true")});
    let secret = json!({"metadata": {"name": "bootstrap-token-foobar"}, "type": "bootstrap.kubernetes.io/token", "data": data});
    post(&admin, "/api/v1/namespaces/kube-system/secrets", secret).await;
    let robot = account().await;
    let of_another = |field: &str, value: Value| {
        let mut claims = oidc.claims();
        claims[field] = value;
        signed("a", RSA_1, &claims)
    };
    let jane = signed("a", RSA_1, &oidc.claims());
    let (expired, elsewhere) = (of_another("exp", json!(1)), of_another("aud", json!("other")));
    let unknown_key = signed("z", RSA_3, &oidc.claims());
    let (forged_robot, forged_jane) = (forged(&robot), forged(&jane));
    let jwt = |what, token: &str, is_good| bearer(what, token, signature(token), is_good);
    let basic = BASE64_STANDARD.encode("alice:basic-pass-91ab");
    let mut all = vec![
        bearer("a static token", "static-good-83c1f0", "static-good-83c1f0", true),
        bearer("an unknown token", "static-bad-83c1f0", "static-bad-83c1f0", false),
        jwt("a service account's", &robot, true),
        jwt("a forged service account's", &forged_robot, false),
        bearer("a bootstrap token", "foobar.bootstrapgood123", "bootstrapgood123", true),
        bearer("a wrong bootstrap token", "foobar.bootstrapbad1234", "bootstrapbad1234", false),
        jwt("an issuer's", &jane, true),
        jwt("an expired one", &expired, false),
        jwt("one for another audience", &elsewhere, false),
        jwt("one by an unknown key", &unknown_key, false),
        jwt("a forged one of an issuer", &forged_jane, false),
        header("Basic", format!("authorization: Basic {basic}"), &basic),
        header("Basic in plain text", "authorization: Basic alice:plain-pass-77de".into(), "plain-pass-77de"),
        header("an unknown scheme", "authorization: Token scheme-2b9e55".into(), "scheme-2b9e55"),
        header("no scheme", "authorization: naked-66a0b2".into(), "naked-66a0b2"),
        header(
            "two headers",
            "authorization: Bearer twice-1d7c\r\nauthorization: Bearer twice-2e8d".into(),
            "twice-",
        ),
        header("not ASCII", "authorization: Bearer \u{e4}-latin-3f9a".into(), "latin-3f9a"),
        header(
            "a subprotocol of WebSocket",
            "sec-websocket-protocol: base64url.bearer.authorization.k8s.io.c29ja2V0LXNlY3JldA".into(),
            "c29ja2V0LXNlY3JldA",
        ),
    ];
    let query =
        |what, query: &str, secret: &str| Sent { query: query.into(), ..header(what, String::new(), secret) };
    all.push(query("a query", "access_token=static-query-b7f2", "static-query-b7f2"));
    all.push(query("a query with more", "limit=500&access_token=static-query-c8a3", "static-query-c8a3"));
    all.push(query("a query that cannot be parsed", "limit=x&access_token=query-%zz-d9b4", "d9b4"));
    common::eventually("the issuer is known", || async {
        served.ask(request("POST", SELF, &bearer("", &jane, "", true))).await.0 == 201
    })
    .await;
    for sent in &all {
        let code = examine(&served, sent).await;
        assert_eq!(code == 201, sent.is_good, "{}: {code}", sent.what);
    }
    // Tokens that a webhook knows, does not know, or fails about.
    let known = bearer("a webhook's", "webhook-good-4c2d", "webhook-good-4c2d", true);
    reviewed(json!({"authenticated": true, "user": {"username": "bob"}}));
    assert_eq!(examine(&served, &known).await, 201);
    reviewed(json!({"authenticated": false, "error": "never heard of it"}));
    let unknown = bearer("one that a webhook refuses", "webhook-bad-4c2d", "webhook-bad-4c2d", false);
    assert_eq!(examine(&served, &unknown).await, 401);
    webhook.pages.set("/review", Page::Status(500));
    let failing = bearer("a failing webhook's", "webhook-down-4c2d", "webhook-down-4c2d", false);
    // One that fails is asked again after a while: few requests are enough.
    assert_eq!(review(&served, &failing).await, 401);
    webhook.pages.set("/review", Page::Body("{".into()));
    let broken = bearer("a broken webhook's", "webhook-torn-4c2d", "webhook-torn-4c2d", false);
    assert_eq!(review(&served, &broken).await, 401);
    all.extend([known, unknown, failing, broken]);
    webhook.pages.set("/review", Page::Body("{}".into()));
    // Reviews of all of them; the response repeats the token, which is the request's own.
    for sent in all.iter().filter(|sent| sent.header.starts_with("authorization: Bearer ")) {
        let token = sent.header.lines().next().unwrap().trim_start_matches("authorization: Bearer ");
        post(&admin, "/apis/authentication.k8s.io/v1/tokenreviews", json!({"spec": {"token": token}})).await;
    }
    // A token whose account is gone.
    admin.call("DELETE", &format!("{accounts}/robot"), Value::Null).await;
    assert_eq!(examine(&served, &jwt("one of nobody", &robot, false)).await, 401);
    served.stop().await;

    for line in ["a token is not valid", "TRACE"] {
        assert!(log.has(line), "the log is complete: {line}");
    }
    let servers_own = bearer("the server's own", "", "servers-own-5d0c11", true);
    for sent in all.iter().chain([&servers_own]) {
        assert!(!log.has(&sent.secret), "{} is logged", sent.what);
    }
    assert!(!log.has("basic-pass-91ab") && !log.has(&encoded("bootstrapgood123")));
}

fn request(method: &str, path: &str, sent: &Sent) -> Vec<u8> {
    let query = if sent.query.is_empty() { String::new() } else { format!("?{}", sent.query) };
    let body = if method == "POST" { "{}" } else { "" };
    let text = format!(
        "{method} {path}{query} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        sent.header,
        body.len()
    );
    text.into_bytes()
}

/// Sends a credential with requests of several kinds; none of the responses contains it. Returns the status of [`review`].
async fn examine(served: &listening::Served, sent: &Sent) -> u16 {
    for path in [
        "/api/v1/namespaces",
        "/api/v1/namespaces/default/pods/x",
        "/clusters/nobody/api",
        "/no/such",
        "/livez",
    ] {
        let (code, answer) = served.ask(request("GET", path, sent)).await;
        assert!(code >= 200, "{}: {answer}", sent.what);
        assert!(!answer.contains(&sent.secret), "{} is in the response to {path}: {answer}", sent.what);
    }
    review(served, sent).await
}

/// The status of a review of oneself.
async fn review(served: &listening::Served, sent: &Sent) -> u16 {
    let (code, answer) = served.ask(request("POST", SELF, sent)).await;
    assert!(!answer.contains(&sent.secret), "{} is in the response: {answer}", sent.what);
    code
}
