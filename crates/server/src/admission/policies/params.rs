//! The parameters of a binding.

use k1s_object::gvk::GroupVersionKind;
use serde_json::Value;

use crate::{
    admission::{Attributes, left_out},
    hooks::{Binding, ParamKind},
    resource::Resource,
};
use std::sync::Arc;

/// The resource of a kind of parameters, if it is served.
pub(super) async fn resource_of(a: &Attributes<'_>, kind: &ParamKind) -> Result<Arc<Resource>, String> {
    let tenant = &a.cx.tenant;
    let wanted = kind.gvk();
    let is_it = |resource: &&Arc<Resource>| resource.gvk() == wanted;
    if let Some(found) = tenant.shared.catalog.all().iter().find(is_it) {
        return Ok(found.clone());
    }
    let customs = tenant.customs.fresh(tenant, wanted.group).await.map_err(|status| status.message)?;
    let found = customs.resources().find(is_it).cloned();
    found.ok_or_else(|| {
        let GroupVersionKind { group, version, kind } = wanted;
        format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
    })
}

/// The parameters with which a policy is evaluated for a binding: each of these objects, or null for a binding without
/// parameters.
pub(super) async fn collect(
    a: &Attributes<'_>,
    kind: Option<&Arc<Resource>>,
    binding: &Binding,
) -> Result<Vec<Value>, String> {
    let (Some(resource), Some(reference)) = (kind, &binding.param_ref) else { return Ok(vec![Value::Null]) };
    let namespace = match (resource.namespaced, reference.namespace.as_str()) {
        (true, "") if a.namespace.is_empty() => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                    .into(),
            );
        }
        (true, "") => &a.namespace,
        (true, namespace) => namespace,
        (false, "") => "",
        (false, _) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".into());
        }
    };
    let tenant = &a.cx.tenant;
    // The watch cache has every write of this server, as a request may use parameters that were written just before.
    let snapshot = tenant.cache(resource).with_own_writes().await.map_err(|status| status.message)?;
    let mut found = Vec::new();
    if !reference.name.is_empty() {
        let key = tenant.key(resource, namespace, &reference.name);
        let stored = match snapshot.entries.get(&key) {
            Some(entry) => Some(entry.stored.clone()),
            None => tenant.get(&key).await.map_err(|status| status.message)?,
        };
        if let Some(stored) = stored {
            found.push(resource.read(&stored).map_err(|why| why.to_string())?);
        }
    } else {
        let nothing = Err("one of name or selector must be provided".to_owned());
        let selector = reference.selector.as_ref().unwrap_or(&nothing).as_ref().map_err(Clone::clone)?;
        let prefix = tenant.keys(resource, namespace);
        for entry in snapshot.entries.under(prefix.as_bytes(), prefix.as_bytes()) {
            match resource.read(&entry.stored) {
                Ok(object) if selector.matches_labels(object["metadata"].get("labels")) => found.push(object),
                Ok(_) => {}
                Err(why) => left_out(&entry.key, &why),
            }
        }
    }
    if found.is_empty() && reference.denies_without {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".into());
    }
    Ok(found)
}
