//! Job and `CronJob`.

mod cron;
pub(crate) mod defaults;
mod indexes;
mod validate;
mod zones;

use serde_json::Value;

use crate::rules::{
    FieldLabelError, Rules, SelectableField,
    core::pod::warnings,
    drop_status,
    helpers::json::{number, same_field, text_at},
};

/// The rules of Job.
pub(super) static JOB: Rules = Rules {
    defaults: defaults::job,
    prepare_create: job_create,
    validate: validate::job,
    validate_update: validate::job_update,
    validate_status: validate::job_status,
    warnings: job_warnings,
    orphans_by_default: true,
    fields: &[SelectableField {
        path: "status.successful",
        read: |job| number(job, "/status/succeeded").to_string(),
    }],
    field_error: FieldLabelError::Quoted("Job"),
    ..Rules::WITH_STATUS
};

/// The rules of `CronJob`.
pub(super) static CRON_JOB: Rules = Rules {
    defaults: defaults::cron_job,
    validate: validate::cron_job,
    validate_update: validate::cron_job_update,
    warnings: cron_job_warnings,
    ..Rules::WITH_STATUS
};

/// The warning that goes with a DELETE of a Job without a propagation policy.
pub const DELETE_WARNING: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

fn job_spec_warnings(path: &str, spec: Option<&Value>, out: &mut Vec<String>) {
    let Some(spec) = spec else { return };
    let indexed = spec.get("completionMode").and_then(Value::as_str) == Some("Indexed");
    if indexed && number(spec, "/completions") > 100_000 && number(spec, "/parallelism") > 10_000 {
        out.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    warnings::template(&format!("{path}.template"), spec.get("template"), out);
}

fn job_warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none() {
        warnings::name(new, "Pod names and hostnames", out);
    }
    if old.is_none_or(|old| !same_field(new, old, "spec")) {
        job_spec_warnings("spec", new.get("spec"), out);
    }
}

fn cron_job_warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none() {
        warnings::name(new, "Pod names and hostnames", out);
    }
    if old.is_none_or(|old| !same_field(new, old, "spec")) {
        job_spec_warnings("spec.jobTemplate.spec", new.pointer("/spec/jobTemplate/spec"), out);
    }
    if old.is_some() && text_at(new, "/spec/schedule").contains("TZ") {
        out.push(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .into(),
        );
    }
}

fn job_create(job: &mut Value) {
    drop_status(job);
    defaults::generate_selector(job);
    defaults::labels_from_template(job);
}

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "Job" => &JOB,
        "CronJob" => &CRON_JOB,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
