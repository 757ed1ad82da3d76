//! The types of `k8s.io/api/storagemigration/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F, M};
use crate::table::{Field, Merge, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static STORAGE_VERSION_MIGRATION: Type = Type { name: "io.k8s.api.storagemigration.v1.StorageVersionMigration", go: "v1.StorageVersionMigration", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.StorageVersionMigrationSpec", shape: Shape::Struct(&STORAGE_VERSION_MIGRATION_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.StorageVersionMigrationStatus", shape: Shape::Struct(&STORAGE_VERSION_MIGRATION_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STORAGE_VERSION_MIGRATION_LIST: Type = Type { name: "io.k8s.api.storagemigration.v1.StorageVersionMigrationList", go: "v1.StorageVersionMigrationList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.StorageVersionMigration", shape: Shape::List(&Shape::Struct(&STORAGE_VERSION_MIGRATION)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STORAGE_VERSION_MIGRATION_SPEC: Type = Type { name: "io.k8s.api.storagemigration.v1.StorageVersionMigrationSpec", go: "v1.StorageVersionMigrationSpec", atomic: false, fields: &[
    Field { name: "resource", go: "v1.GroupResource", shape: Shape::Struct(&super::meta_v1::GROUP_RESOURCE), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STORAGE_VERSION_MIGRATION_STATUS: Type = Type { name: "io.k8s.api.storagemigration.v1.StorageVersionMigrationStatus", go: "v1.StorageVersionMigrationStatus", atomic: false, fields: &[
    Field { name: "conditions", go: "[]v1.Condition", shape: Shape::List(&Shape::Struct(&super::meta_v1::CONDITION)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "resourceVersion", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };
