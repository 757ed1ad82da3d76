//! Flow schemas: which requests belong to them.

use serde::Deserialize;

use crate::{
    authz::{Attributes, Target},
    identity::User,
};

/// The `spec` of a `FlowSchema`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    pub(super) priority_level_configuration: Reference,
    pub(super) matching_precedence: i64,
    pub(super) distinguisher_method: Option<Distinguisher>,
    rules: Option<Vec<Rule>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Reference {
    pub(super) name: Box<str>,
}

/// What tells the flows of a schema apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Distinguisher {
    ByUser,
    ByNamespace,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    subjects: Vec<Subject>,
    resource_rules: Option<Vec<ResourceRule>>,
    non_resource_rules: Option<Vec<PathRule>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind")]
enum Subject {
    User {
        user: Option<Reference>,
    },
    Group {
        group: Option<Reference>,
    },
    ServiceAccount {
        #[serde(rename = "serviceAccount")]
        account: Option<Account>,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Account {
    namespace: Box<str>,
    name: Box<str>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceRule {
    verbs: List,
    api_groups: List,
    resources: List,
    cluster_scope: bool,
    namespaces: Option<List>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct PathRule {
    verbs: List,
    #[serde(rename = "nonResourceURLs")]
    paths: List,
}

type List = Vec<Box<str>>;

/// Whether a list has a text, or is only the wildcard.
fn has(list: &[Box<str>], text: &str) -> bool {
    matches!(list, [one] if **one == *"*") || list.iter().any(|one| **one == *text)
}

impl Spec {
    /// Whether requests of a user can belong to this schema.
    pub(super) fn has_subject(&self, user: &User) -> bool {
        self.rules.iter().flatten().flat_map(|rule| &rule.subjects).any(|subject| subject.is(user))
    }

    /// Whether a request belongs to this schema.
    pub(super) fn matches(&self, user: &User, wanted: &Attributes<'_>) -> bool {
        self.rules.iter().flatten().any(|rule| rule.matches(user, wanted))
    }
}

impl Rule {
    fn matches(&self, user: &User, wanted: &Attributes<'_>) -> bool {
        let verb = wanted.verb.as_str();
        let action = match &wanted.target {
            Target::Resource { group, resource, subresource, namespace, .. } => {
                let mut rules = self.resource_rules.iter().flatten();
                rules.any(|rule| {
                    has(&rule.verbs, verb)
                        && has_resource(&rule.resources, resource, subresource)
                        && has(&rule.api_groups, group)
                        && match *namespace {
                            "" => rule.cluster_scope,
                            namespace => has(rule.namespaces.as_deref().unwrap_or_default(), namespace),
                        }
                })
            }
            Target::Path(path) => {
                let mut rules = self.non_resource_rules.iter().flatten();
                rules.any(|rule| has(&rule.verbs, verb) && rule.paths.iter().any(|one| has_path(one, path)))
            }
        };
        action && self.subjects.iter().any(|subject| subject.is(user))
    }
}

/// `pods`, or `pods/status` for a subresource.
fn has_resource(list: &[Box<str>], resource: &str, subresource: &str) -> bool {
    if subresource.is_empty() {
        return has(list, resource);
    }
    let is = |one: &str| one.split_once('/') == Some((resource, subresource));
    matches!(list, [one] if **one == *"*") || list.iter().any(|one| is(one))
}

/// As in kube-apiserver, a path also stands for the paths below it.
fn has_path(pattern: &str, path: &str) -> bool {
    if pattern == "*" || pattern == path {
        return true;
    }
    let prefix = pattern.strip_suffix('*').unwrap_or(pattern);
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
}

impl Subject {
    fn is(&self, user: &User) -> bool {
        match self {
            Subject::User { user: Some(one) } => *one.name == *"*" || *one.name == *user.name,
            Subject::Group { group: Some(one) } => *one.name == *"*" || user.is_in(&one.name),
            Subject::ServiceAccount { account: Some(one) } => {
                let rest = user.name.strip_prefix("system:serviceaccount:");
                rest.and_then(|rest| rest.split_once(':')).is_some_and(|(namespace, name)| {
                    *namespace == *one.namespace && has_name(&one.name, name)
                })
            }
            _ => false,
        }
    }
}

fn has_name(pattern: &str, name: &str) -> bool {
    pattern == "*" || pattern == name
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::request::Verb;

    fn user(name: &str, groups: &[&str]) -> User {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        User { name: name.into(), groups, ..User::default() }
    }

    fn resource<'a>(verb: &'a str, namespace: &'a str, resource: &'a str) -> Attributes<'a> {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let target = Target::Resource { group: "goodapig", resource, subresource, namespace, name: "eman" };
        Attributes::new(Verb::named(verb), target)
    }

    fn matches(rule: &Value, user: &User, wanted: &Attributes<'_>) -> bool {
        let spec: Spec = serde_json::from_value(json!({ "rules": [rule] })).unwrap();
        spec.matches(user, wanted)
    }

    /// A rule with one thing replaced.
    fn rule(change: &[(&str, Value)]) -> Value {
        let mut rule = json!({
            "subjects": [{"kind": "User", "user": {"name": "goodu"}}],
            "resourceRules": [{"verbs": ["goodverb"], "apiGroups": ["goodapig"], "resources": ["goodrscs"],
                "namespaces": ["goodns"]}],
            "nonResourceRules": [{"verbs": ["goodverb"], "nonResourceURLs": ["/openapi/v2"]}],
        });
        for (path, value) in change {
            match rule.pointer_mut(path) {
                Some(place) => *place = value.clone(),
                None => {
                    let (parent, name) = path.rsplit_once('/').unwrap();
                    rule.pointer_mut(parent).unwrap()[name] = value.clone();
                }
            }
        }
        rule
    }

    const VERBS: &str = "/resourceRules/0/verbs";
    const GROUPS: &str = "/resourceRules/0/apiGroups";
    const RESOURCES: &str = "/resourceRules/0/resources";
    const NAMESPACES: &str = "/resourceRules/0/namespaces";
    const CLUSTER: &str = "/resourceRules/0/clusterScope";

    /// The literal cases of kube-apiserver's own test of matching.
    #[test]
    fn requests_match_as_in_kubernetes() {
        let goodu = user("goodu", &["goodg1", "goodg2"]);
        let subject = |kind: &str, name: &str| {
            ("/subjects", json!([{"kind": kind, kind.to_lowercase(): {"name": name}}]))
        };
        let in_namespace = resource("goodverb", "goodns", "goodrscs");
        for (expected, change) in [
            (true, vec![]),
            (true, vec![subject("Group", "goodg1")]),
            (true, vec![subject("User", "*")]),
            (true, vec![subject("Group", "*")]),
            (true, vec![(VERBS, json!(["*"]))]),
            (true, vec![(GROUPS, json!(["*"]))]),
            (true, vec![(RESOURCES, json!(["*"]))]),
            (true, vec![(NAMESPACES, json!(["*"]))]),
            (false, vec![subject("User", "badu")]),
            (false, vec![subject("Group", "badg")]),
            (false, vec![(VERBS, json!(["badverb"]))]),
            (false, vec![(GROUPS, json!(["badapig"]))]),
            (false, vec![(RESOURCES, json!(["badrscs"]))]),
            (false, vec![(NAMESPACES, json!(["badns"]))]),
        ] {
            assert_eq!(matches(&rule(&change), &goodu, &in_namespace), expected, "{change:?}");
        }
        let in_cluster = resource("goodverb", "", "goodrscs");
        let scoped = (CLUSTER, json!(true));
        for (expected, change) in [
            (true, vec![scoped.clone()]),
            (true, vec![scoped.clone(), (VERBS, json!(["*"]))]),
            (true, vec![scoped.clone(), (GROUPS, json!(["*"]))]),
            (true, vec![scoped.clone(), (RESOURCES, json!(["*"]))]),
            (false, vec![scoped.clone(), (VERBS, json!(["badverb"]))]),
            (false, vec![scoped.clone(), (GROUPS, json!(["badapig"]))]),
            (false, vec![scoped, (RESOURCES, json!(["badrscs"]))]),
            (false, vec![]),
        ] {
            assert_eq!(matches(&rule(&change), &goodu, &in_cluster), expected, "{change:?}");
        }
        let path = Attributes::new(Verb::named("goodverb"), Target::Path("/openapi/v2"));
        let (verbs, paths) = ("/nonResourceRules/0/verbs", "/nonResourceRules/0/nonResourceURLs");
        for (expected, change) in [
            (true, vec![]),
            (true, vec![(verbs, json!(["*"]))]),
            (true, vec![(paths, json!(["*"]))]),
            (true, vec![(paths, json!(["/openapi"]))]),
            (true, vec![(paths, json!(["/openapi/*"]))]),
            (true, vec![(paths, json!(["/"]))]),
            (false, vec![(verbs, json!(["badverb"]))]),
            (false, vec![(paths, json!(["/closedapi/v2"]))]),
            (false, vec![(paths, json!(["/open"]))]),
        ] {
            assert_eq!(matches(&rule(&change), &goodu, &path), expected, "{change:?}");
        }
    }

    #[test]
    fn service_accounts_and_subresources_match() {
        let account = |namespace: &str, name: &str| {
            (
                "/subjects",
                json!([{"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}]),
            )
        };
        let wanted = resource("goodverb", "goodns", "goodrscs");
        let robot = user("system:serviceaccount:ns1:robot", &[]);
        for (expected, namespace, name) in [
            (true, "ns1", "robot"),
            (true, "ns1", "*"),
            (false, "ns", "*"),
            (false, "ns1", "rob"),
            (false, "ns2", "robot"),
        ] {
            assert_eq!(matches(&rule(&[account(namespace, name)]), &robot, &wanted), expected);
        }
        assert!(!matches(&rule(&[account("ns1", "*")]), &user("ns1:robot", &[]), &wanted));
        let goodu = user("goodu", &[]);
        for (expected, pattern) in
            [(true, "goodrscs/status"), (true, "*"), (false, "goodrscs"), (false, "*/status")]
        {
            let wanted = resource("goodverb", "goodns", "goodrscs/status");
            assert_eq!(
                matches(&rule(&[(RESOURCES, json!([pattern]))]), &goodu, &wanted),
                expected,
                "{pattern}"
            );
        }
    }
}
