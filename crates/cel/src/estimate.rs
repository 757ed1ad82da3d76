//! What a checked expression can cost: a walk over its tree that also follows how large values can be.

use std::{collections::HashMap, sync::Arc};

use crate::{
    check::Checked,
    cost::{
        self, CallEstimate, CallNodes, CostEstimate, Node, REGEX_FACTOR, STRING_FACTOR, SizeEstimate,
        SizeEstimator,
    },
    function::Overload,
    syntax::ast::{ACCUMULATOR, Call, Comprehension, Expr, Id, Kind, Select, op},
    types::Type,
    value::Value,
};

/// What an expression can cost.
pub(crate) fn estimate(checked: &Checked, sizes: &dyn SizeEstimator) -> CostEstimate {
    Estimator {
        checked,
        sizes,
        paths: HashMap::new(),
        locals: Vec::new(),
        known_sizes: HashMap::new(),
        entries: HashMap::new(),
    }
    .cost(&checked.root)
}

/// How to come to a value from a variable.
type Path = Vec<Arc<str>>;

/// The sizes of what a list or a map holds.
#[derive(Clone, Copy, Debug)]
struct Entries {
    is_list: bool,
    key: SizeEstimate,
    value: SizeEstimate,
}

impl Entries {
    fn union(self, other: Self) -> Self {
        Self { is_list: self.is_list, key: self.key.union(other.key), value: self.value.union(other.value) }
    }
}

/// A variable of a loop or a bind.
struct Local<'c> {
    name: &'c str,
    path: Path,
    size: Option<SizeEstimate>,
    entries: Option<Entries>,
}

struct Estimator<'c> {
    checked: &'c Checked,
    sizes: &'c dyn SizeEstimator,
    paths: HashMap<Id, Path>,
    /// The innermost last.
    locals: Vec<Local<'c>>,
    known_sizes: HashMap<Id, SizeEstimate>,
    entries: HashMap<Id, Entries>,
}

impl<'c> Estimator<'c> {
    fn cost(&mut self, expr: &'c Expr) -> CostEstimate {
        match &expr.kind {
            Kind::Literal(_) => CostEstimate::fixed(0),
            Kind::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => vec![Arc::from(&**name)],
                };
                self.paths.insert(expr.id, path);
                CostEstimate::fixed(cost::SELECT)
            }
            Kind::Select(select) => self.select(expr, select),
            Kind::Call(call) => self.call(expr, call),
            Kind::List(items) => {
                let (mut sum, mut size) = (CostEstimate::fixed(cost::LIST), None);
                for item in items {
                    sum = sum.plus(self.cost(&item.value));
                    size = Some(self.joined(size, &item.value));
                }
                let value = size.unwrap_or(SizeEstimate::fixed(0));
                self.entries.insert(expr.id, Entries { is_list: true, key: SizeEstimate::fixed(1), value });
                sum
            }
            Kind::Map(entries) => {
                let (mut sum, mut keys, mut values) = (CostEstimate::fixed(cost::MAP), None, None);
                for entry in entries {
                    sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
                    keys = Some(self.joined(keys, &entry.key));
                    values = Some(self.joined(values, &entry.value));
                }
                let none = SizeEstimate::fixed(0);
                let (key, value) = (keys.unwrap_or(none), values.unwrap_or(none));
                self.entries.insert(expr.id, Entries { is_list: false, key, value });
                sum
            }
            Kind::Struct(object) => object
                .fields
                .iter()
                .fold(CostEstimate::fixed(cost::OBJECT), |sum, field| sum.plus(self.cost(&field.value))),
            Kind::Comprehension(fold) if fold.is_bind() => self.bind(expr, fold),
            Kind::Comprehension(fold) => self.comprehension(expr, fold),
        }
    }

    /// The size of one more item.
    fn joined(&mut self, so_far: Option<SizeEstimate>, item: &Expr) -> SizeEstimate {
        let size = self.size_or_unknown(item);
        so_far.map_or(size, |so_far| so_far.union(size))
    }

    fn local(&self, name: &str) -> Option<&Local<'c>> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn path(&self, expr: &Expr) -> Path {
        if let Kind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    fn below(&self, expr: &Expr, step: &str) -> Path {
        let mut path = self.path(expr);
        path.push(step.into());
        path
    }

    fn select(&mut self, expr: &'c Expr, select: &'c Select) -> CostEstimate {
        use crate::check::Reference;
        if let Reference::Variable(_) | Reference::Type(_) = self.checked.reference(expr.id) {
            // A name with dots.
            let name = expr.qualified_name().unwrap_or_default();
            let cost = match self.checked.reference(expr.id) {
                Reference::Variable(_) => {
                    cost::SELECT + name.bytes().filter(|byte| *byte == b'.').count() as u64
                }
                _ => cost::SELECT,
            };
            self.paths.insert(expr.id, vec![name.into()]);
            return CostEstimate::fixed(cost);
        }
        let mut sum = self.cost(&select.operand);
        if select.test {
            return sum;
        }
        if let Type::Map(_) | Type::Object(_) | Type::Param(_) | Type::Var(_) =
            self.checked.ty(select.operand.id)
        {
            sum = sum.plus(CostEstimate::fixed(cost::SELECT));
        }
        let path = self.below(&select.operand, &select.field);
        self.paths.insert(expr.id, path);
        sum
    }

    fn node(&mut self, expr: &'c Expr) -> Node<'c> {
        let path = self.path(expr);
        let is_hidden = path.first().is_none_or(|first| &**first == ACCUMULATOR);
        Node {
            path: (!is_hidden).then_some(path),
            ty: self.checked.ty(expr.id).clone(),
            literal: match &expr.kind {
                Kind::Literal(value) => Some(value),
                _ => None,
            },
            computed: self.size(expr),
        }
    }

    fn call(&mut self, expr: &'c Expr, call: &'c Call) -> CostEstimate {
        if &*call.function == "dyn"
            && let [arg] = call.args.as_slice()
        {
            let cost = self.cost(arg);
            self.copy_sizes(expr, arg);
            return cost.plus(CostEstimate::fixed(1));
        }
        let mut costs = Vec::with_capacity(call.args.len());
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            costs.push(self.cost(arg));
            args.push(self.node(arg));
        }
        let overloads = self.checked.overloads(expr.id);
        if overloads.is_empty() {
            return CostEstimate::fixed(0);
        }
        let namespaced =
            matches!(self.checked.reference(expr.id), crate::check::Reference::Call { namespaced: true, .. });
        let mut sum = CostEstimate::fixed(0);
        let mut target = None;
        if let Some(expr) = call.target.as_ref().filter(|_| !namespaced) {
            sum = self.cost(expr);
            target = Some(self.node(expr));
        }
        let mut total = CostEstimate { min: u64::MAX, max: 0 };
        let mut result_size: Option<SizeEstimate> = None;
        for overload in overloads {
            let nodes = CallNodes { target: target.as_ref(), args: &args, sizes: self.sizes };
            let estimated = self.overload(expr, call, overload, nodes, &costs);
            total = total.union(estimated.cost);
            result_size = match (result_size, estimated.result_size) {
                (Some(one), Some(two)) => Some(one.union(two)),
                (one, two) => one.or(two),
            };
            if let ("index_list" | "index_map", Some(operand)) = (overload.id, call.args.first()) {
                result_size = self.entries_of(operand).map(|entries| entries.value);
                let step = if overload.id == "index_list" { "@items" } else { "@values" };
                let path = self.below(operand, step);
                self.paths.insert(expr.id, path);
            }
            if result_size.is_none() {
                result_size = self.size(expr);
            }
        }
        if let Some(size) = result_size {
            self.known_sizes.insert(expr.id, size);
        }
        sum.plus(total)
    }

    /// The cost of a call of one overload, with its arguments.
    fn overload(
        &mut self,
        expr: &'c Expr,
        call: &'c Call,
        overload: &Overload,
        nodes: CallNodes<'_, 'c>,
        costs: &[CostEstimate],
    ) -> CallEstimate {
        let args = costs.iter().fold(CostEstimate::fixed(0), |sum, cost| sum.plus(*cost));
        let estimated = match overload.estimate {
            Some(estimate) => estimate(&nodes),
            None if &*call.function == op::EQUALS => opaque_equality(nodes.args),
            None => None,
        };
        if let Some(estimated) = estimated {
            return CallEstimate { cost: estimated.cost.plus(args), ..estimated };
        }
        let size =
            |node: Option<&Node<'_>>| node.and_then(|node| node.computed).unwrap_or(SizeEstimate::UNKNOWN);
        let (first, second) = (size(nodes.args.first()), size(nodes.args.get(1)));
        let target = size(nodes.target);
        match (overload.id, costs) {
            ("string_to_bytes", _) => {
                let result = SizeEstimate::range(first.min, first.max.wrapping_mul(4));
                CallEstimate::sized(first.cost(STRING_FACTOR).plus(args), result)
            }
            ("bytes_to_string", _) => {
                let result = SizeEstimate::range(first.min / 4, first.max);
                CallEstimate::sized(first.cost(STRING_FACTOR).plus(args), result)
            }
            ("starts_with_string" | "ends_with_string", _) => {
                CallEstimate::new(first.cost(STRING_FACTOR).plus(args))
            }
            ("in_list", _) => CallEstimate::new(second.cost(1.0).plus(args)),
            ("matches" | "matches_string", _) => {
                let (text, pattern) = if nodes.target.is_some() { (target, first) } else { (first, second) };
                let text = text.plus(SizeEstimate::fixed(1)).cost(STRING_FACTOR);
                CallEstimate::new(text.multiply(pattern.cost(REGEX_FACTOR)).plus(args))
            }
            ("contains_string", _) => {
                let cost = target.cost(STRING_FACTOR).multiply(first.cost(STRING_FACTOR));
                CallEstimate::new(cost.plus(args))
            }
            ("logical_and" | "logical_or", [left, right]) => {
                CallEstimate::new(CostEstimate { min: left.min, max: left.plus(*right).max })
            }
            ("conditional", [condition, yes, no]) => {
                let third = size(nodes.args.get(2));
                if let [_, yes, no] = call.args.as_slice() {
                    self.join_entries(expr, yes, no);
                }
                CallEstimate::sized(condition.plus(yes.union(*no)), second.union(third))
            }
            ("add_string" | "add_bytes" | "add_list", _) => {
                let result = first.plus(second);
                if let [one, two] = call.args.as_slice() {
                    self.join_entries(expr, one, two);
                }
                let cost = match overload.id {
                    "add_list" => CostEstimate::fixed(1),
                    _ => result.cost(STRING_FACTOR),
                };
                CallEstimate::sized(cost.plus(args), result)
            }
            (id, _) if compares_by_size(id) => {
                let most = first.max.min(second.max);
                let compared = CostEstimate { min: u64::from(most > 0), max: most };
                CallEstimate::new(compared.scale(STRING_FACTOR).plus(args))
            }
            _ => CallEstimate::new(CostEstimate::fixed(1).plus(args)),
        }
    }

    fn join_entries(&mut self, expr: &Expr, one: &Expr, two: &Expr) {
        if let (Some(one), Some(two)) = (self.entries_of(one), self.entries_of(two)) {
            self.entries.insert(expr.id, one.union(two));
        }
    }

    fn bind(&mut self, expr: &'c Expr, fold: &'c Comprehension) -> CostEstimate {
        let sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.push_value(&fold.accumulator, &fold.init);
        let sum = sum.plus(self.cost(&fold.result));
        self.locals.pop();
        self.copy_sizes(expr, &fold.result);
        sum
    }

    fn push_value(&mut self, name: &'c str, value: &Expr) {
        let (path, entries, size) = (self.path(value), self.entries_of(value), self.size(value));
        self.locals.push(Local { name, path, size, entries });
    }

    fn comprehension(&mut self, expr: &'c Expr, fold: &'c Comprehension) -> CostEstimate {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        self.push_value(&fold.accumulator, &fold.init);
        let range = self.entries_of(&fold.range);
        let is_list = range.map_or_else(
            || matches!(self.checked.ty(fold.range.id), Type::List(_)),
            |entries| entries.is_list,
        );
        let (key, value) = (range.map(|entries| entries.key), range.map(|entries| entries.value));
        let mut push = |name: &'c str, step: &str, size: Option<SizeEstimate>| {
            let path = self.below(&fold.range, step);
            self.locals.push(Local { name, path, size, entries: None });
        };
        match (&fold.second, is_list) {
            (Some(second), true) => {
                push(&fold.variable, "@indices", key);
                push(second, "@items", value);
            }
            (Some(second), false) => {
                push(&fold.variable, "@keys", key);
                push(second, "@values", value);
            }
            (None, true) => push(&fold.variable, "@items", value),
            (None, false) => push(&fold.variable, "@keys", key),
        }
        let condition = self.cost(&fold.condition);
        let step = self.cost(&fold.step);
        self.locals.truncate(self.locals.len() - 1 - usize::from(fold.second.is_some()));
        sum = sum.plus(self.cost(&fold.result));
        self.locals.pop();
        let rounds = self.size_or_unknown(&fold.range);
        sum = sum.plus(rounds.times(step.plus(condition)));
        match &fold.init.kind {
            Kind::Literal(_) => {
                if let Some(size) = self.size(&fold.init) {
                    self.known_sizes.insert(expr.id, size);
                }
            }
            Kind::List(_) | Kind::Map(_) => {
                self.known_sizes.insert(expr.id, rounds);
                if let Some(entries) = self.entries_of(&fold.step) {
                    self.entries.insert(expr.id, entries);
                }
            }
            _ => {}
        }
        sum
    }

    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        if let Some(size) = self.size(from) {
            self.known_sizes.insert(to.id, size);
        }
        if let Some(entries) = self.entries_of(from) {
            self.entries.insert(to.id, entries);
        }
    }

    fn entries_of(&self, expr: &Expr) -> Option<Entries> {
        if let Some(entries) = self.entries.get(&expr.id) {
            return Some(*entries);
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name)?.entries,
            _ => None,
        }
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> SizeEstimate {
        self.size(expr).unwrap_or(SizeEstimate::UNKNOWN)
    }

    /// How large the value of an expression can be, as far as the expression, the estimator or its type tell.
    fn size(&mut self, expr: &Expr) -> Option<SizeEstimate> {
        if let Some(size) = self.known_sizes.get(&expr.id) {
            return Some(*size);
        }
        let shown = match &expr.kind {
            Kind::Literal(value) => Some(literal_size(value)),
            Kind::List(items) => Some(items.len() as u64),
            Kind::Map(entries) => Some(entries.len() as u64),
            _ => None,
        };
        if let Some(size) = shown {
            return Some(SizeEstimate::fixed(size));
        }
        let path = self.path(expr);
        let ty = self.checked.ty(expr.id);
        if let Some(size) = (!path.is_empty()).then(|| self.sizes.size(&path, ty)).flatten() {
            self.known_sizes.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(ty) {
            return Some(SizeEstimate::fixed(1));
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }
}

fn literal_size(value: &Value<'_>) -> u64 {
    match value {
        Value::String(_) | Value::Bytes(_) => value.size(),
        _ => 1,
    }
}

/// Whether all values of a type have one size.
fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        other => other.optional_of().is_some_and(is_scalar),
    }
}

fn compares_by_size(id: &str) -> bool {
    matches!(
        id,
        "equals"
            | "not_equals"
            | "less_string"
            | "less_equals_string"
            | "greater_string"
            | "greater_equals_string"
            | "less_bytes"
            | "less_equals_bytes"
            | "greater_bytes"
            | "greater_equals_bytes"
    )
}

/// What comparing values of a library costs.
fn opaque_equality(args: &[Node<'_>]) -> Option<CallEstimate> {
    let [Node { ty: left, .. }, Node { ty: right, computed, .. }] = args else { return None };
    let Type::Opaque(opaque) = left else { return None };
    if !left.same(right) || left.optional_of().is_some() {
        return None;
    }
    Some(CallEstimate::new(match &*opaque.0 {
        // The longest name of a format.
        "kubernetes.NamedFormat" => CostEstimate::range(1, 64).scale(STRING_FACTOR),
        "kubernetes.URL" => CostEstimate::range(1, computed.map_or(1, |size| size.max)).scale(STRING_FACTOR),
        _ => CostEstimate::fixed(1),
    }))
}
