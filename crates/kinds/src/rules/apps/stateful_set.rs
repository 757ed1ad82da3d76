//! `StatefulSet`.

use k1s_object::{At, Check};
use serde_json::{Value, json};

use super::workload::{
    amount, at_most_all, available_within_ready, collisions, int_or_percent, non_negatives, selector,
    selects_template, template_warnings, unusable, within_replicas,
};
use crate::rules::{
    NameRule, Rules,
    core::pod::{defaults as pod_defaults, spec as pod, volumes, warnings as pod_warnings},
    helpers::{
        equality::{same_workload, same_workload_field},
        immutable::{immutable, immutable_selector},
        json::{child, default_pointer, default_value, each, existing, object, text, zero},
        labels,
        numbers::non_negative,
        text::dns_label,
    },
};

pub(super) static RULES: Rules = Rules {
    defaults,
    validate,
    validate_update,
    validate_status,
    warnings,
    name: NameRule::Label,
    ..Rules::WITH_STATUS
};

fn defaults(value: &mut Value) {
    let spec = child(object(value), "spec");
    default_value(spec, "podManagementPolicy", "OrderedReady");
    let strategy = child(spec, "updateStrategy");
    if zero(strategy, "type") {
        strategy.insert("type".into(), "RollingUpdate".into());
        child(strategy, "rollingUpdate");
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = existing(strategy, "rollingUpdate")
    {
        default_pointer(rolling, "partition", 0);
        default_pointer(rolling, "maxUnavailable", 1);
    }
    let retention = child(spec, "persistentVolumeClaimRetentionPolicy");
    default_value(retention, "whenDeleted", "Retain");
    default_value(retention, "whenScaled", "Retain");
    default_pointer(spec, "replicas", 1);
    default_pointer(spec, "revisionHistoryLimit", 10);
    pod_defaults::template(spec, "template");
    for claim in each(spec, "volumeClaimTemplates") {
        claim.insert("kind".into(), "PersistentVolumeClaim".into());
        claim.insert("apiVersion".into(), "v1".into());
        pod_defaults::claim(claim);
    }
}

fn validate(object: At<'_, '_>) {
    validate_spec(object.get("spec"), true);
}

fn validate_update(new: At<'_, '_>, old: At<'_, '_>) {
    let (spec, before) = (new.get("spec"), old.get("spec"));
    validate_spec(spec, false);
    immutable_selector(spec.get("selector"), before.get("selector").value());
    immutable(spec.get("volumeClaimTemplates"), before.get("volumeClaimTemplates").value());
    for field in ["serviceName", "podManagementPolicy"] {
        let at = spec.get(field);
        if !same_workload(at.value(), before.get(field).value()) {
            at.invalid_text("field is immutable");
        }
    }
}

fn validate_spec(spec: At<'_, '_>, creating: bool) {
    let policy = spec.get("podManagementPolicy");
    match policy.text() {
        "" => policy.required(""),
        "OrderedReady" | "Parallel" => {}
        _ => policy.invalid("must be 'OrderedReady' or 'Parallel'"),
    }
    validate_strategy(spec.get("updateStrategy"));
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    if retention.is_set() {
        for when in ["whenDeleted", "whenScaled"] {
            let at = retention.get(when);
            if !matches!(at.text(), "Retain" | "Delete") {
                at.not_supported(&["Retain", "Delete"]);
            }
        }
    }
    if creating {
        for claim in spec.get("volumeClaimTemplates").items() {
            volumes::claim_spec(claim.get("spec"));
        }
    }
    non_negative(spec.get("replicas"));
    non_negative(spec.get("minReadySeconds"));
    let start = spec.get("ordinals").get("start");
    if start.number() < 0 {
        non_negative(spec.get("ordinals.start").with(start.value()));
    }
    if creating && !spec.get("serviceName").is_empty() {
        dns_label(spec.get("serviceName"));
    }
    let select = spec.get("selector");
    if selector(select, "statefulset") {
        validate_template(spec);
    } else {
        unusable(select, "");
    }
    pod::always_restarts(spec.get("template"), "StatefulSet");
}

fn validate_strategy(at: At<'_, '_>) {
    let rolling = at.get("rollingUpdate");
    match at.get("type").text() {
        "" => at.required(""),
        "OnDelete" => {
            if rolling.is_set() {
                let shown = json!({
                    "Partition": rolling.get("partition").number(),
                    "MaxUnavailable": rolling.get("maxUnavailable").value(),
                });
                rolling.invalid_as(shown, "only allowed for updateStrategy 'RollingUpdate'");
            }
        }
        "RollingUpdate" => {
            non_negative(rolling.get("partition"));
            let unavailable = rolling.get("maxUnavailable");
            if unavailable.is_set() {
                int_or_percent(unavailable);
                if amount(unavailable) == 0 {
                    unavailable.invalid("cannot be 0");
                }
                at_most_all(unavailable);
            }
        }
        kind => {
            let shown = if rolling.is_set() {
                json!({
                    "Partition": rolling.get("partition").number(),
                    "MaxUnavailable": rolling.get("maxUnavailable").value(),
                })
            } else {
                Value::Null
            };
            at.invalid_as(
                json!({"Type": kind, "RollingUpdate": shown}),
                "must be 'RollingUpdate' or 'OnDelete'",
            );
        }
    }
}

/// Validates the template as its pods will have it: with the claim templates as volumes, and with hostname and
/// subdomain set by the controller.
fn validate_template(spec: At<'_, '_>) {
    let (select, at) = (spec.get("selector"), spec.get("template"));
    if !select.is_set() || !labels::is_empty(select.value()) {
        selects_template(select, at);
    }
    let mut seen = at.value().cloned().unwrap_or_default();
    if let Some(inner) = seen.get_mut("spec").and_then(Value::as_object_mut) {
        inner.shift_remove("subdomain");
        inner.shift_remove("hostname");
        let claims: Vec<Value> = spec
            .get("volumeClaimTemplates")
            .items()
            .map(|claim| {
                let name = claim.get("metadata").get("name").text();
                json!({"name": name, "persistentVolumeClaim": {"claimName": name}})
            })
            .collect();
        if !claims.is_empty() {
            let names: std::collections::HashSet<Option<&Value>> =
                claims.iter().map(|claim| claim.get("name")).collect();
            let named = |volume: &Value| names.contains(&volume.get("name"));
            let others = inner.get("volumes").and_then(Value::as_array).into_iter().flatten();
            let others: Vec<Value> = others.filter(|volume| !named(volume)).cloned().collect();
            let all: Vec<Value> = claims.iter().cloned().chain(others).collect();
            inner.insert("volumes".into(), all.into());
        }
    }
    // A separate check, because the document differs from the one sent; errors are moved to the path of the
    // template.
    let check = Check::new();
    pod::template(check.at("", Some(&seen)));
    let path = at.path();
    for mut error in check.take() {
        let field = error.field.trim_start_matches('.');
        error.field = if field.is_empty() { path.clone() } else { format!("{path}.{field}") };
        at.check().push(error);
    }
    let metadata = at.get("metadata");
    labels::labels(at.get("labels").with(metadata.get("labels").value()));
    labels::annotations(at.get("annotations").with(metadata.get("annotations").value()));
}

fn validate_status(new: At<'_, '_>, old: At<'_, '_>) {
    let at = new.get("status");
    non_negatives(
        at,
        &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
    );
    within_replicas(at, &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"]);
    available_within_ready(at, "cannot be greater than status.readyReplicas");
    collisions(new, old);
}

fn warnings(new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
    if old.is_none_or(|old| !same_workload_field(new, old, "spec")) {
        template_warnings(new, out);
    }
    let check = Check::new();
    let spec = check.root(new).get("spec");
    for claim in spec.get("volumeClaimTemplates").items() {
        // Kubernetes omits `spec` from the path on create and capitalizes it on update.
        let at = if old.is_some() { claim.get("Spec") } else { claim };
        pod_warnings::claim(at.with(claim.get("spec").value()), out);
    }
    if spec.get("revisionHistoryLimit").number() < 0 {
        out.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
                .into(),
        );
    }
}
