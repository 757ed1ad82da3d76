//! Tokens of service accounts: their claims, and when they are valid.
//!
//! One key signs the tokens of all tenants. The issuer in a token names the tenant, and no other tenant accepts it. Tokens that
//! are kept in Secrets (of type `kubernetes.io/service-account-token`) name no tenant; the Secret in the tenant has to hold them.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use k1s_env::Env;
use k1s_object::{Status, gvk::GroupVersionResource};
use serde_json::{Value, json};

use super::{Refusal, intersection};
use crate::{
    identity::{AccountClaims, Claims, LegacyClaims, ObjectRef, Private, User, Verdict, same_secret},
    objectmeta::meta_text,
    tenant::{Shared, Tenant},
};

/// The issuer of tokens that are kept in Secrets.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

/// The label of a Secret whose token nobody has used for long.
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

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

/// The issuer of a tenant's tokens that a configured issuer stands for.
fn issuer_of(shared: &Shared, issuer: &str, tenant: &str) -> String {
    if tenant == shared.options.default_tenant {
        return issuer.to_owned();
    }
    format!("{issuer}/clusters/{tenant}")
}

/// The issuer of a tenant's new tokens.
fn issuer(shared: &Shared, tenant: &str) -> String {
    let issuers = &shared.options.authentication.service_accounts.issuers;
    issuer_of(shared, issuers.first().map_or("", String::as_str), tenant)
}

/// Whether tokens of this issuer are for a tenant. Those of the default tenant were once named like all others.
fn is_issuer(shared: &Shared, found: &str, tenant: &str) -> bool {
    let issuers = &shared.options.authentication.service_accounts.issuers;
    found == LEGACY_ISSUER
        || issuers.iter().any(|issuer| {
            found == issuer_of(shared, issuer, tenant)
                || found
                    .strip_prefix(issuer.as_str())
                    .and_then(|rest| rest.strip_prefix("/clusters/"))
                    .is_some_and(|name| name == tenant)
        })
}

/// The audiences that this server accepts.
pub(crate) fn audiences(shared: &Shared) -> &[String] {
    shared.options.authentication.audiences()
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

/// Issues a token. Returns it, and the id by which it is known.
pub(crate) async fn issue(tenant: &Tenant, grant: Grant<'_>) -> Result<(String, String), Status> {
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
    let token = tenant.shared.signer.sign(&**tenant.store(), &claims).await?;
    Ok((token, credential_id(&claims.jti)))
}

/// The id of a token in the extra fields of its user.
fn credential_id(jti: &str) -> String {
    format!("JTI={jti}")
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
    let is_issuer = |issuer: &str| is_issuer(shared, issuer, tenant);
    Ok(matches!(shared.signer.verify(&*shared.store, token, is_issuer).await?, Verdict::Good(_)))
}

/// The user of a token, and the wanted audiences that it is valid for.
pub(super) async fn authenticate(
    tenant: &Arc<Tenant>,
    token: &str,
    wanted: &[String],
) -> Result<(User, Vec<String>), Refusal> {
    let shared = &tenant.shared;
    let is_issuer = |issuer: &str| is_issuer(shared, issuer, &tenant.name);
    let verdict = shared.signer.verify(&**tenant.store(), token, is_issuer).await.map_err(Refusal::Failed)?;
    let claims = match verdict {
        Verdict::Good(claims) => claims,
        Verdict::Foreign => return Err(Refusal::Rejected(Vec::new())),
        Verdict::Forged(why) => return Err(wrong(why)),
    };
    // A token has the claims that its issuer gives.
    let (named, is_mixed) = match &*claims {
        AccountClaims::Bound(claims) => (&claims.aud, claims.iss == LEGACY_ISSUER),
        AccountClaims::Legacy(claims) => (&claims.aud, claims.iss != LEGACY_ISSUER),
    };
    if is_mixed {
        return Err(wrong("service account token claims could not be validated"));
    }
    // A token without audiences is for this server.
    let named = if named.is_empty() { audiences(shared) } else { named };
    let good = intersection(named, wanted);
    if good.is_empty() {
        return Err(wrong(format!(
            "token audiences {} is invalid for the target audiences {}",
            go_list(named),
            go_list(wanted)
        )));
    }
    let user = match &*claims {
        AccountClaims::Bound(claims) => {
            in_time(claims, seconds(tenant.env()))?;
            check_objects(tenant, &claims.kubernetes).await?;
            user(claims)
        }
        AccountClaims::Legacy(claims) => {
            check_secret(tenant, claims, token).await?;
            account_user(&claims.namespace, &claims.account, &claims.uid)
        }
    };
    Ok((user, good))
}

fn wrong(why: impl Into<String>) -> Refusal {
    Refusal::Rejected(vec![why.into()])
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
    Err(wrong(why))
}

/// Checks that the account and the bound object of a token still exist with the same UID.
async fn check_objects(tenant: &Tenant, claims: &Private) -> Result<(), Refusal> {
    let wrong = |why: String| Err(wrong(why));
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

/// Checks that the Secret of a token still holds it, and that its account still exists with the same UID.
async fn check_secret(tenant: &Arc<Tenant>, claims: &LegacyClaims, token: &str) -> Result<(), Refusal> {
    let LegacyClaims { sub, namespace, secret: name, account, uid, .. } = claims;
    let missing = [
        (sub, "sub claim is missing"),
        (namespace, "namespace claim is missing"),
        (name, "secretName claim is missing"),
        (account, "serviceAccountName claim is missing"),
        (uid, "serviceAccountUID claim is missing"),
    ];
    if let Some((_, why)) = missing.into_iter().find(|(claim, _)| claim.is_empty()) {
        return Err(wrong(why));
    }
    if split_username(sub) != Some((namespace.as_str(), account.as_str())) {
        return Err(wrong("sub claim is invalid"));
    }
    let secret = find(tenant, "secrets", namespace, name).await.map_err(Refusal::Failed)?;
    let Some(secret) = secret.filter(|secret| meta_text(secret, "deletionTimestamp").is_empty()) else {
        return Err(wrong("Token has been invalidated"));
    };
    let held = secret["data"]["token"].as_str().unwrap_or_default();
    let held = BASE64_STANDARD.decode(held).unwrap_or_default();
    if !same_secret(&held, token.as_bytes()) {
        return Err(wrong("Token does not match server's copy"));
    }
    let Some(found) = find(tenant, "serviceaccounts", namespace, account).await.map_err(Refusal::Failed)?
    else {
        return Err(wrong(Status::not_found("", "serviceaccounts", account).message));
    };
    if !meta_text(&found, "deletionTimestamp").is_empty() {
        return Err(wrong(format!("ServiceAccount {namespace}/{account} has been deleted")));
    }
    let found = meta_text(&found, "uid");
    if found != uid {
        return Err(wrong(format!("ServiceAccount UID ({found}) does not match claim ({uid})")));
    }
    if !secret["metadata"]["labels"][INVALID_SINCE].as_str().unwrap_or_default().is_empty() {
        return Err(wrong(format!(
            "the token in secret {namespace}/{name} for service account {namespace}/{account} has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
        )));
    }
    Ok(())
}

/// Whether the deletion time of an object has passed.
fn is_deleted(object: &Value, now: i64) -> bool {
    let at = meta_text(object, "deletionTimestamp");
    !at.is_empty()
        && at.parse::<Timestamp>().map_or(true, |at| at.as_second() < now.saturating_sub(MAX_CLOCK_SKEW))
}

fn account_user(namespace: &str, name: &str, uid: &str) -> User {
    let groups = groups(namespace);
    let user = User { name: username(namespace, name), uid: uid.to_owned(), groups, extra: Vec::new() };
    user.authenticated()
}

fn user(claims: &Claims) -> User {
    let Private { namespace, serviceaccount, pod, node, .. } = &claims.kubernetes;
    let mut user = account_user(namespace, &serviceaccount.name, &serviceaccount.uid);
    let mut extra = |key: &str, value: &str| {
        if !value.is_empty() {
            user.extra.push((format!("authentication.kubernetes.io/{key}"), vec![value.to_owned()]));
        }
    };
    if !claims.jti.is_empty() {
        extra("credential-id", &credential_id(&claims.jti));
    }
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

/// The document at `/.well-known/openid-configuration`, for clients that verify tokens themselves; `None` if the issuer is not
/// an address at which it could be found.
pub(crate) async fn configuration(tenant: &Tenant) -> Result<Option<Value>, Status> {
    let shared = &tenant.shared;
    let issuer = issuer(shared, &tenant.name);
    if !issuer.starts_with("https://") || issuer.contains(['?', '#']) {
        return Ok(None);
    }
    let given = &shared.options.authentication.service_accounts.jwks_uri;
    let keys = match given.is_empty() || tenant.name != shared.options.default_tenant {
        true => format!("{issuer}/openid/v1/jwks"),
        false => given.clone(),
    };
    Ok(Some(json!({
        "issuer": issuer,
        "jwks_uri": keys,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": shared.signer.algorithms(&**tenant.store()).await?,
    })))
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
