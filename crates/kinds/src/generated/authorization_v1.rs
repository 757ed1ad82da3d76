//! The types of `k8s.io/api/authorization/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F};
use crate::table::{Field, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static FIELD_SELECTOR_ATTRIBUTES: Type = Type { name: "io.k8s.api.authorization.v1.FieldSelectorAttributes", go: "v1.FieldSelectorAttributes", atomic: false, fields: &[
    Field { name: "rawSelector", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "requirements", go: "[]v1.FieldSelectorRequirement", shape: Shape::List(&Shape::Struct(&super::meta_v1::FIELD_SELECTOR_REQUIREMENT)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static LABEL_SELECTOR_ATTRIBUTES: Type = Type { name: "io.k8s.api.authorization.v1.LabelSelectorAttributes", go: "v1.LabelSelectorAttributes", atomic: false, fields: &[
    Field { name: "rawSelector", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "requirements", go: "[]v1.LabelSelectorRequirement", shape: Shape::List(&Shape::Struct(&super::meta_v1::LABEL_SELECTOR_REQUIREMENT)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static LOCAL_SUBJECT_ACCESS_REVIEW: Type = Type { name: "io.k8s.api.authorization.v1.LocalSubjectAccessReview", go: "v1.LocalSubjectAccessReview", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.SubjectAccessReviewSpec", shape: Shape::Struct(&SUBJECT_ACCESS_REVIEW_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.SubjectAccessReviewStatus", shape: Shape::Struct(&SUBJECT_ACCESS_REVIEW_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NON_RESOURCE_ATTRIBUTES: Type = Type { name: "io.k8s.api.authorization.v1.NonResourceAttributes", go: "v1.NonResourceAttributes", atomic: false, fields: &[
    Field { name: "path", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "verb", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static NON_RESOURCE_RULE: Type = Type { name: "io.k8s.api.authorization.v1.NonResourceRule", go: "v1.NonResourceRule", atomic: false, fields: &[
    Field { name: "nonResourceURLs", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "verbs", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static RESOURCE_ATTRIBUTES: Type = Type { name: "io.k8s.api.authorization.v1.ResourceAttributes", go: "v1.ResourceAttributes", atomic: false, fields: &[
    Field { name: "fieldSelector", go: "v1.FieldSelectorAttributes", shape: Shape::Struct(&FIELD_SELECTOR_ATTRIBUTES), pointer: true, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "group", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "labelSelector", go: "v1.LabelSelectorAttributes", shape: Shape::Struct(&LABEL_SELECTOR_ATTRIBUTES), pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespace", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resource", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "subresource", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "verb", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "version", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static RESOURCE_RULE: Type = Type { name: "io.k8s.api.authorization.v1.ResourceRule", go: "v1.ResourceRule", atomic: false, fields: &[
    Field { name: "apiGroups", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "resourceNames", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "resources", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "verbs", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static SELF_SUBJECT_ACCESS_REVIEW: Type = Type { name: "io.k8s.api.authorization.v1.SelfSubjectAccessReview", go: "v1.SelfSubjectAccessReview", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.SelfSubjectAccessReviewSpec", shape: Shape::Struct(&SELF_SUBJECT_ACCESS_REVIEW_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.SubjectAccessReviewStatus", shape: Shape::Struct(&SUBJECT_ACCESS_REVIEW_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SELF_SUBJECT_ACCESS_REVIEW_SPEC: Type = Type { name: "io.k8s.api.authorization.v1.SelfSubjectAccessReviewSpec", go: "v1.SelfSubjectAccessReviewSpec", atomic: false, fields: &[
    Field { name: "nonResourceAttributes", go: "v1.NonResourceAttributes", shape: Shape::Struct(&NON_RESOURCE_ATTRIBUTES), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceAttributes", go: "v1.ResourceAttributes", shape: Shape::Struct(&RESOURCE_ATTRIBUTES), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SELF_SUBJECT_RULES_REVIEW: Type = Type { name: "io.k8s.api.authorization.v1.SelfSubjectRulesReview", go: "v1.SelfSubjectRulesReview", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.SelfSubjectRulesReviewSpec", shape: Shape::Struct(&SELF_SUBJECT_RULES_REVIEW_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.SubjectRulesReviewStatus", shape: Shape::Struct(&SUBJECT_RULES_REVIEW_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SELF_SUBJECT_RULES_REVIEW_SPEC: Type = Type { name: "io.k8s.api.authorization.v1.SelfSubjectRulesReviewSpec", go: "v1.SelfSubjectRulesReviewSpec", atomic: false, fields: &[
    Field { name: "namespace", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SUBJECT_ACCESS_REVIEW: Type = Type { name: "io.k8s.api.authorization.v1.SubjectAccessReview", go: "v1.SubjectAccessReview", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.SubjectAccessReviewSpec", shape: Shape::Struct(&SUBJECT_ACCESS_REVIEW_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.SubjectAccessReviewStatus", shape: Shape::Struct(&SUBJECT_ACCESS_REVIEW_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SUBJECT_ACCESS_REVIEW_SPEC: Type = Type { name: "io.k8s.api.authorization.v1.SubjectAccessReviewSpec", go: "v1.SubjectAccessReviewSpec", atomic: false, fields: &[
    Field { name: "extra", go: "map[string]v1.ExtraValue", shape: Shape::Map(&Shape::List(&Shape::String("string"))), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "groups", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "nonResourceAttributes", go: "v1.NonResourceAttributes", shape: Shape::Struct(&NON_RESOURCE_ATTRIBUTES), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "resourceAttributes", go: "v1.ResourceAttributes", shape: Shape::Struct(&RESOURCE_ATTRIBUTES), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "uid", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "user", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SUBJECT_ACCESS_REVIEW_STATUS: Type = Type { name: "io.k8s.api.authorization.v1.SubjectAccessReviewStatus", go: "v1.SubjectAccessReviewStatus", atomic: false, fields: &[
    Field { name: "allowed", go: "bool", shape: Shape::Bool, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "denied", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "evaluationError", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SUBJECT_RULES_REVIEW_STATUS: Type = Type { name: "io.k8s.api.authorization.v1.SubjectRulesReviewStatus", go: "v1.SubjectRulesReviewStatus", atomic: false, fields: &[
    Field { name: "evaluationError", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "incomplete", go: "bool", shape: Shape::Bool, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "nonResourceRules", go: "[]v1.NonResourceRule", shape: Shape::List(&Shape::Struct(&NON_RESOURCE_RULE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "resourceRules", go: "[]v1.ResourceRule", shape: Shape::List(&Shape::Struct(&RESOURCE_RULE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };
