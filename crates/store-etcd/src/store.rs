//! The store: the trait, on top of the other modules.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use k1s_env::{Env, Task};
use k1s_store::{
    Error, GetResult, Range, RangeResult, Result, Revision, Stats, Store, Txn, Watch, WatchRequest,
};
use tokio::sync::Mutex;

use crate::{
    compactor,
    failure::Failure,
    history::History,
    keys::number,
    marks,
    options::{ConnectError, EtcdOptions},
    proto::{self, RangeRequest},
    shared::Shared,
    txn::{self, Plain},
    upstream,
};

/// Maximum time that closing or compacting waits for the process's own watches to receive its own writes.
const COURTESY: Duration = Duration::from_secs(1);

/// Maximum attempts at a transaction that fails although its preconditions hold when they are read afterwards.
const TXN_ATTEMPTS: usize = 5;

/// A [`Store`] on etcd. Cheap to clone; clones are the same store.
///
/// It ends when it is [closed](Store::close), or when the last clone and the last watch are dropped. A watch that
/// is still behind when the store is closed goes on reading etcd's history until it has yielded everything;
/// only then, or when it is dropped, the connection for that ends.
#[derive(Clone)]
pub struct EtcdStore {
    handle: Arc<Handle>,
}

/// Held by users of the store. Its tasks hold only the shared part, so they end with it.
struct Handle {
    shared: Arc<Shared>,
    tasks: Mutex<Vec<Task<()>>>,
}

impl EtcdStore {
    /// Opens the store under the root of the options.
    ///
    /// Several processes may have it open at a time, and see each other's writes.
    ///
    /// # Errors
    /// [`ConnectError`] if the options are invalid, or if no endpoint answers in time.
    pub async fn connect(env: Env, options: EtcdOptions) -> Result<Self, ConnectError> {
        let shared = Arc::new(Shared::connect(env.clone(), options).await?);
        let source = match upstream::first(&shared).await {
            Ok(source) => source,
            Err(error) => {
                shared.connections.close().await;
                shared.history_connections.close().await;
                return Err(error.into());
            }
        };
        let mut tasks = vec![
            env.spawn("etcd-upstream", upstream::run(shared.clone(), source)),
            env.spawn("etcd-marks", marks::run(shared.clone())),
        ];
        if let Some(interval) = shared.options.compaction {
            tasks.push(env.spawn("etcd-compactor", compactor::run(shared.clone(), interval)));
        }
        Ok(Self { handle: Arc::new(Handle { shared, tasks: Mutex::new(tasks) }) })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }
}

#[async_trait]
impl Store for EtcdStore {
    fn is_shared(&self) -> bool {
        true
    }

    async fn revision(&self) -> Result<Revision> {
        let shared = self.shared();
        shared.check_open()?;
        shared.revision().await
    }

    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<GetResult> {
        let shared = self.shared();
        shared.check_open()?;
        shared.check_moment(at)?;
        let request = RangeRequest { key: shared.keys.outer(key), ..RangeRequest::default() };
        let (newest, response) = shared.range_once(request, at).await?;
        let entry = response.kvs.first().and_then(|kv| shared.keys.entry(kv));
        Ok(GetResult { revision: at.unwrap_or(newest), entry })
    }

    async fn range(&self, range: Range) -> Result<RangeResult> {
        let shared = self.shared();
        shared.check_open()?;
        shared.range(&range).await
    }

    async fn txn(&self, txn: Txn) -> Result<Revision> {
        txn.validate()?;
        let shared = self.shared();
        shared.check_open()?;
        if let Some(plain) = txn::plain(&shared.keys, &txn) {
            return write_plain(shared, plain).await;
        }
        let request = txn::request(&shared.keys, &txn);
        for _ in 0..TXN_ATTEMPTS {
            let known = shared.newest();
            let answer: Result<proto::TxnResponse, Failure> = match txn::is_read_only(&txn) {
                true => shared.requests.read(proto::TXN, &request).await,
                false => shared.requests.write(proto::TXN, &request).await,
            };
            let answer = answer.map_err(|failure| txn::write_error(failure, &request))?;
            let revision = shared.accept(answer.header, known)?;
            if answer.succeeded {
                if txn::has_written(&answer) {
                    shared.acknowledge(revision);
                }
                return Ok(revision);
            }
            if let Some(conflict) = txn::conflict(&shared.keys, &txn, &answer.responses) {
                return Err(conflict);
            }
            // It was too large to read what is there in the same request. Nothing was written, so it may be tried
            // again if its preconditions hold by now.
            let reads = txn::read_request(&shared.keys, &txn);
            let answer: proto::TxnResponse =
                shared.requests.read(proto::TXN, &reads).await.map_err(Failure::of_read)?;
            if let Some(conflict) = txn::conflict(&shared.keys, &txn, &answer.responses) {
                return Err(conflict);
            }
        }
        Err(Error::unavailable("the keys of a large transaction change too fast to say which is in its way"))
    }

    async fn watch(&self, mut request: WatchRequest) -> Result<Watch> {
        let shared = self.shared();
        shared.check_open()?;
        // First: later changes have previous values if they are requested.
        let wish = match request.previous {
            true => Some(shared.wishes.want(&shared.env).await),
            false => None,
        };
        match request.after {
            // Not older than any write before this call, by any client.
            None => request.after = Some(shared.sync().await?),
            Some(after) => {
                if after > shared.newest() {
                    let current = shared.revision().await?;
                    if after > current {
                        return Err(Error::FutureRevision { requested: after, current });
                    }
                }
                shared.sync_to(after).await?;
            }
        }
        let watch = shared.feed.watch(request, Arc::new(History::new(self.clone())))?;
        Ok(marks::with_marks(shared, watch, wish))
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        let shared = self.shared();
        shared.check_open()?;
        compact(shared, revision).await
    }

    async fn stats(&self) -> Result<Stats> {
        let shared = self.shared();
        shared.check_open()?;
        let count = RangeRequest {
            key: shared.keys.outer(b""),
            range_end: shared.keys.outer_end(b""),
            count_only: true,
            ..RangeRequest::default()
        };
        // Before the revision, which a compaction in between would overtake.
        let oldest = shared.oldest().await?;
        let (revision, counted) = shared.range_once(count, None).await?;
        let status: proto::StatusResponse =
            shared.requests.read(proto::STATUS, &proto::StatusRequest {}).await.map_err(Failure::of_read)?;
        let mut stats = Stats::default();
        stats.revision = revision;
        stats.oldest = oldest;
        stats.keys = u64::try_from(counted.count).unwrap_or(0);
        stats.disk_bytes = u64::try_from(status.db_size).ok();
        stats.watches = shared.feed.watches() as u64;
        stats.degraded = (!status.errors.is_empty()).then(|| status.errors.join("; "));
        Ok(stats)
    }

    async fn health(&self) -> Result<()> {
        let shared = self.shared();
        shared.check_open()?;
        let status: proto::StatusResponse =
            shared.requests.read(proto::STATUS, &proto::StatusRequest {}).await.map_err(Failure::of_read)?;
        match &status.errors[..] {
            [] => Ok(()),
            errors if errors.iter().any(|error| error.contains("NOSPACE")) => {
                Err(Error::Full { reason: errors.join("; ") })
            }
            errors => Err(Error::unavailable(errors.join("; "))),
        }
    }

    async fn close(&self) -> Result<()> {
        let shared = self.shared();
        shared.mark_closed();
        // Watches are promised every acknowledged write; some may still be under way.
        let _ = shared.env.timeout(COURTESY, shared.wait_seen(shared.acknowledged())).await;
        shared.feed.close();
        shared.stop.cancel();
        let mut tasks = self.handle.tasks.lock().await;
        while let Some(task) = tasks.last_mut() {
            // However it ended.
            let _ = task.await;
            tasks.pop();
        }
        shared.connections.close().await;
        if shared.feed.watches() == 0 {
            shared.stop_history.cancel();
            shared.history_connections.close().await;
        }
        Ok(())
    }
}

/// Sends one write without a precondition.
async fn write_plain(shared: &Shared, plain: Plain) -> Result<Revision> {
    let known = shared.newest();
    let (header, has_written) = match plain {
        Plain::Put(put) => {
            let answer: Result<proto::PutResponse, _> = shared.requests.write(proto::PUT, &put).await;
            (answer.map_err(|failure| txn::write_error(failure, &put))?.header, true)
        }
        Plain::Delete(delete) => {
            let answer: Result<proto::DeleteRangeResponse, _> =
                shared.requests.write(proto::DELETE_RANGE, &delete).await;
            let answer = answer.map_err(|failure| txn::write_error(failure, &delete))?;
            (answer.header, answer.deleted > 0)
        }
    };
    let revision = shared.accept(header, known)?;
    if has_written {
        shared.acknowledge(revision);
    }
    Ok(revision)
}

/// Compacts etcd to `revision`.
pub(crate) async fn compact(shared: &Shared, revision: Revision) -> Result<()> {
    if revision <= shared.feed.oldest() {
        return Ok(());
    }
    // etcd looks up previous values when it sends an event, and finds none that are compacted: wait for the events of this
    // process's writes first.
    let own = revision.min(shared.acknowledged());
    let _ = shared.env.timeout(COURTESY, shared.wait_seen(own)).await;
    let known = shared.newest();
    let request = proto::CompactionRequest { revision: number(revision) };
    match shared.requests.read::<_, proto::CompactionResponse>(proto::COMPACT, &request).await {
        // Compacted already, perhaps further.
        Ok(_) | Err(Failure::Compacted) => {
            shared.forget_before(revision);
            Ok(())
        }
        Err(Failure::FutureRevision) => Err(shared.future(revision, known).await?),
        Err(failure) => Err(failure.of_read()),
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.mark_closed();
        self.shared.feed.close();
        self.shared.stop.cancel();
        self.shared.stop_history.cancel();
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = self.shared();
        f.debug_struct("EtcdStore")
            .field("endpoints", &shared.options.endpoints)
            .field("root", &shared.options.root)
            .field("feed", &shared.feed)
            .finish_non_exhaustive()
    }
}
