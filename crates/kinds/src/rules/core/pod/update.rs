//! Validation of updates of pods through the main resource and the subresources.

use k1s_object::{At, ip, names};
use serde_json::{Map, Value};

use super::{container_status, qos, scheduling, security, security::APP_ARMOR, spec};
use crate::rules::helpers::{
    equality::same_workload,
    errors::invalid_each,
    immutable::immutable,
    json::{child, object, restore},
    text::qualified_name,
};

const MIRROR: &str = "kubernetes.io/config.mirror";

/// Create.
pub(crate) fn create(pod: At<'_, '_>) {
    spec::pod(pod);
    let at = pod.get("spec");
    if !at.get("ephemeralContainers").is_empty() {
        at.get("ephemeralContainers").forbidden("cannot be set on create");
    }
    if !at.get("nodeName").is_empty() && !at.get("schedulingGates").is_empty() {
        at.get("nodeName").forbidden("cannot be set until all schedulingGates have been cleared");
    }
    security::annotations_match_fields(pod.get("metadata"), at);
}

/// Update through the main resource.
pub(crate) fn update(new: At<'_, '_>, old: At<'_, '_>) {
    spec::pod(new);
    annotations(new, old);
    main_spec(new.get("spec"), old.get("spec"));
}

fn annotations(new: At<'_, '_>, old: At<'_, '_>) {
    let at = new.get("metadata").get("annotations");
    let before = old.get("metadata").get("annotations");
    for (key, value) in before.entries() {
        let forbid = |why: &str| {
            at.check().push(k1s_object::FieldError::forbidden(format!("{}[{key}]", at.path()), why));
        };
        let changed = at.value().and_then(|map| map.get(key)) != value.value();
        if changed && key.starts_with(APP_ARMOR) {
            forbid("may not remove or update AppArmor annotations");
        }
        if changed && key == MIRROR {
            forbid("may not remove or update mirror pod annotation");
        }
    }
    for (key, value) in at.entries() {
        if before.map().is_some_and(|map| map.contains_key(key)) {
            continue;
        }
        if key.starts_with(APP_ARMOR) {
            value.forbidden("may not add AppArmor annotations");
        }
        if key == MIRROR {
            value.forbidden("may not add mirror pod annotation");
        }
    }
    security::annotations(at, new.get("spec"));
}

fn main_spec(new: At<'_, '_>, old: At<'_, '_>) {
    for list in ["containers", "initContainers"] {
        let at = new.get(list);
        if at.len() != old.get(list).len() {
            at.forbidden("pod updates may not add or remove containers");
            return;
        }
        for container in at.items() {
            let image = container.get("image");
            if image.is_empty() {
                image.required("");
            }
            super::containers::image_is_trimmed(container);
        }
    }
    let (deadline, before) = (new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"));
    match (deadline.int(), before.int()) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            deadline.invalid(names::inclusive_range_error(0, i32::MAX));
            return;
        }
        (Some(seconds), Some(before)) if before < seconds => {
            deadline.invalid("must be less than or equal to previous value");
            return;
        }
        (None, Some(_)) => {
            deadline.invalid_as(Value::Null, "must not update from a positive integer to nil value");
        }
        _ => {}
    }
    only_added_tolerations(new.get("tolerations"), old.get("tolerations"));
    let gates = new.get("schedulingGates");
    for gate in gates.items() {
        let name = gate.get("name").text();
        if !old.get("schedulingGates").items().any(|one| one.get("name").text() == name) {
            gate.get("name")
                .forbidden(format!("only deletion is allowed, but found new scheduling gate '{name}'"));
        }
    }
    if same_workload(new.value(), old.value()) {
        return;
    }
    let (Some(new_value), Some(old_value)) = (new.value(), old.value()) else { return };
    let mut munged = new_value.clone();
    let before = old_value.as_object();
    let spec = object(&mut munged);
    for list in ["containers", "initContainers"] {
        let images: Vec<Option<Value>> =
            old.get(list).items().map(|one| one.get("image").value().cloned()).collect();
        if let Some(Value::Array(items)) = spec.get_mut(list) {
            for (item, image) in items.iter_mut().zip(images) {
                object(item).insert("image".into(), image.unwrap_or_default());
            }
        }
    }
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        restore(spec, before, key);
    }
    if old.get("terminationGracePeriodSeconds").number() < 0
        && new.get("terminationGracePeriodSeconds").int() == Some(1)
    {
        restore(spec, before, "terminationGracePeriodSeconds");
    }
    if !old.get("schedulingGates").is_empty() {
        gated(new, old, spec);
    }
    if !same_workload(Some(&munged), Some(old_value)) {
        new.forbidden(format!(
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
             `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
             `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n{}",
            difference(old_value, &munged)
        ));
    }
}

/// A gated pod may get a stricter node selector and node affinity.
fn gated(new: At<'_, '_>, old: At<'_, '_>, spec: &mut Map<String, Value>) {
    let selector = new.get("nodeSelector");
    let now = |key: &str| selector.value().and_then(|map| map.get(key));
    if old.get("nodeSelector").entries().any(|(key, value)| now(key) != value.value()) {
        selector.invalid_as(
            selector.value().map_or(Value::Null, crate::rules::helpers::go_values::sorted),
            "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
        );
    }
    restore(spec, old.value().and_then(Value::as_object), "nodeSelector");
    let at = new.get("affinity").get("nodeAffinity");
    let terms_of = |affinity: At<'_, '_>| {
        let terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution").get("nodeSelectorTerms");
        terms.value().and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let old_affinity = old.get("affinity").get("nodeAffinity");
    if same_workload(at.value(), old_affinity.value()) {
        return;
    }
    let (now, then) = (terms_of(at), terms_of(old_affinity));
    let terms = at.get("requiredDuringSchedulingIgnoredDuringExecution").get("nodeSelectorTerms");
    if !then.is_empty() && now.len() != then.len() {
        terms.invalid("no additions/deletions to non-empty NodeSelectorTerms list are allowed");
    } else {
        for (index, (now, then)) in now.iter().zip(&then).enumerate() {
            if !only_additions(now, then) {
                terms.index(index).invalid("only additions are allowed (no mutations or deletions)");
            }
        }
    }
    let had_affinity = old.get("affinity").is_set();
    let other = ["podAffinity", "podAntiAffinity"].iter().any(|side| new.get("affinity").get(side).is_set());
    match old_affinity.value() {
        Some(value) => {
            child(spec, "affinity").insert("nodeAffinity".into(), value.clone());
        }
        None if !had_affinity && !other => {
            spec.shift_remove("affinity");
        }
        None => {
            child(spec, "affinity").shift_remove("nodeAffinity");
        }
    }
}

fn only_additions(now: &Value, then: &Value) -> bool {
    let list = |term: &Value, key: &str| term.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let keys = ["matchExpressions", "matchFields"];
    if keys.iter().all(|key| list(then, key).is_empty()) {
        return keys.iter().all(|key| list(now, key).is_empty());
    }
    keys.iter().all(|key| {
        let (now, then) = (list(now, key), list(then, key));
        now.len() >= then.len() && now.iter().zip(&then).all(|(a, b)| same_workload(Some(a), Some(b)))
    })
}

/// Maximum number of tolerations compared pairwise by meaning; more are compared literally.
const MAX_COMPARED: usize = 1000;

fn only_added_tolerations(new: At<'_, '_>, old: At<'_, '_>) {
    let without_seconds = |at: At<'_, '_>| {
        let mut map = at.map().cloned().unwrap_or_default();
        map.shift_remove("tolerationSeconds");
        Value::Object(map)
    };
    let now: Vec<Value> = new.items().map(without_seconds).collect();
    let known: std::collections::HashSet<&Value> = now.iter().collect();
    for before in old.items() {
        let before = without_seconds(before);
        let kept = known.contains(&before)
            || (now.len() <= MAX_COMPARED && now.iter().any(|one| same_workload(Some(one), Some(&before))));
        if !kept {
            new.forbidden("existing toleration can not be modified except its tolerationSeconds");
            return;
        }
    }
    scheduling::tolerations(new);
}

/// A short diff of two documents.
fn difference(old: &Value, new: &Value) -> String {
    let mut lines = Vec::new();
    walk(Some(old), Some(new), "", &mut lines);
    lines.join("\n")
}

fn walk(old: Option<&Value>, new: Option<&Value>, path: &str, lines: &mut Vec<String>) {
    if same_workload(old, new) {
        return;
    }
    match (old, new) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                walk(a.get(key), b.get(key), &format!("{path}.{key}"), lines);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                walk(a.get(index), b.get(index), &format!("{path}[{index}]"), lines);
            }
        }
        _ => {
            let path = path.trim_start_matches('.');
            if let Some(old) = old {
                lines.push(format!("- {path}: {old}"));
            }
            if let Some(new) = new {
                lines.push(format!("+ {path}: {new}"));
            }
        }
    }
}

/// Update of `/ephemeralcontainers`.
pub fn ephemeral_containers(new: At<'_, '_>, old: At<'_, '_>) {
    spec::pod(new);
    annotations(new, old);
    if old.get("metadata").get("annotations").key(MIRROR).is_set() {
        new.check().take();
        new.check()
            .push(k1s_object::FieldError::forbidden("", "static pods do not support ephemeral containers"));
        return;
    }
    let list = new.get("spec").get("ephemeralContainers");
    for before in old.get("spec").get("ephemeralContainers").items() {
        let name = before.get("name").text();
        let now = list.items().filter(|one| one.get("name").text() == name).last();
        match now {
            None => list.forbidden(format!("existing ephemeral containers {name:?} may not be removed\n")),
            Some(now) if !same_workload(now.value(), before.value()) => {
                let (Some(a), Some(b)) = (before.value(), now.value()) else { continue };
                list.forbidden(format!(
                    "existing ephemeral containers {name:?} may not be changed\n{}",
                    difference(a, b)
                ));
            }
            Some(_) => {}
        }
    }
}

/// Update of `/resize`.
pub fn resize(new: At<'_, '_>, old: At<'_, '_>) {
    spec::pod(new);
    let alone = |why: &str| {
        new.check().take();
        new.check().push(k1s_object::FieldError::forbidden("", why));
    };
    if old.get("metadata").get("annotations").key(MIRROR).is_set() {
        alone("static pods cannot be resized");
        return;
    }
    if old.get("spec").get("os").get("name").text() == "windows" {
        alone("windows pods cannot be resized");
        return;
    }
    let (at, before) = (new.get("spec"), old.get("spec"));
    let class = |pod: At<'_, '_>| pod.value().map_or("", qos::class);
    let old_class = old.get("status").get("qosClass").text();
    let old_class = if old_class.is_empty() { class(old) } else { old_class };
    if old_class != class(new) {
        at.invalid_as(
            new.get("status").get("qosClass").text(),
            "Pod QOS Class may not change as a result of resizing",
        );
    }
    let running = old.get("status").get("containerStatuses").items();
    let running =
        running.filter(|one| one.get("state").get("running").is_set()).map(|one| one.get("resources")).next();
    if running.is_some_and(|resources| !resources.is_set()) {
        at.forbidden("Pod running on node without support for resize");
    }
    let has_resources = |spec: At<'_, '_>| {
        let own = spec.get("resources");
        !own.get("requests").is_empty() || !own.get("limits").is_empty()
    };
    let mut munged = at.value().cloned().unwrap_or_default();
    if has_resources(before) || has_resources(at) {
        let (now, then) = (at.get("resources"), before.get("resources"));
        removed(
            now,
            then,
            "pod-level resource requests cannot be removed",
            "pod-level resource limits cannot be removed",
        );
        let spec = object(&mut munged);
        if !then.is_set() {
            spec.shift_remove("resources");
        } else {
            keep_cpu_and_memory(child(spec, "resources"), then.value());
        }
    }
    let ordered = new.check().count();
    for list in ["containers", "initContainers"] {
        let (now, then) = (at.get(list), before.get(list));
        if now.len() != then.len() {
            now.forbidden(format!("{list} may not be added or removed on resize"));
            continue;
        }
        for (now, then) in now.items().zip(then.items()) {
            if now.get("name").text() != then.get("name").text() {
                now.get("name").forbidden(format!("{list} may not be renamed or reordered on resize"));
            }
        }
    }
    if new.check().count() > ordered {
        return;
    }
    let sidecar = |one: At<'_, '_>| one.get("restartPolicy").text() == "Always";
    for (now, then) in at.get("initContainers").items().zip(before.get("initContainers").items()) {
        if sidecar(then) {
            removed(now.get("resources"), then.get("resources"), REQUESTS_REMOVED, LIMITS_REMOVED);
        }
    }
    for (now, then) in at.get("containers").items().zip(before.get("containers").items()) {
        removed(now.get("resources"), then.get("resources"), REQUESTS_REMOVED, LIMITS_REMOVED);
    }
    let spec = object(&mut munged);
    for (list, sidecars) in [("containers", false), ("initContainers", true)] {
        let then: Vec<At<'_, '_>> = before.get(list).items().collect();
        let Some(Value::Array(items)) = spec.get_mut(list) else { continue };
        for (index, (item, then)) in items.iter_mut().zip(then).enumerate() {
            let changed = !same_workload(Some(item), then.value());
            if sidecars && !sidecar(then) {
                if changed {
                    at.forbidden("resources for non-sidecar init containers are immutable");
                }
                continue;
            }
            keep_cpu_and_memory(child(object(item), "resources"), then.get("resources").value());
            if !same_workload(Some(item), then.value()) {
                if sidecars {
                    at.get(list).index(index).forbidden(
                        "only cpu and memory resources for init or sidecar containers are mutable",
                    );
                } else {
                    at.forbidden("only cpu and memory resources are mutable");
                }
            }
        }
    }
    if !same_workload(at.get("volumes").value(), before.get("volumes").value()) {
        at.get("volumes").forbidden(
            "volumes are immutable on resize when InPlacePodVerticalScalingMemoryBackedVolumes feature gate is disabled",
        );
    }
    if new.check().is_ok() && !same_workload(Some(&munged), before.value()) {
        at.forbidden("only cpu and memory resources are mutable");
    }
}

const REQUESTS_REMOVED: &str = "resource requests cannot be removed";
const LIMITS_REMOVED: &str = "resource limits cannot be removed";

fn removed(now: At<'_, '_>, then: At<'_, '_>, requests: &str, limits: &str) {
    for (list, why) in [("requests", requests), ("limits", limits)] {
        let now = now.get(list);
        let has = |name: &str| now.map().is_some_and(|map| map.contains_key(name));
        if then.get(list).entries().any(|(name, _)| !has(name)) {
            now.forbidden(why);
        }
    }
}

/// Restores cpu and memory from the old resources, to compare the rest.
fn keep_cpu_and_memory(resources: &mut Map<String, Value>, old: Option<&Value>) {
    for list in ["limits", "requests"] {
        let old = old.and_then(|old| old.get(list)).and_then(Value::as_object);
        let amounts = child(resources, list);
        restore(amounts, old, "cpu");
        restore(amounts, old, "memory");
        if amounts.is_empty() {
            resources.shift_remove(list);
        }
    }
}

/// Update of `/status`.
pub(crate) fn status(new: At<'_, '_>, old: At<'_, '_>) {
    annotations(new, old);
    let (at, before) = (new.get("status"), old.get("status"));
    for condition in at.get("conditions").items() {
        if condition.get("observedGeneration").number() < 0 {
            condition.get("observedGeneration").invalid("must be a non-negative integer");
        }
        let kind = condition.get("type");
        if !matches!(kind.text(), "PodScheduled" | "Ready" | "Initialized") {
            qualified_name(condition.get("Type").with(kind.value()));
        }
    }
    let nominated = at.get("nominatedNodeName");
    if nominated.text() != before.get("nominatedNodeName").text() && !nominated.is_empty() {
        invalid_each(nominated, names::is_dns1123_subdomain(nominated.text()));
        if !old.get("spec").get("nodeName").is_empty() {
            nominated.forbidden("may not be set on pods that are already bound to a node");
        }
    }
    if at.get("observedGeneration").number() < 0 {
        at.get("observedGeneration").invalid("must be a non-negative integer");
    }
    immutable(at.get("qosClass"), before.get("qosClass").value());
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        transitions(at.get(list), before.get(list), old.get("spec"), list);
    }
    let claims = new.get("spec").get("resourceClaims");
    for claim in at.get("resourceClaimStatuses").items() {
        let name = claim.get("name");
        if !claims.items().any(|one| one.get("name").text() == name.text()) {
            name.invalid_text("must match the name of an entry in `spec.resourceClaims`");
        }
    }
    pod_ips(at, before);
    host_ips(at, before);
    let spec = new.get("spec");
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        container_status::users(at.get(list), spec.get("os").get("name").text());
    }
    container_status::allocated_resources(at.get("containerStatuses"), spec.get("containers"));
    container_status::allocated_resources(at.get("initContainerStatuses"), spec.get("initContainers"));
    container_status::no_allocated_resources(at.get("ephemeralContainerStatuses"));
}

/// A terminated container may not run again, unless its restart policy allows it.
fn transitions(now: At<'_, '_>, then: At<'_, '_>, spec: At<'_, '_>, list: &'static str) {
    for (index, then) in then.items().enumerate() {
        let ended = then.get("state").get("terminated");
        if !ended.is_set() {
            continue;
        }
        let name = then.get("name").text();
        let revived = now
            .items()
            .find(|one| one.get("name").text() == name)
            .is_some_and(|one| !one.get("state").get("terminated").is_set());
        let containers = match list {
            "containerStatuses" => spec.get("containers"),
            "initContainerStatuses" => spec.get("initContainers"),
            _ => spec.get("none"),
        };
        let container = containers.items().find(|one| one.get("name").text() == name);
        let allowed = container.is_some_and(|one| should_restart(one, spec, ended.get("exitCode").number()));
        if revived && !allowed {
            now.index(index).get("state").forbidden("may not be transitioned to non-terminated state");
        }
    }
}

fn should_restart(container: At<'_, '_>, spec: At<'_, '_>, code: i64) -> bool {
    for rule in container.get("restartPolicyRules").items() {
        let codes = rule.get("exitCodes");
        let among = codes.get("values").items().any(|one| one.number() == code);
        if codes.is_set() && among == (codes.get("operator").text() == "In") {
            return true;
        }
    }
    let own = container.get("restartPolicy");
    match if own.is_set() { own.text() } else { spec.get("restartPolicy").text() } {
        "Always" => true,
        "OnFailure" => code != 0,
        _ => false,
    }
}

fn addresses<'v>(list: At<'_, 'v>) -> Vec<&'v str> {
    list.items().map(|one| one.get("ip").text()).collect()
}

fn each_address(list: At<'_, '_>, before: At<'_, '_>) {
    let old = addresses(before);
    for address in list.items() {
        let shown = address.with(address.get("ip").value());
        ip::is_valid_ip_for_legacy_field(shown, true, &old);
    }
}

fn one_per_family(list: At<'_, '_>) {
    if list.len() <= 1 {
        return;
    }
    let families: Vec<Option<bool>> =
        addresses(list).into_iter().map(|text| ip::parse_ip_sloppy(text).map(|ip| ip.is_ipv4())).collect();
    let dual = families.contains(&Some(true)) && families.contains(&Some(false));
    if !dual || list.len() > 2 {
        let shown: Vec<Value> =
            addresses(list).into_iter().map(|text| serde_json::json!({"IP": text})).collect();
        list.invalid_as(shown, "may specify no more than one IP for each IP family");
    }
}

fn pod_ips(at: At<'_, '_>, before: At<'_, '_>) {
    let (single, list) = (at.get("podIP"), at.get("podIPs"));
    each_address(list, before.get("podIPs"));
    one_per_family(list);
    let first = list.index(0).get("ip");
    if single.is_empty() != list.is_empty() {
        list.invalid("podIP and podIPs must either both be set or both be unset");
    } else if !list.is_empty() && first.text() != single.text() {
        first.invalid("must be equal to `podIP`");
    }
}

fn host_ips(at: At<'_, '_>, before: At<'_, '_>) {
    let list = at.get("hostIPs");
    if list.is_empty() {
        return;
    }
    let first = list.index(0).get("ip");
    if at.get("hostIP").text() != first.text() {
        first.invalid("must be equal to `hostIP`");
    }
    each_address(list, before.get("hostIPs"));
    one_per_family(list);
}
