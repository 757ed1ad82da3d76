//! The types of `k8s.io/api/discovery/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F};
use crate::table::{Field, Omit, Proto, Shape, Topology, Type, Wire};

pub(crate) static ENDPOINT: Type = Type { name: "io.k8s.api.discovery.v1.Endpoint", go: "v1.Endpoint", atomic: false, fields: &[
    Field { name: "addresses", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Set, ..F },
    Field { name: "conditions", go: "v1.EndpointConditions", shape: Shape::Struct(&ENDPOINT_CONDITIONS), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "deprecatedTopology", go: "map[string]string", shape: Shape::Map(&Shape::String("string")), proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "hints", go: "v1.EndpointHints", shape: Shape::Struct(&ENDPOINT_HINTS), pointer: true, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "hostname", pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nodeName", pointer: true, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "targetRef", go: "v1.ObjectReference", shape: Shape::Struct(&super::core_v1::OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "zone", pointer: true, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static ENDPOINT_CONDITIONS: Type = Type { name: "io.k8s.api.discovery.v1.EndpointConditions", go: "v1.EndpointConditions", atomic: false, fields: &[
    Field { name: "ready", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "serving", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "terminating", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static ENDPOINT_HINTS: Type = Type { name: "io.k8s.api.discovery.v1.EndpointHints", go: "v1.EndpointHints", atomic: false, fields: &[
    Field { name: "forNodes", go: "[]v1.ForNode", shape: Shape::List(&Shape::Struct(&FOR_NODE)), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "forZones", go: "[]v1.ForZone", shape: Shape::List(&Shape::Struct(&FOR_ZONE)), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static ENDPOINT_PORT: Type = Type { name: "io.k8s.api.discovery.v1.EndpointPort", go: "v1.EndpointPort", atomic: true, fields: &[
    Field { name: "appProtocol", pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "port", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "protocol", go: "v1.Protocol", shape: Shape::String("v1.Protocol"), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["SCTP", "TCP", "UDP"], ..F },
] };

pub(crate) static ENDPOINT_SLICE: Type = Type { name: "io.k8s.api.discovery.v1.EndpointSlice", go: "v1.EndpointSlice", atomic: false, fields: &[
    Field { name: "addressType", go: "v1.AddressType", shape: Shape::String("v1.AddressType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "endpoints", go: "[]v1.Endpoint", shape: Shape::List(&Shape::Struct(&ENDPOINT)), omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "ports", go: "[]v1.EndpointPort", shape: Shape::List(&Shape::Struct(&ENDPOINT_PORT)), omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static ENDPOINT_SLICE_LIST: Type = Type { name: "io.k8s.api.discovery.v1.EndpointSliceList", go: "v1.EndpointSliceList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.EndpointSlice", shape: Shape::List(&Shape::Struct(&ENDPOINT_SLICE)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static FOR_NODE: Type = Type { name: "io.k8s.api.discovery.v1.ForNode", go: "v1.ForNode", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static FOR_ZONE: Type = Type { name: "io.k8s.api.discovery.v1.ForZone", go: "v1.ForZone", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };
