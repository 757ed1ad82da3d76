//! What a cache holds, and how.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::Arc,
    time::Duration,
};

use k1s_object::selector::{FieldSelector, LabelSelector};

use super::Transform;
use crate::{Form, Kind, Object};

/// The options of a cache. What is said here holds for all kinds that have no options of their own.
#[derive(Clone)]
pub struct CacheOptions {
    /// The namespaces that are watched; all if there is none.
    pub namespaces: Option<Vec<Arc<str>>>,
    /// Leaves `metadata.managedFields` out of what is kept. Off by default.
    pub strip_managed_fields: bool,
    /// After what time every object is shown to the handlers again, ± 10 %. 10 hours by default; `None` is never.
    pub resync_period: Option<Duration>,
    /// For how long nobody reads or watches a kind before it is not watched any more. 10 minutes by default; `None` is
    /// for ever.
    pub idle_timeout: Option<Duration>,
    /// Reads of a kind that nobody watches fail instead of starting to watch it. Off by default.
    pub fail_on_missing_informer: bool,
    /// How many objects are listed at a time. 500 by default.
    pub page_size: u32,
    /// The pause after a first failure, doubled each time, and the longest one. 200 ms and 30 s by default.
    pub retry_initial: Duration,
    /// See [`retry_initial`](Self::retry_initial).
    pub retry_max: Duration,
    /// How long a request may take until it is answered. 60 s by default.
    pub request_timeout: Duration,
    /// The shortest time after which a watch is opened anew; the longest is twice that. 5 minutes by default.
    pub watch_timeout: Duration,
    /// A watch that is silent for so long is taken for dead. 150 s by default: servers send a bookmark every minute.
    pub watch_silence: Duration,
    /// Options of single kinds: see [`by_object`](Self::by_object).
    pub by_object: ByObject,
}

/// The options of single kinds.
#[derive(Clone, Default)]
pub struct ByObject {
    kinds: HashMap<(TypeId, String, String, Form), Arc<dyn Any + Send + Sync>>,
}

impl fmt::Debug for ByObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.kinds.keys().map(|(_, version, plural, _)| format!("{plural} ({version})")))
            .finish()
    }
}

impl Default for CacheOptions {
    fn default() -> CacheOptions {
        CacheOptions {
            namespaces: None,
            strip_managed_fields: false,
            resync_period: Some(Duration::from_secs(10 * 3600)),
            idle_timeout: Some(Duration::from_secs(600)),
            fail_on_missing_informer: false,
            page_size: 500,
            retry_initial: Duration::from_millis(200),
            retry_max: Duration::from_secs(30),
            request_timeout: Duration::from_secs(60),
            watch_timeout: Duration::from_secs(300),
            watch_silence: Duration::from_secs(150),
            by_object: ByObject::default(),
        }
    }
}

impl CacheOptions {
    /// Options of one kind, in the form it is wanted in.
    #[must_use]
    pub fn by_object<K: Object>(mut self, kind: &Kind<K>, options: InformerOptions<K>) -> CacheOptions {
        self.by_object.kinds.insert(Self::id(kind), Arc::new(options));
        self
    }

    fn id<K: Object>(kind: &Kind<K>) -> (TypeId, String, String, Form) {
        let resource = kind.resource();
        (TypeId::of::<K>(), resource.api_version.clone(), resource.plural.clone(), kind.form())
    }

    /// The options that the informer of a kind gets.
    pub(super) fn informer_options<K: Object>(&self, kind: &Kind<K>) -> InformerOptions<K> {
        let own = self
            .by_object
            .kinds
            .get(&Self::id(kind))
            .and_then(|options| options.downcast_ref::<InformerOptions<K>>());
        let mut options = own.cloned().unwrap_or_default();
        options.namespaces = options.namespaces.or_else(|| self.namespaces.clone());
        options.resync_period = options.resync_period.or(self.resync_period);
        options.strip_managed_fields |= self.strip_managed_fields;
        options
    }
}

impl fmt::Debug for CacheOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheOptions")
            .field("namespaces", &self.namespaces)
            .field("resync_period", &self.resync_period)
            .field("idle_timeout", &self.idle_timeout)
            .finish_non_exhaustive()
    }
}

/// What is held of one kind, and how.
pub struct InformerOptions<K> {
    /// The namespaces that are watched; those of the cache if there is none. A kind of the cluster has none.
    pub namespaces: Option<Vec<Arc<str>>>,
    /// Only objects with these labels.
    pub labels: Option<LabelSelector>,
    /// Only objects with these fields; the server has to support it.
    pub fields: Option<FieldSelector>,
    /// A change that is made to each object before it is kept: what nobody needs can be dropped here.
    pub transform: Option<Transform<K>>,
    /// Leaves `metadata.managedFields` out of what is kept.
    pub strip_managed_fields: bool,
    /// Keeps objects encoded and decodes them when they are read: memory about as large as the JSON, for slower reads.
    pub lean: bool,
    /// See [`CacheOptions::resync_period`].
    pub resync_period: Option<Duration>,
}

impl<K> Default for InformerOptions<K> {
    fn default() -> InformerOptions<K> {
        InformerOptions {
            namespaces: None,
            labels: None,
            fields: None,
            transform: None,
            strip_managed_fields: false,
            lean: false,
            resync_period: None,
        }
    }
}

impl<K> Clone for InformerOptions<K> {
    fn clone(&self) -> InformerOptions<K> {
        InformerOptions {
            namespaces: self.namespaces.clone(),
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            transform: self.transform.clone(),
            strip_managed_fields: self.strip_managed_fields,
            lean: self.lean,
            resync_period: self.resync_period,
        }
    }
}

impl<K> fmt::Debug for InformerOptions<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerOptions")
            .field("namespaces", &self.namespaces)
            .field("labels", &self.labels)
            .field("fields", &self.fields)
            .field("lean", &self.lean)
            .finish_non_exhaustive()
    }
}
