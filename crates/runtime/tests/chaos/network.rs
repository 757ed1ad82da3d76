//! A faulty network to a server that restarts: it drops, delays and cuts connections.

use std::{
    collections::HashMap,
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

/// The network between all clients and the server.
#[derive(Clone)]
pub(crate) struct Network {
    env: Env,
    state: Arc<Mutex<State>>,
}

struct State {
    server: ApiServer,
    /// Percentage of requests that suffer a fault.
    faults: u64,
    /// Drops all requests of faulty clients.
    cut_off: bool,
    /// Cancelling it cuts all responses in progress.
    cut: CancellationToken,
    /// Number of requests; changes while something is in progress.
    requests: u64,
    seed: u64,
    /// Number of requests by method and path.
    times: HashMap<String, u64>,
    /// The requests and their outcomes.
    log: Vec<String>,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Fine,
    /// The server responds with this code and does nothing.
    Refused(u16, Option<u32>),
    /// The request does not reach the server.
    Dropped,
    /// The request succeeds and the response is lost.
    AnswerLost,
    /// There is never a response.
    Hangs,
    /// The response ends in an error after this many bytes.
    CutAfter(usize),
    /// The response stalls after this many bytes.
    SilentAfter(usize),
    /// The watch ends with an `Expired` event and has to list again.
    Expired,
    /// The request is delayed, or the response if `false`.
    Late(Duration, bool),
}

impl Network {
    pub(crate) fn new(env: &Env, server: ApiServer) -> Network {
        let (cut, log, seed) = (CancellationToken::new(), Vec::new(), env.random());
        let times = HashMap::new();
        let state = State { server, faults: 0, cut_off: false, cut, requests: 0, seed, times, log };
        Network { env: env.clone(), state: Arc::new(Mutex::new(state)) }
    }

    pub(crate) fn set_faults(&self, of_hundred: u64) {
        self.state.lock().faults = of_hundred;
    }

    /// Cuts all connections of faulty clients and refuses new ones, until it is reset.
    pub(crate) fn set_cut_off(&self, cut_off: bool) {
        self.state.lock().cut_off = cut_off;
        self.cut();
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        let cut = std::mem::take(&mut self.state.lock().cut);
        cut.cancel();
    }

    /// Switches to another server and cuts all connections.
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

    /// Takes the log of all requests, in order.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().log)
    }

    /// A client whose requests may suffer faults if `faulty`; `dead` disconnects it.
    pub(crate) fn client(&self, faulty: bool, dead: &CancellationToken) -> kube::Client {
        kube::Client::new(Line { network: self.clone(), faulty, dead: dead.clone() }, "default")
    }

    /// The random numbers of a request: the same for the n-th one to the same path, independent of the order
    /// of concurrent requests, which the simulation does not determine.
    fn dice(&self, request: &Request<kube::client::Body>) -> Dice {
        let watch = is_watch(request);
        let what = format!("{} {} {watch}", request.method(), request.uri().path());
        let mut state = self.state.lock();
        let seed = state.seed;
        let times = state.times.entry(what.clone()).or_default();
        *times += 1;
        let mut dice = Dice(seed ^ times.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for byte in what.bytes() {
            dice.0 = dice.0.wrapping_mul(31).wrapping_add(u64::from(byte));
        }
        dice
    }

    fn fate(request: &Request<kube::client::Body>, faults: u64, dice: &mut Dice) -> Fate {
        let mut below = |bound| dice.below(bound);
        if below(100) >= faults {
            return Fate::Fine;
        }
        let watch = is_watch(request);
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

fn is_watch(request: &Request<kube::client::Body>) -> bool {
    request.uri().query().is_some_and(|query| query.contains("watch=true"))
}

/// Random numbers determined by a seed (`SplitMix64`).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    /// Network latency, fine-grained so that two are hardly ever equal.
    fn latency(&mut self) -> Duration {
        Duration::from_nanos(10_000 + self.below(3_000_000))
    }
}

/// One client's connection.
#[derive(Clone)]
struct Line {
    network: Network,
    faulty: bool,
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
        let mut dice = network.dice(&request);
        let (server, cut, faults, cut_off) = {
            let mut state = network.state.lock();
            state.requests += 1;
            let faults = if self.faulty { state.faults } else { 0 };
            (state.server.clone(), state.cut.clone(), faults, self.faulty && state.cut_off)
        };
        let fate = match faults {
            _ if cut_off => Fate::Dropped,
            0 => Fate::Fine,
            faults => Network::fate(&request, faults, &mut dice),
        };
        let watch = is_watch(&request);
        let client = if self.faulty { "operator" } else { "user" };
        let what = format!("{client} {} {} {fate:?}", request.method(), request.uri());
        Box::pin(async move {
            let answered = tokio::select! {
                biased;
                () = dead.cancelled() => Err("this client is disconnected".into()),
                () = cut.cancelled() => Err("the connection was cut".into()),
                answer = async {
                    network.env.sleep(dice.latency()).await;
                    let answer = deliver(&network.env, server, request, fate).await;
                    network.env.sleep(dice.latency()).await;
                    answer
                } => answer,
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
                let late = watch.then(|| Late { env: network.env.clone(), dice, on_its_way: None });
                FaultyBody { body, over, dead, left, silent, late }.boxed_unsync()
            }))
        })
    }
}

async fn deliver(
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
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected fault","reason":"{reason}","code":{code}}}"#
    );
    let mut response = Response::builder().status(code);
    if let Some(wait) = wait {
        response = response.header("retry-after", wait);
    }
    Ok(response.body(full(body))?)
}

/// A body that can be cut, even in the middle of a line.
struct FaultyBody<F> {
    body: Answer,
    over: Pin<Box<F>>,
    dead: Pin<Box<F>>,
    /// Remaining bytes before the fault.
    left: Option<usize>,
    /// Whether the fault is a stall; otherwise it is an error.
    silent: bool,
    /// Delays of watch frames, each after the one before.
    late: Option<Late>,
}

struct Late {
    env: Env,
    dice: Dice,
    on_its_way: Option<(k1s_env::Sleep, Bytes)>,
}

impl<F: Future<Output = ()>> http_body::Body for FaultyBody<F> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.over.as_mut().poll(cx).is_ready() || self.dead.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(io::Error::other("the connection was cut"))));
        }
        if let Some((sleep, _)) = self.late.as_mut().and_then(|late| late.on_its_way.as_mut()) {
            std::task::ready!(Pin::new(sleep).poll(cx));
            let arrived = self.late.as_mut().and_then(|late| late.on_its_way.take());
            return Poll::Ready(arrived.map(|(_, data)| Ok(Frame::data(data))));
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
        let Ok(mut data) = frame.into_data() else { return Poll::Ready(Some(Ok(Frame::data(Bytes::new())))) };
        if let Some(left) = self.left {
            data.truncate(left);
            self.left = Some(left - data.len());
        }
        let Some(late) = &mut self.late else { return Poll::Ready(Some(Ok(Frame::data(data)))) };
        let latency = late.dice.latency();
        late.on_its_way = Some((late.env.sleep(latency), data));
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
