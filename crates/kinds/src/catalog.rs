//! Lookups in the generated table, without allocation or work at startup.

use crate::{
    generated::{
        TYPES, core_v1,
        kinds::{BY_KIND, BY_PLURAL, GROUPS, KINDS},
        meta_v1,
    },
    table::{Group, Kind, Type},
};

/// The served kinds in the order of discovery.
#[must_use]
pub fn kinds() -> &'static [Kind] {
    &KINDS
}

/// The groups in the order of discovery, the core group first.
#[must_use]
pub fn groups() -> &'static [Group] {
    &GROUPS
}

/// All types, sorted by their `OpenAPI` name.
#[must_use]
pub fn types() -> &'static [&'static Type] {
    &TYPES
}

/// The kind served at `group`, `version` and `plural`.
#[must_use]
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    look_up(&BY_PLURAL, |kind| (kind.group, kind.version, kind.plural), (group, version, plural))
}

/// The served kind called `kind` in `group` and `version`.
#[must_use]
pub fn find_kind(group: &str, version: &str, kind: &str) -> Option<&'static Kind> {
    look_up(&BY_KIND, |kind| (kind.group, kind.version, kind.kind), (group, version, kind))
}

/// The type with this name in `OpenAPI`: `io.k8s.api.core.v1.Pod`.
#[must_use]
pub fn type_by_name(name: &str) -> Option<&'static Type> {
    let found = TYPES.binary_search_by(|ty| ty.name.cmp(name)).ok()?;
    TYPES.get(found).copied()
}

/// The type of a body with this group, version and kind: a served kind, its list, the body of a subresource, or
/// a type of `meta/v1` that belongs to several groups (`DeleteOptions`, `Status`).
#[must_use]
pub fn body(group: &str, version: &str, kind: &str) -> Option<&'static Type> {
    if let Some(found) = find_kind(group, version, kind) {
        return Some(found.ty);
    }
    let of = kind.strip_suffix("List").and_then(|item| find_kind(group, version, item));
    if let Some(list) = of.and_then(|of| of.list_ty) {
        return Some(list);
    }
    let (meta, core) = (group == "meta.k8s.io" && version == "v1", group.is_empty() && version == "v1");
    match kind {
        // Every group version has these.
        "DeleteOptions" => Some(&meta_v1::DELETE_OPTIONS),
        "WatchEvent" => Some(&meta_v1::WATCH_EVENT),
        "PartialObjectMetadata" if meta => Some(&meta_v1::PARTIAL_OBJECT_METADATA),
        "PartialObjectMetadataList" if meta => Some(&meta_v1::PARTIAL_OBJECT_METADATA_LIST),
        "Table" if meta => Some(&meta_v1::TABLE),
        "APIGroup" if core => Some(&meta_v1::API_GROUP),
        "APIGroupList" if core => Some(&meta_v1::API_GROUP_LIST),
        "APIResourceList" if core => Some(&meta_v1::API_RESOURCE_LIST),
        "APIVersions" if core => Some(&meta_v1::API_VERSIONS),
        "List" if core => Some(&core_v1::LIST),
        "Status" if core => Some(&meta_v1::STATUS),
        _ => {
            let mut subresources = KINDS.iter().flat_map(|known| known.subresources);
            subresources.find(|sub| sub.kind == kind && sub.group == group && sub.version == version)?.ty
        }
    }
}

fn look_up(
    index: &[u8],
    key: fn(&'static Kind) -> (&'static str, &'static str, &'static str),
    wanted: (&str, &str, &str),
) -> Option<&'static Kind> {
    let at = |place: u8| KINDS.get(usize::from(place));
    let found = index.binary_search_by(|place| at(*place).map(key).cmp(&Some(wanted))).ok()?;
    index.get(found).copied().and_then(at)
}
