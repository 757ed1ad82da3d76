//! `/scale`: the replicas of an object, in the same form for every kind.

use http::{Method, Response};
use k1s_kinds::rules::autoscaling::scale;
use k1s_object::{FieldError, Status, field::quote, gvk::GroupVersionKind};
use serde_json::{Value, json};

use crate::{
    admission::Admission,
    apply,
    body::Body,
    context::{Cx, FieldValidation},
    conversion,
    errors::Error,
    hooks::Operation,
    input, managed,
    objectmeta::{meta_text, metadata_mut},
    parts::Part,
    resource::Source,
    respond, verbs,
    write::{self, Update},
};

/// Placeholder for unset replicas of a custom resource in a patch; if it remains, the patch has set none.
const NO_REPLICAS: i64 = i32::MIN as i64;

pub(super) async fn handle(cx: &Cx) -> Result<Response<Body>, Error> {
    match cx.method {
        Method::GET => {
            let stored = cx.tenant.get(&cx.key()).await?.ok_or_else(|| cx.not_found())?;
            let stored = conversion::one(cx, stored).await?;
            let scale = scale_of(cx, &cx.read(&stored)?, NO_REPLICAS)?;
            if let (Some(path), true) = (replicas_path(cx), scale["spec"]["replicas"] == NO_REPLICAS) {
                return Err(Status::internal(format!(
                    "the spec replicas field {} does not exist",
                    quote(path)
                ))
                .into());
            }
            Ok(respond::other(cx, 200, &scale)?)
        }
        Method::PUT => {
            let options = cx.write_options("UpdateOptions")?;
            let sent = read(cx, options.field_validation)?;
            let change = |old: &Value| with_managed(cx, old, |_| Ok(sent.clone()));
            store(cx, &change, options.dry_run).await
        }
        _ if input::is_apply(cx) => {
            let options = apply::options(cx)?;
            let config = apply::Config::read(cx)?;
            let change = |old: &Value| {
                let mut live = scale_of(cx, old, NO_REPLICAS)?;
                managed::show_scale_managers(cx, old, &mut live);
                let mut scale = managed::apply_scale(cx, &live, &config.value, options.force)?.object;
                config.report(cx, options.write.field_validation)?;
                check_name(cx, &scale)?;
                if cx.resource.is_custom() {
                    // kube-apiserver cannot convert the Scale of a custom resource.
                    let why = format!(
                        "failed to convert new object (/{}; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid group/version: autoscaling/v1",
                        cx.name
                    );
                    return Err(Status::new(500, "", why).into());
                }
                k1s_kinds::codec::from_unstructured(input::body_type(SCALE)?, &mut scale, None)
                    .map_err(|error| Status::new(500, "", error.to_string()))?;
                let mut new = with_scale(cx, old, &scale)?;
                managed::keep_scale_managers(cx, &mut new, &scale);
                Ok(new)
            };
            store(cx, &change, options.write.dry_run).await
        }
        _ => {
            let options = verbs::patch_options(cx)?;
            let (patch, complaints) = verbs::read_patch(cx, options).await?;
            let ty = input::body_type(SCALE)?;
            let change = |old: &Value| {
                with_managed(cx, old, |scale| {
                    let scale =
                        patch.apply_typed(cx, ty, SCALE, scale, &complaints, options.field_validation)?;
                    check_name(cx, &scale)?;
                    Ok(scale)
                })
            };
            store(cx, &change, options.dry_run).await
        }
    }
}

/// The object with a changed Scale, and with the managers of both.
fn with_managed(
    cx: &Cx,
    old: &Value,
    change: impl FnOnce(&Value) -> Result<Value, Error>,
) -> Result<Value, Error> {
    let mut before = scale_of(cx, old, NO_REPLICAS)?;
    let mut scale = change(&before)?;
    managed::show_scale_managers(cx, old, &mut before);
    managed::on_scale_update(cx, &before, &mut scale);
    let mut new = with_scale(cx, old, &scale)?;
    managed::keep_scale_managers(cx, &mut new, &scale);
    Ok(new)
}

async fn store(
    cx: &Cx,
    change: &(dyn Fn(&Value) -> Result<Value, Error> + Sync),
    dry_run: bool,
) -> Result<Response<Body>, Error> {
    let mut admission = Admission::begin_own(cx, Operation::Update, SCALE, dry_run).await?;
    if admission.is_seen_by_users() {
        return store_admitted(cx, &mut admission, change, dry_run).await;
    }
    // A Scale may omit the resourceVersion, even if its parent's kind requires one.
    let update = Update {
        part: Part::Main,
        dry_run,
        change: &|old, _| change(old).map(Some),
        uid_is_precondition: false,
        create: false,
        track_owners: false,
    };
    let updated = write::update(cx, &update).await?;
    Ok(respond::other(cx, 200, &scale_of(cx, &updated.written.value(cx)?, 0)?)?)
}

/// Maximum attempts of an update that webhooks look at and that conflicts with other writes; then 409.
const ADMITTED_ATTEMPTS: usize = 100;

/// [`store`] for a Scale that webhooks or policies of users look at: they are asked about one state of the object, and asked
/// again if another write has changed it.
async fn store_admitted(
    cx: &Cx,
    admission: &mut Admission<'_>,
    change: &(dyn Fn(&Value) -> Result<Value, Error> + Sync),
    dry_run: bool,
) -> Result<Response<Body>, Error> {
    for _ in 0..ADMITTED_ATTEMPTS {
        let stored = cx.tenant.get(&cx.key()).await?.ok_or_else(|| cx.not_found())?;
        let shown = conversion::one(cx, stored.clone()).await?;
        let old = cx.read_to_write(&shown)?;
        let new = change(&old)?;
        let mut scale = scale_of(cx, &new, NO_REPLICAS)?;
        admission.admit_own(&mut scale, Some(&scale_of(cx, &old, 0)?)).await?;
        let admitted = with_scale(cx, &new, &scale)?;
        let seen = stored.revision;
        let update = Update {
            part: Part::Main,
            dry_run,
            change: &|_, current| match current {
                Some(current) if current.revision == seen => Ok(Some(admitted.clone())),
                _ => Err(Error::Taken),
            },
            uid_is_precondition: false,
            create: false,
            track_owners: false,
        };
        match write::update(cx, &update).await {
            Err(Error::Taken) => {}
            updated => {
                let written = updated?.written;
                return Ok(respond::other(cx, 200, &scale_of(cx, &written.value(cx)?, 0)?)?);
            }
        }
    }
    Err(write::modified(cx).into())
}

const SCALE: GroupVersionKind<&str> = GroupVersionKind::new("autoscaling", "v1", "Scale");

fn replicas_path(cx: &Cx) -> Option<&str> {
    match &cx.resource.source {
        Source::BuiltIn(_) => None,
        Source::Custom(custom) => custom.scale().map(|paths| &*paths.spec_replicas),
    }
}

fn read(cx: &Cx, validation: FieldValidation) -> Result<Value, Error> {
    let scale = input::other(cx, SCALE, validation)?;
    check_name(cx, &scale)?;
    Ok(scale)
}

fn check_name(cx: &Cx, scale: &Value) -> Result<(), Error> {
    let name = meta_text(scale, "name");
    if !name.is_empty() && name != cx.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            cx.name
        ))
        .into());
    }
    Ok(())
}

/// The object with the replicas of a Scale.
fn with_scale(cx: &Cx, old: &Value, scale: &Value) -> Result<Value, Error> {
    let errors = scale::validate_scale(scale);
    let mut new = old.clone();
    match &cx.resource.source {
        Source::BuiltIn(_) => {
            if !errors.is_empty() {
                return Err(Status::invalid("autoscaling", "Scale", &cx.name, &errors).into());
            }
            scale::set_scale(&mut new, scale);
        }
        Source::Custom(custom) => {
            let Some(paths) = custom.scale() else { return Err(cx.not_found()) };
            let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
            if replicas == NO_REPLICAS {
                let path = quote(&paths.spec_replicas);
                return Err(
                    Status::bad_request(format!("the spec replicas field {path} cannot be empty")).into()
                );
            }
            if replicas < 0 {
                let error = FieldError::invalid(
                    paths.spec_replicas.as_str(),
                    replicas,
                    "should be a non-negative integer",
                );
                return Err(cx.invalid(&cx.name, &[error]).into());
            }
            set_path(&mut new, &paths.spec_replicas, replicas.into());
        }
    }
    // The resourceVersion of the Scale is the precondition, not that of the object.
    let version = meta_text(scale, "resourceVersion").to_owned();
    metadata_mut(&mut new).insert("resourceVersion".into(), version.into());
    let uid = meta_text(scale, "uid");
    if !uid.is_empty() && uid != meta_text(old, "uid") {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            meta_text(old, "uid")
        );
        return Err(Status::conflict(&cx.resource.group, &cx.resource.plural, &cx.name, why).into());
    }
    Ok(new)
}

/// The Scale of an object; `missing` is used for unset replicas of a custom resource.
fn scale_of(cx: &Cx, object: &Value, missing: i64) -> Result<Value, Error> {
    match &cx.resource.source {
        Source::BuiltIn(_) => scale::scale_of(&cx.resource.kind, object)
            .ok_or_else(|| Status::internal("this kind has no scale").into()),
        Source::Custom(custom) => {
            let Some(paths) = custom.scale() else { return Err(cx.not_found()) };
            let replicas = at_path(object, &paths.spec_replicas).and_then(Value::as_i64).unwrap_or(missing);
            let mut status = json!({"replicas": at_path(object, &paths.status_replicas).and_then(Value::as_i64).unwrap_or(0)});
            let selector =
                paths.label_selector.as_ref().and_then(|path| at_path(object, path)).and_then(Value::as_str);
            if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
                status["selector"] = selector.into();
            }
            let mut metadata = serde_json::Map::new();
            for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
                if let Some(value) = object["metadata"].get(field) {
                    metadata.insert(field.into(), value.clone());
                }
            }
            Ok(json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
                "spec": {"replicas": replicas}, "status": status}))
        }
    }
}

fn at_path<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.trim_start_matches('.').split('.').try_fold(object, |at, name| at.get(name))
}

fn set_path(object: &mut Value, path: &str, value: Value) {
    let mut at = object;
    for name in path.trim_start_matches('.').split('.') {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[name];
    }
    *at = value;
}
