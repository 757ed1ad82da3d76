//! Validation of the status of a Job.

use k1s_object::At;
use serde_json::{Value, json};

use super::indexes;
use crate::rules::helpers::{equality::same_workload, errors::invalid_omitted, numbers::non_negative};

pub(crate) fn validate(new: At<'_, '_>, old: At<'_, '_>) {
    let (at, before) = (new.get("status"), old.get("status"));
    let spec = new.get("spec");
    let conditions = at.get("conditions");
    let changed = |field: &'static str| {
        !same_workload(new.get("status").get(field).value(), old.get("status").get(field).value())
    };
    let turned = |kind: &str| is_true(new, kind) != is_true(old, kind);
    let (complete, failed) = (is_true(new, "Complete"), is_true(new, "Failed"));
    let (success_met, failure_target) = (is_true(new, "SuccessCriteriaMet"), is_true(new, "FailureTarget"));
    let finished = complete || failed;
    let finished_turned = finished != (is_true(old, "Complete") || is_true(old, "Failed"));
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        non_negative(at.get(field));
    }
    let uncounted = at.get("uncountedTerminatedPods");
    let mut seen = std::collections::BTreeSet::new();
    for list in ["succeeded", "failed"] {
        for uid in uncounted.get(list).items() {
            if uid.is_empty() {
                uid.invalid("must not be empty");
            } else if !seen.insert(uid.text()) {
                uid.duplicate();
            }
        }
    }
    if (turned("Complete") || turned("Failed")) && complete && failed {
        invalid_omitted(conditions, "cannot set Complete=True and Failed=true conditions");
    }
    if (turned("Complete") || turned("FailureTarget")) && complete && failure_target {
        invalid_omitted(conditions, "cannot set Complete=True and FailureTarget=true conditions");
    }
    let (completion, start) = (at.get("completionTime"), at.get("startTime"));
    if turned("Complete") || changed("completionTime") {
        if completion.is_set() && !complete {
            completion.invalid("cannot set completionTime when there is no Complete=True condition");
        }
        if !completion.is_set() && complete {
            completion.required("completionTime is required for Complete jobs");
        }
    }
    // Times are in canonical form, so strings compare like times.
    if (changed("startTime") || changed("completionTime"))
        && start.is_set()
        && completion.is_set()
        && completion.text() < start.text()
    {
        completion.invalid("must be equal to or after `startTime`");
    }
    if (turned("Failed") || changed("failedIndexes")) && failed && !failure_target {
        invalid_omitted(
            conditions,
            "cannot set Failed=True condition without the FailureTarget=true condition",
        );
    }
    if (turned("Complete") || turned("SuccessCriteriaMet")) && complete && !success_met {
        invalid_omitted(
            conditions,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        );
    }
    if (finished_turned || changed("active")) && at.get("active").number() > 0 && finished {
        at.get("active").invalid("active>0 is invalid for finished job");
    }
    let nothing_to_do = spec.get("suspend").is_true() && spec.get("completions").int() == Some(0);
    if (finished_turned || changed("startTime")) && !nothing_to_do && !start.is_set() && finished {
        start.required("startTime is required for finished job");
    }
    if (finished_turned || changed("uncountedTerminatedPods")) && finished && !seen.is_empty() {
        let list = |name: &'static str| uncounted.get(name).value().cloned().unwrap_or(Value::Null);
        uncounted.invalid_as(
            json!({"Succeeded": list("succeeded"), "Failed": list("failed")}),
            "must be empty for finished job",
        );
    }
    job_indexes(new, changed("completedIndexes"), changed("failedIndexes"));
    let terminating = at.get("terminating");
    if (finished_turned || changed("terminating")) && terminating.number() > 0 && finished {
        terminating.invalid("terminating>0 is invalid for finished job");
    }
    let ready = at.get("ready");
    if (changed("ready") || changed("active")) && ready.is_set() && ready.number() > at.get("active").number()
    {
        ready.invalid("cannot set more ready pods than active");
    }
    if success_met && failed {
        invalid_omitted(conditions, "cannot set SuccessCriteriaMet=True and Failed=true conditions");
    }
    if success_met && failure_target {
        invalid_omitted(conditions, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    }
    if spec.get("successPolicy").is_set() && !success_met && complete {
        invalid_omitted(
            conditions,
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        );
    }
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if is_true(old, kind) && !is_true(new, kind) {
            invalid_omitted(conditions, format!("cannot disable the terminal {kind}=True condition"));
        }
    }
    if at.get("failed").number() < before.get("failed").number() {
        at.get("failed").invalid_as(at.get("failed").number(), "cannot decrease the failed counter");
    }
    let elastic = spec.get("completionMode").text() == "Indexed"
        && spec.get("completions").value() == spec.get("parallelism").value();
    if !elastic && at.get("succeeded").number() < before.get("succeeded").number() {
        at.get("succeeded").invalid_as(at.get("succeeded").number(), "cannot decrease the succeeded counter");
    }
    if completion.is_set() && before.get("completionTime").is_set() && changed("completionTime") {
        completion.invalid("field is immutable");
    }
    let resuming = is_true(old, "Suspended")
        && conditions
            .items()
            .any(|one| one.get("type").text() == "Suspended" && one.get("status").text() == "False");
    if changed("startTime") && !resuming && before.get("startTime").is_set() && !spec.get("suspend").is_true()
    {
        start.invalid("field is immutable for unsuspended job once set");
    }
    if is_true(old, "SuccessCriteriaMet") && !success_met {
        invalid_omitted(conditions, "cannot disable the SuccessCriteriaMet=True condition");
    }
    if is_true(old, "Complete") && !is_true(old, "SuccessCriteriaMet") && success_met {
        invalid_omitted(
            conditions,
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
        );
    }
}

fn is_true(job: At<'_, '_>, kind: &str) -> bool {
    let conditions = job.get("status").get("conditions");
    conditions.items().any(|one| one.get("type").text() == kind && one.get("status").text() == "True")
}

fn job_indexes(job: At<'_, '_>, completed_changed: bool, failed_changed: bool) {
    let (at, spec) = (job.get("status"), job.get("spec"));
    let (completed, failed) = (at.get("completedIndexes"), at.get("failedIndexes"));
    let completions = spec.get("completions").int();
    let per_index = spec.get("backoffLimitPerIndex").is_set();
    if let Some(completions) = completions {
        if completed_changed && let Err(why) = indexes::count(completed.text(), completions) {
            completed.invalid(format!("error parsing completedIndexes: {why}"));
        }
        if failed_changed
            && per_index
            && failed.is_set()
            && let Err(why) = indexes::count(failed.text(), completions)
        {
            failed.invalid(format!("error parsing failedIndexes: {why}"));
        }
    }
    if completed_changed && !completed.is_empty() && spec.get("completionMode").text() != "Indexed" {
        completed.invalid("cannot set non-empty completedIndexes when non-indexed completion mode");
    }
    if failed_changed && !per_index && failed.is_set() {
        failed.invalid("cannot set non-null failedIndexes when backoffLimitPerIndex is null");
    }
    if (failed_changed || completed_changed)
        && failed.is_set()
        && let Some(completions) = completions
        && let Some(index) = indexes::overlap(completed.text(), failed.text(), completions)
    {
        failed.invalid(format!("failedIndexes and completedIndexes overlap at index: {index}"));
    }
}
