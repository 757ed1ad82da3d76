//! A point in monotonic time.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

/// A point in time on the monotonic clock of an [`Env`](crate::Env).
///
/// Instants of all system environments of a process compare with each other; those of a simulated environment
/// only with instants of the same environment.
///
/// Arithmetic never panics: it saturates at the ends of the range, about 290 years on either side of the origin.
/// A negative difference is zero. The last instant of the range means "never": a sleep until then does not end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    // Signed, to represent instants before the clock's origin: "an hour ago" must stay an hour ago in a
    // process that is ten seconds old.
    nanos: i64,
}

impl Instant {
    /// Time zero of every clock.
    pub(crate) const ORIGIN: Instant = Instant { nanos: 0 };
    /// The end of the range, which no clock reaches.
    pub(crate) const NEVER: Instant = Instant { nanos: i64::MAX };

    /// Time since the origin; zero for instants before it.
    pub(crate) fn since_origin(self) -> Duration {
        self - Instant::ORIGIN
    }
}

fn nanos_of(d: Duration) -> i64 {
    i64::try_from(d.as_nanos()).unwrap_or(i64::MAX)
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, d: Duration) -> Instant {
        Instant { nanos: self.nanos.saturating_add(nanos_of(d)) }
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, d: Duration) -> Instant {
        Instant { nanos: self.nanos.saturating_sub(nanos_of(d)) }
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, d: Duration) {
        *self = *self - d;
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;

    /// The time from `earlier` to `self`; zero if `earlier` is the later instant.
    fn sub(self, earlier: Instant) -> Duration {
        if self <= earlier {
            Duration::ZERO
        } else {
            Duration::from_nanos(self.nanos.abs_diff(earlier.nanos))
        }
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.nanos < 0 { "-" } else { "+" };
        write!(f, "Instant({sign}{:?})", Duration::from_nanos(self.nanos.unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn an_instant_before_the_origin_keeps_its_distance() {
        let hour_ago = Instant::ORIGIN - HOUR;
        assert_eq!(Instant::ORIGIN - hour_ago, HOUR);
        assert_eq!(hour_ago + HOUR, Instant::ORIGIN);
        assert!(hour_ago < Instant::ORIGIN);
        assert_eq!(hour_ago.since_origin(), Duration::ZERO);
    }

    #[test]
    fn a_negative_difference_is_zero() {
        assert_eq!(Instant::ORIGIN - (Instant::ORIGIN + HOUR), Duration::ZERO);
    }

    #[test]
    fn arithmetic_saturates_at_the_ends_of_the_range() {
        assert_eq!(Instant::ORIGIN + Duration::MAX, Instant::NEVER);
        assert_eq!(Instant::NEVER + HOUR, Instant::NEVER);
        let first = Instant::ORIGIN - Duration::MAX - Duration::MAX;
        assert_eq!(first - HOUR, first);
        assert_eq!(Instant::NEVER - first, Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn assignment_operators_match_the_plain_operators() {
        let mut t = Instant::ORIGIN;
        t += HOUR;
        assert_eq!(t, Instant::ORIGIN + HOUR);
        t -= HOUR;
        assert_eq!(t, Instant::ORIGIN);
    }

    #[test]
    fn debug_shows_the_distance_from_the_origin() {
        assert_eq!(format!("{:?}", Instant::ORIGIN + Duration::from_millis(1500)), "Instant(+1.5s)");
        assert_eq!(format!("{:?}", Instant::ORIGIN - HOUR), "Instant(-3600s)");
    }
}
