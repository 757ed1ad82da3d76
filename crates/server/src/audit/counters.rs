//! The metrics of auditing, with kube-apiserver's names.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
};

use super::policy::Level;

/// The part of a backend that failed to record an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plugin {
    /// The queue was full.
    Buffered,
    /// The log could not be written.
    Log,
    /// The event is too large, even without its objects.
    Truncate,
    /// The webhook did not take it.
    Webhook,
}

impl Plugin {
    const ALL: [Plugin; 4] = [Plugin::Buffered, Plugin::Log, Plugin::Truncate, Plugin::Webhook];

    fn as_str(self) -> &'static str {
        match self {
            Plugin::Buffered => "buffered",
            Plugin::Log => "log",
            Plugin::Truncate => "truncate",
            Plugin::Webhook => "webhook",
        }
    }
}

/// Counters of one server.
#[derive(Debug, Default)]
pub(super) struct Counters {
    events: AtomicU64,
    levels: [AtomicU64; Level::ALL.len()],
    errors: [AtomicU64; Plugin::ALL.len()],
    rejected: AtomicU64,
}

fn add(counter: Option<&AtomicU64>, count: u64) {
    if let Some(counter) = counter {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

impl Counters {
    /// An event was generated.
    pub(super) fn event(&self) {
        add(Some(&self.events), 1);
    }

    /// The policy has decided about a request.
    pub(super) fn level(&self, level: Level) {
        add(self.levels.get(level as usize), 1);
    }

    /// Events were lost.
    pub(super) fn lost(&self, plugin: Plugin, count: usize) {
        add(self.errors.get(plugin as usize), count as u64);
    }

    /// A request was rejected because it could not be recorded.
    pub(super) fn rejected(&self) {
        add(Some(&self.rejected), 1);
    }

    pub(super) fn write(&self, out: &mut String) {
        let mut counter = |name: &str, help: &str, lines: &mut dyn Iterator<Item = (String, u64)>| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
            for (labels, value) in lines {
                let _ = writeln!(out, "{name}{labels} {value}");
            }
        };
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        counter(
            "apiserver_audit_event_total",
            "Audit events that were sent to the backends.",
            &mut [(String::new(), read(&self.events))].into_iter(),
        );
        let labels = |label: &str, value: &str| format!("{{{label}=\"{value}\"}}");
        counter(
            "apiserver_audit_level_total",
            "Requests by the level that the audit policy has for them.",
            &mut Level::ALL
                .iter()
                .zip(&self.levels)
                .map(|(level, count)| (labels("level", level.as_str()), read(count))),
        );
        counter(
            "apiserver_audit_error_total",
            "Audit events that were lost, by the part of the backend that lost them.",
            &mut Plugin::ALL
                .iter()
                .zip(&self.errors)
                .map(|(plugin, count)| (labels("plugin", plugin.as_str()), read(count))),
        );
        counter(
            "apiserver_audit_requests_rejected_total",
            "Requests that were rejected because the audit log could not be written.",
            &mut [(String::new(), read(&self.rejected))].into_iter(),
        );
    }
}
