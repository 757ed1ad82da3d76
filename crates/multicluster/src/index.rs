//! Indexes that every cluster gets.

use std::sync::Arc;

use k1s_runtime::{Cache, Kind, Object};
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
        let (kind, field, values) = (kind.clone(), field.to_owned(), Arc::new(values));
        let apply: Apply = Arc::new(move |cache| {
            let values = Arc::clone(&values);
            cache.index_field(&kind, &field, move |object| values(object));
        });
        self.all.lock().push(Arc::clone(&apply));
        for cache in existing {
            apply(cache);
        }
    }

    /// Adds all indexes to a new cluster.
    pub(crate) fn apply(&self, cache: &Cache) {
        for apply in &*self.all.lock() {
            apply(cache);
        }
    }
}
