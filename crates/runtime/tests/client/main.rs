//! The client, against a server in the same process and against scripted ones.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod apply;
mod errors;
mod helpers;
mod mapper;
mod patches;
mod reads;
mod scripted;
mod watches;
mod wrappers;
mod writes;

use std::sync::Arc;

use k1s_env::{Env, VirtualClock};
use k1s_runtime::{
    ObjectKey,
    client::{Client, ClientOptions},
};
use k1s_server::{ApiServer, ServerOptions, User};
use k1s_store::{MemoryOptions, MemoryStore};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Pod},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// A kind with a status and a scale.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[kube(
    group = "test.k1s.dev",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas")
)]
struct WidgetSpec {
    replicas: i32,
    #[serde(default)]
    text: String,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
struct WidgetStatus {
    replicas: i32,
}

async fn server(env: &Env) -> ApiServer {
    let store = Arc::new(MemoryStore::new(env.clone(), MemoryOptions::default()));
    // Owners in these tests are often made up; no garbage collector runs here.
    ApiServer::new(env.clone(), store, ServerOptions::default()).await.unwrap()
}

/// A client with full permissions of its own server, whose clock stands still.
async fn client() -> Client {
    client_with(|_| {}).await.0
}

async fn client_with(change: impl FnOnce(&mut ClientOptions)) -> (Client, VirtualClock) {
    let (env, clock) = Env::simulated(7);
    let server = server(&env).await.as_user(User::admin());
    let mut options = ClientOptions { env, ..ClientOptions::default() };
    change(&mut options);
    (Client::new(kube::Client::new(server, "default"), options), clock)
}

/// The same, with the `Widget` kind installed.
async fn client_with_widgets() -> Client {
    let client = client().await;
    let crd: CustomResourceDefinition = client.create(&Widget::crd()).await.unwrap();
    // The server responds once the definition is stored; it is served shortly after.
    let key = ObjectKey::of(&crd);
    loop {
        let crd: CustomResourceDefinition = client.live().get(&key).await.unwrap();
        let conditions = crd.status.and_then(|status| status.conditions).unwrap_or_default();
        if conditions.iter().any(|known| known.type_ == "Established" && known.status == "True") {
            return client;
        }
        client.env().yield_now().await;
    }
}

fn from<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn config_map(name: &str) -> ConfigMap {
    from(
        json!({"metadata": {"name": name, "namespace": "default", "labels": {"app": name}}, "data": {"a": "1"}}),
    )
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn pod(name: &str) -> Pod {
    from(json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "image:1"}]},
    }))
}

fn deployment(name: &str) -> Deployment {
    from(json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "image:1"}]},
            },
        },
    }))
}

fn widget(name: &str) -> Widget {
    let mut widget = Widget::new(name, WidgetSpec { replicas: 1, text: String::new() });
    widget.metadata.namespace = Some("default".into());
    widget
}
