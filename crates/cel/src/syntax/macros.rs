//! Macros: calls that the parser replaces.

use super::{
    ast::{ACCUMULATOR, Call, Comprehension, Expr, Id, Item, Kind, Select, UNUSED, op},
    parser::Parser,
};
use crate::value::Value;

/// Which macros there are beside those that always are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Macros {
    /// `cel.bind(name, value, expression)`, which Kubernetes does not have.
    pub(crate) bind: bool,
    /// `list.sortBy(item, key)`, which expands to a function of the lists library.
    pub(crate) sort_by: bool,
}

pub(crate) type Expand = fn(&mut Parser<'_>, Id, Option<Expr>, Vec<Expr>) -> Expr;

impl Macros {
    pub(crate) fn find(self, function: &str, member: bool, args: usize) -> Option<Expand> {
        Some(match (function, member, args) {
            ("has", false, 1) => has,
            ("all", true, 2 | 3) => all,
            ("exists", true, 2 | 3) => exists,
            ("exists_one", true, 2 | 3) | ("existsOne", true, 3) => exists_one,
            ("map", true, 2 | 3) => map,
            ("filter", true, 2) => filter,
            ("transformList", true, 3 | 4) => transform_list,
            ("transformMap", true, 3 | 4) => transform_map,
            ("transformMapEntry", true, 3 | 4) => transform_map_entry,
            ("optMap", true, 2) => opt_map,
            ("optFlatMap", true, 2) => opt_flat_map,
            ("bind", true, 3) if self.bind => bind,
            ("sortBy", true, 2) if self.sort_by => sort_by,
            _ => return None,
        })
    }
}

/// Makes expressions at the place of a macro.
struct Maker<'p, 's> {
    parser: &'p mut Parser<'s>,
    id: Id,
}

impl Maker<'_, '_> {
    fn node(&mut self, kind: Kind) -> Expr {
        self.parser.node_like(self.id, kind)
    }

    fn literal(&mut self, value: Value<'static>) -> Expr {
        self.node(Kind::Literal(value))
    }

    fn ident(&mut self, name: &str) -> Expr {
        self.node(Kind::Ident(name.into()))
    }

    fn accumulator(&mut self) -> Expr {
        self.ident(ACCUMULATOR)
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        self.node(Kind::Call(Box::new(Call { function: function.into(), target: None, args })))
    }

    fn member(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
        self.node(Kind::Call(Box::new(Call { function: function.into(), target: Some(target), args })))
    }

    fn list(&mut self, item: Option<Expr>) -> Expr {
        self.node(Kind::List(item.into_iter().map(|value| Item { optional: false, value }).collect()))
    }

    /// A step of a loop that is only taken if a filter holds.
    fn filtered(&mut self, filter: Option<Expr>, step: Expr) -> Expr {
        let Some(filter) = filter else { return step };
        let unchanged = self.accumulator();
        self.call(op::CONDITIONAL, vec![filter, step, unchanged])
    }

    /// A loop whose result is its accumulator.
    fn fold(&mut self, range: Expr, names: Names, init: Expr, condition: Option<Expr>, step: Expr) -> Expr {
        let result = self.accumulator();
        self.fold_to(range, names, init, condition, step, result)
    }

    fn fold_to(
        &mut self,
        range: Expr,
        names: Names,
        init: Expr,
        condition: Option<Expr>,
        step: Expr,
        result: Expr,
    ) -> Expr {
        let condition = condition.unwrap_or_else(|| self.literal(Value::Bool(true)));
        let comprehension = Comprehension {
            range,
            variable: names.0,
            second: names.1,
            accumulator: ACCUMULATOR.into(),
            init,
            condition,
            step,
            result,
        };
        self.node(Kind::Comprehension(Box::new(comprehension)))
    }

    /// A name for a value.
    fn bind(&mut self, name: &str, value: Expr, result: Expr) -> Expr {
        let comprehension = Comprehension {
            range: self.list(None),
            variable: UNUSED.into(),
            second: None,
            accumulator: name.into(),
            init: value,
            condition: self.literal(Value::Bool(false)),
            step: self.ident(name),
            result,
        };
        self.node(Kind::Comprehension(Box::new(comprehension)))
    }

    /// The expression again, with ids of its own.
    fn copy(&mut self, expr: &Expr) -> Expr {
        let mut copy = expr.clone();
        self.renumber(&mut copy);
        copy
    }

    fn renumber(&mut self, expr: &mut Expr) {
        expr.id = self.parser.node_like(expr.id, Kind::Literal(Value::Null)).id;
        match &mut expr.kind {
            Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select(select) => self.renumber(&mut select.operand),
            Kind::Call(call) => {
                call.target.iter_mut().chain(&mut call.args).for_each(|arg| self.renumber(arg))
            }
            Kind::List(items) => items.iter_mut().for_each(|item| self.renumber(&mut item.value)),
            Kind::Map(entries) => entries.iter_mut().for_each(|entry| {
                self.renumber(&mut entry.key);
                self.renumber(&mut entry.value);
            }),
            Kind::Struct(object) => object.fields.iter_mut().for_each(|field| {
                field.id = self.parser.node_like(field.id, Kind::Literal(Value::Null)).id;
                self.renumber(&mut field.value);
            }),
            Kind::Comprehension(fold) => {
                let parts =
                    [&mut fold.range, &mut fold.init, &mut fold.condition, &mut fold.step, &mut fold.result];
                parts.into_iter().for_each(|part| self.renumber(part));
            }
        }
    }
}

/// The variables of a loop.
type Names = (Box<str>, Option<Box<str>>);

/// What macros with variables are called with.
struct Parts<const N: usize> {
    target: Expr,
    names: Names,
    /// The other arguments.
    rest: [Expr; N],
    filter: Option<Expr>,
}

const SIMPLE_NAME: &str = "argument must be a simple name";

fn name_of(parser: &mut Parser<'_>, expr: &Expr, wanted: &str) -> Result<Box<str>, Expr> {
    match &expr.kind {
        Kind::Ident(name) if matches!(&**name, ACCUMULATOR | "__result__") => {
            Err(parser.error_at(expr.id, "iteration variable overwrites accumulator variable".to_owned()))
        }
        Kind::Ident(name) => Ok(name.clone()),
        _ => Err(parser.error_at(expr.id, wanted.to_owned())),
    }
}

/// The parts of a loop with one variable or two, an optional filter, and one expression.
fn parts(
    parser: &mut Parser<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    variables: usize,
    wanted: &str,
) -> Result<Parts<1>, Expr> {
    let mut args = args.into_iter();
    let (Some(target), Some(first)) = (target, args.next()) else {
        return Err(parser.error_at(0, String::new()));
    };
    let second = (variables == 2).then(|| args.next()).flatten();
    let names = match &second {
        None => (name_of(parser, &first, wanted)?, None),
        Some(second) => {
            for variable in [&first, second] {
                if !matches!(variable.kind, Kind::Ident(_)) {
                    return Err(parser.error_at(variable.id, wanted.to_owned()));
                }
            }
            if let (Kind::Ident(one), Kind::Ident(two)) = (&first.kind, &second.kind)
                && one == two
            {
                return Err(parser.error_at(second.id, format!("duplicate variable name: {one}")));
            }
            (name_of(parser, &first, wanted)?, Some(name_of(parser, second, wanted)?))
        }
    };
    let mut rest: Vec<Expr> = args.collect();
    let Some(last) = rest.pop() else { return Err(parser.error_at(first.id, String::new())) };
    Ok(Parts { target, names, rest: [last], filter: rest.pop() })
}

/// Loops with two variables have one more argument.
fn variables(args: &[Expr], with_one: usize) -> usize {
    if args.len() > with_one { 2 } else { 1 }
}

fn has(parser: &mut Parser<'_>, id: Id, _: Option<Expr>, args: Vec<Expr>) -> Expr {
    let arg = args.into_iter().next();
    match arg {
        Some(Expr { kind: Kind::Select(select), .. }) => {
            parser.node_like(id, Kind::Select(Box::new(Select { test: true, ..*select })))
        }
        other => {
            let place = other.map_or(id, |other| other.id);
            parser.error_at(place, "invalid argument to has() macro".to_owned())
        }
    }
}

fn all(parser: &mut Parser<'_>, id: Id, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    let count = variables(&args, 2);
    let Parts { target, names, rest: [predicate], .. } = match parts(parser, target, args, count, SIMPLE_NAME)
    {
        Ok(parts) => parts,
        Err(error) => return error,
    };
    let mut make = Maker { parser, id };
    let init = make.literal(Value::Bool(true));
    let so_far = make.accumulator();
    let condition = make.call(op::NOT_STRICTLY_FALSE, vec![so_far]);
    let so_far = make.accumulator();
    let step = make.call(op::AND, vec![so_far, predicate]);
    make.fold(target, names, init, Some(condition), step)
}

fn exists(parser: &mut Parser<'_>, id: Id, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    let count = variables(&args, 2);
    let Parts { target, names, rest: [predicate], .. } = match parts(parser, target, args, count, SIMPLE_NAME)
    {
        Ok(parts) => parts,
        Err(error) => return error,
    };
    let mut make = Maker { parser, id };
    let init = make.literal(Value::Bool(false));
    let so_far = make.accumulator();
    let not = make.call(op::NOT, vec![so_far]);
    let condition = make.call(op::NOT_STRICTLY_FALSE, vec![not]);
    let so_far = make.accumulator();
    let step = make.call(op::OR, vec![so_far, predicate]);
    make.fold(target, names, init, Some(condition), step)
}

fn exists_one(parser: &mut Parser<'_>, id: Id, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    let count = variables(&args, 2);
    let Parts { target, names, rest: [predicate], .. } = match parts(parser, target, args, count, SIMPLE_NAME)
    {
        Ok(parts) => parts,
        Err(error) => return error,
    };
    let mut make = Maker { parser, id };
    let init = make.literal(Value::Int(0));
    let (so_far, one) = (make.accumulator(), make.literal(Value::Int(1)));
    let more = make.call(op::ADD, vec![so_far, one]);
    let step = make.filtered(Some(predicate), more);
    let (count, one) = (make.accumulator(), make.literal(Value::Int(1)));
    let result = make.call(op::EQUALS, vec![count, one]);
    make.fold_to(target, names, init, None, step, result)
}

/// `accumulator + [item]`
fn append(make: &mut Maker<'_, '_>, item: Expr) -> Expr {
    let so_far = make.accumulator();
    let item = make.list(Some(item));
    make.call(op::ADD, vec![so_far, item])
}

fn map(parser: &mut Parser<'_>, id: Id, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    list_of(parser, id, target, args, 1, "argument is not an identifier")
}

fn transform_list(parser: &mut Parser<'_>, id: Id, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    list_of(parser, id, target, args, 2, SIMPLE_NAME)
}

fn list_of(
    parser: &mut Parser<'_>,
    id: Id,
    target: Option<Expr>,
    args: Vec<Expr>,
    variables: usize,
    wanted: &str,
) -> Expr {
    let Parts { target, names, rest: [item], filter } = match parts(parser, target, args, variables, wanted) {
        Ok(parts) => parts,
        Err(error) => return error,
    };
    let mut make = Maker { parser, id };
    let init = make.list(None);
    let step = append(&mut make, item);
    let step = make.filtered(filter, step);
    make.fold(target, names, init, None, step)
}

fn filter(parser: &mut Parser<'_>, id: Id, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    let variable = args.first().cloned();
    let parts = parts(parser, target, args, 1, "argument is not an identifier");
    let Parts { target, names, rest: [predicate], .. } = match parts {
        Ok(parts) => parts,
        Err(error) => return error,
    };
    let Some(variable) = variable else { return predicate };
    let mut make = Maker { parser, id };
    let init = make.list(None);
    let step = append(&mut make, variable);
    let step = make.filtered(Some(predicate), step);
    make.fold(target, names, init, None, step)
}

fn transform_map(parser: &mut Parser<'_>, id: Id, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    let Parts { target, names, rest: [value], filter } = match parts(parser, target, args, 2, SIMPLE_NAME) {
        Ok(parts) => parts,
        Err(error) => return error,
    };
    let mut make = Maker { parser, id };
    let init = make.node(Kind::Map(Vec::new()));
    let (so_far, key) = (make.accumulator(), make.ident(&names.0));
    let step = make.call(op::MAP_INSERT, vec![so_far, key, value]);
    let step = make.filtered(filter, step);
    make.fold(target, names, init, None, step)
}

fn transform_map_entry(parser: &mut Parser<'_>, id: Id, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    let Parts { target, names, rest: [entry], filter } = match parts(parser, target, args, 2, SIMPLE_NAME) {
        Ok(parts) => parts,
        Err(error) => return error,
    };
    let mut make = Maker { parser, id };
    let init = make.node(Kind::Map(Vec::new()));
    let so_far = make.accumulator();
    let step = make.call(op::MAP_INSERT, vec![so_far, entry]);
    let step = make.filtered(filter, step);
    make.fold(target, names, init, None, step)
}

/// `optional.hasValue() ? … : optional.none()`, with a name for the value.
fn with_value(
    parser: &mut Parser<'_>,
    id: Id,
    target: Option<Expr>,
    args: Vec<Expr>,
    function: &str,
    wrap: impl Fn(&mut Maker<'_, '_>, Expr) -> Expr,
) -> Expr {
    let mut args = args.into_iter();
    let (Some(target), Some(name), Some(result)) = (target, args.next(), args.next()) else {
        return parser.error_at(id, String::new());
    };
    let Kind::Ident(variable) = &name.kind else {
        return parser.error_at(name.id, format!("{function}() variable name must be a simple identifier"));
    };
    if !parser.may_copy() {
        return target;
    }
    let mut make = Maker { parser, id };
    let again = make.copy(&target);
    let has_value = make.member("hasValue", target, Vec::new());
    let value = make.member("value", again, Vec::new());
    let bound = make.bind(variable, value, result);
    let yes = wrap(&mut make, bound);
    let no = make.call("optional.none", Vec::new());
    make.call(op::CONDITIONAL, vec![has_value, yes, no])
}

fn opt_map(parser: &mut Parser<'_>, id: Id, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    with_value(parser, id, target, args, "optMap", |make, value| make.call("optional.of", vec![value]))
}

fn opt_flat_map(parser: &mut Parser<'_>, id: Id, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    with_value(parser, id, target, args, "optFlatMap", |_, value| value)
}

fn bind(parser: &mut Parser<'_>, id: Id, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    let is_namespace =
        target.as_ref().is_some_and(|target| matches!(&target.kind, Kind::Ident(name) if &**name == "cel"));
    if !is_namespace {
        return Expr { id, kind: Kind::Call(Box::new(Call { function: "bind".into(), target, args })) };
    }
    let mut args = args.into_iter();
    let (Some(name), Some(value), Some(result)) = (args.next(), args.next(), args.next()) else {
        return parser.error_at(id, String::new());
    };
    let Kind::Ident(variable) = &name.kind else {
        return parser.error_at(name.id, "cel.bind() variable names must be simple identifiers".to_owned());
    };
    Maker { parser, id }.bind(variable, value, result)
}

fn sort_by(parser: &mut Parser<'_>, id: Id, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    const INPUT: &str = "@__sortBy_input__";
    let Some(target) = target else { return parser.error_at(id, String::new()) };
    if matches!(target.kind, Kind::Literal(_) | Kind::Map(_) | Kind::Struct(_)) {
        let message =
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
        return parser.error_at(target.id, message.to_owned());
    }
    let input = parser.node_like(id, Kind::Ident(INPUT.into()));
    let keys = map(parser, id, Some(input), args);
    let mut make = Maker { parser, id };
    let input = make.ident(INPUT);
    let sorted = make.member("@sortByAssociatedKeys", input, vec![keys]);
    make.bind(INPUT, target, sorted)
}
