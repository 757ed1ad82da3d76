//! Admission: webhooks that are asked before an object is created, updated or deleted, and may change or refuse it.
//!
//! - [`Defaulter`] and [`Validator`] are for one kind, with its Rust type. [`Webhook`](super::Webhook) registers them.
//! - [`Handler`] is for everything else: it sees the [`AdmissionRequest`] and makes the [`AdmissionResponse`].
//! - [`Rejection`] is how the former two say no.
//!
//! Reviews of `admission.k8s.io/v1` and `v1beta1` are answered in the version they were asked in.

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
