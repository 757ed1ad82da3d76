//! The way to a server that is restarted, through a network that loses, delays and cuts.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use k1s_env::Env;
use k1s_runtime::BoxError;
use k1s_server::{ApiServer, Body};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// What is between all clients and the server.
#[derive(Clone)]
pub(crate) struct Network {
    env: Env,
    state: Arc<Mutex<State>>,
}

struct State {
    server: ApiServer,
    /// Out of 100 requests, so many have bad luck.
    faults: u64,
    /// None of them comes through.
    cut_off: bool,
    /// All answers of before are cut when it is cancelled.
    cut: CancellationToken,
    /// Counts requests, to see whether something moves.
    requests: u64,
    /// What was asked, and what became of it.
    log: Vec<String>,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Fine,
    /// The server says this, and does nothing.
    Refused(u16, Option<u32>),
    /// It does not come to the server.
    Dropped,
    /// It is done, and the answer is lost.
    AnswerLost,
    /// Nobody ever says anything.
    Hangs,
    /// The answer ends in an error after so many bytes.
    CutAfter(usize),
    /// The answer does not end and brings no more after so many bytes.
    SilentAfter(usize),
    /// A watch that is told to list anew.
    Expired,
    /// It comes there late, or its answer does.
    Late(Duration, bool),
}

impl Network {
    pub(crate) fn new(env: &Env, server: ApiServer) -> Network {
        let (cut, log) = (CancellationToken::new(), Vec::new());
        let state = State { server, faults: 0, cut_off: false, cut, requests: 0, log };
        Network { env: env.clone(), state: Arc::new(Mutex::new(state)) }
    }

    pub(crate) fn set_faults(&self, of_hundred: u64) {
        self.state.lock().faults = of_hundred;
    }

    /// Cuts all connections of those who may have bad luck, and makes none; or does again.
    pub(crate) fn set_cut_off(&self, cut_off: bool) {
        self.state.lock().cut_off = cut_off;
        self.cut();
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        let cut = std::mem::take(&mut self.state.lock().cut);
        cut.cancel();
    }

    /// Another server takes over: all connections are cut.
    pub(crate) fn replace(&self, server: ApiServer) {
        let old = std::mem::replace(&mut self.state.lock().server, server);
        old.shutdown();
        self.cut();
    }

    pub(crate) fn server(&self) -> ApiServer {
        self.state.lock().server.clone()
    }

    pub(crate) fn requests(&self) -> u64 {
        self.state.lock().requests
    }

    pub(crate) fn note(&self, what: &str) {
        let at = self.env.now();
        self.state.lock().log.push(format!("{at:?} {what}"));
    }

    /// All that was asked, in order.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().log)
    }

    /// A client whose requests may have bad luck, if `unlucky`; ended by `dead`.
    pub(crate) fn client(&self, unlucky: bool, dead: &CancellationToken) -> kube::Client {
        kube::Client::new(Line { network: self.clone(), unlucky, dead: dead.clone() }, "default")
    }

    fn fate(&self, request: &Request<kube::client::Body>, faults: u64) -> Fate {
        let below = |bound| self.env.random_below(bound);
        if below(100) >= faults {
            return Fate::Fine;
        }
        let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let bytes = usize::try_from(below(3000)).unwrap();
        if watch {
            return match below(8) {
                0 => Fate::Refused(500, None),
                1 => Fate::Refused(429, Some(1)),
                2 => Fate::Dropped,
                3 => Fate::Refused(410, None),
                4 => Fate::Expired,
                5 => Fate::SilentAfter(bytes),
                _ => Fate::CutAfter(bytes),
            };
        }
        let change = [Method::PUT, Method::PATCH].contains(request.method());
        match below(12) {
            0 => Fate::Refused(500, None),
            1 => Fate::Refused(503, None),
            2 => Fate::Refused(429, Some(1)),
            3 => Fate::Refused(429, None),
            4 => Fate::Dropped,
            5 | 6 => Fate::AnswerLost,
            7 => Fate::CutAfter(bytes / 10),
            8 if below(4) == 0 => Fate::Hangs,
            9 | 10 if change => Fate::Refused(409, None),
            _ => Fate::Late(Duration::from_millis(below(1500)), below(2) == 0),
        }
    }
}

/// One client's way.
#[derive(Clone)]
struct Line {
    network: Network,
    unlucky: bool,
    dead: CancellationToken,
}

type Answer = UnsyncBoxBody<Bytes, io::Error>;

impl tower::Service<Request<kube::client::Body>> for Line {
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let (network, dead) = (self.network.clone(), self.dead.clone());
        let (server, cut, faults, cut_off) = {
            let mut state = network.state.lock();
            state.requests += 1;
            let faults = if self.unlucky { state.faults } else { 0 };
            (state.server.clone(), state.cut.clone(), faults, self.unlucky && state.cut_off)
        };
        let fate = match faults {
            _ if cut_off => Fate::Dropped,
            0 => Fate::Fine,
            faults => network.fate(&request, faults),
        };
        let who = if self.unlucky { "operator" } else { "user" };
        let what = format!("{who} {} {} {fate:?}", request.method(), request.uri());
        Box::pin(async move {
            let answered = tokio::select! {
                biased;
                () = dead.cancelled() => Err("this client is dead".into()),
                () = cut.cancelled() => Err("the connection was cut".into()),
                answer = meet(&network.env, server, request, fate) => answer,
            };
            network.note(&match &answered {
                Ok(answer) => format!("{what} {}", answer.status()),
                Err(error) => format!("{what} {error}"),
            });
            let answer = answered?;
            let over = cut.child_token();
            let (left, silent) = match fate {
                Fate::CutAfter(bytes) => (Some(bytes), false),
                Fate::SilentAfter(bytes) => (Some(bytes), true),
                _ => (None, false),
            };
            Ok(answer.map(|body| {
                let (over, dead) = (Box::pin(over.cancelled_owned()), Box::pin(dead.cancelled_owned()));
                Shaky { body, over, dead, left, silent }.boxed_unsync()
            }))
        })
    }
}

async fn meet(
    env: &Env,
    mut server: ApiServer,
    request: Request<kube::client::Body>,
    fate: Fate,
) -> Result<Response<Answer>, BoxError> {
    match fate {
        Fate::Refused(code, wait) => return refusal(code, wait),
        Fate::Dropped => return Err("the connection could not be made".into()),
        Fate::Hangs => std::future::pending::<()>().await,
        Fate::Late(by, true) => env.sleep(by).await,
        Fate::Expired => {
            let line = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old","reason":"Expired","code":410}}"#;
            return Ok(Response::new(full(format!("{line}\n"))));
        }
        _ => {}
    }
    let answer = tower::Service::call(&mut server, request).await?;
    match fate {
        Fate::AnswerLost => return Err("the connection was lost".into()),
        Fate::Late(by, false) => env.sleep(by).await,
        _ => {}
    }
    Ok(answer.map(|body: Body| body.map_err(io::Error::other).boxed_unsync()))
}

fn full(text: String) -> Answer {
    Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync()
}

fn refusal(code: u16, wait: Option<u32>) -> Result<Response<Answer>, BoxError> {
    let reason = match code {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        _ => "InternalError",
    };
    let body = format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"bad luck","reason":"{reason}","code":{code}}}"#
    );
    let mut response = Response::builder().status(code);
    if let Some(wait) = wait {
        response = response.header("retry-after", wait);
    }
    Ok(response.body(full(body))?)
}

/// A body that can be cut, in the middle of a line as well.
struct Shaky<F> {
    body: Answer,
    over: Pin<Box<F>>,
    dead: Pin<Box<F>>,
    /// So many bytes still come.
    left: Option<usize>,
    /// What happens then: nothing, for ever, or an error.
    silent: bool,
}

impl<F: Future<Output = ()>> http_body::Body for Shaky<F> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.over.as_mut().poll(cx).is_ready() || self.dead.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(io::Error::other("the connection was cut"))));
        }
        if self.left == Some(0) {
            return if self.silent {
                Poll::Pending
            } else {
                Poll::Ready(Some(Err(io::Error::other("the connection was lost"))))
            };
        }
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
        let (Some(left), Some(data)) = (self.left, frame.data_ref()) else {
            return Poll::Ready(Some(Ok(frame)));
        };
        let part = data.slice(..data.len().min(left));
        self.left = Some(left - part.len());
        Poll::Ready(Some(Ok(Frame::data(part))))
    }
}
