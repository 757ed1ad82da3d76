//! `networking.k8s.io`.

mod ingress;
mod ingress_class;
pub mod ip_address;
mod network_policy;
mod service_cidr;

use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "Ingress" => &ingress::RULES,
        "IngressClass" => &ingress_class::RULES,
        "IPAddress" => &ip_address::RULES,
        "NetworkPolicy" => &network_policy::RULES,
        "ServiceCIDR" => &service_cidr::RULES,
        _ => return None,
    })
}
