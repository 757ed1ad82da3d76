//! The `k1s` program: `k1s serve` runs a control plane, `k1s demo` one with an example operator. The other commands are
//! those of the library `k1s_cli`.
//!
//! It is a separate package so that the library `k1s` depends on neither a command-line parser nor the
//! examples.

mod pki;
mod process;
mod serve;

use std::{process::ExitCode, time::Duration};

use clap::{Parser, Subcommand, ValueEnum};

/// A Kubernetes-compatible control plane in one small program.
#[derive(Debug, Parser)]
#[command(name = "k1s", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Log format.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Log filter: error, warn, info, debug, trace, or per module as in `k1s_server=debug`.
    #[arg(long, global = true, default_value = LOG, value_name = "FILTER")]
    log: String,
}

/// The default log filter.
const LOG: &str = "warn";
/// That of commands on a server: they say themselves why a request failed, in kubectl's words.
const LOG_OF_COMMANDS: &str = "warn,kube_client::client=off";

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves the Kubernetes API until Ctrl-C.
    Serve(Box<serve::Options>),
    /// Shows, issues, renews and rotates certificates.
    #[command(subcommand)]
    Pki(pki::Command),
    /// Starts a control plane with an operator and an Application to play with.
    Demo(application::demo::DemoOptions),
    #[command(flatten)]
    Common(k1s_cli::Command),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return k1s_cli::usage(&error),
    };
    let is_default = cli.log == LOG && matches!(cli.command, Command::Common(_));
    let log = if is_default { LOG_OF_COMMANDS } else { &cli.log };
    let filter = match tracing_subscriber::EnvFilter::try_new(log) {
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
    let done = match cli.command {
        Command::Serve(options) => runtime.block_on(serve::run(*options)).map_err(|error| error.to_string()),
        Command::Pki(command) => runtime.block_on(pki::run(&command)).map_err(|error| error.to_string()),
        Command::Demo(options) => {
            runtime.block_on(application::demo::run(options)).map_err(|error| error.to_string())
        }
        Command::Common(command) => {
            return runtime.block_on(
                k1s_cli::Commands::new("k1s")
                    .command_line(<Cli as clap::CommandFactory>::command)
                    .run(command),
            );
        }
    };
    // Requests still in progress are abandoned.
    runtime.shutdown_timeout(Duration::from_secs(1));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error),
    }
}

#[expect(clippy::print_stderr, reason = "a command-line program speaks to its user")]
fn complain(message: &str) -> ExitCode {
    eprintln!("k1s: {message}");
    ExitCode::FAILURE
}
