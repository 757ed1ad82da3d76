//! Checks of expressions against the schemas of the kinds that they are for.
//!
//! When a policy runs, objects have no types, because it may be for any kind. What a typing mistake would do then is only known
//! with an object that has it. So the expressions are also checked once against the published schema of each kind that the rules
//! name; what is found is a warning.

use k1s_cel::{DeclType, Env, Field, ListType, ObjectType, Type, escape};
use serde_json::Value;

use super::{
    compile::{declared, with_variables},
    environment,
};
use crate::openapi;

/// The declared type of a published (`OpenAPI` v3) schema; `None` if expressions cannot see its values. References are those of
/// published documents to types of the table. `name` is the name of the type in messages.
pub fn decl_type(schema: &Value, name: &str) -> Option<DeclType> {
    build(schema, name, &mut Vec::new())
}

fn build(schema: &Value, name: &str, inside: &mut Vec<String>) -> Option<DeclType> {
    if let Some(reference) = reference(schema) {
        // A type inside of itself is an object without fields.
        if inside.iter().any(|outer| outer == reference) {
            return Some(object(name, Vec::new()));
        }
        let schema = openapi::component(reference)?;
        inside.push(reference.to_owned());
        let found = build(&schema, name, inside);
        inside.pop();
        return found;
    }
    if schema["format"] == "int-or-string" || schema["x-kubernetes-int-or-string"] == true {
        return Some(DeclType::int_or_string(u64::MAX));
    }
    Some(match schema["type"].as_str()? {
        "array" => {
            let items = build(schema.get("items")?, &format!("{name}.@idx"), inside)?;
            DeclType::list(items, u64::MAX, ListType::Atomic)
        }
        "object" => match schema.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) => DeclType::map(build(values, &format!("{name}.@elem"), inside)?, u64::MAX),
            None => {
                let mut fields = Vec::new();
                for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
                    let Some(field) = escape(property) else { continue };
                    if let Some(decl) = build(schema, &format!("{name}.{field}"), inside) {
                        fields.push(Field { name: field.into(), json: property.as_str().into(), decl });
                    }
                }
                object(name, fields)
            }
        },
        "string" => match schema["format"].as_str() {
            Some("byte") => DeclType::bytes(u64::MAX),
            Some("duration") => DeclType::duration(),
            Some("date") => DeclType::date(),
            Some("date-time") => DeclType::date_time(),
            _ => DeclType::string(u64::MAX),
        },
        "boolean" => DeclType::bool(),
        "number" => DeclType::double(),
        "integer" => DeclType::int(),
        _ => return None,
    })
}

fn object(name: &str, fields: Vec<Field>) -> DeclType {
    DeclType::object(ObjectType::new(name, fields), 2)
}

/// The name of the referenced schema, also of one that is wrapped to keep its description.
fn reference(schema: &Value) -> Option<&str> {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => reference.rsplit('/').next(),
        None => schema.get("allOf")?.as_array()?.iter().find_map(reference),
    }
}

/// Checks the expressions of a policy against one kind.
#[derive(Debug)]
pub struct TypeCheck {
    env: Env,
}

impl TypeCheck {
    /// For objects of a type, and parameters if the policy has any. A type that is not known is any type.
    pub fn new<'v>(
        object: Option<&DeclType>,
        params: Option<Option<&DeclType>>,
        variables: impl IntoIterator<Item = (&'v str, &'v str)>,
    ) -> TypeCheck {
        let of = |decl: Option<&DeclType>| decl.map_or(Type::Dyn, |decl| decl.cel().clone());
        let base = environment::typed(&of(object), params.map(of).as_ref());
        let mut types = Vec::new();
        for (name, text) in variables {
            let found = with_variables(&base, &types).compile(text);
            types.push((name.to_owned(), declared(found.as_ref().ok().map(k1s_cel::Ast::output_type))));
        }
        TypeCheck { env: with_variables(&base, &types) }
    }

    /// What is wrong with an expression.
    pub fn check(&self, text: &str) -> Option<String> {
        self.env.compile(text).err().map(|error| error.to_string())
    }
}
