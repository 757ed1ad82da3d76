//! The cases of Kubernetes' own tests of the reconciliation of roles and bindings, under the names of these tests.
//!
//! The server adds what is missing, and never removes what is more: only `kubectl auth reconcile` does, in kubectl. So those
//! cases `without union` do not hold in which there is more than expected.

#![allow(clippy::type_complexity, reason = "tables")]

use serde_json::{Map, Value, json};

use super::policy::{Reconciled, reconciled};

/// A role: resources that may be read, labels, and annotations, each separated by spaces.
type Role = (&'static str, &'static str, &'static str);

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|word| !word.is_empty())
}

fn pairs(text: &str) -> Map<String, Value> {
    let pairs = words(text).map(|word| word.split_once('=').unwrap());
    pairs.map(|(key, value)| (key.to_owned(), value.into())).collect()
}

fn rules(resources: &str) -> Vec<Value> {
    let rule = |resource| json!({"verbs": ["get"], "apiGroups": [""], "resources": [resource]});
    words(resources).map(rule).collect()
}

fn role((resources, labels, annotations): Role) -> Value {
    let metadata = json!({"labels": pairs(labels), "annotations": pairs(annotations)});
    json!({"metadata": metadata, "rules": rules(resources)})
}

/// Fields that are empty mean the same as fields that are absent.
fn normal(object: &Value) -> Value {
    let Value::Object(map) = object else { return object.clone() };
    let fields = map.iter().map(|(key, value)| (key.clone(), normal(value)));
    fields.filter(|(_, value)| *value != json!({}) && *value != json!([])).collect()
}

/// Whether a case holds: what becomes of `actual`, `None` if nothing has to be done.
fn holds(expected: &Value, actual: &Value, outcome: Option<&Value>) -> bool {
    match (reconciled(actual, expected), outcome) {
        (Reconciled::Same, None) => true,
        (Reconciled::Changed(new), Some(outcome)) => normal(&new) == normal(outcome),
        (Reconciled::Replaced, Some(outcome)) => expected == outcome,
        _ => false,
    }
}

/// Whether it is a case about rules that are removed, and whether it holds.
fn tell(name: &'static str, holds: bool, missed: &mut Vec<&'static str>) {
    if !holds {
        assert!(name.ends_with("without union"), "{name}");
        missed.push(name);
    }
}

/// What is expected, what there is, and the outcome.
#[test]
fn test_compute_reconciled_role_rules() {
    let cases: [(&str, Role, Role, Option<Role>); 25] = [
        ("empty", ("", "", ""), ("", "", ""), None),
        ("match without union", ("a", "", ""), ("a", "", ""), None),
        ("match with union", ("a", "", ""), ("a", "", ""), None),
        ("different rules without union", ("a", "", ""), ("b", "", ""), Some(("a", "", ""))),
        ("different rules with union", ("a", "", ""), ("b", "", ""), Some(("b a", "", ""))),
        ("match labels without union", ("a", "1=a", ""), ("a", "1=a", ""), None),
        ("match labels with union", ("a", "1=a", ""), ("a", "1=a", ""), None),
        ("different labels without union", ("a", "1=a", ""), ("a", "2=b", ""), Some(("a", "1=a 2=b", ""))),
        ("different labels with union", ("a", "1=a", ""), ("a", "2=b", ""), Some(("a", "1=a 2=b", ""))),
        (
            "different labels and rules without union",
            ("a", "1=a", ""),
            ("b", "2=b", ""),
            Some(("a", "1=a 2=b", "")),
        ),
        (
            "different labels and rules with union",
            ("a", "1=a", ""),
            ("b", "2=b", ""),
            Some(("b a", "1=a 2=b", "")),
        ),
        (
            "conflicting labels and rules without union",
            ("a", "1=a", ""),
            ("b", "1=b", ""),
            Some(("a", "1=b", "")),
        ),
        (
            "conflicting labels and rules with union",
            ("a", "1=a", ""),
            ("b", "1=b", ""),
            Some(("b a", "1=b", "")),
        ),
        ("match annotations without union", ("a", "", "1=a"), ("a", "", "1=a"), None),
        ("match annotations with union", ("a", "", "1=a"), ("a", "", "1=a"), None),
        (
            "different annotations without union",
            ("a", "", "1=a"),
            ("a", "", "2=b"),
            Some(("a", "", "1=a 2=b")),
        ),
        ("different annotations with union", ("a", "", "1=a"), ("a", "", "2=b"), Some(("a", "", "1=a 2=b"))),
        (
            "different annotations and rules without union",
            ("a", "", "1=a"),
            ("b", "", "2=b"),
            Some(("a", "", "1=a 2=b")),
        ),
        (
            "different annotations and rules with union",
            ("a", "", "1=a"),
            ("b", "", "2=b"),
            Some(("b a", "", "1=a 2=b")),
        ),
        (
            "conflicting annotations and rules without union",
            ("a", "", "1=a"),
            ("b", "", "1=b"),
            Some(("a", "", "1=b")),
        ),
        (
            "conflicting annotations and rules with union",
            ("a", "", "1=a"),
            ("b", "", "1=b"),
            Some(("b a", "", "1=b")),
        ),
        (
            "conflicting labels/annotations and rules without union",
            ("a", "3=d", "1=a"),
            ("b", "4=e", "1=b"),
            Some(("a", "3=d 4=e", "1=b")),
        ),
        (
            "conflicting labels/annotations and rules with union",
            ("a", "3=d", "1=a"),
            ("b", "4=e", "1=b"),
            Some(("b a", "3=d 4=e", "1=b")),
        ),
        (
            "complex labels/annotations and rules without union",
            ("pods nodes secrets", "env=prod color=blue", "description=fancy system=true"),
            ("nodes images projects", "color=red team=pm", "system=false owner=admin vip=yes"),
            Some((
                "pods nodes secrets",
                "env=prod color=red team=pm",
                "description=fancy system=false owner=admin vip=yes",
            )),
        ),
        (
            "complex labels/annotations and rules with union",
            (
                "pods nodes secrets",
                "env=prod color=blue manager=randy",
                "description=fancy system=true up=true",
            ),
            ("nodes images projects", "color=red team=pm", "system=false owner=admin vip=yes rate=down"),
            Some((
                "nodes images projects pods secrets",
                "env=prod manager=randy color=red team=pm",
                "description=fancy system=false owner=admin vip=yes rate=down up=true",
            )),
        ),
    ];
    let mut missed = Vec::new();
    for (name, expected, actual, outcome) in cases {
        let outcome = outcome.map(role);
        tell(name, holds(&role(expected), &role(actual), outcome.as_ref()), &mut missed);
    }
    assert_eq!(missed.len(), 7, "{missed:?}");
}

/// Selectors that an aggregated role has; `None` if it is none.
type Selects = Option<&'static str>;

fn aggregated(selects: Selects, resources: &str) -> Value {
    let mut role = json!({"metadata": {}, "rules": rules(resources)});
    if let Some(selects) = selects {
        let selectors: Vec<Value> = words(selects).map(|one| json!({"matchLabels": pairs(one)})).collect();
        role["aggregationRule"] = json!({ "clusterRoleSelectors": selectors });
    }
    role
}

#[test]
fn test_compute_reconciled_role_aggregation_rules() {
    const THREE: &str = "pods nodes secrets";
    type Aggregated = (Selects, &'static str);
    let cases: [(&str, Aggregated, Aggregated, Option<Aggregated>); 8] = [
        ("empty", (Some(""), ""), (None, ""), None),
        ("empty-2", (Some(""), ""), (Some(""), ""), None),
        ("match without union", (Some("foo=bar"), ""), (Some("foo=bar"), ""), None),
        ("match with union", (Some("foo=bar"), ""), (Some("foo=bar"), ""), None),
        (
            "different rules without union",
            (Some("foo=bar"), ""),
            (Some("alpha=bravo"), ""),
            Some((Some("foo=bar"), "")),
        ),
        (
            "different rules with union",
            (Some("foo=bar"), ""),
            (Some("alpha=bravo"), ""),
            Some((Some("alpha=bravo foo=bar"), "")),
        ),
        ("unexpected aggregation", (None, THREE), (Some("alpha=bravo"), ""), Some((None, THREE))),
        (
            "unexpected aggregation with differing permissions",
            (None, THREE),
            (Some("alpha=bravo"), "deployments"),
            Some((None, "deployments pods nodes secrets")),
        ),
    ];
    let mut missed = Vec::new();
    for (name, expected, actual, outcome) in cases {
        let role = |(selects, resources)| aggregated(selects, resources);
        let outcome = outcome.map(role);
        tell(name, holds(&role(expected), &role(actual), outcome.as_ref()), &mut missed);
    }
    assert_eq!(missed, ["different rules without union"]);
}

fn binding(role: &str, subjects: &str) -> Value {
    let subjects: Vec<Value> = words(subjects).map(|name| json!({ "name": name })).collect();
    json!({"metadata": {}, "roleRef": {"name": role}, "subjects": subjects})
}

#[test]
fn test_compute_update() {
    let cases = [
        ("match without union", ("role", "a"), ("role", "a"), None),
        ("match with union", ("role", "a"), ("role", "a"), None),
        (
            "different roleref with identical subjects",
            ("role", "a"),
            ("differentRole", "a"),
            Some(("role", "a")),
        ),
        ("extra subjects without union", ("role", "a"), ("role", "a b"), Some(("role", "a"))),
        ("extra subjects with union", ("role", "a"), ("role", "a b"), None),
        ("missing subjects without union", ("role", "a c"), ("role", "a b"), Some(("role", "a c"))),
        ("missing subjects with union", ("role", "a c"), ("role", "a b"), Some(("role", "a b c"))),
    ];
    let mut missed = Vec::new();
    for (name, expected, actual, outcome) in cases {
        let binding = |(role, subjects)| binding(role, subjects);
        let outcome = outcome.map(binding);
        tell(name, holds(&binding(expected), &binding(actual), outcome.as_ref()), &mut missed);
    }
    assert_eq!(missed, ["extra subjects without union", "missing subjects without union"]);
}

/// Subjects, others, and those that only the first and only the second have. Here, each is what an update adds.
#[test]
fn test_diff_object_reference_lists() {
    for (name, one, other, only_one, only_other) in [
        ("empty", "", "", "", ""),
        ("matching, order-independent", "foo bar", "bar foo", "", ""),
        ("partial match", "foo bar", "foo baz", "bar", "baz"),
        ("missing", "foo", "bar", "foo", "bar"),
        ("remove duplicates", "foo foo", "bar bar", "foo", "bar"),
    ] {
        for (expected, actual, only) in [(one, other, only_one), (other, one, only_other)] {
            let outcome = binding("role", &format!("{actual} {only}"));
            let outcome = (!only.is_empty()).then_some(&outcome);
            assert!(holds(&binding("role", expected), &binding("role", actual), outcome), "{name}");
        }
    }
}
