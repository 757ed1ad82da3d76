//! How long the rules of a custom resource take.

use std::{cell::Cell, time::Duration};

use k1s_env::{Env, Instant};

/// Measures the rules of a custom resource, if it has any. Its lists of type set and map are measured with them.
pub(crate) struct RuleClock<'a> {
    env: &'a Env,
    began: Cell<Option<Instant>>,
}

impl<'a> RuleClock<'a> {
    pub(crate) fn new(env: &'a Env) -> RuleClock<'a> {
        RuleClock { env, began: Cell::new(None) }
    }

    /// The values are validated, the rules are next.
    pub(super) fn start(&self) {
        self.began.set(Some(self.env.now()));
    }

    /// The time since then; `None` for a kind without rules.
    pub(crate) fn took(&self) -> Option<Duration> {
        self.began.get().map(|began| self.env.now() - began)
    }
}
