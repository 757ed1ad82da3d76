//! The outcome of a write, passed to the cache so that a client reads its own writes.

use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::ObjectKey;

/// The outcome of a successful write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// The object exists: its JSON from the server's response.
    Stored(Bytes),
    /// The object is gone.
    Deleted {
        /// Its key.
        key: ObjectKey,
        /// Its uid, if the server returned it: an object of the same name with another uid is another object.
        uid: Option<String>,
    },
}

/// Whether a write has removed the object in its response: the object was being deleted, and the write removed its last
/// finalizer.
///
/// False in doubt: a cache that keeps an object too long is corrected by its watch.
pub(super) fn is_gone(meta: &ObjectMeta) -> bool {
    // A grace period of 0 is immediate deletion. Namespaces have no grace period: they wait for the finalizers in their
    // spec.
    meta.deletion_timestamp.is_some()
        && meta.deletion_grace_period_seconds == Some(0)
        && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
}
