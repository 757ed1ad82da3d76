//! The response of a webhook: allowed, denied, an error, a patch; with warnings.

use std::{collections::BTreeMap, fmt};

use json_patch::Patch;
use k8s_openapi::ByteString;
use kube::core::Status;
use serde::Serialize;

/// Messages to the user that do not reject the request.
pub type Warnings = Vec<String>;

/// The response to an [`AdmissionRequest`](super::AdmissionRequest).
#[derive(Debug, Clone, PartialEq)]
pub struct AdmissionResponse {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// The reason. Without a code, 200 is sent.
    pub result: Status,
    /// Changes to the object.
    pub patch: Option<Patch>,
    /// Warnings to the user.
    pub warnings: Warnings,
    /// Annotations of the audit event.
    pub audit_annotations: BTreeMap<String, String>,
}

impl AdmissionResponse {
    fn new(allowed: bool, code: u16, reason: &str, message: String) -> AdmissionResponse {
        AdmissionResponse {
            allowed,
            result: Status { code, reason: reason.into(), message, ..Status::default() },
            patch: None,
            warnings: Warnings::new(),
            audit_annotations: BTreeMap::new(),
        }
    }

    /// Allows the request.
    #[must_use]
    pub fn allowed() -> AdmissionResponse {
        AdmissionResponse::new(true, 200, "", String::new())
    }

    /// Rejects the request with 403, `Forbidden`.
    pub fn denied(message: impl Into<String>) -> AdmissionResponse {
        AdmissionResponse::new(false, 403, "Forbidden", message.into())
    }

    /// Rejects the request, because it could not be processed.
    pub fn errored(code: u16, error: impl fmt::Display) -> AdmissionResponse {
        AdmissionResponse::new(false, code, "", error.to_string())
    }

    /// Rejects the request with a custom status.
    #[must_use]
    pub fn from_status(result: Status) -> AdmissionResponse {
        AdmissionResponse { allowed: false, result, ..AdmissionResponse::allowed() }
    }

    /// Allows the request, with changes to the object. An empty patch changes nothing.
    #[must_use]
    pub fn patched(patch: Patch) -> AdmissionResponse {
        AdmissionResponse { patch: (!patch.0.is_empty()).then_some(patch), ..AdmissionResponse::allowed() }
    }

    /// Adds warnings.
    #[must_use]
    pub fn with_warnings(
        mut self,
        warnings: impl IntoIterator<Item = impl Into<String>>,
    ) -> AdmissionResponse {
        self.warnings.extend(warnings.into_iter().map(Into::into));
        self
    }

    /// Sets the message of the status.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> AdmissionResponse {
        self.result.message = message.into();
        self
    }

    /// Adds an annotation to the audit event.
    #[must_use]
    pub fn with_audit_annotation(
        mut self,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> AdmissionResponse {
        self.audit_annotations.insert(key.into(), value.into());
        self
    }
}

/// Converts `kube`'s response, for handlers that were written for it.
impl From<kube::core::admission::AdmissionResponse> for AdmissionResponse {
    fn from(response: kube::core::admission::AdmissionResponse) -> AdmissionResponse {
        let patch = match response.patch.as_deref().map(serde_json::from_slice).transpose() {
            Ok(patch) => patch,
            Err(error) => {
                return AdmissionResponse::errored(500, format!("cannot decode the patch: {error}"));
            }
        };
        let mut result = response.result;
        if !response.allowed && result.code == 0 {
            result.code = 403;
        }
        AdmissionResponse {
            allowed: response.allowed,
            result,
            patch,
            warnings: response.warnings.unwrap_or_default(),
            audit_annotations: response.audit_annotations.into_iter().collect(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReviewBody<'a> {
    kind: &'static str,
    api_version: &'a str,
    response: ResponseBody<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResponseBody<'a> {
    uid: &'a str,
    allowed: bool,
    status: Status,
    // Kubernetes' `[]byte` is base64. `kube`'s own response has an array of numbers here.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<ByteString>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    audit_annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Warnings,
}

/// The serialized response, in the version of the request.
pub(super) fn write_review(
    api_version: &str,
    uid: &str,
    response: AdmissionResponse,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut status = response.result;
    if status.code == 0 {
        status.code = 200;
    }
    let patch = response.patch.map(|patch| serde_json::to_vec(&patch)).transpose()?.map(ByteString);
    let response = ResponseBody {
        uid,
        allowed: response.allowed,
        status,
        patch_type: patch.as_ref().map(|_| "JSONPatch"),
        patch,
        audit_annotations: response.audit_annotations,
        warnings: response.warnings,
    };
    serde_json::to_vec(&ReviewBody { kind: "AdmissionReview", api_version, response })
}
