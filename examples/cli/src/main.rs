//! A command-line program with declarative resources and no cluster: it has the commands of `k1s`, with a kind and a controller
//! of its own. After a command that writes to a data folder, the controller runs until nothing is left to do.
//!
//! ```console
//! cargo run -p k1s-example-cli -- run -f examples/cli/teams.yaml                     # in memory
//! cargo run -p k1s-example-cli -- run -f examples/cli/teams.yaml --data-dir ./data   # on disk: a second run has no work
//! cargo run -p k1s-example-cli -- get teams --data-dir ./data
//! ```
//!
//! A `Team` becomes a namespace with a `ConfigMap` of its members.

use std::process::ExitCode;

use k1s::{
    Action, BoxError, Client, Context, Controller, Manager, Reconciler, Request, TerminalError,
    controller::util::{create_or_update, set_controller_reference},
    kind,
};
use k1s_cli::Commands;
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
        if team.spec.members.is_empty() {
            // No retry helps: somebody has to change the team.
            return Err(TerminalError::new("a team needs members").into());
        }
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

fn main() -> ExitCode {
    Commands::new("teams").tenant("teams").crd::<Team>().controller(add_teams).main()
}

fn add_teams(manager: &Manager) -> Result<(), BoxError> {
    let reconciler = Teams { client: manager.client() };
    Controller::managed_by(manager)
        .for_(kind::<Team>())
        .owns(kind::<Namespace>())
        .owns(kind::<ConfigMap>())
        .complete(reconciler)?;
    Ok(())
}
