//! The types of `k8s.io/api/certificates/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F, M};
use crate::table::{Field, Merge, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static CERTIFICATE_SIGNING_REQUEST: Type = Type { name: "io.k8s.api.certificates.v1.CertificateSigningRequest", go: "v1.CertificateSigningRequest", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.CertificateSigningRequestSpec", shape: Shape::Struct(&CERTIFICATE_SIGNING_REQUEST_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.CertificateSigningRequestStatus", shape: Shape::Struct(&CERTIFICATE_SIGNING_REQUEST_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CERTIFICATE_SIGNING_REQUEST_CONDITION: Type = Type { name: "io.k8s.api.certificates.v1.CertificateSigningRequestCondition", go: "v1.CertificateSigningRequestCondition", atomic: false, fields: &[
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "lastUpdateTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), required: true, omit: Omit::Never, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.RequestConditionType", shape: Shape::String("v1.RequestConditionType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CERTIFICATE_SIGNING_REQUEST_LIST: Type = Type { name: "io.k8s.api.certificates.v1.CertificateSigningRequestList", go: "v1.CertificateSigningRequestList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.CertificateSigningRequest", shape: Shape::List(&Shape::Struct(&CERTIFICATE_SIGNING_REQUEST)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CERTIFICATE_SIGNING_REQUEST_SPEC: Type = Type { name: "io.k8s.api.certificates.v1.CertificateSigningRequestSpec", go: "v1.CertificateSigningRequestSpec", atomic: false, fields: &[
    Field { name: "expirationSeconds", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "extra", go: "map[string]v1.ExtraValue", shape: Shape::Map(&Shape::List(&Shape::String("string"))), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "groups", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "request", go: "[]uint8", shape: Shape::Bytes, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "signerName", required: true, omit: Omit::Never, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "uid", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "usages", go: "[]v1.KeyUsage", shape: Shape::List(&Shape::String("v1.KeyUsage")), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, values: &["any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping"], ..F },
    Field { name: "username", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CERTIFICATE_SIGNING_REQUEST_STATUS: Type = Type { name: "io.k8s.api.certificates.v1.CertificateSigningRequestStatus", go: "v1.CertificateSigningRequestStatus", atomic: false, fields: &[
    Field { name: "certificate", go: "[]uint8", shape: Shape::Bytes, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "conditions", go: "[]v1.CertificateSigningRequestCondition", shape: Shape::List(&Shape::Struct(&CERTIFICATE_SIGNING_REQUEST_CONDITION)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Map(&["type"]), ..F },
] };

pub(crate) static CLUSTER_TRUST_BUNDLE: Type = Type { name: "io.k8s.api.certificates.v1.ClusterTrustBundle", go: "v1.ClusterTrustBundle", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.ClusterTrustBundleSpec", shape: Shape::Struct(&CLUSTER_TRUST_BUNDLE_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CLUSTER_TRUST_BUNDLE_LIST: Type = Type { name: "io.k8s.api.certificates.v1.ClusterTrustBundleList", go: "v1.ClusterTrustBundleList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.ClusterTrustBundle", shape: Shape::List(&Shape::Struct(&CLUSTER_TRUST_BUNDLE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CLUSTER_TRUST_BUNDLE_SPEC: Type = Type { name: "io.k8s.api.certificates.v1.ClusterTrustBundleSpec", go: "v1.ClusterTrustBundleSpec", atomic: false, fields: &[
    Field { name: "signerName", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "trustBundle", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_CERTIFICATE_REQUEST: Type = Type { name: "io.k8s.api.certificates.v1.PodCertificateRequest", go: "v1.PodCertificateRequest", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.PodCertificateRequestSpec", shape: Shape::Struct(&POD_CERTIFICATE_REQUEST_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.PodCertificateRequestStatus", shape: Shape::Struct(&POD_CERTIFICATE_REQUEST_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_CERTIFICATE_REQUEST_LIST: Type = Type { name: "io.k8s.api.certificates.v1.PodCertificateRequestList", go: "v1.PodCertificateRequestList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.PodCertificateRequest", shape: Shape::List(&Shape::Struct(&POD_CERTIFICATE_REQUEST)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_CERTIFICATE_REQUEST_SPEC: Type = Type { name: "io.k8s.api.certificates.v1.PodCertificateRequestSpec", go: "v1.PodCertificateRequestSpec", atomic: false, fields: &[
    Field { name: "maxExpirationSeconds", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), default: "86400", ..F },
    Field { name: "nodeName", go: "types.NodeName", shape: Shape::String("types.NodeName"), required: true, omit: Omit::Never, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeUID", go: "types.UID", shape: Shape::String("types.UID"), required: true, omit: Omit::Never, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "podName", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "podUID", go: "types.UID", shape: Shape::String("types.UID"), required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "serviceAccountName", required: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "serviceAccountUID", go: "types.UID", shape: Shape::String("types.UID"), required: true, omit: Omit::Never, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "signerName", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "stubPKCS10Request", go: "[]uint8", shape: Shape::Bytes, required: true, omit: Omit::Never, proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "unverifiedUserAnnotations", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static POD_CERTIFICATE_REQUEST_STATUS: Type = Type { name: "io.k8s.api.certificates.v1.PodCertificateRequestStatus", go: "v1.PodCertificateRequestStatus", atomic: false, fields: &[
    Field { name: "beginRefreshAt", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "certificateChain", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "conditions", go: "[]v1.Condition", shape: Shape::List(&Shape::Struct(&super::meta_v1::CONDITION)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
    Field { name: "notAfter", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "notBefore", go: "v1.Time", shape: Shape::Time, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };
