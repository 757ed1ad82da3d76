//! Reports of a tracker: counters, units in flight, refusals.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A snapshot of one component's counters.
///
/// `started` is always `in_flight + succeeded + failed`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComponentStats {
    /// The component's name.
    pub name: Arc<str>,
    /// Whether new units are accepted.
    pub accepting: bool,
    /// Units begun so far.
    pub started: u64,
    /// Units begun and not ended.
    pub in_flight: usize,
    /// Maximum number in flight at once so far.
    pub peak: usize,
    /// Units that reported success.
    pub succeeded: u64,
    /// Units that reported failure, or were dropped without reporting.
    pub failed: u64,
    /// Failed units that ended in a panic.
    pub panicked: u64,
    /// Units refused. They are not counted as started.
    pub refused: u64,
    /// Age of the oldest unit in flight, if any.
    pub oldest: Option<Duration>,
}

/// Describes a unit of work: a text, or a value formatted on demand. Created from a `&'static str` or a
/// `String`, or with [`Description::debug`].
#[derive(Clone)]
pub struct Description(Repr);

#[derive(Clone)]
enum Repr {
    Text(Cow<'static, str>),
    Later(Arc<dyn fmt::Debug + Send + Sync>),
}

impl Description {
    /// A value shown by its `Debug` format. It is formatted only when running work is listed, which is
    /// cheaper than a text for units that begin and end a million times a second.
    pub fn debug(value: impl fmt::Debug + Send + Sync + 'static) -> Description {
        Description(Repr::Later(Arc::new(value)))
    }

    pub(super) fn into_text(self) -> Cow<'static, str> {
        match self.0 {
            Repr::Text(text) => text,
            Repr::Later(value) => format!("{value:?}").into(),
        }
    }
}

impl<T: Into<Cow<'static, str>>> From<T> for Description {
    fn from(text: T) -> Description {
        Description(Repr::Text(text.into()))
    }
}

impl fmt::Debug for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Text(text) => text.fmt(f),
            Repr::Later(value) => value.fmt(f),
        }
    }
}

/// A unit of work in flight. Shown as `component description (age)`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunningWork {
    /// The component it belongs to.
    pub component: Arc<str>,
    /// The description given when it began.
    pub description: Cow<'static, str>,
    /// Time since it began.
    pub age: Duration,
}

impl fmt::Display for RunningWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} (", self.component, self.description)?;
        if self.age < Duration::from_secs(1) {
            write!(f, "{}ms)", self.age.as_millis())
        } else {
            write!(f, "{:.1}s)", self.age.as_secs_f64())
        }
    }
}

/// The deadline has passed, and some work is still in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StillRunning {
    /// The deadline that was given.
    pub after: Duration,
    /// The units in flight when the deadline passed, oldest first; never empty.
    pub work: Vec<RunningWork>,
}

/// Maximum number of units listed in the message; the value holds the whole list.
const SHOWN: usize = 20;

impl fmt::Display for StillRunning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = if self.work.len() == 1 { "unit" } else { "units" };
        write!(f, "{} {units} of work still running after {:?}: ", self.work.len(), self.after)?;
        for (i, work) in self.work.iter().take(SHOWN).enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{work}")?;
        }
        match self.work.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

impl std::error::Error for StillRunning {}

/// A unit of work was refused: its component, or the whole tracker, accepts no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{component} accepts no more work")]
#[non_exhaustive]
pub struct Refused {
    /// The component that refused.
    pub component: Arc<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(description: String, millis: u64) -> RunningWork {
        RunningWork {
            component: "reconcile/widgets".into(),
            description: description.into(),
            age: Duration::from_millis(millis),
        }
    }

    #[test]
    fn the_message_lists_the_work_still_running() {
        let still = StillRunning {
            after: Duration::from_secs(30),
            work: vec![work("default/a".into(), 12_345), work("default/b".into(), 250)],
        };
        assert_eq!(
            still.to_string(),
            "2 units of work still running after 30s: \
             reconcile/widgets default/a (12.3s), reconcile/widgets default/b (250ms)"
        );
    }

    #[test]
    fn a_long_list_is_truncated_in_the_message_only() {
        let still = StillRunning {
            after: Duration::from_secs(1),
            work: (0..SHOWN + 3).map(|i| work(i.to_string(), 0)).collect(),
        };
        let message = still.to_string();
        assert!(
            message.starts_with("23 units of work still running after 1s: reconcile/widgets 0 ("),
            "{message}"
        );
        assert!(message.ends_with("reconcile/widgets 19 (0ms), and 3 more"), "{message}");
    }
}
