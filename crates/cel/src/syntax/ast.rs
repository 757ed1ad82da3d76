//! The tree of an expression.

use crate::value::Value;

/// A number for each expression of a tree, from 1: types and references are looked up by it.
pub(crate) type Id = u32;

/// An expression. Where it is in the source is known by its id.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) id: Id,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Literal(Value<'static>),
    Ident(Box<str>),
    Select(Box<Select>),
    Call(Box<Call>),
    List(Vec<Item>),
    Map(Vec<Entry>),
    Struct(Box<Struct>),
    Comprehension(Box<Comprehension>),
}

/// `operand.field`, or `has(operand.field)`.
#[derive(Clone, Debug)]
pub(crate) struct Select {
    pub(crate) operand: Expr,
    pub(crate) field: Box<str>,
    pub(crate) test: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) function: Box<str>,
    pub(crate) target: Option<Expr>,
    pub(crate) args: Vec<Expr>,
}

/// An item of a list; an optional one is left out if it has no value.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) optional: bool,
    pub(crate) value: Expr,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) optional: bool,
    pub(crate) key: Expr,
    pub(crate) value: Expr,
}

#[derive(Clone, Debug)]
pub(crate) struct Struct {
    pub(crate) name: Box<str>,
    pub(crate) fields: Vec<FieldInit>,
}

#[derive(Clone, Debug)]
pub(crate) struct FieldInit {
    /// The place of the colon, to which errors about the field refer.
    pub(crate) id: Id,
    pub(crate) name: Box<str>,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// A loop over a list or a map: what macros expand to.
#[derive(Clone, Debug)]
pub(crate) struct Comprehension {
    pub(crate) range: Expr,
    pub(crate) variable: Box<str>,
    /// With two variables: index and item, or key and value.
    pub(crate) second: Option<Box<str>>,
    pub(crate) accumulator: Box<str>,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

impl Comprehension {
    /// Whether this is no loop, but a name for a value: what `optMap` and `sortBy` expand to.
    pub(crate) fn is_bind(&self) -> bool {
        matches!(&self.range.kind, Kind::List(items) if items.is_empty())
            && matches!(self.condition.kind, Kind::Literal(Value::Bool(false)))
            && &*self.accumulator != ACCUMULATOR
    }
}

/// The name of the accumulator of macros: no identifier of the language.
pub(crate) const ACCUMULATOR: &str = "@result";

/// The name of the variable of a bind.
pub(crate) const UNUSED: &str = "#unused";

/// Operators as functions.
pub(crate) mod op {
    pub(crate) const CONDITIONAL: &str = "_?_:_";
    pub(crate) const AND: &str = "_&&_";
    pub(crate) const OR: &str = "_||_";
    pub(crate) const NOT: &str = "!_";
    pub(crate) const NEGATE: &str = "-_";
    pub(crate) const EQUALS: &str = "_==_";
    pub(crate) const NOT_EQUALS: &str = "_!=_";
    pub(crate) const LESS: &str = "_<_";
    pub(crate) const LESS_EQUALS: &str = "_<=_";
    pub(crate) const GREATER: &str = "_>_";
    pub(crate) const GREATER_EQUALS: &str = "_>=_";
    pub(crate) const IN: &str = "@in";
    pub(crate) const ADD: &str = "_+_";
    pub(crate) const SUBTRACT: &str = "_-_";
    pub(crate) const MULTIPLY: &str = "_*_";
    pub(crate) const DIVIDE: &str = "_/_";
    pub(crate) const MODULO: &str = "_%_";
    pub(crate) const INDEX: &str = "_[_]";
    pub(crate) const OPT_INDEX: &str = "_[?_]";
    pub(crate) const OPT_SELECT: &str = "_?._";
    pub(crate) const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
    pub(crate) const MAP_INSERT: &str = "cel.@mapInsert";
}

impl Expr {
    /// Whether a field of a variable is selected by its name, anywhere in the expression.
    pub(crate) fn selects(&self, variable: &str, field: &str) -> bool {
        let is_variable = |expr: &Expr| matches!(&expr.kind, Kind::Ident(name) if **name == *variable);
        let within = |expr: &Expr| expr.selects(variable, field);
        match &self.kind {
            Kind::Literal(_) | Kind::Ident(_) => false,
            Kind::Select(select) => {
                is_variable(&select.operand) && *select.field == *field || within(&select.operand)
            }
            Kind::Call(call) => {
                let named =
                    |expr: &Expr| matches!(&expr.kind, Kind::Literal(value) if value.as_str() == Some(field));
                let is_optional = *call.function == *op::OPT_SELECT
                    && matches!(call.args.as_slice(), [of, name] if is_variable(of) && named(name));
                is_optional || call.args.iter().any(within) || call.target.as_ref().is_some_and(within)
            }
            Kind::List(items) => items.iter().any(|item| within(&item.value)),
            Kind::Map(entries) => entries.iter().any(|entry| within(&entry.key) || within(&entry.value)),
            Kind::Struct(object) => object.fields.iter().any(|init| within(&init.value)),
            Kind::Comprehension(it) => {
                [&it.range, &it.init, &it.condition, &it.step, &it.result].into_iter().any(within)
            }
        }
    }

    /// Whether a name of an identifier is meant: `a` or `a.b.c`, as one string.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.to_string()),
            Kind::Select(select) if !select.test => {
                let mut name = select.operand.qualified_name()?;
                name.push('.');
                name.push_str(&select.field);
                Some(name)
            }
            _ => None,
        }
    }
}
