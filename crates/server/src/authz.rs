//! Authorization: whether a user may do something.

use std::fmt;

use futures_util::future::BoxFuture;
use k1s_object::{Status, gvk::GroupResource};
use serde_json::{Value, json};

use crate::{identity::User, request::Verb};

/// An action to be authorized.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: Verb<'a>,
    pub(crate) target: Target<'a>,
}

/// The target of an action.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a> {
    /// A resource, or one object of it if it has a name.
    Resource { group: &'a str, resource: &'a str, subresource: &'a str, namespace: &'a str, name: &'a str },
    /// A non-resource path.
    Path(&'a str),
}

/// The result of an authorization.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    /// An explanation, possibly empty.
    pub(crate) reason: String,
}

/// The permissions of a user in a namespace, as a `SelfSubjectRulesReview` reports them.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Rules {
    pub(crate) resources: Vec<Value>,
    pub(crate) paths: Vec<Value>,
    /// Whether the user may have permissions beyond these.
    pub(crate) incomplete: bool,
}

/// Decides whether users may perform actions. `T` is the tenant, which holds the rules; it may not exist yet. It is a type
/// parameter because a tenant in turn has an authorizer.
pub(crate) trait Authorizer<T>: fmt::Debug + Send + Sync {
    /// Whether a user may do this.
    fn authorize<'a>(
        &'a self,
        tenant: Option<&'a T>,
        user: &'a User,
        wanted: &'a Attributes<'a>,
    ) -> BoxFuture<'a, Decision>;

    /// Whether there can be a tenant in which a user may do this. If not, a request is rejected before its tenant is
    /// loaded.
    fn could_allow(&self, _user: &User, _wanted: &Attributes<'_>) -> bool {
        true
    }

    /// The permissions of a user in a namespace.
    fn rules<'a>(&'a self, tenant: &'a T, user: &'a User, namespace: &'a str) -> BoxFuture<'a, Rules>;
}

/// Returns 403 for an action that a user may not perform.
pub(crate) async fn check<T>(
    authorizer: &dyn Authorizer<T>,
    tenant: Option<&T>,
    user: &User,
    wanted: &Attributes<'_>,
) -> Result<(), Status> {
    let decision = authorizer.authorize(tenant, user, wanted).await;
    if decision.allowed { Ok(()) } else { Err(forbidden(user, wanted, &decision.reason)) }
}

/// The 403 for an action that a user may not perform.
pub(crate) fn forbidden(user: &User, wanted: &Attributes<'_>, reason: &str) -> Status {
    let verb = wanted.verb;
    let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    match wanted.target {
        Target::Path(path) => {
            let why = format!("User {:?} cannot {verb} path {path:?}{because}", user.name);
            Status::forbidden("", "", "", why)
        }
        Target::Resource { group, resource, subresource, namespace, name } => {
            let full = match subresource {
                "" => resource.to_owned(),
                subresource => format!("{resource}/{subresource}"),
            };
            let place = match namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {namespace:?}"),
            };
            let who = &user.name;
            let why = format!(
                "User {who:?} cannot {verb} resource {full:?} in API group {group:?} {place}{because}"
            );
            Status::forbidden(group, resource, name, why)
        }
    }
}

/// The permissions that Kubernetes bootstraps: everything for administrators, discovery and self reviews for
/// authenticated users, health and version for everyone.
#[derive(Debug)]
pub(crate) struct Defaults;

/// The reviews that every authenticated user may create.
const OWN_REVIEWS: [GroupResource<&str>; 3] = [
    GroupResource::new("authorization.k8s.io", "selfsubjectaccessreviews"),
    GroupResource::new("authorization.k8s.io", "selfsubjectrulesreviews"),
    GroupResource::new("authentication.k8s.io", "selfsubjectreviews"),
];

/// Whether `path` is `root` or below it.
fn within(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Defaults {
    fn allows(user: &User, wanted: &Attributes<'_>) -> bool {
        if user.is_admin() {
            return true;
        }
        let known = user.is_in("system:authenticated");
        match wanted.target {
            Target::Resource { group, resource, subresource, .. } => {
                let own =
                    subresource.is_empty() && OWN_REVIEWS.contains(&GroupResource::new(group, resource));
                known && own && wanted.verb == Verb::Create
            }
            Target::Path(path) => {
                let under = |roots: &[&str]| roots.iter().any(|root| within(path, root));
                let open = under(&["/healthz", "/livez", "/readyz"]) || path == "/version";
                let discovery = known && under(&["/api", "/apis", "/openapi"]);
                let issuer = user.is_in("system:serviceaccounts")
                    && under(&["/.well-known/openid-configuration", "/openid/v1/jwks"]);
                wanted.verb == Verb::Get && (open || discovery || issuer)
            }
        }
    }

    fn rules_of(user: &User) -> Rules {
        let mut rules = Rules::default();
        if user.is_admin() {
            rules.resources.push(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
            rules.paths.push(json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
        }
        if user.is_in("system:authenticated") {
            rules.resources.push(json!({"verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
                "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]}));
            rules.resources.push(json!({"verbs": ["create"], "apiGroups": ["authentication.k8s.io"],
                "resources": ["selfsubjectreviews"]}));
            let discovery = [
                "/api",
                "/api/*",
                "/apis",
                "/apis/*",
                "/healthz",
                "/livez",
                "/openapi",
                "/openapi/*",
                "/readyz",
                "/version",
            ];
            rules.paths.push(json!({"verbs": ["get"], "nonResourceURLs": discovery}));
        }
        if user.is_in("system:serviceaccounts") {
            let issuer = ["/.well-known/openid-configuration", "/openid/v1/jwks"];
            rules.paths.push(json!({"verbs": ["get"], "nonResourceURLs": issuer}));
        }
        rules
    }
}

impl<T> Authorizer<T> for Defaults {
    fn authorize<'a>(
        &'a self,
        _: Option<&'a T>,
        user: &'a User,
        wanted: &'a Attributes<'a>,
    ) -> BoxFuture<'a, Decision> {
        let decision = Decision { allowed: Defaults::allows(user, wanted), reason: String::new() };
        Box::pin(std::future::ready(decision))
    }

    fn could_allow(&self, user: &User, wanted: &Attributes<'_>) -> bool {
        Defaults::allows(user, wanted)
    }

    fn rules<'a>(&'a self, _: &'a T, user: &'a User, _: &'a str) -> BoxFuture<'a, Rules> {
        Box::pin(std::future::ready(Defaults::rules_of(user)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path<'a>(verb: Verb<'a>, path: &'a str) -> Attributes<'a> {
        Attributes { verb, target: Target::Path(path) }
    }

    fn resource<'a>(verb: Verb<'a>, group: &'a str, resource: &'a str) -> Attributes<'a> {
        let target = Target::Resource { group, resource, subresource: "", namespace: "", name: "" };
        Attributes { verb, target }
    }

    #[test]
    fn authenticated_users_may_discover_and_review_themselves() {
        let alice = User::new("alice", &[]);
        let robot = User::new("system:serviceaccount:a:b", &["system:serviceaccounts"]);
        let cases = [
            (path(Verb::Get, "/healthz"), [true, true, true]),
            (path(Verb::Head, "/healthz"), [false, false, false]),
            (path(Verb::Get, "/metrics"), [false, false, false]),
            (path(Verb::Get, "/api/v1"), [false, true, true]),
            (path(Verb::Get, "/apishelf"), [false, false, false]),
            (path(Verb::Get, "/openid/v1/jwks"), [false, false, true]),
            (resource(Verb::Create, "authentication.k8s.io", "selfsubjectreviews"), [false, true, true]),
            (resource(Verb::List, "authentication.k8s.io", "selfsubjectreviews"), [false, false, false]),
            (resource(Verb::Create, "authentication.k8s.io", "tokenreviews"), [false, false, false]),
        ];
        for (wanted, expected) in cases {
            let allowed = [&User::anonymous(), &alice, &robot].map(|user| Defaults::allows(user, &wanted));
            assert_eq!(allowed, expected, "{wanted:?}");
            assert!(Defaults::allows(&User::admin(), &wanted));
        }
    }

    #[test]
    fn a_forbidden_status_names_the_user_the_action_and_the_reason() {
        let target = Target::Resource {
            group: "apps",
            resource: "deployments",
            subresource: "scale",
            namespace: "web",
            name: "d",
        };
        let wanted = Attributes { verb: Verb::Get, target };
        assert_eq!(
            forbidden(&User::new("alice", &[]), &wanted, "not today").message,
            "deployments.apps \"d\" is forbidden: User \"alice\" cannot get resource \"deployments/scale\" in API group \"apps\" in the namespace \"web\": not today"
        );
    }
}
