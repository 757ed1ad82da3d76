//! Follows the kinds: one list and one watch each, and one order of all their changes.

use std::{collections::BTreeMap, future::poll_fn, sync::Arc, task::Poll, time::Duration};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{
    Inner, RecordedKind, diff,
    state::{Current, Incoming, Labels, State},
};
use crate::{
    ObjectKey,
    cache::wire,
    client::{Error, EventType, ListOptions, RawEvent, RawWatchStream, VersionMatch, WatchOptions},
};

/// Objects per page of a list.
const PAGE: u32 = 500;
/// The first and the longest pause after a failure.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of events taken from a watch before other watches are looked at.
const BATCH: usize = 256;

/// Why the record starts over.
#[derive(Debug, thiserror::Error)]
enum Interrupted {
    /// A list failed, or the server no longer has the revision.
    #[error(transparent)]
    Client(#[from] Error),
    /// A change arrived after newer ones of other kinds.
    #[error("a change of {0} came too late")]
    Disorder(String),
    /// The server's lists have no usable resource version.
    #[error("the list of {0} has no resource version")]
    NoVersion(String),
}

/// Follows until it is stopped; starts over when changes were missed.
pub(super) async fn run(inner: &Inner, stop: CancellationToken) {
    let follow = async {
        let mut pause = PAUSE;
        loop {
            let began = inner.env.now();
            let Err(error) = follow(inner).await;
            if inner.env.now() - began > LONGEST_PAUSE {
                pause = PAUSE;
            }
            tracing::warn!(%error, "the record of changes starts over");
            inner.env.sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow => {}
    }
}

async fn follow(inner: &Inner) -> Result<std::convert::Infallible, Interrupted> {
    let (mut objects, mut revision) = (Vec::new(), None);
    for kind in 0..inner.kinds.len() {
        // All kinds at the same revision.
        let (items, at) = list(inner, kind, revision).await?;
        objects.push(items);
        revision.get_or_insert(at);
    }
    let revision = revision.unwrap_or_default();
    let mut follower = Follower {
        inner,
        streams: Vec::new(),
        reached: vec![revision; inner.kinds.len()],
        pending: Vec::new(),
    };
    for kind in 0..inner.kinds.len() {
        follower.streams.push(open(inner, kind, revision).await?);
    }
    inner.update(|state| state.begin(objects, revision));
    loop {
        follower.step().await?;
    }
}

struct Follower<'a> {
    inner: &'a Inner,
    streams: Vec<RawWatchStream>,
    /// All events of the kind up to this revision have been received.
    reached: Vec<u64>,
    /// Events that are not recorded yet.
    pending: Vec<Incoming>,
}

impl Follower<'_> {
    /// Receives some events, and records those that nothing older can precede any more.
    async fn step(&mut self) -> Result<(), Interrupted> {
        if self.pending.is_empty() {
            let (kind, item) = next_of_any(&mut self.streams).await;
            self.take(kind, item).await?;
        }
        for kind in 0..self.streams.len() {
            self.drain(kind, u64::MAX).await?;
        }
        let Some(to) = self.pending.iter().map(|incoming| incoming.state.revision).max() else {
            return Ok(());
        };
        for kind in 0..self.streams.len() {
            if self.reached[kind] < to {
                self.catch_up(kind, to).await?;
            }
        }
        let mut batch = Vec::new();
        for incoming in std::mem::take(&mut self.pending) {
            if incoming.state.revision <= to { &mut batch } else { &mut self.pending }.push(incoming);
        }
        batch.sort_by_key(|incoming| incoming.state.revision);
        self.record(batch, to)
    }

    /// Receives all events of a kind up to a revision. The server's cache has reached it when it answers the list, and its
    /// watches in the same process have the events by then.
    async fn catch_up(&mut self, kind: usize, to: u64) -> Result<(), Interrupted> {
        let options = ListOptions {
            resource_version: Some(to.to_string()),
            resource_version_match: Some(VersionMatch::NotOlderThan),
            ..ListOptions::default().limit(1)
        };
        if let Err(error) = self.inner.readers[kind].list_raw(&options).await {
            // A definition that was deleted, for example: no more events come.
            tracing::debug!(%error, "cannot tell whether all changes are there");
        }
        self.drain(kind, to).await?;
        self.reached[kind] = self.reached[kind].max(to);
        Ok(())
    }

    /// Takes the events of a watch that are there already, and stops after `to`.
    async fn drain(&mut self, kind: usize, to: u64) -> Result<(), Interrupted> {
        let mut taken = 0;
        while self.reached[kind] <= to && (to != u64::MAX || taken < BATCH) {
            let Some(item) = self.streams[kind].next().now_or_never() else { break };
            self.take(kind, item).await?;
            taken += 1;
        }
        Ok(())
    }

    async fn take(&mut self, kind: usize, item: Option<Result<RawEvent, Error>>) -> Result<(), Interrupted> {
        match item {
            Some(Ok(RawEvent { event, object })) => {
                if let Some((event, state)) = decode(&self.inner.kinds[kind], event, &object) {
                    self.reached[kind] = self.reached[kind].max(state.revision);
                    if event != EventType::Bookmark {
                        self.pending.push(Incoming { kind, event, state, paths: Vec::new() });
                    }
                }
                Ok(())
            }
            Some(Err(error)) if error.is_gone() => Err(error.into()),
            // The server ends watches now and then.
            ended => {
                if let Some(Err(error)) = ended {
                    tracing::debug!(%error, "a watch failed");
                }
                self.streams[kind] = reopen(self.inner, kind, self.reached[kind]).await?;
                Ok(())
            }
        }
    }

    fn record(&self, mut batch: Vec<Incoming>, to: u64) -> Result<(), Interrupted> {
        if self.inner.options.log > 0 {
            // Several changes of one object may be in the batch.
            let mut newest: BTreeMap<(usize, ObjectKey), Bytes> = BTreeMap::new();
            for incoming in &mut batch {
                let id = (incoming.kind, incoming.state.key.clone());
                if incoming.event == EventType::Modified {
                    let before = newest.get(&id).cloned().or_else(|| {
                        let state = self.inner.state.read();
                        state
                            .current(incoming.kind, &incoming.state.key)
                            .map(|current| current.object.clone())
                    });
                    if let Some(before) = before {
                        incoming.paths = diff::changed_paths(&before, &incoming.state.object);
                    }
                }
                newest.insert(id, incoming.state.object.clone());
            }
        }
        let last = batch.last().map(|incoming| incoming.kind).unwrap_or_default();
        let now = self.inner.env.wall();
        self.inner
            .update(|state: &mut State| state.record(batch, to, now))
            .map_err(|()| Interrupted::Disorder(self.inner.kinds[last].resource.plural.clone()))
    }
}

async fn open(inner: &Inner, kind: usize, after: u64) -> Result<RawWatchStream, Error> {
    let options = WatchOptions {
        labels: inner.kinds[kind].labels.clone(),
        resource_version: Some(after.to_string()),
        ..WatchOptions::default()
    };
    inner.readers[kind].watch_raw(&options).await
}

/// Opens a watch again, until the server accepts it or no longer has the revision.
async fn reopen(inner: &Inner, kind: usize, after: u64) -> Result<RawWatchStream, Error> {
    let mut pause = PAUSE;
    loop {
        match open(inner, kind, after).await {
            Err(error) if !error.is_gone() => {
                tracing::debug!(%error, "cannot watch");
                inner.env.sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            done => return done,
        }
    }
}

/// The next event of any watch.
async fn next_of_any(streams: &mut [RawWatchStream]) -> (usize, Option<Result<RawEvent, Error>>) {
    poll_fn(|cx| {
        for (kind, stream) in streams.iter_mut().enumerate() {
            if let Poll::Ready(item) = stream.poll_next_unpin(cx) {
                return Poll::Ready((kind, item));
            }
        }
        Poll::Pending
    })
    .await
}

/// Lists a kind, at a revision if there is one.
async fn list(inner: &Inner, kind: usize, at: Option<u64>) -> Result<(Vec<Current>, u64), Interrupted> {
    let recorded = &inner.kinds[kind];
    let mut options = ListOptions {
        labels: recorded.labels.clone(),
        resource_version: at.map(|at| at.to_string()),
        resource_version_match: at.map(|_| VersionMatch::Exact),
        ..ListOptions::default().limit(PAGE)
    };
    let (mut objects, mut revision) = (Vec::new(), 0);
    loop {
        let page = inner.readers[kind].list_raw(&options).await?;
        if revision == 0 {
            revision = wire::revision(&page.resource_version);
        }
        objects.extend(
            page.items
                .iter()
                .filter_map(|item| decode(recorded, EventType::Added, item).map(|(_, current)| current)),
        );
        match page.continue_token {
            Some(token) => options.continue_token = Some(token),
            None if revision == 0 => {
                return Err(Interrupted::NoVersion(recorded.resource.plural.clone()));
            }
            None => return Ok((objects, revision)),
        }
    }
}

/// The parts of an object that are selected on. `None` if it has no name or no resource version.
pub(super) fn decode(kind: &RecordedKind, event: EventType, object: &[u8]) -> Option<(EventType, Current)> {
    #[derive(Deserialize)]
    struct Head {
        metadata: Meta,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    struct Meta {
        name: String,
        namespace: Option<String>,
        uid: String,
        resource_version: String,
        labels: Option<Labels>,
    }
    let Head { metadata } = serde_json::from_slice(object).ok()?;
    let revision = wire::revision(&metadata.resource_version);
    if revision == 0 {
        return None;
    }
    // Copied: a slice would keep the whole chunk or page in memory.
    let whole = wire::with_kind(object, &kind.resource.api_version, &kind.resource.kind);
    let current = Current {
        key: ObjectKey::new(metadata.namespace.as_deref(), &metadata.name),
        uid: metadata.uid,
        revision,
        labels: Arc::new(metadata.labels.unwrap_or_default()),
        object: Bytes::from(whole.into_owned()),
    };
    Some((event, current))
}
