//! Where a command works: on a server, or in a data folder, with a server in this process.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use http::{HeaderName, HeaderValue};
use k1s::{
    Connect, ControllersOptions, IdleOptions, Manager, ManagerError, ManagerOptions, Runtime, StartError,
    controller::manager::IdleReport,
    env::Env,
    kube::{
        self, Config,
        config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
    },
};

use crate::{
    Commands,
    api::{Api, Error, discovery::Resources, error::chain},
    progress::noticed,
    say,
};

/// How long a command waits for another one that has the folder open.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// After this time, a command says what it waits for.
const NOTICEABLE: Duration = Duration::from_secs(1);

/// How long controllers may work after a command.
const SETTLE: Duration = Duration::from_secs(60);

/// Where to find the API.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Where")]
pub struct Target {
    /// Works in this data folder, without a server; or through the server that has it open on this machine.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kubeconfig", "context", "server"])]
    data_dir: Option<PathBuf>,
    /// The control plane in the data folder, or of the k1s server. `default` by default.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// The kubeconfig of a server. By default the files in `KUBECONFIG`, or `~/.kube/config`.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The server's address, instead of the one in the kubeconfig.
    #[arg(short, long, value_name = "URL")]
    server: Option<String>,
    /// A bearer token, instead of the credentials in the kubeconfig. Everybody on this machine sees it in the list of
    /// processes: prefer --token-file.
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<String>,
    /// A file with a bearer token, instead of the credentials in the kubeconfig; `-` is the standard input.
    #[arg(long, value_name = "FILE")]
    token_file: Option<String>,
    /// Trusts any certificate of the server.
    #[arg(long)]
    insecure_skip_tls_verify: bool,
    /// The user to act as.
    #[arg(long = "as", value_name = "USER")]
    act_as: Option<String>,
    /// A group to act as; can be repeated.
    #[arg(long = "as-group", value_name = "GROUP")]
    act_as_group: Vec<String>,
    /// The namespace. By default that of the kubeconfig's context, or `default`.
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
}

/// Whether a command changes something: only then are the controllers of a folder started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// An API that a command works on.
pub(crate) struct Session {
    pub(crate) api: Api,
    pub(crate) client: kube::Client,
    pub(crate) namespace: String,
    /// Whether the namespace was given.
    pub(crate) explicit_namespace: bool,
    pub(crate) env: Env,
    runtime: Option<Runtime>,
}

impl Session {
    /// Opens the folder, or finds the server.
    pub(crate) async fn open(program: &Commands, target: &Target, access: Access) -> Result<Session, Error> {
        let on_server = target.kubeconfig.is_some() || target.context.is_some() || target.server.is_some();
        let folder = match &target.data_dir {
            Some(folder) => Some(folder.clone()),
            None if on_server => None,
            None => default_folder(program.default_folder()),
        };
        match folder {
            Some(folder) => in_folder(program, target, &folder, access).await,
            None => on_a_server(program, target).await,
        }
    }

    /// As [`open`](Self::open), and in memory if no place was given: never on a server that nobody has named.
    pub(crate) async fn open_or_memory(
        program: &Commands,
        target: &Target,
        access: Access,
    ) -> Result<Session, Error> {
        let named = target.data_dir.is_some()
            || target.kubeconfig.is_some()
            || target.context.is_some()
            || target.server.is_some()
            || default_folder(program.default_folder()).is_some();
        if named {
            return Session::open(program, target, access).await;
        }
        let mut builder = Runtime::builder().memory();
        if let Some(tenant) = target.tenant.as_deref().or(program.tenant) {
            builder = builder.tenant(tenant);
        }
        let runtime = builder.start().await.map_err(|error| Error::failed(error.to_string()))?;
        inside(program, target, runtime, access).await
    }

    /// Whether the server is in this process, and its controllers end with it.
    pub(crate) fn is_folder(&self) -> bool {
        self.runtime.is_some()
    }

    pub(crate) async fn resources(&self) -> Result<Resources, Error> {
        Resources::discover(&self.api).await
    }

    /// In a folder: runs the controllers until nothing is left to do. On a server, they run there.
    pub(crate) async fn settle(&self, program: &Commands) -> Result<Option<IdleReport>, Error> {
        match &self.runtime {
            Some(runtime) => run_until_idle(program, runtime, SETTLE).await.map(Some),
            None => Ok(None),
        }
    }

    /// Runs the program's controllers, here, until nothing is left to do.
    pub(crate) async fn reconcile(&self, program: &Commands, within: Duration) -> Result<IdleReport, Error> {
        match &self.runtime {
            Some(runtime) => run_until_idle(program, runtime, within).await,
            None => run_until_idle(program, self.client.clone(), within).await,
        }
    }

    /// Ends a command that has written: in a folder, the controllers do what follows from it. What they could not do is told, and
    /// is no error of the command: on a server, they would do it later.
    pub(crate) async fn finish(self, program: &Commands, done: Result<(), Error>) -> Result<(), Error> {
        let settled = self.settle(program).await;
        self.close().await?;
        done?;
        for report in settled?.iter() {
            for (kind, problem) in &report.problems {
                say::complain(&format!("warning: not reconciled: {kind}: {problem}"), false);
            }
            not_reconciled(report);
        }
        Ok(())
    }

    /// Closes the folder.
    pub(crate) async fn close(self) -> Result<(), Error> {
        let Some(runtime) = self.runtime else { return Ok(()) };
        runtime.stop().await.map_err(|error| Error::failed(error.to_string()))
    }
}

async fn run_until_idle(
    program: &Commands,
    connect: impl Connect,
    within: Duration,
) -> Result<IdleReport, Error> {
    let failed = |error: &dyn std::error::Error| Error::failed(chain(error));
    let manager = Manager::new(connect, ManagerOptions::local()).map_err(|error| failed(&error))?;
    for add in &program.controllers {
        add(&manager).map_err(|error| failed(&*error))?;
    }
    let what = || format!("controllers are at work, for at most {} s", within.as_secs());
    let report = noticed(&Env::system(), what, manager.run_until_idle(IdleOptions::within(within))).await;
    report.map_err(|error| {
        if let ManagerError::NotIdle(not_idle) = &error {
            not_reconciled(&not_idle.report);
        }
        failed(&error)
    })
}

/// Names the requests that failed: a program that mounts the commands need not show logs.
fn not_reconciled(report: &IdleReport) {
    for failed in &report.failed {
        say::complain(&format!("warning: not reconciled: {failed}"), false);
    }
}

/// The folder of this name in the working directory, or the nearest one above it.
pub(crate) fn default_folder(name: &str) -> Option<PathBuf> {
    let mut at = env::current_dir().ok()?;
    loop {
        let folder = at.join(name);
        if folder.is_dir() {
            return Some(folder);
        }
        if !at.pop() {
            return None;
        }
    }
}

async fn in_folder(
    program: &Commands,
    target: &Target,
    folder: &Path,
    access: Access,
) -> Result<Session, Error> {
    if access == Access::Read && !folder.exists() {
        return Err(Error::failed(format!(
            "there is no data folder {0}; `{1} apply -f FILE --data-dir {0}` creates it",
            folder.display(),
            program.name
        )));
    }
    let env = Env::system();
    let (started, mut said) = (env.now(), false);
    let runtime = loop {
        let mut builder = Runtime::builder().disk(folder);
        if access == Access::Read {
            builder = builder.controllers(ControllersOptions::none());
        }
        if let Some(tenant) = target.tenant.as_deref().or(program.tenant) {
            builder = builder.tenant(tenant);
        }
        match builder.start().await {
            Ok(runtime) => break runtime,
            Err(StartError::FolderInUse { holder, .. }) => {
                if let Some(kubeconfig) = k1s::folder_kubeconfig(folder) {
                    return through_the_server(program, target, folder, &holder, &kubeconfig).await;
                }
                let waited = env.now() - started;
                if waited > PATIENCE {
                    return Err(Error::failed(format!(
                        "the data folder {} is in use by {holder}, which is not a server that this command could ask; \
                         try again when it has ended",
                        folder.display()
                    )));
                }
                if waited > NOTICEABLE && !said {
                    said = true;
                    say::note(&format!("waiting for {holder}, which has {} open", folder.display()));
                }
                env.sleep(LOOK_AGAIN).await;
            }
            Err(error) => return Err(Error::failed(error.to_string())),
        }
    };
    inside(program, target, runtime, access).await
}

/// A session with a server in this process.
async fn inside(
    program: &Commands,
    target: &Target,
    runtime: Runtime,
    access: Access,
) -> Result<Session, Error> {
    let client = runtime.client();
    let session = Session {
        api: Api::new(client.clone(), target.headers()?, "in this process"),
        client,
        namespace: target.namespace.clone().unwrap_or_else(|| "default".to_owned()),
        explicit_namespace: target.namespace.is_some(),
        env: Env::system(),
        runtime: Some(runtime),
    };
    program.install(&session, access).await?;
    Ok(session)
}

/// The server that has the folder open.
async fn through_the_server(
    program: &Commands,
    target: &Target,
    folder: &Path,
    holder: &str,
    kubeconfig: &str,
) -> Result<Session, Error> {
    let config = Kubeconfig::from_yaml(kubeconfig)
        .map_err(|error| Error::failed(format!("{}: {}", folder.display(), chain(&error))))?;
    let session = connect(program, target, config, true).await?;
    // The file may be of a server in a container, whose address leads elsewhere.
    if let Err(Error::Connection(error)) = session.api.text(crate::api::Path::new("/version")).await {
        return Err(Error::failed(format!(
            "the data folder {} is in use by {holder}, which cannot be reached: {error}",
            folder.display()
        )));
    }
    Ok(session)
}

async fn on_a_server(program: &Commands, target: &Target) -> Result<Session, Error> {
    let read = match &target.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None if target.server.is_some() => of_environment().or_else(|_| Ok(Kubeconfig::default())),
        None => of_environment(),
    };
    let config = read.map_err(|error| match &target.kubeconfig {
        Some(path) => Error::failed(format!("{}: {}", path.display(), chain(&error))),
        None => Error::failed(format!(
            "there is neither a data folder nor a kubeconfig: use --data-dir DIR, or `mkdir {folder}` for one that is \
             found from here, or --kubeconfig FILE ({})",
            chain(&error),
            folder = program.default_folder(),
        )),
    })?;
    connect(program, target, config, false).await
}

/// The kubeconfig of the environment. As for kubectl, files of the list that do not exist are no error.
fn of_environment() -> Result<Kubeconfig, KubeconfigError> {
    let listed = env::var_os("KUBECONFIG").unwrap_or_default();
    let mut files = env::split_paths(&listed).filter(|path| path.is_file()).peekable();
    if files.peek().is_none() {
        return Kubeconfig::read();
    }
    files.try_fold(Kubeconfig::default(), |merged, path| merged.merge(Kubeconfig::read_from(path)?))
}

async fn connect(
    program: &Commands,
    target: &Target,
    mut config: Kubeconfig,
    is_folder: bool,
) -> Result<Session, Error> {
    if config.contexts.is_empty()
        && let Some(server) = &target.server
    {
        config = bare(server)?;
    }
    let options = KubeConfigOptions { context: target.context.clone(), ..KubeConfigOptions::default() };
    let mut config = Config::from_custom_kubeconfig(config, &options)
        .await
        .map_err(|error| Error::failed(chain(&error)))?;
    if let Some(server) = &target.server {
        config.cluster_url =
            server.parse().map_err(|error| Error::failed(format!("--server {server}: {error}")))?;
    }
    if let Some(token) = target.bearer()? {
        config.auth_info = kube::config::AuthInfo { token: Some(token.into()), ..Default::default() };
    }
    config.accept_invalid_certs |= target.insecure_skip_tls_verify;
    if let Some(tenant) = target.tenant.as_deref().or(program.tenant.filter(|_| is_folder)) {
        // A server has all control planes of its folder.
        let url = format!("{}/clusters/{tenant}", config.cluster_url.to_string().trim_end_matches('/'));
        config.cluster_url =
            url.parse().map_err(|error| Error::failed(format!("--tenant {tenant}: {error}")))?;
    }
    // Watches and waits are as long as they are.
    config.read_timeout = None;
    let namespace = target.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let server = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
    let client = kube::Client::try_from(config).map_err(|error| Error::failed(chain(&error)))?;
    let session = Session {
        api: Api::new(client.clone(), target.headers()?, server),
        client,
        namespace,
        explicit_namespace: target.namespace.is_some(),
        env: Env::system(),
        runtime: None,
    };
    Ok(session)
}

/// A kubeconfig with nothing but a server.
fn bare(server: &str) -> Result<Kubeconfig, Error> {
    let text = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "server",
        "clusters": [{"name": "server", "cluster": {"server": server}}],
        "users": [{"name": "server", "user": {}}],
        "contexts": [{"name": "server", "context": {"cluster": "server", "user": "server"}}],
    });
    serde_json::from_value(text).map_err(|error| Error::failed(error.to_string()))
}

impl Target {
    /// The token that was given.
    fn bearer(&self) -> Result<Option<String>, Error> {
        let Some(path) = &self.token_file else { return Ok(self.token.clone()) };
        match read(path)?.trim() {
            "" => Err(Error::failed(format!("--token-file {path}: it is empty"))),
            token => Ok(Some(token.to_owned())),
        }
    }

    fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, Error> {
        let value = |text: &str| {
            HeaderValue::from_str(text)
                .map_err(|_| Error::failed(format!("{text:?} cannot be sent as a header")))
        };
        let mut headers = Vec::new();
        if let Some(user) = &self.act_as {
            headers.push((HeaderName::from_static("impersonate-user"), value(user)?));
        }
        for group in &self.act_as_group {
            headers.push((HeaderName::from_static("impersonate-group"), value(group)?));
        }
        Ok(headers)
    }
}

/// Reads a file, or stdin for `-`.
pub(crate) fn read(path: &str) -> Result<String, Error> {
    if path == "-" {
        return std::io::read_to_string(std::io::stdin())
            .map_err(|error| Error::failed(format!("stdin: {error}")));
    }
    fs::read_to_string(path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            Error::failed(format!("the path {path:?} does not exist"))
        } else {
            Error::failed(format!("{path}: {error}"))
        }
    })
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("folder", &self.is_folder()).finish_non_exhaustive()
    }
}
