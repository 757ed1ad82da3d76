//! Reconciles in a second: many clusters, or one cluster with as many objects.

use std::{collections::HashMap, sync::Arc};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k1s::multicluster::{self, Cluster, ClusterName, MultiClusterManager, MultiClusterOptions};
use k1s_env::Env;
use k1s_runtime::{Controller, ControllerOptions, Handler, Manager, ManagerOptions, kind, source};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    fleet::{NAMESPACE, Place, WRITERS, cluster_name, object, object_name},
    part::{Counting, start},
    tally::Tally,
};
use crate::{
    Failure,
    report::{Measurement, Unit, quantile},
};

/// The median of so many rounds is reported.
const ROUNDS: u64 = 7;

type Sender = source::EventSender<ConfigMap>;

pub(super) async fn run(
    env: &Env,
    is_fleet: bool,
    clusters: u64,
    objects: u64,
    workers: usize,
) -> Result<Vec<Measurement>, Failure> {
    let place = Place::open(None).await?;
    let each = objects / clusters;
    place.fill(clusters, each).await?;
    let tally = Tally::new(env);
    let (stop, reconciler) = (CancellationToken::new(), Counting { tally: Arc::clone(&tally), reads: true });
    tally.expect(objects);
    let (senders, running) = if is_fleet {
        let manager =
            MultiClusterManager::new(place.host(), ManagerOptions::local(), MultiClusterOptions::new())?;
        let made = Arc::new(Mutex::new(HashMap::<ClusterName, Sender>::new()));
        let senders = Arc::clone(&made);
        multicluster::Controller::managed_by(&manager)
            .for_(kind::<ConfigMap>())
            .watches_raw_source(move |cluster| {
                let (sender, source) = source::channel(Handler::for_object());
                senders.lock().insert(cluster.name().clone(), sender);
                source
            })
            .with_options(ControllerOptions::concurrent(workers))
            .complete(reconciler)?;
        let running = start(env, &stop, &manager);
        for number in 0..clusters {
            let name = cluster_name(number);
            let connection = place.connect(&name).await?;
            manager.engage(Cluster::new(name, &*connection, manager.cluster_options()));
        }
        tally.reached().await?;
        let made = made.lock();
        let senders = (0..clusters).filter_map(|number| made.get(&cluster_name(number)).cloned());
        (senders.collect::<Vec<Sender>>(), running)
    } else {
        let connection = place.connect(&cluster_name(0)).await?;
        let manager = Manager::new(&*connection, ManagerOptions::local())?;
        let (sender, source) = source::channel(Handler::for_object());
        Controller::managed_by(&manager)
            .for_(kind::<ConfigMap>())
            .watches_raw_source(source)
            .with_options(ControllerOptions::concurrent(workers))
            .complete(reconciler)?;
        let stopped = stop.clone();
        let running = env.spawn("manager", async move { manager.start(stopped).await });
        tally.reached().await?;
        (vec![sender], running)
    };
    let maps: Vec<Arc<ConfigMap>> = (0..each).map(|number| Arc::new(object(number))).collect();
    let (mut requeued, mut followed) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        tally.expect(objects);
        let began = env.now();
        // In turns, so that clusters gain nothing from events that come together.
        for map in &maps {
            for sender in &senders {
                sender.send(Arc::clone(map)).await?;
            }
        }
        requeued.push(objects as f64 / (tally.reached().await? - began).as_secs_f64());
        tally.expect(objects);
        let began = env.now();
        let mut apis = Vec::new();
        for number in 0..clusters {
            let client = place.connect(&cluster_name(number)).await?.client();
            apis.push(Api::<ConfigMap>::namespaced(client, NAMESPACE));
        }
        let patch = Arc::new(Patch::Merge(json!({"data": {"round": round.to_string()}})));
        let writes = (0..each * clusters).map(|number| {
            let api = apis[usize::try_from(number % clusters).unwrap_or_default()].clone();
            let (name, patch) = (object_name(number / clusters), Arc::clone(&patch));
            async move { api.patch(&name, &PatchParams::default(), &*patch).await.map(drop) }
        });
        let writes = stream::iter(writes);
        writes.buffer_unordered(WRITERS).try_collect::<()>().await?;
        followed.push(objects as f64 / (tally.reached().await? - began).as_secs_f64());
    }
    stop.cancel();
    running.await??;
    Ok(vec![
        Measurement::new(format!("requeue.w{workers}"), quantile(&mut requeued, 0.5), Unit::PerSecond),
        Measurement::new(format!("follow.w{workers}"), quantile(&mut followed, 0.5), Unit::PerSecond),
    ])
}
