//! A checked expression becomes a program.

use std::cell::Cell;

use super::{
    Program,
    node::{
        Append, Attribute, Bind, CallNode, Entry, Equals, Fold, FoldKind, Insert, Item, Node, ObjectNode,
        Qualifier, QualifierKey, Root, Set,
    },
};
use crate::{
    check::{Checked, Reference},
    cost,
    syntax::ast::{ACCUMULATOR, Call, Comprehension, Expr, Kind, Select, op},
    types::Type,
    value::{Key, MapBuilder, Text, Value},
};

/// Functions that are computed at once if their argument is a constant.
const CONVERSIONS: [&str; 10] =
    ["type", "bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint"];

/// The program of an expression. A constant that cannot be computed is an error.
pub(crate) fn plan(checked: &Checked) -> Result<Program, String> {
    let planner = Planner { checked, depth: Cell::new(0), deepest: Cell::new(0) };
    let root = planner.node(&checked.root)?;
    Ok(Program { root, depth: planner.deepest.get() })
}

struct Planner<'c> {
    checked: &'c Checked,
    depth: Cell<usize>,
    deepest: Cell<usize>,
}

impl Planner<'_> {
    fn node(&self, expr: &Expr) -> Result<Node, String> {
        let depth = self.depth.get() + 1;
        self.depth.set(depth);
        self.deepest.set(self.deepest.get().max(depth));
        let planned = self.plan(expr);
        self.depth.set(depth - 1);
        planned
    }

    fn plan(&self, expr: &Expr) -> Result<Node, String> {
        match &expr.kind {
            Kind::Literal(value) => Ok(Node::Constant(value.clone())),
            Kind::Ident(name) => Ok(self.name(expr, name)),
            Kind::Select(select) => self.select(expr, select),
            Kind::Call(call) => self.call(expr, call),
            Kind::List(items) => {
                let mut nodes = Vec::with_capacity(items.len());
                for item in items {
                    nodes.push(Item { value: self.node(&item.value)?, optional: item.optional });
                }
                let all = nodes.iter().all(|item| !item.optional && matches!(item.value, Node::Constant(_)));
                Ok(folded(Node::List(nodes), all))
            }
            Kind::Map(entries) => {
                let mut nodes = Vec::with_capacity(entries.len());
                for entry in entries {
                    let (key, value) = (self.node(&entry.key)?, self.node(&entry.value)?);
                    nodes.push(Entry { key, value, optional: entry.optional });
                }
                let constant = |entry: &Entry| {
                    matches!((&entry.key, &entry.value), (Node::Constant(_), Node::Constant(_)))
                        && !entry.optional
                };
                let all = nodes.iter().all(constant);
                Ok(folded(Node::Map(nodes), all))
            }
            Kind::Struct(object) => {
                let mut fields = Vec::with_capacity(object.fields.len());
                for field in &object.fields {
                    fields.push((field.name.clone(), self.node(&field.value)?, field.optional));
                }
                let type_name = self.checked.ty(expr.id).runtime_name().into();
                Ok(Node::Object(Box::new(ObjectNode { type_name, fields })))
            }
            Kind::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    /// A variable or a type.
    fn name(&self, expr: &Expr, name: &str) -> Node {
        let root = match self.checked.reference(expr.id) {
            Reference::Type(ty) => {
                return Node::Constant(Value::Type(Text::Shared(ty.runtime_name().into())));
            }
            Reference::Local(at) => Root::Local(*at),
            Reference::Variable(number) => {
                let name = name.strip_prefix('.').unwrap_or(name);
                // A variable with dots in its name costs as much as the fields that it looks like.
                let dots = name.bytes().filter(|byte| *byte == b'.').count() as u64;
                Root::Variable(*number, name.into(), cost::SELECT + dots)
            }
            _ => return Node::Constant(Value::Null),
        };
        Node::Attribute(Box::new(Attribute { root, qualifiers: Vec::new() }))
    }

    fn select(&self, expr: &Expr, select: &Select) -> Result<Node, String> {
        if let Reference::Type(_) | Reference::Variable(_) = self.checked.reference(expr.id) {
            return Ok(self.name(expr, &expr.qualified_name().unwrap_or_default()));
        }
        let qualifier = Qualifier { key: self.field(&select.operand, &select.field), optional: false };
        let attribute = qualified(self.node(&select.operand)?, qualifier);
        Ok(if select.test { Node::Test(attribute) } else { Node::Attribute(attribute) })
    }

    /// A field of the value of an expression.
    fn field(&self, operand: &Expr, name: &str) -> QualifierKey {
        let ty = self.checked.ty(operand.id);
        match ty.optional_of().unwrap_or(ty) {
            Type::Object(object) => match object.field(name) {
                Some(field) => QualifierKey::Field(field.clone(), object.clone()),
                None => QualifierKey::Name(name.into()),
            },
            _ => QualifierKey::Name(name.into()),
        }
    }

    fn pair(&self, call: &Call) -> Result<(Node, Node), String> {
        match call.target.iter().chain(&call.args).collect::<Vec<_>>().as_slice() {
            [one, two] => Ok((self.node(one)?, self.node(two)?)),
            _ => Err(format!("no such overload: {}", call.function)),
        }
    }

    fn call(&self, expr: &Expr, call: &Call) -> Result<Node, String> {
        match &*call.function {
            op::AND => return Ok(Node::And(Box::new(self.pair(call)?))),
            op::OR => return Ok(Node::Or(Box::new(self.pair(call)?))),
            op::CONDITIONAL => {
                let [condition, yes, no] = call.args.as_slice() else { return Err(String::new()) };
                let (yes, no) = (Box::new(self.node(yes)?), Box::new(self.node(no)?));
                let root = Root::Conditional(self.node(condition)?, yes, no);
                return Ok(Node::Attribute(Box::new(Attribute { root, qualifiers: Vec::new() })));
            }
            op::EQUALS | op::NOT_EQUALS => {
                let (left, right) = self.pair(call)?;
                let negated = &*call.function == op::NOT_EQUALS;
                return Ok(Node::Equals(Box::new(Equals { left, right, negated })));
            }
            op::INDEX | op::OPT_INDEX => {
                let (operand, index) = self.pair(call)?;
                let key = match index {
                    Node::Constant(key) => QualifierKey::Constant(key),
                    computed => QualifierKey::Computed(computed),
                };
                let optional = &*call.function == op::OPT_INDEX;
                return Ok(Node::Attribute(qualified(operand, Qualifier { key, optional })));
            }
            op::OPT_SELECT => {
                if let [operand, field] = call.args.as_slice()
                    && let Kind::Literal(Value::String(name)) = &field.kind
                {
                    let qualifier = Qualifier { key: self.field(operand, name), optional: true };
                    return Ok(Node::Attribute(qualified(self.node(operand)?, qualifier)));
                }
            }
            "or" if call.target.is_some() && call.args.len() == 1 => {
                return Ok(Node::OptionalOr(Box::new(self.pair(call)?)));
            }
            "orValue" if call.target.is_some() && call.args.len() == 1 => {
                return Ok(Node::OptionalOrValue(Box::new(self.pair(call)?)));
            }
            _ => {}
        }
        self.function(expr, call)
    }

    fn function(&self, expr: &Expr, call: &Call) -> Result<Node, String> {
        let Reference::Call { overloads, namespaced } = self.checked.reference(expr.id) else {
            return Err(format!("no such overload: {}", call.function));
        };
        let target = call.target.iter().filter(|_| !namespaced);
        let mut args = Vec::with_capacity(call.args.len() + 1);
        for arg in target.chain(&call.args) {
            args.push(self.node(arg)?);
        }
        let only = if let [only] = overloads.as_slice() { Some(only) } else { None };
        if only.is_some_and(|only| only.id == "in_list")
            && let [_, Node::Constant(Value::List(list))] = args.as_slice()
            && let Ok(values) = list.values()
        {
            if values.is_empty() {
                return Ok(Node::Constant(Value::Bool(false)));
            }
            if let Some(set) = Set::of(&values) {
                args.truncate(1);
                return Ok(match args.pop() {
                    Some(arg) => Node::InSet(Box::new(arg), Box::new(set)),
                    None => Node::Constant(Value::Bool(false)),
                });
            }
        }
        let prepared = match only.and_then(|only| only.prepare) {
            Some(prepare) => {
                let constants: Vec<_> = args.iter().map(|arg| constant(arg)).collect();
                prepare(&constants)?
            }
            None => None,
        };
        let is_conversion = CONVERSIONS.contains(&&*call.function)
            && args.len() == 1
            && call.target.is_none()
            && args.iter().all(|arg| constant(arg).is_some());
        let function = match (&call.target, namespaced) {
            (Some(target), true) => {
                format!("{}.{}", target.qualified_name().unwrap_or_default(), call.function).into()
            }
            _ => call.function.clone(),
        };
        let node = CallNode { function, overloads: overloads.clone(), args, prepared };
        if is_conversion {
            let arg = node.args.first().and_then(constant).cloned().unwrap_or(Value::Null);
            return run(&node, arg).map(Node::Constant);
        }
        Ok(Node::Call(Box::new(node)))
    }

    fn comprehension(&self, fold: &Comprehension) -> Result<Node, String> {
        if fold.is_bind() {
            let (value, result) = (self.node(&fold.init)?, self.node(&fold.result)?);
            return Ok(Node::Bind(Box::new(Bind { value, result })));
        }
        let range = self.node(&fold.range)?;
        let two = fold.second.is_some();
        if let Kind::Call(condition) = &fold.condition.kind
            && &*condition.function == op::NOT_STRICTLY_FALSE
            && let Kind::Call(step) = &fold.step.kind
            && let [_, predicate] = step.args.as_slice()
        {
            let kind =
                FoldKind::Quantifier { predicate: self.node(predicate)?, decides: &*step.function == op::OR };
            return Ok(Node::Fold(Box::new(Fold { range, two, kind })));
        }
        let kind = FoldKind::General {
            init: self.node(&fold.init)?,
            step: self.step(&fold.step)?,
            result: self.node(&fold.result)?,
        };
        Ok(Node::Fold(Box::new(Fold { range, two, kind })))
    }

    /// A step of a loop. What extends the accumulator does so in place.
    fn step(&self, expr: &Expr) -> Result<Node, String> {
        let Kind::Call(call) = &expr.kind else { return self.node(expr) };
        let accumulator = |expr: &Expr| match (&expr.kind, self.checked.reference(expr.id)) {
            (Kind::Ident(name), Reference::Local(at)) if &**name == ACCUMULATOR => Some(*at),
            _ => None,
        };
        match (&*call.function, call.args.as_slice()) {
            (op::CONDITIONAL, [filter, yes, no]) => {
                let (yes, no) = (Box::new(self.step(yes)?), Box::new(self.step(no)?));
                let root = Root::Conditional(self.node(filter)?, yes, no);
                Ok(Node::Attribute(Box::new(Attribute { root, qualifiers: Vec::new() })))
            }
            (op::ADD, [first, second]) => {
                if let (Some(accumulator), Kind::List(items)) = (accumulator(first), &second.kind)
                    && let [item] = items.as_slice()
                {
                    let item = self.node(&item.value)?;
                    // A list of a constant is a constant, which costs nothing.
                    let cost = if matches!(item, Node::Constant(_)) { 0 } else { cost::LIST };
                    return Ok(Node::Append(Box::new(Append { accumulator, item, cost })));
                }
                self.node(expr)
            }
            (op::MAP_INSERT, [first, rest @ ..]) => match accumulator(first) {
                Some(accumulator) => {
                    let args = rest.iter().map(|arg| self.node(arg)).collect::<Result<_, _>>()?;
                    Ok(Node::Insert(Box::new(Insert { accumulator, args })))
                }
                None => self.node(expr),
            },
            _ => self.node(expr),
        }
    }
}

fn constant(node: &Node) -> Option<&Value<'static>> {
    match node {
        Node::Constant(value) => Some(value),
        _ => None,
    }
}

/// An attribute with one more qualifier.
fn qualified(operand: Node, qualifier: Qualifier) -> Box<Attribute> {
    match operand {
        Node::Attribute(mut attribute) => {
            attribute.qualifiers.push(qualifier);
            attribute
        }
        other => Box::new(Attribute { root: Root::Value(other), qualifiers: vec![qualifier] }),
    }
}

/// A list or a map of constants as a constant.
fn folded(node: Node, is_constant: bool) -> Node {
    if !is_constant {
        return node;
    }
    let items = match &node {
        Node::List(items) => {
            Some(Value::list(items.iter().filter_map(|item| constant(&item.value).cloned()).collect()))
        }
        Node::Map(entries) => {
            let mut builder = MapBuilder::default();
            let all = entries.iter().all(|entry| {
                let key = constant(&entry.key).and_then(Key::from_value);
                match (key, constant(&entry.value)) {
                    (Some(key), Some(value)) => {
                        builder.set(key, value.clone());
                        true
                    }
                    _ => false,
                }
            });
            all.then(|| Value::Map(builder.build()))
        }
        _ => None,
    };
    items.map_or(node, Node::Constant)
}

/// The value of a conversion of a constant.
fn run(node: &CallNode, arg: Value<'static>) -> Result<Value<'static>, String> {
    let args = [arg];
    match super::call::select(&node.overloads, &args) {
        Some(overload) => (overload.call)(&args).map_err(|error| error.to_string()),
        None => Err(super::call::no_overload(node, &args).to_string()),
    }
}
