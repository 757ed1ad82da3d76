//! After how many seconds a rejected request should be repeated: as in kube-apiserver, twice as many whenever a level still
//! rejects many requests, and one less whenever it rejects few.

use std::collections::VecDeque;

/// The longest time, in seconds.
const MAX: u32 = 32;

/// The requests of a level that were rejected recently.
#[derive(Debug)]
pub(super) struct Dropped {
    /// The number of rejected requests by second, the oldest first.
    seconds: VecDeque<(u64, u64)>,
    retry_after: u32,
    raised: u64,
}

impl Default for Dropped {
    fn default() -> Dropped {
        Dropped { seconds: VecDeque::new(), retry_after: 1, raised: 0 }
    }
}

impl Dropped {
    /// Records a rejected request. `now` is in seconds, from any time on.
    pub(super) fn record(&mut self, now: u64) -> u32 {
        if let Some((second, count)) = self.seconds.back_mut()
            && *second == now
        {
            *count += 1;
            return self.retry_after;
        }
        self.adjust(now);
        while self.seconds.front().is_some_and(|(second, _)| second + u64::from(MAX) < now) {
            self.seconds.pop_front();
        }
        self.seconds.push_back((now, 1));
        self.retry_after
    }

    fn adjust(&mut self, now: u64) {
        let span = u64::from(self.retry_after);
        let recent = self.seconds.iter().filter(|(second, _)| second + span >= now);
        let dropped: u64 = recent.map(|(_, count)| count).sum();
        if now >= self.raised + span && dropped >= 3 * span {
            self.retry_after = (self.retry_after * 2).min(MAX);
            self.raised = now;
        } else if dropped < span {
            self.retry_after = (self.retry_after - 1).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_sent_away_for_longer_while_there_are_too_many() {
        let mut dropped = Dropped::default();
        let mut second = |now: u64, requests: u64| (0..requests).map(|_| dropped.record(now)).last().unwrap();
        // The cases of kube-apiserver: a spike raises it once, a lasting flood doubles it each time it has passed.
        assert_eq!(second(10, 100), 1);
        assert_eq!(second(11, 100), 2);
        assert_eq!(second(12, 100), 2);
        assert_eq!(second(13, 100), 4);
        assert_eq!(second(14, 100), 4);
        assert_eq!((15..200).map(|now| second(now, 100)).max(), Some(32));
        // It falls by one a second once there are few.
        let after: Vec<u32> = (300..304).map(|now| second(now, 1)).collect();
        assert_eq!(after, [31, 30, 29, 28]);
    }
}
