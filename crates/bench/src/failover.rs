//! Two servers on one etcd, killed in turns while namespaces and owners are deleted: the leader collects everything, and each
//! object is deleted once.
//!
//! The servers are processes of `k1s serve` that get SIGKILL. Objects are made and deleted, and deletions are watched, by a third
//! server in this process that has no controllers.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use futures_util::StreamExt as _;
use k1s_env::Env;
use k1s_server::{ApiServer, ServerOptions, User};
use k1s_store_etcd::{EtcdStore, testing::EtcdServer};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Namespace, Secret},
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams},
};
use parking_lot::Mutex;
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::{Failure, report, server::child};

#[derive(Args)]
pub(crate) struct Options {
    /// The duration in minutes
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// The seconds between two kills
    #[arg(long, default_value_t = 4.0)]
    every: f64,
    /// The lease duration in seconds: how long a killed server stays the leader
    #[arg(long, default_value_t = 3)]
    lease: u64,
    /// Namespaces deleted per second, and as many owners
    #[arg(long, default_value_t = 5.0)]
    rate: f64,
    /// The seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The `k1s` program; by default the one of the same build
    #[arg(long, value_name = "FILE")]
    k1s: Option<PathBuf>,
}

const TENANTS: [&str; 3] = ["default", "first", "second"];
/// Objects in each namespace, and dependents of each owner.
const OBJECTS: usize = 10;

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let env = Env::system();
    let program = match &options.k1s {
        Some(program) => program.clone(),
        None => child::program()?,
    };
    let etcd = EtcdServer::start(&env).await?;
    let etcd = etcd.ok_or_else(|| Failure("there is no etcd on the PATH".to_owned()))?;
    let store = Arc::new(EtcdStore::connect(env.clone(), etcd.options()).await?);
    let server = ApiServer::new(env.clone(), store, ServerOptions::default()).await;
    let server = server.map_err(|status| Failure(status.message))?;
    let mut clients = Vec::new();
    for tenant in TENANTS {
        let inside = server.tenant(tenant).await.map_err(|status| Failure(status.message))?;
        clients.push(kube::Client::new(inside.as_user(User::admin()), "default"));
    }
    let stop = CancellationToken::new();
    let ledger = Arc::new(Ledger::default());
    let mut watches = Vec::new();
    for client in &clients {
        let (client, ledger, stop) = (client.clone(), Arc::clone(&ledger), stop.clone());
        let from = Api::<Secret>::all(client.clone()).list(&ListParams::default()).await?;
        let from = from.metadata.resource_version.unwrap_or_default();
        watches.push(env.spawn("watch", async move {
            let followed = follow(&client, &ledger, from);
            stop.run_until_cancelled(followed).await.unwrap_or(Ok(()))
        }));
    }
    let mut servers = Servers::start(&program, &etcd.endpoint(), options.lease)?;
    let churn = {
        let (clients, ledger, stop, env_of) =
            (clients.clone(), Arc::clone(&ledger), stop.child_token(), env.clone());
        let (pause, seed) = (Duration::from_secs_f64(1.0 / options.rate), options.seed);
        let churning = stop.clone();
        let task = env
            .spawn("churn", async move { churn(&env_of, &clients, &ledger, pause, seed, &churning).await });
        (stop, task)
    };
    let kills = kill_in_turns(&env, &options, &mut servers, &ledger).await?;
    churn.0.cancel();
    let rounds = churn.1.await??;
    report::progress(&format!("{kills} kills; waiting until everything is collected"));
    let patience = Duration::from_secs(options.lease * 3 + 60);
    match env.timeout(patience, settled(&env, &clients, &ledger)).await {
        Ok(settled) => settled?,
        Err(_) => return Err(Failure(ledger.left(&clients).await?)),
    }
    stop.cancel();
    for watch in watches {
        watch.await??;
    }
    let collected = ledger.verdict()?;
    let (namespace, name) = k1s_server::CONTROLLERS_LEASE;
    let lease = Api::<Lease>::namespaced(clients[0].clone(), namespace).get(name).await?;
    let changes = lease.spec.and_then(|spec| spec.lease_transitions).unwrap_or_default();
    report::print(&format!(
        "{kills} kills, {changes} changes of the leader: {rounds} namespaces and as many owners in {} tenants were deleted, and \
         the {collected} objects that went with them, each once. Seed {}.",
        TENANTS.len(),
        options.seed
    ));
    drop(servers);
    server.shutdown();
    Ok(())
}

/// The objects that have to be deleted, and the deletions seen.
#[derive(Default)]
struct Ledger {
    wanted: Mutex<BTreeSet<String>>,
    deleted: Mutex<BTreeMap<String, usize>>,
}

impl Ledger {
    fn want(&self, secret: Secret) {
        self.wanted.lock().extend(secret.metadata.uid);
    }

    fn missing(&self) -> usize {
        let deleted = self.deleted.lock();
        self.wanted.lock().iter().filter(|uid| !deleted.contains_key(*uid)).count()
    }

    fn verdict(&self) -> Result<usize, Failure> {
        let (wanted, deleted) = (self.wanted.lock(), self.deleted.lock());
        let twice: Vec<&String> =
            deleted.iter().filter(|(_, count)| **count != 1).map(|(uid, _)| uid).collect();
        if !twice.is_empty() {
            return Err(Failure(format!("{} objects were deleted more than once: {twice:?}", twice.len())));
        }
        let others = deleted.keys().filter(|uid| !wanted.contains(*uid)).count();
        if others > 0 {
            return Err(Failure(format!("{others} objects were deleted that should have stayed")));
        }
        Ok(deleted.len())
    }

    async fn left(&self, clients: &[kube::Client]) -> Result<String, Failure> {
        let mut text = format!("{} objects were not collected in time", self.missing());
        for (tenant, client) in TENANTS.iter().zip(clients) {
            let spaces = terminating(client).await?;
            text.push_str(&format!("; namespaces left in {tenant}: {spaces:?}"));
        }
        Ok(text)
    }
}

async fn terminating(client: &kube::Client) -> Result<Vec<String>, Failure> {
    let spaces = Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await?;
    let leaving = spaces.items.into_iter().filter(|one| one.metadata.deletion_timestamp.is_some());
    Ok(leaving.filter_map(|one| one.metadata.name).collect())
}

/// Waits until every object that has to be deleted is, and no namespace is terminating.
async fn settled(env: &Env, clients: &[kube::Client], ledger: &Ledger) -> Result<(), Failure> {
    loop {
        let mut left = ledger.missing();
        for client in clients {
            left += terminating(client).await?.len();
        }
        if left == 0 {
            return Ok(());
        }
        env.sleep(Duration::from_millis(200)).await;
    }
}

/// Counts the deletions of Secrets.
async fn follow(client: &kube::Client, ledger: &Ledger, from: String) -> Result<(), Failure> {
    let secrets: Api<Secret> = Api::all(client.clone());
    let mut last = from;
    loop {
        let mut events = secrets.watch(&WatchParams::default(), &last).await?.boxed();
        while let Some(event) = events.next().await {
            let object = match event? {
                WatchEvent::Deleted(secret) => {
                    let uid = secret.metadata.uid.clone().unwrap_or_default();
                    *ledger.deleted.lock().entry(uid).or_default() += 1;
                    secret
                }
                WatchEvent::Added(secret) | WatchEvent::Modified(secret) => secret,
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(status) => {
                    return Err(Failure(format!("the watch failed: {}", status.message)));
                }
            };
            last = object.metadata.resource_version.unwrap_or(last);
        }
    }
}

/// Creates namespaces with objects and owners with dependents, and deletes them. Returns how many.
async fn churn(
    env: &Env,
    clients: &[kube::Client],
    ledger: &Ledger,
    pause: Duration,
    seed: u64,
    stop: &CancellationToken,
) -> Result<usize, Failure> {
    let (random, _clock) = Env::simulated(seed);
    let mut round = 0;
    while !stop.is_cancelled() {
        let client = &clients[usize::try_from(random.random_below(clients.len() as u64)).unwrap_or(0)];
        let spaces: Api<Namespace> = Api::all(client.clone());
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let (space, owner) = (format!("space-{round}"), format!("owner-{round}"));
        let new = PostParams::default();
        spaces.create(&new, &serde_json::from_value(json!({"metadata": {"name": space}}))?).await?;
        let made = maps.create(&new, &serde_json::from_value(json!({"metadata": {"name": owner}}))?).await?;
        let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": made.metadata.uid,
            "blockOwnerDeletion": true}]);
        let inside: Api<Secret> = Api::namespaced(client.clone(), &space);
        let beside: Api<Secret> = Api::default_namespaced(client.clone());
        for number in 0..OBJECTS {
            let secret = json!({"metadata": {"name": format!("s{number}")}});
            ledger.want(inside.create(&new, &serde_json::from_value(secret)?).await?);
            let dependent =
                json!({"metadata": {"name": format!("{owner}-{number}"), "ownerReferences": reference}});
            ledger.want(beside.create(&new, &serde_json::from_value(dependent)?).await?);
        }
        spaces.delete(&space, &DeleteParams::default()).await?;
        let policy = match random.random_below(2) {
            0 => DeleteParams::background(),
            _ => DeleteParams::foreground(),
        };
        maps.delete(&owner, &policy).await?;
        round += 1;
        env.sleep(pause).await;
    }
    Ok(round)
}

/// Kills the servers in turns, each time starting a new one in its place. Returns the number of kills.
async fn kill_in_turns(
    env: &Env,
    options: &Options,
    servers: &mut Servers,
    ledger: &Ledger,
) -> Result<usize, Failure> {
    let (random, _clock) = Env::simulated(options.seed ^ 0x5eed);
    let end = env.now() + Duration::from_secs_f64(options.minutes * 60.0);
    let mut kills = 0;
    while env.now() < end {
        env.sleep(Duration::from_secs_f64(options.every * (0.5 + random.random_f64()))).await;
        servers.check()?;
        servers.kill(kills % 2)?;
        env.sleep(Duration::from_secs_f64(random.random_f64())).await;
        servers.spawn(kills % 2)?;
        kills += 1;
        let missing = ledger.missing();
        let wanted = ledger.wanted.lock().len();
        report::progress(&format!("{kills} kills, {} of {wanted} objects collected", wanted - missing));
    }
    Ok(kills)
}

/// The two processes.
struct Servers {
    program: PathBuf,
    etcd: String,
    lease: u64,
    folder: TempDir,
    running: [Option<Child>; 2],
}

impl Servers {
    fn start(program: &Path, etcd: &str, lease: u64) -> Result<Servers, Failure> {
        let (program, etcd, folder) =
            (program.to_owned(), etcd.to_owned(), TempDir::with_prefix("k1s-failover-")?);
        let mut servers = Servers { program, etcd, lease, folder, running: [None, None] };
        servers.spawn(0)?;
        servers.spawn(1)?;
        Ok(servers)
    }

    fn spawn(&mut self, place: usize) -> Result<(), Failure> {
        // A port that was just free.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut command = Command::new(&self.program);
        command.args(["serve", "--http", "--port", &port.to_string(), "--etcd", &self.etcd]);
        command.arg("--kubeconfig").arg(self.folder.path().join(format!("kubeconfig-{place}")));
        let milliseconds = self.lease * 1000;
        for (flag, value) in [
            ("--leader-elect-lease-duration", milliseconds),
            ("--leader-elect-renew-deadline", milliseconds * 2 / 3),
            ("--leader-elect-retry-period", milliseconds / 6),
        ] {
            command.arg(flag).arg(format!("{value}ms"));
        }
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.running[place] =
            Some(child.map_err(|error| Failure(format!("{}: {error}", self.program.display())))?);
        Ok(())
    }

    /// Whether both still run.
    fn check(&mut self) -> Result<(), Failure> {
        for child in self.running.iter_mut().flatten() {
            if let Some(status) = child.try_wait()? {
                return Err(Failure(format!("a server ended by itself: {status}")));
            }
        }
        Ok(())
    }

    /// SIGKILL.
    fn kill(&mut self, place: usize) -> Result<(), Failure> {
        if let Some(mut child) = self.running[place].take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for place in 0..2 {
            if let Err(error) = self.kill(place) {
                report::progress(&format!("a server cannot be stopped: {}", error.0));
            }
        }
    }
}
