//! The types of `k8s.io/api/scheduling/v1alpha3`. Written by `cargo xtask gen`: do not edit.

use super::{F};
use crate::table::{Field, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static TOPOLOGY_CONSTRAINT: Type = Type { name: "io.k8s.api.scheduling.v1alpha3.TopologyConstraint", go: "v1alpha3.TopologyConstraint", atomic: false, fields: &[
    Field { name: "key", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static WORKLOAD_POD_GROUP_ALL_DISRUPTION_MODE: Type = Type { name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupAllDisruptionMode", go: "v1alpha3.WorkloadPodGroupAllDisruptionMode", atomic: false, fields: &[
] };

pub(crate) static WORKLOAD_POD_GROUP_BASIC_SCHEDULING_POLICY: Type = Type { name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupBasicSchedulingPolicy", go: "v1alpha3.WorkloadPodGroupBasicSchedulingPolicy", atomic: false, fields: &[
] };

pub(crate) static WORKLOAD_POD_GROUP_DISRUPTION_MODE: Type = Type { name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupDisruptionMode", go: "v1alpha3.WorkloadPodGroupDisruptionMode", atomic: false, fields: &[
    Field { name: "all", go: "v1alpha3.WorkloadPodGroupAllDisruptionMode", shape: Shape::Struct(&WORKLOAD_POD_GROUP_ALL_DISRUPTION_MODE), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "single", go: "v1alpha3.WorkloadPodGroupSingleDisruptionMode", shape: Shape::Struct(&WORKLOAD_POD_GROUP_SINGLE_DISRUPTION_MODE), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static WORKLOAD_POD_GROUP_GANG_SCHEDULING_POLICY: Type = Type { name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupGangSchedulingPolicy", go: "v1alpha3.WorkloadPodGroupGangSchedulingPolicy", atomic: false, fields: &[
    Field { name: "minCount", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static WORKLOAD_POD_GROUP_RESOURCE_CLAIM: Type = Type { name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupResourceClaim", go: "v1alpha3.WorkloadPodGroupResourceClaim", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceClaimName", pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceClaimTemplateName", pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static WORKLOAD_POD_GROUP_SCHEDULING_CONSTRAINTS: Type = Type { name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupSchedulingConstraints", go: "v1alpha3.WorkloadPodGroupSchedulingConstraints", atomic: false, fields: &[
    Field { name: "topology", go: "[]v1alpha3.TopologyConstraint", shape: Shape::List(&Shape::Struct(&TOPOLOGY_CONSTRAINT)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static WORKLOAD_POD_GROUP_SCHEDULING_POLICY: Type = Type { name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupSchedulingPolicy", go: "v1alpha3.WorkloadPodGroupSchedulingPolicy", atomic: false, fields: &[
    Field { name: "basic", go: "v1alpha3.WorkloadPodGroupBasicSchedulingPolicy", shape: Shape::Struct(&WORKLOAD_POD_GROUP_BASIC_SCHEDULING_POLICY), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "gang", go: "v1alpha3.WorkloadPodGroupGangSchedulingPolicy", shape: Shape::Struct(&WORKLOAD_POD_GROUP_GANG_SCHEDULING_POLICY), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static WORKLOAD_POD_GROUP_SINGLE_DISRUPTION_MODE: Type = Type { name: "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupSingleDisruptionMode", go: "v1alpha3.WorkloadPodGroupSingleDisruptionMode", atomic: false, fields: &[
] };
