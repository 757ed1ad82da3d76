//! The types of `k8s.io/api/autoscaling/v2`. Written by `cargo xtask gen`: do not edit.

use super::{F, M};
use crate::table::{Field, Merge, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static CONTAINER_RESOURCE_METRIC_SOURCE: Type = Type { name: "io.k8s.api.autoscaling.v2.ContainerResourceMetricSource", go: "v2.ContainerResourceMetricSource", atomic: false, fields: &[
    Field { name: "container", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", go: "v1.ResourceName", shape: Shape::String("v1.ResourceName"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "target", go: "v2.MetricTarget", shape: Shape::Struct(&METRIC_TARGET), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONTAINER_RESOURCE_METRIC_STATUS: Type = Type { name: "io.k8s.api.autoscaling.v2.ContainerResourceMetricStatus", go: "v2.ContainerResourceMetricStatus", atomic: false, fields: &[
    Field { name: "container", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "current", go: "v2.MetricValueStatus", shape: Shape::Struct(&METRIC_VALUE_STATUS), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", go: "v1.ResourceName", shape: Shape::String("v1.ResourceName"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CROSS_VERSION_OBJECT_REFERENCE: Type = Type { name: "io.k8s.api.autoscaling.v2.CrossVersionObjectReference", go: "v2.CrossVersionObjectReference", atomic: false, fields: &[
    Field { name: "apiVersion", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static EXTERNAL_METRIC_SOURCE: Type = Type { name: "io.k8s.api.autoscaling.v2.ExternalMetricSource", go: "v2.ExternalMetricSource", atomic: false, fields: &[
    Field { name: "metric", go: "v2.MetricIdentifier", shape: Shape::Struct(&METRIC_IDENTIFIER), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "target", go: "v2.MetricTarget", shape: Shape::Struct(&METRIC_TARGET), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static EXTERNAL_METRIC_STATUS: Type = Type { name: "io.k8s.api.autoscaling.v2.ExternalMetricStatus", go: "v2.ExternalMetricStatus", atomic: false, fields: &[
    Field { name: "current", go: "v2.MetricValueStatus", shape: Shape::Struct(&METRIC_VALUE_STATUS), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "metric", go: "v2.MetricIdentifier", shape: Shape::Struct(&METRIC_IDENTIFIER), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HPA_SCALING_POLICY: Type = Type { name: "io.k8s.api.autoscaling.v2.HPAScalingPolicy", go: "v2.HPAScalingPolicy", atomic: false, fields: &[
    Field { name: "periodSeconds", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v2.HPAScalingPolicyType", shape: Shape::String("v2.HPAScalingPolicyType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "value", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HPA_SCALING_RULES: Type = Type { name: "io.k8s.api.autoscaling.v2.HPAScalingRules", go: "v2.HPAScalingRules", atomic: false, fields: &[
    Field { name: "policies", go: "[]v2.HPAScalingPolicy", shape: Shape::List(&Shape::Struct(&HPA_SCALING_POLICY)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "selectPolicy", go: "v2.ScalingPolicySelect", shape: Shape::String("v2.ScalingPolicySelect"), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "stabilizationWindowSeconds", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "tolerance", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HORIZONTAL_POD_AUTOSCALER: Type = Type { name: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler", go: "v2.HorizontalPodAutoscaler", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v2.HorizontalPodAutoscalerSpec", shape: Shape::Struct(&HORIZONTAL_POD_AUTOSCALER_SPEC), required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v2.HorizontalPodAutoscalerStatus", shape: Shape::Struct(&HORIZONTAL_POD_AUTOSCALER_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HORIZONTAL_POD_AUTOSCALER_BEHAVIOR: Type = Type { name: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior", go: "v2.HorizontalPodAutoscalerBehavior", atomic: false, fields: &[
    Field { name: "scaleDown", go: "v2.HPAScalingRules", shape: Shape::Struct(&HPA_SCALING_RULES), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "scaleUp", go: "v2.HPAScalingRules", shape: Shape::Struct(&HPA_SCALING_RULES), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HORIZONTAL_POD_AUTOSCALER_CONDITION: Type = Type { name: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerCondition", go: "v2.HorizontalPodAutoscalerCondition", atomic: false, fields: &[
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "observedGeneration", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v2.HorizontalPodAutoscalerConditionType", shape: Shape::String("v2.HorizontalPodAutoscalerConditionType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HORIZONTAL_POD_AUTOSCALER_LIST: Type = Type { name: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerList", go: "v2.HorizontalPodAutoscalerList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v2.HorizontalPodAutoscaler", shape: Shape::List(&Shape::Struct(&HORIZONTAL_POD_AUTOSCALER)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HORIZONTAL_POD_AUTOSCALER_SPEC: Type = Type { name: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec", go: "v2.HorizontalPodAutoscalerSpec", atomic: false, fields: &[
    Field { name: "behavior", go: "v2.HorizontalPodAutoscalerBehavior", shape: Shape::Struct(&HORIZONTAL_POD_AUTOSCALER_BEHAVIOR), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "maxReplicas", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "metrics", go: "[]v2.MetricSpec", shape: Shape::List(&Shape::Struct(&METRIC_SPEC)), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "minReplicas", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "scaleTargetRef", go: "v2.CrossVersionObjectReference", shape: Shape::Struct(&CROSS_VERSION_OBJECT_REFERENCE), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static HORIZONTAL_POD_AUTOSCALER_STATUS: Type = Type { name: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerStatus", go: "v2.HorizontalPodAutoscalerStatus", atomic: false, fields: &[
    Field { name: "conditions", go: "[]v2.HorizontalPodAutoscalerCondition", shape: Shape::List(&Shape::Struct(&HORIZONTAL_POD_AUTOSCALER_CONDITION)), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "currentMetrics", go: "[]v2.MetricStatus", shape: Shape::List(&Shape::Struct(&METRIC_STATUS)), omit: Omit::Never, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "currentReplicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "desiredReplicas", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "lastScaleTime", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "observedGeneration", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static METRIC_IDENTIFIER: Type = Type { name: "io.k8s.api.autoscaling.v2.MetricIdentifier", go: "v2.MetricIdentifier", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "selector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static METRIC_SPEC: Type = Type { name: "io.k8s.api.autoscaling.v2.MetricSpec", go: "v2.MetricSpec", atomic: false, fields: &[
    Field { name: "containerResource", go: "v2.ContainerResourceMetricSource", shape: Shape::Struct(&CONTAINER_RESOURCE_METRIC_SOURCE), pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "external", go: "v2.ExternalMetricSource", shape: Shape::Struct(&EXTERNAL_METRIC_SOURCE), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "object", go: "v2.ObjectMetricSource", shape: Shape::Struct(&OBJECT_METRIC_SOURCE), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "pods", go: "v2.PodsMetricSource", shape: Shape::Struct(&PODS_METRIC_SOURCE), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resource", go: "v2.ResourceMetricSource", shape: Shape::Struct(&RESOURCE_METRIC_SOURCE), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v2.MetricSourceType", shape: Shape::String("v2.MetricSourceType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static METRIC_STATUS: Type = Type { name: "io.k8s.api.autoscaling.v2.MetricStatus", go: "v2.MetricStatus", atomic: false, fields: &[
    Field { name: "containerResource", go: "v2.ContainerResourceMetricStatus", shape: Shape::Struct(&CONTAINER_RESOURCE_METRIC_STATUS), pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "external", go: "v2.ExternalMetricStatus", shape: Shape::Struct(&EXTERNAL_METRIC_STATUS), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "object", go: "v2.ObjectMetricStatus", shape: Shape::Struct(&OBJECT_METRIC_STATUS), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "pods", go: "v2.PodsMetricStatus", shape: Shape::Struct(&PODS_METRIC_STATUS), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resource", go: "v2.ResourceMetricStatus", shape: Shape::Struct(&RESOURCE_METRIC_STATUS), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v2.MetricSourceType", shape: Shape::String("v2.MetricSourceType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static METRIC_TARGET: Type = Type { name: "io.k8s.api.autoscaling.v2.MetricTarget", go: "v2.MetricTarget", atomic: false, fields: &[
    Field { name: "averageUtilization", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "averageValue", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v2.MetricTargetType", shape: Shape::String("v2.MetricTargetType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "value", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static METRIC_VALUE_STATUS: Type = Type { name: "io.k8s.api.autoscaling.v2.MetricValueStatus", go: "v2.MetricValueStatus", atomic: false, fields: &[
    Field { name: "averageUtilization", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "averageValue", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "value", go: "resource.Quantity", shape: Shape::Quantity, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static OBJECT_METRIC_SOURCE: Type = Type { name: "io.k8s.api.autoscaling.v2.ObjectMetricSource", go: "v2.ObjectMetricSource", atomic: false, fields: &[
    Field { name: "describedObject", go: "v2.CrossVersionObjectReference", shape: Shape::Struct(&CROSS_VERSION_OBJECT_REFERENCE), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "metric", go: "v2.MetricIdentifier", shape: Shape::Struct(&METRIC_IDENTIFIER), required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "target", go: "v2.MetricTarget", shape: Shape::Struct(&METRIC_TARGET), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static OBJECT_METRIC_STATUS: Type = Type { name: "io.k8s.api.autoscaling.v2.ObjectMetricStatus", go: "v2.ObjectMetricStatus", atomic: false, fields: &[
    Field { name: "current", go: "v2.MetricValueStatus", shape: Shape::Struct(&METRIC_VALUE_STATUS), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "describedObject", go: "v2.CrossVersionObjectReference", shape: Shape::Struct(&CROSS_VERSION_OBJECT_REFERENCE), required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "metric", go: "v2.MetricIdentifier", shape: Shape::Struct(&METRIC_IDENTIFIER), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PODS_METRIC_SOURCE: Type = Type { name: "io.k8s.api.autoscaling.v2.PodsMetricSource", go: "v2.PodsMetricSource", atomic: false, fields: &[
    Field { name: "metric", go: "v2.MetricIdentifier", shape: Shape::Struct(&METRIC_IDENTIFIER), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "target", go: "v2.MetricTarget", shape: Shape::Struct(&METRIC_TARGET), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PODS_METRIC_STATUS: Type = Type { name: "io.k8s.api.autoscaling.v2.PodsMetricStatus", go: "v2.PodsMetricStatus", atomic: false, fields: &[
    Field { name: "current", go: "v2.MetricValueStatus", shape: Shape::Struct(&METRIC_VALUE_STATUS), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "metric", go: "v2.MetricIdentifier", shape: Shape::Struct(&METRIC_IDENTIFIER), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_METRIC_SOURCE: Type = Type { name: "io.k8s.api.autoscaling.v2.ResourceMetricSource", go: "v2.ResourceMetricSource", atomic: false, fields: &[
    Field { name: "name", go: "v1.ResourceName", shape: Shape::String("v1.ResourceName"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "target", go: "v2.MetricTarget", shape: Shape::Struct(&METRIC_TARGET), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_METRIC_STATUS: Type = Type { name: "io.k8s.api.autoscaling.v2.ResourceMetricStatus", go: "v2.ResourceMetricStatus", atomic: false, fields: &[
    Field { name: "current", go: "v2.MetricValueStatus", shape: Shape::Struct(&METRIC_VALUE_STATUS), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", go: "v1.ResourceName", shape: Shape::String("v1.ResourceName"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };
