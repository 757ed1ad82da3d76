//! Which requests a rule matches.

use std::{fmt, sync::Arc};

use k1s_object::gvk::GroupVersionResource;
use serde_json::Value;

use crate::resource::Resource;

/// What a request does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    pub(crate) const ALL: [Operation; 4] =
        [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What rules look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) operation: Operation,
    pub(crate) resource: &'a Arc<Resource>,
    pub(crate) subresource: &'a str,
}

/// The scope of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Cluster,
    Namespaced,
    /// Unknown ones match nothing.
    None,
}

/// A rule of a webhook or a policy.
#[derive(Debug)]
pub(crate) struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource.
    resources: Vec<(String, String)>,
    scope: Scope,
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|one| one == "*" || one == wanted)
}

impl Rule {
    /// Reads a `RuleWithOperations`.
    pub(crate) fn new(rule: &Value) -> Rule {
        let texts = |field: &str| -> Vec<String> {
            let list = rule[field].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let split = |resource: String| match resource.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), subresource.to_owned()),
            None => (resource, String::new()),
        };
        Rule {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources").into_iter().map(split).collect(),
            scope: match rule["scope"].as_str() {
                None | Some("*") => Scope::All,
                Some("Cluster") => Scope::Cluster,
                Some("Namespaced") => Scope::Namespaced,
                Some(_) => Scope::None,
            },
        }
    }

    /// Whether it matches a request, if that were for this version of the resource.
    pub(crate) fn matches(&self, request: &Request<'_>, gvr: &GroupVersionResource<&str>) -> bool {
        let scope = match self.scope {
            Scope::All => true,
            // Namespaces are not in a namespace.
            Scope::Cluster => !request.resource.namespaced,
            Scope::Namespaced => request.resource.namespaced,
            Scope::None => false,
        };
        let is = |pattern: &str, text: &str| pattern == "*" || pattern == text;
        scope
            && has(&self.operations, request.operation.name())
            && has(&self.groups, gvr.group)
            && has(&self.versions, gvr.version)
            && self
                .resources
                .iter()
                .any(|(resource, sub)| is(resource, gvr.resource) && is(sub, request.subresource))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::Catalog;

    /// The cases of upstream's tests of rules.
    #[test]
    fn rules_match_as_in_kubernetes() {
        let catalog = Catalog::new();
        let pods = catalog.find(GroupVersionResource::new("", "v1", "pods")).unwrap();
        let namespaces = catalog.find(GroupVersionResource::new("", "v1", "namespaces")).unwrap();
        let nodes = catalog.find(GroupVersionResource::new("", "v1", "nodes")).unwrap();
        let deployments = catalog.find(GroupVersionResource::new("apps", "v1", "deployments")).unwrap();
        let check = |change: Value, resource: &Arc<Resource>, subresource: &str, operation: Operation| {
            let mut rule =
                json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]});
            for (key, value) in change.as_object().unwrap() {
                rule[key] = value.clone();
            }
            let request = Request { operation, resource, subresource };
            Rule::new(&rule).matches(&request, &resource.gvr())
        };
        use Operation::{Connect, Create, Delete, Update};
        for (change, resource, subresource, operation, expected) in [
            (json!({}), &pods, "", Create, true),
            (json!({"apiGroups": [""]}), &pods, "", Create, true),
            (json!({"apiGroups": ["apps", ""]}), &pods, "", Create, true),
            (json!({"apiGroups": ["apps"]}), &pods, "", Create, false),
            (json!({"apiVersions": ["v1"]}), &pods, "", Create, true),
            (json!({"apiVersions": ["v1beta1"]}), &pods, "", Create, false),
            (json!({"operations": ["CREATE"]}), &pods, "", Create, true),
            (json!({"operations": ["UPDATE", "CREATE"]}), &pods, "", Create, true),
            (json!({"operations": ["UPDATE", "DELETE", "CONNECT"]}), &pods, "", Create, false),
            (json!({"operations": ["CONNECT"]}), &pods, "exec", Connect, true),
            (json!({"operations": ["DELETE"]}), &pods, "", Delete, true),
            (json!({"resources": ["*"]}), &pods, "", Update, true),
            (json!({"resources": ["*"]}), &pods, "status", Update, false),
            (json!({"resources": ["*/status"]}), &pods, "status", Update, true),
            (json!({"resources": ["*/status"]}), &pods, "", Update, false),
            (json!({"resources": ["pods"]}), &pods, "", Update, true),
            (json!({"resources": ["pods"]}), &pods, "status", Update, false),
            (json!({"resources": ["pods/*"]}), &pods, "", Update, true),
            (json!({"resources": ["pods/*"]}), &pods, "status", Update, true),
            (json!({"resources": ["pods/status"]}), &pods, "", Update, false),
            (json!({"resources": ["*/scale"]}), &deployments, "scale", Update, true),
            (json!({"resources": ["pods/scale"]}), &deployments, "scale", Update, false),
            (json!({"scope": "*"}), &pods, "", Update, true),
            (json!({"scope": "Namespaced"}), &pods, "", Update, true),
            (json!({"scope": "Cluster"}), &pods, "", Update, false),
            (json!({"scope": "Namespaced"}), &nodes, "", Update, false),
            (json!({"scope": "Cluster"}), &nodes, "", Update, true),
            (json!({"scope": "Namespaced"}), &namespaces, "", Update, false),
            (json!({"scope": "Cluster"}), &namespaces, "", Update, true),
            (json!({"scope": "Galaxy"}), &pods, "", Update, false),
            (json!({"resources": []}), &pods, "", Update, false),
        ] {
            let found = check(change.clone(), resource, subresource, operation);
            assert_eq!(found, expected, "{change} {} {subresource} {operation}", resource.plural);
        }
    }
}
