//! The `k1s` program.

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use k1s::serve::{Options, run};

/// A Kubernetes-compatible control plane in one small program.
#[derive(Debug, Parser)]
#[command(name = "k1s", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// How logs are written.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// What is logged: error, warn, info, debug, trace, or per module as in `k1s_server=debug`.
    #[arg(long, global = true, default_value = "warn", value_name = "FILTER")]
    log: String,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves Kubernetes' API until Ctrl-C.
    Serve(Box<Options>),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = match tracing_subscriber::EnvFilter::try_new(&cli.log) {
        Ok(filter) => filter,
        Err(error) => return complain(&format!("--log {:?}: {error}", cli.log)),
    };
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match cli.log_format {
        LogFormat::Text => logs.init(),
        LogFormat::Json => logs.json().init(),
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&format!("cannot start: {error}")),
    };
    let Command::Serve(options) = cli.command;
    match runtime.block_on(run(*options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error.to_string()),
    }
}

#[expect(clippy::print_stderr, reason = "a command-line program speaks to its user")]
fn complain(message: &str) -> ExitCode {
    eprintln!("k1s: {message}");
    ExitCode::FAILURE
}
