//! Whose controllers run, of several control planes over one store.

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

use crate::control_plane::{find, tell};

/// Whether the controllers of a control plane run always, or only while it is the leader.
///
/// The leader is who holds a Lease in the tenant `default`, [`CONTROLLERS_LEASE`]. It is given back when a control plane is
/// stopped, and another one takes over at once; the Lease of one that was killed runs out. A leader looks through the store
/// for tenants in which something was left undone, and hears of what the others are asked to do.
///
/// A manager on a control plane that is not the leader does not wait for controllers in another process when it waits
/// until it is idle ([`Manager::run_until_idle`](k1s_runtime::Manager::run_until_idle)). It does wait while nobody is known
/// to lead: until this control plane does, or another one is seen to renew its Lease.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub enum Election {
    /// An election with Kubernetes' usual times, if other processes may use the same store ([`Store::is_shared`]: etcd). A
    /// store of one process needs none.
    #[default]
    IfShared,
    /// As [`IfShared`](Self::IfShared), with other times: what is said of the Lease's name and namespace is not
    /// looked at.
    IfSharedWith(LeaderElectionOptions),
    /// Always an election, whatever the store: for several control planes over one store in one process.
    Always(LeaderElectionOptions),
    /// No election: the controllers run here. Nobody else may run them for the same store.
    Never,
}

impl Election {
    /// The election, if there is one.
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

/// The tenant of the Lease. Not what a server takes for its default tenant: those over one store may differ in that.
pub(crate) const TENANT: &str = "default";

/// How long is waited after a failure to follow the store.
const PAUSE: Duration = Duration::from_secs(1);

/// A control plane that stands for election.
pub(crate) struct Candidate {
    pub(crate) env: Env,
    /// Of the tenant with the Lease.
    pub(crate) client: kube::Client,
    pub(crate) server: ApiServer,
    pub(crate) controllers: Arc<TenantControllers>,
    pub(crate) options: LeaderElectionOptions,
}

impl Candidate {
    /// Stands, leads, and stands again when it has lost, until it is told to stop.
    pub(crate) async fn stand(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let problem = Some("this control plane is not the leader yet".to_owned());
            self.controllers.standby(Standby::Nobody { problem });
            let elector = LeaderElector::new(self.client.clone(), self.env.clone(), self.options.clone());
            let elector = match elector {
                Ok(elector) => elector,
                Err(error) => return tracing::error!(%error, "no leader can be elected"),
            };
            let Some(leadership) = self.elected(elector, &stop).await else { break };
            self.lead(&leadership, &stop).await;
            self.controllers.disconnect().await;
            if stop.is_cancelled()
                && let Err(error) = leadership.release().await
            {
                tracing::warn!(%error, "the lease of the controllers was not given back; it ends by itself");
            }
        }
    }

    /// Waits until it leads.
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

    /// Tells when the Lease was given back, which may be long before the next look at it.
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

    /// Runs the controllers of all tenants that need them, until it is told to stop or does not lead any more.
    async fn lead(&self, leadership: &Leadership, stop: &CancellationToken) {
        let (server, fence) = (self.server.clone(), leadership.fence());
        self.controllers.connect(move |tenant| open(server.clone(), fence.clone(), tenant));
        let signal = self.controllers.signal();
        let follow = async {
            loop {
                if let Err(error) = self.server.follow_unfinished(|event| tell(&signal, event)).await {
                    tracing::warn!(%error, "what happens in tenants cannot be followed; trying again");
                }
                self.env.sleep(PAUSE).await;
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            lost = leadership.lost() => {
                tracing::warn!(reason = %lost.reason, "the controllers are stopped: this control plane does not lead any more");
            }
            () = follow => {}
        }
    }
}

/// The door of a tenant, for its controllers, as long as they are the leader's.
async fn open(server: ApiServer, fence: Fence, tenant: String) -> Result<Option<kube::Client>, BoxError> {
    let inside = find(&server, &tenant).await?;
    Ok(inside.map(|server| kube::Client::new(Fenced { server, fence }, "default")))
}

/// Lets the requests of a leader through. A process that was stopped for longer than its term, and goes on, changes nothing.
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
                    "this control plane does not lead: {}",
                    lost.reason
                ));
                Box::pin(async move { Ok(answer) })
            }
        }
    }
}
