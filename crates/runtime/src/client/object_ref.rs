//! An object, or its key.

use std::sync::Arc;

use crate::{Object, ObjectKey};

/// Identifies an object of kind `K`: its key, or the object itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name an object of `{K}`",
    label = "neither the object nor its key",
    note = "pass the object, the `Arc` of a read, or an `ObjectKey`"
)]
pub trait ObjectRef<K>: Sync {
    /// The key of the object.
    fn key(&self) -> ObjectKey;

    /// The object, if this is not just a key.
    fn object(&self) -> Option<&K>;
}

impl<K: Object> ObjectRef<K> for K {
    fn key(&self) -> ObjectKey {
        ObjectKey::of(self)
    }

    fn object(&self) -> Option<&K> {
        Some(self)
    }
}

impl<K: Object> ObjectRef<K> for Arc<K> {
    fn key(&self) -> ObjectKey {
        ObjectKey::of(&**self)
    }

    fn object(&self) -> Option<&K> {
        Some(self)
    }
}

impl<K: Object> ObjectRef<K> for ObjectKey {
    fn key(&self) -> ObjectKey {
        self.clone()
    }

    fn object(&self) -> Option<&K> {
        None
    }
}
