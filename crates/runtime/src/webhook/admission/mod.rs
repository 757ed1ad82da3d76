//! Admission: webhooks that are called before an object is created, updated or deleted, and may change or reject it.
//!
//! - [`Defaulter`] and [`Validator`] are for one kind, with its Rust type. [`Webhook`](super::Webhook) registers them.
//! - [`Handler`] is the general form: it receives an [`AdmissionRequest`] and returns an [`AdmissionResponse`].
//! - [`Rejection`] is the error type of the former two.
//!
//! Reviews of `admission.k8s.io/v1` and `v1beta1` are answered in the version of the request.

mod defaulter;
mod handler;
mod merge;
mod rejection;
mod request;
mod response;
mod validator;

pub use defaulter::Defaulter;
pub(crate) use defaulter::DefaulterFn;
pub use handler::{AdmissionHook, Handler};
pub use rejection::Rejection;
pub use request::{AdmissionRequest, DecodeError, Operation};
pub use response::{AdmissionResponse, Warnings};
pub(crate) use validator::ValidatorFn;
pub use validator::{Validation, Validator};
