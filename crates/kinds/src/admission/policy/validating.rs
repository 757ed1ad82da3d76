//! `ValidatingAdmissionPolicy`.

use k1s_cel::{Value as CelValue, Work};
use serde_json::Value;

use super::{POLICY_BUDGET, common, ignores_failures, items, pairs};
use crate::expressions::{
    Budget, Compiled, Compiler, Conditions, Evaluator, Failure, Input, Matched, Purpose,
};

/// Longer messages of expressions are not used.
const MAX_MESSAGE: usize = 5 << 10;

/// A compiled policy.
#[derive(Debug)]
pub struct ValidatingPolicy {
    compiler: Compiler,
    conditions: Conditions,
    validations: Vec<Validation>,
    annotations: Vec<(String, Compiled)>,
    /// Whether the policy admits what it cannot evaluate.
    pub ignores_failures: bool,
}

#[derive(Debug)]
struct Validation {
    expression: Compiled,
    message: String,
    message_expression: Option<Compiled>,
    /// The reason of the Status; `Invalid` if empty.
    reason: String,
}

/// Why a policy denies a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The place of the validation in the policy.
    pub index: usize,
    /// The message for the client.
    pub message: String,
    /// The reason of the Status; empty if the policy could not be evaluated.
    pub reason: String,
}

/// The result of an audit annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Annotation {
    /// Key and value.
    Publish(String, String),
    /// The expression failed, which denies the request.
    Failed(String),
}

/// The result of a policy for one request, binding and parameter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// In the order of the validations.
    pub denials: Vec<Denial>,
    /// In the order of the audit annotations, without those that are null or empty.
    pub annotations: Vec<Annotation>,
    /// Whether the match conditions hold; an error if that is not known, nothing if there are none.
    pub conditions: Option<Result<bool, ()>>,
}

impl ValidatingPolicy {
    /// Compiles the spec of a policy. Expressions that do not compile fail when they are evaluated.
    pub fn compile(spec: &Value) -> ValidatingPolicy {
        let (compiler, conditions) = common(spec);
        let text =
            |item: &Value, name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let validations = items(spec, "validations")
            .map(|item| Validation {
                expression: compiler.compile(&text(item, "expression"), Purpose::Validation),
                message: text(item, "message"),
                message_expression: Some(text(item, "messageExpression"))
                    .filter(|text| !text.is_empty())
                    .map(|text| compiler.compile(&text, Purpose::Message)),
                reason: text(item, "reason"),
            })
            .collect();
        let annotations = pairs(spec, "auditAnnotations", ["key", "valueExpression"])
            .map(|(key, value)| (key.to_owned(), compiler.compile(value, Purpose::AuditAnnotation)))
            .collect();
        let ignores_failures = ignores_failures(spec);
        ValidatingPolicy { compiler, conditions, validations, annotations, ignores_failures }
    }

    /// Evaluates the policy, within a bound on the work of all policies of the request.
    pub fn evaluate(&self, input: Input<'_>, work: &Work) -> Outcome {
        let mut outcome = Outcome::default();
        if !self.conditions.is_empty() {
            // Match conditions have no namespace.
            let evaluator = Evaluator::new(&self.compiler, Input { namespace: &Value::Null, ..input }, work);
            let matched = self.conditions.matches(&evaluator);
            outcome.conditions = Some(match &matched {
                Matched::Yes => Ok(true),
                Matched::No => Ok(false),
                Matched::Failed(_) => Err(()),
            });
            match matched {
                Matched::Yes => {}
                Matched::Failed(why) if !self.ignores_failures => {
                    outcome.denials.push(Denial { index: 0, message: why, reason: String::new() });
                    return outcome;
                }
                Matched::No | Matched::Failed(_) => return outcome,
            }
        }
        let evaluator = Evaluator::new(&self.compiler, input, work);
        if let Err(why) = self.validate(&evaluator, &mut outcome.denials) {
            // Nothing counts once the budget is exhausted.
            outcome.denials.clear();
            if !self.ignores_failures {
                outcome.denials.push(Denial { index: 0, message: why, reason: String::new() });
            }
            return outcome;
        }
        self.annotate(&evaluator, &mut outcome);
        outcome
    }

    /// Evaluates the validations; the error is that of an exhausted budget.
    fn validate<'a>(&'a self, evaluator: &Evaluator<'a>, denials: &mut Vec<Denial>) -> Result<(), String> {
        let mut budget = Budget::new(POLICY_BUDGET);
        for (index, validation) in self.validations.iter().enumerate() {
            let (message, reason) = match evaluator.evaluate(&validation.expression, &mut budget) {
                Ok(CelValue::Bool(true)) => continue,
                Ok(_) => {
                    let message = validation.message(evaluator, &mut budget)?;
                    let reason = Some(validation.reason.as_str()).filter(|reason| !reason.is_empty());
                    (message, reason.unwrap_or("Invalid").to_owned())
                }
                Err(Failure::OutOfBudget(why)) => return Err(why),
                Err(Failure::Expression(_)) if self.ignores_failures => continue,
                Err(Failure::Expression(why)) => (why, String::new()),
            };
            denials.push(Denial { index, message, reason });
        }
        Ok(())
    }

    fn annotate<'a>(&'a self, evaluator: &Evaluator<'a>, outcome: &mut Outcome) {
        let mut budget = Budget::new(POLICY_BUDGET);
        for (key, expression) in &self.annotations {
            let found = match evaluator.evaluate(expression, &mut budget) {
                Ok(CelValue::String(text)) if text.trim().is_empty() => continue,
                Ok(CelValue::String(text)) => Annotation::Publish(key.clone(), text.trim().to_owned()),
                Ok(_) => continue,
                Err(_) if self.ignores_failures => continue,
                Err(why) => Annotation::Failed(why.to_string()),
            };
            outcome.annotations.push(found);
        }
    }
}

impl Validation {
    /// The message of a validation that does not hold: computed, fixed, or the expression.
    fn message<'a>(&'a self, evaluator: &Evaluator<'a>, budget: &mut Budget) -> Result<String, String> {
        let computed = match &self.message_expression {
            None => None,
            Some(expression) => match evaluator.evaluate(expression, budget) {
                Ok(CelValue::String(text)) => Some(text.trim().to_owned()),
                Ok(_) | Err(Failure::Expression(_)) => None,
                Err(Failure::OutOfBudget(why)) => return Ok(format!("failed messageExpression: {why}")),
            },
        };
        let fits = |text: &String| !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
        Ok(match computed.filter(fits) {
            Some(text) => text,
            None if !self.message.trim().is_empty() => self.message.trim().to_owned(),
            None => format!("failed expression: {}", self.expression.text().trim()),
        })
    }
}
