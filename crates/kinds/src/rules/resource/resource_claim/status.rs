//! The status of a `ResourceClaim`: allocation, reservations and the status of devices.

use super::{
    super::checks::{DeclarativeErrors, label, node_selector, pool_name, toleration},
    devices::{configuration, raw_object, request_names, request_reference, request_references},
};
use crate::rules::helpers::{
    equality::{same, unchanged},
    errors::invalid_each,
    immutable::report_immutable,
    text::driver_name,
};
use k1s_object::meta::validate_conditions as conditions;
use k1s_object::{field::At, names};

pub(super) fn validate(claim: At<'_, '_>, old: At<'_, '_>) {
    let later = DeclarativeErrors::default();
    let (status, before) = (claim.get("status"), old.get("status"));
    let (allocation, reserved) = (status.get("allocation"), status.get("reservedFor"));
    if later.at_most(reserved, 256) {
        for consumer in reserved.items() {
            for name in ["resource", "name", "uid"] {
                if consumer.get(name).is_empty() {
                    consumer.get(name).required("");
                }
            }
        }
        later.unique(reserved, |consumer| consumer.get("uid").text());
    }
    for device in status.get("devices").items() {
        device_status(device, allocation, &later);
    }
    if !reserved.is_empty() {
        if !allocation.is_set() {
            reserved.forbidden("may not be specified when `allocated` is not set");
        } else if claim.get("metadata").get("deletionTimestamp").is_set() {
            let known = |one: At<'_, '_>| {
                before.get("reservedFor").items().any(|other| same(one.value(), other.value()))
            };
            if !reserved.items().all(known) {
                reserved.forbidden(
                    "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set",
                );
            }
        }
    }
    if allocation.is_set() && before.get("allocation").is_set() {
        if !unchanged(allocation, before.get("allocation")) {
            later.collect(allocation, || report_immutable(allocation));
        }
    } else if allocation.is_set() {
        allocated(allocation, &request_names(claim.get("spec").get("devices")), &later);
    }
    later.report(claim);
}

fn allocated(allocation: At<'_, '_>, requests: &[String], later: &DeclarativeErrors) {
    let devices = allocation.get("devices");
    if later.at_most(devices.get("results"), 32) {
        for result in devices.get("results").items() {
            request_reference(result.get("request"), requests);
            later.driver(result.get("driver"));
            later.collect(result, || pool_name(result.get("pool")));
            label(result.get("device"));
            binding_conditions(result, later);
            for one in result.get("tolerations").items() {
                toleration(one, later);
            }
            share_id(result.get("shareID"), later);
        }
    }
    if later.at_most(devices.get("config"), 64) {
        for config in devices.get("config").items() {
            let source = config.get("source");
            match source.text() {
                "FromClaim" | "FromClass" => {}
                "" => later.collect(source, || source.required("")),
                _ => later.collect(source, || source.not_supported(&["FromClaim", "FromClass"])),
            }
            request_references(config.get("requests"), requests, later);
            configuration(config, false, later);
        }
    }
    if allocation.get("nodeSelector").is_set() {
        node_selector(allocation.get("nodeSelector"));
    }
}

fn share_id(at: At<'_, '_>, later: &DeclarativeErrors) {
    let digit = |(i, byte): (usize, u8)| match i {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    if at.is_set() && !(at.text().len() == 36 && at.text().bytes().enumerate().all(digit)) {
        later.collect(at, || {
            at.invalid_text("must be a lowercase UUID in 8-4-4-4-12 format");
        });
    }
}

/// `bindingConditions` and `bindingFailureConditions`.
pub(in crate::rules::resource) fn binding_conditions(at: At<'_, '_>, later: &DeclarativeErrors) {
    let (wanted, failed) = (at.get("bindingConditions"), at.get("bindingFailureConditions"));
    for list in [wanted, failed] {
        if later.at_most(list, 4) {
            for condition in list.items() {
                invalid_each(condition, names::is_qualified_name(condition.text()));
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    for condition in wanted.items() {
        if seen.contains(&condition.text()) {
            condition.duplicate();
        }
        seen.insert(condition.text());
    }
    let mut seen_failed = std::collections::HashSet::new();
    for condition in failed.items() {
        if seen_failed.contains(&condition.text()) {
            condition.duplicate();
        }
        seen_failed.insert(condition.text());
        if seen.contains(&condition.text()) {
            condition.invalid("bindingFailureConditions must not overlap with bindingConditions");
        }
    }
    if wanted.is_empty() && !failed.is_empty() {
        wanted.invalid("bindingConditions are required to use bindingFailureConditions");
    }
    if failed.is_empty() && !wanted.is_empty() {
        failed.invalid("bindingFailureConditions are required to use bindingConditions");
    }
}

fn device_status(device: At<'_, '_>, allocation: At<'_, '_>, later: &DeclarativeErrors) {
    driver_name(device.get("driver"));
    pool_name(device.get("pool"));
    label(device.get("device"));
    share_id(device.get("shareID"), later);
    let id = ["driver", "pool", "device", "shareID"].map(|name| device.get(name).text());
    let mut results = allocation.get("devices").get("results").items();
    if !results.any(|one| ["driver", "pool", "device", "shareID"].map(|name| one.get(name).text()) == id) {
        let [driver, pool, name, share] = id;
        let shown = [driver, pool, name].join("/");
        let shown = if share.is_empty() { shown } else { format!("{shown}/{share}") };
        device.invalid_as(shown, "must be an allocated device in the claim");
    }
    let list = device.get("conditions");
    if list.len() > 8 {
        list.too_many(8);
    }
    conditions(list);
    if device.get("data").is_set() {
        raw_object(device.get("data"), false, 10 * 1024);
    }
    let network = device.get("networkData");
    for (name, longest) in [("interfaceName", 256), ("hardwareAddress", 128)] {
        let text = network.get(name);
        if text.text().len() > longest {
            later.collect(text, || text.too_long(longest));
        }
    }
    if later.at_most(network.get("ips"), 16) {
        for ip in network.get("ips").items() {
            k1s_object::ip::is_valid_interface_address(ip);
        }
        later.unique(network.get("ips"), At::text);
    }
}
