//! Rules become programs.

use std::sync::Arc;

use k1s_cel::{DeclType, Env, EvalError, Program, Type, Value as Cel, Variables, Work};
use serde_json::Value;

use super::Rule;

/// What one evaluation of an expression may cost.
const MAX_CALL_COST: u64 = 1_000_000;

/// The numbers of the variables of rules.
const SELF: usize = 0;
const OLD_SELF: usize = 1;

/// Why a rule cannot be evaluated.
#[derive(Debug, Clone)]
pub(crate) struct RuleError(pub(crate) String);

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Expression {
    program: Program,
}

impl Expression {
    /// Evaluates the expression on a value of a declared type, and on the one before an update. `optional`: the old
    /// value is an optional, which is empty if there is none.
    pub(super) fn evaluate<'v>(
        &'v self,
        decl: &'v DeclType,
        value: &'v Value,
        old: Option<&'v Value>,
        optional: bool,
        work: &Work,
    ) -> (Result<Cel<'v>, EvalError>, u64) {
        let scope = Scope { decl, value, old, optional };
        let evaluation = self.program.evaluate_within(&scope, MAX_CALL_COST, work);
        (evaluation.result, evaluation.cost)
    }
}

/// The variables of a rule.
struct Scope<'v> {
    decl: &'v DeclType,
    value: &'v Value,
    old: Option<&'v Value>,
    optional: bool,
}

impl<'v> Variables<'v> for Scope<'v> {
    fn get(&self, number: usize, _: &str) -> Option<Result<Cel<'v>, EvalError>> {
        let old = || self.old.map(|old| Cel::from_json(old, self.decl));
        match number {
            SELF => Some(Cel::from_json(self.value, self.decl)),
            OLD_SELF if self.optional => Some(old().transpose().map(|old| Cel::Optional(old.map(Arc::new)))),
            OLD_SELF => old(),
            _ => None,
        }
    }
}

/// A compiled rule.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// `None`: an empty rule, which is not evaluated.
    pub(crate) program: Result<Option<Expression>, RuleError>,
    /// Whether it uses `oldSelf`.
    pub(crate) uses_old_self: bool,
    /// What it costs at most, once.
    pub(crate) cost: u64,
    /// The expression of the message.
    pub(crate) message: Option<Result<Expression, RuleError>>,
    /// What the message costs at most.
    pub(crate) message_cost: u64,
}

impl Compiled {
    pub(super) fn failed(why: impl Into<String>) -> Compiled {
        Compiled {
            program: Err(RuleError(why.into())),
            uses_old_self: false,
            cost: 0,
            message: None,
            message_cost: 0,
        }
    }
}

/// Compiles a rule about values of a declared type.
pub(crate) fn compile(rule: &Rule, decl: &DeclType) -> Compiled {
    if rule.rule.trim().is_empty() {
        return Compiled { program: Ok(None), uses_old_self: false, cost: 0, message: None, message_cost: 0 };
    }
    let ty = decl.cel().clone();
    let old = if rule.optional_old_self { Type::optional(ty.clone()) } else { ty.clone() };
    let env = Env::kubernetes().extend().variable("self", ty).variable("oldSelf", old).build();
    let ast = match env.compile(&rule.rule) {
        Ok(ast) => ast,
        Err(error) => return Compiled::failed(format!("compilation failed: {error}")),
    };
    if !matches!(ast.output_type(), Type::Bool) {
        return Compiled::failed("cel expression must evaluate to a bool");
    }
    let uses_old_self = ast.uses(OLD_SELF);
    let program = match ast.program() {
        Ok(program) => program,
        Err(error) => {
            return Compiled {
                uses_old_self,
                ..Compiled::failed(format!("program instantiation failed: {error}"))
            };
        }
    };
    let (mut message, mut message_cost) = (None, 0);
    if !rule.message_expression.is_empty() {
        let compiled = compile_message(&env, &rule.message_expression, decl);
        message_cost = compiled.as_ref().map_or(0, |(_, cost)| *cost);
        message = Some(compiled.map(|(expression, _)| expression));
    }
    Compiled {
        program: Ok(Some(Expression { program })),
        uses_old_self,
        cost: ast.cost(decl).max,
        message,
        message_cost,
    }
}

fn compile_message(env: &Env, source: &str, decl: &DeclType) -> Result<(Expression, u64), RuleError> {
    let ast = env
        .compile(source)
        .map_err(|error| RuleError(format!("messageExpression compilation failed: {error}")))?;
    if !matches!(ast.output_type(), Type::String) {
        return Err(RuleError("messageExpression must evaluate to a string".to_owned()));
    }
    let program = ast
        .program()
        .map_err(|error| RuleError(format!("messageExpression instantiation failed: {error}")))?;
    Ok((Expression { program }, ast.cost(decl).max))
}
