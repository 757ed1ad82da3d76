//! What garbage collection reads of a stored object.

use bytes::Bytes;
use k1s_store::Revision;
use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;

use super::graph::{FOREGROUND, ORPHAN, Uid};
use crate::stored::Stored;

/// A reference to an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) api_version: Box<str>,
    pub(super) kind: Box<str>,
    pub(super) name: Box<str>,
    pub(super) uid: Uid,
    /// Whether the owner, when it waits for its dependents, waits for this one.
    pub(super) blocking: bool,
}

impl Reference {
    /// Whether both speak of an object of the same kind and name.
    pub(super) fn names_the_same(&self, other: &Reference) -> bool {
        (&self.api_version, &self.kind, &self.name) == (&other.api_version, &other.kind, &other.name)
    }
}

/// The metadata that counts.
#[derive(Debug, Default)]
pub(super) struct Meta {
    pub(super) uid: Box<str>,
    pub(super) references: Vec<Reference>,
    pub(super) deleting: bool,
    pub(super) foreground: bool,
    pub(super) orphan: bool,
}

#[derive(Deserialize)]
struct Head {
    metadata: RawMeta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawMeta {
    uid: String,
    deletion_timestamp: Option<String>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<RawReference>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawReference {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    block_owner_deletion: Option<bool>,
}

/// Reads the metadata of a value from the store; `None` if it is no object.
pub(super) fn read(value: &Bytes) -> Option<Meta> {
    let stored = Stored::new(value, Revision::FIRST).ok()?;
    let metadata = serde_json::from_slice::<Head>(stored.json()).ok()?.metadata;
    let has = |name: &str| metadata.finalizers.iter().flatten().any(|finalizer| finalizer == name);
    Some(Meta {
        deleting: metadata.deletion_timestamp.is_some(),
        foreground: has(FOREGROUND),
        orphan: has(ORPHAN),
        references: metadata
            .owner_references
            .into_iter()
            .flatten()
            .map(|one| Reference {
                api_version: one.api_version.into(),
                kind: one.kind.into(),
                name: one.name.into(),
                uid: one.uid.into(),
                blocking: one.block_owner_deletion.unwrap_or(false),
            })
            .collect(),
        uid: metadata.uid.into(),
    })
}

/// Whether a value may be of interest: looking for texts is many times quicker than parsing, and parsing decides.
pub(super) fn may_matter(value: &[u8]) -> bool {
    memmem::find(value, b"\"ownerReferences\"").is_some()
        || memmem::find(value, b"\"deletionTimestamp\"").is_some()
            && (memmem::find(value, b"\"foregroundDeletion\"").is_some()
                || memmem::find(value, b"\"orphan\"").is_some())
}

/// The same of an object that is being written.
pub(super) fn matters(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let filled = |field: &str| metadata[field].as_array().is_some_and(|list| !list.is_empty());
    let waits = |finalizer: &Value| finalizer == FOREGROUND || finalizer == ORPHAN;
    filled("ownerReferences")
        || metadata["deletionTimestamp"].is_string()
            && metadata["finalizers"].as_array().is_some_and(|list| list.iter().any(waits))
}
