//! Validation of the rules in a definition: they must compile, and their estimated costs are limited.

use k1s_cel::{DeclKind, DeclType};
use k1s_object::field::{Errors, FieldError};
use serde_json::{Value, json};

use crate::{
    go,
    structural::{
        Structural,
        rules::{self, Compiled, RuleError},
    },
};

/// Maximum estimated cost of one rule, for as many values as it can be evaluated on.
const MAX_RULE_COST: u64 = 10_000_000;

/// Maximum estimated cost of all rules of a schema.
const MAX_TOTAL_COST: u64 = 100_000_000;

/// The most expensive rules that are named if all of them cost too much.
const MAX_NAMED: usize = 4;

/// The size of a request, which limits how many values it can have.
const MAX_REQUEST: u64 = 3 << 20;

/// A schema as rules see it.
#[derive(Clone)]
pub(super) struct Place<'s> {
    structural: &'s Structural,
    /// The declared type, if a schema around has rules.
    decl: Option<DeclType>,
    /// How many values of the schema an object has at most; `None` without a limit.
    cardinality: Option<u64>,
    root: bool,
    /// The path of the outermost schema around whose values of an update cannot be compared with old ones.
    uncorrelatable: Option<String>,
}

impl<'s> Place<'s> {
    pub(super) fn root(structural: &'s Structural) -> Place<'s> {
        Place { structural, decl: None, cardinality: Some(1), root: true, uncorrelatable: None }
    }

    fn child(&self, structural: &'s Structural, decl: Option<DeclType>, schema: &Value) -> Place<'s> {
        let most = max_elements(schema);
        Place {
            structural,
            decl,
            cardinality: self.cardinality.zip(most).map(|(outer, inner)| outer.saturating_mul(inner)),
            root: false,
            uncorrelatable: self.uncorrelatable.clone(),
        }
    }

    /// A property of the schema.
    pub(super) fn property(&self, name: &str, schema: &Value) -> Option<Place<'s>> {
        let child = self.structural.property(name)?;
        Some(self.child(child, rules::property_decl(self.decl.as_ref(), name), schema))
    }

    /// The schema of additional properties.
    pub(super) fn additional(&self, schema: &Value) -> Option<Place<'s>> {
        let child = self.structural.additional_schema()?;
        Some(self.child(child, rules::element_decl(self.decl.as_ref()), schema))
    }

    /// The schema of items, in a list at `path`.
    pub(super) fn items(&self, schema: &Value, path: &str) -> Option<Place<'s>> {
        let child = self.structural.items()?;
        let mut place = self.child(child, rules::element_decl(self.decl.as_ref()), schema);
        let is_map = schema.get("x-kubernetes-list-type").and_then(Value::as_str) == Some("map");
        if !is_map && place.uncorrelatable.is_none() {
            place.uncorrelatable = Some(path.to_owned());
        }
        Some(place)
    }

    /// Declares the type of the values if the schema has rules. Objects are declared anew, since errors name their
    /// types beginning at the schema of the rule.
    pub(super) fn enter(&mut self) {
        if self.structural.own_rules().is_empty() {
            return;
        }
        let has_names = self.decl.as_ref().is_none_or(|decl| {
            matches!(decl.kind(), DeclKind::Object(_) | DeclKind::List(..) | DeclKind::Map(_))
        });
        if has_names {
            self.decl =
                rules::decl_type(self.structural, self.root || self.structural.is_embedded_resource());
        }
    }
}

/// How many values a schema has for each of its own; `None` without a limit.
fn max_elements(schema: &Value) -> Option<u64> {
    let limit = |key: &str| {
        let limit = schema.get(key).and_then(Value::as_i64)?;
        Some(u64::try_from(limit).unwrap_or(0))
    };
    match schema.get("type").and_then(Value::as_str) {
        Some("object") if schema.get("additionalProperties").is_some() => limit("maxProperties"),
        Some("array") => limit("maxItems"),
        _ => Some(1),
    }
}

/// The estimated costs of the rules of a schema.
pub(super) struct Costs {
    /// Whether rules may cost more than the limit of one: they did before an update.
    tolerate: bool,
    total: u64,
    most_expensive: Vec<(String, u64)>,
}

impl Costs {
    pub(super) fn new(tolerate: bool) -> Costs {
        Costs { tolerate, total: 0, most_expensive: Vec::new() }
    }

    fn add(&mut self, path: &str, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost < MAX_TOTAL_COST / 100 {
            return;
        }
        self.most_expensive.push((path.to_owned(), cost));
        self.most_expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        self.most_expensive.truncate(MAX_NAMED);
    }

    /// The errors about all rules together, of the schema at `path`.
    pub(super) fn check_total(&self, path: &str) -> Errors {
        let mut errors = Errors::new();
        if self.total > MAX_TOTAL_COST {
            for (path, _) in &self.most_expensive {
                const DETAIL: &str = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
                errors.push(FieldError::forbidden(path.as_str(), DETAIL));
            }
            const WHAT: &str =
                "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
            errors.push(FieldError::forbidden(path, too_expensive(WHAT, self.total, MAX_TOTAL_COST)));
        }
        errors
    }

    /// Compiles the rules of a schema at `path`.
    pub(super) fn check(&mut self, place: &Place<'_>, written: &[Value], path: &str, errors: &mut Errors) {
        let Some(decl) = &place.decl else {
            errors.push(FieldError::new(
                k1s_object::field::ErrorKind::Internal,
                format!("{path}.x-kubernetes-validations"),
                k1s_object::field::Shown::Nothing,
                "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations",
            ));
            return;
        };
        for (index, (rule, written)) in place.structural.own_rules().iter().zip(written).enumerate() {
            let compiled = rules::compile(rule, decl);
            let at = |key: &str| format!("{path}.x-kubernetes-validations[{index}].{key}");
            let times = place
                .cardinality
                .unwrap_or_else(|| MAX_REQUEST / decl.min_serialized_size().saturating_add(1));
            let cost = compiled.cost.saturating_mul(times);
            self.limit(&at("rule"), "estimated rule cost", cost, errors);
            self.compiled(&compiled, written, &at, errors);
            if compiled.uses_old_self {
                if let Some(within) = &place.uncorrelatable {
                    errors.push(FieldError::invalid(
                        at("rule"),
                        &*rule.rule,
                        format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"),
                    ));
                }
            } else if let Some(optional) = written.get("optionalOldSelf").filter(|value| value.is_boolean()) {
                const DETAIL: &str = "may not be set if oldSelf is not used in rule";
                errors.push(FieldError::invalid(at("optionalOldSelf"), optional.clone(), DETAIL));
            }
        }
    }

    fn limit(&mut self, path: &str, what: &str, cost: u64, errors: &mut Errors) {
        if !self.tolerate && cost > MAX_RULE_COST {
            errors.push(FieldError::forbidden(path, too_expensive(what, cost, MAX_RULE_COST)));
        }
        self.add(path, cost);
    }

    fn compiled(
        &mut self,
        compiled: &Compiled,
        written: &Value,
        at: &dyn Fn(&str) -> String,
        errors: &mut Errors,
    ) {
        let invalid = |path: String, error: &RuleError| {
            let RuleError(detail) = error;
            FieldError::new(
                k1s_object::field::ErrorKind::Invalid,
                path,
                go::json(&shown(written)),
                detail.as_str(),
            )
        };
        if let Err(error) = &compiled.program {
            errors.push(invalid(at("rule"), error));
        }
        match &compiled.message {
            Some(Err(error)) => errors.push(invalid(at("messageExpression"), error)),
            Some(Ok(_)) => {
                let path = at("messageExpression");
                self.limit(&path, "estimated messageExpression cost", compiled.message_cost, errors);
            }
            None => {}
        }
    }
}

/// A rule as errors show it: with the names of Go's fields.
fn shown(rule: &Value) -> Value {
    let text = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default();
    json!({
        "Rule": text("rule"),
        "Message": text("message"),
        "MessageExpression": text("messageExpression"),
        "Reason": rule.get("reason").and_then(Value::as_str),
        "FieldPath": text("fieldPath"),
        "OptionalOldSelf": rule.get("optionalOldSelf").and_then(Value::as_bool),
    })
}

fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        // More digits, since the factor would be shown as 1.0.
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
