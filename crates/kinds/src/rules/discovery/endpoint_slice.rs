//! `EndpointSlice`.

use k1s_object::{At, ip, names};
use serde_json::Value;

use crate::rules::{
    Rules,
    helpers::{
        equality::same_pointers,
        errors::{internal, invalid_each, too_many},
        immutable::IMMUTABLE,
        json::{find, list_at, number_at, set_in, strings_at, text_at},
        labels::labels,
        network::{endpoint_ip, is_ipv4, is_ipv6, legacy_ip},
        text::{dns_label, one_of, qualified_name},
    },
};

pub(super) static RULES: Rules = Rules {
    defaults,
    prepare_create: |slice| {
        drop_topology(slice);
        set_in(slice, "metadata", "generation", 1);
    },
    prepare_update,
    validate: |slice| validate(slice, None),
    validate_update: |new, old| validate(new, Some(old)),
    warnings,
    ..Rules::PLAIN
};

fn defaults(slice: &mut Value) {
    let ports = slice.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
    for port in ports.filter_map(Value::as_object_mut) {
        for (name, value) in [("name", ""), ("protocol", "TCP")] {
            if port.get(name).is_none_or(Value::is_null) {
                port.insert(name.into(), value.into());
            }
        }
    }
}

fn drop_topology(slice: &mut Value) {
    let endpoints = slice.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten();
    for endpoint in endpoints.filter_map(Value::as_object_mut) {
        endpoint.shift_remove("deprecatedTopology");
    }
}

/// Increments the generation here, because a change of labels counts as well.
fn prepare_update(new: &mut Value, old: &Value) {
    let fields = ["addressType", "endpoints", "ports"];
    let labels = ["metadata", "labels"];
    let unchanged = fields.iter().all(|field| same_pointers(new.get(field), old.get(field)))
        && same_pointers(find(new, &labels), find(old, &labels));
    let generation = number_at(old, &["metadata", "generation"]);
    set_in(new, "metadata", "generation", if unchanged { generation } else { generation.saturating_add(1) });
    if !same_pointers(new.get("endpoints"), old.get("endpoints")) {
        drop_topology(new);
    }
}

fn validate(slice: At<'_, '_>, old: Option<At<'_, '_>>) {
    ports(slice.get("ports"));
    let endpoints = slice.get("endpoints");
    let changed = |old: At<'_, '_>| !same_pointers(endpoints.value(), old.get("endpoints").value());
    let look = old.is_none_or(changed);
    let kind = slice.get("addressType");
    if look {
        if endpoints.len() > 1000 {
            endpoints.too_many(1000);
        } else {
            for endpoint in endpoints.items() {
                check_endpoint(endpoint, kind.text());
            }
        }
    }
    // Declarative validation is reported last.
    if old.is_none_or(|old| old.get("addressType").text() != kind.text()) {
        if kind.text().is_empty() {
            kind.required("");
        }
        if old.is_some() {
            kind.invalid_as(Value::Null, IMMUTABLE);
        } else {
            required_or_known(kind);
        }
    }
    if look {
        for endpoint in endpoints.items() {
            let addresses = endpoint.get("addresses");
            if addresses.is_empty() {
                addresses.required("");
            } else if addresses.len() > 100 {
                addresses.too_many(100);
            }
        }
    }
}

fn required_or_known(kind: At<'_, '_>) {
    if !kind.text().is_empty() {
        one_of(kind, &["FQDN", "IPv4", "IPv6"]);
    }
}

fn ports(ports: At<'_, '_>) {
    if ports.len() > 20000 {
        return ports.too_many(20000);
    }
    let mut seen = std::collections::HashSet::new();
    for port in ports.items() {
        let name = port.get("name");
        if !name.text().is_empty() {
            dns_label(name);
        }
        if !seen.insert(name.text()) {
            name.duplicate();
        }
        let protocol = port.get("protocol");
        if !protocol.is_set() {
            protocol.required("");
        } else if !matches!(protocol.text(), "TCP" | "UDP" | "SCTP") {
            protocol.not_supported(&["SCTP", "TCP", "UDP"]);
        }
        if port.get("appProtocol").is_set() {
            qualified_name(port.get("appProtocol"));
        }
    }
}

fn check_endpoint(endpoint: At<'_, '_>, kind: &str) {
    let addresses = endpoint.get("addresses");
    for address in addresses.items() {
        match kind {
            "IPv4" => {
                let readable = legacy_ip(address, &[]);
                if readable {
                    if !is_ipv4(address.text()) {
                        addresses.invalid_as(address.text(), "must be an IPv4 address");
                    }
                    endpoint_ip(address);
                }
            }
            "IPv6" => {
                let before = address.check().count();
                ip::is_valid_ip(address);
                if address.check().count() == before {
                    if !is_ipv6(address.text()) {
                        addresses.invalid_as(address.text(), "must be an IPv6 address");
                    }
                    endpoint_ip(address);
                }
            }
            "FQDN" => names::is_fully_qualified_domain_name(address),
            _ => {}
        }
    }
    if let Some(node) = endpoint.get("nodeName").str() {
        invalid_each(endpoint.get("nodeName"), names::is_dns1123_subdomain(node));
    }
    let topology = endpoint.get("deprecatedTopology");
    if topology.len() > 16 {
        too_many(topology, topology.len(), 16);
    }
    labels(topology);
    if topology.key("topology.kubernetes.io/zone").is_set() {
        internal(topology.key("topology.kubernetes.io/zone"), "reserved key was not removed in conversion");
    }
    if endpoint.get("hostname").is_set() {
        dns_label(endpoint.get("hostname"));
    }
    let hints = endpoint.get("hints");
    for (list, rule) in [
        ("forZones", names::is_valid_label_value as fn(&str) -> Vec<String>),
        ("forNodes", names::is_dns1123_subdomain),
    ] {
        let list = hints.get(list);
        if list.len() > 8 {
            return list.too_many(8);
        }
        let mut seen = std::collections::HashSet::new();
        for one in list.items() {
            let name = one.get("name");
            if seen.contains(&name.text()) {
                name.duplicate();
            }
            seen.insert(name.text());
            invalid_each(name, rule(name.text()));
        }
    }
}

fn warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none() && text_at(new, &["addressType"]) == "FQDN" {
        out.push("spec.addressType: FQDN endpoints are deprecated".into());
    }
    let manager = text_at(new, &["metadata", "labels", "endpointslice.kubernetes.io/managed-by"]);
    if matches!(manager, "endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io") {
        return;
    }
    for (i, endpoint) in list_at(new, &["endpoints"]).iter().enumerate() {
        for (j, address) in strings_at(endpoint, &["addresses"]).into_iter().enumerate() {
            out.extend(ip::get_warnings_for_ip(&format!("endpoints[{i}].addresses[{j}]"), address));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::testing;

    #[test]
    fn the_rules_of_the_schema_come_last() {
        assert_eq!(
            testing::on_create(
                &RULES,
                json!({
                    "addressType": "IPv4",
                    "endpoints": [{"addresses": []}, {"addresses": ["fe80::1", "127.0.0.1"]}],
                    "ports": [{"port": 80}, {"port": 81}],
                })
            ),
            [
                "ports[1].name: Duplicate value: \"\"",
                "endpoints[1].addresses: Invalid value: \"fe80::1\": must be an IPv4 address",
                "endpoints[1].addresses[0]: Invalid value: \"fe80::1\": may not be in the link-local range \
                 (169.254.0.0/16, fe80::/10)",
                "endpoints[1].addresses[1]: Invalid value: \"127.0.0.1\": may not be in the loopback range \
                 (127.0.0.0/8, ::1/128)",
                "endpoints[0].addresses: Required value",
            ]
        );
        assert_eq!(
            testing::on_create(&RULES, json!({"addressType": "IPv5"})),
            ["addressType: Unsupported value: \"IPv5\": supported values: \"FQDN\", \"IPv4\", \"IPv6\""]
        );
        assert_eq!(testing::on_create(&RULES, json!({})), ["addressType: Required value"]);
    }

    #[test]
    fn the_address_type_stays() {
        assert_eq!(
            testing::on_update(&RULES, json!({"addressType": "IPv4"}), json!({"addressType": "IPv6"})),
            ["addressType: Invalid value: null: field is immutable"]
        );
    }

    #[test]
    fn labels_count_as_a_change() {
        let old = testing::created(&RULES, json!({"addressType": "IPv4"}));
        let mut new = old.clone();
        prepare_update(&mut new, &old);
        assert_eq!(new["metadata"]["generation"], 1);
        new["metadata"]["labels"] = json!({"a": "b"});
        prepare_update(&mut new, &old);
        assert_eq!(new["metadata"]["generation"], 2);
    }
}
