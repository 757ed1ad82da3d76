//! A server in this process, and requests to it.

use std::time::Duration;

use http::Request;
use http_body_util::BodyExt as _;
use k1s_server::{ApiServer, Body};
use serde_json::{Value, json};
use tower::Service as _;

pub(crate) use crate::common::server;

/// A response.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

impl Answer {
    /// The message of a failure.
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

async fn open(
    server: &ApiServer,
    method: &str,
    path: &str,
    content_type: &str,
    body: String,
) -> http::Response<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(Body::from(body.into_bytes()))
        .unwrap();
    server.clone().call(request).await.unwrap()
}

/// Sends a raw body.
pub(crate) async fn send(
    server: &ApiServer,
    method: &str,
    path: &str,
    content_type: &str,
    body: &str,
) -> Answer {
    let response = open(server, method, path, content_type, body.to_owned()).await;
    let code = response.status().as_u16();
    let warnings =
        response.headers().get_all("warning").iter().map(|text| text.to_str().unwrap().to_owned()).collect();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
    Answer { code, warnings, body }
}

/// Sends JSON; `null` means no body.
pub(crate) async fn call(server: &ApiServer, method: &str, path: &str, body: Value) -> Answer {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    send(server, method, path, "application/json", &text).await
}

/// A patch, of the type `json`, `merge` or `strategic-merge`.
pub(crate) async fn patch(server: &ApiServer, kind: &str, path: &str, body: Value) -> Answer {
    send(server, "PATCH", path, &format!("application/{kind}-patch+json"), &body.to_string()).await
}

/// Creates an object, which has to succeed.
pub(crate) async fn create(server: &ApiServer, path: &str, body: Value) -> Value {
    let answer = call(server, "POST", path, body).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    answer.body
}

/// Opens a watch and reads it to its end.
pub(crate) async fn watch_to_the_end(
    server: &ApiServer,
    path: &str,
) -> impl Future<Output = Vec<(String, String)>> + Send + 'static {
    let body = open(server, "GET", path, "application/json", String::new()).await.into_body();
    async move {
        let all = k1s_env::Env::system()
            .timeout(Duration::from_secs(30), body.collect())
            .await
            .expect("the watch has no end");
        let all = all.unwrap().to_bytes();
        all.split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| {
                let event: Value = serde_json::from_slice(line).unwrap();
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
            })
            .collect()
    }
}
