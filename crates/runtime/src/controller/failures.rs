//! The requests whose last reconcile has failed, for reports.

use std::{
    collections::HashMap,
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;

use crate::queue::Key;

/// Maximum number of failed requests to remember per controller; the counters have them all.
const MAX_FAILED: usize = 100;

/// A request whose last reconcile has failed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct FailedRequest {
    /// The name of the controller.
    pub controller: String,
    /// The request, as in logs: `namespace/name`.
    pub request: String,
    /// The reconciler's error.
    pub error: String,
    /// Whether the error was terminal: it is not retried before the next event.
    pub terminal: bool,
}

impl fmt::Display for FailedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.controller, self.request, self.error)
    }
}

struct Failure {
    error: String,
    terminal: bool,
}

/// The failed requests of a controller.
pub(super) struct Failures<R: Key> {
    /// Read without the lock after every successful reconcile.
    count: AtomicUsize,
    failed: Mutex<HashMap<R, Failure>>,
}

impl<R: Key> Default for Failures<R> {
    fn default() -> Failures<R> {
        Failures { count: AtomicUsize::new(0), failed: Mutex::default() }
    }
}

impl<R: Key> Failures<R> {
    pub(super) fn failed(&self, key: &R, error: String, terminal: bool) {
        let mut failed = self.failed.lock();
        if failed.len() < MAX_FAILED || failed.contains_key(key) {
            failed.insert(key.clone(), Failure { error, terminal });
            self.count.store(failed.len(), Ordering::Release);
        }
    }

    /// A reconcile has succeeded, or there is nothing left to reconcile.
    pub(super) fn resolved(&self, key: &R) {
        if self.count.load(Ordering::Acquire) > 0 {
            let mut failed = self.failed.lock();
            failed.remove(key);
            self.count.store(failed.len(), Ordering::Release);
        }
    }

    pub(super) fn list(&self, controller: &str) -> Vec<FailedRequest> {
        let failed = self.failed.lock();
        let one = |(key, failure): (&R, &Failure)| FailedRequest {
            controller: controller.to_owned(),
            request: format!("{key:?}"),
            error: failure.error.clone(),
            terminal: failure.terminal,
        };
        let mut all: Vec<FailedRequest> = failed.iter().map(one).collect();
        all.sort();
        all
    }
}
