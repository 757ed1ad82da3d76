//! The total resources of a pod.

use std::collections::BTreeMap;

use k1s_object::quantity::Quantity;
use serde_json::Value;

use crate::rules::helpers::{
    json::{find, list_at, text_at},
    resource_names::is_pod_level,
};

/// Amounts by resource name.
pub type Amounts = BTreeMap<String, Quantity>;

/// The amounts of a resource list.
pub(super) fn amounts(list: Option<&Value>) -> Amounts {
    let entries = list.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(name, amount)| Some((name.clone(), Quantity::from_json(amount).ok()?))).collect()
}

/// Adds amounts.
pub(super) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = to.get(name).map_or_else(|| amount.clone(), |before| before.add(amount));
        to.insert(name.clone(), sum);
    }
}

fn at_least(to: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        if to.get(name).is_none_or(|before| before < amount) {
            to.insert(name.clone(), amount.clone());
        }
    }
}

/// The `requests` or `limits` of a container.
pub(super) fn of_container(container: &Value, which: &str) -> Amounts {
    amounts(find(container, &["resources", which]))
}

/// The `requests` or `limits` of a pod: regular containers run together, init containers one by one, and
/// sidecars (init containers that keep running) beside all that follow them.
pub(super) fn of_pod(pod: &Value, which: &str) -> Amounts {
    let mut total = Amounts::new();
    for container in list_at(pod, &["spec", "containers"]) {
        add(&mut total, &of_container(container, which));
    }
    let (mut sidecars, mut most) = (Amounts::new(), Amounts::new());
    for container in list_at(pod, &["spec", "initContainers"]) {
        let mut own = of_container(container, which);
        if text_at(container, &["restartPolicy"]) == "Always" {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            own.clone_from(&sidecars);
        } else {
            add(&mut own, &sidecars);
        }
        at_least(&mut most, &own);
    }
    at_least(&mut total, &most);
    let whole = amounts(find(pod, &["spec", "resources", which]));
    total.extend(whole.into_iter().filter(|(name, _)| is_pod_level(name)));
    total
}

/// Whether the pod has pod-level resources.
pub(super) fn has_pod_level(pod: &Value) -> bool {
    let names = ["requests", "limits"].map(|which| amounts(find(pod, &["spec", "resources", which])));
    names.iter().flat_map(BTreeMap::keys).any(|name| is_pod_level(name))
}

/// Whether no container requests CPU or memory.
pub(super) fn is_best_effort(pod: &Value) -> bool {
    let asks = |resources: Option<&Value>| {
        resources.is_some_and(|resources| {
            let lists = ["requests", "limits"].map(|which| amounts(resources.get(which)));
            let mut entries = lists.iter().flatten();
            entries.any(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && !amount.is_zero())
        })
    };
    let containers =
        ["containers", "initContainers"].into_iter().flat_map(|group| list_at(pod, &["spec", group]));
    !asks(find(pod, &["spec", "resources"])) && !containers.into_iter().any(|one| asks(one.get("resources")))
}
