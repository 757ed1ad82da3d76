//! A defaulter and a validator for a kind, served over HTTPS with development certificates.
//!
//! The program registers them with the embedded control plane like with any cluster. The embedded server
//! stores such registrations, but **does not call webhooks yet**; a real kube-apiserver that can reach the
//! address does. So the program acts as the API server: it sends the reviews over HTTPS, trusting only the CA
//! that it registered, and prints the responses.

#![expect(clippy::print_stdout, reason = "a program speaks to its user")]

use k1s::{
    BoxError, Manager, ManagerOptions, Runtime,
    controller::webhook::{
        Endpoint, Webhook, WebhookConfiguration, WebhookOptions,
        certs::{DevCertificate, DevCertificateOptions},
    },
};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{
    Api, Config, CustomResource,
    config::{KubeConfigOptions, Kubeconfig},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A ticket.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.k1s.dev", version = "v1", kind = "Ticket", namespaced)]
struct TicketSpec {
    title: String,
    priority: Option<u8>,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let runtime = Runtime::builder().start().await?;
    runtime.install::<Ticket>().await?;

    let certs = tempfile::tempdir()?;
    let certificate =
        DevCertificate::open(runtime.env(), DevCertificateOptions::new(certs.path(), ["localhost"]))?;
    let mut options = ManagerOptions::local();
    options.webhook = WebhookOptions { port: 0, cert_dir: certs.path().into(), ..WebhookOptions::default() };
    let manager = Manager::new(&runtime, options)?;
    Webhook::for_::<Ticket>()
        .default_with(|ticket, _| {
            ticket.spec.priority.get_or_insert(3);
            Ok(())
        })
        .validate_with(|validation, _| match validation.object() {
            Some(ticket) if ticket.spec.title.trim().is_empty() => {
                Err("spec.title: a ticket needs a title".into())
            }
            Some(ticket) if ticket.spec.priority == Some(1) => Ok(vec!["priority 1 wakes people up".into()]),
            _ => Ok(vec![]),
        })
        .complete(manager.webhook_server())?;

    let stop = CancellationToken::new();
    let running = runtime.env().spawn("manager", {
        let (manager, stop) = (manager.clone(), stop.clone());
        async move { manager.start(stop).await }
    });
    let url = format!("https://localhost:{}", manager.webhook_server().bound().await.port());
    println!("webhooks at {url}: {}", manager.webhook_server().paths().join(", "));
    WebhookConfiguration::new("tickets", Endpoint::url(&url))
        .ca_bundle(certificate.ca_bundle())
        .install(&runtime.client(), manager.webhook_server())
        .await?;
    let registered = Api::<ValidatingWebhookConfiguration>::all(runtime.client()).get("tickets").await?;
    println!("registered: {} validating webhook(s)\n", registered.webhooks.unwrap_or_default().len());

    let caller = https_client(&url, &certs.path().join("ca.crt").display().to_string()).await?;
    for spec in
        [json!({"title": "paint it"}), json!({"title": "fire!", "priority": 1}), json!({"title": " "})]
    {
        println!("ticket {spec}");
        for path in manager.webhook_server().paths() {
            println!("  {path}: {}", review(&caller, &path, &spec).await?);
        }
    }
    stop.cancel();
    running.await??;
    runtime.stop().await?;
    Ok(())
}

/// A client that trusts only this CA.
async fn https_client(url: &str, authority: &str) -> Result<kube::Client, BoxError> {
    let kubeconfig: Kubeconfig = serde_json::from_value(json!({
        "clusters": [{"name": "webhooks", "cluster": {"server": url, "certificate-authority": authority}}],
        "contexts": [{"name": "webhooks", "context": {"cluster": "webhooks", "user": "nobody"}}],
        "users": [{"name": "nobody", "user": {}}],
        "current-context": "webhooks",
    }))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(kube::Client::try_from(config)?)
}

/// Sends the review of a new ticket, like an API server, and summarizes the response.
async fn review(caller: &kube::Client, path: &str, spec: &Value) -> Result<String, BoxError> {
    let object = json!({"apiVersion": "example.k1s.dev/v1", "kind": "Ticket",
        "metadata": {"name": "t", "namespace": "default"}, "spec": spec});
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "operation": "CREATE", "name": "t", "namespace": "default",
        "kind": {"group": "example.k1s.dev", "version": "v1", "kind": "Ticket"},
        "resource": {"group": "example.k1s.dev", "version": "v1", "resource": "tickets"},
        "userInfo": {"username": "alice"}, "object": object,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"}}});
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&review)?)?;
    let answer: Value = caller.request(request).await?;
    let response = &answer["response"];
    Ok(match (&response["allowed"], response.get("patch"), response.get("warnings")) {
        (Value::Bool(true), Some(patch), _) => {
            let patch: k8s_openapi::ByteString = serde_json::from_value(patch.clone())?;
            format!("allowed, with the patch {}", String::from_utf8_lossy(&patch.0))
        }
        (Value::Bool(true), None, Some(warnings)) => format!("allowed, with the warnings {warnings}"),
        (Value::Bool(true), None, None) => "allowed".to_owned(),
        _ => format!("refused: {}", response["status"]["message"]),
    })
}
