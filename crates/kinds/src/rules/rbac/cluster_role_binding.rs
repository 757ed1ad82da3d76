//! `ClusterRoleBinding`.

use super::{
    PLAIN,
    role_binding::{binding_update, defaults, role_name_required, subject_names_required, validate_fields},
};
use crate::rules::Rules;
use k1s_object::field::At;

pub(super) static RULES: Rules = Rules { defaults, validate, validate_update, ..PLAIN };

fn validate(binding: At<'_, '_>) {
    validate_fields(binding, false);
    subject_names_required(binding);
    role_name_required(binding);
}

fn validate_update(binding: At<'_, '_>, old: At<'_, '_>) {
    binding_update(binding, old, false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::helpers::testing::*;
    use serde_json::json;

    #[test]
    fn a_cluster_role_binding_names_cluster_roles_and_namespaces_of_accounts() {
        let binding = json!({"subjects": [{"kind": "ServiceAccount", "name": "b"}, {"kind": "Robot"}],
            "roleRef": {"kind": "Role"}});
        assert_eq!(
            on_create(&RULES, binding),
            [
                "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
                "subjects[0].namespace: Required value",
                "subjects[1].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
                "subjects[1].name: Required value",
                "roleRef.name: Required value",
            ]
        );
    }
}
