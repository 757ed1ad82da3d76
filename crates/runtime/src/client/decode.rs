//! Decodes responses.

use std::any::Any;

use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DynamicObject, TypeMeta};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Call, Error, WatchEvent};
use crate::{Object, ObjectKey};

/// The type and metadata of an object.
#[derive(Deserialize)]
pub(super) struct Head {
    #[serde(default)]
    pub(super) kind: Option<String>,
    #[serde(default, rename = "apiVersion")]
    pub(super) api_version: Option<String>,
    #[serde(default)]
    pub(super) metadata: ObjectMeta,
}

fn failed(call: &Call<'_>, object: &[u8], source: serde_json::Error) -> Error {
    let name = serde_json::from_slice::<Head>(object).ok().and_then(|head| {
        let name = head.metadata.name.filter(|name| !name.is_empty())?;
        Some(ObjectKey::new(head.metadata.namespace.as_deref(), &name).to_string())
    });
    let name = name.unwrap_or_else(|| "the answer".into());
    Error::Decode { target: Box::new(call.target()), object: name.into(), source }
}

/// Decodes one object.
pub(super) fn object<K: Object>(call: &Call<'_>, bytes: &[u8]) -> Result<K, Error> {
    let mut object = serde_json::from_slice(bytes).map_err(|source| failed(call, bytes, source))?;
    fill_types(call, &mut object);
    Ok(object)
}

/// Sets the kind of dynamic objects, which list items of built-in kinds lack.
fn fill_types<K: Object>(call: &Call<'_>, object: &mut K) {
    let object: &mut dyn Any = object;
    if let Some(object) = object.downcast_mut::<DynamicObject>()
        && object.types.is_none()
    {
        let resource = call.resource;
        let (api_version, kind) = (resource.api_version.clone(), resource.kind.clone());
        object.types = Some(TypeMeta { api_version, kind });
    }
}

/// A list whose items are not decoded.
#[derive(Debug, Clone)]
pub struct RawList {
    /// The revision of the list: a watch can start from here.
    pub resource_version: String,
    /// The token for the next page, if there is one.
    pub continue_token: Option<String>,
    /// Number of remaining objects after this page (an estimate), if the server returns it.
    pub remaining: Option<i64>,
    /// The JSON of the items. Items of built-in kinds have no `kind` and `apiVersion`.
    pub items: Vec<Bytes>,
}

/// A list of objects from the server.
#[derive(Debug, Clone)]
pub struct List<K> {
    /// The revision of the list: a watch can start from here.
    pub resource_version: String,
    /// The token for the next page, if there is one.
    pub continue_token: Option<String>,
    /// Number of remaining objects after this page (an estimate), if the server returns it.
    pub remaining: Option<i64>,
    /// The objects.
    pub items: Vec<K>,
}

pub(super) fn raw_list(call: &Call<'_>, bytes: &Bytes) -> Result<RawList, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Meta {
        resource_version: Option<String>,
        r#continue: Option<String>,
        remaining_item_count: Option<i64>,
    }
    #[derive(Deserialize)]
    struct Body<'a> {
        metadata: Meta,
        #[serde(borrow)]
        items: Option<Vec<&'a RawValue>>,
    }
    let body: Body<'_> = serde_json::from_slice(bytes).map_err(|source| failed(call, &[], source))?;
    let items = body.items.unwrap_or_default();
    Ok(RawList {
        resource_version: body.metadata.resource_version.unwrap_or_default(),
        continue_token: body.metadata.r#continue.filter(|token| !token.is_empty()),
        remaining: body.metadata.remaining_item_count,
        items: items.into_iter().map(|item| bytes.slice_ref(item.get().as_bytes())).collect(),
    })
}

pub(super) fn list<K: Object>(call: &Call<'_>, bytes: &Bytes) -> Result<List<K>, Error> {
    let RawList { resource_version, continue_token, remaining, items } = raw_list(call, bytes)?;
    let items = items.iter().map(|item| object(call, item)).collect::<Result<_, _>>()?;
    Ok(List { resource_version, continue_token, remaining, items })
}

pub(super) fn bookmark<K>(call: &Call<'_>, bytes: &[u8]) -> Result<WatchEvent<K>, Error> {
    let head: Head = serde_json::from_slice(bytes).map_err(|source| failed(call, bytes, source))?;
    let annotations = head.metadata.annotations.unwrap_or_default();
    Ok(WatchEvent::Bookmark {
        resource_version: head.metadata.resource_version.unwrap_or_default(),
        initial_events_end: annotations.get("k8s.io/initial-events-end").is_some_and(|value| value == "true"),
    })
}

pub(super) fn head(call: &Call<'_>, bytes: &[u8]) -> Result<Head, Error> {
    serde_json::from_slice(bytes).map_err(|source| failed(call, bytes, source))
}

/// The uid in the `Status` that answers a deletion.
pub(super) fn status_uid(bytes: &[u8]) -> Option<String> {
    let status: kube::core::Status = serde_json::from_slice(bytes).ok()?;
    status.details.map(|details| details.uid).filter(|uid| !uid.is_empty())
}

/// Decodes a response that is not an object of the kind, like a Scale.
pub(super) fn any<T: serde::de::DeserializeOwned>(call: &Call<'_>, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|source| failed(call, bytes, source))
}
