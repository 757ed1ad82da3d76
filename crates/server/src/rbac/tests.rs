//! Kubernetes' cases as tables, and a plain evaluator written from the rules.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Index, Rule, compact,
    index::{RoleRef, Subject},
    uncovered,
};
use crate::{
    authz::{Attributes, Target},
    errors::aggregate,
    identity::User,
    request::Verb,
};

/// `verbs groups resources [names]` or `verbs paths`, each with commas; `core` is the core group.
pub(super) fn rule(line: &str) -> Rule {
    let words: Vec<&str> = line.split(' ').collect();
    let list = |word: &str| word.split(',').map(|one| if one == "core" { "" } else { one }.into()).collect();
    match words.as_slice() {
        [verbs, paths] => Rule { verbs: list(verbs), non_resource_urls: list(paths), ..Rule::default() },
        [verbs, groups, resources] => Rule {
            verbs: list(verbs),
            api_groups: list(groups),
            resources: list(resources),
            ..Rule::default()
        },
        [verbs, groups, resources, names] => Rule {
            verbs: list(verbs),
            api_groups: list(groups),
            resources: list(resources),
            resource_names: list(names),
            ..Rule::default()
        },
        _ => panic!("{line}"),
    }
}

pub(super) fn rules(lines: &[&str]) -> Vec<Rule> {
    lines.iter().map(|line| rule(line)).collect()
}

/// `verb group resource[/subresource] namespace name` or `verb /path`; `-` is empty.
pub(super) fn wanted(line: &str) -> Attributes<'_> {
    let words: Vec<&str> = line.split(' ').map(|word| if word == "-" { "" } else { word }).collect();
    match words.as_slice() {
        [verb, path] => Attributes::new(Verb::named(verb), Target::Path(path)),
        [verb, group, resource, namespace, name] => {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let target = Target::Resource { group, resource, subresource, namespace, name };
            Attributes::new(Verb::named(verb), target)
        }
        _ => panic!("{line}"),
    }
}

pub(super) fn user(name: &str, groups: &[&str]) -> User {
    User {
        name: name.into(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..User::default()
    }
}

fn subject(text: &str) -> Subject {
    let (kind, name) = text.split_once(':').unwrap();
    let (name, namespace) = name.split_once('/').unwrap_or((name, ""));
    Subject { kind: kind.into(), name: name.into(), namespace: namespace.into() }
}

pub(super) fn bind(index: &mut Index, at: (&str, &str), role: (&str, &str), subjects: &[&str]) {
    let role = RoleRef { kind: role.0.into(), name: role.1.into() };
    index.set_binding(at, Some((role, subjects.iter().map(|text| subject(text)).collect())));
}

#[test]
fn a_rule_allows_what_upstream_says() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        (
            "* group1 resource1",
            &["verb1 group1 resource1 - -", "verb2 group1 resource1 - -"],
            &["verb1 group2 resource1 - -", "verb1 group1 resource2 - -", "verb2 group2 resource2 - -"],
        ),
        (
            "verb1 * resource1",
            &["verb1 group1 resource1 - -", "verb1 group2 resource1 - -"],
            &["verb1 group1 resource2 - -", "verb2 group1 resource1 - -"],
        ),
        (
            "verb1 group1 *",
            &["verb1 group1 resource1 - -", "verb1 group1 resource2 - -", "verb1 group1 a/status - -"],
            &["verb1 group2 resource1 - -", "verb2 group1 resource1 - -"],
        ),
        (
            "verb1,verb2 group1,group2 resource1,resource2",
            &["verb1 group1 resource1 - -", "verb2 group2 resource2 - -", "verb1 group2 resource1 - -"],
            &["verb3 group1 resource1 - -"],
        ),
        (
            "* * resource1/subresource1",
            &["verb1 group1 resource1/subresource1 - -"],
            &[
                "verb1 group2 resource1/subresource2 - -",
                "verb1 group1 resource2/subresource1 - -",
                "verb1 group1 resource1 - -",
            ],
        ),
        (
            "* * */scale",
            &["get apps deployments/scale - -", "get core pods/scale - -"],
            &[
                "get apps deployments - -",
                "get apps deployments/autoscale - -",
                "get apps deployments/scale/x - -",
            ],
        ),
        (
            "get apps deployments/*",
            &["get apps deployments/* - -"],
            &["get apps deployments/scale - -", "get apps deployments - -"],
        ),
        ("get core pods one,two", &["get - pods - one", "get - pods ns two"], &[]),
        ("verb1 *", &["verb1 /foo", "verb1 /foo/bar", "verb1 /"], &["verb2 /foo", "verb1 g r - -"]),
        (
            "verb1 /foo/*",
            &["verb1 /foo/bar", "verb1 /foo/bar/one", "verb1 /foo/"],
            &["verb1 /foo", "verb1 /notfoo/bar"],
        ),
        (
            "* /foo,/foo/bar/one",
            &["verb1 /foo", "verb2 /foo/bar/one"],
            &["verb1 /foo/bar", "verb1 /foo/baz/one"],
        ),
        ("get /a**", &["get /a", "get /ab"], &["get /b"]),
    ];
    for (line, allowed, denied) in cases {
        let rule = rule(line);
        for one in *allowed {
            assert!(rule.allows(&wanted(&one.replace(" core ", " - "))), "{line} must allow {one}");
        }
        for one in *denied {
            assert!(!rule.allows(&wanted(one)), "{line} must not allow {one}");
        }
    }
    let named = rule("list,deletecollection core pods one");
    assert!(named.allows(&wanted("list - pods ns one")));
    assert!(
        !named.allows(&wanted("list - pods ns -")) && !named.allows(&wanted("deletecollection - pods ns -"))
    );
}

#[test]
fn rules_cover_what_upstream_says() {
    // Held, wanted, and what is missing.
    let cases: &[(&[&str], &[&str], &[&str])] = &[
        (&["get v1 builds"], &["get v1 builds"], &[]),
        (&["get v1 */scale"], &["get v1 foo/scale"], &[]),
        (&["get v1 */scale"], &["get v1 foo"], &["get v1 foo"]),
        (
            &["delete v1 deployments", "delete v1 builds", "update v1 builds,deployments"],
            &["delete,update v1 builds,deployments"],
            &[],
        ),
        (
            &["delete,update g1,g2 builds,deployments"],
            &["delete g1 deployments", "update g2 builds,deployments"],
            &[],
        ),
        (
            &["delete,update v1 builds,deployments", "delete v1 pods"],
            &["delete,update v1 builds,deployments,pods"],
            &["update v1 pods"],
        ),
        (&["get * roles"], &["get group1,group2 roles"], &[]),
        (&["get dummy roles"], &["get * roles"], &["get * roles"]),
        (&["get * roles"], &["get * roles"], &[]),
        (&["* v1 roles"], &["watch,list v1 roles"], &[]),
        (&["get,list,watch,create,update,delete,exec v1 roles"], &["* v1 roles"], &["* v1 roles"]),
        (&["get v1 *"], &["get v1 deployments,pods/log"], &[]),
        (&["get v1 roles"], &["get v1 *"], &["get v1 *"]),
        (&["get v1 pods"], &["get v1 pods foo,bar"], &[]),
        (&["get v1 pods foo"], &["get v1 pods foo,bar"], &["get v1 pods bar"]),
        (&["get v1 pods foo,bar"], &["get v1 pods"], &["get v1 pods"]),
        (&["* /apis"], &["* /apis"], &[]),
        (&["* *"], &["* /apis,/apis/v1,/"], &[]),
        (&["* /apis/*"], &["get /apis,/apis/v1"], &["get /apis"]),
        (&["* /apis/*"], &["get /apis/v1/foo,/apis/v1"], &[]),
        (&["get /apis"], &["get /apis/*"], &["get /apis/*"]),
        (&["* * *"], &["get /apis"], &["get /apis"]),
        (&[], &["get v1 pods"], &["get v1 pods"]),
    ];
    for (held, wanted, missing) in cases {
        assert_eq!(uncovered(&rules(held), &rules(wanted)), rules(missing), "{held:?} {wanted:?}");
    }
}

#[test]
fn missing_rules_are_told_by_resource() {
    let missing = uncovered(
        &[],
        &rules(&["get,list core pods,secrets", "* core secrets a,b", "get /x", "get core pods"]),
    );
    let texts: Vec<String> = compact(&missing).into_iter().collect();
    assert_eq!(
        texts,
        [
            "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\" \"get\"]}",
            "{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"a\"], Verbs:[\"*\"]}",
            "{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"b\"], Verbs:[\"*\"]}",
            "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"list\"]}",
            "{NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}",
        ]
    );
}

#[test]
fn a_role_of_too_many_combinations_is_not_covered() {
    let many: Vec<Box<str>> = (0..1000).map(|number| format!("r{number}").into()).collect();
    let wide = Rule { verbs: many.clone(), api_groups: many.clone(), resources: many, ..Rule::default() };
    assert_eq!(uncovered(&Rule::full_authority(), std::slice::from_ref(&wide)), [wide]);
}

#[test]
fn subjects_apply_as_upstream_says() {
    let grants = |subjects: &[&str], user: &User, at: &str| {
        let mut index = Index::default();
        index.set_role(("", "any"), Some(rules(&["* * *"])));
        bind(&mut index, (at, "b"), ("ClusterRole", "any"), subjects);
        let namespace = if at.is_empty() { "somewhere" } else { at };
        let wanted = format!("get g r {namespace} -");
        let reason = index.grant(user, &self::wanted(&wanted))?;
        reason.strip_prefix("RBAC: allowed by ").map(str::to_owned)
    };
    let told = |subject: &str| Some(format!("RoleBinding \"b/ns\" of ClusterRole \"any\" to {subject}"));
    let robot = user("system:serviceaccount:kube-system:default", &[]);
    assert_eq!(grants(&["User:foobar"], &user("foobar", &[]), "ns"), told("User \"foobar\""));
    assert_eq!(grants(&["User:barfoo", "User:foobar"], &user("foobar", &[]), "ns"), told("User \"foobar\""));
    assert_eq!(grants(&["User:barfoo", "User:foobar"], &user("zimzam", &[]), "ns"), None);
    assert_eq!(
        grants(&["User:barfoo", "Group:foobar"], &user("zimzam", &["foobar"]), "ns"),
        told("Group \"foobar\"")
    );
    assert_eq!(
        grants(&["User:a", "ServiceAccount:default/kube-system"], &robot, "ns"),
        told("ServiceAccount \"default/kube-system\"")
    );
    assert_eq!(
        grants(&["ServiceAccount:default"], &robot, "ns"),
        None,
        "its namespace is that of the binding"
    );
    assert_eq!(grants(&["ServiceAccount:default"], &robot, ""), None, "a cluster has no namespace");
    let local = user("system:serviceaccount:ns:default", &[]);
    assert_eq!(grants(&["ServiceAccount:default"], &local, "ns"), told("ServiceAccount \"default/ns\""));
    assert_eq!(grants(&["User:*", "Group:*"], &user("foobar", &["x"]), "ns"), None);
    assert_eq!(
        grants(&["Group:system:authenticated"], &user("a", &["system:authenticated"]), ""),
        Some("ClusterRoleBinding \"b\" of ClusterRole \"any\" to Group \"system:authenticated\"".into())
    );
    assert_eq!(
        grants(&["Group:x", "User:foobar"], &user("foobar", &["x"]), "ns"),
        told("Group \"x\""),
        "the first subject that applies is told"
    );
}

#[test]
fn roles_are_resolved_as_upstream_says() {
    let mut index = Index::default();
    index.set_role(("ns1", "readthings"), Some(rules(&["GET v1 pods", "GET v1 services"])));
    index.set_role(("", "cluster-admin"), Some(rules(&["* * *"])));
    index.set_role(("", "write-nodes"), Some(rules(&["PUT v1 nodes"])));
    bind(&mut index, ("ns1", "b"), ("Role", "readthings"), &["User:foobar", "Group:group1"]);
    bind(&mut index, ("", "b"), ("ClusterRole", "cluster-admin"), &["User:admin", "Group:admin"]);
    let of = |user: &User, namespace: &str| index.rules(user, namespace);
    assert_eq!(of(&user("foobar", &[]), "ns1"), (rules(&["GET v1 pods", "GET v1 services"]), vec![]));
    assert_eq!(of(&user("foobar", &[]), "ns2"), (vec![], vec![]));
    assert_eq!(of(&user("foobar", &["admin"]), ""), (rules(&["* * *"]), vec![]));
    assert_eq!(of(&user("", &[]), ""), (vec![], vec![]));
    // A binding to a missing role is an error, and grants nothing.
    bind(&mut index, ("ns1", "c"), ("Role", "nope"), &["User:foobar"]);
    bind(&mut index, ("ns1", "d"), ("ClusterRole", "nope"), &["User:foobar"]);
    bind(&mut index, ("ns1", "e"), ("Role", "nope"), &["User:foobar"]);
    bind(&mut index, ("", "f"), ("Role", "cluster-admin"), &["User:foobar"]);
    let (found, errors) = index.rules(&user("foobar", &[]), "ns1");
    assert_eq!(found, rules(&["GET v1 pods", "GET v1 services"]));
    let group = "rbac.authorization.k8s.io";
    assert_eq!(
        aggregate(&errors),
        format!(
            "[role.{group} \"cluster-admin\" not found, role.{group} \"nope\" not found, clusterrole.{group} \"nope\" not found]"
        )
    );
    assert_eq!(index.errors(&user("foobar", &[]), "ns1"), errors);
}

#[test]
fn what_is_removed_leaves_nothing_behind() {
    let mut index = Index::default();
    bind(&mut index, ("ns", "b"), ("Role", "r"), &["User:a", "User:a", "Group:g", "Odd:x"]);
    bind(&mut index, ("ns", "b"), ("Role", "s"), &["User:b"]);
    index.set_role(("ns", "s"), Some(rules(&["get g r"])));
    assert!(index.is_granted(&user("b", &[]), &wanted("get g r ns -")));
    assert!(!index.is_granted(&user("a", &["g"]), &wanted("get g r ns -")));
    index.set_binding(("ns", "b"), None);
    index.set_role(("ns", "s"), None);
    index.set_role(("ns", "never"), None);
    assert!(index.is_empty());
}

/// The kind and the name of a role, and the kinds, names and namespaces of subjects.
type PlainBinding = (String, String, Vec<(String, String, String)>);

/// A policy as plain lists.
#[derive(Debug, Clone, Default)]
struct Plain {
    roles: BTreeMap<(String, String), Vec<Value>>,
    bindings: BTreeMap<(String, String), PlainBinding>,
}

impl Plain {
    /// The rules of RBAC, one after the other.
    fn allows(&self, who: &User, what: &Asked) -> bool {
        self.bindings.iter().any(|((at, _), (kind, role, subjects))| {
            let in_scope = at.is_empty() || (!what.is_path && *at == what.namespace);
            let is_meant = subjects.iter().any(|(kind, name, namespace)| match kind.as_str() {
                "User" => who.name == *name,
                "Group" => who.groups.contains(name),
                "ServiceAccount" => {
                    let namespace = if namespace.is_empty() { at } else { namespace };
                    !namespace.is_empty() && who.name == format!("system:serviceaccount:{namespace}:{name}")
                }
                _ => false,
            });
            let found = match kind.as_str() {
                "Role" if !at.is_empty() => self.roles.get(&(at.clone(), role.clone())),
                "ClusterRole" => self.roles.get(&(String::new(), role.clone())),
                _ => None,
            };
            in_scope && is_meant && found.is_some_and(|rules| rules.iter().any(|rule| what.fits(rule)))
        })
    }
}

/// An action.
#[derive(Debug, Clone)]
struct Asked {
    is_path: bool,
    verb: String,
    group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
    path: String,
}

impl Asked {
    fn attributes(&self) -> Attributes<'_> {
        let target = match self.is_path {
            true => Target::Path(&self.path),
            false => Target::Resource {
                group: &self.group,
                resource: &self.resource,
                subresource: &self.subresource,
                namespace: &self.namespace,
                name: &self.name,
            },
        };
        Attributes::new(Verb::named(&self.verb), target)
    }

    fn fits(&self, rule: &Value) -> bool {
        let list = |field: &str| -> Vec<String> {
            let all = rule[field].as_array().cloned().unwrap_or_default();
            all.iter().map(|one| one.as_str().unwrap().to_owned()).collect()
        };
        let star_or = |field: &str, text: &str| list(field).iter().any(|one| one == "*" || one == text);
        if !star_or("verbs", &self.verb) {
            return false;
        }
        if self.is_path {
            return list("nonResourceURLs").iter().any(|url| {
                *url == self.path || url.strip_suffix('*').is_some_and(|start| self.path.starts_with(start))
            });
        }
        let resource = match self.subresource.as_str() {
            "" => star_or("resources", &self.resource),
            sub => {
                star_or("resources", &format!("{}/{sub}", self.resource))
                    || list("resources").contains(&format!("*/{sub}"))
            }
        };
        let names = list("resourceNames");
        star_or("apiGroups", &self.group) && resource && (names.is_empty() || names.contains(&self.name))
    }
}

const NAMESPACES: [&str; 3] = ["", "a", "b"];

fn pick(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(texts).prop_map(str::to_owned)
}

fn some(texts: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(pick(texts), 1..=most)
}

fn any_rule() -> impl Strategy<Value = Value> {
    let resources = (
        some(&["get", "list", "create", "*"], 2),
        some(&["", "apps", "*"], 2),
        some(&["pods", "pods/log", "*/log", "secrets", "pods/*", "*"], 2),
        prop::option::weighted(0.3, some(&["x", "y", "*"], 2)),
    );
    let resources = resources.prop_map(|(verbs, groups, resources, names)| {
        let mut rule = json!({"verbs": verbs, "apiGroups": groups, "resources": resources});
        if let Some(names) = names {
            rule["resourceNames"] = json!(names);
        }
        rule
    });
    let paths = (some(&["get", "post", "*"], 2), some(&["/a", "/a/*", "/b*", "*"], 2));
    let paths = paths.prop_map(|(verbs, urls)| json!({"verbs": verbs, "nonResourceURLs": urls}));
    prop_oneof![4 => resources, 1 => paths]
}

fn any_subject() -> impl Strategy<Value = (String, String, String)> {
    (
        pick(&["User", "User", "Group", "ServiceAccount", "Odd"]),
        pick(&["u", "v", "g", "h"]),
        pick(&["", "", "a", "b"]),
    )
}

type AnyBinding = ((String, String), PlainBinding);

fn any_binding() -> impl Strategy<Value = AnyBinding> {
    (
        (pick(&NAMESPACES), pick(&["b1", "b2", "b3", "b4", "b5"])),
        (
            pick(&["ClusterRole", "ClusterRole", "Role", "Odd"]),
            pick(&["r", "s", "t", "missing"]),
            prop::collection::vec(any_subject(), 0..4),
        ),
    )
}

fn any_policy() -> impl Strategy<Value = Plain> {
    let role = ((pick(&NAMESPACES), pick(&["r", "s", "t"])), prop::collection::vec(any_rule(), 0..4));
    (prop::collection::vec(role, 0..8), prop::collection::vec(any_binding(), 0..10)).prop_map(
        |(roles, bindings)| Plain {
            roles: roles.into_iter().collect(),
            bindings: bindings.into_iter().collect(),
        },
    )
}

fn any_user() -> impl Strategy<Value = User> {
    let name = pick(&["u", "v", "w", "system:serviceaccount:a:u", "system:serviceaccount:b:v"]);
    (name, prop::collection::vec(pick(&["g", "h", "i"]), 0..3)).prop_map(|(name, groups)| User {
        name,
        groups,
        ..User::default()
    })
}

fn any_asked() -> impl Strategy<Value = Asked> {
    (
        prop::bool::weighted(0.2),
        pick(&["get", "list", "create", "post", "delete"]),
        (pick(&["", "apps", "batch"]), pick(&["pods", "secrets", "*"]), pick(&["", "", "log", "exec"])),
        pick(&NAMESPACES),
        pick(&["", "x", "y", "z"]),
        pick(&["/a", "/a/b", "/b", "/bc", "/c", "/"]),
    )
        .prop_map(|(is_path, verb, (group, resource, subresource), namespace, name, path)| Asked {
            is_path,
            verb,
            group,
            resource,
            subresource,
            namespace,
            name,
            path,
        })
}

fn set_binding(index: &mut Index, ((at, name), (kind, role, subjects)): &AnyBinding) {
    let role = RoleRef { kind: (**kind).into(), name: (**role).into() };
    let subjects = subjects.iter().map(|(kind, name, namespace)| Subject {
        kind: (**kind).into(),
        name: (**name).into(),
        namespace: (**namespace).into(),
    });
    index.set_binding((at, name), Some((role, subjects.collect())));
}

fn index_of(plain: &Plain) -> Index {
    let mut index = Index::default();
    for ((at, name), rules) in &plain.roles {
        index.set_role((at, name), Some(Rule::list(&json!(rules))));
    }
    for (at, binding) in &plain.bindings {
        set_binding(&mut index, &(at.clone(), binding.clone()));
    }
    index
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2500))]

    /// 2,500 policies, each with 40 requests: 100,000 decisions.
    #[test]
    fn the_index_decides_as_the_plain_rules_do(
        policy in any_policy(),
        requests in prop::collection::vec((any_user(), any_asked()), 40),
    ) {
        let index = index_of(&policy);
        for (who, what) in &requests {
            let granted = index.is_granted(who, &what.attributes());
            prop_assert_eq!(granted, policy.allows(who, what), "{:?} {:?}", who, what);
            prop_assert_eq!(granted, index.grant(who, &what.attributes()).is_some());
        }
    }

    /// What was collected for users does not outlive the roles and bindings that it was collected from.
    #[test]
    fn decisions_follow_every_change(
        policy in any_policy(),
        changes in prop::collection::vec(any_policy(), 1..4),
        requests in prop::collection::vec((any_user(), any_asked()), 10),
    ) {
        let (mut index, mut now) = (index_of(&policy), policy);
        for change in &changes {
            let check = |index: &Index, now: &Plain| {
                for (who, what) in &requests {
                    let granted = index.is_granted(who, &what.attributes());
                    prop_assert_eq!(granted, now.allows(who, what), "{:?} {:?}", who, what);
                }
                Ok(())
            };
            check(&index, &now)?;
            // What the change has is set; of the rest, every second one is removed.
            let others = now.roles.keys().filter(|at| !change.roles.contains_key(*at)).step_by(2);
            for at in others.cloned().collect::<Vec<_>>() {
                now.roles.remove(&at);
                index.set_role((&at.0, &at.1), None);
                check(&index, &now)?;
            }
            for (at, rules) in &change.roles {
                now.roles.insert(at.clone(), rules.clone());
                index.set_role((&at.0, &at.1), Some(Rule::list(&json!(rules))));
                check(&index, &now)?;
            }
            let others = now.bindings.keys().filter(|at| !change.bindings.contains_key(*at)).step_by(2);
            for at in others.cloned().collect::<Vec<_>>() {
                now.bindings.remove(&at);
                index.set_binding((&at.0, &at.1), None);
                check(&index, &now)?;
            }
            for (at, binding) in &change.bindings {
                now.bindings.insert(at.clone(), binding.clone());
                set_binding(&mut index, &(at.clone(), binding.clone()));
                check(&index, &now)?;
            }
        }
        for (cluster, roles) in [(true, true), (false, true), (true, false), (false, false)] {
            index.clear(cluster, roles);
            if roles {
                now.roles.retain(|at, _| at.0.is_empty() != cluster);
            } else {
                now.bindings.retain(|at, _| at.0.is_empty() != cluster);
            }
            for (who, what) in &requests {
                prop_assert_eq!(index.is_granted(who, &what.attributes()), now.allows(who, what));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn adding_a_binding_removes_nothing_and_removing_one_adds_nothing(
        policy in any_policy(),
        more in any_binding(),
        requests in prop::collection::vec((any_user(), any_asked()), 40),
    ) {
        prop_assume!(!policy.bindings.contains_key(&more.0));
        let mut index = index_of(&policy);
        let decide = |index: &Index| -> Vec<bool> {
            requests.iter().map(|(who, what)| index.is_granted(who, &what.attributes())).collect()
        };
        let before = decide(&index);
        set_binding(&mut index, &more);
        let with = decide(&index);
        index.set_binding((&more.0.0, &more.0.1), None);
        let after = decide(&index);
        prop_assert!(before.iter().zip(&with).all(|(before, with)| !before || *with));
        prop_assert!(after.iter().zip(&with).all(|(after, with)| !after || *with));
        prop_assert_eq!(before, after);
    }

    #[test]
    fn covered_rules_allow_nothing_more(
        held in prop::collection::vec(any_rule(), 0..4),
        wanted in prop::collection::vec(any_rule(), 0..3),
        requests in prop::collection::vec(any_asked(), 40),
    ) {
        let (held, wanted) = (Rule::list(&json!(held)), Rule::list(&json!(wanted)));
        let missing = uncovered(&held, &wanted);
        for what in &requests {
            let allows = |rules: &[Rule]| rules.iter().any(|rule| rule.allows(&what.attributes()));
            prop_assert!(!allows(&wanted) || allows(&held) || allows(&missing), "{:?}", what);
        }
    }
}
