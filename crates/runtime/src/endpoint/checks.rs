//! Named health checks, run together or one by one.

use std::{collections::BTreeMap, fmt, future::Future, panic::AssertUnwindSafe, sync::Arc};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use parking_lot::RwLock;

/// A check: `Ok` if healthy, with a note for verbose reports; else the reason.
type Check = Arc<dyn Fn() -> BoxFuture<'static, Outcome> + Send + Sync>;

type Outcome = Result<Option<String>, String>;

/// Named health checks. Clones share one set.
#[derive(Clone, Default)]
pub struct Checks {
    checks: Arc<RwLock<BTreeMap<Arc<str>, Check>>>,
}

/// The result of all checks.
pub(super) struct Report {
    pub(super) healthy: bool,
    pub(super) text: String,
}

impl Checks {
    /// An empty set, which is healthy.
    #[must_use]
    pub fn new() -> Checks {
        Checks::default()
    }

    /// Adds a check, or replaces one of the same name. It runs for each request, concurrently with the others. A panic is a
    /// failure.
    pub fn add<F>(&self, name: impl Into<Arc<str>>, check: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        let check: Check = Arc::new(move || check().map(|outcome| outcome.map(|()| None)).boxed());
        self.checks.write().insert(name.into(), check);
    }

    /// Like [`add`](Self::add), with a note that verbose reports show although the check succeeds.
    pub fn add_with_note<F>(&self, name: impl Into<Arc<str>>, check: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<Option<String>, String>> + Send + 'static,
    {
        let check: Check = Arc::new(move || check().boxed());
        self.checks.write().insert(name.into(), check);
    }

    /// Removes a check; returns whether it existed.
    pub fn remove(&self, name: &str) -> bool {
        self.checks.write().remove(name).is_some()
    }

    /// The names of all checks, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<Arc<str>> {
        self.checks.read().keys().cloned().collect()
    }

    /// Runs one check. `None` if there is none of that name; without any checks, `ping` succeeds.
    pub async fn run(&self, name: &str) -> Option<Result<(), String>> {
        let check = {
            let checks = self.checks.read();
            if checks.is_empty() && name == "ping" {
                return Some(Ok(()));
            }
            checks.get(name).cloned()?
        };
        Some(run_check(&check).await.map(|_| ()))
    }

    /// Runs all checks; returns those that failed, with their reasons.
    pub async fn failures(&self) -> Vec<(Arc<str>, String)> {
        let outcomes = self.run_all(&[]).await;
        outcomes.into_iter().filter_map(|(name, outcome)| Some((name, outcome?.err()?))).collect()
    }

    /// Runs all checks except some; the outcome of an excluded one is `None`.
    async fn run_all(&self, exclude: &[String]) -> Vec<(Arc<str>, Option<Outcome>)> {
        let checks: Vec<_> =
            self.checks.read().iter().map(|(name, check)| (name.clone(), check.clone())).collect();
        join_all(checks.into_iter().map(|(name, check)| async move {
            let excluded = exclude.iter().any(|other| **other == *name);
            let outcome = if excluded { None } else { Some(run_check(&check).await) };
            (name, outcome)
        }))
        .await
    }

    /// The report in the format of Kubernetes, but with reasons, which Go withholds: anyone who debugs a failing probe needs
    /// them, and each check returns its reason at its own path anyway.
    pub(super) async fn report(&self, exclude: &[String], verbose: bool) -> Report {
        let mut outcomes = self.run_all(exclude).await;
        let mut unknown: Vec<&String> =
            exclude.iter().filter(|name| !outcomes.iter().any(|(known, _)| **known == ***name)).collect();
        unknown.sort();
        unknown.dedup();
        if outcomes.is_empty() {
            outcomes.push(("ping".into(), Some(Ok(None))));
        }
        let healthy = !outcomes.iter().any(|(_, outcome)| matches!(outcome, Some(Err(_))));
        if healthy && !verbose {
            return Report { healthy, text: "ok".to_owned() };
        }
        let mut text = String::new();
        for (name, outcome) in &outcomes {
            match outcome {
                None => text.push_str(&format!("[+]{name} excluded: ok\n")),
                Some(Ok(None)) => text.push_str(&format!("[+]{name} ok\n")),
                Some(Ok(Some(note))) => text.push_str(&format!("[+]{name} ok: {note}\n")),
                Some(Err(reason)) => {
                    tracing::info!(check = %name, reason, "a health check failed");
                    // Indents further lines of a reason, so that each check starts a line.
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

async fn run_check(check: &Check) -> Outcome {
    let answer = AssertUnwindSafe(async { check().await }).catch_unwind().await;
    answer.unwrap_or_else(|_| Err("the check panicked".to_owned()))
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Checks").field(&self.names()).finish()
    }
}
