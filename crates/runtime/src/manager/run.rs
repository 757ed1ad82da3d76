//! The lifecycle of a manager: start in order, run until something ends it, stop in the reverse order.

use std::{
    net::SocketAddr,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use futures_util::future::BoxFuture;
use k1s_env::{Instant, Task};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Inner, Manager, ManagerError, Runnable, group::at_most, state::describe_state};
use crate::{
    BoxError,
    announce::announced,
    controller::AnyController,
    debug::{self, DebugPages},
    endpoint::{AccessReview, Certificates, Endpoint, Routes},
    leader::{LeaderElector, Leadership},
};

/// Maximum real time that a shutdown waits without progress, under a simulated clock that is not advanced.
const STALLED_AFTER: Duration = Duration::from_secs(10);

/// A running manager: everything that has to be stopped.
pub(super) struct Running {
    failures: mpsc::UnboundedReceiver<ManagerError>,
    servers: Vec<(&'static str, Task<Result<(), BoxError>>)>,
    stop_servers: CancellationToken,
    stop_webhooks: CancellationToken,
    runnables: Option<Runnables>,
}

/// The task that starts the runnables.
struct Runnables {
    /// Starts no more of them, if it still waits for the caches.
    stop_starting: CancellationToken,
    /// Ends the leadership.
    stop: CancellationToken,
    task: Task<Option<Leadership>>,
    lost: CancellationToken,
}

impl Manager {
    /// Runs until `stop` is cancelled, a runnable fails, or leadership is lost; then shuts down gracefully.
    ///
    /// Start: HTTP servers, webhooks, caches (until every kind watched so far is synced, or has failed to), runnables that
    /// need no leader election, then the others, once this replica leads.
    /// Stop: in the reverse order; reconciles in flight are waited for.
    ///
    /// # Errors
    /// The failure that ended it, if it was not `stop`; or what did not end in time.
    pub async fn start(&self, stop: CancellationToken) -> Result<(), ManagerError> {
        self.run(stop).await
    }

    /// Boxed: the body of an async function is compiled again in every crate that awaits it, and this one is large.
    #[inline(never)]
    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), ManagerError>> {
        Box::pin(self.run_until(stop))
    }

    async fn run_until(&self, stop: CancellationToken) -> Result<(), ManagerError> {
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
            runnables: None,
        };
        if let Err(error) = self.launch_servers(&mut running).await {
            running.stop_servers.cancel();
            running.stop_webhooks.cancel();
            return Err(error);
        }
        running.runnables = Some(self.launch_runnables()?);
        Ok(running)
    }

    async fn launch_servers(&self, running: &mut Running) -> Result<(), ManagerError> {
        let inner = &self.inner;
        let health = Routes::new().checks("/healthz", &inner.healthz).checks("/readyz", &inner.readyz);
        let address = self
            .launch_endpoint(running, &inner.options.health_probe_address, "health probes", health, None)
            .await?;
        inner.addresses.lock().health = address;
        let (metrics, serving) = (&inner.options.metrics_address, &inner.options.metrics_serving);
        let mut routes = Routes::new().metrics("/metrics", &inner.options.metrics);
        if let Some(review) = &serving.access_review {
            if !serving.secure {
                tracing::warn!(
                    "metrics: bearer tokens are sent without encryption; set metrics_serving.secure"
                );
            }
            routes = routes.protected(AccessReview::new(
                inner.cluster.env(),
                inner.cluster.kube_client().clone(),
                review.clone(),
            ));
        }
        let certificates = serving.certificates();
        let certificates = certificates.map_err(|error| ManagerError::Server { what: "metrics", error })?;
        let address = self.launch_endpoint(running, metrics, "metrics", routes, certificates).await?;
        inner.addresses.lock().metrics = address;
        let (weak, stop) = (Arc::downgrade(inner), running.stop_servers.clone());
        let state = move || {
            weak.upgrade().map_or_else(|| "the manager is gone\n".to_owned(), |inner| describe_state(&inner))
        };
        let pages = Routes::new().debug(DebugPages::new(inner.cluster.env(), state, stop));
        let address =
            self.launch_endpoint(running, &inner.options.pprof_bind_address, "pprof", pages, None).await?;
        if let (Some(_), Some(why)) = (address, debug::missing()) {
            tracing::warn!("{}/profile is not available: {why}", debug::ROOT);
        }
        inner.addresses.lock().pprof = address;
        #[cfg(feature = "webhook")]
        self.launch_webhooks(running).await?;
        Ok(())
    }

    #[cfg(feature = "webhook")]
    async fn launch_webhooks(&self, running: &mut Running) -> Result<(), ManagerError> {
        let inner = &self.inner;
        if inner.webhooks.paths().is_empty() {
            return Ok(());
        }
        let (webhooks, stop) = (inner.webhooks.clone(), running.stop_webhooks.clone());
        let mut task = inner
            .cluster
            .env()
            .spawn("webhooks", async move { webhooks.run(stop).await.map_err(BoxError::from) });
        tokio::select! {
            biased;
            address = inner.webhooks.bound() => inner.addresses.lock().webhook = Some(address),
            ended = &mut task => {
                let error: BoxError = match ended {
                    Ok(Err(error)) => error,
                    Ok(Ok(())) => "it stopped right after its start".into(),
                    Err(error) => error.into(),
                };
                return Err(ManagerError::Server { what: "webhooks", error });
            }
        }
        running.servers.push(("webhooks", task));
        Ok(())
    }

    async fn launch_endpoint(
        &self,
        running: &mut Running,
        address: &str,
        what: &'static str,
        routes: Routes,
        certificates: Option<Certificates>,
    ) -> Result<Option<SocketAddr>, ManagerError> {
        let env = self.env().clone();
        let bound = Endpoint::bind(address, what).await;
        let Some(endpoint) = bound.map_err(|error| ManagerError::Server { what, error: error.into() })?
        else {
            return Ok(None);
        };
        let endpoint = match certificates {
            #[cfg(feature = "tls")]
            Some(certificates) => endpoint.with_tls(certificates),
            #[cfg(not(feature = "tls"))]
            Some(none) => match none {},
            None => endpoint,
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

    /// Starts the runnables when the caches are synced, and those that need a leader when this replica leads.
    fn launch_runnables(&self) -> Result<Runnables, ManagerError> {
        let inner = &self.inner;
        let elector = match &inner.options.leader_election {
            None => None,
            Some(options) => Some(
                LeaderElector::new(
                    inner.cluster.kube_client().clone(),
                    inner.cluster.env().clone(),
                    options.clone(),
                )?
                .with_metrics(&inner.leader_metrics),
            ),
        };
        let (stop_starting, stop, lost) =
            (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
        let tokens = (stop_starting.clone(), stop.clone(), lost.clone());
        let (cache, weak) = (inner.cluster.cache().clone(), Arc::downgrade(inner));
        let task = inner.cluster.env().spawn("runnables", async move {
            let (stop_starting, stop, lost) = tokens;
            let problems = stop_starting.run_until_cancelled(cache.readable()).await?;
            drop(cache);
            for (kind, problem) in problems {
                // Not fatal: the kind may be installed later, perhaps by a runnable.
                tracing::warn!(%kind, %problem, "starting without this kind in the cache");
            }
            let inner = weak.upgrade().filter(|_| !stop_starting.is_cancelled())?;
            inner.others.start();
            let Some(elector) = elector else {
                inner.is_leader.cancel();
                inner.elected.start();
                return None;
            };
            drop(inner);
            let leadership = elector.acquire(&stop).await?;
            if let Some(inner) = weak.upgrade() {
                inner.is_leader.cancel();
                inner.elected.start();
            }
            tokio::select! {
                () = stop.cancelled() => Some(leadership),
                _ = leadership.lost() => {
                    lost.cancel();
                    None
                }
            }
        });
        Ok(Runnables { stop_starting, stop, task, lost })
    }

    /// Shuts down gracefully. Under a simulated clock, gives up waiting after `stalled_after` of real time without progress.
    pub(super) async fn shut_down(
        &self,
        mut running: Running,
        ended: Result<(), ManagerError>,
        stalled_after: Duration,
    ) -> Result<(), ManagerError> {
        let inner = &self.inner;
        inner.stopping.store(true, Ordering::Release);
        tracing::info!("Received shutdown signal, initiating graceful shutdown");
        // A replica that has lost the leadership must stop at once.
        let lost = matches!(ended, Err(ManagerError::LeaderElectionLost));
        let limit = if lost { Some(Duration::ZERO) } else { inner.options.graceful_shutdown_timeout };
        let deadline = limit.map(|limit| inner.cluster.env().now() + limit);
        let left = || deadline.map(|at: Instant| at - inner.cluster.env().now());

        if let Some(runnables) = &running.runnables {
            runnables.stop_starting.cancel();
        }
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
            let done = announced(inner.cluster.env(), reconciles.wait_idle_forever(), |waited| {
                let work: Vec<String> = reconciles.running().iter().map(ToString::to_string).collect();
                tracing::info!(?waited, remaining = ?left(), "Still waiting for {}", work.join(", "));
            });
            let ended = match left() {
                None => {
                    done.await;
                    true
                }
                Some(left) => at_most(inner.cluster.env(), left, stalled_after, done).await.is_some(),
            };
            if !ended {
                stuck.extend(reconciles.running().iter().map(ToString::to_string));
            }
        }
        if stuck.is_empty() {
            tracing::info!("All reconciliation work completed");
        } else {
            tracing::error!(?stuck, "Graceful shutdown timed out");
        }

        tracing::info!("Phase 3: Force stopping all controllers");
        for controller in &controllers {
            controller.give_up();
        }
        // Reconciles have ended by now, so this is quick, unless a runnable ignores its token.
        let timeout = left().map(|left| left.max(Duration::from_millis(100)));
        for name in inner.elected.stop(timeout, stalled_after).await {
            if !is_named(&stuck, &name) {
                stuck.push(name);
            }
        }
        inner.cluster.cache().stop().await;
        running.stop_webhooks.cancel();
        running.stop_servers.cancel();
        let mut result = ended;
        for (what, mut task) in running.servers.drain(..) {
            let timeout = left().map_or(Duration::MAX, |left| left.max(Duration::from_millis(100)));
            match at_most(inner.cluster.env(), timeout, stalled_after, &mut task).await {
                Some(Ok(Err(error))) => result = result.and(Err(ManagerError::Server { what, error })),
                Some(_) => {}
                None => {
                    task.abort();
                    stuck.push(format!("requests to {what}"));
                }
            }
        }
        if let Some(runnables) = running.runnables.take() {
            runnables.stop.cancel();
            if let Ok(Some(leadership)) = runnables.task.await
                && let Err(error) = leadership.release().await
            {
                tracing::warn!(%error, "the lease was not released; it will expire");
            }
        }
        let timeout = left().unwrap_or(Duration::from_secs(30)).max(Duration::from_millis(100));
        if let Err(error) = inner.cluster.stop_events(timeout).await {
            tracing::warn!(%error, "some events were not delivered");
        }

        if stuck.is_empty() {
            tracing::info!("All controllers shut down gracefully");
        } else if !lost {
            result = result.and(Err(ManagerError::ShutdownTimeout { stuck }));
        }
        // Failures during the shutdown are reported as well.
        while let Ok(error) = running.failures.try_recv() {
            if result.is_ok() {
                result = Err(error);
            } else {
                tracing::error!(%error, "failed while shutting down");
            }
        }
        result
    }
}

fn is_named(stuck: &[String], name: &str) -> bool {
    stuck.iter().any(|one| one.contains(name))
}

impl Running {
    /// Waits for a failure that ends the manager.
    pub(super) async fn ended(&mut self) -> ManagerError {
        let lost = async {
            match &self.runnables {
                Some(runnables) => runnables.lost.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(error) = self.failures.recv() => error,
            () = lost => ManagerError::LeaderElectionLost,
        }
    }
}

/// A controller as a runnable, with its own leader election if it has one.
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
        // A controller with its own election does not wait for the manager's.
        self.controller.needs_leader_election() && self.controller.leader_election().is_none()
    }

    async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<(), BoxError> {
        let (Some(options), Some(inner)) = (self.controller.leader_election(), self.manager.upgrade()) else {
            return Arc::clone(&self.controller).run(stop).await;
        };
        let elector =
            LeaderElector::new(inner.cluster.kube_client().clone(), inner.cluster.env().clone(), options)?
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
            tracing::warn!(%error, "the lease was not released; it will expire");
        }
        result
    }
}
