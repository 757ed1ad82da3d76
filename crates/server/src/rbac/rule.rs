//! One rule of a role: what it allows.

use k1s_object::field::quote;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::authz::{Attributes, Target};

/// A rule, as it is written in a role. `None` and an empty list mean the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, rename_all = "camelCase", from = "Written")]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<Box<str>>,
    pub(crate) api_groups: Vec<Box<str>>,
    pub(crate) resources: Vec<Box<str>>,
    pub(crate) resource_names: Vec<Box<str>>,
    pub(crate) non_resource_urls: Vec<Box<str>>,
}

/// The JSON of a rule.
#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
struct Written {
    verbs: Option<Vec<Box<str>>>,
    api_groups: Option<Vec<Box<str>>>,
    resources: Option<Vec<Box<str>>>,
    resource_names: Option<Vec<Box<str>>>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Option<Vec<Box<str>>>,
}

impl From<Written> for Rule {
    fn from(written: Written) -> Rule {
        Rule {
            verbs: written.verbs.unwrap_or_default(),
            api_groups: written.api_groups.unwrap_or_default(),
            resources: written.resources.unwrap_or_default(),
            resource_names: written.resource_names.unwrap_or_default(),
            non_resource_urls: written.non_resource_urls.unwrap_or_default(),
        }
    }
}

/// Stands for all verbs, groups or resources.
pub(super) const ALL: &str = "*";

pub(super) fn has(list: &[Box<str>], text: &str) -> bool {
    list.iter().any(|one| **one == *text)
}

/// Whether a path of a rule includes another path. A `*` at its end stands for any rest.
pub(super) fn url_includes(pattern: &str, path: &str) -> bool {
    pattern == path || (pattern.ends_with('*') && path.starts_with(pattern.trim_end_matches('*')))
}

impl Rule {
    /// The rules in the `rules` of a role.
    pub(crate) fn list(rules: &Value) -> Vec<Rule> {
        Vec::<Rule>::deserialize(rules).unwrap_or_default()
    }

    /// Full authority: everything on all resources and all paths.
    pub(crate) fn full_authority() -> [Rule; 2] {
        let all = || vec![ALL.into()];
        [
            Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() },
            Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() },
        ]
    }

    /// Whether the rule allows an action.
    pub(crate) fn allows(&self, wanted: &Attributes<'_>) -> bool {
        let verb = wanted.verb.as_str();
        if !self.verbs.iter().any(|one| **one == *ALL || **one == *verb) {
            return false;
        }
        match wanted.target {
            Target::Path(path) => self.non_resource_urls.iter().any(|pattern| url_includes(pattern, path)),
            Target::Resource { group, resource, subresource, name, .. } => {
                self.api_groups.iter().any(|one| **one == *ALL || **one == *group)
                    && self.resources.iter().any(|one| resource_matches(one, resource, subresource))
                    && (self.resource_names.is_empty() || has(&self.resource_names, name))
            }
        }
    }

    /// The rule as escalation errors print it: `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`.
    pub(crate) fn describe(&self) -> String {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| format!("{name}:{}", go_list(list.iter().map(|text| &**text))))
            .collect();
        format!("{{{}}}", parts.join(", "))
    }

    /// The rule about resources in a `SelfSubjectRulesReview`, if it is one.
    pub(crate) fn as_resource_rule(&self) -> Option<Value> {
        if self.resources.is_empty() {
            return None;
        }
        let mut rule = Map::new();
        rule.insert("verbs".into(), list(&self.verbs));
        for (name, texts) in [
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
        ] {
            if !texts.is_empty() {
                rule.insert(name.into(), list(texts));
            }
        }
        Some(Value::Object(rule))
    }

    /// The rule about paths in a `SelfSubjectRulesReview`, if it is one.
    pub(crate) fn as_path_rule(&self) -> Option<Value> {
        if self.non_resource_urls.is_empty() {
            return None;
        }
        let mut rule = Map::new();
        rule.insert("verbs".into(), list(&self.verbs));
        rule.insert("nonResourceURLs".into(), list(&self.non_resource_urls));
        Some(Value::Object(rule))
    }

    /// The rule as it is written in a role.
    pub(crate) fn to_json(&self) -> Value {
        let mut rule = Map::new();
        rule.insert("verbs".into(), list(&self.verbs));
        for (name, texts) in [
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ] {
            if !texts.is_empty() {
                rule.insert(name.into(), list(texts));
            }
        }
        Value::Object(rule)
    }
}

fn list(texts: &[Box<str>]) -> Value {
    texts.iter().map(|text| Value::from(&**text)).collect()
}

/// Strings formatted as by Go's `%q`: `["a" "b"]`.
pub(crate) fn go_list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = texts.map(quote).collect();
    format!("[{}]", quoted.join(" "))
}

/// Whether a resource of a rule (`pods`, `pods/log`, `*/scale`, `*`) includes a requested one.
fn resource_matches(pattern: &str, resource: &str, subresource: &str) -> bool {
    if pattern == ALL {
        return true;
    }
    if subresource.is_empty() {
        return pattern == resource;
    }
    // The resource of a review may itself contain a slash.
    let rest = |start: &str| pattern.strip_prefix(start).and_then(|rest| rest.strip_prefix('/'));
    rest(resource) == Some(subresource) || rest(ALL) == Some(subresource)
}
