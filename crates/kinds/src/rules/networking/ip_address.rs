//! Rules of `IPAddress` and `ServiceCIDR`.

use k1s_object::{At, Check, ip, names};
use serde_json::{Value, json};

use crate::rules::{
    NameRule, Rules, drop_status,
    helpers::core_util::{IMMUTABLE, dns_subdomain, each, is_ipv4, is_ipv6, keep, object, same, texts},
    keep_status,
};

/// The rules of `IPAddress`.
pub(super) static RULES: Rules = Rules {
    validate: |address| {
        parent(address.get("spec").get("parentRef"));
        parent_required(address, None);
    },
    validate_update: |new, old| {
        parent(new.get("spec").get("parentRef"));
        parent_required(new, Some(old));
    },
    name: NameRule::Own(name),
    ..Rules::PLAIN
};

/// The rules of `ServiceCIDR`.
pub(super) static SERVICE_CIDR: Rules = Rules {
    prepare_create: drop_status,
    prepare_update: keep_status,
    prepare_status: service_cidr_status,
    validate: |cidr| cidrs(cidr.get("spec")),
    validate_update: service_cidr_update,
    ..Rules::PLAIN
};

/// The `IPAddress` that says which Service has a cluster IP. That there can be one of a name makes it the allocation.
pub fn of_service(ip: &str, namespace: &str, name: &str) -> Value {
    let family = if is_ipv6(ip) { "IPv6" } else { "IPv4" };
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {
            "name": ip,
            "labels": {
                "ipaddress.kubernetes.io/ip-family": family,
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}},
    })
}

/// The canonical form of an address.
fn name(name: &str, _prefix: bool) -> Vec<String> {
    let value = Value::from(name);
    let check = Check::new();
    ip::is_valid_ip(check.root(&value));
    check.take().into_iter().map(|error| error.detail).collect()
}

fn parent(parent: At<'_, '_>) {
    if !parent.is_set() {
        return;
    }
    if !parent.get("group").text().is_empty() {
        dns_subdomain(parent.get("group"));
    }
    for field in ["resource", "name", "namespace"] {
        let field = parent.get(field);
        if !field.text().is_empty() {
            each(field, names::is_path_segment_name(field.text()));
        }
    }
}

/// The rules of the schema, which come last.
fn parent_required(address: At<'_, '_>, old: Option<At<'_, '_>>) {
    let parent = address.get("spec").get("parentRef");
    if let Some(old) = old {
        if same(parent.value(), old.get("spec").get("parentRef").value()) {
            return;
        }
        if !parent.is_set() {
            parent.required("");
        }
        return parent.invalid_as(Value::Null, IMMUTABLE);
    }
    if !parent.is_set() {
        return parent.required("");
    }
    for field in ["resource", "name"] {
        if parent.get(field).text().is_empty() {
            parent.get(field).required("");
        }
    }
}

/// `/status` changes neither the spec nor labels and other metadata.
fn service_cidr_status(new: &mut Value, old: &Value) {
    keep(new, old, "spec");
    let kept = ["labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"];
    let Some(meta) = object(new, "metadata") else { return };
    for field in kept {
        match old.get("metadata").and_then(|meta| meta.get(field)) {
            Some(value) => {
                meta.insert(field.into(), value.clone());
            }
            None => {
                meta.shift_remove(field);
            }
        }
    }
}

fn cidrs(spec: At<'_, '_>) {
    let at = spec.get("cidrs");
    let list = texts(at);
    if list.is_empty() {
        return at.required("at least one CIDR required");
    }
    if list.len() > 2 {
        let shown = json!({"CIDRs": at.value().cloned().unwrap_or_default()});
        return at.invalid_as(shown, "may only hold up to 2 values");
    }
    for cidr in at.items() {
        ip::is_valid_cidr(cidr);
    }
    let address =
        |cidr: &&str| cidr.split_once('/').map(|(address, _)| address.to_owned()).unwrap_or_default();
    let addresses: Vec<String> = list.iter().map(address).collect();
    let all = |family: fn(&str) -> bool| addresses.iter().all(|address| family(address));
    if list.len() == 2 && (all(is_ipv4) || all(is_ipv6)) {
        at.invalid(
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64",
        );
    }
}

fn service_cidr_update(new: At<'_, '_>, old: At<'_, '_>) {
    let at = new.get("spec").get("cidrs");
    let before = texts(old.get("spec").get("cidrs"));
    match (before.len(), at.len()) {
        (before_count, count) if before_count == count => {
            for (cidr, before) in at.items().zip(before) {
                if cidr.text() != before {
                    cidr.invalid(IMMUTABLE);
                }
            }
        }
        (1, 2) => {
            let first = at.index(0);
            if before.first() != Some(&first.text()) {
                first.invalid(IMMUTABLE);
            }
            cidrs(new.get("spec"));
        }
        _ => at.invalid(IMMUTABLE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::core_util::testing;

    #[test]
    fn an_address_names_itself_and_has_a_parent() {
        assert!(name("10.0.0.1", false).is_empty());
        assert_eq!(name("x", false), ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]);
        assert_eq!(name("2001:DB8::1", false), ["must be in canonical form (\"2001:db8::1\")"]);
        assert!(testing::create(&RULES, of_service("10.0.0.1", "n", "s")).is_empty());
        assert_eq!(testing::create(&RULES, json!({})), ["spec.parentRef: Required value"]);
        assert_eq!(
            testing::create(&RULES, json!({"spec": {"parentRef": {"group": "x"}}})),
            ["spec.parentRef.resource: Required value", "spec.parentRef.name: Required value"]
        );
        let address = |name: &str| json!({"spec": {"parentRef": {"resource": "services", "name": name}}});
        assert_eq!(
            testing::update(&RULES, address("a"), address("b")),
            ["spec.parentRef: Invalid value: null: field is immutable"]
        );
    }

    #[test]
    fn a_range_has_one_network_of_a_family() {
        let said = |cidrs: Value| testing::create(&SERVICE_CIDR, json!({"spec": {"cidrs": cidrs}}));
        assert_eq!(said(json!([])), ["spec.cidrs: Required value: at least one CIDR required"]);
        assert_eq!(
            said(json!(["10.0.0.0/8", "11.0.0.0/8"])),
            [
                "spec.cidrs: Invalid value: [\"10.0.0.0/8\",\"11.0.0.0/8\"]: may specify no more than one IP for each IP \
              family, i.e 192.168.0.0/24 and 2001:db8::/64"
            ]
        );
        assert!(said(json!(["10.0.0.0/8", "2001:db8::/64"])).is_empty());
    }
}
