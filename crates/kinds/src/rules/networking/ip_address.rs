//! `IPAddress`.

use crate::rules::{
    NameRule, Rules,
    helpers::{
        equality::same_pointers, errors::invalid_each, immutable::IMMUTABLE, network::is_ipv6,
        text::dns_subdomain,
    },
};
use k1s_object::{At, Check, ip, names};
use serde_json::{Value, json};

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

/// The `IPAddress` of the cluster IP of a Service. Its name is the IP, so creating it allocates the IP.
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

/// The name is an address in canonical form.
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
            invalid_each(field, names::is_path_segment_name(field.text()));
        }
    }
}

/// Declarative validation, reported last.
fn parent_required(address: At<'_, '_>, old: Option<At<'_, '_>>) {
    let parent = address.get("spec").get("parentRef");
    if let Some(old) = old {
        if same_pointers(parent.value(), old.get("spec").get("parentRef").value()) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing;

    #[test]
    fn an_address_names_itself_and_has_a_parent() {
        assert!(name("10.0.0.1", false).is_empty());
        assert_eq!(name("x", false), ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]);
        assert_eq!(name("2001:DB8::1", false), ["must be in canonical form (\"2001:db8::1\")"]);
        assert!(testing::on_create(&RULES, of_service("10.0.0.1", "n", "s")).is_empty());
        assert_eq!(testing::on_create(&RULES, json!({})), ["spec.parentRef: Required value"]);
        assert_eq!(
            testing::on_create(&RULES, json!({"spec": {"parentRef": {"group": "x"}}})),
            ["spec.parentRef.resource: Required value", "spec.parentRef.name: Required value"]
        );
        let address = |name: &str| json!({"spec": {"parentRef": {"resource": "services", "name": name}}});
        assert_eq!(
            testing::on_update(&RULES, address("a"), address("b")),
            ["spec.parentRef: Invalid value: null: field is immutable"]
        );
    }
}
