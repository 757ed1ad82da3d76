//! Role-based access control: decides by the roles and bindings of a tenant.
//!
//! A tenant that does not exist has no roles: there, and in one whose initial roles were never needed, [`Defaults`] decide.

use std::sync::Arc;

use k1s_store::Revision;

use crate::{
    authz::{Attributes, Decision, Defaults, Rules},
    errors::aggregate,
    identity::User,
    rbac::Index,
    request::Verb,
    tenant::Tenant,
};

/// Whether nobody has needed the policy of a tenant so far, in this process or an earlier one.
fn is_unused(tenant: &Tenant, index: &Index) -> bool {
    index.is_empty() && !tenant.policies.is_bootstrapped()
}

fn decide(tenant: &Tenant, index: &Index, user: &User, wanted: &Attributes<'_>) -> Decision {
    if let Some(reason) = index.grant(user, wanted) {
        return Decision::because(true, reason);
    }
    if is_unused(tenant, index) {
        return Decision::plain(Defaults::allows(user, wanted));
    }
    let errors = index.errors(user, wanted.namespace());
    let reason = if errors.is_empty() { String::new() } else { format!("RBAC: {}", aggregate(&errors)) };
    Decision::because(false, reason)
}

/// Reads the roles and bindings, if that needs no waiting.
pub(super) fn read_now<T>(tenant: &Tenant, read: impl FnOnce(&Index) -> T) -> Option<T> {
    // Over a shared store, the answer has to wait for what other servers have written.
    if tenant.store().is_shared() {
        return None;
    }
    tenant.policies.try_read(Revision::default(), read)
}

/// Whether there can be roles that allow something.
pub(super) fn could_allow(user: &User, wanted: &Attributes<'_>) -> bool {
    // Anybody may have been granted anything, but nobody lets strangers impersonate.
    user.is_in("system:authenticated") || wanted.verb != Verb::Impersonate
}

/// What the roles of a tenant say.
pub(super) async fn authorize(
    tenant: Option<&Arc<Tenant>>,
    user: &User,
    wanted: &Attributes<'_>,
) -> Decision {
    let Some(tenant) = tenant else {
        return Decision::plain(Defaults::allows(user, wanted));
    };
    let decided = async {
        let newest = tenant.newest_policy().await?;
        let decide = |index: &Index| decide(tenant, index, user, wanted);
        let decision = tenant.read_policy_at(newest.policy, decide).await?;
        Ok(Decision { newest: newest.store, ..decision })
    };
    decided.await.unwrap_or_else(|error| Decision { failure: Some(error), ..Decision::default() })
}

/// The rules that apply to a user in a namespace.
pub(super) async fn rules(tenant: &Tenant, user: &User, namespace: &str) -> Rules {
    let (rules, errors) = match tenant.read_policy(|index| index.rules(user, namespace)).await {
        Ok(found) => found,
        Err(error) => (Vec::new(), vec![error.message]),
    };
    let error = if errors.is_empty() { String::new() } else { aggregate(&errors) };
    Rules {
        resources: rules.iter().filter_map(|rule| rule.as_resource_rule()).collect(),
        paths: rules.iter().filter_map(|rule| rule.as_path_rule()).collect(),
        error,
        incomplete: false,
    }
}
