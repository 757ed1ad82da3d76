//! The admission webhooks of a tenant, compiled from its configurations.
//!
//! They are compiled once per change of a configuration, and which of them a request concerns is remembered per resource,
//! operation and namespace, so that a request that no rule and no namespace selector matches costs a lookup.

mod namespaces;
mod policy;
mod rule;
#[cfg(test)]
mod upstream;

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use k1s_kinds::{
    admission::policy::{MutatingPolicy, ValidatingPolicy},
    expressions::{Compiler, Conditions, Scope},
};
use k1s_object::selector::LabelSelector;
use k1s_store::Revision;
use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    cache::{Entries, Snapshot},
    catalog::Catalog,
    resource::Resource,
    stored::Stored,
    webhook::ClientConfig,
};

pub(crate) use policy::{Binding, Criteria, ParamKind, Policy};
use rule::Rule;
pub(crate) use rule::{Operation, Request};

/// The group of the kinds that configure admission.
pub(crate) const GROUP: &str = "admissionregistration.k8s.io";

/// Maximum number of remembered lookups; beyond it, all are forgotten.
const MAX_LOOKUPS: usize = 4096;

/// Whether a webhook mutates or validates objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Mutating,
    Validating,
}

impl Phase {
    /// Its name in metrics.
    pub(crate) fn metric(self) -> &'static str {
        match self {
            Phase::Mutating => "admit",
            Phase::Validating => "validating",
        }
    }
}

/// The version of the `AdmissionReview` that a webhook is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReviewVersion {
    V1,
    V1beta1,
}

/// A webhook.
#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) name: String,
    /// The name of its configuration.
    pub(crate) configuration: String,
    rules: Vec<Rule>,
    /// Whether its rules also match other versions of a resource.
    equivalent: bool,
    /// Selectors that cannot be read match nothing, and are errors where a rule matches.
    pub(crate) namespaces: Result<LabelSelector, String>,
    pub(crate) objects: Result<LabelSelector, String>,
    /// Its `matchConditions`: names and expressions.
    conditions: Vec<(String, String)>,
    /// The same, compiled with the first request that they decide about.
    compiled: OnceLock<(Compiler, Conditions)>,
    /// Whether it may be called on a dry run.
    pub(crate) allows_dry_run: bool,
    /// Whether the request goes on if it cannot be called.
    pub(crate) ignores_failure: bool,
    /// Whether it is called again when later mutations have changed the object.
    pub(crate) reinvoke: bool,
    pub(crate) timeout: Duration,
    /// `None`: it accepts no known version.
    pub(crate) review: Option<ReviewVersion>,
    pub(crate) client: ClientConfig,
}

impl Hook {
    /// Reads an element of `webhooks`, defaulted and validated.
    fn new(configuration: &str, webhook: &Value) -> Hook {
        let text = |field: &str| webhook[field].as_str().unwrap_or_default();
        let list = |field: &str| webhook[field].as_array().into_iter().flatten();
        let review = list("admissionReviewVersions").find_map(|version| match version.as_str() {
            Some("v1") => Some(ReviewVersion::V1),
            Some("v1beta1") => Some(ReviewVersion::V1beta1),
            _ => None,
        });
        let condition = |condition: &Value| {
            let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
            (text("name"), text("expression"))
        };
        Hook {
            name: text("name").to_owned(),
            configuration: configuration.to_owned(),
            rules: list("rules").map(Rule::new).collect(),
            equivalent: text("matchPolicy") == "Equivalent",
            namespaces: selector(webhook, "namespaceSelector"),
            objects: selector(webhook, "objectSelector"),
            conditions: list("matchConditions").map(condition).collect(),
            compiled: OnceLock::new(),
            allows_dry_run: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            ignores_failure: text("failurePolicy") == "Ignore",
            reinvoke: text("reinvocationPolicy") == "IfNeeded",
            timeout: Duration::from_secs(webhook["timeoutSeconds"].as_u64().unwrap_or(10)),
            review,
            client: ClientConfig::of(&webhook["clientConfig"]),
        }
    }

    /// Its match conditions, if it has any.
    pub(crate) fn conditions(&self) -> Option<&(Compiler, Conditions)> {
        if self.conditions.is_empty() {
            return None;
        }
        Some(self.compiled.get_or_init(|| {
            let compiler = Compiler::new(Scope { authorizer: true, ..Scope::default() });
            let texts = self.conditions.iter().map(|(name, text)| (name.as_str(), text.as_str()));
            let conditions = Conditions::compile(&compiler, texts);
            (compiler, conditions)
        }))
    }

    /// The version of the requested resource that its rules match.
    fn matches(&self, request: &Request<'_>, equivalents: &[Arc<Resource>]) -> Option<Arc<Resource>> {
        if self.rules.iter().any(|rule| rule.matches(request, &request.resource.gvr())) {
            return Some(request.resource.clone());
        }
        if !self.equivalent {
            return None;
        }
        // Earlier rules are honored first.
        self.rules
            .iter()
            .find_map(|rule| equivalents.iter().find(|other| rule.matches(request, &other.gvr())).cloned())
    }
}

/// A label selector in a field; one that is not set selects everything.
fn selector(object: &Value, field: &str) -> Result<LabelSelector, String> {
    match object.get(field).filter(|selector| !selector.is_null()) {
        Some(selector) => LabelSelector::from_json(Some(selector)),
        None => Ok(LabelSelector::default()),
    }
}

/// A webhook whose rules match a request.
#[derive(Debug, Clone)]
pub(crate) struct Match {
    pub(crate) hook: Arc<Hook>,
    /// The version of the resource that matches: the requested one, or an equivalent one to which objects are converted.
    pub(crate) resource: Arc<Resource>,
    /// Its place among all webhooks of its phase, by which audit annotations name it.
    pub(crate) index: usize,
}

/// The webhooks and policies whose rules match a request, in the order in which they are called.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    pub(crate) mutating: Vec<Match>,
    pub(crate) validating: Vec<Match>,
    /// Their rules may be limited to names, which are yet to be compared.
    pub(crate) mutating_policies: Vec<Arc<Policy<MutatingPolicy>>>,
    pub(crate) validating_policies: Vec<Arc<Policy<ValidatingPolicy>>>,
    /// The other versions of the resource, for policies.
    pub(crate) equivalents: Vec<Arc<Resource>>,
    /// Whether any of them is for certain namespaces only.
    by_namespace: bool,
}

impl Matches {
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.mutating.len()
            + self.validating.len()
            + self.mutating_policies.len()
            + self.validating_policies.len()
    }

    /// Whether namespace selectors can leave out some of them ([`Hooks::in_namespace`]).
    pub(crate) fn are_by_namespace(&self) -> bool {
        self.by_namespace
    }
}

/// A lookup: the address of the resource, which is kept alive beside it, the operation and the subresource.
type Lookup = (usize, Operation, String);

/// The answers to lookups, with their resources.
type Lookups = HashMap<Lookup, (Arc<Resource>, Arc<Matches>)>;

/// All webhooks and policies of a tenant.
#[derive(Default)]
pub(crate) struct Hooks {
    /// The objects they were compiled from.
    entries: Entries,
    mutating: Vec<Arc<Hook>>,
    validating: Vec<Arc<Hook>>,
    mutating_policies: Vec<Arc<Policy<MutatingPolicy>>>,
    validating_policies: Vec<Arc<Policy<ValidatingPolicy>>>,
    /// By the address of the resource, which is kept alive.
    lookups: Mutex<Lookups>,
    /// What namespace selectors leave of the answers.
    in_namespaces: Mutex<namespaces::Answers>,
}

impl Hooks {
    /// Compiles the objects in a snapshot of the group, whose keys begin with `prefix`. What is in `before` already, and has not
    /// changed, is kept.
    pub(crate) fn compile(
        catalog: &Catalog,
        prefix: &str,
        snapshot: &Snapshot,
        before: Option<&Hooks>,
    ) -> Hooks {
        let read = |plural: &str| -> Vec<(String, Revision, Value)> {
            let resource = catalog.require(k1s_object::gvk::GroupVersionResource::new(GROUP, "v1", plural));
            let Ok(resource) = resource else { return Vec::new() };
            let prefix = format!("{prefix}{plural}/");
            let mut objects = Vec::new();
            for entry in snapshot.entries.under(prefix.as_bytes(), prefix.as_bytes()) {
                match resource.read(&entry.stored) {
                    Ok(object) => objects.push((entry.name().to_owned(), entry.stored.revision, object)),
                    Err(why) => {
                        tracing::error!(%plural, name = entry.name(), %why, "an unreadable object has no effect on admission");
                    }
                }
            }
            objects
        };
        let hooks = |plural: &str| {
            let of = |(name, _, object): &(String, Revision, Value)| {
                let webhooks = object["webhooks"].as_array().into_iter().flatten();
                webhooks.map(|one| Arc::new(Hook::new(name, one))).collect::<Vec<_>>()
            };
            read(plural).iter().flat_map(of).collect()
        };
        let none = Hooks::default();
        let before = before.unwrap_or(&none);
        Hooks {
            entries: snapshot.entries.clone(),
            mutating: hooks("mutatingwebhookconfigurations"),
            validating: hooks("validatingwebhookconfigurations"),
            mutating_policies: Policy::all(
                read("mutatingadmissionpolicies"),
                read("mutatingadmissionpolicybindings"),
                &before.mutating_policies,
            ),
            validating_policies: Policy::all(
                read("validatingadmissionpolicies"),
                read("validatingadmissionpolicybindings"),
                &before.validating_policies,
            ),
            lookups: Mutex::default(),
            in_namespaces: Mutex::default(),
        }
    }

    /// Whether they were compiled from the objects of this snapshot.
    pub(crate) fn is_of(&self, snapshot: &Snapshot) -> bool {
        self.entries.is_same(&snapshot.entries)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.mutating.is_empty()
            && self.validating.is_empty()
            && self.mutating_policies.is_empty()
            && self.validating_policies.is_empty()
    }

    /// The remembered answer to [`Hooks::look_up`].
    pub(crate) fn known(&self, request: &Request<'_>) -> Option<Arc<Matches>> {
        let key = lookup(request);
        self.lookups.lock().get(&key).map(|(_, found)| found.clone())
    }

    /// The webhooks whose rules match a request; `equivalents` are the other versions of its resource that are served.
    pub(crate) fn look_up(&self, request: &Request<'_>, equivalents: &[Arc<Resource>]) -> Arc<Matches> {
        let of = |hooks: &[Arc<Hook>]| {
            let matches = hooks.iter().enumerate().filter_map(|(index, hook)| {
                let resource = hook.matches(request, equivalents)?;
                Some(Match { hook: hook.clone(), resource, index })
            });
            matches.collect()
        };
        let mut found = Matches {
            mutating: of(&self.mutating),
            validating: of(&self.validating),
            mutating_policies: matching(&self.mutating_policies, request, equivalents),
            validating_policies: matching(&self.validating_policies, request, equivalents),
            equivalents: equivalents.to_vec(),
            by_namespace: false,
        };
        found.by_namespace = namespaces::have_selectors(&found);
        let found = Arc::new(found);
        let mut lookups = self.lookups.lock();
        if lookups.len() >= MAX_LOOKUPS {
            lookups.clear();
        }
        lookups.insert(lookup(request), (request.resource.clone(), found.clone()));
        found
    }

    /// Those of the matches that are not for other namespaces than this one, which is stored like that.
    pub(crate) fn in_namespace(
        &self,
        matches: Arc<Matches>,
        namespace: &str,
        stored: &Stored,
    ) -> Arc<Matches> {
        if let Some(left) = self.in_namespaces.lock().known(&matches, namespace, stored.revision) {
            return left;
        }
        // Selectors report a namespace that cannot be read.
        let Ok(metadata) = stored.metadata() else { return matches };
        let left = namespaces::narrow(&matches, metadata.get("labels"));
        self.in_namespaces.lock().remember(&matches, namespace, stored.revision, left.clone());
        left
    }
}

/// The policies that can match a request.
fn matching<E: policy::Compile>(
    policies: &[Arc<Policy<E>>],
    request: &Request<'_>,
    equivalents: &[Arc<Resource>],
) -> Vec<Arc<Policy<E>>> {
    policies.iter().filter(|policy| policy.could_match(request, equivalents)).cloned().collect()
}

fn lookup(request: &Request<'_>) -> Lookup {
    (Arc::as_ptr(request.resource) as usize, request.operation, request.subresource.to_owned())
}

/// The other served versions of a resource: those whose objects are stored under the same keys.
pub(crate) fn equivalents<'a>(
    resource: &Resource,
    subresource: &str,
    served: impl Iterator<Item = &'a Arc<Resource>>,
) -> Vec<Arc<Resource>> {
    let is_other = |other: &&Arc<Resource>| {
        other.plural == resource.plural
            && other.storage_group() == resource.storage_group()
            && other.gvr() != resource.gvr()
            && (subresource.is_empty() || other.has_subresource(subresource))
    };
    served.filter(is_other).cloned().collect()
}
