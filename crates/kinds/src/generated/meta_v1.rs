//! The types of `k8s.io/apimachinery/pkg/apis/meta/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F, M};
use crate::table::{Field, Merge, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static API_GROUP: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup", go: "v1.APIGroup", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "preferredVersion", go: "v1.GroupVersionForDiscovery", shape: Shape::Struct(&GROUP_VERSION_FOR_DISCOVERY), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "serverAddressByClientCIDRs", go: "[]v1.ServerAddressByClientCIDR", shape: Shape::List(&Shape::Struct(&SERVER_ADDRESS_BY_CLIENT_CIDR)), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "versions", go: "[]v1.GroupVersionForDiscovery", shape: Shape::List(&Shape::Struct(&GROUP_VERSION_FOR_DISCOVERY)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static API_GROUP_LIST: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList", go: "v1.APIGroupList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "groups", go: "[]v1.APIGroup", shape: Shape::List(&Shape::Struct(&API_GROUP)), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
] };

pub(crate) static API_RESOURCE: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.APIResource", go: "v1.APIResource", atomic: false, fields: &[
    Field { name: "categories", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "group", proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespaced", go: "bool", shape: Shape::Bool, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "shortNames", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "singularName", required: true, omit: Omit::Never, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "storageVersionHash", proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "verbs", go: "v1.Verbs", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: true }), ..F },
    Field { name: "version", proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static API_RESOURCE_LIST: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList", go: "v1.APIResourceList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "groupVersion", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "resources", go: "[]v1.APIResource", shape: Shape::List(&Shape::Struct(&API_RESOURCE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static API_VERSIONS: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions", go: "v1.APIVersions", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "serverAddressByClientCIDRs", go: "[]v1.ServerAddressByClientCIDR", shape: Shape::List(&Shape::Struct(&SERVER_ADDRESS_BY_CLIENT_CIDR)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "versions", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static CONDITION: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.Condition", go: "v1.Condition", atomic: false, fields: &[
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, required: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", required: true, omit: Omit::Never, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "observedGeneration", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "reason", required: true, omit: Omit::Never, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DELETE_OPTIONS: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", go: "v1.DeleteOptions", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "dryRun", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "gracePeriodSeconds", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "ignoreStoreReadErrorWithClusterBreakingPotential", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "orphanDependents", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "preconditions", go: "v1.Preconditions", shape: Shape::Struct(&PRECONDITIONS), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "propagationPolicy", go: "v1.DeletionPropagation", shape: Shape::String("v1.DeletionPropagation"), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static FIELD_SELECTOR_REQUIREMENT: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.FieldSelectorRequirement", go: "v1.FieldSelectorRequirement", atomic: false, fields: &[
    Field { name: "key", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "operator", go: "v1.FieldSelectorOperator", shape: Shape::String("v1.FieldSelectorOperator"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "values", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static GROUP_RESOURCE: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.GroupResource", go: "v1.GroupResource", atomic: false, fields: &[
    Field { name: "group", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resource", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static GROUP_VERSION_FOR_DISCOVERY: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.GroupVersionForDiscovery", go: "v1.GroupVersionForDiscovery", atomic: false, fields: &[
    Field { name: "groupVersion", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "version", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static LABEL_SELECTOR: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector", go: "v1.LabelSelector", atomic: true, fields: &[
    Field { name: "matchExpressions", go: "[]v1.LabelSelectorRequirement", shape: Shape::List(&Shape::Struct(&LABEL_SELECTOR_REQUIREMENT)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "matchLabels", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static LABEL_SELECTOR_REQUIREMENT: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement", go: "v1.LabelSelectorRequirement", atomic: false, fields: &[
    Field { name: "key", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "operator", go: "v1.LabelSelectorOperator", shape: Shape::String("v1.LabelSelectorOperator"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "values", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static LIST: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.List", go: "v1.List", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]runtime.RawExtension", shape: Shape::List(&Shape::RawExtension), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static LIST_META: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta", go: "v1.ListMeta", atomic: false, fields: &[
    Field { name: "continue", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "remainingItemCount", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "resourceVersion", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "selfLink", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "shardInfo", go: "v1.ShardInfo", shape: Shape::Struct(&SHARD_INFO), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static MANAGED_FIELDS_ENTRY: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry", go: "v1.ManagedFieldsEntry", atomic: false, fields: &[
    Field { name: "apiVersion", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "fieldsType", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "fieldsV1", go: "v1.FieldsV1", shape: Shape::FieldsV1, pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "manager", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "operation", go: "v1.ManagedFieldsOperationType", shape: Shape::String("v1.ManagedFieldsOperationType"), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "subresource", proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "time", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static OBJECT_META: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", go: "v1.ObjectMeta", atomic: false, fields: &[
    Field { name: "annotations", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "creationTimestamp", go: "v1.Time", shape: Shape::Time, omit: Omit::Zero, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "deletionGracePeriodSeconds", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 10, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "deletionTimestamp", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "finalizers", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 14, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, ..M }, topology: Topology::Set, ..F },
    Field { name: "generateName", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "generation", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "labels", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "managedFields", go: "[]v1.ManagedFieldsEntry", shape: Shape::List(&Shape::Struct(&MANAGED_FIELDS_ENTRY)), proto: Some(Proto { number: 17, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "name", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespace", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "ownerReferences", go: "[]v1.OwnerReference", shape: Shape::List(&Shape::Struct(&OWNER_REFERENCE)), proto: Some(Proto { number: 13, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "uid", ..M }, topology: Topology::Map(&["uid"]), ..F },
    Field { name: "resourceVersion", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "selfLink", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "uid", go: "types.UID", shape: Shape::String("types.UID"), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static OWNER_REFERENCE: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference", go: "v1.OwnerReference", atomic: true, fields: &[
    Field { name: "apiVersion", required: true, omit: Omit::Never, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "blockOwnerDeletion", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "controller", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "kind", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "uid", go: "types.UID", shape: Shape::String("types.UID"), required: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PARTIAL_OBJECT_METADATA: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata", go: "v1.PartialObjectMetadata", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PARTIAL_OBJECT_METADATA_LIST: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadataList", go: "v1.PartialObjectMetadataList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.PartialObjectMetadata", shape: Shape::List(&Shape::Struct(&PARTIAL_OBJECT_METADATA)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PRECONDITIONS: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.Preconditions", go: "v1.Preconditions", atomic: false, fields: &[
    Field { name: "resourceVersion", pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "uid", go: "types.UID", shape: Shape::String("types.UID"), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SERVER_ADDRESS_BY_CLIENT_CIDR: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.ServerAddressByClientCIDR", go: "v1.ServerAddressByClientCIDR", atomic: false, fields: &[
    Field { name: "clientCIDR", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "serverAddress", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SHARD_INFO: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.ShardInfo", go: "v1.ShardInfo", atomic: false, fields: &[
    Field { name: "selector", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STATUS: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.Status", go: "v1.Status", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "code", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "details", go: "v1.StatusDetails", shape: Shape::Struct(&STATUS_DETAILS), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "message", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", go: "v1.StatusReason", shape: Shape::String("v1.StatusReason"), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STATUS_CAUSE: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.StatusCause", go: "v1.StatusCause", atomic: false, fields: &[
    Field { name: "field", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", go: "v1.CauseType", shape: Shape::String("v1.CauseType"), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STATUS_DETAILS: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.StatusDetails", go: "v1.StatusDetails", atomic: false, fields: &[
    Field { name: "causes", go: "[]v1.StatusCause", shape: Shape::List(&Shape::Struct(&STATUS_CAUSE)), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "group", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "retryAfterSeconds", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "uid", go: "types.UID", shape: Shape::String("types.UID"), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static TABLE: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.Table", go: "v1.Table", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "columnDefinitions", go: "[]v1.TableColumnDefinition", shape: Shape::List(&Shape::Struct(&TABLE_COLUMN_DEFINITION)), required: true, omit: Omit::Never, topology: Topology::Atomic, ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&LIST_META), ..F },
    Field { name: "rows", go: "[]v1.TableRow", shape: Shape::List(&Shape::Struct(&TABLE_ROW)), required: true, omit: Omit::Never, topology: Topology::Atomic, ..F },
] };

pub(crate) static TABLE_COLUMN_DEFINITION: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.TableColumnDefinition", go: "v1.TableColumnDefinition", atomic: false, fields: &[
    Field { name: "description", required: true, omit: Omit::Never, ..F },
    Field { name: "format", required: true, omit: Omit::Never, ..F },
    Field { name: "name", required: true, omit: Omit::Never, ..F },
    Field { name: "priority", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, ..F },
    Field { name: "type", required: true, omit: Omit::Never, ..F },
] };

pub(crate) static TABLE_ROW: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.TableRow", go: "v1.TableRow", atomic: false, fields: &[
    Field { name: "cells", go: "[]interface {}", shape: Shape::List(&Shape::Json), required: true, omit: Omit::Never, topology: Topology::Atomic, ..F },
    Field { name: "conditions", go: "[]v1.TableRowCondition", shape: Shape::List(&Shape::Struct(&TABLE_ROW_CONDITION)), topology: Topology::Atomic, ..F },
    Field { name: "object", go: "runtime.RawExtension", shape: Shape::RawExtension, ..F },
] };

pub(crate) static TABLE_ROW_CONDITION: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.TableRowCondition", go: "v1.TableRowCondition", atomic: false, fields: &[
    Field { name: "message", ..F },
    Field { name: "reason", ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), required: true, omit: Omit::Never, ..F },
    Field { name: "type", go: "v1.RowConditionType", shape: Shape::String("v1.RowConditionType"), required: true, omit: Omit::Never, ..F },
] };

pub(crate) static TYPE_META: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.TypeMeta", go: "v1.TypeMeta", atomic: false, fields: &[
    Field { name: "apiVersion", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static WATCH_EVENT: Type = Type { name: "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent", go: "v1.WatchEvent", atomic: false, fields: &[
    Field { name: "object", go: "runtime.RawExtension", shape: Shape::RawExtension, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };
