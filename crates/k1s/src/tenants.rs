//! The tenants of an embedded control plane, as clusters.

use std::{sync::Arc, time::Duration};

use k1s_controllers::TenantControllers;
use k1s_env::{Component, Env, WorkTracker};
use k1s_multicluster::{
    ClusterName,
    providers::{Connection, Connector, TenantsProvider, connector},
};
use k1s_runtime::{BoxError, Connect, manager::Companion};
use k1s_server::{ApiServer, User};
use tokio::sync::watch;

use crate::embedded::{Door, Runtime};

/// How often tenants are listed although all changes are announced.
const RARELY: Duration = Duration::from_secs(60);

impl Runtime {
    /// Every tenant of this runtime as a cluster of a multi-cluster manager, except the runtime's own. Requests do not use a
    /// socket, and a manager that waits until it is idle waits for the tenants' own controllers, too. A tenant that this runtime
    /// creates or deletes is noticed at once; on etcd, one of another server within 5 s.
    #[must_use]
    pub fn tenants_provider(&self) -> TenantsProvider {
        let server = self.server().as_user(User::admin());
        let all = kube::Client::new(Door::new(server, self.requests().clone()), "default");
        let (own, changes) = (self.tenant().to_owned(), self.server().clone());
        let provider = TenantsProvider::new(all)
            .with_connector(self.tenant_connector())
            .with_filter(move |name| name != own)
            .with_changes(move || changes.tenant_changes());
        // Only others that use the same store can change tenants unnoticed.
        if self.server().has_shared_store() { provider } else { provider.with_interval(RARELY) }
    }

    /// Connects to tenants of this runtime by their names, without a socket. It does not create any.
    #[must_use]
    pub fn tenant_connector(&self) -> Connector {
        let tenants = Arc::new(Tenants {
            env: self.env().clone(),
            work: self.work().clone(),
            requests: self.requests().clone(),
            server: self.server().clone(),
            controllers: Arc::clone(self.controllers()),
        });
        connector(move |name: ClusterName| {
            let tenants = Arc::clone(&tenants);
            async move { tenants.connect(&name).await }
        })
    }
}

/// What connections to tenants need of a runtime, without keeping it.
struct Tenants {
    env: Env,
    work: WorkTracker,
    requests: Component,
    server: ApiServer,
    controllers: Arc<TenantControllers>,
}

impl Tenants {
    async fn connect(&self, tenant: &str) -> Result<Connection, BoxError> {
        let server = self.server.find_tenant(tenant).await?.as_user(User::admin());
        Ok(Box::new(Tenant {
            env: self.env.clone(),
            work: self.work.clone(),
            client: kube::Client::new(Door::new(server, self.requests.clone()), "default"),
            companion: self.controllers.companion(tenant),
        }))
    }
}

struct Tenant {
    env: Env,
    work: WorkTracker,
    client: kube::Client,
    companion: watch::Receiver<Companion>,
}

impl Connect for Tenant {
    fn client(&self) -> kube::Client {
        self.client.clone()
    }

    fn env(&self) -> Option<Env> {
        Some(self.env.clone())
    }

    fn work(&self) -> Option<WorkTracker> {
        Some(self.work.clone())
    }

    fn companion(&self) -> Option<watch::Receiver<Companion>> {
        Some(self.companion.clone())
    }
}
