//! The types of `k8s.io/api/core/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F, M};
use crate::table::{Field, Merge, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.AWSElasticBlockStoreVolumeSource", go: "v1.AWSElasticBlockStoreVolumeSource", atomic: false, fields: &[
    Field { name: "fsType", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "partition", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "volumeID", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static AFFINITY: Type = Type { name: "io.k8s.api.core.v1.Affinity", go: "v1.Affinity", atomic: false, fields: &[
    Field { name: "nodeAffinity", go: "v1.NodeAffinity", shape: Shape::Struct(&NODE_AFFINITY), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "podAffinity", go: "v1.PodAffinity", shape: Shape::Struct(&POD_AFFINITY), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "podAntiAffinity", go: "v1.PodAntiAffinity", shape: Shape::Struct(&POD_ANTI_AFFINITY), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static APP_ARMOR_PROFILE: Type = Type { name: "io.k8s.api.core.v1.AppArmorProfile", go: "v1.AppArmorProfile", atomic: false, fields: &[
    Field { name: "localhostProfile", pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.AppArmorProfileType", shape: Shape::String("v1.AppArmorProfileType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Localhost", "RuntimeDefault", "Unconfined"], ..F },
] };

pub(crate) static ATTACHED_VOLUME: Type = Type { name: "io.k8s.api.core.v1.AttachedVolume", go: "v1.AttachedVolume", atomic: false, fields: &[
    Field { name: "devicePath", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", go: "v1.UniqueVolumeName", shape: Shape::String("v1.UniqueVolumeName"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static AZURE_DISK_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.AzureDiskVolumeSource", go: "v1.AzureDiskVolumeSource", atomic: false, fields: &[
    Field { name: "cachingMode", go: "v1.AzureDataDiskCachingMode", shape: Shape::String("v1.AzureDataDiskCachingMode"), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"ReadWrite\"", values: &["None", "ReadOnly", "ReadWrite"], ..F },
    Field { name: "diskName", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "diskURI", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "fsType", pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"ext4\"", ..F },
    Field { name: "kind", go: "v1.AzureDataDiskKind", shape: Shape::String("v1.AzureDataDiskKind"), pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"Shared\"", values: &["Dedicated", "Managed", "Shared"], ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), default: "false", ..F },
] };

pub(crate) static AZURE_FILE_PERSISTENT_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.AzureFilePersistentVolumeSource", go: "v1.AzureFilePersistentVolumeSource", atomic: false, fields: &[
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretName", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "secretNamespace", pointer: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "shareName", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static AZURE_FILE_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.AzureFileVolumeSource", go: "v1.AzureFileVolumeSource", atomic: false, fields: &[
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretName", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "shareName", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static BINDING: Type = Type { name: "io.k8s.api.core.v1.Binding", go: "v1.Binding", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "target", go: "v1.ObjectReference", shape: Shape::Struct(&OBJECT_REFERENCE), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CSI_PERSISTENT_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.CSIPersistentVolumeSource", go: "v1.CSIPersistentVolumeSource", atomic: false, fields: &[
    Field { name: "controllerExpandSecretRef", go: "v1.SecretReference", shape: Shape::Struct(&SECRET_REFERENCE), pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "controllerPublishSecretRef", go: "v1.SecretReference", shape: Shape::Struct(&SECRET_REFERENCE), pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "driver", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "fsType", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeExpandSecretRef", go: "v1.SecretReference", shape: Shape::Struct(&SECRET_REFERENCE), pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodePublishSecretRef", go: "v1.SecretReference", shape: Shape::Struct(&SECRET_REFERENCE), pointer: true, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeStageSecretRef", go: "v1.SecretReference", shape: Shape::Struct(&SECRET_REFERENCE), pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "volumeAttributes", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeHandle", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CSI_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.CSIVolumeSource", go: "v1.CSIVolumeSource", atomic: false, fields: &[
    Field { name: "driver", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "fsType", pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodePublishSecretRef", go: "v1.LocalObjectReference", shape: Shape::Struct(&LOCAL_OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "volumeAttributes", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CAPABILITIES: Type = Type { name: "io.k8s.api.core.v1.Capabilities", go: "v1.Capabilities", atomic: false, fields: &[
    Field { name: "add", go: "[]v1.Capability", shape: Shape::List(&Shape::String("v1.Capability")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "drop", go: "[]v1.Capability", shape: Shape::List(&Shape::String("v1.Capability")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static CEPH_FS_PERSISTENT_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.CephFSPersistentVolumeSource", go: "v1.CephFSPersistentVolumeSource", atomic: false, fields: &[
    Field { name: "monitors", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "path", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretFile", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "secretRef", go: "v1.SecretReference", shape: Shape::Struct(&SECRET_REFERENCE), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "user", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CEPH_FS_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.CephFSVolumeSource", go: "v1.CephFSVolumeSource", atomic: false, fields: &[
    Field { name: "monitors", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "path", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretFile", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "secretRef", go: "v1.LocalObjectReference", shape: Shape::Struct(&LOCAL_OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "user", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CINDER_PERSISTENT_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.CinderPersistentVolumeSource", go: "v1.CinderPersistentVolumeSource", atomic: false, fields: &[
    Field { name: "fsType", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretRef", go: "v1.SecretReference", shape: Shape::Struct(&SECRET_REFERENCE), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeID", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CINDER_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.CinderVolumeSource", go: "v1.CinderVolumeSource", atomic: false, fields: &[
    Field { name: "fsType", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretRef", go: "v1.LocalObjectReference", shape: Shape::Struct(&LOCAL_OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeID", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CLIENT_IP_CONFIG: Type = Type { name: "io.k8s.api.core.v1.ClientIPConfig", go: "v1.ClientIPConfig", atomic: false, fields: &[
    Field { name: "timeoutSeconds", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CLUSTER_TRUST_BUNDLE_PROJECTION: Type = Type { name: "io.k8s.api.core.v1.ClusterTrustBundleProjection", go: "v1.ClusterTrustBundleProjection", atomic: false, fields: &[
    Field { name: "labelSelector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "optional", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "path", required: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "signerName", pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "user", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static COMPONENT_CONDITION: Type = Type { name: "io.k8s.api.core.v1.ComponentCondition", go: "v1.ComponentCondition", atomic: false, fields: &[
    Field { name: "error", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.ComponentConditionType", shape: Shape::String("v1.ComponentConditionType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static COMPONENT_STATUS: Type = Type { name: "io.k8s.api.core.v1.ComponentStatus", go: "v1.ComponentStatus", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "conditions", go: "[]v1.ComponentCondition", shape: Shape::List(&Shape::Struct(&COMPONENT_CONDITION)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static COMPONENT_STATUS_LIST: Type = Type { name: "io.k8s.api.core.v1.ComponentStatusList", go: "v1.ComponentStatusList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.ComponentStatus", shape: Shape::List(&Shape::Struct(&COMPONENT_STATUS)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONFIG_MAP: Type = Type { name: "io.k8s.api.core.v1.ConfigMap", go: "v1.ConfigMap", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "binaryData", go: "map[string][]uint8", shape: Shape::Map(&Shape::Bytes), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "data", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "immutable", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONFIG_MAP_ENV_SOURCE: Type = Type { name: "io.k8s.api.core.v1.ConfigMapEnvSource", go: "v1.ConfigMapEnvSource", atomic: false, fields: &[
    Field { name: "name", declared_in: "LocalObjectReference", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[1], wrapped: false }), default: "\"\"", ..F },
    Field { name: "optional", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONFIG_MAP_KEY_SELECTOR: Type = Type { name: "io.k8s.api.core.v1.ConfigMapKeySelector", go: "v1.ConfigMapKeySelector", atomic: true, fields: &[
    Field { name: "key", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", declared_in: "LocalObjectReference", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[1], wrapped: false }), default: "\"\"", ..F },
    Field { name: "optional", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONFIG_MAP_LIST: Type = Type { name: "io.k8s.api.core.v1.ConfigMapList", go: "v1.ConfigMapList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.ConfigMap", shape: Shape::List(&Shape::Struct(&CONFIG_MAP)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONFIG_MAP_NODE_CONFIG_SOURCE: Type = Type { name: "io.k8s.api.core.v1.ConfigMapNodeConfigSource", go: "v1.ConfigMapNodeConfigSource", atomic: false, fields: &[
    Field { name: "kubeletConfigKey", required: true, omit: Omit::Never, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespace", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceVersion", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "uid", go: "types.UID", shape: Shape::String("types.UID"), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONFIG_MAP_PROJECTION: Type = Type { name: "io.k8s.api.core.v1.ConfigMapProjection", go: "v1.ConfigMapProjection", atomic: false, fields: &[
    Field { name: "items", go: "[]v1.KeyToPath", shape: Shape::List(&Shape::Struct(&KEY_TO_PATH)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "name", declared_in: "LocalObjectReference", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[1], wrapped: false }), default: "\"\"", ..F },
    Field { name: "optional", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONFIG_MAP_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.ConfigMapVolumeSource", go: "v1.ConfigMapVolumeSource", atomic: false, fields: &[
    Field { name: "defaultMode", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "defaultUser", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "items", go: "[]v1.KeyToPath", shape: Shape::List(&Shape::Struct(&KEY_TO_PATH)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "name", declared_in: "LocalObjectReference", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[1], wrapped: false }), default: "\"\"", ..F },
    Field { name: "optional", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONTAINER: Type = Type { name: "io.k8s.api.core.v1.Container", go: "v1.Container", atomic: false, fields: &[
    Field { name: "args", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "command", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "env", go: "[]v1.EnvVar", shape: Shape::List(&Shape::Struct(&ENV_VAR)), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "envFrom", go: "[]v1.EnvFromSource", shape: Shape::List(&Shape::Struct(&ENV_FROM_SOURCE)), proto: Some(Proto { number: 19, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "image", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "imagePullPolicy", go: "v1.PullPolicy", shape: Shape::String("v1.PullPolicy"), proto: Some(Proto { number: 14, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Always", "IfNotPresent", "Never"], ..F },
    Field { name: "lifecycle", go: "v1.Lifecycle", shape: Shape::Struct(&LIFECYCLE), pointer: true, proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "livenessProbe", go: "v1.Probe", shape: Shape::Struct(&PROBE), pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "ports", go: "[]v1.ContainerPort", shape: Shape::List(&Shape::Struct(&CONTAINER_PORT)), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "containerPort", ..M }, topology: Topology::Map(&["containerPort", "protocol"]), ..F },
    Field { name: "readinessProbe", go: "v1.Probe", shape: Shape::Struct(&PROBE), pointer: true, proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resizePolicy", go: "[]v1.ContainerResizePolicy", shape: Shape::List(&Shape::Struct(&CONTAINER_RESIZE_POLICY)), proto: Some(Proto { number: 23, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "resources", go: "v1.ResourceRequirements", shape: Shape::Struct(&RESOURCE_REQUIREMENTS), proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "restartPolicy", go: "v1.ContainerRestartPolicy", shape: Shape::String("v1.ContainerRestartPolicy"), pointer: true, proto: Some(Proto { number: 24, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "restartPolicyRules", go: "[]v1.ContainerRestartRule", shape: Shape::List(&Shape::Struct(&CONTAINER_RESTART_RULE)), proto: Some(Proto { number: 25, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "securityContext", go: "v1.SecurityContext", shape: Shape::Struct(&SECURITY_CONTEXT), pointer: true, proto: Some(Proto { number: 15, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "startupProbe", go: "v1.Probe", shape: Shape::Struct(&PROBE), pointer: true, proto: Some(Proto { number: 22, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "stdin", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 16, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "stdinOnce", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 17, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "terminationMessagePath", proto: Some(Proto { number: 13, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "terminationMessagePolicy", go: "v1.TerminationMessagePolicy", shape: Shape::String("v1.TerminationMessagePolicy"), proto: Some(Proto { number: 20, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["FallbackToLogsOnError", "File"], ..F },
    Field { name: "tty", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 18, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "volumeDevices", go: "[]v1.VolumeDevice", shape: Shape::List(&Shape::Struct(&VOLUME_DEVICE)), proto: Some(Proto { number: 21, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "devicePath", ..M }, topology: Topology::Map(&["devicePath"]), ..F },
    Field { name: "volumeMounts", go: "[]v1.VolumeMount", shape: Shape::List(&Shape::Struct(&VOLUME_MOUNT)), proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "mountPath", ..M }, topology: Topology::Map(&["mountPath"]), ..F },
    Field { name: "workingDir", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONTAINER_EXTENDED_RESOURCE_REQUEST: Type = Type { name: "io.k8s.api.core.v1.ContainerExtendedResourceRequest", go: "v1.ContainerExtendedResourceRequest", atomic: false, fields: &[
    Field { name: "containerName", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "requestName", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceName", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONTAINER_IMAGE: Type = Type { name: "io.k8s.api.core.v1.ContainerImage", go: "v1.ContainerImage", atomic: false, fields: &[
    Field { name: "names", go: "[]string", shape: Shape::List(&Shape::String("string")), omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "sizeBytes", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONTAINER_PORT: Type = Type { name: "io.k8s.api.core.v1.ContainerPort", go: "v1.ContainerPort", atomic: false, fields: &[
    Field { name: "containerPort", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "hostIP", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "hostPort", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "name", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "protocol", go: "v1.Protocol", shape: Shape::String("v1.Protocol"), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"TCP\"", values: &["SCTP", "TCP", "UDP"], ..F },
] };

pub(crate) static CONTAINER_RESIZE_POLICY: Type = Type { name: "io.k8s.api.core.v1.ContainerResizePolicy", go: "v1.ContainerResizePolicy", atomic: false, fields: &[
    Field { name: "resourceName", go: "v1.ResourceName", shape: Shape::String("v1.ResourceName"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "restartPolicy", go: "v1.ResourceResizeRestartPolicy", shape: Shape::String("v1.ResourceResizeRestartPolicy"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONTAINER_RESTART_RULE: Type = Type { name: "io.k8s.api.core.v1.ContainerRestartRule", go: "v1.ContainerRestartRule", atomic: false, fields: &[
    Field { name: "action", go: "v1.ContainerRestartRuleAction", shape: Shape::String("v1.ContainerRestartRuleAction"), required: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "exitCodes", go: "v1.ContainerRestartRuleOnExitCodes", shape: Shape::Struct(&CONTAINER_RESTART_RULE_ON_EXIT_CODES), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONTAINER_RESTART_RULE_ON_EXIT_CODES: Type = Type { name: "io.k8s.api.core.v1.ContainerRestartRuleOnExitCodes", go: "v1.ContainerRestartRuleOnExitCodes", atomic: false, fields: &[
    Field { name: "operator", go: "v1.ContainerRestartRuleOnExitCodesOperator", shape: Shape::String("v1.ContainerRestartRuleOnExitCodesOperator"), required: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "values", go: "[]int32", shape: Shape::List(&Shape::Int32), proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), topology: Topology::Set, ..F },
] };

pub(crate) static CONTAINER_STATE: Type = Type { name: "io.k8s.api.core.v1.ContainerState", go: "v1.ContainerState", atomic: false, fields: &[
    Field { name: "running", go: "v1.ContainerStateRunning", shape: Shape::Struct(&CONTAINER_STATE_RUNNING), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "terminated", go: "v1.ContainerStateTerminated", shape: Shape::Struct(&CONTAINER_STATE_TERMINATED), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "waiting", go: "v1.ContainerStateWaiting", shape: Shape::Struct(&CONTAINER_STATE_WAITING), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONTAINER_STATE_RUNNING: Type = Type { name: "io.k8s.api.core.v1.ContainerStateRunning", go: "v1.ContainerStateRunning", atomic: false, fields: &[
    Field { name: "startedAt", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONTAINER_STATE_TERMINATED: Type = Type { name: "io.k8s.api.core.v1.ContainerStateTerminated", go: "v1.ContainerStateTerminated", atomic: false, fields: &[
    Field { name: "containerID", proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "exitCode", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "finishedAt", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "signal", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "startedAt", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONTAINER_STATE_WAITING: Type = Type { name: "io.k8s.api.core.v1.ContainerStateWaiting", go: "v1.ContainerStateWaiting", atomic: false, fields: &[
    Field { name: "message", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONTAINER_STATUS: Type = Type { name: "io.k8s.api.core.v1.ContainerStatus", go: "v1.ContainerStatus", atomic: false, fields: &[
    Field { name: "allocatedResources", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "allocatedResourcesStatus", go: "[]v1.ResourceStatus", shape: Shape::List(&Shape::Struct(&RESOURCE_STATUS)), proto: Some(Proto { number: 14, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "containerID", proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "image", required: true, omit: Omit::Never, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "imageID", required: true, omit: Omit::Never, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "lastState", go: "v1.ContainerState", shape: Shape::Struct(&CONTAINER_STATE), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "ready", go: "bool", shape: Shape::Bool, required: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "resources", go: "v1.ResourceRequirements", shape: Shape::Struct(&RESOURCE_REQUIREMENTS), pointer: true, proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "restartCount", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "started", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 9, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "state", go: "v1.ContainerState", shape: Shape::Struct(&CONTAINER_STATE), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "stopSignal", go: "v1.Signal", shape: Shape::String("v1.Signal"), pointer: true, proto: Some(Proto { number: 15, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO", "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGRTMAX", "SIGRTMAX-1", "SIGRTMAX-10", "SIGRTMAX-11", "SIGRTMAX-12", "SIGRTMAX-13", "SIGRTMAX-14", "SIGRTMAX-2", "SIGRTMAX-3", "SIGRTMAX-4", "SIGRTMAX-5", "SIGRTMAX-6", "SIGRTMAX-7", "SIGRTMAX-8", "SIGRTMAX-9", "SIGRTMIN", "SIGRTMIN+1", "SIGRTMIN+10", "SIGRTMIN+11", "SIGRTMIN+12", "SIGRTMIN+13", "SIGRTMIN+14", "SIGRTMIN+15", "SIGRTMIN+2", "SIGRTMIN+3", "SIGRTMIN+4", "SIGRTMIN+5", "SIGRTMIN+6", "SIGRTMIN+7", "SIGRTMIN+8", "SIGRTMIN+9", "SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ"], ..F },
    Field { name: "user", go: "v1.ContainerUser", shape: Shape::Struct(&CONTAINER_USER), pointer: true, proto: Some(Proto { number: 13, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeMounts", go: "[]v1.VolumeMountStatus", shape: Shape::List(&Shape::Struct(&VOLUME_MOUNT_STATUS)), proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "mountPath", ..M }, topology: Topology::Map(&["mountPath"]), ..F },
] };

pub(crate) static CONTAINER_USER: Type = Type { name: "io.k8s.api.core.v1.ContainerUser", go: "v1.ContainerUser", atomic: false, fields: &[
    Field { name: "linux", go: "v1.LinuxContainerUser", shape: Shape::Struct(&LINUX_CONTAINER_USER), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DAEMON_ENDPOINT: Type = Type { name: "io.k8s.api.core.v1.DaemonEndpoint", go: "v1.DaemonEndpoint", atomic: false, fields: &[
    Field { name: "Port", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DOWNWARD_API_PROJECTION: Type = Type { name: "io.k8s.api.core.v1.DownwardAPIProjection", go: "v1.DownwardAPIProjection", atomic: false, fields: &[
    Field { name: "items", go: "[]v1.DownwardAPIVolumeFile", shape: Shape::List(&Shape::Struct(&DOWNWARD_API_VOLUME_FILE)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static DOWNWARD_API_VOLUME_FILE: Type = Type { name: "io.k8s.api.core.v1.DownwardAPIVolumeFile", go: "v1.DownwardAPIVolumeFile", atomic: false, fields: &[
    Field { name: "fieldRef", go: "v1.ObjectFieldSelector", shape: Shape::Struct(&OBJECT_FIELD_SELECTOR), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "mode", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "path", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceFieldRef", go: "v1.ResourceFieldSelector", shape: Shape::Struct(&RESOURCE_FIELD_SELECTOR), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "user", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DOWNWARD_API_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.DownwardAPIVolumeSource", go: "v1.DownwardAPIVolumeSource", atomic: false, fields: &[
    Field { name: "defaultMode", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "defaultUser", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "items", go: "[]v1.DownwardAPIVolumeFile", shape: Shape::List(&Shape::Struct(&DOWNWARD_API_VOLUME_FILE)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static EMPTY_DIR_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.EmptyDirVolumeSource", go: "v1.EmptyDirVolumeSource", atomic: false, fields: &[
    Field { name: "medium", go: "v1.StorageMedium", shape: Shape::String("v1.StorageMedium"), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "mode", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "sizeLimit", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static ENDPOINT_ADDRESS: Type = Type { name: "io.k8s.api.core.v1.EndpointAddress", go: "v1.EndpointAddress", atomic: true, fields: &[
    Field { name: "hostname", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "ip", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeName", pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "targetRef", go: "v1.ObjectReference", shape: Shape::Struct(&OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static ENDPOINT_PORT: Type = Type { name: "io.k8s.api.core.v1.EndpointPort", go: "v1.EndpointPort", atomic: true, fields: &[
    Field { name: "appProtocol", pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "port", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "protocol", go: "v1.Protocol", shape: Shape::String("v1.Protocol"), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["SCTP", "TCP", "UDP"], ..F },
] };

pub(crate) static ENDPOINT_SUBSET: Type = Type { name: "io.k8s.api.core.v1.EndpointSubset", go: "v1.EndpointSubset", atomic: false, fields: &[
    Field { name: "addresses", go: "[]v1.EndpointAddress", shape: Shape::List(&Shape::Struct(&ENDPOINT_ADDRESS)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "notReadyAddresses", go: "[]v1.EndpointAddress", shape: Shape::List(&Shape::Struct(&ENDPOINT_ADDRESS)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "ports", go: "[]v1.EndpointPort", shape: Shape::List(&Shape::Struct(&ENDPOINT_PORT)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static ENDPOINTS: Type = Type { name: "io.k8s.api.core.v1.Endpoints", go: "v1.Endpoints", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "subsets", go: "[]v1.EndpointSubset", shape: Shape::List(&Shape::Struct(&ENDPOINT_SUBSET)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static ENDPOINTS_LIST: Type = Type { name: "io.k8s.api.core.v1.EndpointsList", go: "v1.EndpointsList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.Endpoints", shape: Shape::List(&Shape::Struct(&ENDPOINTS)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static ENV_FROM_SOURCE: Type = Type { name: "io.k8s.api.core.v1.EnvFromSource", go: "v1.EnvFromSource", atomic: false, fields: &[
    Field { name: "configMapRef", go: "v1.ConfigMapEnvSource", shape: Shape::Struct(&CONFIG_MAP_ENV_SOURCE), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "prefix", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "secretRef", go: "v1.SecretEnvSource", shape: Shape::Struct(&SECRET_ENV_SOURCE), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static ENV_VAR: Type = Type { name: "io.k8s.api.core.v1.EnvVar", go: "v1.EnvVar", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "value", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "valueFrom", go: "v1.EnvVarSource", shape: Shape::Struct(&ENV_VAR_SOURCE), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static ENV_VAR_SOURCE: Type = Type { name: "io.k8s.api.core.v1.EnvVarSource", go: "v1.EnvVarSource", atomic: false, fields: &[
    Field { name: "configMapKeyRef", go: "v1.ConfigMapKeySelector", shape: Shape::Struct(&CONFIG_MAP_KEY_SELECTOR), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "fieldRef", go: "v1.ObjectFieldSelector", shape: Shape::Struct(&OBJECT_FIELD_SELECTOR), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "fileKeyRef", go: "v1.FileKeySelector", shape: Shape::Struct(&FILE_KEY_SELECTOR), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceFieldRef", go: "v1.ResourceFieldSelector", shape: Shape::Struct(&RESOURCE_FIELD_SELECTOR), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "secretKeyRef", go: "v1.SecretKeySelector", shape: Shape::Struct(&SECRET_KEY_SELECTOR), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static EPHEMERAL_CONTAINER: Type = Type { name: "io.k8s.api.core.v1.EphemeralContainer", go: "v1.EphemeralContainer", atomic: false, fields: &[
    Field { name: "args", declared_in: "EphemeralContainerCommon", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[1], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "command", declared_in: "EphemeralContainerCommon", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[1], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "env", declared_in: "EphemeralContainerCommon", go: "[]v1.EnvVar", shape: Shape::List(&Shape::Struct(&ENV_VAR)), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[1], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "envFrom", declared_in: "EphemeralContainerCommon", go: "[]v1.EnvFromSource", shape: Shape::List(&Shape::Struct(&ENV_FROM_SOURCE)), proto: Some(Proto { number: 19, wire: Wire::Bytes, within: &[1], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "image", declared_in: "EphemeralContainerCommon", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
    Field { name: "imagePullPolicy", declared_in: "EphemeralContainerCommon", go: "v1.PullPolicy", shape: Shape::String("v1.PullPolicy"), proto: Some(Proto { number: 14, wire: Wire::Bytes, within: &[1], wrapped: false }), values: &["Always", "IfNotPresent", "Never"], ..F },
    Field { name: "lifecycle", declared_in: "EphemeralContainerCommon", go: "v1.Lifecycle", shape: Shape::Struct(&LIFECYCLE), pointer: true, proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
    Field { name: "livenessProbe", declared_in: "EphemeralContainerCommon", go: "v1.Probe", shape: Shape::Struct(&PROBE), pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
    Field { name: "name", declared_in: "EphemeralContainerCommon", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
    Field { name: "ports", declared_in: "EphemeralContainerCommon", go: "[]v1.ContainerPort", shape: Shape::List(&Shape::Struct(&CONTAINER_PORT)), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[1], wrapped: false }), merge: Merge { merge: true, key: "containerPort", ..M }, topology: Topology::Map(&["containerPort", "protocol"]), ..F },
    Field { name: "readinessProbe", declared_in: "EphemeralContainerCommon", go: "v1.Probe", shape: Shape::Struct(&PROBE), pointer: true, proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
    Field { name: "resizePolicy", declared_in: "EphemeralContainerCommon", go: "[]v1.ContainerResizePolicy", shape: Shape::List(&Shape::Struct(&CONTAINER_RESIZE_POLICY)), proto: Some(Proto { number: 23, wire: Wire::Bytes, within: &[1], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "resources", declared_in: "EphemeralContainerCommon", go: "v1.ResourceRequirements", shape: Shape::Struct(&RESOURCE_REQUIREMENTS), proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
    Field { name: "restartPolicy", declared_in: "EphemeralContainerCommon", go: "v1.ContainerRestartPolicy", shape: Shape::String("v1.ContainerRestartPolicy"), pointer: true, proto: Some(Proto { number: 24, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
    Field { name: "restartPolicyRules", declared_in: "EphemeralContainerCommon", go: "[]v1.ContainerRestartRule", shape: Shape::List(&Shape::Struct(&CONTAINER_RESTART_RULE)), proto: Some(Proto { number: 25, wire: Wire::Bytes, within: &[1], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "securityContext", declared_in: "EphemeralContainerCommon", go: "v1.SecurityContext", shape: Shape::Struct(&SECURITY_CONTEXT), pointer: true, proto: Some(Proto { number: 15, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
    Field { name: "startupProbe", declared_in: "EphemeralContainerCommon", go: "v1.Probe", shape: Shape::Struct(&PROBE), pointer: true, proto: Some(Proto { number: 22, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
    Field { name: "stdin", declared_in: "EphemeralContainerCommon", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 16, wire: Wire::Varint, within: &[1], wrapped: false }), ..F },
    Field { name: "stdinOnce", declared_in: "EphemeralContainerCommon", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 17, wire: Wire::Varint, within: &[1], wrapped: false }), ..F },
    Field { name: "targetContainerName", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "terminationMessagePath", declared_in: "EphemeralContainerCommon", proto: Some(Proto { number: 13, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
    Field { name: "terminationMessagePolicy", declared_in: "EphemeralContainerCommon", go: "v1.TerminationMessagePolicy", shape: Shape::String("v1.TerminationMessagePolicy"), proto: Some(Proto { number: 20, wire: Wire::Bytes, within: &[1], wrapped: false }), values: &["FallbackToLogsOnError", "File"], ..F },
    Field { name: "tty", declared_in: "EphemeralContainerCommon", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 18, wire: Wire::Varint, within: &[1], wrapped: false }), ..F },
    Field { name: "volumeDevices", declared_in: "EphemeralContainerCommon", go: "[]v1.VolumeDevice", shape: Shape::List(&Shape::Struct(&VOLUME_DEVICE)), proto: Some(Proto { number: 21, wire: Wire::Bytes, within: &[1], wrapped: false }), merge: Merge { merge: true, key: "devicePath", ..M }, topology: Topology::Map(&["devicePath"]), ..F },
    Field { name: "volumeMounts", declared_in: "EphemeralContainerCommon", go: "[]v1.VolumeMount", shape: Shape::List(&Shape::Struct(&VOLUME_MOUNT)), proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[1], wrapped: false }), merge: Merge { merge: true, key: "mountPath", ..M }, topology: Topology::Map(&["mountPath"]), ..F },
    Field { name: "workingDir", declared_in: "EphemeralContainerCommon", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
] };

pub(crate) static EPHEMERAL_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.EphemeralVolumeSource", go: "v1.EphemeralVolumeSource", atomic: false, fields: &[
    Field { name: "volumeClaimTemplate", go: "v1.PersistentVolumeClaimTemplate", shape: Shape::Struct(&PERSISTENT_VOLUME_CLAIM_TEMPLATE), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static EVENT: Type = Type { name: "io.k8s.api.core.v1.Event", go: "v1.Event", atomic: false, fields: &[
    Field { name: "action", proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "count", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "eventTime", go: "v1.MicroTime", shape: Shape::MicroTime, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "firstTimestamp", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "involvedObject", go: "v1.ObjectReference", shape: Shape::Struct(&OBJECT_REFERENCE), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "lastTimestamp", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "related", go: "v1.ObjectReference", shape: Shape::Struct(&OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 13, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reportingComponent", omit: Omit::Never, proto: Some(Proto { number: 14, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reportingInstance", omit: Omit::Never, proto: Some(Proto { number: 15, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "series", go: "v1.EventSeries", shape: Shape::Struct(&EVENT_SERIES), pointer: true, proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "source", go: "v1.EventSource", shape: Shape::Struct(&EVENT_SOURCE), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static EVENT_LIST: Type = Type { name: "io.k8s.api.core.v1.EventList", go: "v1.EventList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.Event", shape: Shape::List(&Shape::Struct(&EVENT)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static EVENT_SERIES: Type = Type { name: "io.k8s.api.core.v1.EventSeries", go: "v1.EventSeries", atomic: false, fields: &[
    Field { name: "count", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "lastObservedTime", go: "v1.MicroTime", shape: Shape::MicroTime, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static EVENT_SOURCE: Type = Type { name: "io.k8s.api.core.v1.EventSource", go: "v1.EventSource", atomic: false, fields: &[
    Field { name: "component", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "host", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static EVICTION_RESPONDER: Type = Type { name: "io.k8s.api.core.v1.EvictionResponder", go: "v1.EvictionResponder", atomic: true, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "priority", go: "int32", shape: Shape::Int32, pointer: true, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static EXEC_ACTION: Type = Type { name: "io.k8s.api.core.v1.ExecAction", go: "v1.ExecAction", atomic: false, fields: &[
    Field { name: "command", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static FC_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.FCVolumeSource", go: "v1.FCVolumeSource", atomic: false, fields: &[
    Field { name: "fsType", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "lun", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "targetWWNs", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "wwids", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static FILE_KEY_SELECTOR: Type = Type { name: "io.k8s.api.core.v1.FileKeySelector", go: "v1.FileKeySelector", atomic: true, fields: &[
    Field { name: "key", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "optional", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), default: "false", ..F },
    Field { name: "path", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeName", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static FLEX_PERSISTENT_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.FlexPersistentVolumeSource", go: "v1.FlexPersistentVolumeSource", atomic: false, fields: &[
    Field { name: "driver", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "fsType", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "options", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretRef", go: "v1.SecretReference", shape: Shape::Struct(&SECRET_REFERENCE), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static FLEX_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.FlexVolumeSource", go: "v1.FlexVolumeSource", atomic: false, fields: &[
    Field { name: "driver", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "fsType", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "options", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretRef", go: "v1.LocalObjectReference", shape: Shape::Struct(&LOCAL_OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static FLOCKER_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.FlockerVolumeSource", go: "v1.FlockerVolumeSource", atomic: false, fields: &[
    Field { name: "datasetName", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "datasetUUID", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static GCE_PERSISTENT_DISK_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.GCEPersistentDiskVolumeSource", go: "v1.GCEPersistentDiskVolumeSource", atomic: false, fields: &[
    Field { name: "fsType", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "partition", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "pdName", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static GRPC_ACTION: Type = Type { name: "io.k8s.api.core.v1.GRPCAction", go: "v1.GRPCAction", atomic: false, fields: &[
    Field { name: "mode", go: "v1.GRPCProbeMode", shape: Shape::String("v1.GRPCProbeMode"), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Plaintext", "TLS"], ..F },
    Field { name: "port", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "service", pointer: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"\"", ..F },
] };

pub(crate) static GIT_REPO_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.GitRepoVolumeSource", go: "v1.GitRepoVolumeSource", atomic: false, fields: &[
    Field { name: "directory", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "repository", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "revision", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static GLUSTERFS_PERSISTENT_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.GlusterfsPersistentVolumeSource", go: "v1.GlusterfsPersistentVolumeSource", atomic: false, fields: &[
    Field { name: "endpoints", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "endpointsNamespace", pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "path", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static GLUSTERFS_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.GlusterfsVolumeSource", go: "v1.GlusterfsVolumeSource", atomic: false, fields: &[
    Field { name: "endpoints", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "path", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HTTP_GET_ACTION: Type = Type { name: "io.k8s.api.core.v1.HTTPGetAction", go: "v1.HTTPGetAction", atomic: false, fields: &[
    Field { name: "host", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "httpHeaders", go: "[]v1.HTTPHeader", shape: Shape::List(&Shape::Struct(&HTTP_HEADER)), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "path", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "port", go: "intstr.IntOrString", shape: Shape::IntOrString, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "protocol", go: "v1.HTTPProtocol", shape: Shape::String("v1.HTTPProtocol"), pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["HTTP1", "HTTP2"], ..F },
    Field { name: "scheme", go: "v1.URIScheme", shape: Shape::String("v1.URIScheme"), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["HTTP", "HTTPS"], ..F },
] };

pub(crate) static HTTP_HEADER: Type = Type { name: "io.k8s.api.core.v1.HTTPHeader", go: "v1.HTTPHeader", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "value", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HOST_ALIAS: Type = Type { name: "io.k8s.api.core.v1.HostAlias", go: "v1.HostAlias", atomic: false, fields: &[
    Field { name: "hostnames", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "ip", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HOST_IP: Type = Type { name: "io.k8s.api.core.v1.HostIP", go: "v1.HostIP", atomic: false, fields: &[
    Field { name: "ip", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HOST_PATH_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.HostPathVolumeSource", go: "v1.HostPathVolumeSource", atomic: false, fields: &[
    Field { name: "path", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.HostPathType", shape: Shape::String("v1.HostPathType"), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"], ..F },
] };

pub(crate) static ISCSI_PERSISTENT_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.ISCSIPersistentVolumeSource", go: "v1.ISCSIPersistentVolumeSource", atomic: false, fields: &[
    Field { name: "chapAuthDiscovery", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "chapAuthSession", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 11, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "fsType", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "initiatorName", pointer: true, proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "iqn", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "iscsiInterface", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"default\"", ..F },
    Field { name: "lun", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "portals", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretRef", go: "v1.SecretReference", shape: Shape::Struct(&SECRET_REFERENCE), pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "targetPortal", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static ISCSI_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.ISCSIVolumeSource", go: "v1.ISCSIVolumeSource", atomic: false, fields: &[
    Field { name: "chapAuthDiscovery", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "chapAuthSession", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 11, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "fsType", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "initiatorName", pointer: true, proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "iqn", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "iscsiInterface", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"default\"", ..F },
    Field { name: "lun", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "portals", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretRef", go: "v1.LocalObjectReference", shape: Shape::Struct(&LOCAL_OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "targetPortal", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static IMAGE_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.ImageVolumeSource", go: "v1.ImageVolumeSource", atomic: false, fields: &[
    Field { name: "pullPolicy", go: "v1.PullPolicy", shape: Shape::String("v1.PullPolicy"), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Always", "IfNotPresent", "Never"], ..F },
    Field { name: "reference", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static IMAGE_VOLUME_STATUS: Type = Type { name: "io.k8s.api.core.v1.ImageVolumeStatus", go: "v1.ImageVolumeStatus", atomic: false, fields: &[
    Field { name: "imageRef", required: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static KEY_TO_PATH: Type = Type { name: "io.k8s.api.core.v1.KeyToPath", go: "v1.KeyToPath", atomic: false, fields: &[
    Field { name: "key", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "mode", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "path", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "user", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static LIFECYCLE: Type = Type { name: "io.k8s.api.core.v1.Lifecycle", go: "v1.Lifecycle", atomic: false, fields: &[
    Field { name: "postStart", go: "v1.LifecycleHandler", shape: Shape::Struct(&LIFECYCLE_HANDLER), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "preStop", go: "v1.LifecycleHandler", shape: Shape::Struct(&LIFECYCLE_HANDLER), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "stopSignal", go: "v1.Signal", shape: Shape::String("v1.Signal"), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO", "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGRTMAX", "SIGRTMAX-1", "SIGRTMAX-10", "SIGRTMAX-11", "SIGRTMAX-12", "SIGRTMAX-13", "SIGRTMAX-14", "SIGRTMAX-2", "SIGRTMAX-3", "SIGRTMAX-4", "SIGRTMAX-5", "SIGRTMAX-6", "SIGRTMAX-7", "SIGRTMAX-8", "SIGRTMAX-9", "SIGRTMIN", "SIGRTMIN+1", "SIGRTMIN+10", "SIGRTMIN+11", "SIGRTMIN+12", "SIGRTMIN+13", "SIGRTMIN+14", "SIGRTMIN+15", "SIGRTMIN+2", "SIGRTMIN+3", "SIGRTMIN+4", "SIGRTMIN+5", "SIGRTMIN+6", "SIGRTMIN+7", "SIGRTMIN+8", "SIGRTMIN+9", "SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ"], ..F },
] };

pub(crate) static LIFECYCLE_HANDLER: Type = Type { name: "io.k8s.api.core.v1.LifecycleHandler", go: "v1.LifecycleHandler", atomic: false, fields: &[
    Field { name: "exec", go: "v1.ExecAction", shape: Shape::Struct(&EXEC_ACTION), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "httpGet", go: "v1.HTTPGetAction", shape: Shape::Struct(&HTTP_GET_ACTION), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "sleep", go: "v1.SleepAction", shape: Shape::Struct(&SLEEP_ACTION), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "tcpSocket", go: "v1.TCPSocketAction", shape: Shape::Struct(&TCP_SOCKET_ACTION), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static LIMIT_RANGE: Type = Type { name: "io.k8s.api.core.v1.LimitRange", go: "v1.LimitRange", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.LimitRangeSpec", shape: Shape::Struct(&LIMIT_RANGE_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static LIMIT_RANGE_ITEM: Type = Type { name: "io.k8s.api.core.v1.LimitRangeItem", go: "v1.LimitRangeItem", atomic: false, fields: &[
    Field { name: "default", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "defaultRequest", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "max", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "maxLimitRequestRatio", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "min", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.LimitType", shape: Shape::String("v1.LimitType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static LIMIT_RANGE_LIST: Type = Type { name: "io.k8s.api.core.v1.LimitRangeList", go: "v1.LimitRangeList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.LimitRange", shape: Shape::List(&Shape::Struct(&LIMIT_RANGE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static LIMIT_RANGE_SPEC: Type = Type { name: "io.k8s.api.core.v1.LimitRangeSpec", go: "v1.LimitRangeSpec", atomic: false, fields: &[
    Field { name: "limits", go: "[]v1.LimitRangeItem", shape: Shape::List(&Shape::Struct(&LIMIT_RANGE_ITEM)), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static LINUX_CONTAINER_USER: Type = Type { name: "io.k8s.api.core.v1.LinuxContainerUser", go: "v1.LinuxContainerUser", atomic: false, fields: &[
    Field { name: "gid", go: "int64", shape: Shape::Int64, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "supplementalGroups", go: "[]int64", shape: Shape::List(&Shape::Int64), proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "uid", go: "int64", shape: Shape::Int64, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static LIST: Type = Type { name: "io.k8s.api.core.v1.List", go: "v1.List", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]runtime.RawExtension", shape: Shape::List(&Shape::RawExtension), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static LOAD_BALANCER_INGRESS: Type = Type { name: "io.k8s.api.core.v1.LoadBalancerIngress", go: "v1.LoadBalancerIngress", atomic: false, fields: &[
    Field { name: "hostname", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "ip", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "ipMode", go: "v1.LoadBalancerIPMode", shape: Shape::String("v1.LoadBalancerIPMode"), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "ports", go: "[]v1.PortStatus", shape: Shape::List(&Shape::Struct(&PORT_STATUS)), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static LOAD_BALANCER_STATUS: Type = Type { name: "io.k8s.api.core.v1.LoadBalancerStatus", go: "v1.LoadBalancerStatus", atomic: false, fields: &[
    Field { name: "ingress", go: "[]v1.LoadBalancerIngress", shape: Shape::List(&Shape::Struct(&LOAD_BALANCER_INGRESS)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static LOCAL_OBJECT_REFERENCE: Type = Type { name: "io.k8s.api.core.v1.LocalObjectReference", go: "v1.LocalObjectReference", atomic: true, fields: &[
    Field { name: "name", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"\"", ..F },
] };

pub(crate) static LOCAL_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.LocalVolumeSource", go: "v1.LocalVolumeSource", atomic: false, fields: &[
    Field { name: "fsType", pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "path", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static MODIFY_VOLUME_STATUS: Type = Type { name: "io.k8s.api.core.v1.ModifyVolumeStatus", go: "v1.ModifyVolumeStatus", atomic: false, fields: &[
    Field { name: "status", go: "v1.PersistentVolumeClaimModifyVolumeStatus", shape: Shape::String("v1.PersistentVolumeClaimModifyVolumeStatus"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["InProgress", "Infeasible", "Pending"], ..F },
    Field { name: "targetVolumeAttributesClassName", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NFS_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.NFSVolumeSource", go: "v1.NFSVolumeSource", atomic: false, fields: &[
    Field { name: "path", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "server", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NAMESPACE: Type = Type { name: "io.k8s.api.core.v1.Namespace", go: "v1.Namespace", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.NamespaceSpec", shape: Shape::Struct(&NAMESPACE_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.NamespaceStatus", shape: Shape::Struct(&NAMESPACE_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NAMESPACE_CONDITION: Type = Type { name: "io.k8s.api.core.v1.NamespaceCondition", go: "v1.NamespaceCondition", atomic: false, fields: &[
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.NamespaceConditionType", shape: Shape::String("v1.NamespaceConditionType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NAMESPACE_LIST: Type = Type { name: "io.k8s.api.core.v1.NamespaceList", go: "v1.NamespaceList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.Namespace", shape: Shape::List(&Shape::Struct(&NAMESPACE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NAMESPACE_SPEC: Type = Type { name: "io.k8s.api.core.v1.NamespaceSpec", go: "v1.NamespaceSpec", atomic: false, fields: &[
    Field { name: "finalizers", go: "[]v1.FinalizerName", shape: Shape::List(&Shape::String("v1.FinalizerName")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static NAMESPACE_STATUS: Type = Type { name: "io.k8s.api.core.v1.NamespaceStatus", go: "v1.NamespaceStatus", atomic: false, fields: &[
    Field { name: "conditions", go: "[]v1.NamespaceCondition", shape: Shape::List(&Shape::Struct(&NAMESPACE_CONDITION)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "phase", go: "v1.NamespacePhase", shape: Shape::String("v1.NamespacePhase"), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Active", "Terminating"], ..F },
] };

pub(crate) static NODE: Type = Type { name: "io.k8s.api.core.v1.Node", go: "v1.Node", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.NodeSpec", shape: Shape::Struct(&NODE_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.NodeStatus", shape: Shape::Struct(&NODE_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_ADDRESS: Type = Type { name: "io.k8s.api.core.v1.NodeAddress", go: "v1.NodeAddress", atomic: false, fields: &[
    Field { name: "address", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.NodeAddressType", shape: Shape::String("v1.NodeAddressType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_AFFINITY: Type = Type { name: "io.k8s.api.core.v1.NodeAffinity", go: "v1.NodeAffinity", atomic: false, fields: &[
    Field { name: "preferredDuringSchedulingIgnoredDuringExecution", go: "[]v1.PreferredSchedulingTerm", shape: Shape::List(&Shape::Struct(&PREFERRED_SCHEDULING_TERM)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "requiredDuringSchedulingIgnoredDuringExecution", go: "v1.NodeSelector", shape: Shape::Struct(&NODE_SELECTOR), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_ALLOCATABLE_MAPPED_RESOURCES: Type = Type { name: "io.k8s.api.core.v1.NodeAllocatableMappedResources", go: "v1.NodeAllocatableMappedResources", atomic: false, fields: &[
    Field { name: "name", go: "v1.ResourceName", shape: Shape::String("v1.ResourceName"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "quantity", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_ALLOCATABLE_OVERHEAD_RESOURCES: Type = Type { name: "io.k8s.api.core.v1.NodeAllocatableOverheadResources", go: "v1.NodeAllocatableOverheadResources", atomic: false, fields: &[
    Field { name: "name", go: "v1.ResourceName", shape: Shape::String("v1.ResourceName"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "perContainer", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "perPod", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS: Type = Type { name: "io.k8s.api.core.v1.NodeAllocatableResourceClaimStatus", go: "v1.NodeAllocatableResourceClaimStatus", atomic: false, fields: &[
    Field { name: "containers", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, ..F },
    Field { name: "mapping", go: "[]v1.NodeAllocatableMappedResources", shape: Shape::List(&Shape::Struct(&NODE_ALLOCATABLE_MAPPED_RESOURCES)), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "overhead", go: "[]v1.NodeAllocatableOverheadResources", shape: Shape::List(&Shape::Struct(&NODE_ALLOCATABLE_OVERHEAD_RESOURCES)), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "resourceClaimName", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_CONDITION: Type = Type { name: "io.k8s.api.core.v1.NodeCondition", go: "v1.NodeCondition", atomic: false, fields: &[
    Field { name: "lastHeartbeatTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.NodeConditionType", shape: Shape::String("v1.NodeConditionType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_CONFIG_SOURCE: Type = Type { name: "io.k8s.api.core.v1.NodeConfigSource", go: "v1.NodeConfigSource", atomic: false, fields: &[
    Field { name: "configMap", go: "v1.ConfigMapNodeConfigSource", shape: Shape::Struct(&CONFIG_MAP_NODE_CONFIG_SOURCE), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_CONFIG_STATUS: Type = Type { name: "io.k8s.api.core.v1.NodeConfigStatus", go: "v1.NodeConfigStatus", atomic: false, fields: &[
    Field { name: "active", go: "v1.NodeConfigSource", shape: Shape::Struct(&NODE_CONFIG_SOURCE), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "assigned", go: "v1.NodeConfigSource", shape: Shape::Struct(&NODE_CONFIG_SOURCE), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "error", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "lastKnownGood", go: "v1.NodeConfigSource", shape: Shape::Struct(&NODE_CONFIG_SOURCE), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_DAEMON_ENDPOINTS: Type = Type { name: "io.k8s.api.core.v1.NodeDaemonEndpoints", go: "v1.NodeDaemonEndpoints", atomic: false, fields: &[
    Field { name: "kubeletEndpoint", go: "v1.DaemonEndpoint", shape: Shape::Struct(&DAEMON_ENDPOINT), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_FEATURES: Type = Type { name: "io.k8s.api.core.v1.NodeFeatures", go: "v1.NodeFeatures", atomic: false, fields: &[
    Field { name: "supplementalGroupsPolicy", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_LIST: Type = Type { name: "io.k8s.api.core.v1.NodeList", go: "v1.NodeList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.Node", shape: Shape::List(&Shape::Struct(&NODE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_POD_PREEMPTION_POLICY: Type = Type { name: "io.k8s.api.core.v1.NodePodPreemptionPolicy", go: "v1.NodePodPreemptionPolicy", atomic: false, fields: &[
    Field { name: "disableResizePreemption", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, ..F },
] };

pub(crate) static NODE_PROXY_OPTIONS: Type = Type { name: "io.k8s.api.core.v1.NodeProxyOptions", go: "v1.NodeProxyOptions", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "path", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_RUNTIME_HANDLER: Type = Type { name: "io.k8s.api.core.v1.NodeRuntimeHandler", go: "v1.NodeRuntimeHandler", atomic: false, fields: &[
    Field { name: "features", go: "v1.NodeRuntimeHandlerFeatures", shape: Shape::Struct(&NODE_RUNTIME_HANDLER_FEATURES), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_RUNTIME_HANDLER_FEATURES: Type = Type { name: "io.k8s.api.core.v1.NodeRuntimeHandlerFeatures", go: "v1.NodeRuntimeHandlerFeatures", atomic: false, fields: &[
    Field { name: "recursiveReadOnlyMounts", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "userNamespaces", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_SELECTOR: Type = Type { name: "io.k8s.api.core.v1.NodeSelector", go: "v1.NodeSelector", atomic: true, fields: &[
    Field { name: "nodeSelectorTerms", go: "[]v1.NodeSelectorTerm", shape: Shape::List(&Shape::Struct(&NODE_SELECTOR_TERM)), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static NODE_SELECTOR_REQUIREMENT: Type = Type { name: "io.k8s.api.core.v1.NodeSelectorRequirement", go: "v1.NodeSelectorRequirement", atomic: false, fields: &[
    Field { name: "key", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "operator", go: "v1.NodeSelectorOperator", shape: Shape::String("v1.NodeSelectorOperator"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"], ..F },
    Field { name: "values", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static NODE_SELECTOR_TERM: Type = Type { name: "io.k8s.api.core.v1.NodeSelectorTerm", go: "v1.NodeSelectorTerm", atomic: true, fields: &[
    Field { name: "matchExpressions", go: "[]v1.NodeSelectorRequirement", shape: Shape::List(&Shape::Struct(&NODE_SELECTOR_REQUIREMENT)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "matchFields", go: "[]v1.NodeSelectorRequirement", shape: Shape::List(&Shape::Struct(&NODE_SELECTOR_REQUIREMENT)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static NODE_SPEC: Type = Type { name: "io.k8s.api.core.v1.NodeSpec", go: "v1.NodeSpec", atomic: false, fields: &[
    Field { name: "configSource", go: "v1.NodeConfigSource", shape: Shape::Struct(&NODE_CONFIG_SOURCE), pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "externalID", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "podCIDR", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "podCIDRs", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, ..M }, topology: Topology::Set, ..F },
    Field { name: "podPreemptionPolicy", go: "v1.NodePodPreemptionPolicy", shape: Shape::Struct(&NODE_POD_PREEMPTION_POLICY), pointer: true, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "providerID", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "taints", go: "[]v1.Taint", shape: Shape::List(&Shape::Struct(&TAINT)), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "unschedulable", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_STATUS: Type = Type { name: "io.k8s.api.core.v1.NodeStatus", go: "v1.NodeStatus", atomic: false, fields: &[
    Field { name: "addresses", go: "[]v1.NodeAddress", shape: Shape::List(&Shape::Struct(&NODE_ADDRESS)), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "allocatable", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "capacity", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "conditions", go: "[]v1.NodeCondition", shape: Shape::List(&Shape::Struct(&NODE_CONDITION)), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "config", go: "v1.NodeConfigStatus", shape: Shape::Struct(&NODE_CONFIG_STATUS), pointer: true, proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "daemonEndpoints", go: "v1.NodeDaemonEndpoints", shape: Shape::Struct(&NODE_DAEMON_ENDPOINTS), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "declaredFeatures", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 14, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "features", go: "v1.NodeFeatures", shape: Shape::Struct(&NODE_FEATURES), pointer: true, proto: Some(Proto { number: 13, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "images", go: "[]v1.ContainerImage", shape: Shape::List(&Shape::Struct(&CONTAINER_IMAGE)), proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "nodeInfo", go: "v1.NodeSystemInfo", shape: Shape::Struct(&NODE_SYSTEM_INFO), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "phase", go: "v1.NodePhase", shape: Shape::String("v1.NodePhase"), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Pending", "Running", "Terminated"], ..F },
    Field { name: "runtimeHandlers", go: "[]v1.NodeRuntimeHandler", shape: Shape::List(&Shape::Struct(&NODE_RUNTIME_HANDLER)), proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "volumesAttached", go: "[]v1.AttachedVolume", shape: Shape::List(&Shape::Struct(&ATTACHED_VOLUME)), proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "volumesInUse", go: "[]v1.UniqueVolumeName", shape: Shape::List(&Shape::String("v1.UniqueVolumeName")), proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static NODE_SWAP_STATUS: Type = Type { name: "io.k8s.api.core.v1.NodeSwapStatus", go: "v1.NodeSwapStatus", atomic: false, fields: &[
    Field { name: "capacity", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NODE_SYSTEM_INFO: Type = Type { name: "io.k8s.api.core.v1.NodeSystemInfo", go: "v1.NodeSystemInfo", atomic: false, fields: &[
    Field { name: "architecture", required: true, omit: Omit::Never, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "bootID", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "containerRuntimeVersion", required: true, omit: Omit::Never, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kernelVersion", required: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kubeProxyVersion", required: true, omit: Omit::Never, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kubeletVersion", required: true, omit: Omit::Never, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "machineID", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "operatingSystem", required: true, omit: Omit::Never, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "osImage", required: true, omit: Omit::Never, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "runningInUserNamespace", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 12, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "swap", go: "v1.NodeSwapStatus", shape: Shape::Struct(&NODE_SWAP_STATUS), pointer: true, proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "systemUUID", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static OBJECT_FIELD_SELECTOR: Type = Type { name: "io.k8s.api.core.v1.ObjectFieldSelector", go: "v1.ObjectFieldSelector", atomic: true, fields: &[
    Field { name: "apiVersion", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "fieldPath", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static OBJECT_REFERENCE: Type = Type { name: "io.k8s.api.core.v1.ObjectReference", go: "v1.ObjectReference", atomic: true, fields: &[
    Field { name: "apiVersion", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "fieldPath", proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespace", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceVersion", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "uid", go: "types.UID", shape: Shape::String("types.UID"), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PERSISTENT_VOLUME: Type = Type { name: "io.k8s.api.core.v1.PersistentVolume", go: "v1.PersistentVolume", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.PersistentVolumeSpec", shape: Shape::Struct(&PERSISTENT_VOLUME_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.PersistentVolumeStatus", shape: Shape::Struct(&PERSISTENT_VOLUME_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PERSISTENT_VOLUME_CLAIM: Type = Type { name: "io.k8s.api.core.v1.PersistentVolumeClaim", go: "v1.PersistentVolumeClaim", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.PersistentVolumeClaimSpec", shape: Shape::Struct(&PERSISTENT_VOLUME_CLAIM_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.PersistentVolumeClaimStatus", shape: Shape::Struct(&PERSISTENT_VOLUME_CLAIM_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PERSISTENT_VOLUME_CLAIM_CONDITION: Type = Type { name: "io.k8s.api.core.v1.PersistentVolumeClaimCondition", go: "v1.PersistentVolumeClaimCondition", atomic: false, fields: &[
    Field { name: "lastProbeTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.PersistentVolumeClaimConditionType", shape: Shape::String("v1.PersistentVolumeClaimConditionType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PERSISTENT_VOLUME_CLAIM_LIST: Type = Type { name: "io.k8s.api.core.v1.PersistentVolumeClaimList", go: "v1.PersistentVolumeClaimList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.PersistentVolumeClaim", shape: Shape::List(&Shape::Struct(&PERSISTENT_VOLUME_CLAIM)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PERSISTENT_VOLUME_CLAIM_SPEC: Type = Type { name: "io.k8s.api.core.v1.PersistentVolumeClaimSpec", go: "v1.PersistentVolumeClaimSpec", atomic: false, fields: &[
    Field { name: "accessModes", go: "[]v1.PersistentVolumeAccessMode", shape: Shape::List(&Shape::String("v1.PersistentVolumeAccessMode")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, values: &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"], ..F },
    Field { name: "dataSource", go: "v1.TypedLocalObjectReference", shape: Shape::Struct(&TYPED_LOCAL_OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "dataSourceRef", go: "v1.TypedObjectReference", shape: Shape::Struct(&TYPED_OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resources", go: "v1.VolumeResourceRequirements", shape: Shape::Struct(&VOLUME_RESOURCE_REQUIREMENTS), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "selector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "storageClassName", pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeAttributesClassName", pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeMode", go: "v1.PersistentVolumeMode", shape: Shape::String("v1.PersistentVolumeMode"), pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Block", "Filesystem"], ..F },
    Field { name: "volumeName", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PERSISTENT_VOLUME_CLAIM_STATUS: Type = Type { name: "io.k8s.api.core.v1.PersistentVolumeClaimStatus", go: "v1.PersistentVolumeClaimStatus", atomic: false, fields: &[
    Field { name: "accessModes", go: "[]v1.PersistentVolumeAccessMode", shape: Shape::List(&Shape::String("v1.PersistentVolumeAccessMode")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, values: &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"], ..F },
    Field { name: "allocatedResourceStatuses", go: "map[v1.ResourceName]v1.ClaimResourceStatus", shape: Shape::Map(&Shape::String("v1.ClaimResourceStatus")), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Granular, values: &["ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"], ..F },
    Field { name: "allocatedResources", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "capacity", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "conditions", go: "[]v1.PersistentVolumeClaimCondition", shape: Shape::List(&Shape::Struct(&PERSISTENT_VOLUME_CLAIM_CONDITION)), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "currentVolumeAttributesClassName", pointer: true, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "healthStatus", go: "v1.VolumeHealthStatus", shape: Shape::Struct(&VOLUME_HEALTH_STATUS), pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "modifyVolumeStatus", go: "v1.ModifyVolumeStatus", shape: Shape::Struct(&MODIFY_VOLUME_STATUS), pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "phase", go: "v1.PersistentVolumeClaimPhase", shape: Shape::String("v1.PersistentVolumeClaimPhase"), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Bound", "Lost", "Pending"], ..F },
] };

pub(crate) static PERSISTENT_VOLUME_CLAIM_TEMPLATE: Type = Type { name: "io.k8s.api.core.v1.PersistentVolumeClaimTemplate", go: "v1.PersistentVolumeClaimTemplate", atomic: false, fields: &[
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.PersistentVolumeClaimSpec", shape: Shape::Struct(&PERSISTENT_VOLUME_CLAIM_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.PersistentVolumeClaimVolumeSource", go: "v1.PersistentVolumeClaimVolumeSource", atomic: false, fields: &[
    Field { name: "claimName", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PERSISTENT_VOLUME_LIST: Type = Type { name: "io.k8s.api.core.v1.PersistentVolumeList", go: "v1.PersistentVolumeList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.PersistentVolume", shape: Shape::List(&Shape::Struct(&PERSISTENT_VOLUME)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PERSISTENT_VOLUME_SPEC: Type = Type { name: "io.k8s.api.core.v1.PersistentVolumeSpec", go: "v1.PersistentVolumeSpec", atomic: false, fields: &[
    Field { name: "accessModes", go: "[]v1.PersistentVolumeAccessMode", shape: Shape::List(&Shape::String("v1.PersistentVolumeAccessMode")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, values: &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"], ..F },
    Field { name: "awsElasticBlockStore", declared_in: "PersistentVolumeSource", go: "v1.AWSElasticBlockStoreVolumeSource", shape: Shape::Struct(&AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "azureDisk", declared_in: "PersistentVolumeSource", go: "v1.AzureDiskVolumeSource", shape: Shape::Struct(&AZURE_DISK_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 16, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "azureFile", declared_in: "PersistentVolumeSource", go: "v1.AzureFilePersistentVolumeSource", shape: Shape::Struct(&AZURE_FILE_PERSISTENT_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 13, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "capacity", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "cephfs", declared_in: "PersistentVolumeSource", go: "v1.CephFSPersistentVolumeSource", shape: Shape::Struct(&CEPH_FS_PERSISTENT_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "cinder", declared_in: "PersistentVolumeSource", go: "v1.CinderPersistentVolumeSource", shape: Shape::Struct(&CINDER_PERSISTENT_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "claimRef", go: "v1.ObjectReference", shape: Shape::Struct(&OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Granular, ..F },
    Field { name: "csi", declared_in: "PersistentVolumeSource", go: "v1.CSIPersistentVolumeSource", shape: Shape::Struct(&CSI_PERSISTENT_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 22, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "fc", declared_in: "PersistentVolumeSource", go: "v1.FCVolumeSource", shape: Shape::Struct(&FC_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "flexVolume", declared_in: "PersistentVolumeSource", go: "v1.FlexPersistentVolumeSource", shape: Shape::Struct(&FLEX_PERSISTENT_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "flocker", declared_in: "PersistentVolumeSource", go: "v1.FlockerVolumeSource", shape: Shape::Struct(&FLOCKER_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "gcePersistentDisk", declared_in: "PersistentVolumeSource", go: "v1.GCEPersistentDiskVolumeSource", shape: Shape::Struct(&GCE_PERSISTENT_DISK_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "glusterfs", declared_in: "PersistentVolumeSource", go: "v1.GlusterfsPersistentVolumeSource", shape: Shape::Struct(&GLUSTERFS_PERSISTENT_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "hostPath", declared_in: "PersistentVolumeSource", go: "v1.HostPathVolumeSource", shape: Shape::Struct(&HOST_PATH_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "iscsi", declared_in: "PersistentVolumeSource", go: "v1.ISCSIPersistentVolumeSource", shape: Shape::Struct(&ISCSI_PERSISTENT_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "local", declared_in: "PersistentVolumeSource", go: "v1.LocalVolumeSource", shape: Shape::Struct(&LOCAL_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 20, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "mountOptions", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "nfs", declared_in: "PersistentVolumeSource", go: "v1.NFSVolumeSource", shape: Shape::Struct(&NFS_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "nodeAffinity", go: "v1.VolumeNodeAffinity", shape: Shape::Struct(&VOLUME_NODE_AFFINITY), pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "persistentVolumeReclaimPolicy", go: "v1.PersistentVolumeReclaimPolicy", shape: Shape::String("v1.PersistentVolumeReclaimPolicy"), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Delete", "Recycle", "Retain"], ..F },
    Field { name: "photonPersistentDisk", declared_in: "PersistentVolumeSource", go: "v1.PhotonPersistentDiskVolumeSource", shape: Shape::Struct(&PHOTON_PERSISTENT_DISK_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 17, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "portworxVolume", declared_in: "PersistentVolumeSource", go: "v1.PortworxVolumeSource", shape: Shape::Struct(&PORTWORX_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 18, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "quobyte", declared_in: "PersistentVolumeSource", go: "v1.QuobyteVolumeSource", shape: Shape::Struct(&QUOBYTE_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 15, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "rbd", declared_in: "PersistentVolumeSource", go: "v1.RBDPersistentVolumeSource", shape: Shape::Struct(&RBD_PERSISTENT_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "scaleIO", declared_in: "PersistentVolumeSource", go: "v1.ScaleIOPersistentVolumeSource", shape: Shape::Struct(&SCALE_IO_PERSISTENT_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 19, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "storageClassName", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "storageos", declared_in: "PersistentVolumeSource", go: "v1.StorageOSPersistentVolumeSource", shape: Shape::Struct(&STORAGE_OS_PERSISTENT_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 21, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "volumeAttributesClassName", pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeMode", go: "v1.PersistentVolumeMode", shape: Shape::String("v1.PersistentVolumeMode"), pointer: true, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Block", "Filesystem"], ..F },
    Field { name: "vsphereVolume", declared_in: "PersistentVolumeSource", go: "v1.VsphereVirtualDiskVolumeSource", shape: Shape::Struct(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 14, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
] };

pub(crate) static PERSISTENT_VOLUME_STATUS: Type = Type { name: "io.k8s.api.core.v1.PersistentVolumeStatus", go: "v1.PersistentVolumeStatus", atomic: false, fields: &[
    Field { name: "lastPhaseTransitionTime", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "phase", go: "v1.PersistentVolumePhase", shape: Shape::String("v1.PersistentVolumePhase"), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Available", "Bound", "Failed", "Pending", "Released"], ..F },
    Field { name: "reason", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PHOTON_PERSISTENT_DISK_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.PhotonPersistentDiskVolumeSource", go: "v1.PhotonPersistentDiskVolumeSource", atomic: false, fields: &[
    Field { name: "fsType", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "pdID", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD: Type = Type { name: "io.k8s.api.core.v1.Pod", go: "v1.Pod", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.PodSpec", shape: Shape::Struct(&POD_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.PodStatus", shape: Shape::Struct(&POD_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_AFFINITY: Type = Type { name: "io.k8s.api.core.v1.PodAffinity", go: "v1.PodAffinity", atomic: false, fields: &[
    Field { name: "preferredDuringSchedulingIgnoredDuringExecution", go: "[]v1.WeightedPodAffinityTerm", shape: Shape::List(&Shape::Struct(&WEIGHTED_POD_AFFINITY_TERM)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "requiredDuringSchedulingIgnoredDuringExecution", go: "[]v1.PodAffinityTerm", shape: Shape::List(&Shape::Struct(&POD_AFFINITY_TERM)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static POD_AFFINITY_TERM: Type = Type { name: "io.k8s.api.core.v1.PodAffinityTerm", go: "v1.PodAffinityTerm", atomic: false, fields: &[
    Field { name: "labelSelector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "matchLabelKeys", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "mismatchLabelKeys", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "namespaceSelector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespaces", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "topologyKey", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_ANTI_AFFINITY: Type = Type { name: "io.k8s.api.core.v1.PodAntiAffinity", go: "v1.PodAntiAffinity", atomic: false, fields: &[
    Field { name: "preferredDuringSchedulingIgnoredDuringExecution", go: "[]v1.WeightedPodAffinityTerm", shape: Shape::List(&Shape::Struct(&WEIGHTED_POD_AFFINITY_TERM)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "requiredDuringSchedulingIgnoredDuringExecution", go: "[]v1.PodAffinityTerm", shape: Shape::List(&Shape::Struct(&POD_AFFINITY_TERM)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static POD_ATTACH_OPTIONS: Type = Type { name: "io.k8s.api.core.v1.PodAttachOptions", go: "v1.PodAttachOptions", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "container", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "stderr", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "stdin", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "stdout", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "tty", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_CERTIFICATE_PROJECTION: Type = Type { name: "io.k8s.api.core.v1.PodCertificateProjection", go: "v1.PodCertificateProjection", atomic: false, fields: &[
    Field { name: "certificateChainPath", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "credentialBundlePath", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "keyPath", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "keyType", required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "maxExpirationSeconds", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "signerName", required: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "user", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "userAnnotations", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_CONDITION: Type = Type { name: "io.k8s.api.core.v1.PodCondition", go: "v1.PodCondition", atomic: false, fields: &[
    Field { name: "lastProbeTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "observedGeneration", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.PodConditionType", shape: Shape::String("v1.PodConditionType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_DNS_CONFIG: Type = Type { name: "io.k8s.api.core.v1.PodDNSConfig", go: "v1.PodDNSConfig", atomic: false, fields: &[
    Field { name: "nameservers", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "options", go: "[]v1.PodDNSConfigOption", shape: Shape::List(&Shape::Struct(&POD_DNS_CONFIG_OPTION)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "searches", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static POD_DNS_CONFIG_OPTION: Type = Type { name: "io.k8s.api.core.v1.PodDNSConfigOption", go: "v1.PodDNSConfigOption", atomic: false, fields: &[
    Field { name: "name", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "value", pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_EXEC_OPTIONS: Type = Type { name: "io.k8s.api.core.v1.PodExecOptions", go: "v1.PodExecOptions", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "command", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "container", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "stderr", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "stdin", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "stdout", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "tty", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_EXTENDED_RESOURCE_CLAIM_STATUS: Type = Type { name: "io.k8s.api.core.v1.PodExtendedResourceClaimStatus", go: "v1.PodExtendedResourceClaimStatus", atomic: false, fields: &[
    Field { name: "requestMappings", go: "[]v1.ContainerExtendedResourceRequest", shape: Shape::List(&Shape::Struct(&CONTAINER_EXTENDED_RESOURCE_REQUEST)), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "resourceClaimName", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_IP: Type = Type { name: "io.k8s.api.core.v1.PodIP", go: "v1.PodIP", atomic: false, fields: &[
    Field { name: "ip", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_LIST: Type = Type { name: "io.k8s.api.core.v1.PodList", go: "v1.PodList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.Pod", shape: Shape::List(&Shape::Struct(&POD)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_LOG_OPTIONS: Type = Type { name: "io.k8s.api.core.v1.PodLogOptions", go: "v1.PodLogOptions", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "container", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "follow", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "insecureSkipTLSVerifyBackend", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 9, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "limitBytes", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "previous", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "sinceSeconds", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "sinceTime", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "stream", pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "tailLines", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "timestamps", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_OS: Type = Type { name: "io.k8s.api.core.v1.PodOS", go: "v1.PodOS", atomic: false, fields: &[
    Field { name: "name", go: "v1.OSName", shape: Shape::String("v1.OSName"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_PORT_FORWARD_OPTIONS: Type = Type { name: "io.k8s.api.core.v1.PodPortForwardOptions", go: "v1.PodPortForwardOptions", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "ports", go: "[]int32", shape: Shape::List(&Shape::Int32), proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static POD_PROXY_OPTIONS: Type = Type { name: "io.k8s.api.core.v1.PodProxyOptions", go: "v1.PodProxyOptions", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "path", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_READINESS_GATE: Type = Type { name: "io.k8s.api.core.v1.PodReadinessGate", go: "v1.PodReadinessGate", atomic: false, fields: &[
    Field { name: "conditionType", go: "v1.PodConditionType", shape: Shape::String("v1.PodConditionType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_RESOURCE_CLAIM: Type = Type { name: "io.k8s.api.core.v1.PodResourceClaim", go: "v1.PodResourceClaim", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceClaimName", pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceClaimTemplateName", pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_RESOURCE_CLAIM_STATUS: Type = Type { name: "io.k8s.api.core.v1.PodResourceClaimStatus", go: "v1.PodResourceClaimStatus", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceClaimName", pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_SCHEDULING_GATE: Type = Type { name: "io.k8s.api.core.v1.PodSchedulingGate", go: "v1.PodSchedulingGate", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_SCHEDULING_GROUP: Type = Type { name: "io.k8s.api.core.v1.PodSchedulingGroup", go: "v1.PodSchedulingGroup", atomic: false, fields: &[
    Field { name: "podGroupName", pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_SECURITY_CONTEXT: Type = Type { name: "io.k8s.api.core.v1.PodSecurityContext", go: "v1.PodSecurityContext", atomic: false, fields: &[
    Field { name: "appArmorProfile", go: "v1.AppArmorProfile", shape: Shape::Struct(&APP_ARMOR_PROFILE), pointer: true, proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "fsGroup", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "fsGroupChangePolicy", go: "v1.PodFSGroupChangePolicy", shape: Shape::String("v1.PodFSGroupChangePolicy"), pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Always", "OnRootMismatch"], ..F },
    Field { name: "runAsGroup", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "runAsNonRoot", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "runAsUser", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "seLinuxChangePolicy", go: "v1.PodSELinuxChangePolicy", shape: Shape::String("v1.PodSELinuxChangePolicy"), pointer: true, proto: Some(Proto { number: 13, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "seLinuxOptions", go: "v1.SELinuxOptions", shape: Shape::Struct(&SE_LINUX_OPTIONS), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "seccompProfile", go: "v1.SeccompProfile", shape: Shape::Struct(&SECCOMP_PROFILE), pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "supplementalGroups", go: "[]int64", shape: Shape::List(&Shape::Int64), proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "supplementalGroupsPolicy", go: "v1.SupplementalGroupsPolicy", shape: Shape::String("v1.SupplementalGroupsPolicy"), pointer: true, proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Merge", "Strict"], ..F },
    Field { name: "sysctls", go: "[]v1.Sysctl", shape: Shape::List(&Shape::Struct(&SYSCTL)), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "windowsOptions", go: "v1.WindowsSecurityContextOptions", shape: Shape::Struct(&WINDOWS_SECURITY_CONTEXT_OPTIONS), pointer: true, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_SPEC: Type = Type { name: "io.k8s.api.core.v1.PodSpec", go: "v1.PodSpec", atomic: false, fields: &[
    Field { name: "activeDeadlineSeconds", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "affinity", go: "v1.Affinity", shape: Shape::Struct(&AFFINITY), pointer: true, proto: Some(Proto { number: 18, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "automountServiceAccountToken", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 21, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "containers", go: "[]v1.Container", shape: Shape::List(&Shape::Struct(&CONTAINER)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "dnsConfig", go: "v1.PodDNSConfig", shape: Shape::Struct(&POD_DNS_CONFIG), pointer: true, proto: Some(Proto { number: 26, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "dnsPolicy", go: "v1.DNSPolicy", shape: Shape::String("v1.DNSPolicy"), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"], ..F },
    Field { name: "enableServiceLinks", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 30, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "ephemeralContainers", go: "[]v1.EphemeralContainer", shape: Shape::List(&Shape::Struct(&EPHEMERAL_CONTAINER)), proto: Some(Proto { number: 34, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "evictionResponders", go: "[]v1.EvictionResponder", shape: Shape::List(&Shape::Struct(&EVICTION_RESPONDER)), proto: Some(Proto { number: 44, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "hostAliases", go: "[]v1.HostAlias", shape: Shape::List(&Shape::Struct(&HOST_ALIAS)), proto: Some(Proto { number: 23, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "ip", ..M }, topology: Topology::Map(&["ip"]), ..F },
    Field { name: "hostIPC", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 13, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "hostNetwork", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 11, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "hostPID", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 12, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "hostUsers", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 37, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "hostname", proto: Some(Proto { number: 16, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "hostnameOverride", pointer: true, proto: Some(Proto { number: 41, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "imagePullSecrets", go: "[]v1.LocalObjectReference", shape: Shape::List(&Shape::Struct(&LOCAL_OBJECT_REFERENCE)), proto: Some(Proto { number: 15, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "initContainers", go: "[]v1.Container", shape: Shape::List(&Shape::Struct(&CONTAINER)), proto: Some(Proto { number: 20, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "nodeName", proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeSelector", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "os", go: "v1.PodOS", shape: Shape::Struct(&POD_OS), pointer: true, proto: Some(Proto { number: 36, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "overhead", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 32, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "preemptionPolicy", go: "v1.PreemptionPolicy", shape: Shape::String("v1.PreemptionPolicy"), pointer: true, proto: Some(Proto { number: 31, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Never", "PreemptLowerPriority"], ..F },
    Field { name: "priority", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 25, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "priorityClassName", proto: Some(Proto { number: 24, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readinessGates", go: "[]v1.PodReadinessGate", shape: Shape::List(&Shape::Struct(&POD_READINESS_GATE)), proto: Some(Proto { number: 28, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "resourceClaims", go: "[]v1.PodResourceClaim", shape: Shape::List(&Shape::Struct(&POD_RESOURCE_CLAIM)), proto: Some(Proto { number: 39, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, retain_keys: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "resources", go: "v1.ResourceRequirements", shape: Shape::Struct(&RESOURCE_REQUIREMENTS), pointer: true, proto: Some(Proto { number: 40, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "restartPolicy", go: "v1.RestartPolicy", shape: Shape::String("v1.RestartPolicy"), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Always", "Never", "OnFailure"], ..F },
    Field { name: "runtimeClassName", pointer: true, proto: Some(Proto { number: 29, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "schedulerName", proto: Some(Proto { number: 19, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "schedulingGates", go: "[]v1.PodSchedulingGate", shape: Shape::List(&Shape::Struct(&POD_SCHEDULING_GATE)), proto: Some(Proto { number: 38, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "schedulingGroup", go: "v1.PodSchedulingGroup", shape: Shape::Struct(&POD_SCHEDULING_GROUP), pointer: true, proto: Some(Proto { number: 43, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "securityContext", go: "v1.PodSecurityContext", shape: Shape::Struct(&POD_SECURITY_CONTEXT), pointer: true, proto: Some(Proto { number: 14, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "serviceAccount", proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "serviceAccountName", proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "setHostnameAsFQDN", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 35, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "shareProcessNamespace", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 27, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "subdomain", proto: Some(Proto { number: 17, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "terminationGracePeriodSeconds", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "tolerations", go: "[]v1.Toleration", shape: Shape::List(&Shape::Struct(&TOLERATION)), proto: Some(Proto { number: 22, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "topologySpreadConstraints", go: "[]v1.TopologySpreadConstraint", shape: Shape::List(&Shape::Struct(&TOPOLOGY_SPREAD_CONSTRAINT)), proto: Some(Proto { number: 33, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "topologyKey", ..M }, topology: Topology::Map(&["topologyKey", "whenUnsatisfiable"]), ..F },
    Field { name: "volumes", go: "[]v1.Volume", shape: Shape::List(&Shape::Struct(&VOLUME)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, retain_keys: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
] };

pub(crate) static POD_STATUS: Type = Type { name: "io.k8s.api.core.v1.PodStatus", go: "v1.PodStatus", atomic: false, fields: &[
    Field { name: "allocatedResources", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 19, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "conditions", go: "[]v1.PodCondition", shape: Shape::List(&Shape::Struct(&POD_CONDITION)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "containerStatuses", go: "[]v1.ContainerStatus", shape: Shape::List(&Shape::Struct(&CONTAINER_STATUS)), proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "ephemeralContainerStatuses", go: "[]v1.ContainerStatus", shape: Shape::List(&Shape::Struct(&CONTAINER_STATUS)), proto: Some(Proto { number: 13, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "extendedResourceClaimStatus", go: "v1.PodExtendedResourceClaimStatus", shape: Shape::Struct(&POD_EXTENDED_RESOURCE_CLAIM_STATUS), pointer: true, proto: Some(Proto { number: 18, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "hostIP", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "hostIPs", go: "[]v1.HostIP", shape: Shape::List(&Shape::Struct(&HOST_IP)), proto: Some(Proto { number: 16, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "ip", ..M }, topology: Topology::Atomic, ..F },
    Field { name: "initContainerStatuses", go: "[]v1.ContainerStatus", shape: Shape::List(&Shape::Struct(&CONTAINER_STATUS)), proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "message", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeAllocatableResourceClaimStatuses", go: "[]v1.NodeAllocatableResourceClaimStatus", shape: Shape::List(&Shape::Struct(&NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS)), proto: Some(Proto { number: 21, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "resourceClaimName", ..M }, topology: Topology::Map(&["resourceClaimName"]), ..F },
    Field { name: "nominatedNodeName", proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "observedGeneration", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 17, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "phase", go: "v1.PodPhase", shape: Shape::String("v1.PodPhase"), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Failed", "Pending", "Running", "Succeeded", "Unknown"], ..F },
    Field { name: "podIP", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "podIPs", go: "[]v1.PodIP", shape: Shape::List(&Shape::Struct(&POD_IP)), proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "ip", ..M }, topology: Topology::Map(&["ip"]), ..F },
    Field { name: "qosClass", go: "v1.PodQOSClass", shape: Shape::String("v1.PodQOSClass"), proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["BestEffort", "Burstable", "Guaranteed"], ..F },
    Field { name: "reason", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resize", go: "v1.PodResizeStatus", shape: Shape::String("v1.PodResizeStatus"), proto: Some(Proto { number: 14, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceClaimStatuses", go: "[]v1.PodResourceClaimStatus", shape: Shape::List(&Shape::Struct(&POD_RESOURCE_CLAIM_STATUS)), proto: Some(Proto { number: 15, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, retain_keys: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "resources", go: "v1.ResourceRequirements", shape: Shape::Struct(&RESOURCE_REQUIREMENTS), pointer: true, proto: Some(Proto { number: 20, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "startTime", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeHealth", go: "[]v1.PodVolumeHealth", shape: Shape::List(&Shape::Struct(&POD_VOLUME_HEALTH)), proto: Some(Proto { number: 22, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Map(&["name"]), ..F },
] };

pub(crate) static POD_TEMPLATE: Type = Type { name: "io.k8s.api.core.v1.PodTemplate", go: "v1.PodTemplate", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "template", go: "v1.PodTemplateSpec", shape: Shape::Struct(&POD_TEMPLATE_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_TEMPLATE_LIST: Type = Type { name: "io.k8s.api.core.v1.PodTemplateList", go: "v1.PodTemplateList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.PodTemplate", shape: Shape::List(&Shape::Struct(&POD_TEMPLATE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_TEMPLATE_SPEC: Type = Type { name: "io.k8s.api.core.v1.PodTemplateSpec", go: "v1.PodTemplateSpec", atomic: false, fields: &[
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.PodSpec", shape: Shape::Struct(&POD_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_VOLUME_HEALTH: Type = Type { name: "io.k8s.api.core.v1.PodVolumeHealth", go: "v1.PodVolumeHealth", atomic: false, fields: &[
    Field { name: "healthConditions", go: "[]v1.VolumeHealthCondition", shape: Shape::List(&Shape::Struct(&VOLUME_HEALTH_CONDITION)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "status", ..M }, topology: Topology::Map(&["status", "reason"]), ..F },
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PORT_STATUS: Type = Type { name: "io.k8s.api.core.v1.PortStatus", go: "v1.PortStatus", atomic: false, fields: &[
    Field { name: "error", pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "port", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "protocol", go: "v1.Protocol", shape: Shape::String("v1.Protocol"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["SCTP", "TCP", "UDP"], ..F },
] };

pub(crate) static PORTWORX_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.PortworxVolumeSource", go: "v1.PortworxVolumeSource", atomic: false, fields: &[
    Field { name: "fsType", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "volumeID", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PREFERRED_SCHEDULING_TERM: Type = Type { name: "io.k8s.api.core.v1.PreferredSchedulingTerm", go: "v1.PreferredSchedulingTerm", atomic: false, fields: &[
    Field { name: "preference", go: "v1.NodeSelectorTerm", shape: Shape::Struct(&NODE_SELECTOR_TERM), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "weight", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PROBE: Type = Type { name: "io.k8s.api.core.v1.Probe", go: "v1.Probe", atomic: false, fields: &[
    Field { name: "exec", declared_in: "ProbeHandler", go: "v1.ExecAction", shape: Shape::Struct(&EXEC_ACTION), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
    Field { name: "failureThreshold", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "grpc", declared_in: "ProbeHandler", go: "v1.GRPCAction", shape: Shape::Struct(&GRPC_ACTION), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
    Field { name: "httpGet", declared_in: "ProbeHandler", go: "v1.HTTPGetAction", shape: Shape::Struct(&HTTP_GET_ACTION), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
    Field { name: "initialDelaySeconds", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "periodSeconds", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "successThreshold", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "tcpSocket", declared_in: "ProbeHandler", go: "v1.TCPSocketAction", shape: Shape::Struct(&TCP_SOCKET_ACTION), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[1], wrapped: false }), ..F },
    Field { name: "terminationGracePeriodSeconds", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "timeoutSeconds", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PROJECTED_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.ProjectedVolumeSource", go: "v1.ProjectedVolumeSource", atomic: false, fields: &[
    Field { name: "defaultMode", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "defaultUser", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "sources", go: "[]v1.VolumeProjection", shape: Shape::List(&Shape::Struct(&VOLUME_PROJECTION)), omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static QUOBYTE_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.QuobyteVolumeSource", go: "v1.QuobyteVolumeSource", atomic: false, fields: &[
    Field { name: "group", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "registry", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "tenant", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "user", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volume", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RBD_PERSISTENT_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.RBDPersistentVolumeSource", go: "v1.RBDPersistentVolumeSource", atomic: false, fields: &[
    Field { name: "fsType", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "image", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "keyring", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"/etc/ceph/keyring\"", ..F },
    Field { name: "monitors", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "pool", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"rbd\"", ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretRef", go: "v1.SecretReference", shape: Shape::Struct(&SECRET_REFERENCE), pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "user", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"admin\"", ..F },
] };

pub(crate) static RBD_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.RBDVolumeSource", go: "v1.RBDVolumeSource", atomic: false, fields: &[
    Field { name: "fsType", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "image", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "keyring", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"/etc/ceph/keyring\"", ..F },
    Field { name: "monitors", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "pool", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"rbd\"", ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretRef", go: "v1.LocalObjectReference", shape: Shape::Struct(&LOCAL_OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "user", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"admin\"", ..F },
] };

pub(crate) static RANGE_ALLOCATION: Type = Type { name: "io.k8s.api.core.v1.RangeAllocation", go: "v1.RangeAllocation", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "data", go: "[]uint8", shape: Shape::Bytes, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "range", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static REPLICATION_CONTROLLER: Type = Type { name: "io.k8s.api.core.v1.ReplicationController", go: "v1.ReplicationController", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.ReplicationControllerSpec", shape: Shape::Struct(&REPLICATION_CONTROLLER_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ReplicationControllerStatus", shape: Shape::Struct(&REPLICATION_CONTROLLER_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static REPLICATION_CONTROLLER_CONDITION: Type = Type { name: "io.k8s.api.core.v1.ReplicationControllerCondition", go: "v1.ReplicationControllerCondition", atomic: false, fields: &[
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.ReplicationControllerConditionType", shape: Shape::String("v1.ReplicationControllerConditionType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static REPLICATION_CONTROLLER_LIST: Type = Type { name: "io.k8s.api.core.v1.ReplicationControllerList", go: "v1.ReplicationControllerList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.ReplicationController", shape: Shape::List(&Shape::Struct(&REPLICATION_CONTROLLER)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static REPLICATION_CONTROLLER_SPEC: Type = Type { name: "io.k8s.api.core.v1.ReplicationControllerSpec", go: "v1.ReplicationControllerSpec", atomic: false, fields: &[
    Field { name: "minReadySeconds", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), default: "0", ..F },
    Field { name: "replicas", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), default: "1", ..F },
    Field { name: "selector", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "template", go: "v1.PodTemplateSpec", shape: Shape::Struct(&POD_TEMPLATE_SPEC), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static REPLICATION_CONTROLLER_STATUS: Type = Type { name: "io.k8s.api.core.v1.ReplicationControllerStatus", go: "v1.ReplicationControllerStatus", atomic: false, fields: &[
    Field { name: "availableReplicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "conditions", go: "[]v1.ReplicationControllerCondition", shape: Shape::List(&Shape::Struct(&REPLICATION_CONTROLLER_CONDITION)), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "fullyLabeledReplicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "observedGeneration", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "readyReplicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "replicas", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_CLAIM: Type = Type { name: "io.k8s.api.core.v1.ResourceClaim", go: "v1.ResourceClaim", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "request", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_FIELD_SELECTOR: Type = Type { name: "io.k8s.api.core.v1.ResourceFieldSelector", go: "v1.ResourceFieldSelector", atomic: true, fields: &[
    Field { name: "containerName", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "divisor", go: "resource.Quantity", shape: Shape::Quantity, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resource", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_HEALTH: Type = Type { name: "io.k8s.api.core.v1.ResourceHealth", go: "v1.ResourceHealth", atomic: false, fields: &[
    Field { name: "health", go: "v1.ResourceHealthStatus", shape: Shape::String("v1.ResourceHealthStatus"), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceID", go: "v1.ResourceID", shape: Shape::String("v1.ResourceID"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_QUOTA: Type = Type { name: "io.k8s.api.core.v1.ResourceQuota", go: "v1.ResourceQuota", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.ResourceQuotaSpec", shape: Shape::Struct(&RESOURCE_QUOTA_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ResourceQuotaStatus", shape: Shape::Struct(&RESOURCE_QUOTA_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_QUOTA_LIST: Type = Type { name: "io.k8s.api.core.v1.ResourceQuotaList", go: "v1.ResourceQuotaList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.ResourceQuota", shape: Shape::List(&Shape::Struct(&RESOURCE_QUOTA)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_QUOTA_SPEC: Type = Type { name: "io.k8s.api.core.v1.ResourceQuotaSpec", go: "v1.ResourceQuotaSpec", atomic: false, fields: &[
    Field { name: "hard", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "scopeSelector", go: "v1.ScopeSelector", shape: Shape::Struct(&SCOPE_SELECTOR), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "scopes", go: "[]v1.ResourceQuotaScope", shape: Shape::List(&Shape::String("v1.ResourceQuotaScope")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, values: &["BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass", "Terminating", "VolumeAttributesClass"], ..F },
] };

pub(crate) static RESOURCE_QUOTA_STATUS: Type = Type { name: "io.k8s.api.core.v1.ResourceQuotaStatus", go: "v1.ResourceQuotaStatus", atomic: false, fields: &[
    Field { name: "hard", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "used", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_REQUIREMENTS: Type = Type { name: "io.k8s.api.core.v1.ResourceRequirements", go: "v1.ResourceRequirements", atomic: false, fields: &[
    Field { name: "claims", go: "[]v1.ResourceClaim", shape: Shape::List(&Shape::Struct(&RESOURCE_CLAIM)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Map(&["name"]), ..F },
    Field { name: "limits", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "requests", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_STATUS: Type = Type { name: "io.k8s.api.core.v1.ResourceStatus", go: "v1.ResourceStatus", atomic: false, fields: &[
    Field { name: "name", go: "v1.ResourceName", shape: Shape::String("v1.ResourceName"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resources", go: "[]v1.ResourceHealth", shape: Shape::List(&Shape::Struct(&RESOURCE_HEALTH)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Map(&["resourceID"]), ..F },
] };

pub(crate) static SE_LINUX_OPTIONS: Type = Type { name: "io.k8s.api.core.v1.SELinuxOptions", go: "v1.SELinuxOptions", atomic: false, fields: &[
    Field { name: "level", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "role", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "user", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SCALE_IO_PERSISTENT_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.ScaleIOPersistentVolumeSource", go: "v1.ScaleIOPersistentVolumeSource", atomic: false, fields: &[
    Field { name: "fsType", proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"xfs\"", ..F },
    Field { name: "gateway", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "protectionDomain", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 10, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretRef", go: "v1.SecretReference", shape: Shape::Struct(&SECRET_REFERENCE), pointer: true, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "sslEnabled", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "storageMode", proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"ThinProvisioned\"", ..F },
    Field { name: "storagePool", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "system", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeName", proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SCALE_IO_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.ScaleIOVolumeSource", go: "v1.ScaleIOVolumeSource", atomic: false, fields: &[
    Field { name: "fsType", proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"xfs\"", ..F },
    Field { name: "gateway", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "protectionDomain", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 10, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretRef", go: "v1.LocalObjectReference", shape: Shape::Struct(&LOCAL_OBJECT_REFERENCE), pointer: true, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "sslEnabled", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "storageMode", proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"ThinProvisioned\"", ..F },
    Field { name: "storagePool", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "system", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeName", proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SCOPE_SELECTOR: Type = Type { name: "io.k8s.api.core.v1.ScopeSelector", go: "v1.ScopeSelector", atomic: true, fields: &[
    Field { name: "matchExpressions", go: "[]v1.ScopedResourceSelectorRequirement", shape: Shape::List(&Shape::Struct(&SCOPED_RESOURCE_SELECTOR_REQUIREMENT)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static SCOPED_RESOURCE_SELECTOR_REQUIREMENT: Type = Type { name: "io.k8s.api.core.v1.ScopedResourceSelectorRequirement", go: "v1.ScopedResourceSelectorRequirement", atomic: false, fields: &[
    Field { name: "operator", go: "v1.ScopeSelectorOperator", shape: Shape::String("v1.ScopeSelectorOperator"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["DoesNotExist", "Exists", "In", "NotIn"], ..F },
    Field { name: "scopeName", go: "v1.ResourceQuotaScope", shape: Shape::String("v1.ResourceQuotaScope"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass", "Terminating", "VolumeAttributesClass"], ..F },
    Field { name: "values", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static SECCOMP_PROFILE: Type = Type { name: "io.k8s.api.core.v1.SeccompProfile", go: "v1.SeccompProfile", atomic: false, fields: &[
    Field { name: "localhostProfile", pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.SeccompProfileType", shape: Shape::String("v1.SeccompProfileType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Localhost", "RuntimeDefault", "Unconfined"], ..F },
] };

pub(crate) static SECRET: Type = Type { name: "io.k8s.api.core.v1.Secret", go: "v1.Secret", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "data", go: "map[string][]uint8", shape: Shape::Map(&Shape::Bytes), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "immutable", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "stringData", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.SecretType", shape: Shape::String("v1.SecretType"), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SECRET_ENV_SOURCE: Type = Type { name: "io.k8s.api.core.v1.SecretEnvSource", go: "v1.SecretEnvSource", atomic: false, fields: &[
    Field { name: "name", declared_in: "LocalObjectReference", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[1], wrapped: false }), default: "\"\"", ..F },
    Field { name: "optional", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SECRET_KEY_SELECTOR: Type = Type { name: "io.k8s.api.core.v1.SecretKeySelector", go: "v1.SecretKeySelector", atomic: true, fields: &[
    Field { name: "key", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", declared_in: "LocalObjectReference", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[1], wrapped: false }), default: "\"\"", ..F },
    Field { name: "optional", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SECRET_LIST: Type = Type { name: "io.k8s.api.core.v1.SecretList", go: "v1.SecretList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.Secret", shape: Shape::List(&Shape::Struct(&SECRET)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SECRET_PROJECTION: Type = Type { name: "io.k8s.api.core.v1.SecretProjection", go: "v1.SecretProjection", atomic: false, fields: &[
    Field { name: "items", go: "[]v1.KeyToPath", shape: Shape::List(&Shape::Struct(&KEY_TO_PATH)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "name", declared_in: "LocalObjectReference", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[1], wrapped: false }), default: "\"\"", ..F },
    Field { name: "optional", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SECRET_REFERENCE: Type = Type { name: "io.k8s.api.core.v1.SecretReference", go: "v1.SecretReference", atomic: true, fields: &[
    Field { name: "name", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespace", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SECRET_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.SecretVolumeSource", go: "v1.SecretVolumeSource", atomic: false, fields: &[
    Field { name: "defaultMode", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "defaultUser", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "items", go: "[]v1.KeyToPath", shape: Shape::List(&Shape::Struct(&KEY_TO_PATH)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "optional", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretName", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SECURITY_CONTEXT: Type = Type { name: "io.k8s.api.core.v1.SecurityContext", go: "v1.SecurityContext", atomic: false, fields: &[
    Field { name: "allowPrivilegeEscalation", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "appArmorProfile", go: "v1.AppArmorProfile", shape: Shape::Struct(&APP_ARMOR_PROFILE), pointer: true, proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "capabilities", go: "v1.Capabilities", shape: Shape::Struct(&CAPABILITIES), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "privileged", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "procMount", go: "v1.ProcMountType", shape: Shape::String("v1.ProcMountType"), pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Default", "Unmasked"], ..F },
    Field { name: "readOnlyRootFilesystem", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "runAsGroup", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "runAsNonRoot", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "runAsUser", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "seLinuxOptions", go: "v1.SELinuxOptions", shape: Shape::Struct(&SE_LINUX_OPTIONS), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "seccompProfile", go: "v1.SeccompProfile", shape: Shape::Struct(&SECCOMP_PROFILE), pointer: true, proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "windowsOptions", go: "v1.WindowsSecurityContextOptions", shape: Shape::Struct(&WINDOWS_SECURITY_CONTEXT_OPTIONS), pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SERIALIZED_REFERENCE: Type = Type { name: "io.k8s.api.core.v1.SerializedReference", go: "v1.SerializedReference", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "reference", go: "v1.ObjectReference", shape: Shape::Struct(&OBJECT_REFERENCE), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SERVICE: Type = Type { name: "io.k8s.api.core.v1.Service", go: "v1.Service", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.ServiceSpec", shape: Shape::Struct(&SERVICE_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ServiceStatus", shape: Shape::Struct(&SERVICE_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SERVICE_ACCOUNT: Type = Type { name: "io.k8s.api.core.v1.ServiceAccount", go: "v1.ServiceAccount", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "automountServiceAccountToken", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "imagePullSecrets", go: "[]v1.LocalObjectReference", shape: Shape::List(&Shape::Struct(&LOCAL_OBJECT_REFERENCE)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "secrets", go: "[]v1.ObjectReference", shape: Shape::List(&Shape::Struct(&OBJECT_REFERENCE)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
] };

pub(crate) static SERVICE_ACCOUNT_LIST: Type = Type { name: "io.k8s.api.core.v1.ServiceAccountList", go: "v1.ServiceAccountList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.ServiceAccount", shape: Shape::List(&Shape::Struct(&SERVICE_ACCOUNT)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SERVICE_ACCOUNT_TOKEN_PROJECTION: Type = Type { name: "io.k8s.api.core.v1.ServiceAccountTokenProjection", go: "v1.ServiceAccountTokenProjection", atomic: false, fields: &[
    Field { name: "audience", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "expirationSeconds", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "path", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "user", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SERVICE_LIST: Type = Type { name: "io.k8s.api.core.v1.ServiceList", go: "v1.ServiceList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.Service", shape: Shape::List(&Shape::Struct(&SERVICE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SERVICE_PORT: Type = Type { name: "io.k8s.api.core.v1.ServicePort", go: "v1.ServicePort", atomic: false, fields: &[
    Field { name: "appProtocol", pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodePort", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "port", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "protocol", go: "v1.Protocol", shape: Shape::String("v1.Protocol"), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), default: "\"TCP\"", values: &["SCTP", "TCP", "UDP"], ..F },
    Field { name: "targetPort", go: "intstr.IntOrString", shape: Shape::IntOrString, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SERVICE_PROXY_OPTIONS: Type = Type { name: "io.k8s.api.core.v1.ServiceProxyOptions", go: "v1.ServiceProxyOptions", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "path", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SERVICE_SPEC: Type = Type { name: "io.k8s.api.core.v1.ServiceSpec", go: "v1.ServiceSpec", atomic: false, fields: &[
    Field { name: "allocateLoadBalancerNodePorts", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 20, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "clusterIP", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "clusterIPs", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 18, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "externalIPs", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "externalName", proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "externalTrafficPolicy", go: "v1.ServiceExternalTrafficPolicy", shape: Shape::String("v1.ServiceExternalTrafficPolicy"), proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Cluster", "Local"], ..F },
    Field { name: "healthCheckNodePort", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 12, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "internalTrafficPolicy", go: "v1.ServiceInternalTrafficPolicy", shape: Shape::String("v1.ServiceInternalTrafficPolicy"), pointer: true, proto: Some(Proto { number: 22, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Cluster", "Local"], ..F },
    Field { name: "ipFamilies", go: "[]v1.IPFamily", shape: Shape::List(&Shape::String("v1.IPFamily")), proto: Some(Proto { number: 19, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, values: &["", "IPv4", "IPv6"], ..F },
    Field { name: "ipFamilyPolicy", go: "v1.IPFamilyPolicy", shape: Shape::String("v1.IPFamilyPolicy"), pointer: true, proto: Some(Proto { number: 17, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["PreferDualStack", "RequireDualStack", "SingleStack"], ..F },
    Field { name: "loadBalancerClass", pointer: true, proto: Some(Proto { number: 21, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "loadBalancerIP", proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "loadBalancerSourceRanges", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "ports", go: "[]v1.ServicePort", shape: Shape::List(&Shape::Struct(&SERVICE_PORT)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "port", ..M }, topology: Topology::Map(&["port", "protocol"]), ..F },
    Field { name: "publishNotReadyAddresses", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 13, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "selector", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "sessionAffinity", go: "v1.ServiceAffinity", shape: Shape::String("v1.ServiceAffinity"), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["ClientIP", "None"], ..F },
    Field { name: "sessionAffinityConfig", go: "v1.SessionAffinityConfig", shape: Shape::Struct(&SESSION_AFFINITY_CONFIG), pointer: true, proto: Some(Proto { number: 14, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "trafficDistribution", pointer: true, proto: Some(Proto { number: 23, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.ServiceType", shape: Shape::String("v1.ServiceType"), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], ..F },
] };

pub(crate) static SERVICE_STATUS: Type = Type { name: "io.k8s.api.core.v1.ServiceStatus", go: "v1.ServiceStatus", atomic: false, fields: &[
    Field { name: "conditions", go: "[]v1.Condition", shape: Shape::List(&Shape::Struct(&super::meta_v1::CONDITION)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "loadBalancer", go: "v1.LoadBalancerStatus", shape: Shape::Struct(&LOAD_BALANCER_STATUS), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SESSION_AFFINITY_CONFIG: Type = Type { name: "io.k8s.api.core.v1.SessionAffinityConfig", go: "v1.SessionAffinityConfig", atomic: false, fields: &[
    Field { name: "clientIP", go: "v1.ClientIPConfig", shape: Shape::Struct(&CLIENT_IP_CONFIG), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SLEEP_ACTION: Type = Type { name: "io.k8s.api.core.v1.SleepAction", go: "v1.SleepAction", atomic: false, fields: &[
    Field { name: "seconds", go: "int64", shape: Shape::Int64, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STORAGE_OS_PERSISTENT_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.StorageOSPersistentVolumeSource", go: "v1.StorageOSPersistentVolumeSource", atomic: false, fields: &[
    Field { name: "fsType", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretRef", go: "v1.ObjectReference", shape: Shape::Struct(&OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeName", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeNamespace", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STORAGE_OS_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.StorageOSVolumeSource", go: "v1.StorageOSVolumeSource", atomic: false, fields: &[
    Field { name: "fsType", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "secretRef", go: "v1.LocalObjectReference", shape: Shape::Struct(&LOCAL_OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeName", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeNamespace", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SYSCTL: Type = Type { name: "io.k8s.api.core.v1.Sysctl", go: "v1.Sysctl", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "value", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static TCP_SOCKET_ACTION: Type = Type { name: "io.k8s.api.core.v1.TCPSocketAction", go: "v1.TCPSocketAction", atomic: false, fields: &[
    Field { name: "host", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "port", go: "intstr.IntOrString", shape: Shape::IntOrString, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static TAINT: Type = Type { name: "io.k8s.api.core.v1.Taint", go: "v1.Taint", atomic: false, fields: &[
    Field { name: "effect", go: "v1.TaintEffect", shape: Shape::String("v1.TaintEffect"), required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["NoExecute", "NoSchedule", "PreferNoSchedule"], ..F },
    Field { name: "key", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "timeAdded", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "value", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static TOLERATION: Type = Type { name: "io.k8s.api.core.v1.Toleration", go: "v1.Toleration", atomic: false, fields: &[
    Field { name: "effect", go: "v1.TaintEffect", shape: Shape::String("v1.TaintEffect"), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["NoExecute", "NoSchedule", "PreferNoSchedule"], ..F },
    Field { name: "key", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "operator", go: "v1.TolerationOperator", shape: Shape::String("v1.TolerationOperator"), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Equal", "Exists", "Gt", "Lt"], ..F },
    Field { name: "tolerationSeconds", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "value", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static TOPOLOGY_SELECTOR_LABEL_REQUIREMENT: Type = Type { name: "io.k8s.api.core.v1.TopologySelectorLabelRequirement", go: "v1.TopologySelectorLabelRequirement", atomic: false, fields: &[
    Field { name: "key", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "values", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static TOPOLOGY_SELECTOR_TERM: Type = Type { name: "io.k8s.api.core.v1.TopologySelectorTerm", go: "v1.TopologySelectorTerm", atomic: true, fields: &[
    Field { name: "matchLabelExpressions", go: "[]v1.TopologySelectorLabelRequirement", shape: Shape::List(&Shape::Struct(&TOPOLOGY_SELECTOR_LABEL_REQUIREMENT)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static TOPOLOGY_SPREAD_CONSTRAINT: Type = Type { name: "io.k8s.api.core.v1.TopologySpreadConstraint", go: "v1.TopologySpreadConstraint", atomic: false, fields: &[
    Field { name: "labelSelector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "matchLabelKeys", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "maxSkew", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "minDomains", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "nodeAffinityPolicy", go: "v1.NodeInclusionPolicy", shape: Shape::String("v1.NodeInclusionPolicy"), pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Honor", "Ignore"], ..F },
    Field { name: "nodeTaintsPolicy", go: "v1.NodeInclusionPolicy", shape: Shape::String("v1.NodeInclusionPolicy"), pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Honor", "Ignore"], ..F },
    Field { name: "topologyKey", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "whenUnsatisfiable", go: "v1.UnsatisfiableConstraintAction", shape: Shape::String("v1.UnsatisfiableConstraintAction"), required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["DoNotSchedule", "ScheduleAnyway"], ..F },
] };

pub(crate) static TYPED_LOCAL_OBJECT_REFERENCE: Type = Type { name: "io.k8s.api.core.v1.TypedLocalObjectReference", go: "v1.TypedLocalObjectReference", atomic: true, fields: &[
    Field { name: "apiGroup", pointer: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static TYPED_OBJECT_REFERENCE: Type = Type { name: "io.k8s.api.core.v1.TypedObjectReference", go: "v1.TypedObjectReference", atomic: false, fields: &[
    Field { name: "apiGroup", pointer: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespace", pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME: Type = Type { name: "io.k8s.api.core.v1.Volume", go: "v1.Volume", atomic: false, fields: &[
    Field { name: "awsElasticBlockStore", declared_in: "VolumeSource", go: "v1.AWSElasticBlockStoreVolumeSource", shape: Shape::Struct(&AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "azureDisk", declared_in: "VolumeSource", go: "v1.AzureDiskVolumeSource", shape: Shape::Struct(&AZURE_DISK_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 22, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "azureFile", declared_in: "VolumeSource", go: "v1.AzureFileVolumeSource", shape: Shape::Struct(&AZURE_FILE_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 18, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "cephfs", declared_in: "VolumeSource", go: "v1.CephFSVolumeSource", shape: Shape::Struct(&CEPH_FS_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 14, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "cinder", declared_in: "VolumeSource", go: "v1.CinderVolumeSource", shape: Shape::Struct(&CINDER_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 13, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "configMap", declared_in: "VolumeSource", go: "v1.ConfigMapVolumeSource", shape: Shape::Struct(&CONFIG_MAP_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 19, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "csi", declared_in: "VolumeSource", go: "v1.CSIVolumeSource", shape: Shape::Struct(&CSI_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 28, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "downwardAPI", declared_in: "VolumeSource", go: "v1.DownwardAPIVolumeSource", shape: Shape::Struct(&DOWNWARD_API_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 16, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "emptyDir", declared_in: "VolumeSource", go: "v1.EmptyDirVolumeSource", shape: Shape::Struct(&EMPTY_DIR_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "ephemeral", declared_in: "VolumeSource", go: "v1.EphemeralVolumeSource", shape: Shape::Struct(&EPHEMERAL_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 29, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "fc", declared_in: "VolumeSource", go: "v1.FCVolumeSource", shape: Shape::Struct(&FC_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 17, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "flexVolume", declared_in: "VolumeSource", go: "v1.FlexVolumeSource", shape: Shape::Struct(&FLEX_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "flocker", declared_in: "VolumeSource", go: "v1.FlockerVolumeSource", shape: Shape::Struct(&FLOCKER_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 15, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "gcePersistentDisk", declared_in: "VolumeSource", go: "v1.GCEPersistentDiskVolumeSource", shape: Shape::Struct(&GCE_PERSISTENT_DISK_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "gitRepo", declared_in: "VolumeSource", go: "v1.GitRepoVolumeSource", shape: Shape::Struct(&GIT_REPO_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "glusterfs", declared_in: "VolumeSource", go: "v1.GlusterfsVolumeSource", shape: Shape::Struct(&GLUSTERFS_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "hostPath", declared_in: "VolumeSource", go: "v1.HostPathVolumeSource", shape: Shape::Struct(&HOST_PATH_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "image", declared_in: "VolumeSource", go: "v1.ImageVolumeSource", shape: Shape::Struct(&IMAGE_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 30, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "iscsi", declared_in: "VolumeSource", go: "v1.ISCSIVolumeSource", shape: Shape::Struct(&ISCSI_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nfs", declared_in: "VolumeSource", go: "v1.NFSVolumeSource", shape: Shape::Struct(&NFS_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "persistentVolumeClaim", declared_in: "VolumeSource", go: "v1.PersistentVolumeClaimVolumeSource", shape: Shape::Struct(&PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "photonPersistentDisk", declared_in: "VolumeSource", go: "v1.PhotonPersistentDiskVolumeSource", shape: Shape::Struct(&PHOTON_PERSISTENT_DISK_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 23, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "portworxVolume", declared_in: "VolumeSource", go: "v1.PortworxVolumeSource", shape: Shape::Struct(&PORTWORX_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 24, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "projected", declared_in: "VolumeSource", go: "v1.ProjectedVolumeSource", shape: Shape::Struct(&PROJECTED_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 26, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "quobyte", declared_in: "VolumeSource", go: "v1.QuobyteVolumeSource", shape: Shape::Struct(&QUOBYTE_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 21, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "rbd", declared_in: "VolumeSource", go: "v1.RBDVolumeSource", shape: Shape::Struct(&RBD_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "scaleIO", declared_in: "VolumeSource", go: "v1.ScaleIOVolumeSource", shape: Shape::Struct(&SCALE_IO_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 25, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "secret", declared_in: "VolumeSource", go: "v1.SecretVolumeSource", shape: Shape::Struct(&SECRET_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "storageos", declared_in: "VolumeSource", go: "v1.StorageOSVolumeSource", shape: Shape::Struct(&STORAGE_OS_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 27, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
    Field { name: "vsphereVolume", declared_in: "VolumeSource", go: "v1.VsphereVirtualDiskVolumeSource", shape: Shape::Struct(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE), pointer: true, proto: Some(Proto { number: 20, wire: Wire::Bytes, within: &[2], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_DEVICE: Type = Type { name: "io.k8s.api.core.v1.VolumeDevice", go: "v1.VolumeDevice", atomic: false, fields: &[
    Field { name: "devicePath", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_HEALTH_CONDITION: Type = Type { name: "io.k8s.api.core.v1.VolumeHealthCondition", go: "v1.VolumeHealthCondition", atomic: false, fields: &[
    Field { name: "message", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.VolumeHealthStatusType", shape: Shape::String("v1.VolumeHealthStatusType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["DataLoss", "Degraded", "Inaccessible"], ..F },
] };

pub(crate) static VOLUME_HEALTH_STATUS: Type = Type { name: "io.k8s.api.core.v1.VolumeHealthStatus", go: "v1.VolumeHealthStatus", atomic: false, fields: &[
    Field { name: "healthConditions", go: "[]v1.VolumeHealthCondition", shape: Shape::List(&Shape::Struct(&VOLUME_HEALTH_CONDITION)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "status", ..M }, topology: Topology::Map(&["status", "reason"]), ..F },
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_MOUNT: Type = Type { name: "io.k8s.api.core.v1.VolumeMount", go: "v1.VolumeMount", atomic: false, fields: &[
    Field { name: "bindMountOptions", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, ..F },
    Field { name: "mountPath", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "mountPropagation", go: "v1.MountPropagationMode", shape: Shape::String("v1.MountPropagationMode"), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Bidirectional", "HostToContainer", "None"], ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "recursiveReadOnly", go: "v1.RecursiveReadOnlyMode", shape: Shape::String("v1.RecursiveReadOnlyMode"), pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "subPath", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "subPathExpr", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_MOUNT_STATUS: Type = Type { name: "io.k8s.api.core.v1.VolumeMountStatus", go: "v1.VolumeMountStatus", atomic: false, fields: &[
    Field { name: "mountPath", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "readOnly", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "recursiveReadOnly", go: "v1.RecursiveReadOnlyMode", shape: Shape::String("v1.RecursiveReadOnlyMode"), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeStatus", go: "v1.VolumeStatus", shape: Shape::Struct(&VOLUME_STATUS), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_NODE_AFFINITY: Type = Type { name: "io.k8s.api.core.v1.VolumeNodeAffinity", go: "v1.VolumeNodeAffinity", atomic: false, fields: &[
    Field { name: "required", go: "v1.NodeSelector", shape: Shape::Struct(&NODE_SELECTOR), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_PROJECTION: Type = Type { name: "io.k8s.api.core.v1.VolumeProjection", go: "v1.VolumeProjection", atomic: false, fields: &[
    Field { name: "clusterTrustBundle", go: "v1.ClusterTrustBundleProjection", shape: Shape::Struct(&CLUSTER_TRUST_BUNDLE_PROJECTION), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "configMap", go: "v1.ConfigMapProjection", shape: Shape::Struct(&CONFIG_MAP_PROJECTION), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "downwardAPI", go: "v1.DownwardAPIProjection", shape: Shape::Struct(&DOWNWARD_API_PROJECTION), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "podCertificate", go: "v1.PodCertificateProjection", shape: Shape::Struct(&POD_CERTIFICATE_PROJECTION), pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "secret", go: "v1.SecretProjection", shape: Shape::Struct(&SECRET_PROJECTION), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "serviceAccountToken", go: "v1.ServiceAccountTokenProjection", shape: Shape::Struct(&SERVICE_ACCOUNT_TOKEN_PROJECTION), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_RESOURCE_REQUIREMENTS: Type = Type { name: "io.k8s.api.core.v1.VolumeResourceRequirements", go: "v1.VolumeResourceRequirements", atomic: false, fields: &[
    Field { name: "limits", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "requests", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VOLUME_STATUS: Type = Type { name: "io.k8s.api.core.v1.VolumeStatus", go: "v1.VolumeStatus", atomic: false, fields: &[
    Field { name: "image", go: "v1.ImageVolumeStatus", shape: Shape::Struct(&IMAGE_VOLUME_STATUS), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE: Type = Type { name: "io.k8s.api.core.v1.VsphereVirtualDiskVolumeSource", go: "v1.VsphereVirtualDiskVolumeSource", atomic: false, fields: &[
    Field { name: "fsType", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "storagePolicyID", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "storagePolicyName", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumePath", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static WEIGHTED_POD_AFFINITY_TERM: Type = Type { name: "io.k8s.api.core.v1.WeightedPodAffinityTerm", go: "v1.WeightedPodAffinityTerm", atomic: false, fields: &[
    Field { name: "podAffinityTerm", go: "v1.PodAffinityTerm", shape: Shape::Struct(&POD_AFFINITY_TERM), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "weight", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static WINDOWS_SECURITY_CONTEXT_OPTIONS: Type = Type { name: "io.k8s.api.core.v1.WindowsSecurityContextOptions", go: "v1.WindowsSecurityContextOptions", atomic: false, fields: &[
    Field { name: "gmsaCredentialSpec", pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "gmsaCredentialSpecName", pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "hostProcess", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "runAsUserName", pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };
