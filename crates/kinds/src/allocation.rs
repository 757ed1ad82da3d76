//! The cluster IPs and node ports of a Service: which to allocate and to release, and the errors if that fails.
//!
//! The server keeps the allocations. It makes a plan before any other check, allocates what the plan lists,
//! writes the chosen values into the object, and continues with preparation and validation.

use std::net::IpAddr;

use k1s_object::{Check, FieldError, ip::Cidr};
use serde_json::Value;

use crate::rules::{
    core::service::{has_ports_on_nodes, kind, needs_cluster_ip, needs_health_check, validate},
    helpers::{
        json::{find, list_at, number_at, set_in, strings_at, text_at},
        network::is_ipv4,
    },
};

/// Reason: the IP is allocated to another Service.
pub const IP_ALLOCATED: &str = "provided IP is already allocated";
/// Reason: the IP is outside the service CIDR.
pub const IP_OUTSIDE: &str = "the provided network does not match the current range";
/// Reason: the port is allocated to another Service.
pub const PORT_ALLOCATED: &str = "provided port is already allocated";

const FAMILY: &str = "IPv4";
const POLICY: [&str; 2] = ["spec", "ipFamilyPolicy"];

/// What to allocate before a Service is stored, and what to release afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllocationPlan {
    /// Cluster IPs to allocate.
    pub take_ips: Vec<TakeIp>,
    /// Cluster IPs to release once the object is stored.
    pub free_ips: Vec<String>,
    /// Node ports to allocate.
    pub take_ports: Vec<TakePort>,
    /// Node ports to release once the object is stored.
    pub free_ports: Vec<i64>,
}

/// A cluster IP to allocate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeIp {
    /// The index in `spec.clusterIPs`.
    pub index: usize,
    /// The requested IP; None for any.
    pub ip: Option<String>,
}

/// A node port to allocate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakePort {
    /// Its use.
    pub place: Place,
    /// The requested port; None for any.
    pub port: Option<i64>,
}

/// The use of a node port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The `nodePort` of these `spec.ports`: the protocols of one port share it.
    Ports(Vec<usize>),
    /// `spec.healthCheckNodePort`
    HealthCheck,
}

/// The reason why there is no plan.
#[derive(Debug, Clone, PartialEq)]
pub enum AllocationError {
    /// The Service is invalid (422).
    Invalid(Vec<FieldError>),
    /// Kubernetes responds with an internal error (500) here.
    Internal(String),
}

/// The allocations of a stored Service: released on delete, restored at startup.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allocated {
    /// Its cluster IPs.
    pub ips: Vec<String>,
    /// Its node ports.
    pub ports: Vec<i64>,
}

/// The allocations of a stored Service.
pub fn allocated(service: &Value) -> Allocated {
    let mut held = Allocated { ips: Vec::new(), ports: node_ports(service) };
    let ips = strings_at(service, &["spec", "clusterIPs"]);
    if needs_cluster_ip(service) && ips.first() != Some(&"None") {
        held.ips = ips.into_iter().filter(|ip| !ip.is_empty()).map(str::to_owned).collect();
    }
    let health = number_at(service, &["spec", "healthCheckNodePort"]);
    if needs_health_check(service) && health > 0 {
        held.ports.push(health);
    }
    held
}

/// The plan for `new`, which replaces `old`. Completes `new` from `old`: the IPs, families and ports that the
/// client left out.
pub fn allocation_plan(new: &mut Value, old: Option<&Value>) -> Result<AllocationPlan, AllocationError> {
    if let Some(old) = old {
        patch_allocated_values(new, old);
    }
    normalize_cluster_ips(new, old);
    let settled = old.is_some_and(|old| prefers_dual_stack_as_before(new, old));
    if needs_cluster_ip(new) && !settled {
        family_fields(new, old).map_err(AllocationError::Invalid)?;
    }
    let mut plan = AllocationPlan::default();
    match old {
        None => {
            take_ips(new, &mut plan);
            create_ports(new, &mut plan);
        }
        Some(old) => {
            if !settled {
                update_ips(new, old, &mut plan);
            }
            update_ports(new, old, &mut plan)?;
        }
    }
    Ok(plan)
}

impl AllocationPlan {
    /// Writes the allocated IP into the object.
    pub fn set_ip(service: &mut Value, take: &TakeIp, ip: &str) {
        let mut ips: Vec<Value> = list_at(service, &["spec", "clusterIPs"]).to_vec();
        while ips.len() <= take.index && ips.len() < 2 {
            ips.push("".into());
        }
        if let Some(one) = ips.get_mut(take.index) {
            *one = ip.into();
        }
        set_in(service, "spec", "clusterIPs", ips);
        if take.index == 0 {
            set_in(service, "spec", "clusterIP", ip);
        }
    }

    /// Writes the allocated port into the object.
    pub fn set_port(service: &mut Value, take: &TakePort, port: i64) {
        match &take.place {
            Place::HealthCheck => set_in(service, "spec", "healthCheckNodePort", port),
            Place::Ports(indexes) => {
                for &index in indexes {
                    set_node_port(service, index, port);
                }
            }
        }
    }
}

fn set_node_port(service: &mut Value, index: usize, port: i64) {
    let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    if let Some(one) = ports.and_then(|ports| ports.get_mut(index)).and_then(Value::as_object_mut) {
        one.insert("nodePort".into(), port.into());
    }
}

/// The node ports of a Service without duplicates.
pub(crate) fn node_ports(service: &Value) -> Vec<i64> {
    let mut seen = std::collections::HashSet::new();
    let ports = list_at(service, &["spec", "ports"]).iter().map(|port| number_at(port, &["nodePort"]));
    ports.filter(|port| *port != 0 && seen.insert(*port)).collect()
}

fn patch_allocated_values(new: &mut Value, old: &Value) {
    if needs_cluster_ip(old) && needs_cluster_ip(new) {
        let first = text_at(old, &["spec", "clusterIP"]);
        if text_at(new, &["spec", "clusterIP"]).is_empty() && !first.is_empty() {
            set_in(new, "spec", "clusterIP", first);
        }
        let ips = list_at(old, &["spec", "clusterIPs"]);
        if list_at(new, &["spec", "clusterIPs"]).is_empty() && !ips.is_empty() {
            set_in(new, "spec", "clusterIPs", ips.to_vec());
        }
    }
    if has_ports_on_nodes(kind(old)) && has_ports_on_nodes(kind(new)) {
        let before: std::collections::HashSet<i64> = node_ports(old).into_iter().collect();
        let after: std::collections::HashSet<i64> = node_ports(new).into_iter().collect();
        // Of ports with the same name the last one counts.
        let by_name: std::collections::HashMap<&str, i64> = list_at(old, &["spec", "ports"])
            .iter()
            .map(|one| (text_at(one, &["name"]), number_at(one, &["nodePort"])))
            .collect();
        let mut changes = Vec::new();
        for (i, port) in list_at(new, &["spec", "ports"]).iter().enumerate() {
            if number_at(port, &["nodePort"]) != 0 {
                continue;
            }
            let value = by_name.get(text_at(port, &["name"])).copied().unwrap_or_default();
            if value != 0 && !(before.contains(&value) && after.contains(&value)) {
                changes.push((i, value));
            }
        }
        for (i, value) in changes {
            set_node_port(new, i, value);
        }
    }
    if needs_health_check(old)
        && needs_health_check(new)
        && number_at(new, &["spec", "healthCheckNodePort"]) == 0
    {
        set_in(new, "spec", "healthCheckNodePort", number_at(old, &["spec", "healthCheckNodePort"]));
    }
}

/// `clusterIP` and `clusterIPs` agree when a client knew only the first.
fn normalize_cluster_ips(new: &mut Value, old: Option<&Value>) {
    let first = text_at(new, &["spec", "clusterIP"]).to_owned();
    let ips: Vec<Value> = list_at(new, &["spec", "clusterIPs"]).to_vec();
    let Some(old) = old else {
        if !first.is_empty() && ips.is_empty() {
            set_in(new, "spec", "clusterIPs", vec![Value::from(first)]);
        }
        return;
    };
    let old_first = text_at(old, &["spec", "clusterIP"]);
    let old_ips = list_at(old, &["spec", "clusterIPs"]);
    if !old_ips.is_empty() && ips.is_empty() && old_first == first {
        set_in(new, "spec", "clusterIPs", old_ips.to_vec());
    }
    if old_first != first && list_at(new, &["spec", "clusterIPs"]) == old_ips {
        let ips = if first.is_empty() && !old_first.is_empty() { vec![] } else { vec![Value::from(first)] };
        set_in(new, "spec", "clusterIPs", ips);
    }
}

fn prefers_dual_stack_as_before(new: &Value, old: &Value) -> bool {
    let prefers = |service| text_at(service, &POLICY) == "PreferDualStack";
    let equal = |field| list_at(new, &["spec", field]) == list_at(old, &["spec", field]);
    prefers(new)
        && (prefers(old) || find(old, &POLICY).is_none())
        && kind(new) == kind(old)
        && matches!(kind(new), "ClusterIP" | "NodePort" | "LoadBalancer")
        && equal("clusterIPs")
        && equal("ipFamilies")
}

fn invalid(field: &str, value: Option<&Value>, detail: &str) -> FieldError {
    FieldError::invalid(field, value.cloned().unwrap_or_default(), detail)
}

/// Sets `ipFamilies` and `ipFamilyPolicy`. The cluster is IPv4 only.
fn family_fields(service: &mut Value, old: Option<&Value>) -> Result<(), Vec<FieldError>> {
    let headless = text_at(service, &["spec", "clusterIP"]) == "None";
    let selector = find(service, &["spec", "selector"]).and_then(Value::as_object);
    let without_selector = headless && selector.is_none_or(serde_json::Map::is_empty);
    if find(service, &POLICY).is_none() {
        let policy = match old.and_then(|old| find(old, &POLICY)) {
            Some(policy) => policy.clone(),
            None if without_selector => "RequireDualStack".into(),
            None => "SingleStack".into(),
        };
        set_in(service, "spec", "ipFamilyPolicy", policy);
    }
    {
        let check = Check::new();
        validate::cluster_ips(check.root(service), old.map(|old| check.root(old)));
        let errors = check.take();
        if !errors.is_empty() {
            return Err(errors);
        }
    }
    let mut errors = Vec::new();
    let policy = find(service, &POLICY).cloned();
    let single = policy.as_ref().is_some_and(|policy| policy == "SingleStack");
    let mut wrong_policy =
        |detail: &str| errors.push(invalid("spec.ipFamilyPolicy", policy.as_ref(), detail));
    for (field, detail) in [
        ("clusterIPs", "must be 'SingleStack' to release the secondary cluster IP"),
        ("ipFamilies", "must be 'SingleStack' to release the secondary IP family"),
    ] {
        let Some(old) = old else { break };
        let (now, before) = (list_at(service, &["spec", field]).to_vec(), list_at(old, &["spec", field]));
        if single {
            if now == before && now.len() > 1 {
                set_in(service, "spec", field, now.into_iter().take(1).collect::<Vec<_>>());
            }
        } else if !now.is_empty() && now.len() < before.len() {
            wrong_policy(detail);
        }
    }
    if single {
        for (field, several) in
            [("clusterIPs", "multiple cluster IPs"), ("ipFamilies", "multiple IP families")]
        {
            if list_at(service, &["spec", field]).len() == 2 {
                wrong_policy(&format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when {several} are specified"
                ));
            }
        }
    }
    let mut families: Vec<Value> = list_at(service, &["spec", "ipFamilies"]).to_vec();
    let ips = list_at(service, &["spec", "clusterIPs"]);
    for (i, ip) in ips.iter().filter_map(Value::as_str).enumerate().take_while(|(_, ip)| *ip != "None") {
        if i >= families.len() {
            if is_ipv4(ip) {
                families.push(FAMILY.into());
            } else {
                errors.push(FieldError::invalid(
                    format!("spec.clusterIPs[{i}]"),
                    ips.to_vec(),
                    "IPv6 is not configured on this cluster",
                ));
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    if families.is_empty() {
        families.push(FAMILY.into());
    }
    if without_selector {
        if families.len() < 2 && !single {
            let other = if families.first().is_some_and(|family| family == "IPv4") { "IPv6" } else { "IPv4" };
            families.push(other.into());
        }
    } else {
        if policy.as_ref().is_some_and(|policy| policy == "RequireDualStack") {
            errors.push(invalid(
                "spec.ipFamilyPolicy",
                policy.as_ref(),
                "this cluster is not configured for dual-stack services",
            ));
        }
        for (i, family) in families.iter().enumerate().filter(|(_, family)| *family != FAMILY) {
            let field = format!("spec.ipFamilies[{i}]");
            errors.push(invalid(&field, Some(family), "not configured on this cluster"));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
    }
    set_in(service, "spec", "ipFamilies", families);
    Ok(())
}

fn take_ips(service: &Value, plan: &mut AllocationPlan) {
    let ips = strings_at(service, &["spec", "clusterIPs"]);
    if !needs_cluster_ip(service) || ips.first() == Some(&"None") {
        return;
    }
    for index in 0..list_at(service, &["spec", "ipFamilies"]).len() {
        let ip = ips.get(index).filter(|ip| !ip.is_empty()).map(|&ip| ip.to_owned());
        plan.take_ips.push(TakeIp { index, ip });
    }
}

fn update_ips(new: &Value, old: &Value, plan: &mut AllocationPlan) {
    match (needs_cluster_ip(old), needs_cluster_ip(new)) {
        (false, true) => take_ips(new, plan),
        (true, false) => plan.free_ips = allocated(old).ips,
        (true, true) if strings_at(old, &["spec", "clusterIPs"]).first() != Some(&"None") => {
            // A second family is rejected, as the cluster has only one, but a stored one may be removed.
            let families = |service| list_at(service, &["spec", "ipFamilies"]).len();
            if families(old) == 2 && families(new) == 1 {
                plan.free_ips = allocated(old).ips.into_iter().skip(1).collect();
            }
        }
        _ => {}
    }
}

fn wants_node_ports(service: &Value) -> bool {
    match kind(service) {
        "NodePort" => true,
        "LoadBalancer" => {
            find(service, &["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool) != Some(false)
        }
        _ => false,
    }
}

fn create_ports(service: &mut Value, plan: &mut AllocationPlan) {
    let ports = list_at(service, &["spec", "ports"]).to_vec();
    if has_ports_on_nodes(kind(service)) {
        // By port number: the node port (0: not chosen yet) and the index of its allocation in the plan.
        let mut known: std::collections::HashMap<i64, (i64, usize)> = std::collections::HashMap::new();
        let mut first_wanted: std::collections::HashMap<i64, i64> = std::collections::HashMap::new();
        for one in &ports {
            let (port, node_port) = (number_at(one, &["port"]), number_at(one, &["nodePort"]));
            if node_port != 0 {
                first_wanted.entry(port).or_insert(node_port);
            }
        }
        for (i, one) in ports.iter().enumerate() {
            let (port, node_port) = (number_at(one, &["port"]), number_at(one, &["nodePort"]));
            if node_port == 0 && !wants_node_ports(service) {
                continue;
            }
            match known.get(&port).copied() {
                None => {
                    let wanted = first_wanted.get(&port).copied();
                    known.insert(port, (wanted.unwrap_or_default(), plan.take_ports.len()));
                    plan.take_ports.push(TakePort { place: Place::Ports(vec![i]), port: wanted });
                }
                Some((taken, _)) if taken == node_port && taken != 0 => {}
                Some((_, index)) if node_port == 0 => {
                    if let Some(TakePort { place: Place::Ports(places), .. }) = plan.take_ports.get_mut(index)
                    {
                        places.push(i);
                    }
                }
                Some(_) => {
                    plan.take_ports.push(TakePort { place: Place::Ports(vec![i]), port: Some(node_port) });
                }
            }
        }
    }
    if needs_health_check(service) {
        take_health_check(service, plan);
    }
}

fn take_health_check(service: &Value, plan: &mut AllocationPlan) {
    let port = number_at(service, &["spec", "healthCheckNodePort"]);
    plan.take_ports.push(TakePort { place: Place::HealthCheck, port: (port != 0).then_some(port) });
}

fn update_ports(new: &Value, old: &Value, plan: &mut AllocationPlan) -> Result<(), AllocationError> {
    let before = node_ports(old);
    let known: std::collections::HashSet<i64> = before.iter().copied().collect();
    if has_ports_on_nodes(kind(old)) && matches!(kind(new), "ExternalName" | "ClusterIP") {
        plan.free_ports.extend(&before);
    }
    if has_ports_on_nodes(kind(new)) {
        let mut seen = std::collections::HashSet::new();
        let mut taken = std::collections::HashSet::new();
        for (i, one) in list_at(new, &["spec", "ports"]).iter().enumerate() {
            let (protocol, port) = (text_at(one, &["protocol"]), number_at(one, &["nodePort"]));
            if port == 0 && !wants_node_ports(new) {
                continue;
            }
            let place = Place::Ports(vec![i]);
            if port == 0 {
                plan.take_ports.push(TakePort { place, port: None });
                continue;
            }
            if !known.contains(&port) && !taken.contains(&port) {
                plan.take_ports.push(TakePort { place, port: Some(port) });
                taken.insert(port);
            }
            if seen.contains(&(protocol, port)) {
                return Err(AllocationError::Internal(format!("duplicate nodePort: {{{protocol} {port}}}")));
            }
            seen.insert((protocol, port));
        }
        let after: std::collections::HashSet<i64> = node_ports(new).into_iter().collect();
        plan.free_ports.extend(before.iter().filter(|port| !after.contains(port)));
    }
    match (needs_health_check(old), needs_health_check(new)) {
        (false, true) => take_health_check(new, plan),
        (true, false) => plan.free_ports.push(number_at(old, &["spec", "healthCheckNodePort"])),
        _ => {}
    }
    Ok(())
}

/// Whether this IP of `range` can be allocated: not the network address, nor the broadcast address of IPv4.
pub fn ip_in_range(ip: IpAddr, range: Cidr) -> Result<(), String> {
    if !range.contains(ip) {
        return Err(IP_OUTSIDE.into());
    }
    let broadcast = match range.masked() {
        IpAddr::V4(first) => {
            let host_bits = 32u32.saturating_sub(u32::from(range.bits));
            let mask = u32::MAX.checked_shr(32 - host_bits).unwrap_or(0);
            Some(IpAddr::V4((first.to_bits() | if host_bits == 0 { 0 } else { mask }).into()))
        }
        IpAddr::V6(_) => None,
    };
    if ip == range.masked() || Some(ip) == broadcast {
        return Err(format!(
            "the provided IP ({ip}) is not in the valid range. The range of valid IPs is {}",
            range.network()
        ));
    }
    Ok(())
}

/// The error for a cluster IP that cannot be allocated.
pub fn ip_refused(service: &Value, ip: &str, why: &str) -> FieldError {
    invalid(
        "spec.clusterIPs",
        find(service, &["spec", "clusterIPs"]),
        &format!("failed to allocate IP {ip}: {why}"),
    )
}

/// The error if no cluster IP is free.
pub fn next_ip_refused(service: &Value, why: &str) -> FieldError {
    invalid(
        "spec.clusterIPs",
        find(service, &["spec", "clusterIPs"]),
        &format!("failed to allocate IP: {why}"),
    )
}

/// Reason: the port is outside the node port range, such as `30000-32767`.
pub fn port_out_of_range(range: &str) -> String {
    format!("provided port is not in the valid range. The range of valid ports is {range}")
}

/// The error for a node port that cannot be allocated.
pub fn port_refused(take: &TakePort, why: &str) -> AllocationError {
    let port = take.port.unwrap_or_default();
    match &take.place {
        Place::HealthCheck => AllocationError::Internal(format!(
            "failed to allocate requested HealthCheck NodePort {port}: {why}"
        )),
        Place::Ports(indexes) => {
            let index = indexes.first().copied().unwrap_or_default();
            let field = format!("spec.ports[{index}].nodePort");
            AllocationError::Invalid(vec![FieldError::invalid(field, port, why)])
        }
    }
}
