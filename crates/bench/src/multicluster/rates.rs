//! Reconciles in a second: many clusters, or one cluster with as many objects.

use std::{any::Any, collections::HashMap, sync::Arc};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k1s::multicluster::{self, Cluster, ClusterName, MultiClusterManager, MultiClusterOptions};
use k1s_env::{Env, Task};
use k1s_runtime::{
    ClusterOptions, Controller, ControllerOptions, Event, Handler, Manager, ManagerError, ManagerOptions,
    ObjectKey, client::Client, kind, source,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    fleet::{NAMESPACE, Place, WRITERS, cluster_name, is_counted, object, object_name},
    part::{Counting, Subject, start},
    tally::Tally,
};
use crate::{
    Failure,
    report::{Measurement, Unit, quantile},
};

/// The median of so many rounds is reported.
const ROUNDS: u64 = 7;

/// As that of a channel source.
const BUFFER: usize = 1024;

type Sender = source::EventSender<ConfigMap>;

pub(super) async fn run(
    env: &Env,
    subject: Subject,
    clusters: u64,
    objects: u64,
    workers: usize,
) -> Result<Vec<Measurement>, Failure> {
    let place = Place::open(None).await?;
    let each = objects / clusters;
    place.fill(clusters, each).await?;
    let run =
        Run { env, place, clusters, each, workers, tally: Tally::new(env), stop: CancellationToken::new() };
    run.tally.expect(objects);
    let requeue = match subject {
        Subject::Fleet => run.fleet().await?,
        Subject::Informers | Subject::Informer => run.informers().await?,
        Subject::Managers | Subject::Watches | Subject::One => run.managers().await?,
    };
    let (mut requeued, mut followed) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        run.tally.expect(objects);
        let began = env.now();
        match &requeue {
            Requeue::Channels(senders, _) => run.send(senders).await?,
            Requeue::Reads { readers, .. } => run.read(readers).await?,
        }
        requeued.push(objects as f64 / (run.tally.reached().await? - began).as_secs_f64());
        run.tally.expect(objects);
        let began = env.now();
        run.write(round).await?;
        followed.push(objects as f64 / (run.tally.reached().await? - began).as_secs_f64());
    }
    run.stop.cancel();
    if let Requeue::Channels(_, running) = requeue {
        running.await??;
    }
    Ok(vec![
        Measurement::new(format!("requeue.w{workers}"), quantile(&mut requeued, 0.5), Unit::PerSecond),
        Measurement::new(format!("follow.w{workers}"), quantile(&mut followed, 0.5), Unit::PerSecond),
    ])
}

/// How objects are reconciled once more.
enum Requeue {
    /// By events, and a manager that runs.
    Channels(Vec<Sender>, Task<Result<(), ManagerError>>),
    /// Without a controller, by a task for each cluster, which reads them from the cache. Changes are counted as long as the caches
    /// are held.
    Reads { readers: Vec<mpsc::Sender<ObjectKey>>, _held: Vec<Box<dyn Any + Send + Sync>> },
}

struct Run<'a> {
    env: &'a Env,
    place: Place,
    clusters: u64,
    /// Objects of each cluster.
    each: u64,
    workers: usize,
    tally: Arc<Tally>,
    stop: CancellationToken,
}

impl Run<'_> {
    fn reconciler(&self) -> Counting {
        Counting { tally: Arc::clone(&self.tally), reads: true }
    }

    async fn fleet(&self) -> Result<Requeue, Failure> {
        let manager =
            MultiClusterManager::new(self.place.host(), ManagerOptions::local(), MultiClusterOptions::new())?;
        let made = Arc::new(Mutex::new(HashMap::<ClusterName, Sender>::new()));
        let senders = Arc::clone(&made);
        multicluster::Controller::managed_by(&manager)
            .for_(kind::<ConfigMap>())
            .watches_raw_source(move |cluster| {
                let (sender, source) = source::channel(Handler::for_object());
                senders.lock().insert(cluster.name().clone(), sender);
                source
            })
            .with_options(ControllerOptions::concurrent(self.workers))
            .complete(self.reconciler())?;
        let running = start(self.env, &self.stop, &manager);
        for number in 0..self.clusters {
            let name = cluster_name(number);
            let connection = self.place.connect(&name).await?;
            manager.engage(Cluster::new(name, &*connection, manager.cluster_options()));
        }
        self.tally.reached().await?;
        let made = made.lock();
        let senders = (0..self.clusters).filter_map(|number| made.get(&cluster_name(number)).cloned());
        Ok(Requeue::Channels(senders.collect(), running))
    }

    /// A manager for each cluster.
    async fn managers(&self) -> Result<Requeue, Failure> {
        let (mut senders, mut managers) = (Vec::new(), Vec::new());
        for number in 0..self.clusters {
            let connection = self.place.connect(&cluster_name(number)).await?;
            let manager = Manager::new(&*connection, ManagerOptions::local())?;
            let (sender, source) = source::channel(Handler::for_object());
            Controller::managed_by(&manager)
                .for_(kind::<ConfigMap>())
                .watches_raw_source(source)
                .with_options(ControllerOptions::concurrent(self.workers))
                .complete(self.reconciler())?;
            let stopped = self.stop.clone();
            managers.push(self.env.spawn("manager", async move { manager.start(stopped).await }));
            senders.push(sender);
        }
        let running = self.env.spawn("managers", async move {
            for manager in managers {
                // One that was aborted has nothing to report.
                if let Ok(ended) = manager.await {
                    ended?;
                }
            }
            Ok(())
        });
        self.tally.reached().await?;
        Ok(Requeue::Channels(senders, running))
    }

    async fn informers(&self) -> Result<Requeue, Failure> {
        let (mut readers, mut held) = (Vec::new(), Vec::<Box<dyn Any + Send + Sync>>::new());
        for number in 0..self.clusters {
            let name = cluster_name(number);
            let connection = self.place.connect(&name).await?;
            let cluster = Cluster::new(name, &*connection, ClusterOptions::default());
            let (informer, tally) =
                (cluster.cache().informer(&kind::<ConfigMap>())?, Arc::clone(&self.tally));
            let handler = move |event: &Event<ConfigMap>| {
                if is_counted(&event.object().name_any()) {
                    tally.ran();
                }
            };
            held.push(Box::new(informer.add_handler(Box::new(handler))));
            readers.push(self.reader(cluster.client().clone()));
            held.push(Box::new(cluster));
        }
        self.tally.reached().await?;
        Ok(Requeue::Reads { readers, _held: held })
    }

    /// An event for each object. In turns, so that clusters gain nothing from events that come together.
    async fn send(&self, senders: &[Sender]) -> Result<(), Failure> {
        for number in 0..self.each {
            let map = Arc::new(object(number));
            for sender in senders {
                sender.send(Arc::clone(&map)).await?;
            }
        }
        Ok(())
    }

    /// A task that reads objects from a cache, as it is told to.
    fn reader(&self, client: Client) -> mpsc::Sender<ObjectKey> {
        let (sender, mut keys) = mpsc::channel::<ObjectKey>(BUFFER);
        let tally = Arc::clone(&self.tally);
        drop(self.env.spawn("reader", async move {
            while let Some(key) = keys.recv().await {
                // What fails is missed in the count.
                if client.get_opt::<ConfigMap>(&key).await.is_ok() {
                    tally.ran();
                }
            }
        }));
        sender
    }

    /// Reads all objects, in the same turns.
    async fn read(&self, readers: &[mpsc::Sender<ObjectKey>]) -> Result<(), Failure> {
        for number in 0..self.each {
            let key = ObjectKey::of(&object(number));
            for reader in readers {
                reader.send(key.clone()).await?;
            }
        }
        Ok(())
    }

    /// Changes all objects.
    async fn write(&self, round: u64) -> Result<(), Failure> {
        let mut apis = Vec::new();
        for number in 0..self.clusters {
            let client = self.place.connect(&cluster_name(number)).await?.client();
            apis.push(Api::<ConfigMap>::namespaced(client, NAMESPACE));
        }
        let patch = Arc::new(Patch::Merge(json!({"data": {"round": round.to_string()}})));
        let writes = (0..self.each * self.clusters).map(|number| {
            let api = apis[usize::try_from(number % self.clusters).unwrap_or_default()].clone();
            let (name, patch) = (object_name(number / self.clusters), Arc::clone(&patch));
            async move { api.patch(&name, &PatchParams::default(), &*patch).await.map(drop) }
        });
        Ok(stream::iter(writes).buffer_unordered(WRITERS).try_collect().await?)
    }
}
