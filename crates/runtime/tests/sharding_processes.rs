//! Replicas that share a controller's objects, in processes that are killed, stopped and cut off from the server at random, over
//! HTTP, in real time.
//!
//! The test binary starts itself again as its replicas, which the variable [`SERVER`] selects.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the seed is needed to reproduce a failure")]

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use k1s_env::Env;
use k1s_runtime::{
    Action, BoxError, Client, Context, Controller, Manager, ManagerOptions, Request, kind, reconcile,
    sharding::{Sharding, ShardingOptions},
};
use k1s_server::{ApiServer, Listener, ServerOptions, User, serve};
use k1s_store::MemoryStore;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ListParams, ObjectMeta, PostParams},
};
use rustix::{
    process::{Pid, Signal, kill_process},
    time::{ClockId, clock_gettime},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
};
use tokio_util::sync::CancellationToken;

/// The name of the test, used to start it again, and the variable that makes it a replica.
const TEST: &str = "no_two_processes_work_on_a_shard_at_a_time";
const SERVER: &str = "K1S_TEST_SHARDING_SERVER";

const REPLICAS: usize = 3;
/// So many that no replica is without any: with 8, one of three in eight runs would be.
const SHARDS: u32 = 32;
/// Of the lease: 1.5 s, rounded up.
const LEASE: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(250);
/// How often each object is reconciled.
const PERIOD: Duration = Duration::from_millis(200);
/// Maximum time until every shard has an owner again: the lease duration, two retry periods, a period, and a margin for two
/// busy cores.
const FOLLOWED: Duration =
    LEASE.saturating_add(Duration::from_millis(750)).saturating_add(Duration::from_secs(3));

fn options() -> ShardingOptions {
    let mut options = ShardingOptions::new("processes", "default");
    options.shards = SHARDS;
    options.lease_duration = Duration::from_millis(1500);
    options.renew_deadline = Duration::from_secs(1);
    options.retry_period = RETRY;
    options
}

/// Nanoseconds on the monotonic clock shared by all processes of the machine.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

/// A reconcile that is about to write: at some time between `before` and `after` its process owned the shard.
#[derive(Debug, Clone, Copy)]
struct Act {
    process: usize,
    shard: u64,
    token: u64,
    before: u64,
    after: u64,
}

/// What a replica reports.
#[derive(Debug, Clone)]
enum Report {
    Act(Act),
    /// A reconcile found the token of a later owner while its own was valid.
    Violation(String),
}

#[test]
fn no_two_processes_work_on_a_shard_at_a_time() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match std::env::var(SERVER) {
        Ok(server) => runtime.block_on(replica(&server)),
        Err(_) => runtime.block_on(chaos()),
    }
}

fn print(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{line}").unwrap();
    out.flush().unwrap();
}

/// Reconciles the objects of its shards again and again, and prints each act.
async fn replica(server: &str) {
    let env = Env::system();
    // Ends with the test, even if that crashes.
    let _parent = env.spawn_thread("parent", || {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let kube = kube::Client::try_from(kube::Config::new(server.parse().unwrap())).unwrap();
    let manager = Manager::new(kube.clone(), ManagerOptions::local()).unwrap();
    let sharding = Sharding::new(kube, env, options()).unwrap();
    manager.add(sharding.clone());
    Controller::managed_by(&manager)
        .for_(kind::<ConfigMap>())
        .sharded_by(&sharding)
        .with_options(k1s_runtime::ControllerOptions::concurrent(4))
        .complete(reconcile::with_state(manager.client(), write_token))
        .unwrap();
    manager.start(CancellationToken::new()).await.unwrap();
}

/// Writes its shard's token into the object, unless there is a higher one.
async fn write_token(client: Client, request: Request, context: Context) -> Result<Action, BoxError> {
    let token = context.shard().ok_or("no shard")?.clone();
    let client = client.intercept(token.clone());
    let mut object = (*client.get::<ConfigMap>(&request).await?).clone();
    let data = object.data.get_or_insert_default();
    let highest: u64 = data.get("token").and_then(|token| token.parse().ok()).unwrap_or(0);
    let before = now();
    let valid = token.is_valid();
    let after = now();
    if !valid {
        return Ok(Action::done());
    }
    if highest > token.value() {
        print(&format!("VIOLATION {request}: token {highest} was written while {token:?} is valid"));
    }
    print(&format!("ACT {} {} {before} {after}", token.shard(), token.value()));
    data.insert("token".to_owned(), token.value().to_string());
    let count: u64 = data.get("count").and_then(|count| count.parse().ok()).unwrap_or(0);
    data.insert("count".to_owned(), (count + 1).to_string());
    // A conflict means that another owner has written: the object is read again.
    client.update(&object).await?;
    Ok(Action::requeue_after(PERIOD))
}

/// A process's connection to the server, which can be cut.
struct Proxy {
    address: SocketAddr,
    open: watch::Sender<bool>,
}

impl Proxy {
    async fn start(env: &Env, server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let open = watch::Sender::new(true);
        let (tasks, is_open) = (env.clone(), open.subscribe());
        drop(env.spawn("proxy", async move {
            while let Ok((from, _)) = listener.accept().await {
                let Ok(to) = TcpStream::connect(server).await else { continue };
                let ((from_read, from_write), (to_read, to_write)) = (from.into_split(), to.into_split());
                drop(tasks.spawn("proxy", forward(from_read, to_write, is_open.clone())));
                drop(tasks.spawn("proxy", forward(to_read, from_write, is_open.clone())));
            }
        }));
        Proxy { address, open }
    }
}

/// Forwards bytes. While the connection is cut they wait, and arrive later.
async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut open: watch::Receiver<bool>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if open.wait_for(|open| *open).await.is_err() || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// The test's handle to a replica's process.
struct Process {
    number: usize,
    child: Child,
    proxy: Proxy,
}

impl Process {
    async fn start(
        env: &Env,
        number: usize,
        server: SocketAddr,
        to: mpsc::UnboundedSender<Report>,
    ) -> Process {
        let proxy = Proxy::start(env, server).await;
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env(SERVER, format!("http://{}", proxy.address))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let reading = env.spawn_thread("acts", move || {
            for line in out.lines().map_while(Result::ok) {
                let report = if let Some(act) = line.strip_prefix("ACT ") {
                    let numbers: Vec<u64> = act.split(' ').filter_map(|number| number.parse().ok()).collect();
                    match numbers[..] {
                        [shard, token, before, after] if before <= after => {
                            Report::Act(Act { process: number, shard, token, before, after })
                        }
                        // The last line of a killed process may be truncated.
                        _ => continue,
                    }
                } else if line.starts_with("VIOLATION") {
                    Report::Violation(line)
                } else {
                    continue;
                };
                if to.send(report).is_err() {
                    return;
                }
            }
        });
        drop(reading.unwrap());
        Process { number, child, proxy }
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

/// All acts.
struct Log {
    env: Env,
    incoming: mpsc::UnboundedReceiver<Report>,
    acts: Vec<Act>,
}

impl Log {
    fn record(&mut self, report: Report) -> Act {
        match report {
            Report::Act(act) => {
                self.acts.push(act);
                act
            }
            Report::Violation(what) => panic!("{what}"),
        }
    }

    /// Waits until every shard was worked on after `since`, by a process other than `except`, within `limit`.
    async fn all_acting(&mut self, since: u64, except: Option<usize>, limit: Duration, what: &str) {
        let env = self.env.clone();
        let mut acting = BTreeSet::new();
        let all = async {
            while acting.len() < SHARDS as usize {
                let report = self.incoming.recv().await.unwrap();
                let act = self.record(report);
                if act.before > since && Some(act.process) != except {
                    acting.insert(act.shard);
                }
            }
        };
        let all = env.timeout(limit, all).await.is_ok();
        assert!(all, "{what}: only {acting:?} have owners within {limit:?}");
    }

    /// Records acts for a while.
    async fn pass(&mut self, d: Duration) {
        let until = self.env.sleep(d);
        tokio::pin!(until);
        loop {
            let report = tokio::select! {
                () = &mut until => return,
                report = self.incoming.recv() => report.unwrap(),
            };
            self.record(report);
        }
    }

    /// The process that worked last.
    fn last(&self) -> usize {
        self.acts.last().unwrap().process
    }
}

/// One object for each shard.
async fn create_objects(client: kube::Client) {
    let sharding = Sharding::new(client.clone(), Env::system(), options()).unwrap();
    let objects: Api<ConfigMap> = Api::default_namespaced(client);
    let mut shards = BTreeSet::new();
    for name in (0..).map(|number| format!("object-{number}")) {
        if shards.len() == SHARDS as usize {
            return;
        }
        if shards.insert(sharding.shard_of(&format!("default/{name}"))) {
            let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
            let object = ConfigMap { metadata, ..ConfigMap::default() };
            objects.create(&PostParams::default(), &object).await.unwrap();
        }
    }
}

async fn chaos() {
    let env = Env::system();
    let seed = std::env::var("K1S_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(4);
    println!("K1S_TEST_SEED={seed}");
    let (dice, _) = Env::simulated(seed);
    let millis = |from: u64, to: u64| Duration::from_millis(from + dice.random_below(to - from));

    let server = ApiServer::new(env.clone(), Arc::new(MemoryStore::default()), ServerOptions::default())
        .await
        .unwrap()
        .as_user(User::admin());
    let listener = Listener::http("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.address().unwrap();
    let serving = env.spawn("server", serve(server.clone(), listener));
    let kube = kube::Client::new(server.clone(), "default");
    create_objects(kube.clone()).await;

    let (sender, incoming) = mpsc::unbounded_channel();
    let mut log = Log { env: env.clone(), incoming, acts: Vec::new() };
    let mut processes = Vec::new();
    for number in 1..=REPLICAS {
        processes.push(Process::start(&env, number, address, sender.clone()).await);
    }
    let mut started = REPLICAS;
    // At the start, processes have to load, and join one after the other.
    log.all_acting(now(), None, 3 * FOLLOWED, "start").await;
    for round in 0..6 {
        log.pass(millis(50, 500)).await;
        // One that owns something.
        let number = log.last();
        let victim = processes.iter().position(|process| process.number == number).unwrap();
        let since = now();
        match round % 3 {
            0 => {
                let what = format!("round {round}, {number} killed");
                processes[victim].child.kill().unwrap();
                log.all_acting(since, Some(number), FOLLOWED, &what).await;
                started += 1;
                processes[victim] = Process::start(&env, started, address, sender.clone()).await;
            }
            1 => {
                let what = format!("round {round}, {number} stopped");
                processes[victim].signal(Signal::STOP);
                log.all_acting(since, Some(number), FOLLOWED, &what).await;
                log.pass(millis(0, 300)).await;
                // It resumes unaware of the pause.
                processes[victim].signal(Signal::CONT);
            }
            _ => {
                let what = format!("round {round}, {number} cut off");
                processes[victim].proxy.open.send_replace(false);
                log.all_acting(since, Some(number), FOLLOWED, &what).await;
                log.pass(millis(0, 300)).await;
                // What it sent meanwhile arrives now.
                processes[victim].proxy.open.send_replace(true);
            }
        }
    }
    // Those that came back take part again: everybody works, and the shards keep their owners.
    let back = now();
    let mut workers = BTreeSet::new();
    let rejoined = async {
        while workers.len() < REPLICAS {
            let report = log.incoming.recv().await.unwrap();
            let act = log.record(report);
            if act.before > back {
                workers.insert(act.process);
            }
        }
    };
    assert!(env.timeout(3 * FOLLOWED, rejoined).await.is_ok(), "only {workers:?} work again");
    log.all_acting(now(), None, FOLLOWED, "end").await;
    drop(processes);
    while let Ok(report) = log.incoming.try_recv() {
        log.record(report);
    }

    let terms = check_owners(&log.acts);
    println!("{} acts in {terms} terms", log.acts.len());
    assert!(terms > SHARDS as usize + 6, "shards moved");
    check_objects(kube, &log.acts).await;
    server.shutdown();
    serving.await.unwrap().unwrap();
}

/// The last token in each object is of the last owner that worked on its shard, or of one before that wrote no more.
async fn check_objects(client: kube::Client, acts: &[Act]) {
    let tokens: BTreeSet<u64> = acts.iter().map(|act| act.token).collect();
    let objects: Api<ConfigMap> = Api::default_namespaced(client);
    let objects = objects.list(&ListParams::default()).await.unwrap().items;
    let ours = objects.iter().filter(|object| object.metadata.name.as_ref().unwrap().starts_with("object-"));
    let mut checked = 0;
    for object in ours {
        let token: u64 = object.data.as_ref().unwrap()["token"].parse().unwrap();
        assert!(tokens.contains(&token), "{object:?}");
        checked += 1;
    }
    assert_eq!(checked, SHARDS);
}

/// Checks for each shard that no two ownerships overlap, and that later ones have higher tokens. An ownership lasted at least
/// from the end of its first act to the beginning of its last; that holds even if the process was paused in the middle of an
/// act.
fn check_owners(acts: &[Act]) -> usize {
    let mut terms: BTreeMap<(u64, u64, usize), (u64, u64)> = BTreeMap::new();
    for act in acts {
        let term = (act.shard, act.token, act.process);
        let (from, to) = terms.entry(term).or_insert((act.after, act.before));
        *from = act.after.min(*from);
        *to = act.before.max(*to);
    }
    // Sorted by shard, then by token.
    let all: Vec<_> = terms.iter().collect();
    for pair in all.windows(2) {
        let ((one, (_, to)), (other, (from, _))) = (pair[0], pair[1]);
        if one.0 == other.0 {
            assert!(one.1 < other.1, "{one:?} and {other:?} have the same token");
            assert!(
                to <= from,
                "{one:?} and {other:?} owned the shard together for {}",
                to.saturating_sub(*from)
            );
        }
    }
    terms.len()
}

#[test]
fn the_check_finds_two_owners() {
    let act = |process, shard, token, before, after| Act { process, shard, token, before, after };
    assert_eq!(
        check_owners(&[act(1, 0, 1, 0, 1), act(1, 0, 1, 10, 11), act(2, 0, 2, 12, 13), act(2, 1, 1, 5, 6)]),
        3
    );
    // The first one was paused in the middle of its last act, which may have been before or after the pause.
    assert_eq!(check_owners(&[act(1, 0, 1, 0, 1), act(1, 0, 1, 10, 50), act(2, 0, 2, 12, 13)]), 2);
    let fails = |acts: &[Act]| {
        let acts = acts.to_vec();
        std::panic::catch_unwind(move || check_owners(&acts)).is_err()
    };
    assert!(fails(&[act(1, 0, 1, 0, 1), act(1, 0, 1, 30, 31), act(2, 0, 2, 12, 13)]));
    assert!(fails(&[act(1, 0, 1, 0, 1), act(2, 0, 1, 30, 31)]), "one token");
    assert!(fails(&[act(1, 0, 2, 0, 1), act(2, 0, 1, 30, 31)]), "a lower token");
}
