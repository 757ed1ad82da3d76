//! Clocks, and sleeping on them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use crate::instant::Instant;
use crate::virtual_clock::{SleeperId, Timeline};

/// Where time comes from.
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

    #[expect(clippy::disallowed_methods, reason = "this is the door to the system's wall clock")]
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

/// The origin of the system's clock. All system environments share it, so that moments of two of them
/// compare; it is a mark on the clock, and nothing of one environment shows through it in another.
#[expect(clippy::disallowed_methods, reason = "this is the door to the system's monotonic clock")]
static ORIGIN: LazyLock<tokio::time::Instant> = LazyLock::new(tokio::time::Instant::now);

/// The runtime's view of the system clock, so that what is read here and when its timers fire agree, also
/// where a test has paused the runtime's clock.
#[expect(clippy::disallowed_methods, reason = "this is the door to the system's monotonic clock")]
fn system_now() -> Instant {
    let origin = *ORIGIN; // before the clock is read: the first to come sets it
    Instant::ORIGIN + tokio::time::Instant::now().saturating_duration_since(origin)
}

/// A future that ends when its moment has come; from [`Env::sleep`](crate::Env::sleep) and
/// [`Env::sleep_until`](crate::Env::sleep_until).
///
/// The moment is fixed when it is made. Dropping it before is all there is to cancelling it: nothing is
/// left behind. Polled again after its end, it is still over.
///
/// On the system clock it needs a tokio runtime with its timer when it is first awaited (not when it is
/// made), and ends up to a millisecond late.
#[must_use = "a sleep does nothing unless it is awaited"]
pub struct Sleep {
    kind: Kind,
}

enum Kind {
    /// The timer is made by the first poll that has to wait: many sleeps (those of timeouts) never do.
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
                // The clock is asked first: a timer whose task has used up its share of a turn says
                // "pending" even when its time has come, and a timeout would never hit such a task.
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

#[expect(clippy::disallowed_methods, reason = "this is the door to the runtime's timers")]
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

/// A future did not end in the time it was given; from [`Env::timeout`](crate::Env::timeout).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not done within {after:?}")]
#[non_exhaustive]
pub struct Elapsed {
    /// The time it was given.
    pub after: Duration,
}
