//! POST, PUT and PATCH of a resource or a part of it.

use http::Response;
use k1s_kinds::table::Type;
use k1s_object::{
    FieldError, Status, decode,
    field::quote,
    gvk::{GroupVersion, GroupVersionKind},
    patch::{self, json::JsonPatch},
    status::Details,
};
use serde_json::Value;

use crate::{
    apply,
    body::Body,
    context::{Cx, FieldValidation, WriteOptions, invalid_options},
    conversion,
    errors::{self, Error},
    input, lifecycle, managed,
    parts::Part,
    resource::{CustomResource, Malformed, Source, no_kind},
    stored::Stored,
    write::{self, Update},
};

/// POST of an object.
pub(crate) async fn create(cx: &Cx) -> Result<Response<Body>, Error> {
    let options = cx.write_options("CreateOptions")?;
    let mut object = input::object(cx, options.field_validation)?;
    write::check_namespace(cx, &mut object)?;
    let object = conversion::tracked_create(cx, object).await?;
    let written = write::create(cx, object, options.dry_run).await?;
    lifecycle::after_create(cx, &written, options.dry_run).await?;
    written.respond(cx, 201)
}

/// PUT of an object, or of a part of it.
pub(crate) async fn update(cx: &Cx, part: Part) -> Result<Response<Body>, Error> {
    let options = cx.write_options("UpdateOptions")?;
    let mut object = input::object(cx, options.field_validation)?;
    write::check_identity(cx, &mut object)?;
    let change = |_: &Value, _: Option<&Stored>| Ok(Some(object.clone()));
    let create = part == Part::Main && cx.resource.rules().is_some_and(|rules| rules.create_on_update);
    let update = Update {
        part,
        dry_run: options.dry_run,
        change: &change,
        uid_is_precondition: true,
        create,
        track_owners: true,
    };
    let updated = write::update(cx, &update).await?;
    lifecycle::after_update(cx, &updated, options.dry_run).await?;
    updated.written.respond(cx, if updated.created { 201 } else { 200 })
}

/// A parsed patch.
pub(crate) enum Patch {
    Json(JsonPatch),
    Merge(Value),
    Strategic(Value),
}

const PATCH_TYPES: [&str; 3] =
    ["application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"];

/// The type of patch, by the content type of the request.
fn patch_type(cx: &Cx) -> Result<&'static str, Error> {
    let sent = input::content_type(cx);
    let custom = cx.resource.is_custom();
    let known = PATCH_TYPES.iter().find(|known| **known == sent).copied();
    match known {
        Some("application/strategic-merge-patch+json") | None if custom => {
            let types = [PATCH_TYPES[0], PATCH_TYPES[1], input::APPLY];
            Err(errors::unsupported_media_type(&types.join(", ")).into())
        }
        Some(known) => Ok(known),
        None => Err(Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
            .with(Details::default())
            .into()),
    }
}

impl Patch {
    /// Reads the body of a PATCH.
    pub(crate) fn read(cx: &Cx, options: WriteOptions) -> Result<(Patch, Vec<String>), Error> {
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

    /// Applies the patch to an object of a type of the table, and decodes the result.
    pub(crate) fn apply_typed(
        &self,
        cx: &Cx,
        ty: &'static Type,
        expected: GroupVersionKind<&str>,
        old: &Value,
        complaints: &[String],
        validation: FieldValidation,
    ) -> Result<Value, Error> {
        self.apply_to(cx, &Target::Typed(ty, expected), old, complaints, validation)
    }

    fn apply_to(
        &self,
        cx: &Cx,
        target: &Target<'_>,
        old: &Value,
        complaints: &[String],
        validation: FieldValidation,
    ) -> Result<Value, Error> {
        let with_managers = self.may_touch_managers(&cx.body);
        let complete = || {
            let mut object = old.clone();
            managed::expand(&mut object);
            object
        };
        // Most patches leave managers alone, who then need not be copied: what is not sent is kept.
        let mut object = if with_managers { complete() } else { managed::without_managers(old) };
        if self.apply(target, &mut object).is_ok() {
            let found = read_patched(cx, self, target, &mut object, validation);
            if matches!(&found, Ok(unknown) if unknown.is_empty() && complaints.is_empty()) {
                return Ok(object);
            }
        }
        // Errors are reported in the field order that kube-apiserver uses.
        let old = &complete();
        let mut object = old.clone();
        self.apply(target, &mut object)?;
        let shown = self.shown(target, old, &mut object);
        let found = read_patched(cx, self, target, &mut object, validation);
        let unknown = found.map_err(|why| match why {
            Refused::Patch(why) => invalid_patch(&why, &shown),
            Refused::Status(status) => status,
        })?;
        let complaints = complaints.iter().cloned().chain(unknown).collect();
        input::report(cx, complaints, validation, &|why| invalid_patch(&why.to_string(), &shown))?;
        Ok(object)
    }

    /// Whether the patch, whose text is given, may read or write `metadata.managedFields`.
    fn may_touch_managers(&self, text: &[u8]) -> bool {
        let mentions = |what: &[u8]| memchr::memmem::find(text, what).is_some();
        let whole = match self {
            // Of the whole object or its metadata.
            Patch::Json(_) => mentions(b"\"\"") || mentions(b"\"/metadata\""),
            Patch::Merge(_) | Patch::Strategic(_) => false,
        };
        whole || mentions(b"managedFields") || mentions(b"\\")
    }

    fn apply(&self, target: &Target<'_>, object: &mut Value) -> Result<(), Error> {
        match (self, target) {
            (Patch::Json(patch), _) => patch.apply(object)?,
            (Patch::Merge(patch), _) => patch::merge::apply(object, patch.clone()),
            (Patch::Strategic(patch), Target::Typed(ty, _)) => {
                patch::strategic::apply(object, patch.clone(), k1s_kinds::patch::PatchType::of(ty))?;
            }
            (Patch::Strategic(_), Target::Custom(_)) => {
                return Err(Status::internal("custom resources have no strategic merge patch").into());
            }
        }
        Ok(())
    }

    /// The text that errors quote: the patched document, with its fields in the order of kube-apiserver, or the rest of a
    /// strategic merge patch.
    fn shown(&self, target: &Target<'_>, old: &Value, patched: &mut Value) -> String {
        match (self, target) {
            (_, Target::Custom(_)) => patched.sort_all_objects(),
            (Patch::Json(patch), _) => patch.sort_touched(patched),
            (Patch::Merge(patch), _) => patch::merge::sort_touched(patched, patch),
            (Patch::Strategic(patch), Target::Typed(ty, _)) => {
                let schema = k1s_kinds::patch::PatchType::of(ty);
                return patch::printed(&patch::strategic::leftover(old, patch.clone(), schema));
            }
        }
        patched.to_string()
    }
}

/// The options of a PATCH. Rejects those that only an apply may have.
pub(crate) fn patch_options(cx: &Cx) -> Result<WriteOptions, Error> {
    if cx.query.find("force").is_some() {
        let error = FieldError::forbidden("force", "may not be specified for non-apply patch");
        return Err(invalid_options("PatchOptions", &[error]).into());
    }
    let options = cx.write_options("PatchOptions")?;
    cx.audit(|trail| trail.patch(&cx.body, false));
    Ok(options)
}

/// Reads the patch in a request for an existing object.
pub(crate) async fn read_patch(cx: &Cx, options: WriteOptions) -> Result<(Patch, Vec<String>), Error> {
    patch_type(cx)?;
    let read = Patch::read(cx, options);
    if matches!(&read, Ok((Patch::Merge(_) | Patch::Strategic(_), _))) {
        return read;
    }
    // The syntax of the body is checked before the existence of the object, its meaning afterwards.
    if let Err(error) = decode::json(&cx.body) {
        return Err(match read {
            _ if error.is_too_deep() => Status::bad_request(format!("invalid JSON patch: {error}")).into(),
            Err(status) => status,
            Ok(_) => Status::bad_request("invalid JSON patch").into(),
        });
    }
    if cx.tenant.get(&cx.key()).await?.is_none() {
        return Err(cx.not_found());
    }
    read
}

/// PATCH of an object, or of a part of it.
pub(crate) async fn patch(cx: &Cx, part: Part) -> Result<Response<Body>, Error> {
    if input::is_apply(cx) {
        return apply::apply(cx, part).await;
    }
    patch_type(cx)?;
    let options = patch_options(cx)?;
    let (patch, complaints) = read_patch(cx, options).await?;
    let change = |old: &Value, _: Option<&Stored>| {
        patched(cx, &patch, old, &complaints, options.field_validation).map(Some)
    };
    let update = Update {
        part,
        dry_run: options.dry_run,
        change: &change,
        uid_is_precondition: false,
        create: false,
        track_owners: true,
    };
    let updated = write::update(cx, &update).await?;
    lifecycle::after_update(cx, &updated, options.dry_run).await?;
    updated.written.respond(cx, 200)
}

/// The type of a patched document.
enum Target<'a> {
    /// A type of the table, and the kind that the document must have.
    Typed(&'static Type, GroupVersionKind<&'a str>),
    Custom(&'a CustomResource),
}

/// The patched object, decoded and defaulted like a request body.
fn patched(
    cx: &Cx,
    patch: &Patch,
    old: &Value,
    complaints: &[String],
    validation: FieldValidation,
) -> Result<Value, Error> {
    let resource = &*cx.resource;
    let mut object = match &resource.source {
        Source::BuiltIn(built_in) => {
            let ty = built_in.kind.ty;
            let mut object = patch.apply_typed(cx, ty, resource.gvk(), old, complaints, validation)?;
            (built_in.rules.defaults)(&mut object);
            resource.set_type(&mut object);
            object
        }
        Source::Custom(custom) => patch.apply_to(cx, &Target::Custom(custom), old, complaints, validation)?,
    };
    write::check_identity(cx, &mut object)?;
    Ok(object)
}

/// Why a patched document is rejected.
enum Refused {
    /// It is not an object of its kind: 422 with the document.
    Patch(String),
    /// Any other error.
    Status(Status),
}

/// Decodes a patched document. Returns messages about unknown fields.
fn read_patched(
    cx: &Cx,
    patch: &Patch,
    target: &Target<'_>,
    object: &mut Value,
    validation: FieldValidation,
) -> Result<Vec<String>, Refused> {
    let mut unknown = Vec::new();
    let strict = validation != FieldValidation::Ignore;
    let refused = |error: k1s_kinds::codec::DecodeError| Refused::Patch(error.to_string());
    match (target, patch) {
        (Target::Typed(ty, _), Patch::Strategic(_)) => {
            k1s_kinds::codec::from_unstructured(ty, object, strict.then_some(&mut unknown))
                .map_err(refused)?;
        }
        (Target::Typed(ty, expected), _) => {
            check_kind(cx, object, *expected)?;
            k1s_kinds::codec::decode(ty, object, strict.then_some(&mut unknown)).map_err(refused)?;
        }
        (Target::Custom(custom), _) => {
            custom.prune_and_default(&cx.resource, object, &mut unknown).map_err(|why| {
                Refused::Patch(match why {
                    Malformed::NoKind => no_kind(&object.to_string()),
                    Malformed::Other(why) => why,
                })
            })?;
            if !strict {
                unknown.clear();
            }
        }
    }
    Ok(unknown)
}

/// Rejects a patch that changes the kind. Without an apiVersion, kube-apiserver decodes its internal version, which has no
/// serialized fields.
fn check_kind(cx: &Cx, object: &Value, expected: GroupVersionKind<&str>) -> Result<(), Refused> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("apiVersion");
    let kind = Some(text("kind")).filter(|kind| !kind.is_empty()).unwrap_or(expected.kind);
    if expected.group_version().is_written_as(api_version) && kind == expected.kind {
        return Ok(());
    }
    if api_version.is_empty() && kind == expected.kind {
        return Err(Refused::Status(write::no_name(cx)));
    }
    let GroupVersion { group, version } =
        GroupVersion::parse(api_version).map_err(|why| Refused::Patch(why.to_string()))?;
    Err(Refused::Patch(match k1s_kinds::find_kind(group, version, kind) {
        Some(_) => input::unknown_conversion((version, kind), expected.group_kind()),
        None => format!(
            "no kind {} is registered for version {} in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
            quote(kind),
            quote(api_version)
        ),
    }))
}

/// 422 for a patch whose result is not an object of the kind.
fn invalid_patch(why: &str, shown: &str) -> Status {
    Status::invalid("", "", "", &[FieldError::invalid("patch", shown, why)])
}
