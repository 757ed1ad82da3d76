//! `x-kubernetes-validations`: rules in CEL, compiled on first use, and evaluated on every write.

mod decl;
mod evaluate;
mod program;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use k1s_cel::{DeclKind, DeclType};
use serde_json::Value;

pub(crate) use decl::decl_type;
pub(crate) use evaluate::BUDGET;
pub use evaluate::WORK;
pub(crate) use program::{Compiled, Expression, RuleError, compile};

use super::{Structural, Type};

/// The `reason` of the errors of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

/// A rule as written.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) rule: Box<str>,
    pub(crate) message: Box<str>,
    pub(crate) message_expression: Box<str>,
    pub(crate) reason: Reason,
    /// The path of the field that the error names, relative to the value.
    field_path: Option<Box<str>>,
    pub(crate) optional_old_self: bool,
}

impl Rule {
    /// The text that stands for the rule in errors.
    fn label(&self) -> &str {
        if self.message.is_empty() { self.rule.trim() } else { self.message.trim() }
    }
}

/// The rules of a schema. Those of the root have the compiled rules of the whole schema as well.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    own: Box<[Rule]>,
    compiled: OnceLock<Option<Arc<Validator>>>,
}

impl Rules {
    /// The rules in the JSON of a schema.
    pub(super) fn read(schema: &serde_json::Map<String, Value>, whole: &Value) -> Option<Box<Rules>> {
        let rules = schema.get("x-kubernetes-validations")?.as_array().filter(|rules| !rules.is_empty())?;
        let text =
            |rule: &Value, key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let own = rules
            .iter()
            .map(|rule| {
                let path = text(rule, "fieldPath");
                let reached = (!path.is_empty()).then(|| crate::field_path::follow(&path, whole, true).ok());
                Rule {
                    rule: text(rule, "rule").into(),
                    message: text(rule, "message").into(),
                    message_expression: text(rule, "messageExpression").into(),
                    reason: match rule.get("reason").and_then(Value::as_str) {
                        Some("FieldValueForbidden") => Reason::Forbidden,
                        Some("FieldValueRequired") => Reason::Required,
                        Some("FieldValueDuplicate") => Reason::Duplicate,
                        _ => Reason::Invalid,
                    },
                    field_path: reached.flatten().map(|reached| reached.normal.into()),
                    optional_old_self: rule
                        .get("optionalOldSelf")
                        .and_then(Value::as_bool)
                        .unwrap_or_default(),
                }
            })
            .collect();
        Some(Box::new(Rules { own, compiled: OnceLock::new() }))
    }

    /// The approximate memory of the rules as written in bytes.
    pub(super) fn memory(&self) -> usize {
        let texts = |rule: &Rule| rule.rule.len() + rule.message.len() + rule.message_expression.len();
        size_of::<Rules>() + self.own.iter().map(|rule| size_of::<Rule>() + texts(rule)).sum::<usize>()
    }
}

/// The compiled rules of a schema and of the schemas below it. Schemas without rules have none.
#[derive(Debug, Default)]
pub(crate) struct Validator {
    decl: Option<DeclType>,
    compiled: Box<[Compiled]>,
    properties: Box<[(Arc<str>, Validator)]>,
    additional: Option<Box<Validator>>,
    items: Option<Box<Validator>>,
    /// Whether one of these rules uses `oldSelf`.
    uses_old_self: bool,
}

impl Structural {
    /// The rules of this schema as written.
    pub(crate) fn own_rules(&self) -> &[Rule] {
        self.rules.as_deref().map_or(&[], |rules| &rules.own)
    }

    /// Whether this schema or one below it has rules.
    pub(crate) fn has_rules(&self) -> bool {
        !self.own_rules().is_empty()
            || self.properties().any(|(_, child)| child.has_rules())
            || self.items().is_some_and(Structural::has_rules)
            || self.additional_schema().is_some_and(Structural::has_rules)
    }

    pub(crate) fn additional_schema(&self) -> Option<&Structural> {
        match &self.additional {
            super::Additional::Schema(schema) => Some(schema),
            _ => None,
        }
    }

    /// Whether the schema of a resource has rules.
    pub fn evaluates_rules(&self) -> bool {
        self.rules.is_some()
    }

    /// Whether the schema of a resource has rules that use `oldSelf`: they are evaluated on values that do not change, too.
    pub fn compares_with_old(&self) -> bool {
        self.validator().is_some_and(|validator| validator.uses_old_self)
    }

    /// Marks the root of a schema that has rules anywhere, so that others need not be searched.
    pub(super) fn mark_rules(&mut self) {
        if self.rules.is_none() && self.has_rules() {
            self.rules = Some(Box::default());
        }
    }

    /// The compiled rules of the schema of a resource; they are compiled on first use.
    pub(crate) fn validator(&self) -> Option<&Validator> {
        let rules = self.rules.as_deref()?;
        rules.compiled.get_or_init(|| Validator::new(self, true).map(Arc::new)).as_deref()
    }
}

/// The declared type of a property, if rules see it.
pub(crate) fn property_decl(decl: Option<&DeclType>, name: &str) -> Option<DeclType> {
    match decl?.kind() {
        DeclKind::Object(object) => {
            let field = object.property(name)?;
            // Names that cannot be written in rules begin with this.
            let seen = !field.name.starts_with('@') && !matches!(field.decl.kind(), DeclKind::Preserved);
            seen.then(|| field.decl.clone())
        }
        _ => None,
    }
}

/// The declared type of the items of a list or the values of a map.
pub(crate) fn element_decl(decl: Option<&DeclType>) -> Option<DeclType> {
    match decl?.kind() {
        DeclKind::List(element, _) | DeclKind::Map(element) => Some(element.clone()),
        _ => None,
    }
}

impl Validator {
    /// The rules of a property.
    pub(crate) fn property(&self, name: &str) -> Option<&Validator> {
        let at = self.properties.binary_search_by(|(key, _)| key.as_ref().cmp(name)).ok()?;
        self.properties.get(at).map(|(_, validator)| validator)
    }

    /// The rules of items.
    pub(crate) fn items(&self) -> Option<&Validator> {
        self.items.as_deref()
    }

    /// Compiles the rules of a schema; `root`: of a resource.
    pub(crate) fn new(schema: &Structural, root: bool) -> Option<Validator> {
        if !schema.has_rules() {
            return None;
        }
        Validator::below(schema, decl_type(schema, root))
    }

    fn below(schema: &Structural, decl: Option<DeclType>) -> Option<Validator> {
        let compiled: Box<[Compiled]> = schema
            .own_rules()
            .iter()
            .map(|rule| match &decl {
                Some(decl) => compile(rule, decl),
                None => Compiled::failed("failed to convert to declType for CEL validation rules"),
            })
            .collect();
        let properties = schema.properties.iter().filter(|(_, child)| child.has_rules());
        let properties: Box<[(Arc<str>, Validator)]> = properties
            .filter_map(|(name, child)| {
                let field = match k1s_cel::escape(name) {
                    Some(_) => property_decl(decl.as_ref(), name)?,
                    None => decl_type(child, child.embedded)?,
                };
                Some((name.clone(), Validator::below(child, Some(field))?))
            })
            .collect();
        let element = |child: Option<&Structural>| {
            let child = child.filter(|child| child.has_rules())?;
            Validator::below(child, element_decl(decl.as_ref())).map(Box::new)
        };
        let items = if schema.kind == Type::Array { element(schema.items()) } else { None };
        let additional = element(schema.additional_schema());
        let any = !compiled.is_empty() || !properties.is_empty() || items.is_some() || additional.is_some();
        let below =
            properties.iter().map(|(_, child)| child).chain(items.as_deref()).chain(additional.as_deref());
        let uses_old_self = compiled.iter().any(|rule| rule.uses_old_self)
            || below.into_iter().any(|child| child.uses_old_self);
        any.then_some(Validator { decl, compiled, properties, additional, items, uses_old_self })
    }
}
