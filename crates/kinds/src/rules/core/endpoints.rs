//! `Endpoints`. Subsets are stored as sent, not repacked.

use k1s_object::{At, ip, names};
use serde_json::Value;

use crate::rules::{
    Rules,
    helpers::{
        equality::same_pointers,
        errors::invalid_each,
        json::{list_at, text_at},
        network::{endpoint_ip, legacy_ip, port_number, protocol},
        text::{dns_label, qualified_name},
    },
};

pub(super) static RULES: Rules = Rules {
    defaults,
    validate: |endpoints| subsets(endpoints.get("subsets")),
    validate_update: |new, old| {
        if !same_pointers(new.get("subsets").value(), old.get("subsets").value()) {
            subsets(new.get("subsets"));
        }
    },
    warnings,
    create_on_update: true,
    deprecated: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ..Rules::PLAIN
};

fn defaults(endpoints: &mut Value) {
    let subsets = endpoints.get_mut("subsets").and_then(Value::as_array_mut).into_iter().flatten();
    let ports = subsets.filter_map(|subset| subset.get_mut("ports")?.as_array_mut()).flatten();
    for port in ports.filter_map(Value::as_object_mut) {
        if port.get("protocol").and_then(Value::as_str).unwrap_or_default().is_empty() {
            port.insert("protocol".into(), "TCP".into());
        }
    }
}

fn subsets(subsets: At<'_, '_>) {
    for subset in subsets.items() {
        let groups = ["addresses", "notReadyAddresses"].map(|name| subset.get(name));
        if groups.iter().all(|group| group.is_empty()) {
            subset.required("must specify `addresses` or `notReadyAddresses`");
        }
        for address in groups.into_iter().flat_map(At::items) {
            let ip = address.get("ip");
            legacy_ip(ip, &[]);
            if !address.get("hostname").text().is_empty() {
                dns_label(address.get("hostname"));
            }
            if let Some(node) = address.get("nodeName").str() {
                invalid_each(address.get("nodeName"), names::is_dns1123_subdomain(node));
            }
            endpoint_ip(ip);
        }
        let ports = subset.get("ports");
        for port in ports.items() {
            if !port.get("name").text().is_empty() {
                dns_label(port.get("name"));
            } else if ports.len() > 1 {
                port.get("name").required("");
            }
            port_number(port.get("port"));
            protocol(port.get("protocol"));
            if port.get("appProtocol").is_set() {
                qualified_name(port.get("appProtocol"));
            }
        }
    }
}

fn warnings(endpoints: &Value, _: Option<&Value>, out: &mut Vec<String>) {
    if text_at(endpoints, &["metadata", "labels", "endpoints.kubernetes.io/managed-by"])
        == "endpoint-controller"
    {
        return;
    }
    for (i, subset) in list_at(endpoints, &["subsets"]).iter().enumerate() {
        for group in ["addresses", "notReadyAddresses"] {
            for (j, address) in list_at(subset, &[group]).iter().enumerate() {
                let path = format!("subsets[{i}].{group}[{j}].ip");
                out.extend(ip::get_warnings_for_ip(&path, text_at(address, &["ip"])));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::testing;

    #[test]
    fn subsets_are_checked() {
        let endpoints = json!({"subsets": [
            {"addresses": [{"ip": "127.0.0.1"}, {"ip": "x"}], "ports": [{"port": 0}, {"port": 1, "protocol": "X"}]},
            {},
        ]});
        assert_eq!(
            testing::on_create(&RULES, endpoints),
            [
                "subsets[0].addresses[0].ip: Invalid value: \"127.0.0.1\": may not be in the loopback range \
                 (127.0.0.0/8, ::1/128)",
                "subsets[0].addresses[1].ip: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or \
                 2001:db8::ffff)",
                "subsets[0].addresses[1].ip: Invalid value: \"x\": must be a valid IP address",
                "subsets[0].ports[0].name: Required value",
                "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "subsets[0].ports[1].name: Required value",
                "subsets[0].ports[1].protocol: Unsupported value: \"X\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
                "subsets[1]: Required value: must specify `addresses` or `notReadyAddresses`",
            ]
        );
    }
}
