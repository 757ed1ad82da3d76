//! Handles `AdmissionReview`s: decodes the HTTP body, calls the handler, encodes the response.

use std::{fmt, future::Future, panic::AssertUnwindSafe, sync::Arc};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use http::{HeaderMap, Response, StatusCode, header::CONTENT_TYPE};
use prometheus_client::metrics::counter::Counter;
use tracing::Instrument;

use super::{
    AdmissionRequest, AdmissionResponse,
    request::{API_VERSIONS, read_review},
    response::write_review,
};
use crate::webhook::wire::{TooLarge, json, panic_message};

/// Handles admission requests of any kind. Implemented by async functions and closures over `Arc<AdmissionRequest>`.
pub trait Handler: Send + Sync + 'static {
    /// Handles one request.
    fn handle(&self, request: Arc<AdmissionRequest>) -> impl Future<Output = AdmissionResponse> + Send;
}

impl<F, A> Handler for F
where
    F: Fn(Arc<AdmissionRequest>) -> A + Send + Sync + 'static,
    A: Future<Output = AdmissionResponse> + Send,
{
    fn handle(&self, request: Arc<AdmissionRequest>) -> impl Future<Output = AdmissionResponse> + Send {
        self(request)
    }
}

/// A dyn-compatible [`Handler`].
trait Dyn: Send + Sync {
    fn handle(&self, request: Arc<AdmissionRequest>) -> BoxFuture<'_, AdmissionResponse>;
}

impl<H: Handler> Dyn for H {
    fn handle(&self, request: Arc<AdmissionRequest>) -> BoxFuture<'_, AdmissionResponse> {
        Box::pin(Handler::handle(self, request))
    }
}

/// A handler with its options, ready to be registered at a path. Go's `admission.Webhook`.
#[derive(Clone)]
pub struct AdmissionHook {
    handler: Arc<dyn Dyn>,
    recover_panic: bool,
}

impl AdmissionHook {
    /// A hook with a custom handler.
    pub fn new(handler: impl Handler) -> AdmissionHook {
        AdmissionHook { handler: Arc::new(handler), recover_panic: true }
    }

    /// Whether a panic of the handler is recovered into an error response, as by default, or propagated.
    #[must_use]
    pub fn recover_panic(mut self, recover: bool) -> AdmissionHook {
        self.recover_panic = recover;
        self
    }

    /// Handles one request, without HTTP.
    pub async fn handle(&self, request: Arc<AdmissionRequest>) -> AdmissionResponse {
        self.handle_counted(request, None).await
    }

    async fn handle_counted(
        &self,
        request: Arc<AdmissionRequest>,
        panics: Option<&Counter>,
    ) -> AdmissionResponse {
        // Creating the future may panic as well as running it.
        let handled = AssertUnwindSafe(async { self.handler.handle(request).await }).catch_unwind().await;
        match handled {
            Ok(response) => response,
            Err(panic) => {
                if let Some(panics) = panics {
                    panics.inc();
                }
                let message = panic_message(panic.as_ref());
                if !self.recover_panic {
                    tracing::error!(message, "observed a panic in a webhook");
                    std::panic::resume_unwind(panic);
                }
                tracing::error!(message, "recovered a panic in a webhook");
                AdmissionResponse::errored(500, format_args!("panic: {message} [recovered]"))
            }
        }
    }

    /// Handles an HTTP request.
    pub(crate) async fn call(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: Result<Bytes, TooLarge>,
        panics: &Counter,
    ) -> Response<Bytes> {
        let body = match body {
            Ok(body) => body,
            Err(error) => return unreadable(path, StatusCode::PAYLOAD_TOO_LARGE, &error),
        };
        if body.is_empty() {
            return unreadable(path, StatusCode::BAD_REQUEST, &"request body is empty");
        }
        let content_type =
            headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !is_json(content_type) {
            let error = format_args!("contentType={content_type}, expected application/json");
            return unreadable(path, StatusCode::BAD_REQUEST, &error);
        }
        let (version, request) = match read_review(&body) {
            Ok(review) => review,
            Err(error) => return unreadable(path, StatusCode::BAD_REQUEST, &error),
        };
        drop(body);
        let span = tracing::info_span!(
            "webhook",
            path,
            request_id = %request.uid,
            operation = request.raw_operation(),
            resource = %request.resource.resource,
            object = %request.key(),
            user = request.user(),
        );
        let request = Arc::new(request);
        async {
            tracing::trace!("received request");
            let response = self.handle_counted(Arc::clone(&request), Some(panics)).await;
            tracing::trace!(allowed = response.allowed, code = response.result.code, "wrote response");
            review(StatusCode::OK, version, &request.uid, response)
        }
        .instrument(span)
        .await
    }
}

/// The response to an invalid review. There is no request, and so no uid: the API server treats it as a failed call in any
/// case, and reports the message of the status.
fn unreadable(path: &str, code: StatusCode, error: &dyn fmt::Display) -> Response<Bytes> {
    tracing::error!(path, %error, "bad request");
    review(code, API_VERSIONS[0], "", AdmissionResponse::errored(code.as_u16(), error))
}

fn review(code: StatusCode, version: &str, uid: &str, response: AdmissionResponse) -> Response<Bytes> {
    let body = write_review(version, uid, response).or_else(|error| {
        tracing::error!(%error, "unable to encode response");
        write_review(version, uid, AdmissionResponse::errored(500, "unable to encode response"))
    });
    json(code, body.unwrap_or_default())
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

impl fmt::Debug for AdmissionHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionHook").field("recover_panic", &self.recover_panic).finish_non_exhaustive()
    }
}
