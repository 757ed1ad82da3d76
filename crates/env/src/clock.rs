//! Clocks and the sleep future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use crate::instant::Instant;
use crate::virtual_clock::{SleeperId, Timeline};

/// The source of time.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    System,
    Virtual(Arc<Timeline>),
}

impl Clock {
    pub(crate) fn now(&self) -> Instant {
        match self {
            Clock::System => system_now(),
            Clock::Virtual(timeline) => timeline.now(),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "only this crate reads the system's wall clock")]
    pub(crate) fn wall(&self) -> SystemTime {
        match self {
            Clock::System => SystemTime::now(),
            Clock::Virtual(timeline) => timeline.wall(),
        }
    }

    pub(crate) fn sleep_until(&self, deadline: Instant) -> Sleep {
        if deadline == Instant::NEVER {
            return Sleep { kind: Kind::Never };
        }
        let kind = match self {
            Clock::System => Kind::System { deadline, timer: None },
            Clock::Virtual(timeline) => match timeline.register(deadline) {
                Some(id) => Kind::Virtual { timeline: Arc::clone(timeline), id },
                None => Kind::Over,
            },
        };
        Sleep { kind }
    }
}

/// The origin of the system clock, shared by all system environments so that their instants compare.
#[expect(clippy::disallowed_methods, reason = "only this crate reads the monotonic clock")]
static ORIGIN: LazyLock<tokio::time::Instant> = LazyLock::new(tokio::time::Instant::now);

/// Reads tokio's view of the system clock, so that readings and timers agree even while a test has paused it.
#[expect(clippy::disallowed_methods, reason = "only this crate reads the monotonic clock")]
fn system_now() -> Instant {
    let origin = *ORIGIN; // read first: the first use sets it
    Instant::ORIGIN + tokio::time::Instant::now().saturating_duration_since(origin)
}

/// A future that completes at its deadline; from [`Env::sleep`](crate::Env::sleep) and
/// [`Env::sleep_until`](crate::Env::sleep_until).
///
/// The deadline is fixed at creation. Dropping the future cancels it and leaves nothing behind. Polled again
/// after completion, it is ready again.
///
/// On the system clock it needs a tokio runtime with a timer when it is first awaited (not when it is
/// created), and completes up to a millisecond late.
#[must_use = "a sleep does nothing unless it is awaited"]
pub struct Sleep {
    kind: Kind,
}

enum Kind {
    /// The timer is created by the first poll that has to wait: many sleeps (those of timeouts) never do.
    System {
        deadline: Instant,
        timer: Option<Pin<Box<tokio::time::Sleep>>>,
    },
    Virtual {
        timeline: Arc<Timeline>,
        id: SleeperId,
    },
    Over,
    Never,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.kind {
            Kind::System { deadline, timer } => {
                // Read the clock first: the timer of a task that has used up its coop budget is pending even
                // after its deadline, so a timeout would never end such a task.
                if *deadline <= system_now() {
                    return Poll::Ready(());
                }
                timer.get_or_insert_with(|| Box::pin(system_timer(*deadline))).as_mut().poll(cx)
            }
            Kind::Virtual { timeline, id } => timeline.poll(*id, cx.waker()),
            Kind::Over => Poll::Ready(()),
            Kind::Never => Poll::Pending,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "only this crate creates tokio timers")]
fn system_timer(deadline: Instant) -> tokio::time::Sleep {
    tokio::time::sleep_until(*ORIGIN + deadline.since_origin())
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Kind::Virtual { timeline, id } = &self.kind {
            timeline.forget(*id);
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::System { deadline, .. } => write!(f, "Sleep(until {deadline:?})"),
            Kind::Virtual { id, .. } => write!(f, "Sleep(until {:?})", id.deadline()),
            Kind::Over => write!(f, "Sleep(over)"),
            Kind::Never => write!(f, "Sleep(for ever)"),
        }
    }
}

/// A future did not complete in time; from [`Env::timeout`](crate::Env::timeout).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not done within {after:?}")]
#[non_exhaustive]
pub struct Elapsed {
    /// The timeout.
    pub after: Duration,
}
