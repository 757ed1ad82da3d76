//! Checks the servers behind a tenant's `APIService`s, and reads their discovery documents.
//!
//! One task per tenant, with a limited number of checks at a time. A server that hangs delays the checks of others by at most
//! the time limits of a check.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use k1s_env::Instant;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::Digest as _;

use super::{
    fetch::{self, Get, MAX_DOCUMENT_BYTES},
    openapi, probe, proxy,
    resources::{self, ByVersion, Resource},
};
use crate::{
    context::Cx,
    errors::Error,
    identity::User,
    managed,
    objectmeta::meta_text,
    services::ServicePort,
    tenant::{
        Tenant,
        apis::{API_SERVICES, Api, Apis, Availability, Backend, available_condition},
    },
    write,
};

/// Maximum number of checks at a time.
const MAX_CHECKS: usize = 16;
/// The first interval between checks of a server that is not available; it doubles up to that of available ones.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// Interval between reads of a server's discovery documents.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(60);
/// How long a document is shared by the `APIService`s of one server.
const SHARED_FOR: Duration = Duration::from_secs(5);
/// Maximum size of the resources that all servers of a tenant report, as JSON.
const MAX_RESOURCES_BYTES: usize = 16 << 20;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// When an `APIService` is looked at again.
#[derive(Debug, Clone, Copy)]
struct Plan {
    check_at: Instant,
    failures: u32,
    discover_at: Instant,
}

/// The last discovery documents by server.
type Documents = Mutex<HashMap<ServicePort, Document>>;

struct Document {
    read: Instant,
    etag: String,
    found: Arc<ByVersion>,
}

/// Runs until the tenant has no aggregated APIs any more, or ends.
pub(super) async fn run(tenant: Arc<Tenant>) {
    let stop = tenant.stop.clone();
    let _ = stop.run_until_cancelled(follow(&tenant)).await;
    tenant.api_registry.is_watched.store(false, Ordering::Release);
}

async fn follow(tenant: &Arc<Tenant>) {
    let env = tenant.env();
    let documents = Documents::default();
    let mut local = tenant.options().services.local.changes();
    let mut plans: HashMap<String, Plan> = HashMap::new();
    let mut running: HashSet<String> = HashSet::new();
    let mut checks: FuturesUnordered<BoxFuture<'_, (String, Plan)>> = FuturesUnordered::new();
    loop {
        // In this order: no change is missed.
        let changes = tenant.api_changes();
        let (apis, mut changes) = match (tenant.apis().await, changes) {
            (Ok(apis), Ok(changes)) => (apis, changes),
            (Err(error), _) | (_, Err(error)) => {
                tenant.warn_of(&error, "APIServices could not be read");
                env.sleep(FIRST_RETRY).await;
                continue;
            }
        };
        if apis.remote.is_empty() && !is_needed(tenant).await {
            return;
        }
        plans.retain(|name, _| apis.remote.iter().any(|api| api.name == *name));
        let now = env.now();
        for api in &apis.remote {
            let Some(backend) = &api.backend else { continue };
            let new = Plan { check_at: now, failures: 0, discover_at: now };
            let plan = plans.entry(api.name.clone()).or_insert(new);
            // A changed `APIService` is looked at at once.
            if backend.live.borrow().is_current.is_none() {
                *plan = new;
            }
            if plan.check_at <= now && running.len() < MAX_CHECKS && running.insert(api.name.clone()) {
                let (api, plan, documents) = (api.clone(), *plan, &documents);
                checks.push(Box::pin(async move {
                    let next = look(tenant, &api, plan, documents).await;
                    (api.name.clone(), next)
                }));
            }
        }
        let due = plans.iter().filter(|(name, _)| !running.contains(*name)).map(|(_, plan)| plan.check_at);
        let next = due.min().unwrap_or(now + DISCOVERY_INTERVAL);
        tokio::select! {
            Some((name, plan)) = checks.next() => {
                running.remove(&name);
                plans.insert(name, plan);
            }
            () = env.sleep_until(next), if running.len() < MAX_CHECKS => {}
            _ = changes.changed() => {}
            // A service in this process has come or gone.
            _ = local.changed() => plans.values_mut().for_each(|plan| plan.check_at = env.now()),
        }
    }
}

/// Whether an aggregated API was registered while the task was about to end.
async fn is_needed(tenant: &Arc<Tenant>) -> bool {
    let is_watched = &tenant.api_registry.is_watched;
    is_watched.store(false, Ordering::Release);
    let none = tenant.apis().await.is_ok_and(|apis: Arc<Apis>| apis.remote.is_empty());
    // Another task has been started meanwhile, or none is needed.
    !none && !is_watched.swap(true, Ordering::AcqRel)
}

/// Checks a server, and reads its discovery documents if it is time.
async fn look(tenant: &Arc<Tenant>, api: &Arc<Api>, plan: Plan, documents: &Documents) -> Plan {
    let env = tenant.env();
    let Some(backend) = &api.backend else { return plan };
    let found = probe::check(tenant, api, backend).await;
    let available = found.is_available();
    note(tenant, api, backend, &found).await;
    let mut next = Plan { failures: if available { 0 } else { plan.failures.saturating_add(1) }, ..plan };
    let interval = tenant.options().aggregation.check_interval;
    let retry = FIRST_RETRY * 2u32.saturating_pow(plan.failures.min(10));
    next.check_at = env.now() + if available { interval } else { retry.min(interval) };
    if !available {
        backend.live.send_modify(|live| live.is_current = Some(false));
        next.discover_at = env.now();
        return next;
    }
    if plan.discover_at > env.now() {
        return next;
    }
    match discover(tenant, api, backend, documents).await {
        Ok(found) => {
            keep(tenant, api, backend, &found);
            openapi::read(tenant, api, backend).await;
            next.discover_at = env.now() + DISCOVERY_INTERVAL;
        }
        Err(why) => {
            tracing::warn!(tenant = tenant.name, api = api.name, %why, "discovery of an aggregated API failed");
            backend.live.send_modify(|live| live.is_current = Some(false));
            next.check_at =
                next.check_at.min(env.now() + FIRST_RETRY * 2u32.saturating_pow(plan.failures.min(5)));
            next.failures = plan.failures.saturating_add(1);
        }
    }
    next
}

/// Makes the resources of an API known, unless those of the tenant take too much memory.
fn keep(tenant: &Tenant, api: &Api, backend: &Backend, found: &[Resource]) {
    let value = resources::to_json(found);
    let text = value.to_string();
    let apis = tenant.api_registry.last();
    let others = apis.remote.iter().filter(|other| other.name != api.name);
    let held: usize =
        others.filter_map(|other| other.backend.as_ref()).map(|other| other.live.borrow().bytes).sum();
    let fits = text.len() <= MAX_RESOURCES_BYTES / 4 && held + text.len() <= MAX_RESOURCES_BYTES;
    if !fits {
        tracing::warn!(
            tenant = tenant.name,
            api = api.name,
            bytes = text.len(),
            "the resources of an aggregated API are too many for discovery"
        );
    }
    backend.live.send_modify(|live| {
        live.is_current = Some(fits);
        if fits {
            live.digest = sha2::Sha256::digest(&text).into();
            live.bytes = text.len();
            live.resources = Some(Arc::new(value));
        }
    });
}

/// The resources of a group version, from the server's aggregated document or else from its list.
async fn discover(
    tenant: &Arc<Tenant>,
    api: &Api,
    backend: &Backend,
    documents: &Documents,
) -> Result<Vec<Resource>, String> {
    let now = tenant.env().now();
    let of = (api.group.clone(), api.version.clone());
    let mut etag = String::new();
    if let Some(known) = documents.lock().get(&backend.service) {
        etag.clone_from(&known.etag);
        if now - known.read < SHARED_FOR
            && let Some(found) = known.found.get(&of)
        {
            return Ok(found.clone());
        }
    }
    let user = probe::asker();
    let timeout = proxy::DISCOVERY_TIMEOUT;
    let get = Get {
        path: "/apis",
        accept: AGGREGATED,
        known: &etag,
        user: &user,
        timeout,
        max_bytes: MAX_DOCUMENT_BYTES,
    };
    let answer = fetch::get(tenant, backend, &get).await.map_err(|why| why.to_string())?;
    let text = |name: http::HeaderName| {
        let value = answer.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    match answer.code {
        304 => {
            let mut documents = documents.lock();
            let known = documents.get_mut(&backend.service).ok_or("304 without a known document")?;
            known.read = now;
            return Ok(known.found.get(&of).cloned().unwrap_or_default());
        }
        503 => {
            let ServicePort { namespace, name, port } = &backend.service;
            return Err(format!("service {namespace}/{name}:{port} returned non-success response code: 503"));
        }
        200 if is_aggregated(&text(http::header::CONTENT_TYPE)) => {
            let found = Arc::new(resources::aggregated(&answer.body)?);
            let resources = found.get(&of).cloned().unwrap_or_default();
            let document = Document { read: now, etag: text(http::header::ETAG), found };
            documents.lock().insert(backend.service.clone(), document);
            return Ok(resources);
        }
        _ => {}
    }
    let path = format!("/apis/{}/{}", api.group, api.version);
    let user = User { groups: Vec::new(), ..user };
    let get = Get {
        path: &path,
        accept: "application/json",
        known: "",
        user: &user,
        timeout,
        max_bytes: MAX_DOCUMENT_BYTES,
    };
    let answer = fetch::get(tenant, backend, &get).await.map_err(|why| why.to_string())?;
    if answer.code != 200 {
        return Err(format!("failed to download legacy discovery for {path}: {}", answer.code));
    }
    resources::legacy(&answer.body)
}

/// Whether a document is of aggregated discovery.
fn is_aggregated(content_type: &str) -> bool {
    let has = |parameter: &str| content_type.split(';').any(|part| part.trim() == parameter);
    content_type.starts_with("application/json")
        && has("g=apidiscovery.k8s.io")
        && has("v=v2")
        && has("as=APIGroupDiscoveryList")
}

/// Makes known whether a server is available, here and in the condition of its `APIService`.
async fn note(tenant: &Arc<Tenant>, api: &Api, backend: &Backend, found: &Availability) {
    let before = backend.live.borrow().availability.clone();
    if before.as_ref() != Some(found) {
        tracing::info!(
            tenant = tenant.name,
            api = api.name,
            status = found.status,
            reason = found.reason,
            message = found.message,
            "the availability of an aggregated API"
        );
    }
    if before.is_none_or(|before| before.is_available()) && !found.is_available() {
        let key = (api.name.clone(), found.reason.clone());
        *tenant.api_registry.failures.lock().entry(key).or_default() += 1;
    }
    backend.live.send_modify(|live| live.availability = Some(found.clone()));
    if let Err(error) = report(tenant, api, found).await {
        tenant
            .warn_of(&error, format_args!("the status of the APIService {} could not be written", api.name));
    }
}

/// Writes the condition `Available`, if it has changed.
async fn report(tenant: &Arc<Tenant>, api: &Api, found: &Availability) -> Result<(), Error> {
    let resource = tenant.shared.catalog.require(API_SERVICES)?;
    let cx = Cx::internal(tenant, &resource, "", &api.name);
    let Some(stored) = tenant.get(&cx.key()).await? else { return Ok(()) };
    if has_condition(&cx.read(&stored)?, found) {
        return Ok(());
    }
    let now = crate::time::stamp(tenant.env());
    let change = |old: &Value| {
        let mut new = old.clone();
        // The object may have been replaced meanwhile.
        if meta_text(old, "uid") == api.uid && !has_condition(old, found) {
            set_condition(&mut new, found, &now);
            managed::on_own_status(&cx, old, &mut new);
        }
        Ok(new)
    };
    write::change(&cx, &change).await.map(drop)
}

fn has_condition(service: &Value, found: &Availability) -> bool {
    available_condition(service).is_some_and(|condition| {
        condition["status"] == found.status
            && condition["reason"] == found.reason.as_str()
            && condition["message"] == found.message.as_str()
    })
}

/// Sets the condition; its time is that of the last change of its status.
fn set_condition(service: &mut Value, found: &Availability, now: &str) {
    let before = available_condition(service).filter(|condition| condition["status"] == found.status);
    let since = before.map_or_else(|| now.into(), |condition| condition["lastTransitionTime"].clone());
    let condition = json!({"type": "Available", "status": found.status, "lastTransitionTime": since,
        "reason": found.reason, "message": found.message});
    let Some(service) = service.as_object_mut() else { return };
    let status = service.entry("status").or_insert_with(|| json!({}));
    match status["conditions"].as_array_mut() {
        Some(conditions) => match conditions.iter_mut().find(|one| one["type"] == "Available") {
            Some(known) => *known = condition,
            None => conditions.push(condition),
        },
        None => *status = json!({ "conditions": [condition] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of upstream's `SetAPIServiceCondition`.
    #[test]
    fn the_time_of_a_condition_is_that_of_its_last_change() {
        let mut service = json!({"metadata": {"name": "v1.g"}});
        let passed = Availability::passed();
        set_condition(&mut service, &passed, "t1");
        assert_eq!(available_condition(&service).unwrap()["lastTransitionTime"], "t1");
        assert!(has_condition(&service, &passed));
        let again = Availability::of("True", "Passed", "other words");
        set_condition(&mut service, &again, "t2");
        assert_eq!(available_condition(&service).unwrap()["lastTransitionTime"], "t1");
        assert_eq!(available_condition(&service).unwrap()["message"], "other words");
        set_condition(&mut service, &Availability::no("ServiceNotFound", "gone"), "t3");
        assert_eq!(available_condition(&service).unwrap()["lastTransitionTime"], "t3");
        assert_eq!(service["status"]["conditions"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn documents_are_recognized_by_their_type() {
        assert!(is_aggregated(AGGREGATED));
        assert!(is_aggregated("application/json; as=APIGroupDiscoveryList; v=v2; g=apidiscovery.k8s.io"));
        for other in [
            "application/json",
            "text/html",
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        ] {
            assert!(!is_aggregated(other), "{other}");
        }
    }
}
