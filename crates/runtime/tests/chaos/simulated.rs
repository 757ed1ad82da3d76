//! Everything in one thread, on a virtual clock: hundreds of seeds.

use std::{num::NonZeroUsize, pin::pin, sync::Arc, time::Duration};

use k1s_env::{Env, Task, VirtualClock};
use k1s_object::selector::LabelSelector;
use k1s_runtime::{
    CacheOptions, ControllerOptions, IdleOptions, InformerOptions, Manager, ManagerError, ManagerOptions,
    client::{Client, ClientOptions},
    kind,
};
use k1s_server::{ApiServer, ServerOptions};
use k1s_store::{MemoryOptions, MemoryStore, Store};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::CustomResourceExt as _;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    network::Network,
    operator::{BRANCH, NAMESPACE, TREE, Tree, add_controllers, collector},
    own::{Complaints, Own},
    script::{Script, User},
    state::{self, State},
};

/// Maximum virtual duration: above the longest backoff (1000 s), below the first resync (9 h).
const LIMIT: Duration = Duration::from_secs(2 * 3600);

/// Maximum time that users retry.
const PATIENCE: Duration = Duration::from_secs(900);

/// `K1S_TEST_SEEDS` is the number of seeds; `K1S_TEST_SEED` a single seed, or the first one if both are set.
/// `K1S_TEST_LOG` prints all requests.
#[test]
fn trees_converge_whatever_fails() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds: Vec<u64> = match (number("K1S_TEST_SEED"), number("K1S_TEST_SEEDS")) {
        (Some(seed), Some(many)) => (seed..seed + many).collect(),
        (Some(seed), None) => vec![seed],
        (None, many) => (0..many.unwrap_or(200)).collect(),
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let next = Arc::new(Mutex::new(seeds.into_iter()));
    let failures: Arc<Mutex<Vec<String>>> = Arc::default();
    let threads: Vec<_> = (0..threads)
        .map(|_| {
            let (next, failures) = (next.clone(), failures.clone());
            let work = move || {
                while failures.lock().is_empty() {
                    let Some(seed) = next.lock().next() else { return };
                    let complaints = std::panic::catch_unwind(|| check(seed))
                        .unwrap_or_else(|_| vec!["it panicked: see above".to_owned()]);
                    if !complaints.is_empty() {
                        failures.lock().push(format!("K1S_TEST_SEED={seed}\n{}", complaints.join("\n")));
                    }
                }
            };
            Env::system().spawn_thread("seeds", work).unwrap()
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let failures = failures.lock();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs a seed and returns the violations.
fn check(seed: u64) -> Vec<String> {
    let script = Script::of(seed, Duration::from_secs(3));
    let without = run(seed, &script, false, true);
    let with = run(seed, &script, true, true);
    let mut complaints = state::compare_with_script(&without.state, &script.trees());
    complaints.extend(without.complaints.into_iter().map(|text| format!("without faults: {text}")));
    complaints.extend(with.complaints);
    complaints.extend(state::differences(&without.state, &with.state));
    if std::env::var_os("K1S_TEST_LOG").is_some() {
        println!("{script:#?}\n{}", with.log.join("\n"));
    }
    complaints
}

/// The state that a script leads to without faults.
pub(crate) fn without_faults(seed: u64, script: &Script) -> State {
    run(seed, script, false, true).state
}

/// The same seed gives the same run, request by request; otherwise a failing seed could not be reproduced.
#[test]
fn a_seed_determines_the_run() {
    for seed in 0..10 {
        let script = Script::of(seed, Duration::from_secs(3));
        let (one, two) = (run(seed, &script, true, true).log, run(seed, &script, true, true).log);
        if let Some(at) = one.iter().zip(&two).position(|(one, two)| one != two) {
            panic!("seed {seed} differs after {at} of {} requests:\n{}\n{}", one.len(), one[at], two[at]);
        }
        assert_eq!(one.len(), two.len());
    }
}

/// The result of a run.
struct Outcome {
    state: State,
    complaints: Vec<String>,
    log: Vec<String>,
}

fn run(seed: u64, script: &Script, faults: bool, collects: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (env, clock) = Env::simulated(seed);
    let script = script.clone();
    runtime.block_on(async move {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(env.clone(), MemoryOptions::default()));
        let network = Network::new(&env, server(&env, &store).await);
        let simulation = Simulation {
            direct: Client::new(
                network.client(false, &CancellationToken::new()),
                ClientOptions { env: env.clone(), ..Default::default() },
            ),
            env: env.clone(),
            clock: clock.clone(),
            store: store.clone(),
            network: network.clone(),
            complaints: Complaints::default(),
            faults,
            collects,
        };
        let outcome = env.spawn("simulation", simulation.run(script));
        let mut outcome = drive(&env, &clock, &network, outcome).await.unwrap();
        network.server().shutdown();
        store.close().await.unwrap();
        drive(&env, &clock, &network, env.tasks_ended()).await;
        outcome.log = network.take_log();
        outcome
    })
}

async fn server(env: &Env, store: &Arc<dyn Store>) -> ApiServer {
    let server = ApiServer::new(env.clone(), store.clone(), ServerOptions::default()).await.unwrap();
    server.as_user(k1s_server::User::admin())
}

/// Advances the clock, deadline by deadline, until `done` completes.
async fn drive<T>(env: &Env, clock: &VirtualClock, network: &Network, done: impl Future<Output = T>) -> T {
    let mut done = pin!(done);
    let limit = clock.now() + 4 * LIMIT;
    loop {
        tokio::select! {
            biased;
            done = &mut done => return done,
            () = settle(env, clock, network) => {}
        }
        assert!(clock.now() < limit, "still not done: {:?}", env.tasks());
        assert!(clock.advance_to_next(), "no task waits for the clock: {:?}", env.tasks());
    }
}

/// Waits until everything that can happen now has happened. Each `kube` client has a task that the
/// environment does not track; it takes one turn to send a request to the network.
async fn settle(env: &Env, clock: &VirtualClock, network: &Network) {
    loop {
        let before = network.requests();
        clock.settle().await;
        for _ in 0..3 {
            env.yield_now().await;
        }
        clock.settle().await;
        if network.requests() == before {
            return;
        }
    }
}

/// One run of a script.
struct Simulation {
    env: Env,
    clock: VirtualClock,
    store: Arc<dyn Store>,
    network: Network,
    direct: Client,
    complaints: Complaints,
    faults: bool,
    collects: bool,
}

/// The operator's process.
struct Operator {
    manager: Manager,
    stop: CancellationToken,
    /// Disconnects it from the network.
    dead: CancellationToken,
    task: Task<Result<(), ManagerError>>,
}

impl Simulation {
    async fn run(self, script: Script) -> Outcome {
        let crd: CustomResourceDefinition = self.direct.create(&Tree::crd()).await.unwrap();
        drop(crd);
        let stop_collector = CancellationToken::new();
        if !self.collects {
            stop_collector.cancel();
        }
        let collector = collector(&self.env, self.network.client(false, &CancellationToken::new()));
        let token = stop_collector.clone();
        let collector = self.env.spawn("collector", async move { collector.start(token).await });
        let mut operator = self.start();
        let act = |user: User| self.env.spawn("user", user.act(self.env.clone(), self.direct.clone()));
        let users: Vec<Task<()>> = script.users.into_iter().map(act).collect();
        if self.faults {
            self.network.set_faults(10);
            let patience = self.env.now() + PATIENCE;
            while users.iter().any(|user| !user.is_finished()) && self.env.now() < patience {
                self.env.sleep(Duration::from_millis(self.env.random_below(2500))).await;
                operator = self.mishap(operator).await;
            }
        }
        for mut user in users {
            // A user that waits for the end of a tree depends on the operator.
            match self.env.timeout(PATIENCE, &mut user).await {
                Ok(ended) => ended.unwrap(),
                Err(_) => {
                    user.abort();
                    self.complain("a user's step does not succeed".to_owned());
                }
            }
        }
        if self.env.random_below(2) == 0 {
            // More can be damaged when everything is complete.
            self.network.set_faults(0);
            self.wait(&operator).await;
        }
        self.last(script.last).await;
        self.wait(&operator).await;
        // Garbage collection is not part of the operator, and may cause more work for it.
        self.env.sleep(Duration::from_secs(120)).await;
        self.wait(&operator).await;
        let state = self.read().await;

        // From then on nothing may happen.
        let stats = operator.manager.stats();
        self.env.sleep(Duration::from_secs(600)).await;
        if operator.manager.stats() != stats {
            self.complain(format!("it keeps reconciling: {stats:?}, then {:?}", operator.manager.stats()));
        }
        if self.read().await != state {
            self.complain("the state keeps changing".to_owned());
        }
        operator.stop.cancel();
        if let Err(error) = operator.task.await.unwrap() {
            self.complain(format!("the manager ended with: {error}"));
        }
        stop_collector.cancel();
        collector.await.unwrap().unwrap();
        let mut complaints = std::mem::take(&mut *self.complaints.lock());
        complaints.sort();
        complaints.dedup();
        Outcome { state, complaints, log: Vec::new() }
    }

    /// The final damage, together with the final fault.
    async fn last(&self, users: Vec<User>) {
        let fault = if self.faults { self.env.random_below(5) } else { 4 };
        match fault {
            0 | 1 => self.network.set_cut_off(true),
            2 => self.network.set_faults(70),
            3 => self.network.cut(),
            _ => {}
        }
        for user in users {
            user.act(self.env.clone(), self.direct.clone()).await;
        }
        match fault {
            0 => {
                let revision = self.store.revision().await.unwrap();
                self.store.compact(revision).await.unwrap();
            }
            2 => self.env.sleep(Duration::from_secs(2)).await,
            3 => self.network.replace(server(&self.env, &self.store).await),
            _ => {}
        }
        self.network.set_faults(0);
        if fault <= 1 {
            self.network.set_cut_off(false);
        }
        self.network.note("no more faults");
    }

    fn complain(&self, text: String) {
        self.complaints.lock().push(text);
    }

    async fn read(&self) -> State {
        let mut complaints = Vec::new();
        let state = state::read(&self.direct, &mut complaints).await.unwrap();
        self.complaints.lock().append(&mut complaints);
        state
    }

    async fn wait(&self, operator: &Operator) {
        match operator.manager.wait_until_idle(IdleOptions::within(LIMIT)).await {
            Ok(report) if report.problems.is_empty() => {}
            Ok(report) => self.complain(format!("idle, but: {report}")),
            Err(error) => self.complain(error.to_string()),
        }
    }

    fn start(&self) -> Operator {
        let below = |bound| self.env.random_below(bound);
        let dead = CancellationToken::new();
        let mut cache = CacheOptions::default();
        if self.faults {
            cache.page_size = [1, 3, 500][usize::try_from(below(3)).unwrap()];
            if below(3) == 0 {
                cache.namespaces = Some(vec![NAMESPACE.into(), "another".into()]);
            }
            let lean = below(2) == 0;
            let selected = |label: &str| (below(2) == 0).then(|| LabelSelector::parse(label).unwrap());
            let branches = InformerOptions { labels: selected(TREE), lean, ..Default::default() };
            let leaves = InformerOptions { labels: selected(BRANCH), lean, ..Default::default() };
            cache = cache.by_object(&kind::<ConfigMap>(), branches).by_object(&kind::<Secret>(), leaves);
        }
        let workers = NonZeroUsize::new(1 + usize::try_from(below(3)).unwrap()).unwrap();
        let options = ManagerOptions { env: Some(self.env.clone()), cache, ..ManagerOptions::local() };
        let manager = Manager::new(self.network.client(true, &dead), options).unwrap();
        let options = ControllerOptions {
            max_concurrent_reconciles: Some(workers),
            // Some requests never get a response.
            reconciliation_timeout: Some(Duration::from_secs(30)),
            ..ControllerOptions::default()
        };
        add_controllers(&manager, &Own::new(manager.client(), &self.complaints), &options);
        let (stop, started) = (CancellationToken::new(), manager.clone());
        let token = stop.clone();
        let task = self.env.spawn("operator", async move { started.start(token).await });
        Operator { manager, stop, dead, task }
    }

    /// A fault that affects more than one request.
    async fn mishap(&self, operator: Operator) -> Operator {
        match self.env.random_below(8) {
            0 => {
                self.network.note("server restarted");
                let server = server(&self.env, &self.store).await;
                self.network.replace(server);
            }
            1 => {
                self.network.note("cut");
                self.network.cut();
            }
            2 => {
                // The events in between are lost to compaction.
                self.network.note("operator cut off");
                self.network.set_cut_off(true);
                self.env.sleep(Duration::from_millis(self.env.random_below(5000))).await;
                let revision = self.store.revision().await.unwrap();
                self.store.compact(revision).await.unwrap();
                self.network.note("history forgotten");
                self.network.set_cut_off(false);
            }
            3 => {
                self.network.note("operator restarted");
                operator.stop.cancel();
                // Hanging requests may keep it from ending in time.
                if let Err(error) = operator.task.await.unwrap() {
                    self.network.note(&error.to_string());
                }
                return self.start();
            }
            4 => {
                self.network.note("operator killed");
                operator.dead.cancel();
                operator.stop.cancel();
                drop(operator.task);
                return self.start();
            }
            5 => self.clock.set_wall(self.env.wall() + Duration::from_secs(7200)),
            6 => self.clock.set_wall(self.env.wall() - Duration::from_secs(7200)),
            _ => self.network.set_faults(self.env.random_below(50)),
        }
        operator
    }
}
