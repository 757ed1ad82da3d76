//! What the expressions of a request may work together, and on which thread they do.

use k1s_cel::Work;
use k1s_kinds::expressions::{Authorizers, Input};
use serde_json::Value;

use crate::{context::Cx, errors::Error, flow};

/// What all policies and match conditions of a request may work together: as much as five policies that exhaust their budgets.
/// Upstream bounds each policy, and not their number.
const REQUEST: u64 = 50_000_000;

/// What is left of the work of a request.
#[derive(Debug)]
pub(super) struct Allowance {
    left: u64,
    /// Work since other tasks of the thread had their turn.
    since_yield: u64,
    exhausted: bool,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance { left: REQUEST, since_yield: 0, exhausted: false }
    }
}

impl Allowance {
    /// Whether expressions were stopped, or are not evaluated any more.
    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Evaluates expressions. What takes longer than a moment is begun again on a thread for blocking work.
    ///
    /// # Errors
    /// 429 if there is no turn for that.
    pub(super) async fn evaluate<T: Send + 'static>(
        &mut self,
        cx: &Cx,
        input: Input<'_>,
        evaluate: impl Fn(Input<'_>, &Work) -> T + Send + 'static,
    ) -> Result<T, Error> {
        if self.since_yield >= flow::HERE {
            self.since_yield = 0;
            cx.tenant.env().yield_now().await;
        }
        let limit = if cx.holds_turn() { self.left } else { self.left.min(flow::HERE) };
        let (done, spent) = run(&evaluate, input, limit);
        self.since_yield += spent.units;
        let whole = limit == self.left;
        self.left -= spent.units;
        if !spent.all || whole {
            self.exhausted |= spent.all;
            return Ok(done);
        }
        let (input, limit) = (Owned::new(input), self.left);
        let (done, spent) = flow::compute(cx, move || run(&evaluate, input.input(), limit)).await?;
        self.left -= spent.units;
        self.exhausted |= spent.all;
        Ok(done)
    }
}

/// What an evaluation has worked.
struct Spent {
    units: u64,
    /// Whether it needed more than it was given.
    all: bool,
}

fn run<T>(evaluate: &impl Fn(Input<'_>, &Work) -> T, input: Input<'_>, limit: u64) -> (T, Spent) {
    let work = Work::new(limit);
    let done = evaluate(input, &work);
    (done, Spent { units: limit - work.left(), all: work.is_exhausted() })
}

/// An [`Input`] for another thread.
struct Owned {
    object: Value,
    old_object: Value,
    request: Value,
    params: Value,
    namespace: Value,
    authorizer: Option<Authorizers>,
}

impl Owned {
    fn new(input: Input<'_>) -> Owned {
        Owned {
            object: input.object.clone(),
            old_object: input.old_object.clone(),
            request: input.request.clone(),
            params: input.params.clone(),
            namespace: input.namespace.clone(),
            authorizer: input.authorizer.cloned(),
        }
    }

    fn input(&self) -> Input<'_> {
        Input {
            object: &self.object,
            old_object: &self.old_object,
            request: &self.request,
            params: &self.params,
            namespace: &self.namespace,
            authorizer: self.authorizer.as_ref(),
        }
    }
}
