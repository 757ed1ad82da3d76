//! The cases of Kubernetes' own tests of aggregated roles, and of the initial ones, under the names of these tests.

#![allow(clippy::type_complexity, reason = "tables")]

use serde_json::{Value, json};

use super::aggregate_new;
use crate::rbac::{Rule, uncovered};

/// `verbs groups resources`, each with commas; `core` is the core group.
fn rule(line: &str) -> Rule {
    let list = |word: &str| word.split(',').map(|one| if one == "core" { "" } else { one }.into()).collect();
    let words: Vec<&str> = line.split(' ').collect();
    let [verbs, groups, resources] = words.as_slice() else { panic!("{line}") };
    Rule { verbs: list(verbs), api_groups: list(groups), resources: list(resources), ..Rule::default() }
}

fn rules(lines: &[&str]) -> Vec<Rule> {
    lines.iter().map(|line| rule(line)).collect()
}

/// `TestSyncClusterRole`: roles, what one selects of them, the rules that it has, and those that it gets.
#[test]
fn test_sync_cluster_role() {
    let (hammer, chisel, saw) = (
        &["hammer core nails", "hammer core wedges"][..],
        &["chisel core mortises"][..],
        &["saw core boards"][..],
    );
    let json_rules = |lines: &[&str]| -> Vec<Value> { rules(lines).iter().map(Rule::to_json).collect() };
    type Role<'a> = (&'a str, &'a str, &'a [&'a str]);
    let hammered: &[Role<'_>] = &[("hammer", "bar", hammer)];
    let three = [("hammer", "bar", hammer), ("chisel", "bar", chisel), ("saw", "not-bar", saw)];
    let twice = [
        ("hammer", "bar", hammer),
        ("chisel", "bar", chisel),
        ("saw", "bar", saw),
        ("other-saw", "not-bar", saw),
    ];
    let cases: [(&str, &[Role<'_>], &[&str], &[&str], Vec<&str>); 6] = [
        ("remove dead rules", hammered, &["bar"], saw, hammer.to_vec()),
        ("strip rules", &[("hammer", "not-bar", hammer)], &["bar"], hammer, vec![]),
        ("select properly and put in order", &three, &["bar"], &[], [chisel, hammer].concat()),
        (
            "select properly with multiple selectors",
            &three,
            &["bar", "not-bar"],
            &[],
            [chisel, hammer, saw].concat(),
        ),
        (
            "select properly remove duplicates",
            &twice,
            &["bar", "not-bar"],
            &[],
            [chisel, hammer, saw].concat(),
        ),
        ("no diff skip", hammered, &["bar"], hammer, hammer.to_vec()),
    ];
    for (name, roles, selected, before, after) in cases {
        let role = |(name, foo, lines): &Role<'_>| json!({"metadata": {"name": name, "labels": {"foo": foo}}, "rules": json_rules(lines)});
        let mut all: Vec<Value> = roles.iter().map(role).collect();
        let selectors: Vec<Value> = selected.iter().map(|foo| json!({"matchLabels": {"foo": foo}})).collect();
        all.push(json!({"metadata": {"name": "combined"}, "rules": json_rules(before),
            "aggregationRule": {"clusterRoleSelectors": selectors}}));
        aggregate_new(&mut all, "2026-01-01T00:00:00Z");
        let combined = all.pop().unwrap();
        let found = combined["rules"].as_array().cloned().unwrap_or_default();
        assert_eq!(found, json_rules(&after), "{name}");
        assert_eq!(
            combined["metadata"]["managedFields"].is_null(),
            before == after || after.is_empty(),
            "{name}"
        );
    }
}

/// The rules of an aggregated role of a new cluster.
fn initial(name: &str) -> Vec<Rule> {
    let mut roles = k1s_kinds::bootstrap::cluster_roles();
    aggregate_new(&mut roles, "2026-01-01T00:00:00Z");
    let role = roles.iter().find(|role| role["metadata"]["name"] == name).unwrap();
    Rule::list(&role["rules"])
}

/// `TestEditViewRelationship`, and the former `TestCovers` and `TestAdminEditRelationship`, of the initial policy.
#[test]
fn test_relationships_of_initial_roles() {
    let (admin, edit, view) = (initial("admin"), initial("edit"), initial("view"));
    for (wide, narrow) in [(&admin, &edit), (&admin, &view), (&edit, &view)] {
        assert_eq!(uncovered(wide, narrow), []);
    }
    let write = "create,delete,deletecollection,get,list,patch,update,watch rbac.authorization.k8s.io";
    let more = rules(&[
        "create authorization.k8s.io localsubjectaccessreviews",
        &format!("{write} rolebindings"),
        &format!("{write} roles"),
    ]);
    assert!(more.iter().all(|rule| !uncovered(&edit, std::slice::from_ref(rule)).is_empty()));
    let with_more = [edit.clone(), more].concat();
    assert_eq!(uncovered(&admin, &with_more), []);
    assert_eq!(uncovered(&with_more, &admin), [], "admin may do more than is known");
    // What edit may read and view may not: it would let a viewer become somebody else. Beside that, leases.
    let reads = |rule: &Rule| Rule {
        verbs: rule
            .verbs
            .iter()
            .filter(|verb| matches!(&***verb, "get" | "list" | "watch"))
            .cloned()
            .collect(),
        ..rule.clone()
    };
    let read: Vec<Rule> = edit.iter().map(reads).filter(|rule| !rule.verbs.is_empty()).collect();
    let escalating: Vec<Rule> =
        ["pods/attach", "pods/proxy", "pods/exec", "pods/portforward", "secrets", "services/proxy"]
            .map(|resource| rule(&format!("get,list,watch core {resource}")))
            .to_vec();
    assert!(escalating.iter().all(|rule| !uncovered(&view, std::slice::from_ref(rule)).is_empty()));
    let rollback = rule("get,list,watch apps,extensions deployments/rollback");
    assert!(!uncovered(&view, &[rollback]).is_empty());
    let with_escalating = [view, escalating, rules(&["get,list,watch coordination.k8s.io leases"])].concat();
    assert_eq!(uncovered(&read, &with_escalating), []);
    assert_eq!(uncovered(&with_escalating, &read), [], "edit may read more than is known");
}

/// `TestClusterRoleLabel`.
#[test]
fn test_cluster_role_label() {
    for object in
        [k1s_kinds::bootstrap::cluster_roles(), k1s_kinds::bootstrap::cluster_role_bindings()].concat()
    {
        assert_eq!(object["metadata"]["labels"]["kubernetes.io/bootstrapping"], "rbac-defaults");
    }
}

/// `TestNoStarsForControllers`: few of them may do something with everything.
#[test]
fn test_no_stars_for_controllers() {
    let wide = [
        "namespace-controller",
        "generic-garbage-collector",
        "resourcequota-controller",
        "horizontal-pod-autoscaler",
        "clusterrole-aggregation-controller",
        "disruption-controller",
        "storage-version-migrator-controller",
    ];
    let mut seen = 0;
    for role in k1s_kinds::bootstrap::cluster_roles() {
        let name = role["metadata"]["name"].as_str().unwrap_or_default();
        let Some(controller) = name.strip_prefix("system:controller:") else { continue };
        seen += 1;
        for rule in Rule::list(&role["rules"]) {
            let lists = [&rule.verbs, &rule.api_groups, &rule.resources];
            let has_star = lists.iter().any(|list| list.iter().any(|one| &**one == "*"));
            assert!(!has_star || wide.contains(&controller), "{name}: {}", rule.describe());
        }
    }
    assert!(seen > 30, "{seen}");
}
