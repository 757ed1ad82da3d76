//! Warnings about objects that can be stored but have no effect.

use crate::{
    authorization::{AuthorizationMode, AuthorizerOptions},
    context::Cx,
};

/// Warns about objects of kinds that the server does not act upon.
pub(crate) fn warn(cx: &Cx) {
    let (group, kind) = (&*cx.resource.group, &*cx.resource.kind);
    if group == "rbac.authorization.k8s.io" && !has_rbac(cx) {
        cx.warn(format!("RBAC is not enforced by this server: the {kind} has no effect"));
    }
}

fn has_rbac(cx: &Cx) -> bool {
    let rbac = AuthorizerOptions::Mode(AuthorizationMode::Rbac);
    cx.tenant.options().authorization.authorizers.contains(&rbac)
}
