//! Who sent a request, and from where.

use std::net::IpAddr;

use http::{HeaderMap, Uri, header};
use jiff::Timestamp;

use super::event::{Origin, user_info, write};
use crate::{identity::User, request::Verb};

/// The address of the client of a connection, in the extensions of its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Remote(pub(crate) IpAddr);

/// What a request is known by before its sender is.
pub(super) struct Arrival<'a> {
    pub(super) id: &'a str,
    pub(super) uri: &'a Uri,
    pub(super) remote: Option<IpAddr>,
    pub(super) received: Timestamp,
}

impl Origin {
    /// Encodes what is known of a request when its sender is authenticated; without a user, he could not be.
    pub(super) fn new(
        arrival: &Arrival<'_>,
        verb: Verb<'_>,
        user: Option<&User>,
        headers: &HeaderMap,
    ) -> Origin {
        let mut id = br#""auditID":"#.to_vec();
        write(&mut id, &arrival.id);
        let mut who = Vec::with_capacity(256);
        who.extend_from_slice(br#""requestURI":"#);
        write(&mut who, &redacted(arrival.uri));
        who.extend_from_slice(br#","verb":"#);
        write(&mut who, &verb.as_str());
        who.extend_from_slice(br#","user":"#);
        match user {
            Some(user) => write(&mut who, &user_info(user)),
            None => who.extend_from_slice(b"{}"),
        }
        let mut from = Vec::new();
        let addresses = source_addresses(headers, arrival.remote);
        if !addresses.is_empty() {
            from.extend_from_slice(br#","sourceIPs":"#);
            write(&mut from, &addresses);
        }
        let agent = user_agent(headers);
        if !agent.is_empty() {
            from.extend_from_slice(br#","userAgent":"#);
            write(&mut from, &agent);
        }
        let text = |bytes| String::from_utf8(bytes).unwrap_or_default();
        Origin { id: text(id), who: text(who), from: text(from), received: arrival.received }
    }
}

/// Maximum length of a user agent.
const MAX_USER_AGENT: usize = 1024;

fn user_agent(headers: &HeaderMap) -> String {
    let sent = headers.get(header::USER_AGENT).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let mut agent = sent.unwrap_or_default().into_owned();
    if agent.len() > MAX_USER_AGENT {
        agent.truncate(agent.floor_char_boundary(MAX_USER_AGENT));
        agent.push_str("...TRUNCATED");
    }
    agent
}

/// The addresses that a request has come through: those that proxies report, which clients can make up, and that of the
/// connection at last.
fn source_addresses(headers: &HeaderMap, remote: Option<IpAddr>) -> Vec<IpAddr> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut found: Vec<IpAddr> =
        text("x-forwarded-for").split(',').filter_map(|part| part.trim().parse().ok()).collect();
    if let Ok(real) = text("x-real-ip").parse()
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
fn redacted(uri: &Uri) -> String {
    let sent = uri.path_and_query().map_or("/", |sent| sent.as_str());
    let Some((path, query)) = sent.split_once('?') else { return sent.to_owned() };
    let parameters: Vec<&str> = query.split('&').collect();
    let hides = |parameter: &str| {
        let name = parameter.split('=').next().unwrap_or_default();
        let decoded = form_urlencoded::parse(name.as_bytes()).next();
        decoded.is_some_and(|(name, _)| name.to_ascii_lowercase().ends_with("token"))
    };
    if !parameters.iter().any(|parameter| hides(parameter)) {
        return sent.to_owned();
    }
    let shown = parameters.into_iter().map(|parameter| match parameter.split_once('=') {
        Some((name, _)) if hides(parameter) => format!("{name}=REDACTED"),
        _ => parameter.to_owned(),
    });
    format!("{path}?{}", shown.collect::<Vec<_>>().join("&"))
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
    fn a_long_user_agent_is_cut() {
        let long: &'static str = "a".repeat(2000).leak();
        let agent = user_agent(&headers(&[("user-agent", long)]));
        assert_eq!(agent, format!("{}...TRUNCATED", "a".repeat(1024)));
        assert_eq!(user_agent(&headers(&[("user-agent", "curl/8")])), "curl/8");
    }
}
