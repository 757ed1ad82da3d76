//! The calls of a client, as interceptors and error messages show them.

use std::fmt;

use bytes::Bytes;
use kube::{api::ApiResource, core::Status};

use super::Error;

/// The verb of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads many objects.
    List,
    /// Watches objects.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes parts of an object.
    Patch,
    /// Server-side apply.
    Apply,
    /// Deletes one object.
    Delete,
    /// Deletes many objects.
    DeleteAllOf,
}

impl Verb {
    /// The verb in error messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Apply => "apply",
            Verb::Delete => "delete",
            Verb::DeleteAllOf => "delete all of",
        }
    }

    /// The verb in RBAC rules.
    #[must_use]
    pub fn permission(self) -> &'static str {
        match self {
            Verb::Apply => "patch",
            Verb::DeleteAllOf => "deletecollection",
            other => other.as_str(),
        }
    }

    /// Whether it changes objects.
    #[must_use]
    pub fn is_write(self) -> bool {
        !matches!(self, Verb::Get | Verb::List | Verb::Watch)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One call of a client, as an [`Interceptor`](super::Interceptor) sees it.
///
/// Displayed as in error messages: `update deployments.apps default/web`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The verb.
    pub verb: Verb,
    /// The resource.
    pub resource: &'a ApiResource,
    /// The namespace, if any.
    pub namespace: Option<&'a str>,
    /// The object's name, if the call is for one object that has a name already.
    pub name: Option<&'a str>,
    /// The subresource: `status`, `scale`.
    pub subresource: Option<&'a str>,
    /// The request body, if any.
    pub body: Option<&'a Bytes>,
    /// Whether the cache answers the call.
    pub cached: bool,
    /// Whether it is a dry run.
    pub dry_run: bool,
}

impl<'a> Call<'a> {
    pub(crate) fn new(verb: Verb, resource: &'a ApiResource, namespace: Option<&'a str>) -> Call<'a> {
        Call {
            verb,
            resource,
            namespace,
            name: None,
            subresource: None,
            body: None,
            cached: false,
            dry_run: false,
        }
    }

    /// The call's target, as an owned value.
    #[must_use]
    pub fn target(&self) -> Target {
        let owned = |text: Option<&str>| text.map(Box::from);
        Target {
            verb: self.verb,
            group: self.resource.group.as_str().into(),
            plural: self.resource.plural.as_str().into(),
            namespace: owned(self.namespace),
            name: owned(self.name),
            subresource: owned(self.subresource),
        }
    }

    /// The error of this call for a server's `Status`. Interceptors use it to simulate a failing server.
    #[must_use]
    pub fn api_error(&self, status: Status) -> Error {
        Error::api(self.target(), status, None)
    }
}

impl fmt::Display for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = self.resource;
        write_target(
            f,
            self.verb,
            (&resource.group, &resource.plural, self.subresource),
            self.namespace,
            self.name,
        )
    }
}

/// The target of a call, in an error. Displayed like [`Call`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    verb: Verb,
    group: Box<str>,
    plural: Box<str>,
    namespace: Option<Box<str>>,
    name: Option<Box<str>>,
    subresource: Option<Box<str>>,
}

impl Target {
    /// The verb.
    #[must_use]
    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// The API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The resource: `deployments`.
    #[must_use]
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// The namespace, if any.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The object's name, if the call was for one object that had a name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The subresource, if any.
    #[must_use]
    pub fn subresource(&self) -> Option<&str> {
        self.subresource.as_deref()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = (&*self.group, &*self.plural, self.subresource());
        write_target(f, self.verb, resource, self.namespace(), self.name())
    }
}

fn write_target(
    f: &mut fmt::Formatter<'_>,
    verb: Verb,
    (group, plural, subresource): (&str, &str, Option<&str>),
    namespace: Option<&str>,
    name: Option<&str>,
) -> fmt::Result {
    write!(f, "{verb} {plural}")?;
    if !group.is_empty() {
        write!(f, ".{group}")?;
    }
    if let Some(subresource) = subresource {
        write!(f, "/{subresource}")?;
    }
    match (namespace, name) {
        (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
        (None, Some(name)) => write!(f, " {name}"),
        (Some(namespace), None) => write!(f, " in {namespace}"),
        (None, None) => Ok(()),
    }
}
