//! The Application operator as a program, on a cluster or on an embedded control plane.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use application::{Application, Options, demo};
use clap::{Parser, Subcommand};
use k1s::{
    BoxError, Client, Manager, ManagerOptions, Runtime,
    controller::{client::ClientOptions, leader::LeaderElectionOptions},
    env::Env,
    manifests, shutdown_on_signals,
};
use kube::{
    Config, CustomResourceExt as _,
    config::{KubeConfigOptions, Kubeconfig},
};

/// The Application operator.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Runs on the cluster of this kubeconfig, instead of an embedded control plane.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Runs on the cluster of this context, of --kubeconfig or of the default files.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Keeps the data of the embedded control plane in this folder.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kubeconfig", "context"])]
    data_dir: Option<PathBuf>,
    /// Enables leader election, so that one replica of this program is active at a time.
    #[arg(long)]
    leader_elect: bool,
    /// Simulates rollouts, for clusters without a Deployment controller. Always on with an embedded control
    /// plane.
    #[arg(long)]
    simulate_rollout: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prints the custom resource definition, as JSON.
    Crd,
    /// Starts a control plane and the operator, and an Application to experiment with.
    Demo(demo::DemoOptions),
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter("info").init();
    match run(Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> Result<(), BoxError> {
    match cli.command {
        Some(Command::Crd) => {
            let crd = serde_json::to_vec_pretty(&Application::crd())?;
            Ok(std::io::Write::write_all(&mut std::io::stdout(), &crd)?)
        }
        Some(Command::Demo(options)) => demo::run(options).await,
        None if cli.kubeconfig.is_some() || cli.context.is_some() => on_cluster(cli).await,
        None => embedded(cli).await,
    }
}

fn rollout(on: bool) -> Options {
    Options { simulated_rollout: on.then_some(Duration::from_millis(500)), ..Options::default() }
}

fn manager_options(cli: &Cli) -> ManagerOptions {
    let mut options =
        ManagerOptions { field_owner: Some(application::FIELD_OWNER.into()), ..ManagerOptions::default() };
    if cli.leader_elect {
        options.leader_election = Some(LeaderElectionOptions::new("application-operator", "default"));
    }
    options
}

async fn on_cluster(cli: Cli) -> Result<(), BoxError> {
    let options = KubeConfigOptions { context: cli.context.clone(), ..KubeConfigOptions::default() };
    let config = match &cli.kubeconfig {
        Some(path) => Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?,
        None => Config::from_kubeconfig(&options).await?,
    };
    tracing::info!(cluster = %config.cluster_url, "running on a cluster");
    let client = kube::Client::try_from(config)?;
    manifests::install::<Application>(&Client::new(client.clone(), ClientOptions::default())).await?;
    let manager = Manager::new(client, manager_options(&cli))?;
    application::add_to(&manager, &rollout(cli.simulate_rollout))?;
    manager.start(shutdown_on_signals(manager.env())).await?;
    Ok(())
}

async fn embedded(cli: Cli) -> Result<(), BoxError> {
    let env = Env::system();
    let stop = shutdown_on_signals(&env);
    let builder = Runtime::builder().env(env).tenant("application").listen(([127, 0, 0, 1], 0));
    let runtime = match &cli.data_dir {
        Some(folder) => builder.disk(folder).start().await?,
        None => builder.start().await?,
    };
    runtime.install::<Application>().await?;
    let file = "application.kubeconfig";
    k1s::write_kubeconfig(file.as_ref(), runtime.kubeconfig().unwrap_or_default())?;
    tracing::info!(url = runtime.url(), kubeconfig = file, "running on an embedded control plane");
    let manager = Manager::new(&runtime, manager_options(&cli))?;
    application::add_to(&manager, &rollout(true))?;
    let ended = manager.start(stop).await;
    runtime.stop().await?;
    Ok(ended?)
}
