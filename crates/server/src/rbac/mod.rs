//! RBAC: the rules of roles, which of them apply to a user, and whether they cover others.
//!
//! Nothing here knows of requests. `rule` and `cover` are pure; `index` holds the roles and bindings of one tenant by their
//! subjects, and what they [grant](granted) to the users that come; `policies` keeps it up to date from the watch cache. The
//! authorizer is in `auth`.

mod cover;
mod granted;
mod index;
mod policies;
mod rule;

pub(crate) use cover::{compact, uncovered};
pub(crate) use index::{Index, RoleRef};
pub(crate) use policies::{Newest, Policies, RESOURCES};
pub(crate) use rule::{Rule, go_list};

/// The API group of the policy kinds.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

#[cfg(test)]
mod tests;
#[cfg(test)]
mod upstream;
