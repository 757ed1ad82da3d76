//! The path of a request: which resource, or which other endpoint.

use k1s_object::gvk::GroupVersionResource;

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

/// Parses a path within a tenant. Percent escapes are decoded in each segment.
pub(super) fn parse_path(path: &str) -> Path {
    let trimmed = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<String> = trimmed.split('/').skip(1).map(unescape).collect();
    let words: Vec<&str> = segments.iter().map(String::as_str).collect();
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

/// Decodes percent escapes; a `%` that does not begin one is kept.
pub(crate) fn unescape(segment: &str) -> String {
    if !segment.contains('%') {
        return segment.to_owned();
    }
    let bytes = segment.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escaped = (byte == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match escaped {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> ResourcePath {
        match parse_path(path) {
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
        let path = resource("/api/v1/namespaces/a/configmaps/x%2Fy%zz");
        assert_eq!(path.name, "x/y%zz");
        assert_eq!(parse_path("/apis/"), Path::Groups);
        assert_eq!(parse_path("/api/v1"), Path::GroupVersion(String::new(), "v1".into()));
        assert_eq!(parse_path("//api/v1"), Path::Other("//api/v1".into()));
        assert_eq!(parse_path("/"), Path::Other("/".into()));
    }
}
