//! Which requests are let in. There is no token, so a browser must not be usable as a proxy by other pages.

use std::net::SocketAddr;

use http::{HeaderMap, Method, Uri, header};
use k1s::server::Status;

/// Names of this machine's loopback interface, without a port: a port may be forwarded.
const HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Refuses requests that a web page elsewhere has caused.
///
/// - `Host` must name this machine: with DNS rebinding, it names the page's host.
/// - `Origin`, which browsers send with requests that change something, must be the address of the request itself.
/// - `Sec-Fetch-Site` shows requests that have no origin, as for an image. Following a link is allowed: it only reads, and
///   the page that has the link sees nothing of it.
pub(super) fn check(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Status> {
    let text = |name: header::HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if headers.get_all(header::HOST).iter().count() > 1 {
        return Err(refused("it has several Host headers"));
    }
    let named = text(header::HOST);
    let host = uri.authority().map(http::uri::Authority::as_str).or(named);
    let Some(host) = host.filter(|host| named.is_none_or(|named| named == *host)) else {
        return Err(refused("it has no Host header, or another one than its URI"));
    };
    if !is_loopback(host) {
        return Err(refused(&format!("the host {host:?} is not this machine; use localhost")));
    }
    if let Some(origin) = text(header::ORIGIN)
        && !origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(host))
    {
        return Err(refused(&format!("it comes from a page of {origin:?}")));
    }
    let fetch = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if matches!(fetch("sec-fetch-site"), "cross-site" | "same-site") {
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        if !is_read || fetch("sec-fetch-mode") != "navigate" || fetch("sec-fetch-dest") != "document" {
            return Err(refused("it comes from a page of another site"));
        }
    }
    Ok(())
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => {
            if port.parse::<u16>().is_err() {
                return false;
            }
            name
        }
        _ => host,
    };
    HOSTS.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn refused(why: &str) -> Status {
    Status::new(403, "Forbidden", format!("the request is refused: {why}"))
}

/// The address to show to people.
pub(super) fn url(address: SocketAddr) -> String {
    format!("http://localhost:{}", address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(method: &str, uri: &str, headers: &[(&str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        check(&method.parse().unwrap(), &uri.parse().unwrap(), &map).is_ok()
    }

    #[test]
    fn the_host_is_this_machine() {
        for host in ["localhost", "localhost:3000", "LOCALHOST:3000", "127.0.0.1:80", "[::1]:3000", "[::1]"] {
            assert!(allowed("POST", "/", &[("host", host)]), "{host}");
        }
        let foreign = [
            "evil.example",
            "localhost.evil.example",
            "evil.example:3000",
            "127.0.0.1.evil.example",
            "localhost:x",
            "",
            "10.0.0.1:3000",
            "[::2]:3000",
            "localhost@evil.example",
            "evil.example:80@localhost",
        ];
        for host in foreign {
            assert!(!allowed("GET", "/", &[("host", host)]), "{host}");
        }
        assert!(!allowed("GET", "/", &[]));
        assert!(!allowed("GET", "/", &[("host", "localhost"), ("host", "evil.example")]));
        assert!(!allowed("GET", "http://evil.example/", &[("host", "localhost")]));
        assert!(allowed("GET", "http://localhost:3000/", &[("host", "localhost:3000")]));
    }

    #[test]
    fn the_origin_is_the_request_itself() {
        let from = |origin: &str| allowed("POST", "/", &[("host", "localhost:3000"), ("origin", origin)]);
        assert!(from("http://localhost:3000"));
        for origin in [
            "http://evil.example",
            "http://localhost:8080",
            "https://localhost:3000",
            "null",
            "",
            "http://127.0.0.1:3000",
        ] {
            assert!(!from(origin), "{origin}");
        }
    }

    #[test]
    fn a_page_of_another_site_can_only_link() {
        let fetch = |method: &str, site: &str, mode: &str, dest: &str| {
            let headers = [
                ("host", "localhost"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ];
            allowed(method, "/", &headers)
        };
        assert!(fetch("GET", "cross-site", "navigate", "document"));
        assert!(!fetch("GET", "cross-site", "navigate", "iframe"));
        assert!(!fetch("POST", "cross-site", "navigate", "document"));
        assert!(!fetch("GET", "cross-site", "no-cors", "image"));
        assert!(!fetch("GET", "same-site", "cors", "empty"), "another port of this machine");
        assert!(fetch("GET", "same-origin", "cors", "empty") && fetch("GET", "none", "navigate", "document"));
    }
}
