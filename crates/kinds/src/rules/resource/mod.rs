//! `resource.k8s.io`: dynamic resource allocation.
//!
//! CEL expressions in selectors are checked for their length only.

mod checks;
mod device_class;
mod device_taint_rule;
mod resource_claim;
mod resource_claim_template;
mod resource_slice;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::rules::Rules;

fn remove(value: &mut Value, names: &[&str]) {
    if let Some(map) = value.as_object_mut() {
        for name in names {
            map.shift_remove(*name);
        }
    }
}

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "DeviceClass" => &device_class::RULES,
        "DeviceTaintRule" => &device_taint_rule::RULES,
        "ResourceClaim" => &resource_claim::RULES,
        "ResourceClaimTemplate" => &resource_claim_template::RULES,
        "ResourceSlice" => &resource_slice::RULES,
        _ => return None,
    })
}
