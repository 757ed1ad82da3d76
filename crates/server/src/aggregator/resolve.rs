//! Where the server behind an `APIService` is.

use std::sync::Arc;

use k1s_object::{Status, gvk::GroupVersionResource};
use serde_json::Value;

use crate::{
    services::{LocalService, ServicePort},
    tenant::{Tenant, apis::Availability},
};

/// The way to a Service.
pub(super) enum Route {
    /// It is in this process.
    Local(LocalService),
    /// It is at an address, `host:port`.
    Address {
        address: String,
        /// Whether addresses of this machine are refused: the address is not its administrator's choice.
        guarded: bool,
    },
}

/// Whether a tenant is the default one, whose users are those of the server's administrator.
pub(super) fn is_default(tenant: &Tenant) -> bool {
    tenant.name == tenant.options().default_tenant
}

/// The way to a Service, or why it is not available.
pub(super) async fn route(tenant: &Arc<Tenant>, service: &ServicePort) -> Result<Route, Availability> {
    let options = &tenant.options().services;
    let (host, port) = (service.host(), service.port);
    if let Some(local) = options.local.find(&tenant.name, &[&format!("{host}:{port}"), &host]) {
        return Ok(Route::Local(local));
    }
    if let Some(address) = options.address(&tenant.name, service, is_default(tenant)) {
        return Ok(Route::Address { address: address.to_owned(), guarded: false });
    }
    let ServicePort { namespace, name, .. } = service;
    let unclear = |reason: &str, why: &Status| {
        let message = format!("service/{name} in {namespace:?} cannot be checked due to: {}", why.message);
        Availability::of("Unknown", reason, message)
    };
    let key = tenant.keys_of("", "services", namespace) + name;
    let found = tenant.get(key.as_bytes()).await.map_err(|why| unclear("ServiceAccessError", &why))?;
    let Some(stored) = found else {
        let message = format!("service/{name} in {namespace:?} is not present");
        return Err(Availability::no("ServiceNotFound", message));
    };
    if !tenant.options().aggregation.routing || !is_default(tenant) {
        let message = format!(
            "service/{name} in {namespace:?} has no address on this server: none is configured for it, and it is not in \
             this process"
        );
        return Err(Availability::no("ServiceNotReachable", message));
    }
    let object: Value = stored
        .to_value("Service", "v1")
        .map_err(|why| unclear("ServiceAccessError", &tenant.unreadable(key.as_bytes(), &why)))?;
    let spec = &object["spec"];
    if spec["type"] == "ExternalName" {
        let external = spec["externalName"].as_str().unwrap_or_default();
        return Ok(Route::Address { address: format!("{external}:{port}"), guarded: true });
    }
    let ports = spec["ports"].as_array().into_iter().flatten();
    let Some(of_service) = ports.into_iter().find(|one| one["port"] == port) else {
        let message = format!("service/{name} in {namespace:?} is not listening on port {port}");
        return Err(Availability::no("ServicePortError", message));
    };
    let port_name = of_service["name"].as_str().unwrap_or_default();
    let slices = slices(tenant, service).await.map_err(|why| unclear("EndpointsAccessError", &why))?;
    if slices.is_empty() {
        let message = format!("cannot find endpointslices for service/{name} in {namespace:?}");
        return Err(Availability::no("EndpointsNotFound", message));
    }
    let ready = ready(&slices, port_name);
    let place = tenant.env().random_below(ready.len().max(1) as u64);
    match usize::try_from(place).ok().and_then(|place| ready.get(place)) {
        Some(address) => Ok(Route::Address { address: address.clone(), guarded: true }),
        None => {
            let message = format!(
                "endpointslices for service/{name} in {namespace:?} have no addresses with port name {port_name:?}"
            );
            Err(Availability::no("MissingEndpoints", message))
        }
    }
}

/// The `EndpointSlice`s of a Service.
async fn slices(tenant: &Arc<Tenant>, service: &ServicePort) -> Result<Vec<Value>, Status> {
    let gvr = GroupVersionResource::new("discovery.k8s.io", "v1", "endpointslices");
    let resource = tenant.shared.catalog.require(gvr)?;
    let snapshot = tenant.cache(&resource).now().await?;
    let prefix = tenant.keys(&resource, &service.namespace);
    let mut slices = Vec::new();
    for entry in snapshot.entries.under(prefix.as_bytes(), prefix.as_bytes()) {
        if entry.label("kubernetes.io/service-name") == Some(&*service.name)
            && let Ok(slice) = resource.read(&entry.stored)
        {
            slices.push(slice);
        }
    }
    Ok(slices)
}

/// The addresses of ready endpoints that have a port of this name.
fn ready(slices: &[Value], port_name: &str) -> Vec<String> {
    let list = |of: &Value, field: &str| of[field].as_array().cloned().unwrap_or_default();
    let mut addresses = Vec::new();
    for slice in slices {
        let is_port = |port: &Value| port["name"].as_str().unwrap_or_default() == port_name;
        let ports = list(slice, "ports");
        let Some(port) = ports.iter().find(|port| is_port(port)).and_then(|port| port["port"].as_u64())
        else {
            continue;
        };
        for endpoint in list(slice, "endpoints") {
            if endpoint["conditions"]["ready"] == false {
                continue;
            }
            // Only the first one is used, as in Kubernetes.
            if let Some(address) = endpoint["addresses"][0].as_str() {
                addresses.push(match address.contains(':') {
                    true => format!("[{address}]:{port}"),
                    false => format!("{address}:{port}"),
                });
            }
        }
    }
    addresses
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The cases of upstream's `hasAvailableEndpoint`, and of its choice of an endpoint.
    #[test]
    fn endpoints_that_are_ready() {
        let slice = |ports: Value, endpoints: Value| json!({"ports": ports, "endpoints": endpoints});
        let https = || json!([{"name": "https", "port": 8443}]);
        let up = || json!([{"addresses": ["10.0.0.1", "10.0.0.9"]}]);
        let cases: Vec<(&str, Vec<Value>, &str, Vec<&str>)> = vec![
            ("no slices", vec![], "https", vec![]),
            (
                "an endpoint without a condition is ready",
                vec![slice(https(), up())],
                "https",
                vec!["10.0.0.1:8443"],
            ),
            ("another port", vec![slice(https(), up())], "http", vec![]),
            ("a port without a name", vec![slice(json!([{"port": 1}]), up())], "", vec!["10.0.0.1:1"]),
            ("a port without a number", vec![slice(json!([{"name": "https"}]), up())], "https", vec![]),
            ("no endpoints", vec![slice(https(), json!([]))], "https", vec![]),
            (
                "an endpoint that is not ready",
                vec![slice(https(), json!([{"addresses": ["10.0.0.1"], "conditions": {"ready": false}}]))],
                "https",
                vec![],
            ),
            (
                "several slices",
                vec![
                    slice(https(), json!([{"addresses": ["fd00::1"], "conditions": {"ready": true}}])),
                    slice(json!([{"name": "https", "port": 2}]), up()),
                ],
                "https",
                vec!["[fd00::1]:8443", "10.0.0.1:2"],
            ),
        ];
        for (name, slices, port, expected) in cases {
            assert_eq!(ready(&slices, port), expected, "{name}");
        }
    }
}
