//! Decodes request bodies into objects of a kind, with the error messages of Kubernetes.

use http::header;
use k1s_kinds::table::Type;
use k1s_object::{
    Status, decode,
    decode::Duplicate,
    depth,
    field::quote,
    gvk::{GroupKind, GroupVersion, GroupVersionKind},
};
use serde_json::Value;

use crate::{
    context::{Cx, FieldValidation},
    errors,
    resource::{CustomResource, Malformed, Source, no_kind},
};

/// The encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Media {
    Json,
    Yaml,
    Protobuf,
}

const MEDIA_TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The media type of a body, without its parameters.
pub(crate) fn content_type(cx: &Cx) -> &str {
    let value =
        cx.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

/// The media type of an apply.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// Whether a PATCH is an apply.
pub(crate) fn is_apply(cx: &Cx) -> bool {
    content_type(cx) == APPLY
}

fn media(cx: &Cx) -> Result<Media, Status> {
    match content_type(cx) {
        "" | "application/json" => Ok(Media::Json),
        "application/yaml" => Ok(Media::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(Media::Protobuf),
        _ => Err(errors::unsupported_media_type(MEDIA_TYPES)),
    }
}

/// A body and the paths of its duplicate fields.
struct Parsed {
    value: Value,
    duplicates: Vec<Duplicate>,
}

fn parse(cx: &Cx, media: Media, must_be: &str) -> Result<Parsed, Status> {
    let unrecognized = |why: &str| {
        Status::bad_request(match must_be {
            "" => why.to_owned(),
            kind => format!(
                "the object provided is unrecognized (must be of type {kind}): {why} ({})",
                summary(&cx.body, 30)
            ),
        })
    };
    let decoded = match media {
        Media::Json => decode::json(&cx.body).map_err(|error| {
            unrecognized(&format!("couldn't get version/kind; json parse error: {error}"))
        })?,
        Media::Yaml => {
            let decoded =
                k1s_object::yaml::decode(&cx.body).map_err(|error| unrecognized(&error.to_string()))?;
            let duplicates = decoded.duplicates.into_iter().map(|path| Duplicate { path, position: 0 });
            return Ok(Parsed { value: decoded.value, duplicates: duplicates.collect() });
        }
        Media::Protobuf => {
            let lookup = |api_version: &str, kind: &str| {
                let GroupVersion { group, version } = GroupVersion::split(api_version);
                k1s_kinds::body(group, version, kind)
            };
            let value = k1s_kinds::protobuf::decode(&cx.body, lookup)
                .map_err(|error| unrecognized(&error.to_string()))?;
            // The depth of messages is limited, but JSON inside of them is counted from zero.
            if depth::is_too_deep(&value) {
                return Err(unrecognized(&format!("exceeded max depth of {}", depth::MAX_DEPTH)));
            }
            return Ok(Parsed { value, duplicates: Vec::new() });
        }
    };
    decode::type_meta(&decoded.value).map_err(|error| unrecognized(&error.to_string()))?;
    Ok(Parsed { value: decoded.value, duplicates: decoded.duplicates })
}

/// The beginning of a body for an error message, as Kubernetes shows it.
pub(crate) fn summary(body: &[u8], max: usize) -> String {
    let head = body.get(..max).unwrap_or(body);
    let more = if head.len() < body.len() { " ..." } else { "" };
    if body.first() == Some(&b'{') {
        format!("{}{more}", String::from_utf8_lossy(head))
    } else {
        use std::fmt::Write as _;
        let mut hex = String::new();
        for byte in head {
            let _ = write!(hex, "{byte:02x}");
        }
        format!("{hex}{more}")
    }
}

/// The object in a body, of the requested resource's kind: decoded, defaulted, with its type set.
pub(crate) fn object(cx: &Cx, validation: FieldValidation) -> Result<Value, Status> {
    let object = read_object(cx, validation)?;
    cx.audit(|trail| trail.request_object(&object));
    Ok(object)
}

fn read_object(cx: &Cx, validation: FieldValidation) -> Result<Value, Status> {
    let resource = &cx.resource;
    match &resource.source {
        Source::BuiltIn(built_in) => {
            let media = media(cx)?;
            let parsed = parse(cx, media, &resource.kind)?;
            let mut value =
                typed(cx, parsed, built_in.kind.ty, resource.gvk(), validation, media == Media::Yaml)?;
            (built_in.rules.defaults)(&mut value);
            resource.set_type(&mut value);
            Ok(value)
        }
        Source::Custom(custom) => {
            let media = media(cx)?;
            let parsed = parse(cx, media, &resource.kind)?;
            self::custom(custom, cx, parsed.value, &parsed.duplicates, validation)
        }
    }
}

/// A custom resource in a body: decoded, pruned, defaulted. Validation rejects another kind.
fn custom(
    custom: &CustomResource,
    cx: &Cx,
    mut object: Value,
    duplicates: &[Duplicate],
    validation: FieldValidation,
) -> Result<Value, Status> {
    let resource = &cx.resource;
    let api_version = text(&object, "apiVersion").to_owned();
    let kind = text(&object, "kind").to_owned();
    let mut unknown = Vec::new();
    custom.prune_and_default(resource, &mut object, &mut unknown).map_err(|why| {
        Status::bad_request(match why {
            Malformed::NoKind => format!(
                "the object provided is unrecognized (must be of type {}): {} ({})",
                resource.kind,
                no_kind(&String::from_utf8_lossy(&cx.body)),
                summary(&cx.body, 30)
            ),
            Malformed::Other(why) => handled(&kind, &api_version, &resource.kind, &why),
        })
    })?;
    let mut complaints: Vec<String> = Vec::new();
    if validation != FieldValidation::Ignore {
        complaints
            .extend(duplicates.iter().map(|duplicate| format!("duplicate field {}", quote(&duplicate.path))));
        complaints.extend(unknown);
    }
    report(cx, complaints, validation, &|why| {
        Status::bad_request(handled(&kind, &api_version, &resource.kind, why))
    })?;
    if api_version != resource.api_version {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            resource.api_version
        )));
    }
    Ok(object)
}

fn handled(kind: &str, api_version: &str, expected: &str, why: &dyn std::fmt::Display) -> String {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    format!("{kind} in version {} cannot be handled as a {expected}: {why}", quote(version))
}

/// The type of bodies of a built-in kind that is not a resource, such as a Scale.
pub(crate) fn body_type(gvk: GroupVersionKind<&str>) -> Result<&'static Type, Status> {
    let GroupVersionKind { group, version, kind } = gvk;
    k1s_kinds::body(group, version, kind)
        .ok_or_else(|| Status::internal(format!("{kind} is not in the table of types")))
}

/// A body of another kind than the resource's: a Scale, an Eviction, `DeleteOptions`.
pub(crate) fn other(
    cx: &Cx,
    expected: GroupVersionKind<&str>,
    validation: FieldValidation,
) -> Result<Value, Status> {
    let ty = body_type(expected)?;
    let media = media(cx)?;
    let parsed = parse(cx, media, expected.kind)?;
    let body = typed(cx, parsed, ty, expected, validation, media == Media::Yaml)?;
    cx.audit(|trail| trail.request_object(&body));
    Ok(body)
}

/// The `DeleteOptions` in a body; unknown fields are ignored.
pub(crate) fn delete_options(cx: &Cx, ty: &'static Type) -> Result<Value, Status> {
    let media = media(cx)?;
    let Parsed { mut value, .. } = parse(cx, media, "")?;
    if !value.is_object() && !value.is_null() {
        let found = decode::type_name(&value);
        return Err(Status::bad_request(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        )));
    }
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    if !kind.is_empty() && kind != "DeleteOptions" {
        return Err(Status::bad_request(format!(
            "decoded object cannot be converted to DeleteOptions: it is a {kind}"
        )));
    }
    k1s_kinds::codec::decode(ty, &mut value, None).map_err(|error| Status::bad_request(error.to_string()))?;
    cx.audit(|trail| trail.request_options(&value));
    Ok(value)
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Checks that the kind and apiVersion of a document are the expected ones or absent.
pub(crate) fn check_type(value: &Value, body: &[u8], expected: GroupVersionKind<&str>) -> Result<(), Status> {
    let (api_version, kind) = (expected.group_version(), expected.kind);
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (sent_version, sent_kind) = (text("apiVersion"), text("kind"));
    let sent_version = if sent_version.is_empty() { api_version.to_string() } else { sent_version };
    let GroupVersion { group, version } = GroupVersion::parse(&sent_version).map_err(|why| {
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({})",
            summary(body, 30)
        ))
    })?;
    let sent_kind = if sent_kind.is_empty() { kind.to_owned() } else { sent_kind };
    if api_version.is_written_as(&sent_version) && sent_kind == kind {
        return Ok(());
    }
    if sent_kind == kind || k1s_kinds::find_kind(group, version, &sent_kind).is_none() {
        return Err(Status::bad_request(format!(
            "the API version in the data ({sent_version}) does not match the expected API version ({api_version})"
        )));
    }
    Err(Status::bad_request(format!(
        "{sent_kind} in version {version:?} cannot be handled as a {kind}: {}",
        unknown_conversion((version, &sent_kind), expected.group_kind())
    )))
}

/// Go's error message for an object of another kind than expected.
pub(crate) fn unknown_conversion((version, sent_kind): (&str, &str), expected: GroupKind<&str>) -> String {
    let GroupKind { group, kind } = expected;
    let package = match group.split('.').next() {
        None | Some("") => "core",
        Some(package) => package,
    };
    format!("converting ({version}.{sent_kind}) to ({package}.{kind}): unknown conversion")
}

fn typed(
    cx: &Cx,
    parsed: Parsed,
    ty: &'static Type,
    expected: GroupVersionKind<&str>,
    validation: FieldValidation,
    yaml: bool,
) -> Result<Value, Status> {
    let Parsed { mut value, duplicates } = parsed;
    check_type(&value, &cx.body, expected)?;
    let (version, kind) = (expected.version, expected.kind);
    let handled = |why: &dyn std::fmt::Display| {
        Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
    };
    if value.is_null() {
        value = Value::Object(serde_json::Map::new());
    }
    let mut complaints = if validation == FieldValidation::Ignore {
        k1s_kinds::codec::decode(ty, &mut value, None).map(|()| Vec::new())
    } else {
        let duplicates = duplicates.iter().map(|duplicate| (&*duplicate.path, duplicate.position));
        k1s_kinds::codec::decode_strict(ty, &mut value, duplicates)
    }
    .map_err(|error| handled(&error))?;
    if yaml {
        complaints.sort();
    }
    report(cx, complaints, validation, &handled)?;
    Ok(value)
}

/// Maximum number of strict decoding errors in a response, as in kube-apiserver.
const MAX_STRICT_ERRORS: usize = 100;

fn capped(mut complaints: Vec<String>) -> Vec<String> {
    let more = complaints.len().saturating_sub(MAX_STRICT_ERRORS);
    if more > 0 {
        complaints.truncate(MAX_STRICT_ERRORS);
        complaints.push(format!("and {more} more errors"));
    }
    complaints
}

/// Rejects a document with unknown or duplicate fields, or warns about them.
pub(crate) fn report(
    cx: &Cx,
    complaints: Vec<String>,
    validation: FieldValidation,
    refuse: &dyn Fn(&dyn std::fmt::Display) -> Status,
) -> Result<(), Status> {
    if complaints.is_empty() {
        return Ok(());
    }
    let complaints = capped(complaints);
    match validation {
        FieldValidation::Ignore => Ok(()),
        FieldValidation::Warn => {
            for complaint in complaints {
                cx.warn(complaint);
            }
            Ok(())
        }
        FieldValidation::Strict => Err(refuse(&format!("strict decoding error: {}", complaints.join(", ")))),
    }
}
