//! The evaluation of the rules of a custom resource.

use std::{cell::Cell, time::Duration};

use k1s_cel::Work;
use k1s_env::{Env, Instant};

/// Measures and bounds the rules of a custom resource, if it has any. Its lists of type set and map are measured with them.
pub(crate) struct RuleRun<'a> {
    env: &'a Env,
    began: Cell<Option<Instant>>,
    work: Work,
}

impl<'a> RuleRun<'a> {
    /// A run that may work this much.
    pub(crate) fn new(env: &'a Env, work: u64) -> RuleRun<'a> {
        RuleRun { env, began: Cell::new(None), work: Work::new(work) }
    }

    /// What rules may work together.
    pub(crate) fn work(&self) -> &Work {
        &self.work
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
