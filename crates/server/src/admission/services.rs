//! The cluster IPs and node ports of services. Allocations are written in the transaction of the service, so no two
//! services hold the same: an address as its `IPAddress`, a port as a key of the server's own.

use bytes::Bytes;
use k1s_kinds::{allocation as service, rules::networking::ip_address};
use k1s_object::Status;
use k1s_store::{Action, Op, Precondition};
use serde_json::Value;

use crate::{context::Cx, errors, managed, objectmeta::meta_text, tenant::Tenant};

/// The range of node ports.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30000..=32767;

/// The key of an allocated port.
fn port_key(tenant: &Tenant, port: i64) -> Bytes {
    (tenant.keys_of("k1s", "nodeports", "") + &port.to_string()).into()
}

/// The key of an allocated address.
fn ip_key(tenant: &Tenant, ip: &str) -> Bytes {
    (tenant.keys_of("networking.k8s.io", "ipaddresses", "") + ip).into()
}

fn take(key: Bytes, value: Bytes) -> Op {
    Op { key, precondition: Precondition::Absent, action: Action::Put(value) }
}

fn take_ip(cx: &Cx, ip: &str, name: &str) -> Result<Op, Status> {
    let addresses = super::kind(&cx.tenant, "networking.k8s.io", "v1", "ipaddresses")?;
    let mut address = ip_address::of_service(ip, &cx.namespace, name);
    managed::on_own_create(&addresses, cx.tenant.env(), managed::SERVER, &mut address);
    let value = addresses.encode_new(cx.tenant.env(), address)?;
    Ok(take(ip_key(&cx.tenant, ip), value))
}

fn take_port(cx: &Cx, port: i64) -> Op {
    take(port_key(&cx.tenant, port), Bytes::from_static(b"held"))
}

/// Allocates and releases addresses and ports, and sets those that the client left to the server.
pub(super) async fn reserve(cx: &Cx, object: &mut Value, old: Option<&Value>) -> Result<Vec<Op>, Status> {
    let name = meta_text(object, "name").to_owned();
    let refuse = |error: service::AllocationError| match error {
        service::AllocationError::Invalid(errors) => cx.invalid(&name, &errors),
        service::AllocationError::Internal(message) => Status::internal(message),
    };
    let invalid = |errors: &[k1s_object::FieldError]| cx.invalid(&name, errors);
    let plan = service::allocation_plan(object, old).map_err(refuse)?;
    let mut ops = Vec::new();
    let network = u32::from(cx.tenant.options().service_network);
    let free = |key: Bytes| async move {
        cx.tenant
            .store()
            .get(&key, None)
            .await
            .map(|found| found.entry.is_none())
            .map_err(|error| errors::store(&error))
    };
    for wanted in &plan.take_ips {
        if let Some(ip) = &wanted.ip {
            let parsed: std::net::IpAddr =
                ip.parse().map_err(|_| invalid(&[service::ip_refused(object, ip, "not a valid IP")]))?;
            let range = k1s_object::ip::Cidr { ip: std::net::IpAddr::V4(network.into()), bits: 16 };
            if let Err(why) = service::ip_in_range(parsed, range) {
                return Err(invalid(&[service::ip_refused(object, ip, &why)]));
            }
            if !free(ip_key(&cx.tenant, ip)).await? {
                return Err(invalid(&[service::ip_refused(object, ip, service::IP_ALLOCATED)]));
            }
            ops.push(take_ip(cx, ip, &name)?);
        } else {
            let mut chosen = None;
            for _ in 0..1000 {
                // The lower part of the range is left for services that request an address.
                let offset = u32::try_from(256 + cx.tenant.env().random_below(65_535 - 256)).unwrap_or(256);
                let ip = std::net::Ipv4Addr::from(network.saturating_add(offset)).to_string();
                if free(ip_key(&cx.tenant, &ip)).await? {
                    chosen = Some(ip);
                    break;
                }
            }
            let Some(ip) = chosen else {
                return Err(invalid(&[service::next_ip_refused(object, "range is full")]));
            };
            ops.push(take_ip(cx, &ip, &name)?);
            service::AllocationPlan::set_ip(object, wanted, &ip);
        }
    }
    for wanted in &plan.take_ports {
        if let Some(port) = wanted.port {
            if !NODE_PORTS.contains(&port) {
                return Err(refuse(service::port_refused(
                    wanted,
                    &service::port_out_of_range("30000-32767"),
                )));
            }
            if !free(port_key(&cx.tenant, port)).await? {
                return Err(refuse(service::port_refused(wanted, service::PORT_ALLOCATED)));
            }
            ops.push(take_port(cx, port));
        } else {
            let mut chosen = None;
            for _ in 0..10_000 {
                let port = 30_000 + i64::try_from(cx.tenant.env().random_below(2768)).unwrap_or(0);
                let key = port_key(&cx.tenant, port);
                if !ops.iter().any(|op| op.key == key) && free(key).await? {
                    chosen = Some(port);
                    break;
                }
            }
            let Some(port) = chosen else {
                return Err(Status::internal("failed to allocate a nodePort: range is full"));
            };
            ops.push(take_port(cx, port));
            service::AllocationPlan::set_port(object, wanted, port);
        }
    }
    give_back(cx, &plan.free_ips, &plan.free_ports, &mut ops);
    Ok(ops)
}

fn give_back(cx: &Cx, ips: &[String], ports: &[i64], ops: &mut Vec<Op>) {
    let keys = ips.iter().map(|ip| ip_key(&cx.tenant, ip));
    let keys = keys.chain(ports.iter().map(|port| port_key(&cx.tenant, *port)));
    ops.extend(keys.map(|key| Op { key, precondition: Precondition::Any, action: Action::Delete }));
}

/// Releases the addresses and ports of a service that is removed.
pub(super) fn release(cx: &Cx, old: &Value, ops: &mut Vec<Op>) {
    let held = service::allocated(old);
    give_back(cx, &held.ips, &held.ports, ops);
}
