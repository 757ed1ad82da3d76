//! The types of `k8s.io/api/storage/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F, M};
use crate::table::{Field, Merge, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static CSI_DRIVER: Type = Type { name: "io.k8s.api.storage.v1.CSIDriver", go: "v1.CSIDriver", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.CSIDriverSpec", shape: Shape::Struct(&CSI_DRIVER_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CSI_DRIVER_LIST: Type = Type { name: "io.k8s.api.storage.v1.CSIDriverList", go: "v1.CSIDriverList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.CSIDriver", shape: Shape::List(&Shape::Struct(&CSI_DRIVER)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CSI_DRIVER_SPEC: Type = Type { name: "io.k8s.api.storage.v1.CSIDriverSpec", go: "v1.CSIDriverSpec", atomic: false, fields: &[
    Field { name: "attachRequired", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "fsGroupPolicy", go: "v1.FSGroupPolicy", shape: Shape::String("v1.FSGroupPolicy"), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeAllocatableUpdatePeriodSeconds", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 9, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "podInfoOnMount", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "preventPodSchedulingIfMissing", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 11, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "requiresRepublish", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "seLinuxMount", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "serviceAccountTokenInSecrets", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 10, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "storageCapacity", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "tokenRequests", go: "[]v1.TokenRequest", shape: Shape::List(&Shape::Struct(&TOKEN_REQUEST)), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "volumeLifecycleModes", go: "[]v1.VolumeLifecycleMode", shape: Shape::List(&Shape::String("v1.VolumeLifecycleMode")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, ..F },
] };

pub(crate) static CSI_NODE: Type = Type { name: "io.k8s.api.storage.v1.CSINode", go: "v1.CSINode", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.CSINodeSpec", shape: Shape::Struct(&CSI_NODE_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.CSINodeStatus", shape: Shape::Struct(&CSI_NODE_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CSI_NODE_DRIVER: Type = Type { name: "io.k8s.api.storage.v1.CSINodeDriver", go: "v1.CSINodeDriver", atomic: false, fields: &[
    Field { name: "allocatable", go: "v1.VolumeNodeResources", shape: Shape::Struct(&VOLUME_NODE_RESOURCES), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeID", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "topologyKeys", go: "[]string", shape: Shape::List(&Shape::String("string")), omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static CSI_NODE_LIST: Type = Type { name: "io.k8s.api.storage.v1.CSINodeList", go: "v1.CSINodeList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.CSINode", shape: Shape::List(&Shape::Struct(&CSI_NODE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CSI_NODE_SPEC: Type = Type { name: "io.k8s.api.storage.v1.CSINodeSpec", go: "v1.CSINodeSpec", atomic: false, fields: &[
    Field { name: "drivers", go: "[]v1.CSINodeDriver", shape: Shape::List(&Shape::Struct(&CSI_NODE_DRIVER)), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
] };

pub(crate) static CSI_NODE_STATUS: Type = Type { name: "io.k8s.api.storage.v1.CSINodeStatus", go: "v1.CSINodeStatus", atomic: false, fields: &[
    Field { name: "storageHealth", go: "[]v1.StorageHealth", shape: Shape::List(&Shape::Struct(&STORAGE_HEALTH)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
] };

pub(crate) static CSI_STORAGE_CAPACITY: Type = Type { name: "io.k8s.api.storage.v1.CSIStorageCapacity", go: "v1.CSIStorageCapacity", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "capacity", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "maximumVolumeSize", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeTopology", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "storageClassName", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CSI_STORAGE_CAPACITY_LIST: Type = Type { name: "io.k8s.api.storage.v1.CSIStorageCapacityList", go: "v1.CSIStorageCapacityList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.CSIStorageCapacity", shape: Shape::List(&Shape::Struct(&CSI_STORAGE_CAPACITY)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STORAGE_CLASS: Type = Type { name: "io.k8s.api.storage.v1.StorageClass", go: "v1.StorageClass", atomic: false, fields: &[
    Field { name: "allowVolumeExpansion", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "allowedTopologies", go: "[]v1.TopologySelectorTerm", shape: Shape::List(&Shape::Struct(&super::core_v1::TOPOLOGY_SELECTOR_TERM)), proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "mountOptions", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "parameters", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "provisioner", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reclaimPolicy", go: "v1.PersistentVolumeReclaimPolicy", shape: Shape::String("v1.PersistentVolumeReclaimPolicy"), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Delete", "Recycle", "Retain"], ..F },
    Field { name: "volumeBindingMode", go: "v1.VolumeBindingMode", shape: Shape::String("v1.VolumeBindingMode"), pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Immediate", "WaitForFirstConsumer"], ..F },
] };

pub(crate) static STORAGE_CLASS_LIST: Type = Type { name: "io.k8s.api.storage.v1.StorageClassList", go: "v1.StorageClassList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.StorageClass", shape: Shape::List(&Shape::Struct(&STORAGE_CLASS)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STORAGE_HEALTH: Type = Type { name: "io.k8s.api.storage.v1.StorageHealth", go: "v1.StorageHealth", atomic: false, fields: &[
    Field { name: "healthConditions", go: "[]v1.StorageHealthCondition", shape: Shape::List(&Shape::Struct(&STORAGE_HEALTH_CONDITION)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STORAGE_HEALTH_CONDITION: Type = Type { name: "io.k8s.api.storage.v1.StorageHealthCondition", go: "v1.StorageHealthCondition", atomic: false, fields: &[
    Field { name: "accessMode", go: "v1.PersistentVolumeAccessMode", shape: Shape::String("v1.PersistentVolumeAccessMode"), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"], ..F },
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.StorageHealthStatusType", shape: Shape::String("v1.StorageHealthStatusType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["StorageDegraded", "StorageUnreachable"], ..F },
    Field { name: "volumeMode", go: "v1.PersistentVolumeMode", shape: Shape::String("v1.PersistentVolumeMode"), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Block", "Filesystem"], ..F },
] };

pub(crate) static TOKEN_REQUEST: Type = Type { name: "io.k8s.api.storage.v1.TokenRequest", go: "v1.TokenRequest", atomic: false, fields: &[
    Field { name: "audience", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "expirationSeconds", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_ATTACHMENT: Type = Type { name: "io.k8s.api.storage.v1.VolumeAttachment", go: "v1.VolumeAttachment", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.VolumeAttachmentSpec", shape: Shape::Struct(&VOLUME_ATTACHMENT_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.VolumeAttachmentStatus", shape: Shape::Struct(&VOLUME_ATTACHMENT_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_ATTACHMENT_LIST: Type = Type { name: "io.k8s.api.storage.v1.VolumeAttachmentList", go: "v1.VolumeAttachmentList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.VolumeAttachment", shape: Shape::List(&Shape::Struct(&VOLUME_ATTACHMENT)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_ATTACHMENT_SOURCE: Type = Type { name: "io.k8s.api.storage.v1.VolumeAttachmentSource", go: "v1.VolumeAttachmentSource", atomic: false, fields: &[
    Field { name: "inlineVolumeSpec", go: "v1.PersistentVolumeSpec", shape: Shape::Struct(&super::core_v1::PERSISTENT_VOLUME_SPEC), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "persistentVolumeName", pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_ATTACHMENT_SPEC: Type = Type { name: "io.k8s.api.storage.v1.VolumeAttachmentSpec", go: "v1.VolumeAttachmentSpec", atomic: false, fields: &[
    Field { name: "attacher", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeName", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "source", go: "v1.VolumeAttachmentSource", shape: Shape::Struct(&VOLUME_ATTACHMENT_SOURCE), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_ATTACHMENT_STATUS: Type = Type { name: "io.k8s.api.storage.v1.VolumeAttachmentStatus", go: "v1.VolumeAttachmentStatus", atomic: false, fields: &[
    Field { name: "attachError", go: "v1.VolumeError", shape: Shape::Struct(&VOLUME_ERROR), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "attached", go: "bool", shape: Shape::Bool, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "attachmentMetadata", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "detachError", go: "v1.VolumeError", shape: Shape::Struct(&VOLUME_ERROR), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_ATTRIBUTES_CLASS: Type = Type { name: "io.k8s.api.storage.v1.VolumeAttributesClass", go: "v1.VolumeAttributesClass", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "driverName", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "parameters", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_ATTRIBUTES_CLASS_LIST: Type = Type { name: "io.k8s.api.storage.v1.VolumeAttributesClassList", go: "v1.VolumeAttributesClassList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.VolumeAttributesClass", shape: Shape::List(&Shape::Struct(&VOLUME_ATTRIBUTES_CLASS)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_ERROR: Type = Type { name: "io.k8s.api.storage.v1.VolumeError", go: "v1.VolumeError", atomic: false, fields: &[
    Field { name: "errorCode", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "time", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_NODE_RESOURCES: Type = Type { name: "io.k8s.api.storage.v1.VolumeNodeResources", go: "v1.VolumeNodeResources", atomic: false, fields: &[
    Field { name: "count", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };
