//! Responses: objects, lists and errors in the negotiated form.

mod document;
mod list;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use k1s_object::{
    Status,
    gvk::{GroupKind, GroupVersion},
};
use serde_json::{Value, json};

use crate::{
    body::Body,
    context::Cx,
    errors::Error,
    negotiate::{Accepted, Form, Media, not_acceptable},
    pretty,
    resource::{Resource, Source},
    stored::Stored,
    table,
};

pub(crate) use document::document;
pub(crate) use list::{List, afford, list};

/// A response of bytes.
pub(crate) fn bytes(code: u16, content_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Adds a warning for the user of a client.
pub(crate) fn warn(headers: &mut HeaderMap, warning: &str) {
    let text = format!("299 - {}", k1s_object::field::quote(warning));
    if let Ok(value) = HeaderValue::from_str(&text) {
        headers.append(header::WARNING, value);
    }
}

/// A response of compact JSON.
pub(crate) fn json(code: u16, value: &Value) -> Response<Body> {
    bytes(code, "application/json", json_line(value))
}

/// A response of indented JSON without a final newline: what kube-apiserver writes where it does not negotiate.
pub(crate) fn raw_json(code: u16, value: &Value) -> Response<Body> {
    bytes(code, "application/json", pretty::text(value.to_string().as_bytes()))
}

/// Compact JSON ends with a newline, as Go's encoder writes it.
fn json_line(value: &Value) -> Vec<u8> {
    let mut out = value.to_string().into_bytes();
    out.push(b'\n');
    out
}

/// A response of plain text.
pub(crate) fn text(code: u16, text: impl Into<String>) -> Response<Body> {
    let mut response = bytes(code, "text/plain; charset=utf-8", text.into().into_bytes());
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// An empty response.
pub(crate) fn nothing(code: u16) -> Response<Body> {
    let mut response = bytes(code, "", Body::empty());
    response.headers_mut().remove(header::CONTENT_TYPE);
    response
}

/// `404 page not found`, in plain text.
pub(crate) fn page_not_found() -> Response<Body> {
    text(404, "404 page not found\n")
}

/// An error in the negotiated encoding; `None` if the client accepts none.
pub(crate) fn error(error: Error, media: Option<Media>) -> Response<Body> {
    let status = match error {
        Error::PageNotFound => return page_not_found(),
        Error::Rejected(rejected) => {
            let (code, value) = (rejected.code, &rejected.status);
            let mut response = match media {
                None => raw_json(code, value),
                Some(media) => bytes(code, media.content_type(), encode_status(value, media)),
            };
            let seconds = value["details"]["retryAfterSeconds"].as_u64().filter(|seconds| *seconds > 0);
            if let Some(seconds) = seconds {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            }
            return response;
        }
        other => &other.into_status(),
    };
    let Some(media) = media else { return with_hints(status, raw_json(status.code, &status.to_json())) };
    self::status(status, media)
}

/// An error in an encoding.
pub(crate) fn status(status: &Status, media: Media) -> Response<Body> {
    let value = status.to_json();
    with_hints(status, bytes(status.code, media.content_type(), encode_status(&value, media)))
}

/// Sets the headers of an error, such as Retry-After.
fn with_hints(status: &Status, mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(seconds) =
        status.details.as_ref().map(|details| details.retry_after_seconds).filter(|s| *s > 0)
    {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn encode_status(value: &Value, media: Media) -> Vec<u8> {
    match media {
        Media::Json => json_line(value),
        Media::Yaml => k1s_object::to_yaml(value).into_bytes(),
        Media::Protobuf => match k1s_kinds::type_by_name("io.k8s.apimachinery.pkg.apis.meta.v1.Status") {
            Some(ty) => k1s_kinds::protobuf::encode(ty, value, "v1", "Status"),
            None => value.to_string().into_bytes(),
        },
    }
}

/// A Status of success, the response to a DELETE.
pub(crate) fn success(cx: &Cx, details: &Value) -> Response<Body> {
    let value = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
    bytes(200, cx.accepted.media.content_type(), encode_status(&value, cx.accepted.media))
}

/// Whether an object is sent as it is stored.
pub(crate) fn goes_as_stored(cx: &Cx, stored: &Stored) -> bool {
    cx.accepted == Accepted::JSON && cx.resource.shows_as_stored(stored)
}

/// A stored object.
pub(crate) fn stored(cx: &Cx, code: u16, stored: &Stored) -> Result<Response<Body>, Status> {
    if goes_as_stored(cx, stored) {
        let mut out = Vec::new();
        stored.write(&mut out, &cx.resource.kind, &cx.resource.api_version);
        out.push(b'\n');
        return Ok(bytes(code, Media::Json.content_type(), out));
    }
    let value = cx.read(stored)?;
    object(cx, code, &value)
}

/// An object of the request's resource.
pub(crate) fn object(cx: &Cx, code: u16, value: &Value) -> Result<Response<Body>, Status> {
    let media = cx.accepted.media;
    let bytes_of = |value: &Value| encode(&cx.resource, value, media);
    match cx.accepted.form {
        Form::Object => Ok(bytes(code, media.content_type(), bytes_of(value)?)),
        Form::Partial => {
            Ok(bytes(code, media.content_type(), encode_meta(&partial(cx.accepted, value), media)?))
        }
        Form::PartialList => Err(not_acceptable(format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
            go_type(&cx.resource, false)
        ))),
        Form::Table => {
            let include = table::include(cx)?;
            let table = table::build(cx, &table_meta(value), std::iter::once(value), include, true);
            Ok(bytes(code, media.content_type(), encode_meta(&table, media)?))
        }
    }
}

/// The metadata of a table of one object.
fn table_meta(value: &Value) -> Value {
    match value["metadata"]["resourceVersion"].as_str().unwrap_or_default() {
        "" => json!({}),
        revision => json!({ "resourceVersion": revision }),
    }
}

/// The Go type that kube-apiserver's errors name.
fn go_type(resource: &Resource, list: bool) -> String {
    let name = if list { &resource.list_kind } else { &resource.kind };
    if resource.is_custom() {
        return format!("*unstructured.Unstructured{}", if list { "List" } else { "" });
    }
    let package = match resource.group.split('.').next() {
        None | Some("") => "core",
        Some(package) => package,
    };
    format!("*{package}.{name}")
}

/// Any object of this resource's kind, or a list of them, in an encoding.
pub(crate) fn encode(resource: &Resource, value: &Value, media: Media) -> Result<Vec<u8>, Status> {
    match media {
        Media::Json => Ok(json_line(value)),
        Media::Yaml => Ok(k1s_object::to_yaml(value).into_bytes()),
        Media::Protobuf => match &resource.source {
            Source::BuiltIn(built_in) => Ok(k1s_kinds::protobuf::encode(
                built_in.kind.ty,
                value,
                &resource.api_version,
                &resource.kind,
            )),
            Source::Custom(_) => Err(not_acceptable("custom resources have no protobuf encoding")),
        },
    }
}

/// An object of another kind, such as a Scale, by its type in the table.
pub(crate) fn other(cx: &Cx, code: u16, value: &Value) -> Result<Response<Body>, Status> {
    let media = cx.accepted.media;
    let kind = value["kind"].as_str().unwrap_or_default();
    let api_version = value["apiVersion"].as_str().unwrap_or_default();
    let GroupVersion { group, version } = GroupVersion::split(api_version);
    let body = match (cx.accepted.form, media) {
        // A Status has no other form.
        (Form::Table, _) if kind != "Status" => {
            let include = table::include(cx)?;
            let one = std::iter::once(value);
            let table =
                table::build_as(cx, GroupKind::new(group, kind), &table_meta(value), one, include, true);
            encode_meta(&table, media)?
        }
        (Form::Partial, _) if kind != "Status" => encode_meta(&partial(cx.accepted, value), media)?,
        (_, Media::Protobuf) => {
            let ty = k1s_kinds::body(group, version, kind)
                .ok_or_else(|| not_acceptable(format!("{kind} has no protobuf encoding here")))?;
            k1s_kinds::protobuf::encode(ty, value, api_version, kind)
        }
        _ => encode(&cx.resource, value, media)?,
    };
    Ok(bytes(code, media.content_type(), body))
}

/// A Table or `PartialObjectMetadata` in an encoding.
fn encode_meta(value: &Value, media: Media) -> Result<Vec<u8>, Status> {
    match media {
        Media::Json => Ok(json_line(value)),
        Media::Yaml => Ok(k1s_object::to_yaml(value).into_bytes()),
        Media::Protobuf => {
            let kind = value["kind"].as_str().unwrap_or_default();
            if kind == "Table" {
                return Err(not_acceptable(
                    "object *v1.Table does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message",
                ));
            }
            let name = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}");
            let ty = k1s_kinds::type_by_name(&name)
                .ok_or_else(|| not_acceptable(format!("{kind} has no protobuf encoding here")))?;
            Ok(k1s_kinds::protobuf::encode(ty, value, "meta.k8s.io/v1", kind))
        }
    }
}

/// An object as `PartialObjectMetadata`.
pub(crate) fn partial(accepted: Accepted, value: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": accepted.form_version,
        "metadata": value.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}
