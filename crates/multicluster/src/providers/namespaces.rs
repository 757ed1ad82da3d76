//! Namespaces as clusters.

use std::sync::Arc;

use k1s_object::selector::LabelSelector;
use k1s_runtime::{BoxError, Cluster, ClusterName, ClusterOptions, Kind, kind};
use k8s_openapi::api::core::v1::Namespace;

use super::objects::{ObjectClusters, Objects, provider_of_objects};

/// Every namespace of the host cluster is a cluster: its client and its cache are restricted to that namespace. Cluster-scoped
/// kinds are the same in all of them.
#[derive(Debug)]
pub struct Namespaces {
    objects: Arc<Objects<OfNamespaces>>,
}

struct OfNamespaces {
    selector: Option<LabelSelector>,
}

impl Namespaces {
    /// All namespaces.
    #[must_use]
    pub fn new() -> Namespaces {
        Namespaces { objects: Arc::new(Objects::new(OfNamespaces { selector: None })) }
    }

    /// Namespaces that match a label selector.
    ///
    /// # Errors
    /// If the selector is invalid.
    pub fn selected(selector: &str) -> Result<Namespaces, BoxError> {
        let selector = Some(LabelSelector::parse(selector)?);
        Ok(Namespaces { objects: Arc::new(Objects::new(OfNamespaces { selector })) })
    }
}

impl Default for Namespaces {
    fn default() -> Namespaces {
        Namespaces::new()
    }
}

provider_of_objects!(Namespaces, |_| "namespaces".to_owned());

#[async_trait::async_trait]
impl ObjectClusters for OfNamespaces {
    type Object = Namespace;

    fn controller(&self) -> String {
        "provider-namespaces".to_owned()
    }

    fn kind(&self) -> Kind<Namespace> {
        kind()
    }

    fn watched(&self, _: &Cluster, _: ClusterOptions) -> Option<Cluster> {
        None
    }

    fn fingerprint(&self, namespace: &Namespace) -> Option<Vec<u8>> {
        let labels = namespace.metadata.labels.as_ref();
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
        let selected = self.selector.as_ref().is_none_or(|selector| selector.matches(label));
        selected.then(|| namespace.metadata.uid.clone().unwrap_or_default().into_bytes())
    }

    async fn connect(
        &self,
        name: ClusterName,
        _: &Namespace,
        watched: &Cluster,
        options: ClusterOptions,
    ) -> Result<Cluster, BoxError> {
        let namespace = Some(name.clone().into());
        Ok(Cluster::new(name, watched.kube_client().clone(), ClusterOptions { namespace, ..options }))
    }
}
