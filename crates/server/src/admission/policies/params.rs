//! The parameters of a binding.

use std::sync::Arc;

use bytes::Bytes;
use k1s_object::{Status, gvk::GroupVersionKind, selector::LabelSelector};
use serde_json::Value;

use crate::{
    admission::Attributes,
    conversion, errors,
    hooks::{Binding, ParamKind},
    resource::{Resource, Source},
    stored::Stored,
};

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
    // A request may rely on parameters that were written just before.
    let snapshot = tenant.cache(resource).now().await.map_err(|status| status.message)?;
    let mut found = if reference.name.is_empty() {
        let nothing = Err("one of name or selector must be provided".to_owned());
        let selector = reference.selector.as_ref().unwrap_or(&nothing).as_ref().map_err(Clone::clone)?;
        let prefix = tenant.keys(resource, namespace);
        let unreadable = snapshot.unreadable(&prefix).cloned().collect();
        check_unreadable(a, resource, unreadable, selector).await?;
        let entries = snapshot.entries.under(prefix.as_bytes(), prefix.as_bytes());
        // Converters may change labels, so that the selector sees what they have made.
        let could_match = |stored: &&Stored| resource.needs_webhook(stored) || may_select(selector, stored);
        let stored = entries.map(|entry| &entry.stored).filter(could_match).cloned().collect();
        let mut found = read(a, resource, stored).await?;
        found.retain(|object| selector.matches_labels(object["metadata"].get("labels")));
        found
    } else {
        let key = tenant.key(resource, namespace, &reference.name);
        let stored = match snapshot.entries.get(&key) {
            Some(entry) => Some(entry.stored.clone()),
            // It may be unreadable.
            None => tenant.get(&key).await.map_err(|status| status.message)?,
        };
        read(a, resource, stored.into_iter().collect()).await?
    };
    if matches!(resource.source, Source::BuiltIn(_)) {
        // Typed informers keep no `apiVersion` and no `kind`, so expressions see none.
        for object in found.iter_mut().filter_map(Value::as_object_mut) {
            object.retain(|field, _| !matches!(field.as_str(), "apiVersion" | "kind"));
        }
    }
    if found.is_empty() && reference.denies_without {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".into());
    }
    Ok(found)
}

/// Reads objects in the version of the policy. One that cannot be read or converted fails the binding: a policy that went on
/// without it would allow what it is there to deny.
async fn read(a: &Attributes<'_>, resource: &Resource, stored: Vec<Stored>) -> Result<Vec<Value>, String> {
    let message = |status: Status| status.message;
    let _held = conversion::room(a.cx, resource, &stored).await.map_err(message)?;
    let stored = conversion::all_of(a.cx, resource, stored).await.map_err(message)?;
    stored.iter().map(|stored| resource.read(stored).map_err(|why| why.to_string())).collect()
}

/// Whether a selector selects an object, or may do so for all that can be read of it.
fn may_select(selector: &LabelSelector, stored: &Stored) -> bool {
    stored.metadata().map_or(true, |metadata| selector.matches_labels(metadata.get("labels")))
}

/// The error for the first unreadable object that a selector selects.
async fn check_unreadable(
    a: &Attributes<'_>,
    resource: &Resource,
    keys: Vec<Bytes>,
    selector: &LabelSelector,
) -> Result<(), String> {
    let tenant = &a.cx.tenant;
    for key in keys {
        let found = tenant.store().get(&key, None).await.map_err(|error| errors::store(&error).message)?;
        let Some(entry) = found.entry else { continue };
        let stored = match Stored::any_depth(&entry.value, entry.revision) {
            Ok(stored) if may_select(selector, &stored) => Stored::new(&entry.value, entry.revision),
            Ok(_) => continue,
            Err(why) => Err(why),
        };
        let read = stored.and_then(|stored| resource.read(&stored));
        read.map_err(|why| tenant.unreadable(&key, &why).message)?;
    }
    Ok(())
}
