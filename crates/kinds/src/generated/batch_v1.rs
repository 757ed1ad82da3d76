//! The types of `k8s.io/api/batch/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F, M};
use crate::table::{Field, Merge, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static CRON_JOB: Type = Type { name: "io.k8s.api.batch.v1.CronJob", go: "v1.CronJob", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.CronJobSpec", shape: Shape::Struct(&CRON_JOB_SPEC), required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.CronJobStatus", shape: Shape::Struct(&CRON_JOB_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CRON_JOB_LIST: Type = Type { name: "io.k8s.api.batch.v1.CronJobList", go: "v1.CronJobList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.CronJob", shape: Shape::List(&Shape::Struct(&CRON_JOB)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CRON_JOB_SPEC: Type = Type { name: "io.k8s.api.batch.v1.CronJobSpec", go: "v1.CronJobSpec", atomic: false, fields: &[
    Field { name: "concurrencyPolicy", go: "v1.ConcurrencyPolicy", shape: Shape::String("v1.ConcurrencyPolicy"), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Allow", "Forbid", "Replace"], ..F },
    Field { name: "failedJobsHistoryLimit", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "jobTemplate", go: "v1.JobTemplateSpec", shape: Shape::Struct(&JOB_TEMPLATE_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "schedule", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "startingDeadlineSeconds", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "successfulJobsHistoryLimit", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "suspend", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "timeZone", pointer: true, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CRON_JOB_STATUS: Type = Type { name: "io.k8s.api.batch.v1.CronJobStatus", go: "v1.CronJobStatus", atomic: false, fields: &[
    Field { name: "active", go: "[]v1.ObjectReference", shape: Shape::List(&Shape::Struct(&super::core_v1::OBJECT_REFERENCE)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "lastScheduleTime", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "lastSuccessfulTime", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static JOB: Type = Type { name: "io.k8s.api.batch.v1.Job", go: "v1.Job", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.JobSpec", shape: Shape::Struct(&JOB_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.JobStatus", shape: Shape::Struct(&JOB_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static JOB_CONDITION: Type = Type { name: "io.k8s.api.batch.v1.JobCondition", go: "v1.JobCondition", atomic: false, fields: &[
    Field { name: "lastProbeTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.JobConditionType", shape: Shape::String("v1.JobConditionType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static JOB_LIST: Type = Type { name: "io.k8s.api.batch.v1.JobList", go: "v1.JobList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.Job", shape: Shape::List(&Shape::Struct(&JOB)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static JOB_SCHEDULING_CONFIGURATION: Type = Type { name: "io.k8s.api.batch.v1.JobSchedulingConfiguration", go: "v1.JobSchedulingConfiguration", atomic: false, fields: &[
    Field { name: "disruptionMode", go: "v1alpha3.WorkloadPodGroupDisruptionMode", shape: Shape::Struct(&super::scheduling_v1alpha3::WORKLOAD_POD_GROUP_DISRUPTION_MODE), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceClaims", go: "[]v1alpha3.WorkloadPodGroupResourceClaim", shape: Shape::List(&Shape::Struct(&super::scheduling_v1alpha3::WORKLOAD_POD_GROUP_RESOURCE_CLAIM)), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "schedulingConstraints", go: "v1alpha3.WorkloadPodGroupSchedulingConstraints", shape: Shape::Struct(&super::scheduling_v1alpha3::WORKLOAD_POD_GROUP_SCHEDULING_CONSTRAINTS), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "schedulingPolicy", go: "v1alpha3.WorkloadPodGroupSchedulingPolicy", shape: Shape::Struct(&super::scheduling_v1alpha3::WORKLOAD_POD_GROUP_SCHEDULING_POLICY), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static JOB_SPEC: Type = Type { name: "io.k8s.api.batch.v1.JobSpec", go: "v1.JobSpec", atomic: false, fields: &[
    Field { name: "activeDeadlineSeconds", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "backoffLimit", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "backoffLimitPerIndex", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 12, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "completionMode", go: "v1.CompletionMode", shape: Shape::String("v1.CompletionMode"), pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Indexed", "NonIndexed"], ..F },
    Field { name: "completions", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "managedBy", pointer: true, proto: Some(Proto { number: 15, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "manualSelector", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "maxFailedIndexes", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 13, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "parallelism", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "podFailurePolicy", go: "v1.PodFailurePolicy", shape: Shape::Struct(&POD_FAILURE_POLICY), pointer: true, proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "podReplacementPolicy", go: "v1.PodReplacementPolicy", shape: Shape::String("v1.PodReplacementPolicy"), pointer: true, proto: Some(Proto { number: 14, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Failed", "TerminatingOrFailed"], ..F },
    Field { name: "scheduling", go: "v1.JobSchedulingConfiguration", shape: Shape::Struct(&JOB_SCHEDULING_CONFIGURATION), pointer: true, proto: Some(Proto { number: 17, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "selector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "successPolicy", go: "v1.SuccessPolicy", shape: Shape::Struct(&SUCCESS_POLICY), pointer: true, proto: Some(Proto { number: 16, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "suspend", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 10, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "template", go: "v1.PodTemplateSpec", shape: Shape::Struct(&super::core_v1::POD_TEMPLATE_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "ttlSecondsAfterFinished", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static JOB_STATUS: Type = Type { name: "io.k8s.api.batch.v1.JobStatus", go: "v1.JobStatus", atomic: false, fields: &[
    Field { name: "active", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "completedIndexes", proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "completionTime", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "conditions", go: "[]v1.JobCondition", shape: Shape::List(&Shape::Struct(&JOB_CONDITION)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Atomic, ..F },
    Field { name: "failed", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "failedIndexes", pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "ready", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 9, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "startTime", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "succeeded", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "terminating", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 11, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "uncountedTerminatedPods", go: "v1.UncountedTerminatedPods", shape: Shape::Struct(&UNCOUNTED_TERMINATED_PODS), pointer: true, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static JOB_TEMPLATE_SPEC: Type = Type { name: "io.k8s.api.batch.v1.JobTemplateSpec", go: "v1.JobTemplateSpec", atomic: false, fields: &[
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.JobSpec", shape: Shape::Struct(&JOB_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_FAILURE_POLICY: Type = Type { name: "io.k8s.api.batch.v1.PodFailurePolicy", go: "v1.PodFailurePolicy", atomic: false, fields: &[
    Field { name: "rules", go: "[]v1.PodFailurePolicyRule", shape: Shape::List(&Shape::Struct(&POD_FAILURE_POLICY_RULE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static POD_FAILURE_POLICY_ON_EXIT_CODES_REQUIREMENT: Type = Type { name: "io.k8s.api.batch.v1.PodFailurePolicyOnExitCodesRequirement", go: "v1.PodFailurePolicyOnExitCodesRequirement", atomic: false, fields: &[
    Field { name: "containerName", pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "operator", go: "v1.PodFailurePolicyOnExitCodesOperator", shape: Shape::String("v1.PodFailurePolicyOnExitCodesOperator"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["In", "NotIn"], ..F },
    Field { name: "values", go: "[]int32", shape: Shape::List(&Shape::Int32), required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), topology: Topology::Set, ..F },
] };

pub(crate) static POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERN: Type = Type { name: "io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern", go: "v1.PodFailurePolicyOnPodConditionsPattern", atomic: false, fields: &[
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.PodConditionType", shape: Shape::String("v1.PodConditionType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_FAILURE_POLICY_RULE: Type = Type { name: "io.k8s.api.batch.v1.PodFailurePolicyRule", go: "v1.PodFailurePolicyRule", atomic: false, fields: &[
    Field { name: "action", go: "v1.PodFailurePolicyAction", shape: Shape::String("v1.PodFailurePolicyAction"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Count", "FailIndex", "FailJob", "Ignore"], ..F },
    Field { name: "onExitCodes", go: "v1.PodFailurePolicyOnExitCodesRequirement", shape: Shape::Struct(&POD_FAILURE_POLICY_ON_EXIT_CODES_REQUIREMENT), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "onPodConditions", go: "[]v1.PodFailurePolicyOnPodConditionsPattern", shape: Shape::List(&Shape::Struct(&POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERN)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static SUCCESS_POLICY: Type = Type { name: "io.k8s.api.batch.v1.SuccessPolicy", go: "v1.SuccessPolicy", atomic: false, fields: &[
    Field { name: "rules", go: "[]v1.SuccessPolicyRule", shape: Shape::List(&Shape::Struct(&SUCCESS_POLICY_RULE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static SUCCESS_POLICY_RULE: Type = Type { name: "io.k8s.api.batch.v1.SuccessPolicyRule", go: "v1.SuccessPolicyRule", atomic: false, fields: &[
    Field { name: "succeededCount", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "succeededIndexes", pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static UNCOUNTED_TERMINATED_PODS: Type = Type { name: "io.k8s.api.batch.v1.UncountedTerminatedPods", go: "v1.UncountedTerminatedPods", atomic: false, fields: &[
    Field { name: "failed", go: "[]types.UID", shape: Shape::List(&Shape::String("types.UID")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, ..F },
    Field { name: "succeeded", go: "[]types.UID", shape: Shape::List(&Shape::String("types.UID")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, ..F },
] };
