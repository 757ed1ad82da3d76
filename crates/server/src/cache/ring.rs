//! The recent events of a resource, which watchers read at their own pace.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use k1s_store::Revision;

use super::Entry;

/// One change of one object.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) revision: Revision,
    pub(crate) old: Option<Arc<Entry>>,
    pub(crate) new: Option<Arc<Entry>>,
    /// The encoded event, shared by all watchers that see the object as it is stored.
    pub(crate) line: OnceLock<Bytes>,
}

impl Event {
    pub(crate) fn new(revision: Revision, old: Option<Arc<Entry>>, new: Option<Arc<Entry>>) -> Event {
        Event { revision, old, new, line: OnceLock::new() }
    }

    fn size(&self) -> usize {
        let size = |entry: &Option<Arc<Entry>>| entry.as_ref().map_or(0, |entry| entry.stored.len());
        size(&self.old) + 2 * size(&self.new) + 256
    }
}

/// Maximum number of events.
const MAX_EVENTS: usize = 100_000;
/// Maximum bytes of events, beyond [`MIN_EVENTS`].
const MAX_BYTES: usize = 16 << 20;
/// Minimum number of events kept, however large they are.
const MIN_EVENTS: usize = 100;

/// The recent events, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    events: VecDeque<Arc<Event>>,
    /// The position of the first event; positions only grow.
    first: u64,
    /// The ring has all events after this revision.
    oldest: Revision,
    bytes: usize,
}

/// What a watcher found at its position.
#[derive(Debug)]
pub(crate) enum Took {
    /// These events, and the position after them.
    Events(Vec<Arc<Event>>, u64),
    /// Nothing new.
    Nothing,
    /// The position has fallen off the end.
    TooOld,
}

/// Maximum bytes of objects that a watcher takes at a time, plus one object: it holds them until its client reads.
const MAX_BYTES_TAKEN: usize = 256 << 10;

impl Ring {
    /// Drops all events; the next one is after `revision`.
    pub(super) fn restart(&mut self, revision: Revision) {
        // One more than was dropped: even the position at the end becomes too old.
        self.first += self.events.len() as u64 + 1;
        self.events.clear();
        self.bytes = 0;
        self.oldest = revision;
    }

    pub(super) fn push(&mut self, events: Vec<Arc<Event>>) {
        for event in events {
            self.bytes += event.size();
            self.events.push_back(event);
        }
        while self.events.len() > MAX_EVENTS || (self.bytes > MAX_BYTES && self.events.len() > MIN_EVENTS) {
            let Some(event) = self.events.pop_front() else { break };
            self.bytes -= event.size();
            self.first += 1;
            self.oldest = event.revision;
        }
    }

    /// The position of the first event after `revision`, if the ring has all events since.
    pub(crate) fn position_after(&self, revision: Revision) -> Option<u64> {
        (revision >= self.oldest)
            .then(|| self.first + self.events.partition_point(|event| event.revision <= revision) as u64)
    }

    /// The events after `from` up to `to`, if the ring has all of them and they are at most `max`.
    pub(crate) fn between(&self, from: Revision, to: Revision, max: usize) -> Option<Vec<Arc<Event>>> {
        if from < self.oldest {
            return None;
        }
        let start = self.events.partition_point(|event| event.revision <= from);
        let end = self.events.partition_point(|event| event.revision <= to);
        (end - start <= max).then(|| self.events.range(start..end).cloned().collect())
    }

    /// The ring has all events after this revision.
    pub(crate) fn oldest(&self) -> Revision {
        self.oldest
    }

    /// The revision of the newest event, or the one that the ring starts after.
    pub(crate) fn newest(&self) -> Revision {
        self.events.back().map_or(self.oldest, |event| event.revision)
    }

    /// The position after the newest event.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// Up to `max` events from a position on; fewer if they are large.
    pub(crate) fn take(&self, position: u64, max: usize) -> Took {
        let Some(offset) = position.checked_sub(self.first) else { return Took::TooOld };
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if offset >= self.events.len() {
            return Took::Nothing;
        }
        let mut bytes = 0;
        let events: Vec<_> = self
            .events
            .range(offset..)
            .take(max)
            .take_while(|event| {
                let fits = bytes < MAX_BYTES_TAKEN;
                bytes += event.new.as_ref().or(event.old.as_ref()).map_or(0, |entry| entry.stored.len());
                fits
            })
            .cloned()
            .collect();
        let position = position + events.len() as u64;
        Took::Events(events, position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(revision: u64) -> Arc<Event> {
        Arc::new(Event::new(Revision::new(revision), None, None))
    }

    #[test]
    fn a_position_that_was_dropped_is_too_old() {
        let mut ring = Ring::default();
        ring.restart(Revision::new(5));
        assert_eq!(ring.position_after(Revision::new(4)), None);
        let start = ring.position_after(Revision::new(5)).unwrap();
        assert!(matches!(ring.take(start, 10), Took::Nothing));
        ring.push((6..=6 + MAX_EVENTS as u64).map(event).collect());
        assert!(matches!(ring.take(start, 10), Took::TooOld));
        assert_eq!(ring.position_after(Revision::new(5)), None);
        let oldest = ring.oldest();
        let Took::Events(events, next) = ring.take(ring.position_after(oldest).unwrap(), 2) else { panic!() };
        let revisions: Vec<u64> = events.iter().map(|event| event.revision.get() - oldest.get()).collect();
        assert_eq!(revisions, [1, 2]);
        let Took::Events(events, _) = ring.take(next, 1) else { panic!() };
        assert_eq!(events[0].revision.get() - oldest.get(), 3);
        ring.restart(Revision::new(200_000));
        assert!(matches!(ring.take(next, 1), Took::TooOld));
        assert!(matches!(ring.take(ring.end(), 1), Took::Nothing));
    }
}
