//! Addresses, networks and ports.

use k1s_object::{At, ip, names};

use super::{errors::invalid_each, text::one_of};

/// A port number; a missing one is 0.
pub(crate) fn port_number(at: At<'_, '_>) {
    for message in names::is_valid_port_num(at.number()) {
        at.invalid_as(at.number(), message);
    }
}

/// A port number, or the name of a port.
pub(crate) fn port_number_or_name(at: At<'_, '_>) {
    match at.str() {
        Some(name) => invalid_each(at, names::is_valid_port_name(name)),
        None => port_number(at),
    }
}

/// A transport protocol.
pub(crate) fn protocol(at: At<'_, '_>) {
    one_of(at, &["SCTP", "TCP", "UDP"]);
}

/// The address of an endpoint; sloppy forms are accepted.
pub(crate) fn endpoint_ip(at: At<'_, '_>) {
    let text = at.text();
    let Some(ip) = ip::parse_ip_sloppy(text).map(|ip| ip.to_canonical()) else {
        return at.invalid_text("must be a valid IP address");
    };
    let (link_local, link_local_multicast) = match ip {
        std::net::IpAddr::V4(v4) => (v4.is_link_local(), matches!(v4.octets(), [224, 0, 0, _])),
        std::net::IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] & 0xff0f == 0xff02),
    };
    if ip.is_unspecified() {
        at.invalid_text(format!("may not be unspecified ({text})"));
    }
    if ip.is_loopback() {
        at.invalid_text("may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    if link_local {
        at.invalid_text("may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if link_local_multicast {
        at.invalid_text("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

/// An address in a field where sloppy forms are accepted. Returns whether it is one.
pub(crate) fn legacy_ip(at: At<'_, '_>, old: &[&str]) -> bool {
    let before = at.check().count();
    ip::is_valid_ip_for_legacy_field(at, false, old);
    at.check().count() == before
}

/// A network in a field where sloppy forms are accepted.
pub(crate) fn legacy_cidr(at: At<'_, '_>, old: &[&str]) {
    ip::is_valid_cidr_for_legacy_field(at, false, old);
}

/// Whether this is an IPv6 address (an IPv4-mapped one is not).
pub(crate) fn is_ipv6(text: &str) -> bool {
    ip::parse_ip_sloppy(text).is_some_and(|ip| ip.to_canonical().is_ipv6())
}

/// Whether this is an IPv4 address.
pub(crate) fn is_ipv4(text: &str) -> bool {
    ip::parse_ip_sloppy(text).is_some_and(|ip| ip.to_canonical().is_ipv4())
}
