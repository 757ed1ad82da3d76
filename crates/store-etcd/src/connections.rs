//! The tasks behind connections: counted by the environment, and ended with the store.

use std::{future::Future, pin::Pin, sync::Arc};

use hyper::rt::Executor;
use k1s_env::{Env, Task};
use parking_lot::Mutex;

/// Runs the tasks that the HTTP/2 library spawns, and keeps their handles, so that closing a store leaves none behind.
#[derive(Clone)]
pub(crate) struct Connections {
    env: Env,
    tasks: Arc<Mutex<Tasks>>,
}

#[derive(Default)]
struct Tasks {
    running: Vec<Task<()>>,
    /// Number of tasks at which ended ones are removed: amortized, each is visited about once.
    sweep_at: usize,
    closed: bool,
}

const SWEEP_AT_LEAST: usize = 64;

impl Connections {
    pub(crate) fn new(env: Env) -> Self {
        Self { env, tasks: Arc::default() }
    }

    /// Ends all connections. No new ones are made.
    pub(crate) fn abort(&self) {
        let mut tasks = self.tasks.lock();
        tasks.closed = true;
        for task in &tasks.running {
            task.abort();
        }
    }

    /// Ends all connections, and waits until they have ended. No new ones are made.
    pub(crate) async fn close(&self) {
        self.abort();
        let running = std::mem::take(&mut self.tasks.lock().running);
        for task in running {
            // Cancelled, as requested.
            let _ = task.await;
        }
    }
}

impl Executor<Pin<Box<dyn Future<Output = ()> + Send>>> for Connections {
    fn execute(&self, work: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let mut tasks = self.tasks.lock();
        if tasks.closed {
            return;
        }
        if tasks.running.len() >= tasks.sweep_at {
            tasks.running.retain(|task| !task.is_finished());
            tasks.sweep_at = (tasks.running.len() * 2).max(SWEEP_AT_LEAST);
        }
        tasks.running.push(self.env.spawn("etcd-connection", work));
    }
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
}
