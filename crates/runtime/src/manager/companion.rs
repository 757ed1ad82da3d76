//! The control plane's own controllers, which a manager waits for until it is idle.

use std::{fmt, future::pending};

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

/// Waits until the companion runs or is absent.
pub(super) async fn running(companion: &mut Option<watch::Receiver<Companion>>) -> Option<Manager> {
    let settled = |one: &Companion| !matches!(one, Companion::Starting { .. });
    let found = companion.as_mut()?.wait_for(settled).await;
    // A dropped sender counts as absent.
    match found.as_deref() {
        Ok(Companion::Running(manager)) => Some(manager.clone()),
        _ => None,
    }
}

/// Returns when the companion is no longer the one that [`running`] returned.
pub(super) async fn changed(companion: &mut Option<watch::Receiver<Companion>>) {
    if let Some(companion) = companion
        && companion.changed().await.is_ok()
    {
        return;
    }
    pending().await
}

/// Whether the companion is no longer the one that [`running`] returned.
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
