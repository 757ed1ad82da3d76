//! What is right for Deployment, `ReplicaSet`, `StatefulSet`, `DaemonSet` and `ControllerRevision`.

use k1s_object::{At, Check, names};
use serde_json::{Value, json};

use crate::rules::{
    core::pod::{spec as pod, volumes},
    helpers::{
        check::{dns_label, go_selector, immutable, immutable_selector, non_negative, sorted},
        json::same,
        labels,
    },
};

const NO_MATCH: &str = "`selector` does not match template `labels`";

/// The template's labels must be selected; `labels` are shown as Go shows a map.
pub(crate) fn selects_template(selector: At<'_, '_>, template: At<'_, '_>) {
    let shown = template.get("metadata").get("labels");
    if !labels::matches(selector.value(), shown.value()) {
        shown.invalid_as(shown.value().map_or(Value::Null, sorted), NO_MATCH);
    }
}

/// A selector that must be there and not be empty. Whether it can be used.
fn selector(at: At<'_, '_>, kind: &str) -> bool {
    if !at.is_set() {
        at.required("");
        return true;
    }
    let usable = labels::selector(at);
    if labels::is_empty(at.value()) {
        at.invalid_as(json!({}), format!("empty selector is invalid for {kind}"));
    }
    usable
}

/// A template of `ReplicaSets`.
fn template(spec: At<'_, '_>) {
    let (select, template) = (spec.get("selector"), spec.get("template"));
    if !select.is_set() || !labels::is_empty(select.value()) {
        selects_template(select, template);
    }
    pod::template(template);
    pod::always_restarts(template, "ReplicaSet");
}

fn unusable(at: At<'_, '_>, detail: &str) {
    at.invalid_as(at.value().map_or(Value::Null, go_selector), detail);
}

fn deployment_spec(spec: At<'_, '_>) {
    non_negative(spec.get("replicas"));
    if selector(spec.get("selector"), "deployment") {
        template(spec);
    } else {
        unusable(spec.get("selector"), "invalid label selector");
    }
    deployment_strategy(spec.get("strategy"));
    non_negative(spec.get("minReadySeconds"));
    non_negative(spec.get("revisionHistoryLimit"));
    let deadline = spec.get("progressDeadlineSeconds");
    if deadline.is_set() {
        non_negative(deadline);
        if deadline.number() <= spec.get("minReadySeconds").number() {
            deadline.invalid("must be greater than minReadySeconds");
        }
    }
}

fn deployment_strategy(at: At<'_, '_>) {
    let rolling = at.get("rollingUpdate");
    match at.get("type").text() {
        "Recreate" => {
            if rolling.is_set() {
                rolling.forbidden("may not be specified when strategy `type` is 'Recreate'");
            }
        }
        "RollingUpdate" => {
            if !rolling.is_set() {
                rolling.required("this should be defaulted and never be nil");
                return;
            }
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            int_or_percent(unavailable);
            int_or_percent(surge);
            if amount(unavailable) == 0 && amount(surge) == 0 {
                unavailable.invalid("may not be 0 when `maxSurge` is 0");
            }
            at_most_all(unavailable);
        }
        _ => not_supported_strategy(at, &["Recreate", "RollingUpdate"], &["MaxUnavailable", "MaxSurge"]),
    }
}

/// Kubernetes shows the whole strategy here, by Go's names.
fn not_supported_strategy(at: At<'_, '_>, supported: &[&str], fields: &[&str]) {
    let rolling = at.get("rollingUpdate");
    let shown = if rolling.is_set() {
        let of = |go: &str| {
            let json = format!(
                "{}{}",
                go.get(..1).unwrap_or_default().to_lowercase(),
                go.get(1..).unwrap_or_default()
            );
            rolling.value().and_then(|value| value.get(&json)).cloned().unwrap_or_else(|| json!(0))
        };
        Value::Object(fields.iter().map(|go| ((*go).to_owned(), of(go))).collect())
    } else {
        Value::Null
    };
    let error = k1s_object::FieldError::not_supported(
        at.path(),
        json!({"Type": at.get("type").text(), "RollingUpdate": shown}),
        supported,
    );
    at.check().push(error);
}

fn int_or_percent(at: At<'_, '_>) {
    match at.str() {
        Some(text) => names::is_valid_percent(text).into_iter().for_each(|message| at.invalid(message)),
        None => non_negative(at),
    }
}

fn percent(at: At<'_, '_>) -> Option<i64> {
    at.str()
        .filter(|text| names::is_valid_percent(text).is_empty())
        .and_then(|text| text.trim_end_matches('%').parse().ok())
}

fn amount(at: At<'_, '_>) -> i64 {
    // A text that is no percentage counts as the number it begins with, which is none.
    percent(at)
        .or_else(|| at.int())
        .or_else(|| at.str().and_then(|text| text.parse().ok()))
        .unwrap_or_default()
}

fn at_most_all(at: At<'_, '_>) {
    if percent(at).is_some_and(|percent| percent > 100) {
        at.invalid("must not be greater than 100%");
    }
}

/// A Deployment on create.
pub(crate) fn deployment(object: At<'_, '_>) {
    deployment_spec(object.get("spec"));
}

/// A Deployment after an update.
pub(crate) fn deployment_update(new: At<'_, '_>, old: At<'_, '_>) {
    deployment_spec(new.get("spec"));
    immutable_selector(new.get("spec").get("selector"), old.get("spec").get("selector").value());
}

fn non_negatives(at: At<'_, '_>, fields: &[&'static str]) {
    for field in fields {
        non_negative(at.get(field));
    }
}

/// None of these is greater than `status.replicas`.
fn within_replicas(at: At<'_, '_>, fields: &[&'static str]) {
    for field in fields {
        if at.get(field).number() > at.get("replicas").number() {
            at.get(field).invalid("cannot be greater than status.replicas");
        }
    }
}

fn collisions(new: At<'_, '_>, old: At<'_, '_>) {
    let at = new.get("status").get("collisionCount");
    if old.get("status").get("collisionCount").int().is_some_and(|old| at.number() < old) {
        at.invalid_as(at.number(), "cannot be decremented");
    }
}

/// A Deployment after an update of its status.
pub(crate) fn deployment_status(new: At<'_, '_>, old: At<'_, '_>) {
    let at = new.get("status");
    non_negatives(
        at,
        &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
    );
    within_replicas(at, &["updatedReplicas", "readyReplicas", "availableReplicas"]);
    available_within_ready(at, "cannot be greater than readyReplicas");
    collisions(new, old);
}

fn available_within_ready(at: At<'_, '_>, detail: &str) {
    if at.get("availableReplicas").number() > at.get("readyReplicas").number() {
        at.get("availableReplicas").invalid(detail);
    }
}

fn replica_set_spec(spec: At<'_, '_>) {
    non_negative(spec.get("replicas"));
    non_negative(spec.get("minReadySeconds"));
    if selector(spec.get("selector"), "deployment") {
        template(spec);
    } else {
        unusable(spec.get("selector"), "invalid label selector");
    }
}

/// A `ReplicaSet` on create.
pub(crate) fn replica_set(object: At<'_, '_>) {
    replica_set_spec(object.get("spec"));
}

/// A `ReplicaSet` after an update.
pub(crate) fn replica_set_update(new: At<'_, '_>, old: At<'_, '_>) {
    replica_set_spec(new.get("spec"));
    immutable_selector(new.get("spec").get("selector"), old.get("spec").get("selector").value());
}

/// A `ReplicaSet` or `ReplicationController` after an update of its status.
pub(crate) fn replicas_status(new: At<'_, '_>, _old: At<'_, '_>) {
    let at = new.get("status");
    non_negatives(
        at,
        &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
    );
    within_replicas(at, &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"]);
    available_within_ready(at, "cannot be greater than readyReplicas");
}

fn stateful_set_spec(spec: At<'_, '_>, creating: bool) {
    let policy = spec.get("podManagementPolicy");
    match policy.text() {
        "" => policy.required(""),
        "OrderedReady" | "Parallel" => {}
        _ => policy.invalid("must be 'OrderedReady' or 'Parallel'"),
    }
    stateful_set_strategy(spec.get("updateStrategy"));
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
        stateful_set_template(spec);
    } else {
        unusable(select, "");
    }
    pod::always_restarts(spec.get("template"), "StatefulSet");
}

fn stateful_set_strategy(at: At<'_, '_>) {
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

/// The template as its pods will see it: the claims are volumes of theirs, and hostname and subdomain are theirs.
fn stateful_set_template(spec: At<'_, '_>) {
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
    // Checked apart, for it is not the document that was sent; the errors are told of the one that was.
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

/// A `StatefulSet` on create.
pub(crate) fn stateful_set(object: At<'_, '_>) {
    stateful_set_spec(object.get("spec"), true);
}

/// A `StatefulSet` after an update.
pub(crate) fn stateful_set_update(new: At<'_, '_>, old: At<'_, '_>) {
    let (spec, before) = (new.get("spec"), old.get("spec"));
    stateful_set_spec(spec, false);
    immutable_selector(spec.get("selector"), before.get("selector").value());
    immutable(spec.get("volumeClaimTemplates"), before.get("volumeClaimTemplates").value());
    for field in ["serviceName", "podManagementPolicy"] {
        let at = spec.get(field);
        if !same(at.value(), before.get(field).value()) {
            at.invalid_text("field is immutable");
        }
    }
}

/// A `StatefulSet` after an update of its status.
pub(crate) fn stateful_set_status(new: At<'_, '_>, old: At<'_, '_>) {
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

fn daemon_set_spec(spec: At<'_, '_>) {
    let (select, template) = (spec.get("selector"), spec.get("template"));
    if labels::selector(select) {
        selects_template(select, template);
    }
    if select.is_set() && labels::is_empty(select.value()) {
        select.invalid_as(json!({}), "empty selector is invalid for daemonset");
    }
    pod::template(template);
    pod::always_restarts(template, "DaemonSet");
    non_negative(spec.get("minReadySeconds"));
    let strategy = spec.get("updateStrategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" if !rolling.is_set() => rolling.required(""),
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            int_or_percent(unavailable);
            int_or_percent(surge);
            at_most_all(unavailable);
            at_most_all(surge);
            match (amount(unavailable) != 0, amount(surge) != 0) {
                (true, true) => surge.invalid("may not be set when maxUnavailable is non-zero"),
                (false, false) => unavailable.required("cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        _ => {
            not_supported_strategy(strategy, &["RollingUpdate", "OnDelete"], &["MaxUnavailable", "MaxSurge"])
        }
    }
    non_negative(spec.get("revisionHistoryLimit"));
}

/// A `DaemonSet` on create.
pub(crate) fn daemon_set(object: At<'_, '_>) {
    daemon_set_spec(object.get("spec"));
}

/// A `DaemonSet` after an update.
pub(crate) fn daemon_set_update(new: At<'_, '_>, old: At<'_, '_>) {
    immutable_selector(new.get("spec").get("selector"), old.get("spec").get("selector").value());
    daemon_set_spec(new.get("spec"));
}

/// A `DaemonSet` after an update of its status.
pub(crate) fn daemon_set_status(new: At<'_, '_>, old: At<'_, '_>) {
    non_negatives(
        new.get("status"),
        &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
    );
    collisions(new, old);
}

/// A `ControllerRevision` on create.
pub(crate) fn controller_revision(object: At<'_, '_>) {
    non_negative(object.get("revision"));
    let data = object.get("data");
    if !data.is_set() {
        data.required("data is mandatory");
    } else if data.map().is_none() {
        data.required("data must be a valid JSON object");
    }
}

/// A `ControllerRevision` after an update.
pub(crate) fn controller_revision_update(new: At<'_, '_>, old: At<'_, '_>) {
    non_negative(new.get("revision"));
    let data = new.get("data");
    if data.value() != old.get("data").value() {
        data.invalid("field is immutable");
    }
}
