//! Field management: who owns which fields of an object, and server-side apply.

use k1s_apply::{
    FieldSet, Path, PathElement,
    managed::{Applied, ApplyError, FieldManager, ScaleManagers, Single},
    merge::{Conflicts, Filter, Versions},
    schema::{Schema, TypeRef},
};
use k1s_env::Env;
use k1s_kinds::table::Type;
use k1s_object::{
    Status, depth,
    gvk::GroupVersion,
    status::{Cause, Details},
};
use k1s_schema::kind::ScalePaths;
use serde_json::{Value, json};

use crate::{
    context::Cx,
    converted::Memo,
    errors::Error,
    objectmeta::metadata_mut,
    resource::{Resource, Source, view},
    stored::Stored,
};

/// From this size on, a new object is compared as it was sent, and a changed one is completed in place: errors then do not show
/// empty lists.
const LARGE_BODY: usize = 256 << 10;

const SCALE_VERSION: &str = "autoscaling/v1";

/// The manager of what the server itself writes.
pub(crate) const SERVER: &str = "kube-apiserver";
/// The manager of what controllers write in Kubernetes, and the server writes at once.
pub(crate) const CONTROLLERS: &str = "kube-controller-manager";

/// The versions of the kind of a resource.
struct KindVersions<'a> {
    resource: &'a Resource,
    /// Where objects are that webhooks have converted.
    converted: Option<&'a Memo>,
}

impl Versions for KindVersions<'_> {
    fn schema(&self, version: &str) -> Option<(&Schema, TypeRef)> {
        schema_of(self.resource, version)
    }

    fn convert(&self, object: &Value, version: &str) -> Result<Value, String> {
        let from = object.get("apiVersion").and_then(Value::as_str).unwrap_or(&self.resource.api_version);
        let mut converted = match &self.resource.source {
            Source::BuiltIn(built_in) => {
                let find = |version: &str| {
                    let GroupVersion { group, version } = GroupVersion::split(version);
                    k1s_kinds::find_kind(group, version, built_in.kind.kind)
                };
                let stored = match find(from).and_then(view) {
                    Some(view) => (view.to_stored)(object),
                    None => object.clone(),
                };
                let target = find(version);
                let mut shown = match target.and_then(view) {
                    Some(view) => (view.from_stored)(&stored),
                    None => stored,
                };
                if let Some(kind) = target {
                    k1s_kinds::codec::finish(kind.ty, &mut shown);
                }
                shown
            }
            Source::Custom(custom) => {
                let name = |version| GroupVersion::split(version).version;
                if custom.needs_webhook(name(from), name(version)) {
                    let memo = self.converted.ok_or("the object was not converted")?;
                    return memo.find(object, version);
                }
                object.clone()
            }
        };
        if let Some(map) = converted.as_object_mut() {
            map.insert("apiVersion".into(), version.into());
        }
        Ok(converted)
    }
}

/// The fields that a write of a resource, or of a subresource, resets.
fn reset_fields(resource: &Resource, subresource: &str) -> Option<Filter> {
    let has_status = resource.has_subresource("status");
    if !resource.is_custom() {
        return k1s_kinds::apply::reset_fields(&resource.group, &resource.kind, has_status, subresource);
    }
    let paths: &[&str] = match subresource {
        "status" => &["metadata", "spec"],
        _ if has_status => &["status"],
        _ => return None,
    };
    let set: FieldSet = paths.iter().map(|name| Path::fields([*name])).collect();
    Some(Filter::Exclude(set))
}

/// Who writes what: a field manager and the resource, or a subresource of it.
struct Writer<'a> {
    resource: &'a Resource,
    env: &'a Env,
    subresource: &'a str,
    name: String,
    converted: Option<&'a Memo>,
    /// Whether the object is too large to be copied.
    large: bool,
}

impl<'a> Writer<'a> {
    /// The sender of a request.
    fn of(cx: &'a Cx) -> Writer<'a> {
        Writer {
            resource: &cx.resource,
            env: cx.tenant.env(),
            subresource: &cx.subresource,
            name: cx.field_manager(),
            converted: Some(&cx.converted),
            large: cx.body.len() > LARGE_BODY,
        }
    }

    /// Calls `act` with the field manager. `unchanged`: schemas have not changed since the object was stored.
    fn with<T>(&self, unchanged: bool, act: impl FnOnce(&FieldManager<'_>) -> T) -> T {
        self.with_filter(unchanged, reset_fields(self.resource, self.subresource).as_ref(), act)
    }

    fn with_filter<T>(
        &self,
        unchanged: bool,
        filter: Option<&Filter>,
        act: impl FnOnce(&FieldManager<'_>) -> T,
    ) -> T {
        let resource = self.resource;
        let versions = KindVersions { resource, converted: self.converted };
        let now = crate::time::stamp(self.env);
        let manager = FieldManager::new(&versions, &resource.api_version, &resource.kind, &now)
            .subresource(self.subresource)
            .filter(filter)
            // As upstream: an update of a custom object lets managers of other versions lose fields of the status.
            .filter_all_versions(!resource.is_custom() || self.subresource == "status")
            .empty(resource.empty())
            .schemas_are_unchanged(unchanged)
            .objects_match_schema(!resource.is_custom())
            .fields_as_json();
        act(&manager)
    }

    fn create(&self, object: &mut Value) {
        let empty = self.resource.empty();
        if self.large {
            // Structs that are not set have no owner then; with them, an object of many items takes much more memory.
            return self.with(true, |manager| manager.update(empty, object, &self.name));
        }
        self.track(true, empty, object);
    }

    /// Finds the managers of `new`. What is compared is the object as Go encodes it; but errors must show it as it was sent,
    /// so it is changed only if nothing is lost.
    fn track(&self, unchanged: bool, old: &Value, new: &mut Value) {
        // An empty list makes the object forget its managers, but is not encoded.
        let sent = metadata_mut(new).shift_remove("managedFields").filter(Value::is_array);
        let filter = reset_fields(self.resource, self.subresource);
        let filter = filter.as_ref();
        // What the write resets is not compared.
        let skip: &[&str] = match filter {
            Some(Filter::Exclude(fields)) if fields.has(&[PathElement::field("spec")]) => &["spec"],
            Some(Filter::Exclude(fields)) if fields.has(&[PathElement::field("status")]) => &["status"],
            _ => &[],
        };
        if self.large || self.resource.completes_by_adding(new, skip) {
            self.resource.complete(new, skip);
            if let Some(entries) = sent {
                metadata_mut(new).insert("managedFields".into(), entries);
            }
            return self.with_filter(unchanged, filter, |manager| manager.update(old, new, &self.name));
        }
        let mut completed = new.clone();
        self.resource.complete(&mut completed, skip);
        if let Some(entries) = sent {
            metadata_mut(&mut completed).insert("managedFields".into(), entries);
        }
        self.with_filter(unchanged, filter, |manager| manager.update(old, &mut completed, &self.name));
        copy_managers(&mut completed, new);
    }
}

/// Metadata that a client cannot set, and so cannot own.
const SYSTEM_METADATA: [&str; 5] =
    ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

/// Expands the `fieldsV1` that writes have as JSON text. [`Stored::encode`] copies the text; whoever else needs it, calls this.
pub(crate) fn expand(object: &mut Value) {
    let entries = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("managedFields"));
    for entry in entries.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(fields) = entry.get_mut("fieldsV1")
            && let Value::String(json) = fields
            && let Ok(expanded) = serde_json::from_str(json)
        {
            *fields = expanded;
        }
    }
}

/// The opposite of [`expand`]: `fieldsV1` becomes text again.
pub(crate) fn collapse(object: &mut Value) {
    let entries = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("managedFields"));
    for entry in entries.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(fields) = entry.get_mut("fieldsV1")
            && fields.is_object()
        {
            *fields = fields.to_string().into();
        }
    }
}

/// The schema with which objects of a kind are merged in a version.
pub(crate) fn schema_of<'a>(resource: &'a Resource, version: &str) -> Option<(&'a Schema, TypeRef)> {
    let GroupVersion { group, version: name } = GroupVersion::split(version);
    match &resource.source {
        Source::BuiltIn(built_in) => {
            let kind = match version == built_in.kind.api_version {
                true => built_in.kind,
                false => k1s_kinds::find_kind(group, name, built_in.kind.kind)?,
            };
            Some((k1s_kinds::apply::schema(), k1s_kinds::apply::type_ref(kind.ty)))
        }
        Source::Custom(custom) => {
            let schema = custom.apply_schema(name).filter(|_| group == resource.group)?;
            Some((schema.schema(), schema.root()))
        }
    }
}

/// An object of a resource in another served version of it, unless only a webhook can convert it.
pub(crate) fn convert(resource: &Resource, object: &Value, version: &str) -> Result<Value, String> {
    KindVersions { resource, converted: None }.convert(object, version)
}

/// A copy of an object without its managers.
pub(crate) fn without_managers(object: &Value) -> Value {
    fn copy<'v>((name, value): (&'v String, &'v Value)) -> (String, Value) {
        (name.clone(), value.clone())
    }
    let Value::Object(fields) = object else { return object.clone() };
    let without = fields.iter().map(|(name, value)| match value {
        Value::Object(metadata) if name == "metadata" => {
            let kept = metadata.iter().filter(|(name, _)| *name != "managedFields");
            (name.clone(), Value::Object(kept.map(copy).collect()))
        }
        _ => copy((name, value)),
    });
    Value::Object(without.collect())
}

/// Whether fields that are still JSON text are nested too deeply: they are below the object, its metadata, the list and an
/// entry.
pub(crate) fn are_deep(object: &Value) -> bool {
    let entries = object["metadata"].get("managedFields").and_then(Value::as_array);
    entries.into_iter().flatten().any(|entry| match entry.get("fieldsV1") {
        Some(Value::String(json)) => depth::exceeds_json(json.as_bytes(), depth::MAX_DEPTH - 4),
        _ => false,
    })
}

/// Copies the managers of one object to another.
fn copy_managers(from: &mut Value, to: &mut Value) {
    match metadata_mut(from).shift_remove("managedFields") {
        Some(entries) => metadata_mut(to).insert("managedFields".into(), entries),
        None => metadata_mut(to).shift_remove("managedFields"),
    };
}

/// Sets the managers of an object that is about to be created.
pub(crate) fn on_create(cx: &Cx, object: &mut Value) {
    let metadata = metadata_mut(object);
    for field in SYSTEM_METADATA {
        metadata.shift_remove(field);
    }
    Writer::of(cx).create(object);
}

/// Sets the manager of an object that the server itself is about to create.
pub(crate) fn on_own_create(resource: &Resource, env: &Env, manager: &str, object: &mut Value) {
    if let Some(rules) = resource.rules() {
        (rules.defaults)(object);
    }
    Writer { resource, env, subresource: "", name: manager.to_owned(), converted: None, large: false }
        .create(object);
}

/// Sets the managers of the body of a subresource that is answered, but not stored.
pub(crate) fn on_answer(cx: &Cx, ty: &'static Type, version: &str, kind: &str, object: &mut Value) {
    let mut empty = json!({"kind": kind, "apiVersion": version});
    k1s_kinds::codec::complete(ty, &mut empty, &[]);
    let versions = Single::new(version, k1s_kinds::apply::schema(), k1s_kinds::apply::type_ref(ty));
    let now = crate::time::stamp(cx.tenant.env());
    let mut completed = object.clone();
    k1s_kinds::codec::complete(ty, &mut completed, &[]);
    FieldManager::new(&versions, version, kind, &now).subresource(&cx.subresource).update(
        &empty,
        &mut completed,
        &cx.field_manager(),
    );
    copy_managers(&mut completed, object);
}

/// Sets the managers of an object that is about to replace `old`.
pub(crate) fn on_update(cx: &Cx, stored: &Stored, old: &Value, new: &mut Value) {
    Writer::of(cx).track(has_same_schema(cx, stored), old, new);
}

/// Whether an object was stored with the schema of today. Those of built-in kinds do not change while the server runs; if an
/// upgrade changes them, the next apply of other fields adapts the managers.
fn has_same_schema(cx: &Cx, stored: &Stored) -> bool {
    !cx.resource.is_custom() || cx.resource.shows_as_stored(stored)
}

/// Sets the managers of an object whose status the server itself changes.
pub(crate) fn on_own_status(cx: &Cx, old: &Value, new: &mut Value) {
    Writer { subresource: "status", name: SERVER.to_owned(), ..Writer::of(cx) }.track(true, old, new);
}

/// Whether a configuration is applied already, so that applying it again changes nothing.
pub(crate) fn is_applied(cx: &Cx, (stored, live): (&Stored, &Value), config: &Value) -> Result<bool, Error> {
    let writer = Writer::of(cx);
    writer
        .with(has_same_schema(cx, stored), |manager| manager.is_applied(live, config, &writer.name))
        .map_err(|error| refused(&error).into())
}

/// Applies a configuration to an object; without one, to an empty object.
pub(crate) fn apply(
    cx: &Cx,
    live: Option<(&Stored, &Value)>,
    config: &Value,
    force: bool,
) -> Result<Applied, Error> {
    let writer = Writer::of(cx);
    let unchanged = live.is_some_and(|(stored, _)| has_same_schema(cx, stored));
    let live = live.map_or_else(|| cx.resource.empty(), |(_, live)| live);
    writer
        .with(unchanged, |manager| manager.apply(live, config, &writer.name, force))
        .map_err(|error| refused(&error).into())
}

/// Calls `act` with the field manager of a Scale.
fn with_scale_manager<T>(cx: &Cx, act: impl FnOnce(&FieldManager<'_>) -> T) -> T {
    let ty = k1s_kinds::body("autoscaling", "v1", "Scale");
    let root = ty.map_or_else(Schema::deduced, k1s_kinds::apply::type_ref);
    let versions = Single::new(SCALE_VERSION, k1s_kinds::apply::schema(), root);
    let mut empty = json!({"kind": "Scale", "apiVersion": SCALE_VERSION});
    if let Some(ty) = ty {
        k1s_kinds::codec::finish(ty, &mut empty);
    }
    let now = crate::time::stamp(cx.tenant.env());
    act(&FieldManager::new(&versions, SCALE_VERSION, "Scale", &now).subresource("scale").empty(&empty))
}

/// The path of the replicas in all versions of a kind.
fn replicas_paths(resource: &Resource) -> Vec<(String, Option<Path>)> {
    match &resource.source {
        Source::BuiltIn(_) => {
            vec![(resource.api_version.clone(), Some(Path::fields(["spec", "replicas"])))]
        }
        Source::Custom(custom) => custom
            .scales()
            .map(|(version, scale)| {
                let path =
                    |scale: &ScalePaths| Path::fields(scale.spec_replicas.trim_start_matches('.').split('.'));
                (GroupVersion::new(&*resource.group, version).to_string(), scale.map(path))
            })
            .collect(),
    }
}

/// Gives the Scale of an object the managers of its replicas.
pub(crate) fn show_scale_managers(cx: &Cx, object: &Value, scale: &mut Value) {
    let paths = replicas_paths(&cx.resource);
    let managers = ScaleManagers { version: &cx.resource.api_version, paths: &paths };
    if let Ok(Some(entries)) = managers.of_scale(object["metadata"].get("managedFields")) {
        scale["metadata"]["managedFields"] = entries;
    }
}

/// Sets the managers of a Scale that replaces `old`, other than by an apply.
pub(crate) fn on_scale_update(cx: &Cx, old: &Value, new: &mut Value) {
    let name = cx.field_manager();
    with_scale_manager(cx, |manager| manager.update(old, new, &name));
}

/// Applies a configuration to a Scale.
pub(crate) fn apply_scale(cx: &Cx, live: &Value, config: &Value, force: bool) -> Result<Applied, Error> {
    let name = cx.field_manager();
    with_scale_manager(cx, |manager| manager.apply(live, config, &name, force))
        .map_err(|error| refused(&error).into())
}

/// Gives an object, whose managers are those of before, the managers of its new Scale.
pub(crate) fn keep_scale_managers(cx: &Cx, object: &mut Value, scale: &Value) {
    let paths = replicas_paths(&cx.resource);
    let managers = ScaleManagers { version: &cx.resource.api_version, paths: &paths };
    let entries = |object: &Value| object["metadata"].get("managedFields").cloned();
    let (before, of_scale) = (entries(object), entries(scale));
    let Ok(after) = managers.of_parent(before.as_ref(), of_scale.as_ref()) else { return };
    match after {
        Some(after) => metadata_mut(object).insert("managedFields".into(), after),
        None => metadata_mut(object).shift_remove("managedFields"),
    };
}

/// The Status of an apply that failed.
pub(crate) fn refused(error: &ApplyError) -> Status {
    match error {
        ApplyError::Conflicts(conflicts) => conflict(conflicts),
        ApplyError::BadRequest(why) => Status::bad_request(why.clone()),
        ApplyError::Failed(why) => Status::new(500, "", why.clone()),
    }
}

/// 409 with a cause for each field.
fn conflict(conflicts: &Conflicts) -> Status {
    let causes = conflicts.0.iter().map(|conflict| Cause {
        reason: "FieldManagerConflict".into(),
        message: format!("conflict with {}", conflict.manager),
        field: conflict.path.to_string(),
    });
    Status::new(409, "Conflict", conflicts.to_string())
        .with(Details { causes: causes.collect(), ..Details::default() })
}
