//! The types of `k8s.io/api/node/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F};
use crate::table::{Field, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static OVERHEAD: Type = Type { name: "io.k8s.api.node.v1.Overhead", go: "v1.Overhead", atomic: false, fields: &[
    Field { name: "podFixed", go: "v1.ResourceList", shape: Shape::Map(&Shape::Quantity), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RUNTIME_CLASS: Type = Type { name: "io.k8s.api.node.v1.RuntimeClass", go: "v1.RuntimeClass", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "handler", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "overhead", go: "v1.Overhead", shape: Shape::Struct(&OVERHEAD), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "scheduling", go: "v1.Scheduling", shape: Shape::Struct(&SCHEDULING), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RUNTIME_CLASS_LIST: Type = Type { name: "io.k8s.api.node.v1.RuntimeClassList", go: "v1.RuntimeClassList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.RuntimeClass", shape: Shape::List(&Shape::Struct(&RUNTIME_CLASS)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SCHEDULING: Type = Type { name: "io.k8s.api.node.v1.Scheduling", go: "v1.Scheduling", atomic: false, fields: &[
    Field { name: "nodeSelector", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "tolerations", go: "[]v1.Toleration", shape: Shape::List(&Shape::Struct(&super::core_v1::TOLERATION)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };
