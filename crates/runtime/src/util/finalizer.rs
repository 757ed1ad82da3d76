//! Finalizers: cleanup that must happen before an object is removed.

use kube::Resource;

/// Adds a finalizer to the object in memory. Returns whether it did: not if it was already present, **nor if the object is
/// being deleted**, when the server accepts no new ones and adding one would only make the next write fail.
pub fn add_finalizer<K: Resource>(object: &mut K, finalizer: &str) -> bool {
    let meta = object.meta_mut();
    if meta.deletion_timestamp.is_some() {
        return false;
    }
    let finalizers = meta.finalizers.get_or_insert_default();
    if finalizers.iter().any(|one| one == finalizer) {
        return false;
    }
    finalizers.push(finalizer.to_owned());
    true
}

/// Removes a finalizer from the object in memory. Returns whether it was present.
pub fn remove_finalizer<K: Resource>(object: &mut K, finalizer: &str) -> bool {
    let finalizers = &mut object.meta_mut().finalizers;
    let Some(list) = finalizers else { return false };
    let before = list.len();
    list.retain(|one| one != finalizer);
    let removed = list.len() != before;
    if list.is_empty() {
        *finalizers = None;
    }
    removed
}

/// Whether the object has the finalizer.
pub fn contains_finalizer<K: Resource>(object: &K, finalizer: &str) -> bool {
    object.meta().finalizers.iter().flatten().any(|one| one == finalizer)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;

    #[test]
    fn a_finalizer_is_added_once() {
        let mut object = ConfigMap::default();
        assert!(!contains_finalizer(&object, "a"));
        assert!(add_finalizer(&mut object, "a"));
        assert!(!add_finalizer(&mut object, "a"));
        assert!(add_finalizer(&mut object, "b"));
        assert!(contains_finalizer(&object, "a"));
        assert_eq!(object.metadata.finalizers.as_deref(), Some(&["a".to_owned(), "b".to_owned()][..]));
        assert!(remove_finalizer(&mut object, "a"));
        assert!(!remove_finalizer(&mut object, "a"));
        assert!(remove_finalizer(&mut object, "b"));
        assert_eq!(object, ConfigMap::default());
    }

    #[test]
    fn an_object_that_is_being_deleted_gets_no_more_finalizers() {
        let mut object = ConfigMap::default();
        object.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        let before = object.clone();
        assert!(!add_finalizer(&mut object, "a"));
        assert_eq!(object, before);
    }
}
