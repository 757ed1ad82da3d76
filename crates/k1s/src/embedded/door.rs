//! The in-process service: counts requests in flight, and rejects new ones when the runtime stops.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use http::{HeaderValue, Request, Response, header};
use k1s_env::{Component, WorkGuard};
use k1s_server::{ApiServer, Body, Status};
use tower::Service;

/// The server, with its requests counted.
#[derive(Clone)]
pub(crate) struct Door {
    server: ApiServer,
    requests: Component,
}

impl Door {
    pub(crate) fn new(server: ApiServer, requests: Component) -> Door {
        Door { server, requests }
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// A response in progress, without the body of a watch: watches end when the server stops.
pub(crate) enum Answering {
    Admitted { answer: Answer, guard: Option<WorkGuard> },
    Refused,
}

impl<B> Service<Request<B>> for Door
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<k1s_runtime::BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answering {
        match self.requests.begin(format!("{} {}", request.method(), request.uri().path())) {
            Ok(guard) => Answering::Admitted { answer: self.server.call(request), guard: Some(guard) },
            Err(_) => Answering::Refused,
        }
    }
}

impl Future for Answering {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Answering::Admitted { answer, guard } => {
                let answered = answer.as_mut().poll(cx);
                if answered.is_ready()
                    && let Some(guard) = guard.take()
                {
                    guard.succeed();
                }
                answered
            }
            Answering::Refused => Poll::Ready(Ok(unavailable("the control plane has been stopped"))),
        }
    }
}

/// A 503 response with a message.
pub(crate) fn unavailable(message: &str) -> Response<Body> {
    let status = Status::new(503, "ServiceUnavailable", message);
    let mut response = Response::new(Body::from(status.to_json().to_string().into_bytes()));
    *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
