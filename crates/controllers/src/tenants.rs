//! The controllers of many control planes, started on demand.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Weak},
    time::Duration,
};

use k1s_env::{Env, Task};
use k1s_runtime::{BoxError, Connect, Manager, manager::Companion};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{ControllersOptions, add_to_manager};

/// Initial and maximum backoff after a failure.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Connects to a tenant; `None` if it no longer exists.
type Dial = dyn Fn(String) -> Opening + Send + Sync;
type Opening = Pin<Box<dyn Future<Output = Result<Option<kube::Client>, BoxError>> + Send>>;

/// Runs the [controllers](crate) of a server's tenants, each from first use until the tenant is removed.
/// Controllers that fail are restarted after a pause. All end when this is dropped; [`stop`](Self::stop) also
/// waits until they have ended.
///
/// A tenant that never needs controllers costs nothing here.
pub struct TenantControllers {
    inner: Arc<Inner>,
}

/// A weak handle to [`TenantControllers`]: for hooks of the server that they run on.
#[derive(Clone)]
pub struct TenantSignal {
    inner: Weak<Inner>,
}

/// Whether another process runs the controllers of tenants while these are not connected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standby {
    /// Perhaps none: callers that wait for controllers wait until these are connected.
    Nobody {
        /// Why they cannot connect, if known.
        problem: Option<String>,
    },
    /// Another process runs them: nothing in this process waits for them.
    Elsewhere,
}

struct Inner {
    env: Env,
    options: ControllersOptions,
    stop: CancellationToken,
    state: Mutex<State>,
}

struct State {
    dial: Option<Arc<Dial>>,
    standby: Standby,
    /// Tenants that need controllers while these are not connected.
    waiting: HashSet<String>,
    running: HashMap<String, Running>,
    /// The status of controllers that run or have been queried.
    companions: HashMap<String, watch::Sender<Companion>>,
    /// Tasks that are shutting down.
    ending: Vec<Task<()>>,
}

struct Running {
    stop: CancellationToken,
    task: Task<()>,
}

impl TenantControllers {
    /// Controllers that run when needed, once they are [connected](Self::connect).
    #[must_use]
    pub fn new(env: &Env, options: ControllersOptions) -> TenantControllers {
        let state = State {
            dial: None,
            standby: Standby::Nobody { problem: None },
            waiting: HashSet::new(),
            running: HashMap::new(),
            companions: HashMap::new(),
            ending: Vec::new(),
        };
        let (stop, state) = (CancellationToken::new(), Mutex::new(state));
        TenantControllers { inner: Arc::new(Inner { env: env.clone(), options, stop, state }) }
    }

    /// A weak handle for hooks.
    #[must_use]
    pub fn signal(&self) -> TenantSignal {
        TenantSignal { inner: Arc::downgrade(&self.inner) }
    }

    /// Sets how to connect to a tenant; `None` means that it no longer exists. Controllers that were needed
    /// before are started now.
    pub fn connect<F, Fut>(&self, client: F)
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<kube::Client>, BoxError>> + Send + 'static,
    {
        let waiting = {
            let mut state = self.inner.state.lock();
            state.dial = Some(Arc::new(move |tenant| Box::pin(client(tenant))));
            std::mem::take(&mut state.waiting)
        };
        for tenant in waiting {
            self.inner.needed(&tenant);
        }
    }

    /// Stops all controllers gracefully, and waits until they have ended. Those that are needed are restarted
    /// at the next [connect](Self::connect).
    pub async fn disconnect(&self) {
        let tasks: Vec<Task<()>> = {
            let mut state = self.inner.state.lock();
            state.dial = None;
            let mut tasks = std::mem::take(&mut state.ending);
            for (tenant, Running { stop, task }) in std::mem::take(&mut state.running) {
                stop.cancel();
                tasks.push(task);
                state.waiting.insert(tenant);
            }
            state.publish_standby();
            tasks
        };
        for task in tasks {
            let _ = task.await;
        }
    }

    /// Sets who runs controllers while these are not connected. [`Standby::Nobody`] by default.
    pub fn standby(&self, standby: Standby) {
        let mut state = self.inner.state.lock();
        state.standby = standby;
        if state.dial.is_none() {
            state.publish_standby();
        }
    }

    /// The tenants whose controllers run.
    #[must_use]
    pub fn running(&self) -> Vec<String> {
        let state = self.inner.state.lock();
        let running = state.running.iter().filter(|(_, running)| !running.task.is_finished());
        let mut names: Vec<String> = running.map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }

    /// Follows the status of a tenant's controllers: for [`Connect::companion`].
    #[must_use]
    pub fn companion(&self, tenant: &str) -> watch::Receiver<Companion> {
        self.inner.state.lock().companion(tenant).subscribe()
    }

    /// Stops all controllers without waiting. No more are started.
    pub fn end(&self) {
        self.inner.stop.cancel();
        self.inner.state.lock().release_waiters();
    }

    /// Stops all controllers gracefully, and waits until they have ended. No more are started.
    pub async fn stop(&self) {
        self.inner.stop.cancel();
        let tasks: Vec<Task<()>> = {
            let mut state = self.inner.state.lock();
            state.dial = None;
            state.release_waiters();
            let ending = std::mem::take(&mut state.ending);
            let running = std::mem::take(&mut state.running).into_values().map(|running| running.task);
            ending.into_iter().chain(running).collect()
        };
        for task in tasks {
            let _ = task.await;
        }
    }
}

impl TenantSignal {
    /// Starts the controllers of a tenant, if they do not run. Does not wait.
    pub fn needed(&self, tenant: &str) {
        if let Some(inner) = self.inner.upgrade() {
            inner.needed(tenant);
        }
    }

    /// Stops the controllers of a removed tenant. Does not wait.
    pub fn gone(&self, tenant: &str) {
        if let Some(inner) = self.inner.upgrade() {
            inner.gone(tenant);
        }
    }
}

impl State {
    fn companion(&mut self, tenant: &str) -> &watch::Sender<Companion> {
        self.companions.entry(tenant.to_owned()).or_default()
    }

    /// The status of a tenant's controllers that are needed, but do not run here.
    fn absent(&self) -> Companion {
        match &self.standby {
            Standby::Nobody { problem } => Companion::Starting { problem: problem.clone() },
            Standby::Elsewhere => Companion::Absent,
        }
    }

    fn publish_standby(&mut self) {
        let status = self.absent();
        for tenant in std::mem::take(&mut self.waiting) {
            self.companion(&tenant).send_replace(status.clone());
            self.waiting.insert(tenant);
        }
    }

    /// Releases all waiters.
    fn release_waiters(&mut self) {
        for (_, companion) in self.companions.drain() {
            companion.send_replace(Companion::Absent);
        }
    }
}

impl Inner {
    fn needed(&self, tenant: &str) {
        let mut state = self.state.lock();
        let runs = state.running.get(tenant).is_some_and(|running| !running.task.is_finished());
        if self.stop.is_cancelled() || runs {
            return;
        }
        let companion = state.companion(tenant).clone();
        let Some(dial) = state.dial.clone() else {
            companion.send_replace(state.absent());
            state.waiting.insert(tenant.to_owned());
            return;
        };
        companion.send_replace(Companion::Starting { problem: None });
        let stop = self.stop.child_token();
        let status = Status { companion, stop: stop.clone() };
        let mut options = self.options.clone();
        options.projects = options.projects.filter(|projects| projects.host == tenant);
        if let Some(certificates) = &mut options.certificates {
            certificates.tenant = tenant.into();
        }
        let work = follow(self.env.clone(), tenant.to_owned(), options, dial, stop.clone(), status);
        let task = self.env.spawn(format!("controllers of {tenant}"), work);
        state.running.insert(tenant.to_owned(), Running { stop, task });
    }

    fn gone(&self, tenant: &str) {
        let mut state = self.state.lock();
        state.waiting.remove(tenant);
        state.ending.retain(|task| !task.is_finished());
        if let Some(Running { stop, task }) = state.running.remove(tenant) {
            stop.cancel();
            state.ending.push(task);
        }
        if let Some(companion) = state.companions.get(tenant) {
            companion.send_replace(Companion::Absent);
            if companion.receiver_count() == 0 {
                state.companions.remove(tenant);
            }
        }
    }
}

impl Drop for TenantControllers {
    fn drop(&mut self) {
        self.end();
    }
}

/// Publishes the status of a tenant's controllers to waiters.
struct Status {
    companion: watch::Sender<Companion>,
    stop: CancellationToken,
}

impl Status {
    fn publish(&self, status: Companion) {
        self.companion.send_if_modified(|companion| {
            // After a stop, other controllers of the tenant may already run.
            let counts = !self.stop.is_cancelled();
            if counts {
                *companion = status;
            }
            counts
        });
    }
}

/// The client and environment of a tenant's controllers.
struct Connected {
    client: kube::Client,
    env: Env,
}

impl Connect for Connected {
    fn client(&self) -> kube::Client {
        self.client.clone()
    }

    fn env(&self) -> Option<Env> {
        Some(self.env.clone())
    }
}

async fn follow(
    env: Env,
    tenant: String,
    options: ControllersOptions,
    dial: Arc<Dial>,
    stop: CancellationToken,
    status: Status,
) {
    let mut pause = PAUSE.0;
    while !stop.is_cancelled() {
        let begun = env.now();
        let outcome: Result<(), BoxError> = async {
            let client = match stop.run_until_cancelled(dial(tenant.clone())).await {
                None => return Ok(()),
                Some(client) => client?,
            };
            let Some(client) = client else { return Ok(()) };
            let connected = Connected { client, env: env.clone() };
            let manager = Manager::new(connected, crate::manager_options())?;
            add_to_manager(&manager, &options)?;
            status.publish(Companion::Running(manager.clone()));
            Ok(manager.start(stop.clone()).await?)
        }
        .await;
        match outcome {
            Ok(()) => return status.publish(Companion::Absent),
            Err(error) if stop.is_cancelled() => {
                tracing::warn!(%tenant, %error, "controllers failed while stopping");
                return;
            }
            Err(error) => {
                tracing::error!(%tenant, %error, "controllers failed; restarting");
                status.publish(Companion::Starting { problem: Some(error.to_string()) });
            }
        }
        if env.now() - begun > PAUSE.1 {
            pause = PAUSE.0;
        }
        stop.run_until_cancelled(env.sleep(pause)).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}

impl fmt::Debug for TenantControllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantControllers").field("running", &self.running()).finish_non_exhaustive()
    }
}

impl fmt::Debug for TenantSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TenantSignal")
    }
}
