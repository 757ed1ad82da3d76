//! The types of `k8s.io/kube-aggregator/pkg/apis/apiregistration/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F, M};
use crate::table::{Field, Merge, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static API_SERVICE: Type = Type { name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService", go: "v1.APIService", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.APIServiceSpec", shape: Shape::Struct(&API_SERVICE_SPEC), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.APIServiceStatus", shape: Shape::Struct(&API_SERVICE_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static API_SERVICE_CONDITION: Type = Type { name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceCondition", go: "v1.APIServiceCondition", atomic: false, fields: &[
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.APIServiceConditionType", shape: Shape::String("v1.APIServiceConditionType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static API_SERVICE_LIST: Type = Type { name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceList", go: "v1.APIServiceList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.APIService", shape: Shape::List(&Shape::Struct(&API_SERVICE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static API_SERVICE_SPEC: Type = Type { name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceSpec", go: "v1.APIServiceSpec", atomic: false, fields: &[
    Field { name: "caBundle", go: "[]uint8", shape: Shape::Bytes, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "group", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "groupPriorityMinimum", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "insecureSkipTLSVerify", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "service", go: "v1.ServiceReference", shape: Shape::Struct(&SERVICE_REFERENCE), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "version", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "versionPriority", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 8, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static API_SERVICE_STATUS: Type = Type { name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceStatus", go: "v1.APIServiceStatus", atomic: false, fields: &[
    Field { name: "conditions", go: "[]v1.APIServiceCondition", shape: Shape::List(&Shape::Struct(&API_SERVICE_CONDITION)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "type", ..M }, topology: Topology::Map(&["type"]), ..F },
] };

pub(crate) static SERVICE_REFERENCE: Type = Type { name: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference", go: "v1.ServiceReference", atomic: false, fields: &[
    Field { name: "name", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespace", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "port", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };
