//! A control plane, a kind and its controller in one file: every `Greeting` becomes a ConfigMap.
//! `cargo run -p k1s-example-quickstart` starts it, lets it work until there is nothing left to do, and shows the result.

use k1s::{
    Runtime,
    runtime::{
        Action, BoxError, Client, Context, Controller, IdleOptions, Manager, ManagerOptions, Reconciler, Request, kind,
        util::{create_or_update, set_controller_reference},
    },
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, api::ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whom to greet.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.k1s.dev", version = "v1", kind = "Greeting", namespaced)]
struct GreetingSpec {
    name: String,
}

struct Greetings {
    client: Client,
}

impl Reconciler for Greetings {
    type Error = BoxError;

    async fn reconcile(&self, request: Request, _: Context) -> Result<Action, BoxError> {
        let Some(greeting) = self.client.get_opt::<Greeting>(&request).await? else { return Ok(Action::done()) };
        let ObjectMeta { name, namespace, .. } = greeting.metadata.clone();
        let metadata = ObjectMeta { name, namespace, ..ObjectMeta::default() };
        create_or_update(&self.client, ConfigMap { metadata, ..ConfigMap::default() }, |map| {
            map.data = Some([("text".to_owned(), format!("Hello, {}!", greeting.spec.name))].into());
            set_controller_reference(&*greeting, map)
        })
        .await?;
        Ok(Action::done())
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let runtime = Runtime::builder().memory().start().await?;
    runtime.install::<Greeting>().await?;
    runtime.apply("{apiVersion: example.k1s.dev/v1, kind: Greeting, metadata: {name: first}, spec: {name: world}}").await?;

    let manager = Manager::new(&runtime, ManagerOptions::local())?;
    let reconciler = Greetings { client: manager.client() };
    Controller::managed_by(&manager).for_(kind::<Greeting>()).owns(kind::<ConfigMap>()).complete(reconciler)?;
    // A service would call `manager.start(shutdown_on_signals(manager.env()))` and go on.
    let report = manager.run_until_idle(IdleOptions::default()).await?;

    let maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(runtime.client());
    let text = maps.get("first").await?.data.unwrap_or_default().remove("text").unwrap_or_default();
    println!("{text} ({report})");
    runtime.stop().await?;
    Ok(())
}
