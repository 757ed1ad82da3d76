//! The names of resources in a configuration.

/// A resource as a configuration names it: `secrets`, `pandas.bears.example`, `*.apps`, `*.`, `*.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupResource<'a> {
    /// Empty for the core group.
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
}

impl<'a> GroupResource<'a> {
    pub(crate) fn parse(text: &'a str) -> GroupResource<'a> {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        GroupResource { group, resource }
    }

    pub(crate) fn is_everything(&self) -> bool {
        (self.group, self.resource) == ("*", "*")
    }

    /// As kube-apiserver writes it in an error.
    pub(crate) fn shown(&self) -> String {
        match (self.group, self.resource) {
            ("", "*") => "*.".into(),
            ("", resource) => resource.into(),
            (group, resource) => format!("{resource}.{group}"),
        }
    }

    /// `core/secrets`, as it is in keys.
    pub(crate) fn place(&self) -> String {
        let group = if self.group.is_empty() { "core" } else { self.group };
        format!("{group}/{}", self.resource)
    }
}
