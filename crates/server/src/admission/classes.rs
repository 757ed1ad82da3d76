//! Default storage, ingress and priority classes, and the expansion of claims that a storage class allows.

use k1s_object::{Status, quantity::Quantity};
use serde_json::Value;

use super::{cached_others, kind, other, others, refused};
use crate::{context::Cx, objectmeta::meta_text};

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// The default class: the newest one with one of these annotations, or the first by name among equally old ones.
async fn default_class(cx: &Cx, path: (&str, &str), annotations: &[&str]) -> Result<Option<String>, Status> {
    let classes = kind(&cx.tenant, path.0, "v1", path.1)?;
    let mut found = cached_others(&cx.tenant, &classes, "", "/is-default-class\":\"true\"").await?;
    found.retain(|class| annotations.iter().any(|name| class["metadata"]["annotations"][*name] == "true"));
    let newest = found.into_iter().min_by(|a, b| {
        let time = |class| meta_text(class, "creationTimestamp");
        time(b).cmp(time(a)).then_with(|| meta_text(a, "name").cmp(meta_text(b, "name")))
    });
    Ok(newest.map(|class| meta_text(&class, "name").to_owned()))
}

fn set_class(object: &mut Value, field: &str, class: Option<String>) {
    if let (Some(class), Some(spec)) = (class, object["spec"].as_object_mut()) {
        spec.insert(field.into(), class.into());
    }
}

/// Sets the default class of a claim that names none.
pub(super) async fn default_storage_class(cx: &Cx, claim: &mut Value) -> Result<(), Status> {
    let annotated = claim["metadata"]["annotations"].get(CLASS_ANNOTATION).is_some();
    if annotated || claim["spec"].get("storageClassName").is_some_and(|class| !class.is_null()) {
        return Ok(());
    }
    let annotations =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    let class = default_class(cx, ("storage.k8s.io", "storageclasses"), &annotations).await?;
    set_class(claim, "storageClassName", class);
    Ok(())
}

/// Sets the default class of an ingress that names none.
pub(super) async fn default_ingress_class(cx: &Cx, ingress: &mut Value) -> Result<(), Status> {
    let annotated = ingress["metadata"]["annotations"].get("kubernetes.io/ingress.class").is_some();
    if annotated || ingress["spec"].get("ingressClassName").is_some_and(|class| !class.is_null()) {
        return Ok(());
    }
    let annotations = ["ingressclass.kubernetes.io/is-default-class"];
    let class = default_class(cx, ("networking.k8s.io", "ingressclasses"), &annotations).await?;
    set_class(ingress, "ingressClassName", class);
    Ok(())
}

/// Rejects a second default priority class.
pub(super) async fn one_default_priority(cx: &Cx, class: &Value) -> Result<(), Status> {
    if class["globalDefault"] != true {
        return Ok(());
    }
    let name = meta_text(class, "name");
    let found = others(&cx.tenant, &cx.resource, "", "\"globalDefault\":true").await?;
    let mut marked: Vec<&Value> = found.iter().map(|(_, other)| other).collect();
    marked.retain(|other| other["globalDefault"] == true && meta_text(other, "name") != name);
    match marked.into_iter().min_by_key(|other| other["value"].as_i64().unwrap_or(0)) {
        Some(other) => Err(refused(
            cx,
            name,
            format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                meta_text(other, "name")
            ),
        )),
        None => Ok(()),
    }
}

fn storage(claim: &Value) -> Quantity {
    Quantity::from_json(&claim["spec"]["resources"]["requests"]["storage"]).unwrap_or_default()
}

fn class_of(claim: &Value) -> &str {
    let annotation =
        claim["metadata"]["annotations"][CLASS_ANNOTATION].as_str().filter(|name| !name.is_empty());
    annotation.or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default()
}

/// Rejects the expansion of a claim that is not bound or whose class does not allow it.
pub(super) async fn may_grow(cx: &Cx, new: &Value, old: &Value) -> Result<(), Status> {
    if storage(new) <= storage(old) {
        return Ok(());
    }
    if old["status"]["phase"] != "Bound" {
        return Err(refused(cx, &cx.name, "Only bound persistent volume claims can be expanded"));
    }
    let class = class_of(new);
    let classes = kind(&cx.tenant, "storage.k8s.io", "v1", "storageclasses")?;
    let allowed = !class.is_empty()
        && class == class_of(old)
        && other(&cx.tenant, &classes, "", class)
            .await?
            .is_some_and(|class| class["allowVolumeExpansion"] == true);
    if allowed {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    Err(refused(cx, &cx.name, why))
}
