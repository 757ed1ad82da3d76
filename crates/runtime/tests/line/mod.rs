//! A faulty connection to an in-process server, and a virtual clock.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of this")]

use std::{
    convert::Infallible,
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use k1s_env::{Env, VirtualClock};
use k1s_server::{ApiServer, Body, ServerOptions, User};
use k1s_store::MemoryStore;
use kube::Client;
use parking_lot::Mutex;

/// A server in real time: its own background work is not under test.
pub async fn server() -> ApiServer {
    let store = Arc::new(MemoryStore::default());
    let server = ApiServer::new(Env::system(), store, ServerOptions::default()).await.unwrap();
    server.as_user(User::admin())
}

/// The state of the network for a client's requests.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Network {
    Fine,
    /// The server responds with this code and does nothing.
    Fails(StatusCode),
    /// Requests never arrive.
    Hangs,
    /// Changes are made and the response is lost.
    LosesAnswers,
    /// The same, and the changes are made this much later.
    Late(Duration),
}

/// The usual server error.
pub const BROKEN: Network = Network::Fails(StatusCode::INTERNAL_SERVER_ERROR);

/// A client's connection to the server.
#[derive(Clone)]
pub struct Line {
    env: Env,
    server: ApiServer,
    network: Arc<Mutex<Network>>,
    requests: Arc<Mutex<usize>>,
}

impl Line {
    pub fn new(env: &Env, server: &ApiServer) -> Line {
        Line {
            env: env.clone(),
            server: server.clone(),
            network: Arc::new(Mutex::new(Network::Fine)),
            requests: Arc::default(),
        }
    }

    pub fn set(&self, network: Network) {
        *self.network.lock() = network;
    }

    pub fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// Number of requests sent.
    pub fn requests(&self) -> usize {
        *self.requests.lock()
    }
}

impl<B> tower::Service<Request<B>> for Line
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        *self.requests.lock() += 1;
        let network = *self.network.lock();
        let (mut server, env) = (self.server.clone(), self.env.clone());
        let writes = request.method() != Method::GET;
        Box::pin(async move {
            match network {
                Network::Hangs => std::future::pending().await,
                Network::Fails(status) => {
                    let status = status.as_u16();
                    let body = format!(
                        r#"{{"kind":"Status","status":"Failure","message":"broken","code":{status}}}"#
                    );
                    let answer = Response::builder().status(status).body(Body::from(Bytes::from(body)));
                    Ok(answer.unwrap())
                }
                Network::LosesAnswers if writes => {
                    let _ = server.call(request).await;
                    std::future::pending().await
                }
                Network::Late(by) if writes => {
                    let sleep = env.sleep(by);
                    let late = async move {
                        sleep.await;
                        let _ = server.call(request).await;
                    };
                    drop(env.spawn("late", late));
                    std::future::pending().await
                }
                _ => server.call(request).await,
            }
        })
    }
}

/// The clock of a simulation.
#[derive(Clone)]
pub struct Time {
    pub env: Env,
    pub clock: VirtualClock,
}

impl Time {
    pub fn new(seed: u64) -> Time {
        let (env, clock) = Env::simulated(seed);
        Time { env, clock }
    }

    /// Waits until everything that can happen now has happened. The client's tasks are not tracked by the
    /// environment, but on a single-threaded runtime each gets a turn.
    pub async fn settle(&self) {
        for _ in 0..20 {
            for _ in 0..20 {
                self.env.yield_now().await;
            }
            self.clock.settle().await;
        }
    }

    /// Advances the clock, deadline by deadline, until `done` completes.
    pub async fn until<T>(&self, done: impl Future<Output = T>) -> T {
        let mut done = pin!(done);
        let limit = self.env.now() + Duration::from_secs(7200);
        loop {
            tokio::select! {
                biased;
                done = &mut done => return done,
                () = self.settle() => {}
            }
            assert!(self.env.now() < limit, "still not done");
            assert!(self.clock.advance_to_next(), "no task waits for the clock");
        }
    }

    /// Lets this much time pass.
    pub async fn pass(&self, d: Duration) {
        let target = self.env.now() + d;
        self.settle().await;
        while let Some(next) = self.clock.next_deadline().filter(|next| *next <= target) {
            self.clock.advance(next - self.env.now());
            self.settle().await;
        }
        self.clock.advance(target - self.env.now());
        self.settle().await;
    }
}
