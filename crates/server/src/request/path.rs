//! The path of a request: which resource, or which other endpoint.

use std::borrow::Cow;

use k1s_object::{Status, field::quote, gvk::GroupVersionResource};

/// A path under `/api/{version}` or `/apis/{group}/{version}`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) resource: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    /// What follows the subresource (`/proxy/…`).
    pub(crate) rest: Vec<String>,
    /// Whether the path has the deprecated `/watch/` form.
    pub(crate) watch: bool,
}

impl ResourcePath {
    /// Where the resource is served.
    pub(crate) fn gvr(&self) -> GroupVersionResource<&str> {
        GroupVersionResource::new(&self.group, &self.version, &self.resource)
    }
}

/// The endpoint of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Path {
    Resource(ResourcePath),
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/{group}`
    Group(String),
    /// `/api/v1` or `/apis/{group}/{version}`
    GroupVersion(String, String),
    /// Everything else, without a slash at the end.
    Other(String),
}

/// `/clusters/{name}/…`: the tenant, and the path within it.
pub(super) fn split_tenant(path: &str) -> (Option<&str>, &str) {
    let Some(rest) = path.strip_prefix("/clusters/") else { return (None, path) };
    match rest.find('/') {
        Some(at) => (rest.get(..at), rest.get(at..).unwrap_or("/")),
        None => (Some(rest), "/"),
    }
}

/// The path of Projects.
const PROJECTS: &str = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/";

/// `…/projects/{name}/control-plane/…`: the project, and the path within its control plane.
pub(super) fn split_project(path: &str) -> Option<(&str, &str)> {
    let (name, rest) = path.strip_prefix(PROJECTS)?.split_once('/')?;
    match rest.strip_prefix("control-plane")? {
        _ if name.is_empty() => None,
        "" => Some((name, "/")),
        rest => rest.starts_with('/').then_some((name, rest)),
    }
}

/// `milo-apiserver.project-{name}.svc.cluster.local`, with or without a port: the project that an operator means which uses
/// Milo's internal service discovery. It sends no path.
pub(crate) fn project_of_host(host: &str) -> Option<&str> {
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let name = host.strip_prefix("milo-apiserver.project-")?.strip_suffix(".svc.cluster.local")?;
    (!name.is_empty() && !name.contains('.')).then_some(name)
}

/// Parses a decoded path within a tenant.
pub(super) fn parse_path(path: &str) -> Path {
    let trimmed = path.strip_suffix('/').unwrap_or(path);
    let words: Vec<&str> = trimmed.split('/').skip(1).collect();
    match words.as_slice() {
        ["api"] => Path::CoreVersions,
        ["apis"] => Path::Groups,
        ["apis", group] => Path::Group((*group).to_owned()),
        ["api", version] => Path::GroupVersion(String::new(), (*version).to_owned()),
        ["apis", group, version] => Path::GroupVersion((*group).to_owned(), (*version).to_owned()),
        ["api", version, rest @ ..] => resource_path("", version, rest),
        ["apis", group, version, rest @ ..] => resource_path(group, version, rest),
        _ => Path::Other(if trimmed.is_empty() { "/".into() } else { trimmed.into() }),
    }
}

fn resource_path(group: &str, version: &str, mut words: &[&str]) -> Path {
    let mut path =
        ResourcePath { group: group.to_owned(), version: version.to_owned(), ..ResourcePath::default() };
    if let ["watch", rest @ ..] = words
        && !rest.is_empty()
    {
        path.watch = true;
        words = rest;
    }
    // A namespace is itself a resource; its subresources are not resources in it.
    if let ["namespaces", namespace, rest @ ..] = words
        && !rest.is_empty()
        && !matches!(rest, ["status" | "finalize"])
    {
        path.namespace = (*namespace).to_owned();
        words = rest;
    }
    let mut words = words.iter().map(|word| (*word).to_owned());
    path.resource = words.next().unwrap_or_default();
    path.name = words.next().unwrap_or_default();
    path.subresource = words.next().unwrap_or_default();
    path.rest = words.collect();
    Path::Resource(path)
}

/// Decodes the path of a request, as a whole and before it is split, as Go does: whoever authorizes, dispatches or forwards
/// it sees the same segments.
///
/// # Errors
/// 400 if an escape is none, or the decoded path is not UTF-8.
pub(crate) fn decode_path(path: &str) -> Result<Cow<'_, str>, Status> {
    unescape(path).map_err(|why| Status::bad_request(format!("the path of the request is invalid: {why}")))
}

/// Decodes percent escapes.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn unescape(text: &str) -> Result<Cow<'_, str>, String> {
    let Some(first) = text.find('%') else { return Ok(Cow::Borrowed(text)) };
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = Vec::with_capacity(bytes.len());
    out.extend_from_slice(bytes.get(..first).unwrap_or_default());
    let mut at = first;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'%' {
            out.push(byte);
            at += 1;
            continue;
        }
        let value =
            digit(at + 1).zip(digit(at + 2)).and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
        let Some(value) = value else {
            let escape = bytes.get(at..bytes.len().min(at + 3)).unwrap_or_default();
            return Err(format!("invalid URL escape {}", quote(&String::from_utf8_lossy(escape))));
        };
        out.push(value);
        at += 3;
    }
    String::from_utf8(out).map(Cow::Owned).map_err(|_| "it is not UTF-8".to_owned())
}

/// Encodes a decoded path for a URI. Its slashes separate segments.
pub(crate) fn escape_path(path: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte);
    if path.bytes().all(is_plain) {
        return Cow::Borrowed(path);
    }
    let mut out = String::with_capacity(path.len() + 8);
    for byte in path.bytes() {
        match is_plain(byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: &str) -> Path {
        parse_path(&decode_path(path).unwrap())
    }

    fn resource(path: &str) -> ResourcePath {
        match parse(path) {
            Path::Resource(path) => path,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn a_control_plane_path_names_the_project_and_the_path_within() {
        let cases = [
            ("a/control-plane", Some(("a", "/"))),
            ("a/control-plane/", Some(("a", "/"))),
            ("a/control-plane/api/v1/pods", Some(("a", "/api/v1/pods"))),
            ("a/control-planes", None),
            ("a/control-plane-x/api", None),
            ("a/status", None),
            ("a", None),
            ("/control-plane/api", None),
        ];
        for (rest, expected) in cases {
            assert_eq!(split_project(&format!("{PROJECTS}{rest}")), expected, "{rest}");
        }
        assert_eq!(split_project("/apis/other.example.com/v1alpha1/projects/a/control-plane/api"), None);
        assert_eq!(split_project("/apis/resourcemanager.miloapis.com/v1/projects/a/control-plane/api"), None);
    }

    #[test]
    fn a_host_of_milos_service_discovery_names_the_project() {
        let cases = [
            ("milo-apiserver.project-a.svc.cluster.local:6443", Some("a")),
            ("milo-apiserver.project-a-b.svc.cluster.local", Some("a-b")),
            ("milo-apiserver.project-a.b.svc.cluster.local", None),
            ("milo-apiserver.project-.svc.cluster.local", None),
            ("milo-apiserver.project-a.svc.example.com", None),
            ("x.milo-apiserver.project-a.svc.cluster.local", None),
            ("127.0.0.1:6443", None),
            ("[::1]:6443", None),
            ("", None),
        ];
        for (host, expected) in cases {
            assert_eq!(project_of_host(host), expected, "{host}");
        }
    }

    #[test]
    fn paths_are_parsed() {
        let path = resource("/apis/apps/v1/namespaces/a/deployments/web/scale");
        assert_eq!((&*path.group, &*path.version, &*path.namespace), ("apps", "v1", "a"));
        assert_eq!((&*path.resource, &*path.name, &*path.subresource), ("deployments", "web", "scale"));
        let path = resource("/api/v1/namespaces/a/");
        assert_eq!((&*path.resource, &*path.name, &*path.namespace), ("namespaces", "a", ""));
        let path = resource("/api/v1/namespaces/a/finalize");
        assert_eq!((&*path.resource, &*path.name, &*path.subresource), ("namespaces", "a", "finalize"));
        let path = resource("/api/v1/watch/namespaces/a/pods/x");
        assert!(path.watch);
        assert_eq!((&*path.resource, &*path.name, &*path.namespace), ("pods", "x", "a"));
        assert_eq!(parse("/apis/"), Path::Groups);
        assert_eq!(parse("/api/v1"), Path::GroupVersion(String::new(), "v1".into()));
        assert_eq!(parse("//api/v1"), Path::Other("//api/v1".into()));
        assert_eq!(parse("/"), Path::Other("/".into()));
    }

    #[test]
    fn paths_are_decoded_before_they_are_split() {
        for slash in ["%2F", "%2f"] {
            let path = resource(&format!("/api/v1/namespaces/a{slash}configmaps/x{slash}y{slash}z"));
            assert_eq!((&*path.namespace, &*path.resource, &*path.name), ("a", "configmaps", "x"));
            assert_eq!((&*path.subresource, path.rest), ("y", vec!["z".to_owned()]));
        }
        assert_eq!(resource("/api/v1/nodes/%61%20%C3%A4").name, "a ä");
        // Once: an escaped percent sign is one.
        assert_eq!(resource("/api/v1/nodes/a%252Fb").name, "a%2Fb");
        assert_eq!(resource("/api/v1/nodes/%2e%2E").name, "..");
        assert_eq!(parse("/%61pis"), Path::Groups);
        assert_eq!(parse("%2F%2Fapi/v1"), Path::Other("//api/v1".into()));
        assert_eq!(parse("/healthz%2Fping"), Path::Other("/healthz/ping".into()));
        let empty = resource("/apis/g/v//things");
        assert_eq!((&*empty.resource, &*empty.name), ("", "things"));
    }

    #[test]
    fn escapes_have_two_hex_digits() {
        for path in [
            "/a%",
            "/a%2",
            "/%zz",
            "/%+f",
            "/%-1",
            "/% 1",
            "/%2",
            "/%%41",
            "/%4é",
            "/%ff",
            "/%C3",
            "/%ed%a0%80",
        ] {
            let refused = decode_path(path).unwrap_err();
            assert_eq!(refused.code, 400, "{path}");
        }
        let message = decode_path("/a%+fb").unwrap_err().message;
        assert_eq!(message, "the path of the request is invalid: invalid URL escape \"%+f\"");
        assert_eq!(decode_path("/a+b").unwrap(), "/a+b");
    }

    #[test]
    fn an_encoded_path_is_decoded_to_itself() {
        for path in ["/apis/g/v/a", "/a b/%2F/ä?x#y", "/a%", "/a\u{0}\n\\;=:@", "//", "/..//./"] {
            assert_eq!(decode_path(&escape_path(path)).unwrap(), path);
        }
        assert_eq!(escape_path("/a b/c%2Fd?"), "/a%20b/c%252Fd%3F");
    }
}
