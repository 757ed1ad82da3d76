//! `storage.k8s.io`.

mod csi;
mod storage_class;

use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    storage_class::rules(kind).or_else(|| csi::rules(kind))
}
