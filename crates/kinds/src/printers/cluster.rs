//! Rows of cluster administration: access control, storage, admission, flow control, devices and APIs.

use serde_json::{Value, json};

use super::object::{Object, human_duration, instant, nanoseconds};

pub(super) fn role_binding(object: &Object<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let names: Vec<String> = object
            .objects("subjects")
            .filter(|subject| subject.text("kind") == kind)
            .map(|subject| match kind {
                "ServiceAccount" => format!("{}/{}", subject.text("namespace"), subject.text("name")),
                _ => subject.text("name").to_owned(),
            })
            .collect();
        Value::from(names.join(", "))
    };
    vec![
        object.name(),
        format!("{}/{}", object.text("roleRef.kind"), object.text("roleRef.name")).into(),
        object.age(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

pub(super) fn certificate_signing_request(object: &Object<'_>) -> Vec<Value> {
    let has = |kind: &str| object.condition("status.conditions", kind).is_some();
    let mut status = if has("Denied") {
        "Denied".to_owned()
    } else if has("Approved") {
        "Approved".to_owned()
    } else {
        "Pending".to_owned()
    };
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !object.text("status.certificate").is_empty() {
        status.push_str(",Issued");
    }
    let duration = object
        .get("spec.expirationSeconds")
        .and_then(Value::as_i64)
        .map_or_else(|| "<none>".to_owned(), |seconds| human_duration(i128::from(seconds) * 1_000_000_000));
    vec![
        object.name(),
        object.age(),
        object.text_or("spec.signerName", "<none>").into(),
        object.text("spec.username").into(),
        duration.into(),
        status.into(),
    ]
}

pub(super) fn cluster_trust_bundle(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.text_or("spec.signerName", "<none>").into()]
}

pub(super) fn pod_certificate_request(object: &Object<'_>) -> Vec<Value> {
    let state = object
        .objects("status.conditions")
        .map(|condition| condition.text("type"))
        .rfind(|kind| matches!(*kind, "Issued" | "Denied" | "Failed"));
    vec![
        object.name(),
        object.text("spec.podName").into(),
        object.text("spec.serviceAccountName").into(),
        object.text("spec.nodeName").into(),
        object.text("spec.signerName").into(),
        state.unwrap_or("Pending").into(),
        object.labels("spec.unverifiedUserAnnotations"),
    ]
}

pub(super) fn lease(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.text("spec.holderIdentity").into(), object.age()]
}

pub(super) fn storage_class(object: &Object<'_>) -> Vec<Value> {
    vec![
        object.name(),
        object.text("provisioner").into(),
        object.set_or("reclaimPolicy", "Delete").into(),
        object.set_or("volumeBindingMode", "Immediate").into(),
        object.is("allowVolumeExpansion").into(),
        object.age(),
    ]
}

/// The default of several storage classes: the newest one that is marked as default.
pub(super) fn default_storage_class(items: &[&Value]) -> Option<usize> {
    let is_default = |item: &Value| {
        let annotations = item.get("metadata").and_then(|meta| meta.get("annotations"));
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
            .iter()
            .any(|name| annotations.and_then(|all| all.get(name)).and_then(Value::as_str) == Some("true"))
    };
    let text = |item: &Value, field: &str| {
        let value = item.get("metadata").and_then(|meta| meta.get(field));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let age = |item: &Value| {
        let created = instant(&text(item, "creationTimestamp")).map_or(i128::MIN, nanoseconds);
        (std::cmp::Reverse(created), text(item, "name"))
    };
    let defaults = items.iter().enumerate().filter(|(_, item)| is_default(item));
    defaults.min_by_key(|(_, item)| age(item)).map(|(at, _)| at)
}

pub(super) fn volume_attributes_class(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.text("driverName").into(), object.age()]
}

pub(super) fn volume_attachment(object: &Object<'_>) -> Vec<Value> {
    vec![
        object.name(),
        object.text("spec.attacher").into(),
        object.text("spec.source.persistentVolumeName").into(),
        object.text("spec.nodeName").into(),
        object.is("status.attached").into(),
        object.age(),
    ]
}

pub(super) fn csi_node(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.count("spec.drivers").into(), object.age()]
}

pub(super) fn csi_driver(object: &Object<'_>) -> Vec<Value> {
    let flag = |path: &str, unset: bool| object.get(path).and_then(Value::as_bool).unwrap_or(unset).into();
    let audiences = if object.has("spec.tokenRequests") {
        let audiences: Vec<&str> =
            object.objects("spec.tokenRequests").map(|request| request.text("audience")).collect();
        audiences.join(",")
    } else {
        "<unset>".to_owned()
    };
    let modes: Vec<&str> =
        object.items("spec.volumeLifecycleModes").iter().filter_map(Value::as_str).collect();
    vec![
        object.name(),
        flag("spec.attachRequired", true),
        flag("spec.podInfoOnMount", false),
        flag("spec.storageCapacity", false),
        audiences.into(),
        flag("spec.requiresRepublish", false),
        if modes.is_empty() { "<none>".to_owned() } else { modes.join(",") }.into(),
        object.age(),
    ]
}

pub(super) fn priority_class(object: &Object<'_>) -> Vec<Value> {
    vec![
        object.name(),
        object.int("value").into(),
        object.is("globalDefault").into(),
        object.age(),
        object.text("preemptionPolicy").into(),
    ]
}

pub(super) fn runtime_class(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.text("handler").into(), object.age()]
}

pub(super) fn webhooks(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.count("webhooks").into(), object.age()]
}

fn param_kind(object: &Object<'_>) -> Value {
    if !object.has("spec.paramKind") {
        return json!("<unset>");
    }
    let kind = object.at("spec.paramKind");
    format!("{}/{}", kind.text("apiVersion"), kind.text("kind")).into()
}

pub(super) fn validating_policy(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.count("spec.validations").into(), param_kind(object), object.age()]
}

pub(super) fn mutating_policy(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.count("spec.mutations").into(), param_kind(object), object.age()]
}

/// A label selector in the format of Go's generated code.
fn go_selector(selector: &Object<'_>) -> String {
    let mut labels: Vec<String> = selector
        .map("matchLabels")
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default()))
        .collect();
    labels.sort_unstable();
    let expressions: String = selector
        .objects("matchExpressions")
        .map(|expression| {
            let values: Vec<&str> = expression.items("values").iter().filter_map(Value::as_str).collect();
            format!(
                "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
                expression.text("key"),
                expression.text("operator"),
                values.join(" ")
            )
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}",
        labels.concat()
    )
}

pub(super) fn policy_binding(object: &Object<'_>) -> Vec<Value> {
    let param = object.at("spec.paramRef");
    let shown = match (param.text("namespace"), param.text("name")) {
        (_, "") if param.has("selector") => go_selector(&param.at("selector")),
        (_, "") => "<unset>".to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    vec![object.name(), object.text("spec.policyName").into(), shown.into(), object.age()]
}

pub(super) fn flow_schema(object: &Object<'_>) -> Vec<Value> {
    let dangling = object.condition("status.conditions", "Dangling");
    vec![
        object.name(),
        object.text("spec.priorityLevelConfiguration.name").into(),
        object.int("spec.matchingPrecedence").into(),
        object.set_or("spec.distinguisherMethod.type", "<none>").into(),
        object.age(),
        dangling.map_or("?", |condition| condition.text("status")).into(),
    ]
}

pub(super) fn priority_level(object: &Object<'_>) -> Vec<Value> {
    let number = |set: bool, path: &str| if set { object.int(path).into() } else { json!("<none>") };
    let limited = object.has("spec.limited");
    let queuing = object.has("spec.limited.limitResponse.queuing");
    vec![
        object.name(),
        object.text("spec.type").into(),
        number(limited, "spec.limited.nominalConcurrencyShares"),
        number(queuing, "spec.limited.limitResponse.queuing.queues"),
        number(queuing, "spec.limited.limitResponse.queuing.handSize"),
        number(queuing, "spec.limited.limitResponse.queuing.queueLengthLimit"),
        object.age(),
    ]
}

pub(super) fn resource_claim(object: &Object<'_>) -> Vec<Value> {
    let deleted = object.has("metadata.deletionTimestamp");
    let allocated = object.has("status.allocation");
    let mut states = Vec::new();
    if deleted {
        states.push("deleted");
    } else if !allocated {
        states.push("pending");
    }
    if allocated {
        states.push("allocated");
        if object.count("status.reservedFor") > 0 {
            states.push("reserved");
        }
    }
    vec![object.name(), states.join(",").into(), object.age()]
}

pub(super) fn resource_slice(object: &Object<'_>) -> Vec<Value> {
    vec![
        object.name(),
        object.text("spec.nodeName").into(),
        object.text("spec.driver").into(),
        object.text("spec.pool.name").into(),
        object.age(),
    ]
}

pub(super) fn device_taint_rule(object: &Object<'_>) -> Vec<Value> {
    let taint = object.at("spec.taint");
    let added = if taint.has("timeAdded") { taint.since("timeAdded") } else { String::new() };
    vec![
        object.name(),
        taint.text("key").into(),
        taint.text("value").into(),
        taint.text("effect").into(),
        added.into(),
        object.age(),
    ]
}

pub(super) fn storage_version_migration(object: &Object<'_>) -> Vec<Value> {
    let resource = object.at("spec.resource");
    let shown = match resource.text("group") {
        "" => resource.text("resource").to_owned(),
        group => format!("{}.{group}", resource.text("resource")),
    };
    let state = object
        .objects("status.conditions")
        .filter(|condition| condition.text("status") == "True")
        .map(|condition| condition.text("type"))
        .rfind(|kind| matches!(*kind, "Running" | "Failed" | "Succeeded"));
    vec![object.name(), shown.into(), state.unwrap_or("Unknown").into()]
}

pub(super) fn custom_resource_definition(object: &Object<'_>) -> Vec<Value> {
    let mut versions: Vec<String> = object
        .objects("spec.versions")
        .filter(|version| version.is("served"))
        .map(|version| {
            format!("{}{}", version.text("name"), if version.is("storage") { "(storage)" } else { "" })
        })
        .collect();
    versions.sort_unstable();
    let short: Vec<&str> = object.items("spec.names.shortNames").iter().filter_map(Value::as_str).collect();
    let established = object
        .objects("status.conditions")
        .any(|condition| condition.text("type") == "Established" && condition.text("status") == "True");
    vec![
        object.name(),
        object.text("spec.scope").into(),
        versions.join(",").into(),
        object.created_at(),
        object.text("spec.group").into(),
        object.text("spec.names.kind").into(),
        short.join(",").into(),
        established.into(),
    ]
}

pub(super) fn api_service(object: &Object<'_>) -> Vec<Value> {
    let service = object.at("spec.service");
    let service = if object.has("spec.service") {
        format!("{}/{}", service.text("namespace"), service.text("name"))
    } else {
        "Local".to_owned()
    };
    let available = object.condition("status.conditions", "Available");
    let available = match available.map(|condition| (condition.text("status"), condition.text("reason"))) {
        None => "Unknown".to_owned(),
        Some((status, reason)) if status == "True" || reason.is_empty() => status.to_owned(),
        Some((status, reason)) => format!("{status} ({reason})"),
    };
    vec![object.name(), service.into(), available.into(), object.age()]
}
