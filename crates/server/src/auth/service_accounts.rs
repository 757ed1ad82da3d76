//! Tokens of service accounts: their claims, and when they are valid.
//!
//! One key signs the tokens of all tenants. The issuer in a token names the tenant, and no other tenant accepts it.

use std::sync::Arc;

use jiff::Timestamp;
use k1s_env::Env;
use k1s_object::{Status, gvk::GroupVersionResource};
use serde_json::{Value, json};

use super::{Refusal, intersection};
use crate::{
    identity::{Claims, ObjectRef, Private, User, Verdict},
    objectmeta::meta_text,
    tenant::{Shared, Tenant},
};

/// Maximum clock skew, in seconds.
const MAX_CLOCK_SKEW: i64 = 60;

/// The object that a token is bound to. The token becomes invalid when the object is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bound {
    /// A pod, and its node if it is scheduled.
    Pod(ObjectRef, Option<ObjectRef>),
    Secret(ObjectRef),
    Node(ObjectRef),
}

/// A token to be issued.
#[derive(Debug)]
pub(crate) struct Grant<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) account: ObjectRef,
    pub(crate) audiences: Vec<String>,
    pub(crate) bound: Option<Bound>,
    /// How long it is valid.
    pub(crate) seconds: i64,
    /// Seconds after which the client should have refreshed it.
    pub(crate) warn_after: Option<i64>,
}

/// The issuer of a tenant's tokens.
fn issuer(shared: &Shared, tenant: &str) -> String {
    format!("{}/clusters/{tenant}", shared.options.service_account_issuer)
}

/// The audiences that this server accepts.
pub(crate) fn audiences(shared: &Shared) -> Vec<String> {
    vec![shared.options.service_account_issuer.clone()]
}

fn seconds(env: &Env) -> i64 {
    crate::time::now(env).as_second()
}

/// An object of the core group, if it exists.
pub(crate) async fn find(
    tenant: &Tenant,
    plural: &str,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Status> {
    let resource = tenant.shared.catalog.require(GroupVersionResource::new("", "v1", plural))?;
    if name.is_empty() {
        return Ok(None);
    }
    let stored = tenant.get(&tenant.key(&resource, namespace, name)).await?;
    stored.map(|stored| resource.read(&stored).map_err(|why| resource.unreadable(name, &why))).transpose()
}

/// Issues a token.
pub(crate) async fn issue(tenant: &Tenant, grant: Grant<'_>) -> Result<String, Status> {
    let now = seconds(tenant.env());
    let (mut pod, mut secret, mut node) = (None, None, None);
    match grant.bound {
        None => {}
        Some(Bound::Pod(bound, on)) => (pod, node) = (Some(bound), on),
        Some(Bound::Secret(bound)) => secret = Some(bound),
        Some(Bound::Node(bound)) => node = Some(bound),
    }
    let claims = Claims {
        aud: grant.audiences,
        exp: now.saturating_add(grant.seconds),
        iat: now,
        iss: issuer(&tenant.shared, &tenant.name),
        jti: tenant.env().uuid().to_string(),
        sub: username(grant.namespace, &grant.account.name),
        kubernetes: Private {
            namespace: grant.namespace.to_owned(),
            node,
            pod,
            secret,
            serviceaccount: grant.account,
            warnafter: grant.warn_after.map(|seconds| now.saturating_add(seconds)),
        },
        nbf: now,
    };
    tenant.shared.signer.sign(&**tenant.store(), &claims).await
}

fn username(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// The groups of the service accounts of a namespace.
pub(super) fn groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".into(), format!("system:serviceaccounts:{namespace}")]
}

/// The namespace and the name in `system:serviceaccount:{namespace}:{name}`.
pub(super) fn split_username(username: &str) -> Option<(&str, &str)> {
    let (namespace, name) = username.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let right = k1s_object::names::is_dns1123_label(namespace).is_empty()
        && k1s_object::names::is_dns1123_subdomain(name).is_empty();
    right.then_some((namespace, name))
}

/// Whether this server signed a token for a tenant of this name. The other checks need the tenant.
pub(super) async fn is_issued(shared: &Shared, tenant: &str, token: &str) -> Result<bool, Status> {
    let issuer = issuer(shared, tenant);
    Ok(matches!(shared.signer.verify(&*shared.store, token, &issuer).await?, Verdict::Good(_)))
}

/// The user of a token, and the wanted audiences that it is valid for.
pub(super) async fn authenticate(
    tenant: &Arc<Tenant>,
    token: &str,
    wanted: &[String],
) -> Result<(User, Vec<String>), Refusal> {
    let issuer = issuer(&tenant.shared, &tenant.name);
    let verdict =
        tenant.shared.signer.verify(&**tenant.store(), token, &issuer).await.map_err(Refusal::Failed)?;
    let claims = match verdict {
        Verdict::Good(claims) => claims,
        Verdict::Foreign => return Err(Refusal::Unknown),
        Verdict::Forged(why) => return Err(Refusal::Wrong(why.into())),
    };
    let good = intersection(&claims.aud, wanted);
    if good.is_empty() {
        return Err(Refusal::Wrong(format!(
            "token audiences {} is invalid for the target audiences {}",
            go_list(&claims.aud),
            go_list(wanted)
        )));
    }
    in_time(&claims, seconds(tenant.env()))?;
    check_objects(tenant, &claims.kubernetes).await?;
    Ok((user(&claims), good))
}

/// A list of strings formatted as by Go's `%q`.
fn go_list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| k1s_object::field::quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

fn in_time(claims: &Claims, now: i64) -> Result<(), Refusal> {
    let why = if now.saturating_add(MAX_CLOCK_SKEW) < claims.nbf {
        "service account token is not valid yet"
    } else if now.saturating_sub(MAX_CLOCK_SKEW) > claims.exp {
        "service account token has expired"
    } else if now.saturating_add(MAX_CLOCK_SKEW) < claims.iat {
        "service account token is issued in the future"
    } else {
        return Ok(());
    };
    Err(Refusal::Wrong(why.into()))
}

/// Checks that the account and the bound object of a token still exist with the same UID.
async fn check_objects(tenant: &Tenant, claims: &Private) -> Result<(), Refusal> {
    let wrong = |why: String| Err(Refusal::Wrong(why));
    let (namespace, account) = (&*claims.namespace, &claims.serviceaccount);
    let now = seconds(tenant.env());
    let Some(found) =
        find(tenant, "serviceaccounts", namespace, &account.name).await.map_err(Refusal::Failed)?
    else {
        return wrong(Status::not_found("", "serviceaccounts", &account.name).message);
    };
    let uid = meta_text(&found, "uid");
    if uid != account.uid {
        return wrong(format!("service account UID ({uid}) does not match claim ({})", account.uid));
    }
    if is_deleted(&found, now) {
        return wrong(format!("service account {namespace}/{} has been deleted", account.name));
    }
    let bound = match (&claims.secret, &claims.pod, &claims.node) {
        (Some(secret), _, _) => ("secret", "secrets", namespace, secret),
        (_, Some(pod), _) => ("pod", "pods", namespace, pod),
        (_, _, Some(node)) => ("node", "nodes", "", node),
        (None, None, None) => return Ok(()),
    };
    let (word, plural, namespace, bound) = bound;
    let found = find(tenant, plural, namespace, &bound.name).await.map_err(Refusal::Failed)?;
    let Some(found) = found.filter(|found| meta_text(found, "uid") != bound.uid || !is_deleted(found, now))
    else {
        return wrong("service account token has been invalidated".into());
    };
    let uid = meta_text(&found, "uid");
    if uid != bound.uid {
        return wrong(format!(
            "{word} UID ({uid}) does not match service account {word} ref claim ({})",
            bound.uid
        ));
    }
    Ok(())
}

/// Whether the deletion time of an object has passed.
fn is_deleted(object: &Value, now: i64) -> bool {
    let at = meta_text(object, "deletionTimestamp");
    !at.is_empty()
        && at.parse::<Timestamp>().map_or(true, |at| at.as_second() < now.saturating_sub(MAX_CLOCK_SKEW))
}

fn user(claims: &Claims) -> User {
    let Private { namespace, serviceaccount, pod, node, .. } = &claims.kubernetes;
    let mut user = User {
        name: username(namespace, &serviceaccount.name),
        uid: serviceaccount.uid.clone(),
        groups: groups(namespace),
        extra: Vec::new(),
    };
    user.groups.push("system:authenticated".into());
    let mut extra = |key: &str, value: &str| {
        if !value.is_empty() {
            user.extra.push((format!("authentication.kubernetes.io/{key}"), vec![value.to_owned()]));
        }
    };
    extra("credential-id", &format!("JTI={}", claims.jti));
    if let Some(node) = node {
        extra("node-name", &node.name);
        extra("node-uid", &node.uid);
    }
    if let Some(pod) = pod {
        extra("pod-name", &pod.name);
        extra("pod-uid", &pod.uid);
    }
    user
}

/// The document at `/.well-known/openid-configuration`, for clients that verify tokens themselves.
pub(crate) fn configuration(tenant: &Tenant) -> Value {
    let issuer = issuer(&tenant.shared, &tenant.name);
    json!({
        "issuer": issuer,
        "jwks_uri": format!("{issuer}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(nbf: i64, exp: i64) -> Claims {
        let kubernetes = Private {
            namespace: "ns".into(),
            node: None,
            pod: Some(ObjectRef { name: "p".into(), uid: "u2".into() }),
            secret: None,
            serviceaccount: ObjectRef { name: "robot".into(), uid: "u1".into() },
            warnafter: None,
        };
        let (iss, sub) = ("i".into(), "s".into());
        Claims { aud: vec!["a".into()], exp, iat: nbf, iss, jti: "j".into(), kubernetes, nbf, sub }
    }

    #[test]
    fn a_token_is_valid_between_its_issue_and_expiry_with_a_minute_of_clock_skew() {
        let valid = |now: i64| in_time(&claims(1000, 2000), now).is_ok();
        assert_eq!([939, 940, 1500, 2060, 2061].map(valid), [false, true, true, true, false]);
    }

    #[test]
    fn the_user_of_a_token_is_its_account() {
        let user = user(&claims(0, 0));
        assert_eq!((&*user.name, &*user.uid), ("system:serviceaccount:ns:robot", "u1"));
        assert_eq!(
            user.groups,
            ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
        );
        let keys: Vec<&str> = user.extra.iter().map(|(key, _)| key.rsplit('/').next().unwrap()).collect();
        assert_eq!(keys, ["credential-id", "pod-name", "pod-uid"]);
    }

    #[test]
    fn usernames_of_service_accounts_are_parsed() {
        assert_eq!(split_username("system:serviceaccount:ns:robot.a"), Some(("ns", "robot.a")));
        for other in
            ["bob", "system:serviceaccount:ns", "system:serviceaccount:ns:a:b", "system:serviceaccount::a"]
        {
            assert_eq!(split_username(other), None, "{other}");
        }
    }
}
