//! Two controllers over the projects of one process, while projects are added, broken, suspended and removed.
//!
//! ```console
//! cargo run -p k1s-example-fleet
//! ```
//!
//! - [`quotas`] is uniform: written for one cluster, and run in every project;
//! - [`templates`] works across clusters: it copies templates of the host into the projects that select them.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program speaks to its user")]

mod quotas;
mod templates;

use std::{process::ExitCode, sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use k1s::{
    BoxError, CancellationToken, IdleOptions, ManagerOptions, ProjectsOptions, Runtime,
    multicluster::{MultiClusterManager, MultiClusterOptions, providers::ProjectsProvider},
    projects,
};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchParams},
};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Where controllers tell what they have done.
#[derive(Clone)]
struct Log(UnboundedSender<String>);

impl Log {
    fn say(&self, line: String) {
        // Nobody listens any more when the program ends.
        let _ = self.0.send(line);
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), BoxError> {
    let runtime = Runtime::builder().projects(ProjectsOptions::default()).start().await?;
    let manager = MultiClusterManager::new(&runtime, ManagerOptions::local(), MultiClusterOptions::new())?;
    manager.add_provider(Arc::new(ProjectsProvider::in_process(runtime.tenant_connector())));
    let (sender, lines) = unbounded_channel();
    quotas::add(&manager, Log(sender.clone()))?;
    templates::add(&manager, Log(sender))?;

    let stop = CancellationToken::new();
    let mut story = Story { runtime: &runtime, manager: &manager, lines };
    tokio::select! {
        ended = manager.start(stop.clone()) => ended?,
        told = async {
            let told = story.tell().await;
            stop.cancel();
            // The manager ends first.
            if told.is_ok() { std::future::pending().await } else { told }
        } => told?,
    }
    runtime.stop().await?;
    Ok(())
}

/// What happens to the projects, and what the controllers do then.
struct Story<'a> {
    runtime: &'a Runtime,
    manager: &'a MultiClusterManager,
    lines: UnboundedReceiver<String>,
}

impl Story<'_> {
    async fn tell(&mut self) -> Result<(), BoxError> {
        let maps: Api<ConfigMap> = Api::default_namespaced(self.runtime.client());

        self.add_project("red", json!({"labels": {templates::SET: "base"}})).await?;
        self.add_project("blue", json!({})).await?;
        self.now("Projects red and blue are created").await?;

        self.add_template("banner").await?;
        self.now("The template banner is created; red selects it").await?;

        self.change_project("blue", json!({"labels": {templates::SET: "base"}})).await?;
        self.now("blue selects it, too").await?;

        let inside: Api<ConfigMap> = Api::default_namespaced(self.runtime.tenant_client("blue").await?);
        let drift = Patch::Merge(json!({"data": {"text": "something else"}}));
        inside.patch("banner", &PatchParams::default(), &drift).await?;
        self.now("Somebody changes the copy in blue").await?;

        // Both are of one kind: the second one is refused.
        for name in ["gadgets", "widgets"] {
            self.definitions().create(&PostParams::default(), &definition(name)?).await?;
        }
        self.add_project("green", json!({"annotations": {projects::TEMPLATES: "goods"}})).await?;
        self.until("green", |project| {
            ready(project).is_some_and(|(_, reason, _)| reason == "DefinitionsRefused")
        })
        .await?;
        self.now("green is created, and broken: one of its definitions is refused").await?;

        self.definitions().delete("widgets.example.com", &DeleteParams::default()).await?;
        self.until("green", |project| ready(project).is_some_and(|(is, ..)| is)).await?;
        self.now("That definition is withdrawn").await?;

        self.projects().delete("green", &DeleteParams::default()).await?;
        self.until("green", |project| project.is_none()).await?;
        self.now("green is deleted").await?;

        self.change_project("blue", json!({"annotations": {projects::SUSPEND: "true"}})).await?;
        self.now("blue is suspended").await?;

        let namespaces: Api<Namespace> = Api::all(self.runtime.tenant_client("red").await?);
        let shop: Namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}}))?;
        namespaces.create(&PostParams::default(), &shop).await?;
        self.now("A namespace is created in red: the work there goes on").await?;

        self.change_project("red", json!({"labels": {templates::SET: null}})).await?;
        self.now("red does not select the template any more").await?;

        maps.delete("banner", &DeleteParams::default()).await?;
        self.now("The template is deleted; it waits for blue").await?;

        self.change_project("blue", json!({"annotations": {projects::SUSPEND: null}})).await?;
        self.now("blue is back").await?;

        self.add_template("terms").await?;
        self.now("Another template is created; blue selects it").await?;

        self.projects().delete("blue", &DeleteParams::default()).await?;
        self.now("blue is deleted").await
    }

    /// Waits until the controllers have nothing left to do, and prints what they did: sorted, since they work in parallel.
    async fn now(&mut self, what: &str) -> Result<(), BoxError> {
        self.manager.wait_until_idle(IdleOptions::within(Duration::from_secs(60))).await?;
        println!("{what}.");
        let mut lines: Vec<String> = std::iter::from_fn(|| self.lines.try_recv().ok()).collect();
        lines.sort();
        for line in lines {
            println!("  {line}");
        }
        let clusters = self.manager.clusters();
        let clusters = clusters.iter().map(|cluster| format!("{} {}", cluster.name, cluster.state));
        println!("  = clusters: {}", clusters.collect::<Vec<_>>().join(", "));
        for project in self.projects().list(&ListParams::default()).await? {
            if let Some((false, reason, message)) = ready(Some(&project)) {
                println!("  = project {} is not ready: {reason}: {message}", project.name_any());
            }
        }
        let maps: Api<ConfigMap> = Api::default_namespaced(self.runtime.client());
        for template in maps.list(&ListParams::default().labels(templates::SET)).await? {
            let copies: Vec<&str> = templates::holders(&template).collect();
            println!("  = template {}: copies in [{}]", template.name_any(), copies.join(", "));
        }
        Ok(())
    }

    fn projects(&self) -> Api<DynamicObject> {
        Api::all_with(self.runtime.client(), &projects::project())
    }

    fn definitions(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.runtime.client())
    }

    /// Waits until a project is as wanted; `None` if there is none.
    async fn until(&self, name: &str, is: impl Fn(Option<&DynamicObject>) -> bool) -> Result<(), BoxError> {
        let (all, one) = (self.projects(), format!("metadata.name={name}"));
        loop {
            let list = all.list(&ListParams::default().fields(&one)).await?;
            if is(list.items.first()) {
                return Ok(());
            }
            let version = list.metadata.resource_version.unwrap_or_default();
            let changes = all.watch(&WatchParams::default().fields(&one), &version).await?;
            changes.boxed().next().await.transpose()?;
        }
    }

    async fn add_project(&self, name: &str, metadata: Value) -> Result<(), BoxError> {
        let mut project = DynamicObject::new(name, &projects::project())
            .data(json!({"spec": {"ownerRef": {"kind": "Organization", "name": "acme"}}}));
        project.metadata = ObjectMeta { name: Some(name.to_owned()), ..serde_json::from_value(metadata)? };
        self.projects().create(&PostParams::default(), &project).await?;
        Ok(())
    }

    async fn change_project(&self, name: &str, metadata: Value) -> Result<(), BoxError> {
        let patch = Patch::Merge(json!({"metadata": metadata}));
        self.projects().patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn add_template(&self, name: &str) -> Result<(), BoxError> {
        let template = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {templates::SET: "base"}},
            "data": {"text": format!("the {name} of all projects")},
        });
        self.runtime.apply(&template.to_string()).await?;
        Ok(())
    }
}

/// Whether a project is ready, and why it is or is not; `None` if that is not known yet.
fn ready(project: Option<&DynamicObject>) -> Option<(bool, String, String)> {
    let conditions = project?.data["status"]["conditions"].as_array()?;
    let ready = conditions.iter().find(|one| one["type"] == "Ready")?;
    let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
    Some((ready["status"] == "True", text("reason"), text("message")))
}

/// A definition of the template `goods`. All of them are of the kind `Good`.
fn definition(plural: &str) -> Result<CustomResourceDefinition, BoxError> {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    Ok(serde_json::from_value(json!({
        "metadata": {"name": format!("{plural}.example.com"), "labels": {projects::TEMPLATE: "goods"}},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Good", "plural": plural},
            "versions": [version],
        },
    }))?)
}
