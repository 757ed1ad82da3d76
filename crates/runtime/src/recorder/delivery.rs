//! The task that delivers events, one after the other.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;

use k1s_env::{Component, Env, WorkGuard};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    EventOptions,
    correlator::{Correlator, Decision, Record},
    event::{Names, Occurrence},
    sink::{Sink, SinkError},
};

/// Statistics of event delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EventStats {
    /// Events that were queued.
    pub recorded: u64,
    /// Events that were dropped because the queue was full or closed.
    pub dropped: u64,
    /// Events that were written to the server, as Events or as counts of them.
    pub delivered: u64,
    /// Events that only increased a count, which is written later.
    pub counted: u64,
    /// Events that were held back by the rate limit of their object.
    pub held_back: u64,
    /// Events that the server rejected, or whose attempts were used up.
    pub failed: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) recorded: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) delivered: AtomicU64,
    pub(super) counted: AtomicU64,
    pub(super) held_back: AtomicU64,
    pub(super) failed: AtomicU64,
}

impl Counters {
    pub(super) fn stats(&self) -> EventStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // In the reverse order of their updates, so that no event seems delivered before it was recorded.
        let (delivered, counted) = (read(&self.delivered), read(&self.counted));
        let (held_back, failed) = (read(&self.held_back), read(&self.failed));
        let (dropped, recorded) = (read(&self.dropped), read(&self.recorded));
        EventStats { recorded, dropped, delivered, counted, held_back, failed }
    }
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// An event in the queue, and its unit of work.
pub(super) struct Queued {
    pub(super) occurrence: Occurrence,
    pub(super) work: Option<WorkGuard>,
}

pub(super) struct Delivery {
    pub(super) env: Env,
    pub(super) options: EventOptions,
    pub(super) queue: mpsc::Receiver<Queued>,
    pub(super) closing: CancellationToken,
    pub(super) counters: Arc<Counters>,
    pub(super) component: Component,
    pub(super) correlator: Correlator,
    pub(super) sink: Sink,
    /// Names for Events whose name was already used.
    pub(super) names: Names,
}

/// Maximum pause between attempts during a shutdown.
const SHUTDOWN_RETRY_AFTER: Duration = Duration::from_millis(500);
/// Maximum number of new names for an Event whose name is already used.
const MAX_RENAMES: usize = 5;

impl Delivery {
    /// Delivers until the queue is closed and empty, and all counts are written.
    pub(super) async fn run(mut self) {
        loop {
            let due = self.correlator.next_due();
            let pause = async {
                match due {
                    Some(due) => self.env.sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.closing.cancelled(), if !self.queue.is_closed() => self.queue.close(),
                queued = self.queue.recv() => match queued {
                    Some(queued) => self.take(queued).await,
                    None => break,
                },
                () = pause => self.flush(false).await,
            }
        }
        self.flush(true).await;
    }

    async fn take(&mut self, queued: Queued) {
        let counters = self.counters.clone();
        let (delivered, counter) = match self.correlator.correlate(queued.occurrence) {
            Decision::Create(record) => (self.deliver(record, true).await, &counters.delivered),
            Decision::Update(record) => (self.deliver(record, false).await, &counters.delivered),
            Decision::Counted => (true, &counters.counted),
            Decision::HeldBack => (true, &counters.held_back),
        };
        count(if delivered { counter } else { &counters.failed });
        if let Some(work) = queued.work {
            if delivered { work.succeed() } else { work.fail() }
        }
    }

    /// Writes the counts that are due, or all of them.
    async fn flush(&mut self, all: bool) {
        for record in self.correlator.take_due(all) {
            // At shutdown no new work is accepted. The counts are written nevertheless: they belong to earlier work.
            let work = self.component.begin(format!("count of {}/{}", record.namespace, record.name)).ok();
            let delivered = self.deliver(record, false).await;
            if let Some(work) = work {
                if delivered { work.succeed() } else { work.fail() }
            }
        }
    }

    async fn deliver(&mut self, mut record: Record, create: bool) -> bool {
        let delivered = self.try_to_deliver(&mut record, create).await;
        if let Err(reason) = &delivered {
            tracing::warn!(
                event = %record.name,
                namespace = %record.namespace,
                why = %record.first.event.reason,
                reason,
                "an event could not be recorded"
            );
        }
        delivered.is_ok()
    }

    async fn try_to_deliver(&mut self, record: &mut Record, mut create: bool) -> Result<(), String> {
        // Whether the response to a create was lost: an existing Event of that name is ours then.
        let mut uncertain = false;
        let (mut tries, mut renames) = (0, 0);
        loop {
            let sent = if create { self.sink.create(record).await } else { self.sink.update(record).await };
            let error = match sent {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            match error {
                // It has expired, was deleted, or was never written.
                SinkError::Missing(_) if !create => create = true,
                SinkError::Exists(_) if create && uncertain => return Ok(()),
                SinkError::Exists(_) if create && renames < MAX_RENAMES => {
                    renames += 1;
                    let object = record.first.event.regarding.name.as_deref().unwrap_or_default();
                    let at = record.first.at + Duration::from_nanos(self.env.random_below(1_000_000_000));
                    let name = self.names.name(&self.env, object, at);
                    self.correlator.renamed(&record.name, &name);
                    record.name = name;
                }
                SinkError::Unavailable(reason) => {
                    uncertain |= create;
                    tries += 1;
                    if tries >= self.options.tries {
                        return Err(format!("gave up after {tries} attempts: {reason}"));
                    }
                    tracing::debug!(event = %record.name, reason, "an event was not recorded; retrying");
                    self.pause(tries).await;
                }
                // A conflict of a patch: another client wrote at the same time.
                SinkError::Exists(reason) if !create && tries + 1 < self.options.tries => {
                    tries += 1;
                    tracing::debug!(event = %record.name, reason, "an event was changed concurrently; retrying");
                }
                error => return Err(error.message().to_owned()),
            }
        }
    }

    async fn pause(&self, tries: u32) {
        let whole = self.options.retry_after;
        // Spreads the reconnects of clients that lost the same server.
        let wait = if tries == 1 { whole.mul_f64(self.env.random_f64()) } else { whole };
        if self.closing.is_cancelled() {
            self.env.sleep(wait.min(SHUTDOWN_RETRY_AFTER)).await;
            return;
        }
        tokio::select! {
            () = self.env.sleep(wait) => {}
            () = self.closing.cancelled() => {}
        }
    }
}
