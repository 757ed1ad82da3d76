//! Evaluation: a checked expression becomes a program, in which every name is resolved and constants are computed, and the
//! program is run over values. Every step adds to the cost; a run that costs too much is stopped.

mod attribute;
mod call;
mod fold;
mod node;
mod plan;

use crate::{
    error::EvalError,
    function::Prepared,
    value::Value,
    work::{self, Work},
};
use node::Node;
pub(crate) use plan::plan;

/// The values of an environment's variables. They are asked for when an expression uses them, perhaps more than once.
pub trait Variables<'a> {
    /// The value of a variable by its number, which is the order in which the environment declares them, and its name.
    /// `None`: it has no value.
    fn get(&self, number: usize, name: &str) -> Option<Result<Value<'a>, EvalError>>;
}

/// Values in the order in which the environment declares its variables.
impl<'a> Variables<'a> for [Value<'a>] {
    fn get(&self, number: usize, _: &str) -> Option<Result<Value<'a>, EvalError>> {
        self.get(number).cloned().map(Ok)
    }
}

impl<'a, const N: usize> Variables<'a> for [Value<'a>; N] {
    fn get(&self, number: usize, name: &str) -> Option<Result<Value<'a>, EvalError>> {
        Variables::get(self.as_slice(), number, name)
    }
}

impl<'a> Variables<'a> for Vec<Value<'a>> {
    fn get(&self, number: usize, name: &str) -> Option<Result<Value<'a>, EvalError>> {
        Variables::get(self.as_slice(), number, name)
    }
}

/// The result of a run, and what it has cost.
#[derive(Debug)]
pub struct Evaluation<'a> {
    /// The value of the expression, or why it has none.
    pub result: Result<Value<'a>, EvalError>,
    /// What the run has cost, also if it failed.
    pub cost: u64,
}

/// An expression that can be run, any number of times and by several threads at once.
#[derive(Debug)]
pub struct Program {
    root: Node,
    /// How deep its nodes are nested.
    depth: usize,
}

impl Program {
    /// How deep the expression is nested. A run needs stack in proportion to it.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Runs the program, until it costs more than a limit.
    pub fn evaluate<'a>(&'a self, variables: &dyn Variables<'a>, cost_limit: u64) -> Evaluation<'a> {
        self.evaluate_within(variables, cost_limit, &Work::new(cost_limit.saturating_add(work::ALONE)))
    }

    /// Runs the program, until it costs more than a limit, or a bound that it shares with other evaluations is exhausted.
    pub fn evaluate_within<'a>(
        &'a self,
        variables: &dyn Variables<'a>,
        cost_limit: u64,
        work: &Work,
    ) -> Evaluation<'a> {
        let mut frame =
            Frame { variables, locals: Vec::new(), cost: 0, limit: cost_limit, work, prepared: Vec::new() };
        let result = work.take(WORK_OF_RUN).and_then(|()| frame.node(&self.root));
        Evaluation { result, cost: frame.cost }
    }
}

type Outcome<'a> = Result<Value<'a>, EvalError>;

/// A run.
struct Frame<'a, 'v> {
    variables: &'v dyn Variables<'a>,
    /// The variables of loops, the innermost last.
    locals: Vec<Value<'a>>,
    cost: u64,
    limit: u64,
    work: &'v Work,
    /// Functions prepared for arguments that are no constants, such as regular expressions from the input.
    prepared: Vec<(&'static str, Box<str>, Prepared)>,
}

/// The work of a run, beside what it costs: a constant costs nothing.
const WORK_OF_RUN: u64 = 1;

impl<'a> Frame<'a, '_> {
    fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        let before = self.cost;
        self.cost = before.saturating_add(cost);
        if self.cost > self.limit {
            self.work.take(self.limit.saturating_sub(before))?;
            return Err(EvalError::CostLimit);
        }
        self.work.take(cost)
    }

    /// Work that upstream's costs do not count.
    fn works(&mut self, work: u64) -> Result<(), EvalError> {
        self.work.take(work)
    }

    fn node(&mut self, node: &'a Node) -> Outcome<'a> {
        match node {
            Node::Constant(value) => Ok(value.borrowed()),
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::Test(attribute) => self.test(attribute),
            Node::Call(call) => self.call(call),
            Node::Equals(equals) => self.equals(equals),
            Node::And(terms) => self.logical(terms, false),
            Node::Or(terms) => self.logical(terms, true),
            Node::InSet(arg, set) => {
                let value = self.node(arg)?;
                Ok(Value::Bool(set.contains(&value)))
            }
            Node::Append(item) => self.append(item),
            Node::Insert(insert) => self.insert(insert),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Object(object) => self.object(object),
            Node::Fold(fold) => self.fold(fold),
            Node::Bind(bind) => {
                let value = self.node(&bind.value)?;
                self.locals.push(value);
                let result = self.node(&bind.result);
                self.locals.pop();
                result
            }
            Node::OptionalOr(terms) => match self.node(&terms.0)? {
                Value::Optional(None) => match self.node(&terms.1)? {
                    other @ Value::Optional(_) => Ok(other),
                    _ => Err(EvalError::NoSuchOverload),
                },
                some @ Value::Optional(_) => Ok(some),
                _ => Err(EvalError::NoSuchOverload),
            },
            Node::OptionalOrValue(terms) => match self.node(&terms.0)? {
                Value::Optional(Some(value)) => Ok((*value).clone()),
                Value::Optional(None) => self.node(&terms.1),
                _ => Err(EvalError::NoSuchOverload),
            },
        }
    }

    /// `||` (decided by `true`) or `&&` (decided by `false`). An error is hidden by a term that decides.
    fn logical(&mut self, terms: &'a (Node, Node), decides: bool) -> Outcome<'a> {
        let first = match self.node(&terms.0) {
            Ok(Value::Bool(value)) if value == decides => return Ok(Value::Bool(decides)),
            other => other,
        };
        if matches!(first, Err(EvalError::CostLimit)) {
            return first;
        }
        match combine(first, self.node(&terms.1), decides) {
            Ok(value) => Ok(Value::Bool(value)),
            Err(error) => Err(error),
        }
    }

    fn equals(&mut self, equals: &'a node::Equals) -> Outcome<'a> {
        let (left, right) = match (self.node(&equals.left), self.node(&equals.right)) {
            (Ok(left), Ok(right)) => (left, right),
            (Err(EvalError::CostLimit), _) | (_, Err(EvalError::CostLimit)) => {
                return Err(EvalError::CostLimit);
            }
            (left, right) => {
                // An error counts as a value of size 1.
                let size = |side: &Outcome<'a>| side.as_ref().map_or(1, Value::size);
                self.charge(u64::from(size(&left).min(size(&right)) > 0))?;
                return left.and(right);
            }
        };
        let same = left.equals_within(&right, self.work);
        let cost = match &left {
            Value::Opaque(opaque) if !equals.negated => opaque.equality_cost().unwrap_or(1),
            // The most usual sizes, without computing them.
            Value::Bool(_) | Value::Int(_) | Value::Null | Value::Double(_) | Value::Uint(_) => {
                u64::from(right.size() > 0)
            }
            _ => crate::cost::scaled(left.size().min(right.size()), crate::cost::STRING_FACTOR),
        };
        self.charge(cost)?;
        Ok(Value::Bool(same? != equals.negated))
    }
}

/// Two terms of `||` or `&&`, of which the first does not decide.
fn combine(first: Outcome<'_>, second: Outcome<'_>, decides: bool) -> Result<bool, EvalError> {
    match (first, second) {
        (_, Err(EvalError::CostLimit)) => Err(EvalError::CostLimit),
        (_, Ok(Value::Bool(value))) if value == decides => Ok(decides),
        (Ok(Value::Bool(value)), Ok(Value::Bool(_))) => Ok(value),
        (Err(error), _) => Err(error),
        (Ok(Value::Bool(_)), Err(error)) => Err(error),
        _ => Err(EvalError::NoSuchOverload),
    }
}
