//! `Namespace`: finalizers, phase and the label with its name.

use k1s_object::{At, FieldError, names};
use serde_json::{Value, json};

use crate::rules::{
    FieldLabelError, NameRule, Rules, SelectableField,
    helpers::json::{default_in, keep, list_at, object_in, set_in, text_at},
    keep_status,
};

/// The label that holds a namespace's name.
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The finalizer in `spec.finalizers` that the namespace controller removes.
pub const FINALIZER: &str = "kubernetes";

pub(super) static RULES: Rules = Rules {
    defaults,
    prepare_create,
    prepare_update,
    prepare_status,
    validate,
    validate_update: |new, _| validate(new),
    validate_status,
    name: NameRule::Label,
    delete_answers_object: true,
    fields: &[SelectableField {
        path: "status.phase",
        read: |namespace| text_at(namespace, &["status", "phase"]).to_owned(),
    }],
    field_error: FieldLabelError::NotSupported,
    ..Rules::PLAIN
};

fn defaults(namespace: &mut Value) {
    label(namespace);
    default_in(namespace, "status", "phase", "Active");
}

fn label(namespace: &mut Value) {
    let name = text_at(namespace, &["metadata", "name"]).to_owned();
    if name.is_empty() {
        return;
    }
    if let Some(meta) = object_in(namespace, "metadata") {
        let labels = meta.entry("labels").or_insert_with(|| json!({}));
        if labels.is_null() {
            *labels = json!({});
        }
        if let Some(labels) = labels.as_object_mut() {
            labels.insert(NAME_LABEL.into(), name.into());
        }
    }
}

fn prepare_create(namespace: &mut Value) {
    label(namespace);
    if let Some(object) = namespace.as_object_mut() {
        object.insert("status".into(), json!({"phase": "Active"}));
    }
    let mut finalizers = list_at(namespace, &["spec", "finalizers"]).to_vec();
    if !finalizers.iter().any(|one| one == FINALIZER) {
        finalizers.push(FINALIZER.into());
        set_in(namespace, "spec", "finalizers", finalizers);
    }
}

fn prepare_update(new: &mut Value, old: &Value) {
    keep(new, old, "spec");
    keep_status(new, old);
}

fn prepare_status(new: &mut Value, old: &Value) {
    keep(new, old, "spec");
}

/// Before an update through `/finalize`: only the finalizers of the spec may change.
pub fn prepare_finalize(new: &mut Value, old: &Value) {
    keep_status(new, old);
}

/// Validates an update through `/finalize`.
pub fn validate_finalize(new: At<'_, '_>, _old: At<'_, '_>) {
    for finalizer in new.get("spec").get("finalizers").items() {
        finalizer_name(finalizer, &finalizer.path());
    }
}

fn validate(namespace: At<'_, '_>) {
    let finalizers = namespace.get("spec").get("finalizers");
    for finalizer in finalizers.items() {
        finalizer_name(finalizer, &finalizers.path());
    }
}

fn finalizer_name(at: At<'_, '_>, path: &str) {
    let name = at.text();
    let mut messages = names::is_qualified_name(name);
    if !name.contains('/') && !matches!(name, FINALIZER | "orphan" | "foregroundDeletion") {
        messages.push("name is neither a standard finalizer name nor is it fully qualified".into());
    }
    for message in messages {
        at.check().push(FieldError::invalid(path, name, message));
    }
}

fn validate_status(new: At<'_, '_>, _old: At<'_, '_>) {
    let phase = new.get("status").get("phase").text();
    let (right, detail) = if new.get("metadata").get("deletionTimestamp").is_set() {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    if phase != right {
        new.check().push(FieldError::invalid("status.Phase", phase, detail));
    }
}

#[cfg(test)]
mod tests {
    use k1s_object::Check;

    use super::*;
    use crate::rules::helpers::testing;

    #[test]
    fn a_new_one_is_active_named_and_held_by_the_kubernetes_finalizer() {
        assert_eq!(
            testing::created(
                &RULES,
                json!({"metadata": {"name": "a"}, "spec": {"finalizers": ["x.io/y"]}, "status": {"phase": "Odd"}})
            ),
            json!({
                "metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "a"}},
                "spec": {"finalizers": ["x.io/y", "kubernetes"]},
                "status": {"phase": "Active"},
            })
        );
    }

    #[test]
    fn finalizers_need_a_domain() {
        let namespace = json!({"metadata": {"name": "a"}, "spec": {"finalizers": ["nodomain"]}});
        let text = "Invalid value: \"nodomain\": name is neither a standard finalizer name nor is it fully qualified";
        assert_eq!(testing::on_create(&RULES, namespace.clone()), [format!("spec.finalizers: {text}")]);
        let check = Check::new();
        validate_finalize(check.root(&namespace), check.root(&namespace));
        assert_eq!(check.take()[0].to_string(), format!("spec.finalizers[0]: {text}"));
    }

    #[test]
    fn the_phase_follows_the_deletion() {
        let said = |namespace: Value| {
            let check = Check::new();
            validate_status(check.root(&namespace), check.root(&namespace));
            check.take().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            said(json!({"status": {"phase": "Terminating"}})),
            [
                "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
            ]
        );
        assert!(said(json!({"status": {"phase": "Active"}})).is_empty());
        let gone =
            json!({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}, "status": {"phase": "Active"}});
        assert_eq!(
            said(gone),
            [
                "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"
            ]
        );
    }
}
