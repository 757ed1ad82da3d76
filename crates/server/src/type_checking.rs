//! `status.typeChecking` of validating admission policies: what is wrong with their expressions, for the kinds that their rules name.
//!
//! In Kubernetes a controller sets it soon after; here the server does, before it answers the write of a policy.

use std::sync::Arc;

use k1s_kinds::{
    admission::policy::{CheckedKind, expression_warnings, rules_to_check},
    expressions::decl_type,
};
use k1s_object::gvk::{GroupKind, GroupVersion, GroupVersionKind};
use serde_json::{Value, json};

use crate::{
    context::Cx,
    errors::Error,
    objectmeta::metadata_mut,
    resource::{Resource, Source},
    tenant::{
        Tenant,
        customs::{DEFINITIONS, Served},
    },
    write,
};

pub(crate) const POLICY: GroupKind<&str> =
    GroupKind::new("admissionregistration.k8s.io", "ValidatingAdmissionPolicy");

/// The field manager of the status.
const MANAGER: &str = "validatingadmissionpolicy-status-controller";

/// Maximum number of kinds per rule.
const MAX_KINDS: usize = 10;

/// Checks the policy that the request has written, unless this generation of it was checked before.
pub(crate) async fn check(cx: &Cx, name: &str) -> Result<(), Error> {
    let tenant = &cx.tenant;
    let Some(stored) = tenant.get(&tenant.key(&cx.resource, "", name)).await? else { return Ok(()) };
    let Ok(policy) = cx.resource.read(&stored) else { return Ok(()) };
    let generation = |value: &Value| value.as_i64().unwrap_or_default();
    let checked = generation(&policy["metadata"]["generation"]);
    if checked <= generation(&policy["status"]["observedGeneration"]) {
        return Ok(());
    }
    let spec = &policy["spec"];
    let served = tenant.customs.current(tenant).await?;
    let kinds: Vec<CheckedKind> =
        kinds_of(tenant, &served, spec).iter().filter_map(|one| checked_kind(tenant, &served, one)).collect();
    let params = param_resource(tenant, &served, &spec["paramKind"]);
    let params = params.and_then(|one| checked_kind(tenant, &served, &one)?.decl);
    let warnings = expression_warnings(spec, &kinds, params.as_ref());
    let own = Cx::internal(tenant, &cx.resource, "", name);
    let now = crate::time::stamp(tenant.env());
    let change = |old: &Value| {
        let mut new = old.clone();
        // The policy may have been changed again; its next write checks it.
        if generation(&old["metadata"]["generation"]) == checked {
            set_status(&mut new, checked, &warnings, &now);
        }
        Ok(new)
    };
    write::change(&own, &change).await?;
    Ok(())
}

fn set_status(policy: &mut Value, generation: i64, warnings: &[Value], now: &str) {
    let (checking, fields) = match warnings {
        [] => (json!({}), r#"{"f:status":{"f:observedGeneration":{},"f:typeChecking":{}}}"#),
        warnings => (
            json!({"expressionWarnings": warnings}),
            r#"{"f:status":{"f:observedGeneration":{},"f:typeChecking":{"f:expressionWarnings":{}}}}"#,
        ),
    };
    policy["status"]["observedGeneration"] = generation.into();
    policy["status"]["typeChecking"] = checking;
    let managers = metadata_mut(policy).entry("managedFields").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(managers) = managers.as_array_mut() {
        managers.retain(|entry| entry["manager"] != MANAGER);
        managers.push(json!({"manager": MANAGER, "operation": "Apply", "subresource": "status",
            "apiVersion": "admissionregistration.k8s.io/v1", "time": now, "fieldsType": "FieldsV1", "fieldsV1": fields}));
    }
}

/// The resources whose kinds the rules of a policy name, ordered by group, version and kind.
fn kinds_of(tenant: &Tenant, served: &Served, spec: &Value) -> Vec<Arc<Resource>> {
    let all = || tenant.shared.catalog.all().iter().chain(served.resources());
    let mut found: Vec<Arc<Resource>> = Vec::new();
    for rule in rules_to_check(spec) {
        // As with kube-apiserver's mapper, the core group stands for any, and the name may be the singular.
        let named = rule.iter().flat_map(|[group, version, name]| {
            all().filter(move |one| {
                (group.is_empty() || one.group == *group)
                    && one.version == *version
                    && (one.plural == *name || one.singular == *name)
            })
        });
        found.extend(named.take(MAX_KINDS).cloned());
    }
    found.sort_by(|a, b| key(a).cmp(&key(b)));
    found.dedup_by(|a, b| key(a) == key(b));
    found
}

fn key(resource: &Resource) -> [&str; 3] {
    [&resource.group, &resource.version, &resource.kind]
}

fn param_resource(tenant: &Tenant, served: &Served, kind: &Value) -> Option<Arc<Resource>> {
    let GroupVersion { group, version } = GroupVersion::split(kind["apiVersion"].as_str()?);
    let wanted = GroupVersionKind { group, version, kind: kind["kind"].as_str()? };
    let mut all = tenant.shared.catalog.all().iter().chain(served.resources());
    all.find(|one| one.gvk() == wanted).cloned()
}

/// A kind with the type of its published schema; `None` if it publishes none.
fn checked_kind(tenant: &Tenant, served: &Served, resource: &Resource) -> Option<CheckedKind> {
    let schema = match &resource.source {
        Source::BuiltIn(built_in) => json!({"$ref": built_in.kind.ty.name}),
        Source::Custom(_) => {
            let is_it = |(_, _, definition): &(&str, &str, &Arc<crate::tenant::customs::Definition>)| {
                definition
                    .resources_of(&resource.group, &resource.version)
                    .any(|one| one.kind == resource.kind)
            };
            let (_, _, definition) = served.definitions().find(is_it)?;
            let crd = tenant.shared.catalog.find(DEFINITIONS)?.read(&definition.stored).ok()?;
            let [(_, schema), _] = k1s_schema::openapi::openapi_v3(&crd, &resource.version)?;
            schema
        }
    };
    Some(CheckedKind { name: resource.gvk().to_string(), decl: decl_type(&schema, &resource.kind) })
}
