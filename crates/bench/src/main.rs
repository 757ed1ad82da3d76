//! Benchmarks and load drivers, side by side with peers.
//!
//! Every suite prints a table, or with `--json` a line per measurement:
//! `{"name":"disk.put.w64","value":…,"unit":"ops/s","peer":"etcd","peer_value":…,"ratio":…}`.
//! A ratio says how many times better than the peer: above 1 is better, whatever the unit. `server` also says what share of
//! the floor a measurement reaches, the least that any server could do for the same bytes: 1 is as good as it gets.

mod commands;
mod failover;
mod hostile;
mod multicluster;
mod report;
mod runtime;
mod server;
mod soak;
mod store;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures k1s beside its peers, and tries to break it.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Subcommand)]
enum Suite {
    /// The three stores side by side: writes, reads, watches, opening, memory and disk per object
    Store(store::Options),
    /// The API server as its clients see it: requests, lists, watches, memory per object, definition and tenant
    Server(server::Options),
    /// The latency of a well-behaved client beside attackers, and the server's peak memory
    Hostile(hostile::Options),
    /// Operators of k1s-runtime, kube-rs and Go's controller-runtime beside each other; caches and the queue alone
    Runtime(runtime::Options),
    /// The multi-cluster manager: memory and start time of each cluster, connections, reconciles, new projects
    Multicluster(multicluster::Options),
    /// Commands on a data folder with 10,000 objects, from the start of the process to its end
    Commands(commands::Options),
    /// An operator under steady churn, for minutes: its memory, its tasks, and whether it converges
    Soak(soak::Options),
    /// Two servers on one etcd, killed in turns while namespaces and owners are deleted: everything is collected, each once
    Failover(failover::Options),
    /// A server that answers with recorded answers, in a process of its own (used by `server`)
    #[command(hide = true)]
    Floor(server::FloorOptions),
    /// One backend at one size, in a process of its own (used by `store`)
    #[command(hide = true)]
    StorePart(store::PartOptions),
    /// An operator in a process of its own (used by `runtime`)
    #[command(hide = true)]
    Operator(runtime::OperatorOptions),
    /// A cache in a process of its own (used by `runtime`)
    #[command(hide = true)]
    CachePart(runtime::CacheOptions),
    /// Clusters in a process of its own (used by `multicluster`)
    #[command(hide = true)]
    FleetPart(multicluster::PartOptions),
}

fn main() -> ExitCode {
    let suite = Cli::parse().suite;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("cannot start a runtime: {error}")),
    };
    let done = runtime.block_on(async {
        match suite {
            Suite::Store(options) => store::run(options).await,
            Suite::Server(options) => server::run(options).await,
            Suite::Hostile(options) => hostile::run(options).await,
            Suite::Runtime(options) => runtime::run(options).await,
            Suite::Multicluster(options) => multicluster::run(options).await,
            Suite::Commands(options) => commands::run(options).await,
            Suite::Soak(options) => soak::run(options).await,
            Suite::Failover(options) => failover::run(options).await,
            Suite::Floor(options) => server::run_floor(options).await,
            Suite::StorePart(options) => store::run_part(options).await,
            Suite::Operator(options) => runtime::run_operator(options).await,
            Suite::CachePart(options) => runtime::run_cache(options).await,
            Suite::FleetPart(options) => multicluster::run_part(options).await,
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.0),
    }
}

/// Why a suite could not run, or what it found wrong: a sentence for the terminal.
#[derive(Debug)]
struct Failure(String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

fn fail(message: &str) -> ExitCode {
    report::progress(&format!("k1s-bench: {message}"));
    ExitCode::FAILURE
}
