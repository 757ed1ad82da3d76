//! Aggregated APIs: requests are forwarded to the servers that `APIService`s name, in this process and over HTTPS.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod extension;
mod forwarding;
mod hostile;
mod registration;
mod remote;
mod upstream;

use std::sync::Arc;

use common::{Answer, Client, eventually};
use extension::Extension;
use k1s_env::Env;
use k1s_server::{ApiServer, LocalServices, ServerOptions, User};
use k1s_store::MemoryStore;
use serde_json::{Value, json};

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A server, and the table of the services in its process.
struct Stage {
    server: ApiServer,
    client: Client,
    local: LocalServices,
}

impl Stage {
    async fn new() -> Stage {
        Stage::with(ServerOptions::default()).await
    }

    async fn with(mut options: ServerOptions) -> Stage {
        let local = LocalServices::default();
        options.services.local = local.clone();
        let env = Env::system();
        let server = common::server_with(&env, Arc::new(MemoryStore::default()), options).await;
        Stage { client: common::client(&server), server, local }
    }

    /// Serves an extension in this process, for the default tenant.
    fn serve(&self, extension: &Extension) {
        self.local.serve_streams(Some("default"), "ext.ns.svc", extension.clone());
    }

    /// Registers `v1.<group>` with the Service `ns/ext`.
    async fn register(&self, group: &str) -> Value {
        self.client.post(SERVICES, service(group)).await
    }

    /// GET as another user.
    async fn as_user(&self, user: User, method: &str, path: &str) -> Answer {
        let client = common::client(&self.server.as_user(user));
        client.send(method, path, &[], "").await
    }

    /// The condition `Available` of `v1.<group>`.
    async fn condition(&self, group: &str) -> (String, String, String) {
        let service = self.client.get(&format!("{SERVICES}/v1.{group}")).await;
        let condition = service["status"]["conditions"][0].clone();
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    /// Waits until that condition has this reason, and returns its status and message.
    async fn reason(&self, group: &str, reason: &str) -> (String, String) {
        eventually(&format!("{group} is {reason}"), || async { self.condition(group).await.1 == reason })
            .await;
        let (status, _, message) = self.condition(group).await;
        (status, message)
    }

    /// The aggregated discovery document's entry of a group.
    async fn discovered(&self, group: &str) -> Option<Value> {
        let answer = self.client.send("GET", "/apis", &[("accept", AGGREGATED)], "").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, AGGREGATED));
        let items = answer.json()["items"].as_array().unwrap().clone();
        items.into_iter().find(|item| item["metadata"]["name"] == group)
    }
}

/// The `APIService` `v1.<group>` with the Service `ns/ext`.
fn service(group: &str) -> Value {
    json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": format!("v1.{group}")},
        "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
            "insecureSkipTLSVerify": true, "service": {"namespace": "ns", "name": "ext"}}})
}
