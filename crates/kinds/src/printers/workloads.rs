//! Rows of workloads, autoscalers and disruption budgets.

use serde_json::{Value, json};

use super::object::{Object, human_duration, nanoseconds};

/// The last cells of a wide row, which most workloads share.
fn with_template(
    object: &Object<'_>,
    mut cells: Vec<Value>,
    containers: &str,
    last: Option<Value>,
) -> Vec<Value> {
    cells.extend(object.containers(containers));
    cells.extend(last);
    cells
}

const CONTAINERS: &str = "spec.template.spec.containers";

pub(super) fn pod_template(object: &Object<'_>) -> Vec<Value> {
    let labels = object.labels("template.metadata.labels");
    with_template(object, vec![object.name()], "template.spec.containers", Some(labels))
}

pub(super) fn replication_controller(object: &Object<'_>) -> Vec<Value> {
    let selector = object.labels("spec.selector");
    with_template(object, replicas(object), CONTAINERS, Some(selector))
}

pub(super) fn replica_set(object: &Object<'_>) -> Vec<Value> {
    let selector = object.shown_selector("spec.selector");
    with_template(object, replicas(object), CONTAINERS, Some(selector))
}

fn replicas(object: &Object<'_>) -> Vec<Value> {
    vec![
        object.name(),
        object.int("spec.replicas").into(),
        object.int("status.replicas").into(),
        object.int("status.readyReplicas").into(),
        object.age(),
    ]
}

fn ready(object: &Object<'_>) -> Value {
    format!("{}/{}", object.int("status.readyReplicas"), object.int("spec.replicas")).into()
}

pub(super) fn deployment(object: &Object<'_>) -> Vec<Value> {
    let selector = object.selector("spec.selector").unwrap_or_else(|| "<invalid>".to_owned());
    let cells = vec![
        object.name(),
        ready(object),
        object.int("status.updatedReplicas").into(),
        object.int("status.availableReplicas").into(),
        object.age(),
    ];
    with_template(object, cells, CONTAINERS, Some(selector.into()))
}

pub(super) fn stateful_set(object: &Object<'_>) -> Vec<Value> {
    with_template(object, vec![object.name(), ready(object), object.age()], CONTAINERS, None)
}

pub(super) fn daemon_set(object: &Object<'_>) -> Vec<Value> {
    let cells = vec![
        object.name(),
        object.int("status.desiredNumberScheduled").into(),
        object.int("status.currentNumberScheduled").into(),
        object.int("status.numberReady").into(),
        object.int("status.updatedNumberScheduled").into(),
        object.int("status.numberAvailable").into(),
        object.labels("spec.template.spec.nodeSelector"),
        object.age(),
    ];
    with_template(object, cells, CONTAINERS, Some(object.shown_selector("spec.selector")))
}

pub(super) fn controller_revision(object: &Object<'_>) -> Vec<Value> {
    let controller = object.objects("metadata.ownerReferences").find(|owner| owner.is("controller"));
    let controller = controller.map_or_else(
        || "<none>".to_owned(),
        |owner| {
            let kind = match owner.text("apiVersion").split_once('/') {
                Some((group, _)) => format!("{}.{group}", owner.text("kind")),
                None => owner.text("kind").to_owned(),
            };
            format!("{}/{}", kind.to_lowercase(), owner.text("name"))
        },
    );
    vec![object.name(), controller.into(), object.int("revision").into(), object.age()]
}

pub(super) fn job(object: &Object<'_>) -> Vec<Value> {
    let succeeded = object.int("status.succeeded");
    let parallelism = object.int("spec.parallelism");
    let completions = match object.get("spec.completions") {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let duration = match (object.instant("status.startTime"), object.instant("status.completionTime")) {
        (None, _) => String::new(),
        (Some(start), None) => object.ago(start),
        (Some(start), Some(end)) => human_duration(nanoseconds(end) - nanoseconds(start)),
    };
    let is = |condition: &str| object.has_true_condition("status.conditions", condition);
    let status = if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if object.has("metadata.deletionTimestamp") {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    };
    let cells = vec![object.name(), status.into(), completions.into(), duration.into(), object.age()];
    with_template(object, cells, CONTAINERS, Some(object.shown_selector("spec.selector")))
}

pub(super) fn cron_job(object: &Object<'_>) -> Vec<Value> {
    let suspended = match object.get("spec.suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let last = if object.has("status.lastScheduleTime") {
        object.since("status.lastScheduleTime")
    } else {
        "<none>".to_owned()
    };
    let cells = vec![
        object.name(),
        object.text("spec.schedule").into(),
        object.set_or("spec.timeZone", "<none>").into(),
        suspended.into(),
        object.count("status.active").into(),
        last.into(),
        object.age(),
    ];
    let selector = object.shown_selector("spec.jobTemplate.spec.selector");
    with_template(object, cells, "spec.jobTemplate.spec.template.spec.containers", Some(selector))
}

pub(super) fn scale(object: &Object<'_>) -> Vec<Value> {
    vec![
        object.name(),
        object.int("spec.replicas").into(),
        object.int("status.replicas").into(),
        object.age(),
    ]
}

pub(super) fn pod_disruption_budget(object: &Object<'_>) -> Vec<Value> {
    let shown = |path: &str| match object.get(path) {
        Some(Value::String(text)) => text.clone(),
        Some(number) => number.to_string(),
        None => "N/A".to_owned(),
    };
    vec![
        object.name(),
        shown("spec.minAvailable").into(),
        shown("spec.maxUnavailable").into(),
        object.int("status.disruptionsAllowed").into(),
        object.age(),
    ]
}

/// The field with the source of a metric.
fn source(metric: &Object<'_>) -> Option<&'static str> {
    Some(match metric.text("type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return None,
    })
}

fn metric(spec: &Object<'_>, status: Option<Object<'_>>) -> String {
    let Some(source) = source(spec) else { return "<unknown type>".to_owned() };
    let spec = spec.at(source);
    let status = status.filter(|status| status.has(source)).map(|status| status.at(source));
    let quantity = |object: &Object<'_>, path: &str| object.text_or(path, "0").to_owned();
    let percent = |object: &Object<'_>, path: &str| object.get(path).map(|value| format!("{value}%"));
    let current = |path: &str, must_be_set: bool| {
        status
            .filter(|status| !must_be_set || status.has(path))
            .map_or_else(|| "<unknown>".to_owned(), |status| quantity(&status, path))
    };
    let average = spec.has("target.averageValue");
    match source {
        "pods" => {
            format!("{}/{}", current("current.averageValue", false), quantity(&spec, "target.averageValue"))
        }
        "external" | "object" if average => format!(
            "{}/{} (avg)",
            current("current.averageValue", true),
            quantity(&spec, "target.averageValue")
        ),
        "external" | "object" => {
            format!("{}/{}", current("current.value", false), quantity(&spec, "target.value"))
        }
        _ if average => format!(
            "{}: {}/{}",
            spec.text("name"),
            current("current.averageValue", false),
            quantity(&spec, "target.averageValue")
        ),
        _ => {
            let current = status.and_then(|status| percent(&status, "current.averageUtilization"));
            let target = percent(&spec, "target.averageUtilization");
            format!(
                "{}: {}/{}",
                spec.text("name"),
                current.as_deref().unwrap_or("<unknown>"),
                target.as_deref().unwrap_or("<auto>")
            )
        }
    }
}

pub(super) fn horizontal_pod_autoscaler(object: &Object<'_>) -> Vec<Value> {
    const MOST: usize = 2;
    let statuses: Vec<Object<'_>> = object.objects("status.currentMetrics").collect();
    let mut metrics: Vec<String> = object
        .objects("spec.metrics")
        .enumerate()
        .map(|(index, spec)| metric(&spec, statuses.get(index).copied()))
        .collect();
    // autoscaling/v1 has separate fields for CPU utilization.
    if let Some(target) = object.get("spec.targetCPUUtilizationPercentage") {
        let current = object.get("status.currentCPUUtilizationPercentage");
        let current = current.map_or_else(|| "<unknown>".to_owned(), |value| format!("{value}%"));
        metrics.push(format!("cpu: {current}/{target}%"));
    }
    let shown = match metrics.get(..MOST) {
        Some(first) if metrics.len() > MOST => {
            format!("{} + {} more...", first.join(", "), metrics.len() - MOST)
        }
        _ if metrics.is_empty() => "<none>".to_owned(),
        _ => metrics.join(", "),
    };
    let target = object.at("spec.scaleTargetRef");
    vec![
        object.name(),
        format!("{}/{}", target.text("kind"), target.text("name")).into(),
        shown.into(),
        object.get("spec.minReplicas").map_or_else(|| json!("<unset>"), |min| json!(min.to_string())),
        object.int("spec.maxReplicas").into(),
        object.int("status.currentReplicas").into(),
        object.age(),
    ]
}
