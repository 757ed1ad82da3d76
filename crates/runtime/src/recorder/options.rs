//! What events can be told.

use std::time::Duration;

/// By which API events are written. Both show the same objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EventApi {
    /// `events.k8s.io/v1`: repeats are a series.
    #[default]
    EventsV1,
    /// `v1`: repeats are a count, the last message is shown, and there is a limit for each object.
    CoreV1,
}

/// How events are queued, merged and delivered. The numbers are those of client-go.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventOptions {
    /// By which API.
    pub api: EventApi,
    /// So many wait for delivery at most; what comes then is dropped.
    pub queue: usize,
    /// An event that repeats within this time of its last occurrence is counted; later, it is a new one.
    pub repeat_window: Duration,
    /// So often a series that goes on is written at least, to keep it from expiring. It is also written whenever its count
    /// has doubled, at its end, and at shutdown. (`events.k8s.io` alone.)
    pub series_refresh: Duration,
    /// From so many on, events of one reason about one object that differ in their words are combined.
    pub combine_from: usize,
    /// They are told from earlier ones after so long a silence.
    pub combine_window: Duration,
    /// So many events about an object are written at once at most. (Core API alone.)
    pub burst: u32,
    /// And one more after each such time.
    pub refill: Duration,
    /// So many objects and events are remembered.
    pub remembered: usize,
    /// A delivery that fails for want of an answer is tried so often.
    pub tries: u32,
    /// The time between two tries.
    pub retry_after: Duration,
    /// An answer is waited for so long.
    pub answer_within: Duration,
}

impl Default for EventOptions {
    fn default() -> EventOptions {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        EventOptions {
            api: EventApi::default(),
            queue: 1000,
            repeat_window: minutes(6),
            series_refresh: minutes(30),
            combine_from: 10,
            combine_window: minutes(10),
            burst: 25,
            refill: minutes(5),
            remembered: 4096,
            tries: 12,
            retry_after: Duration::from_secs(10),
            answer_within: Duration::from_secs(10),
        }
    }
}

impl EventOptions {
    /// Events of the core API.
    #[must_use]
    pub fn core() -> EventOptions {
        // As long as a server keeps them by default: the count of one that is gone starts anew.
        let repeat_window = Duration::from_secs(3600);
        EventOptions { api: EventApi::CoreV1, repeat_window, ..EventOptions::default() }
    }
}
