//! Checks of health: named, added at any time, asked together or one by one.

use std::{collections::BTreeMap, fmt, future::Future, panic::AssertUnwindSafe, sync::Arc};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use parking_lot::RwLock;

/// A check: `Ok` if all is well, else what is not.
type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Named checks. Clones are the same ones.
#[derive(Clone, Default)]
pub struct Checks {
    checks: Arc<RwLock<BTreeMap<Arc<str>, Check>>>,
}

/// What came of the checks.
pub(super) struct Report {
    pub(super) healthy: bool,
    pub(super) text: String,
}

impl Checks {
    /// None yet: all is well.
    #[must_use]
    pub fn new() -> Checks {
        Checks::default()
    }

    /// Adds a check, in place of one of the same name. It is called for each request; all are called at the same time. One
    /// that panics has failed.
    pub fn add<F>(&self, name: impl Into<Arc<str>>, check: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        let check: Check = Arc::new(move || check().boxed());
        self.checks.write().insert(name.into(), check);
    }

    /// Removes a check; whether it was there.
    pub fn remove(&self, name: &str) -> bool {
        self.checks.write().remove(name).is_some()
    }

    /// The names of all checks, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<Arc<str>> {
        self.checks.read().keys().cloned().collect()
    }

    /// Asks one check. `None` if there is none of that name; `ping` is always there if no other is.
    pub async fn run(&self, name: &str) -> Option<Result<(), String>> {
        let check = {
            let checks = self.checks.read();
            if checks.is_empty() && name == "ping" {
                return Some(Ok(()));
            }
            checks.get(name).cloned()?
        };
        Some(asked(&check).await)
    }

    /// Asks all checks; those that failed, with what they say.
    pub async fn failures(&self) -> Vec<(Arc<str>, String)> {
        let outcomes = self.ask(&[]).await;
        outcomes.into_iter().filter_map(|(name, outcome)| Some((name, outcome?.err()?))).collect()
    }

    /// Asks all checks but those; the outcome of one that is left out is `None`.
    async fn ask(&self, exclude: &[String]) -> Vec<(Arc<str>, Option<Result<(), String>>)> {
        let checks: Vec<_> =
            self.checks.read().iter().map(|(name, check)| (name.clone(), check.clone())).collect();
        join_all(checks.into_iter().map(|(name, check)| async move {
            let left_out = exclude.iter().any(|excluded| **excluded == *name);
            let outcome = if left_out { None } else { Some(asked(&check).await) };
            (name, outcome)
        }))
        .await
    }

    /// As Kubernetes tells it, but with the reasons, which Go withholds: who looks at a probe that fails wants to know what
    /// to do, and each check tells its reason at a path of its own anyway.
    pub(super) async fn report(&self, exclude: &[String], verbose: bool) -> Report {
        let mut outcomes = self.ask(exclude).await;
        let mut unknown: Vec<&String> =
            exclude.iter().filter(|name| !outcomes.iter().any(|(known, _)| **known == ***name)).collect();
        unknown.sort();
        unknown.dedup();
        if outcomes.is_empty() {
            outcomes.push(("ping".into(), Some(Ok(()))));
        }
        let healthy = !outcomes.iter().any(|(_, outcome)| matches!(outcome, Some(Err(_))));
        if healthy && !verbose {
            return Report { healthy, text: "ok".to_owned() };
        }
        let mut text = String::new();
        for (name, outcome) in &outcomes {
            match outcome {
                None => text.push_str(&format!("[+]{name} excluded: ok\n")),
                Some(Ok(())) => text.push_str(&format!("[+]{name} ok\n")),
                Some(Err(reason)) => {
                    tracing::info!(check = %name, reason, "a health check failed");
                    // A line for each check, whatever its reason looks like.
                    let reason = reason.trim_end().replace('\n', "\n    ");
                    text.push_str(&format!("[-]{name} failed: {reason}\n"));
                }
            }
        }
        if !unknown.is_empty() {
            let names: Vec<String> = unknown.iter().map(|name| format!("{name:?}")).collect();
            let names = names.join(",");
            text.push_str(&format!("warn: some health checks cannot be excluded: no matches for {names}\n"));
        }
        text.push_str(if healthy { "healthz check passed\n" } else { "healthz check failed\n" });
        Report { healthy, text }
    }
}

async fn asked(check: &Check) -> Result<(), String> {
    let answer = AssertUnwindSafe(async { check().await }).catch_unwind().await;
    answer.unwrap_or_else(|_| Err("the check panicked".to_owned()))
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Checks").field(&self.names()).finish()
    }
}
