//! An index of an informer: its objects by values that a function computes.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use crate::{
    ObjectKey,
    panics::{Panics, Site, catch},
};

/// Computes the values under which an index finds an object.
pub type IndexFn<K> = Arc<dyn Fn(&K) -> Vec<String> + Send + Sync>;

pub(super) struct Index<K> {
    values: IndexFn<K>,
    keys: HashMap<String, BTreeSet<ObjectKey>>,
    /// Where its panics are reported.
    site: Site,
}

impl<K> Index<K> {
    pub(super) fn new(values: IndexFn<K>, site: Site) -> Index<K> {
        Index { values, keys: HashMap::new(), site }
    }

    pub(super) fn site(&self) -> &Site {
        &self.site
    }

    /// The keys of the objects indexed under a value.
    pub(super) fn keys(&self, value: &str) -> impl Iterator<Item = &ObjectKey> {
        self.keys.get(value).into_iter().flatten()
    }

    /// Computes the values of an object; a panic is reported.
    pub(super) fn values(&self, panics: &Panics, key: &ObjectKey, object: &K) -> Result<Vec<String>, String> {
        panics.run(&self.site, || key.clone(), || (self.values)(object))
    }

    pub(super) fn add(&mut self, key: &ObjectKey, values: Vec<String>) {
        for value in values {
            self.keys.entry(value).or_default().insert(key.clone());
        }
    }

    /// `object` is the state that was indexed, if it can be decoded.
    pub(super) fn remove(&mut self, key: &ObjectKey, object: Option<&K>) {
        let Some(Ok(values)) = object.map(|object| catch(|| (self.values)(object))) else {
            // Its values cannot be recomputed: search every set of keys.
            self.keys.retain(|_, keys| {
                keys.remove(key);
                !keys.is_empty()
            });
            return;
        };
        for value in values {
            if let Some(keys) = self.keys.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys.remove(&value);
                }
            }
        }
    }
}
