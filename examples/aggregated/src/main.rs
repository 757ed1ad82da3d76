//! An aggregated API server: a resource that is computed and stored nowhere.
//!
//! `usages.usage.example.com` says how many objects each namespace has. It is a tower service of 150 lines, which the
//! control plane calls twice here: without a socket, in this process; and over HTTPS at a port of its own, where the control
//! plane shows the certificate of its front proxy. Both times it is registered with an `APIService`, as on a cluster, and
//! clients see no difference to any other resource.

#![expect(clippy::print_stdout, reason = "a program speaks to its user")]

mod counts;
mod https;
mod usages;

use http_body_util::BodyExt as _;
use k1s::{BoxError, Runtime, server::ServerOptions};
use serde_json::Value;

use crate::{https::Secured, usages::Usages};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    // Where the control plane finds the Service `usage/remote`: there are no nodes that could run it.
    let secured = Secured::bind().await?;
    let mut options = ServerOptions::default();
    options.services.addresses.insert("usage/remote".into(), secured.address()?);
    let runtime = Runtime::builder().listen(([127, 0, 0, 1], 0)).server_options(options).start().await?;
    runtime.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}").await?;
    for name in ["a", "b", "c"] {
        runtime
            .apply(&format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: shop}}}}"
            ))
            .await?;
    }

    // In this process.
    runtime.serve_api("usage", "local", Usages::new("usage.example.com", runtime.client()));
    runtime.apply(&service("usage.example.com", "local", "")).await?;
    show(&runtime, "usage.example.com").await?;

    // Over HTTPS. The server trusts the front proxy of this control plane alone; the control plane trusts its authority.
    let proxies = runtime.front_proxy_authority().ok_or("the runtime listens")?;
    let trust = format!("caBundle: {}", secured.authority());
    let serving = secured.serve(Usages::new("remote.example.com", runtime.client()), proxies)?;
    runtime.apply(&service("remote.example.com", "remote", &trust)).await?;
    show(&runtime, "remote.example.com").await?;

    serving.abort();
    runtime.stop().await?;
    Ok(())
}

/// The `APIService` of a group.
fn service(group: &str, name: &str, trust: &str) -> String {
    format!(
        "apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: v1.{group}}}
spec:
  group: {group}
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 15
  service: {{namespace: usage, name: {name}}}
  {trust}
"
    )
}

/// Shows what `kubectl get usages`, `kubectl get usage shop -o yaml`, `kubectl delete usage shop` and `kubectl explain usage` get.
async fn show(runtime: &Runtime, group: &str) -> Result<(), BoxError> {
    println!("{group}");
    let path = format!("/apis/{group}/v1/usages");
    let (_, table) = send(runtime, "GET", &path, "application/json;as=Table;v=v1;g=meta.k8s.io").await?;
    for row in table["rows"].as_array().into_iter().flatten().filter(|row| row["cells"][0] == "shop") {
        println!("  table: {}", row["cells"]);
    }
    let (_, usage) = send(runtime, "GET", &format!("{path}/shop"), "application/json").await?;
    println!("  {} {}: {}", usage["kind"], usage["metadata"]["name"], usage["objects"]);
    let (code, refused) = send(runtime, "DELETE", &format!("{path}/shop"), "application/json").await?;
    println!("  delete: {code} {}", refused["reason"]);
    // Both versions of OpenAPI have its description; version 2 is one document of this server and all others.
    let (_, own) = send(runtime, "GET", &format!("/openapi/v3/apis/{group}/v1"), "application/json").await?;
    let (_, all) = send(runtime, "GET", "/openapi/v2", "application/json").await?;
    let name = "dev.k1s.example.Usage";
    for schema in [&own["components"]["schemas"][name], &all["definitions"][name]] {
        println!("  explain: {}", schema["description"]);
    }
    println!();
    Ok(())
}

async fn send(runtime: &Runtime, method: &str, path: &str, accept: &str) -> Result<(u16, Value), BoxError> {
    let request = http::Request::builder().method(method).uri(path).header("accept", accept);
    let response = runtime.client().send(request.body(Vec::new().into())?).await?;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((code, serde_json::from_slice(&body)?))
}
