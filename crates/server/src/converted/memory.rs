//! Converted encodings, remembered by the bytes they were converted from.
//!
//! An object at a revision is the same bytes wherever it is met (a GET, a list, the event of each watcher), so the bytes are
//! the key, and they are compared. Whoever finds nothing calls the webhook; others that want the same object meanwhile wait
//! for that call. Memory is bounded: entries live in two generations, and the older one is dropped when the younger is full.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

/// A conversion of one object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Identifies the converter, and the schemas that its answers are pruned by.
    converter: u64,
    version: Arc<str>,
    /// A hash of the object's bytes.
    source: u64,
}

/// Maximum bytes of an object that are hashed: its metadata, and so its UID and the times of its managers, come first.
const HASHED: usize = 1024;

impl Key {
    pub(crate) fn new(converter: u64, version: &Arc<str>, source: &[u8]) -> Key {
        let mut hasher = DefaultHasher::new();
        source.len().hash(&mut hasher);
        source.get(..HASHED).unwrap_or(source).hash(&mut hasher);
        Key { converter, version: version.clone(), source: hasher.finish() }
    }
}

/// The result of a call: the converted bytes, or why there are none.
type Outcome = Option<Result<Bytes, String>>;

/// What is known about a conversion.
pub(crate) enum Lookup {
    /// It was made before.
    Found(Bytes),
    /// Another request is making it.
    Awaited(watch::Receiver<Outcome>),
    /// The caller has to make it.
    Mine(Ticket),
}

/// The duty to make a conversion. Dropped without a result, those who wait for it look again.
pub(crate) struct Ticket {
    memory: Memory,
    key: Key,
    source: Bytes,
    done: watch::Sender<Outcome>,
}

impl Ticket {
    /// Publishes the result. Only successes are remembered.
    pub(crate) fn finish(self, outcome: Result<Bytes, String>) {
        if let Ok(converted) = &outcome {
            self.memory.keep(self.key.clone(), self.source.clone(), converted.clone());
        }
        self.done.send_replace(Some(outcome));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.memory.inner.state.lock().pending.remove(&self.key);
    }
}

struct Pending {
    source: Bytes,
    done: watch::Receiver<Outcome>,
}

#[derive(Clone)]
struct Kept {
    source: Bytes,
    converted: Bytes,
}

impl Kept {
    fn size(&self) -> usize {
        self.source.len() + self.converted.len() + 256
    }
}

#[derive(Default)]
struct State {
    young: HashMap<Key, Kept>,
    young_bytes: usize,
    old: HashMap<Key, Kept>,
    pending: HashMap<Key, Pending>,
}

/// The remembered conversions of a server. Clones share them.
#[derive(Clone)]
pub(crate) struct Memory {
    inner: Arc<Inner>,
}

struct Inner {
    /// Maximum bytes of a generation.
    limit: usize,
    state: Mutex<State>,
}

impl Memory {
    /// A memory of at most so many bytes.
    pub(crate) fn new(max_bytes: usize) -> Memory {
        Memory { inner: Arc::new(Inner { limit: max_bytes / 2, state: Mutex::default() }) }
    }

    /// What is known about the conversion of these bytes.
    pub(crate) fn look_up(&self, key: &Key, source: &Bytes) -> Lookup {
        let mut state = self.inner.state.lock();
        if let Some(kept) = state.young.get(key).filter(|kept| kept.source == *source) {
            return Lookup::Found(kept.converted.clone());
        }
        if let Some(kept) = state.old.get(key).filter(|kept| kept.source == *source).cloned() {
            // Still in use: it stays for another generation.
            let converted = kept.converted.clone();
            state.old.remove(key);
            self.insert(&mut state, key.clone(), kept);
            return Lookup::Found(converted);
        }
        if let Some(pending) = state.pending.get(key).filter(|pending| pending.source == *source) {
            return Lookup::Awaited(pending.done.clone());
        }
        let done = watch::Sender::new(None);
        let pending = Pending { source: source.clone(), done: done.subscribe() };
        state.pending.insert(key.clone(), pending);
        Lookup::Mine(Ticket { memory: self.clone(), key: key.clone(), source: source.clone(), done })
    }

    /// Remembers a conversion.
    pub(crate) fn keep(&self, key: Key, source: Bytes, converted: Bytes) {
        let mut state = self.inner.state.lock();
        self.insert(&mut state, key, Kept { source, converted });
    }

    fn insert(&self, state: &mut State, key: Key, kept: Kept) {
        let size = kept.size();
        if size > self.inner.limit {
            return;
        }
        if state.young_bytes + size > self.inner.limit {
            state.old = std::mem::take(&mut state.young);
            state.young_bytes = 0;
        }
        state.young_bytes += size;
        if let Some(replaced) = state.young.insert(key, kept) {
            state.young_bytes -= replaced.size();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(memory_of: &str) -> (Key, Bytes) {
        let source = Bytes::copy_from_slice(memory_of.as_bytes());
        (Key::new(1, &"v1".into(), &source), source)
    }

    fn find(memory: &Memory, what: &str) -> Option<Bytes> {
        let (key, source) = key(what);
        match memory.look_up(&key, &source) {
            Lookup::Found(found) => Some(found),
            Lookup::Awaited(_) | Lookup::Mine(_) => None,
        }
    }

    fn keep(memory: &Memory, what: &str) {
        let (key, source) = key(what);
        memory.keep(key, source.clone(), source);
    }

    #[test]
    fn a_conversion_is_made_once_and_others_wait_for_it() {
        let memory = Memory::new(1 << 20);
        let (key, source) = key("a");
        let Lookup::Mine(ticket) = memory.look_up(&key, &source) else { panic!("the first has to make it") };
        let Lookup::Awaited(mut wait) = memory.look_up(&key, &source) else { panic!("the second waits") };
        assert!(wait.borrow_and_update().is_none());
        ticket.finish(Ok(Bytes::from_static(b"A")));
        assert_eq!(*wait.borrow(), Some(Ok(Bytes::from_static(b"A"))));
        assert_eq!(find(&memory, "a").unwrap(), "A");
    }

    #[test]
    fn a_failed_or_abandoned_conversion_is_not_remembered() {
        let memory = Memory::new(1 << 20);
        let (key, source) = key("a");
        let Lookup::Mine(ticket) = memory.look_up(&key, &source) else { panic!() };
        ticket.finish(Err("no".into()));
        let Lookup::Mine(ticket) = memory.look_up(&key, &source) else { panic!("it can be tried again") };
        let Lookup::Awaited(wait) = memory.look_up(&key, &source) else { panic!() };
        drop(ticket);
        assert!(wait.has_changed().is_err(), "those who wait are told");
        assert!(matches!(memory.look_up(&key, &source), Lookup::Mine(_)));
    }

    #[test]
    fn other_bytes_with_the_same_hash_are_another_object() {
        let memory = Memory::new(1 << 20);
        let (key, source) = key("a");
        memory.keep(key.clone(), source, Bytes::from_static(b"A"));
        assert!(matches!(memory.look_up(&key, &Bytes::from_static(b"b")), Lookup::Mine(_)));
    }

    #[test]
    fn memory_is_bounded_and_what_is_used_stays() {
        let memory = Memory::new(20_000);
        keep(&memory, "used");
        for number in 0..10_000 {
            keep(&memory, &number.to_string());
            assert!(find(&memory, "used").is_some(), "{number}");
        }
        assert!(find(&memory, "0").is_none());
        let state = memory.inner.state.lock();
        let size: usize = state.young.values().chain(state.old.values()).map(Kept::size).sum();
        assert!(size <= 20_000, "{size}");
    }
}
