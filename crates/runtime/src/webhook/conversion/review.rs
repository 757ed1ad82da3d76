//! Handles `ConversionReview`s: decodes the HTTP body, calls the converters, encodes the response.

use std::{
    collections::HashMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use bytes::Bytes;
use http::{Response, StatusCode};
use kube::core::Status;
use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use super::ConvertKind;
use crate::{
    BoxError, ObjectKey,
    webhook::wire::{TooLarge, json, panic_message, text},
};

/// The converters behind `/convert`, by group and kind.
#[derive(Default)]
pub(crate) struct Converters {
    kinds: RwLock<HashMap<(String, String), Arc<dyn ConvertKind>>>,
}

impl fmt::Debug for Converters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.kinds.read().keys()).finish()
    }
}

#[derive(Deserialize)]
struct ReviewBody {
    #[serde(rename = "apiVersion", default = "default_version")]
    api_version: String,
    #[serde(default = "default_kind")]
    kind: String,
    request: Option<RequestBody>,
}

fn default_version() -> String {
    API_VERSIONS[0].into()
}

fn default_kind() -> String {
    KIND.into()
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RequestBody {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: String,
    objects: Option<Vec<Box<RawValue>>>,
}

#[derive(Serialize)]
struct AnswerBody<'a> {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'a str,
    response: ResponseBody<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResponseBody<'a> {
    uid: &'a str,
    converted_objects: Vec<Box<RawValue>>,
    result: Status,
}

/// The fields of an object that are needed to convert it.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Head {
    api_version: String,
    kind: String,
    metadata: Option<Map<String, Value>>,
}

const KIND: &str = "ConversionReview";
/// The accepted versions of `ConversionReview`. They differ only in name.
const API_VERSIONS: [&str; 2] = ["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"];

impl Converters {
    /// Adds a kind; `false` if it already has a converter.
    pub(crate) fn add(&self, group: String, kind: String, converter: Arc<dyn ConvertKind>) -> bool {
        let mut kinds = self.kinds.write();
        match kinds.entry((group, kind)) {
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(converter);
                true
            }
        }
    }

    /// Handles an HTTP request.
    pub(crate) fn call(&self, body: Result<Bytes, TooLarge>, panics: &Counter) -> Response<Bytes> {
        let unreadable = |code, error: &dyn fmt::Display| {
            tracing::error!(%error, "failed to read conversion request");
            text(code, error.to_string())
        };
        let body = match body {
            Ok(body) => body,
            Err(error) => return unreadable(StatusCode::PAYLOAD_TOO_LARGE, &error),
        };
        let review: ReviewBody = match serde_json::from_slice(&body) {
            Ok(review) => review,
            Err(error) => return unreadable(StatusCode::BAD_REQUEST, &error),
        };
        drop(body);
        let version = API_VERSIONS.into_iter().find(|version| *version == review.api_version);
        let (Some(version), KIND) = (version, review.kind.as_str()) else {
            let error =
                format_args!("{:?} of {:?} is not a ConversionReview", review.kind, review.api_version);
            return unreadable(StatusCode::BAD_REQUEST, &error);
        };
        let Some(request) = review.request else {
            return unreadable(StatusCode::BAD_REQUEST, &"conversion request is nil");
        };
        let objects = request.objects.unwrap_or_default();
        // All or nothing: the first failure ends the conversion.
        let converted: Result<Vec<_>, String> = objects
            .into_iter()
            .enumerate()
            .map(|(index, object)| self.convert(index, object, &request.desired_api_version, panics))
            .collect();
        let (converted_objects, result) = match converted {
            Ok(objects) => (objects, Status::success()),
            Err(error) => {
                tracing::error!(request_id = request.uid, error, "failed to convert");
                (Vec::new(), Status::failure(&error, ""))
            }
        };
        let response = ResponseBody { uid: &request.uid, converted_objects, result };
        match serde_json::to_vec(&AnswerBody { kind: KIND, api_version: version, response }) {
            Ok(body) => json(StatusCode::OK, body),
            Err(error) => unreadable(StatusCode::INTERNAL_SERVER_ERROR, &error),
        }
    }

    fn convert(
        &self,
        index: usize,
        object: Box<RawValue>,
        desired: &str,
        panics: &Counter,
    ) -> Result<Box<RawValue>, String> {
        let head: Head = serde_json::from_str(object.get())
            .map_err(|error| format!("object {index} cannot be decoded: {error}"))?;
        if head.api_version == desired {
            return Ok(object);
        }
        let converted = catch_unwind(AssertUnwindSafe(|| self.try_convert(&head, &object, desired)));
        let converted = converted.unwrap_or_else(|panic| {
            panics.inc();
            Err(format!("panic: {} [recovered]", panic_message(panic.as_ref())).into())
        });
        converted.map_err(|error| {
            let (group, _) = split(&head.api_version);
            let kind = k1s_object::status::qualified(group, &head.kind);
            let from = &head.api_version;
            format!("{kind} {} cannot be converted from {from} to {desired}: {error}", head.key())
        })
    }

    fn try_convert(&self, head: &Head, object: &RawValue, desired: &str) -> Result<Box<RawValue>, BoxError> {
        let (group, _) = split(&head.api_version);
        let (desired_group, _) = split(desired);
        if group != desired_group {
            return Err("the groups differ".into());
        }
        let kind = (group.to_owned(), head.kind.clone());
        let converter = self.kinds.read().get(&kind).cloned().ok_or("the kind has no conversion")?;
        let mut converted = converter.convert(object, &head.api_version, desired)?;
        converted.insert("apiVersion".into(), desired.into());
        converted.insert("kind".into(), head.kind.as_str().into());
        let metadata = match converted.remove("metadata") {
            Some(Value::Object(metadata)) => metadata,
            _ => Map::new(),
        };
        let metadata = restore(head.metadata.clone().unwrap_or_default(), metadata)?;
        converted.insert("metadata".into(), metadata.into());
        Ok(serde_json::value::to_raw_value(&converted)?)
    }
}

impl Head {
    fn key(&self) -> ObjectKey {
        let text = |key: &str| self.metadata.as_ref()?.get(key)?.as_str();
        ObjectKey::new(text("namespace"), text("name").unwrap_or_default())
    }
}

/// The metadata of a converted object: the original's, with the labels and annotations of the conversion.
fn restore(
    mut original: Map<String, Value>,
    mut converted: Map<String, Value>,
) -> Result<Map<String, Value>, BoxError> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    for field in ["name", "namespace", "uid"] {
        let (was, is) = (text(original.get(field)), text(converted.get(field)));
        if !is.is_empty() && is != was {
            return Err(format!("metadata.{field} must not change: {was:?} became {is:?}").into());
        }
    }
    // Metadata without a name was not filled in, so its missing labels mean nothing.
    if !text(converted.get("name")).is_empty() {
        for field in ["labels", "annotations"] {
            match converted.remove(field) {
                Some(Value::Null) | None => original.remove(field),
                Some(value) => original.insert(field.into(), value),
            };
        }
    }
    Ok(original)
}

fn split(api_version: &str) -> (&str, &str) {
    api_version.rsplit_once('/').unwrap_or(("", api_version))
}
