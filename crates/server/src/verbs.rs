//! POST, PUT and PATCH of a resource or a part of it.

use http::Response;
use k1s_object::{
    FieldError, Status, decode,
    field::quote,
    patch::{self, json::JsonPatch},
    status::{Cause, Details},
};
use serde_json::Value;

use crate::{
    body::Body,
    context::{Cx, FieldValidation, WriteOptions, invalid_options},
    errors, input,
    resource::Source,
    write::{self, Part, Update, meta_text},
};

/// POST of an object.
pub(crate) async fn create(cx: &Cx) -> Result<Response<Body>, Status> {
    let options = cx.write_options("CreateOptions")?;
    let mut object = input::object(cx, options.field_validation)?;
    write::check_namespace(cx, &mut object)?;
    let written = write::create(cx, object, options.dry_run).await?;
    crate::lifecycle::after_create(cx, &written, options.dry_run).await?;
    written.respond(cx, 201)
}

/// PUT of an object, or of a part of it.
pub(crate) async fn put(cx: &Cx, part: Part) -> Result<Response<Body>, Status> {
    let options = cx.write_options("UpdateOptions")?;
    let mut object = input::object(cx, options.field_validation)?;
    check_identity(cx, &mut object)?;
    let change = |_: &Value| Ok(object.clone());
    let create = part == Part::Main && cx.resource.rules().is_some_and(|rules| rules.create_on_update);
    let update =
        Update { part, dry_run: options.dry_run, change: &change, uid_is_precondition: true, create };
    let (written, created) = write::update(cx, &update).await?;
    crate::lifecycle::after_update(cx, &written, options.dry_run).await?;
    written.respond(cx, if created { 201 } else { 200 })
}

/// The name and the namespace of a body must be those of the path.
fn check_identity(cx: &Cx, object: &mut Value) -> Result<(), Status> {
    let name = meta_text(object, "name");
    if name.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            cx.name
        )));
    }
    if name != cx.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            cx.name
        )));
    }
    write::check_namespace(cx, object)
}

/// A patch, read and ready to be applied.
pub(crate) enum Patch {
    Json(JsonPatch),
    Merge(Value),
    Strategic(Value),
}

const PATCH_TYPES: [&str; 3] =
    ["application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"];

/// What kind of patch a request carries, by its content type.
fn patch_type(cx: &Cx) -> Result<&'static str, Status> {
    let sent = input::content_type(cx);
    let known = PATCH_TYPES.iter().find(|known| **known == sent).copied();
    match known {
        Some("application/strategic-merge-patch+json") if cx.resource.is_custom() => {
            Err(errors::unsupported_media_type("application/json-patch+json, application/merge-patch+json"))
        }
        Some(known) => Ok(known),
        None if cx.resource.is_custom() => {
            Err(errors::unsupported_media_type("application/json-patch+json, application/merge-patch+json"))
        }
        None => {
            Err(Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
                .with(Details::default()))
        }
    }
}

impl Patch {
    /// Reads the body of a PATCH.
    pub(crate) fn read(cx: &Cx, options: WriteOptions) -> Result<(Patch, Vec<String>), Status> {
        let validate = options.field_validation != FieldValidation::Ignore;
        let kind = patch_type(cx)?;
        if kind == "application/json-patch+json" {
            let patch = patch::json::parse(&cx.body, validate)?;
            let complaints = patch.complaints().to_vec();
            return Ok((Patch::Json(patch), complaints));
        }
        let decoded = decode::json(&cx.body).map_err(|_| Status::bad_request("invalid JSON patch"))?;
        let mut complaints = Vec::new();
        if validate {
            complaints.extend(
                decoded
                    .duplicates
                    .iter()
                    .map(|duplicate| format!("duplicate field {}", quote(&duplicate.path))),
            );
        }
        if kind == "application/merge-patch+json" {
            patch::merge::check(&decoded.value, validate)?;
            Ok((Patch::Merge(decoded.value), complaints))
        } else {
            Ok((Patch::Strategic(decoded.value), complaints))
        }
    }

    /// Applies it to an object of the resource asked for.
    pub(crate) fn apply(&self, cx: &Cx, object: &mut Value) -> Result<(), Status> {
        match self {
            Patch::Json(patch) => patch.apply(object)?,
            Patch::Merge(patch) => patch::merge::apply(object, patch.clone()),
            Patch::Strategic(patch) => match &cx.resource.source {
                Source::BuiltIn(built_in) => {
                    let schema = k1s_kinds::patch::PatchType::of(built_in.kind.ty);
                    patch::strategic::apply(object, patch.clone(), schema)?;
                }
                Source::Custom(_) => {
                    return Err(Status::internal("custom resources have no strategic merge patch"));
                }
            },
        }
        Ok(())
    }
}

/// The options of a PATCH, with what only an apply may say.
pub(crate) fn patch_options(cx: &Cx) -> Result<WriteOptions, Status> {
    if cx.query.find("force").is_some() {
        let error = FieldError::forbidden("force", "may not be specified for non-apply patch");
        return Err(invalid_options("PatchOptions", &[error]));
    }
    cx.write_options("PatchOptions")
}

/// PATCH of an object, or of a part of it.
pub(crate) async fn patch(cx: &Cx, part: Part) -> Result<Response<Body>, Status> {
    patch_type(cx)?;
    let options = patch_options(cx)?;
    // The body's syntax comes before the object's existence, its meaning after it.
    if !decode::is_valid_json(&cx.body) {
        return Err(match Patch::read(cx, options) {
            Err(status) => status,
            Ok(_) => Status::bad_request("invalid JSON patch"),
        });
    }
    let exists = cx.tenant.get(&cx.key()).await?.is_some();
    if !exists {
        return Err(cx.not_found());
    }
    let (patch, complaints) = Patch::read(cx, options)?;
    let change = |old: &Value| {
        let mut object = old.clone();
        patch.apply(cx, &mut object)?;
        patched(cx, object, &complaints, options.field_validation)
    };
    let update =
        Update { part, dry_run: options.dry_run, change: &change, uid_is_precondition: false, create: false };
    let (written, _) = write::update(cx, &update).await?;
    crate::lifecycle::after_update(cx, &written, options.dry_run).await?;
    written.respond(cx, 200)
}

/// A patched document becomes an object again: decoded and defaulted as one that was sent.
fn patched(
    cx: &Cx,
    mut object: Value,
    complaints: &[String],
    validation: FieldValidation,
) -> Result<Value, Status> {
    let resource = &*cx.resource;
    let mut complaints = complaints.to_vec();
    match &resource.source {
        Source::BuiltIn(built_in) => {
            let expected = (&*resource.api_version, &*resource.version, &*resource.kind);
            input::check_type(&object, object.to_string().as_bytes(), expected)?;
            let mut unknown = Vec::new();
            let strict = (validation != FieldValidation::Ignore).then_some(&mut unknown);
            k1s_kinds::codec::decode(built_in.kind.ty, &mut object, strict)
                .map_err(|error| invalid_patch("", &format!("unable to decode: {error}"), &object))?;
            complaints.extend(unknown);
            (built_in.rules.defaults)(&mut object);
        }
        Source::Custom(custom) => {
            let mut unknown = Vec::new();
            custom.admit(cx, &mut object, Some(&mut unknown))?;
            if validation != FieldValidation::Ignore {
                complaints.extend(unknown);
            }
        }
    }
    let shown = object.clone();
    input::report(cx, complaints, validation, &|why| invalid_patch("", &why.to_string(), &shown))?;
    resource.set_type(&mut object);
    check_identity(cx, &mut object)?;
    Ok(object)
}

/// 422 for a patch whose outcome is no object of the kind.
fn invalid_patch(name: &str, why: &str, shown: &Value) -> Status {
    let body = format!("Invalid value: {}: {why}", quote(&shown.to_string()));
    let mut details = Details::of("", "", name);
    details.causes.push(Cause {
        reason: "FieldValueInvalid".into(),
        message: body.clone(),
        field: "patch".into(),
    });
    Status::new(422, "Invalid", format!(" \"\" is invalid: patch: {body}")).with(details)
}
