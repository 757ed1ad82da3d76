//! Scheduling constraints: affinity, tolerations, topology spread, gates.

use std::collections::{BTreeMap, BTreeSet};

use k1s_object::{At, FieldError, names};

use crate::rules::helpers::{
    labels,
    node_selector::{node_selector, node_selector_term},
    numbers::positive,
    text::{one_of_or_unset, qualified_name},
};

/// `spec.affinity`
pub(crate) fn affinity(at: At<'_, '_>) {
    let node = at.get("nodeAffinity");
    if node.is_set() {
        let must = node.get("requiredDuringSchedulingIgnoredDuringExecution");
        if must.is_set() {
            node_selector(must, false);
        }
        for preferred in node.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
            weight(preferred.get("weight"));
            node_selector_term(preferred.get("preference"), true);
        }
    }
    for side in ["podAffinity", "podAntiAffinity"] {
        let side = at.get(side);
        for term in side.get("requiredDuringSchedulingIgnoredDuringExecution").items() {
            pod_affinity_term(term);
        }
        for weighted in side.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
            weight(weighted.get("weight"));
            pod_affinity_term(weighted.get("podAffinityTerm"));
        }
    }
}

fn weight(at: At<'_, '_>) {
    if !(1..=100).contains(&at.number()) {
        at.invalid_as(at.number(), "must be in the range 1-100");
    }
}

fn pod_affinity_term(term: At<'_, '_>) {
    labels::selector(term.get("labelSelector"));
    labels::selector(term.get("namespaceSelector"));
    for name in term.get("namespaces").items() {
        for message in names::is_dns1123_label(name.text()) {
            term.get("namespace").invalid_as(name.text(), message);
        }
    }
    match_label_keys(term);
    let key = term.get("topologyKey");
    if key.is_empty() {
        key.required("can not be empty");
    }
    qualified_name(key);
}

/// `matchLabelKeys` and `mismatchLabelKeys`: they extend a selector and may not repeat its keys.
fn match_label_keys(term: At<'_, '_>) {
    let selector = term.get("labelSelector");
    for list in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = term.get(list);
        if keys.is_empty() {
            continue;
        }
        if !selector.is_set() {
            keys.forbidden("must not be specified when labelSelector is not set");
            continue;
        }
        for key in keys.items() {
            qualified_name(key);
        }
    }
    let keys: Vec<&str> = term.get("matchLabelKeys").items().map(At::text).collect();
    if selector.is_set() && !keys.is_empty() {
        let mut taken: BTreeSet<&str> = selector.get("matchLabels").entries().map(|(key, _)| key).collect();
        for expression in selector.get("matchExpressions").items() {
            let key = expression.get("key").text();
            if !taken.insert(key)
                && let Some(index) = keys.iter().rposition(|one| *one == key)
            {
                term.index(index).invalid_as(key, "exists in both matchLabelKeys and labelSelector");
            }
        }
    }
    let mismatch: BTreeSet<&str> = term.get("mismatchLabelKeys").items().map(At::text).collect();
    for key in term.get("matchLabelKeys").items() {
        if mismatch.contains(&key.text()) {
            key.invalid("exists in both matchLabelKeys and mismatchLabelKeys");
        }
    }
}

/// `spec.topologySpreadConstraints`
pub(crate) fn topology_spread(list: At<'_, '_>) {
    let pair = |at: At<'_, '_>| {
        (at.get("topologyKey").text().to_owned(), at.get("whenUnsatisfiable").text().to_owned())
    };
    let mut later: BTreeMap<(String, String), usize> = BTreeMap::new();
    for constraint in list.items() {
        *later.entry(pair(constraint)).or_default() += 1;
    }
    for constraint in list.items() {
        positive(constraint.get("maxSkew"));
        if constraint.get("topologyKey").is_empty() {
            constraint.get("topologyKey").required("can not be empty");
        }
        let action = constraint.get("whenUnsatisfiable");
        if !matches!(action.text(), "DoNotSchedule" | "ScheduleAnyway") {
            action.not_supported(&["DoNotSchedule", "ScheduleAnyway"]);
        }
        let own = pair(constraint);
        let left = later.entry(own.clone()).or_default();
        *left = left.saturating_sub(1);
        if *left > 0 {
            let path = format!("{}.{{topologyKey, whenUnsatisfiable}}", constraint.path());
            list.check().push(FieldError::duplicate(path, format!("{{{}, {}}}", own.0, own.1)));
        }
        let domains = constraint.get("minDomains");
        if domains.is_set() {
            positive(domains);
            if action.text() != "DoNotSchedule" {
                domains.invalid(format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                    action.text()
                ));
            }
        }
        one_of_or_unset(constraint.get("nodeAffinityPolicy"), &["Honor", "Ignore"]);
        one_of_or_unset(constraint.get("nodeTaintsPolicy"), &["Honor", "Ignore"]);
        match_label_keys(constraint);
        labels::selector(constraint.get("labelSelector"));
    }
}

/// `spec.tolerations`
pub(crate) fn tolerations(list: At<'_, '_>) {
    for toleration in list.items() {
        let (operator, effect, value) =
            (toleration.get("operator"), toleration.get("effect"), toleration.get("value"));
        let key = toleration.get("key");
        if !key.is_empty() {
            qualified_name(key);
        }
        if key.is_empty() && operator.text() != "Exists" {
            operator.invalid_text(
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            );
        }
        if toleration.get("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            effect.invalid_text("effect must be 'NoExecute' when `tolerationSeconds` is set");
        }
        match operator.text() {
            "Equal" | "" => {
                let wrong = names::is_valid_label_value(value.text());
                if !wrong.is_empty() {
                    operator.invalid_as(value.text(), wrong.join(";"));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    operator.invalid_as(value.text(), "value must be empty when `operator` is 'Exists'");
                }
            }
            "Lt" | "Gt" => operator.not_supported(&["Equal", "Exists", "Lt", "Gt"]),
            _ => operator.not_supported(&["Equal", "Exists"]),
        }
        if !effect.is_empty() && !matches!(effect.text(), "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
            effect.not_supported(&["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        }
    }
}

/// `spec.schedulingGates` and `spec.readinessGates`
pub(crate) fn gates(spec: At<'_, '_>) {
    for gate in spec.get("readinessGates").items() {
        qualified_name(gate.get("conditionType"));
    }
    let mut seen = BTreeSet::new();
    for gate in spec.get("schedulingGates").items() {
        let name = gate.get("name");
        for message in names::is_qualified_name(name.text()) {
            gate.invalid_as(name.text(), message);
        }
        if !seen.insert(name.text()) {
            gate.check().push(FieldError::duplicate(gate.path(), name.text()));
        }
    }
}
