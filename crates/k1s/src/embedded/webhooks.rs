//! Webhooks that the control plane calls without a socket.

use std::convert::Infallible;

use bytes::Bytes;
use http::Request;
use k1s_runtime::webhook::{Endpoint, WebhookServer};

use super::Runtime;

/// The host of an endpoint, as the server looks it up.
fn host(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Service { namespace, name, port } => {
            format!("{name}.{namespace}.svc:{}", port.unwrap_or(443))
        }
        Endpoint::Url(url) => {
            let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
            rest.split('/').next().unwrap_or_default().to_owned()
        }
    }
}

impl Runtime {
    /// Calls the handlers of this webhook server without a socket wherever a configuration of the runtime's tenant names the
    /// endpoint: a Service, which need not exist, or a URL. The server need not run, and needs no certificate. Its handlers
    /// are called as soon as the configurations are installed, as on a cluster:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k1s::{Runtime, controller::webhook::{Endpoint, Webhook, WebhookConfiguration, WebhookServer}};
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// let runtime = Runtime::builder().start().await?;
    /// let webhooks = WebhookServer::new(runtime.env(), Default::default());
    /// Webhook::for_::<ConfigMap>()
    ///     .validate_with(|validation, _| match validation.object() {
    ///         Some(map) if map.data.is_none() => Err("data is required".into()),
    ///         _ => Ok(vec![]),
    ///     })
    ///     .complete(&webhooks)?;
    /// let endpoint = Endpoint::service("my-operator", "webhooks");
    /// runtime.serve_webhooks(&endpoint, &webhooks);
    /// WebhookConfiguration::new("my-operator", endpoint).install(&runtime.client(), &webhooks).await?;
    ///
    /// let maps = kube::Api::<ConfigMap>::default_namespaced(runtime.client());
    /// let mut map = ConfigMap::default();
    /// map.metadata.name = Some("empty".into());
    /// let refused = maps.create(&Default::default(), &map).await.unwrap_err();
    /// assert!(refused.to_string().contains("data is required"), "{refused}");
    /// # runtime.stop().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn serve_webhooks(&self, endpoint: &Endpoint, webhooks: &WebhookServer) {
        let webhooks = webhooks.clone();
        let service = tower::service_fn(move |request: Request<Bytes>| {
            let webhooks = webhooks.clone();
            async move { Ok::<_, Infallible>(webhooks.handle(request).await) }
        });
        self.services.serve(self.tenant.clone(), host(endpoint), service);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_endpoints() {
        assert_eq!(host(&Endpoint::service("ns", "svc")), "svc.ns.svc:443");
        assert_eq!(host(&Endpoint::url("https://hooks.example:9443/base")), "hooks.example:9443");
    }
}
