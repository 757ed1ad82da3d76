//! Indexes that every cluster gets.

use std::sync::Arc;

use k1s_runtime::{Cache, Kind, Object, cache::IndexFn};
use parking_lot::Mutex;

/// Adds one index to a cache.
type Apply = Arc<dyn Fn(&Cache) + Send + Sync>;

/// Indexes, registered once and added to every cluster when it is engaged.
#[derive(Default)]
pub(crate) struct Indexes {
    all: Mutex<Vec<Apply>>,
}

impl Indexes {
    /// Registers an index, and adds it to clusters that exist already.
    pub(crate) fn add<'a, K: Object>(
        &self,
        existing: impl IntoIterator<Item = &'a Cache>,
        kind: &Kind<K>,
        field: &str,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) {
        let (kind, field) = (kind.clone(), field.to_owned());
        let values: IndexFn<K> = Arc::new(values);
        // One function for all: a cache that has it already is left as it is.
        let apply: Apply = Arc::new(move |cache| cache.index_field_shared(&kind, &field, &values));
        self.all.lock().push(Arc::clone(&apply));
        for cache in existing {
            apply(cache);
        }
    }

    /// Adds all indexes to a cluster, unless it has them.
    pub(crate) fn apply(&self, cache: &Cache) {
        for apply in &*self.all.lock() {
            apply(cache);
        }
    }
}
