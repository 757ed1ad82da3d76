//! HTTP and panic helpers shared by the webhooks.

use std::{any::Any, future::Future};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE};

/// Handles arbitrary HTTP requests at a path of a [`WebhookServer`](super::WebhookServer). Implemented by async functions
/// and closures.
pub trait HttpHandler: Send + Sync + 'static {
    /// Handles one request. Its body is complete, and within the server's size limit.
    fn call(&self, request: Request<Bytes>) -> BoxFuture<'_, Response<Bytes>>;
}

impl<F, A> HttpHandler for F
where
    F: Fn(Request<Bytes>) -> A + Send + Sync + 'static,
    A: Future<Output = Response<Bytes>> + Send + 'static,
{
    fn call(&self, request: Request<Bytes>) -> BoxFuture<'_, Response<Bytes>> {
        Box::pin(self(request))
    }
}

/// The body exceeds the size limit.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("request entity is too large; limit is {limit} bytes")]
pub(crate) struct TooLarge {
    pub(crate) limit: usize,
}

pub(crate) fn json(code: StatusCode, body: Vec<u8>) -> Response<Bytes> {
    respond(code, "application/json", body.into())
}

pub(crate) fn text(code: StatusCode, body: impl Into<String>) -> Response<Bytes> {
    respond(code, "text/plain; charset=utf-8", body.into().into())
}

fn respond(code: StatusCode, content_type: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}
