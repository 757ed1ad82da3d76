//! Clusters from kubeconfigs in Secrets.

use std::sync::Arc;

use k1s_object::selector::LabelSelector;
use k1s_runtime::{
    BoxError, CacheOptions, Cluster, ClusterName, ClusterOptions, InformerOptions, Kind, kind,
};
use k8s_openapi::api::core::v1::Secret;
use kube::config::Kubeconfig;

use super::{
    kubeconfig::{Clients, refuse_local_access},
    objects::{ObjectClusters, Objects, provider_of_objects},
};

/// The default label of Secrets with a kubeconfig, with the value `true`: that of Go's multicluster-runtime.
pub const KUBECONFIG_LABEL: &str = "sigs.k8s.io/multicluster-runtime-kubeconfig";

/// The default key of the kubeconfig in a Secret.
pub const KUBECONFIG_KEY: &str = "kubeconfig";

/// Clusters from Secrets in a namespace of the host cluster: each has a kubeconfig, and its name is that of the cluster. A
/// changed kubeconfig is engaged anew. One that runs programs or reads files is refused: see
/// [`with_local_access`](Self::with_local_access).
#[derive(Debug)]
pub struct KubeconfigSecrets {
    objects: Arc<Objects<Secrets>>,
}

struct Secrets {
    namespace: Arc<str>,
    selector: String,
    parsed: LabelSelector,
    key: String,
    local_access: bool,
    clients: Clients,
}

impl KubeconfigSecrets {
    /// Secrets of a namespace with the label [`KUBECONFIG_LABEL`], and the kubeconfig under [`KUBECONFIG_KEY`].
    pub fn new(namespace: impl Into<Arc<str>>) -> KubeconfigSecrets {
        let namespace = namespace.into();
        KubeconfigSecrets::assemble(namespace, format!("{KUBECONFIG_LABEL}=true"), KUBECONFIG_KEY.to_owned())
            .unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// Secrets that match a label selector, with the kubeconfig under this key.
    ///
    /// # Errors
    /// If the selector is invalid.
    pub fn selected(
        namespace: impl Into<Arc<str>>,
        selector: impl Into<String>,
        key: impl Into<String>,
    ) -> Result<KubeconfigSecrets, BoxError> {
        KubeconfigSecrets::assemble(namespace.into(), selector.into(), key.into())
    }

    /// Whether kubeconfigs may have `exec` and `auth-provider` plugins, and name files of certificates, keys and tokens. Off by
    /// default: whoever can write such a Secret runs programs and reads files with the rights of this program.
    #[must_use]
    pub fn with_local_access(mut self, allowed: bool) -> KubeconfigSecrets {
        // Nothing else refers to it before it runs.
        if let Some(objects) = Arc::get_mut(&mut self.objects) {
            objects.of_mut().local_access = allowed;
        }
        self
    }

    fn assemble(namespace: Arc<str>, selector: String, key: String) -> Result<KubeconfigSecrets, BoxError> {
        let parsed = LabelSelector::parse(&selector)?;
        let clients = Clients::default();
        let secrets = Secrets { namespace, selector, parsed, key, local_access: false, clients };
        Ok(KubeconfigSecrets { objects: Arc::new(Objects::new(secrets)) })
    }
}

provider_of_objects!(KubeconfigSecrets, |this| {
    let Secrets { namespace, selector, .. } = this.objects.of();
    format!("kubeconfig Secrets in {namespace} with {selector}")
});

#[async_trait::async_trait]
impl ObjectClusters for Secrets {
    type Object = Secret;

    fn controller(&self) -> String {
        "provider-kubeconfig-secrets".to_owned()
    }

    fn kind(&self) -> Kind<Secret> {
        kind()
    }

    /// A cache of its own: the manager may neither be allowed to read all Secrets, nor should it hold them.
    fn watched(&self, host: &Cluster, options: ClusterOptions) -> Option<Cluster> {
        let informer = InformerOptions {
            namespaces: Some(vec![Arc::clone(&self.namespace)]),
            labels: Some(self.parsed.clone()),
            ..InformerOptions::default()
        };
        let cache = CacheOptions::default().by_object(&kind::<Secret>(), informer);
        let options = ClusterOptions { cache, uncached: Vec::new(), ..options };
        Some(Cluster::new("", host.kube_client().clone(), options))
    }

    fn fingerprint(&self, secret: &Secret) -> Option<Vec<u8>> {
        Some(secret.data.as_ref()?.get(&self.key)?.0.clone())
    }

    async fn connect(
        &self,
        name: ClusterName,
        secret: &Secret,
        _: &Cluster,
        options: ClusterOptions,
    ) -> Result<Cluster, BoxError> {
        let content = self.fingerprint(secret).unwrap_or_default();
        let config = Kubeconfig::from_yaml(std::str::from_utf8(&content)?)?;
        if !self.local_access {
            refuse_local_access(&config)?;
        }
        let client = self.clients.of_kubeconfig(config, None, &options).await?;
        Ok(Cluster::new(name, client, options))
    }
}
