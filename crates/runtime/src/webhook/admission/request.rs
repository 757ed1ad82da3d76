//! The request of an `AdmissionReview`.

use std::fmt;

use k8s_openapi::api::authentication::v1::UserInfo;
pub use kube::core::admission::Operation;
use kube::{
    Resource,
    core::{GroupVersionKind, GroupVersionResource, TypeMeta},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::ObjectKey;

/// An admission request: who wants to do what with which object.
///
/// Objects are kept as they were sent and decoded on demand, so that fields unknown to a type are not lost.
#[derive(Debug, Clone)]
pub struct AdmissionRequest {
    /// Identifies the call; the response repeats it.
    pub uid: String,
    /// The kind of the object, in the version that the webhook's rules match.
    pub kind: GroupVersionKind,
    /// The resource of the request, in the version that the webhook's rules match.
    pub resource: GroupVersionResource,
    /// `status` or `scale`, for example; empty for the object itself.
    pub sub_resource: String,
    /// The kind of the original request, which may be of another version than `kind`.
    pub request_kind: Option<GroupVersionKind>,
    /// The resource of the original request, which may be of another version than `resource`.
    pub request_resource: Option<GroupVersionResource>,
    /// The subresource of the original request.
    pub request_sub_resource: String,
    /// The object's name; empty if it is yet to be generated.
    pub name: String,
    /// The object's namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The operation; `None` if it is not one of Kubernetes' four.
    pub operation: Option<Operation>,
    /// The user who sent the request.
    pub user_info: UserInfo,
    /// Nothing will be stored: the webhook must not have side effects.
    pub dry_run: bool,
    raw_operation: String,
    object: Option<Box<RawValue>>,
    old_object: Option<Box<RawValue>>,
    options: Option<Box<RawValue>>,
}

/// A part of a request cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The request does not contain it.
    #[error("there is no content to decode")]
    Missing,
    /// It is not of the requested type.
    #[error("{what} cannot be decoded: {source}")]
    Invalid {
        /// Which part of the request.
        what: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl AdmissionRequest {
    /// The object to be stored, for create and update.
    ///
    /// # Errors
    /// If there is none, as for deletions; or it is not a `K`.
    pub fn object<K: DeserializeOwned>(&self) -> Result<K, DecodeError> {
        decode("the object", self.object.as_deref())
    }

    /// The stored object, for update and delete.
    ///
    /// # Errors
    /// If there is none, as for creations; or it is not a `K`.
    pub fn old_object<K: DeserializeOwned>(&self) -> Result<K, DecodeError> {
        decode("the old object", self.old_object.as_deref())
    }

    /// The options of the operation: `CreateOptions`, `UpdateOptions`, `DeleteOptions`.
    ///
    /// # Errors
    /// If there are none, or they are not an `O`.
    pub fn options<O: DeserializeOwned>(&self) -> Result<O, DecodeError> {
        decode("the options", self.options.as_deref())
    }

    /// The object as it was sent, as JSON.
    #[must_use]
    pub fn raw_object(&self) -> Option<&str> {
        self.object.as_deref().map(RawValue::get)
    }

    /// The old object as it was sent, as JSON.
    #[must_use]
    pub fn raw_old_object(&self) -> Option<&str> {
        self.old_object.as_deref().map(RawValue::get)
    }

    /// Namespace and name of the object.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(Some(&self.namespace), &self.name)
    }

    /// The name of the user.
    #[must_use]
    pub fn user(&self) -> &str {
        self.user_info.username.as_deref().unwrap_or_default()
    }

    /// The operation as it was sent, known or not.
    #[must_use]
    pub fn raw_operation(&self) -> &str {
        &self.raw_operation
    }

    /// Converts to `kube`'s request, for handlers that were written for it.
    ///
    /// # Errors
    /// If an object is not a `K`, or the operation is unknown.
    pub fn to_kube<K>(&self) -> Result<kube::core::admission::AdmissionRequest<K>, DecodeError>
    where
        K: Resource + DeserializeOwned,
    {
        let optional = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let present = |decoded: Result<K, DecodeError>| match decoded {
            Ok(object) => Ok(Some(object)),
            Err(DecodeError::Missing) => Ok(None),
            Err(error) => Err(error),
        };
        Ok(kube::core::admission::AdmissionRequest {
            types: TypeMeta { api_version: API_VERSIONS[0].into(), kind: "AdmissionReview".into() },
            uid: self.uid.clone(),
            kind: self.kind.clone(),
            resource: self.resource.clone(),
            sub_resource: optional(&self.sub_resource),
            request_kind: self.request_kind.clone(),
            request_resource: self.request_resource.clone(),
            request_sub_resource: optional(&self.request_sub_resource),
            name: self.name.clone(),
            namespace: optional(&self.namespace),
            operation: self.operation.clone().ok_or(DecodeError::Missing)?,
            user_info: self.user_info.clone(),
            object: present(self.object())?,
            old_object: present(self.old_object())?,
            dry_run: self.dry_run,
            options: self.options().ok(),
        })
    }
}

fn decode<K: DeserializeOwned>(what: &'static str, raw: Option<&RawValue>) -> Result<K, DecodeError> {
    let raw = raw.ok_or(DecodeError::Missing)?;
    serde_json::from_str(raw.get()).map_err(|source| DecodeError::Invalid { what, source })
}

/// `CREATE widgets.example.com default/a by alice`, for logs.
impl fmt::Display for AdmissionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.raw_operation, self.resource.resource)?;
        if !self.resource.group.is_empty() {
            write!(f, ".{}", self.resource.group)?;
        }
        write!(f, " {} by {}", self.key(), self.user())
    }
}

/// The accepted versions of `AdmissionReview`. They differ only in name.
pub(super) const API_VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

/// A review as it is sent. As in Go, missing fields are empty.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReviewBody {
    api_version: String,
    kind: String,
    request: Option<RequestBody>,
}

impl Default for ReviewBody {
    fn default() -> ReviewBody {
        ReviewBody { api_version: API_VERSIONS[0].into(), kind: "AdmissionReview".into(), request: None }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RequestBody {
    uid: String,
    kind: KindBody,
    resource: ResourceBody,
    sub_resource: Option<String>,
    request_kind: Option<KindBody>,
    request_resource: Option<ResourceBody>,
    request_sub_resource: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    operation: String,
    user_info: UserInfo,
    object: Option<Box<RawValue>>,
    old_object: Option<Box<RawValue>>,
    dry_run: Option<bool>,
    options: Option<Box<RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct KindBody {
    group: String,
    version: String,
    kind: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ResourceBody {
    group: String,
    version: String,
    resource: String,
}

impl From<KindBody> for GroupVersionKind {
    fn from(body: KindBody) -> GroupVersionKind {
        GroupVersionKind { group: body.group, version: body.version, kind: body.kind }
    }
}

impl From<ResourceBody> for GroupVersionResource {
    fn from(body: ResourceBody) -> GroupVersionResource {
        GroupVersionResource::gvr(&body.group, &body.version, &body.resource)
    }
}

impl From<RequestBody> for AdmissionRequest {
    fn from(body: RequestBody) -> AdmissionRequest {
        let operation = match body.operation.as_str() {
            "CREATE" => Some(Operation::Create),
            "UPDATE" => Some(Operation::Update),
            "DELETE" => Some(Operation::Delete),
            "CONNECT" => Some(Operation::Connect),
            _ => None,
        };
        AdmissionRequest {
            uid: body.uid,
            kind: body.kind.into(),
            resource: body.resource.into(),
            sub_resource: body.sub_resource.unwrap_or_default(),
            request_kind: body.request_kind.map(Into::into),
            request_resource: body.request_resource.map(Into::into),
            request_sub_resource: body.request_sub_resource.unwrap_or_default(),
            name: body.name.unwrap_or_default(),
            namespace: body.namespace.unwrap_or_default(),
            operation,
            user_info: body.user_info,
            dry_run: body.dry_run.unwrap_or_default(),
            raw_operation: body.operation,
            object: body.object,
            old_object: body.old_object,
            options: body.options,
        }
    }
}

/// An invalid review.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReviewError {
    #[error("the body cannot be decoded: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{kind:?} of {api_version:?} is not an AdmissionReview of {}", API_VERSIONS.join(" or "))]
    Unknown { api_version: String, kind: String },
    #[error("the AdmissionReview has no request")]
    NoRequest,
}

/// Decodes a review: its version and its request.
pub(super) fn read_review(body: &[u8]) -> Result<(&'static str, AdmissionRequest), ReviewError> {
    let review: ReviewBody = serde_json::from_slice(body)?;
    let version = API_VERSIONS.into_iter().find(|version| *version == review.api_version);
    let (Some(version), "AdmissionReview") = (version, review.kind.as_str()) else {
        return Err(ReviewError::Unknown { api_version: review.api_version, kind: review.kind });
    };
    Ok((version, review.request.ok_or(ReviewError::NoRequest)?.into()))
}
