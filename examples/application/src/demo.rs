//! `demo`: a control plane, the operator and one Application in one process, to experiment with.

use std::{
    collections::HashMap,
    env,
    fmt::Write as _,
    io::{self, Write as _},
    net::Ipv4Addr,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use k1s::{
    Action, BoxError, CancellationToken, Client, Context, Controller, Manager, ManagerOptions, ObjectKey,
    Reconciler, Request, Runtime, RuntimeBuilder, StartError,
    controller::{
        BuildError,
        changes::ChangesOptions,
        client::{self, ClientOptions},
    },
    env::Env,
    kind, shutdown_on_signals, write_kubeconfig,
};
use parking_lot::Mutex;

use crate::{
    Application, Options,
    door::{Door, DoorOptions},
};

/// The Application that the demo starts with.
const FIRST: &str = include_str!("../manifests/web.yaml");
/// The default port of kube-apiserver.
const PORT: u16 = 6443;
/// The default port of the HTTP door.
const HTTP_PORT: u16 = 3000;

/// Command-line options of `demo`.
#[derive(Debug, Clone, Args)]
pub struct DemoOptions {
    /// The port to listen on [default: 6443, or a free one].
    #[arg(long)]
    pub port: Option<u16>,
    /// The port of plain HTTP, on this machine only, for curl and browsers [default: $PORT, or 3000, or a free one].
    #[arg(long)]
    pub http_port: Option<u16>,
    /// Number of changes that `GET /events` remembers; 0 turns it off.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub event_limit: usize,
    /// Keeps all data in this folder, and certificates and the admin token in its `pki`. Without it, all data
    /// is in memory and lost at the end.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where to write a kubeconfig for kubectl.
    #[arg(long, value_name = "FILE", default_value = "k1s.kubeconfig")]
    pub kubeconfig: PathBuf,
    /// How long a replica takes to become ready, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 800)]
    pub step_ms: u64,
}

/// Runs the demo until Ctrl-C or SIGTERM.
///
/// # Errors
/// If the control plane could not start or the operator fails.
pub async fn run(options: DemoOptions) -> Result<(), BoxError> {
    let env = Env::system();
    let stop = shutdown_on_signals(&env);
    let begun = env.now();
    let runtime = start(&env, &options).await?;
    let took = env.now() - begun;
    runtime.install::<Application>().await?;
    let (url, kubeconfig) = (runtime.url().unwrap_or_default(), runtime.kubeconfig().unwrap_or_default());
    write_kubeconfig(&options.kubeconfig, kubeconfig)
        .map_err(|error| format!("{}: {error}", options.kubeconfig.display()))?;

    let owner = Some(crate::FIELD_OWNER.into());
    let manager = Manager::new(&runtime, ManagerOptions { field_owner: owner, ..ManagerOptions::local() })?;
    let step = Duration::from_millis(options.step_ms);
    crate::add_to(&manager, &Options { simulated_rollout: Some(step), ..Options::default() })?;
    narrate(&manager)?;

    let client =
        Client::new(runtime.client(), ClientOptions { env: env.clone(), ..ClientOptions::default() });
    let changes =
        crate::changes(&client, ChangesOptions { log: options.event_limit, ..ChangesOptions::default() })?;
    let door = bind(&options)?;
    say(&welcome(url, &door.url(), took, &options));
    let closing = CancellationToken::new();
    let recording = {
        let (changes, closing) = (changes.clone(), closing.clone());
        env.spawn("changes", async move { changes.run(closing).await })
    };
    // Everything that happens from here on is recorded.
    changes.ready().await;
    let serving = {
        let (manager, closing) = (manager.clone(), closing.clone());
        env.spawn("HTTP", async move { door.serve(&manager, changes, DoorOptions::default(), closing).await })
    };
    for applied in runtime.apply(FIRST).await? {
        say(&format!("  {applied}"));
    }
    let ended = manager.start(stop).await;
    say("\nstopping: reconciles in flight end, then the control plane");
    closing.cancel();
    serving.await?;
    recording.await?;
    runtime.stop().await?;
    ended?;
    say("stopped");
    Ok(())
}

/// Binds the HTTP door: to the given port, to that of the environment, or to the default one or a free one.
fn bind(options: &DemoOptions) -> Result<Door, BoxError> {
    let wanted = match (options.http_port, env::var("PORT")) {
        (Some(port), _) => Some(port),
        (None, Ok(text)) => {
            let port = text.parse().map_err(|_| format!("the environment's PORT is not a port: {text:?}"))?;
            Some(port)
        }
        (None, Err(_)) => None,
    };
    match Door::bind(wanted.unwrap_or(HTTP_PORT)) {
        // The user did not request this port.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && wanted.is_none() => Ok(Door::bind(0)?),
        bound => Ok(bound.map_err(|error| {
            format!(
                "cannot listen at port {} for HTTP: {error}; choose another with --http-port",
                wanted.unwrap_or(HTTP_PORT)
            )
        })?),
    }
}

async fn start(env: &Env, options: &DemoOptions) -> Result<Runtime, StartError> {
    let builder = |port: u16| -> RuntimeBuilder {
        let builder = Runtime::builder().env(env.clone()).tenant("demo").listen((Ipv4Addr::LOCALHOST, port));
        match &options.data_dir {
            Some(folder) => builder.disk(folder),
            None => builder,
        }
    };
    match builder(options.port.unwrap_or(PORT)).start().await {
        // The user did not request this port.
        Err(StartError::PortInUse { .. }) if options.port.is_none() => builder(0).start().await,
        started => started,
    }
}

fn welcome(url: &str, http: &str, took: Duration, options: &DemoOptions) -> String {
    let kept = match &options.data_dir {
        Some(folder) => format!("kept in {}", folder.display()),
        None => "in memory; --data-dir DIR keeps it".to_owned(),
    };
    let file = shown(&options.kubeconfig);
    format!(
        "k1s demo: a control plane and the Application operator in one process\n\n\
         \x20 control plane  {url} (ready after {:.0?}; {kept})\n\
         \x20 operator       applications.cloudnative.elide.dev/v1\n\
         \x20 over HTTP      {http} (this machine only; curl -N {http}/watch)\n\
         \x20 kubeconfig     {file}\n\n\
         Three things to try, in another terminal:\n\n\
         \x20 export KUBECONFIG={file}\n\n\
         \x20 1. Scale it, and watch it roll out (no container runs: the demo pretends to have nodes)\n\
         \x20    kubectl patch app web --type=merge -p '{{\"spec\":{{\"replicas\":5}}}}'\n\
         \x20    kubectl get app,deployments,services,configmaps\n\
         \x20 2. Break it, and see it put right\n\
         \x20    kubectl delete deployment web\n\
         \x20    kubectl describe app web\n\
         \x20 3. Delete it, and see that nothing is left\n\
         \x20    kubectl delete app web\n\
         \x20    kubectl get deployments,services,configmaps -l app.kubernetes.io/name=web\n\n\
         Ctrl-C stops it. What happens:\n",
        took,
    )
}

/// As an absolute path, so that it works in any terminal.
fn shown(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// Prints the progress of Applications: a second controller for the same kind, which only reads.
fn narrate(manager: &Manager) -> Result<(), BuildError> {
    let narrator = Narrator { client: manager.client(), told: Mutex::default() };
    Controller::managed_by(manager).named("narrator").for_(kind::<Application>()).complete(narrator)
}

struct Narrator {
    client: Client,
    told: Mutex<HashMap<ObjectKey, String>>,
}

impl Reconciler for Narrator {
    type Error = client::Error;

    async fn reconcile(&self, request: Request, _: Context) -> Result<Action, client::Error> {
        let line = self.client.get_opt::<Application>(&request).await?.map(|app| line(&request, &app));
        let mut told = self.told.lock();
        match line {
            Some(line) if told.get(&request) != Some(&line) => {
                say(&line);
                told.insert(request, line);
            }
            None if told.remove(&request).is_some() => {
                say(&format!("  application {:<20} gone", request.to_string()))
            }
            _ => {}
        }
        Ok(Action::done())
    }
}

/// `application default/web  Pending  ■■□ 2/3`
fn line(request: &Request, app: &Application) -> String {
    let status = app.status.clone().unwrap_or_default();
    let (wanted, ready) = (app.spec.replicas.max(0), status.ready_replicas.max(0));
    let phase = match app.metadata.deletion_timestamp {
        Some(_) => "Deleting".to_owned(),
        None => status.phase.to_string(),
    };
    let mut text = format!("  application {:<20} {phase:<10} ", request.to_string());
    // More would not fit on a line.
    for replica in 0..wanted.min(20) {
        text.push(if replica < ready { '■' } else { '□' });
    }
    // Writing to a string does not fail.
    let _ = write!(text, " {ready}/{wanted}");
    if let Some(failed) = status.conditions.iter().find(|one| one.reason.ends_with("Failed")) {
        let _ = write!(text, "  {}", failed.message);
    }
    text
}

/// Prints to stdout; a closed pipe is not a reason to stop.
fn say(text: &str) {
    let _ = io::stdout().lock().write_all(format!("{text}\n").as_bytes());
}
