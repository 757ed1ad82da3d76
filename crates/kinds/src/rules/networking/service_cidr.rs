//! `ServiceCIDR`.

use crate::rules::{
    Rules, drop_status,
    helpers::{
        immutable::IMMUTABLE,
        json::{keep, object_in},
        network::{is_ipv4, is_ipv6},
        text::texts,
    },
    keep_status,
};
use k1s_object::{At, ip};
use serde_json::{Value, json};

pub(super) static RULES: Rules = Rules {
    prepare_create: drop_status,
    prepare_update: keep_status,
    prepare_status,
    validate: |cidr| cidrs(cidr.get("spec")),
    validate_update,
    ..Rules::PLAIN
};

/// An update of `/status` changes neither the spec nor the metadata.
fn prepare_status(new: &mut Value, old: &Value) {
    keep(new, old, "spec");
    let kept = ["labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"];
    let Some(meta) = object_in(new, "metadata") else { return };
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

fn validate_update(new: At<'_, '_>, old: At<'_, '_>) {
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
    use crate::rules::helpers::testing;

    #[test]
    fn a_range_has_one_network_of_a_family() {
        let said = |cidrs: Value| testing::on_create(&RULES, json!({"spec": {"cidrs": cidrs}}));
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
