//! What a mutating policy makes of an object.

use k1s_apply::typed::{Duplicates, Typed};
use k1s_object::{
    Status,
    gvk::GroupVersion,
    patch::{self, PatchError},
};
use serde_json::Value;

use crate::{admission::Attributes, managed, resource::Resource};

/// Merges an apply configuration into an object.
pub(super) fn apply(
    a: &Attributes<'_>,
    resource: &Resource,
    object: &Value,
    mut config: Value,
) -> Result<Value, String> {
    merge(a, resource, object, &mut config).map_err(|why| format!("error applying patch: {why}"))
}

fn merge(
    a: &Attributes<'_>,
    resource: &Resource,
    object: &Value,
    config: &mut Value,
) -> Result<Value, String> {
    let schema = managed::schema_of(resource, &resource.api_version);
    let Some((schema, ty)) = schema.filter(|_| a.kind == a.resource().gvk()) else {
        return Err(format!("Resource kind {} not found", a.kind));
    };
    if let Some(map) = config.as_object_mut() {
        map.insert("apiVersion".into(), resource.api_version.as_str().into());
        map.insert("kind".into(), resource.kind.as_str().into());
    }
    let version = &resource.api_version;
    let config = Typed::new(config, schema, ty, version);
    config
        .validate(Duplicates::Refuse)
        .map_err(|why| format!("failed to convert patch object to typed object: {why}"))?;
    let atomic = config.atomic_paths();
    if !atomic.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomic.join(", ")
        ));
    }
    let live = Typed::new(object, schema, ty, version);
    live.validate(Duplicates::Allow)
        .map_err(|why| format!("failed to convert original object to typed object: {why}"))?;
    let merged = live.merge(&config).map_err(|why| format!("failed to merge patch: {why}"))?;
    Ok(merged.value.into_owned())
}

/// Applies a JSON patch to an object. One whose test fails changes nothing.
pub(super) fn json(object: &Value, operations: &Value) -> Result<Value, String> {
    let parsed = patch::json::parse(operations.to_string().as_bytes(), false);
    let parsed = parsed.map_err(|why| format!("JSON Patch: {why}"))?;
    let mut patched = object.clone();
    match parsed.apply(&mut patched) {
        Ok(()) => Ok(patched),
        Err(PatchError::Test(_)) => Ok(object.clone()),
        Err(why) => Err(format!("JSON Patch: {why}")),
    }
}

/// Decodes what a JSON patch has made of an object of a built-in kind, which may have no unknown fields. It is an error of the
/// request, whatever the policy's `failurePolicy` is.
pub(super) fn strict(mut object: Value) -> Result<Value, Status> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let GroupVersion { group, version } = GroupVersion::split(text("apiVersion"));
    let Some(kind) = k1s_kinds::find_kind(group, version, text("kind")) else { return Ok(object) };
    let unknown = k1s_kinds::codec::decode_strict(kind.ty, &mut object, []).map_err(Status::internal)?;
    match unknown.is_empty() {
        true => Ok(object),
        false => Err(Status::internal(format!("strict decoding error: {}", unknown.join(", ")))),
    }
}
