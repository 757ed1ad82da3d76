//! The types of `k8s.io/api/flowcontrol/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F, M};
use crate::table::{Field, Merge, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static EXEMPT_PRIORITY_LEVEL_CONFIGURATION: Type = Type { name: "io.k8s.api.flowcontrol.v1.ExemptPriorityLevelConfiguration", go: "v1.ExemptPriorityLevelConfiguration", atomic: false, fields: &[
    Field { name: "lendablePercent", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "nominalConcurrencyShares", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static FLOW_DISTINGUISHER_METHOD: Type = Type { name: "io.k8s.api.flowcontrol.v1.FlowDistinguisherMethod", go: "v1.FlowDistinguisherMethod", atomic: false, fields: &[
    Field { name: "type", go: "v1.FlowDistinguisherMethodType", shape: Shape::String("v1.FlowDistinguisherMethodType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static FLOW_SCHEMA: Type = Type { name: "io.k8s.api.flowcontrol.v1.FlowSchema", go: "v1.FlowSchema", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.FlowSchemaSpec", shape: Shape::Struct(&FLOW_SCHEMA_SPEC), required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.FlowSchemaStatus", shape: Shape::Struct(&FLOW_SCHEMA_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static FLOW_SCHEMA_CONDITION: Type = Type { name: "io.k8s.api.flowcontrol.v1.FlowSchemaCondition", go: "v1.FlowSchemaCondition", atomic: false, fields: &[
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.FlowSchemaConditionType", shape: Shape::String("v1.FlowSchemaConditionType"), required: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static FLOW_SCHEMA_LIST: Type = Type { name: "io.k8s.api.flowcontrol.v1.FlowSchemaList", go: "v1.FlowSchemaList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.FlowSchema", shape: Shape::List(&Shape::Struct(&FLOW_SCHEMA)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static FLOW_SCHEMA_SPEC: Type = Type { name: "io.k8s.api.flowcontrol.v1.FlowSchemaSpec", go: "v1.FlowSchemaSpec", atomic: false, fields: &[
    Field { name: "distinguisherMethod", go: "v1.FlowDistinguisherMethod", shape: Shape::Struct(&FLOW_DISTINGUISHER_METHOD), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "matchingPrecedence", go: "int32", shape: Shape::Int32, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "priorityLevelConfiguration", go: "v1.PriorityLevelConfigurationReference", shape: Shape::Struct(&PRIORITY_LEVEL_CONFIGURATION_REFERENCE), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "rules", go: "[]v1.PolicyRulesWithSubjects", shape: Shape::List(&Shape::Struct(&POLICY_RULES_WITH_SUBJECTS)), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static FLOW_SCHEMA_STATUS: Type = Type { name: "io.k8s.api.flowcontrol.v1.FlowSchemaStatus", go: "v1.FlowSchemaStatus", atomic: false, fields: &[
    Field { name: "conditions", go: "[]v1.FlowSchemaCondition", shape: Shape::List(&Shape::Struct(&FLOW_SCHEMA_CONDITION)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
] };

pub(crate) static GROUP_SUBJECT: Type = Type { name: "io.k8s.api.flowcontrol.v1.GroupSubject", go: "v1.GroupSubject", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static LIMIT_RESPONSE: Type = Type { name: "io.k8s.api.flowcontrol.v1.LimitResponse", go: "v1.LimitResponse", atomic: false, fields: &[
    Field { name: "queuing", go: "v1.QueuingConfiguration", shape: Shape::Struct(&QUEUING_CONFIGURATION), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.LimitResponseType", shape: Shape::String("v1.LimitResponseType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static LIMITED_PRIORITY_LEVEL_CONFIGURATION: Type = Type { name: "io.k8s.api.flowcontrol.v1.LimitedPriorityLevelConfiguration", go: "v1.LimitedPriorityLevelConfiguration", atomic: false, fields: &[
    Field { name: "borrowingLimitPercent", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "lendablePercent", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "limitResponse", go: "v1.LimitResponse", shape: Shape::Struct(&LIMIT_RESPONSE), required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nominalConcurrencyShares", go: "int32", shape: Shape::Int32, pointer: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NON_RESOURCE_POLICY_RULE: Type = Type { name: "io.k8s.api.flowcontrol.v1.NonResourcePolicyRule", go: "v1.NonResourcePolicyRule", atomic: false, fields: &[
    Field { name: "nonResourceURLs", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, ..F },
    Field { name: "verbs", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, ..F },
] };

pub(crate) static POLICY_RULES_WITH_SUBJECTS: Type = Type { name: "io.k8s.api.flowcontrol.v1.PolicyRulesWithSubjects", go: "v1.PolicyRulesWithSubjects", atomic: false, fields: &[
    Field { name: "nonResourceRules", go: "[]v1.NonResourcePolicyRule", shape: Shape::List(&Shape::Struct(&NON_RESOURCE_POLICY_RULE)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "resourceRules", go: "[]v1.ResourcePolicyRule", shape: Shape::List(&Shape::Struct(&RESOURCE_POLICY_RULE)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "subjects", go: "[]v1.Subject", shape: Shape::List(&Shape::Struct(&SUBJECT)), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static PRIORITY_LEVEL_CONFIGURATION: Type = Type { name: "io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration", go: "v1.PriorityLevelConfiguration", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.PriorityLevelConfigurationSpec", shape: Shape::Struct(&PRIORITY_LEVEL_CONFIGURATION_SPEC), required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.PriorityLevelConfigurationStatus", shape: Shape::Struct(&PRIORITY_LEVEL_CONFIGURATION_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PRIORITY_LEVEL_CONFIGURATION_CONDITION: Type = Type { name: "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationCondition", go: "v1.PriorityLevelConfigurationCondition", atomic: false, fields: &[
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.PriorityLevelConfigurationConditionType", shape: Shape::String("v1.PriorityLevelConfigurationConditionType"), required: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PRIORITY_LEVEL_CONFIGURATION_LIST: Type = Type { name: "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationList", go: "v1.PriorityLevelConfigurationList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.PriorityLevelConfiguration", shape: Shape::List(&Shape::Struct(&PRIORITY_LEVEL_CONFIGURATION)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PRIORITY_LEVEL_CONFIGURATION_REFERENCE: Type = Type { name: "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationReference", go: "v1.PriorityLevelConfigurationReference", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PRIORITY_LEVEL_CONFIGURATION_SPEC: Type = Type { name: "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec", go: "v1.PriorityLevelConfigurationSpec", atomic: false, fields: &[
    Field { name: "exempt", go: "v1.ExemptPriorityLevelConfiguration", shape: Shape::Struct(&EXEMPT_PRIORITY_LEVEL_CONFIGURATION), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "limited", go: "v1.LimitedPriorityLevelConfiguration", shape: Shape::Struct(&LIMITED_PRIORITY_LEVEL_CONFIGURATION), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.PriorityLevelEnablement", shape: Shape::String("v1.PriorityLevelEnablement"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PRIORITY_LEVEL_CONFIGURATION_STATUS: Type = Type { name: "io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationStatus", go: "v1.PriorityLevelConfigurationStatus", atomic: false, fields: &[
    Field { name: "conditions", go: "[]v1.PriorityLevelConfigurationCondition", shape: Shape::List(&Shape::Struct(&PRIORITY_LEVEL_CONFIGURATION_CONDITION)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
] };

pub(crate) static QUEUING_CONFIGURATION: Type = Type { name: "io.k8s.api.flowcontrol.v1.QueuingConfiguration", go: "v1.QueuingConfiguration", atomic: false, fields: &[
    Field { name: "handSize", go: "int32", shape: Shape::Int32, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "queueLengthLimit", go: "int32", shape: Shape::Int32, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "queues", go: "int32", shape: Shape::Int32, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_POLICY_RULE: Type = Type { name: "io.k8s.api.flowcontrol.v1.ResourcePolicyRule", go: "v1.ResourcePolicyRule", atomic: false, fields: &[
    Field { name: "apiGroups", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, ..F },
    Field { name: "clusterScope", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "namespaces", go: "[]string", shape: Shape::List(&Shape::String("string")), omit: Omit::Never, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, ..F },
    Field { name: "resources", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, ..F },
    Field { name: "verbs", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, ..F },
] };

pub(crate) static SERVICE_ACCOUNT_SUBJECT: Type = Type { name: "io.k8s.api.flowcontrol.v1.ServiceAccountSubject", go: "v1.ServiceAccountSubject", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespace", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SUBJECT: Type = Type { name: "io.k8s.api.flowcontrol.v1.Subject", go: "v1.Subject", atomic: false, fields: &[
    Field { name: "group", go: "v1.GroupSubject", shape: Shape::Struct(&GROUP_SUBJECT), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", go: "v1.SubjectKind", shape: Shape::String("v1.SubjectKind"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "serviceAccount", go: "v1.ServiceAccountSubject", shape: Shape::Struct(&SERVICE_ACCOUNT_SUBJECT), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "user", go: "v1.UserSubject", shape: Shape::Struct(&USER_SUBJECT), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static USER_SUBJECT: Type = Type { name: "io.k8s.api.flowcontrol.v1.UserSubject", go: "v1.UserSubject", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };
