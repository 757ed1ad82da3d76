//! The types of `k8s.io/api/coordination/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F};
use crate::table::{Field, Omit, Proto, Shape, Type, Wire};

pub(crate) static LEASE: Type = Type { name: "io.k8s.api.coordination.v1.Lease", go: "v1.Lease", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.LeaseSpec", shape: Shape::Struct(&LEASE_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static LEASE_LIST: Type = Type { name: "io.k8s.api.coordination.v1.LeaseList", go: "v1.LeaseList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.Lease", shape: Shape::List(&Shape::Struct(&LEASE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static LEASE_SPEC: Type = Type { name: "io.k8s.api.coordination.v1.LeaseSpec", go: "v1.LeaseSpec", atomic: false, fields: &[
    Field { name: "acquireTime", go: "v1.MicroTime", shape: Shape::MicroTime, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "holderIdentity", pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "leaseDurationSeconds", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "leaseTransitions", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "preferredHolder", pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "renewTime", go: "v1.MicroTime", shape: Shape::MicroTime, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "strategy", go: "v1.CoordinatedLeaseStrategy", shape: Shape::String("v1.CoordinatedLeaseStrategy"), pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };
