//! URLs as Go's `net/url` reads and writes them.

use std::{fmt, net::IpAddr};

use k1s_object::field::quote;

use super::{opaque, scan_cost, text, unit_cost, unit_estimate, wrap};
use crate::{
    cost::{CallEstimate, CallNodes, STRING_FACTOR},
    error::EvalError,
    function::{Call, Function, Overload},
    types::Type,
    value::{Key, MapBuilder, Opaque, Text, Value},
};

/// A part of a URL, which decides what is escaped in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Host,
    Zone,
    User,
    Query,
    Fragment,
}

/// A parsed URL.
#[derive(Debug, Clone, Default)]
pub struct Url {
    scheme: String,
    opaque: String,
    user: Option<(String, Option<String>)>,
    host: String,
    path: String,
    /// The path as written, if it is not the default form of the decoded path.
    raw_path: String,
    query: String,
    force_query: bool,
    omit_host: bool,
    fragment: String,
    raw_fragment: String,
}

fn must_escape(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() {
        return false;
    }
    if matches!(part, Part::Host | Part::Zone) && b"!$&'()*+,;=:[]<>\"".contains(&byte) {
        return false;
    }
    match byte {
        b'-' | b'_' | b'.' | b'~' => return false,
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match part {
            Part::Path => return byte == b'?',
            Part::User => return matches!(byte, b'@' | b'/' | b'?' | b':'),
            Part::Query => return true,
            Part::Fragment => return false,
            Part::Host | Part::Zone => {}
        },
        _ => {}
    }
    !(part == Part::Fragment && matches!(byte, b'!' | b'(' | b')' | b'*'))
}

fn escape(text: &str, part: Part) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if !must_escape(byte, part) {
            out.push(char::from(byte));
        } else if byte == b' ' && part == Part::Query {
            out.push('+');
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn hex(byte: Option<&u8>) -> Option<u8> {
    char::from(*byte?).to_digit(16).map(|digit| digit as u8)
}

fn unescape(text: &str, part: Part) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        match byte {
            b'%' => {
                let escaped = bytes.get(index..(index + 3).min(bytes.len())).unwrap_or_default();
                let wrong = || format!("invalid URL escape {}", quote(&String::from_utf8_lossy(escaped)));
                let (Some(high), Some(low)) = (hex(bytes.get(index + 1)), hex(bytes.get(index + 2))) else {
                    return Err(wrong());
                };
                let value = high << 4 | low;
                let percent = escaped == b"%25";
                if part == Part::Host && high < 8 && !percent {
                    return Err(wrong());
                }
                if part == Part::Zone && !percent && value != b' ' && must_escape(value, Part::Host) {
                    return Err(wrong());
                }
                out.push(value);
                index += 3;
                continue;
            }
            b'+' if part == Part::Query => out.push(b' '),
            _ => {
                if matches!(part, Part::Host | Part::Zone) && byte < 0x80 && must_escape(byte, part) {
                    let shown = quote(&char::from(byte).to_string());
                    return Err(format!("invalid character {shown} in host name"));
                }
                out.push(byte);
            }
        }
        index += 1;
    }
    Ok(match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// Splits off the scheme.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok(text.split_once(':').unwrap_or(("", text))),
            _ => break,
        }
    }
    Ok(("", text))
}

fn is_optional_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    let wrong_port = |port: &str| format!("invalid port {} after host", quote(port));
    match host.rfind('[') {
        Some(0) => {}
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {
            if let Some(first) = host.find(':') {
                let strict = matches!(scheme, "http" | "https");
                let at = if strict { first } else { host.rfind(':').unwrap_or(first) };
                let port = host.get(at..).unwrap_or_default();
                if !is_optional_port(port) {
                    return Err(wrong_port(port));
                }
            }
            return unescape(host, Part::Host);
        }
    }
    let Some(close) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
    let port = host.get(close + 1..).unwrap_or_default();
    if !is_optional_port(port) {
        return Err(wrong_port(port));
    }
    let name = host.get(1..close).unwrap_or_default();
    let name = match name.find("%25").and_then(|at| name.split_at_checked(at)) {
        Some((address, zone)) => unescape(address, Part::Host)? + &unescape(zone, Part::Zone)?,
        None => unescape(name, Part::Host)?,
    };
    match super::ip::parse_literal(&name) {
        Err(error) => Err(format!("invalid host: {error}")),
        Ok(IpAddr::V4(_)) => Err("invalid IP-literal".to_owned()),
        Ok(IpAddr::V6(_)) => Ok(format!("[{name}]{port}")),
    }
}

type Authority = (Option<(String, Option<String>)>, String);

fn parse_authority(scheme: &str, authority: &str) -> Result<Authority, String> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return Ok((None, parse_host(scheme, authority)?));
    };
    let host = parse_host(scheme, host)?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(allowed) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let user = match user.split_once(':') {
        None => (unescape(user, Part::User)?, None),
        Some((name, password)) => (unescape(name, Part::User)?, Some(unescape(password, Part::User)?)),
    };
    Ok((Some(user), host))
}

fn parse(text: &str, request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = "*".to_owned();
        return Ok(url);
    }
    let (scheme, mut rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    match rest.split_once('?') {
        Some((before, "")) => (rest, url.force_query) = (before, true),
        Some((before, query)) => {
            rest = before;
            url.query = query.to_owned();
        }
        None => {}
    }
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().unwrap_or_default().contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let has_scheme = !url.scheme.is_empty();
    let authority = rest.strip_prefix("//").filter(|_| has_scheme || (!request && !rest.starts_with("///")));
    if let Some(authority) = authority {
        let end = authority.find('/').unwrap_or(authority.len());
        let (authority, path) = authority.split_at_checked(end).unwrap_or((authority, ""));
        (url.user, url.host) = parse_authority(&url.scheme, authority)?;
        rest = path;
    } else if has_scheme && rest.starts_with('/') {
        url.omit_host = true;
    }
    url.path = unescape(rest, Part::Path)?;
    if escape(&url.path, Part::Path) != rest {
        url.raw_path = rest.to_owned();
    }
    Ok(url)
}

/// Whether `text` may stand in a URL as it is.
fn is_encoded(text: &str, part: Part) -> bool {
    text.bytes().all(|byte| b"!$&'()*+,;=:@[]%".contains(&byte) || !must_escape(byte, part))
}

fn encoded(decoded: &str, raw: &str, part: Part) -> String {
    if !raw.is_empty() && is_encoded(raw, part) && unescape(raw, part).is_ok_and(|text| text == decoded) {
        return raw.to_owned();
    }
    escape(decoded, part)
}

/// Whether a text is an absolute URI or an absolute path; the error is that of `url.ParseRequestURI`.
pub fn check_request_uri(text: &str) -> Result<(), String> {
    parse(text, true).map(|_| ()).map_err(|error| format!("parse {}: {error}", quote(text)))
}

impl Url {
    /// Parses any URL, absolute or not; the error is that of `url.Parse`.
    pub fn parse_reference(text: &str) -> Result<Url, String> {
        let failed = |error: String| format!("parse {}: {error}", quote(text));
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = parse(before, false).map_err(failed)?;
        url.fragment = unescape(fragment, Part::Fragment).map_err(failed)?;
        Ok(url)
    }

    /// Whether it has a user, or a password.
    pub fn has_user(&self) -> bool {
        self.user.is_some()
    }

    /// Whether it has a query that is not empty.
    pub fn has_query(&self) -> bool {
        !self.query.is_empty()
    }

    /// Whether it has a fragment that is not empty.
    pub fn has_fragment(&self) -> bool {
        !self.fragment.is_empty()
    }

    /// Parses an absolute URI or an absolute path; the error is that of the function `url`.
    pub fn parse(text: &str) -> Result<Url, String> {
        let failed = |text: &str, error: String| {
            format!("URL parse error during conversion from string: parse {}: {error}", quote(text))
        };
        parse(text, true).map_err(|error| failed(text, error))?;
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = parse(before, false).map_err(|error| failed(before, error))?;
        if !fragment.is_empty() {
            url.fragment = unescape(fragment, Part::Fragment).map_err(|error| failed(text, error))?;
            if escape(&url.fragment, Part::Fragment) != fragment {
                url.raw_fragment = fragment.to_owned();
            }
        }
        Ok(url)
    }

    /// The scheme in lower case.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Host and port.
    pub fn host(&self) -> &str {
        &self.host
    }

    fn host_and_port(&self) -> (&str, &str) {
        let split = self.host.rfind(':').and_then(|at| self.host.split_at_checked(at));
        let (host, port) = split.filter(|(_, port)| is_optional_port(port)).unwrap_or((&self.host, ""));
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        (inner.unwrap_or(host), port.strip_prefix(':').unwrap_or_default())
    }

    /// The host without port and brackets.
    pub fn hostname(&self) -> &str {
        self.host_and_port().0
    }

    /// The port, or an empty text.
    pub fn port(&self) -> &str {
        self.host_and_port().1
    }

    /// The path in its escaped form.
    pub fn escaped_path(&self) -> String {
        if self.path == "*" {
            return "*".to_owned();
        }
        encoded(&self.path, &self.raw_path, Part::Path)
    }

    /// The parameters of the query in the order of their first occurrence, with all values of each. Malformed
    /// parameters are left out.
    pub fn query(&self) -> Vec<(String, Vec<String>)> {
        let mut parameters: Vec<(String, Vec<String>)> = Vec::new();
        for parameter in self.query.split('&') {
            if parameter.contains(';') || parameter.is_empty() {
                continue;
            }
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let (Ok(key), Ok(value)) = (unescape(key, Part::Query), unescape(value, Part::Query)) else {
                continue;
            };
            match parameters.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) => values.push(value),
                None => parameters.push((key, vec![value])),
            }
        }
        parameters
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            let omit = self.omit_host && self.host.is_empty() && self.user.is_none();
            let any = !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some();
            if any && !omit {
                if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
                    f.write_str("//")?;
                }
                if let Some((name, password)) = &self.user {
                    f.write_str(&escape(name, Part::User))?;
                    if let Some(password) = password {
                        write!(f, ":{}", escape(password, Part::User))?;
                    }
                    f.write_str("@")?;
                }
                f.write_str(&escape(&self.host, Part::Host))?;
            }
            let path = self.escaped_path();
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                f.write_str("/")?;
            }
            f.write_str(&path)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if self.force_query || !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", encoded(&self.fragment, &self.raw_fragment, Part::Fragment))?;
        }
        Ok(())
    }
}

impl Opaque for Url {
    fn type_name(&self) -> &str {
        "kubernetes.URL"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.downcast::<Url>().is_some_and(|other| other.to_string() == self.to_string())
    }

    fn equality_cost(&self) -> Option<u64> {
        Some(1)
    }
}

fn url_estimate(nodes: &CallNodes<'_, '_>) -> Option<CallEstimate> {
    let size = nodes.size(nodes.args().first()?);
    Some(CallEstimate::sized(size.cost(STRING_FACTOR), size))
}

/// The functions of the library `kubernetes.urls`.
pub(super) fn functions() -> Vec<Function> {
    let url = || Type::opaque("kubernetes.URL");
    let part = |name, id, result, call: Call| {
        let overload = Overload::member(id, vec![url()], result, call).with_cost(unit_estimate, unit_cost);
        Function::new(name, vec![overload])
    };
    vec![
        Function::new(
            "url",
            vec![
                Overload::global("string_to_url", vec![Type::String], url(), |args| {
                    Ok(wrap(Url::parse(text(args, 0)?).map_err(EvalError::new)?))
                })
                .with_cost(url_estimate, scan_cost),
            ],
        ),
        Function::new(
            "isURL",
            vec![Overload::global("is_url_string", vec![Type::String], Type::Bool, |args| {
                Ok(check_request_uri(text(args, 0)?).is_ok().into())
            })],
        ),
        part("getScheme", "url_get_scheme", Type::String, |args| {
            Ok(opaque::<Url>(args, 0)?.scheme().to_owned().into())
        }),
        part("getHost", "url_get_host", Type::String, |args| {
            Ok(opaque::<Url>(args, 0)?.host().to_owned().into())
        }),
        part("getHostname", "url_get_hostname", Type::String, |args| {
            Ok(opaque::<Url>(args, 0)?.hostname().to_owned().into())
        }),
        part("getPort", "url_get_port", Type::String, |args| {
            Ok(opaque::<Url>(args, 0)?.port().to_owned().into())
        }),
        part("getEscapedPath", "url_get_escaped_path", Type::String, |args| {
            Ok(opaque::<Url>(args, 0)?.escaped_path().into())
        }),
        part("getQuery", "url_get_query", Type::map(Type::String, Type::list(Type::String)), |args| {
            let mut map = MapBuilder::default();
            for (key, values) in opaque::<Url>(args, 0)?.query() {
                let values = values.into_iter().map(Value::from).collect();
                map.insert(Key::String(Text::Shared(key.into())), Value::list(values));
            }
            Ok(Value::Map(map.build()))
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_parts() {
        for (text, scheme, host, hostname, port, path) in [
            ("https://example.com:80/", "https", "example.com:80", "example.com", "80", "/"),
            (
                "https://example.com/path with spaces/",
                "https",
                "example.com",
                "example.com",
                "",
                "/path%20with%20spaces/",
            ),
            ("https://[::1]:80/path", "https", "[::1]:80", "::1", "80", "/path"),
            ("https://user:pass@h/a%2fb?x=1#f", "https", "h", "h", "", "/a%2fb"),
            ("/relative", "", "", "", "", "/relative"),
            ("HTTP://H", "http", "H", "H", "", ""),
            ("mailto:a@b", "mailto", "", "", "", ""),
            ("file:///etc/hosts", "file", "", "", "", "/etc/hosts"),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!(
                (url.scheme(), url.host(), url.hostname(), url.port(), url.escaped_path().as_str()),
                (scheme, host, hostname, port, path),
                "{text}"
            );
        }
        let url = Url::parse("https://h/?k1=a&k2=b&k1=c%20d&k3&bad=%zz&s;t=1").unwrap();
        let expected: Vec<(String, Vec<String>)> =
            [("k1", vec!["a", "c d"]), ("k2", vec!["b"]), ("k3", vec![""])]
                .into_iter()
                .map(|(key, values)| (key.to_owned(), values.into_iter().map(str::to_owned).collect()))
                .collect();
        assert_eq!(url.query(), expected);
    }

    #[test]
    fn urls_are_written_as_go_writes_them() {
        for (text, written) in [
            ("https://user:p%40ss@h/a%2fb?x=1#f", "https://user:p%40ss@h/a%2fb?x=1#f"),
            ("HTTP://h/a b", "http://h/a%20b"),
            ("mailto:x", "mailto:x"),
            ("file:/x", "file:/x"),
            ("/a?", "/a?"),
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), written);
        }
    }

    #[test]
    fn wrong_urls_have_gos_words() {
        for (text, error) in [
            ("", "parse \"\": empty url"),
            ("../relative", "parse \"../relative\": invalid URI for request"),
            (":x", "parse \":x\": missing protocol scheme"),
            ("https://a b/", "parse \"https://a b/\": invalid character \" \" in host name"),
            ("https://h/%zz", "parse \"https://h/%zz\": invalid URL escape \"%zz\""),
            ("https://h:x/", "parse \"https://h:x/\": invalid port \":x\" after host"),
            ("https://[::1", "parse \"https://[::1\": missing ']' in host"),
            ("https://[1.2.3.4]/", "parse \"https://[1.2.3.4]/\": invalid IP-literal"),
            ("a\nb", "parse \"a\\nb\": net/url: invalid control character in URL"),
            ("http://::1/", "parse \"http://::1/\": invalid port \"::1\" after host"),
        ] {
            assert_eq!(check_request_uri(text).unwrap_err(), error);
            assert_eq!(
                Url::parse(text).unwrap_err(),
                format!("URL parse error during conversion from string: {error}")
            );
        }
    }
}
