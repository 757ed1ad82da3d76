//! The event queue of a manager, and the recorders that add to it.

use std::{borrow::Cow, sync::Arc, time::Duration};

use jiff::Timestamp;
use k1s_env::{Component, Env, Task, WorkTracker};
use kube::{Client, Resource};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    EventOptions, EventStats, EventType, NewEvent,
    correlator::Correlator,
    delivery::{Counters, Delivery, Queued, count},
    event::{Names, Occurrence, truncated},
    sink::Sink,
};
use crate::leader::hostname;

/// Queues the events of a manager, and delivers them in a task of its own.
///
/// Each event is work of the tracker's component `events` from when it is recorded until it is delivered, so that "idle"
/// includes delivery. Events that are recorded when the tracker accepts no more work are delivered nevertheless: they
/// belong to work that was accepted before.
#[derive(Debug)]
pub struct EventBroadcaster {
    env: Env,
    queue: mpsc::Sender<Queued>,
    closing: CancellationToken,
    counters: Arc<Counters>,
    component: Component,
    task: Mutex<Option<Task<()>>>,
}

/// Not all events were delivered in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pending} events were not delivered within {after:?}")]
#[non_exhaustive]
pub struct Undelivered {
    /// Number of events that were not delivered.
    pub pending: u64,
    /// How long the delivery was given.
    pub after: Duration,
}

impl EventBroadcaster {
    /// Starts the task. Without [`shutdown`](Self::shutdown) it ends when this and all its recorders are dropped and
    /// everything is delivered.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn start(client: Client, env: Env, tracker: &WorkTracker, options: EventOptions) -> EventBroadcaster {
        let (queue, receiver) = mpsc::channel(options.queue.max(1));
        let component = tracker.component("events");
        let (closing, counters) = (CancellationToken::new(), Arc::new(Counters::default()));
        let delivery = Delivery {
            env: env.clone(),
            queue: receiver,
            closing: closing.clone(),
            counters: counters.clone(),
            component: component.clone(),
            correlator: Correlator::new(env.clone(), options.clone()),
            sink: Sink::new(client, env.clone(), options.api, options.answer_within),
            names: Names::default(),
            options,
        };
        let task = Mutex::new(Some(env.spawn("events", delivery.run())));
        EventBroadcaster { env, queue, closing, counters, component, task }
    }

    /// A recorder for a component: the name of the controller in its Events.
    #[must_use]
    pub fn recorder(&self, component: &str) -> EventRecorder {
        let instance = truncated(Cow::from(format!("{component}-{}", hostname())), 128);
        EventRecorder {
            env: self.env.clone(),
            queue: self.queue.clone(),
            counters: self.counters.clone(),
            component: self.component.clone(),
            controller: component.into(),
            instance: instance.into(),
        }
    }

    /// Statistics of event delivery so far.
    #[must_use]
    pub fn stats(&self) -> EventStats {
        self.counters.stats()
    }

    /// Accepts no more events, and waits for at most `deadline` until the queued ones are delivered.
    ///
    /// # Errors
    /// After the deadline. The remaining events are dropped.
    pub async fn shutdown(&self, deadline: Duration) -> Result<(), Undelivered> {
        self.closing.cancel();
        let Some(task) = self.task.lock().take() else { return Ok(()) };
        let abort = AbortOnDrop { task: Some(task) };
        abort.wait(&self.env, deadline).await.map_err(|()| {
            let stats = self.stats();
            let done = stats.delivered + stats.counted + stats.held_back + stats.failed;
            Undelivered { pending: stats.recorded.saturating_sub(done), after: deadline }
        })
    }
}

/// A task that is aborted when its waiter is dropped.
struct AbortOnDrop {
    task: Option<Task<()>>,
}

impl AbortOnDrop {
    async fn wait(mut self, env: &Env, deadline: Duration) -> Result<(), ()> {
        let Some(task) = &mut self.task else { return Ok(()) };
        let ended = env.timeout(deadline, task).await;
        if ended.is_ok() {
            self.task = None;
        }
        ended.map(|_| ()).map_err(|_| ())
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Records the events of one component. Cheap to clone. It never waits and never fails; events that do not fit into the
/// queue are dropped and counted in [`EventBroadcaster::stats`].
#[derive(Debug, Clone)]
pub struct EventRecorder {
    env: Env,
    queue: mpsc::Sender<Queued>,
    counters: Arc<Counters>,
    component: Component,
    controller: Arc<str>,
    instance: Arc<str>,
}

impl EventRecorder {
    /// Records an event about an object, with a machine-readable reason (one word) and a note for humans.
    pub fn event<K: Resource<DynamicType: Default>>(
        &self,
        object: &K,
        kind: EventType,
        reason: impl Into<Cow<'static, str>>,
        note: impl Into<String>,
    ) {
        self.publish(NewEvent::about(object, kind, reason, note));
    }

    /// Records an event with an action, a related object or annotations.
    pub fn publish(&self, event: NewEvent) {
        let Ok(place) = self.queue.try_reserve() else {
            count(&self.counters.dropped);
            tracing::debug!(why = %event.reason, note = %event.note, "an event was dropped: the queue is full or closed");
            return;
        };
        count(&self.counters.recorded);
        let at = Timestamp::try_from(self.env.wall()).unwrap_or(Timestamp::UNIX_EPOCH);
        let work = self.component.begin(event.description()).ok();
        let (controller, instance) = (self.controller.clone(), self.instance.clone());
        place.send(Queued { occurrence: Occurrence { event, controller, instance, at }, work });
    }

    /// The component's name.
    #[must_use]
    pub fn controller(&self) -> &str {
        &self.controller
    }
}
