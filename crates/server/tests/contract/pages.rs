//! Paginated lists: all pages are of the same snapshot, and count the remaining items.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures_util::future::join_all;
use k1s_env::Env;
use k1s_server::ServerOptions;
use serde_json::{Value, json};

use crate::{
    common::{self, Client, config_map, names},
    spy::Spy,
};

const ALL: &str = "/api/v1/configmaps";

fn maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

async fn filled(client: &Client, namespaces: &[&str], objects: usize) {
    for namespace in namespaces {
        client.post("/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await;
        for number in 0..objects {
            client.post(&maps(namespace), config_map(&format!("m{number:03}"))).await;
        }
    }
}

fn token(list: &Value) -> &str {
    list["metadata"]["continue"].as_str().unwrap_or_default()
}

fn remaining(list: &Value) -> Option<usize> {
    list["metadata"]["remainingItemCount"].as_u64().and_then(|left| usize::try_from(left).ok())
}

fn keys(list: &Value) -> Vec<String> {
    let key = |item: &Value| format!("{}/{}", item["metadata"]["namespace"], item["metadata"]["name"]);
    list["items"].as_array().unwrap().iter().map(key).collect()
}

/// Reads a list in pages, and checks the counts of remaining items.
async fn read(client: &Client, path: &str, limit: usize) -> Vec<String> {
    let mut page = client.get(&format!("{path}?limit={limit}")).await;
    let revision = common::revision(&page);
    let mut found = keys(&page);
    let total = found.len() + remaining(&page).unwrap_or_default();
    while !token(&page).is_empty() {
        assert_eq!(remaining(&page), Some(total - found.len()), "{path}");
        page = client.get(&format!("{path}?limit={limit}&continue={}", token(&page))).await;
        assert_eq!(common::revision(&page), revision);
        found.extend(keys(&page));
    }
    assert_eq!((remaining(&page), found.len()), (None, total), "{path}");
    found
}

#[tokio::test]
async fn remaining_items_are_counted_exactly_during_writes() {
    let spy = Spy::new();
    let client = common::client(&common::bare(&Env::system(), spy.clone(), ServerOptions::default()).await);
    filled(&client, &["a", "b", "c"], 40).await;
    let before = client.get(ALL).await;
    let writer = async {
        for number in 0..120 {
            let namespace = ["a", "b", "c"][number % 3];
            client.post(&maps(namespace), config_map(&format!("m{:03}-new", number / 3))).await;
            let path = format!("{}/m{:03}", maps(namespace), 39 - number / 3);
            client.send("DELETE", &path, &[], "").await;
            Env::system().yield_now().await;
        }
    };
    // More lists than there are pinned snapshots.
    let paths = (0..24).map(|number| match number % 4 {
        0 => (ALL.to_owned(), 7),
        1 => (maps("a"), 3),
        2 => (maps("b"), 5),
        _ => (maps("c"), 11),
    });
    let reader = |(path, limit): (String, usize)| {
        let client = &client;
        async move {
            for _ in 0..3 {
                let found = read(client, &path, limit).await;
                assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
            }
        }
    };
    tokio::join!(writer, join_all(paths.map(reader)));
    let after = client.get(ALL).await;
    assert_eq!(read(&client, ALL, 13).await, keys(&after));
    assert_ne!(keys(&before), keys(&after));
    // All pages came from memory: the cache was loaded once.
    assert_eq!(spy.ranges("/default/core/configmaps/"), 1);
}

#[tokio::test]
async fn pages_with_selectors_have_no_count_and_continue_after_the_last_item() {
    let client = common::client(&common::server().await);
    filled(&client, &["a", "b"], 20).await;
    for number in [3, 11, 17] {
        let patch = json!({"metadata": {"labels": {"app": "x"}}});
        client.call("PATCH", &format!("{}/m{number:03}", maps("b")), patch).await;
    }
    let path = format!("{ALL}?labelSelector=app%3Dx&limit=2");
    let first = client.get(&path).await;
    assert_eq!((names(&first), remaining(&first)), (vec!["m003".to_owned(), "m011".into()], None));
    let rest = client.get(&format!("{path}&continue={}", token(&first))).await;
    assert_eq!((names(&rest), token(&rest), remaining(&rest)), (vec!["m017".to_owned()], "", None));
}

#[tokio::test]
async fn old_and_made_up_continue_tokens_are_answered() {
    let client = common::client(&common::server().await);
    filled(&client, &["a", "b", "z"], 5).await;
    let first = client.get(&format!("{}?limit=2", maps("b"))).await;
    let revision = common::revision(&first);
    // The revision becomes old, but the ring has all events since.
    for number in 0..5 {
        client.send("DELETE", &format!("{}/m{number:03}", maps("b")), &[], "").await;
    }
    let forged = |revision: i64, start: &str| {
        let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start});
        format!("limit=2&continue={}", URL_SAFE_NO_PAD.encode(token.to_string()))
    };
    let revision = i64::try_from(revision).unwrap();
    // Besides the five there is the default object of the namespace.
    for (at, start, found, left) in [
        (revision, "/", 2, Some(4)),
        (revision, "m003\u{0}", 1, None),
        (revision, "m000", 2, Some(3)),
        (revision, "zzz", 0, None),
        (revision, "\u{10ffff}", 0, None),
        (-1, "a", 1, None),
        (-1, "m", 0, None),
    ] {
        let page = client.get(&format!("{}?{}", maps("b"), forged(at, start))).await;
        assert_eq!((names(&page).len(), remaining(&page)), (found, left), "{at} {start:?}: {page}");
    }
    for start in ["", "../a", "a/../../b"] {
        let (code, _) =
            client.call("GET", &format!("{}?{}", maps("b"), forged(revision, start)), Value::Null).await;
        assert_eq!(code, 400, "{start:?}");
    }
}

#[tokio::test]
async fn objects_are_selected_by_name_and_namespace_fields() {
    let client = common::client(&common::server().await);
    filled(&client, &["a", "b"], 3).await;
    let post = async |name: &str| client.post(&maps("b"), config_map(name)).await;
    post("m").await;
    for (path, field, found) in [
        (maps("b"), "metadata.name%3Dm", vec!["m"]),
        (maps("b"), "metadata.name%3Dm00", vec![]),
        (maps("b"), "metadata.name%3Dm001,metadata.namespace%3Db", vec!["m001"]),
        (maps("b"), "metadata.name%3Dm001,metadata.namespace%3Da", vec![]),
        (ALL.to_owned(), "metadata.name%3Dm001", vec!["m001", "m001"]),
        (ALL.to_owned(), "metadata.name%3Dm,metadata.namespace%3Db", vec!["m"]),
        (
            ALL.to_owned(),
            "metadata.namespace%3Da,metadata.name!%3Dm001",
            vec!["kube-root-ca.crt", "m000", "m002"],
        ),
    ] {
        let list = client.get(&format!("{path}?fieldSelector={field}")).await;
        assert_eq!(names(&list), found, "{path} {field}");
        let pages = client.get(&format!("{path}?fieldSelector={field}&limit=1")).await;
        assert_eq!(!token(&pages).is_empty(), found.len() > 1, "{path} {field}");
    }
    let mut watch = client.watch(&format!("{}?fieldSelector=metadata.name%3Dm", maps("b"))).await;
    assert_eq!(watch.brief().await.1, "m");
    post("m0").await;
    client.send("DELETE", &format!("{}/m", maps("b")), &[], "").await;
    let (what, name, _) = watch.brief().await;
    assert_eq!((&*what, &*name), ("DELETED", "m"));
}
