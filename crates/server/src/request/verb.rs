//! The verbs of requests, as authorizers and discovery name them.

use std::fmt;

use http::Method;
use serde::{Serialize, Serializer};

/// The verb of a request: a resource verb, the lower-case method of a non-resource request, or any other verb that an
/// authorizer can be queried for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb<'a> {
    /// Also GET of a non-resource path.
    Get,
    List,
    Watch,
    Create,
    Update,
    /// Also PATCH of a non-resource path.
    Patch,
    /// Also DELETE of a non-resource path.
    Delete,
    DeleteCollection,
    /// POST of a non-resource path.
    Post,
    /// PUT of a non-resource path.
    Put,
    /// HEAD of a non-resource path.
    Head,
    /// OPTIONS of a non-resource path.
    Options,
    /// Acting as another user.
    Impersonate,
    /// A verb used only in authorization: `impersonate:user-info`, or any text in a `SubjectAccessReview`.
    Other(&'a str),
}

impl<'a> Verb<'a> {
    /// The verb with this name.
    pub(crate) fn named(name: &'a str) -> Verb<'a> {
        match name {
            "get" => Verb::Get,
            "list" => Verb::List,
            "watch" => Verb::Watch,
            "create" => Verb::Create,
            "update" => Verb::Update,
            "patch" => Verb::Patch,
            "delete" => Verb::Delete,
            "deletecollection" => Verb::DeleteCollection,
            "post" => Verb::Post,
            "put" => Verb::Put,
            "head" => Verb::Head,
            "options" => Verb::Options,
            "impersonate" => Verb::Impersonate,
            other => Verb::Other(other),
        }
    }

    /// Its name: `deletecollection`.
    pub(crate) fn as_str(self) -> &'a str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Post => "post",
            Verb::Put => "put",
            Verb::Head => "head",
            Verb::Options => "options",
            Verb::Impersonate => "impersonate",
            Verb::Other(other) => other,
        }
    }

    /// Its name in kube-apiserver's metrics.
    pub(crate) fn metric_name(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::List => "LIST",
            Verb::Watch => "WATCH",
            Verb::Create | Verb::Post => "POST",
            Verb::Update | Verb::Put => "PUT",
            Verb::Patch => "PATCH",
            Verb::Delete => "DELETE",
            Verb::DeleteCollection => "DELETECOLLECTION",
            Verb::Head | Verb::Options | Verb::Impersonate | Verb::Other(_) => "OTHER",
        }
    }
}

impl Verb<'static> {
    /// The verb of a request for an object or for a collection.
    pub(crate) fn of_resource(method: &Method, collection: bool) -> Verb<'static> {
        match *method {
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE if collection => Verb::DeleteCollection,
            Method::DELETE => Verb::Delete,
            _ if collection => Verb::List,
            _ => Verb::Get,
        }
    }

    /// The verb of a request for a non-resource path.
    pub(crate) fn of_path(method: &Method) -> Verb<'static> {
        match *method {
            Method::POST => Verb::Post,
            Method::PUT => Verb::Put,
            Method::PATCH => Verb::Patch,
            Method::DELETE => Verb::Delete,
            Method::HEAD => Verb::Head,
            Method::OPTIONS => Verb::Options,
            _ => Verb::Get,
        }
    }
}

impl fmt::Display for Verb<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Verb<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_parsed_by_name() {
        for name in [
            "get",
            "list",
            "watch",
            "create",
            "update",
            "patch",
            "delete",
            "deletecollection",
            "post",
            "put",
            "head",
            "options",
            "impersonate",
        ] {
            let verb = Verb::named(name);
            assert!(verb.as_str() == name && !matches!(verb, Verb::Other(_)), "{name}");
        }
        assert_eq!(Verb::named("*").to_string(), "*");
    }
}
