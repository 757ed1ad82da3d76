//! Replicas in processes of their own that share the tenants of a server. Their Leases are on another server, the host. One is
//! killed, one is stopped, one is cut off from the host.
//!
//! The test binary starts itself again as its replicas, which the variable [`FOLDER`] selects.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "how replicas report")]

mod common;

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use common::{
    proxy::{Proxy, client_of, listening},
    sources, tenants,
};
use k1s::{
    Action, BoxError, CancellationToken, Context, ManagerOptions, Request, Runtime,
    env::Env,
    k8s_openapi::api::core::v1::ConfigMap,
    kind,
    multicluster::{
        Controller, MultiClusterManager, MultiClusterOptions,
        providers::{ShardedProvider, TenantsProvider},
    },
    tokio::{self, sync::mpsc},
};
use k1s_runtime::{
    ControllerOptions,
    sharding::{Sharding, ShardingOptions},
};
use rustix::{
    process::{Pid, Signal, kill_process},
    time::{ClockId, clock_gettime},
};

/// The name of the test, used to start it again, and the variable that makes it a replica.
const TEST: &str = "no_two_processes_work_in_a_cluster_at_a_time";
const FOLDER: &str = "K1S_TEST_FLEET_FOLDER";

const CLUSTERS: usize = 24;
/// 1.5 s, as a Lease has it: rounded up.
const LEASE: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(250);
/// How often the object of each cluster is reconciled.
const PERIOD: Duration = Duration::from_millis(200);
/// Maximum time until every cluster is worked in again: the lease duration, two retry periods, a period, and a margin in which
/// two busy cores list 24 clusters.
const FOLLOWED: Duration =
    LEASE.saturating_add(Duration::from_millis(700)).saturating_add(Duration::from_secs(5));

/// A reconcile that is about to write: at some time between `before` and `after` its process owned the cluster.
#[derive(Debug, Clone)]
struct Act {
    process: usize,
    cluster: String,
    token: u64,
    before: u64,
    after: u64,
}

#[test]
fn no_two_processes_work_in_a_cluster_at_a_time() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match std::env::var(FOLDER) {
        Ok(folder) => runtime.block_on(replica(Path::new(&folder))),
        Err(_) => runtime.block_on(supervise()),
    }
}

/// Nanoseconds on the monotonic clock that all processes of the machine share.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

fn print(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{line}").unwrap();
    out.flush().unwrap();
}

async fn replica(folder: &Path) {
    let env = Env::system();
    // Ends with the test, even if that crashes.
    let _parent = env.spawn_thread("parent", || {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (host, far) = (client_of(&read("host")).await, client_of(&read("far")).await);
    let clusters = MultiClusterOptions::new().with_disengage_timeout(Duration::from_secs(1));
    let manager = MultiClusterManager::new(host.clone(), ManagerOptions::local(), clusters).unwrap();
    let mut options = ShardingOptions::new("fleet", "default");
    options.identity = Some(read("identity"));
    options.lease_duration = Duration::from_millis(1500);
    options.renew_deadline = Duration::from_secs(1);
    options.retry_period = RETRY;
    let sharding = Sharding::new(host, env, options).unwrap();
    manager.add(sharding.clone());
    let provider = TenantsProvider::new(far).with_filter(|name| name.starts_with('t'));
    manager.add_provider(Arc::new(ShardedProvider::new(Arc::new(provider), &sharding)));
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .with_options(ControllerOptions::concurrent(4))
        .complete(move |request: Request, context: Context| {
            let sharding = sharding.clone();
            async move { write_token(&sharding, &request, &context).await }
        })
        .unwrap();
    manager.start(CancellationToken::new()).await.unwrap();
}

/// Writes its shard's token into the object of a cluster, again and again.
async fn write_token(sharding: &Sharding, request: &Request, context: &Context) -> Result<Action, BoxError> {
    let cluster = context.cluster();
    if request.name() != "src-0" {
        return Ok(Action::done());
    }
    let Some(map) = cluster.client().get_opt::<ConfigMap>(request).await? else { return Ok(Action::done()) };
    let Some(token) = sharding.owner_of(cluster.name()) else { return Ok(Action::done()) };
    let mut map = (*map).clone();
    let data = map.data.get_or_insert_default();
    let highest: u64 = data.get("token").and_then(|token| token.parse().ok()).unwrap_or(0);
    let before = now();
    let valid = token.is_valid();
    let after = now();
    if !valid {
        return Ok(Action::done());
    }
    if highest > token.value() {
        print(&format!("VIOLATION {}: token {highest} was written while {token:?} is valid", cluster.name()));
    }
    print(&format!("ACT {} {} {before} {after}", cluster.name(), token.value()));
    data.insert("token".to_owned(), token.value().to_string());
    let count: u64 = data.get("count").and_then(|count| count.parse().ok()).unwrap_or(0);
    data.insert("count".to_owned(), (count + 1).to_string());
    // A conflict means that another owner has written: the object is read again.
    cluster.client().update(&map).await?;
    Ok(Action::requeue_after(PERIOD))
}

/// What a replica reports.
enum Report {
    Act(Act),
    /// A reconcile found the token of a later owner while its own was valid.
    Violation(String),
}

impl Report {
    fn parse(process: usize, line: &str) -> Option<Report> {
        if line.starts_with("VIOLATION") {
            return Some(Report::Violation(line.to_owned()));
        }
        // The last line of a killed process may be truncated.
        let ["ACT", cluster, token, before, after] = line.split(' ').collect::<Vec<_>>()[..] else {
            return None;
        };
        let (token, before, after) = (token.parse().ok()?, before.parse().ok()?, after.parse().ok()?);
        (before <= after)
            .then(|| Report::Act(Act { process, cluster: cluster.to_owned(), token, before, after }))
    }
}

/// All acts.
struct Log {
    incoming: mpsc::UnboundedReceiver<Report>,
    acts: Vec<Act>,
}

impl Log {
    fn record(&mut self, report: Report) -> &Act {
        match report {
            Report::Act(act) => self.acts.push(act),
            Report::Violation(what) => panic!("{what}"),
        }
        self.acts.last().unwrap()
    }

    /// Waits until the acts since a time are enough.
    async fn until(&mut self, since: u64, limit: Duration, what: &str, mut enough: impl FnMut(&Act) -> bool) {
        let waiting = async {
            loop {
                let report = self.incoming.recv().await.unwrap();
                let act = self.record(report);
                if act.before > since && enough(act) {
                    return;
                }
            }
        };
        let in_time = Env::system().timeout(limit, waiting).await.is_ok();
        if !in_time {
            let mut acted: Vec<_> = self.acts.iter().filter(|act| act.before > since).collect();
            acted.sort_by_key(|act| (&act.cluster, act.process));
            acted.dedup_by_key(|act| (act.cluster.clone(), act.process));
            panic!("{what}: within {limit:?} only {acted:?}");
        }
    }

    /// Waits until another process than `gone` has worked in every cluster.
    async fn all_followed(&mut self, since: u64, gone: usize, what: &str) {
        let mut clusters = BTreeSet::new();
        let enough = |act: &Act| {
            if act.process != gone {
                clusters.insert(act.cluster.clone());
            }
            clusters.len() == CLUSTERS
        };
        self.until(since, FOLLOWED, what, enough).await;
    }

    /// Waits until each of these processes works, and all clusters are worked in. Processes have to load, and join one after
    /// the other.
    async fn all_work(&mut self, processes: &[usize], what: &str) {
        let (mut working, mut clusters) = (BTreeSet::new(), BTreeSet::new());
        let enough = |act: &Act| {
            working.insert(act.process);
            clusters.insert(act.cluster.clone());
            processes.iter().all(|process| working.contains(process)) && clusters.len() == CLUSTERS
        };
        self.until(now(), 4 * FOLLOWED, what, enough).await;
    }
}

/// The test's handle to a replica.
struct Process {
    child: Child,
    /// Between it and the host.
    proxy: Proxy,
    _folder: tempfile::TempDir,
}

impl Process {
    async fn start(
        number: usize,
        identity: &str,
        (host, far): (&Runtime, &Runtime),
        to: &mpsc::UnboundedSender<Report>,
    ) -> Process {
        let proxy = Proxy::to(host.url().unwrap()).await;
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| std::fs::write(folder.path().join(name), content).unwrap();
        write("host", &proxy.kubeconfig(host.kubeconfig().unwrap()));
        write("far", far.kubeconfig().unwrap());
        write("identity", identity);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env(FOLDER, folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (out, to) = (BufReader::new(child.stdout.take().unwrap()), to.clone());
        let reading = Env::system().spawn_thread("acts", move || {
            for report in out.lines().map_while(Result::ok).filter_map(|line| Report::parse(number, &line)) {
                if to.send(report).is_err() {
                    return;
                }
            }
        });
        drop(reading.unwrap());
        Process { child, proxy, _folder: folder }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn supervise() {
    let (host, far) = (listening().await, listening().await);
    let names: BTreeSet<String> = tenants(&far, CLUSTERS).await.into_iter().collect();
    for name in &names {
        sources(&far.tenant_client(name).await.unwrap(), 1, "a").await;
    }
    let (to, incoming) = mpsc::unbounded_channel();
    let mut log = Log { incoming, acts: Vec::new() };
    let start =
        async |number: usize, identity: &str| Process::start(number, identity, (&host, &far), &to).await;
    let (first, second, third) = (start(0, "a").await, start(1, "b").await, start(2, "c").await);
    log.all_work(&[0, 1, 2], "start").await;

    let killed = now();
    drop(first);
    log.all_followed(killed, 0, "killed").await;
    let fourth = start(3, "a").await;
    log.all_work(&[1, 2, 3], "a replica came").await;

    let stopped = now();
    second.signal(Signal::STOP);
    log.all_followed(stopped, 1, "stopped").await;
    // It resumes unaware of the pause.
    second.signal(Signal::CONT);
    log.all_work(&[1, 2, 3], "continued").await;

    // Cut off from the host, and not from the clusters: it stops all the same, and others take them.
    let cut = now();
    third.proxy.hang();
    log.all_followed(cut, 2, "cut off").await;
    third.proxy.flow();
    log.all_work(&[1, 2, 3], "healed").await;

    drop((second, third, fourth));
    while let Ok(report) = log.incoming.try_recv() {
        log.record(report);
    }
    check(&log.acts, &names);
    far.stop().await.unwrap();
    host.stop().await.unwrap();
}

/// Every token's acts end before those of a later token begin.
fn check(acts: &[Act], names: &BTreeSet<String>) {
    for name in names {
        let acts: Vec<&Act> = acts.iter().filter(|act| act.cluster == *name).collect();
        for (one, later) in acts.iter().flat_map(|one| acts.iter().map(move |other| (one, other))) {
            let in_order = one.token >= later.token || one.before <= later.after;
            assert!(in_order, "{name}: {one:?} began after {later:?} had ended");
            assert!(one.token != later.token || one.process == later.process, "{one:?} {later:?}");
        }
    }
}
