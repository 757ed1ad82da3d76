//! Admission policies and their bindings, compiled from the objects of users.

use std::sync::{Arc, OnceLock};

use k1s_kinds::admission::policy::{MutatingPolicy, ValidatingPolicy, ignores_failures};
use k1s_object::{
    gvk::{GroupVersion, GroupVersionKind},
    selector::LabelSelector,
};
use k1s_store::Revision;
use serde_json::Value;

use super::{Request, Rule, selector};
use crate::resource::Resource;

/// `matchConstraints` of a policy, or `matchResources` of a binding.
#[derive(Debug)]
pub(crate) struct Criteria {
    rules: Vec<NamedRule>,
    excluded: Vec<NamedRule>,
    /// Whether the rules also match other versions of a resource.
    equivalent: bool,
    /// Selectors that cannot be read match nothing, and are errors where a rule matches.
    pub(crate) namespaces: Result<LabelSelector, String>,
    pub(crate) objects: Result<LabelSelector, String>,
}

/// A rule that may be limited to objects with certain names.
#[derive(Debug)]
struct NamedRule {
    rule: Rule,
    names: Vec<String>,
}

impl NamedRule {
    fn all(criteria: &Value, field: &str) -> Vec<NamedRule> {
        let names = |rule: &Value| {
            let names = rule["resourceNames"].as_array().into_iter().flatten();
            names.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let rules = criteria[field].as_array().into_iter().flatten();
        rules.map(|rule| NamedRule { rule: Rule::new(rule), names: names(rule) }).collect()
    }

    /// `name`: `None` if any name will do.
    fn has_name(&self, name: Option<&str>) -> bool {
        self.names.is_empty() || name.is_none_or(|name| self.names.iter().any(|one| one == name))
    }
}

impl Criteria {
    pub(super) fn new(criteria: &Value) -> Criteria {
        Criteria {
            rules: NamedRule::all(criteria, "resourceRules"),
            excluded: NamedRule::all(criteria, "excludeResourceRules"),
            equivalent: criteria["matchPolicy"] == "Equivalent",
            namespaces: selector(criteria, "namespaceSelector"),
            objects: selector(criteria, "objectSelector"),
        }
    }

    /// The version of the requested resource that the rules match, for an object of this name.
    pub(crate) fn matches(
        &self,
        request: &Request<'_>,
        name: &str,
        equivalents: &[Arc<Resource>],
    ) -> Option<Arc<Resource>> {
        if self.find(&self.excluded, request, Some(name), equivalents).is_some() {
            return None;
        }
        if self.rules.is_empty() {
            return Some(request.resource.clone());
        }
        self.find(&self.rules, request, Some(name), equivalents)
    }

    /// Whether the rules can match a request, whatever the name of the object is.
    fn could_match(&self, request: &Request<'_>, equivalents: &[Arc<Resource>]) -> bool {
        self.rules.is_empty() || self.find(&self.rules, request, None, equivalents).is_some()
    }

    fn find(
        &self,
        rules: &[NamedRule],
        request: &Request<'_>,
        name: Option<&str>,
        equivalents: &[Arc<Resource>],
    ) -> Option<Arc<Resource>> {
        let finds = |resource: &Arc<Resource>| {
            rules.iter().any(|one| one.rule.matches(request, &resource.gvr()) && one.has_name(name))
        };
        if finds(request.resource) {
            return Some(request.resource.clone());
        }
        if !self.equivalent {
            return None;
        }
        // Earlier rules are honored first.
        rules.iter().find_map(|one| {
            let matches =
                |other: &&Arc<Resource>| one.rule.matches(request, &other.gvr()) && one.has_name(name);
            equivalents.iter().find(matches).cloned()
        })
    }
}

/// A binding of a policy.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) name: String,
    /// `None`: it matches what the policy matches.
    pub(crate) criteria: Option<Criteria>,
    pub(crate) param_ref: Option<ParamRef>,
    /// `validationActions`, in their order.
    pub(crate) actions: Vec<String>,
}

/// Which objects are the parameters of a binding.
#[derive(Debug)]
pub(crate) struct ParamRef {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) selector: Option<Result<LabelSelector, String>>,
    /// Whether a binding without parameters denies what it matches.
    pub(crate) denies_without: bool,
}

impl Binding {
    fn new(name: &str, spec: &Value) -> Binding {
        let set = |field: &str| spec.get(field).filter(|value| !value.is_null());
        let param_ref = set("paramRef").map(|reference| ParamRef {
            name: reference["name"].as_str().unwrap_or_default().to_owned(),
            namespace: reference["namespace"].as_str().unwrap_or_default().to_owned(),
            selector: reference
                .get("selector")
                .filter(|selector| !selector.is_null())
                .map(|_| selector(reference, "selector")),
            denies_without: reference["parameterNotFoundAction"] == "Deny",
        });
        let actions = spec["validationActions"].as_array().into_iter().flatten();
        Binding {
            name: name.to_owned(),
            criteria: set("matchResources").map(Criteria::new),
            param_ref,
            actions: actions.filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }
}

/// A policy with its bindings. `E` is what its expressions are compiled to, with the first request that it matches.
#[derive(Debug)]
pub(crate) struct Policy<E> {
    pub(crate) name: String,
    pub(crate) criteria: Criteria,
    pub(crate) param_kind: Option<ParamKind>,
    pub(crate) bindings: Vec<Binding>,
    /// Whether requests that it fails for go on.
    pub(crate) ignores_failures: bool,
    spec: Arc<Value>,
    revision: Revision,
    compiled: Arc<OnceLock<E>>,
}

/// The kind of parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamKind {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

impl ParamKind {
    /// Group, version and kind.
    pub(crate) fn gvk(&self) -> GroupVersionKind<&str> {
        let GroupVersion { group, version } = GroupVersion::split(&self.api_version);
        GroupVersionKind { group, version, kind: &self.kind }
    }
}

/// A kind of policy.
pub(crate) trait Compile {
    fn compile(spec: &Value) -> Self;
}

impl Compile for ValidatingPolicy {
    fn compile(spec: &Value) -> ValidatingPolicy {
        ValidatingPolicy::compile(spec)
    }
}

impl Compile for MutatingPolicy {
    fn compile(spec: &Value) -> MutatingPolicy {
        MutatingPolicy::compile(spec)
    }
}

impl<E: Compile> Policy<E> {
    /// The expressions of the policy.
    pub(crate) fn compiled(&self) -> &E {
        self.compiled.get_or_init(|| E::compile(&self.spec))
    }

    /// The policies that have bindings, ordered by name. Those that have not changed keep what was compiled of them.
    pub(super) fn all(
        policies: Vec<(String, Revision, Value)>,
        bindings: Vec<(String, Revision, Value)>,
        before: &[Arc<Policy<E>>],
    ) -> Vec<Arc<Policy<E>>> {
        let mut bound = std::collections::HashMap::<String, Vec<Binding>>::new();
        for (name, _, mut binding) in bindings {
            let spec = binding["spec"].take();
            let policy = spec["policyName"].as_str().unwrap_or_default().to_owned();
            bound.entry(policy).or_default().push(Binding::new(&name, &spec));
        }
        let bind = |(name, revision, mut policy): (String, Revision, Value)| {
            let bindings = bound.remove(&name)?;
            let spec = policy["spec"].take();
            let same = |one: &&Arc<Policy<E>>| one.name == name && one.revision == revision;
            let compiled = before.iter().find(same).map(|one| one.compiled.clone());
            let param_kind = spec.get("paramKind").filter(|kind| !kind.is_null()).map(|kind| ParamKind {
                api_version: kind["apiVersion"].as_str().unwrap_or_default().to_owned(),
                kind: kind["kind"].as_str().unwrap_or_default().to_owned(),
            });
            Some(Arc::new(Policy {
                criteria: Criteria::new(&spec["matchConstraints"]),
                param_kind,
                bindings,
                ignores_failures: ignores_failures(&spec),
                spec: Arc::new(spec),
                revision,
                compiled: compiled.unwrap_or_default(),
                name,
            }))
        };
        policies.into_iter().filter_map(bind).collect()
    }

    pub(super) fn could_match(&self, request: &Request<'_>, equivalents: &[Arc<Resource>]) -> bool {
        self.criteria.could_match(request, equivalents)
    }
}
