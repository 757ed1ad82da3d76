//! The headers of forwarded requests and responses.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::identity::User;

/// Headers that are about one connection.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "proxy-connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What names the user to the aggregated server.
const USER: &str = "x-remote-user";
const UID: &str = "x-remote-uid";
const GROUP: &str = "x-remote-group";
const EXTRA: &str = "x-remote-extra-";

/// An attribute of the user that names the tenant, for tenants other than the default one.
const TENANT: &str = "k1s.dev/tenant";

/// Whether a client asks for another protocol on its connection.
pub(super) fn is_upgrade(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CONNECTION).iter();
    values.filter_map(|value| value.to_str().ok()).any(|value| value.to_ascii_lowercase().contains("upgrade"))
}

/// Whether a request has passed a server already.
pub(super) fn has_been_here(headers: &HeaderMap, via: &str) -> bool {
    let passed = headers.get_all(header::VIA).iter().filter_map(|value| value.to_str().ok());
    passed.flat_map(|value| value.split(',')).any(|one| one.trim() == via)
}

/// Removes what is about one connection, also what its `Connection` header names.
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>())
        .collect();
    for name in named.iter().map(String::as_str).chain(HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Removes the credentials of the client, and everything by which it could pretend to be somebody.
pub(super) fn strip_identity(headers: &mut HeaderMap) {
    headers.remove(header::AUTHORIZATION);
    let forged: Vec<HeaderName> = headers
        .keys()
        .filter(|name| {
            let name = name.as_str();
            // A server may read underscores as dashes.
            let dashed = name.replace('_', "-");
            dashed.starts_with("x-remote-") || dashed.starts_with("impersonate-")
        })
        .cloned()
        .collect();
    for name in forged {
        headers.remove(name);
    }
    // WebSockets carry tokens among the protocols.
    let protocols: Vec<String> = headers
        .get_all(header::SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').map(|one| one.trim().to_owned()).collect::<Vec<_>>())
        .collect();
    if protocols.iter().any(|one| is_token(one)) {
        let kept: Vec<String> = protocols.into_iter().filter(|one| !is_token(one)).collect();
        headers.remove(header::SEC_WEBSOCKET_PROTOCOL);
        if let Ok(value) = HeaderValue::from_str(&kept.join(", "))
            && !kept.is_empty()
        {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, value);
        }
    }
}

fn is_token(protocol: &str) -> bool {
    protocol.starts_with("base64url.bearer.authorization.k8s.io.")
}

/// Names the user. `tenant`: that of the request, if it is not the default one; no attribute of the user can replace it.
///
/// # Errors
/// If a part of the user cannot be a header.
pub(super) fn set_user(headers: &mut HeaderMap, user: &User, tenant: Option<&str>) -> Result<(), String> {
    let value = |what: &str, text: &str| {
        HeaderValue::from_bytes(text.as_bytes())
            .map_err(|_| format!("the user's {what} cannot be sent to an aggregated server"))
    };
    headers.insert(USER, value("name", &user.name)?);
    if !user.uid.is_empty() {
        headers.insert(UID, value("uid", &user.uid)?);
    }
    for group in &user.groups {
        headers.append(GROUP, value("groups", group)?);
    }
    let mut extra = |key: &str, values: &[String]| {
        let name = HeaderName::from_bytes(format!("{EXTRA}{}", escape(key)).as_bytes())
            .map_err(|_| "the user's extra attributes cannot be sent to an aggregated server".to_owned())?;
        for one in values {
            headers.append(&name, value("extra attributes", one)?);
        }
        Ok::<(), String>(())
    };
    for (key, values) in user.extra.iter().filter(|(key, _)| !key.eq_ignore_ascii_case(TENANT)) {
        extra(key, values)?;
    }
    match tenant {
        Some(tenant) => extra(TENANT, &[tenant.to_owned()]),
        None => Ok(()),
    }
}

/// A key of an attribute, in a header's name: what may not be there is percent-encoded.
fn escape(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        let legal = byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
        match legal {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(of: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in of {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn names(headers: &HeaderMap) -> Vec<String> {
        let mut names: Vec<String> = headers.keys().map(|name| name.to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn nobody_forges_a_user() {
        let mut headers = map(&[
            ("authorization", "Bearer secret"),
            ("x-remote-user", "admin"),
            ("x-remote-group", "system:masters"),
            ("x-remote-extra-a", "b"),
            ("x_remote_group", "system:masters"),
            ("impersonate-user", "admin"),
            ("sec-websocket-protocol", "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0"),
            ("accept", "application/json"),
        ]);
        strip_identity(&mut headers);
        assert_eq!(names(&headers), ["accept", "sec-websocket-protocol"]);
        assert_eq!(headers["sec-websocket-protocol"], "v5.channel.k8s.io");
        let user = User {
            name: "alice".into(),
            uid: "7".into(),
            groups: vec!["devs".into(), "system:authenticated".into()],
            extra: vec![
                ("scopes.example.com/a b".into(), vec!["1".into(), "2".into()]),
                ("K1s.dev/Tenant".into(), vec!["other".into()]),
            ],
        };
        set_user(&mut headers, &user, Some("team-a")).unwrap();
        let all = |name: &str| -> Vec<&str> {
            headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
        };
        assert_eq!(all("x-remote-user"), ["alice"]);
        assert_eq!(all("x-remote-uid"), ["7"]);
        assert_eq!(all("x-remote-group"), ["devs", "system:authenticated"]);
        assert_eq!(all("x-remote-extra-scopes.example.com%2fa%20b"), ["1", "2"]);
        assert_eq!(all("x-remote-extra-k1s.dev%2ftenant"), ["team-a"]);
        let odd = User { name: "a\nb".into(), ..User::default() };
        assert!(set_user(&mut headers, &odd, None).is_err());
    }

    #[test]
    fn headers_of_one_connection_stay_on_it() {
        let mut headers = map(&[
            ("connection", "keep-alive, X-Mine"),
            ("connection", "Upgrade"),
            ("x-mine", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("x-other", "2"),
        ]);
        assert!(is_upgrade(&headers));
        strip_hop_by_hop(&mut headers);
        assert_eq!(names(&headers), ["x-other"]);
        assert!(!is_upgrade(&headers));
    }
}
