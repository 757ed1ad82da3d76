//! The life of a manager: start in order, run until something ends it, stop in the opposite order.

use std::{
    net::SocketAddr,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use k1s_env::{Instant, Task};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Inner, Manager, ManagerError, Runnable, group::at_most, state::describe_state};
use crate::{
    BoxError,
    announce::announced,
    controller::AnyController,
    debug::{self, DebugPages},
    endpoint::{Endpoint, Routes},
    leader::{LeaderElectionOptions, LeaderElector, Leadership},
};

/// Under a simulated clock that nobody moves, a shutdown waits for so long in real time.
const STALLED_AFTER: Duration = Duration::from_secs(10);

/// A manager that runs: what has to be stopped.
pub(super) struct Running {
    failures: mpsc::UnboundedReceiver<ManagerError>,
    servers: Vec<(&'static str, Task<Result<(), BoxError>>)>,
    stop_servers: CancellationToken,
    stop_webhooks: CancellationToken,
    election: Option<Election>,
}

struct Election {
    stop: CancellationToken,
    task: Task<Option<Leadership>>,
    lost: CancellationToken,
}

impl Manager {
    /// Runs until `stop` is cancelled, a runnable fails, or leadership is lost; then stops in good order.
    ///
    /// Start: HTTP servers, webhooks, caches, runnables that need no leader, then those that do, once this replica leads.
    /// Stop: the other way round; reconciles in flight are waited for.
    ///
    /// # Errors
    /// What ended it, if it was not `stop`; or what did not end in time.
    pub async fn start(&self, stop: CancellationToken) -> Result<(), ManagerError> {
        let mut running = self.launch().await?;
        let ended = tokio::select! {
            () = stop.cancelled() => Ok(()),
            error = running.ended() => Err(error),
        };
        self.shut_down(running, ended, STALLED_AFTER).await
    }

    pub(super) async fn launch(&self) -> Result<Running, ManagerError> {
        let inner = &self.inner;
        if inner.started.swap(true, Ordering::AcqRel) {
            return Err(ManagerError::AlreadyStarted);
        }
        let failures = inner.failures.lock().take().ok_or(ManagerError::AlreadyStarted)?;
        let mut running = Running {
            failures,
            servers: Vec::new(),
            stop_servers: CancellationToken::new(),
            stop_webhooks: CancellationToken::new(),
            election: None,
        };
        if let Err(error) = self.launch_servers(&mut running).await {
            running.stop_servers.cancel();
            running.stop_webhooks.cancel();
            return Err(error);
        }
        inner.others.start();
        match &inner.options.leader_election {
            None => {
                inner.is_leader.cancel();
                inner.elected.start();
            }
            Some(options) => running.election = Some(self.stand_for_election(options.clone())?),
        }
        Ok(running)
    }

    async fn launch_servers(&self, running: &mut Running) -> Result<(), ManagerError> {
        let inner = &self.inner;
        let health = Routes::new().checks("/healthz", &inner.healthz).checks("/readyz", &inner.readyz);
        let metrics = Routes::new().metrics("/metrics", &inner.options.metrics);
        let address = self
            .launch_endpoint(running, &inner.options.health_probe_address, "health probes", health)
            .await?;
        inner.addresses.lock().health = address;
        let address =
            self.launch_endpoint(running, &inner.options.metrics_address, "metrics", metrics).await?;
        inner.addresses.lock().metrics = address;
        let (weak, stop) = (Arc::downgrade(inner), running.stop_servers.clone());
        let state = move || {
            weak.upgrade().map_or_else(|| "the manager is gone\n".to_owned(), |inner| describe_state(&inner))
        };
        let pages = Routes::new().debug(DebugPages::new(&inner.env, state, stop));
        let address =
            self.launch_endpoint(running, &inner.options.pprof_bind_address, "pprof", pages).await?;
        if let (Some(_), Some(why)) = (address, debug::missing()) {
            tracing::warn!("{}/profile will not answer: {why}", debug::ROOT);
        }
        inner.addresses.lock().pprof = address;
        if !inner.webhooks.paths().is_empty() {
            let (webhooks, stop) = (inner.webhooks.clone(), running.stop_webhooks.clone());
            let mut task =
                inner.env.spawn("webhooks", async move { webhooks.run(stop).await.map_err(BoxError::from) });
            tokio::select! {
                biased;
                address = inner.webhooks.bound() => inner.addresses.lock().webhook = Some(address),
                ended = &mut task => {
                    let error: BoxError = match ended {
                        Ok(Err(error)) => error,
                        Ok(Ok(())) => "it ended at once".into(),
                        Err(error) => error.into(),
                    };
                    return Err(ManagerError::Server { what: "webhooks", error });
                }
            }
            running.servers.push(("webhooks", task));
        }
        Ok(())
    }

    async fn launch_endpoint(
        &self,
        running: &mut Running,
        address: &str,
        what: &'static str,
        routes: Routes,
    ) -> Result<Option<SocketAddr>, ManagerError> {
        let env = self.env().clone();
        let bound = Endpoint::bind(address, what).await;
        let Some(endpoint) = bound.map_err(|error| ManagerError::Server { what, error: error.into() })?
        else {
            return Ok(None);
        };
        let address = endpoint.address();
        let serve = endpoint.serve(env.clone(), routes, running.stop_servers.clone());
        let task = env.spawn(what, async move {
            serve.await;
            Ok(())
        });
        running.servers.push((what, task));
        Ok(Some(address))
    }

    fn stand_for_election(&self, options: LeaderElectionOptions) -> Result<Election, ManagerError> {
        let inner = &self.inner;
        let elector = LeaderElector::new(inner.kube.clone(), inner.env.clone(), options)?
            .with_metrics(&inner.leader_metrics);
        let (stop, lost) = (CancellationToken::new(), CancellationToken::new());
        let (stopped, tell, weak) = (stop.clone(), lost.clone(), Arc::downgrade(inner));
        let task = inner.env.spawn("election", async move {
            let leadership = elector.acquire(&stopped).await?;
            if let Some(inner) = weak.upgrade() {
                inner.is_leader.cancel();
                inner.elected.start();
            }
            tokio::select! {
                () = stopped.cancelled() => Some(leadership),
                _ = leadership.lost() => {
                    tell.cancel();
                    None
                }
            }
        });
        Ok(Election { stop, task, lost })
    }

    /// Stops everything in good order. Under a simulated clock, it does not wait for what has not moved for so long.
    pub(super) async fn shut_down(
        &self,
        mut running: Running,
        ended: Result<(), ManagerError>,
        stalled_after: Duration,
    ) -> Result<(), ManagerError> {
        let inner = &self.inner;
        inner.stopping.store(true, Ordering::Release);
        tracing::info!("Received shutdown signal, initiating graceful shutdown");
        // Who leads no more must not go on for a moment longer than it takes.
        let lost = matches!(ended, Err(ManagerError::LeaderElectionLost));
        let limit = if lost { Some(Duration::ZERO) } else { inner.options.graceful_shutdown_timeout };
        let deadline = limit.map(|limit| inner.env.now() + limit);
        let left = || deadline.map(|at: Instant| at - inner.env.now());

        tracing::info!("Phase 1: Stopping acceptance of new reconcile requests");
        let controllers = self.all_controllers();
        for controller in &controllers {
            controller.stop_accepting();
        }
        let mut stuck = inner.others.stop(left(), stalled_after).await;

        for controller in &controllers {
            let in_flight = controller.reconciles().stats().in_flight;
            if in_flight == 0 {
                continue;
            }
            tracing::info!(
                controller = %controller.name(),
                in_flight,
                remaining = ?left(),
                "Phase 2: Waiting for active reconciliation to complete"
            );
            let reconciles = controller.reconciles();
            let done = announced(&inner.env, reconciles.wait_idle_forever(), |waited| {
                let work: Vec<String> = reconciles.running().iter().map(ToString::to_string).collect();
                tracing::info!(?waited, remaining = ?left(), "Still waiting for {}", work.join(", "));
            });
            let ended = match left() {
                None => Some(done.await),
                Some(left) => at_most(&inner.env, left, stalled_after, done).await,
            };
            if ended.is_none() {
                stuck.extend(reconciles.running().iter().map(ToString::to_string));
            }
        }
        if stuck.is_empty() {
            tracing::info!("All reconciliation work completed");
        } else {
            tracing::error!(?stuck, "The time for shutting down is over");
        }

        tracing::info!("Phase 3: Force stopping all controllers");
        for controller in &controllers {
            controller.give_up();
        }
        // Reconciles are over by now, so this is quick, unless a runnable does not listen.
        let patience = left().map(|left| left.max(Duration::from_millis(100)));
        for name in inner.elected.stop(patience, stalled_after).await {
            if !is_named(&stuck, &name) {
                stuck.push(name);
            }
        }
        inner.cache.stop().await;
        running.stop_webhooks.cancel();
        running.stop_servers.cancel();
        let mut result = ended;
        for (what, mut task) in running.servers.drain(..) {
            let patience = left().map_or(Duration::MAX, |left| left.max(Duration::from_millis(100)));
            match at_most(&inner.env, patience, stalled_after, &mut task).await {
                Some(Ok(Err(error))) => result = result.and(Err(ManagerError::Server { what, error })),
                Some(_) => {}
                None => {
                    task.abort();
                    stuck.push(format!("requests to {what}"));
                }
            }
        }
        if let Some(election) = running.election.take() {
            election.stop.cancel();
            if let Ok(Some(leadership)) = election.task.await
                && let Err(error) = leadership.release().await
            {
                tracing::warn!(%error, "the lease will run out by itself");
            }
        }
        let patience = left().unwrap_or(Duration::from_secs(30)).max(Duration::from_millis(100));
        if let Err(error) = inner.events.shutdown(patience).await {
            tracing::warn!(%error, "events for people were lost");
        }

        if stuck.is_empty() {
            tracing::info!("All controllers shut down gracefully");
        } else if !lost {
            result = result.and(Err(ManagerError::ShutdownTimeout { stuck }));
        }
        // What failed while it was stopping is not lost.
        while let Ok(error) = running.failures.try_recv() {
            if result.is_ok() {
                result = Err(error);
            } else {
                tracing::error!(%error, "while shutting down");
            }
        }
        result
    }
}

fn is_named(stuck: &[String], name: &str) -> bool {
    stuck.iter().any(|one| one.contains(name))
}

impl Running {
    /// Waits for what ends a manager by itself.
    pub(super) async fn ended(&mut self) -> ManagerError {
        let lost = async {
            match &self.election {
                Some(election) => election.lost.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(error) = self.failures.recv() => error,
            () = lost => ManagerError::LeaderElectionLost,
        }
    }
}

/// A controller as a runnable, with an election of its own if it has one.
pub(super) struct ControllerRunnable {
    controller: Arc<dyn AnyController>,
    manager: Weak<Inner>,
}

impl ControllerRunnable {
    pub(super) fn new(controller: Arc<dyn AnyController>, manager: &Arc<Inner>) -> ControllerRunnable {
        ControllerRunnable { controller, manager: Arc::downgrade(manager) }
    }
}

#[async_trait::async_trait]
impl Runnable for ControllerRunnable {
    fn name(&self) -> String {
        self.controller.name().to_string()
    }

    fn needs_leader_election(&self) -> bool {
        // One with an election of its own does not wait for the manager's.
        self.controller.needs_leader_election() && self.controller.leader_election().is_none()
    }

    async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<(), BoxError> {
        let (Some(options), Some(inner)) = (self.controller.leader_election(), self.manager.upgrade()) else {
            return Arc::clone(&self.controller).run(stop).await;
        };
        let elector = LeaderElector::new(inner.kube.clone(), inner.env.clone(), options)?
            .with_metrics(&inner.leader_metrics);
        drop(inner);
        let Some(leadership) = elector.acquire(&stop).await else { return Ok(()) };
        let result = tokio::select! {
            result = Arc::clone(&self.controller).run(stop) => result,
            lost = leadership.lost() => {
                self.controller.give_up();
                Err(lost.into())
            }
        };
        if let Err(error) = leadership.release().await {
            tracing::warn!(%error, "the lease will run out by itself");
        }
        result
    }
}
