//! `storage.k8s.io`.

mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod storage_class;
mod volume_attachment;
mod volume_attributes_class;

use crate::rules::Rules;

/// The rules of a kind of this group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "CSIDriver" => &csi_driver::RULES,
        "CSINode" => &csi_node::RULES,
        "CSIStorageCapacity" => &csi_storage_capacity::RULES,
        "StorageClass" => &storage_class::RULES,
        "VolumeAttachment" => &volume_attachment::RULES,
        "VolumeAttributesClass" => &volume_attributes_class::RULES,
        _ => return None,
    })
}
