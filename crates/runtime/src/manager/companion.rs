//! The control plane's own controllers, which a manager waits for until it is idle.

use std::{fmt, future::pending};

use futures_util::future::select_all;
use tokio::sync::watch;

use super::Manager;

/// The controllers of a control plane (garbage collection, namespace deletion), if it runs in this process. A manager
/// for that control plane is idle only when they are, too; see
/// [`Connect::companion`](super::Connect::companion).
#[derive(Clone, Default)]
pub enum Companion {
    /// They had nothing to do so far, or do not run any more.
    #[default]
    Absent,
    /// They have work to do, and do not run yet.
    Starting {
        /// Why they do not run, if there is a reason.
        problem: Option<String>,
    },
    /// They run in this manager.
    Running(Manager),
}

/// Waits until each companion runs or is absent, and returns those that run.
pub(super) async fn running(companions: &mut [watch::Receiver<Companion>]) -> Vec<Manager> {
    let settled = |one: &Companion| !matches!(one, Companion::Starting { .. });
    let mut running = Vec::new();
    for companion in companions {
        // A dropped sender counts as absent.
        if let Ok(Companion::Running(manager)) = companion.wait_for(settled).await.as_deref() {
            running.push(manager.clone());
        }
    }
    running
}

/// The companions that run now.
pub(super) fn running_now(companions: &[watch::Receiver<Companion>]) -> Vec<Manager> {
    let manager = |companion: &watch::Receiver<Companion>| match &*companion.borrow() {
        Companion::Running(manager) => Some(manager.clone()),
        _ => None,
    };
    companions.iter().filter_map(manager).collect()
}

/// Returns when a companion is no longer the one that [`running`] returned.
pub(super) async fn changed(companions: &mut [watch::Receiver<Companion>]) {
    let each = companions.iter_mut().map(|companion| {
        Box::pin(async move {
            if companion.changed().await.is_err() {
                pending::<()>().await;
            }
        })
    });
    let each: Vec<_> = each.collect();
    if each.is_empty() {
        pending::<()>().await;
    }
    select_all(each).await;
}

/// Whether a companion is no longer the one that [`running`] returned.
pub(super) fn has_changed(companions: &[watch::Receiver<Companion>]) -> bool {
    companions.iter().any(|companion| companion.has_changed().unwrap_or(false))
}

impl fmt::Debug for Companion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Companion::Absent => f.write_str("absent"),
            Companion::Starting { problem } => f.debug_struct("starting").field("problem", problem).finish(),
            Companion::Running(manager) => f.debug_tuple("running").field(manager).finish(),
        }
    }
}
