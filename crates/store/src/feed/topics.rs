//! Watched prefixes, and the recent changes under each.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::sync::{Notify, futures::Notified};

use super::Published;
use crate::{Change, Revision};

/// All topics of a feed, by their prefix.
#[derive(Default)]
pub(super) struct Topics {
    by_prefix: BTreeMap<Bytes, Arc<Topic>>,
}

impl Topics {
    /// The topic of `prefix`, with one more watch.
    pub(super) fn join(&mut self, prefix: &Bytes, previous: bool) -> Arc<Topic> {
        let topic = self.by_prefix.entry(prefix.clone()).or_insert_with(|| Arc::new(Topic::new(prefix)));
        topic.watches.fetch_add(1, Ordering::Relaxed);
        if previous {
            topic.previous_wanted.fetch_add(1, Ordering::Relaxed);
        }
        topic.clone()
    }

    /// Removes one watch; a topic without watches is dropped.
    pub(super) fn leave(&mut self, topic: &Topic, previous: bool) {
        if previous {
            topic.previous_wanted.fetch_sub(1, Ordering::Relaxed);
        }
        if topic.watches.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.by_prefix.remove(&topic.prefix);
        }
    }

    /// Every topic.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.by_prefix.values()
    }

    /// The topics whose prefix `key` begins with, longest first.
    ///
    /// The largest prefix that is not after the key either is a prefix of it, or tells how much of
    /// the key it shares: no longer prefix can match, so the search goes on there. Each step is one
    /// look-up, and there are about as many steps as there are matches.
    pub(super) fn matching(&self, key: &[u8]) -> impl Iterator<Item = &Arc<Topic>> {
        let mut bound = Some(Bound::Included(key.len()));
        let key = Bytes::copy_from_slice(key);
        std::iter::from_fn(move || {
            loop {
                let upper = match bound? {
                    Bound::Included(len) => Bound::Included(&key[..len]),
                    Bound::Excluded(len) => Bound::Excluded(&key[..len]),
                    Bound::Unbounded => Bound::Unbounded,
                };
                let below = (Bound::Unbounded, upper);
                let Some((prefix, topic)) = self.by_prefix.range::<[u8], _>(below).next_back() else {
                    bound = None;
                    return None;
                };
                let shared = prefix.iter().zip(&key).take_while(|(a, b)| a == b).count();
                if shared == prefix.len() {
                    bound = Some(Bound::Excluded(shared));
                    return Some(topic);
                }
                bound = Some(Bound::Included(shared));
            }
        })
    }

    /// The topics of all keys of `change`, each once.
    pub(super) fn touched_by(&self, change: &Change) -> SmallVec<[Arc<Topic>; 4]> {
        let mut touched = SmallVec::<[Arc<Topic>; 4]>::new();
        if self.by_prefix.is_empty() {
            return touched;
        }
        for event in change.events() {
            for topic in self.matching(&event.key) {
                if !touched.iter().any(|known| Arc::ptr_eq(known, topic)) {
                    touched.push(topic.clone());
                }
            }
        }
        touched
    }
}

/// The recent changes under one prefix, shared by all watches of it.
pub(super) struct Topic {
    prefix: Bytes,
    state: Mutex<TopicState>,
    news: Notify,
    watches: AtomicUsize,
    previous_wanted: AtomicUsize,
}

#[derive(Default)]
struct TopicState {
    ring: VecDeque<Published>,
    /// The position of the first change in the ring; a topic counts its changes from 0.
    first: u64,
    /// Whether this topic is queued for the dispatcher.
    dirty: bool,
}

/// The result of reading a topic.
pub(super) enum Read {
    /// This many changes, up to the limit; 0 if there is nothing new.
    Changes(SmallVec<[Published; 8]>),
    /// The change at that position is no longer there.
    Missed,
}

impl Topic {
    fn new(prefix: &Bytes) -> Self {
        Self {
            prefix: prefix.clone(),
            state: Mutex::default(),
            news: Notify::new(),
            watches: AtomicUsize::new(0),
            previous_wanted: AtomicUsize::new(0),
        }
    }

    pub(super) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    pub(super) fn wants_previous(&self) -> bool {
        self.previous_wanted.load(Ordering::Relaxed) > 0
    }

    /// Adds a change; true if the topic has to be queued for the dispatcher.
    pub(super) fn push(&self, published: Published) -> bool {
        let mut state = self.state.lock();
        state.ring.push_back(published);
        !std::mem::replace(&mut state.dirty, true)
    }

    /// Forgets the change of `revision`, if it is still here.
    pub(super) fn evict(&self, revision: Revision) {
        let mut state = self.state.lock();
        while state.ring.front().is_some_and(|first| first.change.revision() <= revision) {
            state.ring.pop_front();
            state.first += 1;
        }
    }

    /// Sends every cursor to the ring or history: changes may have been missed here.
    pub(super) fn lose_track(&self) {
        let mut state = self.state.lock();
        state.first += state.ring.len() as u64 + 1;
        state.ring.clear();
    }

    pub(super) fn mark_dirty(&self) {
        self.state.lock().dirty = true;
    }

    pub(super) fn wake(&self) {
        self.state.lock().dirty = false;
        self.news.notify_waiters();
    }

    /// Completes when there is a change after this call.
    pub(super) fn news(&self) -> Notified<'_> {
        self.news.notified()
    }

    /// The position after the newest change.
    pub(super) fn end(&self) -> u64 {
        let state = self.state.lock();
        state.first + state.ring.len() as u64
    }

    /// Up to `limit` changes from `position` on.
    pub(super) fn read(&self, position: u64, limit: usize) -> Read {
        let state = self.state.lock();
        let Some(skip) = position.checked_sub(state.first) else { return Read::Missed };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        Read::Changes(state.ring.iter().skip(skip).take(limit).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(prefixes: &[&'static str]) -> Topics {
        let mut topics = Topics::default();
        for prefix in prefixes {
            topics.join(&Bytes::from_static(prefix.as_bytes()), false);
        }
        topics
    }

    fn matching(topics: &Topics, key: &str) -> Vec<String> {
        topics
            .matching(key.as_bytes())
            .map(|topic| String::from_utf8_lossy(topic.prefix()).into_owned())
            .collect()
    }

    #[test]
    fn a_key_finds_every_prefix_it_begins_with() {
        let topics = topics(&["", "/a/", "/a/b", "/a/b/c", "/a/bz", "/aa/", "/b/", "/a/b/c/d/e"]);
        assert_eq!(matching(&topics, "/a/b/c/d"), ["/a/b/c", "/a/b", "/a/", ""]);
        assert_eq!(matching(&topics, "/a/bzz"), ["/a/bz", "/a/b", "/a/", ""]);
        assert_eq!(matching(&topics, "/c"), [""]);
        assert_eq!(matching(&topics, ""), [""]);
    }

    #[test]
    fn matching_agrees_with_trying_every_prefix() {
        let (env, _clock) = k1s_env::Env::simulated(11);
        let word = |longest| -> String {
            (0..env.random_below(longest)).map(|_| if env.random_below(2) == 0 { 'a' } else { 'b' }).collect()
        };
        for _ in 0..200 {
            let prefixes: Vec<Bytes> = (0..12).map(|_| word(6).into()).collect();
            let mut topics = Topics::default();
            for prefix in &prefixes {
                topics.join(prefix, false);
            }
            let key = word(8);
            let mut expected: Vec<_> =
                prefixes.iter().filter(|prefix| key.as_bytes().starts_with(prefix)).collect();
            expected.sort_by_key(|prefix| std::cmp::Reverse(prefix.len()));
            expected.dedup();
            let found: Vec<_> = topics.matching(key.as_bytes()).map(|topic| &topic.prefix).collect();
            assert_eq!(found, expected, "key {key:?}");
        }
    }

    #[test]
    fn a_topic_goes_with_its_last_watch() {
        let mut topics = topics(&["/a/", "/a/"]);
        let topic = topics.all().next().unwrap().clone();
        topics.leave(&topic, false);
        assert_eq!(topics.all().count(), 1);
        topics.leave(&topic, false);
        assert_eq!(topics.all().count(), 0);
    }
}
