//! Checks of literals that Kubernetes adds to those of the language: durations, timestamps and regular expressions can be
//! read, and lists and maps do not mix types.

use super::Checked;
use crate::{
    error::Issue,
    go_regex,
    syntax::{
        Places,
        ast::{Expr, Kind},
    },
    types::Type,
    value::{Timestamp, Value, time},
};

/// Functions in whose arguments lists may mix types.
const MIXED: &[&str] = &["format"];

pub(super) fn check(checked: &Checked, places: &Places, issues: &mut Vec<Issue>) {
    Check { checked, places, issues }.expr(&checked.root, false);
}

struct Check<'c> {
    checked: &'c Checked,
    places: &'c Places,
    issues: &'c mut Vec<Issue>,
}

impl Check<'_> {
    fn expr(&mut self, expr: &Expr, mixed: bool) {
        match &expr.kind {
            Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select(select) => self.expr(&select.operand, mixed),
            Kind::Call(call) => {
                if let Some(Expr { id, kind: Kind::Literal(value) }) = call.args.first()
                    && !is_valid(&call.function, value)
                {
                    self.issues.push(self.places.issue(*id, format!("invalid {} argument", call.function)));
                }
                if let ("format", Some(target), [Expr { kind: Kind::List(items), .. }]) =
                    (&*call.function, &call.target, call.args.as_slice())
                    && let Kind::Literal(Value::String(text)) = &target.kind
                {
                    let items: Vec<&Expr> = items.iter().map(|item| &item.value).collect();
                    if let Err((id, message)) = super::format::check(self.checked, expr.id, text, &items) {
                        self.issues.push(self.places.issue(id, message));
                    }
                }
                let mixed = mixed || MIXED.contains(&&*call.function);
                call.target.iter().chain(&call.args).for_each(|arg| self.expr(arg, mixed));
            }
            Kind::List(items) => {
                if !mixed {
                    self.same_types(items.iter().map(|item| (&item.value, item.optional)), true);
                }
                items.iter().for_each(|item| self.expr(&item.value, mixed));
            }
            Kind::Map(entries) => {
                if !mixed {
                    // All entries are reported, but of a list only the first item.
                    self.same_types(entries.iter().map(|entry| (&entry.key, false)), false);
                    self.same_types(entries.iter().map(|entry| (&entry.value, entry.optional)), false);
                }
                for entry in entries {
                    self.expr(&entry.key, mixed);
                    self.expr(&entry.value, mixed);
                }
            }
            Kind::Struct(object) => object.fields.iter().for_each(|field| self.expr(&field.value, mixed)),
            Kind::Comprehension(fold) => {
                for part in [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result] {
                    self.expr(part, mixed);
                }
            }
        }
    }

    fn same_types<'e>(&mut self, items: impl Iterator<Item = (&'e Expr, bool)>, once: bool) {
        let mut expected: Option<Type> = None;
        for (item, optional) in items {
            let ty = self.checked.ty(item.id);
            let ty = if optional { ty.optional_of().unwrap_or(ty) } else { ty };
            match &expected {
                None => expected = Some(ty.clone()),
                Some(expected) if !expected.same(ty) => {
                    let message = format!("expected type '{expected}' but found '{ty}'");
                    self.issues.push(self.places.issue(item.id, message));
                    if once {
                        return;
                    }
                }
                Some(_) => {}
            }
        }
    }
}

/// Whether a function can take a literal.
fn is_valid(function: &str, literal: &Value<'_>) -> bool {
    match (function, literal) {
        ("duration", Value::String(text)) => time::parse_duration(text).is_some(),
        ("timestamp", Value::String(text)) => matches!(Timestamp::parse_checked(text), Ok(Some(_))),
        ("timestamp", Value::Int(seconds)) => Timestamp::new(*seconds, 0).is_ok(),
        ("matches", Value::String(pattern)) => go_regex::compile(pattern).is_ok(),
        _ => true,
    }
}
