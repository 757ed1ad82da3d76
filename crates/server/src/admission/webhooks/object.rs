//! The object of a request as webhooks see it, and what becomes of it when they change it.

use std::sync::Arc;

use k1s_object::{Status, gvk::GroupVersion, patch::json::JsonPatch};
use serde_json::{Value, value::RawValue};

use crate::{
    admission::Attributes,
    conversion,
    errors::Error,
    input, managed,
    objectmeta::metadata_mut,
    resource::{Resource, Source},
};

/// An object and its encoding, in one version.
struct View {
    resource: Arc<Resource>,
    object: Value,
    json: Box<RawValue>,
}

/// The object and its old state in the versions that webhooks want.
#[derive(Default)]
pub(in crate::admission) struct Views {
    new: Vec<View>,
    old: Vec<View>,
}

impl Views {
    /// Makes the views in a version, unless there are some.
    pub(in crate::admission) async fn show(
        &mut self,
        a: &Attributes<'_>,
        resource: &Arc<Resource>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Error> {
        for (views, object) in [(&mut self.new, object), (&mut self.old, old)] {
            if let Some(object) = object
                && find(views, resource).is_none()
            {
                let object = shown(a, resource, object).await?;
                let json = serde_json::value::to_raw_value(&object).map_err(Status::internal)?;
                views.push(View { resource: resource.clone(), object, json });
            }
        }
        Ok(())
    }

    /// The encoding of the object in a version.
    pub(super) fn new_json(&self, resource: &Arc<Resource>) -> Option<&RawValue> {
        find(&self.new, resource).map(|view| &*view.json)
    }

    /// The encoding of the old object in a version.
    pub(super) fn old_json(&self, resource: &Arc<Resource>) -> Option<&RawValue> {
        find(&self.old, resource).map(|view| &*view.json)
    }

    /// The object and its old state in a version.
    pub(in crate::admission) fn in_version(
        &self,
        resource: &Arc<Resource>,
    ) -> (Option<&Value>, Option<&Value>) {
        (
            find(&self.new, resource).map(|view| &view.object),
            find(&self.old, resource).map(|view| &view.object),
        )
    }

    /// Applies a patch to the view in a version, and returns the object if that has changed it. Views of the object are then
    /// forgotten.
    pub(super) async fn patch(
        &mut self,
        a: &Attributes<'_>,
        resource: &Arc<Resource>,
        current: &Value,
        patch: &JsonPatch,
    ) -> Result<Option<Value>, Error> {
        let Some(before) = find(&self.new, resource).map(|view| &view.object) else { return Ok(None) };
        let mut patched = before.clone();
        patch.apply(&mut patched).map_err(Status::internal)?;
        self.replace(a, resource, current, patched).await
    }

    /// Replaces the view in a version by a changed one, and returns the object if it has really changed. Views of the object are
    /// then forgotten.
    pub(in crate::admission) async fn replace(
        &mut self,
        a: &Attributes<'_>,
        resource: &Arc<Resource>,
        current: &Value,
        patched: Value,
    ) -> Result<Option<Value>, Error> {
        let Some(before) = find(&self.new, resource).map(|view| &view.object) else { return Ok(None) };
        if patched == *before {
            return Ok(None);
        }
        let mut object = decoded(a, resource, patched)?;
        if finished(a, resource, object.clone()) == *before {
            return Ok(None);
        }
        if resource.gvr() != a.resource().gvr() && !is_own_kind(a) {
            object = conversion::to_version(a.cx, resource, object, &a.resource().api_version).await?;
            if matches!(a.resource().source, Source::Custom(_)) {
                // A converter may answer with fields that the version does not have.
                object = decoded(a, &a.cx.resource, object)?;
            }
        }
        // After the conversion: within a request they are text, which converters do not know.
        keep_managers(a, before, current, &mut object);
        self.new.clear();
        Ok(Some(object))
    }
}

fn find<'a>(views: &'a [View], resource: &Arc<Resource>) -> Option<&'a View> {
    views.iter().find(|view| Arc::ptr_eq(&view.resource, resource))
}

/// Whether the body of the request is not an object of its resource.
fn is_own_kind(a: &Attributes<'_>) -> bool {
    a.kind != a.resource().gvk()
}

/// An object in a version, as a client would see it.
async fn shown(a: &Attributes<'_>, resource: &Arc<Resource>, object: &Value) -> Result<Value, Error> {
    let mut shown = object.clone();
    managed::expand(&mut shown);
    if is_own_kind(a) {
        return Ok(finished(a, resource, shown));
    }
    let requested = a.resource();
    let shown = finished(a, &a.cx.resource, shown);
    if resource.gvr() == requested.gvr() {
        return Ok(shown);
    }
    Ok(conversion::to_version(a.cx, requested, shown, &resource.api_version).await?)
}

/// An object as Go encodes it.
fn finished(a: &Attributes<'_>, resource: &Resource, mut object: Value) -> Value {
    if !is_own_kind(a) {
        resource.finish(&mut object);
        resource.set_type(&mut object);
        return object;
    }
    if let Ok(ty) = input::body_type(a.kind) {
        k1s_kinds::codec::finish(ty, &mut object);
    }
    set_type(a, &mut object);
    object
}

fn set_type(a: &Attributes<'_>, object: &mut Value) {
    if let Some(map) = object.as_object_mut() {
        map.insert("kind".into(), a.kind.kind.into());
        map.insert("apiVersion".into(), a.kind.group_version().to_string().into());
    }
}

/// Decodes, defaults and prunes a patched object, without its managers.
fn decoded(a: &Attributes<'_>, resource: &Resource, mut object: Value) -> Result<Value, Error> {
    let managers = metadata_mut(&mut object).shift_remove("managedFields");
    if is_own_kind(a) {
        k1s_kinds::codec::decode(input::body_type(a.kind)?, &mut object, None).map_err(Status::internal)?;
        let rules = k1s_kinds::rules::rules(a.kind.group, a.kind.version, a.kind.kind);
        (rules.defaults)(&mut object);
        set_type(a, &mut object);
    } else {
        match &resource.source {
            Source::BuiltIn(built_in) => {
                keeps_kind(resource, &object)?;
                k1s_kinds::codec::decode(built_in.kind.ty, &mut object, None).map_err(Status::internal)?;
                (built_in.rules.defaults)(&mut object);
            }
            Source::Custom(custom) => {
                custom.prune_and_default_applied(&mut object).map_err(Status::internal)?;
            }
        }
        resource.set_type(&mut object);
    }
    if let Some(managers) = managers {
        metadata_mut(&mut object).insert("managedFields".into(), managers);
    }
    Ok(object)
}

/// 500 for an object that has become one of another kind.
fn keeps_kind(resource: &Resource, object: &Value) -> Result<(), Status> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let version = GroupVersion::split(text("apiVersion")).version;
    if text("kind") == resource.kind && version == resource.version {
        return Ok(());
    }
    let why = input::unknown_conversion((version, text("kind")), resource.group_kind());
    Err(Status::internal(format!("failed to convert object: {why}")))
}

/// Restores the managers of an object unless a webhook has changed them, and these are valid.
fn keep_managers(a: &Attributes<'_>, before: &Value, current: &Value, object: &mut Value) {
    let managers = |object: &Value| object["metadata"].get("managedFields").cloned();
    let after = managers(object);
    if after != managers(before) {
        match k1s_apply::managed::decode(after.as_ref()) {
            Ok(_) => return managed::collapse(object),
            Err(why) => a.cx.warn(format!(
                ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: {why}"
            )),
        }
    }
    match managers(current) {
        Some(managers) => metadata_mut(object).insert("managedFields".into(), managers),
        None => metadata_mut(object).shift_remove("managedFields"),
    };
}
