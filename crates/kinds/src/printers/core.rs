//! Rows of the kinds of the core group and of networking.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::object::{Object, some_of};

fn or_none(text: String) -> Value {
    Value::from(if text.is_empty() { "<none>".to_owned() } else { text })
}

fn joined(items: &[Value], separator: &str) -> String {
    items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(separator)
}

/// The addresses of a load balancer without duplicates.
fn load_balancer(object: &Object<'_>) -> String {
    let addresses: BTreeSet<&str> = object
        .objects("status.loadBalancer.ingress")
        .map(|ingress| ingress.text_or("ip", ingress.text("hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

pub(super) fn service(object: &Object<'_>) -> Vec<Value> {
    let external = joined(object.items("spec.externalIPs"), ",");
    let external = match object.text("spec.type") {
        "ClusterIP" | "NodePort" => or_none(external),
        "LoadBalancer" => match (load_balancer(object), external) {
            (balancer, external) if balancer.is_empty() && external.is_empty() => json!("<pending>"),
            (balancer, external) if external.is_empty() => balancer.into(),
            (balancer, external) if balancer.is_empty() => external.into(),
            (balancer, external) => format!("{balancer},{external}").into(),
        },
        "ExternalName" => object.text("spec.externalName").into(),
        _ => json!("<unknown>"),
    };
    let ports: Vec<String> = object
        .objects("spec.ports")
        .map(|port| match (port.int("port"), port.int("nodePort"), port.text("protocol")) {
            (number, node, protocol) if node > 0 => format!("{number}:{node}/{protocol}"),
            (number, _, protocol) => format!("{number}/{protocol}"),
        })
        .collect();
    let address = object.items("spec.clusterIPs").first().and_then(Value::as_str).unwrap_or("<none>");
    vec![
        object.name(),
        object.text("spec.type").into(),
        address.into(),
        external,
        or_none(ports.join(",")),
        object.age(),
        object.labels("spec.selector"),
    ]
}

pub(super) fn endpoints(object: &Object<'_>) -> Vec<Value> {
    let mut shown = Vec::new();
    for subset in object.objects("subsets") {
        if subset.count("ports") == 0 {
            shown.extend(subset.objects("addresses").map(|at| at.text("ip").to_owned()));
        }
        for port in subset.objects("ports") {
            shown.extend(subset.objects("addresses").map(|at| match at.text("ip") {
                ip if ip.contains(':') => format!("[{ip}]:{}", port.int("port")),
                ip => format!("{ip}:{}", port.int("port")),
            }));
        }
    }
    let text = if object.count("subsets") == 0 { "<none>".to_owned() } else { some_of(&shown, 3) };
    vec![object.name(), text.into(), object.age()]
}

pub(super) fn endpoint_slice(object: &Object<'_>) -> Vec<Value> {
    let unset = |text: String| if text.is_empty() { "<unset>".to_owned() } else { text };
    let ports: Vec<String> = object
        .objects("ports")
        .map(|port| match (port.get("port"), port.get("name")) {
            (Some(number), _) => number.to_string(),
            (None, Some(name)) => name.as_str().unwrap_or_default().to_owned(),
            (None, None) => "*".to_owned(),
        })
        .collect();
    let addresses: Vec<String> = object
        .objects("endpoints")
        .flat_map(|endpoint| endpoint.items("addresses").iter().filter_map(Value::as_str))
        .map(str::to_owned)
        .collect();
    vec![
        object.name(),
        object.text("addressType").into(),
        unset(some_of(&ports, 3)).into(),
        unset(some_of(&addresses, 3)).into(),
        object.age(),
    ]
}

pub(super) fn node(object: &Object<'_>) -> Vec<Value> {
    let ready = object.objects("status.conditions").rfind(|condition| condition.text("type") == "Ready");
    let mut status = match ready.map(|condition| condition.text("status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if object.is("spec.unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles = BTreeSet::new();
    for (key, value) in object.map("metadata.labels").into_iter().flatten() {
        let role = match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => role,
            None if key == "kubernetes.io/role" => value.as_str().unwrap_or_default(),
            None => "",
        };
        if !role.is_empty() {
            roles.insert(role);
        }
    }
    let address = |kind: &str| {
        let found = object.objects("status.addresses").find(|address| address.text("type") == kind);
        Value::from(found.map_or("<none>", |address| address.text("address")))
    };
    let info = object.at("status.nodeInfo");
    let mut kernel = info.text_or("kernelVersion", "<unknown>").to_owned();
    if !info.text("architecture").is_empty() {
        kernel.push_str(&format!(" ({})", info.text("architecture")));
    }
    vec![
        object.name(),
        status.into(),
        or_none(roles.into_iter().collect::<Vec<_>>().join(",")),
        object.age(),
        info.text("kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        info.text_or("osImage", "<unknown>").into(),
        kernel.into(),
        info.text_or("containerRuntimeVersion", "<unknown>").into(),
    ]
}

/// Events of the core group and of `events.k8s.io`, which differ in field names.
pub(super) fn event(object: &Object<'_>) -> Vec<Value> {
    let either = |a: &'static str, b: &'static str| if object.has(a) { a } else { b };
    let first_at = either("firstTimestamp", "deprecatedFirstTimestamp");
    let last_at = either("lastTimestamp", "deprecatedLastTimestamp");
    let first = match object.instant(first_at) {
        Some(then) => object.ago(then),
        None => object.since("eventTime"),
    };
    let mut last = object.instant(last_at).map_or_else(|| first.clone(), |then| object.ago(then));
    let mut count = object.int(either("count", "deprecatedCount"));
    if object.has("series") {
        last = object.since("series.lastObservedTime");
        count = object.int("series.count");
    } else if count == 0 {
        count = 1;
    }
    let about = object.at(either("involvedObject", "regarding"));
    let mut target = about.text("kind").to_lowercase();
    if !about.text("name").is_empty() {
        target.push_str(&format!("/{}", about.text("name")));
    }
    let source = object.at(either("source", "deprecatedSource"));
    let reporter = object.text(either("reportingComponent", "reportingController"));
    let component = source.text_or("component", reporter);
    let source = match source.text_or("host", object.text("reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    };
    vec![
        last.into(),
        object.text("type").into(),
        object.text("reason").into(),
        target.into(),
        about.text("fieldPath").into(),
        source.into(),
        object.text(either("message", "note")).trim().into(),
        first.into(),
        count.into(),
        object.name(),
    ]
}

pub(super) fn namespace(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.text("status.phase").into(), object.age()]
}

pub(super) fn secret(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.text("type").into(), object.count("data").into(), object.age()]
}

pub(super) fn config_map(object: &Object<'_>) -> Vec<Value> {
    let entries = object.count("data") + object.count("binaryData");
    vec![object.name(), entries.into(), object.age()]
}

fn access_modes(object: &Object<'_>, path: &str) -> String {
    let modes = object.items(path);
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let shown: Vec<&str> = short
        .iter()
        .filter(|(mode, _)| modes.iter().any(|item| item == mode))
        .map(|(_, short)| *short)
        .collect();
    shown.join(",")
}

/// The storage class, from the field or the former annotation.
fn storage_class<'v>(object: &Object<'v>) -> &'v str {
    let annotation = object
        .map("metadata.annotations")
        .and_then(|annotations| annotations.get("volume.beta.kubernetes.io/storage-class"));
    annotation.and_then(Value::as_str).unwrap_or_else(|| object.text("spec.storageClassName"))
}

fn phase(object: &Object<'_>) -> Value {
    if object.has("metadata.deletionTimestamp") {
        return json!("Terminating");
    }
    object.text("status.phase").into()
}

pub(super) fn persistent_volume(object: &Object<'_>) -> Vec<Value> {
    let claim = object.at("spec.claimRef");
    let claimed = if object.has("spec.claimRef") {
        format!("{}/{}", claim.text("namespace"), claim.text("name"))
    } else {
        String::new()
    };
    vec![
        object.name(),
        object.text_or("spec.capacity.storage", "0").into(),
        access_modes(object, "spec.accessModes").into(),
        object.text("spec.persistentVolumeReclaimPolicy").into(),
        phase(object),
        claimed.into(),
        storage_class(object).into(),
        object.set_or("spec.volumeAttributesClassName", "<unset>").into(),
        object.text("status.reason").into(),
        object.age(),
        object.set_or("spec.volumeMode", "<unset>").into(),
    ]
}

pub(super) fn persistent_volume_claim(object: &Object<'_>) -> Vec<Value> {
    let (mut capacity, mut modes) = (String::new(), String::new());
    if !object.text("spec.volumeName").is_empty() {
        object.text_or("status.capacity.storage", "0").clone_into(&mut capacity);
        modes = access_modes(object, "status.accessModes");
    }
    vec![
        object.name(),
        phase(object),
        object.text("spec.volumeName").into(),
        capacity.into(),
        modes.into(),
        storage_class(object).into(),
        object.set_or("spec.volumeAttributesClassName", "<unset>").into(),
        object.age(),
        object.set_or("spec.volumeMode", "<unset>").into(),
    ]
}

pub(super) fn component_status(object: &Object<'_>) -> Vec<Value> {
    let healthy = object.condition("conditions", "Healthy");
    let status = match healthy.map(|condition| condition.text("status")) {
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    };
    let text = |path: &str| Value::from(healthy.map_or("", |condition| condition.text(path)));
    vec![object.name(), status.into(), text("message"), text("error")]
}

pub(super) fn resource_quota(object: &Object<'_>) -> Vec<Value> {
    let used = object.map("status.used");
    let mut hard: Vec<(&String, &Value)> = object.map("status.hard").into_iter().flatten().collect();
    hard.sort_unstable_by(|a, b| a.0.cmp(b.0));
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in hard {
        let used = used.and_then(|used| used.get(resource)).and_then(Value::as_str).unwrap_or("0");
        let text = format!("{resource}: {used}/{}", hard.as_str().unwrap_or("0"));
        if resource.starts_with("limits.") { limits.push(text) } else { requests.push(text) }
    }
    vec![object.name(), requests.join(", ").into(), limits.join(", ").into(), object.age()]
}

pub(super) fn status(object: &Object<'_>) -> Vec<Value> {
    ["status", "reason", "message"].map(|field| object.text(field).into()).to_vec()
}

pub(super) fn ingress(object: &Object<'_>) -> Vec<Value> {
    const MOST: usize = 3;
    let (mut hosts, mut more) = (Vec::new(), false);
    for rule in object.objects("spec.rules") {
        more |= hosts.len() == MOST;
        if !more && !rule.text("host").is_empty() {
            hosts.push(rule.text("host"));
        }
    }
    let hosts = match hosts.join(",") {
        none if none.is_empty() => "*".to_owned(),
        some if more => format!("{some} + {} more...", object.count("spec.rules") - MOST),
        all => all,
    };
    vec![
        object.name(),
        object.set_or("spec.ingressClassName", "<none>").into(),
        hosts.into(),
        load_balancer(object).into(),
        if object.count("spec.tls") > 0 { "80, 443" } else { "80" }.into(),
        object.age(),
    ]
}

pub(super) fn ingress_class(object: &Object<'_>) -> Vec<Value> {
    let mut name = object.text("metadata.name").to_owned();
    let default = object
        .map("metadata.annotations")
        .and_then(|annotations| annotations.get("ingressclass.kubernetes.io/is-default-class"));
    if default.and_then(Value::as_str) == Some("true") {
        name.push_str(" (default)");
    }
    let parameters = object.at("spec.parameters");
    let shown = match (object.has("spec.parameters"), parameters.get("apiGroup").and_then(Value::as_str)) {
        (false, _) => "<none>".to_owned(),
        (true, Some(group)) => {
            format!("{}.{group}/{}", parameters.text("kind"), parameters.text("name"))
        }
        (true, None) => format!("{}/{}", parameters.text("kind"), parameters.text("name")),
    };
    vec![name.into(), object.text("spec.controller").into(), shown.into(), object.age()]
}

pub(super) fn network_policy(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.shown_selector("spec.podSelector"), object.age()]
}

pub(super) fn service_cidr(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), joined(object.items("spec.cidrs"), ",").into(), object.age()]
}

/// The row has one cell more than there are columns, as in Kubernetes.
pub(super) fn ip_address(object: &Object<'_>) -> Vec<Value> {
    let parent = object.at("spec.parentRef");
    let mut text = "<none>".to_owned();
    if object.has("spec.parentRef") {
        text = parent.text("resource").to_owned();
        if !parent.text("group").is_empty() {
            text.push_str(&format!(".{}", parent.text("group")));
        }
        text = text.to_lowercase();
        if !parent.text("namespace").is_empty() {
            text.push_str(&format!("/{}", parent.text("namespace")));
        }
        text.push_str(&format!("/{}", parent.text("name")));
    }
    vec![object.name(), text.into(), object.age()]
}
