//! The cases of Kubernetes' own test of constrained impersonation, `TestConstrainedImpersonationFilter`, under their names.
//!
//! Upstream keeps decisions for some seconds, and shows in these cases what it has kept. Here every decision is a new one: of
//! requests that are answered from there, only the outcome is compared.

#![allow(clippy::type_complexity, reason = "tables")]

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::{
    upstream::{Words, header_map, user},
    *,
};
use crate::authz::{Decision, Rules};

/// The authorizer of these cases, and what it was asked: `+` or `-`, the verb, the resource, and the namespace and name.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<String>>);

fn allows(user: &User, verb: &str, resource: &str, subresource: &str, name: &str) -> bool {
    let group = user.groups.first().map_or("", String::as_str);
    if let Some(action) = verb.strip_prefix("impersonate-on:") {
        return action.ends_with("list") || action.ends_with("get");
    }
    let user_info = verb == "impersonate:user-info";
    match user.name.as_str() {
        "sa-impersonater" if verb == "impersonate:serviceaccount" => return resource == "serviceaccounts",
        "node-impersonater" if verb == "impersonate:arbitrary-node" => return resource == "nodes",
        "legacy-impersonater" if verb == "impersonate" => return true,
        "user-impersonater" if user_info && matches!(resource, "users" | "uids") => return true,
        "many-groups-impersonater" | "many-extras-impersonater" | "mixed-impersonater"
            if user_info && resource == "users" =>
        {
            return true;
        }
        "many-groups-impersonater" if user_info => return resource == "groups" && name == "*",
        "many-extras-impersonater" if user_info => {
            return resource == "userextras" && subresource == "*" && name == "*";
        }
        "mixed-impersonater" if user_info && name != "*" => {
            return resource == "groups" || resource == "userextras" && subresource == "tags.io/env";
        }
        _ => {}
    }
    match group {
        "associate-node-impersonater" => verb == "impersonate:associated-node" && resource == "nodes",
        "group-impersonater" => user_info && resource == "groups",
        "extra-setter-scopes" => user_info && resource == "userextras" && subresource == "pandas.io/scopes",
        _ => false,
    }
}

impl Authorizer<Arc<Tenant>> for Recorder {
    fn authorize<'a>(
        &'a self,
        _: Option<&'a Arc<Tenant>>,
        user: &'a User,
        wanted: &'a Attributes<'a>,
    ) -> BoxFuture<'a, Decision> {
        let verb = wanted.verb.to_string();
        let (full, sub, place, name) = match wanted.target {
            Target::Path(path) => (path, "", String::new(), ""),
            Target::Resource { resource, subresource, namespace, name, .. } => {
                let place = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
                (resource, subresource, place, name)
            }
        };
        if verb.contains("associated-node") {
            // What differs between the pods of an account is not shown to authorizers.
            let node = "authentication.kubernetes.io/node-name".to_owned();
            let keys = "authentication.kubernetes.io/associated-node-keys".to_owned();
            assert_eq!(user.extra, [(keys, vec![node])]);
        }
        let allowed = allows(user, &verb, full, sub, name);
        let sign = if allowed { '+' } else { '-' };
        let sub = if sub.is_empty() { String::new() } else { format!("/{sub}") };
        let asked = format!("{sign}{verb} {full}{sub} {place}{name}");
        self.0.lock().push(asked.trim_end().to_owned());
        let reason = if allowed { String::new() } else { "deny by default".into() };
        Box::pin(std::future::ready(Decision::because(allowed, reason)))
    }

    fn rules<'a>(&'a self, _: &'a Arc<Tenant>, _: &'a User, _: &'a str) -> BoxFuture<'a, Rules> {
        Box::pin(std::future::ready(Rules::default()))
    }
}

/// A request, its sender, whom it impersonates, who that becomes or the message, and what the authorizer is asked unless
/// upstream's answer comes from its cache.
type Case = (Words, Words, Words, Result<Words, &'static str>, Option<&'static [&'static str]>);

const POD: Words = "get pods bar/foo";
const ANYONE: Words = "user=anyone group=system:authenticated";
const NODE_1: Words = "user=system:node:node1 group=system:nodes group=system:authenticated";
const NODE_2: Words = "user=system:node:node2 group=system:nodes group=system:authenticated";
const ON_NODE_1: Words = "user=system:serviceaccount:default:default group=associate-node-impersonater authentication.kubernetes.io/node-name=node1";
const ON_NODE_2: Words = "user=system:serviceaccount:default:default group=associate-node-impersonater authentication.kubernetes.io/node-name=node2";

const CASES: &[(&str, &[Case])] = &[
    (
        "impersonating-error",
        &[(
            POD,
            "user=tester",
            "user=anyone",
            Err(
                r#"users.authentication.k8s.io "anyone" is forbidden: User "tester" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope: deny by default"#,
            ),
            Some(&[
                "+impersonate-on:user-info:get pods bar/foo",
                "-impersonate:user-info users anyone",
                "-impersonate users anyone",
            ]),
        )],
    ),
    (
        "impersonating-user-get-allowed-create-disallowed",
        &[
            (
                POD,
                "user=user-impersonater",
                "user=anyone",
                Ok(ANYONE),
                Some(&["+impersonate-on:user-info:get pods bar/foo", "+impersonate:user-info users anyone"]),
            ),
            ("get pods bar1/foo1", "user=user-impersonater", "user=anyone", Ok(ANYONE), None),
            (
                "create pods bar/foo",
                "user=user-impersonater",
                "user=anyone",
                Err(
                    r#"pods "foo" is forbidden: User "user-impersonater" cannot impersonate-on:user-info:create resource "pods" in API group "" in the namespace "bar": deny by default"#,
                ),
                Some(&["-impersonate-on:user-info:create pods bar/foo", "-impersonate users anyone"]),
            ),
        ],
    ),
    (
        "impersonating-sa-allowed",
        &[(
            POD,
            "user=sa-impersonater",
            "user=system:serviceaccount:default:default",
            Ok(
                "user=system:serviceaccount:default:default group=system:serviceaccounts group=system:serviceaccounts:default group=system:authenticated",
            ),
            Some(&[
                "+impersonate-on:serviceaccount:get pods bar/foo",
                "+impersonate:serviceaccount serviceaccounts default/default",
            ]),
        )],
    ),
    (
        "impersonating-node-not-allowed",
        &[(
            POD,
            "user=sa-impersonater",
            "user=system:node:node1",
            Err(
                r#"nodes.authentication.k8s.io "node1" is forbidden: User "sa-impersonater" cannot impersonate:arbitrary-node resource "nodes" in API group "authentication.k8s.io" at the cluster scope: deny by default"#,
            ),
            Some(&[
                "+impersonate-on:arbitrary-node:get pods bar/foo",
                "-impersonate:arbitrary-node nodes node1",
                "-impersonate users system:node:node1",
            ]),
        )],
    ),
    (
        "impersonating-node-not-allowed-action",
        &[(
            "create pods bar/foo",
            "user=node-impersonater",
            "user=system:node:node1",
            Err(
                r#"pods "foo" is forbidden: User "node-impersonater" cannot impersonate-on:arbitrary-node:create resource "pods" in API group "" in the namespace "bar": deny by default"#,
            ),
            Some(&[
                "-impersonate-on:arbitrary-node:create pods bar/foo",
                "-impersonate users system:node:node1",
            ]),
        )],
    ),
    (
        "impersonating-node-allowed",
        &[(
            POD,
            "user=node-impersonater",
            "user=system:node:node1",
            Ok(NODE_1),
            Some(&[
                "+impersonate-on:arbitrary-node:get pods bar/foo",
                "+impersonate:arbitrary-node nodes node1",
            ]),
        )],
    ),
    (
        "disallowed-userextra-3",
        &[(
            POD,
            "user=user-impersonater group=group-impersonater",
            "user=system:admin group=extra-setter-scopes pandas.io/scopes=scope-a pandas.io/scopes=scope-b",
            Err(
                r#"userextras.authentication.k8s.io "scope-a" is forbidden: User "user-impersonater" cannot impersonate:user-info resource "userextras/pandas.io/scopes" in API group "authentication.k8s.io" at the cluster scope: deny by default"#,
            ),
            Some(&[
                "+impersonate-on:user-info:get pods bar/foo",
                "+impersonate:user-info users system:admin",
                "+impersonate:user-info groups extra-setter-scopes",
                "-impersonate:user-info userextras/pandas.io/scopes scope-a",
                "-impersonate users system:admin",
            ]),
        )],
    ),
    (
        "allowed-userextras",
        &[(
            POD,
            "user=user-impersonater group=extra-setter-scopes",
            "user=system:admin pandas.io/scopes=scope-a pandas.io/scopes=scope-b pandas.io/scopes=5 pandas.io/scopes=4 pandas.io/scopes=3 pandas.io/scopes=2 pandas.io/scopes=1",
            Ok(
                "user=system:admin group=system:authenticated pandas.io/scopes=scope-a pandas.io/scopes=scope-b pandas.io/scopes=5 pandas.io/scopes=4 pandas.io/scopes=3 pandas.io/scopes=2 pandas.io/scopes=1",
            ),
            Some(&[
                "+impersonate-on:user-info:get pods bar/foo",
                "+impersonate:user-info users system:admin",
                "-impersonate:user-info userextras/* *",
                "+impersonate:user-info userextras/pandas.io/scopes scope-a",
                "+impersonate:user-info userextras/pandas.io/scopes scope-b",
                "+impersonate:user-info userextras/pandas.io/scopes 5",
                "+impersonate:user-info userextras/pandas.io/scopes 4",
                "+impersonate:user-info userextras/pandas.io/scopes 3",
                "+impersonate:user-info userextras/pandas.io/scopes 2",
                "+impersonate:user-info userextras/pandas.io/scopes 1",
            ]),
        )],
    ),
    (
        "allowed-associate-node",
        &[
            (
                "get secrets bar/foo",
                ON_NODE_1,
                "user=system:node:node1",
                Ok(NODE_1),
                Some(&[
                    "+impersonate-on:associated-node:get secrets bar/foo",
                    "+impersonate:associated-node nodes *",
                ]),
            ),
            ("get secrets bar/foo", ON_NODE_2, "user=system:node:node2", Ok(NODE_2), None),
            (
                "get secrets bar/foo",
                ON_NODE_2,
                "user=system:node:node1",
                Err(
                    r#"nodes.authentication.k8s.io "node1" is forbidden: User "system:serviceaccount:default:default" cannot impersonate:arbitrary-node resource "nodes" in API group "authentication.k8s.io" at the cluster scope: deny by default"#,
                ),
                Some(&[
                    "+impersonate-on:arbitrary-node:get secrets bar/foo",
                    "-impersonate:arbitrary-node nodes node1",
                    "-impersonate users system:node:node1",
                ]),
            ),
            (POD, ON_NODE_2, "user=system:node:node2", Ok(NODE_2), None),
            (POD, ON_NODE_1, "user=system:node:node1", Ok(NODE_1), None),
        ],
    ),
    (
        "disallowed-associate-node-without-sa",
        &[(
            POD,
            "user=user-impersonater group=associate-node-impersonater authentication.kubernetes.io/node-name=node1",
            "user=system:node:node1",
            Err(
                r#"nodes.authentication.k8s.io "node1" is forbidden: User "user-impersonater" cannot impersonate:arbitrary-node resource "nodes" in API group "authentication.k8s.io" at the cluster scope: deny by default"#,
            ),
            Some(&[
                "+impersonate-on:arbitrary-node:get pods bar/foo",
                "-impersonate:arbitrary-node nodes node1",
                "-impersonate users system:node:node1",
            ]),
        )],
    ),
    (
        "allowed-legacy-impersonator",
        &[(
            POD,
            "user=legacy-impersonater",
            "user=system:admin",
            Ok("user=system:admin group=system:authenticated"),
            Some(&[
                "+impersonate-on:user-info:get pods bar/foo",
                "-impersonate:user-info users system:admin",
                "+impersonate users system:admin",
            ]),
        )],
    ),
    (
        "system:masters-group-not-allowed",
        &[(
            POD,
            "user=user-impersonater",
            "user=admin-user group=system:masters",
            Err(
                r#"groups.authentication.k8s.io "system:masters" is forbidden: User "user-impersonater" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed"#,
            ),
            Some(&[
                "+impersonate-on:user-info:get pods bar/foo",
                "+impersonate:user-info users admin-user",
                "-impersonate users admin-user",
            ]),
        )],
    ),
    (
        "many-groups-wildcard-allowed",
        &[(
            POD,
            "user=many-groups-impersonater",
            "user=bob group=group1 group=group2 group=group3 group=group4",
            Ok("user=bob group=group1 group=group2 group=group3 group=group4 group=system:authenticated"),
            Some(&[
                "+impersonate-on:user-info:get pods bar/foo",
                "+impersonate:user-info users bob",
                "+impersonate:user-info groups *",
            ]),
        )],
    ),
    (
        "many-extras-wildcard-allowed",
        &[(
            POD,
            "user=many-extras-impersonater",
            "user=alice scopes.example.com/key1=val1 scopes.example.com/key2=val2 scopes.example.com/key3=val3 scopes.example.com/key4=val4",
            Ok(
                "user=alice group=system:authenticated scopes.example.com/key1=val1 scopes.example.com/key2=val2 scopes.example.com/key3=val3 scopes.example.com/key4=val4",
            ),
            Some(&[
                "+impersonate-on:user-info:get pods bar/foo",
                "+impersonate:user-info users alice",
                "+impersonate:user-info userextras/* *",
            ]),
        )],
    ),
    (
        "mixed-groups-extras-wildcard-denied-individuals-allowed",
        &[(
            POD,
            "user=mixed-impersonater",
            "user=frank group=dev group=ops group=security group=audit tags.io/env=prod tags.io/env=staging tags.io/env=dev",
            Ok(
                "user=frank group=dev group=ops group=security group=audit group=system:authenticated tags.io/env=prod tags.io/env=staging tags.io/env=dev",
            ),
            Some(&[
                "+impersonate-on:user-info:get pods bar/foo",
                "+impersonate:user-info users frank",
                "-impersonate:user-info groups *",
                "+impersonate:user-info groups dev",
                "+impersonate:user-info groups ops",
                "+impersonate:user-info groups security",
                "+impersonate:user-info groups audit",
                "+impersonate:user-info userextras/tags.io/env prod",
                "+impersonate:user-info userextras/tags.io/env staging",
                "+impersonate:user-info userextras/tags.io/env dev",
            ]),
        )],
    ),
    (
        "continuous-same-allowed-user-requests",
        &[
            (
                "get deployments bar/foo",
                "user=user-impersonater",
                "user=bob",
                Ok("user=bob group=system:authenticated"),
                Some(&[
                    "+impersonate-on:user-info:get deployments bar/foo",
                    "+impersonate:user-info users bob",
                ]),
            ),
            (
                "get deployments bar/foo",
                "user=user-impersonater",
                "user=bob",
                Ok("user=bob group=system:authenticated"),
                None,
            ),
        ],
    ),
    (
        "impersonating-user-with-uid",
        &[(
            POD,
            "user=user-impersonater uid=requestor-uid-123",
            "user=anyone uid=wanted-uid-456",
            Ok("user=anyone uid=wanted-uid-456 group=system:authenticated"),
            Some(&[
                "+impersonate-on:user-info:get pods bar/foo",
                "+impersonate:user-info users anyone",
                "+impersonate:user-info uids wanted-uid-456",
            ]),
        )],
    ),
    (
        "impersonating-user-subresource-request",
        &[(
            "get pods/status bar/foo",
            "user=user-impersonater",
            "user=anyone",
            Ok(ANYONE),
            Some(&[
                "+impersonate-on:user-info:get pods/status bar/foo",
                "+impersonate:user-info users anyone",
            ]),
        )],
    ),
    (
        "impersonating-user-non-resource-request",
        &[(
            "get /healthz",
            "user=user-impersonater",
            "user=anyone",
            Ok(ANYONE),
            Some(&["+impersonate-on:user-info:get /healthz", "+impersonate:user-info users anyone"]),
        )],
    ),
    (
        "impersonating-user-with-field-and-label-selectors",
        &[(
            "list pods bar/",
            "user=user-impersonater",
            "user=anyone",
            Ok(ANYONE),
            Some(&["+impersonate-on:user-info:list pods bar/", "+impersonate:user-info users anyone"]),
        )],
    ),
    (
        "legacy-fallback",
        &[
            (
                POD,
                "user=legacy-impersonater",
                "user=anyone",
                Ok(ANYONE),
                Some(&[
                    "+impersonate-on:user-info:get pods bar/foo",
                    "-impersonate:user-info users anyone",
                    "+impersonate users anyone",
                ]),
            ),
            // The mode that is remembered is one of a tenant, and there is none.
            ("get deployments bar/foo", "user=legacy-impersonater", "user=anyone", Ok(ANYONE), None),
        ],
    ),
];

/// A verb, and a path or a resource with its namespace and name.
fn attributes(request: Words) -> Attributes<'static> {
    let mut words = request.split(' ');
    let (verb, target) = (words.next().unwrap(), words.next().unwrap());
    let verb = match verb {
        "get" => Verb::Get,
        "list" => Verb::List,
        _ => Verb::Create,
    };
    let Some((namespace, name)) = words.next().and_then(|place| place.split_once('/')) else {
        return Attributes::new(verb, Target::Path(target));
    };
    let (resource, subresource) = target.split_once('/').unwrap_or((target, ""));
    let group = if resource == "deployments" { "apps" } else { "" };
    Attributes::new(verb, Target::Resource { group, resource, subresource, namespace, name })
}

#[tokio::test]
async fn test_constrained_impersonation_filter() {
    let mut played = 0;
    for (name, requests) in CASES {
        for (request, sender, wanted, expected, checks) in *requests {
            let recorder = Recorder::default();
            let mut request = attributes(request);
            if *name == "impersonating-user-with-field-and-label-selectors" {
                request.selection =
                    crate::authz::Selection::Sent { fields: "spec.nodeName=node1", labels: "app=web" };
            }
            let found = impersonate(&recorder, None, user(sender), &header_map(wanted), &request).await;
            let found = found.map(|(user, _)| user).map_err(|status| status.message);
            assert_eq!(found, expected.map(user).map_err(str::to_owned), "{name}");
            if let Some(checks) = checks {
                assert_eq!(*recorder.0.lock(), *checks, "{name}");
            }
            played += 1;
        }
    }
    assert_eq!((CASES.len(), played), (21, 29));
}

/// What upstream refuses in attributes, before it asks anybody.
#[tokio::test]
async fn extra_attributes_have_domains() {
    for (wanted, why) in [
        (
            "user=a scopes=b",
            r#"impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scopes": must be a domain-prefixed path (such as "acme.io/foo")"#,
        ),
        ("user=a a.example.com/b=", "impersonating the empty string value in extra is not allowed"),
    ] {
        let recorder = Recorder::default();
        let sender = user("user=user-impersonater group=extra-setter-scopes");
        let refused = impersonate(&recorder, None, sender, &header_map(wanted), &attributes(POD)).await;
        let message = refused.unwrap_err().message;
        assert!(message.ends_with(why), "{message}");
    }
}
