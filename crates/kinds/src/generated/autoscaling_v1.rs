//! The types of `k8s.io/api/autoscaling/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F};
use crate::table::{Field, Omit, Proto, Shape, Type, Wire};

pub(crate) static CROSS_VERSION_OBJECT_REFERENCE: Type = Type { name: "io.k8s.api.autoscaling.v1.CrossVersionObjectReference", go: "v1.CrossVersionObjectReference", atomic: true, fields: &[
    Field { name: "apiVersion", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HORIZONTAL_POD_AUTOSCALER: Type = Type { name: "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler", go: "v1.HorizontalPodAutoscaler", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.HorizontalPodAutoscalerSpec", shape: Shape::Struct(&HORIZONTAL_POD_AUTOSCALER_SPEC), required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.HorizontalPodAutoscalerStatus", shape: Shape::Struct(&HORIZONTAL_POD_AUTOSCALER_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HORIZONTAL_POD_AUTOSCALER_LIST: Type = Type { name: "io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerList", go: "v1.HorizontalPodAutoscalerList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.HorizontalPodAutoscaler", shape: Shape::List(&Shape::Struct(&HORIZONTAL_POD_AUTOSCALER)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HORIZONTAL_POD_AUTOSCALER_SPEC: Type = Type { name: "io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerSpec", go: "v1.HorizontalPodAutoscalerSpec", atomic: false, fields: &[
    Field { name: "maxReplicas", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "minReplicas", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "scaleTargetRef", go: "v1.CrossVersionObjectReference", shape: Shape::Struct(&CROSS_VERSION_OBJECT_REFERENCE), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "targetCPUUtilizationPercentage", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HORIZONTAL_POD_AUTOSCALER_STATUS: Type = Type { name: "io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerStatus", go: "v1.HorizontalPodAutoscalerStatus", atomic: false, fields: &[
    Field { name: "currentCPUUtilizationPercentage", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "currentReplicas", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "desiredReplicas", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "lastScaleTime", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "observedGeneration", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SCALE: Type = Type { name: "io.k8s.api.autoscaling.v1.Scale", go: "v1.Scale", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.ScaleSpec", shape: Shape::Struct(&SCALE_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ScaleStatus", shape: Shape::Struct(&SCALE_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SCALE_SPEC: Type = Type { name: "io.k8s.api.autoscaling.v1.ScaleSpec", go: "v1.ScaleSpec", atomic: false, fields: &[
    Field { name: "replicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), default: "0", ..F },
] };

pub(crate) static SCALE_STATUS: Type = Type { name: "io.k8s.api.autoscaling.v1.ScaleStatus", go: "v1.ScaleStatus", atomic: false, fields: &[
    Field { name: "replicas", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "selector", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };
