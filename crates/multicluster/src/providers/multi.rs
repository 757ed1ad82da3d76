//! Several providers under prefixes.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::future::try_join_all;
use k1s_runtime::{BoxError, Cluster, ClusterName, ClusterOptions, Manager};
use tokio_util::sync::CancellationToken;

use crate::{Engager, Provider, ProviderError, Stuck};

/// Between the prefix and the name of a cluster, as in Go's multicluster-runtime.
pub const SEPARATOR: char = '#';

/// Several providers: cluster `a` of the provider with prefix `edge` is named `edge#a`.
#[derive(Default)]
pub struct MultiProvider {
    providers: BTreeMap<Arc<str>, Arc<dyn Provider>>,
}

impl MultiProvider {
    /// No providers.
    #[must_use]
    pub fn new() -> MultiProvider {
        MultiProvider::default()
    }

    /// Adds a provider under a prefix, which must not contain [`SEPARATOR`].
    ///
    /// # Errors
    /// If the prefix contains the separator, or is used already.
    pub fn with(
        mut self,
        prefix: impl Into<Arc<str>>,
        provider: Arc<dyn Provider>,
    ) -> Result<MultiProvider, BoxError> {
        let prefix = prefix.into();
        if prefix.contains(SEPARATOR) {
            return Err(format!("the prefix {prefix:?} contains {SEPARATOR:?}").into());
        }
        if self.providers.contains_key(&prefix) {
            return Err(format!("there is a provider with the prefix {prefix:?} already").into());
        }
        self.providers.insert(prefix, provider);
        Ok(self)
    }
}

fn prefixed(prefix: &str, name: &str) -> ClusterName {
    format!("{prefix}{SEPARATOR}{name}").into()
}

#[async_trait::async_trait]
impl Provider for MultiProvider {
    fn name(&self) -> String {
        let all = self.providers.iter().map(|(prefix, provider)| format!("{prefix}: {}", provider.name()));
        format!("multi ({})", all.collect::<Vec<_>>().join(", "))
    }

    async fn get(&self, name: &ClusterName) -> Result<Cluster, ProviderError> {
        let not_found = || ProviderError::NotFound(name.clone());
        let (prefix, inner) = name.split_once(SEPARATOR).ok_or_else(not_found)?;
        let provider = self.providers.get(prefix).ok_or_else(not_found)?;
        match provider.get(&inner.into()).await {
            Ok(cluster) => Ok(cluster.with_name(name.clone())),
            Err(ProviderError::NotFound(_)) => Err(not_found()),
            Err(ProviderError::Connect { error, .. }) => {
                Err(ProviderError::Connect { name: name.clone(), error })
            }
        }
    }

    async fn run(
        self: Arc<Self>,
        engager: Arc<dyn Engager>,
        stop: CancellationToken,
    ) -> Result<(), BoxError> {
        let starting = Arc::new(AtomicUsize::new(self.providers.len()));
        if self.providers.is_empty() {
            engager.synced();
        }
        let each = self.providers.iter().map(|(prefix, provider)| {
            let engager = Prefixed {
                prefix: Arc::clone(prefix),
                engager: Arc::clone(&engager),
                synced: AtomicUsize::new(0),
                starting: Arc::clone(&starting),
            };
            Arc::clone(provider).run(Arc::new(engager), stop.clone())
        });
        try_join_all(each).await?;
        Ok(())
    }
}

impl fmt::Debug for MultiProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MultiProvider").field(&self.providers.keys()).finish()
    }
}

/// Engages the clusters of a provider under its prefix.
struct Prefixed {
    prefix: Arc<str>,
    engager: Arc<dyn Engager>,
    synced: AtomicUsize,
    /// Number of providers that are not synced yet.
    starting: Arc<AtomicUsize>,
}

#[async_trait::async_trait]
impl Engager for Prefixed {
    fn cluster_options(&self) -> ClusterOptions {
        self.engager.cluster_options()
    }

    fn host(&self) -> Option<Manager> {
        self.engager.host()
    }

    fn engage(&self, cluster: Cluster) {
        let name = prefixed(&self.prefix, cluster.name());
        self.engager.engage(cluster.with_name(name));
    }

    async fn disengage(&self, name: &ClusterName) -> Result<(), Stuck> {
        self.engager.disengage(&prefixed(&self.prefix, name)).await
    }

    fn synced(&self) {
        let first = self.synced.fetch_add(1, Ordering::AcqRel) == 0;
        if first && self.starting.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.engager.synced();
        }
    }
}
