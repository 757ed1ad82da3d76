//! The types of `k8s.io/api/policy/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F, M};
use crate::table::{Field, Merge, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static EVICTION: Type = Type { name: "io.k8s.api.policy.v1.Eviction", go: "v1.Eviction", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "deleteOptions", go: "v1.DeleteOptions", shape: Shape::Struct(&super::meta_v1::DELETE_OPTIONS), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_DISRUPTION_BUDGET: Type = Type { name: "io.k8s.api.policy.v1.PodDisruptionBudget", go: "v1.PodDisruptionBudget", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.PodDisruptionBudgetSpec", shape: Shape::Struct(&POD_DISRUPTION_BUDGET_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.PodDisruptionBudgetStatus", shape: Shape::Struct(&POD_DISRUPTION_BUDGET_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_DISRUPTION_BUDGET_LIST: Type = Type { name: "io.k8s.api.policy.v1.PodDisruptionBudgetList", go: "v1.PodDisruptionBudgetList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.PodDisruptionBudget", shape: Shape::List(&Shape::Struct(&POD_DISRUPTION_BUDGET)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_DISRUPTION_BUDGET_SPEC: Type = Type { name: "io.k8s.api.policy.v1.PodDisruptionBudgetSpec", go: "v1.PodDisruptionBudgetSpec", atomic: false, fields: &[
    Field { name: "maxUnavailable", go: "intstr.IntOrString", shape: Shape::IntOrString, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "minAvailable", go: "intstr.IntOrString", shape: Shape::IntOrString, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "selector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { replace: true, ..M }, ..F },
    Field { name: "unhealthyPodEvictionPolicy", go: "v1.UnhealthyPodEvictionPolicyType", shape: Shape::String("v1.UnhealthyPodEvictionPolicyType"), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["AlwaysAllow", "IfHealthyBudget"], ..F },
] };

pub(crate) static POD_DISRUPTION_BUDGET_STATUS: Type = Type { name: "io.k8s.api.policy.v1.PodDisruptionBudgetStatus", go: "v1.PodDisruptionBudgetStatus", atomic: false, fields: &[
    Field { name: "conditions", go: "[]v1.Condition", shape: Shape::List(&Shape::Struct(&super::meta_v1::CONDITION)), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "currentHealthy", go: "int32", shape: Shape::Int32, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "desiredHealthy", go: "int32", shape: Shape::Int32, omit: Omit::Never, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "disruptedPods", go: "map[string]v1.Time", shape: Shape::Map(&Shape::Time), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "disruptionsAllowed", go: "int32", shape: Shape::Int32, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "expectedPods", go: "int32", shape: Shape::Int32, omit: Omit::Never, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "observedGeneration", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };
