//! IP addresses and networks as Go's `net/netip` reads them, without zones and IPv4-mapped addresses.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use k1s_object::field::quote;

use super::{opaque, scan_cost, scan_estimate, size, text, unit_cost, unit_estimate, wrap};
use crate::{
    cost::{CallEstimate, CallNodes, CostEstimate, STRING_FACTOR, SizeEstimate},
    error::EvalError,
    function::{Function, Overload},
    types::Type,
    value::{Opaque, Value},
};

/// An error of Go's parser of addresses.
struct Wrong<'t> {
    message: &'static str,
    /// The part of the text that was not read.
    at: &'t str,
}

impl<'t> Wrong<'t> {
    fn new(message: &'static str) -> Wrong<'t> {
        Wrong { message, at: "" }
    }

    fn at(message: &'static str, at: &'t str) -> Wrong<'t> {
        Wrong { message, at }
    }

    fn text(&self, input: &str) -> String {
        let text = format!("ParseAddr({}): {}", quote(input), self.message);
        if self.at.is_empty() { text } else { format!("{text} (at {})", quote(self.at)) }
    }
}

/// Parses an address; the error is that of the function `ip`.
pub fn parse_ip(text: &str) -> Result<IpAddr, String> {
    let (address, zone) = parse_address(text).map_err(|error| {
        format!("IP Address {} parse error during conversion from string: {}", quote(text), error.text(text))
    })?;
    if zone {
        return Err(format!("IP address {} with zone value is not allowed", quote(text)));
    }
    if is_mapped(address) {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
    }
    Ok(address)
}

/// Parses an address that may have a zone or be IPv4-mapped; the error is that of `netip.ParseAddr`.
pub(super) fn parse_literal(text: &str) -> Result<IpAddr, String> {
    parse_address(text).map(|(address, _)| address).map_err(|error| error.text(text))
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// The address, and whether it has a zone.
fn parse_address(text: &str) -> Result<(IpAddr, bool), Wrong<'_>> {
    match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => Ok((IpAddr::V4(parse_v4(text)?), false)),
        Some(b':') => parse_v6(text),
        Some(_) => Err(Wrong::new("missing IPv6 address")),
        None => Err(Wrong::new("unable to parse IP")),
    }
}

fn parse_v4(text: &str) -> Result<Ipv4Addr, Wrong<'_>> {
    let mut fields = [0u8; 4];
    let mut position = 0;
    let mut value = 0u32;
    let mut digits = 0;
    let mut last = 0u8;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(Wrong::new("IPv4 field has octet with leading zero"));
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(Wrong::new("IPv4 field has value >255"));
                }
            }
            b'.' => {
                if index == 0 || index + 1 == text.len() || last == b'.' {
                    let rest = text.get(index..).unwrap_or_default();
                    return Err(Wrong::at("IPv4 field must have at least one digit", rest));
                }
                if position == 3 {
                    return Err(Wrong::new("IPv4 address too long"));
                }
                if let Some(field) = fields.get_mut(position) {
                    *field = value as u8;
                }
                position += 1;
                (value, digits) = (0, 0);
            }
            _ => return Err(Wrong::at("unexpected character", text.get(index..).unwrap_or_default())),
        }
        last = byte;
    }
    if position < 3 {
        return Err(Wrong::new("IPv4 address too short"));
    }
    fields[3] = value as u8;
    Ok(Ipv4Addr::from(fields))
}

fn parse_v6(input: &str) -> Result<(IpAddr, bool), Wrong<'_>> {
    let (mut rest, zone) = match input.split_once('%') {
        Some((_, "")) => return Err(Wrong::new("zone must be a non-empty string")),
        Some((address, _)) => (address, true),
        None => (input, false),
    };
    let mut bytes: Vec<u8> = Vec::with_capacity(16);
    let mut ellipsis = None;
    if let Some(after) = rest.strip_prefix("::") {
        ellipsis = Some(0);
        rest = after;
        if rest.is_empty() {
            return Ok((IpAddr::V6(Ipv6Addr::UNSPECIFIED), zone));
        }
    }
    while bytes.len() < 16 {
        let mut value = 0u32;
        let mut length = 0;
        for byte in rest.bytes() {
            let Some(digit) = char::from(byte).to_digit(16) else { break };
            value = (value << 4) + digit;
            if length > 3 {
                return Err(Wrong::at("each group must have 4 or less digits", rest));
            }
            length += 1;
        }
        if length == 0 {
            return Err(Wrong::at("each colon-separated field must have at least one digit", rest));
        }
        let after = rest.get(length..).unwrap_or_default();
        if after.starts_with('.') {
            if ellipsis.is_none() && bytes.len() != 12 {
                return Err(Wrong::at(
                    "embedded IPv4 address must replace the final 2 fields of the address",
                    rest,
                ));
            }
            if bytes.len() + 4 > 16 {
                return Err(Wrong::at(
                    "too many hex fields to fit an embedded IPv4 at the end of the address",
                    rest,
                ));
            }
            bytes.extend(parse_v4(rest)?.octets());
            rest = "";
            break;
        }
        bytes.extend((value as u16).to_be_bytes());
        rest = after;
        if rest.is_empty() {
            break;
        }
        match rest.strip_prefix(':') {
            None => return Err(Wrong::at("unexpected character, want colon", rest)),
            Some("") => return Err(Wrong::at("colon must be followed by more characters", rest)),
            Some(after) => rest = after,
        }
        if let Some(after) = rest.strip_prefix(':') {
            if ellipsis.is_some() {
                return Err(Wrong::at("multiple :: in address", rest));
            }
            ellipsis = Some(bytes.len());
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Err(Wrong::at("trailing garbage after address", rest));
    }
    match ellipsis {
        None if bytes.len() < 16 => return Err(Wrong::new("address string too short")),
        Some(_) if bytes.len() == 16 => {
            return Err(Wrong::new("the :: must expand to at least one field of zeros"));
        }
        Some(at) => {
            let zeros = std::iter::repeat_n(0, 16 - bytes.len());
            bytes.splice(at..at, zeros);
        }
        None => {}
    }
    let octets: [u8; 16] = bytes.try_into().map_err(|_| Wrong::new("address string too short"))?;
    Ok((IpAddr::V6(Ipv6Addr::from(octets)), zone))
}

/// Whether the text is an address in its canonical form.
pub fn is_canonical(text: &str) -> Result<bool, String> {
    Ok(parse_ip(text)?.to_string() == text)
}

/// 4 or 6.
pub fn family(ip: IpAddr) -> i64 {
    if ip.is_ipv4() { 4 } else { 6 }
}

/// Whether the address is link-local multicast: `224.0.0.0/24` or `ff02::/16` (with any flags).
pub fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => matches!(ip.octets(), [224, 0, 0, _]),
        IpAddr::V6(ip) => ip.segments().first().is_some_and(|first| first & 0xff0f == 0xff02),
    }
}

/// Whether the address is link-local unicast: `169.254.0.0/16` or `fe80::/10`.
pub fn is_link_local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// Whether the address is global unicast in the sense of Go: also private addresses are.
pub fn is_global_unicast(ip: IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    !broadcast
        && !ip.is_unspecified()
        && !ip.is_loopback()
        && !ip.is_multicast()
        && !is_link_local_unicast(ip)
}

/// A network: an address and the length of its prefix. The address may have bits after the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    /// The address.
    pub ip: IpAddr,
    /// The length of the prefix in bits.
    pub bits: u8,
}

fn bits_of(ip: IpAddr) -> (u128, u8) {
    match ip {
        IpAddr::V4(ip) => (u128::from(ip.to_bits()), 32),
        IpAddr::V6(ip) => (ip.to_bits(), 128),
    }
}

impl Cidr {
    /// Parses a network; the error is that of the function `cidr`.
    pub fn parse(text: &str) -> Result<Cidr, String> {
        const FAILED: &str = "network address parse error during conversion from string: ";
        let cidr = parse_prefix(text)
            .map_err(|error| format!("{FAILED}{FAILED}netip.ParsePrefix({}): {error}", quote(text)))?;
        if is_mapped(cidr.ip) {
            return Err(format!("{FAILED}IPv4-mapped IPv6 address {} is not allowed", quote(text)));
        }
        Ok(cidr)
    }

    /// Whether `ip` and the network's address agree in the first `bits`.
    fn agrees(&self, ip: IpAddr, bits: u8) -> bool {
        let ((a, width), (b, other)) = (bits_of(self.ip), bits_of(ip));
        let shift = u32::from(width.saturating_sub(bits));
        width == other && (a ^ b).checked_shr(shift).unwrap_or_default() == 0
    }

    /// Whether an address is in the network.
    pub fn contains_ip(&self, ip: IpAddr) -> bool {
        self.agrees(ip, self.bits)
    }

    /// Whether another network is a part of this one.
    pub fn contains_cidr(&self, other: &Cidr) -> bool {
        self.bits <= other.bits && self.agrees(other.ip, self.bits)
    }

    /// The network with the bits after the prefix cleared.
    pub fn masked(&self) -> Cidr {
        let (bits, width) = bits_of(self.ip);
        let shift = u32::from(width.saturating_sub(self.bits));
        let kept = bits.checked_shr(shift).and_then(|bits| bits.checked_shl(shift)).unwrap_or_default();
        let ip = match self.ip {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(kept as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(kept)),
        };
        Cidr { ip, bits: self.bits }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.bits)
    }
}

fn parse_prefix(text: &str) -> Result<Cidr, String> {
    let Some((address, bits)) = text.rsplit_once('/') else { return Err("no '/'".to_owned()) };
    let (ip, zone) = parse_address(address).map_err(|error| error.text(address))?;
    if zone {
        return Err("IPv6 zones cannot be present in a prefix".to_owned());
    }
    let wrong = || format!("bad bits after slash: {}", quote(bits));
    if bits.len() > 1 && !bits.starts_with(|c: char| ('1'..='9').contains(&c)) {
        return Err(wrong());
    }
    if bits.is_empty() || !bits.bytes().all(|byte| byte.is_ascii_digit()) || bits.parse::<i64>().is_err() {
        return Err(wrong());
    }
    let most = if ip.is_ipv4() { 32 } else { 128 };
    match bits.parse::<u8>() {
        Ok(bits) if bits <= most => Ok(Cidr { ip, bits }),
        _ => Err("prefix length out of range".to_owned()),
    }
}

/// An address as a value.
#[derive(Debug)]
struct Ip(IpAddr);

impl Opaque for Ip {
    fn type_name(&self) -> &str {
        "net.IP"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.downcast::<Ip>().is_some_and(|other| other.0 == self.0)
    }

    fn size(&self) -> u64 {
        if self.0.is_ipv4() { 4 } else { 16 }
    }

    fn equality_cost(&self) -> Option<u64> {
        Some(1)
    }
}

impl Opaque for Cidr {
    fn type_name(&self) -> &str {
        "net.CIDR"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.downcast::<Cidr>() == Some(self)
    }

    fn size(&self) -> u64 {
        u64::from(self.bits.div_ceil(8))
    }

    fn equality_cost(&self) -> Option<u64> {
        Some(1)
    }
}

fn ip_argument(args: &[Value<'_>], index: usize) -> Result<IpAddr, EvalError> {
    opaque::<Ip>(args, index).map(|ip| ip.0)
}

fn property(id: &'static str, holds: crate::function::Call) -> Overload {
    Overload::member(id, vec![Type::opaque("net.IP")], Type::Bool, holds).with_cost(unit_estimate, unit_cost)
}

/// The cost of comparing an address with a network, and of reading it if it is text.
fn contains_ip_cost(args: &[Value<'_>], _: &Value<'_>) -> Option<u64> {
    let read = match args.get(1) {
        Some(text @ Value::String(_)) => super::scaled(text.size(), STRING_FACTOR),
        _ => 0,
    };
    Some(super::scaled(size(args, 0).saturating_mul(2), STRING_FACTOR) + read)
}

/// The cost of masking a network and comparing it with another, and of reading that if it is text.
fn contains_cidr_cost(args: &[Value<'_>], result: &Value<'_>) -> Option<u64> {
    let compared = contains_ip_cost(args, result)?;
    Some(compared + super::scaled(size(args, 0), STRING_FACTOR) + 1)
}

/// The bytes of an address.
const BYTES: SizeEstimate = SizeEstimate::range(4, 16);

fn contains_ip_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    Some(CallEstimate::new(BYTES.plus(BYTES).cost(STRING_FACTOR).plus(read_estimate(nodes)?)))
}

fn contains_cidr_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    let masked = BYTES.cost(STRING_FACTOR).plus(CostEstimate::fixed(1));
    let compared = BYTES.plus(BYTES).cost(STRING_FACTOR);
    Some(CallEstimate::new(compared.plus(masked).plus(read_estimate(nodes)?)))
}

/// The cost of reading the argument if it is text.
fn read_estimate(nodes: &CallNodes<'_, '_>) -> Option<CostEstimate> {
    let argument = nodes.args().first()?;
    Some(match argument.ty() {
        Type::String => nodes.size(argument).cost(STRING_FACTOR),
        _ => CostEstimate::fixed(0),
    })
}

fn double_scan_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    Some(CallEstimate::new(nodes.size(nodes.args().first()?).cost(2.0 * STRING_FACTOR)))
}

/// The functions of the libraries `kubernetes.net.ip` and `kubernetes.net.cidr`.
pub(super) fn functions() -> Vec<Function> {
    let ip = || Type::opaque("net.IP");
    let cidr = || Type::opaque("net.CIDR");
    let parsed = |id, result, call| {
        Overload::global(id, vec![Type::String], result, call).with_cost(scan_estimate, scan_cost)
    };
    let of_cidr = |id, result, call| {
        Overload::member(id, vec![cidr()], result, call).with_cost(unit_estimate, unit_cost)
    };
    let contains_ip = |id, argument, call| {
        Overload::member(id, vec![cidr(), argument], Type::Bool, call)
            .with_cost(contains_ip_estimate, contains_ip_cost)
    };
    let contains_cidr = |id, argument, call| {
        Overload::member(id, vec![cidr(), argument], Type::Bool, call)
            .with_cost(contains_cidr_estimate, contains_cidr_cost)
    };
    vec![
        Function::new(
            "ip",
            vec![
                parsed("string_to_ip", ip(), |args| {
                    Ok(wrap(Ip(parse_ip(text(args, 0)?).map_err(EvalError::new)?)))
                }),
                of_cidr("cidr_ip", ip(), |args| Ok(wrap(Ip(opaque::<Cidr>(args, 0)?.ip)))),
            ],
        ),
        Function::new(
            "isIP",
            vec![parsed("is_ip", Type::Bool, |args| Ok(parse_ip(text(args, 0)?).is_ok().into()))],
        ),
        Function::new(
            "ip.isCanonical",
            vec![
                Overload::global("ip_is_canonical", vec![Type::String], Type::Bool, |args| {
                    Ok(is_canonical(text(args, 0)?).map_err(EvalError::new)?.into())
                })
                .with_cost(double_scan_estimate, |args, _| {
                    Some(super::scaled(size(args, 0), 2.0 * STRING_FACTOR))
                }),
            ],
        ),
        Function::new(
            "family",
            vec![
                Overload::member("ip_family", vec![ip()], Type::Int, |args| {
                    Ok(family(ip_argument(args, 0)?).into())
                })
                .with_cost(unit_estimate, unit_cost),
            ],
        ),
        Function::new(
            "isUnspecified",
            vec![property("ip_is_unspecified", |args| Ok(ip_argument(args, 0)?.is_unspecified().into()))],
        ),
        Function::new(
            "isLoopback",
            vec![property("ip_is_loopback", |args| Ok(ip_argument(args, 0)?.is_loopback().into()))],
        ),
        Function::new(
            "isLinkLocalMulticast",
            vec![property("ip_is_link_local_multicast", |args| {
                Ok(is_link_local_multicast(ip_argument(args, 0)?).into())
            })],
        ),
        Function::new(
            "isLinkLocalUnicast",
            vec![property("ip_is_link_local_unicast", |args| {
                Ok(is_link_local_unicast(ip_argument(args, 0)?).into())
            })],
        ),
        Function::new(
            "isGlobalUnicast",
            vec![property(
                "ip_is_global_unicast",
                |args| Ok(is_global_unicast(ip_argument(args, 0)?).into()),
            )],
        ),
        Function::new(
            "cidr",
            vec![parsed("string_to_cidr", cidr(), |args| {
                Ok(wrap(Cidr::parse(text(args, 0)?).map_err(EvalError::new)?))
            })],
        ),
        Function::new(
            "isCIDR",
            vec![parsed("is_cidr", Type::Bool, |args| Ok(Cidr::parse(text(args, 0)?).is_ok().into()))],
        ),
        Function::new(
            "prefixLength",
            vec![of_cidr("cidr_prefix_length", Type::Int, |args| {
                Ok(i64::from(opaque::<Cidr>(args, 0)?.bits).into())
            })],
        ),
        Function::new(
            "masked",
            vec![of_cidr("cidr_masked", cidr(), |args| Ok(wrap(opaque::<Cidr>(args, 0)?.masked())))],
        ),
        Function::new(
            "containsIP",
            vec![
                contains_ip("cidr_contains_ip_string", Type::String, |args| {
                    // As upstream: the error of the parser is lost.
                    let ip = parse_ip(text(args, 1)?).map_err(|_| EvalError::NoSuchOverload)?;
                    Ok(opaque::<Cidr>(args, 0)?.contains_ip(ip).into())
                }),
                contains_ip("cidr_contains_ip_ip", ip(), |args| {
                    Ok(opaque::<Cidr>(args, 0)?.contains_ip(ip_argument(args, 1)?).into())
                }),
            ],
        ),
        Function::new(
            "containsCIDR",
            vec![
                contains_cidr("cidr_contains_cidr_string", Type::String, |args| {
                    let other = Cidr::parse(text(args, 1)?).map_err(EvalError::new)?;
                    Ok(opaque::<Cidr>(args, 0)?.contains_cidr(&other).into())
                }),
                contains_cidr("cidr_contains_cidr", cidr(), |args| {
                    Ok(opaque::<Cidr>(args, 0)?.contains_cidr(opaque::<Cidr>(args, 1)?).into())
                }),
            ],
        ),
        Function::new(
            "string",
            vec![
                Overload::global("ip_to_string", vec![ip()], Type::String, |args| {
                    Ok(ip_argument(args, 0)?.to_string().into())
                }),
                Overload::global("cidr_to_string", vec![cidr()], Type::String, |args| {
                    Ok(opaque::<Cidr>(args, 0)?.to_string().into())
                }),
            ],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_strictly() {
        for (text, error) in [
            ("192.168.0.1", None),
            ("::", None),
            ("2001:db8::68", None),
            ("::1.2.3.4", None),
            ("192.168.0.1.0", Some("ParseAddr(\"192.168.0.1.0\"): IPv4 address too long")),
            ("192.168.01.1", Some("ParseAddr(\"192.168.01.1\"): IPv4 field has octet with leading zero")),
            ("1.2.3", Some("ParseAddr(\"1.2.3\"): IPv4 address too short")),
            ("1..2.3", Some("ParseAddr(\"1..2.3\"): IPv4 field must have at least one digit (at \".2.3\")")),
            ("1.2.3.x", Some("ParseAddr(\"1.2.3.x\"): unexpected character (at \"x\")")),
            ("1.2.3.256", Some("ParseAddr(\"1.2.3.256\"): IPv4 field has value >255")),
            ("", Some("ParseAddr(\"\"): unable to parse IP")),
            ("abc", Some("ParseAddr(\"abc\"): unable to parse IP")),
            ("%eth0", Some("ParseAddr(\"%eth0\"): missing IPv6 address")),
            ("::1%", Some("ParseAddr(\"::1%\"): zone must be a non-empty string")),
            ("1:2:3", Some("ParseAddr(\"1:2:3\"): address string too short")),
            ("1::2::3", Some("ParseAddr(\"1::2::3\"): multiple :: in address (at \":3\")")),
            (
                "12345::",
                Some("ParseAddr(\"12345::\"): each group must have 4 or less digits (at \"12345::\")"),
            ),
            (
                "1:2:3:4:5:6:7:8:9",
                Some("ParseAddr(\"1:2:3:4:5:6:7:8:9\"): trailing garbage after address (at \"9\")"),
            ),
            (
                "1:2:3:4:5:6:7::8",
                Some("ParseAddr(\"1:2:3:4:5:6:7::8\"): the :: must expand to at least one field of zeros"),
            ),
            ("1:", Some("ParseAddr(\"1:\"): colon must be followed by more characters (at \":\")")),
        ] {
            let expected = error.map(|error| {
                format!("IP Address {} parse error during conversion from string: {error}", quote(text))
            });
            assert_eq!(parse_ip(text).err(), expected, "{text}");
        }
        assert_eq!(
            parse_ip("fe80::1%eth0").unwrap_err(),
            "IP address \"fe80::1%eth0\" with zone value is not allowed"
        );
        assert_eq!(
            parse_ip("::ffff:1.2.3.4").unwrap_err(),
            "IPv4-mapped IPv6 address \"::ffff:1.2.3.4\" is not allowed"
        );
    }

    #[test]
    fn addresses_have_properties() {
        for (ip, loopback, unspecified, multicast, link_local, global) in [
            ("127.0.0.1", true, false, false, false, false),
            ("::1", true, false, false, false, false),
            ("0.0.0.0", false, true, false, false, false),
            ("::", false, true, false, false, false),
            ("224.0.0.1", false, false, true, false, false),
            ("224.0.1.1", false, false, false, false, false),
            ("ff02::1", false, false, true, false, false),
            ("fd00::1", false, false, false, false, true),
            ("169.254.169.254", false, false, false, true, false),
            ("fe80::1", false, false, false, true, false),
            ("192.168.0.1", false, false, false, false, true),
            ("255.255.255.255", false, false, false, false, false),
        ] {
            let ip = parse_ip(ip).unwrap();
            assert_eq!(
                (
                    ip.is_loopback(),
                    ip.is_unspecified(),
                    is_link_local_multicast(ip),
                    is_link_local_unicast(ip),
                    is_global_unicast(ip)
                ),
                (loopback, unspecified, multicast, link_local, global),
                "{ip}"
            );
        }
        assert_eq!(is_canonical("2001:db8::abcd"), Ok(true));
        assert_eq!(is_canonical("2001:DB8:0:0:0:0:0:ABCD"), Ok(false));
    }

    #[test]
    fn networks_contain_addresses_and_networks() {
        let net = |text: &str| Cidr::parse(text).unwrap();
        for (outer, inner, contains) in [
            ("192.168.0.0/24", "192.168.0.0/25", true),
            ("192.168.0.0/24", "192.168.0.0/24", true),
            ("192.168.0.0/24", "192.168.0.0/23", false),
            ("192.168.0.0/24", "192.169.0.0/25", false),
            ("0.0.0.0/0", "192.168.0.0/16", true),
            ("::/0", "2001:db8::/32", true),
            ("2001:db8::/32", "2001:db8::/33", true),
            ("::/0", "10.0.0.0/8", false),
        ] {
            assert_eq!(net(outer).contains_cidr(&net(inner)), contains, "{outer} {inner}");
        }
        assert!(net("10.0.0.0/8").contains_ip(parse_ip("10.1.2.3").unwrap()));
        assert!(!net("10.0.0.0/8").contains_ip(parse_ip("11.1.2.3").unwrap()));
        assert!(!net("::/0").contains_ip(parse_ip("11.1.2.3").unwrap()));
        assert_eq!(net("192.168.0.1/24").masked(), net("192.168.0.0/24"));
        assert_eq!(net("2001:db8::1/0").masked().to_string(), "::/0");
        assert_eq!(net("192.168.0.1/24").to_string(), "192.168.0.1/24");
        for (text, error) in [
            ("10.0.0.0", "no '/'"),
            ("10.0.0.0/08", "bad bits after slash: \"08\""),
            ("10.0.0.0/", "bad bits after slash: \"\""),
            ("10.0.0.0/33", "prefix length out of range"),
            ("10.0.0.x/3", "ParseAddr(\"10.0.0.x\"): unexpected character (at \"x\")"),
            ("fe80::1%a/64", "IPv6 zones cannot be present in a prefix"),
        ] {
            let failed = "network address parse error during conversion from string: ";
            assert_eq!(
                Cidr::parse(text).unwrap_err(),
                format!("{failed}{failed}netip.ParsePrefix({}): {error}", quote(text))
            );
        }
    }
}
