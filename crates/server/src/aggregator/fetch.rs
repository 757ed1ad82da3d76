//! Requests of the server itself to aggregated API servers, with answers of limited size and in limited time.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, header};
use http_body_util::{BodyExt as _, Empty, LengthLimitError};

use super::{headers, proxy, resolve};
use crate::{
    identity::User,
    services::SendError,
    tenant::{
        Tenant,
        apis::{Availability, Backend},
    },
};

/// Maximum size of a document of an aggregated API server.
pub(super) const MAX_DOCUMENT_BYTES: usize = 8 << 20;

/// An answer.
pub(super) struct Fetched {
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    /// The Service has no address.
    #[error("{}", .0.message)]
    Unroutable(Availability),
    #[error("{0}")]
    Failed(String),
    #[error("the answer did not arrive in time")]
    TimedOut,
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
}

impl From<SendError> for FetchError {
    fn from(error: SendError) -> FetchError {
        FetchError::Failed(error.to_string())
    }
}

/// A GET of a path.
pub(super) struct Get<'a> {
    pub(super) path: &'a str,
    pub(super) accept: &'a str,
    /// The `ETag` that is known already.
    pub(super) known: &'a str,
    pub(super) user: &'a User,
    pub(super) timeout: Duration,
    /// Maximum size of the answer. What is beyond is an error; with 0, the body is not read.
    pub(super) max_bytes: usize,
}

/// Sends a GET.
pub(super) async fn get(
    tenant: &Arc<Tenant>,
    backend: &Backend,
    get: &Get<'_>,
) -> Result<Fetched, FetchError> {
    let route = resolve::route(tenant, &backend.service).await.map_err(FetchError::Unroutable)?;
    let failed = |why: &dyn std::fmt::Display| FetchError::Failed(why.to_string());
    let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
    let mut request = Request::new(body);
    let uri = format!("https://{}:{}{}", backend.service.host(), backend.service.port, get.path);
    *request.uri_mut() = uri.parse().map_err(|why| failed(&why))?;
    let sent = request.headers_mut();
    let tenant_name = (!resolve::is_default(tenant)).then_some(&*tenant.name);
    headers::set_user(sent, get.user, tenant_name).map_err(|why| failed(&why))?;
    sent.insert(header::USER_AGENT, HeaderValue::from_static("k1s-aggregator"));
    sent.insert(header::ACCEPT, HeaderValue::from_str(get.accept).map_err(|why| failed(&why))?);
    sent.insert(header::VIA, HeaderValue::from_str(&proxy::via(tenant)).map_err(|why| failed(&why))?);
    if !get.known.is_empty() {
        sent.insert(header::IF_NONE_MATCH, HeaderValue::from_str(get.known).map_err(|why| failed(&why))?);
    }
    let exchange = async {
        let (parts, body) = proxy::dispatch(tenant, backend, &route, request).await?.into_parts();
        let body = match get.max_bytes {
            0 => Bytes::new(),
            limit => body.collect_up_to(limit).await.map_err(|why| match why.is::<LengthLimitError>() {
                true => FetchError::TooLarge(limit),
                false => failed(&why),
            })?,
        };
        Ok(Fetched { code: parts.status.as_u16(), headers: parts.headers, body })
    };
    tenant.env().timeout(get.timeout, exchange).await.unwrap_or(Err(FetchError::TimedOut))
}
