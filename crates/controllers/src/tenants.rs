//! The controllers of many control planes, each from when it first needs them.

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

/// How long is waited after a first failure, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Makes the client of a tenant, if that is there.
type Door = dyn Fn(String) -> Opening + Send + Sync;
type Opening = Pin<Box<dyn Future<Output = Result<Option<kube::Client>, BoxError>> + Send>>;

/// Runs the [controllers](crate) of the tenants of a server, each from when it is first needed until it is gone. Those that
/// fail are started again after a pause. All end when this is dropped; [`stop`](Self::stop) also waits for their end.
///
/// A tenant that never needs controllers costs nothing here.
pub struct TenantControllers {
    inner: Arc<Inner>,
}

/// Tells [`TenantControllers`] of tenants without keeping them alive: for hooks of the server that they run on.
#[derive(Clone)]
pub struct TenantSignal {
    inner: Weak<Inner>,
}

/// Who runs the controllers of tenants while these here are not connected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standby {
    /// Perhaps nobody: who waits for the work of controllers waits until they are connected.
    Nobody {
        /// What keeps them from it, if something does.
        problem: Option<String>,
    },
    /// Another process: nobody here waits for them.
    Elsewhere,
}

struct Inner {
    env: Env,
    options: ControllersOptions,
    stop: CancellationToken,
    state: Mutex<State>,
}

struct State {
    door: Option<Arc<Door>>,
    standby: Standby,
    /// Needed while there is no door.
    waiting: HashSet<String>,
    running: HashMap<String, Running>,
    /// What is known of the controllers of those that run or that somebody has asked for.
    companions: HashMap<String, watch::Sender<Companion>>,
    /// On their way out.
    ending: Vec<Task<()>>,
}

struct Running {
    stop: CancellationToken,
    task: Task<()>,
}

impl TenantControllers {
    /// Controllers that run as told, as soon as they are [connected](Self::connect).
    #[must_use]
    pub fn new(env: &Env, options: ControllersOptions) -> TenantControllers {
        let state = State {
            door: None,
            standby: Standby::Nobody { problem: None },
            waiting: HashSet::new(),
            running: HashMap::new(),
            companions: HashMap::new(),
            ending: Vec::new(),
        };
        let (stop, state) = (CancellationToken::new(), Mutex::new(state));
        TenantControllers { inner: Arc::new(Inner { env: env.clone(), options, stop, state }) }
    }

    /// What a hook is given.
    #[must_use]
    pub fn signal(&self) -> TenantSignal {
        TenantSignal { inner: Arc::downgrade(&self.inner) }
    }

    /// How a tenant is reached; `None` is for one that is not there any more. Those that were needed before this begin now.
    pub fn connect<F, Fut>(&self, client: F)
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<kube::Client>, BoxError>> + Send + 'static,
    {
        let waiting = {
            let mut state = self.inner.state.lock();
            state.door = Some(Arc::new(move |tenant| Box::pin(client(tenant))));
            std::mem::take(&mut state.waiting)
        };
        for tenant in waiting {
            self.inner.needed(&tenant);
        }
    }

    /// Stops all of them in good order, and waits until they have ended. Those that are needed start again when they are
    /// [connected](Self::connect) again.
    pub async fn disconnect(&self) {
        let tasks: Vec<Task<()>> = {
            let mut state = self.inner.state.lock();
            state.door = None;
            let mut tasks = std::mem::take(&mut state.ending);
            for (tenant, Running { stop, task }) in std::mem::take(&mut state.running) {
                stop.cancel();
                tasks.push(task);
                state.waiting.insert(tenant);
            }
            state.tell_standby();
            tasks
        };
        for task in tasks {
            let _ = task.await;
        }
    }

    /// Who runs controllers as long as these are not connected. Nobody, if it is not said.
    pub fn standby(&self, standby: Standby) {
        let mut state = self.inner.state.lock();
        state.standby = standby;
        if state.door.is_none() {
            state.tell_standby();
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

    /// The controllers of a tenant, now and as they come and go: for [`Connect::companion`].
    #[must_use]
    pub fn companion(&self, tenant: &str) -> watch::Receiver<Companion> {
        self.inner.state.lock().companion(tenant).subscribe()
    }

    /// Tells all of them to stop, and waits for nobody. No more are started.
    pub fn end(&self) {
        self.inner.stop.cancel();
        self.inner.state.lock().nobody_runs();
    }

    /// Stops all of them in good order, and waits until they have ended. No more are started.
    pub async fn stop(&self) {
        self.inner.stop.cancel();
        let tasks: Vec<Task<()>> = {
            let mut state = self.inner.state.lock();
            state.door = None;
            state.nobody_runs();
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
    /// This tenant needs controllers. Does not wait.
    pub fn needed(&self, tenant: &str) {
        if let Some(inner) = self.inner.upgrade() {
            inner.needed(tenant);
        }
    }

    /// This tenant is gone. Does not wait.
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

    /// What is waited for of a tenant that needs controllers, and has none here.
    fn absent(&self) -> Companion {
        match &self.standby {
            Standby::Nobody { problem } => Companion::Starting { problem: problem.clone() },
            Standby::Elsewhere => Companion::Absent,
        }
    }

    fn tell_standby(&mut self) {
        let news = self.absent();
        for tenant in std::mem::take(&mut self.waiting) {
            self.companion(&tenant).send_replace(news.clone());
            self.waiting.insert(tenant);
        }
    }

    /// Nobody is waited for any more.
    fn nobody_runs(&mut self) {
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
        let Some(door) = state.door.clone() else {
            companion.send_replace(state.absent());
            state.waiting.insert(tenant.to_owned());
            return;
        };
        companion.send_replace(Companion::Starting { problem: None });
        let stop = self.stop.child_token();
        let news = News { companion, stop: stop.clone() };
        let work =
            follow(self.env.clone(), tenant.to_owned(), self.options.clone(), door, stop.clone(), news);
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

/// Tells those who wait for the controllers of a tenant how they are.
struct News {
    companion: watch::Sender<Companion>,
    stop: CancellationToken,
}

impl News {
    fn tell(&self, news: Companion) {
        self.companion.send_if_modified(|companion| {
            // Who has to end has no say any more: there may be others already.
            let counts = !self.stop.is_cancelled();
            if counts {
                *companion = news;
            }
            counts
        });
    }
}

/// What the controllers of a tenant are connected to.
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
    door: Arc<Door>,
    stop: CancellationToken,
    news: News,
) {
    let mut pause = PAUSE.0;
    while !stop.is_cancelled() {
        let begun = env.now();
        let outcome: Result<(), BoxError> = async {
            let client = match stop.run_until_cancelled(door(tenant.clone())).await {
                None => return Ok(()),
                Some(client) => client?,
            };
            let Some(client) = client else { return Ok(()) };
            let connected = Connected { client, env: env.clone() };
            let manager = Manager::new(connected, crate::manager_options())?;
            add_to_manager(&manager, &options)?;
            news.tell(Companion::Running(manager.clone()));
            Ok(manager.start(stop.clone()).await?)
        }
        .await;
        match outcome {
            Ok(()) => return news.tell(Companion::Absent),
            Err(error) if stop.is_cancelled() => {
                tracing::warn!(%tenant, %error, "controllers did not end as they should");
                return;
            }
            Err(error) => {
                tracing::error!(%tenant, %error, "controllers failed; they are started again");
                news.tell(Companion::Starting { problem: Some(error.to_string()) });
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
