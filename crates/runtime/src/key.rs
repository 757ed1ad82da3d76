//! The name of an object: what caches are asked by, and what queues hold.

use std::{fmt, sync::Arc};

use kube::Resource;

/// The namespace and name of an object. Cheap to clone; printed as `namespace/name`, or `name` alone for an object of the
/// cluster. Ordered by namespace, then by name.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    namespace: Option<Arc<str>>,
    name: Arc<str>,
}

/// What a reconciler is asked to look at: the name of an object of the kind that its controller is for.
///
/// Queues, handlers, sources and controllers are generic over it; this is the default.
pub type Request = ObjectKey;

impl ObjectKey {
    /// An object in a namespace.
    pub fn namespaced(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> ObjectKey {
        ObjectKey { namespace: Some(namespace.into()), name: name.into() }
    }

    /// An object of the cluster.
    pub fn cluster(name: impl Into<Arc<str>>) -> ObjectKey {
        ObjectKey { namespace: None, name: name.into() }
    }

    /// From parts as requests and metadata have them: no namespace, or an empty one, is the cluster.
    pub fn new(namespace: Option<&str>, name: &str) -> ObjectKey {
        ObjectKey { namespace: namespace.filter(|n| !n.is_empty()).map(Arc::from), name: name.into() }
    }

    /// The key of an object. One without a name (not created yet) has an empty one.
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
