//! Escalation checks: who writes roles and bindings may only grant what they have.
//!
//! Two verbs lift this: `escalate` on a role, and `bind` on the role that a binding names. Administrators are not checked.

use k1s_object::{Status, gvk::GroupKind};
use serde_json::Value;

use crate::{
    authz::{Attributes, Target},
    context::Cx,
    errors::{Error, aggregate},
    objectmeta::meta_text,
    rbac::{GROUP, RoleRef, Rule, compact, go_list, uncovered},
    request::Verb,
};

/// The policy kind of a request, if it is one that is checked.
fn is_checked(cx: &Cx) -> Option<bool> {
    let GroupKind { group, kind } = cx.resource.group_kind();
    if group != GROUP || cx.user.is_admin() {
        return None;
    }
    Some(matches!(kind, "RoleBinding" | "ClusterRoleBinding"))
}

/// Checks a new object.
///
/// # Errors
/// 403 if it grants more than the user has; 404 for a binding of a role that does not exist.
pub(crate) async fn check_create(cx: &Cx, object: &Value) -> Result<(), Error> {
    match is_checked(cx) {
        None => Ok(()),
        Some(is_binding) => check(cx, is_binding, object, None).await,
    }
}

/// Checks a changed object, as the client wants it. What only the garbage collector changes is no grant.
pub(crate) async fn check_update(cx: &Cx, new: &Value, old: &Value) -> Result<(), Error> {
    match is_checked(cx) {
        None => Ok(()),
        Some(_) if only_for_garbage_collection(new, old) => Ok(()),
        Some(is_binding) => check(cx, is_binding, new, Some(old)).await,
    }
}

/// Whether two states differ in owners, finalizers and managers alone.
pub(crate) fn only_for_garbage_collection(new: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut rest = object.clone();
        if let Some(metadata) = rest.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
                metadata.shift_remove(field);
            }
        }
        rest
    };
    rest(new) == rest(old)
}

async fn check(cx: &Cx, is_binding: bool, object: &Value, old: Option<&Value>) -> Result<(), Error> {
    let name = meta_text(object, "name");
    let wanted = if is_binding {
        let text = |field: &str| object["roleRef"][field].as_str().unwrap_or_default();
        let role = RoleRef { kind: text("kind").into(), name: text("name").into() };
        let resource = match &*role.kind {
            "Role" => "roles",
            "ClusterRole" => "clusterroles",
            other => {
                let why = format!("unsupported role reference kind: {}", k1s_object::field::quote(other));
                return Err(Status::new(500, "", why).into());
            }
        };
        if is_allowed(cx, "bind", text("apiGroup"), resource, &role.name).await? {
            return Ok(());
        }
        let found =
            |index: &crate::rbac::Index| index.rules_of(&role, &cx.namespace).map(|rules| rules.to_vec());
        match cx.tenant.read_policy(found).await? {
            Ok(rules) => rules,
            // kube-apiserver names the resource of the request.
            Err(_) => return Err(Error::not_found(GROUP, &cx.resource.plural, &role.name)),
        }
    } else {
        if is_allowed(cx, "escalate", GROUP, &cx.resource.plural, &cx.name).await? {
            return Ok(());
        }
        Rule::list(&object["rules"])
    };
    let (held, errors) = cx.tenant.read_policy(|index| index.rules(&cx.user, &cx.namespace)).await?;
    let missing = uncovered(&held, &wanted);
    if !missing.is_empty() {
        let missing: Vec<String> = compact(&missing).into_iter().collect();
        let mut why = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            k1s_object::field::quote(&cx.user.name),
            go_list(cx.user.groups.iter().map(String::as_str)),
            missing.join("\n")
        );
        if !errors.is_empty() {
            why.push_str(&format!("; resolution errors: [{}]", aggregate(&errors)));
        }
        return Err(forbidden(cx, name, why));
    }
    let has_aggregation = |role: &Value| {
        let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
        selectors.is_some_and(|selectors| !selectors.is_empty())
    };
    if (has_aggregation(object) || old.is_some_and(has_aggregation))
        && !uncovered(&held, &Rule::full_authority()).is_empty()
    {
        return Err(forbidden(cx, name, "must have cluster-admin privileges to use the aggregationRule"));
    }
    Ok(())
}

fn forbidden(cx: &Cx, name: &str, why: impl Into<String>) -> Error {
    Status::forbidden(GROUP, &cx.resource.plural, name, why.into()).into()
}

/// Whether the user has one of the verbs that lift the checks.
async fn is_allowed(cx: &Cx, verb: &str, group: &str, resource: &str, name: &str) -> Result<bool, Error> {
    let target = Target::Resource { group, resource, subresource: "", namespace: &cx.namespace, name };
    let wanted = Attributes::new(Verb::named(verb), target);
    let authorizer = &cx.tenant.shared.authorizer;
    let decision = authorizer.authorize(Some(&cx.tenant), &cx.user, &wanted).await;
    decision.failure.map_or(Ok(decision.allowed), |failure| Err(failure.into()))
}
