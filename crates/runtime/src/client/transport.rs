//! Sends requests: counts and tracks them, and retries when the server asks for it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use k1s_env::{Component, Env, WorkGuard};
use kube::{client::Body, core::Status};

use super::{Call, Error, telemetry::Telemetry};

/// Maximum `Retry-After` honored within a call; a longer one is returned to the caller as an error.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);

pub(super) const JSON: &str = "application/json";
pub(super) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
pub(super) const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The parts of a request, which may be sent more than once.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) method: Method,
    /// Path and query.
    pub(super) uri: String,
    pub(super) accept: &'static str,
    pub(super) content_type: &'static str,
    pub(super) body: Bytes,
}

impl Outgoing {
    pub(super) fn get(uri: String, accept: &'static str) -> Outgoing {
        Outgoing { method: Method::GET, uri, accept, content_type: JSON, body: Bytes::new() }
    }

    fn request(&self, streaming: bool) -> Result<Request<Body>, http::Error> {
        let mut request =
            Request::builder().method(self.method.clone()).uri(&self.uri).header(header::ACCEPT, self.accept);
        if streaming {
            // A compressed stream delays events until a block is full, or ends after its first member.
            request = request.header(header::ACCEPT_ENCODING, "identity");
        }
        if !self.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, self.content_type);
        }
        request.body(Body::from(self.body.clone()))
    }
}

pub(super) struct Transport {
    pub(super) client: kube::Client,
    pub(super) env: Env,
    pub(super) telemetry: Arc<Telemetry>,
    pub(super) tracked: Option<Component>,
    pub(super) retries: u32,
}

impl Transport {
    /// Sends a request and reads the whole response.
    ///
    /// This and [`open`](Self::open) are boxed: callers are generic, and the body of an async function is compiled again in
    /// every crate that awaits it, here with all of `kube::Client`.
    #[inline(never)]
    pub(super) fn exchange<'a>(
        &'a self,
        call: &'a Call<'_>,
        outgoing: &'a Outgoing,
    ) -> BoxFuture<'a, Result<Bytes, Error>> {
        Box::pin(self.send_and_collect(call, outgoing))
    }

    async fn send_and_collect(&self, call: &Call<'_>, outgoing: &Outgoing) -> Result<Bytes, Error> {
        let guard = self.begin(call)?;
        let response = self.send(call, outgoing, false).await?;
        let body = response.into_body().collect().await;
        let bytes = body.map_err(|error| lost(call, error))?.to_bytes();
        if let Some(guard) = guard {
            guard.succeed();
        }
        Ok(bytes)
    }

    /// Sends a request and returns the body as a stream. Tracked until the body starts: an idle watch is not work.
    #[inline(never)]
    pub(super) fn open<'a>(
        &'a self,
        call: &'a Call<'_>,
        outgoing: &'a Outgoing,
    ) -> BoxFuture<'a, Result<Body, Error>> {
        Box::pin(self.send_and_stream(call, outgoing))
    }

    async fn send_and_stream(&self, call: &Call<'_>, outgoing: &Outgoing) -> Result<Body, Error> {
        let guard = self.begin(call)?;
        let response = self.send(call, outgoing, true).await?;
        if let Some(guard) = guard {
            guard.succeed();
        }
        Ok(response.into_body())
    }

    fn begin(&self, call: &Call<'_>) -> Result<Option<WorkGuard>, Error> {
        let Some(tracked) = &self.tracked else { return Ok(None) };
        let guard = tracked.begin(call.to_string());
        guard.map(Some).map_err(|source| Error::Refused { target: Box::new(call.target()), source })
    }

    async fn send(
        &self,
        call: &Call<'_>,
        outgoing: &Outgoing,
        streaming: bool,
    ) -> Result<Response<Body>, Error> {
        let mut retries = self.retries;
        loop {
            let request = outgoing.request(streaming).map_err(|error| {
                Error::invalid(call.target(), format!("{:?} is not a path: {error}", outgoing.uri))
            })?;
            let answer = self.client.send(request).await;
            self.telemetry.answered(&outgoing.method, answer.as_ref().ok());
            let response = answer.map_err(|error| lost(call, error))?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            let wait = retry_after(&response);
            // A server that sends `Retry-After` has not processed the request, so a write can be repeated, too.
            let is_retryable = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
            if let Some(wait) = wait.filter(|wait| is_retryable && retries > 0 && *wait <= MAX_RETRY_AFTER) {
                retries -= 1;
                drop(response);
                self.env.sleep(wait).await;
                continue;
            }
            return Err(refusal(call, response, wait).await);
        }
    }
}

/// The seconds of a `Retry-After`; Kubernetes API servers send no dates.
fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let text = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

async fn refusal(call: &Call<'_>, response: Response<Body>, wait: Option<Duration>) -> Error {
    let code = response.status();
    let body = match response.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return lost(call, error),
    };
    status_error(call, code.as_u16(), &body, wait)
}

/// The error of a `Status`, or of another body: proxies respond with their own pages.
pub(super) fn status_error(call: &Call<'_>, code: u16, body: &[u8], wait: Option<Duration>) -> Error {
    let mut status = serde_json::from_slice::<Status>(body).ok().filter(|status| status.status.is_some());
    let status = status.take().unwrap_or_else(|| {
        let text = String::from_utf8_lossy(body);
        let text: String = text.trim().chars().take(1024).collect();
        Status::failure(&text, "").with_code(code)
    });
    let status = if status.code == 0 { status.with_code(code) } else { status };
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    let in_status = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
    Error::api(call.target(), status, wait.or(in_status))
}

fn lost(call: &Call<'_>, error: kube::Error) -> Error {
    Error::Transport { target: Box::new(call.target()), source: Box::new(error) }
}
