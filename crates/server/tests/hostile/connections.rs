//! Connections that are silent, slow, too many, or not read from.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k1s_server::{ServerOptions, User};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{
    common::{self, HANG},
    listening::{Served, get, served, shake_hands},
};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// A timeout long enough for a request, and short enough to wait for.
const SHORT: Duration = Duration::from_millis(150);

/// The head of a POST, and the body's first bytes.
fn post(path: &str, token: &str, length: usize, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn silent_connections_are_closed() {
    let short = |options: &mut ServerOptions| options.connections.head_timeout = SHORT;
    let server = served(None, short).await;
    for begun in ["", "PRI * HTTP/2.0\r\n", "GET /healthz HT", "GET /healthz HTTP/1.1\r\nhost: x\r\n"] {
        let mut stream = server.say(begun).await;
        server.closed(&mut stream, begun).await;
    }
    // HTTP/2 that sends only the preface and settings.
    let mut hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    hello.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    let mut stream = server.say(hello).await;
    server.closed(&mut stream, "HTTP/2 without a request").await;
    server.stop().await;

    let files = k1s_server::certificate(&["localhost".into()]).unwrap();
    let server = served(Some(&files), short).await;
    let mut silent = server.connect().await;
    let mut half = server.say([22, 3, 1, 2, 0, 1, 0]).await;
    let mut shaken = shake_hands(server.address, &files).await;
    server.closed(&mut silent, "a connection without a handshake").await;
    server.closed(&mut half, "half a handshake").await;
    server.closed(&mut shaken, "a handshake and nothing else").await;
    server.connections_ended().await;
    server.stop().await;
}

#[tokio::test]
async fn a_connection_may_be_idle_for_longer_than_a_head_may_take() {
    let server = served(None, |options| options.connections.head_timeout = SHORT).await;
    let mut idle = server.say(get("/healthz", "admin")).await;
    assert_eq!(server.answer(&mut idle).await.0, 200);
    let mut silent = server.connect().await;
    server.closed(&mut silent, "a silent connection").await;
    // The idle connection was silent for as long.
    idle.write_all(get("/healthz", "admin").as_bytes()).await.unwrap();
    assert_eq!(server.answer(&mut idle).await.0, 200);
    // Once a request has begun, its head has to be completed.
    idle.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
    server.closed(&mut idle, "half a head after a request").await;
    server.stop().await;

    let server = served(None, |options| options.connections.idle_timeout = SHORT).await;
    let mut idle = server.say(get("/healthz", "admin")).await;
    assert_eq!(server.answer(&mut idle).await.0, 200);
    server.closed(&mut idle, "an idle connection").await;
    server.stop().await;
}

#[tokio::test]
async fn beyond_the_limit_the_connection_idle_the_longest_is_closed() {
    let server = served(None, |options| options.connections.max = 3).await;
    let watch = format!("{MAPS}?watch=true");
    let mut watching = server.say(get(&watch, "admin")).await;
    let mut first = [0; 12];
    watching.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    // The time of the last use counts, not that of the connect.
    let (mut newer, mut older) = (server.connect().await, server.connect().await);
    for stream in [&mut older, &mut newer] {
        stream.write_all(get("/healthz", "admin").as_bytes()).await.unwrap();
        assert_eq!(server.answer(stream).await.0, 200);
    }
    assert_eq!(server.ask(get("/healthz", "admin")).await.0, 200);
    server.closed(&mut older, "the oldest idle connection").await;
    newer.write_all(get("/healthz", "admin").as_bytes()).await.unwrap();
    assert_eq!(server.answer(&mut newer).await.0, 200);
    // If no connection is idle, a new one is closed.
    let full = server.say(get(&watch, "admin")).await;
    let more = server.say(get(&watch, "admin")).await;
    common::eventually("all are watches", || async {
        server
            .env
            .tasks()
            .iter()
            .find(|task| task.name == "connection")
            .is_some_and(|task| task.running() == 3)
    })
    .await;
    common::eventually("there is no place", || async { server.ask(get("/healthz", "admin")).await.0 == 0 })
        .await;
    drop((watching, full, more, newer));
    common::eventually("there is one again", || async {
        server.ask(get("/healthz", "admin")).await.0 == 200
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn slow_bodies_take_no_slot() {
    let server = served(None, |options| {
        options.max_in_flight = 2;
        options.limits.reserved_in_flight = 0;
    })
    .await;
    let mut slow = Vec::new();
    for _ in 0..8 {
        slow.push(server.say(post(REVIEWS, "mallory", 1000, "{")).await);
    }
    // They have been received once a later request is answered.
    for token in ["admin", "mallory"] {
        let review = r#"{"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}"#;
        let (status, text) = server.ask(post(REVIEWS, token, review.len(), review)).await;
        assert_eq!(status, 201, "{text}");
    }
    assert_eq!(server.ask(get(MAPS, "admin")).await.0, 200);
    drop(slow);
    server.stop().await;
}

#[tokio::test]
async fn bodies_share_a_budget_and_administrators_have_a_reserve() {
    let server = served(None, |options| {
        options.limits.max_body_bytes_in_flight = 100_000;
        options.limits.reserved_body_bytes = 50_000;
        options.limits.patience = Duration::from_millis(50);
    })
    .await;
    let half = "x".repeat(60_000);
    let mut held = server.say(post(REVIEWS, "mallory", 70_000, &half)).await;
    // The second one, whichever it is, does not fit; its charge is returned.
    let mut other = server.say(post(REVIEWS, "mallory", 70_000, &half)).await;
    let refused = tokio::select! {
        answer = server.answer(&mut held) => answer,
        answer = server.answer(&mut other) => answer,
    };
    assert_eq!(refused.0, 429, "{}", refused.1);
    assert!(refused.1.contains("retry-after: 1"), "{}", refused.1);
    let map = json!({"metadata": {"name": "a"}, "data": {"a": "x".repeat(60_000)}}).to_string();
    let (status, text) = server.ask(post(MAPS, "admin", map.len(), &map)).await;
    assert_eq!(status, 201, "{text}");
    // A declared length over the limit is rejected before the body is sent.
    let (status, text) = server.ask(post(REVIEWS, "mallory", 4 << 20, "")).await;
    assert_eq!(status, 413, "{text}");
    // As is a body of an unknown user.
    assert_eq!(server.ask(post(MAPS, "nobody", 1000, "")).await.0, 401);
    let anonymous = format!("POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n");
    assert_eq!(server.ask(anonymous).await.0, 403);
    drop((held, other));
    let review = format!(r#"{{"spec":{{}},"x":"{}"}}"#, "x".repeat(60_000));
    common::eventually("there is room again", || async {
        server.ask(post(REVIEWS, "mallory", review.len(), &review)).await.0 != 429
    })
    .await;
    server.stop().await;
}

/// Creates config maps that exceed the kernel's socket buffers.
async fn fill(server: &Served) {
    let client = common::client(&server.server.as_user(User::admin()));
    for number in 0..14 {
        let map =
            json!({"metadata": {"name": format!("large-{number}")}, "data": {"a": "x".repeat(1_000_000)}});
        client.post(MAPS, map).await;
    }
}

#[tokio::test]
async fn a_client_that_stops_reading_is_disconnected() {
    let server = served(None, |options| options.connections.write_timeout = SHORT).await;
    fill(&server).await;
    for path in [MAPS.to_owned(), format!("{MAPS}?watch=true")] {
        let unread = server.say(get(&path, "admin")).await;
        server.connections_ended().await;
        drop(unread);
    }
    // With HTTP/2 the connection stays open, and only the stalled response is reset.
    let stream = TokioIo::new(server.connect().await);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), stream)
            .await
            .unwrap();
    drop(server.env.spawn("client", connection));
    let mut send = async |path: &str| {
        let request = Request::get(format!("http://{}{path}", server.address));
        let request = request.header("authorization", "Bearer admin").body(Full::default()).unwrap();
        sender.send_request(request).await.unwrap()
    };
    let list = send(MAPS).await;
    let watch = send(&format!("{MAPS}?watch=true")).await;
    let object = send(&format!("{MAPS}/large-1")).await;
    assert_eq!((list.version(), list.status().as_u16()), (Version::HTTP_2, 200));
    let after = |mut body: hyper::body::Incoming| {
        let env = server.env.clone();
        async move {
            // The sent data is read after the reset.
            env.sleep(SHORT * 4).await;
            while let Some(frame) = env.timeout(HANG, body.frame()).await.expect("it is never reset") {
                frame?;
            }
            Ok::<_, hyper::Error>(())
        }
    };
    for unread in [list, watch] {
        let error = after(unread.into_body()).await.unwrap_err();
        assert!(format!("{error:?}").contains("CANCEL"), "{error:?}");
    }
    drop(object);
    let read = send("/healthz").await.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(read, "ok");
    server.stop().await;
}

#[tokio::test]
async fn heads_may_be_as_large_as_kubernetes_allows() {
    let server = served(None, |_| {}).await;
    let many: String = (0..450).map(|number| format!("x-{number}: {number}\r\n")).collect();
    let large = format!("x-large: {}\r\n", "x".repeat(900_000));
    for more in [many, large] {
        let request = get("/healthz", "admin").replace("\r\n\r\n", &format!("\r\n{more}\r\n"));
        assert_eq!(server.ask(request).await.0, 200);
    }
    let stream = TokioIo::new(server.connect().await);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), stream)
            .await
            .unwrap();
    drop(server.env.spawn("client", connection));
    let request = Request::get(format!("http://{}/healthz", server.address));
    let request = request.header("x-large", "x".repeat(900_000)).body(Full::default()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
    // A larger head gets a response as well.
    let request =
        get("/healthz", "admin").replace("\r\n\r\n", &format!("\r\nx: {}\r\n\r\n", "x".repeat(1_200_000)));
    assert_eq!(server.ask(request).await.0, 431);
    server.stop().await;
}

#[tokio::test]
async fn methods_that_do_not_exist_are_not_allowed() {
    let server = served(None, |_| {}).await;
    for path in [
        MAPS,
        "/api",
        "/apis/apps/v1",
        "/version",
        "/openapi/v2",
        "/k1s/v1/metadata",
        "/api/v1/namespaces/x/pods?watch=true",
    ] {
        let request = get(path, "admin").replacen("GET", "FROB", 1);
        let (status, text) = server.ask(request).await;
        assert_eq!(status, 405, "{path}: {text}");
        assert!(text.contains("MethodNotAllowed"), "{text}");
    }
    server.stop().await;
}
