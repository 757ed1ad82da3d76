//! Look-ups in the generated table: no allocation, no work at start-up.

use crate::{
    generated::{
        TYPES,
        kinds::{BY_KIND, BY_PLURAL, GROUPS, KINDS},
    },
    table::{Group, Kind, Type},
};

/// The kinds that are served, in discovery's order.
#[must_use]
pub fn kinds() -> &'static [Kind] {
    &KINDS
}

/// The groups in discovery's order, the core first.
#[must_use]
pub fn groups() -> &'static [Group] {
    &GROUPS
}

/// Every type, sorted by its name in `OpenAPI`.
#[must_use]
pub fn types() -> &'static [&'static Type] {
    &TYPES
}

/// The kind that is served at `group`, `version` and `plural`.
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

fn look_up(
    index: &[u8],
    key: fn(&'static Kind) -> (&'static str, &'static str, &'static str),
    wanted: (&str, &str, &str),
) -> Option<&'static Kind> {
    let at = |place: u8| KINDS.get(usize::from(place));
    let found = index.binary_search_by(|place| at(*place).map(key).cmp(&Some(wanted))).ok()?;
    index.get(found).copied().and_then(at)
}
