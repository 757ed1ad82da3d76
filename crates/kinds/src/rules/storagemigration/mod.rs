//! `storagemigration.k8s.io`.

mod storage_version_migration;

use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "StorageVersionMigration" => &storage_version_migration::RULES,
        _ => return None,
    })
}
