//! Expensive requests: they do not delay others, and their memory is bounded.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use k1s_env::Env;
use k1s_server::ServerOptions;
use k1s_store::MemoryStore;
use serde_json::{Value, json};
use tower::Service as _;

use crate::common::{self, Client, simulated};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// On one thread, so that anything that blocks it would block everything.
#[tokio::test]
async fn small_requests_do_not_wait_for_large_ones() {
    let env = Env::system();
    let mut options = ServerOptions::default();
    options.limits.max_large = 1;
    let client = Client {
        server: common::bare(&env, Arc::new(MemoryStore::default()), options).await,
        env: env.clone(),
    };
    let data: serde_json::Map<String, Value> =
        (0..40_000).map(|number| (format!("key-{number}"), json!("x"))).collect();
    let body = json!({"metadata": {"generateName": "large-"}, "data": data}).to_string();
    let large: Vec<_> = (0..3)
        .map(|_| {
            let (mut server, body) = (client.server.clone(), body.clone());
            env.spawn("client", async move {
                let request = Request::post(MAPS).body(Full::new(Bytes::from(body))).unwrap();
                server.call(request).await.unwrap().status().as_u16()
            })
        })
        .collect();
    let running =
        || env.tasks().iter().find(|task| task.name == "large request").map_or(0, |task| task.running());
    common::eventually("large requests are worked on", || async { running() > 0 }).await;
    for _ in 0..20 {
        assert_eq!(client.send("GET", "/healthz", &[], "").await.status, 200);
        let (status, _) = client.call("POST", MAPS, json!({"metadata": {"generateName": "small-"}})).await;
        assert_eq!(status, 201);
        // One at a time, plus one for administrators such as this one.
        assert!(running() <= 2);
    }
    assert!(large.iter().any(|task| !task.is_finished()), "three such objects take longer");
    for task in large {
        assert_eq!(task.await.unwrap(), 201);
    }
}

#[tokio::test]
async fn a_request_that_is_large_because_of_stored_objects_runs_apart_once() {
    let env = Env::system();
    let client = Client {
        server: common::bare(&env, Arc::new(MemoryStore::default()), ServerOptions::default()).await,
        env: env.clone(),
    };
    let large = json!({"metadata": {"name": "large"}, "data": {"a": "x".repeat(100_000)}});
    client.post(MAPS, large).await;
    let path = format!("{MAPS}/large");
    let (status, patched) = client.call("PATCH", &path, json!({"data": {"b": "c"}})).await;
    assert_eq!((status, &patched["data"]["b"]), (200, &json!("c")));
    let answer = client.send("GET", &path, &[("accept", "application/yaml")], "").await;
    assert_eq!((answer.status, answer.text().contains("b: c")), (200, true));
    let (status, replaced) = client.call("PUT", &path, json!({"metadata": {"name": "large"}})).await;
    assert_eq!((status, replaced.get("data")), (200, None));
    client
        .call("PUT", &path, json!({"metadata": {"name": "large"}, "data": {"a": "x".repeat(100_000)}}))
        .await;
    assert_eq!(client.call("DELETE", &path, Value::Null).await.0, 200);
    assert_eq!(client.call("GET", &path, Value::Null).await.0, 404);
    for number in 0..3 {
        let map = json!({"metadata": {"name": format!("n-{number}")}, "data": {"a": "x".repeat(100_000)}});
        client.post(MAPS, map).await;
    }
    let (status, deleted) = client.call("DELETE", MAPS, Value::Null).await;
    // Including the one with the certificate authority.
    assert_eq!((status, deleted["items"].as_array().unwrap().len()), (200, 4));
    assert_eq!(client.get(MAPS).await["items"], json!([]));
}

#[tokio::test]
async fn a_page_with_a_selector_is_as_large_as_what_is_scanned_for_it() {
    let env = Env::system();
    let mut options = ServerOptions::default();
    // A small request looks at 500 objects at most.
    options.limits.large_bytes = 1000;
    let client = Client {
        server: common::bare(&env, Arc::new(MemoryStore::default()), options).await,
        env: env.clone(),
    };
    for number in 0..600 {
        let name = format!("m{number:03}");
        let labels = match number {
            0 | 599 => json!({"app": "web", "end": "yes"}),
            _ => json!({"app": "web"}),
        };
        client.post(MAPS, json!({"metadata": {"name": name, "labels": labels}})).await;
    }
    client.get(MAPS).await;
    // A large request is answered by another thread, and not at once.
    let request =
        Request::get(format!("{MAPS}?limit=10&labelSelector=app%3Dweb")).body(Full::<Bytes>::default());
    let answer = client.server.clone().call(request.unwrap()).now_or_never();
    let body = answer.expect("a small request").unwrap().into_body().collect().await.unwrap().to_bytes();
    let page: Value = serde_json::from_slice(&body).unwrap();
    let expected: Vec<String> = (0..10).map(|number| format!("m{number:03}")).collect();
    assert_eq!(common::names(&page), expected);
    // These are not found among the first 500: the page, and whether there is another one.
    let mut found = Vec::new();
    let mut token = String::new();
    for _ in 0..2 {
        let path = format!("{MAPS}?limit=1&labelSelector=end%3Dyes&continue={token}");
        let page = client.get(&path).await;
        found.extend(common::names(&page));
        token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!((found, token), (vec!["m000".to_owned(), "m599".to_owned()], String::new()));
}

#[tokio::test]
async fn a_simulation_runs_large_requests_on_its_own_thread() {
    let (client, clock) = simulated(ServerOptions::default()).await;
    let post = client.env.spawn("client", {
        let client = client.clone();
        async move {
            let map = json!({"metadata": {"name": "large"}, "data": {"a": "x".repeat(100_000)}});
            client.call("POST", MAPS, map).await.0
        }
    });
    clock.settle().await;
    assert!(post.is_finished());
    assert_eq!(post.await.unwrap(), 201);
}

/// A table without its last column: the age of an object differs between requests.
fn without_ages(mut table: Value) -> Value {
    for row in table["rows"].as_array_mut().into_iter().flatten() {
        row["cells"].as_array_mut().unwrap().pop();
    }
    table
}

#[tokio::test]
async fn lists_encoded_in_chunks_are_complete() {
    let mut options = ServerOptions::default();
    // Allows one such list at a time.
    options.limits.max_answer_bytes_in_flight = 1000;
    let env = Env::system();
    let client = Client {
        server: common::bare(&env, Arc::new(MemoryStore::default()), options).await,
        env: env.clone(),
    };
    for count in [0, 1, 200] {
        for number in 0..count {
            let map = json!({"metadata": {"name": format!("m-{number:03}"), "labels": {"a": "b"}},
                "data": {"items": "\nitems: []\n\"items\":[]", "rows": "rows: []\n", "text": "x".repeat(1000)}});
            client.call("POST", MAPS, map).await;
        }
        let path = format!("{MAPS}?labelSelector=a%3Db");
        let list = client.get(&path).await;
        assert_eq!(list["items"].as_array().unwrap().len(), count);
        let as_form = |form: &str| format!("application/json;as={form};v=v1;g=meta.k8s.io");
        let read = async |accept: &str| client.send("GET", &path, &[("accept", accept)], "").await;

        let yaml = k1s_object::yaml::decode(&read("application/yaml").await.body).unwrap().value;
        assert_eq!(yaml, list);

        let lookup = |api_version: &str, kind: &str| k1s_kinds::body("", api_version, kind);
        let bytes = read("application/vnd.kubernetes.protobuf").await.body;
        let decoded = k1s_kinds::protobuf::decode(&bytes, lookup).unwrap();
        let names = |list: &Value, field: &str| -> Vec<Value> {
            list[field]
                .as_array()
                .into_iter()
                .flatten()
                .map(|item| item["metadata"]["name"].clone())
                .collect()
        };
        assert_eq!(names(&decoded, "items"), names(&list, "items"));
        assert_eq!(decoded["metadata"]["resourceVersion"], list["metadata"]["resourceVersion"]);

        let table = read(&as_form("Table")).await.json();
        let rows: Vec<Value> =
            table["rows"].as_array().unwrap().iter().map(|row| row["cells"][0].clone()).collect();
        assert_eq!(rows, names(&list, "items"));
        assert_eq!(table["metadata"], list["metadata"]);
        assert!(!table["columnDefinitions"].as_array().unwrap().is_empty());
        let yaml = read(&as_form("Table").replace("json", "yaml")).await;
        assert_eq!(without_ages(k1s_object::yaml::decode(&yaml.body).unwrap().value), without_ages(table));

        let partial = read(&as_form("PartialObjectMetadataList")).await.json();
        assert_eq!(names(&partial, "items"), names(&list, "items"));
        assert_eq!(partial["metadata"], list["metadata"]);
        let yaml = read(&as_form("PartialObjectMetadataList").replace("json", "yaml")).await;
        assert_eq!(k1s_object::yaml::decode(&yaml.body).unwrap().value, partial);
    }
}

/// A watch whose client does not read holds only a few encoded objects, not all of them.
#[tokio::test]
async fn a_watch_of_large_objects_encodes_a_few_at_a_time() {
    let env = Env::system();
    let client = Client {
        server: common::bare(&env, Arc::new(MemoryStore::default()), ServerOptions::default()).await,
        env: env.clone(),
    };
    let large = |number: usize| json!({"metadata": {"name": format!("n-{number}"), "labels": {"a": "b"}}, "data": {"a": "x".repeat(300_000)}});
    let path = format!("{MAPS}?labelSelector=a%3Db&watch=true");
    let mut empty = client.open("GET", &path, &[], "").await.into_body();
    for number in 0..6 {
        client.post(MAPS, large(number)).await;
    }
    let mut full = client.open("GET", &path, &[], "").await.into_body();
    for body in [&mut empty, &mut full] {
        let mut events = 0;
        while events < 6 {
            let piece = env.timeout(common::HANG, body.frame()).await.unwrap().unwrap().unwrap();
            let piece = piece.into_data().unwrap();
            assert!(piece.len() < 1_000_000, "{}", piece.len());
            events += piece.iter().filter(|byte| **byte == b'\n').count();
        }
    }
}
