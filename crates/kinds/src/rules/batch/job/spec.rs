//! Validation of the spec of a Job.

use k1s_object::{At, names};
use serde_json::Value;

use super::policies::{SUCCESS_POLICY, go_value, pod_failure_policy, success_policy};
use crate::rules::{
    apps::workload::selects_template,
    core::pod::spec as pod,
    helpers::{
        go_values::{go_selector, sorted},
        labels,
        numbers::non_negative,
        text::one_of_or_unset,
    },
};

const MAX_PARALLELISM: i64 = 100_000;

const MANY_COMPLETIONS: i64 = 100_000;

const FEW_OF_MANY: i64 = 10_000;

pub(crate) fn validate(job: At<'_, '_>) {
    generated_selector(job);
    spec_with_selector(job.get("spec"));
    pod_names(job);
}

/// Without `manualSelector`, labels and selector must be those that the server generates.
fn generated_selector(job: At<'_, '_>) {
    let spec = job.get("spec");
    if spec.get("manualSelector").is_true() || !spec.get("selector").is_set() {
        return;
    }
    let uid = job.get("metadata").get("uid");
    let name = job.get("metadata").get("name").text();
    if uid.is_empty() {
        uid.required("");
    }
    let expected = [
        ("controller-uid", uid.text()),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid.text()),
        ("batch.kubernetes.io/job-name", name),
    ];
    let at = spec.get("template").get("metadata").get("labels");
    for (key, value) in expected {
        let label = at.key(key);
        if !label.is_set() {
            label.required(format!("must be '{value}'"));
        } else if label.text() != value {
            label.invalid_as(at.value().map_or(Value::Null, sorted), format!("must be '{value}'"));
        }
    }
    let expected: Value =
        Value::Object(expected.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect());
    let selector = spec.get("selector");
    if selector_is_usable(selector) && !labels::matches(selector.value(), Some(&expected)) {
        selector
            .invalid_as(selector.value().map_or(Value::Null, go_selector), "`selector` not auto-generated");
    }
}

/// Validates a selector without reporting errors.
fn selector_is_usable(selector: At<'_, '_>) -> bool {
    let check = k1s_object::Check::new();
    let Some(value) = selector.value() else { return true };
    labels::selector(check.root(value))
}

/// The name of the last pod of an indexed Job must be a DNS label.
pub(super) fn pod_names(job: At<'_, '_>) {
    let (spec, name) = (job.get("spec"), job.get("metadata").get("name"));
    let completions = spec.get("completions").number();
    if spec.get("completionMode").text() == "Indexed" && completions > 0 {
        let last = format!("{}-{}", name.text(), completions - 1);
        if !names::is_dns1123_label(&last).is_empty() {
            name.invalid_text(format!("will not able to create pod with invalid DNS label: {last}"));
        }
    }
}

pub(super) fn spec_with_selector(spec: At<'_, '_>) {
    validate_spec(spec);
    let selector = spec.get("selector");
    let usable = if selector.is_set() {
        labels::selector(selector)
    } else {
        selector.required("");
        true
    };
    if usable {
        selects_template(selector, spec.get("template"));
    }
}

fn at_most(at: At<'_, '_>, limit: i64, detail: String) {
    if at.number() > limit {
        at.invalid(detail);
    }
}

pub(in crate::rules::batch) fn validate_spec(spec: At<'_, '_>) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        non_negative(spec.get(field));
    }
    let (per_index, max_failed) = (spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes"));
    let (parallelism, completions) = (spec.get("parallelism"), spec.get("completions"));
    if max_failed.is_set() && !per_index.is_set() {
        per_index.required("when maxFailedIndexes is specified");
    }
    let managed_by = spec.get("managedBy");
    if managed_by.is_set() {
        names::is_domain_prefixed_path(managed_by);
        if managed_by.text().len() > 63 {
            managed_by.too_long(63);
        }
    }
    let mode = spec.get("completionMode");
    one_of_or_unset(mode, &["NonIndexed", "Indexed"]);
    if mode.text() == "Indexed" {
        if !completions.is_set() {
            completions.required("when completion mode is Indexed");
        }
        at_most(
            parallelism,
            MAX_PARALLELISM,
            format!("must be less than or equal to {MAX_PARALLELISM} when completion mode is Indexed"),
        );
        if completions.is_set() {
            at_most(max_failed, completions.number(), "must be less than or equal to completions".into());
        }
        at_most(max_failed, MAX_PARALLELISM, format!("must be less than or equal to {MAX_PARALLELISM}"));
        if completions.number() > MANY_COMPLETIONS && per_index.is_set() {
            if !max_failed.is_set() {
                max_failed
                    .required(format!("must be specified when completions is above {MANY_COMPLETIONS}"));
            }
            let detail = format!(
                "must be less than or equal to {FEW_OF_MANY} when completions are above {MANY_COMPLETIONS} and used with backoff limit per index"
            );
            at_most(parallelism, FEW_OF_MANY, detail.clone());
            at_most(max_failed, FEW_OF_MANY, detail);
        }
    }
    if !mode.is_set() || mode.text() == "NonIndexed" {
        for at in [per_index, max_failed] {
            if at.is_set() {
                at.invalid("requires indexed completion mode");
            }
        }
    }
    if spec.get("podFailurePolicy").is_set() {
        pod_failure_policy(spec);
    }
    let success = spec.get("successPolicy");
    if success.is_set() {
        if mode.text() == "Indexed" {
            success_policy(success, completions.number());
        } else {
            success.invalid_as(go_value(success, SUCCESS_POLICY), "requires indexed completion mode");
        }
    }
    let replacement = spec.get("podReplacementPolicy");
    if spec.get("podFailurePolicy").is_set() {
        one_of_or_unset(replacement, &["Failed"]);
    } else {
        one_of_or_unset(replacement, &["Failed", "TerminatingOrFailed"]);
    }
    pod::template(spec.get("template"));
    let policy = spec.get("template").get("spec").get("restartPolicy");
    match policy.text() {
        "Always" | "" => policy.required("valid values: \"OnFailure\", \"Never\""),
        "Never" => {}
        "OnFailure" => {
            if spec.get("podFailurePolicy").is_set() {
                policy.invalid("only \"Never\" is supported when podFailurePolicy is specified");
            }
        }
        _ => policy.not_supported(&["OnFailure", "Never"]),
    }
}
