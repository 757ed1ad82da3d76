//! Shared informers.

use std::sync::Arc;

use kube::api::ApiResource;
use parking_lot::Mutex;

use crate::{
    Kind, Object, ObjectKey,
    client::{ListOptions, Written},
};

/// Why the cache cannot answer.
#[derive(Debug, thiserror::Error)]
#[error("the cache does not answer")]
pub struct CacheError;

/// A stand-in: knows of every kind the objects that were written.
#[derive(Debug, Clone, Default)]
pub struct Cache {
    seen: Arc<Mutex<Vec<(ApiResource, Written)>>>,
}

impl Cache {
    /// Reads an object.
    pub async fn get<K: Object>(
        &self,
        kind: &Kind<K>,
        key: &ObjectKey,
    ) -> Result<Option<Arc<K>>, CacheError> {
        for (resource, written) in self.seen.lock().iter().rev().filter(|(r, _)| r == kind.resource()) {
            match written {
                Written::Stored(bytes) => {
                    let object: K = serde_json::from_slice(bytes).map_err(|_| CacheError)?;
                    if ObjectKey::of(&object) == *key {
                        return Ok(Some(Arc::new(object)));
                    }
                }
                Written::Deleted { key: gone, .. } if gone == key => return Ok(None),
                Written::Deleted { .. } => {}
            }
            let _ = resource;
        }
        Ok(None)
    }

    /// Reads many.
    pub async fn list<K: Object>(
        &self,
        kind: &Kind<K>,
        options: &ListOptions,
    ) -> Result<Vec<Arc<K>>, CacheError> {
        let keys: std::collections::BTreeSet<ObjectKey> = self
            .seen
            .lock()
            .iter()
            .filter(|(resource, _)| resource == kind.resource())
            .filter_map(|(_, written)| match written {
                Written::Stored(bytes) => serde_json::from_slice::<K>(bytes).ok().map(|k| ObjectKey::of(&k)),
                Written::Deleted { .. } => None,
            })
            .filter(|key| options.namespace.is_none() || key.namespace() == options.namespace.as_deref())
            .collect();
        let mut found = Vec::new();
        for key in keys {
            found.extend(self.get(kind, &key).await?);
        }
        Ok(found)
    }

    /// Hears of a write.
    pub fn observe_write(&self, resource: &ApiResource, written: Written) {
        self.seen.lock().push((resource.clone(), written));
    }

    /// All that was heard.
    #[must_use]
    pub fn written(&self) -> Vec<Written> {
        self.seen.lock().iter().map(|(_, written)| written.clone()).collect()
    }
}
