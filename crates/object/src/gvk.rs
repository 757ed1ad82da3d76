//! The names of kinds and resources: group, version, kind, resource.
//!
//! Each type is generic over its text: owned by default, borrowed (`GroupVersionKind<&str>`) where a lookup should not
//! allocate.

use std::fmt;

/// A group and a version, as `apiVersion` names them. The core group is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct GroupVersion<S = String> {
    /// `apps`; empty for the core group.
    pub group: S,
    /// `v1`
    pub version: S,
}

/// An `apiVersion` with more than one slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseGroupVersionError {
    /// The text that was to be parsed.
    pub text: String,
}

impl fmt::Display for ParseGroupVersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unexpected GroupVersion string: {}", self.text)
    }
}

impl std::error::Error for ParseGroupVersionError {}

impl<S> GroupVersion<S> {
    /// A group version of these parts.
    pub const fn new(group: S, version: S) -> GroupVersion<S> {
        GroupVersion { group, version }
    }

    /// A kind of this group version.
    pub fn kind(self, kind: S) -> GroupVersionKind<S> {
        GroupVersionKind { group: self.group, version: self.version, kind }
    }
}

impl<'a> GroupVersion<&'a str> {
    /// Parses an `apiVersion`: `v1`, `apps/v1`.
    ///
    /// # Errors
    /// More than one slash. An empty text is no error: both parts are empty.
    pub fn parse(api_version: &'a str) -> Result<GroupVersion<&'a str>, ParseGroupVersionError> {
        match api_version.matches('/').count() {
            0 | 1 => Ok(GroupVersion::split(api_version)),
            _ => Err(ParseGroupVersionError { text: api_version.to_owned() }),
        }
    }

    /// The same for an `apiVersion` that is known to have at most one slash; further ones are taken for the version's.
    pub fn split(api_version: &'a str) -> GroupVersion<&'a str> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        GroupVersion { group, version }
    }
}

impl<S: AsRef<str>> GroupVersion<S> {
    /// Whether this is how an object with this `apiVersion` writes it.
    pub fn is_written_as(&self, api_version: &str) -> bool {
        let (group, version) = (self.group.as_ref(), self.version.as_ref());
        match group {
            "" => api_version == version,
            group => api_version.strip_prefix(group).and_then(|rest| rest.strip_prefix('/')) == Some(version),
        }
    }

    /// The same, borrowed.
    pub fn borrowed(&self) -> GroupVersion<&str> {
        GroupVersion { group: self.group.as_ref(), version: self.version.as_ref() }
    }
}

/// As `apiVersion` is written: `apps/v1`, `v1`.
impl<S: AsRef<str>> fmt::Display for GroupVersion<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_ref() {
            "" => f.write_str(self.version.as_ref()),
            group => write!(f, "{group}/{}", self.version.as_ref()),
        }
    }
}

/// A version of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct GroupVersionKind<S = String> {
    /// `apps`; empty for the core group.
    pub group: S,
    /// `v1`
    pub version: S,
    /// `Deployment`
    pub kind: S,
}

impl<S> GroupVersionKind<S> {
    /// A kind of these parts.
    pub const fn new(group: S, version: S, kind: S) -> GroupVersionKind<S> {
        GroupVersionKind { group, version, kind }
    }
}

impl<S: AsRef<str>> GroupVersionKind<S> {
    /// Its group and version: the `apiVersion`.
    pub fn group_version(&self) -> GroupVersion<&str> {
        GroupVersion { group: self.group.as_ref(), version: self.version.as_ref() }
    }

    /// The kind in whatever version.
    pub fn group_kind(&self) -> GroupKind<&str> {
        GroupKind { group: self.group.as_ref(), kind: self.kind.as_ref() }
    }

    /// The same, borrowed.
    pub fn borrowed(&self) -> GroupVersionKind<&str> {
        GroupVersionKind {
            group: self.group.as_ref(),
            version: self.version.as_ref(),
            kind: self.kind.as_ref(),
        }
    }
}

/// As Kubernetes prints it: `apps/v1, Kind=Deployment`, `/v1, Kind=Pod`.
impl<S: AsRef<str>> fmt::Display for GroupVersionKind<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group.as_ref(), self.version.as_ref(), self.kind.as_ref())
    }
}

/// A version of a resource: where it is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct GroupVersionResource<S = String> {
    /// `apps`; empty for the core group.
    pub group: S,
    /// `v1`
    pub version: S,
    /// `deployments`
    pub resource: S,
}

impl<S> GroupVersionResource<S> {
    /// A resource of these parts.
    pub const fn new(group: S, version: S, resource: S) -> GroupVersionResource<S> {
        GroupVersionResource { group, version, resource }
    }
}

impl<S: AsRef<str>> GroupVersionResource<S> {
    /// The resource in whatever version.
    pub fn group_resource(&self) -> GroupResource<&str> {
        GroupResource { group: self.group.as_ref(), resource: self.resource.as_ref() }
    }

    /// The same, borrowed.
    pub fn borrowed(&self) -> GroupVersionResource<&str> {
        GroupVersionResource {
            group: self.group.as_ref(),
            version: self.version.as_ref(),
            resource: self.resource.as_ref(),
        }
    }
}

/// As Kubernetes prints it: `apps/v1, Resource=deployments`, `/v1, Resource=pods`.
impl<S: AsRef<str>> fmt::Display for GroupVersionResource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Resource={}", self.group.as_ref(), self.version.as_ref(), self.resource.as_ref())
    }
}

/// A resource in whatever version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct GroupResource<S = String> {
    /// `apps`; empty for the core group.
    pub group: S,
    /// `deployments`
    pub resource: S,
}

impl<S> GroupResource<S> {
    /// A resource of these parts.
    pub const fn new(group: S, resource: S) -> GroupResource<S> {
        GroupResource { group, resource }
    }
}

/// `deployments.apps`, or `pods` of the core group.
impl<S: AsRef<str>> fmt::Display for GroupResource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_qualified(f, self.resource.as_ref(), self.group.as_ref())
    }
}

/// A kind in whatever version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct GroupKind<S = String> {
    /// `apps`; empty for the core group.
    pub group: S,
    /// `Deployment`
    pub kind: S,
}

impl<S> GroupKind<S> {
    /// A kind of these parts.
    pub const fn new(group: S, kind: S) -> GroupKind<S> {
        GroupKind { group, kind }
    }
}

/// `Deployment.apps`, or `Pod` of the core group.
impl<S: AsRef<str>> fmt::Display for GroupKind<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_qualified(f, self.kind.as_ref(), self.group.as_ref())
    }
}

fn write_qualified(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    match group {
        "" => f.write_str(name),
        group => write!(f, "{name}.{group}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_version_is_a_group_and_a_version() {
        assert_eq!(GroupVersion::parse("v1"), Ok(GroupVersion::new("", "v1")));
        assert_eq!(GroupVersion::parse("apps/v1"), Ok(GroupVersion::new("apps", "v1")));
        assert_eq!(GroupVersion::parse(""), Ok(GroupVersion::new("", "")));
        assert_eq!(
            GroupVersion::parse("a/b/c").unwrap_err().to_string(),
            "unexpected GroupVersion string: a/b/c"
        );
        for text in ["v1", "apps/v1", "example.com/v1beta1"] {
            let parsed = GroupVersion::parse(text).unwrap();
            assert_eq!(parsed.to_string(), text);
            assert!(parsed.is_written_as(text));
            assert!(!parsed.is_written_as("other/v1") && !parsed.is_written_as("/v1"));
        }
    }

    #[test]
    fn names_are_printed_as_kubernetes_prints_them() {
        let deployment = GroupVersionKind::new("apps", "v1", "Deployment");
        assert_eq!(deployment.to_string(), "apps/v1, Kind=Deployment");
        assert_eq!(deployment.group_version().to_string(), "apps/v1");
        assert_eq!(deployment.group_kind().to_string(), "Deployment.apps");
        assert_eq!(GroupVersionKind::new("", "v1", "Pod").to_string(), "/v1, Kind=Pod");
        let pods = GroupVersionResource::new("", "v1", "pods");
        assert_eq!(pods.to_string(), "/v1, Resource=pods");
        assert_eq!(pods.group_resource().to_string(), "pods");
        assert_eq!(GroupResource::new("apps", "deployments").to_string(), "deployments.apps");
    }
}
