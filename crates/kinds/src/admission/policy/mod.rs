//! `ValidatingAdmissionPolicy` and `MutatingAdmissionPolicy`: compiled once, and evaluated for each binding and parameter.
//! Which requests a policy matches, and its parameters, are the server's concern.

mod mutating;
#[cfg(test)]
mod tests;
mod type_check;
mod validating;

use serde_json::Value;

pub use mutating::{MutatingPolicy, Mutation};
pub use type_check::{CheckedKind, expression_warnings, rules_to_check};
pub use validating::{Annotation, Denial, Outcome, ValidatingPolicy};

use crate::expressions::{Compiler, Conditions, Scope};

/// What the expressions of a policy may cost together, for each binding and parameter.
const POLICY_BUDGET: u64 = 10_000_000;

/// Whether errors of an object with a `failurePolicy` are to be ignored.
pub fn ignores_failures(spec: &Value) -> bool {
    spec["failurePolicy"] == "Ignore"
}

/// The texts of two fields of the items of a list.
fn pairs<'v>(
    spec: &'v Value,
    list: &str,
    [name, value]: [&'static str; 2],
) -> impl Iterator<Item = (&'v str, &'v str)> {
    let text = |item: &'v Value, field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default();
    items(spec, list).map(move |item| (text(item, name), text(item, value)))
}

fn items<'v>(spec: &'v Value, list: &str) -> impl Iterator<Item = &'v Value> {
    spec.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default().iter()
}

/// The compiler of a policy and its match conditions.
fn common(spec: &Value) -> (Compiler, Conditions) {
    let params = spec.get("paramKind").is_some_and(|kind| !kind.is_null());
    let scope = Scope { params, authorizer: true, patches: false };
    let mut compiler = Compiler::of_policy(scope);
    for (name, text) in pairs(spec, "variables", ["name", "expression"]) {
        compiler.add_variable(name, text);
    }
    // As upstream: conditions are compiled apart, without the variables.
    let plain = Compiler::new(scope);
    let conditions = Conditions::compile(&plain, pairs(spec, "matchConditions", ["name", "expression"]));
    (compiler, conditions)
}
