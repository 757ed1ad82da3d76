//! `rbac.authorization.k8s.io`.

mod cluster_role;
mod cluster_role_binding;
mod role;
mod role_binding;

pub use self::cluster_role::aggregated_rules;
use crate::rules::{NameRule, Rules};

const GROUP: &str = "rbac.authorization.k8s.io";

/// The base of the rules of this group.
const PLAIN: Rules = Rules { name: NameRule::PathSegment, create_on_update: true, ..Rules::PLAIN };

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "ClusterRole" => &cluster_role::RULES,
        "ClusterRoleBinding" => &cluster_role_binding::RULES,
        "Role" => &role::RULES,
        "RoleBinding" => &role_binding::RULES,
        _ => return None,
    })
}
