//! Functions that expressions can call: their declarations, what they do and what they cost.

use std::{fmt, sync::Arc};

use crate::{
    cost::{CallEstimate, CallNodes},
    error::EvalError,
    types::Type,
    value::Value,
    work::Work,
};

/// A function: a name and its overloads.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name, with its namespace if it has one: `matches`, `ip.isCanonical`.
    pub name: &'static str,
    /// The overloads, in the order in which they are tried.
    pub overloads: Vec<Overload>,
}

impl Function {
    /// A function with these overloads.
    pub fn new(name: &'static str, overloads: Vec<Overload>) -> Self {
        Self { name, overloads }
    }
}

/// What an overload does. The receiver of a member function is the first argument.
///
/// Arguments are values, never errors, and are of the declared types, down to the outermost type: a `list(string)` may
/// hold anything if it was `dyn`.
pub type Call = for<'a> fn(&[Value<'a>]) -> Result<Value<'a>, EvalError>;

/// A call that looks at more than its costs count, such as all parts of values that it compares.
pub type CallWithin = for<'a> fn(&[Value<'a>], &Work) -> Result<Value<'a>, EvalError>;

/// A call whose constant arguments have been looked at.
pub type Prepared = Arc<dyn for<'a> Fn(&[Value<'a>]) -> Result<Value<'a>, EvalError> + Send + Sync>;

/// Looks at the constant arguments of a call when the expression is compiled (`None`: not a constant), and gives a
/// quicker function if there is one: with a compiled regular expression, for instance. An error is the program's: the
/// expression compiles, but cannot be run.
pub type Prepare = fn(&[Option<&Value<'static>>]) -> Result<Option<Prepared>, String>;

/// What a call is estimated to cost, without its arguments; `None`: the usual cost of a call, 1.
pub type Estimate = fn(&CallNodes<'_, '_>) -> Option<CallEstimate>;

/// What a call has cost, from its arguments and its result; `None`: the usual cost of a call, 1.
pub type Cost = for<'a> fn(&[Value<'a>], &Value<'a>) -> Option<u64>;

/// One signature of a function.
#[derive(Clone)]
pub struct Overload {
    /// Its unique id.
    pub id: &'static str,
    /// Whether it is called as `receiver.function(…)`; the receiver is the first parameter.
    pub member: bool,
    /// The types of the parameters.
    pub params: Vec<Type>,
    /// The type of the result.
    pub result: Type,
    /// What it does.
    pub call: Call,
    /// The same within a bound; see [`CallWithin`].
    pub within: Option<CallWithin>,
    /// See [`Prepare`].
    pub prepare: Option<Prepare>,
    /// See [`Estimate`].
    pub estimate: Option<Estimate>,
    /// See [`Cost`].
    pub cost: Option<Cost>,
    /// Whether it goes through all parts of its first argument.
    pub(crate) traverses: bool,
    pub(crate) style: Style,
}

/// Differences between upstream's standard functions and those of libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// The cost is that of the function, whichever overload is meant.
    Library,
    /// The cost is that of the overload, if the checker knows which one it is; otherwise 1.
    Standard,
    /// As standard; errors do not name the function.
    Operator,
    /// As standard; errors name the function alone.
    Named,
}

impl Overload {
    /// An overload that is called as `function(…)`.
    pub fn global(id: &'static str, params: Vec<Type>, result: Type, call: Call) -> Self {
        Self {
            id,
            member: false,
            params,
            result,
            call,
            within: None,
            prepare: None,
            estimate: None,
            cost: None,
            traverses: false,
            style: Style::Library,
        }
    }

    /// An overload that is called as `receiver.function(…)`; the receiver is the first parameter.
    pub fn member(id: &'static str, params: Vec<Type>, result: Type, call: Call) -> Self {
        Self { member: true, ..Self::global(id, params, result, call) }
    }

    /// With costs: estimated and actual.
    #[must_use]
    pub fn with_cost(mut self, estimate: Estimate, cost: Cost) -> Self {
        self.estimate = Some(estimate);
        self.cost = Some(cost);
        self
    }

    /// With a call that is bounded.
    #[must_use]
    pub fn with_bound(mut self, within: CallWithin) -> Self {
        self.within = Some(within);
        self
    }

    /// Going through all parts of its first argument.
    pub(crate) fn traversing(mut self) -> Self {
        self.traverses = true;
        self
    }

    pub(crate) fn with_style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    /// With a look at constant arguments.
    #[must_use]
    pub fn with_prepare(mut self, prepare: Prepare) -> Self {
        self.prepare = Some(prepare);
        self
    }
}

impl fmt::Debug for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.id)?;
        for param in &self.params {
            write!(f, "{param},")?;
        }
        write!(f, ") -> {}", self.result)
    }
}
