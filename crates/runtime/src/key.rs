//! The key of an object, used by caches and queues.

use std::{fmt, sync::Arc};

use kube::Resource;

/// The namespace and name of an object. Cheap to clone; displayed as `namespace/name`, or `name` for a cluster-scoped
/// object. Ordered by namespace, then by name.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    namespace: Option<Arc<str>>,
    name: Arc<str>,
}

/// A request to a reconciler: the key of an object of its controller's kind.
///
/// Queues, handlers, sources and controllers are generic over it; this is the default.
pub type Request = ObjectKey;

impl ObjectKey {
    /// The key of a namespaced object.
    pub fn namespaced(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> ObjectKey {
        ObjectKey { namespace: Some(namespace.into()), name: name.into() }
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(name: impl Into<Arc<str>>) -> ObjectKey {
        ObjectKey { namespace: None, name: name.into() }
    }

    /// A key from a namespace and a name. Without a namespace, or with an empty one, it is cluster-scoped.
    pub fn new(namespace: Option<&str>, name: &str) -> ObjectKey {
        ObjectKey { namespace: namespace.filter(|n| !n.is_empty()).map(Arc::from), name: name.into() }
    }

    /// The key of an object. Its name is empty if the object has none yet.
    pub fn of<K: Resource>(object: &K) -> ObjectKey {
        let meta = object.meta();
        ObjectKey::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default())
    }

    /// The namespace, if the object has one.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
