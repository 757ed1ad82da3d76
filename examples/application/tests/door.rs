//! The HTTP door, over sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod door_common;

use std::{
    io::{Read as _, Write as _},
    net::{Ipv6Addr, TcpListener, TcpStream},
    path::Path,
    time::Duration,
};

use application::door::DoorOptions;
use door_common::{Connection, Event, World};
use http::StatusCode;
use k1s::{controller::changes::ChangesOptions, env::Env, store::disk::compact_folder};
use serde_json::{Value, json};
use tokio::sync::watch;

const APPS: &str = "/apis/cloudnative.elide.dev/v1/namespaces/default/applications";

fn app(name: &str, replicas: i64) -> Value {
    json!({"apiVersion": "cloudnative.elide.dev/v1", "kind": "Application", "metadata": {"name": name},
        "spec": {"replicas": replicas, "image": "nginx:latest"}})
}

#[tokio::test]
async fn a_put_without_a_resource_version_replaces() {
    let world = World::start().await;
    assert_eq!(world.send("POST", APPS, &app("a", 1)).await.0, StatusCode::CREATED);
    let (code, stored) = world.send("PUT", &format!("{APPS}/a"), &app("a", 5)).await;
    assert_eq!((code, &stored["spec"]["replicas"]), (StatusCode::OK, &json!(5)));
    // Many at once: none of them fails, and one of them is the last.
    let paths = format!("{APPS}/a");
    let bodies: Vec<Value> = (10..20).map(|replicas| app("a", replicas)).collect();
    let puts = bodies.iter().map(|body| world.send("PUT", &paths, body));
    for (code, answer) in futures_util::future::join_all(puts).await {
        assert_eq!(code, StatusCode::OK, "{answer}");
    }
    // With one, it is checked.
    let mut stale = app("a", 3);
    stale["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
    let (code, status) = world.send("PUT", &format!("{APPS}/a"), &stale).await;
    assert_eq!((code, &status["reason"]), (StatusCode::CONFLICT, &json!("Conflict")));
    // What is not there is not replaced.
    let (code, status) = world.send("PUT", &format!("{APPS}/b"), &app("b", 3)).await;
    assert_eq!((code, &status["reason"]), (StatusCode::NOT_FOUND, &json!("NotFound")));
    world.stop().await;
}

#[tokio::test]
async fn a_post_makes_the_namespace() {
    let world = World::start().await;
    let path = APPS.replace("default", "test");
    let (code, status) = world.send("POST", &format!("{path}?dryRun=All"), &app("a", 1)).await;
    assert_eq!((code, &status["details"]["kind"]), (StatusCode::NOT_FOUND, &json!("namespaces")), "{status}");
    let (code, status) = world.send("POST", &path, &app("a", -1)).await;
    assert_eq!((code, &status["reason"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("Invalid")), "{status}");
    let posts = ["a", "b", "c"].map(|name| app(name, 1));
    let posts = posts.iter().map(|body| world.send("POST", &path, body));
    for (code, answer) in futures_util::future::join_all(posts).await {
        assert_eq!(code, StatusCode::CREATED, "{answer}");
    }
    assert_eq!(world.get("/api/v1/namespaces/test").await.0, StatusCode::OK);
    world.stop().await;
}

#[tokio::test]
async fn errors_are_a_status() {
    let world = World::start().await;
    let created = world.send("POST", APPS, &app("a", 1)).await;
    assert_eq!(created.0, StatusCode::CREATED);
    let bad = json!({"kind": "Application"});
    let expected = [
        ("POST", APPS, Some("{x"), 400, "BadRequest"),
        ("GET", &*format!("{APPS}/none"), None, 404, "NotFound"),
        ("GET", "/nothing", None, 404, "NotFound"),
        ("GET", "/apis/cloudnative.elide.dev/v9", None, 404, "NotFound"),
        ("POST", APPS, Some(&*app("a", 1).to_string()), 409, "AlreadyExists"),
        ("POST", APPS, Some(&*app("b", -1).to_string()), 422, "Invalid"),
        ("POST", APPS, Some(&*bad.to_string()), 400, "BadRequest"),
        ("PUT", APPS, Some("{}"), 405, "MethodNotAllowed"),
        ("PATCH", "/api/v1/nodes", Some("{}"), 405, "MethodNotAllowed"),
        ("POST", &*format!("{APPS}/a"), Some("{}"), 405, "MethodNotAllowed"),
        ("POST", "/watch", Some("{}"), 405, "MethodNotAllowed"),
        ("DELETE", "/", None, 405, "MethodNotAllowed"),
        ("GET", "/watch?kinds=Pod", None, 400, "BadRequest"),
        ("GET", "/watch?lables=a", None, 400, "BadRequest"),
        ("GET", "/watch?labelSelector=a%20b", None, 400, "BadRequest"),
        ("GET", "/events?type=CHANGED", None, 400, "BadRequest"),
        ("GET", "/events?since=yesterday", None, 400, "BadRequest"),
        ("GET", "/events?limit=-1", None, 400, "BadRequest"),
        ("GET", "/crd?format=xml", None, 400, "BadRequest"),
    ];
    for (method, path, body, code, reason) in expected {
        let (answered, status) = world.send_text(method, path, &[], body.unwrap_or_default()).await;
        let status: Value = serde_json::from_str(&status).unwrap_or_else(|_| panic!("{path}: {status:?}"));
        assert_eq!(
            (answered.as_u16(), &status["reason"]),
            (code, &json!(reason)),
            "{method} {path}: {status}"
        );
        assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(code)));
    }
    world.stop().await;
}

#[tokio::test]
async fn no_page_elsewhere_can_use_it() {
    let world = World::start().await;
    let host = format!("localhost:{}", world.port());
    let origin = format!("http://{host}");
    let body = app("a", 1).to_string();
    for headers in [
        &[("host", "evil.example")][..],
        &[("host", &*format!("evil.example:{}", world.port()))],
        &[("host", &*host), ("origin", "http://evil.example")],
        &[("host", &*host), ("origin", "null")],
        &[("host", &*host), ("origin", "http://localhost:1")],
        &[("host", &*host), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")],
    ] {
        for (method, path) in [("POST", APPS), ("GET", "/watch"), ("GET", "/"), ("GET", "/api/v1/secrets")] {
            let (code, status) = world.send_text(method, path, headers, &body).await;
            assert_eq!(code, StatusCode::FORBIDDEN, "{method} {path} {headers:?}: {status}");
            assert!(status.contains("\"Forbidden\""), "{status}");
        }
    }
    let own = [("host", &*host), ("origin", &*origin), ("sec-fetch-site", "same-origin")];
    let (code, answer) = world.send_text("POST", APPS, &own, &body).await;
    assert_eq!(code, StatusCode::CREATED, "{answer}");
    world.stop().await;
}

#[tokio::test]
async fn it_describes_itself() {
    let world = World::start().await;
    let (code, information) = world.get("/").await;
    assert_eq!(code, StatusCode::OK);
    assert_eq!(information["name"], "application-operator");
    assert!(information["endpoints"]["/watch"].is_string(), "{information}");
    let (_, page) = world.send_text("GET", "/", &[("accept", "text/html,*/*;q=0.8")], "").await;
    assert!(page.starts_with("<!doctype html>"), "{page}");
    assert_eq!(world.get("/crd").await.1["metadata"]["name"], "applications.cloudnative.elide.dev");
    let (_, yaml) = world.send_text("GET", "/crd", &[("accept", "application/yaml")], "").await;
    assert!(yaml.contains("\nkind: CustomResourceDefinition\n"), "{yaml}");
    for path in ["/healthz", "/readyz"] {
        let (code, health) = world.send_text("GET", path, &[], "").await;
        assert_eq!((code, &*health), (StatusCode::OK, "ok\n"), "{path}");
    }
    world.stop().await;
}

#[tokio::test]
async fn recorded_changes_are_filtered() {
    let world = World::start().await;
    let mut events = world.watch("/watch", None).await;
    for name in ["a", "b"] {
        world.send("POST", APPS, &app(name, 1)).await;
    }
    world.send("PUT", &format!("{APPS}/a"), &app("a", 2)).await;
    world.send("DELETE", &format!("{APPS}/b"), &Value::Null).await;
    let mut last = 0;
    for _ in 0..4 {
        last = events.next().await.unwrap().id.unwrap();
    }
    let short = async |query: &str| -> Vec<String> {
        let (code, events) = world.get(&format!("/events{query}")).await;
        assert_eq!(code, StatusCode::OK, "{events}");
        let items = events["items"].as_array().unwrap();
        items
            .iter()
            .map(|item| format!("{} {}", item["type"], item["object"]["name"]).replace('"', ""))
            .collect()
    };
    assert_eq!(short("").await, ["DELETED b", "MODIFIED a", "ADDED b", "ADDED a"]);
    assert_eq!(short("?limit=1").await, ["DELETED b"]);
    assert_eq!(short("?type=added,modified&name=a").await, ["MODIFIED a", "ADDED a"]);
    assert_eq!(short("?kind=Application&namespace=default&since=1h&type=DELETED").await, ["DELETED b"]);
    assert_eq!(short("?kind=deployments").await, [""; 0]);
    assert_eq!(short(&format!("?since={last}")).await, [""; 0]);
    assert_eq!(short(&format!("?since={}", last - 1)).await, ["DELETED b"]);
    let (_, events) = world.get("/events?type=MODIFIED").await;
    assert_eq!(events["items"][0]["changed"], json!(["metadata.generation", "spec.replicas"]));
    world.stop().await;
}

#[tokio::test]
async fn changes_are_not_recorded_without_a_limit() {
    let options = ChangesOptions { log: 0, ..ChangesOptions::default() };
    let world = World::with(None, options, DoorOptions::default()).await;
    let mut events = world.watch("/watch", None).await;
    world.send("POST", APPS, &app("a", 1)).await;
    assert_eq!(events.next().await.unwrap().event, "ADDED", "they are sent all the same");
    let (code, status) = world.get("/events").await;
    assert_eq!((code, &status["reason"]), (StatusCode::NOT_FOUND, &json!("NotFound")));
    assert!(status["message"].as_str().unwrap().contains("--event-limit"), "{status}");
    world.stop().await;
}

#[tokio::test]
async fn the_events_of_the_operator_are_shown() {
    let world = World::start().await;
    let event = |name: &str, reporter: &str, reason: &str| {
        json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name},
            "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal", "action": "Reconcile", "reason": reason,
            "note": "ConfigMap default/a-config created", "reportingController": reporter, "reportingInstance": "i",
            "regarding": {"apiVersion": "cloudnative.elide.dev/v1", "kind": "Application", "name": "a", "namespace": "default"},
        })
    };
    for (name, reporter, reason) in
        [("one", "application-operator", "Created"), ("two", "somebody-else", "Other")]
    {
        let path = "/apis/events.k8s.io/v1/namespaces/default/events";
        let (code, answer) = world.send("POST", path, &event(name, reporter, reason)).await;
        assert_eq!(code, StatusCode::CREATED, "{answer}");
    }
    let (code, events) = world.get("/events?source=controller&name=a").await;
    assert_eq!(code, StatusCode::OK, "{events}");
    let text = events["items"].to_string();
    assert_eq!(events["items"].as_array().unwrap().len(), 1, "only those of the operator: {text}");
    assert!(text.contains("Created") && text.contains("ConfigMap default/a-config created"), "{text}");
    assert_eq!(world.get("/events?source=controller&name=b").await.1["items"], json!([]));
    world.stop().await;
}

#[tokio::test]
async fn a_watch_selects_by_kind_namespace_and_name() {
    let world = World::start().await;
    let other = APPS.replace("default", "test");
    world.send("POST", APPS, &app("a", 1)).await;
    let mut changes = world.watch("/watch?initial=false", None).await;
    let mut of_b = world.watch("/watch?name=b", None).await;
    let mut in_test = world.watch("/watch?namespace=test", None).await;
    let mut owned = world.watch("/watch?kinds=Application,configmaps&name=a", None).await;
    let told = async |events: &mut Connection| {
        let event = events.next().await.unwrap();
        let of = |field: &str| event.data["metadata"][field].as_str().unwrap().to_owned();
        format!("{} {} {}/{}", event.event, event.data["kind"].as_str().unwrap(), of("namespace"), of("name"))
    };
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a",
        "labels": {"app.kubernetes.io/managed-by": "application-operator"}}});
    assert_eq!(
        world.send("POST", "/api/v1/namespaces/default/configmaps", &map).await.0,
        StatusCode::CREATED
    );
    assert_eq!(world.send("POST", APPS, &app("b", 1)).await.0, StatusCode::CREATED);
    assert_eq!(world.send("POST", &other, &app("a", 1)).await.0, StatusCode::CREATED);
    let merge = [("content-type", "application/merge-patch+json")];
    let patch = json!({"spec": {"replicas": 2}}).to_string();
    let (code, patched) = world.send_text("PATCH", &format!("{APPS}/b"), &merge, &patch).await;
    assert_eq!(code, StatusCode::OK, "{patched}");
    assert_eq!(world.send("DELETE", &format!("{APPS}/b"), &Value::Null).await.0, StatusCode::OK);

    for expected in [
        "ADDED Application default/b",
        "ADDED Application test/a",
        "MODIFIED Application default/b",
        "DELETED Application default/b",
    ] {
        assert_eq!(told(&mut changes).await, expected);
    }
    for expected in ["ADDED", "MODIFIED", "DELETED"] {
        assert_eq!(told(&mut of_b).await, format!("{expected} Application default/b"));
    }
    assert_eq!(told(&mut in_test).await, "ADDED Application test/a");
    for expected in ["ADDED Application default/a", "ADDED ConfigMap default/a", "ADDED Application test/a"] {
        assert_eq!(told(&mut owned).await, expected);
    }
    world.stop().await;
}

#[tokio::test]
async fn a_client_that_goes_leaves_nothing() {
    let world = World::start().await;
    let clients = (0..20).map(|_| world.watch("/watch?initial=false", None));
    let clients = futures_util::future::join_all(clients).await;
    world.until("door_watch_clients", |clients| clients == 20).await;
    drop(clients);
    world.until("door_watch_clients", |clients| clients == 0).await;
    world.stop().await;
}

#[tokio::test]
async fn idle_watches_have_heartbeats() {
    let options = DoorOptions { heartbeat: Duration::from_millis(1), ..DoorOptions::default() };
    let world = World::with(None, ChangesOptions::default(), options).await;
    let mut events = world.watch("/watch", None).await;
    events.heartbeat().await;
    events.heartbeat().await;
    world.stop().await;
}

#[tokio::test]
async fn a_stale_id_is_a_resync() {
    let world = World::start().await;
    let (_, stored) = world.send("POST", APPS, &app("a", 1)).await;
    let mut events = world.watch("/watch", Some(1_000_000)).await;
    let resync = events.next().await.unwrap();
    assert_eq!((&*resync.event, resync.id), ("RESYNC", None));
    let now = events.next().await.unwrap();
    assert_eq!(now.event, "ADDED");
    assert_eq!(now.id.unwrap().to_string(), stored["metadata"]["resourceVersion"].as_str().unwrap());
    world.stop().await;
}

#[tokio::test]
async fn an_id_whose_history_was_compacted_is_a_resync() {
    let folder = tempfile::tempdir().unwrap();
    let start = || World::with(Some(folder.path()), ChangesOptions::default(), DoorOptions::default());
    let world = start().await;
    let first = world.write("a", "small", "1").await;
    let second = world.write("a", "small", "2").await;
    let deleted = world.delete("a").await;
    let now = world.write("b", "small", "1").await;
    world.stop().await;

    // A restart alone loses nothing.
    let world = start().await;
    let mut events = world.watch("/watch", Some(first)).await;
    for (event, id) in [("MODIFIED", second), ("DELETED", deleted), ("ADDED", now)] {
        let seen = events.next().await.unwrap();
        assert_eq!((&*seen.event, seen.id), (event, Some(id)));
    }
    drop(events);
    world.stop().await;

    compact_folder(folder.path(), &mut |_| {}).unwrap();
    let world = start().await;
    let mut events = world.watch("/watch", Some(first)).await;
    let resync = events.next().await.unwrap();
    assert_eq!((&*resync.event, resync.id), ("RESYNC", None), "{}", resync.data);
    let current = events.next().await.unwrap();
    assert_eq!(
        (&*current.event, &current.data["metadata"]["name"], current.id),
        ("ADDED", &json!("b"), Some(now))
    );
    let later = world.write("b", "small", "2").await;
    let change = events.next().await.unwrap();
    assert_eq!((&*change.event, change.id), ("MODIFIED", Some(later)), "it goes on from there");
    world.stop().await;
}

/// Some clients look for `localhost` at `[::1]` first.
#[tokio::test(flavor = "multi_thread")]
async fn it_listens_on_both_addresses_of_localhost() {
    let world = World::start().await;
    let port = world.port();
    if world.addresses().len() == 1 {
        // The machine has no such address, or another program has this port there.
        TcpListener::bind((Ipv6Addr::LOCALHOST, port))
            .expect_err("nothing keeps the door from listening there");
    }
    for address in world.addresses() {
        assert!(address.ip().is_loopback() && address.port() == port, "{address}");
        let mut connection = TcpStream::connect(address).unwrap();
        write!(connection, "GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{address}: {answer}");
    }
    world.stop().await;
}

const CLIENTS: usize = 500;
/// Clients that read nothing for a while.
const SLOW: usize = 20;
/// Changes before, between and after the restarts.
const CHANGES: usize = 30;
const BIG: usize = 100 << 10;
/// What 500 clients, their connections and the servers may take while the slow ones do not read, in MiB. Were all changes kept for
/// those, they alone would take 180.
const MEMORY: usize = 110;

/// Where clients connect to now, and whether everything has been written.
#[derive(Clone, Copy)]
struct Stage {
    port: u16,
    done: bool,
}

/// Reads until the Application `end`, from server to server; returns the revisions it has seen.
async fn client(number: usize, mut stage: watch::Receiver<Stage>) -> Vec<u64> {
    let is_slow = number < SLOW;
    let path = if is_slow { "/watch?labelSelector=size" } else { "/watch?labelSelector=size%3Dsmall" };
    let (mut seen, mut id) = (Vec::new(), None);
    loop {
        let port = stage.borrow_and_update().port;
        let Some(mut events) = Connection::open(port, path, id).await else {
            // Between two servers.
            stage.changed().await.unwrap();
            continue;
        };
        let mut here = 0;
        while let Some(Event { event, id: at, data }) = events.next().await {
            assert!(matches!(&*event, "ADDED" | "MODIFIED" | "DELETED"), "client {number}: {event} {data}");
            id = at;
            seen.push(at.unwrap());
            here += 1;
            if data["metadata"]["name"] == "end" {
                return seen;
            }
            if is_slow && seen.len() == 1 {
                stage.wait_for(|stage| stage.done).await.unwrap();
            } else if number % 7 == 3 && here == 5 + number % 11 {
                // Some reconnect now and then.
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_clients_see_every_change_once_across_reconnects_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let options = ChangesOptions { ring: 64, ring_bytes: 1 << 20, log: 10 };
    let start = async |folder: &Path| World::with(Some(folder), options, DoorOptions::default()).await;
    let mut world = start(folder.path()).await;
    let before = resident();
    let (stages, stage) = watch::channel(Stage { port: world.port(), done: false });
    let env = Env::system();
    let (mut small, mut all) = (Vec::new(), Vec::new());
    let first = world.write("first", "small", "").await;
    small.push(first);
    all.push(first);
    let spawn = |number| env.spawn("client", client(number, stage.clone()));
    let clients: Vec<_> = (0..CLIENTS).map(spawn).collect();
    world.until("door_watch_clients", |clients| clients == CLIENTS).await;
    for third in 0..3 {
        for number in 0..CHANGES {
            let revision = world.write("first", "small", &format!("{third} {number}")).await;
            small.push(revision);
            all.push(revision);
            all.push(world.write("big", "big", &format!("{third} {number} {}", "x".repeat(BIG))).await);
        }
        let deleted = world.delete("first").await;
        small.push(deleted);
        all.push(deleted);
        if third < 2 {
            if third == 0 {
                // More has been written than the ring holds: those that read nothing are dropped.
                world.until("door_watch_dropped_total", |dropped| dropped >= SLOW).await;
            }
            world.stop().await;
            world = start(folder.path()).await;
            stages.send_modify(|stage| stage.port = world.port());
        }
    }
    let end = world.write("end", "small", "").await;
    small.push(end);
    all.push(end);
    let grown = peak().saturating_sub(before);
    assert!(grown < MEMORY, "{grown} MiB");
    stages.send_modify(|stage| stage.done = true);
    for (number, client) in clients.into_iter().enumerate() {
        let seen = client.await.unwrap();
        assert_eq!(seen, if number < SLOW { &*all } else { &*small }, "client {number}");
    }
    world.stop().await;
}

/// Resident memory of this process, and its peak, in MiB. Other tests of this file need little.
fn resident() -> usize {
    status("VmRSS:")
}

fn peak() -> usize {
    status("VmHWM:")
}

fn status(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() >> 10
}
