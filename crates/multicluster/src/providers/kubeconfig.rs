//! Clients from kubeconfigs.

use k1s_env::Env;
use k1s_runtime::{BoxError, ClusterOptions};
use kube::config::{KubeConfigOptions, Kubeconfig};

/// A client for a context of a kubeconfig; the current one by default.
pub(super) async fn client(
    config: Kubeconfig,
    context: Option<String>,
    options: &ClusterOptions,
) -> Result<kube::Client, BoxError> {
    let selected = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let config = kube::Config::from_custom_kubeconfig(config, &selected).await?;
    Ok(connect(&options.env.clone().unwrap_or_else(Env::system), config)?)
}

/// A client with one connection for all watches.
#[cfg(feature = "tls")]
pub(super) fn connect(env: &Env, config: kube::Config) -> Result<kube::Client, kube::Error> {
    k1s_runtime::client::http2(env, config)
}

/// A client without TLS: each watch has a connection.
#[cfg(not(feature = "tls"))]
pub(super) fn connect(_: &Env, config: kube::Config) -> Result<kube::Client, kube::Error> {
    kube::Client::try_from(config)
}
