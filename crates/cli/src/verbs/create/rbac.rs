//! `create role`, `clusterrole`, `rolebinding` and `clusterrolebinding`.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::{Value, json};

use super::{Common, generate::pairs};
use crate::{
    api::{Error, discovery::Resources},
    say,
};

#[derive(Debug, Clone, Args)]
struct RuleArgs {
    /// What may be done: get, list, watch, create, update, patch, delete, …; can be repeated.
    #[arg(long, value_name = "VERB", value_delimiter = ',')]
    verb: Vec<String>,
    /// With what: `pods`, `deployments.apps`, `pods/status`; can be repeated.
    #[arg(long, value_name = "RESOURCE", value_delimiter = ',')]
    resource: Vec<String>,
    /// Only with objects of this name; can be repeated.
    #[arg(long, value_name = "NAME")]
    resource_name: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub(super) struct RoleArgs {
    /// Its name.
    name: String,
    #[command(flatten)]
    rule: RuleArgs,
    #[command(flatten)]
    pub(super) common: Box<Common>,
}

#[derive(Debug, Clone, Args)]
pub(super) struct ClusterRoleArgs {
    /// Its name.
    name: String,
    #[command(flatten)]
    rule: RuleArgs,
    /// A path that is no resource: `/healthz`, `/logs/*`; can be repeated.
    #[arg(long = "non-resource-url", value_name = "PATH", value_delimiter = ',')]
    non_resource_urls: Vec<String>,
    /// The labels of the roles that this one consists of: `a=b,c=d`.
    #[arg(long, value_name = "LABELS", conflicts_with_all = ["verb", "resource", "resource_name", "non_resource_urls"])]
    aggregation_rule: Option<String>,
    #[command(flatten)]
    pub(super) common: Box<Common>,
}

#[derive(Debug, Clone, Args)]
struct SubjectArgs {
    /// A user; can be repeated.
    #[arg(long, value_name = "NAME")]
    user: Vec<String>,
    /// A group; can be repeated.
    #[arg(long, value_name = "NAME")]
    group: Vec<String>,
    /// A service account; can be repeated.
    #[arg(long, value_name = "NAMESPACE:NAME")]
    serviceaccount: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub(super) struct RoleBindingArgs {
    /// Its name.
    name: String,
    /// The role in all namespaces that is granted in this one.
    #[arg(long, value_name = "NAME")]
    clusterrole: Option<String>,
    /// The role in this namespace that is granted.
    #[arg(long, value_name = "NAME")]
    role: Option<String>,
    #[command(flatten)]
    subjects: SubjectArgs,
    #[command(flatten)]
    pub(super) common: Box<Common>,
}

#[derive(Debug, Clone, Args)]
pub(super) struct ClusterRoleBindingArgs {
    /// Its name.
    name: String,
    /// The role that is granted.
    #[arg(long, value_name = "NAME")]
    clusterrole: String,
    #[command(flatten)]
    subjects: SubjectArgs,
    #[command(flatten)]
    pub(super) common: Box<Common>,
}

fn rbac(kind: &str, name: &str, fields: Value) -> Value {
    let mut object =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}});
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    object
}

const VERBS: [&str; 14] = [
    "*",
    "get",
    "delete",
    "list",
    "create",
    "update",
    "patch",
    "watch",
    "proxy",
    "deletecollection",
    "use",
    "bind",
    "escalate",
    "impersonate",
];

/// A rule for each API group, and one for the paths.
fn rules(args: &RuleArgs, paths: &[String], resources: &Resources) -> Result<Vec<Value>, Error> {
    let verbs: Vec<&str> =
        if args.verb.iter().any(|verb| verb == "*") { vec!["*"] } else { once(&args.verb) };
    if verbs.is_empty() {
        return Err(Error::failed("at least one verb must be specified"));
    }
    for verb in verbs.iter().filter(|verb| !VERBS.contains(verb)) {
        say::complain(&format!("Warning: '{verb}' is not a standard resource verb"), false);
    }
    if args.resource.is_empty() && paths.is_empty() {
        return Err(Error::failed("at least one resource must be specified"));
    }
    let mut groups = BTreeMap::<String, Vec<String>>::new();
    for text in &args.resource {
        let (name, subresource) =
            text.split_once('/').map_or((text.as_str(), None), |(name, sub)| (name, Some(sub)));
        let (group, plural) = if name.split('.').next() == Some("*") {
            (name.strip_prefix("*.").unwrap_or_default().to_owned(), "*".to_owned())
        } else {
            let known = resources.named(name)?;
            (known.group.clone(), known.plural.clone())
        };
        let resource = match subresource {
            Some(subresource) => format!("{plural}/{subresource}"),
            None => plural,
        };
        let of_group = groups.entry(group).or_default();
        if !of_group.contains(&resource) {
            of_group.push(resource);
        }
    }
    let names = once(&args.resource_name);
    let mut rules: Vec<Value> = Vec::new();
    for (group, resources) in groups {
        let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
        if !names.is_empty() {
            rule["resourceNames"] = json!(names);
        }
        rules.push(rule);
    }
    if !paths.is_empty() {
        rules.push(json!({"nonResourceURLs": paths, "verbs": verbs}));
    }
    Ok(rules)
}

/// Without repetitions.
fn once(texts: &[String]) -> Vec<&str> {
    let mut once: Vec<&str> = Vec::new();
    for text in texts {
        if !once.contains(&text.as_str()) {
            once.push(text);
        }
    }
    once
}

impl RoleArgs {
    pub(super) fn object(&self, resources: &Resources) -> Result<Value, Error> {
        let rules = rules(&self.rule, &[], resources)?;
        Ok(rbac("Role", &self.name, json!({"rules": rules})))
    }
}

impl ClusterRoleArgs {
    pub(super) fn object(&self, resources: &Resources) -> Result<Value, Error> {
        let Some(labels) = &self.aggregation_rule else {
            let rules = rules(&self.rule, &self.non_resource_urls, resources)?;
            return Ok(rbac("ClusterRole", &self.name, json!({"rules": rules})));
        };
        let pairs = pairs(labels.split(','), "aggregation rule")?;
        let selector = json!({"clusterRoleSelectors": [{"matchLabels": pairs}]});
        Ok(rbac("ClusterRole", &self.name, json!({"aggregationRule": selector, "rules": null})))
    }
}

impl RoleBindingArgs {
    pub(super) fn object(&self) -> Result<Value, Error> {
        let (kind, role) = match (&self.clusterrole, &self.role) {
            (Some(role), None) => ("ClusterRole", role),
            (None, Some(role)) => ("Role", role),
            _ => return Err(Error::failed("exactly one of clusterrole or role must be specified")),
        };
        binding("RoleBinding", &self.name, kind, role, &self.subjects)
    }
}

impl ClusterRoleBindingArgs {
    pub(super) fn object(&self) -> Result<Value, Error> {
        binding("ClusterRoleBinding", &self.name, "ClusterRole", &self.clusterrole, &self.subjects)
    }
}

fn binding(
    kind: &str,
    name: &str,
    role_kind: &str,
    role: &str,
    subjects: &SubjectArgs,
) -> Result<Value, Error> {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let named = |kind: &'static str, names: &[String]| -> Vec<Value> {
        names.iter().map(|name| json!({"apiGroup": GROUP, "kind": kind, "name": name})).collect()
    };
    let mut all = named("User", &subjects.user);
    all.extend(named("Group", &subjects.group));
    for account in &subjects.serviceaccount {
        match account.split_once(':') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains(':') => {
                all.push(json!({"kind": "ServiceAccount", "name": name, "namespace": namespace}));
            }
            _ => return Err(Error::failed("serviceaccount must be <namespace>:<name>")),
        }
    }
    let mut object =
        rbac(kind, name, json!({"roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": role}}));
    if !all.is_empty() {
        object["subjects"] = all.into();
    }
    Ok(object)
}
