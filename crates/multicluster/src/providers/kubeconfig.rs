//! Clients from kubeconfigs.

use k1s_runtime::BoxError;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// A client for a context of a kubeconfig; the current one by default.
pub(super) async fn client(config: Kubeconfig, context: Option<String>) -> Result<kube::Client, BoxError> {
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let config = kube::Config::from_custom_kubeconfig(config, &options).await?;
    Ok(kube::Client::try_from(config)?)
}
