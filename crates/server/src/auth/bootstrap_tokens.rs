//! Bootstrap tokens: Secrets of type `bootstrap.kubernetes.io/token` in the namespace `kube-system` of a tenant, with which
//! machines that have nothing else yet ask for a certificate.

use std::collections::BTreeSet;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use k1s_object::{Status, time::Time};
use serde_json::Value;

use super::find;
use crate::{
    errors,
    identity::{User, same_secret},
    objectmeta::meta_text,
    tenant::{Shared, Tenant},
};

const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";
const GROUP: &str = "system:bootstrappers";

/// The parts of a token: `abcdef.0123456789abcdef`.
fn parse(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let made_of = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    (made_of(id, 6) && made_of(secret, 16)).then_some((id, secret))
}

/// Whether a tenant, which need not be loaded, may have this token: it has a Secret of that name.
pub(super) async fn may_exist(shared: &Shared, tenant: &str, token: &str) -> Result<bool, Status> {
    let Some((id, _)) = parse(token).filter(|_| shared.options.authentication.bootstrap_tokens) else {
        return Ok(false);
    };
    let key = format!("{}core/secrets/{NAMESPACE}/bootstrap-token-{id}", crate::keys::prefix(tenant));
    let found = shared.store.get(key.as_bytes(), None).await.map_err(|error| errors::store(&error))?;
    Ok(found.entry.is_some())
}

/// The user of a token, if it is a valid bootstrap token of the tenant.
pub(super) async fn authenticate(tenant: &Tenant, token: &str) -> Result<Option<User>, Status> {
    if !tenant.options().authentication.bootstrap_tokens {
        return Ok(None);
    }
    let Some((id, secret)) = parse(token) else { return Ok(None) };
    let name = format!("bootstrap-token-{id}");
    let Some(found) = find(tenant, "secrets", NAMESPACE, &name).await? else { return Ok(None) };
    let now = crate::time::now(tenant.env()).as_second();
    Ok(match user(&found, id, secret, now) {
        Ok(user) => Some(user),
        Err(why) => {
            tracing::debug!(tenant = %tenant.name, secret = %name, why, "a bootstrap token is not valid");
            None
        }
    })
}

fn user(secret: &Value, id: &str, wanted: &str, now: i64) -> Result<User, &'static str> {
    let data = |key: &str| -> Vec<u8> {
        let text = secret["data"][key].as_str().unwrap_or_default();
        BASE64_STANDARD.decode(text).unwrap_or_default()
    };
    if !meta_text(secret, "deletionTimestamp").is_empty() {
        return Err("is deleted and awaiting removal");
    }
    if secret["type"] != TYPE {
        return Err("has invalid type");
    }
    if !same_secret(&data("token-secret"), wanted.as_bytes()) {
        return Err("has invalid value for key token-secret");
    }
    if data("token-id") != id.as_bytes() {
        return Err("has invalid value for key token-id");
    }
    let expiration =
        String::from_utf8(data("expiration")).map_err(|_| "has an unparseable expiration time")?;
    if !expiration.is_empty() {
        let until = Time::parse(&expiration).map_err(|_| "has an unparseable expiration time")?;
        if until.unix() <= now {
            return Err("has expired");
        }
    }
    if data("usage-bootstrap-authentication") != b"true" {
        return Err("not marked usage-bootstrap-authentication=true");
    }
    let groups = groups(&data("auth-extra-groups")).ok_or("has invalid value for key auth-extra-groups")?;
    Ok(User { name: format!("system:bootstrap:{id}"), groups, ..User::default() }.authenticated())
}

/// The groups of a token, sorted; `None` if one is not allowed.
fn groups(extra: &[u8]) -> Option<Vec<String>> {
    let extra = std::str::from_utf8(extra).ok()?;
    let mut groups = BTreeSet::from([GROUP.to_owned()]);
    if !extra.is_empty() {
        for group in extra.split(',') {
            if !is_bootstrap_group(group) {
                return None;
            }
            groups.insert(group.to_owned());
        }
    }
    Some(groups.into_iter().collect())
}

/// `system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]`
fn is_bootstrap_group(group: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    group.strip_prefix("system:bootstrappers:").is_some_and(|name| {
        name.len() <= 256
            && name.bytes().all(|byte| alphanumeric(byte) || byte == b':' || byte == b'-')
            && name.bytes().last().is_some_and(alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "foobar";
    const SECRET: &str = "circumnavigation";
    /// 2026-01-01T00:00:00Z
    const NOW: i64 = 1_767_225_600;

    /// Upstream's cases (`TestTokenAuthenticator`): a Secret, a token, and the groups of its user.
    #[test]
    fn tokens_of_secrets() {
        let base = [("token-id", ID), ("token-secret", SECRET), ("usage-bootstrap-authentication", "true")];
        type Data = &'static [(&'static str, &'static str)];
        let default: &[&str] = &["system:bootstrappers", "system:authenticated"];
        let cases: [(&str, &str, Data, Option<&[&str]>); 14] = [
            ("valid token", "foobar.circumnavigation", &[], Some(default)),
            (
                "valid token with extra group",
                "foobar.circumnavigation",
                &[("auth-extra-groups", "system:bootstrappers:foo")],
                Some(&["system:bootstrappers", "system:bootstrappers:foo", "system:authenticated"]),
            ),
            ("invalid group", "foobar.circumnavigation", &[("auth-extra-groups", "foo")], None),
            ("invalid secret key", "foobar.circumnavigation", &[("token-secret", "")], None),
            ("another secret", "foobar.circumnavigatiom", &[], None),
            ("incorrect type", "foobar.circumnavigation", &[("type", "Opaque")], None),
            ("no usage", "foobar.circumnavigation", &[("usage-bootstrap-authentication", "")], None),
            (
                "usage is false",
                "foobar.circumnavigation",
                &[("usage-bootstrap-authentication", "false")],
                None,
            ),
            ("wrong id in the data", "foobar.circumnavigation", &[("token-id", "barfoo")], None),
            ("expired", "foobar.circumnavigation", &[("expiration", "2009-11-10T23:00:00Z")], None),
            (
                "not expired",
                "foobar.circumnavigation",
                &[("expiration", "2109-11-10T23:00:00Z")],
                Some(default),
            ),
            ("unparseable expiration", "foobar.circumnavigation", &[("expiration", "tomorrow")], None),
            (
                "two of the same group",
                "foobar.circumnavigation",
                &[(
                    "auth-extra-groups",
                    "system:bootstrappers:b,system:bootstrappers:a,system:bootstrappers:b",
                )],
                Some(&[
                    "system:bootstrappers",
                    "system:bootstrappers:a",
                    "system:bootstrappers:b",
                    "system:authenticated",
                ]),
            ),
            ("deleted", "foobar.circumnavigation", &[("deleted", "")], None),
        ];
        for (case, token, changes, expected) in cases {
            let mut secret = json!({"metadata": {}, "type": TYPE, "data": {}});
            for (key, value) in base.iter().chain(changes) {
                match *key {
                    "type" => secret["type"] = (*value).into(),
                    "deleted" => secret["metadata"]["deletionTimestamp"] = "2025-01-01T00:00:00Z".into(),
                    key => secret["data"][key] = BASE64_STANDARD.encode(value).into(),
                }
            }
            let (id, wanted) = parse(token).unwrap();
            let found = user(&secret, id, wanted, NOW);
            assert_eq!(
                found.as_ref().ok().map(|user| user.groups.clone()),
                expected.map(|groups| { groups.iter().map(|group| (*group).to_owned()).collect::<Vec<_>>() }),
                "{case}: {found:?}"
            );
            if let Ok(user) = found {
                assert_eq!(user.name, "system:bootstrap:foobar");
            }
        }
    }

    #[test]
    fn the_form_of_tokens() {
        assert_eq!(parse("foobar.circumnavigation"), Some(("foobar", "circumnavigation")));
        for other in [
            "",
            ".",
            "foobar",
            "foobar.short",
            "foo.circumnavigation",
            "Foobar.circumnavigation",
            "foobar.circumnavigation.",
            "foo-ar.circumnavigation",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_names_of_groups() {
        let long = format!("system:bootstrappers:{}", "a".repeat(256));
        for good in ["system:bootstrappers:foo", "system:bootstrappers:foo:bar-1", &long] {
            assert!(is_bootstrap_group(good), "{good}");
        }
        for bad in [
            "foo",
            "system:bootstrappers",
            "system:bootstrappers:",
            "system:bootstrappers:foo-",
            "system:bootstrappers:Foo",
            &format!("{long}a"),
        ] {
            assert!(!is_bootstrap_group(bad), "{bad}");
        }
    }
}
