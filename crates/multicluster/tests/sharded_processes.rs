//! Replicas in processes of their own that share the tenants of a server. Their Leases are on another server, the host, which they
//! are killed beside and cut off from.
//!
//! The test binary starts itself again as its replicas, which the variable [`FOLDER`] selects.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "how replicas report")]

mod common;

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use common::{
    proxy::{Proxy, client_of, listening},
    sources, tenants, until,
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
    tokio,
};
use k1s_runtime::{
    ControllerOptions,
    sharding::{Sharding, ShardingOptions},
};

/// The name of the test, used to start it again, and the variable that makes it a replica.
const TEST: &str = "no_two_processes_work_in_a_cluster_at_a_time";
const FOLDER: &str = "K1S_TEST_FLEET_FOLDER";

const CLUSTERS: usize = 24;

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

/// Nanoseconds on the clock that all processes of the machine share.
fn now() -> u64 {
    let since = Env::system().wall().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_nanos()).unwrap()
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
    options.retry_period = Duration::from_millis(250);
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
    Ok(Action::requeue_after(Duration::from_millis(200)))
}

/// What replicas have reported.
#[derive(Default)]
struct Log {
    acts: Vec<Act>,
    violations: Vec<String>,
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
        log: &Arc<Mutex<Log>>,
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
        let (out, log) = (BufReader::new(child.stdout.take().unwrap()), Arc::clone(log));
        let reading = Env::system().spawn_thread("acts", move || {
            for line in out.lines().map_while(Result::ok) {
                let words: Vec<&str> = line.split(' ').collect();
                if let ["ACT", cluster, token, before, after] = words[..] {
                    let number_of = |word: &str| word.parse().unwrap();
                    let (token, before, after) = (number_of(token), number_of(before), number_of(after));
                    let act = Act { process: number, cluster: cluster.to_owned(), token, before, after };
                    log.lock().unwrap().acts.push(act);
                } else if line.starts_with("VIOLATION") {
                    log.lock().unwrap().violations.push(line);
                }
            }
        });
        drop(reading.unwrap());
        Process { child, proxy, _folder: folder }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

async fn supervise() {
    let (host, far) = (listening().await, listening().await);
    let names: BTreeSet<String> = tenants(&far, CLUSTERS).await.into_iter().collect();
    for name in &names {
        sources(&far.tenant_client(name).await.unwrap(), 1, "a").await;
    }
    let log = Arc::new(Mutex::new(Log::default()));
    // The clusters that these processes have worked in since a time.
    let worked = |processes: &[usize], since: u64| -> BTreeSet<String> {
        let log = log.lock().unwrap();
        let acts = log.acts.iter().filter(|act| act.before > since && processes.contains(&act.process));
        acts.map(|act| act.cluster.clone()).collect()
    };
    let start =
        async |number: usize, identity: &str| Process::start(number, identity, (&host, &far), &log).await;
    let (first, second, third) = (start(0, "a").await, start(1, "b").await, start(2, "c").await);
    let each = |processes: &[usize], since: u64| {
        processes.iter().all(|process| !worked(&[*process], since).is_empty())
    };
    until(async || (worked(&[0, 1, 2], 0) == names && each(&[0, 1, 2], 0)).then_some(())).await;

    let killed = now();
    first.kill();
    until(async || (worked(&[1, 2], killed) == names).then_some(())).await;

    // Cut off from the host, and not from the clusters: it stops all the same, and another one takes them.
    let cut = now();
    second.proxy.hang();
    until(async || (worked(&[2], cut) == names).then_some(())).await;

    let healed = now();
    second.proxy.flow();
    let fourth = start(3, "a").await;
    until(async || each(&[1, 2, 3], healed).then_some(())).await;
    for process in [second, third, fourth] {
        process.kill();
    }
    check(&log.lock().unwrap(), &names);
    far.stop().await.unwrap();
    host.stop().await.unwrap();
}

/// Every token's acts end before those of a later token begin.
fn check(log: &Log, names: &BTreeSet<String>) {
    assert_eq!(log.violations, Vec::<String>::new());
    for name in names {
        let acts: Vec<&Act> = log.acts.iter().filter(|act| act.cluster == *name).collect();
        for (one, later) in acts.iter().flat_map(|one| acts.iter().map(move |other| (one, other))) {
            let in_order = one.token >= later.token || one.before <= later.after;
            assert!(in_order, "{name}: {one:?} began after {later:?} had ended");
            assert!(one.token != later.token || one.process == later.process, "{one:?} {later:?}");
        }
    }
}
