//! Clusters that replicas share.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    sync::Arc,
};

use futures_util::{
    StreamExt as _,
    future::{BoxFuture, join_all},
    stream::FuturesUnordered,
};
use k1s_runtime::{
    BoxError, Cluster, ClusterName, ClusterOptions, Manager,
    sharding::{Change, Changes, Release, ShardToken, Sharding},
};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{Engager, Provider, ProviderError, Stuck};

/// The clusters of another provider, shared with other replicas: a cluster is engaged only while this replica owns its shard,
/// which follows from its name.
///
/// When a shard moves, the old owner disengages its clusters before the new one engages them: running reconciles finish, within
/// [`disengage_timeout`](crate::MultiClusterOptions), which should be less than the sharding's
/// [drain timeout](k1s_runtime::sharding::ShardingOptions::drain_timeout). The [client](Cluster::client) of an engaged cluster
/// refuses writes once the shard is released or lost; other clients have to check the token themselves:
/// `sharding.owner_of(context.cluster().name())`.
///
/// Managers that share clusters need no leader election.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use k1s_multicluster::{
///     MultiClusterManager, Provider,
///     providers::ShardedProvider,
/// };
/// use k1s_runtime::{
///     BoxError,
///     sharding::{Sharding, ShardingOptions},
/// };
///
/// # fn example(manager: &MultiClusterManager, kube: kube::Client, provider: Arc<dyn Provider>) -> Result<(), BoxError> {
/// let options = ShardingOptions::new("my-operator", "default");
/// let sharding = Sharding::new(kube, manager.env().clone(), options)?;
/// manager.add(sharding.clone());
/// manager.add_provider(Arc::new(ShardedProvider::new(provider, &sharding)));
/// # Ok(())
/// # }
/// ```
pub struct ShardedProvider {
    provider: Arc<dyn Provider>,
    sharding: Sharding,
}

impl ShardedProvider {
    /// Shares the clusters of a provider. The sharding has to run: add it to the manager, too.
    #[must_use]
    pub fn new(provider: Arc<dyn Provider>, sharding: &Sharding) -> ShardedProvider {
        ShardedProvider { provider, sharding: sharding.clone() }
    }
}

#[async_trait::async_trait]
impl Provider for ShardedProvider {
    fn name(&self) -> String {
        format!("sharded ({})", self.provider.name())
    }

    async fn get(&self, name: &ClusterName) -> Result<Cluster, ProviderError> {
        self.provider.get(name).await
    }

    async fn run(
        self: Arc<Self>,
        engager: Arc<dyn Engager>,
        stop: CancellationToken,
    ) -> Result<(), BoxError> {
        let gate = Arc::new(Gate { engager, sharding: self.sharding.clone(), state: Mutex::default() });
        let (mut changes, mut stopping) = (self.sharding.changes(), FuturesUnordered::new());
        let ended = tokio::select! {
            ended = Arc::clone(&self.provider).run(Arc::clone(&gate) as Arc<dyn Engager>, stop) => ended,
            () = gate.follow(&mut changes, &mut stopping) => Ok(()),
        };
        // The shards are released when this returns, so the work has to end before, although the manager would end it, too.
        gate.disengage_all().await;
        while stopping.next().await.is_some() {}
        ended
    }
}

impl fmt::Debug for ShardedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedProvider")
            .field("provider", &self.provider.name())
            .field("sharding", &self.sharding)
            .finish()
    }
}

/// Passes on the clusters whose shards are owned.
struct Gate {
    engager: Arc<dyn Engager>,
    sharding: Sharding,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The clusters of the provider.
    known: BTreeMap<ClusterName, Cluster>,
    /// How often the provider waits for the end of the work with a cluster that it has no longer.
    leaving: BTreeMap<ClusterName, usize>,
    /// The shards that this replica works on.
    active: BTreeMap<u32, ShardToken>,
}

impl State {
    /// The clusters that this replica may work with, if it owns their shards.
    fn names(&self) -> impl Iterator<Item = &ClusterName> {
        self.known.keys().chain(self.leaving.keys())
    }
}

type Stopping = FuturesUnordered<BoxFuture<'static, ()>>;

impl Gate {
    /// Engages and disengages the clusters of shards that come and go.
    async fn follow(self: &Arc<Self>, changes: &mut Changes, stopping: &mut Stopping) {
        loop {
            let change = tokio::select! {
                Some(()) = stopping.next() => continue,
                change = changes.next() => change,
            };
            match change {
                Some(Change::Acquired(token)) => self.acquired(&token),
                Some(Change::Released(release)) => {
                    stopping.push(Box::pin(Arc::clone(self).released(release)))
                }
                Some(_) => {}
                None => return,
            }
        }
    }

    fn acquired(&self, token: &ShardToken) {
        let mut state = self.state.lock();
        state.active.insert(token.shard(), token.clone());
        for (name, cluster) in &state.known {
            if self.sharding.shard_of(name) == token.shard() {
                self.engager.engage(cluster.intercept(token.clone()));
            }
        }
    }

    async fn released(self: Arc<Self>, release: Release) {
        let shard = release.token().shard();
        let names: Vec<ClusterName> = {
            let mut state = self.state.lock();
            state.active.remove(&shard);
            state.names().filter(|name| self.sharding.shard_of(name) == shard).cloned().collect()
        };
        self.disengage_each(names).await;
        release.confirm();
    }

    async fn disengage_all(&self) {
        let names = {
            let mut state = self.state.lock();
            state.active.clear();
            state.names().cloned().collect()
        };
        self.disengage_each(names).await;
    }

    async fn disengage_each(&self, names: Vec<ClusterName>) {
        // What is stuck was logged and cancelled.
        join_all(names.iter().map(|name| self.engager.disengage(name))).await;
    }
}

#[async_trait::async_trait]
impl Engager for Gate {
    fn cluster_options(&self) -> ClusterOptions {
        self.engager.cluster_options()
    }

    fn host(&self) -> Option<Manager> {
        self.engager.host()
    }

    fn engage(&self, cluster: Cluster) {
        let mut state = self.state.lock();
        let name = cluster.name().clone();
        match state.known.entry(name.clone()) {
            Entry::Occupied(known) if known.get().is_same(&cluster) => return,
            Entry::Occupied(mut known) => drop(known.insert(cluster.clone())),
            Entry::Vacant(known) => drop(known.insert(cluster.clone())),
        }
        if let Some(token) = state.active.get(&self.sharding.shard_of(&name)) {
            self.engager.engage(cluster.intercept(token.clone()));
        }
    }

    async fn disengage(&self, name: &ClusterName) -> Result<(), Stuck> {
        {
            let mut state = self.state.lock();
            state.known.remove(name);
            *state.leaving.entry(name.clone()).or_default() += 1;
        }
        let ended = self.engager.disengage(name).await;
        let mut state = self.state.lock();
        if let Entry::Occupied(mut leaving) = state.leaving.entry(name.clone()) {
            *leaving.get_mut() -= 1;
            if *leaving.get() == 0 {
                leaving.remove();
            }
        }
        ended
    }

    fn synced(&self) {
        self.engager.synced();
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::FutureExt as _;
    use k1s_env::Env;
    use k1s_runtime::sharding::ShardingOptions;
    use kube::client::Body;
    use tokio::sync::watch;

    use super::*;

    /// Disengages clusters when it is told to.
    struct Slow {
        ended: watch::Receiver<bool>,
    }

    #[async_trait::async_trait]
    impl Engager for Slow {
        fn cluster_options(&self) -> ClusterOptions {
            ClusterOptions::default()
        }

        fn host(&self) -> Option<Manager> {
            None
        }

        fn engage(&self, _: Cluster) {}

        async fn disengage(&self, _: &ClusterName) -> Result<(), Stuck> {
            // The sender is dropped when the test has ended.
            let _ = self.ended.clone().wait_for(|ended| *ended).await;
            Ok(())
        }

        fn synced(&self) {}
    }

    #[tokio::test]
    async fn a_cluster_that_its_provider_takes_away_is_waited_for_before_the_shards_are_released() {
        let service = tower::service_fn(|_: http::Request<Body>| async {
            Ok::<_, Infallible>(http::Response::new(Body::empty()))
        });
        let client = kube::Client::new(service, "default");
        let sharding =
            Sharding::new(client.clone(), Env::system(), ShardingOptions::new("test", "default")).unwrap();
        let (end, ended) = watch::channel(false);
        let gate = Gate { engager: Arc::new(Slow { ended }), sharding, state: Mutex::default() };
        gate.engage(Cluster::new("a", client, ClusterOptions::default()));
        let name = ClusterName::new("a");
        let mut leaves = gate.disengage(&name);
        assert!((&mut leaves).now_or_never().is_none());
        let mut all = Box::pin(gate.disengage_all());
        assert!((&mut all).now_or_never().is_none(), "the work with it has not ended");
        end.send(true).unwrap();
        leaves.await.unwrap();
        all.await;
        assert!(gate.state.lock().leaving.is_empty());
    }
}
