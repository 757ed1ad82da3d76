//! Decides whether an event is written, counted, combined or rate limited. No I/O.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use k1s_env::{Env, Instant};

use super::{
    EventApi, EventOptions,
    event::{Names, Occurrence, truncated},
    lru::Lru,
};

/// An Event as it is, or should be, on the server.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) name: String,
    pub(super) namespace: String,
    /// The first occurrence; later ones differ in their time, and in their note if they were combined.
    pub(super) first: Arc<Occurrence>,
    pub(super) note: String,
    pub(super) count: i32,
    pub(super) last: Timestamp,
}

/// What to do with an event.
#[derive(Debug)]
pub(super) enum Decision {
    Create(Record),
    Update(Record),
    /// It is included in a count that is written later.
    Counted,
    /// The rate limit of this object is exceeded.
    HeldBack,
}

pub(super) struct Correlator {
    env: Env,
    options: EventOptions,
    names: Names,
    similar: Lru<String, Similar>,
    series: Lru<String, Series>,
    /// By source and object.
    buckets: Lru<String, Bucket>,
    /// Series that were evicted before their last count was written.
    forgotten: Vec<Record>,
}

/// Events that differ only in their note.
struct Similar {
    /// Hashes of the notes.
    notes: HashSet<u64>,
    last: Instant,
}

struct Series {
    record: Record,
    /// Whether the latest count is not on the server yet.
    unwritten: bool,
    last_seen: Instant,
    last_written: Instant,
}

struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Correlator {
    pub(super) fn new(env: Env, options: EventOptions) -> Correlator {
        let remembered = options.remembered;
        Correlator {
            env,
            options,
            names: Names::default(),
            similar: Lru::new(remembered),
            series: Lru::new(remembered),
            buckets: Lru::new(remembered),
            forgotten: Vec::new(),
        }
    }

    pub(super) fn correlate(&mut self, occurrence: Occurrence) -> Decision {
        let now = self.env.now();
        let limited = (self.options.api == EventApi::CoreV1).then(|| occurrence.source_key());
        let decision = self.count(occurrence, now);
        // A rate-limited event is still counted, and appears with the next one that is written.
        if limited.is_none_or(|source| self.take_token(source, now)) { decision } else { Decision::HeldBack }
    }

    /// Applies the new name of an Event.
    pub(super) fn renamed(&mut self, old: &str, new: &str) {
        for series in self.series.values_mut().filter(|series| series.record.name == old) {
            new.clone_into(&mut series.record.name);
        }
    }

    fn count(&mut self, occurrence: Occurrence, now: Instant) -> Decision {
        let (key, note) = self.combine(&occurrence, now);
        let (env, names, options) = (&self.env, &mut self.names, &self.options);
        let mut make = |occurrence: Occurrence| {
            let object = occurrence.event.regarding.name.as_deref().unwrap_or_default();
            let name = names.name(env, object, occurrence.at);
            let (namespace, last) = (occurrence.namespace().to_owned(), occurrence.at);
            let record =
                Record { name, namespace, first: Arc::new(occurrence), note: note.clone(), count: 0, last };
            Series { record, unwritten: false, last_seen: now, last_written: now }
        };
        let at = occurrence.at;
        let mut occurrence = Some(occurrence);
        let (series, forgotten) = self.series.get_or_insert_with(key, || match occurrence.take() {
            Some(occurrence) => make(occurrence),
            None => unreachable!("called at most once"),
        });
        self.forgotten.extend(forgotten.filter(|series| series.unwritten).map(|series| series.record));
        if let Some(occurrence) = occurrence
            && now - series.last_seen > options.repeat_window
        {
            let ended = std::mem::replace(series, make(occurrence));
            self.forgotten.extend(ended.unwritten.then_some(ended.record));
        }
        let record = &mut series.record;
        record.count = record.count.saturating_add(1);
        record.last = at.max(record.last);
        series.last_seen = now;
        if record.count == 1 {
            return Decision::Create(record.clone());
        }
        match options.api {
            EventApi::CoreV1 => record.note = note,
            // A series is written when its count has doubled: often at first, and never far behind.
            EventApi::EventsV1 if !record.count.unsigned_abs().is_power_of_two() => {
                series.unwritten = true;
                return Decision::Counted;
            }
            EventApi::EventsV1 => {}
        }
        series.unwritten = false;
        series.last_written = now;
        Decision::Update(record.clone())
    }

    /// The key of the Event it belongs to, and its note there.
    fn combine(&mut self, occurrence: &Occurrence, now: Instant) -> (String, String) {
        let key = occurrence.similar_key();
        let note = &occurrence.event.note;
        let empty = || Similar { notes: HashSet::new(), last: now };
        let (similar, _) = self.similar.get_or_insert_with(key.clone(), empty);
        if now - similar.last > self.options.combine_window {
            similar.notes.clear();
        }
        similar.last = now;
        let mut hasher = DefaultHasher::new();
        note.hash(&mut hasher);
        let note_hash = hasher.finish();
        let known = similar.notes.contains(&note_hash);
        if known || similar.notes.len() + 1 < self.options.combine_from {
            similar.notes.insert(note_hash);
            return (format!("{key}\0{note}"), note.clone());
        }
        (key, truncated(format!("(combined from similar events): {note}").into(), 1024).into_owned())
    }

    fn take_token(&mut self, source: String, now: Instant) -> bool {
        let burst = f64::from(self.options.burst);
        let (bucket, _) = self.buckets.get_or_insert_with(source, || Bucket { tokens: burst, filled: now });
        let refill = self.options.refill.as_secs_f64();
        if refill > 0.0 {
            bucket.tokens = (bucket.tokens + (now - bucket.filled).as_secs_f64() / refill).min(burst);
        }
        bucket.filled = now;
        // Tolerates rounding errors from accumulated fractions.
        let taken = bucket.tokens > 1.0 - 1e-9;
        if taken {
            bucket.tokens -= 1.0;
        }
        taken
    }

    /// When the next count has to be written.
    pub(super) fn next_due(&self) -> Option<Instant> {
        if !self.forgotten.is_empty() {
            return Some(self.env.now());
        }
        let due = |series: &Series| series.due(self.options.repeat_window, self.options.series_refresh);
        self.series.values().filter(|series| series.unwritten).map(due).min()
    }

    /// Returns the counts that are due, or all unwritten ones; and removes series that have ended.
    pub(super) fn take_due(&mut self, all: bool) -> Vec<Record> {
        let now = self.env.now();
        let (window, refresh) = (self.options.repeat_window, self.options.series_refresh);
        let mut records = std::mem::take(&mut self.forgotten);
        for series in self.series.values_mut().filter(|series| series.unwritten) {
            if all || series.due(window, refresh) <= now {
                series.unwritten = false;
                series.last_written = now;
                records.push(series.record.clone());
            }
        }
        self.series.retain(|series| now - series.last_seen <= window);
        records
    }
}

impl Series {
    fn due(&self, window: Duration, refresh: Duration) -> Instant {
        (self.last_seen + window).min(self.last_written + refresh)
    }
}

#[cfg(test)]
mod tests {
    use k1s_env::VirtualClock;
    use k8s_openapi::api::core::v1::ObjectReference;

    use super::super::{EventType, NewEvent};
    use super::*;

    struct Setting {
        env: Env,
        clock: VirtualClock,
        correlator: Correlator,
    }

    impl Setting {
        fn new(options: EventOptions) -> Setting {
            let (env, clock) = Env::simulated(1);
            Setting { correlator: Correlator::new(env.clone(), options), env, clock }
        }

        fn happens(&mut self, object: &str, reason: &'static str, note: &str) -> Decision {
            let regarding = ObjectReference { name: Some(object.to_owned()), ..ObjectReference::default() };
            self.correlator.correlate(Occurrence {
                event: NewEvent::regarding(regarding, EventType::Normal, reason, note),
                controller: "c".into(),
                instance: "i".into(),
                at: Timestamp::try_from(self.env.wall()).unwrap(),
            })
        }
    }

    fn created(decision: Decision) -> Record {
        match decision {
            Decision::Create(record) => record,
            other => panic!("not created: {other:?}"),
        }
    }

    fn updated(decision: Decision) -> Record {
        match decision {
            Decision::Update(record) => record,
            other => panic!("not updated: {other:?}"),
        }
    }

    #[test]
    fn a_series_is_written_when_it_has_doubled_and_at_its_end() {
        let mut s = Setting::new(EventOptions::default());
        let first = created(s.happens("a", "R", "n"));
        let mut written = Vec::new();
        for _ in 2..=20 {
            s.clock.advance(Duration::from_secs(1));
            if let Decision::Update(record) = s.happens("a", "R", "n") {
                assert_eq!(record.name, first.name);
                written.push(record.count);
            }
        }
        assert_eq!(written, [2, 4, 8, 16]);
        assert!(s.correlator.take_due(false).is_empty());
        assert_eq!(s.correlator.next_due(), Some(s.env.now() + Duration::from_secs(360)));
        s.clock.advance(Duration::from_secs(360));
        let due = s.correlator.take_due(false);
        assert_eq!((due.len(), due[0].count), (1, 20));
        assert_eq!(s.correlator.next_due(), None);
        s.clock.advance(Duration::from_secs(1));
        assert_ne!(created(s.happens("a", "R", "n")).name, first.name, "a new Event after the window");
    }

    #[test]
    fn an_ongoing_series_is_written_every_half_hour() {
        let mut s = Setting::new(EventOptions::default());
        s.happens("a", "R", "n");
        let mut written = 0;
        for _ in 0..180 {
            s.clock.advance(Duration::from_secs(60));
            s.happens("a", "R", "n");
            written += s.correlator.take_due(false).len();
        }
        assert!((3..=6).contains(&written), "{written} times in three hours");
    }

    #[test]
    fn all_unwritten_counts_are_returned_at_the_end() {
        let mut s = Setting::new(EventOptions::default());
        for _ in 0..3 {
            s.happens("a", "R", "n");
            s.happens("b", "R", "n");
        }
        let mut all: Vec<i32> = s.correlator.take_due(true).iter().map(|record| record.count).collect();
        all.sort_unstable();
        assert_eq!(all, [3, 3]);
        assert!(s.correlator.take_due(true).is_empty());
    }

    #[test]
    fn an_evicted_series_is_written() {
        let mut s = Setting::new(EventOptions { remembered: 1, ..EventOptions::default() });
        for _ in 0..3 {
            s.happens("a", "R", "n");
        }
        s.happens("b", "R", "n");
        let due = s.correlator.take_due(false);
        assert_eq!((due.len(), due[0].count), (1, 3));
    }

    #[test]
    fn from_the_tenth_on_events_that_differ_only_in_their_note_are_combined() {
        for options in [EventOptions::default(), EventOptions::core()] {
            let mut s = Setting::new(options);
            for i in 0..9 {
                created(s.happens("a", "R", &format!("note {i}")));
            }
            let tenth = created(s.happens("a", "R", "note 9"));
            assert_eq!(tenth.note, "(combined from similar events): note 9");
            assert_eq!(updated(s.happens("a", "R", "note 10")).name, tenth.name);
            // Known notes, other reasons and other objects are not combined.
            assert_eq!(updated(s.happens("a", "R", "note 3")).count, 2);
            assert_eq!(created(s.happens("a", "Other", "note 11")).note, "note 11");
            assert_eq!(created(s.happens("b", "R", "note 11")).note, "note 11");
            s.clock.advance(Duration::from_secs(601));
            assert_eq!(created(s.happens("a", "R", "note 12")).note, "note 12", "after a pause");
        }
    }

    #[test]
    fn core_events_show_the_last_note_and_every_count() {
        let mut s = Setting::new(EventOptions::core());
        for i in 0..10 {
            s.happens("a", "R", &format!("note {i}"));
        }
        let record = updated(s.happens("a", "R", "note 10"));
        assert_eq!((record.count, &*record.note), (2, "(combined from similar events): note 10"));
        assert_eq!(updated(s.happens("a", "R", "note 11")).count, 3);
    }

    #[test]
    fn core_events_about_an_object_are_rate_limited() {
        let mut s = Setting::new(EventOptions::core());
        created(s.happens("a", "R", "n"));
        for count in 2..=25 {
            assert_eq!(updated(s.happens("a", "R", "n")).count, count);
        }
        for _ in 0..10 {
            assert!(matches!(s.happens("a", "R", "n"), Decision::HeldBack));
        }
        created(s.happens("b", "R", "n"));
        s.clock.advance(Duration::from_secs(300));
        assert_eq!(updated(s.happens("a", "R", "n")).count, 36, "rate-limited events are counted");
        assert!(matches!(s.happens("a", "R", "n"), Decision::HeldBack));
    }

    #[test]
    fn a_series_may_be_long() {
        let mut s = Setting::new(EventOptions::default());
        for _ in 0..100_000 {
            s.happens("a", "R", "n");
        }
        assert_eq!(s.correlator.take_due(true)[0].count, 100_000);
    }
}
