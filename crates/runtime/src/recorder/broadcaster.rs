//! The queue of a manager's events, and those who put them there.

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
    event::{Names, Occurrence, limited},
    sink::Sink,
};
use crate::leader::hostname;

/// The events of a manager: takes them in, and delivers them by a task of its own.
///
/// Each is work of the component `events` of the tracker from when it is recorded until it is delivered, so that "idle"
/// means that all were. Events that are recorded when the tracker takes no more work are delivered all the same: they tell
/// of work that it took before.
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
    /// How many.
    pub pending: u64,
    /// How long they had.
    pub after: Duration,
}

impl EventBroadcaster {
    /// Starts the task. Without [`shutdown`](Self::shutdown) it ends when this and all its recorders are gone, and all is
    /// delivered.
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

    /// A recorder for a component: the name of a controller, as its Events show it.
    #[must_use]
    pub fn recorder(&self, component: &str) -> EventRecorder {
        let instance = limited(Cow::from(format!("{component}-{}", hostname())), 128);
        EventRecorder {
            env: self.env.clone(),
            queue: self.queue.clone(),
            counters: self.counters.clone(),
            component: self.component.clone(),
            controller: component.into(),
            instance: instance.into(),
        }
    }

    /// What became of events so far.
    #[must_use]
    pub fn stats(&self) -> EventStats {
        self.counters.stats()
    }

    /// Takes no more events, and waits until those that were taken are delivered, for at most `deadline`.
    ///
    /// # Errors
    /// When the time is up. What is left is given up.
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

/// A task that does not outlive the one who waits for it.
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

/// Records the events of one component. Cheap to clone. It never waits and never fails; what does not fit into the queue is
/// dropped, and counted in [`EventBroadcaster::stats`].
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
    /// Records something about an object: a reason in one word, and a note in any number.
    pub fn event<K: Resource<DynamicType: Default>>(
        &self,
        object: &K,
        kind: EventType,
        reason: impl Into<Cow<'static, str>>,
        note: impl Into<String>,
    ) {
        self.publish(NewEvent::about(object, kind, reason, note));
    }

    /// Records an event that has more to it: an action, a related object, annotations.
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
