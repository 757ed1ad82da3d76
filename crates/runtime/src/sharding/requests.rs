//! A controller whose requests are shared by replicas: it handles those of its own shards.

use std::{collections::BTreeSet, future::poll_fn, pin::pin, sync::Arc, task::Poll};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use k1s_env::Env;
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Change, Release, ShardLost, ShardToken, Sharding};
use crate::queue::{Key, Queue};

/// The shards that a controller works on.
pub(crate) struct Shards<R: Key> {
    sharding: Sharding,
    shard_of: Box<dyn Fn(&R) -> u32 + Send + Sync>,
    active: Box<[RwLock<Option<Active>>]>,
    replays: Mutex<Vec<(CancellationToken, ReplayFn<R>)>>,
}

/// Queues the requests for everything that a source knows in this queue.
pub(crate) type ReplayFn<R> = Box<dyn Fn(&Queue<R>) + Send + Sync>;

/// A shard that requests are handled for. Reconciles in flight hold clones of it.
#[derive(Clone)]
pub(crate) struct Active {
    token: ShardToken,
    /// Cancelled when the last clone is dropped.
    ended: CancellationToken,
    _running: Arc<DropGuard>,
}

impl Active {
    fn new(token: ShardToken) -> Active {
        let ended = CancellationToken::new();
        Active { token, _running: Arc::new(ended.clone().drop_guard()), ended }
    }

    pub(crate) fn token(&self) -> &ShardToken {
        &self.token
    }

    /// Waits until the shard is lost. Reads the clock whenever it is polled, so a process that was paused does not go on.
    pub(crate) async fn lost(&self) -> ShardLost {
        let mut lost = pin!(self.token.lost());
        poll_fn(|context| match self.token.check() {
            Ok(()) => lost.as_mut().poll(context),
            Err(lost) => Poll::Ready(lost),
        })
        .await
    }
}

impl<R: Key> Shards<R> {
    pub(crate) fn new(
        sharding: &Sharding,
        shard_of: impl Fn(&R) -> u32 + Send + Sync + 'static,
    ) -> Arc<Shards<R>> {
        Arc::new(Shards {
            sharding: sharding.clone(),
            shard_of: Box::new(shard_of),
            active: (0..sharding.shards()).map(|_| RwLock::default()).collect(),
            replays: Mutex::default(),
        })
    }

    /// The shard of a request, if a reconcile of it may begin.
    pub(crate) fn begin(&self, request: &R) -> Option<Active> {
        let slot = self.active.get((self.shard_of)(request) as usize)?;
        slot.read().clone().filter(|active| active.token.is_valid())
    }

    /// A queue that drops requests of other replicas' shards, and forwards those of its own.
    pub(crate) fn gate(self: &Arc<Self>, env: &Env, to: &Queue<R>) -> Queue<R> {
        let shards = Arc::clone(self);
        to.filtered(env, move |request| shards.begin(request).is_some())
    }

    /// Adds a source that can queue everything again, until it is stopped.
    pub(crate) fn add_replay(&self, stop: &CancellationToken, replay: ReplayFn<R>) {
        let mut replays = self.replays.lock();
        replays.retain(|(stop, _)| !stop.is_cancelled());
        replays.push((stop.clone(), replay));
    }

    /// Begins and ends work on shards, for ever.
    pub(crate) async fn follow(self: &Arc<Self>, env: &Env, queue: &Queue<R>) {
        let mut changes = self.sharding.changes();
        let mut stopping = FuturesUnordered::new();
        loop {
            let batch = tokio::select! {
                Some(()) = stopping.next() => continue,
                batch = changes.next_all() => batch,
            };
            let (mut acquired, mut released) = (BTreeSet::new(), BTreeSet::new());
            for change in batch {
                match change {
                    Change::Acquired(token) => {
                        let Some(slot) = self.active.get(token.shard() as usize) else { continue };
                        acquired.insert(token.shard());
                        *slot.write() = Some(Active::new(token));
                    }
                    Change::Released(release) => {
                        let shard = release.token().shard();
                        acquired.remove(&shard);
                        released.insert(shard);
                        let active = self.active.get(shard as usize).and_then(|slot| slot.write().take());
                        stopping.push(stopped(active, release));
                    }
                }
            }
            if !released.is_empty() {
                // What is added after this is dropped when it is handed out.
                queue.retain(|request| !released.contains(&(self.shard_of)(request)));
            }
            if !acquired.is_empty() {
                let shards = Arc::clone(self);
                self.replay(
                    &queue.filtered(env, move |request| acquired.contains(&(shards.shard_of)(request))),
                );
            }
        }
    }

    fn replay(&self, queue: &Queue<R>) {
        let replays = self.replays.lock();
        for (_, replay) in replays.iter().filter(|(stop, _)| !stop.is_cancelled()) {
            replay(queue);
        }
    }
}

/// Confirms a release when the reconciles of the shard have ended.
async fn stopped(active: Option<Active>, release: Release) {
    // Drops this clone of the shard; those of the reconciles are left.
    let ended = active.map(|active| active.ended);
    if let Some(ended) = ended {
        ended.cancelled().await;
    }
    release.confirm();
}
