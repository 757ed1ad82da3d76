//! The configuration of a tenant: its flow schemas in the order in which they are matched, and the limits of its priority
//! levels.

use std::{collections::HashMap, sync::Arc};

use http::HeaderValue;
use k1s_kinds::bootstrap;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    counters::Counters,
    gate::LevelLimits,
    queues::Queuing,
    schema::{Distinguisher, Spec},
};
use crate::{
    authz::{Attributes, Target},
    identity::{ByUser, User},
};

/// How requests that are exempt from their tenant's limits wait for the server.
const QUEUING: Queuing = Queuing { queues: 64, hand_size: 6, length: 50 };

#[derive(Debug, Clone, Deserialize)]
#[serde(bound(deserialize = "S: DeserializeOwned"))]
pub(super) struct Object<S> {
    metadata: Metadata,
    spec: S,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: Box<str>,
    uid: Box<str>,
}

/// The `spec` of a `PriorityLevelConfiguration`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct LevelSpec {
    #[serde(rename = "type")]
    kind: Box<str>,
    limited: Option<Limited>,
    exempt: Option<Exempt>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Limited {
    nominal_concurrency_shares: Option<u32>,
    lendable_percent: Option<u32>,
    borrowing_limit_percent: Option<u32>,
    limit_response: LimitResponse,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Exempt {
    nominal_concurrency_shares: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct LimitResponse {
    #[serde(rename = "type")]
    kind: Box<str>,
    queuing: Option<QueuingSpec>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct QueuingSpec {
    queues: u32,
    hand_size: u32,
    queue_length_limit: u32,
}

/// A stored object, if it can be read.
pub(super) fn read<S: DeserializeOwned>(json: &[u8]) -> Option<Object<S>> {
    serde_json::from_slice(json).ok()
}

fn built_in<S: DeserializeOwned>(object: Option<Value>) -> Option<Object<S>> {
    object.and_then(|object| serde_json::from_value(object).ok())
}

/// The objects of a new tenant.
pub(super) fn initial() -> (Vec<Object<Spec>>, Vec<Object<LevelSpec>>) {
    let schemas = bootstrap::flow_schemas().into_iter().filter_map(|object| built_in(Some(object)));
    let levels = bootstrap::priority_levels().into_iter().filter_map(|object| built_in(Some(object)));
    (schemas.collect(), levels.collect())
}

/// A flow schema, with the level that it refers to.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(super) name: Box<str>,
    spec: Spec,
    /// The number of its level.
    pub(super) level: usize,
    pub(super) exempt: bool,
    /// The uids of the schema and of its level, for the headers of responses.
    pub(super) uids: Option<(HeaderValue, HeaderValue)>,
    pub(super) counters: Arc<Counters>,
}

impl Schema {
    /// What tells the flow of a request apart from others of this schema.
    pub(super) fn distinguisher<'a>(&self, user: &'a User, wanted: &Attributes<'a>) -> &'a str {
        match self.spec.distinguisher_method {
            None => "",
            Some(Distinguisher::ByUser) => &user.name,
            Some(Distinguisher::ByNamespace) => match wanted.target {
                Target::Resource { namespace, .. } => namespace,
                Target::Path(_) => "",
            },
        }
    }
}

/// A compiled configuration.
#[derive(Debug, Default)]
pub(super) struct Config {
    schemas: Vec<Arc<Schema>>,
    /// The schemas that users are subjects of.
    of_users: ByUser<Vec<Arc<Schema>>>,
}

impl Config {
    /// The schema that a request belongs to: there is always one for a user in one of the groups that all users are in.
    pub(super) fn classify(&self, user: &User, wanted: &Attributes<'_>) -> Option<Arc<Schema>> {
        let of_user =
            || self.schemas.iter().filter(|schema| schema.spec.has_subject(user)).cloned().collect();
        let classify = |schemas: &Vec<Arc<Schema>>| {
            schemas.iter().find(|schema| schema.spec.matches(user, wanted)).cloned()
        };
        // As in kube-apiserver, whoever matches none is caught by the last.
        self.of_users.read(user, of_user, classify).or_else(|| self.schemas.last().cloned())
    }

    pub(super) fn schemas(&self) -> &[Arc<Schema>] {
        &self.schemas
    }
}

/// The levels of a tenant by name. A level keeps its number while requests of it are in flight, even if it was deleted.
#[derive(Debug, Default)]
pub(super) struct Levels {
    pub(super) numbers: HashMap<Box<str>, usize>,
    pub(super) limits: Vec<LevelLimits>,
    counters: HashMap<(Box<str>, Box<str>), Arc<Counters>>,
}

impl Levels {
    /// Compiles a configuration. `seats`: those of the server; `is_idle`: whether no request of a level is in flight.
    pub(super) fn compile(
        &mut self,
        schemas: Vec<Object<Spec>>,
        levels: Vec<Object<LevelSpec>>,
        seats: usize,
        is_idle: impl Fn(usize) -> bool,
    ) -> Config {
        let mut levels: Vec<Object<LevelSpec>> = levels.into_iter().filter(is_usable).collect();
        for name in ["exempt", "catch-all"] {
            if !levels.iter().any(|level| *level.metadata.name == *name) {
                levels.extend(built_in(bootstrap::mandatory_priority_level(name)));
            }
        }
        self.numbers.retain(|name, number| {
            levels.iter().any(|level| level.metadata.name == *name) || !is_idle(*number)
        });
        let sum: u64 = levels.iter().map(|level| u64::from(shares(&level.spec))).sum();
        let mut uids: HashMap<Box<str>, Box<str>> = HashMap::new();
        for level in &levels {
            let limits = limits(&level.spec, seats, sum.max(1));
            let number = self.number(&level.metadata.name);
            match self.limits.get_mut(number) {
                Some(place) => *place = limits,
                None => self.limits.push(limits),
            }
            uids.insert(level.metadata.name.clone(), level.metadata.uid.clone());
        }
        let mut schemas = schemas;
        schemas.retain(|schema| uids.contains_key(&schema.spec.priority_level_configuration.name));
        schemas.sort_by(|a, b| {
            let order = |one: &Object<Spec>| one.spec.matching_precedence;
            order(a).cmp(&order(b)).then_with(|| a.metadata.name.cmp(&b.metadata.name))
        });
        let has =
            |schemas: &[Object<Spec>], name: &str| schemas.iter().any(|one| *one.metadata.name == *name);
        if !has(&schemas, "exempt") {
            schemas.splice(0..0, built_in(bootstrap::mandatory_flow_schema("exempt")));
        }
        if !has(&schemas, "catch-all") {
            schemas.extend(built_in(bootstrap::mandatory_flow_schema("catch-all")));
        }
        let before = std::mem::take(&mut self.counters);
        let mut compiled = Vec::with_capacity(schemas.len());
        for Object { metadata, spec } in schemas {
            let name = &spec.priority_level_configuration.name;
            let level = self.numbers.get(name).copied().unwrap_or_default();
            let exempt = self.limits.get(level).is_some_and(|limits| limits.exempt);
            let key = (metadata.name.clone(), name.clone());
            let counters = before.get(&key).cloned().unwrap_or_default();
            self.counters.insert(key, counters.clone());
            let uid = |text: &str| HeaderValue::from_str(text).ok().filter(|_| !text.is_empty());
            let level_uid = uids.get(name).map_or("", |uid| &**uid);
            let uids = uid(&metadata.uid).zip(uid(level_uid));
            compiled.push(Arc::new(Schema { name: metadata.name, spec, level, exempt, uids, counters }));
        }
        Config { schemas: compiled, of_users: ByUser::default() }
    }

    /// The number of a level: its own, or one that is not in use.
    fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let taken: std::collections::HashSet<usize> = self.numbers.values().copied().collect();
        let free = (0..=self.limits.len()).find(|number| !taken.contains(number)).unwrap_or_default();
        self.numbers.insert(name.into(), free);
        free
    }
}

/// Whether a level is one that kube-apiserver would use. Only `exempt` is exempt.
fn is_usable(level: &Object<LevelSpec>) -> bool {
    let spec = &level.spec;
    let is_exempt = &*spec.kind == "Exempt";
    let response_fits = spec.limited.as_ref().is_none_or(|limited| {
        (&*limited.limit_response.kind == "Reject") == limited.limit_response.queuing.is_none()
    });
    (&*spec.kind == "Limited") == spec.limited.is_some()
        && is_exempt == spec.exempt.is_some()
        && is_exempt == (&*level.metadata.name == "exempt")
        && response_fits
}

fn shares(spec: &LevelSpec) -> u32 {
    match (&spec.limited, &spec.exempt) {
        (Some(limited), _) => limited.nominal_concurrency_shares.unwrap_or(30),
        (None, Some(exempt)) => exempt.nominal_concurrency_shares.unwrap_or(0),
        (None, None) => 0,
    }
}

/// The limits of a level with a part of these seats.
fn limits(spec: &LevelSpec, seats: usize, all_shares: u64) -> LevelLimits {
    let Some(limited) = &spec.limited else {
        return LevelLimits {
            nominal: seats,
            guaranteed: 0,
            most: usize::MAX,
            queuing: Some(QUEUING),
            exempt: true,
        };
    };
    let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let nominal = whole((seats as u64).saturating_mul(u64::from(shares(spec))).div_ceil(all_shares));
    let percent = |percent: u32| {
        let hundredfold = (nominal as u64).saturating_mul(u64::from(percent));
        whole(hundredfold.saturating_add(50) / 100)
    };
    let borrowed = limited.borrowing_limit_percent.map_or(seats, percent);
    let queuing = limited.limit_response.queuing.as_ref().map(|queuing| Queuing {
        queues: queuing.queues.max(1),
        hand_size: queuing.hand_size.max(1),
        length: queuing.queue_length_limit as usize,
    });
    LevelLimits {
        nominal,
        guaranteed: nominal.saturating_sub(percent(limited.lendable_percent.unwrap_or(0))),
        most: nominal.saturating_add(borrowed),
        queuing,
        exempt: false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::request::Verb;

    fn compile(levels: &mut Levels, schemas: Vec<Value>, plain: Vec<Value>) -> Config {
        let schemas = schemas.into_iter().map(|one| serde_json::from_value(one).unwrap()).collect();
        let plain = plain.into_iter().map(|one| serde_json::from_value(one).unwrap()).collect();
        levels.compile(schemas, plain, 600, |_| true)
    }

    fn initial_config() -> (Levels, Config) {
        let mut levels = Levels::default();
        let config = compile(&mut levels, bootstrap::flow_schemas(), bootstrap::priority_levels());
        (levels, config)
    }

    fn limits_of(levels: &Levels, name: &str) -> LevelLimits {
        levels.limits[levels.numbers[name]]
    }

    /// What kube-apiserver's metrics report for its default of 600 seats.
    #[test]
    fn the_initial_levels_have_the_limits_of_kubernetes() {
        let (levels, _) = initial_config();
        for (name, nominal, guaranteed) in [
            ("catch-all", 13, 13),
            ("global-default", 49, 24),
            ("leader-election", 25, 25),
            ("node-high", 98, 73),
            ("system", 74, 50),
            ("workload-high", 98, 49),
            ("workload-low", 245, 24),
        ] {
            let found = limits_of(&levels, name);
            assert_eq!(
                (found.nominal, found.guaranteed, found.most),
                (nominal, guaranteed, nominal + 600),
                "{name}"
            );
        }
        assert!(limits_of(&levels, "exempt").exempt);
        assert_eq!(limits_of(&levels, "catch-all").queuing, None);
        let queuing = Some(Queuing { queues: 128, hand_size: 6, length: 50 });
        assert_eq!(limits_of(&levels, "workload-low").queuing, queuing);
    }

    #[test]
    fn the_initial_schemas_classify_as_in_kubernetes() {
        let (_, config) = initial_config();
        let classify = |name: &str, groups: &[&str], verb: &str, target: Target<'_>| {
            let user = User::new(name, groups);
            config.classify(&user, &Attributes::new(Verb::named(verb), target)).unwrap().name.to_string()
        };
        let of = |group: &'static str, resource: &'static str, namespace: &'static str| Target::Resource {
            group,
            resource,
            subresource: "",
            namespace,
            name: "x",
        };
        let leases = || of("coordination.k8s.io", "leases", "kube-system");
        let pods = || of("", "pods", "default");
        let accounts = "system:serviceaccounts";
        for (expected, name, groups, verb, target) in [
            ("exempt", "root", &["system:masters"][..], "list", pods()),
            ("probes", "alice", &[], "get", Target::Path("/readyz")),
            ("probes", "alice", &[], "get", Target::Path("/readyz/etcd")),
            ("global-default", "alice", &[], "get", Target::Path("/version")),
            ("global-default", "alice", &[], "list", pods()),
            ("system-nodes", "system:node:a", &["system:nodes"], "list", pods()),
            ("system-node-high", "system:node:a", &["system:nodes"], "update", of("", "nodes", "")),
            ("system-node-high", "system:node:a", &["system:nodes"], "update", leases()),
            ("system-leader-election", "system:kube-scheduler", &[], "update", leases()),
            ("kube-scheduler", "system:kube-scheduler", &[], "list", pods()),
            ("kube-controller-manager", "system:kube-controller-manager", &[], "list", pods()),
            (
                "kube-system-service-accounts",
                "system:serviceaccount:kube-system:gc",
                &[accounts],
                "list",
                pods(),
            ),
            ("system-leader-election", "system:serviceaccount:kube-system:gc", &[accounts], "get", leases()),
            ("service-accounts", "system:serviceaccount:default:robot", &[accounts], "list", pods()),
        ] {
            assert_eq!(classify(name, groups, verb, target), expected, "{name} {verb}");
        }
        // In neither of the groups of all users.
        let nobody = User { name: "nobody".into(), ..User::default() };
        let wanted = Attributes::new(Verb::Get, pods());
        assert_eq!(&*config.classify(&nobody, &wanted).unwrap().name, "catch-all");
    }

    fn schema(name: &str, level: &str, precedence: i64) -> Value {
        let rule = json!({"subjects": [{"kind": "Group", "group": {"name": "*"}}],
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}]});
        json!({"metadata": {"name": name, "uid": format!("uid-{name}")}, "spec": {"matchingPrecedence": precedence,
            "priorityLevelConfiguration": {"name": level}, "rules": [rule]}})
    }

    #[expect(clippy::needless_pass_by_value, reason = "made for the call")]
    fn level(name: &str, shares: u32, response: Value) -> Value {
        json!({"metadata": {"name": name, "uid": format!("uid-{name}")}, "spec": {"type": "Limited",
            "limited": {"nominalConcurrencyShares": shares, "limitResponse": response}}})
    }

    #[test]
    fn schemas_are_ordered_and_those_without_a_level_are_ignored() {
        let mut levels = Levels::default();
        let reject = || json!({"type": "Reject"});
        let config = compile(
            &mut levels,
            vec![
                schema("b", "good", 500),
                schema("a", "good", 500),
                schema("early", "none", 2),
                schema("c", "broken", 3),
            ],
            vec![level("good", 10, reject()), level("broken", 10, json!({"type": "Queue"}))],
        );
        let names: Vec<&str> = config.schemas().iter().map(|schema| &*schema.name).collect();
        assert_eq!(names, ["exempt", "a", "b", "catch-all"]);
        let target =
            Target::Resource { group: "", resource: "pods", subresource: "", namespace: "x", name: "" };
        let wanted = Attributes::new(Verb::Get, target);
        let found = config.classify(&User::new("u", &[]), &wanted).unwrap();
        let uids = found.uids.as_ref().unwrap();
        assert_eq!(
            (&*found.name, uids.0.to_str().unwrap(), uids.1.to_str().unwrap()),
            ("a", "uid-a", "uid-good")
        );
        assert_eq!(limits_of(&levels, "good").nominal, 400, "two thirds, and catch-all has one");
    }

    #[test]
    fn a_level_in_use_keeps_its_number() {
        let mut levels = Levels::default();
        let reject = || json!({"type": "Reject"});
        compile(&mut levels, vec![], vec![level("one", 10, reject()), level("two", 10, reject())]);
        let (one, two) = (levels.numbers["one"], levels.numbers["two"]);
        // It is gone, but not idle: its number is not given to another one.
        let objects = vec![serde_json::from_value(level("three", 10, reject())).unwrap()];
        levels.compile(vec![], objects, 600, |number| number != one);
        assert_eq!(levels.numbers.get("one"), Some(&one));
        assert_eq!(levels.numbers["three"], two);
        compile(&mut levels, vec![], vec![level("four", 10, reject())]);
        assert!(!levels.numbers.contains_key("one"));
        assert_eq!(levels.limits.len(), 4);
    }
}
