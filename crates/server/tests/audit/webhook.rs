//! The webhook: batches, and receivers that fail, hang or are not there.

use std::{sync::Arc, time::Duration};

use k1s_env::Env;
use k1s_server::{
    ApiServer, AuditMode, AuditPolicy, AuditTruncation, AuditWebhookOptions, ServerOptions, User,
};
use k1s_store::MemoryStore;
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

use crate::{
    CONFIGMAPS, NO_METRICS, audit, client,
    common::{Client, HANG, eventually},
    configmap, log_in, metrics, policy, read,
};

/// What the receiver does with the next requests.
#[derive(Debug, Clone, Copy)]
enum Way {
    Accept,
    /// An error for this many requests, then success.
    Fail(usize),
    /// Never answers.
    Hang,
}

/// A request that a receiver was sent: its head, and the events in it.
type Sent = (String, Vec<Value>);

/// An HTTP server that receives events.
struct Receiver {
    port: u16,
    way: Arc<Mutex<Way>>,
    /// Requests with a complete body.
    seen: Arc<Mutex<usize>>,
    accepted: Arc<Mutex<Vec<Sent>>>,
    alive: CancellationToken,
}

impl Receiver {
    async fn start(way: Way) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Receiver {
            port: listener.local_addr().unwrap().port(),
            way: Arc::new(Mutex::new(way)),
            seen: Arc::default(),
            accepted: Arc::default(),
            alive: CancellationToken::new(),
        };
        let (way, seen, accepted) = (receiver.way.clone(), receiver.seen.clone(), receiver.accepted.clone());
        let alive = receiver.alive.clone();
        let serving = alive.clone().run_until_cancelled_owned(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (way, seen, accepted) = (way.clone(), seen.clone(), accepted.clone());
                let connection =
                    alive.clone().run_until_cancelled_owned(converse(stream, way, seen, accepted));
                drop(Env::system().spawn("connection", connection));
            }
        });
        drop(Env::system().spawn("receiver", serving));
        receiver
    }

    fn options(&self, folder: &TempDir) -> AuditWebhookOptions {
        let path = folder.path().join("webhook.yaml");
        let url = format!("http://127.0.0.1:{}/events", self.port);
        let config = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: r, user: k1s}}}}]\n\
             clusters: [{{name: r, cluster: {{server: '{url}'}}}}]\nusers: [{{name: k1s, user: {{token: receiver-token}}}}]\n"
        );
        std::fs::write(&path, config).unwrap();
        let mut options = AuditWebhookOptions::new(path);
        options.max_batch_wait = Duration::from_millis(5);
        options.initial_backoff = Duration::from_millis(1);
        options.throttle = None;
        options
    }

    fn accepted(&self) -> Vec<Sent> {
        self.accepted.lock().clone()
    }

    /// The ids of the events that were accepted, by request.
    fn ids(&self) -> Vec<Vec<String>> {
        let id = |event: &Value| event["auditID"].as_str().unwrap().to_owned();
        self.accepted().iter().map(|(_, events)| events.iter().map(id).collect()).collect()
    }
}

async fn converse(
    mut stream: TcpStream,
    way: Arc<Mutex<Way>>,
    seen: Arc<Mutex<usize>>,
    accepted: Arc<Mutex<Vec<Sent>>>,
) {
    let mut read = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = memchr::memmem::find(&read, b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut read).await.unwrap_or_default() == 0 {
                return;
            }
        };
        let head = String::from_utf8(read.drain(..end).collect()).unwrap().to_lowercase();
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
        while read.len() < length {
            if stream.read_buf(&mut read).await.unwrap_or_default() == 0 {
                return;
            }
        }
        let body: Vec<u8> = read.drain(..length).collect();
        let list: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&list["kind"], &list["apiVersion"]), (&"EventList".into(), &"audit.k8s.io/v1".into()));
        *seen.lock() += 1;
        let now = *way.lock();
        let code = match now {
            Way::Hang => return std::future::pending().await,
            Way::Fail(0) | Way::Accept => 200,
            Way::Fail(more) => {
                *way.lock() = Way::Fail(more - 1);
                503
            }
        };
        if code == 200 {
            accepted.lock().push((head, list["items"].as_array().unwrap().clone()));
        }
        let answer = format!("HTTP/1.1 {code} X\r\ncontent-length: 0\r\n\r\n");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn server(policy: AuditPolicy, webhook: AuditWebhookOptions) -> Client {
    let mut options = ServerOptions::default();
    options.audit.policy = Some(policy);
    options.audit.webhook = Some(webhook);
    let server = ApiServer::new(Env::system(), Arc::new(MemoryStore::default()), options).await.unwrap();
    client(&server.as_user(User::admin()))
}

fn metadata() -> AuditPolicy {
    policy(&[NO_METRICS, "{level: Metadata, omitStages: [RequestReceived]}"])
}

async fn ask(client: &Client, numbers: std::ops::Range<usize>) -> Vec<String> {
    let mut ids = Vec::new();
    for number in numbers {
        let id = format!("id-{number}");
        let sent = [("audit-id", id.as_str())];
        let asked = client.send("GET", "/version", &sent, "");
        let answer = Env::system().timeout(HANG, asked).await.expect("a request waits for the webhook");
        assert_eq!(answer.status, 200);
        ids.push(id);
    }
    ids
}

#[tokio::test]
async fn events_are_sent_as_a_list_soon() {
    let (folder, receiver) = (TempDir::new().unwrap(), Receiver::start(Way::Accept).await);
    let client = server(metadata(), receiver.options(&folder)).await;
    let ids = ask(&client, 0..3).await;
    eventually("the events arrive", || async { receiver.ids().concat().len() == 3 }).await;
    assert_eq!(receiver.ids().concat(), ids);
    let (head, events) = receiver.accepted().remove(0);
    assert!(head.starts_with("post /events http/1.1"), "{head}");
    assert!(head.contains("authorization: bearer receiver-token"), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    // An item has the type of the list.
    assert_eq!((events[0].get("kind"), &events[0]["requestURI"]), (None, &Value::from("/version")));
}

#[tokio::test]
async fn batches_have_a_size_and_the_last_one_is_sent_at_the_end() {
    let (folder, receiver) = (TempDir::new().unwrap(), Receiver::start(Way::Accept).await);
    let mut options = receiver.options(&folder);
    (options.max_batch_events, options.max_batch_wait) = (4, Duration::from_secs(3600));
    let client = server(metadata(), options).await;
    let ids = ask(&client, 0..10).await;
    eventually("two batches arrive", || async { receiver.accepted().len() == 2 }).await;
    client.server.close_audit().await;
    let mut sizes: Vec<usize> = receiver.ids().iter().map(Vec::len).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [2, 4, 4]);
    let mut arrived = receiver.ids().concat();
    arrived.sort();
    assert_eq!(arrived, ids);
}

#[tokio::test]
async fn a_receiver_that_fails_is_asked_again() {
    let (folder, receiver) = (TempDir::new().unwrap(), Receiver::start(Way::Fail(4)).await);
    let client = server(metadata(), receiver.options(&folder)).await;
    let ids = ask(&client, 0..1).await;
    eventually("the event arrives", || async { !receiver.accepted().is_empty() }).await;
    assert_eq!((receiver.ids().concat(), *receiver.seen.lock()), (ids, 5));
    client.server.close_audit().await;
    let counted = metrics(&client).await;
    assert!(counted.contains("apiserver_audit_error_total{plugin=\"webhook\"} 0\n"), "{counted}");
}

#[tokio::test]
async fn events_that_are_never_accepted_are_dropped_and_counted() {
    let (folder, receiver) = (TempDir::new().unwrap(), Receiver::start(Way::Fail(usize::MAX)).await);
    let mut options = receiver.options(&folder);
    (options.max_batch_events, options.max_batch_wait) = (3, Duration::from_secs(3600));
    let client = server(metadata(), options).await;
    ask(&client, 0..3).await;
    let lost = "apiserver_audit_error_total{plugin=\"webhook\"} 3\n";
    eventually("they are given up", || async { metrics(&client).await.contains(lost) }).await;
    assert_eq!(*receiver.seen.lock(), 5);
}

#[tokio::test]
async fn a_receiver_that_hangs_delays_no_request_and_holds_a_bounded_number_of_events() {
    let (folder, receiver) = (TempDir::new().unwrap(), Receiver::start(Way::Hang).await);
    let mut options = receiver.options(&folder);
    (options.max_batch_events, options.queue.max_events) = (5, 20);
    let client = server(metadata(), options).await;
    ask(&client, 0..100).await;
    let lost = "apiserver_audit_error_total{plugin=\"buffered\"} 80\n";
    let text = metrics(&client).await;
    assert!(text.contains(lost), "{text}");
    // Nor does it keep the server from ending.
    Env::system().timeout(HANG, client.server.close_audit()).await.expect("auditing ends");
    let text = metrics(&client).await;
    assert!(text.contains("apiserver_audit_error_total{plugin=\"webhook\"} 20\n"), "{text}");
    assert_eq!(receiver.accepted().len(), 0);
}

#[tokio::test]
async fn a_receiver_that_is_killed_delays_no_request_and_gets_the_rest_when_it_is_back() {
    let (folder, receiver) = (TempDir::new().unwrap(), Receiver::start(Way::Accept).await);
    let client = server(metadata(), receiver.options(&folder)).await;
    ask(&client, 0..1).await;
    eventually("the first event arrives", || async { receiver.accepted().len() == 1 }).await;
    receiver.alive.cancel();
    ask(&client, 1..50).await;
    let given_up = || async {
        let text = metrics(&client).await;
        text.contains("apiserver_audit_error_total{plugin=\"webhook\"} 49\n")
    };
    eventually("all that was sent to nobody is counted", given_up).await;
    // One that is back at the same address gets later events.
    let listener = TcpListener::bind(("127.0.0.1", receiver.port)).await.unwrap();
    let (accepted, kept) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
    let into = accepted.clone();
    drop(Env::system().spawn("receiver", async move {
        while let Ok((stream, _)) = listener.accept().await {
            let conversation =
                converse(stream, Arc::new(Mutex::new(Way::Accept)), kept.clone(), into.clone());
            drop(Env::system().spawn("connection", conversation));
        }
    }));
    ask(&client, 50..51).await;
    eventually("the last event arrives", || async { accepted.lock().len() == 1 }).await;
}

#[tokio::test]
async fn blocking_modes_wait_for_the_receiver() {
    for (mode, way, code, arrived) in [
        (AuditMode::Blocking, Way::Accept, 200, 1),
        (AuditMode::Blocking, Way::Fail(usize::MAX), 200, 0),
        (AuditMode::BlockingStrict, Way::Fail(usize::MAX), 500, 0),
    ] {
        let (folder, receiver) = (TempDir::new().unwrap(), Receiver::start(way).await);
        let mut options = receiver.options(&folder);
        options.mode = mode;
        let rules = policy(&[NO_METRICS, "{level: Metadata, omitStages: [ResponseComplete]}"]);
        let client = server(rules, options).await;
        let answer = client.send("GET", "/version", &[], "").await;
        assert_eq!((answer.status, receiver.accepted().len()), (code, arrived), "{mode:?}");
    }
}

#[tokio::test]
async fn large_events_are_shortened_and_batches_split() {
    let (folder, receiver) = (TempDir::new().unwrap(), Receiver::start(Way::Accept).await);
    let mut options = receiver.options(&folder);
    let mut truncation = AuditTruncation::default();
    (truncation.max_event_bytes, truncation.max_batch_bytes) = (2000, 2500);
    (options.truncation, options.max_batch_wait) = (Some(truncation), Duration::from_secs(3600));
    let client = server(policy(&["{level: Request, omitStages: [RequestReceived]}"]), options).await;
    for name in ["a", "b", "c"] {
        let mut object = configmap(name);
        object["data"]["k"] = "x".repeat(if name == "a" { 3000 } else { 700 }).into();
        client.post(CONFIGMAPS, object).await;
    }
    client.server.close_audit().await;
    let accepted = receiver.accepted();
    let events: Vec<&Value> = accepted.iter().flat_map(|(_, events)| events).collect();
    let shown: Vec<bool> = events.iter().map(|event| event.get("requestObject").is_some()).collect();
    assert_eq!(shown, [false, true, true]);
    assert_eq!(events[0]["annotations"]["audit.k8s.io/truncated"], "true");
    assert_eq!(accepted.len(), 2);
}

#[tokio::test]
async fn the_log_and_the_webhook_get_the_same_events() {
    let (folder, receiver) = (TempDir::new().unwrap(), Receiver::start(Way::Accept).await);
    let mut options = ServerOptions::default();
    options.audit = audit(metadata(), k1s_server::AuditLogOptions::new(log_in(&folder)));
    options.audit.webhook = Some(receiver.options(&folder));
    let server = ApiServer::new(Env::system(), Arc::new(MemoryStore::default()), options).await.unwrap();
    let client = client(&server.as_user(User::admin()));
    let ids = ask(&client, 0..20).await;
    server.close_audit().await;
    let logged = read(&log_in(&folder));
    assert_eq!(logged.iter().map(|event| event["auditID"].as_str().unwrap()).collect::<Vec<_>>(), ids);
    let mut arrived: Vec<Value> = receiver.accepted().into_iter().flat_map(|(_, events)| events).collect();
    arrived.sort_by_key(|event| ids.iter().position(|id| event["auditID"] == id.as_str()));
    for (mut logged, arrived) in logged.into_iter().zip(arrived) {
        let fields = logged.as_object_mut().unwrap();
        fields.remove("kind");
        fields.remove("apiVersion");
        assert_eq!(logged, arrived);
    }
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_is_an_error_at_start() {
    let folder = TempDir::new().unwrap();
    let mut options = ServerOptions::default();
    options.audit.policy = Some(metadata());
    options.audit.webhook = Some(AuditWebhookOptions::new(folder.path().join("missing.yaml")));
    let error = ApiServer::new(Env::system(), Arc::new(MemoryStore::default()), options).await.unwrap_err();
    assert!(error.message.contains("missing.yaml"), "{}", error.message);
}
