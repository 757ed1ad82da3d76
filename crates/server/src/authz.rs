//! Authorization: whether a user may do something.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;
use k1s_object::{
    Status,
    gvk::GroupResource,
    selector::{FieldRequirement, FieldSelector, LabelRequirement, LabelSelector},
};
use k1s_store::Revision;
use serde_json::{Value, json};

use crate::{authorization::AuthorizerOptions, identity::User, request::Verb};

/// An action to be authorized.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: Verb<'a>,
    pub(crate) target: Target<'a>,
    /// The version of the API, if it is known.
    pub(crate) version: &'a str,
    pub(crate) selection: Selection<'a>,
}

/// The objects that a list, a watch or the deletion of a collection selects.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Selection<'a> {
    #[default]
    All,
    /// By selectors as they were sent. One that cannot be parsed selects everything.
    Sent { fields: &'a str, labels: &'a str },
    /// By requirements.
    Required { fields: &'a [FieldRequirement], labels: &'a [LabelRequirement] },
}

impl Selection<'_> {
    /// What the fields must be.
    pub(crate) fn field_requirements(&self) -> Vec<FieldRequirement> {
        match self {
            Selection::All => Vec::new(),
            Selection::Sent { fields, .. } => {
                FieldSelector::parse(fields).unwrap_or_default().requirements().to_vec()
            }
            Selection::Required { fields, .. } => fields.to_vec(),
        }
    }

    /// What the labels must be.
    pub(crate) fn label_requirements(&self) -> Vec<LabelRequirement> {
        match self {
            Selection::All => Vec::new(),
            Selection::Sent { labels, .. } => {
                LabelSelector::parse(labels).unwrap_or_default().requirements().to_vec()
            }
            Selection::Required { labels, .. } => labels.to_vec(),
        }
    }
}

impl<'a> Attributes<'a> {
    /// An action that selects nothing, in no particular version.
    pub(crate) fn new(verb: Verb<'a>, target: Target<'a>) -> Attributes<'a> {
        Attributes { verb, target, version: "", selection: Selection::All }
    }

    /// The namespace of the action, empty for the cluster.
    pub(crate) fn namespace(&self) -> &'a str {
        match self.target {
            Target::Resource { namespace, .. } => namespace,
            Target::Path(_) => "",
        }
    }
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
#[derive(Debug, Clone, Default)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    /// Whether nobody else may allow it.
    pub(crate) denied: bool,
    /// An explanation, possibly empty.
    pub(crate) reason: Arc<str>,
    /// Why nothing could be decided.
    pub(crate) failure: Option<Status>,
    /// The store's revision, if it was read for the decision.
    pub(crate) newest: Option<Revision>,
}

impl Decision {
    /// A decision that needs no explanation.
    pub(crate) fn plain(allowed: bool) -> Decision {
        Decision { allowed, ..Decision::default() }
    }

    /// Why nothing could be decided, for a review; empty if it could.
    pub(crate) fn problem(&self) -> String {
        let Some(failure) = &self.failure else { return String::new() };
        let cause = failure.details.as_ref().and_then(|details| details.causes.first());
        cause.map_or(&failure.message, |cause| &cause.message).clone()
    }

    /// A decision with an explanation.
    pub(crate) fn because(allowed: bool, reason: impl Into<Arc<str>>) -> Decision {
        Decision { allowed, reason: reason.into(), ..Decision::default() }
    }
}

/// The permissions of a user in a namespace, as a `SelfSubjectRulesReview` reports them.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Rules {
    pub(crate) resources: Vec<Value>,
    pub(crate) paths: Vec<Value>,
    /// What is wrong with rules that were left out, if anything is.
    pub(crate) error: String,
    /// Whether the user may have permissions beyond these.
    pub(crate) incomplete: bool,
}

impl Rules {
    /// Everything.
    pub(crate) fn everything() -> Rules {
        Rules {
            resources: vec![json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})],
            paths: vec![json!({"verbs": ["*"], "nonResourceURLs": ["*"]})],
            ..Rules::default()
        }
    }
}

/// Decides whether users may perform actions. `T` is the tenant, which holds the rules; it may not exist yet. It is a type
/// parameter because a tenant in turn has an authorizer.
pub(crate) trait Authorizer<T>: fmt::Debug + Send + Sync {
    /// Whether a user may do this, if that can be said without waiting. `false` decides nothing.
    fn allows_now(&self, _tenant: Option<&T>, user: &User, _wanted: &Attributes<'_>) -> bool {
        user.is_admin()
    }

    /// The same with the reason. `None` decides nothing.
    fn decide_now(&self, _tenant: Option<&T>, user: &User, _wanted: &Attributes<'_>) -> Option<Decision> {
        user.is_admin().then(|| Decision::plain(true))
    }

    /// Whether a user may do this, and why.
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

    /// Decides by other authorizers from the next request on.
    ///
    /// # Errors
    /// If they cannot be used.
    fn replace(&self, _authorizers: &[AuthorizerOptions]) -> Result<(), String> {
        Ok(())
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
    if authorizer.allows_now(tenant, user, wanted) {
        return Ok(());
    }
    settle(authorizer.authorize(tenant, user, wanted).await, user, wanted)
}

/// The same for a decision that was made.
pub(crate) fn settle(decision: Decision, user: &User, wanted: &Attributes<'_>) -> Result<(), Status> {
    match decision.failure {
        Some(failure) => Err(failure),
        None if decision.allowed => Ok(()),
        None => Err(forbidden(user, wanted, &decision.reason)),
    }
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

/// The permissions that Kubernetes' initial roles give: everything for administrators, discovery and self reviews for
/// authenticated users, health and version for everyone. They decide where there are no roles.
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
    pub(crate) fn allows(user: &User, wanted: &Attributes<'_>) -> bool {
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
                let open = matches!(path, "/healthz" | "/livez" | "/readyz" | "/version" | "/version/");
                let discovery = ["/api", "/apis", "/openapi"].iter().any(|root| within(path, root));
                let issuer = ["/.well-known/openid-configuration", "/openid/v1/jwks"];
                let issuer = issuer.contains(&path.strip_suffix('/').unwrap_or(path));
                let (discovery, issuer) =
                    (known && discovery, user.is_in("system:serviceaccounts") && issuer);
                wanted.verb == Verb::Get && (open || discovery || issuer)
            }
        }
    }

    fn rules_of(user: &User) -> Rules {
        let mut rules = if user.is_admin() { Rules::everything() } else { Rules::default() };
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
        let decision = Decision::plain(Defaults::allows(user, wanted));
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
        Attributes::new(verb, Target::Path(path))
    }

    fn resource<'a>(verb: Verb<'a>, group: &'a str, resource: &'a str) -> Attributes<'a> {
        let target = Target::Resource { group, resource, subresource: "", namespace: "", name: "" };
        Attributes::new(verb, target)
    }

    #[test]
    fn authenticated_users_may_discover_and_review_themselves() {
        let alice = User::new("alice", &[]);
        let robot = User::new("system:serviceaccount:a:b", &["system:serviceaccounts"]);
        let cases = [
            (path(Verb::Get, "/healthz"), [true, true, true]),
            (path(Verb::Get, "/healthz/ping"), [false, false, false]),
            (path(Verb::Get, "/version/"), [true, true, true]),
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
        let wanted = Attributes::new(Verb::Get, target);
        assert_eq!(
            forbidden(&User::new("alice", &[]), &wanted, "not today").message,
            "deployments.apps \"d\" is forbidden: User \"alice\" cannot get resource \"deployments/scale\" in API group \"apps\" in the namespace \"web\": not today"
        );
    }
}
