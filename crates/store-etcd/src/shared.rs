//! State shared by a store, its watches and its tasks, and the requests that all of them make.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use k1s_env::Env;
use k1s_store::{Error, Result, Revision, feed::Feed};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    client::Client,
    connections::Connections,
    failure::Failure,
    keys::{Keyspace, number, revision},
    landmark::LastPut,
    marks::Marks,
    options::{ConnectError, EtcdOptions},
    previous::Wishes,
    proto::{self, RangeRequest, RangeResponse, ResponseHeader},
    sync::Fences,
};

/// Maximum number of concurrent watches of etcd's history: each makes etcd read all of it.
const HISTORY_READERS: usize = 4;

pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) options: EtcdOptions,
    pub(crate) keys: Keyspace,
    /// Each has its own connections, so that none can block another.
    pub(crate) requests: Client,
    pub(crate) upstream: Client,
    pub(crate) history: Client,
    pub(crate) history_readers: Semaphore,
    pub(crate) connections: Connections,
    /// For history, which watches may read for a while after the store is closed.
    pub(crate) history_connections: Connections,
    pub(crate) stop_history: CancellationToken,
    /// Fed by the upstream watch alone.
    pub(crate) feed: Feed,
    /// Held while the feed is fed, and to end that.
    pub(crate) feeding: Mutex<()>,
    /// The revision up to which the feed has everything.
    pub(crate) seen: watch::Sender<Revision>,
    /// By which etcd is recognized at the feed's revision.
    pub(crate) last_put: LastPut,
    pub(crate) fences: Fences,
    pub(crate) marks: Marks,
    pub(crate) wishes: Arc<Wishes>,
    pub(crate) stop: CancellationToken,
    closed: AtomicBool,
    /// Why this store failed permanently.
    fault: OnceLock<Error>,
    /// The cluster that the store was opened on.
    cluster: u64,
    /// The newest revision that etcd is known to have reached.
    newest: AtomicU64,
    /// The revision of the newest write of this process that was acknowledged.
    acknowledged: AtomicU64,
}

impl Shared {
    pub(crate) async fn connect(env: Env, options: EtcdOptions) -> Result<Self, ConnectError> {
        options.validate()?;
        let stop = CancellationToken::new();
        let connections = Connections::new(env.clone());
        let client = || Client::new(&env, &options, &connections, stop.clone());
        let (requests, upstream) = (client()?, client()?);
        let stop_history = CancellationToken::new();
        let history_connections = Connections::new(env.clone());
        let history = Client::new(&env, &options, &history_connections, stop_history.clone())?;
        let keys = Keyspace::new(&options.root);
        let (header, oldest) = match first_look(&requests, &keys).await {
            Ok(found) => found,
            Err(error) => {
                connections.close().await;
                history_connections.close().await;
                return Err(error.into());
            }
        };
        let newest = revision(header.revision);
        Ok(Self {
            feed: Feed::new(env.clone(), options.feed, newest, oldest),
            feeding: Mutex::new(()),
            seen: watch::Sender::new(newest),
            cluster: header.cluster_id,
            newest: AtomicU64::new(newest.get()),
            acknowledged: AtomicU64::new(0),
            history_readers: Semaphore::new(HISTORY_READERS),
            last_put: LastPut::default(),
            fences: Fences::default(),
            marks: Marks::default(),
            wishes: Arc::default(),
            closed: AtomicBool::new(false),
            fault: OnceLock::new(),
            env,
            options,
            keys,
            requests,
            upstream,
            history,
            connections,
            history_connections,
            stop_history,
            stop,
        })
    }

    /// Fails if the store was closed or has failed permanently.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        self.check_fault()
    }

    pub(crate) fn check_fault(&self) -> Result<()> {
        self.fault.get().map_or(Ok(()), |fault| Err(fault.clone()))
    }

    /// Makes [`check_open`](Self::check_open) fail from now on.
    pub(crate) fn mark_closed(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Fails permanently: requests fail with this from now on, and watches end with it.
    pub(crate) fn fail(&self, fault: Error) -> Error {
        tracing::error!(%fault, "the store on etcd cannot go on");
        let _feeding = self.feeding.lock();
        let fault = self.fault.get_or_init(|| fault).clone();
        // Sends every watch to the history, which fails with the same error.
        self.feed.restart(self.feed.revision().next());
        self.seen.send_modify(|_| ());
        fault
    }

    /// The newest revision that etcd is known to have reached.
    pub(crate) fn newest(&self) -> Revision {
        Revision::new(self.newest.load(Ordering::Acquire))
    }

    pub(crate) fn saw(&self, revision: Revision) {
        self.newest.fetch_max(revision.get(), Ordering::AcqRel);
    }

    /// The revision of the newest write of this process that was acknowledged.
    pub(crate) fn acknowledged(&self) -> Revision {
        Revision::new(self.acknowledged.load(Ordering::Acquire))
    }

    pub(crate) fn acknowledge(&self, revision: Revision) {
        self.acknowledged.fetch_max(revision.get(), Ordering::AcqRel);
    }

    /// The revision of an answer that etcd gave after `known` was known to be reached.
    ///
    /// An etcd that has not reached it, or another cluster, is not the one this store was opened on: its revisions mean something
    /// else, and nothing of it can be delivered.
    pub(crate) fn accept(&self, header: Option<ResponseHeader>, known: Revision) -> Result<Revision> {
        let Some(header) = header else { return Err(Error::unavailable("etcd's answer has no header")) };
        self.check_cluster(header)?;
        let reached = revision(header.revision);
        if reached < known {
            return Err(self.fail(went_back(known, Some(reached))));
        }
        self.saw(reached);
        Ok(reached)
    }

    /// Fails permanently if this is from another cluster.
    pub(crate) fn check_cluster(&self, header: ResponseHeader) -> Result<()> {
        if header.cluster_id == self.cluster {
            return Ok(());
        }
        let reason = format!(
            "the endpoints belong to different etcd clusters, {:x} and {:x}",
            self.cluster, header.cluster_id
        );
        Err(self.fail(Error::corrupt(reason)))
    }

    /// One range, at `at` or at the newest revision, with the newest revision.
    pub(crate) async fn range_once(
        &self,
        request: RangeRequest,
        at: Option<Revision>,
    ) -> Result<(Revision, RangeResponse)> {
        let known = self.newest();
        let request = RangeRequest { revision: at.map_or(0, number), ..request };
        match self.requests.read::<_, RangeResponse>(proto::RANGE, &request).await {
            Ok(response) => Ok((self.accept(response.header, known)?, response)),
            Err(failure) => Err(match (failure, at) {
                (Failure::Compacted, Some(at)) => self.compacted(at).await,
                (Failure::FutureRevision, Some(at)) => self.future(at, known).await?,
                (failure, _) => failure.of_read(),
            }),
        }
    }

    /// The newest revision.
    pub(crate) async fn revision(&self) -> Result<Revision> {
        let (revision, _) = self.range_once(glance(&self.keys), None).await?;
        Ok(revision)
    }

    /// The error for a revision that etcd says is compacted.
    pub(crate) async fn compacted(&self, requested: Revision) -> Error {
        let oldest = self.find_oldest(requested).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "etcd's oldest revision is currently unknown");
            requested.next()
        });
        self.forget_before(oldest);
        Error::Compacted { requested, oldest: self.feed.oldest().max(oldest) }
    }

    /// The error for a revision that etcd has not reached, after `known` was known to be reached.
    pub(crate) async fn future(&self, requested: Revision, known: Revision) -> Result<Error> {
        if requested <= known {
            return Err(self.fail(went_back(known, None)));
        }
        let (newest, _) = Box::pin(self.range_once(glance(&self.keys), None)).await?;
        // It may have been reached meanwhile; it had not been when it was requested.
        let current = newest.min(Revision::new(requested.get() - 1));
        Ok(Error::FutureRevision { requested, current })
    }

    /// Records that the history before `oldest` is compacted.
    pub(crate) fn forget_before(&self, oldest: Revision) {
        if oldest > self.feed.oldest() {
            self.feed.compact(oldest);
        }
    }

    /// The oldest revision etcd has, which is later than `gone`.
    async fn find_oldest(&self, gone: Revision) -> Result<Revision> {
        let known = self.feed.oldest().get();
        let gone = gone.get().max(known.saturating_sub(1));
        let there = Box::pin(self.range_once(glance(&self.keys), None)).await?.0;
        oldest_between(&self.requests, &self.keys, gone, there.get()).await
    }

    /// The oldest revision etcd has; also records compactions by other clients.
    pub(crate) async fn oldest(&self) -> Result<Revision> {
        let known = self.feed.oldest();
        if !is_readable(&self.requests, &self.keys, known.get()).await? {
            let oldest = self.find_oldest(known).await?;
            self.forget_before(oldest);
        }
        Ok(self.feed.oldest())
    }
}

/// The error for an etcd that is behind `known`.
pub(crate) fn went_back(known: Revision, now: Option<Revision>) -> Error {
    let now = now.map_or_else(|| "is before it now".into(), |now| format!("is at revision {now} now"));
    Error::corrupt(format!(
        "etcd was at revision {known} and {now}: it was restored from a backup or replaced; \
         open the store again to go on with what it has"
    ))
}

/// The error for an etcd that no longer has what it had at `known`.
pub(crate) fn is_another(known: Revision) -> Error {
    Error::corrupt(format!(
        "etcd does not have what it had at revision {known}: it was restored from a backup or replaced; \
         open the store again to go on with what it has"
    ))
}

/// The cheapest read: of the newest revision, or whether a revision can be read.
pub(crate) fn glance(keys: &Keyspace) -> RangeRequest {
    RangeRequest { key: keys.fence.clone(), count_only: true, ..RangeRequest::default() }
}

/// The newest revision, the cluster, and the oldest revision.
async fn first_look(client: &Client, keys: &Keyspace) -> Result<(ResponseHeader, Revision)> {
    let response: RangeResponse = client.read(proto::RANGE, &glance(keys)).await.map_err(Failure::of_read)?;
    let header = response.header.ok_or_else(|| Error::unavailable("etcd's answer has no header"))?;
    let oldest = match is_readable(client, keys, Revision::FIRST.get()).await? {
        true => Revision::FIRST,
        false => {
            let newest = revision(header.revision).get();
            oldest_between(client, keys, Revision::FIRST.get(), newest).await?
        }
    };
    Ok((header, oldest))
}

/// The oldest revision after `gone` that can be read, where `there` can. etcd does not report it to readers,
/// so it is found by bisection: some twenty small requests, and only when a compacted revision was requested.
async fn oldest_between(client: &Client, keys: &Keyspace, gone: u64, there: u64) -> Result<Revision> {
    let (mut gone, mut there) = (gone, there.max(gone + 1));
    while there - gone > 1 {
        let middle = gone.midpoint(there);
        if is_readable(client, keys, middle).await? { there = middle } else { gone = middle }
    }
    Ok(Revision::new(there))
}

async fn is_readable(client: &Client, keys: &Keyspace, at: u64) -> Result<bool> {
    let request = RangeRequest { revision: number(Revision::new(at)), ..glance(keys) };
    match client.read::<_, RangeResponse>(proto::RANGE, &request).await {
        Ok(_) => Ok(true),
        Err(Failure::Compacted) => Ok(false),
        Err(failure) => Err(failure.of_read()),
    }
}
