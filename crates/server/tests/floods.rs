//! Floods of connections and streams: others are served meanwhile, and the process does not grow by more than the test says.
//!
//! Client and server are one process, so the memory is that of both, unless a test says otherwise.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "each test says how much memory it took")]

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use k1s_env::Env;
use k1s_server::User;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Mutex,
};

use crate::{
    common::HANG,
    listening::{Served, get, served, shake_hands},
};

mod common;
#[path = "common/listening.rs"]
mod listening;

/// One flood at a time: they measure the memory of the process.
static TURN: Mutex<()> = Mutex::const_new(());

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const OBJECT: &str = "/api/v1/namespaces/default";

/// The memory of this process, in bytes.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.unwrap_or_default() << 10
}

/// Fails if the process has grown by more than this many mebibytes.
fn grown(what: &str, before: u64, most: u64) {
    let mebibytes = memory().saturating_sub(before) >> 20;
    eprintln!("{what}: {mebibytes} MiB");
    assert!(mebibytes <= most, "{what} took {mebibytes} MiB, and should take {most} at most");
}

/// As many connections as wanted, or as this process may open besides so many other files.
fn room(wanted: usize, others: usize) -> usize {
    let needed = u64::try_from(wanted + others).unwrap();
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < needed) {
        // Only a privileged process can raise the maximum.
        let higher = maximum.map(|maximum| maximum.max(needed));
        if setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: higher }).is_err() {
            let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
        }
    }
    let current = getrlimit(Resource::Nofile).current.and_then(|current| usize::try_from(current).ok());
    let room = current.map_or(wanted, |current| wanted.min(current.saturating_sub(others)));
    if room < wanted {
        eprintln!("only {room} of {wanted} connections: the limit of open files cannot be raised");
    }
    room
}

/// A client that already has a connection is answered on it.
async fn is_served(server: &Served, stream: &mut TcpStream, what: &str) {
    stream.write_all(get(OBJECT, "admin").as_bytes()).await.unwrap();
    let (status, text) = server.answer(stream).await;
    assert_eq!(status, 200, "{what}: {text}");
}

/// A connection that has been used, so that it is not one of those without any request.
async fn used(server: &Served) -> TcpStream {
    let mut stream = server.connect().await;
    is_served(server, &mut stream, "before the flood").await;
    stream
}

/// Where [`idle_clients`] connects to, and how often.
const CLIENTS: &str = "K1S_FLOOD_CLIENTS";

/// The clients of [`ten_thousand_idle_connections_are_held`], in a process of their own: they stay connected until its standard
/// input ends. Does nothing otherwise.
#[test]
fn idle_clients() {
    let Ok(clients) = std::env::var(CLIENTS) else { return };
    let (address, count) = clients.split_once(' ').unwrap();
    let open: Vec<std::net::TcpStream> =
        (0..count.parse().unwrap()).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
    std::io::read_to_string(std::io::stdin()).unwrap();
    drop(open);
}

#[tokio::test]
async fn ten_thousand_idle_connections_are_held() {
    let _turn = TURN.lock().await;
    let server = served(None, |options| {
        options.connections.max = 11_000;
        // None is closed, however long it takes to open them all.
        options.connections.head_timeout = Duration::from_secs(3600);
    })
    .await;
    let mut quiet = used(&server).await;
    let (wanted, before) = (room(10_000, 300), memory());
    let mut clients = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "idle_clients", "--nocapture"])
        .env(CLIENTS, format!("{} {wanted}", server.address))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    common::eventually("all are open", || async { server.open_connections() > wanted }).await;
    is_served(&server, &mut quiet, "among idle connections").await;
    let (status, _) = server.ask(get(OBJECT, "admin")).await;
    assert_eq!(status, 200, "a new client");
    assert!(server.open_connections() > wanted, "they stay open");
    grown(&format!("{wanted} idle connections, without their clients"), before, 192);
    drop(clients.stdin.take());
    assert!(clients.wait().unwrap().success());
    server.stop().await;
}

#[tokio::test]
async fn of_ten_thousand_idle_connections_those_beyond_the_limit_are_closed() {
    const LIMIT: usize = 2000;
    let _turn = TURN.lock().await;
    let server = served(None, |options| options.connections.max = LIMIT).await;
    let mut quiet = used(&server).await;
    let (wanted, before) = (room(10_000, LIMIT + 2000), memory());
    let mut idle = Vec::with_capacity(wanted);
    for number in 0..wanted {
        // Those that the server closes stay open at this end.
        idle.push(server.connect().await);
        if number % 1000 == 999 {
            is_served(&server, &mut quiet, "among idle connections").await;
        }
    }
    is_served(&server, &mut quiet, "among idle connections").await;
    let (status, _) = server.ask(get(OBJECT, "admin")).await;
    assert_eq!(status, 200, "a new client");
    common::eventually("most are closed", || async { server.open_connections() <= LIMIT }).await;
    grown(&format!("{wanted} idle connections, {LIMIT} of them open"), before, 96);
    drop(idle);
    server.stop().await;
}

#[tokio::test]
async fn a_thousand_stalling_connections_and_slow_handshakes() {
    let _turn = TURN.lock().await;
    let files = k1s_server::certificate(&["localhost".into()]).unwrap();
    for tls in [None, Some(&files)] {
        let server = served(tls, |options| {
            options.connections.max = 1200;
            options.connections.head_timeout = Duration::from_secs(3);
        })
        .await;
        let before = memory();
        let begun: &[u8] = match tls {
            None => b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\nx-slow: ",
            // Half of a client's hello.
            Some(_) => &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3],
        };
        let mut stalling = Vec::new();
        for _ in 0..1000 {
            stalling.push(server.say(begun).await);
        }
        // A byte now and then does not help them.
        for stream in &mut stalling {
            let _ = stream.write_all(b"a").await;
        }
        match tls {
            None => {
                let mut quiet = used(&server).await;
                is_served(&server, &mut quiet, "beside stalling connections").await;
            }
            Some(files) => drop(shake_hands(server.address, files).await),
        }
        grown("1000 stalling connections", before, 64);
        for stream in &mut stalling {
            server.closed(stream, "a stalling connection").await;
        }
        server.connections_ended().await;
        server.stop().await;
    }
}

/// Sends a handshake a byte at a time, a byte per second, until the server closes the connection; returns how long that took.
async fn drip(env: &Env, mut stream: TcpStream) -> Duration {
    let began = env.now();
    // The beginning of a client's hello that will have 512 bytes.
    let hello = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3].into_iter().chain(std::iter::repeat(7));
    for byte in hello {
        let mut answer = [0];
        let closed = tokio::select! {
            read = stream.read(&mut answer) => !matches!(read, Ok(1)),
            () = env.sleep(Duration::from_secs(1)) => stream.write_all(&[byte]).await.is_err(),
        };
        if closed {
            break;
        }
    }
    env.now() - began
}

#[tokio::test]
async fn handshakes_of_a_byte_per_second_end_in_time() {
    const PATIENCE: Duration = Duration::from_secs(5);
    let _turn = TURN.lock().await;
    let files = k1s_server::certificate(&["localhost".into()]).unwrap();
    let server = served(Some(&files), |options| options.connections.head_timeout = PATIENCE).await;
    let before = memory();
    let mut slow = Vec::new();
    for _ in 0..500 {
        let (env, stream) = (server.env.clone(), server.connect().await);
        slow.push(server.env.spawn("slow handshake", async move { drip(&env, stream).await }));
    }
    // Others shake hands and are answered meanwhile.
    for _ in 0..5 {
        let stream = TokioIo::new(shake_hands(server.address, &files).await);
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), stream)
                .await
                .unwrap();
        let connection = server.env.spawn("client", connection);
        let request =
            Request::get(format!("https://localhost{OBJECT}")).header("authorization", "Bearer admin");
        let asked = sender.send_request(request.body(Full::default()).unwrap());
        let answer = server.env.timeout(HANG, asked).await.expect("nobody is served beside slow handshakes");
        assert_eq!(answer.unwrap().status(), 200);
        connection.abort();
    }
    grown("500 slow handshakes", before, 48);
    for slow in slow {
        let took = server.env.timeout(HANG, slow).await.expect("a slow handshake is never closed").unwrap();
        // Twice, because machines that test are slow.
        assert!(took >= PATIENCE / 2 && took <= 2 * PATIENCE, "closed after {took:?}");
    }
    server.connections_ended().await;
    server.stop().await;
}

#[tokio::test]
async fn connections_of_one_peer_do_not_cost_others_theirs() {
    let _turn = TURN.lock().await;
    let server = served(None, |options| options.connections.max_per_peer = 3).await;
    let mut own = used(&server).await;
    let (status, _) = server.ask(get(OBJECT, "admin")).await;
    assert_eq!(status, 200);
    let mut others = Vec::new();
    for _ in 0..10 {
        others.push(server.connect().await);
    }
    // The connection that has been idle the longest was replaced.
    server.closed(&mut own, "the oldest").await;
    common::eventually("three are left", || async { server.open_connections() <= 3 }).await;
    let (status, _) = server.ask(get(OBJECT, "admin")).await;
    assert_eq!(status, 200, "a new one is served");
    server.stop().await;
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The head of `GET /readyz`, without any entry of the dynamic table.
fn head(path: &str) -> Vec<u8> {
    // :method GET, :scheme http, :path as a literal, :authority x.
    let mut head = vec![0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
    head.extend(path.as_bytes());
    head.extend([0x01, 0x01, b'x']);
    head
}

#[tokio::test]
async fn rapid_resets_end_their_connection() {
    let _turn = TURN.lock().await;
    let server = served(None, |_| {}).await;
    let mut quiet = used(&server).await;
    let before = memory();
    let mut resets = 0_u32;
    // Many frames at once, and one after the other.
    for batch in [200_u32, 1] {
        let mut attack = server.say(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        attack.write_all(&frame(4, 0, 0, &[])).await.unwrap();
        let mut stream = 1;
        let attacked = async {
            loop {
                let mut bytes = Vec::new();
                for _ in 0..batch {
                    bytes.extend(frame(1, 0x5, stream, &head("/readyz")));
                    bytes.extend(frame(3, 0, stream, &8_u32.to_be_bytes()));
                    stream += 2;
                }
                resets += batch;
                if resets >= 200_000 || attack.write_all(&bytes).await.is_err() {
                    return;
                }
                // What the server answers is read, so that it can go on.
                let mut buffer = [0; 4096];
                while let Ok(count) = attack.try_read(&mut buffer) {
                    if count == 0 {
                        return;
                    }
                }
                server.env.yield_now().await;
            }
        };
        server.env.timeout(HANG, attacked).await.expect("the connection is never closed");
        is_served(&server, &mut quiet, "beside resets").await;
    }
    eprintln!("closed after {resets} resets");
    assert!(resets < 200_000, "nothing has ended the attack");
    grown("rapid resets", before, 32);
    server.stop().await;
}

#[tokio::test]
async fn a_connection_without_authentication_ends_after_its_answer() {
    let _turn = TURN.lock().await;
    let server = served(None, |_| {}).await;
    let stream = TokioIo::new(server.connect().await);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), stream)
            .await
            .unwrap();
    let connection = server.env.spawn("client", connection);
    let mut send = async |token: &str| {
        let request = Request::get(format!("http://{}{MAPS}", server.address));
        let request =
            request.header("authorization", format!("Bearer {token}")).body(Full::default()).unwrap();
        sender.send_request(request).await.unwrap().status().as_u16()
    };
    assert_eq!(send("admin").await, 200);
    assert_eq!(send("nobody").await, 401);
    let ended = server.env.timeout(HANG, connection).await.expect("it goes on");
    ended.unwrap().unwrap();
    server.stop().await;
}

#[tokio::test]
async fn responses_that_are_not_read_are_bounded() {
    let _turn = TURN.lock().await;
    let server = served(None, |options| options.connections.max_streams = 200).await;
    let client = common::client(&server.server.as_user(User::admin()));
    for number in 0..20 {
        let map = serde_json::json!({"metadata": {"name": format!("m-{number}")}, "data": {"a": "x".repeat(500_000)}});
        client.post(MAPS, map).await;
    }
    let mut quiet = used(&server).await;
    let before = memory();
    let mut attacks = Vec::new();
    for _ in 0..5 {
        let mut attack = server.say(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        attack.write_all(&frame(4, 0, 0, &[])).await.unwrap();
        let mut path = head(MAPS);
        // authorization: Bearer admin
        path.extend([0x0f, 0x08, 12]);
        path.extend(b"Bearer admin");
        for number in 0..200 {
            attack.write_all(&frame(1, 0x5, 1 + 2 * number, &path)).await.unwrap();
        }
        attacks.push(attack);
    }
    // Each has the first response's beginning, and reads no more.
    for attack in &mut attacks {
        let mut first = [0; 9];
        server.env.timeout(HANG, attack.read_exact(&mut first)).await.unwrap().unwrap();
    }
    for _ in 0..20 {
        is_served(&server, &mut quiet, "beside unread responses").await;
    }
    // Each holds the object that it is about to send, and not the list.
    grown("1000 unread lists of 20 objects of 500 kB", before, 640);
    drop(attacks);
    server.stop().await;
}
