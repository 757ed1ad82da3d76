//! Rules of the core kinds and of those around them: services and networks, volumes, quotas, leases and events.
//!
//! What the rules of these kinds cannot do alone is in functions the server calls: [`service::allocation_plan`] says
//! which cluster IPs and node ports to take, [`event::to_core`] and [`event::to_events`] turn one view of an event
//! into the other, [`namespace::prepare_finalize`] belongs to `/finalize`, [`volume::stamp_phase`] needs the time. [`limiter`] and
//! [`quota_usage`] are what admission asks about limit ranges and quotas.

pub mod config_map;
pub mod endpoint_slice;
pub mod endpoints;
pub mod event;
mod go_json;
pub mod ingress;
pub mod ip_address;
pub mod lease;
pub mod limit_range;
pub mod limiter;
pub mod namespace;
pub mod network_policy;
pub mod node;
pub mod pod_resources;
pub mod quota;
pub mod quota_usage;
mod resources;
pub mod secret;
pub mod service;
pub mod service_account;
#[cfg(test)]
mod tests;
mod util;
pub mod volume;
pub mod volume_claim;
mod volume_source;

use super::Rules;

/// A kind that says goodbye and has nothing to check.
static COMPONENT_STATUS: Rules =
    Rules { deprecated: "v1 ComponentStatus is deprecated in v1.19+", ..Rules::PLAIN };

static BINDING: Rules = Rules { validate: node::validate_binding, ..Rules::PLAIN };

/// The rules of a kind of these groups.
pub(super) fn rules(group: &str, version: &str, kind: &str) -> Option<&'static Rules> {
    Some(match (group, version, kind) {
        ("", "v1", "Binding") => &BINDING,
        ("", "v1", "ComponentStatus") => &COMPONENT_STATUS,
        ("", "v1", "ConfigMap") => &config_map::RULES,
        ("", "v1", "Endpoints") => &endpoints::RULES,
        ("", "v1", "Event") => &event::CORE,
        ("events.k8s.io", "v1", "Event") => &event::EVENTS,
        ("", "v1", "LimitRange") => &limit_range::RULES,
        ("", "v1", "Namespace") => &namespace::RULES,
        ("", "v1", "Node") => &node::RULES,
        ("", "v1", "PersistentVolume") => &volume::RULES,
        ("", "v1", "PersistentVolumeClaim") => &volume_claim::RULES,
        ("", "v1", "ResourceQuota") => &quota::RULES,
        ("", "v1", "Secret") => &secret::RULES,
        ("", "v1", "Service") => &service::RULES,
        ("", "v1", "ServiceAccount") => &service_account::RULES,
        ("coordination.k8s.io", "v1", "Lease") => &lease::RULES,
        ("discovery.k8s.io", "v1", "EndpointSlice") => &endpoint_slice::RULES,
        ("networking.k8s.io", "v1", "Ingress") => &ingress::RULES,
        ("networking.k8s.io", "v1", "IngressClass") => &ingress::CLASS,
        ("networking.k8s.io", "v1", "IPAddress") => &ip_address::RULES,
        ("networking.k8s.io", "v1", "NetworkPolicy") => &network_policy::RULES,
        ("networking.k8s.io", "v1", "ServiceCIDR") => &ip_address::SERVICE_CIDR,
        _ => return None,
    })
}
