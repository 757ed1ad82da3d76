//! The client over HTTP/2, with servers that speak something else, close connections, or do not answer.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "modules of a test")]

mod server;

use std::{
    convert::Infallible,
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use k1s_env::{Env, VirtualClock};
use k1s_runtime::{
    ObjectKey,
    client::{Client, ClientOptions, Error, Http2Connections, http2},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use server::{Manners, Options, Server, body, text, version};
use tokio::sync::{Barrier, Notify, mpsc, watch};

fn client(server: &Server) -> kube::Client {
    http2(&Env::system(), server.config()).unwrap()
}

async fn open(client: &kube::Client, path: &str) -> Result<Body, kube::Error> {
    let request = Request::get(path).body(Body::empty()).unwrap();
    Ok(client.send(request).await?.into_body())
}

async fn get(client: &kube::Client, path: &str) -> Result<String, kube::Error> {
    let collected = open(client, path).await?.collect().await?;
    Ok(String::from_utf8(collected.to_bytes().to_vec()).unwrap())
}

async fn next(body: &mut Body) -> Option<Result<Bytes, kube::Error>> {
    loop {
        let data = body.frame().await?.map(|frame| frame.into_data().unwrap());
        // The end of a stream may come as a frame without data.
        if data.as_ref().map_or(true, |data| !data.is_empty()) {
            return Some(data);
        }
    }
}

/// What `/watch` answers is sent by the test.
struct Stream {
    sender: mpsc::UnboundedSender<Bytes>,
    receiver: Mutex<Option<mpsc::UnboundedReceiver<Bytes>>>,
}

impl Stream {
    fn new() -> Arc<Stream> {
        let (sender, receiver) = mpsc::unbounded_channel();
        Arc::new(Stream { sender, receiver: Mutex::new(Some(receiver)) })
    }

    fn answer(&self) -> server::Answer {
        let receiver = self.receiver.lock().unwrap().take().expect("it is asked for once");
        let frames = futures_util::stream::unfold(receiver, |mut receiver| async move {
            let bytes = receiver.recv().await?;
            (!bytes.is_empty()).then_some((Ok::<_, Infallible>(Frame::data(bytes)), receiver))
        });
        body(StreamBody::new(Box::pin(frames)))
    }

    /// Empty at the end.
    fn send(&self, text: &'static str) {
        self.sender.send(Bytes::from_static(text.as_bytes())).unwrap();
    }
}

async fn streaming(options: Options) -> (Server, Arc<Stream>) {
    let stream = Stream::new();
    let of_watch = Arc::clone(&stream);
    let server = Server::start(options, move |request| {
        let stream = Arc::clone(&of_watch);
        async move {
            match request.uri().path() {
                "/watch" => stream.answer(),
                "/hang" => pending().await,
                _ => version(&request),
            }
        }
    });
    (server.await, stream)
}

#[tokio::test]
async fn a_server_without_http_2_is_asked_over_http_1() {
    for protocols in [&["http/1.1"] as &[&str], &[]] {
        let options = Options { protocols, ..Options::default() };
        let server = Server::start(options, async |request| version(&request)).await;
        let client = client(&server);
        for _ in 0..3 {
            assert_eq!(get(&client, "/version").await.unwrap(), "1.1");
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_going_away_finishes_its_answers_and_takes_no_more_requests() {
    let (server, stream) = streaming(Options::default()).await;
    let client = client(&server);
    let mut watch = open(&client, "/watch").await.unwrap();
    stream.send("before");
    assert_eq!(next(&mut watch).await.unwrap().unwrap(), "before");
    server.go_away();
    // Sooner or later the client has heard of it. Until then its requests are answered as well.
    while server.accepted() == 1 {
        assert_eq!(get(&client, "/version").await.unwrap(), "2");
    }
    stream.send("after");
    assert_eq!(next(&mut watch).await.unwrap().unwrap(), "after");
    stream.send("");
    let end = next(&mut watch).await;
    assert!(end.is_none(), "{end:?}");
    assert_eq!(get(&client, "/version").await.unwrap(), "2");
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn requests_of_a_lost_connection_fail_and_the_next_one_opens_another() {
    let (server, stream) = streaming(Options::default()).await;
    let client = client(&server);
    let mut watch = open(&client, "/watch").await.unwrap();
    stream.send("before");
    assert_eq!(next(&mut watch).await.unwrap().unwrap(), "before");
    server.cut();
    next(&mut watch).await.unwrap().unwrap_err();
    assert_eq!(get(&client, "/version").await.unwrap(), "2");
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn requests_beyond_the_limit_of_a_connection_do_not_wait_for_others() {
    const REQUESTS: usize = 23;
    let all = Arc::new(Barrier::new(REQUESTS));
    let server = Server::start(Options { max_streams: 5, ..Options::default() }, move |_| {
        let all = Arc::clone(&all);
        // Nobody is answered before everybody is there.
        async move {
            all.wait().await;
            text("all")
        }
    })
    .await;
    let (client, env) = (client(&server), Env::system());
    let requests = (0..REQUESTS).map(|_| {
        let client = client.clone();
        env.spawn("request", async move { get(&client, "/").await })
    });
    for request in requests.collect::<Vec<_>>() {
        assert_eq!(request.await.unwrap().unwrap(), "all");
    }
    assert_eq!(server.accepted(), REQUESTS.div_ceil(5));
}

#[tokio::test]
async fn a_server_that_allows_no_requests_at_all_is_an_error() {
    let options = Options { max_streams: 0, ..Options::default() };
    let server = Server::start(options, async |request| version(&request)).await;
    let error = get(&client(&server), "/version").await.unwrap_err();
    assert!(chain(&error).contains("allows no requests"), "{}", chain(&error));
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// A client whose timeouts pass when the test says so.
fn simulated(server: &Server) -> (kube::Client, Env, VirtualClock) {
    let (env, clock) = Env::simulated(1);
    let mut config = server.config();
    config.connect_timeout = Some(Duration::from_secs(30));
    config.read_timeout = Some(Duration::from_secs(50));
    (http2(&env, config).unwrap(), env, clock)
}

/// Reads an object that the server does not send, until the client gives up; after how long. `begun`: when time may pass.
async fn gives_up(server: &Server, begun: impl Future<Output = ()>) -> (Duration, Error) {
    let (kube, env, clock) = simulated(server);
    let client = Client::new(kube, ClientOptions { env: env.clone(), ..ClientOptions::default() });
    let began = env.now();
    let read = env.spawn("read", async move {
        client.live().get::<ConfigMap>(&ObjectKey::namespaced("default", "a")).await
    });
    begun.await;
    while !read.is_finished() {
        assert!(env.now() - began < Duration::from_secs(600), "it does not give up");
        clock.advance_and_settle(Duration::from_secs(1)).await;
    }
    (env.now() - began, read.await.unwrap().unwrap_err())
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_in_time() {
    for manners in [Manners::NoHandshake, Manners::NoSettings] {
        let server = Server::start(Options::default(), async |request| version(&request)).await;
        server.behave(manners);
        let (after, error) = gives_up(&server, server.has_accepted(1)).await;
        assert_eq!(after, Duration::from_secs(30), "{manners:?}: {error}");
        assert!(error.is_timeout(), "{}", chain(&error));
    }
    let arrived = Arc::new(Notify::new());
    let signal = Arc::clone(&arrived);
    let hang = move |_| {
        signal.notify_one();
        pending()
    };
    let server = Server::start(Options::default(), hang).await;
    let (after, error) = gives_up(&server, arrived.notified()).await;
    assert_eq!(after, Duration::from_secs(50), "{error}");
    assert!(error.is_timeout(), "{}", chain(&error));
}

#[tokio::test]
async fn an_answer_that_stops_in_the_middle_is_given_up_in_time() {
    let (server, stream) = streaming(Options::default()).await;
    let (client, env, clock) = simulated(&server);
    let mut watch = open(&client, "/watch").await.unwrap();
    for text in ["one", "two"] {
        // The time counts from the last part.
        clock.advance_and_settle(Duration::from_secs(49)).await;
        stream.send(text);
        assert_eq!(next(&mut watch).await.unwrap().unwrap(), text);
    }
    let (polled, is_polled) = watch::channel(());
    let rest = env.spawn("rest", async move {
        polled.send_replace(());
        next(&mut watch).await
    });
    is_polled.clone().changed().await.unwrap();
    while !rest.is_finished() {
        clock.advance_and_settle(Duration::from_secs(1)).await;
    }
    let error = rest.await.unwrap().unwrap().unwrap_err();
    assert!(chain(&error).contains("sent nothing for 50 s"), "{}", chain(&error));
}

#[tokio::test]
async fn an_attempt_to_connect_ends_with_the_last_request_that_waits_for_it() {
    let server = Server::start(Options::default(), async |request| version(&request)).await;
    let (client, _, clock) = simulated(&server);
    server.behave(Manners::NoHandshake);
    tokio::select! {
        answer = get(&client, "/version") => panic!("{answer:?}"),
        () = server.has_accepted(1) => {}
    }
    clock.advance_and_settle(Duration::from_secs(31)).await;
    server.behave(Manners::Answers);
    assert_eq!(get(&client, "/version").await.unwrap(), "2");
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn clients_for_one_server_share_a_connection_if_they_have_the_same_credentials() {
    let server = Server::start(Options::default(), async |request| {
        let authorization = request.headers().get("authorization");
        let token = authorization.map_or("none", |value| value.to_str().unwrap());
        body(format!("{} {token}", request.uri().path()))
    })
    .await;
    let (connections, env) = (Http2Connections::new(), Env::system());
    let client = |path: &str, token: &str| {
        let mut config = server.config();
        config.cluster_url =
            format!("{}{path}", config.cluster_url.to_string().trim_end_matches('/')).parse().unwrap();
        config.auth_info = serde_json::from_value(serde_json::json!({"token": token})).unwrap();
        connections.client(&env, config).unwrap()
    };
    let clients = [client("/clusters/a", "one"), client("/clusters/b", "one"), client("", "one")];
    for (client, path) in clients.iter().zip(["/clusters/a/x", "/clusters/b/x", "/x"]) {
        assert_eq!(get(client, "/x").await.unwrap(), format!("{path} Bearer one"));
    }
    assert_eq!(server.accepted(), 1);
    assert_eq!(get(&client("/clusters/a", "two"), "/x").await.unwrap(), "/clusters/a/x Bearer two");
    assert_eq!(server.accepted(), 2);
}
