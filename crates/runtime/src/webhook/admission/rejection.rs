//! Why a defaulter or a validator rejects a request.

use std::fmt;

use k1s_object::FieldError;
use kube::core::Status;

use super::{AdmissionRequest, AdmissionResponse, Warnings};
use crate::BoxError;

/// Why a defaulter or a validator rejects a request.
///
/// Any error or string converts with `?` or `.into()`. A string is a denial: 403, `Forbidden`. An error that is a `Status`,
/// or is caused by one (a failed API call), keeps its code, reason and details. Field errors become 422, `Invalid`, and
/// name the object:
///
/// ```
/// use k1s_object::FieldError;
/// use k1s_runtime::webhook::admission::Rejection;
///
/// fn check(replicas: i32) -> Result<(), Rejection> {
///     if replicas < 0 {
///         let error = FieldError::invalid("spec.replicas", replicas, "must not be negative");
///         return Err(Rejection::invalid([error]));
///     }
///     if replicas == 13 {
///         return Err("thirteen is not allowed here".into());
///     }
///     Ok(())
/// }
/// # assert!(check(-1).is_err() && check(13).is_err() && check(1).is_ok());
/// ```
// Not an `Error` itself, since that would rule out the conversion from every error.
#[derive(Debug, Clone)]
pub struct Rejection {
    why: Why,
    warnings: Warnings,
}

#[derive(Debug, Clone)]
enum Why {
    Denied(String),
    Invalid(Vec<FieldError>),
    Status(Box<Status>),
}

impl Rejection {
    fn new(why: Why) -> Rejection {
        Rejection { why, warnings: Warnings::new() }
    }

    /// 403, `Forbidden`, with this message.
    pub fn denied(message: impl Into<String>) -> Rejection {
        Rejection::new(Why::Denied(message.into()))
    }

    /// 422, `Invalid`, with these field errors.
    pub fn invalid(errors: impl IntoIterator<Item = FieldError>) -> Rejection {
        Rejection::new(Why::Invalid(errors.into_iter().collect()))
    }

    /// A custom status.
    #[must_use]
    pub fn status(status: Status) -> Rejection {
        Rejection::new(Why::Status(Box::new(status)))
    }

    /// Adds warnings.
    #[must_use]
    pub fn with_warnings(mut self, warnings: impl IntoIterator<Item = impl Into<String>>) -> Rejection {
        self.warnings.extend(warnings.into_iter().map(Into::into));
        self
    }

    /// The response to this request.
    pub(super) fn into_response(self, request: &AdmissionRequest) -> AdmissionResponse {
        let response = match self.why {
            Why::Denied(message) => AdmissionResponse::denied(message),
            Why::Invalid(errors) => {
                let kind = &request.kind;
                let status = k1s_object::Status::invalid(&kind.group, &kind.kind, &request.name, &errors);
                AdmissionResponse::from_status(from_object_status(&status))
            }
            Why::Status(status) => AdmissionResponse::from_status(*status),
        };
        response.with_warnings(self.warnings)
    }
}

impl<E: Into<BoxError>> From<E> for Rejection {
    fn from(error: E) -> Rejection {
        let error: BoxError = error.into();
        match status_of(error.as_ref()) {
            Some(status) => Rejection::status(status),
            None => Rejection::denied(error.to_string()),
        }
    }
}

/// The status that an error is, or is caused by.
fn status_of(error: &(dyn std::error::Error + 'static)) -> Option<Status> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(status) = error.downcast_ref::<k1s_object::Status>() {
            return Some(from_object_status(status));
        }
        if let Some(status) = error.downcast_ref::<Status>() {
            return Some(status.clone());
        }
        if let Some(kube::Error::Api(status)) = error.downcast_ref::<kube::Error>() {
            return Some(status.as_ref().clone());
        }
        next = error.source();
    }
    None
}

fn from_object_status(status: &k1s_object::Status) -> Status {
    // Its JSON is a Status, so this does not fail; if it did, the message would be kept.
    serde_json::from_value(status.to_json())
        .unwrap_or_else(|_| Status::failure(&status.message, status.reason).with_code(status.code))
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Denied(message) => f.write_str(message),
            Why::Status(status) => f.write_str(&status.message),
            Why::Invalid(errors) => {
                for (index, error) in errors.iter().enumerate() {
                    write!(f, "{}{error}", if index == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
        }
    }
}
