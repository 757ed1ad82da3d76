//! Which addresses this server connects to when they are not its administrator's choice.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where clouds answer machines about themselves, credentials included, outside of the link-local addresses.
const METADATA: [IpAddr; 5] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Whether an address may be connected to: it is neither loopback, unspecified, link-local, multicast nor broadcast, nor one of
/// a cloud's metadata.
pub(super) fn is_allowed(address: IpAddr) -> bool {
    let address = address.to_canonical();
    if METADATA.contains(&address) {
        return false;
    }
    match address {
        IpAddr::V4(v4) => {
            // Of 0.0.0.0/8 some systems take more than the unspecified address for themselves.
            let is_own = v4.is_loopback() || v4.octets()[0] == 0;
            !(is_own || v4.is_link_local() || v4.is_multicast() || v4.is_broadcast())
        }
        IpAddr::V6(v6) => {
            let is_own = v6.is_loopback() || v6.is_unspecified();
            !(is_own || v6.is_unicast_link_local() || v6.is_multicast())
                && embedded(v6).is_none_or(|v4| is_allowed(v4.into()))
        }
    }
}

/// The IPv4 address that a translator or a tunnel connects to for an IPv6 address.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_the_administrators_choice() {
        for address in [
            "10.1.2.3",
            "192.168.0.1",
            "8.8.8.8",
            "2001:db8::1",
            "fd00::1",
            "64:ff9b::808:808",
            "::ffff:10.1.2.3",
            "2002:808:808::1",
        ] {
            assert!(is_allowed(address.parse().unwrap()), "{address}");
        }
        let own = ["127.0.0.1", "127.8.8.8", "0.0.0.0", "0.1.2.3", "::1", "::", "::127.0.0.1"];
        let network = ["169.254.169.254", "224.0.0.1", "255.255.255.255", "fe80::1", "ff02::1"];
        let metadata = ["168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"];
        let wrapped = [
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
        ];
        for address in [&own[..], &network, &metadata, &wrapped].concat() {
            assert!(!is_allowed(address.parse().unwrap()), "{address}");
        }
    }
}
