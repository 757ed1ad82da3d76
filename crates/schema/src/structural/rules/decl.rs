//! The types that rules see: a schema as a declared type of CEL, with the largest sizes that values can have.

use std::sync::Arc;

use k1s_cel::{DeclType, Field, ListType, ObjectType, escape};

use super::super::{Additional, ListType as SchemaListType, Structural, Type, formats::Format};

/// Maximum size of a request, as upstream's estimates assume it.
pub(super) const MAX_REQUEST: u64 = 3 << 20;

/// Maximum length of `metadata.name`.
const MAX_NAME: u64 = 253;

/// The declared type of a schema; `None` if rules cannot see its values. The root of a resource always has
/// `apiVersion`, `kind`, `metadata.name` and `metadata.generateName`.
pub(crate) fn decl_type(schema: &Structural, root: bool) -> Option<DeclType> {
    named(schema, root, &mut "selfType".to_owned())
}

fn named(schema: &Structural, root: bool, name: &mut String) -> Option<DeclType> {
    let decl = unnullable(schema, root, name)?;
    Some(if schema.nullable { decl.nullable() } else { decl })
}

fn bound(limit: i64) -> u64 {
    u64::try_from(limit).unwrap_or(0)
}

fn unnullable(schema: &Structural, root: bool, name: &mut String) -> Option<DeclType> {
    let limits = schema.limits.as_deref();
    let max_length = limits.and_then(|limits| limits.max_length).map(bound);
    if schema.int_or_string {
        return Some(DeclType::int_or_string(max_length.map_or(MAX_REQUEST - 2, in_bytes)));
    }
    match schema.kind {
        Type::Array => {
            let items = below(name, "@idx", |name| named(schema.items()?, schema.items()?.embedded, name))?;
            let most = limits.and_then(|limits| limits.max_items).map(bound);
            let most = most.unwrap_or_else(|| (MAX_REQUEST - 2) / (items.min_serialized_size() + 1));
            Some(DeclType::list(items, most, list_type(schema)))
        }
        Type::Object => {
            if let Additional::Schema(additional) = &schema.additional {
                let values = below(name, "@elem", |name| named(additional, additional.embedded, name))?;
                let most = limits.and_then(|limits| limits.max_properties).map(bound);
                let most = most.unwrap_or_else(|| (MAX_REQUEST - 2) / (values.min_serialized_size() + 6));
                return Some(DeclType::map(values, most));
            }
            Some(object(schema, root, name))
        }
        Type::String => Some(string(schema, max_length)),
        Type::Boolean => Some(DeclType::bool()),
        Type::Number => Some(DeclType::double()),
        Type::Integer => Some(DeclType::int()),
        Type::Any => None,
    }
}

/// The most bytes of so many characters.
fn in_bytes(characters: u64) -> u64 {
    characters.saturating_mul(4)
}

fn below<T>(name: &mut String, step: &str, make: impl FnOnce(&mut String) -> T) -> T {
    let length = name.len();
    name.push('.');
    name.push_str(step);
    let made = make(name);
    name.truncate(length);
    made
}

fn list_type(schema: &Structural) -> ListType {
    match schema.list_type {
        Some(SchemaListType::Set) => ListType::Set,
        Some(SchemaListType::Map) => {
            let keys: Vec<Box<str>> = schema.list_map_keys().map(Box::from).collect();
            ListType::Map(Arc::from(keys))
        }
        Some(SchemaListType::Atomic) | None => ListType::Atomic,
    }
}

fn string(schema: &Structural, max_length: Option<u64>) -> DeclType {
    let limits = schema.limits.as_deref();
    let format = limits.and_then(|limits| match limits.format {
        Some(Format::Text(_, name)) => Some(name),
        _ => None,
    });
    match format {
        Some("byte") => DeclType::bytes(max_length.unwrap_or(MAX_REQUEST - 2)),
        Some("duration") => DeclType::duration(),
        Some("date") => DeclType::date(),
        Some("date-time") => DeclType::date_time(),
        _ => {
            let longest = |limits: &super::super::Limits| {
                let lengths =
                    limits.values.iter().filter_map(|value| value.as_str()).map(|text| text.len() as u64);
                (!limits.values.is_empty()).then(|| lengths.max().unwrap_or_default())
            };
            let most = max_length.map(in_bytes).or_else(|| limits.and_then(longest));
            DeclType::string(most.unwrap_or(MAX_REQUEST - 2))
        }
    }
}

fn object(schema: &Structural, root: bool, name: &mut String) -> DeclType {
    let required = |property: &str| {
        schema.limits.as_deref().is_some_and(|limits| limits.required.iter().any(|name| **name == *property))
    };
    // An object is at least `{}`.
    let mut shortest = 2;
    let mut fields = Vec::new();
    let mut add = |fields: &mut Vec<Field>, property: &str, decl: Option<DeclType>, has_default: bool| {
        if let Some(decl) = &decl
            && required(property)
            && !has_default
        {
            shortest += property.len() as u64 + decl.min_serialized_size() + 4;
        }
        // Properties that rules cannot name, or not look into, are still compared with their object.
        let identifier = escape(property).filter(|_| decl.is_some());
        fields.push(Field {
            name: identifier.map_or_else(|| format!("@{property}").into(), String::into_boxed_str),
            json: property.into(),
            decl: decl.unwrap_or_else(DeclType::preserved),
        });
    };
    let with_meta = root && !has_meta(schema);
    for (property, child) in schema.properties() {
        if with_meta && matches!(property, "kind" | "apiVersion" | "metadata") {
            continue;
        }
        let step = escape(property).unwrap_or_default();
        let decl = below(name, &step, |name| named(child, child.embedded, name));
        add(&mut fields, property, decl, child.default.is_some());
    }
    if with_meta {
        for property in ["kind", "apiVersion"] {
            add(&mut fields, property, Some(DeclType::string(MAX_REQUEST - 2)), false);
        }
        let metadata = below(name, "metadata", |name| metadata(schema, name));
        add(&mut fields, "metadata", Some(metadata), false);
    }
    DeclType::object(ObjectType::new(name, fields), shortest)
}

/// Whether a schema declares everything that the root of a resource has.
fn has_meta(schema: &Structural) -> bool {
    let is = |schema: &Structural, name: &str, kind: Type| {
        schema.property(name).is_some_and(|property| property.kind == kind)
    };
    is(schema, "kind", Type::String)
        && is(schema, "apiVersion", Type::String)
        && is(schema, "metadata", Type::Object)
        && schema.property("metadata").is_some_and(|metadata| {
            is(metadata, "name", Type::String) && is(metadata, "generateName", Type::String)
        })
}

/// The metadata that rules see: the name and the prefix that it is generated from.
fn metadata(schema: &Structural, name: &str) -> DeclType {
    let declared = |property: &str| {
        let limits = schema.property("metadata")?.property(property)?.limits.as_deref()?;
        limits.max_length.map(bound)
    };
    // A generated name has at least one more character than its prefix.
    let fields = [("name", MAX_NAME), ("generateName", MAX_NAME - 1)].map(|(property, most)| {
        let length = declared(property).map_or(most, |declared| declared.min(most));
        Field { name: property.into(), json: property.into(), decl: DeclType::string(in_bytes(length)) }
    });
    DeclType::object(ObjectType::new(name, fields.into()), 2)
}
