//! `migrate`: stores the objects of custom resources in their storage versions.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use k1s::{
    Runtime,
    env::Env,
    kube::{self, Client},
    migration::{self, MigrateError, Stored},
};

/// How long a server may take to begin a migration.
const PATIENCE: Duration = Duration::from_secs(30);

/// The options of `migrate`.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// The data folder of a server that is not running. Without it, the server of the kubeconfig is asked.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The tenant in the data folder.
    #[arg(long, value_name = "NAME", default_value = "default")]
    tenant: String,
    /// Rewrites these resources, whatever their definitions say of what is stored.
    #[arg(value_name = "PLURAL.GROUP")]
    resources: Vec<String>,
    /// Only says what would be rewritten.
    #[arg(long)]
    dry_run: bool,
}

/// Why there is nothing to migrate.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Start(#[from] k1s::StartError),
    #[error(transparent)]
    Stop(#[from] k1s::StopError),
    #[error("{0}")]
    Connect(String),
    #[error("{0}: there is no such custom resource")]
    Unknown(String),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error("{0} of {1} migrations failed")]
    Failed(usize, usize),
}

/// Runs the command.
pub(crate) async fn run(program: &str, args: &MigrateArgs) -> ExitCode {
    let done = match &args.data_dir {
        Some(folder) => in_folder(folder.clone(), args).await,
        None => on_server(args).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::say::complain(&format!("{program}: {error}"), true);
            ExitCode::FAILURE
        }
    }
}

async fn in_folder(folder: PathBuf, args: &MigrateArgs) -> Result<(), Error> {
    let env = Env::system();
    let runtime = Runtime::builder().env(env.clone()).disk(folder).tenant(&args.tenant).start().await?;
    let done = migrate(&runtime.client(), &env, args).await;
    runtime.stop().await?;
    done
}

async fn on_server(args: &MigrateArgs) -> Result<(), Error> {
    let failed = |error: kube::Error| Error::Connect(format!("cannot connect: {error}"));
    let client = Client::try_default().await.map_err(failed)?;
    migrate(&client, &Env::system(), args).await
}

async fn migrate(client: &Client, env: &Env, args: &MigrateArgs) -> Result<(), Error> {
    let all = migration::stored(client).await?;
    let wanted: Vec<Stored> = if args.resources.is_empty() {
        all.into_iter().filter(Stored::is_outdated).collect()
    } else {
        let find = |name: &String| {
            let found = all.iter().find(|one| one.to_string() == *name);
            found.cloned().ok_or_else(|| Error::Unknown(name.clone()))
        };
        args.resources.iter().map(find).collect::<Result<_, _>>()?
    };
    if wanted.is_empty() {
        say("Everything is stored in the storage versions.");
        return Ok(());
    }
    let mut failed = 0;
    for one in &wanted {
        let from = one.versions.join(", ");
        if args.dry_run {
            say(&format!("{one}: {from} -> {}", one.storage));
            continue;
        }
        match migration::migrate(client, env, (&one.group, &one.plural), PATIENCE).await {
            Ok(message) => say(&format!("{one}: {from} -> {}: {message}", one.storage)),
            // The others may be in order.
            Err(error @ (MigrateError::Failed(_) | MigrateError::NotBegun(_))) => {
                failed += 1;
                say(&format!("{one}: {from} -> {}: {error}", one.storage));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if failed > 0 { Err(Error::Failed(failed, wanted.len())) } else { Ok(()) }
}

#[expect(clippy::print_stdout, reason = "a command-line program speaks to its user")]
fn say(text: &str) {
    println!("{text}");
}
