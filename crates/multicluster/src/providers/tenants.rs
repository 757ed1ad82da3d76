//! The tenants of a k1s server.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use http::Request;
use k1s_runtime::{BoxError, Cluster, ClusterName};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Connection, Connector, at_path, connector, known::Known};
use crate::{Engager, Provider, ProviderError};

/// How often tenants are listed, by default.
const INTERVAL: Duration = Duration::from_secs(5);

/// Every active tenant of a k1s server is a cluster, at `/clusters/{name}`. They are listed every few seconds, and share the
/// connections of one client. For those of an embedded `k1s::Runtime`, see `Runtime::tenants_provider`.
pub struct TenantsProvider {
    client: kube::Client,
    connect: Connector,
    interval: Duration,
    filter: Arc<dyn Fn(&str) -> bool + Send + Sync>,
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

    /// The active tenants and their uids.
    async fn list(&self) -> Result<BTreeMap<ClusterName, String>, BoxError> {
        let mut tenants = BTreeMap::new();
        let mut next = String::new();
        loop {
            let path = format!("/k1s/v1/tenants?limit=500&continue={next}");
            let page: Value = self.client.request(Request::get(path).body(Vec::new())?).await?;
            for tenant in page["items"].as_array().into_iter().flatten() {
                let name = tenant["metadata"]["name"].as_str().unwrap_or_default();
                if tenant["status"]["phase"] == "Active" && (self.filter)(name) {
                    let uid = tenant["metadata"]["uid"].as_str().unwrap_or_default();
                    tenants.insert(name.into(), uid.to_owned());
                }
            }
            match page["metadata"]["continue"].as_str() {
                Some(more) if !more.is_empty() => more.clone_into(&mut next),
                _ => return Ok(tenants),
            }
        }
    }

    async fn update(&self, engager: &dyn Engager) -> Result<(), BoxError> {
        let tenants = self.list().await?;
        for (name, uid) in tenants.iter().filter(|(name, uid)| !self.known.is_current(name, uid)) {
            // A tenant that was deleted meanwhile is not in the next list.
            match (self.connect)(name.clone()).await {
                Ok(connection) => {
                    let cluster = Cluster::new(name.clone(), &*connection, engager.cluster_options());
                    self.known.engage(engager, uid.clone(), cluster);
                }
                Err(error) => tracing::warn!(cluster = %name, %error, "cannot connect to a tenant"),
            }
        }
        self.known.disengage_others(engager, &tenants).await;
        Ok(())
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
        let env = engager.cluster_options().env.unwrap_or_else(k1s_env::Env::system);
        loop {
            match stop.run_until_cancelled(self.update(&*engager)).await {
                None => return Ok(()),
                Some(Ok(())) => engager.synced(),
                Some(Err(error)) => tracing::warn!(%error, "cannot list tenants"),
            }
            if stop.run_until_cancelled(env.sleep(self.interval)).await.is_none() {
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
