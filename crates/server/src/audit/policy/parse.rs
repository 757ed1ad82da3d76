//! Reads a policy from its file.

use k1s_object::{
    FieldError,
    field::{At, Check, quote},
    names,
};
use serde_json::Value;

use super::{AuditPolicy, GroupResources, Level, Rule, Stage, Stages};

const API_VERSION: &str = "audit.k8s.io/v1";
const KIND: &str = "Policy";

/// Why a policy is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditPolicyError {
    /// It is neither YAML nor JSON.
    #[error("failed decoding: {0}")]
    Syntax(String),
    /// It is of another kind.
    #[error(
        "unknown group version field {} in policy: a policy has apiVersion {API_VERSION} and kind {KIND}",
        quote(.0)
    )]
    Kind(String),
    /// Fields have wrong values.
    #[error("{}", together(.0))]
    Invalid(Vec<FieldError>),
    /// It has no rules.
    #[error("loaded illegal policy with 0 rules")]
    Empty,
}

/// Several errors as Go prints them.
fn together(errors: &[FieldError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) }
}

impl AuditPolicy {
    /// The policy in the text of a file, as YAML or JSON. Unknown fields are logged and ignored, as by kube-apiserver.
    ///
    /// # Errors
    /// Naming the fields that are wrong.
    pub fn parse(text: &str) -> Result<AuditPolicy, AuditPolicyError> {
        let decoded = k1s_object::yaml::decode(text.as_bytes())
            .map_err(|error| AuditPolicyError::Syntax(error.to_string()))?;
        let document = decoded.value;
        let said = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (said("apiVersion"), said("kind"));
        if (api_version, kind) != (API_VERSION, KIND) {
            return Err(AuditPolicyError::Kind(format!("{api_version}, Kind={kind}")));
        }
        let check = Check::new();
        let mut reader = Reader { ignored: decoded.duplicates };
        let policy = reader.policy(check.root(&document));
        let errors = check.take();
        if !errors.is_empty() {
            return Err(AuditPolicyError::Invalid(errors));
        }
        if policy.rules.is_empty() {
            return Err(AuditPolicyError::Empty);
        }
        if !reader.ignored.is_empty() {
            let ignored = reader.ignored.join(", ");
            tracing::warn!(ignored, "the audit policy contains errors, which are ignored");
        }
        Ok(policy)
    }
}

/// Reads fields, and remembers those that are unknown.
struct Reader {
    ignored: Vec<String>,
}

impl Reader {
    fn policy(&mut self, at: At<'_, '_>) -> AuditPolicy {
        self.know(at, &["apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields"]);
        let omit_stages = stages(at.get("omitStages"));
        let rules = at.get("rules");
        must_be(rules, Value::is_array, "a list of rules");
        AuditPolicy {
            rules: rules.items().map(|rule| self.rule(rule)).collect(),
            omit_stages,
            omit_managed_fields: flag(at.get("omitManagedFields")).unwrap_or_default(),
        }
    }

    fn rule(&mut self, at: At<'_, '_>) -> Rule {
        must_be(at, Value::is_object, "a rule");
        self.know(
            at,
            &[
                "level",
                "users",
                "userGroups",
                "verbs",
                "resources",
                "namespaces",
                "nonResourceURLs",
                "omitStages",
                "omitManagedFields",
            ],
        );
        let level = level(at.get("level"));
        let urls = at.get("nonResourceURLs");
        let paths = texts(urls);
        urls.items().for_each(check_path);
        let listed = at.get("resources");
        must_be(listed, Value::is_array, "a list");
        let resources: Vec<GroupResources> = listed.items().map(|one| self.resources(one)).collect();
        let omit_stages = stages(at.get("omitStages"));
        let namespaces = texts(at.get("namespaces"));
        let is_for_resources = !resources.is_empty() || !namespaces.is_empty();
        if is_for_resources && !paths.is_empty() {
            urls.invalid("rules cannot apply to both regular resources and non-resource URLs");
        }
        Rule {
            level,
            users: texts(at.get("users")),
            groups: texts(at.get("userGroups")),
            verbs: texts(at.get("verbs")),
            resources,
            namespaces,
            paths,
            omit_stages,
            omit_managed_fields: flag(at.get("omitManagedFields")),
        }
    }

    fn resources(&mut self, at: At<'_, '_>) -> GroupResources {
        must_be(at, Value::is_object, "a group and its resources");
        self.know(at, &["group", "resources", "resourceNames"]);
        let group = at.get("group");
        must_be(group, Value::is_string, "a string");
        if !matches!(group.text(), "" | "*") {
            let wrong = names::is_dns1123_subdomain(group.text());
            if !wrong.is_empty() {
                group.invalid(wrong.join(","));
            }
        }
        let (resources, names) = (texts(at.get("resources")), texts(at.get("resourceNames")));
        if !names.is_empty() && resources.is_empty() {
            at.get("resourceNames").invalid("using resourceNames requires at least one resource");
        }
        GroupResources { group: group.text().to_owned(), resources, names }
    }

    /// Remembers the fields that are not among these.
    fn know(&mut self, at: At<'_, '_>, fields: &[&str]) {
        for name in at.map().into_iter().flat_map(|map| map.keys()) {
            if !fields.contains(&name.as_str()) {
                let path = at.path();
                let dot = if path.is_empty() { "" } else { "." };
                self.ignored.push(format!("unknown field {}", quote(&format!("{path}{dot}{name}"))));
            }
        }
    }
}

/// Rejects a value of another type. Missing values and `null` are fine.
fn must_be(at: At<'_, '_>, is: impl Fn(&Value) -> bool, what: &str) -> bool {
    let fits = !at.is_set() || at.value().is_some_and(is);
    if !fits {
        at.invalid(format!("must be {what}"));
    }
    fits
}

fn texts(at: At<'_, '_>) -> Vec<String> {
    let all = |list: &Value| list.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    must_be(at, all, "a list of strings");
    at.items().map(|item| item.text().to_owned()).collect()
}

fn flag(at: At<'_, '_>) -> Option<bool> {
    must_be(at, Value::is_boolean, "true or false");
    at.bool()
}

fn level(at: At<'_, '_>) -> Level {
    if !must_be(at, Value::is_string, "a string") {
        return Level::None;
    }
    match Level::ALL.into_iter().find(|level| level.as_str() == at.text()) {
        Some(level) => return level,
        None if at.text().is_empty() => at.required(""),
        None => at.not_supported(&Level::ALL.map(Level::as_str)),
    }
    Level::None
}

fn stages(at: At<'_, '_>) -> Stages {
    must_be(at, Value::is_array, "a list of stages");
    let mut found = Stages::default();
    for item in at.items() {
        match Stage::ALL.into_iter().find(|stage| stage.as_str() == item.text()) {
            Some(stage) => found = found.with(stage),
            None => item.invalid(format!("allowed stages are {}", Stage::ALL.map(Stage::as_str).join(","))),
        }
    }
    found
}

fn check_path(at: At<'_, '_>) {
    let Some(path) = at.str().filter(|path| *path != "*") else { return };
    if !path.starts_with('/') {
        at.invalid("non-resource URL rules must begin with a '/' character");
    }
    if path.strip_suffix('*').unwrap_or(path).contains('*') {
        at.invalid("non-resource URL wildcards '*' must be the final character of the rule");
    }
}
