//! The objects of an informer: what its readers see and what its handlers were told, which is not always the same.
//!
//! A client's own writes are put in at once, so that its reads show them; the handlers hear of them when the server's
//! event comes. Until then the object is *ahead* of its events. An object that is ahead is not set back by events that
//! are older than the write, and gives way to the first one that is not.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, hash_map},
    fmt,
    ops::Bound,
    sync::Arc,
};

use super::{
    codec::{Codec, Kept},
    index::{Index, IndexFn},
};
use crate::{Event, Object, ObjectKey};

pub(super) struct Objects<K: Object> {
    codec: Arc<Codec<K>>,
    entries: BTreeMap<ObjectKey, Entry<K>>,
    indexes: HashMap<String, Index<K>>,
    ahead: HashMap<ObjectKey, Ahead<K>>,
    /// Those that are ahead up to a known revision, by it.
    ahead_until: BTreeSet<(u64, ObjectKey)>,
    /// The newest revision that the server's events have reached.
    revision: u64,
    /// Counts lists, so that what a list does not have any more is found.
    generation: u32,
}

struct Entry<K> {
    kept: Kept<K>,
    revision: u64,
    generation: u32,
}

/// The values of an object in each index, in the order of `Objects::indexes`.
type Values = Vec<Vec<String>>;

/// A write of ours that the server's events have not shown yet.
struct Ahead<K> {
    until: Until,
    /// The state that handlers know.
    told: Option<Kept<K>>,
    /// The list that `told` was seen in last.
    generation: u32,
}

enum Until {
    /// Written at this revision.
    Revision(u64),
    /// Deleted, at a revision that the server did not tell, but after this one. A list that was running at that moment may
    /// still bring it.
    Gone { uid: String, revision: u64, during: u32 },
}

/// An object that came from the server.
pub(super) struct Incoming<K> {
    pub(super) key: ObjectKey,
    pub(super) revision: u64,
    pub(super) uid: String,
    pub(super) kept: Kept<K>,
    pub(super) object: Arc<K>,
}

/// What is known of a state before it is decoded.
pub(super) enum Known<K> {
    /// Handlers know it already.
    Same,
    /// A write of ours: decoded, and not told yet.
    Written(Kept<K>),
    /// Not known.
    New,
}

impl<K: Object> Objects<K> {
    pub(super) fn new(codec: Arc<Codec<K>>) -> Objects<K> {
        Objects {
            codec,
            entries: BTreeMap::new(),
            indexes: HashMap::new(),
            ahead: HashMap::new(),
            ahead_until: BTreeSet::new(),
            revision: 0,
            generation: 0,
        }
    }

    // What readers see.

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Kept<K>> {
        self.entries.get(key).map(|entry| &entry.kept)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The objects of a namespace, or all, in order of their keys.
    pub(super) fn range<'a>(
        &'a self,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Kept<K>)> + 'a {
        // Names are never empty, so this is before all of the namespace.
        let start = namespace
            .map_or(Bound::Unbounded, |namespace| Bound::Included(ObjectKey::new(Some(namespace), "")));
        self.entries
            .range((start, Bound::Unbounded))
            .take_while(move |(key, _)| namespace.is_none_or(|namespace| key.namespace() == Some(namespace)))
            .map(|(key, entry)| (key, &entry.kept))
    }

    pub(super) fn has_index(&self, name: &str) -> bool {
        self.indexes.contains_key(name)
    }

    /// The keys that an index has under a value.
    pub(super) fn indexed(&self, name: &str, value: &str) -> impl Iterator<Item = &ObjectKey> {
        self.indexes.get(name).into_iter().flat_map(move |index| index.keys(value))
    }

    /// An object whose values cannot be computed stays, and is not in the index.
    pub(super) fn add_index(&mut self, name: String, values: IndexFn<K>) {
        let site = self.codec.panics.index(&name, &self.codec.kind.to_string());
        let mut index = Index::new(values, site);
        for (key, entry) in &self.entries {
            if let Some(object) = self.codec.open(&entry.kept)
                && let Ok(values) = index.values(&self.codec.panics, key, &object)
            {
                index.add(key, values);
            }
        }
        if let Some(replaced) = self.indexes.insert(name, index) {
            self.codec.panics.forget(replaced.site(), |_| true);
        }
    }

    /// Forgets panics of indexes with these objects.
    pub(super) fn forget_panics(&self, which: impl Fn(&ObjectKey) -> bool) {
        for index in self.indexes.values() {
            self.codec.panics.forget(index.site(), &which);
        }
    }

    // What handlers know.

    /// Every object that handlers were told of, as they know it.
    pub(super) fn told(&self) -> impl Iterator<Item = (&ObjectKey, &Kept<K>)> {
        let settled = self.entries.iter().filter(|(key, _)| !self.ahead.contains_key(*key));
        let ahead = self.ahead.iter().filter_map(|(key, ahead)| Some((key, ahead.told.as_ref()?)));
        settled.map(|(key, entry)| (key, &entry.kept)).chain(ahead)
    }

    /// The newest revision that the server's events have reached.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether there are writes of ours that were not told yet.
    pub(super) fn is_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// The revision of the state that handlers know of an object.
    pub(super) fn told_revision(&self, key: &ObjectKey) -> Option<u64> {
        match self.ahead.get(key) {
            Some(ahead) => {
                let object = self.codec.open(ahead.told.as_ref()?)?;
                Some(super::wire::revision(object.meta().resource_version.as_deref().unwrap_or_default()))
            }
            None => self.entries.get(key).map(|entry| entry.revision),
        }
    }

    pub(super) fn known(&self, key: &ObjectKey, revision: u64) -> Known<K> {
        let Some(entry) = self.entries.get(key).filter(|entry| entry.revision == revision && revision != 0)
        else {
            return Known::New;
        };
        if self.ahead.contains_key(key) { Known::Written(entry.kept.clone()) } else { Known::Same }
    }

    /// A state from the server. `events` takes what handlers are to be told.
    ///
    /// # Errors
    /// If an index panicked; nothing has changed then.
    pub(super) fn upsert(
        &mut self,
        incoming: Incoming<K>,
        initial: bool,
        events: &mut Vec<Event<K>>,
    ) -> Result<(), String> {
        let Incoming { key, revision, uid, kept, object } = incoming;
        let values = self.values_of(&key, &object)?;
        let generation = self.generation;
        let told = match self.ahead.get_mut(&key) {
            Some(ahead) if ahead.hides(revision, &uid, generation) => {
                ahead.generation = generation;
                ahead.told.replace(kept)
            }
            Some(_) => {
                let ahead = self.no_longer_ahead(&key);
                self.put(&key, Entry { kept, revision, generation }, values);
                ahead.and_then(|ahead| ahead.told)
            }
            None => self.put(&key, Entry { kept, revision, generation }, values),
        };
        match told.and_then(|told| Some((self.codec.same_object(&told, &uid), self.codec.open(&told)?))) {
            None => events.push(Event::Created { object, initial }),
            Some((true, old)) => events.push(Event::Updated { old, new: object, resync: false }),
            Some((false, old)) => {
                events.push(Event::Deleted { object: old, missed: true });
                events.push(Event::Created { object, initial });
            }
        }
        Ok(())
    }

    /// Says that a list has this object as it is known.
    pub(super) fn touch(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.generation = self.generation;
        }
    }

    /// An object was deleted; `object` is its last state, unless that could not be decoded.
    pub(super) fn delete(
        &mut self,
        key: &ObjectKey,
        revision: u64,
        object: Option<Arc<K>>,
        events: &mut Vec<Event<K>>,
    ) {
        let told = match self.ahead.get_mut(key) {
            // Deleted, and created again by us; be it that we have deleted that, too.
            Some(Ahead {
                until: Until::Revision(until) | Until::Gone { revision: until, .. }, told, ..
            }) if revision < *until => told.take(),
            Some(_) => {
                let ahead = self.no_longer_ahead(key);
                self.take(key);
                ahead.and_then(|ahead| ahead.told)
            }
            None => self.take(key),
        };
        // What handlers never heard of need not end for them.
        let Some(told) = told else { return };
        match object.or_else(|| self.codec.open(&told)) {
            Some(object) => events.push(Event::Deleted { object, missed: false }),
            None => tracing::error!(
                kind = %self.codec.kind, object = %key,
                "handlers are not told of a deletion: no state of the object can be decoded"
            ),
        }
    }

    /// A list begins.
    pub(super) fn begin_list(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// A list is complete: what it did not have is gone.
    pub(super) fn end_list(&mut self, revision: u64, events: &mut Vec<Event<K>>) {
        // A server that has gone back in time has forgotten what was written.
        let forgotten = if revision < self.revision { u64::MAX } else { revision };
        self.revision = revision;
        for object in self.settle(forgotten) {
            // Somebody has deleted what we wrote, and no event will tell: whoever wrote it relies on its being there.
            events.push(Event::Created { object: Arc::clone(&object), initial: false });
            events.push(Event::Deleted { object, missed: true });
        }
        let generation = self.generation;
        let gone: Vec<ObjectKey> = self
            .entries
            .iter()
            .filter(|(key, entry)| entry.generation != generation && !self.ahead.contains_key(*key))
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            if let Some(object) = self.take(&key).and_then(|kept| self.codec.open(&kept)) {
                events.push(Event::Deleted { object, missed: true });
            }
        }
        let mut finished = Vec::new();
        for (key, ahead) in &mut self.ahead {
            if ahead.told.is_some() && ahead.generation == generation {
                continue;
            }
            if let Some(object) = ahead.told.take().and_then(|told| self.codec.open(&told)) {
                events.push(Event::Deleted { object, missed: true });
            }
            // The list is of a moment after its end; or else its beginning and its end are still to come.
            if matches!(ahead.until, Until::Gone { revision, .. } if revision <= forgotten) {
                finished.push(key.clone());
            }
        }
        for key in finished {
            self.ahead.remove(&key);
        }
    }

    /// The events have reached a revision: writes up to it that were not among them are not of this selection.
    pub(super) fn progress(&mut self, revision: u64) {
        self.revision = self.revision.max(revision);
        self.settle(revision);
    }

    /// Writes up to a revision are no longer ahead. Gives those that readers have seen and handlers never heard of.
    fn settle(&mut self, revision: u64) -> Vec<Arc<K>> {
        let mut unheard = Vec::new();
        while self.ahead_until.first().is_some_and(|(until, _)| *until <= revision) {
            let Some((_, key)) = self.ahead_until.pop_first() else { break };
            let Some(ahead) = self.ahead.remove(&key) else { continue };
            match ahead.told {
                Some(kept) => {
                    let told = self.codec.open(&kept);
                    let revision = told
                        .as_ref()
                        .and_then(|object| {
                            object.meta().resource_version.as_deref().map(super::wire::revision)
                        })
                        .unwrap_or(0);
                    let values =
                        told.and_then(|object| self.values_of(&key, &object).ok()).unwrap_or_default();
                    self.put(&key, Entry { kept, revision, generation: ahead.generation }, values);
                }
                None => unheard.extend(self.take(&key).and_then(|kept| self.codec.open(&kept))),
            }
        }
        unheard
    }

    // Writes of ours.

    /// The server has stored an object for us; `visible` is whether it is one of this selection.
    pub(super) fn wrote(&mut self, incoming: Incoming<K>, visible: bool) {
        let Incoming { key, revision, uid, kept, object } = incoming;
        let key = &key;
        // Without a number there is no telling what is newer.
        if revision == 0 || (self.revision >= revision) {
            return;
        }
        // An object that cannot be indexed is reported when its event comes.
        let Ok(values) = self.values_of(key, &object) else { return };
        let generation = self.generation;
        match self.ahead.get_mut(key) {
            Some(ahead) => match &ahead.until {
                Until::Revision(until) if revision <= *until => return,
                Until::Gone { uid: gone, .. } if *gone == uid => return,
                _ => {
                    if let Until::Revision(until) = ahead.until {
                        self.ahead_until.remove(&(until, key.clone()));
                    }
                    ahead.until = Until::Revision(revision);
                }
            },
            None => {
                let entry = self.entries.get(key);
                if entry.is_some_and(|entry| entry.revision >= revision) || (entry.is_none() && !visible) {
                    return;
                }
                let told = entry.map(|entry| entry.kept.clone());
                let generation = entry.map_or(generation, |entry| entry.generation);
                self.ahead.insert(key.clone(), Ahead { until: Until::Revision(revision), told, generation });
            }
        }
        self.ahead_until.insert((revision, key.clone()));
        if visible {
            self.put(key, Entry { kept, revision, generation }, values);
        } else {
            self.take(key);
        }
    }

    /// The server has deleted an object.
    pub(super) fn removed(&mut self, key: &ObjectKey, uid: &str) {
        let Some(entry) = self.entries.get(key) else { return };
        if uid.is_empty() || !self.codec.same_object(&entry.kept, uid) {
            return;
        }
        let until = Until::Gone { uid: uid.to_owned(), revision: entry.revision, during: self.generation };
        match self.ahead.entry(key.clone()) {
            hash_map::Entry::Occupied(mut ahead) => {
                if let Until::Revision(revision) = ahead.get().until {
                    self.ahead_until.remove(&(revision, key.clone()));
                }
                ahead.get_mut().until = until;
            }
            hash_map::Entry::Vacant(vacant) => {
                vacant.insert(Ahead { until, told: Some(entry.kept.clone()), generation: entry.generation });
            }
        }
        self.take(key);
    }

    // The map and its indexes.

    /// What each index says of an object.
    fn values_of(&self, key: &ObjectKey, object: &K) -> Result<Values, String> {
        self.indexes.values().map(|index| index.values(&self.codec.panics, key, object)).collect()
    }

    fn put(&mut self, key: &ObjectKey, entry: Entry<K>, values: Values) -> Option<Kept<K>> {
        let old = self.entries.insert(key.clone(), entry).map(|old| old.kept);
        self.reindex(key, old.as_ref(), values);
        old
    }

    fn take(&mut self, key: &ObjectKey) -> Option<Kept<K>> {
        let old = self.entries.remove(key).map(|old| old.kept);
        self.reindex(key, old.as_ref(), Values::new());
        old
    }

    fn reindex(&mut self, key: &ObjectKey, old: Option<&Kept<K>>, values: Values) {
        if self.indexes.is_empty() {
            return;
        }
        if let Some(old) = old {
            let old = self.codec.open(old);
            for index in self.indexes.values_mut() {
                index.remove(key, old.as_deref());
            }
        }
        for (index, values) in self.indexes.values_mut().zip(values) {
            index.add(key, values);
        }
    }

    fn no_longer_ahead(&mut self, key: &ObjectKey) -> Option<Ahead<K>> {
        let ahead = self.ahead.remove(key)?;
        if let Until::Revision(revision) = ahead.until {
            self.ahead_until.remove(&(revision, key.clone()));
        }
        Some(ahead)
    }
}

impl<K> Ahead<K> {
    /// Whether a state that comes from the server is older than the write.
    fn hides(&self, revision: u64, uid: &str, generation: u32) -> bool {
        match &self.until {
            Until::Revision(until) => revision < *until,
            // A later list that still has it knows better. One of before, under the same name, is older.
            Until::Gone { uid: gone, revision: last, during } => {
                revision < *last || (gone == uid && *during == generation)
            }
        }
    }
}

impl<K: Object> fmt::Debug for Objects<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects")
            .field("len", &self.entries.len())
            .field("ahead", &self.ahead.len())
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    struct Cache {
        objects: Objects<ConfigMap>,
        events: Vec<Event<ConfigMap>>,
    }

    fn key() -> ObjectKey {
        ObjectKey::namespaced("default", "a")
    }

    impl Cache {
        fn new() -> Cache {
            let panics =
                crate::panics::Panics::new(&crate::Metrics::new(), tokio::sync::watch::Sender::new(0));
            let codec = Codec {
                kind: crate::kind::<ConfigMap>(),
                transform: None,
                lean: false,
                strip_managed_fields: false,
                site: panics.site("transform", "ConfigMap"),
                panics,
            };
            Cache { objects: Objects::new(Arc::new(codec)), events: Vec::new() }
        }

        fn state(&self, uid: &str, revision: u64) -> (Kept<ConfigMap>, Arc<ConfigMap>) {
            let raw = format!(
                r#"{{"metadata":{{"name":"a","namespace":"default","uid":"{uid}","resourceVersion":"{revision}"}}}}"#
            );
            self.objects.codec.take(raw.as_bytes()).unwrap()
        }

        fn arrives(&mut self, uid: &str, revision: u64) {
            let (kept, object) = self.state(uid, revision);
            let incoming = Incoming { key: key(), revision, uid: uid.to_owned(), kept, object };
            self.objects.upsert(incoming, false, &mut self.events).unwrap();
        }

        fn wrote(&mut self, uid: &str, revision: u64) {
            let (kept, object) = self.state(uid, revision);
            let incoming = Incoming { key: key(), revision, uid: uid.to_owned(), kept, object };
            self.objects.wrote(incoming, true);
        }

        fn deleted(&mut self, revision: u64) {
            self.objects.delete(&key(), revision, None, &mut self.events);
            self.objects.progress(revision);
        }

        fn listed(&mut self, revision: u64) {
            self.objects.end_list(revision, &mut self.events);
        }

        /// What handlers were told: the uids that came, and those that went.
        fn told(&mut self) -> String {
            let show = |event: &Event<ConfigMap>| {
                let sign = match event {
                    Event::Created { .. } => '+',
                    Event::Deleted { .. } => '-',
                    _ => '=',
                };
                format!("{sign}{}", event.object().metadata.uid.as_deref().unwrap_or_default())
            };
            std::mem::take(&mut self.events).iter().map(show).collect::<Vec<_>>().join(" ")
        }

        fn is_there(&self) -> bool {
            self.objects.get(&key()).is_some()
        }
    }

    fn with_one() -> Cache {
        let mut cache = Cache::new();
        cache.objects.begin_list();
        cache.arrives("u", 5);
        cache.listed(5);
        assert_eq!(cache.told(), "+u");
        cache
    }

    #[test]
    fn what_is_deleted_before_a_list_that_runs_is_told_of_at_its_end() {
        let mut cache = with_one();
        cache.objects.begin_list();
        cache.objects.removed(&key(), "u");
        cache.listed(7);
        assert_eq!(cache.told(), "-u");
        assert!(!cache.objects.is_ahead(), "no event will come");
    }

    #[test]
    fn what_is_deleted_after_the_moment_of_a_list_that_runs_stays_hidden() {
        let mut cache = with_one();
        cache.objects.begin_list();
        cache.objects.removed(&key(), "u");
        cache.arrives("u", 5);
        cache.listed(6);
        assert!(!cache.is_there() && cache.objects.is_ahead());
        assert_eq!(cache.told(), "=u");
        cache.deleted(7);
        assert_eq!(cache.told(), "-u");
        assert!(!cache.objects.is_ahead());
    }

    #[test]
    fn what_we_wrote_and_a_list_does_not_have_has_come_and_gone() {
        let mut cache = Cache::new();
        cache.objects.begin_list();
        cache.listed(3);
        // We create it at 5; before the watch tells, somebody deletes it, and the watch's place is forgotten.
        cache.wrote("u", 5);
        cache.objects.begin_list();
        cache.listed(7);
        assert_eq!(cache.told(), "+u -u");
        assert!(!cache.is_there() && !cache.objects.is_ahead());
    }

    #[test]
    fn what_comes_and_goes_before_a_list_that_runs_is_forgotten() {
        let mut cache = Cache::new();
        cache.objects.begin_list();
        cache.wrote("u", 5);
        cache.objects.removed(&key(), "u");
        cache.listed(7);
        assert_eq!(cache.told(), "");
        assert!(!cache.is_there() && !cache.objects.is_ahead());
    }

    #[test]
    fn what_comes_and_goes_after_the_moment_of_a_list_stays_hidden() {
        let mut cache = Cache::new();
        cache.objects.begin_list();
        cache.wrote("u", 5);
        cache.objects.removed(&key(), "u");
        cache.listed(4);
        cache.arrives("u", 5);
        assert!(!cache.is_there());
        cache.deleted(6);
        assert_eq!(cache.told(), "+u -u");
        assert!(!cache.objects.is_ahead());
    }

    #[test]
    fn the_end_of_an_object_of_before_does_not_show_one_that_we_deleted() {
        let mut cache = with_one();
        // Somebody else deletes it at 6; we create another one at 7, and delete that.
        cache.wrote("v", 7);
        cache.objects.removed(&key(), "v");
        cache.deleted(6);
        assert!(!cache.is_there());
        cache.arrives("v", 7);
        assert!(!cache.is_there());
        cache.deleted(8);
        assert_eq!(cache.told(), "-u +v -v");
        assert!(!cache.is_there() && !cache.objects.is_ahead());
    }
}
