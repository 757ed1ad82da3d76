//! `MutatingAdmissionPolicy`.

use k1s_cel::{Value as CelValue, Work, value::Object};
use serde_json::{Map, Value};

use super::{POLICY_BUDGET, common, ignores_failures, items};
use crate::expressions::{Budget, Compiled, Compiler, Conditions, Evaluator, Input, Matched, Purpose};

/// A compiled policy.
#[derive(Debug)]
pub struct MutatingPolicy {
    compiler: Compiler,
    conditions: Conditions,
    mutations: Vec<(Compiled, Purpose)>,
    /// Whether requests that the policy fails for are admitted as they are.
    pub ignores_failures: bool,
    /// Whether it is evaluated again if the object was changed after it.
    pub reinvoked: bool,
}

/// What a policy does to an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Mutation {
    /// To be merged into the object.
    Apply(Value),
    /// A JSON patch.
    Patch(Value),
}

impl MutatingPolicy {
    /// Compiles the spec of a policy. Expressions that do not compile fail when they are evaluated.
    pub fn compile(spec: &Value) -> MutatingPolicy {
        let (compiler, conditions) = common(spec);
        let mutations = items(spec, "mutations")
            .map(|item| {
                let (field, purpose) = match item["patchType"].as_str() {
                    Some("JSONPatch") => ("jsonPatch", Purpose::JsonPatch),
                    _ => ("applyConfiguration", Purpose::ApplyConfiguration),
                };
                let text = item[field]["expression"].as_str().unwrap_or_default();
                (compiler.compile(text, purpose), purpose)
            })
            .collect();
        let ignores_failures = ignores_failures(spec);
        let reinvoked = spec["reinvocationPolicy"] == "IfNeeded";
        MutatingPolicy { compiler, conditions, mutations, ignores_failures, reinvoked }
    }

    /// Whether a request matches the conditions; the error is for the client.
    pub fn matches(&self, input: Input<'_>, work: &Work) -> Result<bool, String> {
        if self.conditions.is_empty() {
            return Ok(true);
        }
        let evaluator = Evaluator::new(&self.compiler, Input { namespace: &Value::Null, ..input }, work);
        match self.conditions.matches(&evaluator) {
            Matched::Yes => Ok(true),
            Matched::No => Ok(false),
            Matched::Failed(_) if self.ignores_failures => Ok(false),
            Matched::Failed(why) => Err(why),
        }
    }

    /// The number of mutations. Each sees the object that those before it have made.
    pub fn len(&self) -> usize {
        self.mutations.len()
    }

    /// Whether there are no mutations.
    pub fn is_empty(&self) -> bool {
        self.mutations.is_empty()
    }

    /// Evaluates one mutation.
    pub fn evaluate(&self, index: usize, input: Input<'_>, work: &Work) -> Result<Mutation, String> {
        let Some((expression, purpose)) = self.mutations.get(index) else {
            return Err("policy evaluator is nil".into());
        };
        let evaluator = Evaluator::new(&self.compiler, input, work);
        let value = evaluator
            .evaluate(expression, &mut Budget::new(POLICY_BUDGET))
            .map_err(|failure| failure.to_string())?;
        match (purpose, value) {
            (Purpose::ApplyConfiguration, CelValue::Object(object)) => {
                check_names(&object, &CelValue::Object(object.clone()))?;
                let config = CelValue::Object(object).to_json().map_err(|error| error.to_string())?;
                Ok(Mutation::Apply(config))
            }
            (Purpose::JsonPatch, CelValue::List(list)) => {
                let operations: Result<Vec<Value>, String> = list
                    .iter()
                    .map(|item| match item {
                        Ok(CelValue::Object(object)) => operation(&object),
                        Ok(other) => Err(format!(
                            "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of {}",
                            other.type_name()
                        )),
                        Err(error) => Err(error.to_string()),
                    })
                    .collect();
                Ok(Mutation::Patch(Value::Array(operations?)))
            }
            (_, other) => Err(format!(
                "unsupported return type from ApplyConfiguration expression: {}",
                other.type_name()
            )),
        }
    }
}

/// An operation of a JSON patch.
fn operation(patch: &Object<'_>) -> Result<Value, String> {
    let mut operation = Map::new();
    for name in ["op", "path", "from"] {
        let text = patch.get(name).and_then(CelValue::as_str).unwrap_or_default();
        if name != "from" || !text.is_empty() {
            operation.insert(name.into(), text.into());
        }
    }
    if let Some(value) = patch.get("value") {
        if let CelValue::Object(object) = value {
            check_names(object, value)?;
        }
        let value = value.to_json().map_err(|error| {
            format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {error}")
        })?;
        operation.insert("value".into(), value);
    }
    Ok(Value::Object(operation))
}

/// Checks that objects are of the type of the field they are in: `Object.spec` in the field `spec` of an `Object`.
fn check_names(root: &Object<'_>, value: &CelValue<'_>) -> Result<(), String> {
    let mut errors = Vec::new();
    names(value, root.type_name(), &mut errors);
    if errors.is_empty() { Ok(()) } else { Err(format!("type mismatch: {}", errors.join("\n"))) }
}

fn names(value: &CelValue<'_>, wanted: &str, errors: &mut Vec<String>) {
    match value {
        CelValue::Object(object) => {
            if object.type_name() != wanted {
                errors.push(format!(
                    "unexpected type name {:?}, expected {wanted:?}, which matches field name path from root Object type",
                    object.type_name()
                ));
            }
            for (name, field) in object.fields() {
                names(field, &format!("{wanted}.{name}"), errors);
            }
        }
        CelValue::List(list) => list.iter().flatten().for_each(|item| names(&item, wanted, errors)),
        CelValue::Map(map) => {
            for item in map.keys().iter().filter_map(|key| map.get(key)).flatten() {
                names(&item, wanted, errors);
            }
        }
        _ => {}
    }
}
