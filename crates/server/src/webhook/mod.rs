//! Calls webhooks: over HTTPS, or in this process without a socket.
//!
//! This is the transport alone, for admission and conversion: it takes a `clientConfig`, sends JSON and returns JSON. What is
//! in the JSON, and what follows from an error, is the business of the callers.
//!
//! A call is bounded in every direction: in time by its timeout, in memory by [`MAX_ANSWER_BYTES`] and by the number of
//! large answers that are held at once, by all and by one tenant, in connections by a pool per configuration.

mod endpoint;
mod error;
#[cfg(feature = "tls")]
mod kubeconfig;
#[cfg(feature = "tls")]
mod large;
#[cfg(feature = "tls")]
mod remote;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use k1s_env::Env;

pub(crate) use endpoint::{ClientConfig, ServiceReference};
pub(crate) use error::CallError;
#[cfg(feature = "tls")]
pub(crate) use kubeconfig::KubeconfigClient;

use self::endpoint::Endpoint;
#[cfg(feature = "tls")]
use self::large::{LargeAnswer, LargeAnswers};
use crate::services::{ServiceOptions, ServicePort};

/// Maximum size of an answer.
pub(crate) const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Calls webhooks on behalf of a server.
pub(crate) struct Caller {
    env: Env,
    services: ServiceOptions,
    /// The tenant of the server's administrators.
    default_tenant: String,
    #[cfg(feature = "tls")]
    large: LargeAnswers,
    #[cfg(feature = "tls")]
    remote: remote::Remote,
}

/// Where a webhook outside of this process is.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    /// The address of its Service; otherwise that of its URL.
    address: Option<&'a str>,
    /// Whether addresses of this machine are refused: a tenant has chosen it.
    guarded: bool,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) body: Bytes,
    /// Held while a large answer is in memory.
    #[cfg(feature = "tls")]
    _large: Option<LargeAnswer>,
}

impl Caller {
    pub(crate) fn new(env: &Env, services: &ServiceOptions, default_tenant: &str) -> Caller {
        Caller {
            env: env.clone(),
            services: services.clone(),
            default_tenant: default_tenant.to_owned(),
            #[cfg(feature = "tls")]
            large: LargeAnswers::default(),
            #[cfg(feature = "tls")]
            remote: remote::Remote::default(),
        }
    }

    /// Sends JSON to a webhook of a tenant, and returns the body of its answer with status 200.
    pub(crate) async fn call(
        &self,
        tenant: &str,
        config: &ClientConfig,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Answer, CallError> {
        let endpoint = config.endpoint()?;
        let url = endpoint.url(timeout);
        match self.env.timeout(timeout, Box::pin(self.send(tenant, config, &endpoint, &url, body))).await {
            Ok(answered) => answered,
            Err(_) => Err(CallError::post(&url, "context deadline exceeded")),
        }
    }

    async fn send(
        &self,
        tenant: &str,
        config: &ClientConfig,
        endpoint: &Endpoint,
        url: &str,
        body: Bytes,
    ) -> Result<Answer, CallError> {
        let with_port = format!("{}:{}", endpoint.host, endpoint.port);
        let hosts = [with_port.as_str(), &endpoint.host, &endpoint.authority];
        if let Some(service) = self.services.local.find(tenant, &hosts) {
            let request = request(url, Bytes::clone(&body))?;
            let called = service.call(request, MAX_ANSWER_BYTES).await;
            let (parts, body) =
                called.map_err(|error| CallError::post(url, &error.to_string()))?.into_parts();
            if body.len() > MAX_ANSWER_BYTES {
                return Err(too_large());
            }
            return error::check(parts.status, &body).map(|()| Answer {
                body,
                #[cfg(feature = "tls")]
                _large: None,
            });
        }
        let place = match &config.service {
            Some(service) => match self.address(tenant, service) {
                Some(address) => Place { address: Some(address), guarded: false },
                None => return Err(CallError::Unresolved { url: url.to_owned() }),
            },
            None => {
                let guarded = tenant != self.default_tenant && !self.services.tenants_reach_host;
                Place { address: None, guarded }
            }
        };
        self.send_remote(tenant, config, endpoint, place, request(url, body)?, url).await
    }

    /// The configured address of a Service.
    fn address(&self, tenant: &str, service: &ServiceReference) -> Option<&str> {
        let (namespace, name) = (service.namespace.clone(), service.name.clone());
        let service = ServicePort { namespace, name, port: service.port };
        self.services.address(tenant, &service, tenant == self.default_tenant)
    }

    #[cfg(feature = "tls")]
    async fn send_remote(
        &self,
        tenant: &str,
        config: &ClientConfig,
        endpoint: &Endpoint,
        place: Place<'_>,
        request: Request<Bytes>,
        url: &str,
    ) -> Result<Answer, CallError> {
        let client = self.remote.client(config, endpoint, place)?;
        let response = remote::send(&client, request, url).await?;
        let (parts, body) = response.into_parts();
        let (body, large) = remote::collect(body, url, (&self.large, tenant)).await?;
        error::check(parts.status, &body).map(|()| Answer { body, _large: large })
    }

    #[cfg(not(feature = "tls"))]
    async fn send_remote(
        &self,
        _: &str,
        _: &ClientConfig,
        _: &Endpoint,
        place: Place<'_>,
        _: Request<Bytes>,
        url: &str,
    ) -> Result<Answer, CallError> {
        let _ = (place.address, place.guarded);
        Err(CallError::post(
            url,
            "this server is built without TLS, and can only call webhooks in its own process",
        ))
    }
}

fn too_large() -> CallError {
    CallError::Failed(format!("the answer of the webhook is larger than {MAX_ANSWER_BYTES} bytes"))
}

fn request(url: &str, body: Bytes) -> Result<Request<Bytes>, CallError> {
    let mut request = Request::new(body);
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = url.parse().map_err(|why| CallError::post(url, &format!("{why}")))?;
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, */*"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static("kube-apiserver-admission"));
    Ok(request)
}
