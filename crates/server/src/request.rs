//! What a request asks for: the path and the query, taken apart.

use http::Method;
use k1s_object::Status;

/// The parameters of a query, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Query {
        Query(form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// The first value of a parameter, empty when it is not there.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.find(name).unwrap_or_default()
    }

    /// The first value of a parameter.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A truth value as Kubernetes reads it from a query: there and neither `false` nor `0`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        match self.find(name) {
            None => false,
            Some(value) => !matches!(value.to_ascii_lowercase().as_str(), "false" | "0"),
        }
    }

    /// A whole number, or what Go says of it.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(text) = self.find(name) else { return Ok(None) };
        text.parse::<i64>().map(Some).map_err(|error| {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            let why = match error.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            Status::bad_request(format!(
                "strconv.ParseInt: parsing {}: {why}",
                k1s_object::field::quote(text)
            ))
        })
    }
}

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
    /// The old `/watch/` form.
    pub(crate) watch: bool,
}

/// What a path leads to.
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

/// Takes a path apart. Percent escapes are resolved within the segments.
pub(crate) fn parse_path(path: &str) -> Path {
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

/// Resolves percent escapes; what is none stays as it is.
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

/// The verb of a request for a resource, as authorisation and metrics name it.
pub(crate) fn verb(method: &Method, path: &ResourcePath, query: &Query) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if path.name.is_empty() => "deletecollection",
        Method::DELETE => "delete",
        _ if path.watch || (path.name.is_empty() && query.flag("watch")) => "watch",
        _ if path.name.is_empty() => "list",
        _ => "get",
    }
}

/// The verb of a request for a subresource of one object.
pub(crate) fn method_verb(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "get",
    }
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
    fn paths_are_taken_apart() {
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

    #[test]
    fn verbs() {
        let verb = |method: Method, path: &str, query: &str| {
            verb(&method, &resource(path), &Query::parse(Some(query)))
        };
        assert_eq!(verb(Method::GET, "/api/v1/pods", ""), "list");
        assert_eq!(verb(Method::GET, "/api/v1/pods", "watch=maybe"), "watch");
        assert_eq!(verb(Method::GET, "/api/v1/pods", "watch=false"), "list");
        assert_eq!(verb(Method::GET, "/api/v1/namespaces/a", "watch=true"), "get");
        assert_eq!(verb(Method::DELETE, "/api/v1/namespaces/a/pods", ""), "deletecollection");
    }
}
