//! The cases of Kubernetes' own tests of RBAC under the names of these tests. Those of aggregated roles are in `aggregation`.

#![allow(clippy::type_complexity, reason = "tables")]

use super::{
    Index, Rule,
    rule::url_includes,
    tests::{bind, rule, rules, user, wanted},
    uncovered,
};
use crate::{
    authz::{Attributes, Target},
    request::Verb,
};

/// A rule about resources and about paths.
fn both(resources: &str, path: &str) -> Rule {
    Rule { non_resource_urls: vec![path.into()], ..rule(resources) }
}

/// A role, where it is bound (in the cluster, if that is empty), and to whom.
type Bound = (Rule, &'static str, &'static [&'static str]);
/// A user, its groups, and what it asks for.
type Asked = (&'static str, &'static [&'static str], &'static str);

#[test]
fn test_authorizer() {
    let admins: &[&str] = &["User:admin", "Group:admins"];
    let cases: [(Vec<Bound>, &[Asked], &[Asked]); 4] = [
        (
            vec![(both("* * *", "*"), "ns1", admins)],
            &[
                ("admin", &[""], "get - Pods ns1 -"),
                ("admin", &[""], "watch - Pods ns1 -"),
                ("admin", &["group1"], "watch - Foobar ns1 -"),
                ("joe", &["admins"], "watch - Foobar ns1 -"),
                ("joe", &["group1", "admins"], "watch - Foobar ns1 -"),
            ],
            &[
                ("admin", &[""], "GET - Pods ns2 -"),
                ("admin", &[""], "GET - Nodes - -"),
                ("admin", &["admins"], "GET - Pods ns2 -"),
                ("admin", &["admins"], "GET - Nodes - -"),
            ],
        ),
        (
            vec![
                (rule("get /apis"), "", &["User:foo", "Group:bar"]),
                (rule("* /apis"), "", &["User:admin", "Group:admin"]),
                (rule("get /apis/*"), "", &["User:prefixed", "Group:prefixed"]),
            ],
            &[
                ("foo", &[], "get /apis"),
                ("", &["bar"], "get /apis"),
                ("admin", &[], "get /apis"),
                ("", &["admin"], "get /apis"),
                ("admin", &[], "watch /apis"),
                ("", &["admin"], "watch /apis"),
                ("prefixed", &[], "get /apis/v1"),
                ("", &["prefixed"], "get /apis/v1"),
                ("prefixed", &[], "get /apis/v1/foobar"),
                ("", &["prefixed"], "get /apis/v1/foorbar"),
            ],
            &[
                ("foo", &[], "watch /apis"),
                ("", &["bar"], "watch /apis"),
                ("foo", &[], "get /api/v1"),
                ("", &["bar"], "get /api/v1"),
                ("admin", &[], "get /api/v1"),
                ("", &["admin"], "get /api/v1"),
                ("prefixed", &[], "get /api/v1"),
                ("", &["prefixed"], "get /api/v1"),
            ],
        ),
        (
            vec![(both("* * pods", "*"), "ns1", admins)],
            &[("admin", &[""], "get - pods ns1 -")],
            &[("admin", &[""], "get - pods/status ns1 -")],
        ),
        (
            vec![(both("* * pods/status", "*"), "ns1", admins)],
            &[("admin", &[""], "get - pods/status ns1 -")],
            &[("admin", &[""], "get - pods ns1 -")],
        ),
    ];
    let mut played = 0;
    for (bound, pass, fail) in cases {
        let mut index = Index::default();
        for (number, (rule, at, subjects)) in bound.into_iter().enumerate() {
            let name = format!("r{number}");
            index.set_role(("", &name), Some(vec![rule]));
            bind(&mut index, (at, &name), ("ClusterRole", &name), subjects);
        }
        for (asked, expected) in pass.iter().map(|one| (one, true)).chain(fail.iter().map(|one| (one, false)))
        {
            let (name, groups, line) = asked;
            assert_eq!(index.is_granted(&user(name, groups), &wanted(line)), expected, "{asked:?}");
            played += 1;
        }
    }
    assert_eq!(played, 31);
}

#[test]
fn test_rule_matches() {
    let product = |verbs: &[&str], groups: &[&str], resources: &[&str]| -> Vec<String> {
        let mut all = Vec::new();
        for verb in verbs {
            for group in groups {
                all.extend(resources.iter().map(|resource| format!("{verb} {group} {resource} - -")));
            }
        }
        all
    };
    let (verbs, groups) = (["verb1", "verb2"], ["group1", "group2"]);
    let plain = product(&verbs, &groups, &["resource1", "resource2"]);
    let mut nested = Vec::new();
    for verb in verbs {
        for rest in [
            "group1 resource1/subresource1",
            "group2 resource1/subresource2",
            "group1 resource2/subresource1",
            "group2 resource2/subresource1",
        ] {
            nested.push(format!("{verb} {rest} - -"));
        }
    }
    let paths = ["/foo", "/foo/bar", "/foo/baz", "/foo/bar/one", "/foo/baz/one"];
    let of = |verb: &str, prefix: &str| paths.map(|path| format!("{verb} {prefix}{path}")).to_vec();
    let each_verb = [of("verb1", ""), of("verb2", "")].concat();
    let others = [of("verb1", ""), paths.map(|path| format!("verb1 /not{}", &path[1..])).to_vec()].concat();
    let cases = [
        (rule("* group1 resource1"), &plain, product(&verbs, &["group1"], &["resource1"])),
        (rule("verb1 * resource1"), &plain, product(&["verb1"], &groups, &["resource1"])),
        (rule("verb1 group1 *"), &plain, product(&["verb1"], &["group1"], &["resource1", "resource2"])),
        (rule("verb1,verb2 group1,group2 resource1,resource2"), &plain, plain.clone()),
        (
            rule("* * resource1/subresource1"),
            &nested,
            product(&verbs, &["group1"], &["resource1/subresource1"]),
        ),
        (rule("verb1 *"), &each_verb, of("verb1", "")),
        (rule("verb1 /foo/*"), &others, of("verb1", "")[1..].to_vec()),
        (
            rule("* /foo,/foo/bar/one"),
            &each_verb,
            ["verb1 /foo", "verb1 /foo/bar/one", "verb2 /foo", "verb2 /foo/bar/one"]
                .map(str::to_owned)
                .to_vec(),
        ),
    ];
    let mut played = 0;
    for (rule, asked, allowed) in &cases {
        for line in *asked {
            assert_eq!(rule.allows(&wanted(line)), allowed.contains(line), "{} {line}", rule.describe());
            played += 1;
        }
    }
    assert_eq!(played, 70);
}

#[test]
fn test_default_rule_resolver() {
    let pods = "GET,WATCH v1 pods";
    let services = "GET,WATCH v1 services";
    let mut index = Index::default();
    index.set_role(("namespace1", "readthings"), Some(rules(&[pods, services])));
    index.set_role(("", "cluster-admin"), Some(rules(&["* * *"])));
    index.set_role(("", "write-nodes"), Some(rules(&["PUT,CREATE,UPDATE v1 nodes"])));
    bind(&mut index, ("namespace1", "b"), ("Role", "readthings"), &["User:foobar", "Group:group1"]);
    bind(&mut index, ("", "b"), ("ClusterRole", "cluster-admin"), &["User:admin", "Group:admin"]);
    let cases: [(&str, &[&str], &str, &[&str]); 4] = [
        ("foobar", &[], "namespace1", &[pods, services]),
        ("foobar", &[], "namespace2", &[]),
        ("foobar", &["admin"], "", &["* * *"]),
        ("", &[], "", &[]),
    ];
    for (name, groups, namespace, expected) in cases {
        let found = index.rules(&user(name, groups), namespace);
        assert_eq!(found, (rules(expected), Vec::new()), "{name} {groups:?} {namespace}");
    }
}

#[test]
fn test_applies_to() {
    let everybody: &[&str] = &["Group:system:authenticated", "Group:system:unauthenticated"];
    let robot = "system:serviceaccount:kube-system:default";
    let cases: [(&[&str], &str, &[&str], &str, bool); 9] = [
        (&["User:foobar"], "foobar", &[], "", true),
        (&["User:barfoo", "User:foobar"], "foobar", &[], "", true),
        (&["User:barfoo", "User:foobar"], "zimzam", &[], "", false),
        (&["User:barfoo", "Group:foobar"], "zimzam", &["foobar"], "", true),
        (&["User:barfoo", "Group:foobar"], "zimzam", &["foobar"], "namespace1", true),
        (&["User:barfoo", "Group:foobar", "ServiceAccount:default/kube-system"], robot, &[], "default", true),
        (&["User:*"], "foobar", &[], "default", false),
        (everybody, "foobar", &["system:authenticated"], "default", true),
        (everybody, "system:anonymous", &["system:unauthenticated"], "default", true),
    ];
    for (subjects, name, groups, namespace, applies) in cases {
        let mut index = Index::default();
        index.set_role(("", "any"), Some(rules(&["* * *"])));
        bind(&mut index, (namespace, "b"), ("ClusterRole", "any"), subjects);
        let target = Target::Resource { group: "", resource: "r", subresource: "", namespace, name: "" };
        let granted = index.is_granted(&user(name, groups), &Attributes::new(Verb::Get, target));
        assert_eq!(granted, applies, "{subjects:?} {name}");
    }
}

/// `TestCovers…`: what is held, what is wanted, and what is missing.
#[test]
fn test_covers() {
    let each = |group: &str| {
        [
            format!("delete {group} deployments"),
            format!("delete {group} builds"),
            format!("update {group} builds,deployments"),
        ]
    };
    let (single, wide) =
        ([each("group1"), each("group2")].concat(), "delete,update group1,group2 builds,deployments");
    let single: Vec<&str> = single.iter().map(String::as_str).collect();
    let all_verbs = "get,list,watch,create,update,delete,exec v1 roles";
    let cases: [(&str, &[&str], &[&str], &[&str]); 21] = [
        ("ExactMatch", &["get v1 builds"], &["get v1 builds"], &[]),
        ("SubresourceWildcard", &["get v1 */scale"], &["get v1 foo/scale"], &[]),
        (
            "MultipleRulesCoveringSingleRule",
            &["delete v1 deployments", "delete v1 builds", "update v1 builds,deployments"],
            &["delete,update v1 builds,deployments"],
            &[],
        ),
        ("MultipleAPIGroupsCoveringSingleRule", &single, &[wide], &[]),
        ("SingleAPIGroupsCoveringMultiple", &[wide], &single, &[]),
        (
            "MultipleRulesMissingSingleVerbResourceCombination",
            &["delete,update v1 builds,deployments", "delete v1 pods"],
            &["delete,update v1 builds,deployments,pods"],
            &["update v1 pods"],
        ),
        ("APIGroupStarCoveringMultiple", &["get * roles"], &["get group1,group2 roles"], &[]),
        (
            "EnumerationNotCoveringAPIGroupStar",
            &["get dummy-group roles"],
            &["get * roles"],
            &["get * roles"],
        ),
        ("APIGroupStarCoveringStar", &["get * roles"], &["get * roles"], &[]),
        ("VerbStarCoveringMultiple", &["* v1 roles"], &["watch,list v1 roles"], &[]),
        ("EnumerationNotCoveringVerbStar", &[all_verbs], &["* v1 roles"], &["* v1 roles"]),
        ("VerbStarCoveringStar", &["* v1 roles"], &["* v1 roles"], &[]),
        ("ResourceStarCoveringMultiple", &["get v1 *"], &["get v1 resourcegroup:deployments"], &[]),
        (
            "EnumerationNotCoveringResourceStar",
            &["get v1 roles,resourcegroup:deployments"],
            &["get v1 *"],
            &["get v1 *"],
        ),
        ("ResourceStarCoveringStar", &["get v1 *"], &["get v1 *"], &[]),
        ("ResourceNameEmptyCoveringMultiple", &["get v1 pods"], &["get v1 pods foo,bar"], &[]),
        (
            "EnumerationNotCoveringResourceNameEmpty",
            &["get v1 pods foo,bar"],
            &["get v1 pods"],
            &["get v1 pods"],
        ),
        ("NonResourceURLs", &["* /apis"], &["* /apis"], &[]),
        ("NonResourceURLsStar", &["* *"], &["* /apis,/apis/v1,/"], &[]),
        (
            "NonResourceURLsStarAfterPrefixDoesntCover",
            &["* /apis/*"],
            &["get /apis,/apis/v1"],
            &["get /apis"],
        ),
        ("NonResourceURLsStarAfterPrefix", &["* /apis/*"], &["get /apis/v1/foo,/apis/v1"], &[]),
    ];
    for (name, held, wanted, missing) in cases {
        assert_eq!(uncovered(&rules(held), &rules(wanted)), rules(missing), "{name}");
    }
    let more = [both("get v1 builds", "/apis")];
    assert_eq!(uncovered(&more, &more), [], "NonResourceURLsWithOtherFields");
    let missing = uncovered(&rules(&["get v1 builds"]), &more);
    assert_eq!(missing, rules(&["get /apis"]), "NonResourceURLsWithOtherFieldsFailure");
}

#[test]
fn test_non_resource_url_covers() {
    let cases = [
        ("*", "", true),
        ("*", "/", true),
        ("*", "/api", true),
        ("/*", "", false),
        ("/*", "/", true),
        ("/*", "/foo", true),
        ("/api", "/api", true),
        ("/apis", "/api", false),
        ("/api/v1", "/api", false),
        ("/api/v1", "/api/v1", true),
        ("/api/*", "/api/v1", true),
        ("/api/*", "/api", false),
        ("/api/*/*", "/api/v1", false),
        ("/*/v1/*", "/api/v1", false),
    ];
    for (held, wanted, covers) in cases {
        assert_eq!(url_includes(held, wanted), covers, "{held} {wanted}");
    }
}
