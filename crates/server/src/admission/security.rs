//! `PodSecurity`: the levels that the labels of a namespace require.

use std::collections::BTreeMap;

use k1s_kinds::admission::pod_security::{self as levels, Level, Policy};
use k1s_object::Status;
use serde_json::Value;

use super::{Write, kind, namespaces, others, refused};
use crate::{context::Cx, objectmeta::meta_text};

/// The policy of the request's namespace, if it has one.
async fn policy(cx: &Cx, write: Write) -> Result<Option<Policy>, Status> {
    let namespaces = kind(&cx.tenant, "", "v1", "namespaces")?;
    let stored = match write {
        Write::Create => namespaces::labelled(cx).await?,
        Write::Update => cx.tenant.get(&namespaces::key(cx)).await?,
    };
    let Some(stored) = stored else { return Ok(None) };
    if memchr::memmem::find(stored.json(), levels::LABEL_PREFIX.as_bytes()).is_none() {
        return Ok(None);
    }
    let namespace = namespaces.read(&stored).map_err(|why| namespaces.unreadable(&cx.namespace, &why))?;
    Ok(Some(levels::policy(namespace["metadata"].get("labels")).0))
}

/// Rejects a pod that violates the enforced level; warns or notes if it violates the levels for that.
pub(super) async fn check_pod(cx: &Cx, pod: &Value, write: Write) -> Result<(), Status> {
    let policy = policy(cx, write).await?;
    let enforced =
        || policy.map_or_else(|| "privileged:latest".to_owned(), |policy| policy.enforce.to_string());
    cx.audit(|trail| trail.annotate("pod-security.kubernetes.io/enforce-policy", enforced()));
    let Some(policy) = policy else { return Ok(()) };
    audit(cx, policy, pod);
    let found = levels::violations(policy.enforce, pod.get("metadata"), &pod["spec"]);
    if !found.is_empty() {
        let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, levels::together(&found));
        return Err(refused(cx, meta_text(pod, "name"), why));
    }
    warn(cx, policy, pod);
    Ok(())
}

fn warn(cx: &Cx, policy: Policy, pod: &Value) {
    let found = levels::violations(policy.warn, pod.get("metadata"), &pod["spec"]);
    if !found.is_empty() {
        cx.warn(format!("would violate PodSecurity \"{}\": {}", policy.warn, levels::together(&found)));
    }
}

/// Notes in the audit log what violates the level of audits.
fn audit(cx: &Cx, policy: Policy, pod: &Value) {
    cx.audit(|trail| {
        let found = levels::violations(policy.audit, pod.get("metadata"), &pod["spec"]);
        if !found.is_empty() {
            let why = format!("would violate PodSecurity \"{}\": {}", policy.audit, levels::together(&found));
            trail.annotate("pod-security.kubernetes.io/audit-violations", why);
        }
    });
}

/// Whether objects of this kind have a pod template.
pub(super) fn has_template(cx: &Cx) -> bool {
    template_place(cx).is_some()
}

/// The pod template of a workload object.
fn template<'a>(cx: &Cx, object: &'a Value) -> Option<&'a Value> {
    object.pointer(template_place(cx)?)
}

fn template_place(cx: &Cx) -> Option<&'static str> {
    Some(match (&*cx.resource.group, &*cx.resource.kind) {
        ("", "PodTemplate") => "/template",
        ("", "ReplicationController")
        | ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job") => "/spec/template",
        ("batch", "CronJob") => "/spec/jobTemplate/spec/template",
        _ => return None,
    })
}

/// Warns about a template whose pods would violate the policy.
pub(super) async fn check_template(cx: &Cx, object: &Value, write: Write) -> Result<(), Status> {
    let Some(template) = template(cx, object) else { return Ok(()) };
    if let Some(policy) = policy(cx, write).await? {
        audit(cx, policy, template);
        warn(cx, policy, template);
    }
    Ok(())
}

/// Validates the labels of a namespace, and warns about existing pods that violate a new level.
pub(super) async fn check_namespace(cx: &Cx, new: &Value, old: Option<&Value>) -> Result<(), Status> {
    let (policy, errors) = levels::policy(new["metadata"].get("labels"));
    let before = old.map(|old| levels::policy(old["metadata"].get("labels")));
    let texts =
        |errors: &[k1s_object::FieldError]| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
    if !errors.is_empty() && before.as_ref().is_none_or(|(_, before)| texts(before) != texts(&errors)) {
        return Err(cx.invalid(meta_text(new, "name"), &errors));
    }
    let Some((before, _)) = before else { return Ok(()) };
    let (enforce, was) = (policy.enforce, before.enforce);
    if enforce.level == Level::Privileged
        || enforce == was
        || enforce.minor == was.minor && enforce.level <= was.level
    {
        return Ok(());
    }
    let pods = kind(&cx.tenant, "", "v1", "pods")?;
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (_, pod) in others(&cx.tenant, &pods, meta_text(new, "name"), "").await? {
        let violations = levels::violations(enforce, pod.get("metadata"), &pod["spec"]);
        if !violations.is_empty() {
            let reasons: Vec<&str> = violations.iter().map(|(reason, _)| *reason).collect();
            found.entry(reasons.join(", ")).or_default().push(meta_text(&pod, "name").to_owned());
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let name = meta_text(new, "name");
    cx.warn(format!(
        "existing pods in namespace {name:?} violate the new PodSecurity enforce level \"{enforce}\""
    ));
    let mut warnings: Vec<String> = found
        .into_iter()
        .map(|(reasons, mut names)| {
            names.sort();
            let first = names.first().cloned().unwrap_or_default();
            match names.len() {
                1 => format!("{first}: {reasons}"),
                2 => format!("{first} (and 1 other pod): {reasons}"),
                several => format!("{first} (and {} other pods): {reasons}", several - 1),
            }
        })
        .collect();
    warnings.sort();
    for warning in warnings {
        cx.warn(warning);
    }
    Ok(())
}
