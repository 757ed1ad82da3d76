//! IP addresses and networks, with the messages of Kubernetes.
//!
//! Old fields accept the sloppy forms that Go's `net.ParseIP` once accepted, such as `010.1.2.3`; strict
//! validation rejects the ambiguous ones, unless the stored object has them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::field::{At, quote};

/// A network: an address and a prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    /// The address before the slash, as written; an IPv4-mapped one stays IPv6.
    pub ip: IpAddr,
    /// The length of the prefix.
    pub bits: u8,
}

impl Cidr {
    /// The address with the bits beyond the prefix cleared.
    pub fn masked(self) -> IpAddr {
        match self.ip {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask))
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask))
            }
        }
    }

    /// Whether `ip` is in this network.
    pub fn contains(self, ip: IpAddr) -> bool {
        let same_family = self.ip.is_ipv4() == ip.is_ipv4();
        same_family && Cidr { ip, bits: self.bits }.masked() == self.masked()
    }

    /// The network in its canonical form: `10.0.0.0/8`.
    pub fn network(self) -> String {
        canonical(self.masked(), self.bits)
    }
}

/// `ip/bits`, with IPv4-mapped addresses as IPv4.
fn canonical(ip: IpAddr, bits: u8) -> String {
    let mapped = matches!(ip, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
    let bits = if mapped { bits.saturating_sub(96) } else { bits };
    format!("{}/{bits}", ip.to_canonical())
}

/// A number and the text after it; None if there is no digit or it is too large.
fn number(text: &str, radix: u32) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_digit(radix)).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    if digits.is_empty() {
        return None;
    }
    let mut value = 0_u32;
    for digit in digits.chars().filter_map(|c| c.to_digit(radix)) {
        value = value * radix + digit;
        if value >= 0xFF_FFFF {
            return None;
        }
    }
    Some((value, rest))
}

fn parse_ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let mut rest = text;
    for (i, octet) in octets.iter_mut().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix('.')?;
        }
        let (value, after) = number(rest, 10)?;
        *octet = u8::try_from(value).ok()?;
        rest = after;
    }
    rest.is_empty().then(|| Ipv4Addr::from(octets))
}

fn parse_ipv6(text: &str) -> Option<Ipv6Addr> {
    let mut groups: Vec<u16> = Vec::with_capacity(8);
    let mut ellipsis = None;
    let mut rest = text;
    if let Some(after) = rest.strip_prefix("::") {
        ellipsis = Some(0);
        rest = after;
    }
    while !rest.is_empty() || ellipsis.is_none() {
        if groups.len() == 8 {
            return None;
        }
        let (value, after) = number(rest, 16)?;
        let value = u16::try_from(value).ok()?;
        if after.starts_with('.') {
            if groups.len() > 6 || (ellipsis.is_none() && groups.len() != 6) {
                return None;
            }
            let bits = parse_ipv4(rest)?.to_bits();
            groups.extend([(bits >> 16) as u16, bits as u16]);
            break;
        }
        groups.push(value);
        if after.is_empty() {
            break;
        }
        rest = after.strip_prefix(':').filter(|rest| !rest.is_empty())?;
        if let Some(after) = rest.strip_prefix(':') {
            if ellipsis.is_some() {
                return None;
            }
            ellipsis = Some(groups.len());
            rest = after;
        }
    }
    match ellipsis {
        None if groups.len() < 8 => return None,
        Some(_) if groups.len() == 8 => return None,
        Some(at) => {
            let missing = 8 - groups.len();
            groups.splice(at..at, std::iter::repeat_n(0, missing));
        }
        None => {}
    }
    <[u16; 8]>::try_from(groups).ok().map(Ipv6Addr::from)
}

/// Parses an address; octets may have leading zeros.
pub fn parse_ip_sloppy(text: &str) -> Option<IpAddr> {
    match text.find(['.', ':']).and_then(|at| text.as_bytes().get(at)) {
        Some(b'.') => parse_ipv4(text).map(IpAddr::V4),
        Some(_) => parse_ipv6(text).map(IpAddr::V6),
        None => None,
    }
}

/// Parses a network; octets and prefix length may have leading zeros.
pub fn parse_cidr_sloppy(text: &str) -> Option<Cidr> {
    let (address, bits) = text.split_once('/')?;
    let ip = match parse_ipv4(address) {
        Some(ip) => IpAddr::V4(ip),
        None => IpAddr::V6(parse_ipv6(address)?),
    };
    let (bits, rest) = number(bits, 10)?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    (rest.is_empty() && bits <= most).then_some(Cidr { ip, bits: u8::try_from(bits).ok()? })
}

fn strict_cidr(text: &str) -> Option<Cidr> {
    let (address, bits) = text.split_once('/')?;
    let cidr = parse_cidr_sloppy(text)?;
    let leading_zero = bits.len() > 1 && bits.starts_with('0');
    (!leading_zero && address.parse::<IpAddr>().is_ok()).then_some(cidr)
}

fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

fn checked_ip(at: At<'_, '_>, strict: bool) -> Option<IpAddr> {
    let value = at.text();
    let Some(ip) = parse_ip_sloppy(value) else {
        at.invalid_text("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
        return None;
    };
    let mut right = true;
    if strict {
        match value.parse::<IpAddr>() {
            Err(_) => {
                right = false;
                at.invalid_text("must not have leading 0s");
            }
            Ok(ip) if is_mapped(ip) => {
                right = false;
                at.invalid_text("must not be an IPv4-mapped IPv6 address");
            }
            Ok(_) => {}
        }
    }
    right.then_some(ip)
}

/// An address in a field that predates strict validation; `strict` is the default of Kubernetes. Values of the
/// stored object (`old`) stay valid.
pub fn is_valid_ip_for_legacy_field(at: At<'_, '_>, strict: bool, old: &[&str]) {
    if !old.contains(&at.text()) {
        checked_ip(at, strict);
    }
}

/// An address in canonical form.
pub fn is_valid_ip(at: At<'_, '_>) {
    if let Some(ip) = checked_ip(at, true)
        && ip.to_canonical().to_string() != at.text()
    {
        at.invalid_text(format!("must be in canonical form ({})", quote(&ip.to_canonical().to_string())));
    }
}

fn checked_cidr(at: At<'_, '_>, strict: bool) -> Option<Cidr> {
    let Some(cidr) = parse_cidr_sloppy(at.text()) else {
        at.invalid_text("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
        return None;
    };
    if strict {
        let wrong = match strict_cidr(at.text()) {
            None => Some("must not have leading 0s in IP or prefix length"),
            Some(cidr) if is_mapped(cidr.ip) => Some("must not have an IPv4-mapped IPv6 address"),
            Some(cidr) if cidr.masked() != cidr.ip => Some("must not have bits set beyond the prefix length"),
            Some(_) => None,
        };
        if let Some(wrong) = wrong {
            at.invalid_text(wrong);
            return None;
        }
    }
    Some(cidr)
}

/// A network in a field that predates strict validation. Values of the stored object (`old`) stay valid.
pub fn is_valid_cidr_for_legacy_field(at: At<'_, '_>, strict: bool, old: &[&str]) {
    if !old.contains(&at.text()) {
        checked_cidr(at, strict);
    }
}

/// A network in canonical form.
pub fn is_valid_cidr(at: At<'_, '_>) {
    if let Some(cidr) = checked_cidr(at, true)
        && cidr.network() != at.text()
    {
        at.invalid_text(format!("must be in canonical form ({})", quote(&cidr.network())));
    }
}

/// An interface address, with the prefix length of its network, in canonical form: `192.168.1.5/24`.
pub fn is_valid_interface_address(at: At<'_, '_>) {
    let Some(cidr) = parse_cidr_sloppy(at.text()) else {
        return at.invalid_text("must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)");
    };
    let canonical = canonical(cidr.ip, cidr.bits);
    if canonical != at.text() {
        at.invalid_text(format!("must be in canonical form ({})", quote(&canonical)));
    }
}

/// The warnings for a valid address of a legacy field in non-canonical form.
pub fn get_warnings_for_ip(path: &str, value: &str) -> Vec<String> {
    let Some(ip) = parse_ip_sloppy(value) else { return Vec::new() };
    let strict = value.parse::<IpAddr>().ok().filter(|&ip| !is_mapped(ip));
    match strict {
        None => vec![format!(
            "{path}: non-standard IP address {} is invalid: use {}",
            quote(value),
            quote(&ip.to_canonical().to_string())
        )],
        Some(ip) if ip.is_ipv6() && ip.to_string() != value => vec![format!(
            "{path}: IPv6 address {} should be in RFC 5952 canonical format ({})",
            quote(value),
            quote(&ip.to_string())
        )],
        Some(_) => Vec::new(),
    }
}

/// The warnings for a valid network of a legacy field in non-canonical form.
pub fn get_warnings_for_cidr(path: &str, value: &str) -> Vec<String> {
    let Some(cidr) = parse_cidr_sloppy(value) else { return Vec::new() };
    let mut warnings = Vec::new();
    let network = quote(&cidr.network());
    if cidr.masked().to_canonical() != cidr.ip.to_canonical() {
        let most = if cidr.ip.is_ipv4() { 32 } else { 128 };
        warnings.push(format!(
            "{path}: CIDR value {} is ambiguous in this context (should be {network} or {}?)",
            quote(value),
            quote(&format!("{}/{most}", cidr.ip.to_canonical()))
        ));
    }
    let strict = strict_cidr(value).filter(|cidr| !is_mapped(cidr.ip));
    match strict {
        None => warnings
            .push(format!("{path}: non-standard CIDR value {} is invalid: use {network}", quote(value))),
        Some(cidr) => {
            let written = format!("{}/{}", cidr.ip, cidr.bits);
            if warnings.is_empty() && cidr.ip.is_ipv6() && written != value {
                warnings.push(format!(
                    "{path}: IPv6 CIDR value {} should be in RFC 5952 canonical format ({})",
                    quote(value),
                    quote(&written)
                ));
            }
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::field::Check;

    fn errors(value: &str, rule: impl Fn(At<'_, '_>)) -> Vec<String> {
        let value = json!(value);
        let check = Check::new();
        rule(check.at("ip", Some(&value)));
        check.take().iter().map(|error| error.detail.clone()).collect()
    }

    #[test]
    fn addresses_are_canonical_where_they_must_be() {
        let cases: [(&str, &[&str]); 8] = [
            ("10.0.0.1", &[]),
            ("2001:db8::1", &[]),
            ("nope", &["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
            ("1.2.3.256", &["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
            ("010.0.0.1", &["must not have leading 0s"]),
            ("::ffff:1.2.3.4", &["must not be an IPv4-mapped IPv6 address"]),
            ("2001:DB8:0::1", &["must be in canonical form (\"2001:db8::1\")"]),
            ("fe80::1%eth0", &["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
        ];
        for (value, expected) in cases {
            assert_eq!(errors(value, is_valid_ip), expected, "{value}");
        }
        assert!(errors("2001:DB8:0::1", |at| is_valid_ip_for_legacy_field(at, true, &[])).is_empty());
        assert!(errors("010.0.0.1", |at| is_valid_ip_for_legacy_field(at, false, &[])).is_empty());
        assert!(errors("010.0.0.1", |at| is_valid_ip_for_legacy_field(at, true, &["010.0.0.1"])).is_empty());
    }

    #[test]
    fn networks_have_no_bits_beyond_their_prefix() {
        let cases: [(&str, &[&str]); 6] = [
            ("10.0.0.0/8", &[]),
            ("10.0.0.0", &["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
            ("10.0.0.0/33", &["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
            ("10.0.0.0/08", &["must not have leading 0s in IP or prefix length"]),
            ("10.0.0.1/8", &["must not have bits set beyond the prefix length"]),
            ("2001:0db8::/32", &["must be in canonical form (\"2001:db8::/32\")"]),
        ];
        for (value, expected) in cases {
            assert_eq!(errors(value, is_valid_cidr), expected, "{value}");
        }
        assert!(errors("192.168.1.5/24", is_valid_interface_address).is_empty());
        assert!(parse_cidr_sloppy("10.0.0.0/0").is_some_and(|net| net.contains(IpAddr::from([1, 2, 3, 4]))));
    }

    #[test]
    fn odd_forms_are_warned_about() {
        assert_eq!(
            get_warnings_for_ip("spec.clusterIP", "010.0.0.1"),
            ["spec.clusterIP: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\""]
        );
        assert_eq!(
            get_warnings_for_cidr("f", "10.0.0.1/8"),
            [
                "f: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.0.0.1/32\"?)"
            ]
        );
    }

    proptest! {
        #[test]
        fn addresses_agree_with_the_standard_library(bits: u128, v4: u32) {
            for ip in [IpAddr::V6(Ipv6Addr::from_bits(bits)), IpAddr::V4(Ipv4Addr::from_bits(v4))] {
                prop_assert_eq!(parse_ip_sloppy(&ip.to_string()), Some(ip));
            }
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[0-9a-f:./]{0,30}|\\PC{0,12}") {
            parse_cidr_sloppy(&text);
            if let Ok(ip) = text.parse::<IpAddr>() {
                prop_assert_eq!(parse_ip_sloppy(&text), Some(ip));
            }
        }
    }
}
