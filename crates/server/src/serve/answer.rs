//! Requests of a connection and their answers: counted while they are under way, and cut off when nobody takes them.
//!
//! A client that does not read from its socket is noticed there (`guarded.rs`). With HTTP/2 it can read and still take
//! nothing of one answer, by leaving the stream's window closed: the server then holds the answer and whatever it is made
//! of. So the task of a stream looks whether its answer is asked for more.

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
use http::{Request, Response, Version};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::rt::TokioExecutor;
use k1s_env::{Env, Sleep};
use tower::Service as _;

use super::connections::{Connection, Working};
use crate::{ApiServer, Body};

/// The server, as one connection sees it.
#[derive(Clone)]
pub(super) struct Attended {
    pub(super) server: ApiServer,
    pub(super) connection: Arc<Connection>,
}

impl hyper::service::Service<Request<Incoming>> for Attended {
    type Response = Response<Sent>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Answering {
        let working = self.connection.work(request.version() == Version::HTTP_2);
        Answering { answer: self.server.clone().call(request), working: Some(working) }
    }
}

/// A request that is worked on.
pub(super) struct Answering {
    answer: <ApiServer as tower::Service<Request<Incoming>>>::Future,
    working: Option<Working>,
}

impl Future for Answering {
    type Output = Result<Response<Sent>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Poll::Ready(answer) = self.answer.as_mut().poll(cx) else { return Poll::Pending };
        let delivery = DELIVERY.try_with(Arc::clone).ok();
        if let Some(delivery) = &delivery {
            delivery.begun.store(true, Ordering::Relaxed);
        }
        let working = self.working.take();
        Poll::Ready(
            answer.map(|answer| {
                answer.map(|body| Sent { body, rest: Bytes::new(), delivery, _working: working })
            }),
        )
    }
}

/// An answer goes over HTTP/2 in pieces of this size: what is taken of it is seen piece by piece.
const PIECE: usize = 64 << 10;

/// The body of an answer on its way.
pub(super) struct Sent {
    body: Body,
    /// What is left of a large piece.
    rest: Bytes,
    delivery: Option<Arc<Delivery>>,
    _working: Option<Working>,
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        let Some(delivery) = &this.delivery else { return Pin::new(&mut this.body).poll_frame(cx) };
        delivery.asked.fetch_add(1, Ordering::Relaxed);
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
        let piece = this.rest.split_to(PIECE.min(this.rest.len()));
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
    /// The delivery that the task of an HTTP/2 stream is about.
    static DELIVERY: Arc<Delivery>;
}

/// What the task of a stream and the body of its answer know of each other.
#[derive(Default)]
struct Delivery {
    /// There is an answer.
    begun: AtomicBool,
    /// How often it was asked for more.
    asked: AtomicU64,
    /// It has no more for now, or has ended: it is not the client's fault if nothing happens.
    waits: AtomicBool,
}

impl Delivery {
    /// If the client could take something: how often it has.
    fn stands_at(&self) -> Option<u64> {
        let stands = self.begun.load(Ordering::Relaxed) && !self.waits.load(Ordering::Relaxed);
        stands.then(|| self.asked.load(Ordering::Relaxed))
    }
}

/// Runs the streams of HTTP/2 connections.
#[derive(Clone)]
pub(super) struct Streams {
    pub(super) env: Env,
    pub(super) patience: Duration,
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        let Streams { env, patience } = self.clone();
        hyper::rt::Executor::execute(&TokioExecutor::new(), async move {
            let delivery = Arc::new(Delivery::default());
            let mut stream = pin!(DELIVERY.scope(delivery.clone(), stream));
            let mut stalled: Option<(u64, Sleep)> = None;
            poll_fn(|cx| {
                if stream.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(());
                }
                let Some(at) = delivery.stands_at() else {
                    stalled = None;
                    return Poll::Pending;
                };
                match &mut stalled {
                    // What is dropped unfinished is reset.
                    Some((before, sleep)) if *before == at => Pin::new(sleep).poll(cx),
                    _ => {
                        let mut sleep = env.sleep(patience);
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
