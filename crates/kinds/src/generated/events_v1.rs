//! The types of `k8s.io/api/events/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F};
use crate::table::{Field, Omit, Proto, Shape, Type, Wire};

pub(crate) static EVENT: Type = Type { name: "io.k8s.api.events.v1.Event", go: "v1.Event", atomic: false, fields: &[
    Field { name: "action", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "deprecatedCount", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 15, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "deprecatedFirstTimestamp", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 13, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "deprecatedLastTimestamp", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 14, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "deprecatedSource", go: "v1.EventSource", shape: Shape::Struct(&super::core_v1::EVENT_SOURCE), proto: Some(Proto { number: 12, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "eventTime", go: "v1.MicroTime", shape: Shape::MicroTime, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "note", proto: Some(Proto { number: 10, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "regarding", go: "v1.ObjectReference", shape: Shape::Struct(&super::core_v1::OBJECT_REFERENCE), proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "related", go: "v1.ObjectReference", shape: Shape::Struct(&super::core_v1::OBJECT_REFERENCE), pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reportingController", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "reportingInstance", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "series", go: "v1.EventSeries", shape: Shape::Struct(&EVENT_SERIES), pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", proto: Some(Proto { number: 11, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static EVENT_LIST: Type = Type { name: "io.k8s.api.events.v1.EventList", go: "v1.EventList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.Event", shape: Shape::List(&Shape::Struct(&EVENT)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static EVENT_SERIES: Type = Type { name: "io.k8s.api.events.v1.EventSeries", go: "v1.EventSeries", atomic: false, fields: &[
    Field { name: "count", go: "int32", shape: Shape::Int32, required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "lastObservedTime", go: "v1.MicroTime", shape: Shape::MicroTime, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };
