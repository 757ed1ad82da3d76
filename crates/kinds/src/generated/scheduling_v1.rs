//! The types of `k8s.io/api/scheduling/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F};
use crate::table::{Field, Omit, Proto, Shape, Type, Wire};

pub(crate) static PRIORITY_CLASS: Type = Type { name: "io.k8s.api.scheduling.v1.PriorityClass", go: "v1.PriorityClass", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "description", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "globalDefault", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "preemptionPolicy", go: "v1.PreemptionPolicy", shape: Shape::String("v1.PreemptionPolicy"), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Never", "PreemptLowerPriority"], ..F },
    Field { name: "value", go: "int32", shape: Shape::Int32, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PRIORITY_CLASS_LIST: Type = Type { name: "io.k8s.api.scheduling.v1.PriorityClassList", go: "v1.PriorityClassList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.PriorityClass", shape: Shape::List(&Shape::Struct(&PRIORITY_CLASS)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };
