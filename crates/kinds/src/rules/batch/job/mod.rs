//! `Job`.

mod defaults;
mod indexes;
mod policies;
pub(super) mod spec;
mod status;
mod update;

use serde_json::Value;

use crate::rules::{
    FieldLabelError, Rules, SelectableField,
    core::pod::warnings as pod_warnings,
    drop_status,
    helpers::{equality::same_workload_field, json::number_at},
};

pub(super) static RULES: Rules = Rules {
    defaults: defaults::job,
    prepare_create,
    validate: spec::validate,
    validate_update: update::validate,
    validate_status: status::validate,
    warnings,
    orphans_by_default: true,
    fields: &[SelectableField {
        path: "status.successful",
        read: |job| number_at(job, &["status", "succeeded"]).to_string(),
    }],
    field_error: FieldLabelError::Quoted("Job"),
    ..Rules::WITH_STATUS
};

/// The warning on DELETE of a Job without a propagation policy.
pub const DELETE_WARNING: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

fn prepare_create(job: &mut Value) {
    drop_status(job);
    defaults::generate_selector(job);
    defaults::labels_from_template(job);
}

fn warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none() {
        pod_warnings::name(new, "Pod names and hostnames", out);
    }
    if old.is_none_or(|old| !same_workload_field(new, old, "spec")) {
        spec_warnings("spec", new.get("spec"), out);
    }
}

pub(super) fn spec_warnings(path: &str, spec: Option<&Value>, out: &mut Vec<String>) {
    let Some(spec) = spec else { return };
    let indexed = spec.get("completionMode").and_then(Value::as_str) == Some("Indexed");
    if indexed && number_at(spec, &["completions"]) > 100_000 && number_at(spec, &["parallelism"]) > 10_000 {
        out.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    pod_warnings::template(&format!("{path}.template"), spec.get("template"), out);
}
