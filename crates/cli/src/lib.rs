//! The commands of the `k1s` program, for any program: another one mounts them under its own name, with its own kinds and
//! controllers.
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     k1s_cli::Commands::new("mytool").main()
//! }
//! ```
//!
//! A program that has commands of its own adds [`Command`] to them with `#[command(flatten)]`, and passes what was chosen to
//! [`Commands::run`]; `k1s` itself does that.
//!
//! This crate parses a command line, speaks to an API server with `kube::Client`, and prints. It has no behaviour that a
//! server does not have as well: in a data folder the same requests go to a server in this process.

mod api;
mod files;
mod migrate;
mod objects;
mod print;
mod progress;
mod say;
mod session;
mod store;
mod verbs;

use std::{fmt, process::ExitCode, sync::Arc, time::Duration};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use k1s::{BoxError, Client, Manager, controller::client::ClientOptions, kube::CustomResourceExt, manifests};
use serde_json::Value;

pub use self::{
    migrate::MigrateArgs,
    session::Target,
    store::StoreCommand,
    verbs::{
        api_resources::ApiResourcesArgs,
        apply::ApplyArgs,
        change::{LabelArgs, PatchArgs, ScaleArgs},
        create::CreateArgs,
        delete::DeleteArgs,
        describe::DescribeArgs,
        diff::DiffArgs,
        edit::EditArgs,
        events::EventsArgs,
        explain::ExplainArgs,
        get::GetArgs,
        info::{CompletionArgs, KubeconfigArgs, VersionArgs},
        run::RunArgs,
        tree::TreeArgs,
        wait::WaitArgs,
    },
};
use crate::{
    api::{Error, JSON, Path},
    session::{Access, Session},
    verbs::change::Field,
};

/// A command that every program with [`Commands`] has.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// Shows objects.
    Get(Box<GetArgs>),
    /// Shows all about objects, with their Events.
    Describe(Box<DescribeArgs>),
    /// Shows objects as they change: `get --watch`.
    Watch(Box<GetArgs>),
    /// Creates or changes objects as files describe them.
    Apply(Box<ApplyArgs>),
    /// Creates objects.
    Create(Box<CreateArgs>),
    /// Deletes objects.
    Delete(Box<DeleteArgs>),
    /// Changes fields of an object.
    Patch(Box<PatchArgs>),
    /// Changes an object in an editor.
    Edit(Box<EditArgs>),
    /// Sets and removes labels.
    Label(Box<LabelArgs>),
    /// Sets and removes annotations.
    Annotate(Box<LabelArgs>),
    /// Changes the number of replicas.
    Scale(Box<ScaleArgs>),
    /// Shows what controllers report.
    Events(Box<EventsArgs>),
    /// Waits until objects have a condition, or are gone.
    Wait(Box<WaitArgs>),
    /// Shows what an apply would change. Exit codes: 0 nothing, 1 something, 2 the comparison failed.
    Diff(Box<DiffArgs>),
    /// Shows the fields of a type.
    Explain(Box<ExplainArgs>),
    /// Shows an object with its owners and what it owns.
    Tree(Box<TreeArgs>),
    /// Applies files, runs controllers here until nothing is left to do, and reports. In memory, unless a place is given.
    Run(Box<RunArgs>),
    /// Lists the types of objects.
    ApiResources(Box<ApiResourcesArgs>),
    /// Checks, repairs and copies a data folder that no server has open.
    #[command(subcommand)]
    Store(StoreCommand),
    /// Stores the objects of custom resources in the storage versions of their definitions.
    ///
    /// In all tenants, on a running server or without one. A migration that is interrupted loses nothing, and is begun again.
    ///
    /// Exit codes: 0 everything is stored in the storage versions, 1 some migrations failed, 2 nothing was migrated.
    Migrate(migrate::MigrateArgs),
    /// Prints the kubeconfig of the server that has a data folder open.
    Kubeconfig(KubeconfigArgs),
    /// Prints the versions of the program and the server.
    Version(Box<VersionArgs>),
    /// Prints a script that completes commands in a shell.
    Completion(CompletionArgs),
}

/// Adds controllers to a manager.
type AddControllers = Arc<dyn Fn(&Manager) -> Result<(), BoxError> + Send + Sync>;

/// The commands, under the name of a program, with its kinds and controllers.
#[derive(Clone)]
pub struct Commands {
    name: &'static str,
    version: &'static str,
    tenant: Option<&'static str>,
    folder: String,
    /// Custom resource definitions, by name.
    definitions: Vec<(String, Value)>,
    controllers: Vec<AddControllers>,
    parser: fn() -> clap::Command,
}

/// Prints what is wrong with a command line, or the help that it asks for; the exit code is kubectl's.
#[must_use]
pub fn usage(error: &clap::Error) -> ExitCode {
    // A closed pipe is not a reason to fail differently.
    let _ = error.print();
    if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

impl Commands {
    /// The commands under this name, as it is in messages: `k1s`. The default data folder is this name with a dot.
    #[must_use]
    pub fn new(name: &'static str) -> Commands {
        Commands {
            name,
            version: env!("CARGO_PKG_VERSION"),
            tenant: None,
            folder: format!(".{name}"),
            definitions: Vec::new(),
            controllers: Vec::new(),
            parser: Arguments::command,
        }
    }

    /// The program's version. That of this crate by default.
    #[must_use]
    pub fn version(mut self, version: &'static str) -> Commands {
        self.version = version;
        self
    }

    /// The control plane in data folders. `default` by default.
    #[must_use]
    pub fn tenant(mut self, tenant: &'static str) -> Commands {
        self.tenant = Some(tenant);
        self
    }

    /// Installs the definition of a custom resource in each data folder that a command opens.
    #[must_use]
    pub fn crd<K: CustomResourceExt>(mut self) -> Commands {
        // A derived definition can always be encoded.
        let definition = serde_json::to_value(K::crd()).unwrap_or_default();
        self.definitions.push((K::crd_name().to_owned(), definition));
        self
    }

    /// Adds controllers. They run in data folders after commands that write, until nothing is left to do, and in `run`.
    #[must_use]
    pub fn controller(
        mut self,
        add: impl Fn(&Manager) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Commands {
        self.controllers.push(Arc::new(add));
        self
    }

    /// The program's whole command line, for `completion`: with the program's own commands.
    #[must_use]
    pub fn command_line(mut self, parser: fn() -> clap::Command) -> Commands {
        self.parser = parser;
        self
    }

    /// Parses the process's arguments and runs the command: for a program without commands of its own.
    #[must_use]
    pub fn main(self) -> ExitCode {
        let arguments = match Arguments::from_arg_matches(&self.parser().get_matches()) {
            Ok(arguments) => arguments,
            Err(error) => return usage(&error),
        };
        let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                say::note(&format!("{}: cannot start: {error}", self.name));
                return ExitCode::FAILURE;
            }
        };
        let code = runtime.block_on(self.run(arguments.command));
        runtime.shutdown_timeout(Duration::from_secs(1));
        code
    }

    /// Runs a command. What it prints is on stdout and stderr; the exit codes are kubectl's.
    pub async fn run(&self, command: Command) -> ExitCode {
        let done = match command {
            Command::Get(args) => verbs::get::run(self, &args).await,
            Command::Describe(args) => verbs::describe::run(self, &args).await,
            Command::Watch(mut args) => {
                args.watch = true;
                verbs::get::run(self, &args).await
            }
            Command::Patch(args) => verbs::change::patch(self, &args).await,
            Command::Edit(args) => verbs::edit::run(self, &args).await,
            Command::Label(args) => verbs::change::label(self, &args, Field::Labels).await,
            Command::Annotate(args) => verbs::change::label(self, &args, Field::Annotations).await,
            Command::Scale(args) => verbs::change::scale(self, &args).await,
            Command::Events(args) => verbs::events::run(self, &args).await,
            Command::Wait(args) => verbs::wait::run(self, &args).await,
            Command::Diff(args) => verbs::diff::run(self, &args).await,
            Command::Explain(args) => verbs::explain::run(self, &args).await,
            Command::Tree(args) => verbs::tree::run(self, &args).await,
            Command::Run(args) => verbs::run::run(self, &args).await,
            Command::Apply(args) => verbs::apply::run(self, &args).await,
            Command::Create(args) => verbs::create::run(self, &args).await,
            Command::Delete(args) => verbs::delete::run(self, &args).await,
            Command::ApiResources(args) => verbs::api_resources::run(self, &args).await,
            Command::Store(command) => return store::run(self.name, &command).await,
            Command::Migrate(args) => return migrate::run(self.name, &args).await,
            Command::Kubeconfig(args) => verbs::info::kubeconfig(self, &args),
            Command::Version(args) => verbs::info::version(self, &args).await,
            Command::Completion(args) => {
                verbs::info::completion(self, &args);
                Ok(())
            }
        };
        let Err(error) = done else { return ExitCode::SUCCESS };
        let text = error.to_string();
        if !text.is_empty() {
            say::complain(&text, true);
        }
        error.code().into()
    }

    fn parser(&self) -> clap::Command {
        (self.parser)().name(self.name).bin_name(self.name).version(self.version)
    }

    fn default_folder(&self) -> &str {
        &self.folder
    }

    /// Installs the program's definitions in a folder: a reader only those that are missing.
    async fn install(&self, session: &Session, access: Access) -> Result<(), Error> {
        for (name, definition) in &self.definitions {
            let path = Path::new(format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"));
            let known = match session.api.get(path, JSON).await {
                Ok(_) => true,
                Err(error) if error.is_not_found() => false,
                Err(error) => return Err(error),
            };
            if known && access == Access::Read {
                continue;
            }
            let options = ClientOptions { env: session.env.clone(), ..ClientOptions::default() };
            let client = Client::new(session.client.clone(), options);
            manifests::apply(&client, &definition.to_string())
                .await
                .map_err(|error| Error::failed(error.to_string()))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Commands").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/command-line.md")]
mod guide {}
