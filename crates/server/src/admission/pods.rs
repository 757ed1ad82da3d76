//! Priority, runtime class and overhead of pods.

use k1s_kinds::admission::runtime_class;
use k1s_object::Status;
use serde_json::Value;

use super::{cached_others, forbidden, kind, other, refused};
use crate::{context::Cx, objectmeta::meta_text};

/// Sets the overhead and the scheduling constraints of a new pod's runtime class.
pub(super) async fn apply_runtime_class(cx: &Cx, pod: &mut Value) -> Result<(), Status> {
    if let Some(class) = runtime_class(cx, pod).await? {
        runtime_class::apply_runtime_class(pod, &class).map_err(|why| forbidden(cx, pod, why))?;
    }
    Ok(())
}

/// Checks a new pod's overhead against its runtime class.
pub(super) async fn check(cx: &Cx, pod: &Value) -> Result<(), Status> {
    let class = runtime_class(cx, pod).await?;
    runtime_class::check_overhead(pod, class.as_ref()).map_err(|why| refused(cx, meta_text(pod, "name"), why))
}

/// Keeps priority and preemptionPolicy where an update omits them.
pub(super) fn keep_priority(new: &mut Value, old: &Value) {
    for field in ["priority", "preemptionPolicy"] {
        if let (Some(spec), Some(before)) = (new["spec"].as_object_mut(), old["spec"].get(field))
            && spec.get(field).is_none_or(Value::is_null)
        {
            spec.insert(field.into(), before.clone());
        }
    }
}

async fn runtime_class(cx: &Cx, pod: &Value) -> Result<Option<Value>, Status> {
    let Some(name) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(None) };
    let classes = kind(&cx.tenant, "node.k8s.io", "v1", "runtimeclasses")?;
    match other(&cx.tenant, &classes, "", name).await? {
        Some(class) => Ok(Some(class)),
        None => Err(forbidden(
            cx,
            pod,
            format!("pod rejected: RuntimeClass {} not found", k1s_object::field::quote(name)),
        )),
    }
}

/// The default priority class: of several, the one with the lowest value.
async fn default_class(cx: &Cx) -> Result<Option<Value>, Status> {
    let classes = kind(&cx.tenant, "scheduling.k8s.io", "v1", "priorityclasses")?;
    let found = cached_others(&cx.tenant, &classes, "", "\"globalDefault\":true").await?;
    let marked = found.into_iter().filter(|class| class["globalDefault"] == true);
    Ok(marked.min_by_key(|class| class["value"].as_i64().unwrap_or(0)))
}

/// Sets a pod's priority from its class or the default class.
pub(super) async fn resolve_priority(cx: &Cx, pod: &mut Value) -> Result<(), Status> {
    let name = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let class = if name.is_empty() {
        default_class(cx).await?
    } else {
        let classes = kind(&cx.tenant, "scheduling.k8s.io", "v1", "priorityclasses")?;
        let found = other(&cx.tenant, &classes, "", &name).await?;
        Some(
            found
                .ok_or_else(|| forbidden(cx, pod, format!("no PriorityClass with name {name} was found")))?,
        )
    };
    let class = class.unwrap_or_default();
    let value = class["value"].as_i64().unwrap_or(0);
    let policy = class["preemptionPolicy"].as_str().unwrap_or("PreemptLowerPriority").to_owned();
    if let Some(sent) = pod["spec"]["priority"].as_i64().filter(|sent| *sent != value) {
        let why = format!(
            "the integer value of priority ({sent}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
        );
        return Err(forbidden(cx, pod, why));
    }
    if let Some(sent) = pod["spec"]["preemptionPolicy"].as_str().filter(|sent| *sent != policy) {
        let why = format!(
            "the string value of PreemptionPolicy ({sent}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        );
        return Err(forbidden(cx, pod, why));
    }
    if let Some(spec) = pod["spec"].as_object_mut() {
        if name.is_empty() && !meta_text(&class, "name").is_empty() {
            spec.insert("priorityClassName".into(), meta_text(&class, "name").into());
        }
        spec.insert("priority".into(), value.into());
        spec.insert("preemptionPolicy".into(), policy.into());
    }
    Ok(())
}
