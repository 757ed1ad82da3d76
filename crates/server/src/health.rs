//! `/healthz`, `/livez`, `/readyz`, `/version` and `/metrics`.

use std::sync::Arc;

use http::Response;
use k1s_object::{
    Status,
    selector::{FieldSelector, LabelSelector},
};
use serde_json::{Value, json};

use crate::{
    body::Body,
    context::Cx,
    errors,
    negotiate::Form,
    options::{HealthCheck, ServerOptions},
    request::Query,
    respond, table,
    tenant::Tenant,
};

/// The document at `/version`.
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

/// The names of an endpoint's checks. A store that cannot write makes the server unready but not unhealthy: restarting it,
/// as a failing `/livez` may cause, would not help.
fn checks(options: &ServerOptions, endpoint: &str) -> Vec<&'static str> {
    let mut names = vec!["ping", "log", "etcd"];
    if endpoint == "readyz" {
        names.push("store");
    }
    names.extend(options.health_checks.iter().map(HealthCheck::name));
    names
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
    let checks = checks(tenant.options(), endpoint);
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
    for &check in &checks {
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
    let (probe, store) = (&tenant.shared.probe, &**tenant.store());
    match check {
        "etcd" => probe.answers(store).await,
        "store" => probe.takes_writes(store).await,
        _ => match tenant.options().health_checks.iter().find(|one| one.name() == check) {
            Some(found) => found.run().await,
            None => Ok(()),
        },
    }
}

/// `/metrics`; `more`: those of other parts of the server.
pub(crate) async fn metrics(tenant: &Arc<Tenant>, more: &str) -> Result<Response<Body>, Status> {
    let revision = tenant.revision().await?;
    let stats = tenant.shared.probe.stats(tenant.env(), &**tenant.store()).await;
    let mut stats = stats.map_err(|error| errors::store(&error))?;
    stats.revision = revision;
    let counts = tenant.counts.at(tenant, revision).await?;
    let documents = tenant.shared.documents.built();
    let mut text = tenant.shared.metrics.text(&counts, &stats, documents);
    tenant.flows.write_metrics(&mut text);
    if let Some(auditor) = &tenant.shared.audit {
        auditor.metrics(&mut text);
    }
    text.push_str(more);
    Ok(respond::bytes(200, "text/plain; version=0.0.4; charset=utf-8", text.into_bytes()))
}

/// `ComponentStatus` is computed, never stored.
pub(crate) fn is_component_status(cx: &Cx) -> bool {
    cx.resource.kind == "ComponentStatus" && cx.resource.group.is_empty()
}

/// The components: the store, the controllers if they run with the server, and no scheduler. Where kube-apiserver would
/// fail to reach a component, the message says that there is none.
async fn components(cx: &Cx) -> Vec<Value> {
    let component = |name: &str, healthy: bool, message: &str, error: &str| {
        let mut condition = json!({"type": "Healthy", "status": if healthy { "True" } else { "False" }});
        for (field, text) in [("message", message), ("error", error)] {
            if !text.is_empty() {
                condition[field] = text.into();
            }
        }
        json!({"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name}, "conditions": [condition]})
    };
    let controllers = match cx.tenant.options().tenant_hook {
        Some(_) => component("controller-manager", true, "ok", ""),
        None => component("controller-manager", false, "no controllers run with this server", ""),
    };
    let store = match run(&cx.tenant, "etcd").await {
        Ok(()) => component("etcd-0", true, "ok", ""),
        Err(why) => component("etcd-0", false, "", &why),
    };
    vec![controllers, component("scheduler", false, "this control plane has no scheduler", ""), store]
}

/// GET of one component.
pub(crate) async fn component_status(cx: &Cx) -> Result<Response<Body>, Status> {
    match components(cx).await.iter().find(|component| component["metadata"]["name"] == cx.name.as_str()) {
        Some(component) => respond::object(cx, 200, component),
        None => Err(Status::not_found("", "componentstatus", &cx.name)),
    }
}

/// GET of all components.
pub(crate) async fn component_statuses(cx: &Cx) -> Result<Response<Body>, Status> {
    let labels = LabelSelector::parse(cx.query.get("labelSelector")).map_err(Status::bad_request)?;
    let fields = FieldSelector::parse(cx.query.get("fieldSelector")).map_err(Status::bad_request)?;
    let mut items = components(cx).await;
    // Components have no labels, and can only be selected by name.
    items.retain(|item| {
        let name = item["metadata"]["name"].as_str();
        let field = |field: &str| if field == "metadata.name" { name } else { None };
        labels.matches(|_| None) && fields.matches(field)
    });
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
