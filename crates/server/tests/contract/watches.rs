//! The lifecycle of a watch: its start, its events, and its end.

use std::{sync::Arc, time::Duration};

use k1s_env::Env;
use k1s_server::ServerOptions;
use k1s_store::{MemoryOptions, MemoryStore, Revision, Store as _};
use serde_json::json;

use crate::common::{self, brief, config_map, revision, simulated};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_watch_from_a_compacted_revision_gets_410_as_an_event() {
    let (env, store) = (Env::system(), Arc::new(MemoryStore::default()));
    let client = common::client(&common::server_with(&env, store.clone(), ServerOptions::default()).await);
    let old = revision(&client.post(MAPS, config_map("a")).await);
    let newest = revision(&client.post(MAPS, config_map("b")).await);
    store.compact(Revision::new(newest)).await.unwrap();
    // A new server has no events in its cache either.
    let client = common::client(&common::server_with(&env, store, ServerOptions::default()).await);
    let mut watch = client.watch(&format!("{MAPS}?resourceVersion={old}")).await;
    assert_eq!(
        watch.event().await,
        json!({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("too old resource version: {old} ({newest})"), "reason": "Expired", "code": 410}}),
    );
    assert_eq!(watch.next().await, None);
    let (status, body) = client
        .call("GET", &format!("{MAPS}?resourceVersion={old}&resourceVersionMatch=Exact"), json!(null))
        .await;
    assert_eq!((status, &body["reason"]), (410, &json!("Expired")));
    // The newest revision is not compacted, and a new list recovers.
    let mut watch = client.watch(&format!("{MAPS}?resourceVersion={newest}")).await;
    client.post(MAPS, config_map("c")).await;
    assert_eq!(watch.brief().await.1, "c");
}

#[tokio::test]
async fn a_deleted_pod_is_first_sent_with_a_grace_period_of_zero() {
    let pods = "/api/v1/namespaces/default/pods";
    let client = common::client(&common::server().await);
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    client.post(pods, json!({"metadata": {"name": "nowhere"}, "spec": spec})).await;
    let mut on_node = spec.clone();
    on_node["nodeName"] = "n".into();
    let created = client.post(pods, json!({"metadata": {"name": "on-node"}, "spec": on_node})).await;
    let mut watch = client.watch(&format!("{pods}?resourceVersion={}", revision(&created))).await;
    let shown = |event: &serde_json::Value| {
        let metadata = &event["object"]["metadata"];
        let grace = metadata["deletionGracePeriodSeconds"].as_i64();
        (event["type"].as_str().unwrap().to_owned(), grace, metadata["generation"].as_i64())
    };
    let event = |what: &str, grace, generation| (what.to_owned(), Some(grace), Some(generation));
    // A pod without a node is deleted at once, and still marked first.
    let (_, answer) = client.call("DELETE", &format!("{pods}/nowhere"), json!(null)).await;
    assert_eq!(answer["metadata"]["deletionGracePeriodSeconds"], 0);
    let marked = watch.event().await;
    assert_eq!(shown(&marked), event("MODIFIED", 0, 2));
    let gone = watch.event().await;
    assert_eq!(shown(&gone), event("DELETED", 0, 2));
    assert!(revision(&gone["object"]) > revision(&marked["object"]));
    // A pod on a node: marked with its grace period, then with zero, then deleted.
    client.call("DELETE", &format!("{pods}/on-node"), json!(null)).await;
    let waiting = watch.event().await;
    assert_eq!(shown(&waiting), event("MODIFIED", 30, 2));
    client.call("DELETE", &format!("{pods}/on-node?gracePeriodSeconds=0"), json!(null)).await;
    let over = watch.event().await;
    assert_eq!(shown(&over), event("MODIFIED", 0, 2));
    assert_eq!(shown(&watch.event().await), event("DELETED", 0, 2));
    let at = |event: &serde_json::Value| -> jiff::Timestamp {
        event["object"]["metadata"]["deletionTimestamp"].as_str().unwrap().parse().unwrap()
    };
    assert_eq!((at(&waiting) - at(&over)).get_seconds(), 30, "counted from the first deletion");
    // Also with a precondition on its resourceVersion.
    let created = client.post(pods, json!({"metadata": {"name": "exactly"}, "spec": spec})).await;
    let only = json!({"preconditions": {"resourceVersion": revision(&created).to_string()}});
    let (status, answer) = client.call("DELETE", &format!("{pods}/exactly"), only).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn a_watch_from_a_future_revision_is_silent_until_then() {
    let (client, clock) = simulated(ServerOptions::default()).await;
    let now = revision(&client.get(MAPS).await);
    let watch =
        client.watch(&format!("{MAPS}?resourceVersion={}&timeoutSeconds=20", now + 2)).await.collect();
    for name in ["a", "b", "c"] {
        client.post(MAPS, config_map(name)).await;
    }
    clock.advance_and_settle(seconds(10)).await;
    let events: Vec<_> = watch.take().iter().map(brief).collect();
    assert_eq!(events, [("ADDED".into(), "c".into(), now + 3)]);
    clock.advance_and_settle(seconds(10)).await;
    assert!(watch.ended());
}

#[tokio::test]
async fn a_list_of_a_future_revision_waits_for_it() {
    let (client, clock) = simulated(ServerOptions::default()).await;
    let now = revision(&client.get(MAPS).await);
    let read = |ahead: u64| {
        let (client, path) = (client.clone(), format!("{MAPS}?resourceVersion={}", now + ahead));
        client.env.clone().spawn("list", async move { client.call("GET", &path, json!(null)).await })
    };
    let (near, far) = (read(1), read(1000));
    clock.advance_and_settle(seconds(1)).await;
    assert!(!near.is_finished());
    client.post(MAPS, config_map("a")).await;
    clock.settle().await;
    assert!(near.is_finished() && !far.is_finished());
    assert_eq!(near.await.unwrap().0, 200);
    clock.advance_and_settle(seconds(2)).await;
    let (status, body) = far.await.unwrap();
    assert_eq!((status, &body["reason"]), (504, &json!("Timeout")));
    assert_eq!(body["message"], format!("Too large resource version: {}, current: {}", now + 1000, now + 1));
    assert_eq!(body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert_eq!(body["details"]["retryAfterSeconds"], 1);
}

#[tokio::test]
async fn bookmarks_are_sent_every_minute_and_before_the_end() {
    let (client, clock) = simulated(ServerOptions::default()).await;
    let now = revision(&client.get(MAPS).await);
    let path = format!("{MAPS}?resourceVersion={now}&timeoutSeconds=200");
    let marked = client.watch(&format!("{path}&allowWatchBookmarks=true")).await.collect();
    let plain = client.watch(&path).await.collect();
    let mut moments = Vec::new();
    for second in 1..=200 {
        // Changes of another resource advance the revision of a bookmark as well.
        if second == 90 {
            client.post("/api/v1/namespaces/default/secrets", json!({"metadata": {"name": "s"}})).await;
        }
        clock.advance_and_settle(seconds(1)).await;
        for event in marked.take() {
            assert_eq!(
                event,
                json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
                    "resourceVersion": (now + u64::from(second >= 90)).to_string()}}})
            );
            moments.push(second);
        }
    }
    assert_eq!(moments, [60, 120, 180, 198]);
    assert!(marked.ended() && plain.ended());
    assert!(plain.take().is_empty());
}

#[tokio::test]
async fn without_a_timeout_a_watch_lives_for_half_an_hour_to_an_hour() {
    let (client, clock) = simulated(ServerOptions::default()).await;
    let watches: Vec<_> = {
        let mut watches = Vec::new();
        for _ in 0..24 {
            watches.push(client.watch(&format!("{MAPS}?labelSelector=none")).await.collect());
        }
        watches
    };
    clock.advance_and_settle(seconds(30 * 60 - 1)).await;
    assert!(watches.iter().all(|watch| !watch.ended()));
    clock.advance_and_settle(seconds(15 * 60)).await;
    let ended = watches.iter().filter(|watch| watch.ended()).count();
    assert!(ended > 0 && ended < 24, "{ended} have the same lifetime");
    clock.advance_and_settle(seconds(15 * 60 + 1)).await;
    assert!(watches.iter().all(common::Collected::ended));
}

#[tokio::test]
async fn a_watch_ends_in_time_even_if_there_is_always_another_event() {
    let (client, clock) = simulated(ServerOptions::default()).await;
    let now = revision(&client.get(MAPS).await);
    let mut watch = client.watch(&format!("{MAPS}?resourceVersion={now}&timeoutSeconds=3")).await;
    client.post(MAPS, config_map("a")).await;
    // A reader so slow that there is always another event.
    let mut count = 0;
    for number in 0..100 {
        client.call("PATCH", &format!("{MAPS}/a"), json!({"data": {"n": number.to_string()}})).await;
        clock.advance_and_settle(seconds(1)).await;
        match watch.next().await {
            Some(_) => count += 1,
            None => break,
        }
    }
    assert!(count < 10, "the watch goes on");
}

#[tokio::test]
async fn watches_end_at_shutdown_and_no_task_is_left() {
    let (env, clock) = Env::simulated(7);
    let store = Arc::new(MemoryStore::new(env.clone(), MemoryOptions::default()));
    let server = common::bare(&env, store, ServerOptions::default()).await;
    let client = common::Client { server, env };
    let watch = client.watch(MAPS).await.collect();
    let other = client
        .watch("/api/v1/namespaces?sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
        .await
        .collect();
    clock.settle().await;
    assert!(!watch.ended() && !other.ended());
    client.server.shutdown();
    clock.settle().await;
    assert!(watch.ended() && other.ended());
    let env = client.env.clone();
    drop((client, watch, other));
    clock.settle().await;
    assert_eq!(env.tasks().iter().map(|task| task.name.clone()).collect::<Vec<_>>(), Vec::<String>::new());
}

#[tokio::test]
async fn a_watcher_that_lags_too_far_behind_gets_410() {
    let client = common::client(&common::server().await);
    client.post(MAPS, json!({"metadata": {"name": "big"}, "data": {"text": "x".repeat(150_000)}})).await;
    let now = revision(&client.get(MAPS).await);
    let mut slow = client.watch(&format!("{MAPS}?resourceVersion={now}")).await;
    let mut newest = now;
    for number in 0..160 {
        let patch = json!({"metadata": {"labels": {"n": number.to_string()}}});
        newest = revision(&client.call("PATCH", &format!("{MAPS}/big"), patch).await.1);
    }
    let event = slow.event().await;
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(event["object"]["reason"], "Expired");
    assert_eq!(slow.next().await, None);
    // The store has a longer history, from which all events are still available.
    let mut again = client.watch(&format!("{MAPS}?resourceVersion={now}")).await;
    for at in now + 1..=newest {
        assert_eq!(again.brief().await, ("MODIFIED".into(), "big".into(), at));
    }
}

#[tokio::test]
async fn objects_enter_and_leave_a_selection_with_their_labels() {
    let client = common::client(&common::server().await);
    client.post(MAPS, config_map("a")).await;
    let mut red = client.watch(&format!("{MAPS}?labelSelector=color%3Dred")).await;
    let mut one = client.watch("/api/v1/watch/namespaces/default/configmaps/a").await;
    let paint = |color: serde_json::Value| {
        client.call(
            "PATCH",
            "/api/v1/namespaces/default/configmaps/a",
            json!({"metadata": {"labels": {"color": color}}}),
        )
    };
    let added = revision(&paint(json!("red")).await.1);
    assert_eq!(red.brief().await, ("ADDED".into(), "a".into(), added));
    let gone = revision(&paint(json!("blue")).await.1);
    let event = red.event().await;
    // The previous object, at the revision at which it left the selection.
    assert_eq!(brief(&event), ("DELETED".into(), "a".into(), gone));
    assert_eq!(event["object"]["metadata"]["labels"]["color"], "red");
    paint(json!("red")).await;
    client.call("DELETE", &format!("{MAPS}/a"), json!(null)).await;
    assert_eq!(red.brief().await.0, "ADDED");
    let (kind, _, last) = red.brief().await;
    assert_eq!(kind, "DELETED");
    assert!(last > gone + 1);
    let mut kinds = Vec::new();
    for _ in 0..5 {
        kinds.push(one.brief().await.0);
    }
    assert_eq!(kinds, ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]);
}

#[tokio::test]
async fn the_initial_events_end_with_a_bookmark() {
    let client = common::client(&common::server().await);
    for number in 0..150 {
        client.post(MAPS, config_map(&format!("map-{number:03}"))).await;
    }
    let now = revision(&client.get(MAPS).await);
    let path =
        format!("{MAPS}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
    for version in ["".to_owned(), "&resourceVersion=0".into(), format!("&resourceVersion={now}")] {
        let mut watch = client.watch(&format!("{path}{version}")).await;
        for _ in 0..151 {
            assert_eq!(watch.event().await["type"], "ADDED");
        }
        let event = watch.event().await;
        assert_eq!(
            event,
            json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
                "resourceVersion": revision(&event["object"]).to_string(),
                "annotations": {"k8s.io/initial-events-end": "true"}}}})
        );
        assert!(revision(&event["object"]) >= now);
    }
    let mut from_now =
        client.watch(&format!("{MAPS}?sendInitialEvents=false&resourceVersionMatch=NotOlderThan")).await;
    client.post(MAPS, config_map("later")).await;
    assert_eq!(from_now.brief().await.1, "later");
}
