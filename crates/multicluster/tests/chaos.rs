//! Clusters that come, go, fail, restart and are made again, under a simulated clock: in the end, every live cluster has what a
//! manager of that cluster alone makes of the same sources, on another server.
//!
//! 200 seeds for each network take less than a minute of two cores.
//! `K1S_SEEDS=2000 cargo test -p k1s-multicluster --test chaos` runs more.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the seed is needed to reproduce a failure")]

mod common;

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Mutex},
    time::Duration,
};

use common::{
    copies, copy, map, maps,
    network::{Mode, Networks},
    server::Server,
    start,
};
use k1s::{
    Action, BoxError, Context, Controller as SingleController, IdleOptions, Manager, ManagerOptions, Request,
    Runtime,
    env::{Env, VirtualClock},
    k8s_openapi::api::core::v1::ConfigMap,
    kind,
    kube::{
        ResourceExt as _,
        api::{DeleteParams, ListParams, PostParams},
    },
    multicluster::{Cluster, ClusterName, Controller, MultiClusterManager, MultiClusterOptions},
    tokio,
};
use k1s_runtime::{
    ControllerOptions,
    client::{DeleteOptions, ignore_not_found},
};

/// Copies sources, also if their copy has changed, and deletes copies whose sources are gone.
async fn repair(request: Request, context: Context) -> Result<Action, BoxError> {
    let source = request.name().strip_prefix("copy-").unwrap_or(request.name());
    let source = Request::new(request.namespace(), source);
    let client = context.cluster().client();
    if client.get_opt::<ConfigMap>(&source).await?.is_none() {
        let copy = format!("copy-{}", source.name());
        let copy = Request::new(request.namespace(), &copy);
        if let Some(copy) = client.get_opt::<ConfigMap>(&copy).await? {
            ignore_not_found(client.delete_with(&*copy, DeleteOptions::exactly(&*copy)).await)?;
        }
        return Ok(Action::done());
    }
    copy(source, context).await
}

struct World {
    /// Has the manager's own cluster.
    host: Runtime,
    /// Has all others, as tenants.
    server: Server,
    clock: VirtualClock,
    manager: MultiClusterManager,
    networks: Networks,
    /// What else than working a network may do.
    modes: &'static [Mode],
    /// Whether each cluster is meant to be engaged.
    wanted: BTreeMap<String, bool>,
    /// What happened so far.
    steps: Vec<String>,
    /// What single flight means: no request runs twice at a time.
    running: Arc<Mutex<BTreeMap<String, u32>>>,
}

const CLUSTERS: u64 = 5;
const OBJECTS: u64 = 6;

impl World {
    async fn new(seed: u64, modes: &'static [Mode]) -> World {
        let (env, clock) = Env::simulated(seed);
        let server = Server::start(&env).await;
        let host = Runtime::builder().env(env).start().await.unwrap();
        let options = MultiClusterOptions::new().with_disengage_timeout(Duration::from_secs(5));
        let manager = MultiClusterManager::new(&host, ManagerOptions::local(), options).unwrap();
        let running = Arc::new(Mutex::new(BTreeMap::<String, u32>::new()));
        let counts = Arc::clone(&running);
        Controller::managed_by(&manager)
            .for_(kind::<ConfigMap>())
            .with_options(ControllerOptions {
                reconciliation_timeout: Some(Duration::from_secs(30)),
                ..ControllerOptions::concurrent(3)
            })
            .complete(move |request: Request, context: Context| {
                let counts = Arc::clone(&counts);
                async move {
                    let key = format!("{}/{request}", context.cluster().name());
                    let _running = Counted::new(&counts, key);
                    repair(request, context).await
                }
            })
            .unwrap();
        let names: Vec<String> = (0..CLUSTERS).map(|number| format!("t{number}")).collect();
        for name in &names {
            server.runtime().await.server().create_tenant(name).await.unwrap();
        }
        let networks = Networks::new(host.env());
        let wanted = names.iter().map(|name| (name.clone(), false)).collect();
        World { host, server, clock, manager, networks, modes, wanted, steps: Vec::new(), running }
    }

    fn engage(&mut self, name: String) {
        let line = self.networks.line(&name, &self.server);
        self.manager.engage(Cluster::new(name.as_str(), line, self.manager.cluster_options()));
        self.wanted.insert(name, true);
    }

    async fn step(&mut self) {
        let env = self.host.env().clone();
        let name = format!("t{}", env.random_below(CLUSTERS));
        let step = env.random_below(24);
        self.steps.push(format!("{step} {name}"));
        match step {
            0..=3 => self.engage(name),
            4 | 5 => {
                let (manager, own) = (self.manager.clone(), ClusterName::new(name.as_str()));
                // In the background: running reconciles may hang for as long as they are given.
                drop(env.spawn("disengage", async move { drop(manager.disengage(&own).await) }));
                self.wanted.insert(name, false);
            }
            6 | 7 => {
                let mode = self.modes[env.random_below(self.modes.len() as u64) as usize];
                self.networks.set(&name, mode);
            }
            8..=18 => {
                let client = self.server.runtime().await.tenant_client(&name).await.unwrap();
                let object = format!("src-{}", env.random_below(OBJECTS));
                let value = env.random_below(1000).to_string();
                // Whatever exists at that time.
                let written = maps(client.clone())
                    .replace(&object, &PostParams::default(), &map(&object, &value))
                    .await;
                if written.is_err() {
                    maps(client).create(&PostParams::default(), &map(&object, &value)).await.unwrap();
                } else if env.random_below(6) == 0 {
                    let copy = format!("copy-{object}");
                    let _ = maps(client).delete(&copy, &DeleteParams::default()).await;
                }
            }
            19 | 20 => {
                // Another tenant under the same name, and under the eyes of whoever works with it.
                let runtime = self.server.runtime().await;
                runtime.server().delete_tenant(&name).await.unwrap();
                let by = env.random_below(3000);
                self.clock.advance_and_settle(Duration::from_millis(by)).await;
                runtime.server().create_tenant(&name).await.unwrap();
                if self.wanted[&name] && env.random_below(2) == 0 {
                    // As a provider does when it has seen that.
                    self.engage(name);
                }
            }
            21 => self.server.restart(&self.clock, Duration::from_millis(env.random_below(3000))).await,
            _ => {
                let by = env.random_below(3000);
                self.clock.advance_and_settle(Duration::from_millis(by)).await;
            }
        }
        self.clock.settle().await;
    }

    /// Everything answers again; engaged is what was meant to be, however long that has to wait.
    async fn heal(&mut self) {
        self.networks.heal();
        for (name, wanted) in self.wanted.clone() {
            let engaged = || self.manager.cluster(&name.as_str().into()).is_some();
            for _ in 0..2000 {
                if engaged() == wanted && !self.is_busy() {
                    break;
                }
                self.clock.advance_and_settle(Duration::from_secs(1)).await;
            }
            assert_eq!(engaged(), wanted, "{name}: {:?}", self.manager.clusters());
        }
        // Retries after errors wait for the clock.
        for _ in 0..300 {
            self.clock.advance_and_settle(Duration::from_secs(10)).await;
        }
    }

    /// Nobody has a client of a cluster that is not engaged, or of a former engagement.
    async fn has_let_go(&self) -> Result<(), String> {
        for (name, wanted) in &self.wanted {
            // The task of a client ends when it is polled once more.
            for _ in 0..100 {
                self.clock.settle().await;
                self.host.env().yield_now().await;
            }
            let (clients, allowed) = (self.networks.clients(name), usize::from(*wanted));
            if clients != allowed {
                return Err(format!("{clients} clients of {name} are held, not {allowed}"));
            }
        }
        Ok(())
    }

    fn is_busy(&self) -> bool {
        self.manager
            .clusters()
            .iter()
            .any(|cluster| cluster.state == k1s::multicluster::ClusterState::Disengaging)
    }
}

/// Counts the runs of a request, and fails if there are two at a time.
struct Counted {
    counts: Arc<Mutex<BTreeMap<String, u32>>>,
    key: String,
}

impl Counted {
    fn new(counts: &Arc<Mutex<BTreeMap<String, u32>>>, key: String) -> Counted {
        *counts.lock().unwrap().entry(key.clone()).or_default() += 1;
        Counted { counts: Arc::clone(counts), key }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap();
        let count = counts.get_mut(&self.key).unwrap();
        *count -= 1;
        // Two at a time are left over as a count that the test sees.
        if *count == 0 {
            counts.remove(&self.key);
        } else {
            counts.insert(format!("twice at a time: {}", self.key), 1);
        }
    }
}

/// What a manager for that tenant alone makes of it. It has nothing left to do.
async fn alone(runtime: &Runtime, name: &str) -> BTreeMap<String, String> {
    let connection = runtime.tenant_connector()(ClusterName::new(name)).await.unwrap();
    let manager = Manager::new(&*connection, ManagerOptions::local()).unwrap();
    SingleController::managed_by(&manager).for_(kind::<ConfigMap>()).complete(repair).unwrap();
    let report = manager.run_until_idle(IdleOptions::default()).await.unwrap();
    assert_eq!(report.writes, 0, "{name}: there was something left to do");
    copies(&connection.client()).await
}

/// What a manager makes of these sources on a server where nothing has ever happened.
async fn afresh(sources: Vec<ConfigMap>) -> BTreeMap<String, String> {
    let runtime = Runtime::builder().start().await.unwrap();
    for mut source in sources {
        source.metadata.resource_version = None;
        source.metadata.uid = None;
        maps(runtime.client()).create(&PostParams::default(), &source).await.unwrap();
    }
    let manager = Manager::new(&runtime, ManagerOptions::local()).unwrap();
    SingleController::managed_by(&manager).for_(kind::<ConfigMap>()).complete(copy).unwrap();
    manager.run_until_idle(IdleOptions::default()).await.unwrap();
    let made = copies(&runtime.client()).await;
    runtime.stop().await.unwrap();
    made
}

async fn run(seed: u64, modes: &'static [Mode]) {
    let mut world = World::new(seed, modes).await;
    let running = start(&world.manager);
    for _ in 0..60 {
        world.step().await;
    }
    world.heal().await;
    let about = format!("seed {seed}: {}", world.steps.join(", "));
    let runtime = world.server.runtime().await;
    for (name, wanted) in &world.wanted {
        if *wanted {
            let client = runtime.tenant_client(name).await.unwrap();
            let made = copies(&client).await;
            let all = maps(client).list(&ListParams::default()).await.unwrap();
            let sources = all.into_iter().filter(|map| map.name_any().starts_with("src-")).collect();
            assert_eq!(made, afresh(sources).await, "cluster {name}, {about}");
            assert_eq!(made, alone(&runtime, name).await, "cluster {name}, {about}");
        }
    }
    assert_eq!(*world.running.lock().unwrap(), BTreeMap::new(), "{about}");
    assert_eq!(world.has_let_go().await, Ok(()), "{about}");
    running.stop().await;
    drop(runtime);
    world.server.stop().await;
    world.host.stop().await.unwrap();
}

/// `K1S_SEEDS` seeds from `K1S_SEED` on, each in a thread of its own.
fn seeds(default: u64, modes: &'static [Mode]) {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let (first, seeds) = (number("K1S_SEED").unwrap_or(0), number("K1S_SEEDS").unwrap_or(default));
    let next = Arc::new(Mutex::new(first..first + seeds));
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads: Vec<_> = (0..threads)
        .map(|_| {
            let next = Arc::clone(&next);
            let work = move || {
                let take = || next.lock().unwrap().next();
                while let Some(seed) = take() {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    let run = AssertUnwindSafe(|| runtime.block_on(run(seed, modes)));
                    if let Err(panic) = catch_unwind(run) {
                        println!("K1S_SEED={seed} K1S_SEEDS=1 runs it again");
                        // The others have enough.
                        *next.lock().unwrap() = 0..0;
                        resume_unwind(panic);
                    }
                }
            };
            Env::system().spawn_thread("seeds", work).unwrap()
        })
        .collect();
    let failed = threads.into_iter().filter_map(|thread| thread.join().err()).count();
    assert_eq!(failed, 0, "threads failed: see above");
}

#[test]
fn every_live_cluster_converges() {
    seeds(200, &[Mode::Fine, Mode::Refuses, Mode::Hangs]);
}

#[test]
fn every_live_cluster_converges_over_a_faulty_network() {
    seeds(200, &[Mode::Fine, Mode::Refuses, Mode::Hangs, Mode::Faulty, Mode::Faulty, Mode::Faulty]);
}
