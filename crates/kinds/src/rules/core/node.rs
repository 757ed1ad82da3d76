//! `Node`.

use k1s_object::{At, FieldError, ip, names};
use serde_json::{Value, json};

use crate::rules::{
    FieldLabelError, Rules, SelectableField,
    helpers::{
        errors::duplicate,
        json::{find, keep, list_at, object_in, remove_in, set_in, strings_at, text_at},
        network::{is_ipv4, is_ipv6, legacy_cidr},
        quantities::round_up,
        resource_names::resource_amount,
        text::{qualified_name, texts},
    },
    keep_status,
};

pub(super) static RULES: Rules = Rules {
    defaults,
    prepare_create,
    prepare_update,
    prepare_status,
    validate,
    validate_update: |new, old| {
        validate(new);
        changes(new, old);
    },
    validate_status: changes,
    warnings,
    fields: &[SelectableField {
        path: "spec.unschedulable",
        read: |node| {
            let unschedulable = find(node, &["spec", "unschedulable"]).and_then(Value::as_bool);
            unschedulable.unwrap_or_default().to_string()
        },
    }],
    field_error: FieldLabelError::NotSupported,
    ..Rules::PLAIN
};

fn defaults(node: &mut Value) {
    let first = text_at(node, &["spec", "podCIDR"]).to_owned();
    let all = strings_at(node, &["spec", "podCIDRs"]);
    match all.first() {
        Some(&head) if first.is_empty() => {
            let head = head.to_owned();
            set_in(node, "spec", "podCIDR", head);
        }
        head if !first.is_empty() && head != Some(&first.as_str()) => {
            set_in(node, "spec", "podCIDRs", vec![Value::from(first)]);
        }
        _ => {}
    }
    for list in ["/status/capacity", "/status/allocatable"] {
        round_up(node.pointer_mut(list));
    }
    let capacity = find(node, &["status", "capacity"]).cloned();
    if let Some(capacity) = capacity
        && find(node, &["status", "allocatable"]).is_none()
    {
        set_in(node, "status", "allocatable", capacity);
    }
}

fn prepare_create(node: &mut Value) {
    remove_in(node, "spec", "configSource");
    remove_in(node, "spec", "podPreemptionPolicy");
    remove_in(node, "status", "config");
    // A node is not ready until its kubelet reports it; in Kubernetes an admission plugin adds this taint.
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let is_there = |one: &Value| one["key"] == taint["key"] && one["effect"] == taint["effect"];
    if !list_at(node, &["spec", "taints"]).iter().any(is_there)
        && let Some(spec) = object_in(node, "spec")
    {
        let taints = spec.entry("taints").or_insert_with(|| json!([]));
        if let Some(taints) = taints.as_array_mut() {
            taints.push(taint);
        }
    }
}

fn prepare_update(new: &mut Value, old: &Value) {
    keep_status(new, old);
    for field in ["configSource", "podPreemptionPolicy"] {
        if find(old, &["spec", field]).is_none() {
            remove_in(new, "spec", field);
        }
    }
}

fn prepare_status(new: &mut Value, old: &Value) {
    keep(new, old, "spec");
    if find(old, &["status", "config"]).is_none() {
        remove_in(new, "status", "config");
    }
    if find(old, &["status", "nodeInfo", "runningInUserNamespace"]).is_none()
        && let Some(info) = new.pointer_mut("/status/nodeInfo").and_then(Value::as_object_mut)
    {
        info.shift_remove("runningInUserNamespace");
    }
}

fn validate(node: At<'_, '_>) {
    taints(node);
    resources(node);
    let cidrs = node.get("spec").get("podCIDRs");
    for cidr in cidrs.items() {
        legacy_cidr(cidr, &[]);
    }
    let all = texts(cidrs);
    if all.len() > 1 {
        let addresses: Vec<&str> =
            all.iter().map(|cidr| cidr.split_once('/').map_or("", |(address, _)| address)).collect();
        let both = addresses.iter().any(|ip| is_ipv4(ip)) && addresses.iter().any(|ip| is_ipv6(ip));
        if !both || all.len() > 2 {
            cidrs.invalid("may specify no more than one CIDR for each IP family");
        }
    }
}

/// Errors about taints name `metadata.taints`, although they are in the spec.
fn taints(node: At<'_, '_>) {
    let taints = node.get("metadata").get("taints").with(node.get("spec").get("taints").value());
    let mut seen = std::collections::HashSet::new();
    for taint in taints.items() {
        let (key, value, effect) = (taint.get("key"), taint.get("value"), taint.get("effect"));
        qualified_name(key);
        let messages = names::is_valid_label_value(value.text());
        if !messages.is_empty() {
            value.invalid_text(messages.join(";"));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if effect.text().is_empty() {
            effect.required("");
        } else if !effects.contains(&effect.text()) {
            effect.not_supported(&effects);
        }
        if seen.contains(&(key.text(), effect.text())) {
            let mut error = FieldError::duplicate(
                taint.path(),
                json!({
                    "Key": key.text(), "Value": value.text(), "Effect": effect.text(),
                    "TimeAdded": taint.get("timeAdded").value().cloned().unwrap_or_default(),
                }),
            );
            error.detail = "taints must be unique by key and effect pair".into();
            taint.check().push(error);
            continue;
        }
        seen.insert((key.text(), effect.text()));
    }
}

fn resources(node: At<'_, '_>) {
    for list in ["capacity", "allocatable"] {
        let list = node.get("status").get(list);
        for (name, _) in list.entries() {
            resource_amount(name, list.get(name));
        }
    }
}

fn changes(new: At<'_, '_>, old: At<'_, '_>) {
    resources(new);
    let mut seen = std::collections::HashSet::new();
    for address in new.get("status").get("addresses").items() {
        let key = (address.get("type").text(), address.get("address").text());
        if seen.contains(&key) {
            duplicate(address, json!({"Type": key.0, "Address": key.1}));
        }
        seen.insert(key);
    }
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let (cidrs, old_cidrs) = (texts(spec.get("podCIDRs")), texts(before.get("podCIDRs")));
    if !old_cidrs.is_empty() {
        let forbidden = || {
            spec.get("podCIDRs").forbidden("node updates may not change podCIDR except from \"\" to valid");
        };
        if cidrs.len() == old_cidrs.len() {
            cidrs.iter().zip(&old_cidrs).filter(|(new, old)| new != old).for_each(|_| forbidden());
        } else {
            forbidden();
        }
    }
    let (provider, old_provider) = (spec.get("providerID"), before.get("providerID").text());
    if !old_provider.is_empty() && provider.text() != old_provider {
        let what = if provider.text().is_empty() { "cleared" } else { "modified" };
        provider.invalid_as(Value::Null, format!("field cannot be {what} once set"));
    }
    taints(new);
    if spec.get("externalID").text() != before.get("externalID").text() {
        spec.get("externalID").forbidden("may not be updated");
    }
}

fn warnings(node: &Value, _: Option<&Value>, out: &mut Vec<String>) {
    if find(node, &["spec", "configSource"]).is_some() {
        out.push("spec.configSource: the feature is removed".into());
    }
    if !text_at(node, &["spec", "externalID"]).is_empty() {
        out.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".into());
    }
    for (i, cidr) in strings_at(node, &["spec", "podCIDRs"]).into_iter().enumerate() {
        out.extend(ip::get_warnings_for_cidr(&format!("spec.podCIDRs[{i}]"), cidr));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing;

    #[test]
    fn the_networks_of_pods_agree() {
        let node = testing::created(&RULES, json!({"spec": {"podCIDR": "10.9.0.0/24"}}));
        assert_eq!(node["spec"]["podCIDRs"], json!(["10.9.0.0/24"]));
        let node = testing::created(&RULES, json!({"spec": {"podCIDRs": ["10.9.0.0/24"]}}));
        assert_eq!(node["spec"]["podCIDR"], "10.9.0.0/24");
        assert_eq!(
            node["spec"]["taints"],
            json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
        );
    }

    #[test]
    fn fields_set_once_are_immutable() {
        assert_eq!(
            testing::on_update(
                &RULES,
                json!({"spec": {"providerID": "x://1", "podCIDR": "10.9.0.0/24"}}),
                json!({"spec": {"providerID": "x://2", "podCIDR": "10.8.0.0/24"}})
            ),
            [
                "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid",
                "spec.providerID: Invalid value: null: field cannot be modified once set",
            ]
        );
    }

    #[test]
    fn taints_are_told_apart_by_key_and_effect() {
        let taint = json!({"key": "a", "effect": "NoSchedule"});
        assert_eq!(
            testing::on_create(&RULES, json!({"spec": {"taints": [taint, taint, {"key": "b"}]}})),
            [
                "metadata.taints[1]: Duplicate value: {\"Key\":\"a\",\"Value\":\"\",\"Effect\":\"NoSchedule\",\
                 \"TimeAdded\":null}: taints must be unique by key and effect pair",
                "metadata.taints[2].effect: Required value",
            ]
        );
    }

    #[test]
    fn capacity_is_what_can_be_allocated_by_default() {
        let node = testing::created(&RULES, json!({"status": {"capacity": {"cpu": "4"}}}));
        assert_eq!(node["status"]["allocatable"], json!({"cpu": "4"}));
        assert_eq!(
            testing::on_create(&RULES, json!({"status": {"capacity": {"pods": "1.5"}, "allocatable": {}}})),
            ["status.capacity.pods: Invalid value: \"1500m\": must be an integer"]
        );
    }
}
