//! The `Impersonate-*` headers: requests on behalf of another user.
//!
//! There are several impersonation modes. The constrained ones need two permissions, one to impersonate that kind of user
//! and one for this action while impersonating; the legacy mode needs only the permission to impersonate the user.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use http::HeaderMap;
use k1s_object::{
    Status,
    field::{Check, quote},
    names,
};
use serde_json::json;

use super::service_accounts::{groups, split_username};
use crate::{
    authz::{Attributes, Authorizer, Target, check, forbidden},
    errors::aggregate,
    identity::User,
    request::{Verb, unescape},
    tenant::Tenant,
};

const EXTRA: &str = "impersonate-extra-";

/// The API group of the resources that constrained impersonation is authorized on.
const AUTHENTICATION: &str = "authentication.k8s.io";

/// The user to impersonate, if the headers name one.
fn wanted(headers: &HeaderMap) -> Result<Option<User>, Status> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let one = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            // A key that is not encoded correctly is taken as it is.
            let key = unescape(key).map_or_else(|_| key.to_owned(), Cow::into_owned);
            extra.entry(key).or_default().push(text(value));
        }
    }
    let user = User {
        name: one("impersonate-user"),
        uid: one("impersonate-uid"),
        groups: headers.get_all("impersonate-group").iter().map(text).collect(),
        extra: extra.into_iter().collect(),
    };
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user == User::default() {
        return Ok(None);
    }
    Err(Status::bad_request(format!("requested {} without impersonating a user name", go_user(&user))))
}

/// Whether a request has impersonation headers.
pub(crate) fn impersonates(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("impersonate-"))
}

/// Whether there can be a tenant in which this sender may perform a request.
pub(crate) fn could_allow(
    authorizer: &dyn Authorizer<Arc<Tenant>>,
    sender: &User,
    headers: &HeaderMap,
    request: &Attributes<'_>,
) -> bool {
    if !matches!(wanted(headers), Ok(None)) {
        let target =
            Target::Resource { group: "", resource: "users", subresource: "", namespace: "", name: "" };
        return authorizer.could_allow(sender, &Attributes::new(Verb::Impersonate, target));
    }
    authorizer.could_allow(sender, request)
}

/// A user formatted as by Go's `%#v`.
fn go_user(user: &User) -> String {
    let list =
        |texts: &[String]| -> String { texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(", ") };
    let groups = match user.groups.as_slice() {
        [] => "[]string(nil)".to_owned(),
        groups => format!("[]string{{{}}}", list(groups)),
    };
    let extra = match user.extra.as_slice() {
        [] => "map[string][]string(nil)".to_owned(),
        extra => {
            let entries: Vec<String> = extra
                .iter()
                .map(|(key, values)| format!("{}:[]string{{{}}}", quote(key), list(values)))
                .collect();
            format!("map[string][]string{{{}}}", entries.join(", "))
        }
    };
    let (name, uid) = (quote(&user.name), quote(&user.uid));
    format!("&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{groups}, Extra:{extra}}}")
}

/// An impersonation mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A service account impersonates the node that its pod runs on.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    /// Impersonation before there were constrained modes.
    Legacy,
}

const MODES: [Mode; 5] =
    [Mode::AssociatedNode, Mode::ArbitraryNode, Mode::ServiceAccount, Mode::UserInfo, Mode::Legacy];

fn node_name(username: &str) -> Option<&str> {
    username
        .strip_prefix("system:node:")
        .filter(|name| k1s_object::names::is_dns1123_subdomain(name).is_empty())
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::AssociatedNode => "associated-node",
            Mode::ArbitraryNode => "arbitrary-node",
            Mode::ServiceAccount => "serviceaccount",
            Mode::UserInfo => "user-info",
            Mode::Legacy => "",
        }
    }

    /// The permission that this mode needs; empty for the legacy one.
    pub(crate) fn constraint(self) -> String {
        match self {
            Mode::Legacy => String::new(),
            mode => format!("impersonate:{}", mode.name()),
        }
    }

    /// Whether that user can be impersonated in this mode at all.
    fn applies(self, sender: &User, wanted: &User) -> bool {
        let only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_name(&wanted.name);
        let account = split_username(&wanted.name);
        match self {
            Mode::AssociatedNode => {
                let key = "authentication.kubernetes.io/node-name";
                let on = sender.extra.iter().find(|(name, _)| name == key).map(|(_, nodes)| nodes.as_slice());
                let same = matches!((on, node), (Some([on]), Some(node)) if on == node);
                only_name && same && split_username(&sender.name).is_some()
            }
            Mode::ArbitraryNode => only_name && node.is_some(),
            Mode::ServiceAccount => only_name && account.is_some(),
            Mode::UserInfo => node.is_none() && account.is_none(),
            Mode::Legacy => true,
        }
    }
}

/// From how many groups or extra values on a constrained mode first asks for all of them at once.
const MANY: usize = 4;

/// Why constrained modes do not accept extra attributes, if they do not.
fn wrong_extra(extra: &[(String, Vec<String>)]) -> Option<String> {
    extra.iter().find_map(|(key, values)| {
        if key.is_empty() {
            return Some("impersonating the empty string key in extra is not allowed".into());
        }
        let path = json!({"extra": {"key": key}});
        let check = Check::new();
        names::is_domain_prefixed_path(check.root(&path).get("extra").get("key"));
        let errors: Vec<String> = check.take().iter().map(ToString::to_string).collect();
        if !errors.is_empty() {
            return Some(format!(
                "impersonating an invalid key in extra is not allowed: {}",
                aggregate(&errors)
            ));
        }
        if key.to_lowercase() != *key {
            return Some(format!(
                "impersonating a non-lowercase key in extra is not allowed: {}",
                quote(key)
            ));
        }
        let is_empty = values.iter().any(String::is_empty);
        is_empty.then(|| "impersonating the empty string value in extra is not allowed".into())
    })
}

/// Checks the permissions of a sender.
struct Impersonator<'a> {
    authorizer: &'a dyn Authorizer<Arc<Tenant>>,
    tenant: Option<&'a Arc<Tenant>>,
    sender: &'a User,
}

impl Impersonator<'_> {
    async fn may(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        check(self.authorizer, self.tenant, self.sender, attributes).await
    }

    /// The impersonated user, if the sender may impersonate in this mode.
    async fn impersonate_in(
        &self,
        mode: Mode,
        wanted: &User,
        request: &Attributes<'_>,
    ) -> Result<User, Status> {
        let constrained = mode != Mode::Legacy;
        // For an associated node the check leaves out what differs between pods of the same account.
        let keys = self.sender.extra.iter().map(|(key, _)| key.clone()).collect();
        let plain = User {
            extra: vec![("authentication.kubernetes.io/associated-node-keys".into(), keys)],
            ..self.sender.clone()
        };
        let sender = if mode == Mode::AssociatedNode { &plain } else { self.sender };
        let impersonator = Impersonator { sender, ..*self };
        let constrained_verb = mode.constraint();
        let verb = if constrained {
            let on = format!("impersonate-on:{}:{}", mode.name(), request.verb);
            impersonator.may(&Attributes { verb: Verb::Other(&on), ..*request }).await?;
            Verb::Other(&constrained_verb)
        } else {
            Verb::Impersonate
        };
        let group = if constrained { AUTHENTICATION } else { "" };
        let target = |group, resource, subresource, namespace, name| {
            Attributes::new(verb, Target::Resource { group, resource, subresource, namespace, name })
        };
        let mut user = wanted.clone();
        let name = match (node_name(&wanted.name).filter(|_| constrained), split_username(&wanted.name)) {
            (Some(node), _) => {
                user.groups = vec!["system:nodes".into()];
                let node = if mode == Mode::AssociatedNode { "*" } else { node };
                target(group, "nodes", "", "", node)
            }
            (_, Some((namespace, name))) => {
                if wanted.groups.is_empty() {
                    user.groups = groups(namespace);
                }
                target(group, "serviceaccounts", "", namespace, name)
            }
            _ => target(group, "users", "", "", &wanted.name),
        };
        impersonator.may(&name).await?;
        if !wanted.uid.is_empty() {
            impersonator.may(&target(AUTHENTICATION, "uids", "", "", &wanted.uid)).await?;
        }
        for (bad, why) in [
            ("", "impersonating the empty string group is not allowed"),
            ("system:masters", "impersonating the system:masters group is not allowed"),
        ] {
            if constrained && wanted.is_in(bad) {
                return Err(forbidden(sender, &target(group, "groups", "", "", bad), why));
            }
        }
        let many = constrained && wanted.groups.len() >= MANY;
        if !many || impersonator.may(&target(group, "groups", "", "", "*")).await.is_err() {
            for name in &wanted.groups {
                impersonator.may(&target(group, "groups", "", "", name)).await?;
            }
        }
        let extra = |key, value| target(AUTHENTICATION, "userextras", key, "", value);
        if constrained && let Some(why) = wrong_extra(&wanted.extra) {
            return Err(forbidden(sender, &extra("", ""), &why));
        }
        let values = wanted.extra.iter().map(|(_, values)| values.len()).sum::<usize>();
        let many = constrained && (wanted.extra.len() >= MANY || values >= MANY);
        if !many || impersonator.may(&extra("*", "*")).await.is_err() {
            for (key, values) in &wanted.extra {
                for value in values {
                    impersonator.may(&extra(key, value)).await?;
                }
            }
        }
        let group = match &*user.name {
            "system:anonymous" => "system:unauthenticated",
            _ if user.is_in("system:unauthenticated") => return Ok(user),
            _ => "system:authenticated",
        };
        if !user.is_in(group) {
            user.groups.push(group.into());
        }
        Ok(user)
    }
}

/// Maximum number of users whose mode of impersonation is remembered.
const MAX_REMEMBERED: usize = 1000;

fn remember(tenant: &Tenant, user: &str, mode: usize) {
    let mut known = tenant.impersonations.lock();
    if known.len() >= MAX_REMEMBERED {
        known.clear();
    }
    known.insert(user.to_owned(), mode);
}

/// The effective user of a request: the impersonated one, with the mode that allows it, or the sender if there are no
/// `Impersonate-*` headers.
pub(crate) async fn impersonate(
    authorizer: &dyn Authorizer<Arc<Tenant>>,
    tenant: Option<&Arc<Tenant>>,
    sender: User,
    headers: &HeaderMap,
    request: &Attributes<'_>,
) -> Result<(User, Option<Mode>), Status> {
    let Some(wanted) = wanted(headers)? else { return Ok((sender, None)) };
    let impersonator = Impersonator { authorizer, tenant, sender: &sender };
    // The mode that worked last time comes first, and its error is the one that is shown.
    let last = tenant.and_then(|tenant| tenant.impersonations.lock().get(&sender.name).copied());
    let others = (0..MODES.len()).filter(|mode| Some(*mode) != last);
    let mut refused = None;
    for place in last.into_iter().chain(others) {
        let Some(mode) = MODES.get(place).filter(|mode| mode.applies(&sender, &wanted)) else { continue };
        match impersonator.impersonate_in(*mode, &wanted, request).await {
            Ok(user) => {
                if let Some(tenant) = tenant.filter(|_| Some(place) != last) {
                    remember(tenant, &sender.name, place);
                }
                return Ok((user, Some(*mode)));
            }
            Err(status) => {
                refused.get_or_insert(status);
            }
        }
    }
    Err(refused.unwrap_or_else(|| Status::internal("all impersonation modes failed")))
}

#[cfg(test)]
mod constrained;
#[cfg(test)]
mod upstream;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::Defaults;

    async fn impersonate_as(sender: User, headers: &[(&'static str, &'static str)]) -> Result<User, Status> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, http::HeaderValue::from_static(value));
        }
        let request = Attributes::new(Verb::Get, Target::Path("/version"));
        impersonate(&Defaults, None, sender, &map, &request).await.map(|(user, _)| user)
    }

    #[tokio::test]
    async fn an_administrator_may_impersonate_any_user() {
        let user = impersonate_as(
            User::admin(),
            &[
                ("Impersonate-User", "bob"),
                ("Impersonate-Group", "qa"),
                ("Impersonate-Group", "system:masters"),
                ("Impersonate-Uid", "u"),
                ("Impersonate-Extra-Scopes%2fa", "view"),
            ],
        );
        let user = user.await.unwrap();
        assert_eq!((&*user.name, &*user.uid), ("bob", "u"));
        assert_eq!(user.groups, ["qa", "system:masters", "system:authenticated"]);
        assert_eq!(user.extra, [("scopes/a".to_owned(), vec!["view".to_owned()])]);
    }

    #[tokio::test]
    async fn groups_are_derived_from_the_name() {
        for (name, groups) in [
            (
                "system:serviceaccount:ns:a",
                &["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"][..],
            ),
            ("system:node:n1", &["system:nodes", "system:authenticated"]),
            ("system:anonymous", &["system:unauthenticated"]),
            ("carol", &["system:authenticated"]),
        ] {
            assert_eq!(
                impersonate_as(User::admin(), &[("Impersonate-User", name)]).await.unwrap().groups,
                groups
            );
        }
    }

    #[tokio::test]
    async fn other_users_may_not_impersonate_and_groups_need_a_user_name() {
        let refused =
            impersonate_as(User::new("alice", &[]), &[("Impersonate-User", "bob")]).await.unwrap_err();
        assert_eq!(
            refused.message,
            "forbidden: User \"alice\" cannot impersonate-on:user-info:get path \"/version\""
        );
        let refused = impersonate_as(User::admin(), &[("Impersonate-Group", "qa")]).await.unwrap_err();
        assert_eq!(
            refused.message,
            "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"qa\"}, Extra:map[string][]string(nil)} without impersonating a user name"
        );
    }
}
