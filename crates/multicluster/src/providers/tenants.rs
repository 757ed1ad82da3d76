//! The tenants of a k1s server.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use http::Request;
use k1s_runtime::{BoxError, Cluster, ClusterName};
use serde_json::Value;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;

use super::{Connection, Connector, at_path, connector, env_of, known::Known};
use crate::{Engager, Provider, ProviderError};

/// How often tenants are listed, by default.
const INTERVAL: Duration = Duration::from_secs(5);

/// The names of tenants that have come or gone.
type Changes = broadcast::Receiver<Arc<str>>;

/// Every active tenant of a k1s server is a cluster, at `/clusters/{name}`. They are listed every few seconds, and share the
/// connections of one client. For those of an embedded `k1s::Runtime`, see `Runtime::tenants_provider`.
pub struct TenantsProvider {
    client: kube::Client,
    connect: Connector,
    interval: Duration,
    filter: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    changes: Option<Box<dyn Fn() -> Changes + Send + Sync>>,
    known: Known<String>,
}

impl TenantsProvider {
    /// The tenants of the server of this client, which must be one of the server itself, not of a tenant.
    #[must_use]
    pub fn new(server: kube::Client) -> TenantsProvider {
        let client = server.clone();
        let connect = connector(move |name: ClusterName| {
            let client = at_path(&server, &format!("/clusters/{name}"));
            async move { Ok(Box::new(client) as Connection) }
        });
        TenantsProvider {
            client,
            connect,
            interval: INTERVAL,
            filter: Arc::new(|_| true),
            changes: None,
            known: Known::new(),
        }
    }

    /// Connects to tenants in another way.
    #[must_use]
    pub fn with_connector(mut self, connect: Connector) -> TenantsProvider {
        self.connect = connect;
        self
    }

    /// Sets how often tenants are listed: 5 s by default.
    #[must_use]
    pub fn with_interval(mut self, interval: Duration) -> TenantsProvider {
        self.interval = interval;
        self
    }

    /// Only tenants whose names the filter accepts.
    #[must_use]
    pub fn with_filter(mut self, filter: impl Fn(&str) -> bool + Send + Sync + 'static) -> TenantsProvider {
        let before = self.filter;
        self.filter = Arc::new(move |name| before(name) && filter(name));
        self
    }

    /// Looks at tenants also when they are announced, by their names, as those of a server in the same process are.
    #[must_use]
    pub fn with_changes(
        mut self,
        changes: impl Fn() -> broadcast::Receiver<Arc<str>> + Send + Sync + 'static,
    ) -> TenantsProvider {
        self.changes = Some(Box::new(changes));
        self
    }

    /// The name and the uid of a tenant, if it is one of the clusters.
    fn cluster_of(&self, tenant: &Value) -> Option<(ClusterName, String)> {
        let name = tenant["metadata"]["name"].as_str()?;
        let uid = tenant["metadata"]["uid"].as_str().unwrap_or_default();
        let is_cluster = tenant["status"]["phase"] == "Active" && (self.filter)(name);
        is_cluster.then(|| (name.into(), uid.to_owned()))
    }

    /// The active tenants and their uids.
    async fn list(&self) -> Result<BTreeMap<ClusterName, String>, BoxError> {
        let mut tenants = BTreeMap::new();
        let mut next = String::new();
        loop {
            let path = format!("/k1s/v1/tenants?limit=500&continue={next}");
            let page: Value = self.client.request(Request::get(path).body(Vec::new())?).await?;
            let items = page["items"].as_array().into_iter().flatten();
            tenants.extend(items.filter_map(|tenant| self.cluster_of(tenant)));
            match page["metadata"]["continue"].as_str() {
                Some(more) if !more.is_empty() => more.clone_into(&mut next),
                _ => return Ok(tenants),
            }
        }
    }

    async fn update(&self, engager: &Arc<dyn Engager>) -> Result<(), BoxError> {
        let tenants = self.list().await?;
        for (name, uid) in &tenants {
            self.engage(engager, name, uid).await;
        }
        self.known.disengage_others(engager, &tenants);
        Ok(())
    }

    async fn engage(&self, engager: &Arc<dyn Engager>, name: &ClusterName, uid: &String) {
        if self.known.is_current(name, uid) {
            return;
        }
        // A tenant that was deleted meanwhile is not in the next list.
        match (self.connect)(name.clone()).await {
            Ok(connection) => {
                let cluster = Cluster::new(name.clone(), &*connection, engager.cluster_options());
                self.known.engage(&**engager, uid.clone(), cluster);
            }
            Err(error) => tracing::warn!(cluster = %name, %error, "cannot connect to a tenant"),
        }
    }

    /// Looks at one tenant.
    async fn update_one(&self, engager: &Arc<dyn Engager>, name: &str) -> Result<(), BoxError> {
        let request = Request::get(format!("/k1s/v1/tenants/{name}")).body(Vec::new())?;
        let found = match self.client.request::<Value>(request).await {
            Ok(tenant) => self.cluster_of(&tenant),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => return Err(error.into()),
        };
        match found {
            Some((name, uid)) => self.engage(engager, &name, &uid).await,
            None => self.known.disengage(engager, &name.into()),
        }
        Ok(())
    }

    /// Follows announced changes; returns when all tenants have to be listed.
    async fn follow(&self, engager: &Arc<dyn Engager>, changes: Option<&mut Changes>) {
        let Some(changes) = changes else { return std::future::pending().await };
        loop {
            match changes.recv().await {
                Ok(name) => {
                    if let Err(error) = self.update_one(engager, &name).await {
                        tracing::warn!(cluster = %name, %error, "cannot look at a tenant");
                        return;
                    }
                }
                Err(RecvError::Lagged(_)) => return,
                // The server has ended.
                Err(RecvError::Closed) => return std::future::pending().await,
            }
        }
    }
}

#[async_trait::async_trait]
impl Provider for TenantsProvider {
    fn name(&self) -> String {
        "tenants".to_owned()
    }

    async fn get(&self, name: &ClusterName) -> Result<Cluster, ProviderError> {
        self.known.get(name)
    }

    async fn run(
        self: Arc<Self>,
        engager: Arc<dyn Engager>,
        stop: CancellationToken,
    ) -> Result<(), BoxError> {
        let env = env_of(&*engager);
        // Before the first list, so that nothing is missed.
        let mut changes = self.changes.as_ref().map(|changes| changes());
        loop {
            let mut again = self.interval;
            match stop.run_until_cancelled(self.update(&engager)).await {
                None => return Ok(()),
                Some(Ok(())) => engager.synced(),
                Some(Err(error)) => {
                    tracing::warn!(%error, "cannot list tenants");
                    again = again.min(INTERVAL);
                }
            }
            let follow = env.timeout(again, self.follow(&engager, changes.as_mut()));
            if stop.run_until_cancelled(follow).await.is_none() {
                return Ok(());
            }
        }
    }
}

impl fmt::Debug for TenantsProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantsProvider").field("interval", &self.interval).finish_non_exhaustive()
    }
}
