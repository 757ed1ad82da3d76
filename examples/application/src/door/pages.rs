//! `GET /`, as JSON or as a page, and `GET /crd`.

use http::{HeaderMap, Response, StatusCode, header};
use k1s::{object, server::Status};
use kube::CustomResourceExt as _;
use serde_json::{Value, json};

use super::respond::{Body, Parameters, TEXT, json, respond};
use crate::Application;

/// The endpoints, and what they are for.
const ENDPOINTS: [(&str, &str); 8] = [
    ("/apis/cloudnative.elide.dev/v1/namespaces/{namespace}/applications", "the API: GET, POST"),
    (
        "/apis/cloudnative.elide.dev/v1/namespaces/{namespace}/applications/{name}",
        "the API: GET, PUT, PATCH, DELETE",
    ),
    (
        "/watch",
        "changes of Applications as server-sent events; ?kinds=Deployment,Job,Service,ConfigMap, ?namespace=, ?name=, ?labelSelector=, ?initial=false",
    ),
    (
        "/events",
        "recorded changes, newest first; ?type=, ?kind=, ?namespace=, ?name=, ?since=10m, ?limit=, ?source=controller",
    ),
    ("/crd", "the definition of Application; ?format=yaml"),
    ("/metrics", "metrics of the operator and of the control plane"),
    ("/healthz", "whether it runs"),
    ("/readyz", "whether it is ready"),
];

pub(super) fn root(url: &str, headers: &HeaderMap) -> Response<Body> {
    let endpoints: serde_json::Map<String, Value> =
        ENDPOINTS.iter().map(|(path, what)| ((*path).to_owned(), (*what).into())).collect();
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if accept.split(',').any(|kind| kind.trim().starts_with("text/html")) {
        return respond(StatusCode::OK, "text/html; charset=utf-8", page());
    }
    let information = json!({
        "name": "application-operator",
        "description": "creates a Deployment or a Job, a Service and a ConfigMap for each Application",
        "version": env!("CARGO_PKG_VERSION"),
        "kind": {"group": "cloudnative.elide.dev", "version": "v1", "kind": "Application", "plural": "applications"},
        "url": url,
        "endpoints": endpoints,
    });
    json(StatusCode::OK, &information)
}

fn page() -> String {
    let rows: String = ENDPOINTS
        .iter()
        .map(|(path, what)| {
            let shown = match path.contains('{') {
                true => format!("<code>{path}</code>"),
                false => format!("<a href=\"{path}\"><code>{path}</code></a>"),
            };
            format!("<tr><td>{shown}</td><td>{what}</td></tr>\n")
        })
        .collect();
    PAGE.replace("{rows}", &rows)
}

/// It shows the Applications as they change.
const PAGE: &str = r#"<!doctype html>
<html lang="en"><meta charset="utf-8"><title>k1s demo</title>
<style>body{font:16px/1.5 sans-serif;margin:2em;max-width:70em}td,th{padding:.2em 1em .2em 0;text-align:left;vertical-align:top}</style>
<h1>Applications</h1>
<table><thead><tr><th>Namespace<th>Name<th>Phase<th>Ready<th>Image</tr></thead><tbody id="apps"></tbody></table>
<h2>Endpoints</h2>
<table>
{rows}</table>
<script>
const apps = new Map(), body = document.getElementById("apps");
const show = () => body.replaceChildren(...[...apps.values()].map(({metadata, spec, status = {}}) => {
  const row = document.createElement("tr");
  const ready = (status.readyReplicas ?? 0) + "/" + spec.replicas;
  for (const text of [metadata.namespace, metadata.name, status.phase ?? "", ready, spec.image])
    row.insertCell().textContent = text;
  return row;
}));
const events = new EventSource("/watch");
const on = (type, change) => events.addEventListener(type, event => { change(JSON.parse(event.data)); show(); });
for (const type of ["ADDED", "MODIFIED"]) on(type, app => apps.set(app.metadata.uid, app));
on("DELETED", app => apps.delete(app.metadata.uid));
on("RESYNC", () => apps.clear());
</script>
</html>
"#;

pub(super) fn crd(query: Option<&str>, headers: &HeaderMap) -> Result<Response<Body>, Status> {
    let parameters = Parameters::parse(query, &["format", "pretty"])?;
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let wanted = parameters.get("format").unwrap_or(if accept.contains("yaml") { "yaml" } else { "json" });
    let crd = serde_json::to_value(Application::crd()).map_err(Status::internal)?;
    match wanted {
        "json" => Ok(json(StatusCode::OK, &crd)),
        "yaml" => Ok(respond(StatusCode::OK, "application/yaml", object::to_yaml(&crd))),
        other => {
            Err(Status::bad_request(format!("format: {other:?} is unknown; it is \"json\" or \"yaml\"")))
        }
    }
}

pub(super) fn checks(failures: &[(std::sync::Arc<str>, String)], name: &str) -> Response<Body> {
    if failures.is_empty() {
        return respond(StatusCode::OK, TEXT, "ok\n");
    }
    let lines: String = failures.iter().map(|(check, why)| format!("[-]{check} failed: {why}\n")).collect();
    respond(StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("{lines}{name} check failed\n"))
}
