//! Clients from kubeconfigs.

use k1s_env::Env;
use k1s_runtime::{BoxError, ClusterOptions};
use kube::config::{KubeConfigOptions, Kubeconfig};

/// The clients of a provider. Those for the same server with the same credentials share one connection for all watches; without
/// TLS, each watch has a connection.
#[derive(Default)]
pub(super) struct Clients {
    #[cfg(feature = "tls")]
    connections: k1s_runtime::client::Http2Connections,
}

impl Clients {
    /// A client for a context of a kubeconfig; the current one by default.
    pub(super) async fn of_kubeconfig(
        &self,
        config: Kubeconfig,
        context: Option<String>,
        options: &ClusterOptions,
    ) -> Result<kube::Client, BoxError> {
        let selected = KubeConfigOptions { context, ..KubeConfigOptions::default() };
        let config = kube::Config::from_custom_kubeconfig(config, &selected).await?;
        Ok(self.of_config(config, options)?)
    }

    /// A client for a configuration.
    pub(super) fn of_config(
        &self,
        config: kube::Config,
        options: &ClusterOptions,
    ) -> Result<kube::Client, kube::Error> {
        self.connect(&options.env.clone().unwrap_or_else(Env::system), config)
    }

    #[cfg(feature = "tls")]
    fn connect(&self, env: &Env, config: kube::Config) -> Result<kube::Client, kube::Error> {
        self.connections.client(env, config)
    }

    #[cfg(not(feature = "tls"))]
    fn connect(&self, _: &Env, config: kube::Config) -> Result<kube::Client, kube::Error> {
        kube::Client::try_from(config)
    }
}
