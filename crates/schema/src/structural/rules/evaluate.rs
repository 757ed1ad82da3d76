//! Evaluation of rules, with the messages of kube-apiserver.

use std::fmt::Write as _;

use k1s_cel::{EvalError, Value as Cel, Work};
use k1s_object::field::{ErrorKind, Errors, FieldError, Shown, quote};
use serde_json::Value;

use super::{Compiled, Expression, Reason, Rule, RuleError, Validator};
use crate::{
    go,
    structural::{
        Structural, Type,
        unchanged::{Correlation, OldItems, Pair},
    },
};

/// What all rules of an object may cost together.
pub(crate) const BUDGET: u64 = 10_000_000;

/// What they may cost and work together: as much again for what upstream's costs do not count.
pub const WORK: u64 = 2 * BUDGET;

/// Maximum length of the message that an expression gives.
const MAX_MESSAGE: usize = 5 * 1024;

const SPENT: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The results of rules.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) errors: Errors,
    /// Errors in values that an update does not change.
    pub(crate) warnings: Vec<String>,
    /// What remains of the budget; `None` if it was exceeded, or a rule could not be finished.
    pub(crate) remaining: Option<u64>,
}

/// A run over one object.
struct Run<'w> {
    found: Found,
    /// What remains of the budget.
    budget: u64,
    /// A bound on the rest of the work, which is exhausted like the budget.
    work: &'w Work,
}

/// The rules that follow are not evaluated.
struct Stop;

impl Validator {
    /// Evaluates the rules on a value at `path`, empty for a resource. `old`: the value before an update. `ratchet`:
    /// errors in values that an update does not change are only warnings.
    pub(crate) fn validate(
        &self,
        schema: &Structural,
        value: &Value,
        old: Option<&Value>,
        ratchet: bool,
        path: &str,
        (budget, work): (u64, &Work),
    ) -> Found {
        let mut run = Run { found: Found::default(), budget, work };
        let pair = old.filter(|_| ratchet).map(|old| Pair::new(schema, value, old));
        let correlation = Correlation { current: pair.as_ref(), nearest: None };
        let finished = run.node(self, schema, value, old, correlation, &mut path.to_owned());
        run.found.remaining = finished.is_ok().then_some(run.budget);
        run.found
    }
}

impl Run<'_> {
    fn node(
        &mut self,
        validator: &Validator,
        schema: &Structural,
        value: &Value,
        old: Option<&Value>,
        correlation: Correlation<'_, '_>,
        path: &mut String,
    ) -> Result<(), Stop> {
        // Rules about null are those of the surrounding schema.
        if value.is_null() {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        if !validator.compiled.is_empty() {
            self.rules(validator, schema, value, old, correlation, path)?;
        }
        match value {
            Value::Object(map) => {
                if let (Some(additional), Some(child)) = (&validator.additional, schema.additional_schema()) {
                    for (key, value) in map {
                        let length = path.len();
                        let _ = write!(path, "[{key}]");
                        self.field(additional, child, key, value, old, correlation, path)?;
                        path.truncate(length);
                    }
                }
                for (name, property) in &validator.properties {
                    let (Some(value), Some(child)) = (map.get(name.as_ref()), schema.property(name)) else {
                        continue;
                    };
                    let length = path.len();
                    if length > 0 {
                        path.push('.');
                    }
                    path.push_str(name);
                    self.field(property, child, name, value, old, correlation, path)?;
                    path.truncate(length);
                }
            }
            Value::Array(list) => {
                let (Some(items), Some(child)) = (&validator.items, schema.items()) else { return Ok(()) };
                let old_list = old.and_then(Value::as_array);
                let known = old_list.and_then(|old| OldItems::new(schema, old));
                for (index, item) in list.iter().enumerate() {
                    let length = path.len();
                    let _ = write!(path, "[{index}]");
                    let old = known.as_ref().and_then(|known| known.get(schema, item));
                    // Both follow the same old list, unless the value around has no old one to compare with.
                    let correlated = correlation.current.filter(|pair| pair.old().as_array() == old_list);
                    let pair = correlated.and_then(|pair| pair.item(item, old));
                    self.node(items, child, item, old, correlation.below(pair.as_ref()), path)?;
                    path.truncate(length);
                }
            }
            _ => {}
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the state of one walk")]
    fn field(
        &mut self,
        validator: &Validator,
        schema: &Structural,
        name: &str,
        value: &Value,
        old: Option<&Value>,
        correlation: Correlation<'_, '_>,
        path: &mut String,
    ) -> Result<(), Stop> {
        let old = old.and_then(|old| old.get(name));
        // The type of the resource itself is never unchanged: both objects were converted to it.
        if correlation.nearest.is_none() && matches!(name, "apiVersion" | "kind") {
            return self.node(validator, schema, value, old, Correlation::default(), path);
        }
        let pair = correlation.current.and_then(|pair| pair.field(name));
        self.node(validator, schema, value, old, correlation.below(pair.as_ref()), path)
    }

    fn invalid(&mut self, path: &str, schema: &Structural, detail: impl Into<String>) {
        let shown = Shown::Json(Value::from(kind_name(schema)));
        self.found.errors.push(FieldError::new(ErrorKind::Invalid, shown_path(path), shown, detail));
    }

    fn rules(
        &mut self,
        validator: &Validator,
        schema: &Structural,
        value: &Value,
        old: Option<&Value>,
        correlation: Correlation<'_, '_>,
        path: &str,
    ) -> Result<(), Stop> {
        if self.budget == 0 {
            self.invalid(path, schema, SPENT);
            return Err(Stop);
        }
        let Some(decl) = &validator.decl else {
            if let Some(Err(RuleError(why))) = validator.compiled.first().map(|compiled| &compiled.program) {
                self.invalid(path, schema, format!("rule compiler initialization error: {why}"));
            }
            return Ok(());
        };
        let uses_old = validator.compiled.iter().any(|compiled| compiled.uses_old_self);
        let scope = Scope { value, old: old.filter(|_| uses_old), uses_old, decl };
        for (rule, compiled) in schema.own_rules().iter().zip(&validator.compiled) {
            self.rule(rule, compiled, schema, &scope, correlation, path)?;
        }
        Ok(())
    }

    fn rule(
        &mut self,
        rule: &Rule,
        compiled: &Compiled,
        schema: &Structural,
        scope: &Scope<'_>,
        correlation: Correlation<'_, '_>,
        path: &str,
    ) -> Result<(), Stop> {
        let program = match &compiled.program {
            Ok(Some(program)) => program,
            Ok(None) => return Ok(()),
            Err(RuleError(why)) => {
                self.invalid(path, schema, format!("rule compile error: {why}"));
                return Ok(());
            }
        };
        // Rules about a change need something that was changed.
        if compiled.uses_old_self && scope.old.is_none() && !rule.optional_old_self {
            return Ok(());
        }
        let (result, cost) = scope.evaluate(program, rule.optional_old_self, self.work);
        let Some(remaining) = self.spend(cost) else {
            self.invalid(path, schema, SPENT);
            return Err(Stop);
        };
        self.budget = remaining;
        match result {
            Ok(Cel::Bool(true)) => Ok(()),
            Err(EvalError::CostLimit) => {
                let error = EvalError::CostLimit;
                self.invalid(path, schema, format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                    rule.label()
                ));
                Err(Stop)
            }
            Err(error) => {
                let words = error.to_string();
                let detail = if words.starts_with("no such overload") {
                    format!(
                        "'{words}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                        rule.label()
                    )
                } else {
                    format!("{words} evaluating rule: {}", rule.label())
                };
                self.invalid(path, schema, detail);
                Ok(())
            }
            Ok(_) => self.failed(rule, compiled, schema, scope, correlation, path),
        }
    }

    /// What remains of the budget after an evaluation; `None` if it is exhausted.
    fn spend(&self, cost: u64) -> Option<u64> {
        self.budget.checked_sub(cost).filter(|_| !self.work.is_exhausted())
    }

    /// Reports a rule that does not hold.
    fn failed(
        &mut self,
        rule: &Rule,
        compiled: &Compiled,
        schema: &Structural,
        scope: &Scope<'_>,
        correlation: Correlation<'_, '_>,
        path: &str,
    ) -> Result<(), Stop> {
        let field = match &rule.field_path {
            None => shown_path(path),
            Some(below) if path.is_empty() => below.to_string(),
            Some(below) => format!("{path}.{below}"),
        };
        let ratchets = !compiled.uses_old_self && correlation.is_unchanged();
        let message = match &compiled.message {
            Some(Ok(program)) => match self.message(program, rule, scope) {
                Ok(message) => message,
                Err(why) => {
                    let shown = Shown::Json(Value::from(kind_name(schema)));
                    self.add(ratchets, FieldError::new(ErrorKind::Invalid, field, shown, why));
                    return Err(Stop);
                }
            },
            _ => None,
        };
        let detail = message.unwrap_or_else(|| {
            if rule.message.is_empty() {
                format!("failed rule: {}", rule.label())
            } else {
                rule.label().to_owned()
            }
        });
        let shown = match schema.kind {
            Type::Object | Type::Array => Shown::Nothing,
            _ => go::shown(scope.value),
        };
        let error = match rule.reason {
            Reason::Invalid => FieldError::new(ErrorKind::Invalid, field, shown, detail),
            Reason::Forbidden => FieldError::forbidden(field, detail),
            Reason::Required => FieldError::required(field, detail),
            Reason::Duplicate => FieldError::new(ErrorKind::Duplicate, field, shown, ""),
        };
        self.add(ratchets, error);
        Ok(())
    }

    fn add(&mut self, ratchets: bool, error: FieldError) {
        if ratchets {
            self.found.warnings.push(error.to_string());
        } else {
            self.found.errors.push(error);
        }
    }

    /// The message that an expression gives; `None` if it gives none that can be used. An error ends the validation.
    fn message(
        &mut self,
        program: &Expression,
        rule: &Rule,
        scope: &Scope<'_>,
    ) -> Result<Option<String>, String> {
        // As upstream, `oldSelf` is not an optional here, even if it is one in the rule.
        let (result, cost) = scope.evaluate(program, false, self.work);
        let Some(remaining) = self.spend(cost) else {
            return Err(
                "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
                    .to_owned(),
            );
        };
        let text = match result {
            Ok(Cel::String(text)) => text,
            Err(EvalError::CostLimit) => {
                return Err(format!(
                    "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                    quote(&rule.message_expression)
                ));
            }
            Ok(_) | Err(_) => {
                self.budget = remaining;
                return Ok(None);
            }
        };
        self.budget = remaining;
        let text = text.trim();
        let usable = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
        Ok(usable.then(|| text.to_owned()))
    }
}

/// What rules see: the value, and the one before an update.
struct Scope<'v> {
    value: &'v Value,
    old: Option<&'v Value>,
    /// Whether any rule of the schema uses the old value; otherwise it is not defined.
    uses_old: bool,
    decl: &'v k1s_cel::DeclType,
}

impl<'v> Scope<'v> {
    fn evaluate(
        &self,
        program: &'v Expression,
        optional: bool,
        work: &Work,
    ) -> (Result<Cel<'v>, EvalError>, u64) {
        program.evaluate(self.decl, self.value, self.old, self.uses_old && optional, work)
    }
}

fn shown_path(path: &str) -> String {
    if path.is_empty() { "<nil>".to_owned() } else { path.to_owned() }
}

/// The type of a schema as errors show it.
fn kind_name(schema: &Structural) -> &'static str {
    schema.kind.name()
}
