//! A control plane, a kind and its controller: every `Greeting` becomes a ConfigMap.

#![expect(clippy::print_stdout, reason = "a program speaks to its user")]

use k1s::controller::{client::ApplyOptions, util::set_controller_reference};
use k1s::{
    Action, BoxError, Client, Context, Controller, IdleOptions, Manager, ManagerOptions, Request, Runtime,
    kind,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, CustomResource, api::ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whom to greet.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.k1s.dev", version = "v1", kind = "Greeting", namespaced)]
struct GreetingSpec {
    name: String,
}

const FIRST: &str = "
apiVersion: example.k1s.dev/v1
kind: Greeting
metadata: {name: first}
spec: {name: world}
";

async fn reconcile(client: Client, request: Request) -> Result<Action, BoxError> {
    let Some(greeting) = client.get_opt::<Greeting>(&request).await? else { return Ok(Action::done()) };
    let ObjectMeta { name, namespace, .. } = greeting.metadata.clone();
    let mut map = ConfigMap {
        metadata: ObjectMeta { name, namespace, ..ObjectMeta::default() },
        data: Some([("text".to_owned(), format!("Hello, {}!", greeting.spec.name))].into()),
        ..ConfigMap::default()
    };
    set_controller_reference(&*greeting, &mut map)?;
    client.apply_with(&map, ApplyOptions::forced()).await?; // creates it, or corrects these fields of it
    Ok(Action::done())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init(); // k1s logs its activity with tracing

    let runtime = Runtime::builder().start().await?; // in memory; .disk("./data") for a folder
    runtime.install::<Greeting>().await?; // creates the CustomResourceDefinition, which the controller needs
    runtime.apply(FIRST).await?;

    // On another cluster: Manager::new(kube::Client::try_default().await?, ManagerOptions::default())
    let manager = Manager::new(&runtime, ManagerOptions::local())?;
    let client = manager.client();
    Controller::managed_by(&manager)
        .for_(kind::<Greeting>())
        .owns(kind::<ConfigMap>())
        .complete(move |request: Request, _: Context| reconcile(client.clone(), request))?;

    // A service runs until Ctrl-C instead: manager.start(shutdown_on_signals(manager.env())).await?
    println!("{}", manager.run_until_idle(IdleOptions::default()).await?);

    let maps: Api<ConfigMap> = Api::default_namespaced(runtime.client());
    println!("{:?}", maps.get("first").await?.data);
    runtime.stop().await?;
    Ok(())
}
