//! Validation of a Service.

use k1s_object::{
    At, FieldError,
    field::{ErrorKind, Shown},
    ip, names,
};
use serde_json::{Value, json};

use crate::rules::helpers::{
    errors::{duplicate, invalid_each},
    immutable::IMMUTABLE,
    labels::labels,
    network::{endpoint_ip, is_ipv4, is_ipv6, legacy_cidr, legacy_ip, port_number, protocol},
    text::{dns_label, dns_subdomain, one_of, qualified_name, texts},
};

const SOURCE_RANGES_ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const ONLY_LOAD_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
const NOT_EXTERNAL_NAME: &str = "may not be set for ExternalName services";
const ONCE_SET: &str = "may not change once set";

fn is_headless(service: At<'_, '_>) -> bool {
    texts(service.get("spec").get("clusterIPs")) == ["None"]
}

/// Checks of the new object, on create and on update.
pub(crate) fn service(service: At<'_, '_>, old: Option<At<'_, '_>>) {
    let annotations = service.get("metadata").get("annotations");
    let (hints, mode) = (annotations.key(TOPOLOGY_HINTS), annotations.key(TOPOLOGY_MODE));
    if let (Some(hints), Some(wanted)) = (hints.str(), mode.str())
        && hints != wanted
    {
        mode.invalid(format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified"));
    }
    let spec = service.get("spec");
    let kind = spec.get("type").text();
    let headless = is_headless(service);
    let ports = spec.get("ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        ports.required("");
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            spec.get("clusterIPs").index(0).invalid(format!("may not be set to 'None' for {kind} services"));
        }
        "ExternalName" => external_name(spec),
        _ => {}
    }
    let mut port_names = std::collections::HashSet::new();
    for port in ports.items() {
        service_port(port, ports.len() > 1, &mut port_names);
    }
    labels(spec.get("selector"));
    session_affinity(spec);
    cluster_ips(service, old);
    let old_spec = old.map(|old| old.get("spec"));
    let old_ips = old_spec.map(|old| texts(old.get("externalIPs"))).unwrap_or_default();
    for ip in spec.get("externalIPs").items() {
        if legacy_ip(ip, &old_ips) {
            endpoint_ip(ip);
        }
    }
    one_of(spec.get("type"), &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    port_numbers(ports, kind);
    source_ranges(service, old);
    let allocate = spec.get("allocateLoadBalancerNodePorts");
    if allocate.is_set() && kind != "LoadBalancer" {
        allocate.forbidden(ONLY_LOAD_BALANCER);
    }
    if !allocate.is_set() && kind == "LoadBalancer" {
        service.get("allocateLoadBalancerNodePorts").required("");
    }
    load_balancer_class(spec);
    traffic(service);
}

fn external_name(spec: At<'_, '_>) {
    for field in ["clusterIPs", "ipFamilies"] {
        if !spec.get(field).is_empty() {
            spec.get(field).forbidden(NOT_EXTERNAL_NAME);
        }
    }
    if spec.get("ipFamilyPolicy").is_set() {
        spec.get("ipFamilyPolicy").forbidden(NOT_EXTERNAL_NAME);
    }
    let name = spec.get("externalName");
    match name.text().strip_suffix('.').unwrap_or(name.text()) {
        "" => name.required(""),
        shown => {
            for message in names::is_dns1123_subdomain(shown) {
                name.invalid_as(shown, message);
            }
        }
    }
}

fn service_port<'v>(port: At<'_, 'v>, name_required: bool, seen: &mut std::collections::HashSet<&'v str>) {
    let name = port.get("name");
    if name.text().is_empty() {
        if name_required {
            name.required("");
        }
    } else {
        dns_label(name);
        if seen.contains(&name.text()) {
            name.duplicate();
        } else {
            seen.insert(name.text());
        }
    }
    port_number(port.get("port"));
    protocol(port.get("protocol"));
    let target = port.get("targetPort");
    match target.str() {
        Some(name) => invalid_each(target, names::is_valid_port_name(name)),
        None => port_number(target),
    }
    if port.get("appProtocol").is_set() {
        qualified_name(port.get("appProtocol"));
    }
}

fn session_affinity(spec: At<'_, '_>) {
    let affinity = spec.get("sessionAffinity");
    one_of(affinity, &["ClientIP", "None"]);
    let config = spec.get("sessionAffinityConfig");
    match affinity.text() {
        "ClientIP" => {
            let client = config.get("clientIP");
            let timeout = client.get("timeoutSeconds");
            let missing = [config, client, timeout].into_iter().find(|at| !at.is_set());
            if let Some(missing) = missing {
                missing.required("when session affinity type is ClientIP");
            } else if !(1..=86400).contains(&timeout.number()) {
                timeout.invalid("must be greater than 0 and less than 86400");
            }
        }
        "None" if config.is_set() => config.forbidden("must not be set when session affinity is None"),
        _ => {}
    }
}

/// Checks of `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` against each other.
pub(crate) fn cluster_ips(service: At<'_, '_>, old: Option<At<'_, '_>>) {
    let spec = service.get("spec");
    if spec.get("type").text() == "ExternalName" {
        return;
    }
    let at = spec.get("clusterIPs");
    let first = spec.get("clusterIP").text();
    let ips = texts(at);
    if !first.is_empty() {
        match ips.first() {
            None => at.required(""),
            Some(ip) if *ip != first => at.invalid("first value must match `clusterIP`"),
            Some(_) => {}
        }
    } else if !ips.is_empty() {
        at.invalid("must be empty when `clusterIP` is not specified");
    }
    let families = spec.get("ipFamilies");
    let mut seen = std::collections::HashSet::new();
    for family in families.items() {
        if !matches!(family.text(), "IPv4" | "IPv6") {
            family.not_supported(&["IPv4", "IPv6"]);
        }
        if seen.contains(&family.text()) {
            family.duplicate();
        }
        seen.insert(family.text());
    }
    let policy = spec.get("ipFamilyPolicy");
    if policy.is_set() && !matches!(policy.text(), "SingleStack" | "PreferDualStack" | "RequireDualStack") {
        policy.not_supported(&["PreferDualStack", "RequireDualStack", "SingleStack"]);
    }
    let old_ips = old.map(|old| texts(old.get("spec").get("clusterIPs"))).unwrap_or_default();
    let mut wrong = false;
    for (i, ip) in at.items().enumerate() {
        if i == 0 && ip.text() == "None" {
            if ips.len() > 1 {
                wrong = true;
                at.invalid("'None' must be the first and only value");
            }
            continue;
        }
        wrong |= !legacy_ip(ip, &old_ips);
    }
    if ips.len() > 2 {
        at.invalid("may only hold up to 2 values");
    }
    if wrong {
        return;
    }
    if ips.len() > 1 {
        let unreadable = ips.iter().position(|ip| ip::parse_ip_sloppy(ip).is_none());
        if let Some(i) = unreadable {
            at.check().push(FieldError::new(
                ErrorKind::Internal,
                at.path(),
                Shown::Nothing,
                format!("failed to check for dual stack with error:invalid IP[{i}]: <nil>"),
            ));
        }
        let both = ips.iter().any(|ip| is_ipv4(ip)) && ips.iter().any(|ip| is_ipv6(ip));
        if !both || unreadable.is_some() {
            at.invalid("may specify no more than one IP for each IP family");
        }
    }
    if !is_headless(service) {
        for (i, (ip, family)) in at.items().zip(texts(families)).enumerate() {
            match family {
                "IPv4" if is_ipv6(ip.text()) => {
                    ip.invalid(format!("expected an IPv4 value as indicated by `ipFamilies[{i}]`"));
                }
                "IPv6" if !is_ipv6(ip.text()) => {
                    ip.invalid(format!("expected an IPv6 value as indicated by `ipFamilies[{i}]`"));
                }
                _ => {}
            }
        }
    }
}

fn port_numbers(ports: At<'_, '_>, kind: &str) {
    if kind == "ClusterIP" {
        for port in ports.items() {
            if port.get("nodePort").number() != 0 {
                port.get("nodePort").forbidden("may not be used when `type` is 'ClusterIP'");
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    for port in ports.items() {
        let key = (port.get("protocol").text(), port.get("nodePort").number());
        if key.1 == 0 {
            continue;
        }
        if seen.contains(&key) {
            port.get("nodePort").duplicate();
        }
        seen.insert(key);
    }
    let mut seen = std::collections::HashSet::new();
    for port in ports.items() {
        let key = (port.get("protocol").text(), port.get("port").number());
        if seen.contains(&key) {
            // Kubernetes shows the Go struct here.
            let shown = json!({
                "Name": "", "Protocol": key.0, "AppProtocol": null, "Port": key.1, "TargetPort": 0, "NodePort": 0,
            });
            duplicate(port, shown);
        }
        seen.insert(key);
    }
}

fn source_ranges(service: At<'_, '_>, old: Option<At<'_, '_>>) {
    let spec = service.get("spec");
    let load_balancer = spec.get("type").text() == "LoadBalancer";
    let ranges = spec.get("loadBalancerSourceRanges");
    let annotation = service.get("metadata").get("annotations").key(SOURCE_RANGES_ANNOTATION);
    if !ranges.is_empty() {
        let at = spec.get("LoadBalancerSourceRanges").with(ranges.value());
        if !load_balancer {
            at.forbidden(ONLY_LOAD_BALANCER);
        }
        let old = old.map(|old| texts(old.get("spec").get("loadBalancerSourceRanges"))).unwrap_or_default();
        let old: std::collections::HashSet<&str> = old.into_iter().map(str::trim).collect();
        for range in at.items() {
            let own = [range.text().trim()];
            cidr_text(range, own[0], if old.contains(own[0]) { &own } else { &[] });
        }
    } else if let Some(text) = annotation.str() {
        if !load_balancer {
            annotation.forbidden(ONLY_LOAD_BALANCER);
        }
        let before =
            old.and_then(|old| old.get("metadata").get("annotations").key(SOURCE_RANGES_ANNOTATION).str());
        if old.is_none() || before.unwrap_or_default() != text {
            for range in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
                cidr_text(annotation, range.trim(), &[]);
            }
        }
    }
}

fn cidr_text(at: At<'_, '_>, text: &str, old: &[&str]) {
    if text == at.text() {
        legacy_cidr(at, old);
    } else if !old.contains(&text) && ip::parse_cidr_sloppy(text).is_none() {
        at.invalid_as(text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    }
}

fn load_balancer_class(spec: At<'_, '_>) {
    let class = spec.get("loadBalancerClass");
    if class.is_set() {
        if spec.get("type").text() == "LoadBalancer" {
            qualified_name(class);
        } else {
            class.forbidden(ONLY_LOAD_BALANCER);
        }
    }
}

fn traffic(service: At<'_, '_>) {
    let spec = service.get("spec");
    let kind = spec.get("type").text();
    let external = spec.get("externalTrafficPolicy");
    let none = Value::Null;
    let value = service.value().unwrap_or(&none);
    if super::externally_accessible(value) {
        one_of(external, &["Cluster", "Local"]);
    } else if !external.text().is_empty() {
        external.invalid("may only be set for externally-accessible services");
    }
    let health = spec.get("healthCheckNodePort");
    match (super::needs_health_check(value), health.number()) {
        (true, 0) => health.required(""),
        (true, _) => port_number(health),
        (false, 0) => {}
        (false, _) => health
            .invalid("may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"),
    }
    let internal = spec.get("internalTrafficPolicy");
    if !internal.is_set() {
        if matches!(kind, "NodePort" | "LoadBalancer" | "ClusterIP") {
            internal.required("");
        }
    } else if !matches!(internal.text(), "Cluster" | "Local") {
        internal.not_supported(&["Cluster", "Local"]);
    }
    let distribution = spec.get("trafficDistribution");
    let supported = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    if distribution.is_set() && !supported.contains(&distribution.text()) {
        distribution.not_supported(&supported);
    }
}

/// Checks of an update.
pub(crate) fn update(new: At<'_, '_>, old: At<'_, '_>) {
    let (spec, before) = (new.get("spec"), old.get("spec"));
    let kinds = [spec.get("type").text(), before.get("type").text()];
    if !kinds.contains(&"ExternalName") {
        cluster_ip_changes(new, old);
        family_changes(new, old);
    }
    if kinds == ["LoadBalancer", "LoadBalancer"]
        && spec.get("loadBalancerClass").str() != before.get("loadBalancerClass").str()
    {
        spec.get("loadBalancerClass").invalid(ONCE_SET);
    }
    load_balancer_class(spec);
    let needs = |at: At<'_, '_>| at.value().is_some_and(super::needs_health_check);
    let health = spec.get("healthCheckNodePort");
    if needs(new) && needs(old) && health.number() != before.get("healthCheckNodePort").number() {
        health.forbidden(IMMUTABLE);
    }
    service(new, Some(old));
}

fn cluster_ip_changes(new: At<'_, '_>, old: At<'_, '_>) {
    if is_headless(new) && is_headless(old) {
        return;
    }
    let spec = new.get("spec");
    let at = spec.get("clusterIPs");
    let (ips, before) = (texts(at), texts(old.get("spec").get("clusterIPs")));
    let changed = |i: usize| {
        let shown = at.value().cloned().unwrap_or_default();
        at.index(i).invalid_as(shown, ONCE_SET);
    };
    if ips.len() == before.len() {
        for (i, (ip, before)) in ips.iter().zip(&before).enumerate() {
            if ip != before {
                changed(i);
            }
        }
        return;
    }
    if ips.is_empty() {
        let shown = at.value().cloned().unwrap_or_default();
        at.index(0).invalid_as(shown, "primary clusterIP can not be unset");
    }
    if let (Some(ip), Some(before)) = (ips.first(), before.first())
        && ip != before
    {
        changed(0);
    }
    let policy = spec.get("ipFamilyPolicy");
    if before.len() > ips.len() && ips.len() == 1 && policy.text() != "SingleStack" {
        policy.invalid("must be set to 'SingleStack' when releasing the secondary clusterIP");
    }
}

fn family_changes(new: At<'_, '_>, old: At<'_, '_>) {
    if is_headless(new) || is_headless(old) {
        return;
    }
    let spec = new.get("spec");
    let at = spec.get("ipFamilies");
    let (families, before) = (texts(at), texts(old.get("spec").get("ipFamilies")));
    let ips = spec.get("clusterIPs");
    let first = at.index(0);
    let list = |at: At<'_, '_>| at.value().cloned().unwrap_or_default();
    if families.len() == before.len() {
        for _ in families.iter().zip(&before).filter(|(family, before)| family != before) {
            first.invalid_as(list(at), ONCE_SET);
        }
        return;
    }
    if before.len() > families.len() && ips.is_empty() {
        first.invalid_as(list(at), "primary ipFamily can not be unset");
    }
    if let (Some(family), Some(before)) = (families.first(), before.first())
        && family != before
    {
        first.invalid_as(list(ips), ONCE_SET);
    }
    let policy = spec.get("ipFamilyPolicy");
    if before.len() > families.len() && families.len() == 1 && policy.text() != "SingleStack" {
        policy.invalid("must be set to 'SingleStack' when releasing the secondary ipFamily");
    }
}

/// Checks of an update of `/status`.
pub(crate) fn status(new: At<'_, '_>, old: At<'_, '_>) {
    let ingress = new.get("status").get("loadBalancer").get("ingress");
    if new.get("spec").get("type").text() != "LoadBalancer" && !ingress.is_empty() {
        return ingress.forbidden("may only be used when `spec.type` is 'LoadBalancer'");
    }
    let before = old.get("status").get("loadBalancer").get("ingress");
    let before: Vec<&str> =
        before.items().map(|one| one.get("ip").text()).filter(|ip| !ip.is_empty()).collect();
    for one in ingress.items() {
        let (ip, mode) = (one.get("ip"), one.get("ipMode"));
        if !ip.text().is_empty() {
            legacy_ip(ip, &before);
        }
        match (mode.is_set(), !ip.text().is_empty()) {
            (false, true) => mode.required("must be specified when `ip` is set"),
            (true, false) => mode.forbidden("may not be specified when `ip` is not set"),
            (true, true) if !matches!(mode.text(), "VIP" | "Proxy") => mode.not_supported(&["Proxy", "VIP"]),
            _ => {}
        }
        host_name(one.get("hostname"));
    }
}

/// The host name of a load balancer.
pub(crate) fn host_name(at: At<'_, '_>) {
    if !at.text().is_empty() {
        dns_subdomain(at);
        if ip::parse_ip_sloppy(at.text()).is_some() {
            at.invalid("must be a DNS name, not an IP address");
        }
    }
}
