//! Match conditions of webhooks and policies.

use super::{
    compile::{Compiled, Compiler, Purpose},
    input::{Budget, Evaluator, Failure},
};

/// The budget for the match conditions of one webhook or policy.
const CONDITIONS_BUDGET: u64 = 2_500_000;

/// The match conditions of a webhook or a policy.
#[derive(Debug, Default)]
pub struct Conditions {
    compiled: Vec<(String, Compiled)>,
}

/// Whether a request matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matched {
    /// All conditions hold.
    Yes,
    /// A condition does not hold.
    No,
    /// No condition is known not to hold, and some have failed.
    Failed(String),
}

impl Conditions {
    /// The conditions with these names and expressions.
    pub fn compile<'v>(
        compiler: &Compiler,
        conditions: impl IntoIterator<Item = (&'v str, &'v str)>,
    ) -> Self {
        let compile =
            |(name, text): (&str, &str)| (name.to_owned(), compiler.compile(text, Purpose::MatchCondition));
        Conditions { compiled: conditions.into_iter().map(compile).collect() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.compiled.is_empty()
    }

    /// Evaluates them all: one that does not hold excludes the request, even if others fail.
    pub fn matches<'a>(&'a self, evaluator: &Evaluator<'a>) -> Matched {
        let mut budget = Budget::new(CONDITIONS_BUDGET);
        let mut failures: Vec<String> = Vec::new();
        for (_, condition) in &self.compiled {
            match evaluator.evaluate(condition, &mut budget) {
                Ok(k1s_cel::Value::Bool(false)) => return Matched::No,
                Ok(_) => {}
                Err(Failure::OutOfBudget(why)) => return Matched::Failed(why),
                Err(Failure::Expression(why)) => failures.push(why),
            }
        }
        match failures.as_slice() {
            [] => Matched::Yes,
            [one] => Matched::Failed(one.clone()),
            many => Matched::Failed(format!("[{}]", unique(many).join(", "))),
        }
    }
}

/// Without repetitions, as upstream's aggregated errors are shown.
pub(super) fn unique(texts: &[String]) -> Vec<&str> {
    let mut seen = std::collections::HashSet::new();
    texts.iter().map(String::as_str).filter(|text| seen.insert(*text)).collect()
}
