//! What is right for Job and `CronJob`.

use k1s_object::{At, names};
use serde_json::{Value, json};

use super::{cron, indexes};
use crate::rules::{
    apps::validate::selects_template,
    core::pod::spec as pod,
    helpers::{
        check::{
            GoField, go_selector, go_struct, immutable, immutable_selector, invalid_omitted, non_negative,
            one_of, one_of_or_unset, qualified_name, sorted,
        },
        json::{child, object, restore, same},
        labels,
    },
};

const MAX_PARALLELISM: i64 = 100_000;
const MANY_COMPLETIONS: i64 = 100_000;
const FEW_OF_MANY: i64 = 10_000;

/// `PodFailurePolicy` as Go's messages show it.
const POD_FAILURE_POLICY: GoStruct = &[(
    "Rules",
    "rules",
    GoField::List(&[
        ("Action", "action", GoField::Text),
        (
            "OnExitCodes",
            "onExitCodes",
            GoField::Struct(&[
                ("ContainerName", "containerName", GoField::Pointer),
                ("Operator", "operator", GoField::Text),
                ("Values", "values", GoField::Pointer),
            ]),
        ),
        (
            "OnPodConditions",
            "onPodConditions",
            GoField::List(&[("Type", "type", GoField::Text), ("Status", "status", GoField::Text)]),
        ),
    ]),
)];

/// `SuccessPolicy` as Go's messages show it.
const SUCCESS_POLICY: GoStruct = &[(
    "Rules",
    "rules",
    GoField::List(&[
        ("SucceededIndexes", "succeededIndexes", GoField::Pointer),
        ("SucceededCount", "succeededCount", GoField::Pointer),
    ]),
)];

type GoStruct = &'static [(&'static str, &'static str, GoField)];

fn go_value(at: At<'_, '_>, fields: GoStruct) -> Value {
    at.value().map_or(Value::Null, |value| go_struct(value, fields))
}

fn immutable_struct(new: At<'_, '_>, old: Option<&Value>, fields: GoStruct) {
    if !same(new.value(), old) {
        new.invalid_as(go_value(new, fields), "field is immutable");
    }
}

/// A Job on create.
pub(crate) fn job(job: At<'_, '_>) {
    generated_selector(job);
    job_spec_with_selector(job.get("spec"));
    pod_names(job);
}

/// A Job after an update.
pub(crate) fn job_update(new: At<'_, '_>, old: At<'_, '_>) {
    let (spec, before) = (new.get("spec"), old.get("spec"));
    job_spec_with_selector(spec);
    completions(spec, before);
    immutable_selector(spec.get("selector"), before.get("selector").value());
    template_update(spec, old);
    immutable(spec.get("completionMode"), before.get("completionMode").value());
    immutable_struct(
        spec.get("podFailurePolicy"),
        before.get("podFailurePolicy").value(),
        POD_FAILURE_POLICY,
    );
    immutable(spec.get("backoffLimitPerIndex"), before.get("backoffLimitPerIndex").value());
    immutable(spec.get("managedBy"), before.get("managedBy").value());
    immutable_struct(spec.get("successPolicy"), before.get("successPolicy").value(), SUCCESS_POLICY);
    pod_names(new);
}

/// The labels and the selector are those that the server makes.
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

/// Looks at a selector without saying anything.
fn selector_is_usable(selector: At<'_, '_>) -> bool {
    let check = k1s_object::Check::new();
    let Some(value) = selector.value() else { return true };
    labels::selector(check.root(value))
}

/// The last pod of an indexed Job needs a name that is a DNS label.
fn pod_names(job: At<'_, '_>) {
    let (spec, name) = (job.get("spec"), job.get("metadata").get("name"));
    let completions = spec.get("completions").number();
    if spec.get("completionMode").text() == "Indexed" && completions > 0 {
        let last = format!("{}-{}", name.text(), completions - 1);
        if !names::is_dns1123_label(&last).is_empty() {
            name.invalid_text(format!("will not able to create pod with invalid DNS label: {last}"));
        }
    }
}

fn job_spec_with_selector(spec: At<'_, '_>) {
    job_spec(spec);
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

fn job_spec(spec: At<'_, '_>) {
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

fn pod_failure_policy(spec: At<'_, '_>) {
    let rules = spec.get("podFailurePolicy").get("rules");
    if rules.len() > 20 {
        rules.too_many(20);
    }
    let inner = spec.get("template").get("spec");
    let names: Vec<&str> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| inner.get(list).items().map(|one| one.get("name").text()))
        .collect();
    for rule in rules.items() {
        let action = rule.get("action");
        match action.text() {
            "" => action.required("valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]"),
            "FailIndex" if !spec.get("backoffLimitPerIndex").is_set() => {
                action.invalid("requires the backoffLimitPerIndex to be set");
            }
            "FailIndex" | "Count" | "FailJob" | "Ignore" => {}
            _ => action.not_supported(&["Count", "FailIndex", "FailJob", "Ignore"]),
        }
        let (codes, conditions) = (rule.get("onExitCodes"), rule.get("onPodConditions"));
        if codes.is_set() {
            exit_codes(codes, &names);
        }
        if conditions.len() > 20 {
            conditions.too_many(20);
        }
        for pattern in conditions.items() {
            qualified_name(pattern.get("type"));
            let status = pattern.get("status");
            if status.is_empty() {
                status.required("valid values: [\"False\" \"True\" \"Unknown\"]");
            } else {
                one_of(status, &["False", "True", "Unknown"]);
            }
        }
        match (codes.is_set(), conditions.is_empty()) {
            (true, false) => {
                invalid_omitted(rule, "specifying both OnExitCodes and OnPodConditions is not supported");
            }
            (false, true) => {
                invalid_omitted(rule, "specifying one of OnExitCodes and OnPodConditions is required");
            }
            _ => {}
        }
    }
}

fn exit_codes(at: At<'_, '_>, containers: &[&str]) {
    let operator = at.get("operator");
    if operator.is_empty() {
        operator.required("valid values: [\"In\" \"NotIn\"]");
    } else {
        one_of(operator, &["In", "NotIn"]);
    }
    let name = at.get("containerName");
    if name.is_set() && !containers.contains(&name.text()) {
        name.invalid("must be one of the container or initContainer names in the pod template");
    }
    let values = at.get("values");
    if values.is_empty() {
        values.invalid("at least one value is required");
    } else if values.len() > 255 {
        values.too_many(255);
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut ordered = true;
    let mut last = None;
    for value in values.items() {
        let code = value.number();
        if operator.text() == "In" && code == 0 {
            value.invalid("must not be 0 for the In operator");
        }
        if !seen.insert(code) {
            value.duplicate();
        }
        ordered &= last.is_none_or(|last| last <= code);
        last = Some(code);
    }
    if !ordered {
        values.invalid("must be ordered");
    }
}

fn success_policy(at: At<'_, '_>, completions: i64) {
    let rules = at.get("rules");
    if rules.is_empty() {
        rules.required("at least one rules must be specified when the successPolicy is specified");
    }
    if rules.len() > 20 {
        rules.too_many(20);
    }
    for rule in rules.items() {
        let (count, list) = (rule.get("succeededCount"), rule.get("succeededIndexes"));
        if !count.is_set() && !list.is_set() {
            rule.required("at least one of succeededCount or succeededIndexes must be specified");
        }
        let mut total = 0;
        if let Some(text) = list.str() {
            if text.len() > 64 * 1024 {
                list.too_long(64 * 1024);
            }
            match indexes::count(text, completions) {
                Ok(count) => total = count,
                Err(why) => list.invalid(format!("error parsing succeededIndexes: {why}")),
            }
        }
        if count.is_set() {
            non_negative(count);
            if count.number() > completions {
                count.invalid(format!(
                    "must be less than or equal to {completions} (the number of specified completions)"
                ));
            }
            if list.is_set() && count.number() > total {
                count.invalid(format!(
                    "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
                ));
            }
        }
    }
}

fn completions(spec: At<'_, '_>, before: At<'_, '_>) {
    let at = spec.get("completions");
    if spec.get("completionMode").text() != "Indexed" {
        immutable(at, before.get("completions").value());
        return;
    }
    if at.is_set()
        && at.value() != before.get("completions").value()
        && at.number() != spec.get("parallelism").number()
    {
        at.invalid("can only be modified in tandem with spec.parallelism");
    }
}

/// The template stays as it is; while a Job is suspended and has no pods, where they run and what they need may
/// change.
fn template_update(spec: At<'_, '_>, old: At<'_, '_>) {
    let at = spec.get("template");
    let suspended = old.get("spec").get("suspend").is_true();
    let status = old.get("status");
    let condition = status
        .get("conditions")
        .items()
        .any(|one| one.get("type").text() == "Suspended" && one.get("status").text() == "True");
    let free =
        suspended && (!status.get("startTime").is_set() || condition) && status.get("active").number() == 0;
    let mut before = old.get("spec").get("template").value().cloned().unwrap_or_default();
    let Some(now) = at.value() else { return };
    if !free {
        if !same(Some(now), Some(&before)) {
            at.invalid_as(sorted(now), "field is immutable");
        }
        return;
    }
    let template = object(&mut before);
    let metadata = now.get("metadata").and_then(Value::as_object);
    for key in ["annotations", "labels"] {
        restore(child(template, "metadata"), metadata, key);
    }
    let inner = child(template, "spec");
    let new_spec = now.get("spec").and_then(Value::as_object);
    for key in ["nodeSelector", "tolerations", "schedulingGates"] {
        restore(inner, new_spec, key);
    }
    let affinity = now.pointer("/spec/affinity").and_then(Value::as_object);
    restore(child(inner, "affinity"), affinity, "nodeAffinity");
    if child(inner, "affinity").is_empty() && affinity.is_none() {
        inner.shift_remove("affinity");
    }
    for list in ["containers", "initContainers"] {
        let sent = now.pointer("/spec").and_then(|spec| spec.get(list)).and_then(Value::as_array);
        let Some(Value::Array(items)) = inner.get_mut(list) else { continue };
        if sent.is_none_or(|sent| sent.len() != items.len()) {
            continue;
        }
        for (item, sent) in items.iter_mut().zip(sent.into_iter().flatten()) {
            if item.get("name") == sent.get("name") {
                restore(object(item), sent.as_object(), "resources");
            }
        }
    }
    if !same(now.get("spec"), before.get("spec")) {
        at.check().push(k1s_object::FieldError::invalid(
            format!("{}.spec", at.path()),
            now.get("spec").map_or(Value::Null, sorted),
            "field is immutable",
        ));
    }
}

fn is_true(job: At<'_, '_>, kind: &str) -> bool {
    let conditions = job.get("status").get("conditions");
    conditions.items().any(|one| one.get("type").text() == kind && one.get("status").text() == "True")
}

/// A Job after an update of its status.
pub(crate) fn job_status(new: At<'_, '_>, old: At<'_, '_>) {
    let (at, before) = (new.get("status"), old.get("status"));
    let spec = new.get("spec");
    let conditions = at.get("conditions");
    let changed = |field: &'static str| {
        !same(new.get("status").get(field).value(), old.get("status").get(field).value())
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
    // Times have one form, so their order is that of their texts.
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

/// A `CronJob` on create.
pub(crate) fn cron_job(object: At<'_, '_>) {
    cron_job_spec(object.get("spec"), false, true);
    let name = object.get("metadata").get("name");
    if name.text().len() > 52 {
        name.invalid("must be no more than 52 characters");
    }
    schedule_is_set(object.get("spec"));
}

/// A `CronJob` after an update.
pub(crate) fn cron_job_update(new: At<'_, '_>, old: At<'_, '_>) {
    let before = old.get("spec");
    let zone_changed = new.get("spec").get("timeZone").value() != before.get("timeZone").value();
    cron_job_spec(new.get("spec"), before.get("schedule").text().contains("TZ"), zone_changed);
    schedule_is_set(new.get("spec"));
}

/// Declarative validation says this, after all other errors.
fn schedule_is_set(spec: At<'_, '_>) {
    if spec.get("schedule").is_empty() {
        spec.get("schedule").required("");
    }
}

fn cron_job_spec(spec: At<'_, '_>, zone_in_schedule: bool, check_zone: bool) {
    let (schedule, zone) = (spec.get("schedule"), spec.get("timeZone"));
    let text = schedule.text();
    if !text.is_empty() {
        if let Err(why) = cron::parse(text) {
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
        } else if !cron::is_zone_name(text) {
            zone.invalid(format!("unknown time zone {text}"));
        } else {
            if text.eq_ignore_ascii_case("Local") {
                zone.invalid(
                    "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
                );
            }
            if !cron::is_known_zone(text) {
                zone.invalid(format!("unknown time zone {text}"));
            }
        }
    }
    one_of(spec.get("concurrencyPolicy"), &["Allow", "Forbid", "Replace"]);
    let job = spec.get("jobTemplate").get("spec");
    job_spec(job);
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
