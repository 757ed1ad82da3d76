//! Options of a cache and of its informers.

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

/// Options of a cache. They apply to all kinds without options of their own.
#[derive(Clone)]
pub struct CacheOptions {
    /// The namespaces to watch; `None` watches all.
    pub namespaces: Option<Vec<Arc<str>>>,
    /// Drops `metadata.managedFields` from cached objects. Off by default.
    pub strip_managed_fields: bool,
    /// Interval at which every object is delivered to handlers again, ± 10 %. 10 hours by default; `None` is never.
    pub resync_period: Option<Duration>,
    /// Time after which an informer without reads and handlers is stopped. 10 minutes by default; `None` is never.
    pub idle_timeout: Option<Duration>,
    /// Reads of a kind without an informer fail instead of starting one. Off by default.
    pub fail_on_missing_informer: bool,
    /// Maximum number of objects per page of a list. 500 by default.
    pub page_size: u32,
    /// Initial backoff after a failure, doubled each time up to `retry_max`. 200 ms by default.
    pub retry_initial: Duration,
    /// Maximum backoff. 30 s by default.
    pub retry_max: Duration,
    /// Maximum time to wait for the response to a request. 60 s by default.
    pub request_timeout: Duration,
    /// Minimum lifetime of a watch; the maximum is twice that. 5 minutes by default.
    pub watch_timeout: Duration,
    /// Time without any event after which a watch is reopened. 150 s by default: servers send a bookmark every minute.
    pub watch_silence: Duration,
    /// Options of individual kinds: see [`by_object`](Self::by_object).
    pub by_object: ByObject,
}

/// Options of individual kinds.
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
    /// Sets the options of one kind in one form (full objects or metadata).
    #[must_use]
    pub fn by_object<K: Object>(mut self, kind: &Kind<K>, options: InformerOptions<K>) -> CacheOptions {
        self.by_object.kinds.insert(Self::id(kind), Arc::new(options));
        self
    }

    fn id<K: Object>(kind: &Kind<K>) -> (TypeId, String, String, Form) {
        let resource = kind.resource();
        (TypeId::of::<K>(), resource.api_version.clone(), resource.plural.clone(), kind.form())
    }

    /// The options of the informer of a kind.
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

/// Options of the informer of one kind.
pub struct InformerOptions<K> {
    /// The namespaces to watch; `None` watches those of the cache. Ignored for cluster-scoped kinds.
    pub namespaces: Option<Vec<Arc<str>>>,
    /// Caches only objects with these labels.
    pub labels: Option<LabelSelector>,
    /// Caches only objects with these fields; the server must support the selector.
    pub fields: Option<FieldSelector>,
    /// A change made to each object before it is stored, for example to drop fields that are not needed.
    pub transform: Option<Transform<K>>,
    /// Drops `metadata.managedFields` from cached objects.
    pub strip_managed_fields: bool,
    /// Stores objects encoded and decodes them on each read: less memory (about the size of the JSON), slower reads.
    pub lean: bool,
    /// Overrides [`CacheOptions::resync_period`]; `None` uses that of the cache.
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
