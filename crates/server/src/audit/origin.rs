//! Who sent a request, and from where.

use std::{
    borrow::Cow,
    io::Write as _,
    net::{IpAddr, Ipv4Addr},
};

use http::{HeaderMap, HeaderName, Uri, header};
use jiff::Timestamp;

use super::{
    event::{text_of, write_text, write_user},
    head::{Head, Mark, Reference},
    policy::Level,
};
use crate::{identity::User, request::Verb};

/// The address of the client of a connection, in the extensions of its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Remote(pub(crate) IpAddr);

/// What a request is known by before its sender is.
pub(super) struct Arrival<'a> {
    pub(super) id: &'a [u8],
    pub(super) uri: &'a Uri,
    pub(super) remote: Option<IpAddr>,
    pub(super) received: Timestamp,
}

/// Encodes what is known of a request when its sender is authenticated; without a user, he could not be.
pub(super) fn head(
    level: Level,
    arrival: &Arrival<'_>,
    verb: Verb<'_>,
    user: Option<&User>,
    headers: &HeaderMap,
    reference: Option<&Reference<'_>>,
) -> Head {
    let mut head = Head::new(level, arrival.id);
    let out = head.text();
    out.extend_from_slice(br#","requestURI":"#);
    write_text(out, &redacted(arrival.uri));
    out.extend_from_slice(br#","verb":"#);
    write_text(out, verb.as_str());
    out.extend_from_slice(br#","user":"#);
    match user {
        Some(user) => write_user(out, user),
        None => out.extend_from_slice(b"{}"),
    }
    head.mark(Mark::Impersonated);
    let out = head.text();
    let addresses = source_addresses(headers, arrival.remote);
    for (number, address) in addresses.iter().enumerate() {
        out.extend_from_slice(if number == 0 { br#","sourceIPs":["# } else { b"," });
        out.push(b'"');
        match address {
            IpAddr::V4(address) => write_v4(out, *address),
            // Writing to memory does not fail.
            IpAddr::V6(address) => drop(write!(out, "{address}")),
        }
        out.push(b'"');
    }
    if !addresses.is_empty() {
        out.push(b']');
    }
    let agent = user_agent(headers);
    if !agent.is_empty() {
        out.extend_from_slice(br#","userAgent":"#);
        write_text(out, &agent);
    }
    if let Some(reference) = reference {
        head.reference(reference);
    }
    head.end(arrival.received)
}

fn write_v4(out: &mut Vec<u8>, address: Ipv4Addr) {
    for (number, octet) in address.octets().into_iter().enumerate() {
        if number > 0 {
            out.push(b'.');
        }
        for place in [100, 10, 1] {
            if octet >= place || place == 1 {
                out.push(b'0' + octet / place % 10);
            }
        }
    }
}

/// Maximum length of a user agent.
const MAX_USER_AGENT: usize = 1024;

fn user_agent(headers: &HeaderMap) -> Cow<'_, str> {
    let sent = headers.get(header::USER_AGENT).map(|value| text_of(value.as_bytes()));
    let mut agent = sent.unwrap_or_default();
    if agent.len() > MAX_USER_AGENT {
        let agent = agent.to_mut();
        agent.truncate(agent.floor_char_boundary(MAX_USER_AGENT));
        agent.push_str("...TRUNCATED");
    }
    agent
}

const FORWARDED: HeaderName = HeaderName::from_static("x-forwarded-for");
const REAL: HeaderName = HeaderName::from_static("x-real-ip");

/// The addresses that a request has come through: those that proxies report, which clients can make up, and that of the
/// connection at last.
fn source_addresses(headers: &HeaderMap, remote: Option<IpAddr>) -> Vec<IpAddr> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut found: Vec<IpAddr> =
        text(FORWARDED).split(',').filter_map(|part| part.trim().parse().ok()).collect();
    if let Ok(real) = text(REAL).parse()
        && !found.contains(&real)
    {
        found.push(real);
    }
    let remote = remote.map(|address| address.to_canonical());
    if let Some(remote) = remote.filter(|remote| found.last() != Some(remote)) {
        found.push(remote);
    }
    found
}

/// The path and query of a request as it was sent, without the tokens in it.
fn redacted(uri: &Uri) -> Cow<'_, str> {
    let sent = uri.path_and_query().map_or("/", |sent| sent.as_str());
    let Some((path, query)) = sent.split_once('?') else { return sent.into() };
    let parameters: Vec<&str> = query.split('&').collect();
    let hides = |parameter: &str| {
        let name = parameter.split('=').next().unwrap_or_default();
        let decoded = form_urlencoded::parse(name.as_bytes()).next();
        decoded.is_some_and(|(name, _)| name.to_ascii_lowercase().ends_with("token"))
    };
    if !parameters.iter().any(|parameter| hides(parameter)) {
        return sent.into();
    }
    let shown = parameters.into_iter().map(|parameter| match parameter.split_once('=') {
        Some((name, _)) if hides(parameter) => format!("{name}=REDACTED"),
        _ => parameter.to_owned(),
    });
    format!("{path}?{}", shown.collect::<Vec<_>>().join("&")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn tokens_in_a_query_are_hidden() {
        for (sent, shown) in [
            ("/api", "/api"),
            ("/api/v1/pods?limit=5&continue=abc", "/api/v1/pods?limit=5&continue=abc"),
            ("/api?token=secret", "/api?token=REDACTED"),
            ("/api?a=1&access_token=secret&b", "/api?a=1&access_token=REDACTED&b"),
            ("/api?%74oken=secret", "/api?%74oken=REDACTED"),
            ("/api?Id_Token=secret", "/api?Id_Token=REDACTED"),
            ("/api?token", "/api?token"),
            ("/api?labelSelector=token%3Da", "/api?labelSelector=token%3Da"),
        ] {
            assert_eq!(redacted(&sent.parse().unwrap()), shown);
        }
    }

    #[test]
    fn source_addresses_end_with_that_of_the_connection() {
        let found = |list: &[(&'static str, &'static str)], remote: Option<&str>| {
            let remote = remote.map(|address| address.parse().unwrap());
            let found = source_addresses(&headers(list), remote);
            found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let forwarded = ("x-forwarded-for", "1.1.1.1, nonsense, 2.2.2.2");
        assert_eq!(found(&[], None), "");
        assert_eq!(found(&[], Some("9.9.9.9")), "9.9.9.9");
        assert_eq!(found(&[], Some("::ffff:9.9.9.9")), "9.9.9.9");
        assert_eq!(found(&[forwarded], Some("9.9.9.9")), "1.1.1.1 2.2.2.2 9.9.9.9");
        assert_eq!(found(&[forwarded], Some("2.2.2.2")), "1.1.1.1 2.2.2.2");
        assert_eq!(found(&[forwarded, ("x-real-ip", "1.1.1.1")], None), "1.1.1.1 2.2.2.2");
        assert_eq!(found(&[("x-real-ip", "fe80::1")], Some("::1")), "fe80::1 ::1");
    }

    #[test]
    fn addresses_are_written_as_by_the_standard_library() {
        for text in ["0.0.0.0", "1.20.100.255", "127.0.0.1", "10.99.101.9"] {
            let mut out = Vec::new();
            write_v4(&mut out, text.parse().unwrap());
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }

    #[test]
    fn a_long_user_agent_is_cut() {
        let long: &'static str = "a".repeat(2000).leak();
        let sent = headers(&[("user-agent", long)]);
        assert_eq!(user_agent(&sent), format!("{}...TRUNCATED", "a".repeat(1024)));
        assert_eq!(user_agent(&headers(&[("user-agent", "curl/8")])), "curl/8");
    }
}
