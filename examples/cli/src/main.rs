//! A command-line program with declarative resources and no cluster: applies a file, runs until idle, reports
//! what it did, and exits.
//!
//! ```console
//! cargo run -p k1s-example-cli -- examples/cli/teams.yaml           # in memory
//! cargo run -p k1s-example-cli -- examples/cli/teams.yaml ./data    # on disk: a second run has no work
//! ```
//!
//! A `Team` becomes a namespace with a `ConfigMap` of its members.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program speaks to its user")]

use std::{fs, process::ExitCode, time::Duration};

use k1s::{
    Action, BoxError, Client, Context, Controller, IdleOptions, Manager, ManagerOptions, Reconciler, Request,
    Runtime,
    controller::util::{create_or_update, set_controller_reference},
    kind,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{CustomResource, ResourceExt as _, api::ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A team.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.k1s.dev", version = "v1", kind = "Team", status = "TeamStatus")]
struct TeamSpec {
    members: Vec<String>,
}

/// The status of a team.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct TeamStatus {
    members: usize,
}

struct Teams {
    client: Client,
}

impl Reconciler for Teams {
    type Error = BoxError;

    async fn reconcile(&self, request: Request, _: Context) -> Result<Action, BoxError> {
        let Some(team) = self.client.get_opt::<Team>(&request).await? else { return Ok(Action::done()) };
        let home = format!("team-{}", team.name_any());
        let metadata = ObjectMeta { name: Some(home.clone()), ..ObjectMeta::default() };
        create_or_update(&self.client, Namespace { metadata, ..Namespace::default() }, |namespace| {
            set_controller_reference(&*team, namespace)
        })
        .await?;
        let metadata =
            ObjectMeta { name: Some("members".into()), namespace: Some(home), ..ObjectMeta::default() };
        create_or_update(&self.client, ConfigMap { metadata, ..ConfigMap::default() }, |map| {
            map.data = Some(team.spec.members.iter().map(|name| (name.clone(), "member".into())).collect());
            set_controller_reference(&*team, map)
        })
        .await?;
        let status = TeamStatus { members: team.spec.members.len() };
        if team.status.as_ref() != Some(&status) {
            let mut team = (*team).clone();
            team.status = Some(status);
            self.client.status::<Team>().update(&team).await?;
        }
        Ok(Action::done())
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
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: k1s-example-cli FILE [FOLDER]")?;
    let text = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let builder = Runtime::builder().tenant("teams");
    let runtime = match arguments.next() {
        Some(folder) => builder.disk(folder).start().await?,
        None => builder.start().await?,
    };
    runtime.install::<Team>().await?;
    for applied in runtime.apply(&text).await? {
        println!("{applied}");
    }
    let manager = Manager::new(&runtime, ManagerOptions::local())?;
    let reconciler = Teams { client: manager.client() };
    Controller::managed_by(&manager)
        .for_(kind::<Team>())
        .owns(kind::<Namespace>())
        .owns(kind::<ConfigMap>())
        .complete(reconciler)?;
    let report = manager.run_until_idle(IdleOptions::within(Duration::from_secs(60))).await?;
    println!("{report}");
    runtime.stop().await?;
    Ok(())
}
