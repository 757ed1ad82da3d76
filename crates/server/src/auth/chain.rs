//! The chain of authorizers: each allows, denies, or leaves the decision to the next.

use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;

#[cfg(feature = "tls")]
use super::webhook::Webhook;
use super::{node, rbac};
use crate::{
    authorization::{AuthorizationMode, AuthorizerOptions},
    authz::{Attributes, Authorizer, Decision, Defaults, Rules},
    errors::aggregate,
    identity::{User, node_of},
    rbac::Index,
    tenant::Tenant,
};

/// An authorizer of the chain.
#[derive(Debug)]
enum Link {
    Rbac,
    Node,
    AlwaysAllow,
    AlwaysDeny,
    #[cfg(feature = "tls")]
    Webhook(Box<Webhook>),
}

#[derive(Debug)]
struct Named {
    name: String,
    link: Link,
}

/// All authorizers of a server, in their order. They can be replaced while it runs.
#[derive(Debug)]
pub(crate) struct Chain {
    links: ArcSwap<Vec<Named>>,
}

impl Chain {
    /// Makes the authorizers.
    ///
    /// # Errors
    /// What is wrong with a webhook's kubeconfig.
    pub(crate) fn new(options: &[AuthorizerOptions]) -> Result<Chain, String> {
        Ok(Chain { links: ArcSwap::from_pointee(links(options)?) })
    }

    /// Says that something is allowed, if that can be said without waiting: `by_roles`, or `plain` without a reason.
    fn allowed_now<T>(
        &self,
        tenant: Option<&Arc<Tenant>>,
        user: &User,
        plain: impl Fn() -> T,
        by_roles: impl Fn(&Index) -> Option<T>,
    ) -> Option<T> {
        if user.is_admin() {
            return Some(plain());
        }
        for Named { link, .. } in &**self.links.load() {
            match link {
                Link::Rbac => {
                    let granted = rbac::read_now(tenant?, &by_roles)?;
                    if granted.is_some() {
                        return granted;
                    }
                }
                Link::Node if node_of(user).is_some() => return None,
                Link::AlwaysAllow if user.is_in("system:authenticated") => return Some(plain()),
                Link::Node | Link::AlwaysAllow | Link::AlwaysDeny => {}
                #[cfg(feature = "tls")]
                Link::Webhook(_) => return None,
            }
        }
        None
    }

    async fn decide(&self, tenant: Option<&Arc<Tenant>>, user: &User, wanted: &Attributes<'_>) -> Decision {
        let links = self.links.load_full();
        let (mut reasons, mut failures) = (Vec::new(), Vec::new());
        for Named { name, link } in &*links {
            let decision = match link {
                Link::Rbac => rbac::authorize(tenant, user, wanted).await,
                Link::Node => node::authorize(tenant, user, wanted).await,
                Link::AlwaysAllow => {
                    Decision::plain(user.is_in("system:authenticated") || Defaults::allows(user, wanted))
                }
                Link::AlwaysDeny => Decision::because(false, "Everything is forbidden."),
                #[cfg(feature = "tls")]
                Link::Webhook(webhook) => ask(webhook, tenant, user, wanted).await,
            };
            if decision.allowed || decision.denied {
                return decision;
            }
            if !decision.reason.is_empty() {
                reasons.push(format!("{name}: {}", decision.reason));
            }
            failures.extend(decision.failure);
        }
        let failure = match failures.len() {
            0 | 1 => failures.pop(),
            _ => {
                let texts: Vec<String> = failures.into_iter().map(|failure| failure.message).collect();
                Some(k1s_object::Status::internal(aggregate(&texts)))
            }
        };
        Decision { reason: reasons.join("\n").into(), failure, ..Decision::default() }
    }
}

#[cfg(feature = "tls")]
async fn ask(
    webhook: &Webhook,
    tenant: Option<&Arc<Tenant>>,
    user: &User,
    wanted: &Attributes<'_>,
) -> Decision {
    // A tenant that does not exist has nothing that anybody could be allowed.
    let Some(tenant) = tenant else { return Decision::plain(Defaults::allows(user, wanted)) };
    let name = Some(&*tenant.name).filter(|name| *name != tenant.options().default_tenant);
    webhook.authorize(tenant.env(), name, user, wanted).await
}

fn links(options: &[AuthorizerOptions]) -> Result<Vec<Named>, String> {
    let link = |options: &AuthorizerOptions| {
        let link = match options {
            AuthorizerOptions::Mode(AuthorizationMode::Rbac) => Link::Rbac,
            AuthorizerOptions::Mode(AuthorizationMode::Node) => Link::Node,
            AuthorizerOptions::Mode(AuthorizationMode::AlwaysAllow) => Link::AlwaysAllow,
            AuthorizerOptions::Mode(AuthorizationMode::AlwaysDeny) => Link::AlwaysDeny,
            #[cfg(feature = "tls")]
            AuthorizerOptions::Webhook(webhook) => Link::Webhook(Box::new(Webhook::new(webhook)?)),
            #[cfg(not(feature = "tls"))]
            AuthorizerOptions::Webhook(_) => {
                return Err("this server is built without TLS, and cannot ask authorization webhooks".into());
            }
        };
        Ok(Named { name: options.name(), link })
    };
    options.iter().map(link).collect()
}

impl Authorizer<Arc<Tenant>> for Chain {
    fn allows_now(&self, tenant: Option<&Arc<Tenant>>, user: &User, wanted: &Attributes<'_>) -> bool {
        let by_roles = |index: &Index| index.is_granted(user, wanted).then_some(());
        self.allowed_now(tenant, user, || (), by_roles).is_some()
    }

    fn decide_now(
        &self,
        tenant: Option<&Arc<Tenant>>,
        user: &User,
        wanted: &Attributes<'_>,
    ) -> Option<Decision> {
        let by_roles =
            |index: &Index| index.grant(user, wanted).map(|reason| Decision::because(true, reason));
        self.allowed_now(tenant, user, || Decision::plain(true), by_roles)
    }

    fn could_allow(&self, user: &User, wanted: &Attributes<'_>) -> bool {
        let allows = |named: &Named| match &named.link {
            Link::Rbac => rbac::could_allow(user, wanted),
            Link::Node => node_of(user).is_some(),
            Link::AlwaysAllow => user.is_in("system:authenticated") || Defaults::allows(user, wanted),
            Link::AlwaysDeny => false,
            #[cfg(feature = "tls")]
            Link::Webhook(_) => true,
        };
        user.is_admin() || self.links.load().iter().any(allows)
    }

    fn replace(&self, options: &[AuthorizerOptions]) -> Result<(), String> {
        self.links.store(Arc::new(links(options)?));
        Ok(())
    }

    fn authorize<'a>(
        &'a self,
        tenant: Option<&'a Arc<Tenant>>,
        user: &'a User,
        wanted: &'a Attributes<'a>,
    ) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            match user.is_admin() {
                true => Decision::plain(true),
                false => self.decide(tenant, user, wanted).await,
            }
        })
    }

    fn rules<'a>(
        &'a self,
        tenant: &'a Arc<Tenant>,
        user: &'a User,
        namespace: &'a str,
    ) -> BoxFuture<'a, Rules> {
        Box::pin(async move {
            let links = self.links.load_full();
            let (mut all, mut errors) = (Rules::default(), Vec::new());
            for Named { link, .. } in &*links {
                let rules = match link {
                    Link::Rbac => rbac::rules(tenant, user, namespace).await,
                    Link::Node => node::rules(user),
                    Link::AlwaysAllow if user.is_in("system:authenticated") => Rules::everything(),
                    Link::AlwaysAllow | Link::AlwaysDeny => Rules::default(),
                    #[cfg(feature = "tls")]
                    Link::Webhook(_) => Rules {
                        error: "webhook authorizer does not support user rule resolution".into(),
                        incomplete: true,
                        ..Rules::default()
                    },
                };
                all.resources.extend(rules.resources);
                all.paths.extend(rules.paths);
                all.incomplete |= rules.incomplete;
                errors.extend(Some(rules.error).filter(|error| !error.is_empty()));
            }
            if !errors.is_empty() {
                all.error = aggregate(&errors);
            }
            all
        })
    }
}
