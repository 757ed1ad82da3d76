//! `networking.k8s.io`.

mod ingress;
pub mod ip_address;
mod network_policy;

use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "Ingress" => &ingress::RULES,
        "IngressClass" => &ingress::CLASS,
        "IPAddress" => &ip_address::RULES,
        "NetworkPolicy" => &network_policy::RULES,
        "ServiceCIDR" => &ip_address::SERVICE_CIDR,
        _ => return None,
    })
}
