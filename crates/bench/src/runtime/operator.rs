//! An operator in its own process, driven by commands: one line in, one line of JSON out.
//!
//! The operators of all libraries speak the same lines, that of Go in `interop/operator-go` too:
//! - at the start it reports `synced` and `first`: the seconds until its cache was complete, and until every object
//!   was reconciled once;
//! - `requeue MODE COUNT` sends that many objects through a channel into the queue, and reports the `seconds` until they
//!   were reconciled;
//! - `expect COUNT` is answered at once, and again after that many more reconciles;
//! - `write COUNT` changes that many objects (a server in the same process has no other writers);
//! - `time COUNT` changes an object that many times, and reports `p50` and `p99` of the seconds from the write to the reconcile;
//! - `end` ends it.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use clap::{Args, ValueEnum};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k1s_env::{Env, Instant};
use k1s_server::{ApiServer, ServerOptions, User};
use k1s_store::{MemoryOptions, MemoryStore};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    sync::watch,
};

use super::{k1s, kube_rs, widget};
use crate::{Failure, report};

#[derive(Args)]
pub(crate) struct Options {
    #[arg(value_enum)]
    library: Library,
    /// Where the server is; without it, the server is in this process
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    #[arg(long)]
    workers: u16,
    /// The number of widgets; they are created if the server is in this process
    #[arg(long)]
    objects: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Library {
    K1s,
    KubeRs,
}

/// What a reconcile does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Nothing.
    Noop,
    /// Reads its object from the cache.
    Read,
    /// Reads its object from the cache, and patches its status.
    Status,
}

impl Mode {
    pub(crate) const ALL: [Mode; 3] = [Mode::Noop, Mode::Read, Mode::Status];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Noop => "noop",
            Mode::Read => "read",
            Mode::Status => "status",
        }
    }

    fn parse(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// A line of an operator's output.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Said {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) synced: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p50: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99: Option<f64>,
}

/// Counts reconciles, and holds what a reconcile does.
pub(crate) struct Tally {
    pub(crate) env: Env,
    mode: AtomicU8,
    count: AtomicU64,
    target: AtomicU64,
    reached: watch::Sender<Option<Instant>>,
    timed: watch::Sender<Option<Instant>>,
    /// A number that no status has had yet.
    fresh: AtomicU64,
}

impl Tally {
    fn new(env: &Env, target: u64) -> Arc<Tally> {
        Arc::new(Tally {
            env: env.clone(),
            mode: AtomicU8::new(0),
            count: AtomicU64::new(0),
            target: AtomicU64::new(target),
            reached: watch::Sender::new(None),
            timed: watch::Sender::new(None),
            fresh: AtomicU64::new(1),
        })
    }

    pub(crate) fn mode(&self) -> Mode {
        Mode::ALL[usize::from(self.mode.load(Ordering::Relaxed))]
    }

    /// A reconcile of this object begins.
    pub(crate) fn begins(&self, name: &str) {
        if name == widget::TIMED {
            self.timed.send_replace(Some(self.env.now()));
        }
    }

    /// A reconcile has ended.
    pub(crate) fn ran(&self) {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if count == self.target.load(Ordering::Relaxed) {
            self.reached.send_replace(Some(self.env.now()));
        }
    }

    pub(crate) fn fresh(&self) -> u64 {
        self.fresh.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits for `count` more reconciles from now on.
    fn expect(&self, more: u64) {
        self.reached.send_replace(None);
        self.target.store(self.count.load(Ordering::SeqCst) + more, Ordering::SeqCst);
    }

    async fn reached(&self) -> Result<Instant, Failure> {
        at(&self.env, &self.reached, &|| format!("{} reconciles", self.count.load(Ordering::Relaxed))).await
    }
}

async fn at(
    env: &Env,
    told: &watch::Sender<Option<Instant>>,
    so_far: &(dyn Fn() -> String + Sync),
) -> Result<Instant, Failure> {
    let mut told = told.subscribe();
    let told = env.timeout(Duration::from_secs(300), told.wait_for(Option::is_some)).await;
    let at = told.ok().and_then(|told| told.ok().and_then(|told| *told));
    at.ok_or_else(|| Failure(format!("it stands still after {}", so_far())))
}

/// An operator of some library, running.
#[async_trait::async_trait]
pub(crate) trait Operator: Send + Sync {
    /// Waits until its cache is complete.
    async fn synced(&self) -> Result<(), Failure>;
    /// Sends the first `count` widgets through the channel.
    async fn requeue(&self, count: u64) -> Result<(), Failure>;
    /// Changes a widget, with the library's client.
    async fn write(&self, name: &str, size: u64) -> Result<(), Failure>;
    async fn end(&self) -> Result<(), Failure>;
}

pub(crate) async fn client(env: &Env, kubeconfig: Option<&PathBuf>) -> Result<kube::Client, Failure> {
    if let Some(file) = kubeconfig {
        let config = kube::config::Kubeconfig::read_from(file)?;
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(config, &options).await?;
        return Ok(kube::Client::try_from(config)?);
    }
    let store = Arc::new(MemoryStore::new(env.clone(), MemoryOptions::default()));
    let server = ApiServer::new(env.clone(), store, ServerOptions::default()).await;
    let server = server.map_err(|status| Failure(status.message))?;
    Ok(kube::Client::new(server.as_user(User::admin()), widget::NAMESPACE))
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let env = Env::system();
    // As a task: on the thread of `main` it would run beside the workers, one thread more than there are processors.
    env.clone().spawn("operator", run_task(env, options)).await?
}

async fn run_task(env: Env, options: Options) -> Result<(), Failure> {
    let client = client(&env, options.kubeconfig.as_ref()).await?;
    if options.kubeconfig.is_none() {
        widget::fill(&env, &client, options.objects).await?;
    }
    let tally = Tally::new(&env, options.objects + 1);
    let began = env.now();
    let operator: Box<dyn Operator> = match options.library {
        Library::K1s => Box::new(k1s::K1s::start(client, &tally, options.workers, options.objects)?),
        Library::KubeRs => Box::new(kube_rs::KubeRs::start(client, &tally, options.workers, options.objects)),
    };
    operator.synced().await?;
    let synced = (env.now() - began).as_secs_f64();
    let first = (tally.reached().await? - began).as_secs_f64();
    say(&Said { synced: Some(synced), first: Some(first), ..Said::default() })?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        if !told(&line, &env, &tally, &*operator).await? {
            break;
        }
    }
    operator.end().await
}

/// Runs a command; `false` after `end`.
async fn told(line: &str, env: &Env, tally: &Tally, operator: &dyn Operator) -> Result<bool, Failure> {
    let wrong = || Failure(format!("{line:?} cannot be done"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let count = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    match *words {
        ["requeue", mode, number] => {
            let (mode, number) = (Mode::parse(mode).ok_or_else(wrong)?, count(number)?);
            tally.mode.store(mode as u8, Ordering::SeqCst);
            tally.expect(number);
            let began = env.now();
            operator.requeue(number).await?;
            let seconds = (tally.reached().await? - began).as_secs_f64();
            tally.mode.store(Mode::Noop as u8, Ordering::SeqCst);
            say(&Said { seconds: Some(seconds), ..Said::default() })?;
        }
        ["expect", number] => {
            tally.expect(count(number)?);
            say(&Said::default())?;
            tally.reached().await?;
            say(&Said::default())?;
        }
        ["write", number] => {
            let number = count(number)?;
            tally.expect(number);
            let began = env.now();
            let writes = stream::iter(0..number).map(|at| async move {
                let size = tally.fresh();
                operator.write(&widget::name(at), size).await
            });
            writes.buffer_unordered(super::WRITERS).try_collect::<Vec<()>>().await?;
            let seconds = (tally.reached().await? - began).as_secs_f64();
            say(&Said { seconds: Some(seconds), ..Said::default() })?;
        }
        ["time", number] => {
            let mut delays = Vec::new();
            for _ in 0..count(number)? {
                tally.timed.send_replace(None);
                let began = env.now();
                operator.write(widget::TIMED, tally.fresh()).await?;
                let seen = at(env, &tally.timed, &|| "a write".to_owned()).await?;
                delays.push((seen - began).as_secs_f64());
            }
            let (p50, p99) = (report::quantile(&mut delays, 0.5), report::quantile(&mut delays, 0.99));
            say(&Said { p50: Some(p50), p99: Some(p99), ..Said::default() })?;
        }
        ["end"] => return Ok(false),
        _ => return Err(wrong()),
    }
    Ok(true)
}

pub(crate) fn say(said: &impl Serialize) -> Result<(), Failure> {
    report::print(&serde_json::to_string(said)?);
    Ok(())
}
