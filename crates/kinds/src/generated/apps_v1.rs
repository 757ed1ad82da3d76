//! The types of `k8s.io/api/apps/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F, M};
use crate::table::{Field, Merge, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static CONTROLLER_REVISION: Type = Type { name: "io.k8s.api.apps.v1.ControllerRevision", go: "v1.ControllerRevision", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "data", go: "runtime.RawExtension", shape: Shape::RawExtension, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "revision", go: "int64", shape: Shape::Int64, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONTROLLER_REVISION_LIST: Type = Type { name: "io.k8s.api.apps.v1.ControllerRevisionList", go: "v1.ControllerRevisionList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.ControllerRevision", shape: Shape::List(&Shape::Struct(&CONTROLLER_REVISION)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DAEMON_SET: Type = Type { name: "io.k8s.api.apps.v1.DaemonSet", go: "v1.DaemonSet", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.DaemonSetSpec", shape: Shape::Struct(&DAEMON_SET_SPEC), required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.DaemonSetStatus", shape: Shape::Struct(&DAEMON_SET_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DAEMON_SET_CONDITION: Type = Type { name: "io.k8s.api.apps.v1.DaemonSetCondition", go: "v1.DaemonSetCondition", atomic: false, fields: &[
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.DaemonSetConditionType", shape: Shape::String("v1.DaemonSetConditionType"), omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DAEMON_SET_LIST: Type = Type { name: "io.k8s.api.apps.v1.DaemonSetList", go: "v1.DaemonSetList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.DaemonSet", shape: Shape::List(&Shape::Struct(&DAEMON_SET)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DAEMON_SET_SPEC: Type = Type { name: "io.k8s.api.apps.v1.DaemonSetSpec", go: "v1.DaemonSetSpec", atomic: false, fields: &[
    Field { name: "minReadySeconds", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "revisionHistoryLimit", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "selector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "template", go: "v1.PodTemplateSpec", shape: Shape::Struct(&super::core_v1::POD_TEMPLATE_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "updateStrategy", go: "v1.DaemonSetUpdateStrategy", shape: Shape::Struct(&DAEMON_SET_UPDATE_STRATEGY), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DAEMON_SET_STATUS: Type = Type { name: "io.k8s.api.apps.v1.DaemonSetStatus", go: "v1.DaemonSetStatus", atomic: false, fields: &[
    Field { name: "collisionCount", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 9, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "conditions", go: "[]v1.DaemonSetCondition", shape: Shape::List(&Shape::Struct(&DAEMON_SET_CONDITION)), proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "currentNumberScheduled", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "desiredNumberScheduled", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "numberAvailable", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "numberMisscheduled", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "numberReady", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "numberUnavailable", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "observedGeneration", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "updatedNumberScheduled", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DAEMON_SET_UPDATE_STRATEGY: Type = Type { name: "io.k8s.api.apps.v1.DaemonSetUpdateStrategy", go: "v1.DaemonSetUpdateStrategy", atomic: false, fields: &[
    Field { name: "rollingUpdate", go: "v1.RollingUpdateDaemonSet", shape: Shape::Struct(&ROLLING_UPDATE_DAEMON_SET), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.DaemonSetUpdateStrategyType", shape: Shape::String("v1.DaemonSetUpdateStrategyType"), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["OnDelete", "RollingUpdate"], ..F },
] };

pub(crate) static DEPLOYMENT: Type = Type { name: "io.k8s.api.apps.v1.Deployment", go: "v1.Deployment", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.DeploymentSpec", shape: Shape::Struct(&DEPLOYMENT_SPEC), required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.DeploymentStatus", shape: Shape::Struct(&DEPLOYMENT_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEPLOYMENT_CONDITION: Type = Type { name: "io.k8s.api.apps.v1.DeploymentCondition", go: "v1.DeploymentCondition", atomic: false, fields: &[
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "lastUpdateTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.DeploymentConditionType", shape: Shape::String("v1.DeploymentConditionType"), omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEPLOYMENT_LIST: Type = Type { name: "io.k8s.api.apps.v1.DeploymentList", go: "v1.DeploymentList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.Deployment", shape: Shape::List(&Shape::Struct(&DEPLOYMENT)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEPLOYMENT_SPEC: Type = Type { name: "io.k8s.api.apps.v1.DeploymentSpec", go: "v1.DeploymentSpec", atomic: false, fields: &[
    Field { name: "minReadySeconds", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "paused", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "progressDeadlineSeconds", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 9, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "replicas", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "revisionHistoryLimit", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "selector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "strategy", go: "v1.DeploymentStrategy", shape: Shape::Struct(&DEPLOYMENT_STRATEGY), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { retain_keys: true, ..M }, ..F },
    Field { name: "template", go: "v1.PodTemplateSpec", shape: Shape::Struct(&super::core_v1::POD_TEMPLATE_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEPLOYMENT_STATUS: Type = Type { name: "io.k8s.api.apps.v1.DeploymentStatus", go: "v1.DeploymentStatus", atomic: false, fields: &[
    Field { name: "availableReplicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "collisionCount", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "conditions", go: "[]v1.DeploymentCondition", shape: Shape::List(&Shape::Struct(&DEPLOYMENT_CONDITION)), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "observedGeneration", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "readyReplicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "replicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "terminatingReplicas", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 9, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "unavailableReplicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "updatedReplicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static DEPLOYMENT_STRATEGY: Type = Type { name: "io.k8s.api.apps.v1.DeploymentStrategy", go: "v1.DeploymentStrategy", atomic: false, fields: &[
    Field { name: "rollingUpdate", go: "v1.RollingUpdateDeployment", shape: Shape::Struct(&ROLLING_UPDATE_DEPLOYMENT), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.DeploymentStrategyType", shape: Shape::String("v1.DeploymentStrategyType"), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Recreate", "RollingUpdate"], ..F },
] };

pub(crate) static REPLICA_SET: Type = Type { name: "io.k8s.api.apps.v1.ReplicaSet", go: "v1.ReplicaSet", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.ReplicaSetSpec", shape: Shape::Struct(&REPLICA_SET_SPEC), required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ReplicaSetStatus", shape: Shape::Struct(&REPLICA_SET_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static REPLICA_SET_CONDITION: Type = Type { name: "io.k8s.api.apps.v1.ReplicaSetCondition", go: "v1.ReplicaSetCondition", atomic: false, fields: &[
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.ReplicaSetConditionType", shape: Shape::String("v1.ReplicaSetConditionType"), omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static REPLICA_SET_LIST: Type = Type { name: "io.k8s.api.apps.v1.ReplicaSetList", go: "v1.ReplicaSetList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.ReplicaSet", shape: Shape::List(&Shape::Struct(&REPLICA_SET)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static REPLICA_SET_SPEC: Type = Type { name: "io.k8s.api.apps.v1.ReplicaSetSpec", go: "v1.ReplicaSetSpec", atomic: false, fields: &[
    Field { name: "minReadySeconds", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "replicas", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "selector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "template", go: "v1.PodTemplateSpec", shape: Shape::Struct(&super::core_v1::POD_TEMPLATE_SPEC), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static REPLICA_SET_STATUS: Type = Type { name: "io.k8s.api.apps.v1.ReplicaSetStatus", go: "v1.ReplicaSetStatus", atomic: false, fields: &[
    Field { name: "availableReplicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "conditions", go: "[]v1.ReplicaSetCondition", shape: Shape::List(&Shape::Struct(&REPLICA_SET_CONDITION)), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "fullyLabeledReplicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "observedGeneration", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "readyReplicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "replicas", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "terminatingReplicas", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static ROLLING_UPDATE_DAEMON_SET: Type = Type { name: "io.k8s.api.apps.v1.RollingUpdateDaemonSet", go: "v1.RollingUpdateDaemonSet", atomic: false, fields: &[
    Field { name: "maxSurge", go: "intstr.IntOrString", shape: Shape::IntOrString, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "maxUnavailable", go: "intstr.IntOrString", shape: Shape::IntOrString, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static ROLLING_UPDATE_DEPLOYMENT: Type = Type { name: "io.k8s.api.apps.v1.RollingUpdateDeployment", go: "v1.RollingUpdateDeployment", atomic: false, fields: &[
    Field { name: "maxSurge", go: "intstr.IntOrString", shape: Shape::IntOrString, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "maxUnavailable", go: "intstr.IntOrString", shape: Shape::IntOrString, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static ROLLING_UPDATE_STATEFUL_SET_STRATEGY: Type = Type { name: "io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy", go: "v1.RollingUpdateStatefulSetStrategy", atomic: false, fields: &[
    Field { name: "maxUnavailable", go: "intstr.IntOrString", shape: Shape::IntOrString, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "partition", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STATEFUL_SET: Type = Type { name: "io.k8s.api.apps.v1.StatefulSet", go: "v1.StatefulSet", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.StatefulSetSpec", shape: Shape::Struct(&STATEFUL_SET_SPEC), required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.StatefulSetStatus", shape: Shape::Struct(&STATEFUL_SET_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STATEFUL_SET_CONDITION: Type = Type { name: "io.k8s.api.apps.v1.StatefulSetCondition", go: "v1.StatefulSetCondition", atomic: false, fields: &[
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.StatefulSetConditionType", shape: Shape::String("v1.StatefulSetConditionType"), omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STATEFUL_SET_LIST: Type = Type { name: "io.k8s.api.apps.v1.StatefulSetList", go: "v1.StatefulSetList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.StatefulSet", shape: Shape::List(&Shape::Struct(&STATEFUL_SET)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STATEFUL_SET_ORDINALS: Type = Type { name: "io.k8s.api.apps.v1.StatefulSetOrdinals", go: "v1.StatefulSetOrdinals", atomic: false, fields: &[
    Field { name: "start", go: "int32", shape: Shape::Int32, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY: Type = Type { name: "io.k8s.api.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy", go: "v1.StatefulSetPersistentVolumeClaimRetentionPolicy", atomic: false, fields: &[
    Field { name: "whenDeleted", go: "v1.PersistentVolumeClaimRetentionPolicyType", shape: Shape::String("v1.PersistentVolumeClaimRetentionPolicyType"), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "whenScaled", go: "v1.PersistentVolumeClaimRetentionPolicyType", shape: Shape::String("v1.PersistentVolumeClaimRetentionPolicyType"), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STATEFUL_SET_SPEC: Type = Type { name: "io.k8s.api.apps.v1.StatefulSetSpec", go: "v1.StatefulSetSpec", atomic: false, fields: &[
    Field { name: "minReadySeconds", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 9, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "ordinals", go: "v1.StatefulSetOrdinals", shape: Shape::Struct(&STATEFUL_SET_ORDINALS), pointer: true, proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "persistentVolumeClaimRetentionPolicy", go: "v1.StatefulSetPersistentVolumeClaimRetentionPolicy", shape: Shape::Struct(&STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY), pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "podManagementPolicy", go: "v1.PodManagementPolicyType", shape: Shape::String("v1.PodManagementPolicyType"), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["OrderedReady", "Parallel"], ..F },
    Field { name: "replicas", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "revisionHistoryLimit", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "selector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "serviceName", omit: Omit::Never, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "template", go: "v1.PodTemplateSpec", shape: Shape::Struct(&super::core_v1::POD_TEMPLATE_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "updateStrategy", go: "v1.StatefulSetUpdateStrategy", shape: Shape::Struct(&STATEFUL_SET_UPDATE_STRATEGY), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "volumeClaimTemplates", go: "[]v1.PersistentVolumeClaim", shape: Shape::List(&Shape::Struct(&super::core_v1::PERSISTENT_VOLUME_CLAIM)), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static STATEFUL_SET_STATUS: Type = Type { name: "io.k8s.api.apps.v1.StatefulSetStatus", go: "v1.StatefulSetStatus", atomic: false, fields: &[
    Field { name: "availableReplicas", go: "int32", shape: Shape::Int32, omit: Omit::Never, proto: Some(Proto { number: 11, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "collisionCount", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 9, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "conditions", go: "[]v1.StatefulSetCondition", shape: Shape::List(&Shape::Struct(&STATEFUL_SET_CONDITION)), proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "currentReplicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "currentRevision", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "observedGeneration", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "readyReplicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "replicas", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "updateRevision", proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "updatedReplicas", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static STATEFUL_SET_UPDATE_STRATEGY: Type = Type { name: "io.k8s.api.apps.v1.StatefulSetUpdateStrategy", go: "v1.StatefulSetUpdateStrategy", atomic: false, fields: &[
    Field { name: "rollingUpdate", go: "v1.RollingUpdateStatefulSetStrategy", shape: Shape::Struct(&ROLLING_UPDATE_STATEFUL_SET_STRATEGY), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.StatefulSetUpdateStrategyType", shape: Shape::String("v1.StatefulSetUpdateStrategyType"), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["OnDelete", "Recreate", "RollingUpdate"], ..F },
] };
