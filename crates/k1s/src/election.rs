//! Leader election among the control planes of one store: only the leader's controllers run.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::StreamExt as _;
use http::{Request, Response};
use k1s_controllers::{Standby, TenantControllers};
use k1s_env::Env;
use k1s_runtime::{
    BoxError,
    leader::{Fence, LeaderElectionOptions, LeaderElector, Leadership},
};
use k1s_server::{ApiServer, Body, CONTROLLERS_LEASE};
use k1s_store::Store;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{WatchEvent, WatchParams},
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::control_plane::{find, forward};

/// Whether the controllers of a control plane always run, or only while it is the leader.
///
/// The leader holds a Lease in the tenant `default`, [`CONTROLLERS_LEASE`]. A control plane releases it when
/// it stops, so that another one takes over at once; the Lease of a killed one expires. A new leader searches
/// the store for tenants with unfinished work, and follows the writes of the other control planes.
///
/// A manager on a control plane that is not the leader does not wait for controllers in another process when
/// it runs until idle ([`Manager::run_until_idle`](k1s_runtime::Manager::run_until_idle)). It does wait while
/// no leader is known: until this control plane becomes the leader, or another one is seen to renew its
/// Lease.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub enum Election {
    /// An election with Kubernetes' default timings, if other processes may use the same store
    /// ([`Store::is_shared`]: etcd). A store of a single process needs none.
    #[default]
    IfShared,
    /// Like [`IfShared`](Self::IfShared), with other timings: the name and namespace of the Lease are
    /// ignored.
    IfSharedWith(LeaderElectionOptions),
    /// Always an election, for any store: for several control planes on one store in one process.
    Always(LeaderElectionOptions),
    /// No election: the controllers run here. No other process may run them for the same store.
    Never,
}

impl Election {
    /// The options of the election, if there is one.
    pub(crate) fn options(self, store: &dyn Store) -> Option<LeaderElectionOptions> {
        let times = match self {
            Election::IfShared => store.is_shared().then(LeaderElectionOptions::default),
            Election::IfSharedWith(times) => store.is_shared().then_some(times),
            Election::Always(times) => Some(times),
            Election::Never => None,
        };
        let (namespace, id) = CONTROLLERS_LEASE;
        times.map(|times| LeaderElectionOptions {
            id: id.to_owned(),
            namespace: namespace.to_owned(),
            ..times
        })
    }
}

/// The tenant of the Lease. Not the server's default tenant: servers that share a store may differ in that.
pub(crate) const TENANT: &str = "default";

/// Pause after a failure to follow the store.
const PAUSE: Duration = Duration::from_secs(1);

/// A control plane that takes part in the election.
pub(crate) struct Candidate {
    pub(crate) env: Env,
    /// A client of the tenant with the Lease.
    pub(crate) client: kube::Client,
    pub(crate) server: ApiServer,
    pub(crate) controllers: Arc<TenantControllers>,
    pub(crate) options: LeaderElectionOptions,
}

impl Candidate {
    /// Takes part, leads, and takes part again after losing the Lease, until stopped.
    pub(crate) async fn stand(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let problem = Some("this control plane is not the leader yet".to_owned());
            self.controllers.standby(Standby::Nobody { problem });
            let elector = LeaderElector::new(self.client.clone(), self.env.clone(), self.options.clone());
            let elector = match elector {
                Ok(elector) => elector,
                Err(error) => return tracing::error!(%error, "leader election failed"),
            };
            let Some(leadership) = self.elected(elector, &stop).await else { break };
            self.lead(&leadership, &stop).await;
            self.controllers.disconnect().await;
            if stop.is_cancelled()
                && let Err(error) = leadership.release().await
            {
                tracing::warn!(%error, "could not release the controllers' Lease; it will expire");
            }
        }
    }

    /// Waits until this control plane is the leader.
    async fn elected(&self, elector: LeaderElector, stop: &CancellationToken) -> Option<Leadership> {
        let mut rival = elector.rival();
        let wake = elector.wake();
        let look_on = async {
            while rival.changed().await.is_ok() {
                self.controllers.standby(Standby::Elsewhere);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            elected = elector.acquire(stop) => elected,
            () = look_on => None,
            () = self.watch_lease(&wake) => None,
        }
    }

    /// Wakes the elector when the Lease is released, which may be long before its next attempt.
    async fn watch_lease(&self, wake: &Notify) {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.options.namespace);
        let this = WatchParams::default().fields(&format!("metadata.name={}", self.options.id));
        loop {
            if let Ok(events) = leases.watch(&this, "0").await {
                let mut events = events.boxed();
                while let Some(Ok(event)) = events.next().await {
                    let is_free = match event {
                        WatchEvent::Added(lease) | WatchEvent::Modified(lease) => {
                            let holder = lease.spec.and_then(|spec| spec.holder_identity);
                            holder.is_none_or(|holder| holder.is_empty())
                        }
                        WatchEvent::Deleted(_) => true,
                        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => false,
                    };
                    if is_free {
                        wake.notify_one();
                    }
                }
            }
            self.env.sleep(self.options.retry_period).await;
        }
    }

    /// Runs the controllers of all tenants that need them, until stopped or no longer the leader.
    async fn lead(&self, leadership: &Leadership, stop: &CancellationToken) {
        let (server, fence) = (self.server.clone(), leadership.fence());
        self.controllers.connect(move |tenant| open(server.clone(), fence.clone(), tenant));
        let signal = self.controllers.signal();
        let follow = async {
            loop {
                if let Err(error) = self.server.follow_unfinished(|event| forward(&signal, event)).await {
                    tracing::warn!(%error, "following the tenants failed; retrying");
                }
                self.env.sleep(PAUSE).await;
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            lost = leadership.lost() => {
                tracing::warn!(reason = %lost.reason, "stopping the controllers: this control plane is no longer the leader");
            }
            () = follow => {}
        }
    }
}

/// Connects a tenant's controllers, as long as this control plane is the leader.
async fn open(server: ApiServer, fence: Fence, tenant: String) -> Result<Option<kube::Client>, BoxError> {
    let inside = find(&server, &tenant).await?;
    Ok(inside.map(|server| kube::Client::new(Fenced { server, fence }, "default")))
}

/// Passes requests only while this control plane is the leader. A process that was suspended for longer than
/// its lease duration changes nothing.
#[derive(Clone)]
struct Fenced {
    server: ApiServer,
    fence: Fence,
}

impl<B> Service<Request<B>> for Fenced
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match self.fence.check() {
            Ok(()) => self.server.call(request),
            Err(lost) => {
                let answer = crate::embedded::unavailable(&format!(
                    "this control plane is not the leader: {}",
                    lost.reason
                ));
                Box::pin(async move { Ok(answer) })
            }
        }
    }
}
