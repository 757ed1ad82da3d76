//! Limits: the size of bodies, selectors, depth.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use http::Request;
use http_body_util::{BodyExt as _, StreamBody};
use k1s_env::Env;
use k1s_server::ServerOptions;
use k1s_store::MemoryStore;
use serde_json::{Value, json};
use tower::Service as _;

use crate::common::{self, config_map, simulated};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A body that begins and never ends.
fn endless() -> StreamBody<impl futures_util::Stream<Item = Result<http_body::Frame<Bytes>, Infallible>>> {
    StreamBody::new(stream::unfold(true, |first| async move {
        if !first {
            std::future::pending::<()>().await;
        }
        Some((Ok(http_body::Frame::data(Bytes::from_static(b"{"))), false))
    }))
}

#[tokio::test]
async fn a_body_over_three_mebibytes_is_rejected() {
    let client = common::client(&common::server().await);
    let body = json!({"metadata": {"name": "big"}, "data": {"text": "x".repeat(3 << 20)}});
    let (status, body) = client.call("POST", MAPS, body).await;
    assert_eq!((status, &body["reason"]), (413, &json!("RequestEntityTooLarge")));
    assert_eq!(body["message"], "Request entity too large: limit is 3145728");
    // A body without a declared length is counted while it is read.
    let chunks =
        (0..400).map(|_| Ok::<_, Infallible>(http_body::Frame::data(Bytes::from(vec![b' '; 10_000]))));
    let request = Request::post(MAPS).body(StreamBody::new(stream::iter(chunks))).unwrap();
    assert_eq!(client.server.clone().call(request).await.unwrap().status(), 413);
    // A body within the limit may still be too large for the kind.
    let body = json!({"metadata": {"name": "big"}, "data": {"text": "x".repeat(2 << 20)}});
    assert_eq!(client.call("POST", MAPS, body).await.0, 422);
}

#[tokio::test]
async fn a_body_that_never_arrives_times_out() {
    let (client, clock) = simulated(ServerOptions::default()).await;
    let mut server = client.server.clone();
    let task = client.env.spawn("slow request", async move {
        let request = Request::post(MAPS).body(endless()).unwrap();
        let answer = server.call(request).await.unwrap();
        (answer.status().as_u16(), answer.into_body().collect().await.unwrap().to_bytes())
    });
    clock.advance_and_settle(Duration::from_secs(59)).await;
    assert!(!task.is_finished());
    clock.advance_and_settle(Duration::from_secs(2)).await;
    let (status, body) = task.await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, &body["reason"]), (504, &json!("Timeout")));
}

#[tokio::test]
async fn huge_selectors_are_rejected() {
    let mut options = ServerOptions::default();
    options.max_selector_bytes = 40_000;
    let env = Env::system();
    let client = common::client(&common::server_with(&env, Arc::new(MemoryStore::default()), options).await);
    let long = "a".repeat(40_001);
    for (path, message) in [
        (format!("{MAPS}?labelSelector={long}"), "labelSelector is longer than 40000 bytes"),
        (
            format!("{MAPS}?watch=true&fieldSelector=metadata.name%3D{long}"),
            "fieldSelector is longer than 40000 bytes",
        ),
    ] {
        let (status, body) = client.call("GET", &path, json!(null)).await;
        assert_eq!((status, body["message"].as_str().unwrap()), (400, message));
    }
    let many: Vec<String> = (0..5000).map(|number| format!("k{number}")).collect();
    let list = client.get(&format!("{MAPS}?labelSelector={}", many.join(","))).await;
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn documents_that_are_too_deep_are_rejected() {
    let client = common::client(&common::server().await);
    client
        .post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", common::definition("deep.k1s.dev"))
        .await;
    let things = "/apis/deep.k1s.dev/v1/namespaces/default/things";
    client
        .post(things, json!({"apiVersion": "deep.k1s.dev/v1", "kind": "Thing", "metadata": {"name": "a"}}))
        .await;
    client.post(MAPS, config_map("a")).await;
    for depth in [1_000, 100_000, 500_000] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let (open_map, close_map) = ("{\"a\":".repeat(depth), "}".repeat(depth));
        let thing = r#""apiVersion":"deep.k1s.dev/v1","kind":"Thing""#;
        for (method, path, content_type, body) in [
            (
                "POST",
                MAPS,
                "application/json",
                format!("{{\"metadata\":{{\"name\":\"x\"}},\"data\":{open}{close}}}"),
            ),
            ("POST", MAPS, "application/yaml", format!("metadata: {{name: x}}\ndata: {open}{close}\n")),
            (
                "POST",
                things,
                "application/json",
                format!("{{{thing},\"metadata\":{{\"name\":\"x\"}},\"spec\":{open_map}1{close_map}}}"),
            ),
            ("POST", things, "application/yaml", format!("spec: {open_map}1{close_map}\n")),
            (
                "PATCH",
                &*format!("{things}/a"),
                "application/merge-patch+json",
                format!("{{\"spec\":{open_map}1{close_map}}}"),
            ),
            (
                "PATCH",
                &*format!("{MAPS}/a"),
                "application/strategic-merge-patch+json",
                format!("{{\"data\":{open_map}1{close_map}}}"),
            ),
            (
                "PATCH",
                &*format!("{things}/a"),
                "application/json-patch+json",
                format!("[{{\"op\":\"add\",\"path\":\"/spec\",\"value\":{open}{close}}}]"),
            ),
            (
                "PATCH",
                &*format!("{things}/a?fieldManager=m"),
                "application/apply-patch+yaml",
                format!("spec: {open}{close}"),
            ),
            ("DELETE", &*format!("{MAPS}/none"), "application/json", open.clone()),
        ] {
            let answer = client.send(method, path, &[("content-type", content_type)], body).await;
            assert!(
                (400..500).contains(&answer.status),
                "{method} {path} {content_type} of {depth}: {}",
                answer.text()
            );
        }
    }
}
