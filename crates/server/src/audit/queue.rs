//! Events that wait for a backend: bounded, and with one task that takes them.

use std::{collections::VecDeque, ops::Range, sync::Arc, time::Duration};

use k1s_env::{Env, Instant, Task};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    counters::{Counters, Plugin},
    event::{Event, Form, Made},
    options::{AuditMode, AuditQueueOptions},
};

/// Minimum interval between log messages about lost events.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// An event in a queue.
pub(super) struct Entry {
    what: What,
    /// Told whether the event was written.
    done: Option<oneshot::Sender<bool>>,
    size: usize,
}

/// Where an event in a queue is.
enum What {
    /// In the text of the queue, or of the batch that it was taken with.
    Text(Range<usize>),
    Event(Arc<Event>),
}

impl Entry {
    /// Writes the event in the place of what is in `out`; `text` is that of its batch. An event longer than `limit` loses its
    /// objects; if it still is, this returns `false`.
    pub(super) fn write(&self, text: &[u8], form: Form, limit: Option<usize>, out: &mut Vec<u8>) -> bool {
        let fits = |out: &Vec<u8>| limit.is_none_or(|limit| out.len() <= limit);
        match &self.what {
            What::Text(place) => {
                let fields = text.get(place.clone()).unwrap_or_default();
                form.write(out, |out| out.extend_from_slice(fields));
            }
            What::Event(event) => {
                form.write(out, |out| event.write(out));
                if !fits(out) {
                    form.write(out, |out| event.truncated().write(out));
                }
            }
        }
        fits(out)
    }

    /// The event was written, or was lost.
    pub(super) fn settle(&mut self, written: bool) {
        if let Some(done) = self.done.take() {
            let _ = done.send(written);
        }
    }
}

/// The events that wait for a backend, or are being written by it.
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Notify,
    closed: CancellationToken,
    limits: AuditQueueOptions,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Entry>,
    /// Waiting events without objects, one behind the other.
    text: Vec<u8>,
    /// Room for the next text.
    spare: Vec<u8>,
    /// Of waiting events, and of those that are being written.
    events: usize,
    bytes: usize,
    closed: bool,
    /// The number of waiting events at which the task is woken.
    wake_at: usize,
}

/// Events that were taken to be written.
pub(super) struct Batch {
    pub(super) entries: Vec<Entry>,
    pub(super) text: Vec<u8>,
    pub(super) held: Held,
}

/// The number and the size of events that are being written.
pub(super) struct Held {
    events: usize,
    bytes: usize,
}

/// Maximum size of the room that is kept for the next text.
const MAX_SPARE: usize = 2 << 20;

impl Queue {
    pub(super) fn new(limits: AuditQueueOptions) -> Queue {
        Queue { state: Mutex::default(), changed: Notify::new(), closed: CancellationToken::new(), limits }
    }

    /// Adds an event. `within`: only if the limits allow it. Returns whether it was added.
    fn push(&self, event: &Made<'_>, done: Option<oneshot::Sender<bool>>, within: bool) -> bool {
        let size = match event {
            Made::Fields(fields) => fields.len(),
            Made::Event(event) => event.size(),
        };
        let mut state = self.state.lock();
        // One event of any size is always accepted.
        let full = state.events >= self.limits.max_events
            || state.events > 0 && state.bytes + size > self.limits.max_bytes;
        if state.closed || (within && full) {
            return false;
        }
        state.events += 1;
        state.bytes += size;
        let what = match event {
            Made::Fields(fields) => {
                let start = state.text.len();
                state.text.extend_from_slice(fields);
                What::Text(start..start + fields.len())
            }
            Made::Event(event) => What::Event(event.clone()),
        };
        state.waiting.push_back(Entry { what, done, size });
        let wakes = state.waiting.len() == state.wake_at.max(1);
        drop(state);
        if wakes {
            self.changed.notify_one();
        }
        true
    }

    /// Waits until there is an event. Returns whether there will be any more.
    pub(super) async fn wait(&self) -> bool {
        loop {
            {
                let state = self.state.lock();
                if !state.waiting.is_empty() {
                    return true;
                }
                if state.closed {
                    return false;
                }
            }
            self.changed.notified().await;
        }
    }

    /// Waits until there are this many events, the time is over, or the queue is closed.
    pub(super) async fn fill(&self, env: &Env, events: usize, time: Duration) {
        let deadline = env.now() + time;
        loop {
            let left = deadline - env.now();
            {
                let mut state = self.state.lock();
                let done = state.closed || state.waiting.len() >= events || left.is_zero();
                state.wake_at = if done { 0 } else { events };
                if done {
                    return;
                }
            }
            let _ = env.timeout(left, self.changed.notified()).await;
        }
    }

    /// Takes waiting events, which count as held until they are [released](Self::release).
    pub(super) fn take(&self, events: usize) -> Batch {
        let mut state = self.state.lock();
        let count = events.min(state.waiting.len());
        let entries: Vec<Entry> = state.waiting.drain(..count).collect();
        let bytes = entries.iter().map(|entry| entry.size).sum();
        let spare = std::mem::take(&mut state.spare);
        let mut text = std::mem::replace(&mut state.text, spare);
        // The text of those that still wait goes back.
        let first = state.waiting.iter().find_map(|entry| match &entry.what {
            What::Text(place) => Some(place.start),
            What::Event(_) => None,
        });
        if let Some(first) = first {
            state.text.extend_from_slice(text.get(first..).unwrap_or_default());
            text.truncate(first);
            for entry in &mut state.waiting {
                if let What::Text(place) = &mut entry.what {
                    *place = place.start - first..place.end - first;
                }
            }
        }
        Batch { entries, text, held: Held { events: count, bytes } }
    }

    /// Events have been written, or were lost.
    pub(super) fn release(&self, held: &Held) {
        let mut state = self.state.lock();
        state.events -= held.events;
        state.bytes -= held.bytes;
    }

    /// Gives back a text that is not needed any more, as room for another one.
    pub(super) fn reuse(&self, mut text: Vec<u8>) {
        text.clear();
        let mut state = self.state.lock();
        if text.capacity() <= MAX_SPARE && state.spare.capacity() < text.capacity() {
            state.spare = text;
        }
    }

    /// No more events are added.
    fn close(&self) {
        self.state.lock().closed = true;
        self.closed.cancel();
        self.changed.notify_one();
    }

    /// Completes when no more events are added.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only the webhook waits"))]
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }
}

/// Counts lost events, and logs them at a limited rate.
pub(super) struct Losses {
    env: Env,
    backend: &'static str,
    counters: Arc<Counters>,
    last: Mutex<(Option<Instant>, usize)>,
}

impl Losses {
    pub(super) fn new(env: &Env, backend: &'static str, counters: &Arc<Counters>) -> Arc<Losses> {
        Arc::new(Losses { env: env.clone(), backend, counters: counters.clone(), last: Mutex::default() })
    }

    /// Events were lost.
    pub(super) fn count(&self, plugin: Plugin, events: usize, why: &dyn std::fmt::Display) {
        self.counters.lost(plugin, events);
        let (now, mut last) = (self.env.now(), self.last.lock());
        last.1 += events;
        if last.0.is_none_or(|last| now - last >= LOG_INTERVAL) {
            let lost = last.1;
            tracing::error!(backend = self.backend, lost, %why, "audit events were lost");
            *last = (Some(now), 0);
        }
    }
}

/// What a request waits for: that its event is written.
pub(super) struct Delay {
    written: oneshot::Receiver<bool>,
    strict: bool,
}

impl Delay {
    /// Returns whether the request may go on.
    pub(super) async fn wait(self) -> bool {
        // Nobody tells of an event that was not accepted.
        self.written.await.unwrap_or(false) || !self.strict
    }
}

/// A backend: a queue, and the task that empties it.
pub(super) struct Backend {
    pub(super) mode: AuditMode,
    pub(super) queue: Arc<Queue>,
    pub(super) losses: Arc<Losses>,
    /// Ends when the queue is closed and empty.
    pub(super) task: tokio::sync::Mutex<Option<Task<()>>>,
}

impl Backend {
    /// Records an event. In modes that delay requests, returns what the request has to wait for.
    pub(super) fn record(&self, event: &Made<'_>) -> Option<Delay> {
        if self.mode == AuditMode::Batch {
            self.record_later(event);
            return None;
        }
        let (done, written) = oneshot::channel();
        self.queue.push(event, Some(done), false);
        Some(Delay { written, strict: self.mode == AuditMode::BlockingStrict })
    }

    /// Records an event without waiting.
    pub(super) fn record_later(&self, event: &Made<'_>) {
        if !self.queue.push(event, None, self.mode == AuditMode::Batch) {
            let why =
                if self.queue.is_closed() { "audit backend shut down" } else { "audit buffer queue blocked" };
            self.losses.count(Plugin::Buffered, 1, &why);
        }
    }

    /// Ends the backend when everything is written.
    pub(super) async fn close(&self) {
        self.end();
        if let Some(task) = self.task.lock().await.take() {
            let _ = task.await;
        }
    }

    /// The same, without waiting for it.
    pub(super) fn end(&self) {
        self.queue.close();
    }
}
