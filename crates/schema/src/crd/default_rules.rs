//! Validation of defaults in a schema: they must conform to it.

use k1s_object::field::{Errors, FieldError};
use serde_json::{Map, Value};

use super::{below, sorted};
use crate::{go, structural::Structural};

/// A step from an object that is a resource to the current schema.
#[derive(Clone)]
enum Step<'s> {
    Field(&'s str),
    Item,
}

/// The errors in the defaults of the schema of a resource.
pub(super) fn check(schema: &Value, path: &str) -> Errors {
    let mut errors = Errors::new();
    let compiled = Structural::compile(schema);
    let at = Node { schema, compiled: &compiled };
    walk(at, path, true, at, &mut Vec::new(), false, &mut errors);
    errors
}

/// A schema with its compiled form.
#[derive(Clone, Copy)]
struct Node<'s> {
    schema: &'s Value,
    compiled: &'s Structural,
}

fn walk<'s>(
    node: Node<'s>,
    path: &str,
    is_root: bool,
    resource: Node<'s>,
    steps: &mut Vec<Step<'s>>,
    in_meta: bool,
    errors: &mut Errors,
) {
    let schema = node.schema;
    let embedded =
        is_root || schema.get("x-kubernetes-embedded-resource").and_then(Value::as_bool).unwrap_or_default();
    let mut own = Vec::new();
    let (resource, steps, in_meta) =
        if embedded { (node, &mut own, false) } else { (resource, steps, in_meta) };
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        check_default(node, default, &format!("{path}.default"), resource, steps, in_meta, embedded, errors);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object())
        && let Some(compiled) = node.compiled.items()
    {
        let items = Node { schema: items, compiled };
        steps.push(Step::Item);
        walk(items, &format!("{path}.items"), false, resource, steps, in_meta, errors);
        steps.pop();
    }
    for (name, property) in sorted(schema.get("properties")) {
        let in_meta = in_meta || (embedded && matches!(name, "metadata" | "apiVersion" | "kind"));
        let Some(compiled) = node.compiled.property(name) else { continue };
        let property = Node { schema: property, compiled };
        steps.push(Step::Field(name));
        walk(property, &below(path, name), false, resource, steps, in_meta, errors);
        steps.pop();
    }
}

#[expect(clippy::too_many_arguments, reason = "the state of one walk")]
fn check_default(
    node: Node<'_>,
    default: &Value,
    at: &str,
    resource: Node<'_>,
    steps: &[Step<'_>],
    in_meta: bool,
    embedded: bool,
    errors: &mut Errors,
) {
    let Node { schema, compiled } = node;
    if in_meta {
        let surrounding = resource.compiled;
        let mut object = surround(default, steps);
        let failed = match surrounding.coerce_embedded_root(&mut object) {
            Err(error) => Some(error.to_string()),
            Ok(()) => {
                let wrong: Vec<String> = surrounding
                    .check_embedded(&object, "", true)
                    .into_vec()
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                match wrong.as_slice() {
                    [] => None,
                    [one] => Some(one.clone()),
                    many => Some(format!("[{}]", many.join(", "))),
                }
            }
        };
        match failed {
            Some(error) => errors.push(FieldError::new(
                k1s_object::field::ErrorKind::Invalid,
                at,
                go::shown(default),
                format!("must result in valid metadata: {error}"),
            )),
            None => errors.extend(compiled.check_values(default, None, at, false).into_vec()),
        }
        return;
    }
    let mut pruned = default.clone();
    compiled.prune_value(&mut pruned);
    if pruned != *default {
        errors.push(FieldError::new(
            k1s_object::field::ErrorKind::Invalid,
            at,
            go::shown(default),
            "must not have unknown fields",
        ));
    }
    let mut coerced = default.clone();
    if let Err(error) = compiled.coerce_embedded(&mut coerced, at) {
        errors.push(*error);
        return;
    }
    let wrong = compiled.check_embedded(
        &coerced,
        at,
        embedded && schema.get("x-kubernetes-embedded-resource").is_some(),
    );
    if wrong.is_empty() {
        errors.extend(compiled.check_values(&coerced, None, at, false).into_vec());
    } else {
        errors.extend(wrong.into_vec());
    }
    // `x-kubernetes-validations` are not evaluated on defaults yet.
}

/// A value of the root type with `value` at the end of the steps.
fn surround(value: &Value, steps: &[Step<'_>]) -> Value {
    let mut object = value.clone();
    for step in steps.iter().rev() {
        object = match step {
            Step::Item => Value::Array(vec![object]),
            Step::Field(name) => {
                let mut map = Map::new();
                map.insert((*name).to_owned(), object);
                Value::Object(map)
            }
        };
    }
    if let Value::Object(map) = &mut object {
        map.entry("kind").or_insert_with(|| Value::from("Validation"));
        map.entry("apiVersion").or_insert_with(|| Value::from("validation/v1"));
    }
    object
}
