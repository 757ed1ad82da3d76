//! Requests of a connection and their responses: counted while in flight, and reset when the client stops reading.
//!
//! A client that does not read from its socket is detected in `guarded.rs`. An HTTP/2 client can read from the socket and
//! still stall one response by leaving the stream's flow-control window closed, and the server would hold the response
//! and its objects in memory. So the task of each stream checks that its response body keeps being polled.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, Version};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::rt::TokioExecutor;
use k1s_env::{Env, Sleep};
use tower::Service as _;

use super::connections::{ActiveRequest, CloseSignal, Connection};
use crate::{ApiServer, Body, audit::Remote, identity::Peer};

/// The hyper service of one connection.
#[derive(Clone)]
pub(super) struct ConnectionService {
    pub(super) server: ApiServer,
    pub(super) connection: Arc<Connection>,
    /// The client, by its certificate.
    pub(super) peer: Option<Arc<Peer>>,
    pub(super) remote: Remote,
}

impl hyper::service::Service<Request<Incoming>> for ConnectionService {
    type Response = Response<TrackedBody>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn call(&self, mut request: Request<Incoming>) -> ResponseFuture {
        if let Some(peer) = &self.peer {
            request.extensions_mut().insert(peer.clone());
        }
        if self.server.shared().audit.is_some() {
            request.extensions_mut().insert(self.remote);
        }
        let active = self.connection.begin_request(request.version() == Version::HTTP_2);
        let is_http2 = request.version() == Version::HTTP_2;
        let connection = Some(self.connection.clone());
        ResponseFuture {
            answer: self.server.clone().call(request),
            active: Some(active),
            connection,
            is_http2,
        }
    }
}

/// A request being handled.
pub(super) struct ResponseFuture {
    answer: <ApiServer as tower::Service<Request<Incoming>>>::Future,
    active: Option<ActiveRequest>,
    /// `None` once there is a response.
    connection: Option<Arc<Connection>>,
    is_http2: bool,
}

impl Drop for ResponseFuture {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            connection.set_waited(false);
        }
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<TrackedBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Poll::Ready(answer) = self.answer.as_mut().poll(cx) else { return Poll::Pending };
        let delivery = DELIVERY.try_with(Arc::clone).ok();
        if let Some(delivery) = &delivery {
            delivery.begun.store(true, Ordering::Relaxed);
        }
        if let Some(connection) = self.connection.take() {
            connection.set_waited(true);
            // As kube-apiserver does: whoever is not authenticated gets no second request on the connection.
            if self.is_http2
                && answer.as_ref().is_ok_and(|answer| answer.status() == StatusCode::UNAUTHORIZED)
            {
                connection.send(CloseSignal::Drain);
            }
        }
        let active = self.active.take();
        Poll::Ready(answer.map(|answer| {
            answer.map(|body| TrackedBody { body, rest: Bytes::new(), delivery, _request: active })
        }))
    }
}

/// Maximum size of a data frame handed to HTTP/2, so that progress on a large response is visible.
pub(super) const MAX_FRAME_BYTES: usize = 64 << 10;

/// The body of a response being sent.
pub(super) struct TrackedBody {
    body: Body,
    /// The remainder of a frame that was split.
    rest: Bytes,
    delivery: Option<Arc<Delivery>>,
    _request: Option<ActiveRequest>,
}

impl http_body::Body for TrackedBody {
    type Data = Bytes;
    type Error = <Body as http_body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let Some(delivery) = &this.delivery else { return Pin::new(&mut this.body).poll_frame(cx) };
        delivery.polls.fetch_add(1, Ordering::Relaxed);
        if this.rest.is_empty() {
            let polled = Pin::new(&mut this.body).poll_frame(cx);
            delivery.waits.store(!matches!(polled, Poll::Ready(Some(_))), Ordering::Relaxed);
            match polled {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                other => return other,
            }
        }
        let piece = this.rest.split_to(MAX_FRAME_BYTES.min(this.rest.len()));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(body.lower() + rest);
        hint
    }
}

tokio::task_local! {
    /// The delivery of the current HTTP/2 stream's task.
    static DELIVERY: Arc<Delivery>;
}

/// State shared by the task of a stream and the body of its response.
#[derive(Default)]
struct Delivery {
    /// The response has started.
    begun: AtomicBool,
    /// How often the body was polled.
    polls: AtomicU64,
    /// The body is pending or has ended: a lack of progress is not the client's fault.
    waits: AtomicBool,
}

impl Delivery {
    /// The poll count, if the response has data that the client could read.
    fn polls_of_readable(&self) -> Option<u64> {
        let readable = self.begun.load(Ordering::Relaxed) && !self.waits.load(Ordering::Relaxed);
        readable.then(|| self.polls.load(Ordering::Relaxed))
    }
}

/// Runs the streams of HTTP/2 connections.
#[derive(Clone)]
pub(super) struct StreamExecutor {
    pub(super) env: Env,
    pub(super) write_timeout: Duration,
}

impl<F> hyper::rt::Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        let StreamExecutor { env, write_timeout } = self.clone();
        hyper::rt::Executor::execute(&TokioExecutor::new(), async move {
            let delivery = Arc::new(Delivery::default());
            let mut stream = pin!(DELIVERY.scope(delivery.clone(), stream));
            let mut stalled: Option<(u64, Sleep)> = None;
            poll_fn(|cx| {
                if stream.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(());
                }
                let Some(at) = delivery.polls_of_readable() else {
                    stalled = None;
                    return Poll::Pending;
                };
                match &mut stalled {
                    // Dropping an unfinished stream resets it.
                    Some((before, sleep)) if *before == at => Pin::new(sleep).poll(cx),
                    _ => {
                        let mut sleep = env.sleep(write_timeout);
                        let over = Pin::new(&mut sleep).poll(cx);
                        stalled = Some((at, sleep));
                        over
                    }
                }
            })
            .await;
        });
    }
}
