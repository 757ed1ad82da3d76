//! Runs the example.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../src/counts.rs"]
mod counts;
#[path = "../src/usages.rs"]
mod usages;

use http_body_util::BodyExt as _;
use k1s::Runtime;
use serde_json::Value;

#[test]
fn usages_are_computed_in_process_and_over_https() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_k1s-example-aggregated")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    // The ConfigMaps a, b and c, and the authority of the server.
    let each = "  table: [\"shop\",4,0]\n  \"Usage\" \"shop\": {\"configmaps\":4,\"secrets\":0,\"services\":0,\"pods\":0,\
                \"deployments\":0}\n  delete: 405 \"MethodNotAllowed\"\n";
    let explain = "  explain: \"Usage says how many objects a namespace has.\"\n".repeat(2);
    let each = format!("{each}{explain}\n");
    assert_eq!(text, format!("usage.example.com\n{each}remote.example.com\n{each}"));
}

/// A block of a language on the page about aggregation.
fn block(language: &str) -> &'static str {
    const PAGE: &str = include_str!("../../../docs/aggregation.md");
    let (_, rest) = PAGE.split_once(&format!("```{language}\n")).expect("such a block");
    rest.split_once("```").expect("its end").0
}

/// What `kubectl get` prints of a path: the words of each line.
async fn lines(runtime: &Runtime, path: &str) -> Vec<Vec<String>> {
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let request = http::Request::get(path).header("accept", accept).body(Vec::new().into()).unwrap();
    let body = runtime.client().send(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    let table: Value = serde_json::from_slice(&body).unwrap();
    let columns = table["columnDefinitions"].as_array().unwrap();
    let shown: Vec<usize> = (0..columns.len()).filter(|place| columns[*place]["priority"] == 0).collect();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let head = shown.iter().map(|place| text(&columns[*place]["name"]).to_uppercase()).collect();
    let rows = table["rows"].as_array().unwrap().iter();
    let rows = rows.map(|row| shown.iter().map(|place| text(&row["cells"][*place])).collect());
    std::iter::once(head).chain(rows).collect()
}

#[tokio::test]
async fn the_page_shows_what_kubectl_prints() {
    let runtime = Runtime::builder().listen(([127, 0, 0, 1], 0)).start().await.unwrap();
    runtime.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}").await.unwrap();
    for name in ["a", "b", "c"] {
        let map = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: shop}}}}");
        runtime.apply(&map).await.unwrap();
    }
    runtime.serve_api("usage", "local", usages::Usages::new("usage.example.com", runtime.client()));
    runtime.apply(block("yaml")).await.unwrap();
    let usages = lines(&runtime, "/apis/usage.example.com/v1/usages").await;
    let service = lines(&runtime, "/apis/apiregistration.k8s.io/v1/apiservices/v1.usage.example.com").await;
    let mut printed: &[Vec<String>] = &[];
    for line in block("console").lines().filter(|line| *line != "...") {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["$", "kubectl", "get", "usages"] => printed = &usages,
            ["$", "kubectl", "get", "apiservice", "v1.usage.example.com"] => printed = &service,
            // The age differs.
            [words @ .., age] if age.ends_with('s') && age.len() == 2 => {
                assert!(printed.iter().any(|line| line[..line.len() - 1] == *words), "{line}: {printed:?}");
            }
            words => assert!(printed.iter().any(|line| line == words), "{line}: {printed:?}"),
        }
    }
    assert!(!printed.is_empty());
    runtime.stop().await.unwrap();
}
