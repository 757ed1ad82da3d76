//! The metadata that controllers read from objects of any kind.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

/// The finalizer of an object that waits until its dependents are deleted.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object that waits until its dependents no longer reference it.
pub(crate) const ORPHAN: &str = "orphan";

/// The group and plural of a kind, independent of the version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
pub(crate) struct Resource {
    #[serde(default)]
    pub(crate) group: Arc<str>,
    #[serde(rename = "resource")]
    pub(crate) plural: Arc<str>,
}

impl Resource {
    pub(crate) fn new(group: &str, plural: &str) -> Resource {
        Resource { group: group.into(), plural: plural.into() }
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        *self.plural == *plural && *self.group == *group
    }

    pub(crate) fn is_definition(&self) -> bool {
        self.is("apiextensions.k8s.io", "customresourcedefinitions")
    }

    /// As in condition messages: `pods.`, `deployments.apps`.
    pub(crate) fn dotted(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}

/// An owner reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reference {
    #[serde(default)]
    pub(crate) api_version: Box<str>,
    #[serde(default)]
    pub(crate) kind: Box<str>,
    #[serde(default)]
    pub(crate) name: Box<str>,
    pub(crate) uid: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) controller: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) block_owner_deletion: Option<bool>,
}

impl Reference {
    /// Whether it blocks the foreground deletion of the owner.
    pub(crate) fn is_blocking(&self) -> bool {
        self.block_owner_deletion == Some(true)
    }

    /// Whether both name an object of the same kind and name.
    pub(crate) fn names_the_same(&self, other: &Reference) -> bool {
        (&self.api_version, &self.kind, &self.name) == (&other.api_version, &other.kind, &other.name)
    }
}

/// The part of the metadata that controllers need.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Meta {
    pub(crate) uid: Arc<str>,
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) resource_version: Box<str>,
    pub(crate) creation_timestamp: Option<Timestamp>,
    pub(crate) deletion_timestamp: Option<Timestamp>,
    pub(crate) finalizers: Vec<Box<str>>,
    pub(crate) owner_references: Vec<Reference>,
}

impl Meta {
    pub(crate) fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    pub(crate) fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| **finalizer == *name)
    }
}

impl From<&ObjectMeta> for Meta {
    fn from(meta: &ObjectMeta) -> Meta {
        let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
        let references = meta.owner_references.iter().flatten().map(|one| Reference {
            api_version: one.api_version.as_str().into(),
            kind: one.kind.as_str().into(),
            name: one.name.as_str().into(),
            uid: one.uid.as_str().into(),
            controller: one.controller,
            block_owner_deletion: one.block_owner_deletion,
        });
        Meta {
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            namespace: text(&meta.namespace),
            name: text(&meta.name),
            resource_version: text(&meta.resource_version),
            creation_timestamp: meta.creation_timestamp.as_ref().map(|time| time.0),
            deletion_timestamp: meta.deletion_timestamp.as_ref().map(|time| time.0),
            finalizers: meta.finalizers.iter().flatten().map(|one| one.as_str().into()).collect(),
            owner_references: references.collect(),
        }
    }
}
