//! `Lease`.

use k1s_object::At;
use serde_json::Value;

use crate::rules::{
    Rules,
    helpers::json::{find, remove_in},
};

pub(super) static RULES: Rules = Rules {
    prepare_create: |lease| drop_coordination(lease, None),
    prepare_update: |new, old| drop_coordination(new, Some(old)),
    validate,
    validate_update: |new, _| validate(new),
    unconditional_update: false,
    create_on_update: true,
    ..Rules::PLAIN
};

/// Drops the fields of coordinated leader election, a disabled feature, unless the stored object has them.
fn drop_coordination(new: &mut Value, old: Option<&Value>) {
    for field in ["strategy", "preferredHolder"] {
        if old.and_then(|old| find(old, &["spec", field])).is_none() {
            remove_in(new, "spec", field);
        }
    }
}

fn validate(lease: At<'_, '_>) {
    let spec = lease.get("spec");
    let duration = spec.get("leaseDurationSeconds");
    if duration.int().is_some_and(|seconds| seconds <= 0) {
        duration.invalid("must be greater than 0");
    }
    let transitions = spec.get("leaseTransitions");
    if transitions.int().is_some_and(|count| count < 0) {
        transitions.invalid("must be greater than or equal to 0");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::helpers::testing;

    #[test]
    fn numbers_have_bounds() {
        assert_eq!(
            testing::on_create(&RULES, json!({"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}})),
            [
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
        assert!(testing::on_create(&RULES, json!({})).is_empty());
    }

    #[test]
    fn fields_of_coordinated_election_are_dropped() {
        let lease = json!({"spec": {"strategy": "OldestEmulationVersion", "holderIdentity": "a"}});
        assert_eq!(testing::created(&RULES, lease), json!({"spec": {"holderIdentity": "a"}}));
    }
}
