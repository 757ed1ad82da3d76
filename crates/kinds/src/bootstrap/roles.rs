//! The roles of a fresh cluster and their bindings.

use serde_json::{Map, Value, json};

use crate::bootstrap::role_table::{
    CLUSTER_ROLES, CONTROLLER_ROLES, ROLES_IN_KUBE_PUBLIC, ROLES_IN_KUBE_SYSTEM,
};

pub(super) const GROUP: &str = "rbac.authorization.k8s.io";

/// Aggregated roles, and the labels of the roles they aggregate.
const AGGREGATES: [(&str, &[&str]); 3] =
    [("admin", &["admin"]), ("edit", &["edit", "admin"]), ("view", &["view", "edit"])];

fn aggregation_label(to: &str) -> String {
    format!("{GROUP}/aggregate-to-{to}")
}

fn metadata(name: &str, namespace: &str, aggregate_to: Option<&str>) -> Value {
    let mut labels = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
    if let (Some(to), Some(labels)) = (aggregate_to, labels.as_object_mut()) {
        labels.insert(aggregation_label(to), "true".into());
    }
    let mut metadata = Map::new();
    metadata.insert("name".into(), name.into());
    if !namespace.is_empty() {
        metadata.insert("namespace".into(), namespace.into());
    }
    metadata.insert("labels".into(), labels);
    metadata.insert("annotations".into(), json!({"rbac.authorization.kubernetes.io/autoupdate": "true"}));
    Value::Object(metadata)
}

fn list(words: &str) -> Value {
    words.split(',').map(|word| if word == "core" { "" } else { word }).collect()
}

/// One line of the table.
fn rule(line: &str) -> Value {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        [verbs, paths] => json!({"verbs": list(verbs), "nonResourceURLs": list(paths)}),
        [verbs, groups, resources] => {
            json!({"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)})
        }
        [verbs, groups, resources, names] => json!({
            "verbs": list(verbs),
            "apiGroups": list(groups),
            "resources": list(resources),
            "resourceNames": list(names),
        }),
        _ => Value::Null,
    }
}

fn role(kind: &str, metadata: &Value, lines: &[&str]) -> Value {
    let rules: Vec<Value> = lines.iter().map(|line| rule(line)).collect();
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules})
}

/// The cluster roles. `admin`, `edit` and `view` are aggregated: their rules are set by the aggregation
/// controller.
pub fn cluster_roles() -> Vec<Value> {
    let mut roles = Vec::new();
    for (name, labels) in AGGREGATES {
        let from: &str = labels.first().copied().unwrap_or_default();
        let selector = json!({"matchLabels": {aggregation_label(from): "true"}});
        let mut role = role("ClusterRole", &metadata(name, "", labels.get(1).copied()), &[]);
        if let Some(role) = role.as_object_mut() {
            role.shift_remove("rules");
            role.insert("aggregationRule".into(), json!({"clusterRoleSelectors": [selector]}));
        }
        roles.push(role);
    }
    for (name, lines) in CLUSTER_ROLES {
        let to = name.strip_prefix("system:aggregate-to-");
        roles.push(role("ClusterRole", &metadata(name, "", to), lines));
    }
    for (name, lines) in CONTROLLER_ROLES {
        let name = format!("system:controller:{name}");
        roles.push(role("ClusterRole", &metadata(&name, "", None), lines));
    }
    roles
}

/// The roles in the system's namespaces.
pub fn roles() -> Vec<Value> {
    [("kube-public", ROLES_IN_KUBE_PUBLIC), ("kube-system", ROLES_IN_KUBE_SYSTEM)]
        .into_iter()
        .flat_map(|(namespace, rows)| {
            rows.iter().map(move |(name, lines)| role("Role", &metadata(name, namespace, None), lines))
        })
        .collect()
}

/// `group=x`, `user=x` or `account=x` (of `kube-system`).
fn subject(text: &str) -> Value {
    match text.split_once('=') {
        Some(("group", name)) => json!({"kind": "Group", "apiGroup": GROUP, "name": name}),
        Some(("user", name)) => json!({"kind": "User", "apiGroup": GROUP, "name": name}),
        Some((_, name)) => json!({"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}),
        None => Value::Null,
    }
}

fn binding(namespace: &str, name: &str, role: &str, subjects: &[&str]) -> Value {
    let kind = if namespace.is_empty() { "ClusterRole" } else { "Role" };
    let mut out = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": format!("{kind}Binding"),
        "metadata": metadata(name, namespace, None),
    });
    if let Some(out) = out.as_object_mut() {
        if !subjects.is_empty() {
            out.insert("subjects".into(), subjects.iter().map(|text| subject(text)).collect());
        }
        out.insert("roleRef".into(), json!({"apiGroup": GROUP, "kind": kind, "name": role}));
    }
    out
}

/// The cluster role bindings of a fresh cluster.
pub fn cluster_role_bindings() -> Vec<Value> {
    const ALL: &str = "group=system:authenticated";
    const ACCOUNTS: &str = "group=system:serviceaccounts";
    let of_components: [(&str, &[&str]); 13] = [
        ("cluster-admin", &["group=system:masters"]),
        ("system:basic-user", &[ALL]),
        ("system:cluster-trust-bundle-discovery", &[ACCOUNTS]),
        ("system:discovery", &[ALL]),
        ("system:kube-controller-manager", &["user=system:kube-controller-manager"]),
        ("system:kube-dns", &["account=kube-dns"]),
        ("system:kube-scheduler", &["user=system:kube-scheduler"]),
        ("system:monitoring", &["group=system:monitoring"]),
        ("system:node", &[]),
        ("system:node-proxier", &["user=system:kube-proxy"]),
        ("system:public-info-viewer", &[ALL, "group=system:unauthenticated"]),
        ("system:service-account-issuer-discovery", &[ACCOUNTS]),
        ("system:volume-scheduler", &["user=system:kube-scheduler"]),
    ];
    let mut bindings: Vec<Value> =
        of_components.iter().map(|(name, subjects)| binding("", name, name, subjects)).collect();
    for (account, _) in CONTROLLER_ROLES {
        let name = format!("system:controller:{account}");
        bindings.push(binding("", &name, &name, &[format!("account={account}").as_str()]));
    }
    bindings
}

/// The role bindings in the system's namespaces.
pub fn role_bindings() -> Vec<Value> {
    const SYSTEM: &str = "kube-system";
    const MANAGER: &str = "user=system:kube-controller-manager";
    const SCHEDULER: &str = "user=system:kube-scheduler";
    let locking_manager = "system::leader-locking-kube-controller-manager";
    let locking_scheduler = "system::leader-locking-kube-scheduler";
    let signer = "system:controller:bootstrap-signer";
    let cloud = "system:controller:cloud-provider";
    let cleaner = "system:controller:token-cleaner";
    let reader = "extension-apiserver-authentication-reader";
    vec![
        binding("kube-public", signer, signer, &["account=bootstrap-signer"]),
        binding(SYSTEM, &format!("system::{reader}"), reader, &[MANAGER, SCHEDULER]),
        binding(
            SYSTEM,
            locking_manager,
            locking_manager,
            &[MANAGER, "account=kube-controller-manager", "account=leader-election-controller"],
        ),
        binding(SYSTEM, locking_scheduler, locking_scheduler, &[SCHEDULER, "account=kube-scheduler"]),
        binding(SYSTEM, signer, signer, &["account=bootstrap-signer"]),
        binding(SYSTEM, cloud, cloud, &["account=cloud-provider"]),
        binding(SYSTEM, cleaner, cleaner, &["account=token-cleaner"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'v>(objects: &'v [Value], name: &str) -> &'v Value {
        objects.iter().find(|object| object["metadata"]["name"] == name).unwrap()
    }

    #[test]
    fn the_admin_of_a_cluster_may_do_everything() {
        let roles = cluster_roles();
        assert_eq!(
            named(&roles, "cluster-admin")["rules"],
            json!([
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
                {"verbs": ["*"], "nonResourceURLs": ["*"]},
            ])
        );
        let bindings = cluster_role_bindings();
        assert_eq!(
            named(&bindings, "cluster-admin")["subjects"],
            json!([{"kind": "Group", "apiGroup": GROUP, "name": "system:masters"}])
        );
        assert_eq!((roles.len(), bindings.len()), (73, 54));
    }

    #[test]
    fn basic_roles_allow_discovery_and_self_reviews() {
        let roles = cluster_roles();
        assert_eq!(
            named(&roles, "system:basic-user")["rules"],
            json!([
                {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]},
                {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
            ])
        );
        assert_eq!(
            named(&roles, "system:public-info-viewer")["rules"][0]["nonResourceURLs"],
            json!(["/healthz", "/livez", "/readyz", "/version", "/version/"])
        );
    }

    #[test]
    fn view_adds_to_edit_and_edit_to_admin() {
        let roles = cluster_roles();
        let selector = |name: &str| {
            named(&roles, name)
                .pointer("/aggregationRule/clusterRoleSelectors/0/matchLabels")
                .cloned()
                .unwrap()
        };
        assert_eq!(selector("admin"), json!({"rbac.authorization.k8s.io/aggregate-to-admin": "true"}));
        assert_eq!(
            named(&roles, "edit")["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-admin"],
            "true"
        );
        assert_eq!(
            named(&roles, "system:aggregate-to-view")["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"],
            "true"
        );
    }
}
