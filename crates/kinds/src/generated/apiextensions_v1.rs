//! The types of `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1`. Written by `cargo xtask gen`: do not edit.

use super::{F, M};
use crate::table::{Field, Merge, Omit, Proto, SchemaOther, Shape, Topology, Type, Wire};

pub(crate) static CONVERSION_REQUEST: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ConversionRequest", go: "v1.ConversionRequest", atomic: false, fields: &[
    Field { name: "desiredAPIVersion", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "objects", go: "[]runtime.RawExtension", shape: Shape::List(&Shape::RawExtension), required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "uid", go: "types.UID", shape: Shape::String("types.UID"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONVERSION_RESPONSE: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ConversionResponse", go: "v1.ConversionResponse", atomic: false, fields: &[
    Field { name: "convertedObjects", go: "[]runtime.RawExtension", shape: Shape::List(&Shape::RawExtension), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "result", go: "v1.Status", shape: Shape::Struct(&super::meta_v1::STATUS), required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "uid", go: "types.UID", shape: Shape::String("types.UID"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CONVERSION_REVIEW: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ConversionReview", go: "v1.ConversionReview", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "request", go: "v1.ConversionRequest", shape: Shape::Struct(&CONVERSION_REQUEST), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "response", go: "v1.ConversionResponse", shape: Shape::Struct(&CONVERSION_RESPONSE), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CUSTOM_RESOURCE_COLUMN_DEFINITION: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceColumnDefinition", go: "v1.CustomResourceColumnDefinition", atomic: false, fields: &[
    Field { name: "description", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "format", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "jsonPath", required: true, omit: Omit::Never, proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "priority", go: "int32", shape: Shape::Int32, proto: Some(Proto { number: 5, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "type", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CUSTOM_RESOURCE_CONVERSION: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceConversion", go: "v1.CustomResourceConversion", atomic: false, fields: &[
    Field { name: "strategy", go: "v1.ConversionStrategyType", shape: Shape::String("v1.ConversionStrategyType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "webhook", go: "v1.WebhookConversion", shape: Shape::Struct(&WEBHOOK_CONVERSION), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CUSTOM_RESOURCE_DEFINITION: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition", go: "v1.CustomResourceDefinition", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ObjectMeta", shape: Shape::Struct(&super::meta_v1::OBJECT_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "spec", go: "v1.CustomResourceDefinitionSpec", shape: Shape::Struct(&CUSTOM_RESOURCE_DEFINITION_SPEC), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.CustomResourceDefinitionStatus", shape: Shape::Struct(&CUSTOM_RESOURCE_DEFINITION_STATUS), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CUSTOM_RESOURCE_DEFINITION_CONDITION: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionCondition", go: "v1.CustomResourceDefinitionCondition", atomic: false, fields: &[
    Field { name: "lastTransitionTime", go: "v1.Time", shape: Shape::Time, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "observedGeneration", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "reason", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.ConditionStatus", shape: Shape::String("v1.ConditionStatus"), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", go: "v1.CustomResourceDefinitionConditionType", shape: Shape::String("v1.CustomResourceDefinitionConditionType"), required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CUSTOM_RESOURCE_DEFINITION_LIST: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionList", go: "v1.CustomResourceDefinitionList", atomic: false, fields: &[
    Field { name: "apiVersion", declared_in: "TypeMeta", ..F },
    Field { name: "items", go: "[]v1.CustomResourceDefinition", shape: Shape::List(&Shape::Struct(&CUSTOM_RESOURCE_DEFINITION)), required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "kind", declared_in: "TypeMeta", ..F },
    Field { name: "metadata", go: "v1.ListMeta", shape: Shape::Struct(&super::meta_v1::LIST_META), proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CUSTOM_RESOURCE_DEFINITION_NAMES: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionNames", go: "v1.CustomResourceDefinitionNames", atomic: false, fields: &[
    Field { name: "categories", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "kind", required: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "listKind", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "plural", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "shortNames", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "singular", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CUSTOM_RESOURCE_DEFINITION_SPEC: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec", go: "v1.CustomResourceDefinitionSpec", atomic: false, fields: &[
    Field { name: "conversion", go: "v1.CustomResourceConversion", shape: Shape::Struct(&CUSTOM_RESOURCE_CONVERSION), pointer: true, proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "group", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "names", go: "v1.CustomResourceDefinitionNames", shape: Shape::Struct(&CUSTOM_RESOURCE_DEFINITION_NAMES), required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "preserveUnknownFields", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 10, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "scope", go: "v1.ResourceScope", shape: Shape::String("v1.ResourceScope"), required: true, omit: Omit::Never, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "versions", go: "[]v1.CustomResourceDefinitionVersion", shape: Shape::List(&Shape::Struct(&CUSTOM_RESOURCE_DEFINITION_VERSION)), required: true, omit: Omit::Never, proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static CUSTOM_RESOURCE_DEFINITION_STATUS: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus", go: "v1.CustomResourceDefinitionStatus", atomic: false, fields: &[
    Field { name: "acceptedNames", go: "v1.CustomResourceDefinitionNames", shape: Shape::Struct(&CUSTOM_RESOURCE_DEFINITION_NAMES), omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "conditions", go: "[]v1.CustomResourceDefinitionCondition", shape: Shape::List(&Shape::Struct(&CUSTOM_RESOURCE_DEFINITION_CONDITION)), omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Map(&["type"]), ..F },
    Field { name: "observedGeneration", go: "int64", shape: Shape::Int64, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "storedVersions", go: "[]string", shape: Shape::List(&Shape::String("string")), omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };

pub(crate) static CUSTOM_RESOURCE_DEFINITION_VERSION: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion", go: "v1.CustomResourceDefinitionVersion", atomic: false, fields: &[
    Field { name: "additionalPrinterColumns", go: "[]v1.CustomResourceColumnDefinition", shape: Shape::List(&Shape::Struct(&CUSTOM_RESOURCE_COLUMN_DEFINITION)), proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "deprecated", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 7, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "deprecationWarning", pointer: true, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "schema", go: "v1.CustomResourceValidation", shape: Shape::Struct(&CUSTOM_RESOURCE_VALIDATION), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "selectableFields", go: "[]v1.SelectableField", shape: Shape::List(&Shape::Struct(&SELECTABLE_FIELD)), proto: Some(Proto { number: 9, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "served", go: "bool", shape: Shape::Bool, required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "storage", go: "bool", shape: Shape::Bool, required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "subresources", go: "v1.CustomResourceSubresources", shape: Shape::Struct(&CUSTOM_RESOURCE_SUBRESOURCES), pointer: true, proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CUSTOM_RESOURCE_SUBRESOURCE_SCALE: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceScale", go: "v1.CustomResourceSubresourceScale", atomic: false, fields: &[
    Field { name: "labelSelectorPath", pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "specReplicasPath", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "statusReplicasPath", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CUSTOM_RESOURCE_SUBRESOURCE_STATUS: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceStatus", go: "v1.CustomResourceSubresourceStatus", atomic: false, fields: &[
] };

pub(crate) static CUSTOM_RESOURCE_SUBRESOURCES: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresources", go: "v1.CustomResourceSubresources", atomic: false, fields: &[
    Field { name: "scale", go: "v1.CustomResourceSubresourceScale", shape: Shape::Struct(&CUSTOM_RESOURCE_SUBRESOURCE_SCALE), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "status", go: "v1.CustomResourceSubresourceStatus", shape: Shape::Struct(&CUSTOM_RESOURCE_SUBRESOURCE_STATUS), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static CUSTOM_RESOURCE_VALIDATION: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceValidation", go: "v1.CustomResourceValidation", atomic: false, fields: &[
    Field { name: "openAPIV3Schema", go: "v1.JSONSchemaProps", shape: Shape::Struct(&JSON_SCHEMA_PROPS), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static EXTERNAL_DOCUMENTATION: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ExternalDocumentation", go: "v1.ExternalDocumentation", atomic: false, fields: &[
    Field { name: "description", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "url", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static JSON_SCHEMA_PROPS: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps", go: "v1.JSONSchemaProps", atomic: false, fields: &[
    Field { name: "$ref", pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "$schema", go: "v1.JSONSchemaURL", shape: Shape::String("v1.JSONSchemaURL"), proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "additionalItems", go: "v1.JSONSchemaPropsOrBool", shape: Shape::SchemaOr(&JSON_SCHEMA_PROPS, SchemaOther::Bool), pointer: true, proto: Some(Proto { number: 33, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "additionalProperties", go: "v1.JSONSchemaPropsOrBool", shape: Shape::SchemaOr(&JSON_SCHEMA_PROPS, SchemaOther::Bool), pointer: true, proto: Some(Proto { number: 30, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "allOf", go: "[]v1.JSONSchemaProps", shape: Shape::List(&Shape::Struct(&JSON_SCHEMA_PROPS)), proto: Some(Proto { number: 25, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "anyOf", go: "[]v1.JSONSchemaProps", shape: Shape::List(&Shape::Struct(&JSON_SCHEMA_PROPS)), proto: Some(Proto { number: 27, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "default", go: "v1.JSON", shape: Shape::Json, pointer: true, proto: Some(Proto { number: 8, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "definitions", go: "v1.JSONSchemaDefinitions", shape: Shape::Map(&Shape::Struct(&JSON_SCHEMA_PROPS)), proto: Some(Proto { number: 34, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "dependencies", go: "v1.JSONSchemaDependencies", shape: Shape::Map(&Shape::SchemaOr(&JSON_SCHEMA_PROPS, SchemaOther::StringArray)), proto: Some(Proto { number: 32, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "description", proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "enum", go: "[]v1.JSON", shape: Shape::List(&Shape::Json), proto: Some(Proto { number: 20, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "example", go: "v1.JSON", shape: Shape::Json, pointer: true, proto: Some(Proto { number: 36, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "exclusiveMaximum", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 10, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "exclusiveMinimum", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 12, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "externalDocs", go: "v1.ExternalDocumentation", shape: Shape::Struct(&EXTERNAL_DOCUMENTATION), pointer: true, proto: Some(Proto { number: 35, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "format", proto: Some(Proto { number: 6, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "id", proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "items", go: "v1.JSONSchemaPropsOrArray", shape: Shape::SchemaOr(&JSON_SCHEMA_PROPS, SchemaOther::Array), pointer: true, proto: Some(Proto { number: 24, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "maxItems", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 16, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "maxLength", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 13, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "maxProperties", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 21, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "maximum", go: "float64", shape: Shape::Float64, pointer: true, proto: Some(Proto { number: 9, wire: Wire::Fixed64, within: &[], wrapped: false }), ..F },
    Field { name: "minItems", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 17, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "minLength", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 14, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "minProperties", go: "int64", shape: Shape::Int64, pointer: true, proto: Some(Proto { number: 22, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "minimum", go: "float64", shape: Shape::Float64, pointer: true, proto: Some(Proto { number: 11, wire: Wire::Fixed64, within: &[], wrapped: false }), ..F },
    Field { name: "multipleOf", go: "float64", shape: Shape::Float64, pointer: true, proto: Some(Proto { number: 19, wire: Wire::Fixed64, within: &[], wrapped: false }), ..F },
    Field { name: "not", go: "v1.JSONSchemaProps", shape: Shape::Struct(&JSON_SCHEMA_PROPS), pointer: true, proto: Some(Proto { number: 28, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "nullable", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 37, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "oneOf", go: "[]v1.JSONSchemaProps", shape: Shape::List(&Shape::Struct(&JSON_SCHEMA_PROPS)), proto: Some(Proto { number: 26, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "pattern", proto: Some(Proto { number: 15, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "patternProperties", go: "map[string]v1.JSONSchemaProps", shape: Shape::Map(&Shape::Struct(&JSON_SCHEMA_PROPS)), proto: Some(Proto { number: 31, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "properties", go: "map[string]v1.JSONSchemaProps", shape: Shape::Map(&Shape::Struct(&JSON_SCHEMA_PROPS)), proto: Some(Proto { number: 29, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "required", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 23, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "title", proto: Some(Proto { number: 7, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "type", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "uniqueItems", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 18, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "x-kubernetes-embedded-resource", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 39, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "x-kubernetes-int-or-string", go: "bool", shape: Shape::Bool, proto: Some(Proto { number: 40, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "x-kubernetes-list-map-keys", go: "[]string", shape: Shape::List(&Shape::String("string")), proto: Some(Proto { number: 41, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
    Field { name: "x-kubernetes-list-type", pointer: true, proto: Some(Proto { number: 42, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "x-kubernetes-map-type", pointer: true, proto: Some(Proto { number: 43, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "x-kubernetes-preserve-unknown-fields", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 38, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "x-kubernetes-validations", go: "v1.ValidationRules", shape: Shape::List(&Shape::Struct(&VALIDATION_RULE)), proto: Some(Proto { number: 44, wire: Wire::Bytes, within: &[], wrapped: false }), merge: Merge { merge: true, key: "rule", ..M }, topology: Topology::Map(&["rule"]), ..F },
] };

pub(crate) static SELECTABLE_FIELD: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.SelectableField", go: "v1.SelectableField", atomic: false, fields: &[
    Field { name: "jsonPath", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static SERVICE_REFERENCE: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ServiceReference", go: "v1.ServiceReference", atomic: false, fields: &[
    Field { name: "name", required: true, omit: Omit::Never, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "namespace", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "path", pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "port", go: "int32", shape: Shape::Int32, pointer: true, proto: Some(Proto { number: 4, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
] };

pub(crate) static VALIDATION_RULE: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ValidationRule", go: "v1.ValidationRule", atomic: false, fields: &[
    Field { name: "fieldPath", proto: Some(Proto { number: 5, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "message", proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "messageExpression", proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "optionalOldSelf", go: "bool", shape: Shape::Bool, pointer: true, proto: Some(Proto { number: 6, wire: Wire::Varint, within: &[], wrapped: false }), ..F },
    Field { name: "reason", go: "v1.FieldValueErrorReason", shape: Shape::String("v1.FieldValueErrorReason"), pointer: true, proto: Some(Proto { number: 4, wire: Wire::Bytes, within: &[], wrapped: false }), values: &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"], ..F },
    Field { name: "rule", required: true, omit: Omit::Never, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static WEBHOOK_CLIENT_CONFIG: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.WebhookClientConfig", go: "v1.WebhookClientConfig", atomic: false, fields: &[
    Field { name: "caBundle", go: "[]uint8", shape: Shape::Bytes, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "service", go: "v1.ServiceReference", shape: Shape::Struct(&SERVICE_REFERENCE), pointer: true, proto: Some(Proto { number: 1, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "url", pointer: true, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
] };

pub(crate) static WEBHOOK_CONVERSION: Type = Type { name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.WebhookConversion", go: "v1.WebhookConversion", atomic: false, fields: &[
    Field { name: "clientConfig", go: "v1.WebhookClientConfig", shape: Shape::Struct(&WEBHOOK_CLIENT_CONFIG), pointer: true, proto: Some(Proto { number: 2, wire: Wire::Bytes, within: &[], wrapped: false }), ..F },
    Field { name: "conversionReviewVersions", go: "[]string", shape: Shape::List(&Shape::String("string")), required: true, omit: Omit::Never, proto: Some(Proto { number: 3, wire: Wire::Bytes, within: &[], wrapped: false }), topology: Topology::Atomic, ..F },
] };
