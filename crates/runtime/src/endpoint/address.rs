//! Listen addresses, written as in Go.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A listen address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    Off,
    /// All addresses of the machine.
    Everywhere(u16),
    /// A host, which may resolve to several addresses: the first usable one.
    At(String, u16),
}

/// An invalid listen address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{address:?} is not a listen address: {reason}; write \":8080\", \"127.0.0.1:8080\", \"[::1]:8080\", or \"0\" for none"
)]
#[non_exhaustive]
pub struct InvalidAddress {
    /// The address.
    pub address: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl Address {
    pub(super) fn parse(text: &str) -> Result<Address, InvalidAddress> {
        let wrong = |reason| InvalidAddress { address: text.to_owned(), reason };
        if text.is_empty() || text == "0" {
            return Ok(Address::Off);
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong("it has no port"))?;
        let port = port.parse().map_err(|_| wrong("the port is not a number from 0 to 65535"))?;
        if host.is_empty() {
            return Ok(Address::Everywhere(port));
        }
        let bare =
            host.strip_prefix('[').map(|host| host.strip_suffix(']').ok_or_else(|| wrong("a ] is missing")));
        match bare.transpose()? {
            Some(host) if host.parse::<Ipv6Addr>().is_ok() => Ok(Address::At(host.to_owned(), port)),
            Some(_) => Err(wrong("[] does not contain an IPv6 address")),
            None if host.contains('/') => Err(wrong("it is a URL")),
            None if host.contains(':') => Err(wrong("an IPv6 address needs [] around it")),
            None => Ok(Address::At(host.to_owned(), port)),
        }
    }
}

/// All addresses of the machine: dual-stack first, then IPv4 for a machine without IPv6.
pub(super) fn everywhere(port: u16) -> [SocketAddr; 2] {
    [IpAddr::from(Ipv6Addr::UNSPECIFIED), IpAddr::from(Ipv4Addr::UNSPECIFIED)]
        .map(|ip| SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_as_in_go() {
        let at = |host: &str, port| Ok(Address::At(host.to_owned(), port));
        assert_eq!(Address::parse("0"), Ok(Address::Off));
        assert_eq!(Address::parse(""), Ok(Address::Off));
        assert_eq!(Address::parse(":8080"), Ok(Address::Everywhere(8080)));
        assert_eq!(Address::parse(":0"), Ok(Address::Everywhere(0)));
        assert_eq!(Address::parse("127.0.0.1:0"), at("127.0.0.1", 0));
        assert_eq!(Address::parse("localhost:8081"), at("localhost", 8081));
        assert_eq!(Address::parse("[::1]:80"), at("::1", 80));
    }

    #[test]
    fn an_invalid_address_is_rejected_with_the_reason() {
        for (text, reason) in [
            ("8080", "it has no port"),
            (":http", "the port is not a number"),
            (":65536", "the port is not a number"),
            ("::1:80", "needs []"),
            ("[::1:80", "a ] is missing"),
            ("[localhost]:80", "does not contain an IPv6 address"),
            ("http://localhost:80", "it is a URL"),
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
