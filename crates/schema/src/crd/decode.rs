//! Decoding a `CustomResourceDefinition`: unknown fields and empty values go, wrong types are refused in Go's words.

use serde_json::{Map, Value};

use crate::meta::json_word;

/// What a field holds. `Optional` fields leave no trace when empty.
enum Kind {
    Text,
    /// A text whose Go type has a name.
    Named(&'static str),
    Bool,
    /// A truth value that is kept when false.
    OptionalBool,
    Int(&'static str),
    Float,
    Texts,
    Bytes,
    Any,
    AnyList,
    Struct(&'static Struct),
    List(&'static Struct, &'static str),
    Map(&'static Struct, &'static str),
    SchemaOrBool,
    SchemaOrList,
    SchemaOrTexts,
}

struct Struct {
    name: &'static str,
    fields: &'static [(&'static str, Kind)],
    /// Fields that are there even when empty.
    always: &'static [&'static str],
}

static ROOT: Struct = Struct {
    name: "CustomResourceDefinition",
    fields: &[
        ("apiVersion", Kind::Text),
        ("kind", Kind::Text),
        ("metadata", Kind::Any),
        ("spec", Kind::Struct(&SPEC)),
        ("status", Kind::Struct(&STATUS)),
    ],
    always: &["spec"],
};

static SPEC: Struct = Struct {
    name: "CustomResourceDefinitionSpec",
    fields: &[
        ("group", Kind::Text),
        ("names", Kind::Struct(&NAMES)),
        ("scope", Kind::Named("v1.ResourceScope")),
        ("versions", Kind::List(&VERSION, "CustomResourceDefinitionVersion")),
        ("conversion", Kind::Struct(&CONVERSION)),
        ("preserveUnknownFields", Kind::Bool),
    ],
    always: &["group", "names", "scope", "versions"],
};

static NAMES: Struct = Struct {
    name: "CustomResourceDefinitionNames",
    fields: &[
        ("plural", Kind::Text),
        ("singular", Kind::Text),
        ("shortNames", Kind::Texts),
        ("kind", Kind::Text),
        ("listKind", Kind::Text),
        ("categories", Kind::Texts),
    ],
    always: &["plural", "kind"],
};

static VERSION: Struct = Struct {
    name: "CustomResourceDefinitionVersion",
    fields: &[
        ("name", Kind::Text),
        ("served", Kind::Bool),
        ("storage", Kind::Bool),
        ("deprecated", Kind::Bool),
        ("deprecationWarning", Kind::Text),
        ("schema", Kind::Struct(&VALIDATION)),
        ("subresources", Kind::Struct(&SUBRESOURCES)),
        ("additionalPrinterColumns", Kind::List(&COLUMN, "CustomResourceColumnDefinition")),
        ("selectableFields", Kind::List(&SELECTABLE, "SelectableField")),
    ],
    always: &["name", "served", "storage"],
};

static VALIDATION: Struct = Struct {
    name: "CustomResourceValidation",
    fields: &[("openAPIV3Schema", Kind::Struct(&SCHEMA))],
    always: &[],
};

static SUBRESOURCES: Struct = Struct {
    name: "CustomResourceSubresources",
    fields: &[("status", Kind::Struct(&EMPTY)), ("scale", Kind::Struct(&SCALE))],
    always: &[],
};

static EMPTY: Struct = Struct { name: "CustomResourceSubresourceStatus", fields: &[], always: &[] };

static SCALE: Struct = Struct {
    name: "CustomResourceSubresourceScale",
    fields: &[
        ("specReplicasPath", Kind::Text),
        ("statusReplicasPath", Kind::Text),
        ("labelSelectorPath", Kind::Text),
    ],
    always: &["specReplicasPath", "statusReplicasPath"],
};

static COLUMN: Struct = Struct {
    name: "CustomResourceColumnDefinition",
    fields: &[
        ("name", Kind::Text),
        ("type", Kind::Text),
        ("format", Kind::Text),
        ("description", Kind::Text),
        ("priority", Kind::Int("int32")),
        ("jsonPath", Kind::Text),
    ],
    always: &["name", "type", "jsonPath"],
};

static SELECTABLE: Struct =
    Struct { name: "SelectableField", fields: &[("jsonPath", Kind::Text)], always: &["jsonPath"] };

static CONVERSION: Struct = Struct {
    name: "CustomResourceConversion",
    fields: &[("strategy", Kind::Named("v1.ConversionStrategyType")), ("webhook", Kind::Struct(&WEBHOOK))],
    always: &["strategy"],
};

static WEBHOOK: Struct = Struct {
    name: "WebhookConversion",
    fields: &[("clientConfig", Kind::Struct(&CLIENT)), ("conversionReviewVersions", Kind::Texts)],
    always: &["conversionReviewVersions"],
};

static CLIENT: Struct = Struct {
    name: "WebhookClientConfig",
    fields: &[("url", Kind::Text), ("service", Kind::Struct(&SERVICE)), ("caBundle", Kind::Bytes)],
    always: &[],
};

static SERVICE: Struct = Struct {
    name: "ServiceReference",
    fields: &[
        ("namespace", Kind::Text),
        ("name", Kind::Text),
        ("path", Kind::Text),
        ("port", Kind::Int("int32")),
    ],
    always: &["namespace", "name"],
};

static STATUS: Struct = Struct {
    name: "CustomResourceDefinitionStatus",
    fields: &[
        ("conditions", Kind::List(&CONDITION, "CustomResourceDefinitionCondition")),
        ("acceptedNames", Kind::Struct(&NAMES)),
        ("storedVersions", Kind::Texts),
        ("observedGeneration", Kind::Int("int64")),
    ],
    always: &["conditions", "acceptedNames", "storedVersions"],
};

static CONDITION: Struct = Struct {
    name: "CustomResourceDefinitionCondition",
    fields: &[
        ("type", Kind::Named("v1.CustomResourceDefinitionConditionType")),
        ("status", Kind::Named("v1.ConditionStatus")),
        ("lastTransitionTime", Kind::Text),
        ("reason", Kind::Text),
        ("message", Kind::Text),
        ("observedGeneration", Kind::Int("int64")),
    ],
    always: &["type", "status"],
};

static RULE: Struct = Struct {
    name: "ValidationRule",
    fields: &[
        ("rule", Kind::Text),
        ("message", Kind::Text),
        ("messageExpression", Kind::Text),
        ("reason", Kind::Named("v1.FieldValueErrorReason")),
        ("fieldPath", Kind::Text),
        ("optionalOldSelf", Kind::OptionalBool),
    ],
    always: &["rule"],
};

static DOCS: Struct = Struct {
    name: "ExternalDocumentation",
    fields: &[("description", Kind::Text), ("url", Kind::Text)],
    always: &[],
};

static SCHEMA: Struct = Struct {
    name: "JSONSchemaProps",
    fields: &[
        ("id", Kind::Text),
        ("$schema", Kind::Named("v1.JSONSchemaURL")),
        ("$ref", Kind::Text),
        ("description", Kind::Text),
        ("type", Kind::Text),
        ("format", Kind::Text),
        ("title", Kind::Text),
        ("default", Kind::Any),
        ("maximum", Kind::Float),
        ("exclusiveMaximum", Kind::Bool),
        ("minimum", Kind::Float),
        ("exclusiveMinimum", Kind::Bool),
        ("maxLength", Kind::Int("int64")),
        ("minLength", Kind::Int("int64")),
        ("pattern", Kind::Text),
        ("maxItems", Kind::Int("int64")),
        ("minItems", Kind::Int("int64")),
        ("uniqueItems", Kind::Bool),
        ("multipleOf", Kind::Float),
        ("enum", Kind::AnyList),
        ("maxProperties", Kind::Int("int64")),
        ("minProperties", Kind::Int("int64")),
        ("required", Kind::Texts),
        ("items", Kind::SchemaOrList),
        ("allOf", Kind::List(&SCHEMA, "JSONSchemaProps")),
        ("oneOf", Kind::List(&SCHEMA, "JSONSchemaProps")),
        ("anyOf", Kind::List(&SCHEMA, "JSONSchemaProps")),
        ("not", Kind::Struct(&SCHEMA)),
        ("properties", Kind::Map(&SCHEMA, "map[string]v1.JSONSchemaProps")),
        ("additionalProperties", Kind::SchemaOrBool),
        ("patternProperties", Kind::Map(&SCHEMA, "map[string]v1.JSONSchemaProps")),
        ("dependencies", Kind::SchemaOrTexts),
        ("additionalItems", Kind::SchemaOrBool),
        ("definitions", Kind::Map(&SCHEMA, "v1.JSONSchemaDefinitions")),
        ("externalDocs", Kind::Struct(&DOCS)),
        ("example", Kind::Any),
        ("nullable", Kind::Bool),
        ("x-kubernetes-preserve-unknown-fields", Kind::OptionalBool),
        ("x-kubernetes-embedded-resource", Kind::Bool),
        ("x-kubernetes-int-or-string", Kind::Bool),
        ("x-kubernetes-list-map-keys", Kind::Texts),
        ("x-kubernetes-list-type", Kind::Text),
        ("x-kubernetes-map-type", Kind::Text),
        ("x-kubernetes-validations", Kind::List(&RULE, "ValidationRule")),
    ],
    always: &[],
};

/// Fields that are pointers in Go: an empty text or a zero in them means something and stays.
const POINTERS: &[&str] = &[
    "deprecationWarning",
    "labelSelectorPath",
    "url",
    "path",
    "port",
    "$ref",
    "maxLength",
    "minLength",
    "maxItems",
    "minItems",
    "maxProperties",
    "minProperties",
    "reason",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

struct Decoder<'r> {
    unknown: Option<&'r mut Vec<String>>,
}

/// Makes a `CustomResourceDefinition` what decoding and encoding would: unknown fields are dropped, with their paths
/// added to `unknown` in the order of the document, and so are empty values. Metadata is not looked at.
///
/// # Errors
/// The words of Go's JSON decoder about the first value of a wrong type.
pub fn decode(crd: &mut Value, unknown: Option<&mut Vec<String>>) -> Result<(), String> {
    let Value::Object(map) = crd else {
        return Err(format!(
            "json: cannot unmarshal {} into Go value of type v1.CustomResourceDefinition",
            json_word(crd)
        ));
    };
    Decoder { unknown }.fields(map, &ROOT, "", "")
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl Decoder<'_> {
    fn fields(
        &mut self,
        map: &mut Map<String, Value>,
        shape: &Struct,
        names: &str,
        place: &str,
    ) -> Result<(), String> {
        let mut failed = None;
        map.retain(|key, value| {
            if failed.is_some() {
                return true;
            }
            let place = join(place, key);
            let Some((name, kind)) = shape.fields.iter().find(|(name, _)| name == key) else {
                if let Some(unknown) = self.unknown.as_deref_mut() {
                    unknown.push(place);
                }
                return false;
            };
            if let Err(error) = self.value(value, kind, shape, &join(names, name), &place) {
                failed = Some(error);
                return true;
            }
            let always = shape.always.contains(name);
            if value.is_null() {
                if always {
                    if let Some(zero) = zero(kind) {
                        *value = zero;
                    }
                    return true;
                }
                return false;
            }
            always || POINTERS.contains(name) || !is_empty(value, kind)
        });
        if let Some(error) = failed {
            return Err(error);
        }
        for name in shape.always {
            if !map.contains_key(*name) {
                let kind = shape.fields.iter().find(|(field, _)| field == name).map(|(_, kind)| kind);
                let mut value = kind.and_then(zero).unwrap_or(Value::Null);
                if let (Some(Kind::Struct(shape)), Value::Object(map)) = (kind, &mut value) {
                    self.fields(map, shape, names, place)?;
                }
                map.insert((*name).to_owned(), value);
            }
        }
        Ok(())
    }

    fn value(
        &mut self,
        value: &mut Value,
        kind: &Kind,
        owner: &Struct,
        names: &str,
        place: &str,
    ) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        let wrong = |value: &Value, wanted: &str| {
            let word = match value {
                Value::Number(number) if wanted.starts_with("int") => format!("number {number}"),
                other => json_word(other).to_owned(),
            };
            Err(format!(
                "json: cannot unmarshal {word} into Go struct field {}.{names} of type {wanted}",
                owner.name
            ))
        };
        match kind {
            Kind::Text if !value.is_string() => wrong(value, "string"),
            Kind::Named(wanted) if !value.is_string() => wrong(value, wanted),
            Kind::Bool | Kind::OptionalBool if !value.is_boolean() => wrong(value, "bool"),
            Kind::Int(wanted) => {
                let fits = value.as_i64().is_some_and(|int| *wanted != "int32" || i32::try_from(int).is_ok());
                if fits { Ok(()) } else { wrong(value, wanted) }
            }
            Kind::Float if !value.is_number() => wrong(value, "float64"),
            Kind::Float => {
                crate::settle_numbers(value);
                Ok(())
            }
            Kind::Bytes => match value {
                Value::String(text) => bytes(text),
                other => wrong(other, "[]uint8"),
            },
            Kind::Texts => match value {
                Value::Array(list) => list.iter_mut().try_for_each(|item| match item {
                    Value::String(_) => Ok(()),
                    Value::Null => {
                        *item = Value::from("");
                        Ok(())
                    }
                    other => wrong(other, "string"),
                }),
                other => wrong(other, "[]string"),
            },
            Kind::AnyList if !value.is_array() => wrong(value, "[]v1.JSON"),
            Kind::Struct(shape) => match value {
                Value::Object(map) => self.fields(map, shape, names, place),
                other => wrong(other, &format!("v1.{}", shape.name)),
            },
            Kind::List(shape, name) => match value {
                Value::Array(list) => {
                    for (index, item) in list.iter_mut().enumerate() {
                        if item.is_null() {
                            *item = Value::Object(Map::new());
                        }
                        match item {
                            Value::Object(map) => {
                                self.fields(map, shape, names, &format!("{place}[{index}]"))?
                            }
                            other => return wrong(other, &format!("v1.{name}")),
                        }
                    }
                    Ok(())
                }
                other => wrong(other, &format!("[]v1.{name}")),
            },
            Kind::Map(shape, name) => match value {
                Value::Object(entries) => {
                    for (key, item) in entries.iter_mut() {
                        if item.is_null() {
                            *item = Value::Object(Map::new());
                        }
                        match item {
                            Value::Object(map) => self.fields(map, shape, names, &join(place, key))?,
                            other => return wrong(other, "v1.JSONSchemaProps"),
                        }
                    }
                    Ok(())
                }
                other => wrong(other, name),
            },
            Kind::SchemaOrBool => match value {
                Value::Object(map) => schema_apart(map),
                Value::Bool(_) => Ok(()),
                _ => Err("boolean or JSON schema expected".to_owned()),
            },
            Kind::SchemaOrList => match value {
                Value::Object(map) => schema_apart(map),
                Value::Array(list) => {
                    for item in list {
                        match item {
                            Value::Object(map) => schema_apart(map)?,
                            other => {
                                return Err(format!(
                                    "json: cannot unmarshal {} into Go value of type v1.JSONSchemaProps",
                                    json_word(other)
                                ));
                            }
                        }
                    }
                    Ok(())
                }
                _ => Ok(()),
            },
            Kind::SchemaOrTexts => match value {
                Value::Object(entries) => {
                    for item in entries.values_mut() {
                        if let Value::Object(map) = item {
                            schema_apart(map)?;
                        }
                    }
                    Ok(())
                }
                other => wrong(other, "v1.JSONSchemaDependencies"),
            },
            Kind::Text | Kind::Named(_) | Kind::Bool | Kind::OptionalBool | Kind::Any | Kind::AnyList => {
                Ok(())
            }
        }
    }
}

/// A schema where something else could stand is decoded by itself: it does not know where it is, and nobody is told
/// of unknown fields in it.
fn schema_apart(map: &mut Map<String, Value>) -> Result<(), String> {
    Decoder { unknown: None }.fields(map, &SCHEMA, "", "")
}

/// Whether a text is base64.
fn bytes(text: &str) -> Result<(), String> {
    use base64::{DecodeError, Engine as _, engine::general_purpose::STANDARD};
    let at = match STANDARD.decode(text) {
        Ok(_) => return Ok(()),
        Err(DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol { offset: at, .. }) => at,
        Err(_) => text.len(),
    };
    Err(format!("illegal base64 data at input byte {at}"))
}

fn zero(kind: &Kind) -> Option<Value> {
    match kind {
        Kind::Text | Kind::Named(_) => Some(Value::from("")),
        Kind::Bool => Some(Value::from(false)),
        Kind::Struct(_) => Some(Value::Object(Map::new())),
        _ => None,
    }
}

fn is_empty(value: &Value, kind: &Kind) -> bool {
    match (kind, value) {
        (Kind::Any | Kind::Struct(_) | Kind::OptionalBool | Kind::Float, _) => false,
        (Kind::SchemaOrBool | Kind::SchemaOrList, _) => false,
        (_, Value::String(text)) => text.is_empty(),
        (_, Value::Bool(flag)) => !flag,
        (_, Value::Array(list)) => list.is_empty(),
        (_, Value::Object(map)) => map.is_empty(),
        (_, Value::Number(number)) => number.as_i64() == Some(0),
        (_, Value::Null) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_are_told_in_the_order_of_the_document() {
        let mut crd = json!({"spec": {"versions": [{"name": "v1", "served": true, "storage": true, "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"x": {"type": "string", "pattren": "a", "nullable": false}}}}}],
            "colour": 1}});
        let mut unknown = Vec::new();
        decode(&mut crd, Some(&mut unknown)).unwrap();
        assert_eq!(unknown, ["spec.versions[0].schema.openAPIV3Schema.properties.x.pattren", "spec.colour"]);
        assert_eq!(
            crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/x"),
            Some(&json!({"type": "string"}))
        );
    }

    #[test]
    fn wrong_types_are_told_in_go_words() {
        let schema = |schema: Value| json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": {"a": {"properties": {"b": schema}}}}}}]}});
        for (mut crd, error) in [
            (
                schema(json!({"type": 5})),
                "json: cannot unmarshal number into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.properties.type of type string",
            ),
            (
                schema(json!({"minimum": "x"})),
                "json: cannot unmarshal string into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.properties.minimum of type float64",
            ),
            (
                schema(json!({"items": {"properties": {"c": {"type": 5}}}})),
                "json: cannot unmarshal number into Go struct field JSONSchemaProps.properties.type of type string",
            ),
            (
                json!({"spec": {"scope": 5}}),
                "json: cannot unmarshal number into Go struct field CustomResourceDefinitionSpec.spec.scope of type v1.ResourceScope",
            ),
            (
                json!({"spec": {"versions": [{"additionalPrinterColumns": [{"priority": 1.5}]}]}}),
                "json: cannot unmarshal number 1.5 into Go struct field CustomResourceColumnDefinition.spec.versions.additionalPrinterColumns.priority of type int32",
            ),
        ] {
            assert_eq!(decode(&mut crd, None).unwrap_err(), error);
        }
    }
}
