//! Memory and start time of clusters that are engaged, in a process of its own.

use std::{any::Any, path::PathBuf, sync::Arc, time::Duration};

use clap::{Args, ValueEnum};
use futures_util::StreamExt as _;
use k1s::multicluster::{self, Cluster, ClusterName, ClusterState, MultiClusterManager, MultiClusterOptions};
use k1s_env::{Env, Task};
use k1s_runtime::{
    Action, BoxError, Cache, CacheOptions, Context, Controller, Handler, Manager, ManagerError,
    ManagerOptions, Reconciler, Request, kind,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::{
    Api,
    api::{ListParams, WatchParams},
};
use tokio_util::sync::CancellationToken;

use super::{
    fleet::{Place, cluster_name, is_counted},
    projects, rates,
    sockets::connections_to,
    tally::Tally,
};
use crate::{
    Failure,
    report::{self, Measurement, Unit, quantile},
    server::process::resident_bytes,
};

#[derive(Args)]
pub(crate) struct Options {
    #[arg(value_enum)]
    subject: Subject,
    #[arg(value_enum)]
    what: What,
    /// Where the server is; without it, it is in this process
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    #[arg(long)]
    clusters: u64,
    /// Objects in all clusters together, for rates
    #[arg(long, default_value_t = 0)]
    objects: u64,
    /// Reconciles at the same time, for rates
    #[arg(long, default_value_t = 1)]
    workers: usize,
}

/// Who works with the clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// A multi-cluster manager.
    Fleet,
    /// A manager for each cluster.
    Managers,
    /// A cache with an informer for each cluster, without a controller.
    Informers,
    /// A list and a watch of each cluster.
    Watches,
    /// A manager of one cluster with all objects.
    One,
    /// A cache of one cluster with all objects.
    Informer,
}

impl Subject {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Subject::Fleet => "fleet",
            Subject::Managers => "managers",
            Subject::Informers => "informers",
            Subject::Watches => "watches",
            Subject::One => "one",
            Subject::Informer => "informer",
        }
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Memory and start time; over HTTPS also connections.
    Clusters,
    /// Connections with a controller of three kinds.
    Kinds,
    /// Reconciles in a second.
    Rates,
    /// From the create of a project to the first reconcile in it.
    Projects,
}

impl What {
    pub(crate) fn name(self) -> &'static str {
        match self {
            What::Clusters => "clusters",
            What::Kinds => "kinds",
            What::Rates => "rates",
            What::Projects => "projects",
        }
    }
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let env = Env::system();
    // As a task: on the thread of `main` it would run beside the workers, one thread more than there are processors.
    let found = env.clone().spawn("part", async move {
        match options.what {
            What::Clusters | What::Kinds => clusters(&env, &options).await,
            What::Rates => {
                let is_one = matches!(options.subject, Subject::One | Subject::Informer);
                let clusters = if is_one { 1 } else { options.clusters };
                rates::run(&env, options.subject, clusters, options.objects, options.workers).await
            }
            What::Projects => projects::run(&env, options.clusters).await,
        }
    });
    report::print(&serde_json::to_string(&found.await??)?);
    Ok(())
}

/// Clusters that are engaged one at a time, after the others, to see how long one takes.
const SINGLE: u64 = 50;

async fn clusters(env: &Env, options: &Options) -> Result<Vec<Measurement>, Failure> {
    let place = Place::open(options.kubeconfig.as_deref()).await?;
    let (count, single) = (options.clusters, SINGLE.min(options.clusters));
    // The first one is not counted: it pays for what all share.
    place.fill(count + single + 1, 1).await?;
    let mut workers = Workers::new(env, &place, options)?;
    workers.add_and_wait(cluster_name(count + single)).await?;
    settle(env).await;
    let before = resident_bytes(std::process::id())?;
    let began = env.now();
    workers.tally.expect(count);
    for number in 0..count {
        workers.add(cluster_name(number)).await?;
    }
    let seconds = (workers.tally.reached().await? - began).as_secs_f64();
    workers.ready().await?;
    settle(env).await;
    let grown = resident_bytes(std::process::id())?.saturating_sub(before);
    let connections = place.port().map(connections_to).transpose()?;
    let mut found = Vec::new();
    let connections = connections.map(|number| number as f64);
    if options.what == What::Kinds {
        found.extend(
            connections.map(|number| Measurement::new("connections-3-kinds", number, Unit::Connections)),
        );
        return Ok(found);
    }
    let mut alone = Vec::new();
    for number in count..count + single {
        let began = env.now();
        workers.add_and_wait(cluster_name(number)).await?;
        alone.push((env.now() - began).as_secs_f64() * 1e3);
    }
    found.push(Measurement::new("memory", grown as f64 / count as f64 / 1024.0, Unit::Kilobytes));
    found.push(Measurement::new("start", seconds * 1e3 / count as f64, Unit::Milliseconds));
    found.push(Measurement::new("start-single", quantile(&mut alone, 0.5), Unit::Milliseconds));
    found.extend(connections.map(|number| Measurement::new("connections", number, Unit::Connections)));
    workers.stop.cancel();
    Ok(found)
}

/// Lets background work finish.
async fn settle(env: &Env) {
    env.sleep(Duration::from_millis(500)).await;
}

/// Counts the reconciles of counted objects, which read them from the cache.
#[derive(Clone)]
pub(super) struct Counting {
    pub(super) tally: Arc<Tally>,
    pub(super) reads: bool,
}

impl Reconciler<Request> for Counting {
    type Error = BoxError;

    async fn reconcile(&self, request: Request, context: Context) -> Result<Action, BoxError> {
        if is_counted(request.name()) {
            if self.reads {
                context.cluster().client().get_opt::<ConfigMap>(&request).await?;
            }
            self.tally.ran();
        }
        Ok(Action::done())
    }
}

/// Runs a manager in the background.
pub(super) fn start(
    env: &Env,
    stop: &CancellationToken,
    manager: &MultiClusterManager,
) -> Task<Result<(), ManagerError>> {
    let (manager, stop) = (manager.clone(), stop.clone());
    env.spawn("manager", async move { manager.start(stop).await })
}

/// Those who work with the clusters.
struct Workers<'a> {
    env: &'a Env,
    place: &'a Place,
    subject: Subject,
    tally: Arc<Tally>,
    fleet: Option<MultiClusterManager>,
    held: Vec<Box<dyn Any + Send + Sync>>,
    stop: CancellationToken,
}

impl<'a> Workers<'a> {
    fn new(env: &'a Env, place: &'a Place, options: &Options) -> Result<Workers<'a>, Failure> {
        let (tally, stop) = (Tally::new(env), CancellationToken::new());
        let mut workers =
            Workers { env, place, subject: options.subject, tally, fleet: None, held: Vec::new(), stop };
        if options.subject == Subject::Fleet {
            let manager =
                MultiClusterManager::new(place.host(), ManagerOptions::local(), MultiClusterOptions::new())?;
            let mut builder = multicluster::Controller::managed_by(&manager).for_(kind::<ConfigMap>());
            if options.what == What::Kinds {
                builder = builder
                    .watches(kind::<Secret>(), |_| Handler::for_object())
                    .watches(kind::<ServiceAccount>(), |_| Handler::for_object());
            }
            builder.complete(workers.reconciler())?;
            workers.held.push(Box::new(start(env, &workers.stop, &manager)));
            workers.fleet = Some(manager);
        }
        Ok(workers)
    }

    fn reconciler(&self) -> Counting {
        Counting { tally: Arc::clone(&self.tally), reads: true }
    }

    /// Starts to work with a cluster, and waits for its first reconcile.
    async fn add_and_wait(&mut self, name: ClusterName) -> Result<(), Failure> {
        self.tally.expect(1);
        self.add(name).await?;
        self.tally.reached().await.map(drop)
    }

    /// Starts to work with a cluster.
    async fn add(&mut self, name: ClusterName) -> Result<(), Failure> {
        if let Some(manager) = &self.fleet {
            let connection = self.place.connect(&name).await?;
            manager.engage(Cluster::new(name, &*connection, manager.cluster_options()));
            return Ok(());
        }
        let tally = Arc::clone(&self.tally);
        let held: Box<dyn Any + Send + Sync> = match self.subject {
            Subject::Managers | Subject::Fleet | Subject::One => {
                let connection = self.place.connect_alone(&name).await?;
                let manager = Manager::new(&*connection, ManagerOptions::local())?;
                Controller::managed_by(&manager).for_(kind::<ConfigMap>()).complete(self.reconciler())?;
                let stop = self.stop.clone();
                Box::new(self.env.spawn("manager", async move { manager.start(stop).await }))
            }
            Subject::Informers | Subject::Informer => {
                let client = self.place.connect(&name).await?.client();
                let cache = Cache::new(self.env, client, CacheOptions::default());
                let informer = cache.informer(&kind::<ConfigMap>())?;
                Box::new(self.env.spawn("informer", async move {
                    informer.synced().await;
                    tally.ran();
                    (cache, informer)
                }))
            }
            Subject::Watches => {
                let maps = Api::<ConfigMap>::all(self.place.connect(&name).await?.client());
                Box::new(self.env.spawn("watch", async move {
                    let list = maps.list(&ListParams::default()).await?;
                    let version = list.metadata.resource_version.unwrap_or_default();
                    let mut events = maps.watch(&WatchParams::default(), &version).await?.boxed();
                    tally.ran();
                    while events.next().await.is_some() {}
                    Ok::<(), kube::Error>(())
                }))
            }
        };
        self.held.push(held);
        Ok(())
    }

    /// Waits until all caches of the fleet are synced.
    async fn ready(&self) -> Result<(), Failure> {
        let Some(manager) = &self.fleet else { return Ok(()) };
        for _ in 0..6000 {
            let clusters = manager.clusters();
            if clusters.iter().all(|cluster| cluster.state == ClusterState::Ready) {
                return Ok(());
            }
            self.env.sleep(Duration::from_millis(10)).await;
        }
        Err(Failure("some clusters do not become ready".to_owned()))
    }
}
