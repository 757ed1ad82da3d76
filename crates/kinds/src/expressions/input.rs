//! What expressions are evaluated with.

use std::cell::{Cell, OnceCell};

use k1s_cel::{EvalError, Value, Variables, Work};
use serde_json::Value as Json;

use super::compile::{Compiled, Compiler};

/// What one expression may cost.
const CALL_LIMIT: u64 = 1_000_000;

/// How deep expressions may be nested together: a variable is evaluated within the expression that uses it first. One
/// expression alone has half of that.
const MAX_DEPTH: usize = 500;

/// Why expressions are not evaluated once the budget is exhausted, or the bound on the work of a request.
pub const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What the expressions of a policy may cost together.
#[derive(Debug)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// A budget of this many units.
    pub fn new(units: u64) -> Budget {
        Budget { left: units }
    }

    fn spend(&mut self, cost: u64) -> Result<(), Failure> {
        self.left = self.left.checked_sub(cost).ok_or_else(|| Failure::OutOfBudget(OUT_OF_BUDGET.into()))?;
        Ok(())
    }
}

/// Why an expression has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The expression itself; others can still be evaluated.
    #[error("{0}")]
    Expression(String),
    /// The budget is exhausted.
    #[error("{0}")]
    OutOfBudget(String),
}

/// The variables of a request, as JSON.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The new object; null for DELETE.
    pub object: &'a Json,
    /// The old object; null for CREATE.
    pub old_object: &'a Json,
    /// `AdmissionRequest`, without the objects.
    pub request: &'a Json,
    /// The parameters of a binding; null if it has none.
    pub params: &'a Json,
    /// The namespace of the object; null for match conditions, and at the cluster scope.
    pub namespace: &'a Json,
    /// `authorizer` and `authorizer.requestResource`.
    pub authorizer: Option<&'a Authorizers>,
}

/// The authorizer of a request, as values of the `authz` library.
#[derive(Debug, Clone)]
pub struct Authorizers {
    /// `authorizer`
    pub authorizer: Value<'static>,
    /// `authorizer.requestResource`
    pub request_resource: Value<'static>,
}

/// Evaluates expressions of one policy with one input. Variables are evaluated when an expression first uses them.
pub struct Evaluator<'a> {
    input: Input<'a>,
    compiler: &'a Compiler,
    work: &'a Work,
    values: Vec<OnceCell<Result<Value<'a>, EvalError>>>,
    /// What variables have cost since the last expression.
    variables_cost: Cell<u64>,
    /// How deep the expressions are nested that are being evaluated.
    depth: Cell<usize>,
}

impl<'a> Evaluator<'a> {
    /// For the expressions that `compiler` has compiled, within a bound on the work of all expressions of a request.
    pub fn new(compiler: &'a Compiler, input: Input<'a>, work: &'a Work) -> Evaluator<'a> {
        let values = compiler.variables.iter().map(|_| OnceCell::new()).collect();
        Evaluator { input, compiler, work, values, variables_cost: Cell::new(0), depth: Cell::new(0) }
    }

    /// The value of an expression.
    pub fn evaluate(&self, compiled: &'a Compiled, budget: &mut Budget) -> Result<Value<'a>, Failure> {
        let program = match &compiled.program {
            Ok(program) => program,
            Err(fault) => return Err(Failure::Expression(format!("compilation error: {fault}"))),
        };
        self.depth.set(program.depth());
        let done = program.evaluate_within(self, CALL_LIMIT, self.work);
        budget.spend(self.variables_cost.take())?;
        budget.spend(done.cost)?;
        if self.work.is_exhausted() {
            return Err(Failure::OutOfBudget(OUT_OF_BUDGET.into()));
        }
        done.result.map_err(|error| {
            Failure::Expression(format!("expression '{}' resulted in error: {error}", compiled.text))
        })
    }

    fn variable(&self, at: usize) -> Option<Result<Value<'a>, EvalError>> {
        let variable = self.compiler.variables.get(at)?;
        let value = self.values.get(at)?.get_or_init(|| match &variable.compiled.program {
            Err(fault) => Err(EvalError::new(format!(
                "composited variable {:?} fails to compile: {fault}",
                variable.name
            ))),
            Ok(program) => {
                let around = self.depth.get();
                let depth = around + program.depth();
                if depth > MAX_DEPTH {
                    return Err(EvalError::new(format!(
                        "composited variable {:?} fails to evaluate: max recursion depth exceeded",
                        variable.name
                    )));
                }
                self.depth.set(depth);
                let done = program.evaluate_within(self, CALL_LIMIT, self.work);
                self.depth.set(around);
                self.variables_cost.set(self.variables_cost.get().saturating_add(done.cost));
                done.result.map_err(|error| {
                    EvalError::new(format!(
                        "composited variable {:?} fails to evaluate: {error}",
                        variable.name
                    ))
                })
            }
        });
        Some(value.clone())
    }
}

impl std::fmt::Debug for Evaluator<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Evaluator").field("input", &self.input).finish_non_exhaustive()
    }
}

impl<'a> Variables<'a> for Evaluator<'a> {
    fn get(&self, _: usize, name: &str) -> Option<Result<Value<'a>, EvalError>> {
        Some(Ok(match name {
            "object" => Value::from_untyped(self.input.object),
            "oldObject" => Value::from_untyped(self.input.old_object),
            "params" => Value::from_untyped(self.input.params),
            "request" => Value::from_untyped(self.input.request),
            "namespaceObject" => Value::from_untyped(self.input.namespace),
            "authorizer" => self.input.authorizer?.authorizer.clone(),
            "authorizer.requestResource" => self.input.authorizer?.request_resource.clone(),
            _ => {
                // A variable only sees those before it, so that none can depend on itself.
                let name = name.strip_prefix("variables.")?;
                return self.variable(self.compiler.variables.iter().position(|one| one.name == name)?);
            }
        }))
    }
}
