//! The decisions of admission plugins that depend on objects alone. The server fetches the objects and applies the
//! result.
//!
//! - [`limit_ranger`]: `LimitRanger`, defaults and bounds from `LimitRange`s.
//! - [`pod_references`]: the secrets, claims and other objects that a pod uses.
//! - [`pod_security`]: `PodSecurity`, the Pod Security Standards.
//! - [`policy`]: `ValidatingAdmissionPolicy` and `MutatingAdmissionPolicy`.
//! - [`resource_quota`]: `ResourceQuota`, what an object uses and whether a quota has room for it.
//! - [`runtime_class`]: `RuntimeClass`, overhead and scheduling of a pod from its class.

pub mod limit_ranger;
pub mod pod_references;
pub mod pod_resources;
pub mod pod_security;
pub mod policy;
pub mod resource_quota;
pub mod runtime_class;
