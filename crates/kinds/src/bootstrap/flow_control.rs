//! The flow schemas and priority levels of a fresh cluster.

use serde_json::{Map, Value, json};

const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";

fn metadata(name: &str) -> Value {
    json!({"name": name, "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}})
}

fn level(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": metadata(name),
        "spec": spec,
    })
}

fn queued(name: &str, shares: i64, lendable: i64, queues: i64, hand: i64) -> Value {
    let queuing = json!({"queues": queues, "handSize": hand, "queueLengthLimit": 50});
    let limited = json!({
        "nominalConcurrencyShares": shares,
        "limitResponse": {"type": "Queue", "queuing": queuing},
        "lendablePercent": lendable,
    });
    level(name, &json!({"type": "Limited", "limited": limited}))
}

/// The mandatory priority level of this name, whose spec is fixed.
pub fn mandatory_priority_level(name: &str) -> Option<Value> {
    let spec = match name {
        "exempt" => {
            json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}})
        }
        "catch-all" => json!({"type": "Limited", "limited": {
            "nominalConcurrencyShares": 5,
            "limitResponse": {"type": "Reject"},
            "lendablePercent": 0,
        }}),
        _ => return None,
    };
    Some(level(name, &spec))
}

/// The priority levels of a fresh cluster.
pub fn priority_levels() -> Vec<Value> {
    let mut levels: Vec<Value> =
        ["catch-all", "exempt"].into_iter().filter_map(mandatory_priority_level).collect();
    levels.extend([
        queued("system", 30, 33, 64, 6),
        queued("node-high", 40, 25, 64, 6),
        queued("leader-election", 10, 0, 16, 4),
        queued("workload-high", 40, 50, 128, 6),
        queued("workload-low", 100, 90, 128, 6),
        queued("global-default", 20, 50, 128, 6),
    ]);
    levels
}

fn schema(name: &str, level: &str, precedence: i64, method: &str, rule: Value) -> Value {
    let mut spec = Map::new();
    spec.insert("priorityLevelConfiguration".into(), json!({"name": level}));
    spec.insert("matchingPrecedence".into(), precedence.into());
    if !method.is_empty() {
        spec.insert("distinguisherMethod".into(), json!({"type": method}));
    }
    spec.insert("rules".into(), Value::Array(vec![rule]));
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": metadata(name),
        "spec": spec,
    })
}

fn groups(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!({"kind": "Group", "group": {"name": name}})).collect()
}

fn users(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!({"kind": "User", "user": {"name": name}})).collect()
}

fn system_accounts() -> Vec<Value> {
    vec![json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}})]
}

fn resources(verbs: &[&str], group: &str, resources: &[&str], cluster: bool) -> Value {
    let mut rule = json!({"verbs": verbs, "apiGroups": [group], "resources": resources});
    if let Some(rule) = rule.as_object_mut() {
        if cluster {
            rule.insert("clusterScope".into(), true.into());
        }
        rule.insert("namespaces".into(), json!(["*"]));
    }
    rule
}

fn everything(subjects: &[Value]) -> Value {
    json!({
        "subjects": subjects,
        "resourceRules": [resources(&["*"], "*", &["*"], true)],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    })
}

/// The mandatory flow schema of this name, whose spec is fixed.
pub fn mandatory_flow_schema(name: &str) -> Option<Value> {
    Some(match name {
        "exempt" => schema(name, "exempt", 1, "", everything(&groups(&["system:masters"]))),
        "catch-all" => {
            let all = groups(&[UNAUTHENTICATED, AUTHENTICATED]);
            schema(name, "catch-all", 10_000, "ByUser", everything(&all))
        }
        _ => return None,
    })
}

/// The flow schemas of a fresh cluster.
pub fn flow_schemas() -> Vec<Value> {
    let mut schemas: Vec<Value> =
        ["exempt", "catch-all"].into_iter().filter_map(mandatory_flow_schema).collect();
    let all = groups(&[UNAUTHENTICATED, AUTHENTICATED]);
    let manager = users(&["system:kube-controller-manager"]);
    let scheduler = users(&["system:kube-scheduler"]);
    let nodes = groups(&["system:nodes"]);
    let accounts = groups(&["system:serviceaccounts"]);
    let leases = "coordination.k8s.io";
    let elections = [manager.clone(), scheduler.clone(), system_accounts()].concat();
    schemas.extend([
        schema("system-nodes", "system", 500, "ByUser", everything(&nodes)),
        schema(
            "system-node-high",
            "node-high",
            400,
            "ByUser",
            json!({"subjects": nodes, "resourceRules": [
                resources(&["*"], "", &["nodes", "nodes/status"], true),
                resources(&["*"], leases, &["leases"], false),
            ]}),
        ),
        schema(
            "probes",
            "exempt",
            2,
            "",
            json!({"subjects": all, "nonResourceRules": [
                {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]},
            ]}),
        ),
        schema(
            "system-leader-election",
            "leader-election",
            100,
            "ByUser",
            json!({"subjects": elections, "resourceRules": [
                resources(&["get", "create", "update"], leases, &["leases"], false),
            ]}),
        ),
        schema("kube-controller-manager", "workload-high", 800, "ByNamespace", everything(&manager)),
        schema("kube-scheduler", "workload-high", 800, "ByNamespace", everything(&scheduler)),
        schema(
            "kube-system-service-accounts",
            "workload-high",
            900,
            "ByNamespace",
            everything(&system_accounts()),
        ),
        schema("service-accounts", "workload-low", 9000, "ByUser", everything(&accounts)),
        schema("global-default", "global-default", 9900, "ByUser", everything(&all)),
    ]);
    schemas
}
