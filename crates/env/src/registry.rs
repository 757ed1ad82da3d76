//! The tasks, blocking closures and threads of an environment that have not ended.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::waiters::{Released, Waiters};

pub(crate) type Name = Cow<'static, str>;

/// Number of running tasks with one name in an [`Env`](crate::Env).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskInfo {
    /// The name given when it was started.
    pub name: Cow<'static, str>,
    /// Asynchronous tasks ([`Env::spawn`](crate::Env::spawn)) that have not ended.
    pub tasks: usize,
    /// Blocking closures ([`Env::spawn_blocking`](crate::Env::spawn_blocking)), waiting for a thread or
    /// running.
    pub blocking: usize,
    /// Threads ([`Env::spawn_thread`](crate::Env::spawn_thread)) whose closure has not returned.
    pub threads: usize,
}

impl TaskInfo {
    /// The total of tasks, blocking closures and threads.
    pub fn running(&self) -> usize {
        self.tasks + self.blocking + self.threads
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Task,
    Blocking,
    Thread,
}

/// The counts behind [`Env::tasks`](crate::Env::tasks).
#[derive(Debug, Default)]
pub(crate) struct Registry {
    state: Mutex<State>,
    /// The parent counts everything that is counted here, too.
    parent: Option<Arc<Registry>>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    // Only names with a nonzero count: names may be many over time (one per connection, say).
    by_name: BTreeMap<Name, Counts>,
    waiters: Waiters,
}

#[derive(Debug, Default)]
struct Counts {
    tasks: usize,
    blocking: usize,
    threads: usize,
}

impl Counts {
    fn of(&mut self, kind: Kind) -> &mut usize {
        match kind {
            Kind::Task => &mut self.tasks,
            Kind::Blocking => &mut self.blocking,
            Kind::Thread => &mut self.threads,
        }
    }

    fn is_zero(&self) -> bool {
        self.tasks == 0 && self.blocking == 0 && self.threads == 0
    }
}

impl Registry {
    /// A registry whose counts are added to this one's.
    pub(crate) fn child(self: &Arc<Self>) -> Arc<Registry> {
        Arc::new(Registry { state: Mutex::default(), parent: Some(Arc::clone(self)) })
    }

    /// Counts one more until the returned guard is dropped.
    pub(crate) fn count(self: &Arc<Self>, name: Name, kind: Kind) -> Counted {
        let parent = self.parent.as_ref().map(|parent| Box::new(parent.count(name.clone(), kind)));
        let mut state = self.state.lock();
        state.running += 1;
        match state.by_name.get_mut(&name) {
            Some(counts) => *counts.of(kind) += 1,
            None => *state.by_name.entry(name.clone()).or_default().of(kind) += 1,
        }
        drop(state);
        Counted { registry: Arc::clone(self), name, kind, parent }
    }

    pub(crate) fn running(&self) -> usize {
        self.state.lock().running
    }

    pub(crate) fn infos(&self) -> Vec<TaskInfo> {
        let state = self.state.lock();
        let info = |(name, counts): (&Name, &Counts)| TaskInfo {
            name: name.clone(),
            tasks: counts.tasks,
            blocking: counts.blocking,
            threads: counts.threads,
        };
        state.by_name.iter().map(info).collect()
    }

    pub(crate) async fn ended(&self) {
        let ended = {
            let mut state = self.state.lock();
            if state.running == 0 {
                return;
            }
            state.waiters.join()
        };
        // The sender lives in `self` until it is used, so this cannot fail.
        let _ = ended.await;
    }
}

/// One counted task, closure or thread; dropping it ends the count.
#[derive(Debug)]
pub(crate) struct Counted {
    registry: Arc<Registry>,
    name: Name,
    kind: Kind,
    /// The count in the parent.
    parent: Option<Box<Counted>>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        // The parent first: a task that has ended for a scope has ended for everyone.
        drop(self.parent.take());
        let mut state = self.registry.state.lock();
        state.running -= 1;
        if let Some(counts) = state.by_name.get_mut(&self.name) {
            *counts.of(self.kind) -= 1;
            if counts.is_zero() {
                state.by_name.remove(&self.name);
            }
        }
        let released = if state.running == 0 { state.waiters.take() } else { Released::default() };
        drop(state);
        released.wake();
    }
}
