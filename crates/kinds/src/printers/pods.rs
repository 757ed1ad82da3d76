//! The row of a pod, whose status is derived from its containers.

use serde_json::{Value, json};

use super::object::{Object, nanoseconds};
use crate::codec::scalars::Instant;

/// The later of two instants.
fn later(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) if nanoseconds(a) >= nanoseconds(b) => Some(a),
        (a, b) => b.or(a),
    }
}

/// The state of the containers of a pod.
struct Summary {
    reason: String,
    ready: i64,
    restarts: i64,
    last_restart: Option<Instant>,
}

/// `Signal:9`, `ExitCode:1`, or the reason that was given.
fn why_terminated(terminated: &Object<'_>) -> String {
    match (terminated.text("reason"), terminated.int("signal")) {
        ("", 0) => format!("ExitCode:{}", terminated.int("exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn is_sidecar(pod: &Object<'_>, name: &str) -> bool {
    // Names are unique; of duplicates the last would count.
    pod.objects("spec.initContainers")
        .rfind(|container| container.text("name") == name)
        .is_some_and(|container| container.text("restartPolicy") == "Always")
}

fn summary(pod: &Object<'_>) -> Summary {
    let mut reason = pod.text_or("status.reason", pod.text("status.phase")).to_owned();
    let gated = |condition: Object<'_>| {
        condition.text("type") == "PodScheduled" && condition.text("reason") == "SchedulingGated"
    };
    if pod.objects("status.conditions").any(gated) {
        "SchedulingGated".clone_into(&mut reason);
    }
    let (mut ready, mut restarts, mut sidecar_restarts) = (0i64, 0i64, 0i64);
    let (mut last_restart, mut last_sidecar_restart) = (None, None);
    let mut initializing = false;
    for (index, container) in pod.objects("status.initContainerStatuses").enumerate() {
        let count = container.int("restartCount");
        let ended = container.instant("lastState.terminated.finishedAt");
        let sidecar = is_sidecar(pod, container.text("name"));
        restarts = restarts.saturating_add(count);
        last_restart = later(last_restart, ended);
        if sidecar {
            sidecar_restarts = sidecar_restarts.saturating_add(count);
            last_sidecar_restart = later(last_sidecar_restart, ended);
        }
        let terminated = container.at("state.terminated");
        if container.has("state.terminated") && terminated.int("exitCode") == 0 {
            continue;
        }
        if sidecar && container.is("started") {
            ready += i64::from(container.is("ready"));
            continue;
        }
        let waiting = container.text("state.waiting.reason");
        reason = if container.has("state.terminated") {
            format!("Init:{}", why_terminated(&terminated))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{}", pod.count("spec.initContainers"))
        };
        initializing = true;
        break;
    }
    if !initializing || pod.has_true_condition("status.conditions", "Initialized") {
        (restarts, last_restart) = (sidecar_restarts, last_sidecar_restart);
        let (mut running, mut failed) = (false, String::new());
        for container in pod.objects("status.containerStatuses").rev() {
            restarts = restarts.saturating_add(container.int("restartCount"));
            last_restart = later(last_restart, container.instant("lastState.terminated.finishedAt"));
            let waiting = container.text("state.waiting.reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut reason);
            } else if container.has("state.terminated") {
                let terminated = container.at("state.terminated");
                reason = why_terminated(&terminated);
                if terminated.int("exitCode") != 0 {
                    failed.clone_from(&reason);
                }
            } else if container.is("ready") && container.has("state.running") {
                running = true;
                ready += 1;
            }
        }
        if reason == "Completed" {
            let is_ready = |condition: Object<'_>| {
                condition.text("type") == "Ready" && condition.text("status") == "True"
            };
            if running && pod.objects("status.conditions").any(is_ready) {
                "Running".clone_into(&mut reason);
            } else if !failed.is_empty() {
                reason = failed;
            } else if running {
                "NotReady".clone_into(&mut reason);
            }
        }
    }
    if pod.has("metadata.deletionTimestamp") {
        if pod.text("status.reason") == "NodeLost" {
            "Unknown".clone_into(&mut reason);
        } else if !matches!(pod.text("status.phase"), "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut reason);
        }
    }
    Summary { reason, ready, restarts, last_restart }
}

pub(super) fn pod(pod: &Object<'_>) -> Vec<Value> {
    let Summary { reason, ready, restarts, last_restart } = summary(pod);
    let sidecars =
        pod.objects("spec.initContainers").filter(|init| init.text("restartPolicy") == "Always").count();
    let total = pod.count("spec.containers") + sidecars;
    let restarts = match last_restart {
        Some(last) if restarts != 0 => format!("{restarts} ({} ago)", pod.ago(last)),
        _ => restarts.to_string(),
    };
    let first_ip = pod.objects("status.podIPs").next().map_or("", |ip| ip.text("ip"));
    let ip = pod.text_or("status.podIP", first_ip);
    let gates = pod.count("spec.readinessGates");
    let open = pod
        .objects("spec.readinessGates")
        .filter(|gate| pod.has_true_condition("status.conditions", gate.text("conditionType")))
        .count();
    vec![
        pod.name(),
        format!("{ready}/{total}").into(),
        reason.into(),
        restarts.into(),
        pod.age(),
        if ip.is_empty() { "<none>" } else { ip }.into(),
        pod.text_or("spec.nodeName", "<none>").into(),
        pod.text_or("status.nominatedNodeName", "<none>").into(),
        if gates == 0 { Value::from("<none>") } else { format!("{open}/{gates}").into() },
    ]
}

/// The condition in the row of a terminated pod.
pub(super) fn conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match super::object::get(pod, "status.phase")?.as_str()? {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}
