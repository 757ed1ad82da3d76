//! Webhooks over HTTPS, behind a server that does with connections what the test wants.

use std::{sync::atomic::Ordering, time::Duration};

use k1s_server::Authority;
use tokio::net::TcpListener;

use super::*;
use crate::https::{Remote, Way};

/// Others are not held up for so long, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Allows what it is asked.
fn allowing(review: &Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true, "warnings": ["over HTTPS"]}})
}

async fn start(names: &[&str], way: Way) -> Remote {
    Remote::start(names, way, allowing).await
}

/// A webhook at its address.
fn hook_at(remote: &Remote, host: &str) -> Value {
    json!({"name": "r.k1s.dev", "timeoutSeconds": 1,
        "clientConfig": {"url": remote.url(host), "caBundle": remote.bundle()}})
}

async fn attempt(stage: &Stage, name: &str) -> (u16, String) {
    let (code, answer) = stage.configmap(json!({"metadata": {"name": name}})).await;
    (code, answer["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_webhook_over_https_is_called_with_one_connection() {
    let stage = Stage::new().await;
    let remote = start(&["127.0.0.1"], Way::Answer).await;
    stage.register("Validating", "v", &[hook_at(&remote, "127.0.0.1")]).await;
    for i in 0..5 {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{i}")}});
        let answer = stage.send("POST", CONFIGMAPS, &body).await;
        assert_eq!(
            (answer.status, answer.header("warning")),
            (201, "299 - \"over HTTPS\""),
            "{}",
            answer.text()
        );
    }
    assert_eq!(remote.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn only_the_authority_of_the_bundle_is_trusted_and_it_can_be_replaced() {
    let stage = Stage::new().await;
    let remote = start(&["127.0.0.1"], Way::Answer).await;
    let other = Authority::generate(Env::system().wall()).unwrap();
    let mut hook = hook_at(&remote, "127.0.0.1");
    hook["clientConfig"]["caBundle"] = BASE64_STANDARD.encode(other.certificate()).into();
    stage.register("Validating", "v", std::slice::from_ref(&hook)).await;
    let url = format!("https://127.0.0.1:{}/hook?timeout=1s", remote.port);
    let failed = "Internal error occurred: failed calling webhook \"r.k1s.dev\": failed to call webhook: ";
    let unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert_eq!(attempt(&stage, "a").await, (500, format!("{failed}Post \"{url}\": {unknown}")));
    // As cert-manager does it: the bundle is patched.
    let path = format!("{}/v", configurations("Validating"));
    let bundle = remote.bundle();
    let injected = json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]);
    assert_eq!(stage.client.call("PATCH", &path, injected).await.0, 200);
    assert_eq!(attempt(&stage, "a").await.0, 201);
    // Without a bundle, the system's authorities count.
    let removed = json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]);
    assert_eq!(stage.client.call("PATCH", &path, removed).await.0, 200);
    assert_eq!(attempt(&stage, "b").await, (500, format!("{failed}Post \"{url}\": {unknown}")));
}

#[tokio::test]
async fn the_certificate_has_to_be_for_the_host() {
    let stage = Stage::new().await;
    let remote = start(&["other.example"], Way::Answer).await;
    stage.register("Validating", "v", &[hook_at(&remote, "127.0.0.1")]).await;
    let (code, message) = attempt(&stage, "a").await;
    assert_eq!(code, 500);
    assert!(message.contains("tls: failed to verify certificate: x509: "), "{message}");
}

#[tokio::test]
async fn a_service_is_reached_at_its_configured_address() {
    let remote = start(&["svc.ns.svc"], Way::Answer).await;
    let mut options = ServerOptions::default();
    options.services.addresses.insert("ns/svc:8443".into(), format!("127.0.0.1:{}", remote.port));
    let env = Env::system();
    let server = common::server_with(&env, Arc::new(MemoryStore::default()), options).await;
    let stage = Stage { client: common::client(&server), local: LocalServices::default() };
    let mut hook = hook_at(&remote, "");
    let config = &mut hook["clientConfig"];
    config.as_object_mut().unwrap().remove("url");
    config["service"] = json!({"namespace": "ns", "name": "svc", "port": 8443, "path": "/hook"});
    stage.register("Validating", "v", std::slice::from_ref(&hook)).await;
    assert_eq!(attempt(&stage, "a").await, (201, String::new()));
    // Not at another port.
    stage.unregister("Validating", "v").await;
    hook["clientConfig"]["service"]["port"] = 443.into();
    stage.register("Validating", "v", &[hook]).await;
    let (code, message) = attempt(&stage, "b").await;
    assert_eq!(code, 500);
    assert!(
        message.ends_with("Post \"https://svc.ns.svc:443/hook?timeout=1s\": service \"svc\" not found"),
        "{message}"
    );
}

/// The default tenant, and another one.
async fn tenants(change: impl FnOnce(&mut ServerOptions)) -> (Stage, Stage) {
    let mut options = ServerOptions::default();
    change(&mut options);
    let env = Env::system();
    let server = common::server_with(&env, Arc::new(MemoryStore::default()), options).await;
    let stage = |server| Stage { client: common::client(server), local: LocalServices::default() };
    (stage(&server), stage(&server.tenant("other").await.unwrap()))
}

/// Who writes webhooks in a tenant does not reach what listens for the server's machine alone.
#[tokio::test]
async fn webhooks_of_tenants_do_not_reach_the_host() {
    let remote = start(&["127.0.0.1", "localhost"], Way::Answer).await;
    let (stage, other) = tenants(|_| {}).await;
    stage.register("Validating", "v", &[hook_at(&remote, "127.0.0.1")]).await;
    assert_eq!(attempt(&stage, "a").await, (201, String::new()));
    let before = remote.connections.load(Ordering::SeqCst);
    // Also by a name, whatever it resolves to, and not on a connection that the default tenant has left open.
    for host in ["127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"] {
        other.register("Validating", "v", &[hook_at(&remote, host)]).await;
        let (code, message) = attempt(&other, "a").await;
        assert_eq!(code, 500, "{host}: {message}");
        assert!(message.ends_with("the address is not allowed"), "{host}: {message}");
        other.unregister("Validating", "v").await;
    }
    let metadata = json!({"name": "m.k1s.dev", "timeoutSeconds": 1,
        "clientConfig": {"url": "https://169.254.169.254/latest"}});
    other.register("Mutating", "m", &[metadata]).await;
    let (code, message) = attempt(&other, "a").await;
    assert!(
        code == 500 && message.ends_with("dial tcp 169.254.169.254:443: the address is not allowed"),
        "{message}"
    );
    assert_eq!(remote.connections.load(Ordering::SeqCst), before);
}

#[tokio::test]
async fn webhooks_of_tenants_reach_the_host_if_that_is_allowed() {
    let remote = start(&["127.0.0.1"], Way::Answer).await;
    let (_, other) = tenants(|options| options.services.tenants_reach_host = true).await;
    other.register("Validating", "v", &[hook_at(&remote, "127.0.0.1")]).await;
    assert_eq!(attempt(&other, "a").await, (201, String::new()));
}

#[tokio::test]
async fn an_address_of_a_service_is_for_the_tenants_that_it_names() {
    let remote = start(&["plain.ns.svc", "own.ns.svc", "all.ns.svc"], Way::Answer).await;
    let (stage, other) = tenants(|options| {
        for service in ["ns/plain", "other:ns/own", "*:ns/all"] {
            options.services.addresses.insert(service.into(), format!("127.0.0.1:{}", remote.port));
        }
    })
    .await;
    for (of, service, allowed) in [
        (&stage, "plain", true),
        (&stage, "own", false),
        (&stage, "all", true),
        (&other, "plain", false),
        (&other, "own", true),
        (&other, "all", true),
    ] {
        let mut hook = hook_at(&remote, "");
        let config = hook["clientConfig"].as_object_mut().unwrap();
        config.remove("url");
        config.insert("service".into(), json!({"namespace": "ns", "name": service, "path": "/hook"}));
        of.register("Validating", "v", &[hook]).await;
        let (code, message) = attempt(of, service).await;
        assert_eq!(code, if allowed { 201 } else { 500 }, "{service}: {message}");
        let unknown = format!("service \"{service}\" not found");
        assert!(allowed || message.ends_with(&unknown), "{service}: {message}");
        of.unregister("Validating", "v").await;
    }
}

#[tokio::test]
async fn converters_of_tenants_do_not_reach_the_host() {
    let remote = start(&["127.0.0.1"], Way::Answer).await;
    let (_, other) = tenants(|_| {}).await;
    let mut definition = common::definition("x.k1s.dev");
    let mut beta = definition["spec"]["versions"][0].clone();
    beta["name"] = "v1beta1".into();
    beta["storage"] = false.into();
    definition["spec"]["versions"].as_array_mut().unwrap().push(beta);
    let config = hook_at(&remote, "127.0.0.1")["clientConfig"].clone();
    definition["spec"]["conversion"] = json!({"strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": config}});
    other.client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    let things = |version: &str| format!("/apis/x.k1s.dev/{version}/namespaces/default/things");
    let thing = json!({"apiVersion": "x.k1s.dev/v1", "kind": "Thing", "metadata": {"name": "t"}});
    other.client.post(&things("v1"), thing).await;
    let (code, answer) = other.client.call("GET", &format!("{}/t", things("v1beta1")), Value::Null).await;
    assert_eq!(code, 500, "{answer}");
    assert!(answer["message"].as_str().unwrap().ends_with("the address is not allowed"), "{answer}");
    assert_eq!(remote.connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn nothing_listens() {
    let stage = Stage::new().await;
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let hook = json!({"name": "r.k1s.dev", "timeoutSeconds": 5,
        "clientConfig": {"url": format!("https://127.0.0.1:{port}/hook")}});
    stage.register("Mutating", "m", &[hook]).await;
    let why = format!(
        "Internal error occurred: failed calling webhook \"r.k1s.dev\": failed to call webhook: Post \"https://127.0.0.1:{port}/hook?timeout=5s\": dial tcp 127.0.0.1:{port}: connect: connection refused"
    );
    assert_eq!(attempt(&stage, "a").await, (500, why));
}

/// A hostile webhook fails its own requests, within their timeout and a bound on memory.
#[tokio::test]
async fn hostile_webhooks_are_given_up_while_others_are_served() {
    for (way, why) in [
        (Way::Hang, "context deadline exceeded"),
        (Way::Garbage, "couldn't get version/kind; json parse error: "),
        (Way::WrongUid, "received invalid webhook response: expected response.uid="),
        (Way::Flood, "the answer of the webhook is larger than 16777216 bytes"),
        (Way::Announce, "the answer of the webhook is larger than 16777216 bytes"),
        (Way::CloseMidway, "unexpected EOF"),
        (Way::Close, "EOF"),
    ] {
        for kind in ["Mutating", "Validating"] {
            hostile(kind, way, why).await;
        }
    }
}

async fn hostile(kind: &str, way: Way, why: &str) {
    let stage = Stage::new().await;
    let remote = start(&["127.0.0.1"], way).await;
    let mut hook = hook_at(&remote, "127.0.0.1");
    if !matches!(way, Way::Hang) {
        // Time for 16 MiB, on a busy machine: a timeout would hide what else gives it up.
        hook["timeoutSeconds"] = 20.into();
    }
    stage.register(kind, "v", &[hook]).await;
    let hostile = (0..4).map(|i| {
        let stage = &stage;
        async move { attempt(stage, &format!("c{i}")).await }
    });
    let others = async {
        for i in 0..20 {
            let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("s{i}")}});
            stage.client.post("/api/v1/namespaces/default/secrets", body).await;
        }
    };
    let (answers, ()) = tokio::join!(futures_util::future::join_all(hostile), others);
    for (code, message) in answers {
        assert_eq!(code, 500, "{kind} {way:?}: {message}");
        assert!(message.contains(why), "{kind} {way:?}: {message}");
    }
    let sent = remote.sent.load(Ordering::SeqCst);
    assert!(sent < 4 * (24 << 20), "{kind} {way:?}: {sent} bytes were taken");
    let left = stage.client.get(CONFIGMAPS).await;
    assert_eq!(left["items"].as_array().unwrap().len(), 1, "{kind} {way:?}");
}

/// What a webhook says about the identity of an object has no effect.
#[tokio::test]
async fn a_webhook_over_https_cannot_change_a_uid() {
    let stage = Stage::new().await;
    let path = format!("{CONFIGMAPS}/kept");
    let (_, kept) = stage.configmap(json!({"metadata": {"name": "kept"}})).await;
    let remote = start(&["127.0.0.1"], Way::PatchUid).await;
    let mut hook = hook_at(&remote, "127.0.0.1");
    hook["timeoutSeconds"] = 20.into();
    let change = json!({"data": {"a": "b"}});
    stage.register("Mutating", "m", std::slice::from_ref(&hook)).await;
    let (code, answer) = stage.client.call("PATCH", &path, change.clone()).await;
    assert_eq!((code, &answer["details"]["causes"][0]["field"]), (422, &json!("metadata.uid")), "{answer}");
    // A new object has the uid that the server gives to it.
    let (code, made) = stage.configmap(json!({"metadata": {"name": "made"}})).await;
    assert_eq!(code, 201, "{made}");
    assert!(made["metadata"]["uid"].as_str().is_some_and(|uid| uid.len() == 36), "{made}");
    stage.unregister("Mutating", "m").await;
    stage.register("Validating", "v", &[hook]).await;
    let (code, answer) = stage.client.call("PATCH", &path, change).await;
    let message = answer["message"].as_str().unwrap();
    assert!(code == 500 && message.ends_with("validating webhook may not return response.patch"), "{answer}");
    assert_eq!(stage.client.get(&path).await, kept);
}

/// A server with two tenants, and a webhook in each.
async fn with_webhooks(one: &Remote, two: &Remote) -> Client {
    let env = Env::system();
    let mut options = ServerOptions::default();
    options.services.tenants_reach_host = true;
    let server = common::server_with(&env, Arc::new(MemoryStore::default()), options).await;
    let client = common::client(&server);
    for (tenant, remote, timeout) in [("one", one, 20), ("two", two, 10)] {
        client.post("/k1s/v1/tenants", json!({"metadata": {"name": tenant}})).await;
        let mut hook = hook(&hook_at(remote, "127.0.0.1"));
        hook["timeoutSeconds"] = timeout.into();
        let body = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "v"}, "webhooks": [hook]});
        client.post(&format!("/clusters/{tenant}{}", configurations("Validating")), body).await;
    }
    client
}

/// Large answers are held by so many requests at once, of which one tenant has a part only.
#[tokio::test]
async fn the_webhooks_of_a_tenant_do_not_keep_those_of_others_from_large_answers() {
    let hostile = start(&["127.0.0.1"], Way::HangMidway).await;
    let other = start(&["127.0.0.1"], Way::Pad(2 << 20)).await;
    let client = with_webhooks(&hostile, &other).await;
    let create = |tenant: &'static str, name: String| {
        let client = client.clone();
        async move {
            client.call("POST", &format!("/clusters/{tenant}{CONFIGMAPS}"), common::config_map(&name)).await
        }
    };
    let hung: Vec<_> =
        (0..30).map(|number| client.env.spawn("hung", create("one", format!("h{number}")))).collect();
    common::eventually("all hostile webhooks are called", || async {
        hostile.requests.load(Ordering::SeqCst) == hung.len()
    })
    .await;
    let began = client.env.now();
    for number in 0..5 {
        let (code, answer) = create("two", format!("c{number}")).await;
        assert_eq!(code, 201, "{answer}");
    }
    assert!(client.env.now() - began < PATIENCE);
    assert!(hung.iter().all(|task| !task.is_finished()));
    hung.iter().for_each(k1s_env::Task::abort);
    // What was held is given back.
    hostile.set(Way::Pad(2 << 20));
    let (code, answer) = create("one", "last".into()).await;
    assert_eq!(code, 201, "{answer}");
}
