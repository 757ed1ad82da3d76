//! Pauses between failed attempts.

use std::time::Duration;

use k1s_env::Env;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);

/// Exponential backoff with jitter.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Starts over after a success.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    pub(crate) async fn pause(&mut self, env: &Env) {
        let pause = self.next(env.random_f64());
        env.sleep(pause).await;
    }

    /// The next pause; up to half of it is jitter.
    fn next(&mut self, chance: f64) -> Duration {
        let longest = FIRST.saturating_mul(1 << self.failures.min(10)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        longest.mul_f64(1.0 - chance / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_two_seconds() {
        let mut backoff = Backoff::default();
        let pauses: Vec<_> = (0..7).map(|_| backoff.next(0.0).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 2000, 2000]);
        backoff.reset();
        assert_eq!(backoff.next(0.5).as_millis(), 75);
    }
}
