//! Controllers that somebody else runs on the same control plane, as a manager sees them that waits until it is idle.

use std::{fmt, future::pending};

use tokio::sync::watch;

use super::Manager;

/// The controllers that belong to a control plane (garbage collection, deletion of namespaces), if it is in this
/// process. A manager for that control plane is idle only when these are, too; see
/// [`Connect::companion`](super::Connect::companion).
#[derive(Clone, Default)]
pub enum Companion {
    /// There has been nothing for them to do, or there is nobody left to do it.
    #[default]
    Absent,
    /// There is something for them to do, and they do not run yet.
    Starting {
        /// What keeps them from it, if something does.
        problem: Option<String>,
    },
    /// They run.
    Running(Manager),
}

/// Waits for those that are about to run.
pub(super) async fn running(companion: &mut Option<watch::Receiver<Companion>>) -> Option<Manager> {
    let there = |one: &Companion| !matches!(one, Companion::Starting { .. });
    let found = companion.as_mut()?.wait_for(there).await;
    // Who tells no more has none.
    match found.as_deref() {
        Ok(Companion::Running(manager)) => Some(manager.clone()),
        _ => None,
    }
}

/// Ends when there are others than [`running`] has found.
pub(super) async fn changed(companion: &mut Option<watch::Receiver<Companion>>) {
    if let Some(companion) = companion
        && companion.changed().await.is_ok()
    {
        return;
    }
    pending().await
}

/// Whether there are others than [`running`] has found.
pub(super) fn has_changed(companion: &Option<watch::Receiver<Companion>>) -> bool {
    companion.as_ref().is_some_and(|companion| companion.has_changed().unwrap_or(false))
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
