//! The webhook authorizer: reviews that it sends, answers that it remembers, failures, and its configuration file.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use k1s_env::Env;
use k1s_server::{
    ApiServer, AuthorizationMode, AuthorizationOptions, AuthorizerOptions, ServerOptions, User,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::{admin, by, common, message, review, start};

/// An authorization webhook over plain HTTP, and a kubeconfig that leads to it.
struct Webhook {
    folder: tempfile::TempDir,
    reviews: Arc<Mutex<Vec<Value>>>,
}

impl Webhook {
    /// `answer`: status code and `status` of the review, of its `spec`.
    async fn start(answer: impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static) -> Webhook {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = format!(
            "current-context: w\ncontexts: [{{name: w, context: {{cluster: w, user: w}}}}]\n\
             clusters: [{{name: w, cluster: {{server: 'http://{address}/authorize'}}}}]\n\
             users: [{{name: w, user: {{token: secret}}}}]"
        );
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig).unwrap();
        let reviews: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (kept, answer) = (reviews.clone(), Arc::new(answer));
        let env = Env::system();
        let serving = env.clone();
        drop(env.spawn("webhook", async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (kept, answer) = (kept.clone(), answer.clone());
                drop(serving.spawn("webhook connection", async move {
                    while let Some((head, body)) = request(&mut stream).await {
                        assert!(head.to_lowercase().contains("authorization: bearer secret"), "{head}");
                        let mut review: Value = serde_json::from_slice(&body).unwrap();
                        kept.lock().push(review.clone());
                        let (code, status) = answer(&review["spec"]);
                        review["status"] = status;
                        let body = review.to_string();
                        let head = format!(
                            "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                            body.len()
                        );
                        if stream.write_all(format!("{head}{body}").as_bytes()).await.is_err() {
                            return;
                        }
                    }
                }));
            }
        }));
        Webhook { folder, reviews }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// The text of a file with this webhook and RBAC behind it; `more` are further fields of the webhook.
    fn config(&self, name: &str, policy: &str, more: &str) -> String {
        format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n\
             - type: Webhook\n  name: {name}\n  webhook:\n    timeout: 3s\n    subjectAccessReviewVersion: v1\n    \
             failurePolicy: {policy}\n    connectionInfo: {{type: KubeConfigFile, kubeConfigFile: '{}'}}\n{more}\
             - {{type: RBAC, name: rbac}}\n",
            self.kubeconfig().display()
        )
    }

    fn file(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("authorization.yaml");
        std::fs::write(&path, text).unwrap();
        path
    }

    fn count(&self) -> usize {
        self.reviews.lock().len()
    }
}

/// Reads a request.
async fn request(stream: &mut tokio::net::TcpStream) -> Option<(String, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(read[..end].to_vec()).unwrap();
            let length = head.to_lowercase().lines().find_map(|line| {
                line.strip_prefix("content-length: ").map(|length| length.parse::<usize>().unwrap())
            });
            let body = read[end + 4..].to_vec();
            if body.len() >= length.unwrap_or_default() {
                return Some((head, body));
            }
        }
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&part[..count]),
        }
    }
}

async fn with_file(path: &Path) -> ApiServer {
    let mut options = ServerOptions::default();
    options.authorization = AuthorizationOptions::from_file(path).unwrap();
    start(options).await
}

fn alice() -> User {
    let mut alice = User::new("alice", &["devs"]);
    alice.extra = vec![("scope".into(), vec!["a".into()])];
    alice
}

#[tokio::test]
async fn a_webhook_is_asked_with_all_that_is_known_of_a_request() {
    let webhook = Webhook::start(|spec| match spec["resourceAttributes"]["verb"].as_str() {
        Some("list") => (200, json!({"allowed": true, "reason": "because"})),
        Some("delete") => (200, json!({"allowed": false, "denied": true, "reason": "never"})),
        _ => (200, json!({"allowed": false, "reason": "no idea"})),
    })
    .await;
    let server = with_file(&webhook.file(&webhook.config("w", "NoOpinion", ""))).await;
    let client = by(&server, alice());
    let path = "/apis/apps/v1/namespaces/default/deployments?labelSelector=a%20in%20(b),c&fieldSelector=metadata.name!%3Dx";
    assert_eq!(client.call("GET", path, Value::Null).await.0, 200);
    assert_eq!(
        webhook.reviews.lock()[0],
        json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {},
            "spec": {
                "resourceAttributes": {"namespace": "default", "verb": "list", "group": "apps", "version": "v1",
                    "resource": "deployments",
                    "fieldSelector": {"requirements": [{"key": "metadata.name", "operator": "NotIn", "values": ["x"]}]},
                    "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]},
                        {"key": "c", "operator": "Exists"}]}},
                "user": "alice", "groups": ["devs", "system:authenticated"], "extra": {"scope": ["a"]}},
            "status": {"allowed": false}})
    );
    let (code, answer) =
        client.call("DELETE", "/apis/apps/v1/namespaces/default/deployments/d", Value::Null).await;
    assert_eq!(
        (code, message(&answer)),
        (
            403,
            "deployments.apps \"d\" is forbidden: User \"alice\" cannot delete resource \"deployments\" in API group \"apps\" in the namespace \"default\": never"
        )
    );
    // Without an opinion of the webhook, RBAC decides.
    let (code, answer) =
        client.call("GET", "/apis/apps/v1/namespaces/default/deployments/d", Value::Null).await;
    assert_eq!(code, 403);
    assert!(message(&answer).ends_with(": w: no idea"), "{answer}");
    assert_eq!(client.call("GET", "/version", Value::Null).await.0, 200);
    let status = review(&admin(&server), "bob", &[], json!({"verb": "delete", "resource": "pods"})).await;
    assert_eq!(status, json!({"allowed": false, "denied": true, "reason": "never"}));
}

#[tokio::test]
async fn answers_are_remembered_and_another_tenant_is_another_question() {
    let webhook = Webhook::start(|_| (200, json!({"allowed": true}))).await;
    let server = with_file(&webhook.file(&webhook.config("w", "NoOpinion", ""))).await;
    let client = by(&server, alice());
    for _ in 0..5 {
        assert_eq!(client.call("GET", "/api/v1/pods", Value::Null).await.0, 200);
    }
    assert_eq!(webhook.count(), 1);
    assert_eq!(client.call("GET", "/api/v1/secrets", Value::Null).await.0, 200);
    assert_eq!(webhook.count(), 2);
    server.create_tenant("other").await.unwrap();
    // The name of the tenant is the server's to give.
    let mut liar = alice();
    liar.extra.push(("k1s.dev/tenant".into(), vec!["default".into()]));
    let (code, _) = by(&server, liar).call("GET", "/clusters/other/api/v1/pods", Value::Null).await;
    assert_eq!((code, webhook.count()), (200, 3));
    assert_eq!(
        webhook.reviews.lock()[2]["spec"]["extra"],
        json!({"scope": ["a"], "k1s.dev/tenant": ["other"]})
    );
}

#[tokio::test]
async fn what_a_failure_means_is_configured() {
    for (policy, code) in [("NoOpinion", 500), ("Deny", 500)] {
        let webhook = Webhook::start(|_| (400, Value::Null)).await;
        let server = with_file(&webhook.file(&webhook.config("w", policy, ""))).await;
        let (found, answer) = by(&server, alice()).call("GET", "/api/v1/pods", Value::Null).await;
        assert_eq!(found, code, "{answer}");
        // RBAC allows it, but is only asked if the webhook has no opinion.
        let (found, _) = by(&server, alice()).call("GET", "/version", Value::Null).await;
        assert_eq!(found, if policy == "Deny" { 500 } else { 200 }, "{policy}");
        let status = review(&admin(&server), "alice", &[], json!({"verb": "get", "resource": "pods"})).await;
        assert_eq!(status.get("denied").is_some(), policy == "Deny", "{status}");
        assert!(
            status["evaluationError"].as_str().unwrap().contains("the server rejected our request"),
            "{status}"
        );
        // Administrators are not asked about.
        assert_eq!(admin(&server).call("GET", "/api/v1/pods", Value::Null).await.0, 200);
    }
}

#[tokio::test]
async fn match_conditions_choose_the_requests_of_a_webhook() {
    let webhook = Webhook::start(|_| (200, json!({"allowed": true}))).await;
    let conditions = "    matchConditionSubjectAccessReviewVersion: v1\n    matchConditions:\n    \
                      - expression: has(request.resourceAttributes)\n    \
                      - expression: request.resourceAttributes.namespace == 'default'\n    \
                      - expression: \"!('system:serviceaccounts' in request.groups)\"\n";
    let server = with_file(&webhook.file(&webhook.config("w", "Deny", conditions))).await;
    let client = by(&server, alice());
    assert_eq!(client.call("GET", "/api/v1/namespaces/default/pods", Value::Null).await.0, 200);
    assert_eq!(webhook.count(), 1);
    assert_eq!(client.call("GET", "/api/v1/namespaces/kube-system/pods", Value::Null).await.0, 403);
    assert_eq!(client.call("GET", "/version", Value::Null).await.0, 200);
    let robot = User::new("system:serviceaccount:a:b", &["system:serviceaccounts"]);
    assert_eq!(by(&server, robot).call("GET", "/api/v1/namespaces/default/pods", Value::Null).await.0, 403);
    assert_eq!(webhook.count(), 1);
}

#[tokio::test]
async fn a_changed_file_is_used_without_a_restart() {
    let webhook = Webhook::start(|_| (200, json!({"allowed": true}))).await;
    let rbac = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n- {type: RBAC, name: rbac}\n";
    let path = webhook.file(rbac);
    let server = with_file(&path).await;
    let client = by(&server, alice());
    assert_eq!(client.call("GET", "/api/v1/pods", Value::Null).await.0, 403);
    webhook.file(&webhook.config("w", "NoOpinion", ""));
    common::eventually("the webhook is asked", async || {
        client.call("GET", "/api/v1/pods", Value::Null).await.0 == 200
    })
    .await;
    webhook.file(rbac);
    common::eventually("the webhook is no longer asked", async || {
        client.call("GET", "/api/v1/pods", Value::Null).await.0 == 403
    })
    .await;
    server.shutdown();
}

#[tokio::test]
async fn a_webhook_that_cannot_be_used_is_an_error_at_the_start() {
    let webhook = k1s_server::AuthorizationWebhook::new("w", "/no/such/file");
    let mut options = ServerOptions::default();
    options.authorization = AuthorizationMode::Rbac.into();
    options.authorization.authorizers.push(AuthorizerOptions::Webhook(Box::new(webhook)));
    let store = Arc::new(k1s_store::MemoryStore::default());
    let refused = ApiServer::new(Env::system(), store, options).await.unwrap_err();
    assert!(refused.message.contains("/no/such/file: No such file or directory"), "{}", refused.message);
}
