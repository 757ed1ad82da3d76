//! The objects of an informer: the states that readers see, and those delivered to handlers, which may be older.
//!
//! A client's own writes are inserted at once, so that it reads its writes; handlers receive them with the server's
//! event. Until then the write is *pending*: events older than it do not change what readers see, and the first one
//! that is not older settles it.

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
    pending: HashMap<ObjectKey, PendingWrite<K>>,
    /// Pending writes whose revision is known, ordered by it.
    pending_by_revision: BTreeSet<(u64, ObjectKey)>,
    /// The newest revision that the server's events have reached.
    revision: u64,
    /// Counts lists: an entry of an older generation was not in the last list.
    generation: u32,
}

struct Entry<K> {
    kept: Kept<K>,
    revision: u64,
    generation: u32,
}

/// The values of an object in each index, in the order of `Objects::indexes`.
type Values = Vec<Vec<String>>;

/// A write of this client whose event has not arrived yet.
struct PendingWrite<K> {
    until: Until,
    /// The last state delivered to handlers.
    delivered: Option<Kept<K>>,
    /// The last list that contained `delivered`.
    generation: u32,
}

/// How the event that settles a write is recognized.
enum Until {
    /// Written at this revision.
    Revision(u64),
    /// Deleted at an unknown revision later than this one. The list that was running then (`during`) may still contain
    /// the object.
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

/// Whether an incoming state is in the cache already, found out before it is decoded.
pub(super) enum Known<K> {
    /// It is, and was delivered to handlers.
    Same,
    /// A write of this client: decoded, but not delivered yet.
    Written(Kept<K>),
    New,
}

impl<K: Object> Objects<K> {
    pub(super) fn new(codec: Arc<Codec<K>>) -> Objects<K> {
        Objects {
            codec,
            entries: BTreeMap::new(),
            indexes: HashMap::new(),
            pending: HashMap::new(),
            pending_by_revision: BTreeSet::new(),
            revision: 0,
            generation: 0,
        }
    }

    // For readers.

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
        // Names are never empty, so this sorts before every key of the namespace.
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

    /// The keys indexed under a value.
    pub(super) fn indexed(&self, name: &str, value: &str) -> impl Iterator<Item = &ObjectKey> {
        self.indexes.get(name).into_iter().flat_map(move |index| index.keys(value))
    }

    /// An object whose values cannot be computed stays in the cache, but not in the index.
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

    /// Forgets the panics of indexes on these objects.
    pub(super) fn forget_panics(&self, which: impl Fn(&ObjectKey) -> bool) {
        for index in self.indexes.values() {
            self.codec.panics.forget(index.site(), &which);
        }
    }

    // For handlers.

    /// Every object that was delivered to handlers, in its last delivered state.
    pub(super) fn delivered(&self) -> impl Iterator<Item = (&ObjectKey, &Kept<K>)> {
        let settled = self.entries.iter().filter(|(key, _)| !self.pending.contains_key(*key));
        let pending =
            self.pending.iter().filter_map(|(key, pending)| Some((key, pending.delivered.as_ref()?)));
        settled.map(|(key, entry)| (key, &entry.kept)).chain(pending)
    }

    /// The newest revision that the server's events have reached.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether events of this client's writes are still to come.
    pub(super) fn has_pending_writes(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The revision of an object that was last delivered to handlers.
    pub(super) fn delivered_revision(&self, key: &ObjectKey) -> Option<u64> {
        match self.pending.get(key) {
            Some(pending) => {
                let object = self.codec.open(pending.delivered.as_ref()?)?;
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
        if self.pending.contains_key(key) { Known::Written(entry.kept.clone()) } else { Known::Same }
    }

    /// Inserts a state from the server. The events for handlers are added to `events`.
    ///
    /// # Errors
    /// If an index panicked; the objects are unchanged then.
    pub(super) fn upsert(
        &mut self,
        incoming: Incoming<K>,
        initial: bool,
        events: &mut Vec<Event<K>>,
    ) -> Result<(), String> {
        let Incoming { key, revision, uid, kept, object } = incoming;
        let values = self.values_of(&key, &object)?;
        let generation = self.generation;
        let delivered = match self.pending.get_mut(&key) {
            Some(pending) if pending.hides(revision, &uid, generation) => {
                pending.generation = generation;
                pending.delivered.replace(kept)
            }
            Some(_) => {
                let pending = self.remove_pending(&key);
                self.put(&key, Entry { kept, revision, generation }, values);
                pending.and_then(|pending| pending.delivered)
            }
            None => self.put(&key, Entry { kept, revision, generation }, values),
        };
        let previous = delivered.and_then(|delivered| {
            Some((self.codec.same_object(&delivered, &uid), self.codec.open(&delivered)?))
        });
        match previous {
            None => events.push(Event::Created { object, initial }),
            Some((true, old)) => events.push(Event::Updated { old, new: object, resync: false }),
            Some((false, old)) => {
                events.push(Event::Deleted { object: old, missed: true });
                events.push(Event::Created { object, initial });
            }
        }
        Ok(())
    }

    /// Notes that the current list contains this object.
    pub(super) fn touch(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.generation = self.generation;
        }
    }

    /// Removes an object that the server deleted; `object` is its last state, if that could be decoded.
    pub(super) fn delete(
        &mut self,
        key: &ObjectKey,
        revision: u64,
        object: Option<Arc<K>>,
        events: &mut Vec<Event<K>>,
    ) {
        let delivered = match self.pending.get_mut(key) {
            // Deleted, and since then created again (and perhaps deleted again) by this client.
            Some(PendingWrite {
                until: Until::Revision(until) | Until::Gone { revision: until, .. },
                delivered,
                ..
            }) if revision < *until => delivered.take(),
            Some(_) => {
                let pending = self.remove_pending(key);
                self.take(key);
                pending.and_then(|pending| pending.delivered)
            }
            None => self.take(key),
        };
        // Handlers that never received the object need no delete event.
        let Some(delivered) = delivered else { return };
        match object.or_else(|| self.codec.open(&delivered)) {
            Some(object) => events.push(Event::Deleted { object, missed: false }),
            None => tracing::error!(
                kind = %self.codec.kind, object = %key,
                "no delete event for handlers: no state of the object can be decoded"
            ),
        }
    }

    /// Begins a list.
    pub(super) fn begin_list(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// Completes a list: objects that it did not contain are gone.
    pub(super) fn end_list(&mut self, revision: u64, events: &mut Vec<Event<K>>) {
        // A server restored from a backup has lost later writes: all of them are settled.
        let settled = if revision < self.revision { u64::MAX } else { revision };
        self.revision = revision;
        for object in self.settle(settled) {
            // Another client has deleted the object, and no event will come. The writer relies on seeing its object.
            events.push(Event::Created { object: Arc::clone(&object), initial: false });
            events.push(Event::Deleted { object, missed: true });
        }
        let generation = self.generation;
        let gone: Vec<ObjectKey> = self
            .entries
            .iter()
            .filter(|(key, entry)| entry.generation != generation && !self.pending.contains_key(*key))
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            if let Some(object) = self.take(&key).and_then(|kept| self.codec.open(&kept)) {
                events.push(Event::Deleted { object, missed: true });
            }
        }
        let mut finished = Vec::new();
        for (key, pending) in &mut self.pending {
            if pending.delivered.is_some() && pending.generation == generation {
                continue;
            }
            if let Some(object) = pending.delivered.take().and_then(|delivered| self.codec.open(&delivered)) {
                events.push(Event::Deleted { object, missed: true });
            }
            // The list's revision is newer than the deletion, or else both events are still to come.
            if matches!(pending.until, Until::Gone { revision, .. } if revision <= settled) {
                finished.push(key.clone());
            }
        }
        for key in finished {
            self.pending.remove(&key);
        }
    }

    /// Advances to a revision: writes up to it that came without an event do not match the selectors.
    pub(super) fn progress(&mut self, revision: u64) {
        self.revision = self.revision.max(revision);
        self.settle(revision);
    }

    /// Settles writes up to a revision. Returns the objects that readers have seen and handlers never received.
    fn settle(&mut self, revision: u64) -> Vec<Arc<K>> {
        let mut undelivered = Vec::new();
        while self.pending_by_revision.first().is_some_and(|(until, _)| *until <= revision) {
            let Some((_, key)) = self.pending_by_revision.pop_first() else { break };
            let Some(pending) = self.pending.remove(&key) else { continue };
            match pending.delivered {
                Some(kept) => {
                    let delivered = self.codec.open(&kept);
                    let revision = delivered
                        .as_ref()
                        .and_then(|object| {
                            object.meta().resource_version.as_deref().map(super::wire::revision)
                        })
                        .unwrap_or(0);
                    let values =
                        delivered.and_then(|object| self.values_of(&key, &object).ok()).unwrap_or_default();
                    self.put(&key, Entry { kept, revision, generation: pending.generation }, values);
                }
                None => undelivered.extend(self.take(&key).and_then(|kept| self.codec.open(&kept))),
            }
        }
        undelivered
    }

    // Writes of this client.

    /// Records an object that the server stored for this client; `visible` is whether it matches the selectors.
    pub(super) fn wrote(&mut self, incoming: Incoming<K>, visible: bool) {
        let Incoming { key, revision, uid, kept, object } = incoming;
        let key = &key;
        // Without a numeric resource version it is unknown which state is newer.
        if revision == 0 || (self.revision >= revision) {
            return;
        }
        // An object that cannot be indexed is reported when its event comes.
        let Ok(values) = self.values_of(key, &object) else { return };
        let generation = self.generation;
        match self.pending.get_mut(key) {
            Some(pending) => match &pending.until {
                Until::Revision(until) if revision <= *until => return,
                Until::Gone { uid: gone, .. } if *gone == uid => return,
                _ => {
                    if let Until::Revision(until) = pending.until {
                        self.pending_by_revision.remove(&(until, key.clone()));
                    }
                    pending.until = Until::Revision(revision);
                }
            },
            None => {
                let entry = self.entries.get(key);
                if entry.is_some_and(|entry| entry.revision >= revision) || (entry.is_none() && !visible) {
                    return;
                }
                let delivered = entry.map(|entry| entry.kept.clone());
                let generation = entry.map_or(generation, |entry| entry.generation);
                self.pending.insert(
                    key.clone(),
                    PendingWrite { until: Until::Revision(revision), delivered, generation },
                );
            }
        }
        self.pending_by_revision.insert((revision, key.clone()));
        if visible {
            self.put(key, Entry { kept, revision, generation }, values);
        } else {
            self.take(key);
        }
    }

    /// Records that the server deleted an object for this client.
    pub(super) fn removed(&mut self, key: &ObjectKey, uid: &str) {
        let Some(entry) = self.entries.get(key) else { return };
        if uid.is_empty() || !self.codec.same_object(&entry.kept, uid) {
            return;
        }
        let until = Until::Gone { uid: uid.to_owned(), revision: entry.revision, during: self.generation };
        match self.pending.entry(key.clone()) {
            hash_map::Entry::Occupied(mut pending) => {
                if let Until::Revision(revision) = pending.get().until {
                    self.pending_by_revision.remove(&(revision, key.clone()));
                }
                pending.get_mut().until = until;
            }
            hash_map::Entry::Vacant(vacant) => {
                vacant.insert(PendingWrite {
                    until,
                    delivered: Some(entry.kept.clone()),
                    generation: entry.generation,
                });
            }
        }
        self.take(key);
    }

    // The map and its indexes.

    /// The values of an object in each index.
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

    fn remove_pending(&mut self, key: &ObjectKey) -> Option<PendingWrite<K>> {
        let pending = self.pending.remove(key)?;
        if let Until::Revision(revision) = pending.until {
            self.pending_by_revision.remove(&(revision, key.clone()));
        }
        Some(pending)
    }
}

impl<K> PendingWrite<K> {
    /// Whether a state that comes from the server is older than the write.
    fn hides(&self, revision: u64, uid: &str, generation: u32) -> bool {
        match &self.until {
            Until::Revision(until) => revision < *until,
            // A later list that still contains it is right. A predecessor of the same name is older.
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
            .field("pending", &self.pending.len())
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
            let panics = crate::panics::Panics::new(Default::default(), tokio::sync::watch::Sender::new(0));
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

        /// The events delivered since the last call: `+uid` created, `-uid` deleted, `=uid` updated.
        fn delivered(&mut self) -> String {
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

        fn is_visible(&self) -> bool {
            self.objects.get(&key()).is_some()
        }
    }

    fn with_one() -> Cache {
        let mut cache = Cache::new();
        cache.objects.begin_list();
        cache.arrives("u", 5);
        cache.listed(5);
        assert_eq!(cache.delivered(), "+u");
        cache
    }

    #[test]
    fn a_delete_before_the_snapshot_of_a_running_list_is_delivered_when_the_list_ends() {
        let mut cache = with_one();
        cache.objects.begin_list();
        cache.objects.removed(&key(), "u");
        cache.listed(7);
        assert_eq!(cache.delivered(), "-u");
        assert!(!cache.objects.has_pending_writes(), "no event will come");
    }

    #[test]
    fn an_object_deleted_after_the_snapshot_of_a_running_list_stays_hidden() {
        let mut cache = with_one();
        cache.objects.begin_list();
        cache.objects.removed(&key(), "u");
        cache.arrives("u", 5);
        cache.listed(6);
        assert!(!cache.is_visible() && cache.objects.has_pending_writes());
        assert_eq!(cache.delivered(), "=u");
        cache.deleted(7);
        assert_eq!(cache.delivered(), "-u");
        assert!(!cache.objects.has_pending_writes());
    }

    #[test]
    fn a_write_missing_from_a_later_list_is_delivered_as_created_and_deleted() {
        let mut cache = Cache::new();
        cache.objects.begin_list();
        cache.listed(3);
        // Created by this client at 5; another client deletes it before the event comes, and the watch expires.
        cache.wrote("u", 5);
        cache.objects.begin_list();
        cache.listed(7);
        assert_eq!(cache.delivered(), "+u -u");
        assert!(!cache.is_visible() && !cache.objects.has_pending_writes());
    }

    #[test]
    fn an_object_created_and_deleted_before_the_snapshot_of_a_running_list_is_not_delivered() {
        let mut cache = Cache::new();
        cache.objects.begin_list();
        cache.wrote("u", 5);
        cache.objects.removed(&key(), "u");
        cache.listed(7);
        assert_eq!(cache.delivered(), "");
        assert!(!cache.is_visible() && !cache.objects.has_pending_writes());
    }

    #[test]
    fn an_object_created_and_deleted_after_the_snapshot_of_a_running_list_stays_hidden() {
        let mut cache = Cache::new();
        cache.objects.begin_list();
        cache.wrote("u", 5);
        cache.objects.removed(&key(), "u");
        cache.listed(4);
        cache.arrives("u", 5);
        assert!(!cache.is_visible());
        cache.deleted(6);
        assert_eq!(cache.delivered(), "+u -u");
        assert!(!cache.objects.has_pending_writes());
    }

    #[test]
    fn the_delete_event_of_a_predecessor_does_not_reveal_a_deleted_object() {
        let mut cache = with_one();
        // Another client deletes it at 6; this client creates a new one at 7, and deletes that.
        cache.wrote("v", 7);
        cache.objects.removed(&key(), "v");
        cache.deleted(6);
        assert!(!cache.is_visible());
        cache.arrives("v", 7);
        assert!(!cache.is_visible());
        cache.deleted(8);
        assert_eq!(cache.delivered(), "-u +v -v");
        assert!(!cache.is_visible() && !cache.objects.has_pending_writes());
    }
}
