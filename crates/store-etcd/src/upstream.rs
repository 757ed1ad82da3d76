//! The one watch that feeds the store: every change under the root, once, in order, across broken connections, and across
//! the changes between a watch with previous values and one without.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use k1s_store::{Error, Result, Revision};

use crate::{
    backoff::Backoff,
    events::steps,
    landmark::Landmarks,
    previous::{Demand, Upstream},
    proto::Event,
    shared::Shared,
    source::{End, Source},
};

/// How long a lagging watch may be silent before a fence is written: there may be no event for it. etcd serves lagging watches
/// every 100 ms.
const PATIENCE: Duration = Duration::from_millis(150);

/// The first watch. A store waits for it before it is used: etcd is slow to serve a watch that starts in the past.
pub(crate) async fn first(shared: &Shared) -> Result<Source> {
    Source::open(shared, shared.feed.revision(), false).await.map_err(|end| match end {
        End::Broken(reason) | End::LostTrack(reason) => Error::unavailable(reason),
        End::Over => shared.check_fault().err().unwrap_or(Error::Closed),
    })
}

/// The task that feeds the feed, at first from `source`.
pub(crate) async fn run(shared: Arc<Shared>, source: Source) {
    let feed = async {
        let mut source = Some(source);
        let mut backoff = Backoff::default();
        loop {
            let end = follow(&shared, source.take(), &mut backoff).await;
            shared.wishes.upstream_is(Upstream::Broken);
            match end {
                End::Over => return,
                End::Broken(reason) => tracing::warn!(reason, "the watch of etcd broke; resuming it"),
                End::LostTrack(reason) => match start_over(&shared).await {
                    Ok(from) => tracing::warn!(reason, %from, "the watch of etcd starts over"),
                    Err(error) => tracing::warn!(reason, %error, "the watch of etcd cannot start over yet"),
                },
            }
            if shared.check_open().is_err() {
                return;
            }
            backoff.pause(&shared.env).await;
        }
    };
    tokio::select! {
        () = shared.stop.cancelled() => {}
        () = feed => {}
    }
}

/// Feeds the feed from its revision on, until the watch ends.
async fn follow(shared: &Shared, source: Option<Source>, backoff: &mut Backoff) -> End {
    match feed_from_here(shared, source, backoff).await {
        Ok(never) => match never {},
        Err(end) => end,
    }
}

async fn feed_from_here(
    shared: &Shared,
    source: Option<Source>,
    backoff: &mut Backoff,
) -> Result<Infallible, End> {
    let start = shared.feed.revision();
    let mut source = match source {
        Some(source) => source,
        None => Source::open(shared, start, shared.wishes.are_there()).await?,
    };
    source.check(shared).await?;
    backoff.reset();
    tracing::debug!(%start, "watching etcd");
    shared.wishes.upstream_is(Upstream::Flows { previous: source.previous });

    let mut demand = Demand::default();
    let mut successor: Option<BoxFuture<'_, Result<Successor, End>>> = None;
    loop {
        let previous = demand.decide(shared.env.now(), source.previous, shared.wishes.are_there());
        if previous == source.previous {
            successor = None;
        } else if successor.is_none() {
            successor = Some(Box::pin(succeed(shared, previous)));
        }
        tokio::select! {
            events = source.next(shared) => {
                let events = events?;
                source.confirm(shared).await?;
                publish(shared, &source, events)?;
            }
            ready = async { successor.as_mut()?.await.into() }, if successor.is_some() => {
                successor = None;
                let Some(ready) = ready else { continue };
                let Successor { source: next, events } = ready?;
                source = next;
                source.take_over(shared.feed.revision());
                tracing::debug!(previous, "the watch of etcd was replaced");
                shared.wishes.upstream_is(Upstream::Flows { previous });
                publish(shared, &source, events)?;
            }
            () = shared.wishes.news() => {}
        }
    }
}

/// A watch that can take the place of the one that feeds the store.
struct Successor {
    source: Source,
    /// Its first events, if it lagged.
    events: Vec<Event>,
}

/// Opens a watch that can take the place of the one that feeds the store, however long that takes.
///
/// It begins at the feed's revision, and the current watch goes on until it has caught up. Both deliver everything from there
/// on, so nothing is missed, and duplicates are known by their revision.
async fn succeed(shared: &Shared, previous: bool) -> Result<Successor, End> {
    let mut backoff = Backoff::default();
    loop {
        match catch_up(shared, previous).await {
            Err(End::Broken(reason) | End::LostTrack(reason)) => {
                tracing::debug!(reason, "the watch of etcd is not replaced yet");
                backoff.pause(&shared.env).await;
            }
            outcome => return outcome,
        }
    }
}

async fn catch_up(shared: &Shared, previous: bool) -> Result<Successor, End> {
    let mut source = Source::open(shared, shared.feed.revision(), previous).await?;
    let newest = source.check(shared).await?;
    if source.is_trusted() {
        return Ok(Successor { source, events: Vec::new() });
    }
    let events = match shared.env.timeout(PATIENCE, source.next(shared)).await {
        Ok(events) => events?,
        Err(_) => {
            // There may be no event under the root since it began: the fence is one.
            let fence = shared.fence_after(&shared.requests, newest).await;
            fence.map_err(|error| End::Broken(error.to_string()))?;
            let timeout = shared.options.request_timeout;
            let silent = |_| End::Broken(format!("etcd sent nothing within {timeout:?}"));
            shared.env.timeout(timeout, source.next(shared)).await.map_err(silent)??
        }
    };
    source.confirm(shared).await?;
    Ok(Successor { source, events })
}

fn publish(shared: &Shared, source: &Source, events: Vec<Event>) -> Result<(), End> {
    let landmarks = Landmarks::of(&events);
    let mut steps =
        steps(&shared.keys, events, &|key, at| shared.feed.recall(key, at)).map_err(End::LostTrack)?;
    steps.retain(|step| !source.is_known(step.revision));
    let Some(last) = steps.last().map(|step| step.revision) else { return Ok(()) };
    let _feeding = shared.feeding.lock();
    shared.check_fault().map_err(|_| End::Over)?;
    if let Some(first) = steps.first()
        && first.revision <= shared.feed.revision()
    {
        return Err(End::LostTrack(format!("etcd sent more of revision {} than before", first.revision)));
    }
    shared.saw(last);
    shared.last_put.set(&landmarks);
    shared
        .feed
        .publish_all(steps.into_iter().filter_map(|step| Some((Arc::new(step.change?), step.previous))));
    // The last revision may have been a write to another key.
    shared.feed.advance(last);
    shared.seen.send_replace(last);
    Ok(())
}

/// Continues from the newest revision. Watches read what they missed from etcd's history, or fail if it is compacted.
async fn start_over(shared: &Shared) -> Result<Revision> {
    let newest = shared.revision().await?;
    let _feeding = shared.feeding.lock();
    shared.check_fault()?;
    shared.last_put.forget();
    shared.feed.restart(newest);
    shared.seen.send_replace(newest);
    Ok(newest)
}
