//! Validation of defaults in a schema: they must conform to it.

use k1s_cel::Work;
use k1s_object::field::{Errors, FieldError};
use serde_json::{Map, Value};

use super::{below, sorted};
use crate::{
    go,
    structural::{
        Structural,
        rules::{BUDGET, Validator, WORK},
    },
};

/// A step from an object that is a resource to the current schema.
#[derive(Clone)]
enum Step<'s> {
    Field(&'s str),
    Item,
}

/// The errors in the defaults of the schema of a resource.
pub(super) fn check(schema: &Value, compiled: &Structural, path: &str) -> Errors {
    let errors = Errors::new();
    let mut has_defaults = false;
    super::visit(schema, &mut |schema| has_defaults |= schema.get("default").is_some());
    if !has_defaults {
        return errors;
    }
    let at = Node { schema, compiled, validator: compiled.validator() };
    let mut walk = Walk { errors, budget: Some(BUDGET), work: Work::new(WORK) };
    walk.node(at, path, true, at, &mut Vec::new(), false);
    walk.errors
}

struct Walk {
    errors: Errors,
    /// What the rules about defaults may still cost; `None` after it was exceeded, which ends the walk.
    budget: Option<u64>,
    work: Work,
}

/// A schema with its compiled form.
#[derive(Clone, Copy)]
struct Node<'s> {
    schema: &'s Value,
    compiled: &'s Structural,
    /// The compiled rules, if the schema or one below it has some.
    validator: Option<&'s Validator>,
}

impl Walk {
    fn node<'s>(
        &mut self,
        node: Node<'s>,
        path: &str,
        is_root: bool,
        resource: Node<'s>,
        steps: &mut Vec<Step<'s>>,
        in_meta: bool,
    ) {
        let schema = node.schema;
        let embedded = is_root
            || schema.get("x-kubernetes-embedded-resource").and_then(Value::as_bool).unwrap_or_default();
        let mut own = Vec::new();
        let (resource, steps, in_meta) =
            if embedded { (node, &mut own, false) } else { (resource, steps, in_meta) };
        if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
            self.default(node, default, &format!("{path}.default"), resource, steps, in_meta, embedded);
            if self.budget.is_none() {
                return;
            }
        }
        if let Some(items) = schema.get("items").filter(|items| items.is_object())
            && let Some(compiled) = node.compiled.items()
        {
            let validator = node.validator.and_then(Validator::items);
            let items = Node { schema: items, compiled, validator };
            steps.push(Step::Item);
            self.node(items, &format!("{path}.items"), false, resource, steps, in_meta);
            steps.pop();
        }
        for (name, property) in sorted(schema.get("properties")) {
            let in_meta = in_meta || (embedded && matches!(name, "metadata" | "apiVersion" | "kind"));
            let Some(compiled) = node.compiled.property(name) else { continue };
            let validator = node.validator.and_then(|validator| validator.property(name));
            let property = Node { schema: property, compiled, validator };
            steps.push(Step::Field(name));
            self.node(property, &below(path, name), false, resource, steps, in_meta);
            steps.pop();
            if self.budget.is_none() {
                return;
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the state of one walk")]
    fn default(
        &mut self,
        node: Node<'_>,
        default: &Value,
        at: &str,
        resource: Node<'_>,
        steps: &[Step<'_>],
        in_meta: bool,
        embedded: bool,
    ) {
        let errors = &mut self.errors;
        let Node { schema, compiled, .. } = node;
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
                None => self.values(node, default, at),
            }
            return;
        }
        let mut pruned = default.clone();
        compiled.prune_value(&mut pruned);
        let has_unknown = pruned != *default;
        let mut coerced = default.clone();
        let failed = compiled.coerce_embedded(&mut coerced, at).err();
        if has_unknown {
            errors.push(FieldError::new(
                k1s_object::field::ErrorKind::Invalid,
                at,
                // As upstream, without unknown fields of metadata.
                go::shown(&coerced),
                "must not have unknown fields",
            ));
        }
        if let Some(error) = failed {
            errors.push(*error);
            return;
        }
        let wrong = compiled.check_embedded(
            &coerced,
            at,
            embedded && schema.get("x-kubernetes-embedded-resource").is_some(),
        );
        if wrong.is_empty() {
            self.values(node, &coerced, at);
        } else {
            errors.extend(wrong.into_vec());
        }
    }

    /// Checks the values of a default, and then its rules: as the object of an update that changes nothing, and as a
    /// new one.
    fn values(&mut self, node: Node<'_>, default: &Value, at: &str) {
        let wrong = node.compiled.check_values(default, None, at, false);
        if !wrong.is_empty() {
            self.errors.extend(wrong.into_vec());
            return;
        }
        let Some(validator) = node.validator else { return };
        let budget = self.budget.unwrap_or_default();
        let found =
            validator.validate(node.compiled, default, Some(default), false, at, (budget, &self.work));
        self.budget = found.remaining;
        if !found.errors.is_empty() {
            self.errors.extend(found.errors.into_vec());
            return;
        }
        let found = validator.validate(node.compiled, default, None, false, at, (budget, &self.work));
        self.errors.extend(found.errors.into_vec());
        // Of both, the one that cost more.
        self.budget = self.budget.min(found.remaining);
    }
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
