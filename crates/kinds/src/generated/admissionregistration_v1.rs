//! The types of `k8s.io/api/admissionregistration/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F, M};
use crate::table::{Field, Merge, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static APPLY_CONFIGURATION: Type = Type { name: "io.k8s.api.admissionregistration.v1.ApplyConfiguration", go: "v1.ApplyConfiguration", atomic: false, fields: &[
    Field { name: "expression", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static AUDIT_ANNOTATION: Type = Type { name: "io.k8s.api.admissionregistration.v1.AuditAnnotation", go: "v1.AuditAnnotation", atomic: false, fields: &[
    Field { name: "key", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "valueExpression", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static EXPRESSION_WARNING: Type = Type { name: "io.k8s.api.admissionregistration.v1.ExpressionWarning", go: "v1.ExpressionWarning", atomic: false, fields: &[
    Field { name: "fieldRef", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "warning", required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static JSON_PATCH: Type = Type { name: "io.k8s.api.admissionregistration.v1.JSONPatch", go: "v1.JSONPatch", atomic: false, fields: &[
    Field { name: "expression", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static MATCH_CONDITION: Type = Type { name: "io.k8s.api.admissionregistration.v1.MatchCondition", go: "v1.MatchCondition", atomic: false, fields: &[
    Field { name: "expression", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static MATCH_RESOURCES: Type = Type { name: "io.k8s.api.admissionregistration.v1.MatchResources", go: "v1.MatchResources", atomic: true, fields: &[
    Field { name: "excludeResourceRules", go: "[]v1.NamedRuleWithOperations", shape: Shape::List(&Shape::Struct(&NAMED_RULE_WITH_OPERATIONS)), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "matchPolicy", go: "v1.MatchPolicyType", shape: Shape::String("v1.MatchPolicyType"), pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Equivalent", "Exact"], ..F },
    Field { name: "namespaceSelector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "objectSelector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceRules", go: "[]v1.NamedRuleWithOperations", shape: Shape::List(&Shape::Struct(&NAMED_RULE_WITH_OPERATIONS)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static MUTATING_ADMISSION_POLICY: Type = Type { name: "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicy", go: "v1.MutatingAdmissionPolicy", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.MutatingAdmissionPolicySpec", shape: Shape::Struct(&MUTATING_ADMISSION_POLICY_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static MUTATING_ADMISSION_POLICY_BINDING: Type = Type { name: "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicyBinding", go: "v1.MutatingAdmissionPolicyBinding", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.MutatingAdmissionPolicyBindingSpec", shape: Shape::Struct(&MUTATING_ADMISSION_POLICY_BINDING_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static MUTATING_ADMISSION_POLICY_BINDING_LIST: Type = Type { name: "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicyBindingList", go: "v1.MutatingAdmissionPolicyBindingList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.MutatingAdmissionPolicyBinding", shape: Shape::List(&Shape::Struct(&MUTATING_ADMISSION_POLICY_BINDING)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static MUTATING_ADMISSION_POLICY_BINDING_SPEC: Type = Type { name: "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicyBindingSpec", go: "v1.MutatingAdmissionPolicyBindingSpec", atomic: false, fields: &[
    Field { name: "matchResources", go: "v1.MatchResources", shape: Shape::Struct(&MATCH_RESOURCES), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "paramRef", go: "v1.ParamRef", shape: Shape::Struct(&PARAM_REF), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "policyName", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static MUTATING_ADMISSION_POLICY_LIST: Type = Type { name: "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicyList", go: "v1.MutatingAdmissionPolicyList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.MutatingAdmissionPolicy", shape: Shape::List(&Shape::Struct(&MUTATING_ADMISSION_POLICY)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static MUTATING_ADMISSION_POLICY_SPEC: Type = Type { name: "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicySpec", go: "v1.MutatingAdmissionPolicySpec", atomic: false, fields: &[
    Field { name: "failurePolicy", go: "v1.FailurePolicyType", shape: Shape::String("v1.FailurePolicyType"), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Fail", "Ignore"], ..F },
    Field { name: "matchConditions", go: "[]v1.MatchCondition", shape: Shape::List(&Shape::Struct(&MATCH_CONDITION)), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "matchConstraints", go: "v1.MatchResources", shape: Shape::Struct(&MATCH_RESOURCES), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "mutations", go: "[]v1.Mutation", shape: Shape::List(&Shape::Struct(&MUTATION)), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "paramKind", go: "v1.ParamKind", shape: Shape::Struct(&PARAM_KIND), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reinvocationPolicy", go: "v1.ReinvocationPolicyType", shape: Shape::String("v1.ReinvocationPolicyType"), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["IfNeeded", "Never"], ..F },
    Field { name: "variables", go: "[]v1.Variable", shape: Shape::List(&Shape::Struct(&VARIABLE)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static MUTATING_WEBHOOK: Type = Type { name: "io.k8s.api.admissionregistration.v1.MutatingWebhook", go: "v1.MutatingWebhook", atomic: false, fields: &[
    Field { name: "admissionReviewVersions", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "clientConfig", go: "v1.WebhookClientConfig", shape: Shape::Struct(&WEBHOOK_CLIENT_CONFIG), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "failurePolicy", go: "v1.FailurePolicyType", shape: Shape::String("v1.FailurePolicyType"), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Fail", "Ignore"], ..F },
    Field { name: "matchConditions", go: "[]v1.MatchCondition", shape: Shape::List(&Shape::Struct(&MATCH_CONDITION)), proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "matchPolicy", go: "v1.MatchPolicyType", shape: Shape::String("v1.MatchPolicyType"), pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Equivalent", "Exact"], ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespaceSelector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "objectSelector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reinvocationPolicy", go: "v1.ReinvocationPolicyType", shape: Shape::String("v1.ReinvocationPolicyType"), pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["IfNeeded", "Never"], ..F },
    Field { name: "rules", go: "[]v1.RuleWithOperations", shape: Shape::List(&Shape::Struct(&RULE_WITH_OPERATIONS)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "sideEffects", go: "v1.SideEffectClass", shape: Shape::String("v1.SideEffectClass"), pointer: true, required: true, omit: Omit::Never, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["None", "NoneOnDryRun", "Some", "Unknown"], ..F },
    Field { name: "timeoutSeconds", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static MUTATING_WEBHOOK_CONFIGURATION: Type = Type { name: "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration", go: "v1.MutatingWebhookConfiguration", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "webhooks", go: "[]v1.MutatingWebhook", shape: Shape::List(&Shape::Struct(&MUTATING_WEBHOOK)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
] };

pub(crate) static MUTATING_WEBHOOK_CONFIGURATION_LIST: Type = Type { name: "io.k8s.api.admissionregistration.v1.MutatingWebhookConfigurationList", go: "v1.MutatingWebhookConfigurationList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.MutatingWebhookConfiguration", shape: Shape::List(&Shape::Struct(&MUTATING_WEBHOOK_CONFIGURATION)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static MUTATION: Type = Type { name: "io.k8s.api.admissionregistration.v1.Mutation", go: "v1.Mutation", atomic: false, fields: &[
    Field { name: "applyConfiguration", go: "v1.ApplyConfiguration", shape: Shape::Struct(&APPLY_CONFIGURATION), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "jsonPatch", go: "v1.JSONPatch", shape: Shape::Struct(&JSON_PATCH), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "patchType", go: "v1.PatchType", shape: Shape::String("v1.PatchType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["ApplyConfiguration", "JSONPatch"], ..F },
] };

pub(crate) static NAMED_RULE_WITH_OPERATIONS: Type = Type { name: "io.k8s.api.admissionregistration.v1.NamedRuleWithOperations", go: "v1.NamedRuleWithOperations", atomic: true, fields: &[
    Field { name: "apiGroups", declared_in: "Rule", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[2, 2], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "apiVersions", declared_in: "Rule", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[2, 2], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "operations", declared_in: "RuleWithOperations", go: "[]v1.OperationType", shape: Shape::List(&Shape::String("v1.OperationType")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[2], wrapped: false }), topology: Topology::Atomic, values: &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"], ..F },
    Field { name: "resourceNames", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "resources", declared_in: "Rule", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[2, 2], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "scope", declared_in: "Rule", go: "v1.ScopeType", shape: Shape::String("v1.ScopeType"), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[2, 2], wrapped: false }), values: &["*", "Cluster", "Namespaced"], ..F },
] };

pub(crate) static PARAM_KIND: Type = Type { name: "io.k8s.api.admissionregistration.v1.ParamKind", go: "v1.ParamKind", atomic: true, fields: &[
    Field { name: "apiVersion", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static PARAM_REF: Type = Type { name: "io.k8s.api.admissionregistration.v1.ParamRef", go: "v1.ParamRef", atomic: true, fields: &[
    Field { name: "name", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespace", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "parameterNotFoundAction", go: "v1.ParameterNotFoundActionType", shape: Shape::String("v1.ParameterNotFoundActionType"), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "selector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RULE_WITH_OPERATIONS: Type = Type { name: "io.k8s.api.admissionregistration.v1.RuleWithOperations", go: "v1.RuleWithOperations", atomic: false, fields: &[
    Field { name: "apiGroups", declared_in: "Rule", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[2], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "apiVersions", declared_in: "Rule", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[2], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "operations", go: "[]v1.OperationType", shape: Shape::List(&Shape::String("v1.OperationType")), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, values: &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"], ..F },
    Field { name: "resources", declared_in: "Rule", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[2], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "scope", declared_in: "Rule", go: "v1.ScopeType", shape: Shape::String("v1.ScopeType"), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[2], wrapped: false }), values: &["*", "Cluster", "Namespaced"], ..F },
] };

pub(crate) static SERVICE_REFERENCE: Type = Type { name: "io.k8s.api.admissionregistration.v1.ServiceReference", go: "v1.ServiceReference", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespace", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "path", pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "port", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static TYPE_CHECKING: Type = Type { name: "io.k8s.api.admissionregistration.v1.TypeChecking", go: "v1.TypeChecking", atomic: false, fields: &[
    Field { name: "expressionWarnings", go: "[]v1.ExpressionWarning", shape: Shape::List(&Shape::Struct(&EXPRESSION_WARNING)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static VALIDATING_ADMISSION_POLICY: Type = Type { name: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy", go: "v1.ValidatingAdmissionPolicy", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.ValidatingAdmissionPolicySpec", shape: Shape::Struct(&VALIDATING_ADMISSION_POLICY_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ValidatingAdmissionPolicyStatus", shape: Shape::Struct(&VALIDATING_ADMISSION_POLICY_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VALIDATING_ADMISSION_POLICY_BINDING: Type = Type { name: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding", go: "v1.ValidatingAdmissionPolicyBinding", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.ValidatingAdmissionPolicyBindingSpec", shape: Shape::Struct(&VALIDATING_ADMISSION_POLICY_BINDING_SPEC), required: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VALIDATING_ADMISSION_POLICY_BINDING_LIST: Type = Type { name: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingList", go: "v1.ValidatingAdmissionPolicyBindingList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.ValidatingAdmissionPolicyBinding", shape: Shape::List(&Shape::Struct(&VALIDATING_ADMISSION_POLICY_BINDING)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VALIDATING_ADMISSION_POLICY_BINDING_SPEC: Type = Type { name: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec", go: "v1.ValidatingAdmissionPolicyBindingSpec", atomic: false, fields: &[
    Field { name: "matchResources", go: "v1.MatchResources", shape: Shape::Struct(&MATCH_RESOURCES), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "paramRef", go: "v1.ParamRef", shape: Shape::Struct(&PARAM_REF), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "policyName", required: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "validationActions", go: "[]v1.ValidationAction", shape: Shape::List(&Shape::String("v1.ValidationAction")), required: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, values: &["Audit", "Deny", "Warn"], ..F },
] };

pub(crate) static VALIDATING_ADMISSION_POLICY_LIST: Type = Type { name: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyList", go: "v1.ValidatingAdmissionPolicyList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.ValidatingAdmissionPolicy", shape: Shape::List(&Shape::Struct(&VALIDATING_ADMISSION_POLICY)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VALIDATING_ADMISSION_POLICY_SPEC: Type = Type { name: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicySpec", go: "v1.ValidatingAdmissionPolicySpec", atomic: false, fields: &[
    Field { name: "auditAnnotations", go: "[]v1.AuditAnnotation", shape: Shape::List(&Shape::Struct(&AUDIT_ANNOTATION)), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "failurePolicy", go: "v1.FailurePolicyType", shape: Shape::String("v1.FailurePolicyType"), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Fail", "Ignore"], ..F },
    Field { name: "matchConditions", go: "[]v1.MatchCondition", shape: Shape::List(&Shape::Struct(&MATCH_CONDITION)), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "matchConstraints", go: "v1.MatchResources", shape: Shape::Struct(&MATCH_RESOURCES), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "paramKind", go: "v1.ParamKind", shape: Shape::Struct(&PARAM_KIND), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "validations", go: "[]v1.Validation", shape: Shape::List(&Shape::Struct(&VALIDATION)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "variables", go: "[]v1.Variable", shape: Shape::List(&Shape::Struct(&VARIABLE)), proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
] };

pub(crate) static VALIDATING_ADMISSION_POLICY_STATUS: Type = Type { name: "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyStatus", go: "v1.ValidatingAdmissionPolicyStatus", atomic: false, fields: &[
    Field { name: "conditions", go: "[]v1.Condition", shape: Shape::List(&Shape::Struct(&super::meta_v1::CONDITION)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Map(&["type"]), ..F },
    Field { name: "observedGeneration", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "typeChecking", go: "v1.TypeChecking", shape: Shape::Struct(&TYPE_CHECKING), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VALIDATING_WEBHOOK: Type = Type { name: "io.k8s.api.admissionregistration.v1.ValidatingWebhook", go: "v1.ValidatingWebhook", atomic: false, fields: &[
    Field { name: "admissionReviewVersions", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "clientConfig", go: "v1.WebhookClientConfig", shape: Shape::Struct(&WEBHOOK_CLIENT_CONFIG), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "failurePolicy", go: "v1.FailurePolicyType", shape: Shape::String("v1.FailurePolicyType"), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Fail", "Ignore"], ..F },
    Field { name: "matchConditions", go: "[]v1.MatchCondition", shape: Shape::List(&Shape::Struct(&MATCH_CONDITION)), proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
    Field { name: "matchPolicy", go: "v1.MatchPolicyType", shape: Shape::String("v1.MatchPolicyType"), pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["Equivalent", "Exact"], ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespaceSelector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "objectSelector", go: "v1.LabelSelector", shape: Shape::Struct(&super::meta_v1::LABEL_SELECTOR), pointer: true, proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "rules", go: "[]v1.RuleWithOperations", shape: Shape::List(&Shape::Struct(&RULE_WITH_OPERATIONS)), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "sideEffects", go: "v1.SideEffectClass", shape: Shape::String("v1.SideEffectClass"), pointer: true, required: true, omit: Omit::Never, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["None", "NoneOnDryRun", "Some", "Unknown"], ..F },
    Field { name: "timeoutSeconds", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VALIDATING_WEBHOOK_CONFIGURATION: Type = Type { name: "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration", go: "v1.ValidatingWebhookConfiguration", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "webhooks", go: "[]v1.ValidatingWebhook", shape: Shape::List(&Shape::Struct(&VALIDATING_WEBHOOK)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "name", ..M }, topology: Topology::Map(&["name"]), ..F },
] };

pub(crate) static VALIDATING_WEBHOOK_CONFIGURATION_LIST: Type = Type { name: "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfigurationList", go: "v1.ValidatingWebhookConfigurationList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.ValidatingWebhookConfiguration", shape: Shape::List(&Shape::Struct(&VALIDATING_WEBHOOK_CONFIGURATION)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VALIDATION: Type = Type { name: "io.k8s.api.admissionregistration.v1.Validation", go: "v1.Validation", atomic: false, fields: &[
    Field { name: "expression", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "messageExpression", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", go: "v1.StatusReason", shape: Shape::String("v1.StatusReason"), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VARIABLE: Type = Type { name: "io.k8s.api.admissionregistration.v1.Variable", go: "v1.Variable", atomic: true, fields: &[
    Field { name: "expression", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static WEBHOOK_CLIENT_CONFIG: Type = Type { name: "io.k8s.api.admissionregistration.v1.WebhookClientConfig", go: "v1.WebhookClientConfig", atomic: false, fields: &[
    Field { name: "caBundle", go: "[]uint8", shape: Shape::Bytes, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "service", go: "v1.ServiceReference", shape: Shape::Struct(&SERVICE_REFERENCE), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "url", pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };
