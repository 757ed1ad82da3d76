//! `CronJob`.

mod schedule;
mod zones;

use k1s_object::At;
use serde_json::Value;

use super::job;
use crate::rules::{
    Rules,
    core::pod::{defaults as pod_defaults, warnings as pod_warnings},
    helpers::{
        equality::same_workload_field,
        go_values::go_selector,
        json::{child, default_pointer, default_value, object, text_at},
        numbers::non_negative,
        text::one_of,
    },
};

pub(super) static RULES: Rules =
    Rules { defaults, validate, validate_update, warnings, ..Rules::WITH_STATUS };

/// Defaults. The Job of the template gets its own when it is created.
fn defaults(value: &mut Value) {
    let spec = child(object(value), "spec");
    default_value(spec, "concurrencyPolicy", "Allow");
    default_pointer(spec, "suspend", false);
    default_pointer(spec, "successfulJobsHistoryLimit", 3);
    default_pointer(spec, "failedJobsHistoryLimit", 1);
    let job = child(child(spec, "jobTemplate"), "spec");
    pod_defaults::job_policies(job);
    pod_defaults::template(job, "template");
}

fn validate(object: At<'_, '_>) {
    validate_spec(object.get("spec"), false, true);
    let name = object.get("metadata").get("name");
    if name.text().len() > 52 {
        name.invalid("must be no more than 52 characters");
    }
    schedule_is_set(object.get("spec"));
}

fn validate_update(new: At<'_, '_>, old: At<'_, '_>) {
    let before = old.get("spec");
    let zone_changed = new.get("spec").get("timeZone").value() != before.get("timeZone").value();
    validate_spec(new.get("spec"), before.get("schedule").text().contains("TZ"), zone_changed);
    schedule_is_set(new.get("spec"));
}

/// Declarative validation, reported after all other errors.
fn schedule_is_set(spec: At<'_, '_>) {
    if spec.get("schedule").is_empty() {
        spec.get("schedule").required("");
    }
}

fn validate_spec(spec: At<'_, '_>, zone_in_schedule: bool, check_zone: bool) {
    let (schedule, zone) = (spec.get("schedule"), spec.get("timeZone"));
    let text = schedule.text();
    if !text.is_empty() {
        if let Err(why) = schedule::parse(text) {
            schedule.invalid(why);
        }
        if text.contains("TZ") {
            if !zone_in_schedule {
                schedule.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
            } else if zone.is_set() {
                schedule.invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule");
            }
        }
    }
    non_negative(spec.get("startingDeadlineSeconds"));
    if check_zone && let Some(text) = zone.str() {
        if text.is_empty() {
            zone.invalid("timeZone must be nil or non-empty string");
        } else if !schedule::is_zone_name(text) {
            zone.invalid(format!("unknown time zone {text}"));
        } else {
            if text.eq_ignore_ascii_case("Local") {
                zone.invalid(
                    "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
                );
            }
            if !schedule::is_known_zone(text) {
                zone.invalid(format!("unknown time zone {text}"));
            }
        }
    }
    one_of(spec.get("concurrencyPolicy"), &["Allow", "Forbid", "Replace"]);
    let job = spec.get("jobTemplate").get("spec");
    job::spec::validate_spec(job);
    let selector = job.get("selector");
    if selector.is_set() {
        selector.invalid_as(
            selector.value().map_or(Value::Null, go_selector),
            "`selector` will be auto-generated",
        );
    }
    if job.get("manualSelector").is_true() {
        job.get("manualSelector").not_supported(&["nil", "false"]);
    }
    non_negative(spec.get("successfulJobsHistoryLimit"));
    non_negative(spec.get("failedJobsHistoryLimit"));
}

fn warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none() {
        pod_warnings::name(new, "Pod names and hostnames", out);
    }
    if old.is_none_or(|old| !same_workload_field(new, old, "spec")) {
        job::spec_warnings("spec.jobTemplate.spec", new.pointer("/spec/jobTemplate/spec"), out);
    }
    if old.is_some() && text_at(new, &["spec", "schedule"]).contains("TZ") {
        out.push(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .into(),
        );
    }
}
