//! The one watch that feeds the store: every change under the root, once, in order, across broken connections.

use std::{convert::Infallible, sync::Arc};

use k1s_store::{Error, Result, Revision};

use crate::{
    backoff::Backoff,
    client::WatchStream,
    events::{Pieces, steps},
    failure::Failure,
    keys::{number, revision},
    proto::{RangeRequest, WatchCreateRequest},
    shared::Shared,
};

/// Why the watch ended.
enum End {
    /// It can be resumed where it was.
    Broken(String),
    /// What comes next is gone, or cannot be trusted: go on from now.
    LostTrack(String),
    /// There is no going on.
    Over,
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Closed => Self::Over,
            failure => Self::Broken(failure.of_read().to_string()),
        }
    }
}

impl Shared {
    /// A request for a watch of everything the store has, beginning with `start`.
    pub(crate) fn watch_everything(&self, start: Revision, previous: bool) -> WatchCreateRequest {
        let (key, range_end) = self.keys.everything();
        WatchCreateRequest {
            key,
            range_end,
            start_revision: number(start),
            prev_kv: previous,
            fragment: true,
        }
    }
}

/// The first watch. A store waits for it before it is used: etcd takes its time with a watch that comes after the
/// changes it asks for.
pub(crate) async fn first(shared: &Shared) -> Result<WatchStream> {
    open(shared, shared.feed.revision()).await.map_err(|end| match end {
        End::Broken(reason) | End::LostTrack(reason) => Error::unavailable(reason),
        End::Over => Error::Closed,
    })
}

/// The task that keeps the feed fed, at first from `stream`.
pub(crate) async fn run(shared: Arc<Shared>, stream: WatchStream) {
    let feed = async {
        let mut stream = Some(stream);
        let mut backoff = Backoff::default();
        loop {
            match follow(&shared, stream.take(), &mut backoff).await {
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

/// Feeds the feed from where it is, until something is in the way.
async fn follow(shared: &Shared, stream: Option<WatchStream>, backoff: &mut Backoff) -> End {
    match feed_from_here(shared, stream, backoff).await {
        Ok(never) => match never {},
        Err(end) => end,
    }
}

async fn feed_from_here(
    shared: &Shared,
    stream: Option<WatchStream>,
    backoff: &mut Backoff,
) -> Result<Infallible, End> {
    let start = shared.feed.revision();
    let mut stream = match stream {
        Some(stream) => stream,
        None => open(shared, start).await?,
    };
    check_continuity(shared, start).await?;
    backoff.reset();
    tracing::debug!(%start, "watching etcd");

    let mut pieces = Pieces::default();
    let mut trusted = false;
    loop {
        let response = stream.next().await?;
        if response.canceled {
            return Err(match response.compact_revision {
                0 => End::Broken(format!("etcd cancelled the watch: {}", response.cancel_reason)),
                oldest => compacted(shared, revision(oldest)),
            });
        }
        let Some(events) = pieces.add(response) else { continue };
        if events.is_empty() {
            continue;
        }
        if !trusted {
            // The first events may be old ones, read from history. If that was compacted to the very revision
            // the watch starts at, etcd delivers it without its deletions, and without a word.
            check_continuity(shared, start).await?;
            trusted = true;
        }
        publish(shared, events)?;
    }
}

/// Opens the watch right behind `start`, and waits until it is there.
async fn open(shared: &Shared, start: Revision) -> Result<WatchStream, End> {
    let mut stream = shared.upstream.watch(shared.watch_everything(start.next(), true)).await?;
    let timeout = shared.options.request_timeout;
    match shared.env.timeout(timeout, stream.next()).await {
        Ok(created) => match created? {
            created if created.canceled => {
                Err(End::Broken(format!("etcd refused the watch: {}", created.cancel_reason)))
            }
            created if created.created => Ok(stream),
            _ => Err(End::Broken("etcd did not create the watch".into())),
        },
        Err(_) => Err(End::Broken(format!("etcd did not create the watch within {timeout:?}"))),
    }
}

/// Whether this is the etcd that was at `start`, and everything after that is still there.
async fn check_continuity(shared: &Shared, start: Revision) -> Result<(), End> {
    let request =
        RangeRequest { key: shared.keys.fence.clone(), count_only: true, ..RangeRequest::default() };
    match shared.range_once(request, Some(start)).await {
        Ok(_) => Ok(()),
        Err(Error::Compacted { oldest, .. }) => Err(compacted(shared, oldest)),
        Err(Error::Corrupt { .. } | Error::Closed) => Err(End::Over),
        Err(error) => Err(End::Broken(error.to_string())),
    }
}

fn compacted(shared: &Shared, oldest: Revision) -> End {
    shared.forget_before(oldest);
    End::LostTrack(format!("etcd was compacted to revision {oldest}"))
}

fn publish(shared: &Shared, events: Vec<crate::proto::Event>) -> Result<(), End> {
    let steps =
        steps(&shared.keys, events, &|key, at| shared.feed.recall(key, at)).map_err(End::LostTrack)?;
    let Some(last) = steps.last().map(|step| step.revision) else { return Ok(()) };
    let _feeding = shared.feeding.lock();
    shared.check_fault().map_err(|_| End::Over)?;
    if let Some(first) = steps.first()
        && first.revision <= shared.feed.revision()
    {
        return Err(End::LostTrack(format!("etcd sent more of revision {} than before", first.revision)));
    }
    shared.saw(last);
    shared
        .feed
        .publish_all(steps.into_iter().filter_map(|step| Some((Arc::new(step.change?), step.previous))));
    // The last revision may have been none of the users' business.
    shared.feed.advance(last);
    shared.seen.send_replace(last);
    Ok(())
}

/// Goes on from now. Watches find what they missed in etcd's history, or learn that it is gone.
async fn start_over(shared: &Shared) -> Result<Revision> {
    let newest = shared.revision().await?;
    let _feeding = shared.feeding.lock();
    shared.check_fault()?;
    shared.feed.restart(newest);
    shared.seen.send_replace(newest);
    Ok(newest)
}
