//! The options of event recording.

use std::time::Duration;

/// The API that events are written to. Both show the same objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EventApi {
    /// `events.k8s.io/v1`: repetitions form a series.
    #[default]
    EventsV1,
    /// `v1`: repetitions are counted, the last message is shown, and writes are rate limited per object.
    CoreV1,
}

/// How events are queued, merged and delivered. The defaults are those of client-go.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventOptions {
    /// The API that events are written to.
    pub api: EventApi,
    /// Maximum number of events that wait for delivery; further ones are dropped.
    pub queue: usize,
    /// An event that repeats within this time of its last occurrence is counted; later, it starts a new Event.
    pub repeat_window: Duration,
    /// Maximum interval between writes of an ongoing series, to keep it from expiring. It is also written whenever its count
    /// has doubled, at its end, and at shutdown. (`events.k8s.io` only.)
    pub series_refresh: Duration,
    /// Number of events with the same reason and object, but different notes, from which on they are combined.
    pub combine_from: usize,
    /// Combining starts over after this time without such an event.
    pub combine_window: Duration,
    /// Maximum burst of events that are written for an object. (Core API only.)
    pub burst: u32,
    /// The interval at which one more event per object is allowed.
    pub refill: Duration,
    /// Maximum number of objects and events that are tracked.
    pub remembered: usize,
    /// Maximum number of delivery attempts while the server does not respond.
    pub tries: u32,
    /// The interval between two attempts.
    pub retry_after: Duration,
    /// Maximum time to wait for a response.
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
        // The default retention of a server: the count of an expired Event starts over.
        let repeat_window = Duration::from_secs(3600);
        EventOptions { api: EventApi::CoreV1, repeat_window, ..EventOptions::default() }
    }
}
