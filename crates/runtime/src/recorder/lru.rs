//! A map that evicts the least recently used entry.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    sync::Arc,
};

pub(super) struct Lru<K, V> {
    capacity: usize,
    used: u64,
    entries: HashMap<Arc<K>, (u64, V)>,
    order: BTreeMap<u64, Arc<K>>,
}

impl<K: Hash + Eq, V> Lru<K, V> {
    pub(super) fn new(capacity: usize) -> Lru<K, V> {
        Lru { capacity: capacity.max(1), used: 0, entries: HashMap::new(), order: BTreeMap::new() }
    }

    /// The value of the key, inserted if it is missing; and the value that was evicted for it.
    pub(super) fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> (&mut V, Option<V>) {
        self.used += 1;
        let key = Arc::new(key);
        let mut forgotten = None;
        if let Some((used, _)) = self.entries.get(&key) {
            self.order.remove(used);
        } else if self.entries.len() == self.capacity
            && let Some((_, oldest)) = self.order.pop_first()
        {
            forgotten = self.entries.remove(&oldest).map(|(_, value)| value);
        }
        self.order.insert(self.used, key.clone());
        let entry = self.entries.entry(key).or_insert_with(|| (0, make()));
        entry.0 = self.used;
        (&mut entry.1, forgotten)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.values_mut().map(|(_, value)| value)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.values().map(|(_, value)| value)
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&V) -> bool) {
        let order = &mut self.order;
        self.entries.retain(|_, (used, value)| {
            let keeps = keep(value);
            if !keeps {
                order.remove(used);
            }
            keeps
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_evicted() {
        let mut lru = Lru::new(2);
        assert_eq!(lru.get_or_insert_with("a", || 1), (&mut 1, None));
        assert_eq!(lru.get_or_insert_with("b", || 2), (&mut 2, None));
        assert_eq!(lru.get_or_insert_with("a", || 9), (&mut 1, None));
        assert_eq!(lru.get_or_insert_with("c", || 3), (&mut 3, Some(2)));
        lru.retain(|value| *value != 1);
        assert_eq!(lru.get_or_insert_with("b", || 4), (&mut 4, None));
        assert_eq!(lru.values().sum::<i32>(), 7);
        assert_eq!(lru.order.len(), lru.entries.len());
    }
}
