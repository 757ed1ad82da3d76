//! The `APIService`s of a tenant: the group versions that other servers serve, and what is known of those servers.
//!
//! They are compiled from a watch cache, which starts with the first request that is for no built-in resource.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicBool},
};

use arc_swap::ArcSwap;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use k1s_object::{Status, gvk::GroupVersionResource};
use k1s_store::Revision;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};

use super::Tenant;
use crate::{
    cache::{Cache, Entries, PATIENCE, Snapshot},
    documents::Fingerprint,
    objectmeta::{meta_text, metadata_label},
    resource::Resource,
    services::ServicePort,
};

/// The resource of `APIService`s.
pub(crate) const API_SERVICES: GroupVersionResource<&str> =
    GroupVersionResource::new("apiregistration.k8s.io", "v1", "apiservices");

/// The label of `APIService`s that the server keeps itself.
pub(crate) const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// Concurrent requests to one aggregated API: its users wait for it, those of other APIs do not.
const MAX_IN_FLIGHT: usize = 100;
/// The same for watches and other requests whose clients decide how long they take.
const MAX_STREAMS: usize = 1000;

/// An `APIService`.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) group_priority: i64,
    pub(crate) version_priority: i64,
    /// The value of [`AUTOMANAGED`].
    pub(crate) managed: String,
    pub(crate) revision: Revision,
    /// The server behind it; `None`: this one.
    pub(crate) backend: Option<Arc<Backend>>,
}

/// The server behind an `APIService`.
#[derive(Debug)]
pub(crate) struct Backend {
    uid: String,
    pub(crate) service: ServicePort,
    /// The authorities of its certificate, as PEM.
    pub(crate) ca_bundle: Vec<u8>,
    /// Whether its certificate is not verified.
    pub(crate) insecure: bool,
    /// What is known of it.
    pub(crate) live: watch::Sender<Live>,
    pub(crate) in_flight: Arc<Semaphore>,
    pub(crate) streams: Arc<Semaphore>,
}

/// What is known of the server behind an `APIService`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Live {
    /// `None`: it was not checked yet.
    pub(crate) availability: Option<Availability>,
    /// The last resources that it has reported, in the form of aggregated discovery.
    pub(crate) resources: Option<Arc<Value>>,
    /// A hash of them.
    pub(crate) digest: Fingerprint,
    /// Their size as JSON.
    pub(crate) bytes: usize,
    /// Its OpenAPI document, if it has one.
    pub(crate) openapi: Option<OpenApi>,
    /// Whether its OpenAPI document was asked for.
    pub(crate) is_described: bool,
    /// Whether its resources are up to date; `None`: it was not asked yet.
    pub(crate) is_current: Option<bool>,
}

/// The OpenAPI document of version 3 of a group version.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenApi {
    /// What the server calls it.
    pub(crate) hash: String,
    /// The hash for which it was read last; empty if it has to be read again.
    pub(crate) read: String,
    /// The document as JSON, and a hash of it; `None` if it is too large, or was never read.
    pub(crate) document: Option<(Fingerprint, Bytes)>,
}

/// The condition `Available`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Availability {
    /// `True`, `False` or `Unknown`.
    pub(crate) status: &'static str,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Availability {
    pub(crate) fn of(status: &'static str, reason: &str, message: impl Into<String>) -> Availability {
        Availability { status, reason: reason.to_owned(), message: message.into() }
    }

    pub(crate) fn no(reason: &str, message: impl Into<String>) -> Availability {
        Availability::of("False", reason, message)
    }

    pub(crate) fn passed() -> Availability {
        Availability::of("True", "Passed", "all checks passed")
    }

    pub(crate) fn is_available(&self) -> bool {
        self.status == "True"
    }
}

/// The condition `Available` of an object.
pub(crate) fn available_condition(service: &Value) -> Option<&Value> {
    let conditions = service["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == "Available")
}

impl Api {
    fn new(service: &Value, revision: Revision, before: Option<&Api>) -> Api {
        let spec = &service["spec"];
        let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
        let uid = meta_text(service, "uid").to_owned();
        let backend = Some(&spec["service"]).filter(|backend| backend.is_object()).map(|backend| {
            let text = |field: &str| backend[field].as_str().unwrap_or_default().to_owned();
            let port = backend["port"].as_u64().and_then(|port| u16::try_from(port).ok());
            let service_port = ServicePort {
                namespace: text("namespace"),
                name: text("name"),
                port: port.filter(|port| *port > 0).unwrap_or(443),
            };
            let bundle = spec["caBundle"].as_str().unwrap_or_default();
            let ca_bundle = BASE64_STANDARD.decode(bundle).unwrap_or_default();
            let insecure = spec["insecureSkipTLSVerify"] == true;
            let same = before.and_then(|before| before.backend.as_ref()).filter(|known| {
                known.uid == uid
                    && known.service == service_port
                    && known.ca_bundle == ca_bundle
                    && known.insecure == insecure
            });
            // What another process, or an earlier run, has found out counts until this one has.
            let found = available_condition(service).filter(|condition| condition["status"] == "True");
            let availability = found.map(|_| Availability::passed());
            let fresh = || {
                Arc::new(Backend {
                    uid: uid.clone(),
                    service: service_port.clone(),
                    ca_bundle: ca_bundle.clone(),
                    insecure,
                    live: watch::Sender::new(Live { availability, ..Live::default() }),
                    in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
                    streams: Arc::new(Semaphore::new(MAX_STREAMS)),
                })
            };
            same.cloned().unwrap_or_else(fresh)
        });
        Api {
            name: meta_text(service, "name").to_owned(),
            uid,
            group: text("group"),
            version: text("version"),
            group_priority: spec["groupPriorityMinimum"].as_i64().unwrap_or_default(),
            version_priority: spec["versionPriority"].as_i64().unwrap_or_default(),
            managed: metadata_label(service, AUTOMANAGED).to_owned(),
            revision,
            backend,
        }
    }
}

/// The `APIService`s of a tenant at one revision.
#[derive(Default)]
pub(crate) struct Apis {
    entries: Entries,
    /// All of them, ordered by name.
    pub(crate) all: Vec<Arc<Api>>,
    /// Those that other servers serve.
    pub(crate) remote: Vec<Arc<Api>>,
}

impl Apis {
    /// The `APIService` of a group version that another server serves.
    pub(crate) fn find(&self, group: &str, version: &str) -> Option<&Arc<Api>> {
        self.remote.iter().find(|api| api.group == group && api.version == version)
    }
}

/// The `APIService`s of a tenant, kept up to date.
#[derive(Default)]
pub(crate) struct ApiRegistry {
    current: ArcSwap<Apis>,
    /// Held while `current` is brought up to date.
    renewing: Mutex<()>,
    /// Held while those of this server's own group versions are changed.
    pub(crate) syncing: tokio::sync::Mutex<()>,
    /// Whether those were completed since the start.
    pub(crate) is_complete: AtomicBool,
    /// Whether a task checks the servers behind them.
    pub(crate) is_watched: AtomicBool,
    /// How often one has become unavailable, by name and reason.
    pub(crate) failures: Mutex<BTreeMap<(String, String), u64>>,
}

impl ApiRegistry {
    /// The `APIService`s that were compiled last.
    pub(crate) fn last(&self) -> Arc<Apis> {
        self.current.load_full()
    }
}

impl Tenant {
    fn api_services(&self) -> Result<(Arc<Resource>, Arc<Cache>), Status> {
        let resource = self.shared.catalog.require(API_SERVICES)?;
        let cache = self.cache(&resource);
        Ok((resource, cache))
    }

    /// The `APIService`s with every write of this server. Recent writes of other servers may be missing.
    pub(crate) async fn apis(&self) -> Result<Arc<Apis>, Status> {
        let (resource, cache) = self.api_services()?;
        let snapshot = cache.with_own_writes().await?;
        Ok(self.compile_apis(&resource, &snapshot))
    }

    /// The `APIService`s at the store's newest revision.
    pub(crate) async fn newest_apis(&self) -> Result<Arc<Apis>, Status> {
        let (resource, cache) = self.api_services()?;
        let snapshot = cache.now().await?;
        Ok(self.compile_apis(&resource, &snapshot))
    }

    /// The `APIService`s at this revision or a newer one.
    pub(crate) async fn apis_at(&self, revision: Revision) -> Result<Arc<Apis>, Status> {
        let (resource, cache) = self.api_services()?;
        let snapshot = cache.at_least(revision, PATIENCE).await?;
        Ok(self.compile_apis(&resource, &snapshot))
    }

    /// Notifies when they may have changed.
    pub(crate) fn api_changes(&self) -> Result<watch::Receiver<u64>, Status> {
        Ok(self.api_services()?.1.subscribe())
    }

    fn compile_apis(&self, resource: &Resource, snapshot: &Snapshot) -> Arc<Apis> {
        let registry = &self.api_registry;
        let known = registry.current.load_full();
        if known.entries.is_same(&snapshot.entries) {
            return known;
        }
        let _one = registry.renewing.lock();
        let known = registry.current.load_full();
        if known.entries.is_same(&snapshot.entries) {
            return known;
        }
        let mut next = Apis { entries: snapshot.entries.clone(), ..Apis::default() };
        for entry in snapshot.entries.iter() {
            let before = known.all.iter().find(|api| api.name == entry.name());
            let api = match before.filter(|api| api.revision == entry.stored.revision) {
                Some(api) => api.clone(),
                None => match resource.read(&entry.stored) {
                    Ok(service) => {
                        Arc::new(Api::new(&service, entry.stored.revision, before.map(|api| &**api)))
                    }
                    Err(why) => {
                        tracing::error!(name = entry.name(), %why, "an unreadable APIService has no effect");
                        continue;
                    }
                },
            };
            // The server's own group versions are always its own.
            if api.backend.is_some() && self.shared.catalog.of(&api.group, &api.version).next().is_none() {
                next.remote.push(api.clone());
            }
            next.all.push(api);
        }
        let next = Arc::new(next);
        registry.current.store(next.clone());
        next
    }
}
