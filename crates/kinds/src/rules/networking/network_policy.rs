//! `NetworkPolicy`.

use k1s_object::{At, ip, names};
use serde_json::{Value, json};

use crate::rules::{
    Rules,
    helpers::{
        errors::invalid_each,
        json::{list_at, set_in, strings_at, text_at},
        network::{legacy_cidr, port_number},
        text::texts,
    },
};
use k1s_object::selector::validate_label_selector as label_selector;

const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

pub(super) static RULES: Rules = Rules {
    defaults,
    validate: |policy| spec(policy.get("spec"), None),
    validate_update: |new, old| spec(new.get("spec"), Some(old.get("spec"))),
    warnings,
    generation: true,
    ..Rules::PLAIN
};

fn defaults(policy: &mut Value) {
    for (direction, _) in DIRECTIONS {
        let rules =
            policy.get_mut("spec").and_then(|spec| spec.get_mut(direction)).and_then(Value::as_array_mut);
        let ports =
            rules.into_iter().flatten().filter_map(|rule| rule.get_mut("ports")?.as_array_mut()).flatten();
        for port in ports.filter_map(Value::as_object_mut) {
            if port.get("protocol").is_none_or(Value::is_null) {
                port.insert("protocol".into(), "TCP".into());
            }
        }
    }
    if list_at(policy, &["spec", "policyTypes"]).is_empty() {
        let egress = !list_at(policy, &["spec", "egress"]).is_empty();
        set_in(
            policy,
            "spec",
            "policyTypes",
            if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) },
        );
    }
}

fn spec(spec: At<'_, '_>, old: Option<At<'_, '_>>) {
    let mut known = std::collections::HashSet::new();
    let mut any_value = false;
    if let Some(old) = old {
        for (direction, peers) in DIRECTIONS {
            for peer in old.get(direction).items().flat_map(|rule| rule.get(peers).items()) {
                let block = peer.get("ipBlock");
                known.insert(block.get("cidr").text());
                known.extend(texts(block.get("except")));
            }
        }
        let check = k1s_object::Check::new();
        label_selector(check.at("", old.get("podSelector").value()), false);
        any_value = !check.is_ok();
    }
    label_selector(spec.get("podSelector"), any_value);
    for (direction, peers) in DIRECTIONS {
        for rule in spec.get(direction).items() {
            rule.get("ports").items().for_each(port);
            for peer in rule.get(peers).items() {
                check_peer(peer, any_value, &known);
            }
        }
    }
    let types = spec.get("policyTypes");
    if types.len() > 2 {
        types.invalid("may not specify more than two policyTypes");
    } else {
        for one in types.items() {
            if !matches!(one.text(), "Ingress" | "Egress") {
                one.not_supported(&["Ingress", "Egress"]);
            }
        }
    }
    // Declarative validation is reported last.
    for (direction, peers) in DIRECTIONS {
        for peer in spec.get(direction).items().flat_map(|rule| rule.get(peers).items()) {
            let block = peer.get("ipBlock");
            if block.is_set() && block.get("cidr").text().is_empty() {
                block.get("cidr").required("");
            }
        }
    }
}

fn port(port: At<'_, '_>) {
    let (protocol, number, end) = (port.get("protocol"), port.get("port"), port.get("endPort"));
    if protocol.is_set() && !matches!(protocol.text(), "TCP" | "UDP" | "SCTP") {
        protocol.not_supported(&["TCP", "UDP", "SCTP"]);
    }
    if let Some(name) = number.str() {
        if end.is_set() {
            end.invalid("may not be specified when `port` is non-numeric");
        }
        invalid_each(number, names::is_valid_port_name(name));
    } else if number.is_set() {
        port_number(number);
        if end.is_set() {
            if end.number() < number.number() {
                end.invalid("must be greater than or equal to `port`");
            }
            port_number(end);
        }
    } else if end.is_set() {
        end.invalid("may not be specified when `port` is not specified");
    }
}

fn check_peer(peer: At<'_, '_>, any_value: bool, known: &std::collections::HashSet<&str>) {
    let mut peers = 0;
    for selector in ["podSelector", "namespaceSelector"] {
        if peer.get(selector).is_set() {
            peers += 1;
            label_selector(peer.get(selector), any_value);
        }
    }
    let block = peer.get("ipBlock");
    if block.is_set() {
        peers += 1;
        ip_block(block, known);
    }
    if peers == 0 {
        peer.required("must specify a peer");
    } else if peers > 1 && block.is_set() {
        peer.forbidden("may not specify both ipBlock and another peer");
    }
}

/// A CIDR that the stored object has is accepted in any form.
fn cidr_or_known(at: At<'_, '_>, known: &std::collections::HashSet<&str>) {
    let own = [at.text()];
    legacy_cidr(at, if known.contains(at.text()) { &own } else { &[] });
}

fn ip_block(block: At<'_, '_>, known: &std::collections::HashSet<&str>) {
    let cidr = block.get("cidr");
    if cidr.text().is_empty() {
        return;
    }
    cidr_or_known(cidr, known);
    let Some(whole) = ip::parse_cidr_sloppy(cidr.text()) else { return };
    for except in block.get("except").items() {
        cidr_or_known(except, known);
        if let Some(part) = ip::parse_cidr_sloppy(except.text())
            && (!whole.contains(part.masked()) || whole.bits >= part.bits)
        {
            except.invalid("must be a strict subset of `cidr`");
        }
    }
}

fn warnings(policy: &Value, _: Option<&Value>, out: &mut Vec<String>) {
    for (direction, peers) in DIRECTIONS {
        for (i, rule) in list_at(policy, &["spec", direction]).iter().enumerate() {
            for (j, peer) in list_at(rule, &[peers]).iter().enumerate() {
                let path = format!("spec.{direction}[{i}].{peers}[{j}].ipBlock");
                out.extend(ip::get_warnings_for_cidr(
                    &format!("{path}.cidr"),
                    text_at(peer, &["ipBlock", "cidr"]),
                ));
                for (k, except) in strings_at(peer, &["ipBlock", "except"]).into_iter().enumerate() {
                    out.extend(ip::get_warnings_for_cidr(&format!("{path}.except[{k}]"), except));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing;

    #[test]
    fn egress_adds_its_policy_type() {
        let policy = json!({"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]}});
        assert_eq!(
            testing::created(&RULES, policy),
            json!({"spec": {
                "podSelector": {},
                "egress": [{"ports": [{"port": 53, "protocol": "TCP"}]}],
                "policyTypes": ["Ingress", "Egress"],
            }})
        );
    }

    #[test]
    fn errors_have_the_words_of_kubernetes() {
        let policy = json!({"spec": {
            "podSelector": {"matchExpressions": [{"key": "a", "operator": "X"}]},
            "policyTypes": ["Sideways"],
            "ingress": [{
                "from": [
                    {},
                    {"ipBlock": {}},
                    {"ipBlock": {"cidr": "300.0.0.0/8"}},
                    {"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}},
                    {"ipBlock": {"cidr": "10.0.0.0/16", "except": ["11.0.0.0/24"]}},
                ],
                "ports": [{"port": 0}, {"port": 10, "endPort": 5}, {"protocol": "ICMP", "port": "Bad_Name"}],
            }],
        }});
        assert_eq!(
            testing::on_create(&RULES, policy),
            [
                "spec.podSelector.matchExpressions[0].operator: Invalid value: \"X\": not a valid selector operator",
                "spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.ingress[0].ports[1].endPort: Invalid value: 5: must be greater than or equal to `port`",
                "spec.ingress[0].ports[2].protocol: Unsupported value: \"ICMP\": supported values: \"TCP\", \"UDP\", \
                 \"SCTP\"",
                "spec.ingress[0].ports[2].port: Invalid value: \"Bad_Name\": must contain only alpha-numeric \
                 characters (a-z, 0-9), and hyphens (-)",
                "spec.ingress[0].from[0]: Required value: must specify a peer",
                "spec.ingress[0].from[2].ipBlock.cidr: Invalid value: \"300.0.0.0/8\": must be a valid CIDR value, \
                 (e.g. 10.9.8.0/24 or 2001:db8::/64)",
                "spec.ingress[0].from[3]: Forbidden: may not specify both ipBlock and another peer",
                "spec.ingress[0].from[4].ipBlock.except[0]: Invalid value: \"11.0.0.0/24\": must be a strict subset \
                 of `cidr`",
                "spec.policyTypes[0]: Unsupported value: \"Sideways\": supported values: \"Ingress\", \"Egress\"",
                "spec.ingress[0].from[1].ipBlock.cidr: Required value",
            ]
        );
    }
}
