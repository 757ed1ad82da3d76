//! The cases of Kubernetes' own test of impersonation, `TestImpersonationFilter`, under their names.

#![allow(clippy::type_complexity, reason = "tables")]

use futures_util::future::BoxFuture;

use super::*;
use crate::authz::{Decision, Rules};

/// What the authorizer of these cases allows: to users, and to groups at a place in their list.
#[derive(Debug)]
struct Rights;

impl Rights {
    fn allows(user: &User, wanted: &Attributes<'_>) -> bool {
        let group = |place: usize| user.groups.get(place).map_or("", String::as_str);
        let Target::Resource { group: api, resource, subresource, name, .. } = wanted.target else {
            return false;
        };
        // The cases are about one permission, which the first of the modes asks for only in part.
        let impersonates = wanted.verb.to_string() == "impersonate";
        let extra = |key: &str| impersonates && resource == "userextras" && subresource == key;
        if user.name == "system:admin" || matches!(group(1), "escaped-scopes" | "almost-escaped-scopes") {
            return true;
        }
        let first = match group(0) {
            "wheel" | "regular-impersonater" => impersonates && resource == "users",
            "sa-impersonater" => impersonates && resource == "serviceaccounts",
            "everything-impersonater" => {
                impersonates
                    && match resource {
                        "users" | "groups" => api.is_empty(),
                        "uids" => name == "some-uid" && api == AUTHENTICATION,
                        _ => extra("scopes") && api == AUTHENTICATION,
                    }
            }
            _ => false,
        };
        let second = match group(1) {
            "group-impersonater" => impersonates && resource == "groups",
            "extra-setter-scopes" => extra("scopes"),
            "extra-setter-particular-scopes" => extra("scopes") && name == "scope-a" && api == AUTHENTICATION,
            "extra-setter-project" => extra("project") && api == AUTHENTICATION,
            _ => false,
        };
        first || second
    }
}

impl Authorizer<Arc<Tenant>> for Rights {
    fn authorize<'a>(
        &'a self,
        _: Option<&'a Arc<Tenant>>,
        user: &'a User,
        wanted: &'a Attributes<'a>,
    ) -> BoxFuture<'a, Decision> {
        let decision = Decision::plain(Rights::allows(user, wanted));
        Box::pin(std::future::ready(decision))
    }

    fn rules<'a>(&'a self, _: &'a Arc<Tenant>, _: &'a User, _: &'a str) -> BoxFuture<'a, Rules> {
        Box::pin(std::future::ready(Rules::default()))
    }
}

/// Words after `user`, `uid`, `group` or `extra`: the headers of a request, or a user.
pub(super) type Words = &'static str;

pub(super) fn header_map(words: Words) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for word in words.split_whitespace() {
        let (field, value) = word.split_once('=').unwrap();
        let name = match field {
            "user" | "uid" | "group" => format!("impersonate-{field}"),
            key => format!("{EXTRA}{}", key.replace('/', "%2f")),
        };
        headers.append(http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
    }
    headers
}

pub(super) fn user(words: Words) -> User {
    let mut user = User::default();
    for word in words.split_whitespace() {
        let (field, value) = word.split_once('=').unwrap();
        match field {
            "user" => user.name = value.into(),
            "uid" => user.uid = value.into(),
            "group" => user.groups.push(value.into()),
            key => match user.extra.iter_mut().find(|(known, _)| known == key) {
                Some((_, values)) => values.push(value.into()),
                None => user.extra.push((key.into(), vec![value.into()])),
            },
        }
    }
    user
}

#[tokio::test]
async fn test_impersonation_filter() {
    const ADMIN: Words = "user=system:admin";
    const ANONYMOUS: Words = "user=system:anonymous group=system:unauthenticated";
    // The name, the sender, the headers, and the user of the request or the code of the refusal.
    let cases: [(&str, Words, Words, Result<Words, u16>); 25] = [
        ("not-impersonating", "user=tester", "", Ok("user=tester")),
        ("impersonating-error", "user=tester", "user=anyone", Err(403)),
        ("impersonating-group-without-user", "user=tester", "group=some-group", Err(400)),
        ("impersonating-extra-without-user", "user=tester", "scopes=scope-a", Err(400)),
        ("impersonating-uid-without-user", "user=tester", "uid=some-uid", Err(400)),
        ("disallowed-group", "user=dev group=wheel", "user=system:admin group=some-group", Err(403)),
        (
            "allowed-group",
            "user=dev group=wheel group=group-impersonater",
            "user=system:admin group=some-group",
            Ok("user=system:admin group=some-group group=system:authenticated"),
        ),
        (
            "disallowed-userextra-1",
            "user=dev group=wheel",
            "user=system:admin group=some-group scopes=scope-a",
            Err(403),
        ),
        (
            "disallowed-userextra-2",
            "user=dev group=wheel group=extra-setter-project",
            "user=system:admin group=some-group scopes=scope-a",
            Err(403),
        ),
        (
            "disallowed-userextra-3",
            "user=dev group=wheel group=extra-setter-particular-scopes",
            "user=system:admin group=some-group scopes=scope-a scopes=scope-b",
            Err(403),
        ),
        (
            "allowed-userextras",
            "user=dev group=wheel group=extra-setter-scopes",
            "user=system:admin scopes=scope-a scopes=scope-b",
            Ok("user=system:admin group=system:authenticated scopes=scope-a scopes=scope-b"),
        ),
        (
            "percent-escaped-userextras",
            "user=dev group=wheel group=escaped-scopes",
            "user=system:admin example.com%2fescaped%e1%9b%84scopes=scope-a example.com%2fescaped%e1%9b%84scopes=scope-b",
            Ok(
                "user=system:admin group=system:authenticated example.com/escapedᛄscopes=scope-a example.com/escapedᛄscopes=scope-b",
            ),
        ),
        (
            "almost-percent-escaped-userextras",
            "user=dev group=wheel group=almost-escaped-scopes",
            "user=system:admin almost%zzpercent%xxencoded=scope-a almost%zzpercent%xxencoded=scope-b",
            Ok(
                "user=system:admin group=system:authenticated almost%zzpercent%xxencoded=scope-a almost%zzpercent%xxencoded=scope-b",
            ),
        ),
        (
            "allowed-users-impersonation",
            "user=dev group=regular-impersonater",
            "user=tester",
            Ok("user=tester group=system:authenticated"),
        ),
        ("disallowed-impersonating", "user=dev group=sa-impersonater", "user=tester", Err(403)),
        (
            "allowed-sa-impersonating",
            "user=dev group=sa-impersonater",
            "user=system:serviceaccount:foo:default",
            Ok(
                "user=system:serviceaccount:foo:default group=system:serviceaccounts group=system:serviceaccounts:foo group=system:authenticated",
            ),
        ),
        (
            "anonymous-username-prevents-adding-authenticated-group",
            ADMIN,
            "user=system:anonymous",
            Ok(ANONYMOUS),
        ),
        (
            "unauthenticated-group-prevents-adding-authenticated-group",
            ADMIN,
            "user=unknown group=system:unauthenticated",
            Ok("user=unknown group=system:unauthenticated"),
        ),
        (
            "unauthenticated-group-prevents-double-adding-authenticated-group",
            ADMIN,
            "user=unknown group=system:authenticated",
            Ok("user=unknown group=system:authenticated"),
        ),
        (
            "specified-authenticated-group-prevents-double-adding-authenticated-group",
            "user=dev group=wheel group=group-impersonater",
            "user=system:admin group=some-group group=system:authenticated",
            Ok("user=system:admin group=some-group group=system:authenticated"),
        ),
        (
            "anonymous-user-should-include-unauthenticated-group",
            ADMIN,
            "user=system:anonymous",
            Ok(ANONYMOUS),
        ),
        (
            "anonymous-user-prevents-double-adding-unauthenticated-group",
            ADMIN,
            "user=system:anonymous group=system:unauthenticated",
            Ok(ANONYMOUS),
        ),
        (
            "allowed-user-impersonation-with-uid",
            "user=dev group=everything-impersonater",
            "user=tester uid=some-uid",
            Ok("user=tester group=system:authenticated uid=some-uid"),
        ),
        (
            "disallowed-user-impersonation-with-uid",
            "user=dev group=everything-impersonater",
            "user=tester uid=disallowed-uid",
            Err(403),
        ),
        (
            "allowed-impersonation-with-all-headers",
            "user=dev group=everything-impersonater",
            "user=tester uid=some-uid group=system:authenticated scopes=scope-a scopes=scope-b",
            Ok("user=tester group=system:authenticated uid=some-uid scopes=scope-a scopes=scope-b"),
        ),
    ];
    for (name, sender, headers, expected) in cases {
        let target =
            Target::Resource { group: "", resource: "pods", subresource: "", namespace: "", name: "" };
        let request = Attributes::new(Verb::Get, target);
        let found = impersonate(&Rights, None, user(sender), &header_map(headers), &request).await;
        let found = found.map(|(user, _)| user).map_err(|status| status.code);
        assert_eq!(found, expected.map(user), "{name}");
    }
}
