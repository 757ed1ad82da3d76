//! A defaulter and a validator for a kind, called by the embedded control plane without a socket.
//!
//! They are registered with the same objects as on a cluster: webhook configurations that name a Service. The runtime knows
//! that this Service is the program itself. So this is also how to test webhooks: no certificates, no ports, and every
//! request goes through the rules that a cluster would apply.

#![expect(clippy::print_stdout, reason = "a program speaks to its user")]

use http_body_util::BodyExt as _;
use k1s::{
    BoxError, Runtime,
    controller::webhook::{Endpoint, Webhook, WebhookConfiguration, WebhookOptions, WebhookServer},
};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{Api, CustomResource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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

    // A webhook server that does not listen.
    let options = WebhookOptions { tracker: Some(runtime.work().clone()), ..WebhookOptions::default() };
    let webhooks = WebhookServer::new(runtime.env(), options);
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
        .complete(&webhooks)?;

    let endpoint = Endpoint::service("tickets", "webhooks");
    runtime.serve_webhooks(&endpoint, &webhooks);
    WebhookConfiguration::new("tickets", endpoint).install(&runtime.client(), &webhooks).await?;
    let registered = Api::<ValidatingWebhookConfiguration>::all(runtime.client()).get("tickets").await?;
    println!("registered: {} validating webhook(s)\n", registered.webhooks.unwrap_or_default().len());

    for (name, spec) in [
        ("paint", json!({"title": "paint it"})),
        ("fire", json!({"title": "fire!", "priority": 1})),
        ("none", json!({"title": " "})),
    ] {
        println!("ticket {spec}\n  {}", create(&runtime.client(), name, &spec).await?);
    }
    runtime.stop().await?;
    Ok(())
}

/// Creates a ticket, and says what became of it.
async fn create(client: &kube::Client, name: &str, spec: &Value) -> Result<String, BoxError> {
    let ticket = json!({"apiVersion": "example.k1s.dev/v1", "kind": "Ticket", "metadata": {"name": name}, "spec": spec});
    // Not with `Api::create`, which does not return the warnings of an answer.
    let request = http::Request::post("/apis/example.k1s.dev/v1/namespaces/default/tickets")
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&ticket)?.into())?;
    let answer = client.send(request).await?;
    let warnings: Vec<String> = answer
        .headers()
        .get_all("warning")
        .iter()
        .filter_map(|warning| warning.to_str().ok().map(str::to_owned))
        .collect();
    let body: Value = serde_json::from_slice(&answer.into_body().collect().await?.to_bytes())?;
    Ok(match (body["kind"].as_str(), warnings.as_slice()) {
        (Some("Ticket"), []) => format!("created: {}", body["spec"]),
        (Some("Ticket"), warnings) => format!("created: {}, with the warnings {warnings:?}", body["spec"]),
        _ => format!("refused: {}", body["message"]),
    })
}
