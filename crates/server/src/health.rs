//! `/healthz`, `/livez`, `/readyz`, `/version` and `/metrics`.

use std::{collections::BTreeMap, sync::Arc};

use http::Response;
use k1s_object::Status;
use k1s_store::Range;
use serde_json::{Value, json};

use crate::{
    body::Body, context::Cx, errors, negotiate::Form, options::ServerOptions, request::Query, respond, table,
    tenant::Tenant,
};

/// What `/version` says.
pub(crate) fn version(options: &ServerOptions) -> Value {
    let number = options.git_version.trim_start_matches('v');
    let mut parts = number.split('.');
    let (major, minor) = (parts.next().unwrap_or("1"), parts.next().unwrap_or("0"));
    let before = minor.parse::<u32>().map_or(0, |minor| minor.saturating_sub(1)).to_string();
    json!({
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": before,
        "gitVersion": options.git_version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "rust",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// The checks, by name, of an endpoint. A store that cannot write makes a server that is not ready; to end it, as somebody may whom
/// `/livez` tells, would mend nothing.
fn checks(endpoint: &str) -> &'static [&'static str] {
    if endpoint == "readyz" { &["ping", "log", "etcd", "store"] } else { &["ping", "log", "etcd"] }
}

/// The health endpoints; everything else is not found.
pub(crate) async fn handle(
    tenant: &Arc<Tenant>,
    path: &str,
    query: &Query,
) -> Result<Response<Body>, Status> {
    let mut words = path.trim_start_matches('/').splitn(2, '/');
    let (endpoint, check) = (words.next().unwrap_or_default(), words.next());
    if !matches!(endpoint, "healthz" | "livez" | "readyz") {
        return Ok(respond::page_not_found());
    }
    let checks = checks(endpoint);
    if let Some(check) = check {
        if !checks.contains(&check) {
            return Ok(respond::page_not_found());
        }
        return Ok(match run(tenant, check).await {
            Ok(()) => {
                let mut response = respond::text(200, "ok");
                response.headers_mut().remove(http::header::X_CONTENT_TYPE_OPTIONS);
                response
            }
            Err(why) => respond::text(500, format!("internal server error: {why}\n")),
        });
    }
    let excluded: Vec<&str> = query.all("exclude").collect();
    let mut report = String::new();
    let mut failed = false;
    for &check in checks {
        if excluded.contains(&check) {
            report.push_str(&format!("[+]{check} excluded: ok\n"));
            continue;
        }
        match run(tenant, check).await {
            Ok(()) => report.push_str(&format!("[+]{check} ok\n")),
            Err(why) => {
                failed = true;
                report.push_str(&format!("[-]{check} failed: {why}\n"));
            }
        }
    }
    let unknown: Vec<&&str> = excluded.iter().filter(|name| !checks.contains(name)).collect();
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|name| format!("{name:?}")).collect();
        report.push_str(&format!(
            "warn: some health checks cannot be excluded: no matches for {}\n",
            names.join(", ")
        ));
    }
    if failed {
        report.push_str(&format!("{endpoint} check failed\n"));
        return Ok(respond::text(500, report));
    }
    if query.find("verbose").is_some() {
        report.push_str(&format!("{endpoint} check passed\n"));
        return Ok(respond::text(200, report));
    }
    Ok(respond::text(200, "ok"))
}

async fn run(tenant: &Tenant, check: &str) -> Result<(), String> {
    match check {
        "etcd" => tenant
            .store()
            .revision()
            .await
            .map(|_| ())
            .map_err(|error| format!("the store does not answer: {error}")),
        "store" => tenant.store().health().await.map_err(|error| error.to_string()),
        _ => Ok(()),
    }
}

/// `/metrics`
pub(crate) async fn metrics(tenant: &Arc<Tenant>) -> Result<Response<Body>, Status> {
    let store = tenant.store();
    let stats = store.stats().await.map_err(|error| errors::store(&error))?;
    let prefix = tenant.keys_of("", "", "");
    let root = prefix.trim_end_matches("core//").to_owned();
    let all = store.range(Range::prefix(root.clone())).await.map_err(|error| errors::store(&error))?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for entry in &all.entries {
        let key = String::from_utf8_lossy(&entry.key);
        let mut words = key.strip_prefix(&root).unwrap_or_default().split('/');
        let (group, plural) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if group == "k1s" {
            continue;
        }
        let name = if group == "core" { plural.to_owned() } else { format!("{plural}.{group}") };
        *counts.entry(name).or_default() += 1;
    }
    let counts: Vec<(String, usize)> = counts.into_iter().collect();
    let text = tenant.shared.metrics.text(&counts, &stats);
    Ok(respond::bytes(200, "text/plain; version=0.0.4; charset=utf-8", text.into_bytes()))
}

/// `ComponentStatus` is computed, never stored.
pub(crate) fn is_component_status(cx: &Cx) -> bool {
    cx.resource.kind == "ComponentStatus" && cx.resource.group.is_empty()
}

/// The parts of a control plane that there are here: the store.
async fn components(cx: &Cx) -> Vec<Value> {
    let (status, detail, text) = match run(&cx.tenant, "etcd").await {
        Ok(()) => ("True", "message", "ok".to_owned()),
        Err(why) => ("False", "error", why),
    };
    let mut condition = json!({"type": "Healthy", "status": status});
    condition[detail] = text.into();
    vec![
        json!({"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": "etcd-0"}, "conditions": [condition]}),
    ]
}

/// GET of one part.
pub(crate) async fn component_status(cx: &Cx) -> Result<Response<Body>, Status> {
    match components(cx).await.iter().find(|component| component["metadata"]["name"] == cx.name.as_str()) {
        Some(component) => respond::object(cx, 200, component),
        None => Err(Status::not_found("", "componentstatus", &cx.name)),
    }
}

/// GET of all parts.
pub(crate) async fn component_statuses(cx: &Cx) -> Result<Response<Body>, Status> {
    let mut items = components(cx).await;
    if cx.accepted.form == Form::Table {
        let table = table::build(cx, &json!({}), items.iter(), table::include(cx)?, true);
        return Ok(respond::json(200, &table));
    }
    for item in &mut items {
        if let Some(item) = item.as_object_mut() {
            item.shift_remove("kind");
            item.shift_remove("apiVersion");
        }
    }
    let list = json!({"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": items});
    respond::other(cx, 200, &list)
}
