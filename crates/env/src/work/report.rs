//! What a tracker says about the work: numbers, lists, refusals.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The numbers of one component, at one moment.
///
/// `started` is always `in_flight + succeeded + failed`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComponentStats {
    /// The component's name.
    pub name: Arc<str>,
    /// Whether a unit could begin.
    pub accepting: bool,
    /// Units begun so far.
    pub started: u64,
    /// Units begun and not ended.
    pub in_flight: usize,
    /// The most that were in flight at once.
    pub peak: usize,
    /// Units that said they succeeded.
    pub succeeded: u64,
    /// Units that said they failed, or ended without a word.
    pub failed: u64,
    /// Those of the failed that ended in a panic.
    pub panicked: u64,
    /// Units that were not let begin. They are not among the started.
    pub refused: u64,
    /// For how long the oldest unit has been in flight, if there is one.
    pub oldest: Option<Duration>,
}

/// What a unit of work is about: a text, or something that is turned into one if somebody asks. Made from a `&'static str` or
/// a `String`, or with [`Description::debug`].
#[derive(Clone)]
pub struct Description(Repr);

#[derive(Clone)]
enum Repr {
    Text(Cow<'static, str>),
    Later(Arc<dyn fmt::Debug + Send + Sync>),
}

impl Description {
    /// A value, as its `Debug` shows it. That is asked for only if somebody wants to know what is running: cheaper than a
    /// text for what begins and ends a million times a second.
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
    /// What it was called when it began.
    pub description: Cow<'static, str>,
    /// For how long it has been in flight.
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

/// The time to wait is up, and not all work has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StillRunning {
    /// How long it was waited for.
    pub after: Duration,
    /// All that was in flight when the time was up, the oldest first; never empty.
    pub work: Vec<RunningWork>,
}

/// More than this in one message is no longer read; the whole list is in the value.
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

/// A unit of work was not let begin: its component, or the whole tracker, was told to accept no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{component} accepts no more work")]
#[non_exhaustive]
pub struct Refused {
    /// The component that was asked.
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
    fn what_still_runs_reads_as_a_sentence() {
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
    fn a_long_list_is_cut_in_the_message_only() {
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
