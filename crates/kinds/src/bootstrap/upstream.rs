//! Kubernetes' own tests of the initial policy, under their names, with what they expect in `upstream.txt`. Those about what
//! `edit` and `view` cover, and about `*`, are with the server's aggregation.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{cluster_role_bindings, cluster_roles, role_bindings, roles};

const CONTROLLER: &str = "system:controller:";
const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().map(|one| one.as_str().unwrap())
}

fn joined(list: &Value) -> String {
    texts(list).map(|one| if one.is_empty() { "core" } else { one }).collect::<Vec<_>>().join(",")
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// The keys of labels with the value `true`, without their domain.
fn marks(labels: &Value, word: &str) -> String {
    let labels = labels.as_object().unwrap().iter().filter(|(key, _)| *key != BOOTSTRAPPING);
    labels
        .map(|(key, value)| {
            assert_eq!(value, "true");
            format!(" {word} {}", key.strip_prefix("rbac.authorization.k8s.io/").unwrap())
        })
        .collect()
}

fn rule_line(rule: &Value) -> String {
    let fields = ["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"];
    assert!(rule.as_object().unwrap().keys().all(|key| fields.contains(&key.as_str())), "{rule}");
    let lists: Vec<String> =
        fields.map(|field| joined(&rule[field])).into_iter().filter(|one| !one.is_empty()).collect();
    lists.join(" ")
}

/// An object in the form of `upstream.txt`.
fn lines(object: &Value) -> (String, Vec<String>) {
    let metadata = &object["metadata"];
    assert_eq!(object["apiVersion"], "rbac.authorization.k8s.io/v1");
    assert_eq!(metadata["labels"][BOOTSTRAPPING], "rbac-defaults");
    assert_eq!(
        metadata["annotations"],
        serde_json::json!({"rbac.authorization.kubernetes.io/autoupdate": "true"})
    );
    let namespace = metadata["namespace"].as_str().map(|one| format!("{one}/")).unwrap_or_default();
    let mut head = format!("{} {namespace}{}", object["kind"].as_str().unwrap(), name(object));
    head += &marks(&metadata["labels"], "label");
    for selector in object["aggregationRule"]["clusterRoleSelectors"].as_array().into_iter().flatten() {
        head += &marks(&selector["matchLabels"], "selects");
    }
    let mut lines: Vec<String> = object["rules"].as_array().into_iter().flatten().map(rule_line).collect();
    if let Some(role) = object.get("roleRef") {
        assert_eq!(role["apiGroup"], super::roles::GROUP);
        lines.push(format!("to {} {}", role["kind"].as_str().unwrap(), role["name"].as_str().unwrap()));
    }
    for subject in object["subjects"].as_array().into_iter().flatten() {
        let (kind, name) = (subject["kind"].as_str().unwrap(), subject["name"].as_str().unwrap());
        lines.push(if kind == "ServiceAccount" {
            format!("account {}/{name}", subject["namespace"].as_str().unwrap())
        } else {
            assert_eq!(subject["apiGroup"], super::roles::GROUP);
            format!("{} {name}", kind.to_lowercase())
        });
    }
    (head, lines)
}

/// Objects by their first line; whether a line is for alpha and beta features only, and the line.
type Objects = BTreeMap<String, Vec<(bool, String)>>;

/// A part of `upstream.txt`.
fn expected(part: &str) -> Objects {
    let text = include_str!("upstream.txt");
    let (_, text) = text.split_once(&format!("[{part}]\n")).unwrap();
    let mut objects = Objects::new();
    let mut last = String::new();
    for line in text.lines().take_while(|line| !line.starts_with('[')) {
        match line.split_at(2) {
            ("  ", rest) => objects.get_mut(&last).unwrap().push((false, rest.into())),
            ("+ ", rest) => objects.get_mut(&last).unwrap().push((true, rest.into())),
            _ => {
                last = line.to_owned();
                assert!(objects.insert(last.clone(), Vec::new()).is_none(), "{line} is twice");
            }
        }
    }
    objects
}

/// Compares objects with a part of `upstream.txt`, without the rules for alpha and beta features; how many there are.
fn check(part: &str, objects: &[Value]) -> usize {
    let found: BTreeMap<_, _> = objects.iter().map(lines).collect();
    assert_eq!(found.len(), objects.len(), "two have one name");
    let without = |lines: Vec<(bool, String)>| {
        lines.into_iter().filter(|(gated, _)| !gated).map(|(_, line)| line).collect()
    };
    let expected: BTreeMap<String, Vec<String>> =
        expected(part).into_iter().map(|(head, lines)| (head, without(lines))).collect();
    let wrong: Vec<_> = expected
        .keys()
        .chain(found.keys())
        .filter(|head| expected.get(*head) != found.get(*head))
        .map(|head| format!("{head}:\n  expected {:#?}\n  found {:#?}", expected.get(head), found.get(head)))
        .collect();
    assert!(wrong.is_empty(), "{} of {part}:\n{}", wrong.len(), wrong.join("\n"));
    found.len()
}

/// The roles or bindings of controllers, or the others.
fn of_controllers(objects: Vec<Value>, yes: bool) -> Vec<Value> {
    objects.into_iter().filter(|object| name(object).starts_with(CONTROLLER) == yes).collect()
}

#[test]
fn test_bootstrap_roles_and_bindings() {
    let counts = [
        check("cluster-roles", &of_controllers(cluster_roles(), false)),
        check("cluster-role-bindings", &of_controllers(cluster_role_bindings(), false)),
        check("controller-roles", &of_controllers(cluster_roles(), true)),
        check("controller-role-bindings", &of_controllers(cluster_role_bindings(), true)),
        check("namespace-roles", &roles()),
        check("namespace-role-bindings", &role_bindings()),
    ];
    assert_eq!(counts, [32, 13, 41, 41, 7, 7]);
    assert_eq!(counts.iter().sum::<usize>(), 141);
}

/// Does not hold: their groups, kinds and subresources do not exist here, and so nothing can be allowed about them.
#[test]
fn test_bootstrap_cluster_roles_with_feature_gates_enabled() {
    let found: BTreeMap<_, _> = cluster_roles().iter().map(lines).collect();
    let mut missing = Vec::new();
    for (head, lines) in expected("cluster-roles") {
        for (_, line) in lines.iter().filter(|(gated, _)| *gated) {
            assert!(!found[&head].contains(line), "{head} has {line}");
            missing.push(head.clone());
        }
    }
    assert_eq!(missing.len(), 11);
    missing.dedup();
    assert_eq!(missing.len(), 4, "{missing:?}");
}

/// `TestControllerRoleLabel`, and the bindings of `TestClusterRoleLabel`: no other labels.
#[test]
fn test_labels() {
    let only = serde_json::json!({BOOTSTRAPPING: "rbac-defaults"});
    for object in of_controllers(cluster_roles(), true).iter().chain(&cluster_role_bindings()) {
        assert_eq!(object["metadata"]["labels"], only, "{}", name(object));
    }
}

/// `TestNodeRuleVerbsConsistency`, `TestClusterRoleVerbsConsistency`, `TestNamespaceRoleVerbsConsistency` and
/// `TestControllerRoleVerbsConsistency`: what may be listed may be watched.
#[test]
fn test_verbs_consistency() {
    let mut exceptions = Vec::new();
    for object in [cluster_roles(), roles()].concat() {
        for rule in object["rules"].as_array().into_iter().flatten() {
            let has = |verb| texts(&rule["verbs"]).any(|one| one == verb);
            if has("list") && !has("watch") {
                exceptions.push(name(&object).to_owned());
            }
        }
    }
    assert_eq!(exceptions, ["system:controller:storage-version-migrator-controller"]);
}

/// `TestPodGroupProtectionControllerRBAC` and `TestJobControllerSchedulingRules`, each without its features. With them, which
/// are the other case of each, they do not hold: the features do not exist here.
#[test]
fn test_controllers_without_features() {
    for object in [cluster_roles(), cluster_role_bindings()].concat() {
        assert_ne!(name(&object), "system:controller:podgroup-protection-controller");
        if name(&object) == "system:controller:job-controller" {
            let groups =
                object["rules"].as_array().into_iter().flatten().flat_map(|rule| texts(&rule["apiGroups"]));
            assert!(!groups.into_iter().any(|group| group == "scheduling.k8s.io"));
        }
    }
}
