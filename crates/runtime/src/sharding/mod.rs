//! Sharding: several replicas share a fleet of clusters, or the keys of a controller.
//!
//! A key (the name of a cluster, the name of an object) belongs to one of a fixed number of shards, and a shard to one of the
//! replicas that are alive. A [`Sharding`] is a runnable of a [`Manager`](crate::Manager) that keeps this replica a member of
//! the group and acquires and releases shards.
//!
//! ```no_run
//! use k1s_runtime::{
//!     Action, BoxError, Context, Controller, Manager, Request, kind,
//!     sharding::{Sharding, ShardingOptions},
//! };
//! use k8s_openapi::api::core::v1::ConfigMap;
//!
//! # fn example(manager: &Manager, kube: kube::Client) -> Result<(), BoxError> {
//! let options = ShardingOptions::new("my-operator", "default");
//! let sharding = Sharding::new(kube, manager.env().clone(), options)?;
//! manager.add(sharding.clone());
//! // In one cluster: each replica reconciles the objects of its own shards.
//! let client = manager.client();
//! Controller::managed_by(manager).for_(kind::<ConfigMap>()).sharded_by(&sharding).complete(
//!     move |request: Request, context: Context| {
//!         let (client, shard) = (client.clone(), context.shard().cloned());
//!         async move {
//!             let Some(shard) = shard else { return Ok(Action::done()) };
//!             // Refuses writes after the shard is lost.
//!             let client = client.intercept(shard.clone());
//!             if let Some(map) = client.get_opt::<ConfigMap>(&request).await? {
//!                 tracing::info!(%request, token = shard.value(), keys = map.data.iter().flatten().count());
//!             }
//!             Ok::<_, BoxError>(Action::done())
//!         }
//!     },
//! )?;
//! # Ok(())
//! # }
//! ```
//!
//! Work that is not a controller follows [`Sharding::changes`], and confirms that it has stopped.
//!
//! # What is promised
//!
//! - **One owner at a time.** A shard that moves between live replicas is released by the old owner after its work has stopped
//!   ([`Release`]), at the latest after [`drain_timeout`](ShardingOptions::drain_timeout). A replica that is killed, stopped or
//!   cut off loses its shards by itself [`renew_deadline`](ShardingOptions::renew_deadline) after its last renewal, before
//!   others may take them: [`ShardToken::check`] reads the clock, and fails from then on.
//! - **Every shard is owned again** within the lease duration and a retry period after its owner was last seen; at most two retry
//!   periods and the time to drain if the owner is alive.
//! - **Few moves.** A replica that comes takes its share, one that goes leaves its shards to others, and nothing else moves.
//!   Shares follow the weights. With n shards per replica on average, a share differs by about the square root of n.
//! - **Fencing tokens increase** with every acquisition of a shard ([`ShardToken::value`]). A write that carries the token, on
//!   the condition that no higher one is there, is safe even if a request was delayed on its way to the server.
//!
//! Not promised: what [leader election](crate::leader) does not promise either. Clocks must run at about the same speed, and
//! editing or deleting the Leases by hand may give a shard two owners until the first one reads them again (one retry period).
//!
//! # How
//!
//! Each replica holds one Lease, its membership, which it renews every retry period: one small write, whatever the number of
//! shards. Another Lease has the table in an annotation: for each shard the session (one term of a membership) that owns it, and
//! its last token. The table is written only when shards move, many in one write, and each write is a compare-and-swap of the
//! whole table. Every retry period each replica lists all these Leases, computes by weighted rendezvous hashing which shards are
//! its own, and drains, releases and claims accordingly. With 10 replicas and the default times that is 5 writes and 5 lists of
//! 11 Leases per second; a Lease for each of 64 shards would be 32 writes per second.
//!
//! Why no two replicas work on a shard:
//!
//! 1. A replica works on a shard only after it has written itself into the table, and only while its session is valid.
//!    An earlier write of its own that may still be on its way cannot be applied after that: the table has changed.
//! 2. It removes itself after its work has stopped. Another replica removes it only if the session has ended: the member's Lease
//!    was released, or is held by a later session, or was unchanged for its whole duration: from the end of the first request
//!    that returned it to the beginning of the last one.
//! 3. In the last case the session is no longer valid: it ends `renew_deadline`, which is less, after its last successful
//!    renewal was *sent*, and a renewal whose response arrives later does not count.
//!
//! The number of shards is recorded in the table. A replica with another number refuses to run while a replica with the recorded
//! one is alive; when none is, it records its own number, and tokens continue.
//!
//! Permissions: `get`, `list`, `create`, `update` and `delete` of `leases.coordination.k8s.io` in the namespace.

mod assign;
mod changes;
mod leases;
mod members;
mod metrics;
mod options;
mod plan;
mod requests;
mod run;
mod session;
mod table;
mod token;

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
};

use k1s_env::Env;
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(crate) use self::requests::{Active, Shards};
use self::{changes::Owned, metrics::OfSharding};
pub use self::{
    changes::{Change, Changes, Release},
    members::Member,
    metrics::ShardingMetrics,
    options::{InvalidShardingOptions, MAX_SHARDS, ShardingOptions},
    run::ShardingError,
    token::{ShardLost, ShardToken},
};
use crate::leader::{LeaderElectionOptions, unique_identity};

/// A replica's part in a group that shares work. Clones share it.
///
/// Nothing is sent before it runs: add it to a [`Manager`](crate::Manager), or call [`run`](Self::run).
#[derive(Clone)]
pub struct Sharding {
    inner: Arc<Inner>,
}

struct Inner {
    env: Env,
    client: Client,
    options: ShardingOptions,
    /// The options of the member's Lease.
    member: LeaderElectionOptions,
    identity: String,
    owned: Owned,
    members: Mutex<Vec<Member>>,
    metrics: OfSharding,
    /// Ends the pause between two looks at the other replicas.
    wake: Notify,
    running: AtomicBool,
}

impl Sharding {
    /// A replica of a group.
    ///
    /// # Errors
    /// If the options are invalid.
    pub fn new(
        client: Client,
        env: Env,
        options: ShardingOptions,
    ) -> Result<Sharding, InvalidShardingOptions> {
        Sharding::with_metrics(client, env, options, &ShardingMetrics::default())
    }

    /// A replica of a group that reports in these metrics.
    ///
    /// # Errors
    /// If the options are invalid.
    pub fn with_metrics(
        client: Client,
        env: Env,
        options: ShardingOptions,
        metrics: &ShardingMetrics,
    ) -> Result<Sharding, InvalidShardingOptions> {
        let identity = options.identity.clone().unwrap_or_else(|| unique_identity(&env));
        let member = options.member_lease(&identity)?;
        let inner = Inner {
            env,
            client,
            member,
            identity,
            owned: Owned::new(options.shards),
            members: Mutex::default(),
            metrics: metrics.of(&options.name),
            wake: Notify::new(),
            running: AtomicBool::new(false),
            options,
        };
        Ok(Sharding { inner: Arc::new(inner) })
    }

    /// The identity of this replica.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.inner.identity
    }

    /// The name of the group.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.options.name
    }

    /// The number of shards.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.inner.options.shards
    }

    /// The shard of a key: the name of a cluster or of an object. The same in all replicas and versions.
    #[must_use]
    pub fn shard_of(&self, key: &str) -> u32 {
        assign::shard_of(key, self.inner.options.shards)
    }

    /// This replica's right to work on a shard, if it owns the shard and work on it may begin. Cheap: ask before each piece of
    /// work.
    #[must_use]
    pub fn owner(&self, shard: u32) -> Option<ShardToken> {
        self.inner.owned.get(shard).filter(ShardToken::is_valid)
    }

    /// [`owner`](Self::owner) of the key's shard.
    #[must_use]
    pub fn owner_of(&self, key: &str) -> Option<ShardToken> {
        self.owner(self.shard_of(key))
    }

    /// The shards that this replica owns, in order.
    #[must_use]
    pub fn owned(&self) -> Vec<ShardToken> {
        let mut all = self.inner.owned.all();
        all.retain(ShardToken::is_valid);
        all
    }

    /// The replicas that are alive, as far as this one knows, sorted. Empty while it is not a member itself.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        self.inner.members.lock().clone()
    }

    /// Follows the shards that this replica owns. Each subscriber takes part in every release from now on: it has to receive
    /// the changes, and to confirm releases, or else the group waits for the drain timeout.
    #[must_use]
    pub fn changes(&self) -> Changes {
        self.inner.owned.subscribe()
    }

    /// Looks at the other replicas now instead of after the retry period.
    pub fn wake(&self) {
        self.inner.wake.notify_one();
    }

    /// Takes part in the group until `stop` is cancelled; then lets its work stop, and leaves.
    ///
    /// # Errors
    /// If the group has another number of shards, its table is damaged, or this runs already.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), ShardingError> {
        run::run(&self.inner, &stop).await
    }
}

impl fmt::Debug for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharding")
            .field("name", &self.inner.options.name)
            .field("identity", &self.inner.identity)
            .field("owned", &self.inner.owned.all().len())
            .finish_non_exhaustive()
    }
}
