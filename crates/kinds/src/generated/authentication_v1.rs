//! The types of `k8s.io/api/authentication/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F};
use crate::table::{Field, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static BOUND_OBJECT_REFERENCE: Type = Type { name: "io.k8s.api.authentication.v1.BoundObjectReference", go: "v1.BoundObjectReference", atomic: false, fields: &[
    Field { name: "apiVersion", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "uid", go: "types.UID", shape: Shape::String("types.UID"), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SELF_SUBJECT_REVIEW: Type = Type { name: "io.k8s.api.authentication.v1.SelfSubjectReview", go: "v1.SelfSubjectReview", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.SelfSubjectReviewStatus", shape: Shape::Struct(&SELF_SUBJECT_REVIEW_STATUS), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SELF_SUBJECT_REVIEW_STATUS: Type = Type { name: "io.k8s.api.authentication.v1.SelfSubjectReviewStatus", go: "v1.SelfSubjectReviewStatus", atomic: false, fields: &[
    Field { name: "userInfo", go: "v1.UserInfo", shape: Shape::Struct(&USER_INFO), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static TOKEN_REQUEST: Type = Type { name: "io.k8s.api.authentication.v1.TokenRequest", go: "v1.TokenRequest", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.TokenRequestSpec", shape: Shape::Struct(&TOKEN_REQUEST_SPEC), omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.TokenRequestStatus", shape: Shape::Struct(&TOKEN_REQUEST_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static TOKEN_REQUEST_SPEC: Type = Type { name: "io.k8s.api.authentication.v1.TokenRequestSpec", go: "v1.TokenRequestSpec", atomic: false, fields: &[
    Field { name: "attestations", go: "map[string]v1.AttestationValue", shape: Shape::Map(&Shape::List(&Shape::String("string"))), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "audiences", go: "[]string", shape: Shape::List(&Shape::String("string")), omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "boundObjectRef", go: "v1.BoundObjectReference", shape: Shape::Struct(&BOUND_OBJECT_REFERENCE), pointer: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "expirationSeconds", go: "int64", shape: Shape::Int64, pointer: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static TOKEN_REQUEST_STATUS: Type = Type { name: "io.k8s.api.authentication.v1.TokenRequestStatus", go: "v1.TokenRequestStatus", atomic: false, fields: &[
    Field { name: "expirationTimestamp", go: "v1.Time", shape: Shape::Time, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "token", omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static TOKEN_REVIEW: Type = Type { name: "io.k8s.api.authentication.v1.TokenReview", go: "v1.TokenReview", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.TokenReviewSpec", shape: Shape::Struct(&TOKEN_REVIEW_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.TokenReviewStatus", shape: Shape::Struct(&TOKEN_REVIEW_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static TOKEN_REVIEW_SPEC: Type = Type { name: "io.k8s.api.authentication.v1.TokenReviewSpec", go: "v1.TokenReviewSpec", atomic: false, fields: &[
    Field { name: "audiences", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "token", required: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static TOKEN_REVIEW_STATUS: Type = Type { name: "io.k8s.api.authentication.v1.TokenReviewStatus", go: "v1.TokenReviewStatus", atomic: false, fields: &[
    Field { name: "audiences", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "authenticated", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "error", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "user", go: "v1.UserInfo", shape: Shape::Struct(&USER_INFO), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static USER_INFO: Type = Type { name: "io.k8s.api.authentication.v1.UserInfo", go: "v1.UserInfo", atomic: false, fields: &[
    Field { name: "extra", go: "map[string]v1.ExtraValue", shape: Shape::Map(&Shape::List(&Shape::String("string"))), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "groups", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "uid", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "username", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };
