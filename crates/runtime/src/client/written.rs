//! What a write leaves behind, told to the cache: how a client reads its own writes.

use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::ObjectKey;

/// The outcome of a successful write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// The object is there now: the server's answer, its JSON.
    Stored(Bytes),
    /// The object is gone.
    Deleted {
        /// Its name.
        key: ObjectKey,
        /// Its uid, where the server said it: an object of the same name with another uid is another object.
        uid: Option<String>,
    },
}

/// Whether the object that answers a write has just ceased to exist: it was being deleted, and the write took the last
/// thing away that it waited for.
///
/// Where it cannot be known the answer is no: a cache that keeps an object a moment too long is told by its watch.
pub(super) fn has_ended(meta: &ObjectMeta) -> bool {
    // A server that deletes says how long the object has; 0 is not at all. Namespaces are not given a time: they wait
    // for finalizers of their own, in their spec.
    meta.deletion_timestamp.is_some()
        && meta.deletion_grace_period_seconds == Some(0)
        && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
}
