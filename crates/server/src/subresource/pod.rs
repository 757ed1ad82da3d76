//! Subresources of pods: binding and eviction, and logs and connections, which have nothing to return as nothing runs.

use http::Response;
use k1s_kinds::rules::{core::pod as rules, policy};
use k1s_object::{
    FieldError, Status,
    gvk::{GroupVersionKind, GroupVersionResource},
};
use serde_json::{Value, json};

use crate::{
    admission::Admission,
    body::Body,
    context::Cx,
    delete,
    errors::Error,
    hooks::Operation,
    input,
    objectmeta::meta_text,
    parts::Part,
    read, respond,
    select::Selection,
    write::{self, Update},
};

const PODS: GroupVersionResource<&str> = GroupVersionResource::new("", "v1", "pods");
const BUDGETS: GroupVersionResource<&str> = GroupVersionResource::new("policy", "v1", "poddisruptionbudgets");
const BINDING: GroupVersionKind<&str> = GroupVersionKind::new("", "v1", "Binding");
const EVICTION: GroupVersionKind<&str> = GroupVersionKind::new("policy", "v1", "Eviction");

fn success(cx: &Cx) -> Response<Body> {
    let value =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    respond::other(cx, 201, &value).unwrap_or_else(|status| respond::status(&status, cx.accepted.media))
}

/// Binds a pod to a node.
pub(super) async fn bind(cx: &Cx) -> Result<Response<Body>, Error> {
    let options = cx.write_options("CreateOptions")?;
    let mut binding = input::other(cx, BINDING, options.field_validation)?;
    write::check_namespace(cx, &mut binding)?;
    let name = if cx.name.is_empty() { meta_text(&binding, "name") } else { &cx.name };
    if !cx.name.is_empty() && meta_text(&binding, "name") != cx.name {
        return Err(Status::bad_request(format!(
            "name in URL does not match name in Binding object: {name}"
        ))
        .into());
    }
    let mut admission = Admission::begin_own(cx, Operation::Create, BINDING, options.dry_run).await?;
    admission.admit_own(&mut binding, None).await?;
    let name = if cx.name.is_empty() { meta_text(&binding, "name") } else { &cx.name };
    let errors = rules::validate_binding(&binding);
    if !errors.is_empty() {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let message = if texts.len() == 1 { texts.join("") } else { format!("[{}]", texts.join(", ")) };
        return Err(Status::new(500, "", message).into());
    }
    let pod = Cx::internal(&cx.tenant, &cx.tenant.shared.catalog.require(PODS)?, &cx.namespace, name);
    let now = crate::time::stamp(cx.tenant.env());
    let change = |old: &Value| {
        let mut pod = old.clone();
        rules::apply_binding(&mut pod, &binding, &now)?;
        Ok(pod)
    };
    update(&pod, &change, options.dry_run).await?;
    Ok(success(cx))
}

async fn update(
    cx: &Cx,
    change: &(dyn Fn(&Value) -> Result<Value, Error> + Sync),
    dry_run: bool,
) -> Result<write::Written, Error> {
    let update = Update {
        part: Part::Internal,
        dry_run,
        change: &|old, _| change(old).map(Some),
        uid_is_precondition: false,
        create: false,
        track_owners: false,
    };
    write::update(cx, &update).await.map(|updated| updated.written)
}

/// Deletes a pod, if the budgets allow it.
pub(super) async fn evict(cx: &Cx) -> Result<Response<Body>, Error> {
    let options = cx.write_options("CreateOptions")?;
    let mut eviction = input::other(cx, EVICTION, options.field_validation)?;
    let mut admission = Admission::begin_own(cx, Operation::Create, EVICTION, options.dry_run).await?;
    admission.admit_own(&mut eviction, None).await?;
    policy::validate_eviction(&eviction, &cx.name)?;
    let stored = cx.tenant.get(&cx.key()).await?.ok_or_else(|| cx.not_found())?;
    let pod = cx.read(&stored)?;
    let budget_kind = cx.tenant.shared.catalog.require(BUDGETS)?;
    let budgets_cx = Cx::internal(&cx.tenant, &budget_kind, &cx.namespace, "");
    let list = read::collect(&budgets_cx, &Selection::default()).await?;
    let budgets: Vec<Value> = list.items.iter().filter_map(|stored| budget_kind.read(stored).ok()).collect();
    let now = crate::time::stamp(cx.tenant.env());
    let decision = rules::eviction_decision(&pod, &budgets, &now)?;
    let dry_run = options.dry_run
        || eviction["deleteOptions"]["dryRun"].as_array().is_some_and(|list| !list.is_empty());
    if let rules::Eviction::Spend(budget) = &decision
        && !dry_run
    {
        let one = Cx::internal(&cx.tenant, &budget_kind, &cx.namespace, meta_text(budget, "name"));
        let change = |_: &Value| Ok(Value::clone(budget));
        update(&one, &change, false).await?;
    }
    let delete_options = delete::Options::of(&eviction["deleteOptions"], dry_run);
    delete::delete_object(cx, &delete_options).await?;
    Ok(success(cx))
}

/// The requested container; a pod with a single one needs no name.
fn container(cx: &Cx, pod: &Value) -> Result<String, Error> {
    let names: Vec<&str> = ["containers", "initContainers", "ephemeralContainers"]
        .iter()
        .flat_map(|list| pod["spec"][*list].as_array().into_iter().flatten())
        .filter_map(|container| container["name"].as_str())
        .collect();
    let main: Vec<&str> = pod["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["name"].as_str())
        .collect();
    match cx.query.get("container") {
        "" if main.len() == 1 => Ok(main.concat()),
        "" => Err(Status::bad_request(format!(
            "a container name must be specified for pod {}, choose one of: [{}]",
            cx.name,
            main.join(" ")
        ))
        .into()),
        name if names.contains(&name) => Ok(name.to_owned()),
        name => Err(Status::bad_request(format!("container {name} is not valid for pod {}", cx.name)).into()),
    }
}

async fn find(cx: &Cx) -> Result<Value, Error> {
    let stored = cx.tenant.get(&cx.key()).await?.ok_or_else(|| cx.not_found())?;
    Ok(cx.read(&stored)?)
}

/// The node of a pod. It cannot be reached: this server has no kubelets.
fn node(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty())
}

/// The logs of a pod, which are empty: nothing has run.
pub(super) async fn log(cx: &Cx) -> Result<Response<Body>, Error> {
    let mut errors = Vec::new();
    if let Some(lines) = cx.query.number("tailLines")?.filter(|lines| *lines < 0) {
        errors.push(FieldError::invalid("tailLines", lines, "must be greater than or equal to 0"));
    }
    if let Some(bytes) = cx.query.number("limitBytes")?.filter(|bytes| *bytes < 1) {
        errors.push(FieldError::invalid("limitBytes", bytes, "must be greater than 0"));
    }
    if let Some(seconds) = cx.query.number("sinceSeconds")?.filter(|seconds| *seconds < 1) {
        errors.push(FieldError::invalid("sinceSeconds", seconds, "must be greater than 0"));
    }
    if !errors.is_empty() {
        return Err(Status::invalid("", "PodLogOptions", &cx.name, &errors).into());
    }
    let pod = find(cx).await?;
    container(cx, &pod)?;
    match node(&pod) {
        None => Ok(respond::bytes(204, "text/plain", Body::empty())),
        Some(node) => Err(Status::not_found("", "pods", node).into()),
    }
}

/// Asks webhooks and policies of users about a connection, whose options are the query.
async fn admit_connection(cx: &Cx) -> Result<(), Error> {
    let Some(sub) = cx.resource.subresources.iter().find(|sub| sub.name == cx.subresource) else {
        return Ok(());
    };
    let kind = GroupVersionKind::new(&*sub.group, &*sub.version, &*sub.kind);
    let mut admission = Admission::begin_own(cx, Operation::Connect, kind, false).await?;
    if !admission.is_seen_by_users() {
        return Ok(());
    }
    let mut options = json!({});
    for flag in ["stdin", "stdout", "stderr", "tty"] {
        if cx.query.flag(flag) {
            options[flag] = true.into();
        }
    }
    for text in ["container", "path"] {
        if let Some(value) = cx.query.find(text) {
            options[text] = value.into();
        }
    }
    let command: Vec<&str> = cx.query.all("command").collect();
    if !command.is_empty() {
        options["command"] = command.into();
    }
    let ports = cx.query.all("ports").filter_map(|port| port.parse::<i64>().ok());
    let ports: Vec<i64> = ports.collect();
    if !ports.is_empty() {
        options["ports"] = ports.into();
    }
    admission.admit_own(&mut options, None).await
}

/// Exec, attach, port-forward and proxy: there is no kubelet to connect to.
pub(super) async fn connect(cx: &Cx) -> Result<Response<Body>, Error> {
    admit_connection(cx).await?;
    let pod = find(cx).await?;
    if matches!(&*cx.subresource, "exec" | "attach") {
        container(cx, &pod)?;
    }
    match node(&pod) {
        None => Err(Status::bad_request(format!("pod {} does not have a host assigned", cx.name)).into()),
        Some(node) => Err(Status::not_found("", "pods", node).into()),
    }
}

/// The proxy of a node or a service (`name`, `name:port` or `scheme:name:port`): there is nothing to connect to.
pub(super) async fn proxy(cx: &Cx) -> Result<Response<Body>, Error> {
    admit_connection(cx).await?;
    let words: Vec<&str> = cx.name.split(':').collect();
    let name = match words.as_slice() {
        [name] | [name, _] | [_, name, _] => *name,
        _ => {
            return Err(Status::bad_request(format!(
                "invalid {} request {:?}",
                cx.resource.singular, cx.name
            ))
            .into());
        }
    };
    let key = cx.tenant.key(&cx.resource, &cx.namespace, name);
    if cx.tenant.get(&key).await?.is_none() {
        return Err(cx.resource.not_found(name));
    }
    let why = match &*cx.resource.kind {
        "Service" => format!("no endpoints available for service {}", k1s_object::field::quote(name)),
        _ => format!("error trying to reach service: dial tcp: lookup {name}: no such host"),
    };
    Err(Status::new(503, "ServiceUnavailable", why).into())
}
