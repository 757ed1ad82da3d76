//! The custom resources that a tenant serves.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use k1s_object::{Status, gvk::GroupVersionResource};
use k1s_schema::names;
use k1s_store::Revision;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use super::Tenant;
use crate::{
    cache::{Entries, PATIENCE},
    documents::Fingerprint,
    objectmeta::meta_text,
    resource::{Resource, compile},
    shared_call::SharedCall,
    stored::Stored,
};

/// A snapshot of the custom resources that a tenant serves.
#[derive(Default)]
pub(crate) struct Served {
    /// The revision up to which the definitions are current.
    revision: AtomicU64,
    /// The entries they were compiled from.
    entries: Entries,
    definitions: HashMap<Bytes, Arc<Definition>>,
    /// The same, ordered by name.
    ordered: Vec<Arc<Definition>>,
    fingerprint: Fingerprint,
    resources: Vec<Arc<Resource>>,
}

impl Served {
    /// All versions of all kinds.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter()
    }

    /// The served group versions with their definitions, ordered by the definitions' names.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = (&str, &str, &Arc<Definition>)> {
        self.ordered.iter().flat_map(|definition| {
            definition.resources.iter().map(move |one| (&*one.group, &*one.version, definition))
        })
    }

    /// A hash of all definitions; zeros if there are none.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    fn find(&self, gvr: GroupVersionResource<&str>) -> Option<Arc<Resource>> {
        self.resources.iter().find(|resource| resource.gvr() == gvr).cloned()
    }
}

/// A hash of the published parts of these definitions, which keys the documents built from them.
pub(crate) fn fingerprint<'a>(definitions: impl Iterator<Item = &'a Arc<Definition>>) -> Fingerprint {
    use sha2::Digest as _;
    let mut hasher = sha2::Sha256::new();
    let mut none = true;
    for definition in definitions {
        hasher.update(definition.fingerprint);
        none = false;
    }
    if none { Fingerprint::default() } else { hasher.finalize().into() }
}

/// A definition, compiled.
pub(crate) struct Definition {
    revision: Revision,
    /// A hash of everything that its resources are compiled from.
    identity: u64,
    /// A hash of its published parts, equal in all tenants that have the same definition.
    fingerprint: Fingerprint,
    /// Its bytes, shared with the cache.
    pub(crate) stored: Stored,
    group: String,
    plural: String,
    resources: Vec<Arc<Resource>>,
    /// Notifies watches when it is replaced or deleted.
    replaced: Arc<watch::Sender<u64>>,
}

/// The custom resources of a tenant, kept up to date.
#[derive(Default)]
pub(crate) struct Customs {
    served: ArcSwap<Served>,
    /// Held while `served` is brought up to date.
    renewing: Mutex<()>,
    /// Concurrent requests for resources that are not served share one read of the store's revision.
    refreshing: SharedCall<Result<(), Status>>,
}

/// The resource of definitions.
pub(crate) const DEFINITIONS: GroupVersionResource<&str> =
    GroupVersionResource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");

impl Customs {
    /// The latest snapshot that this process has.
    pub(crate) async fn current(&self, tenant: &Arc<Tenant>) -> Result<Arc<Served>, Status> {
        self.at(tenant, Revision::FIRST).await
    }

    /// The latest snapshot; if it lacks this group, the store is checked for newer definitions.
    pub(crate) async fn fresh(&self, tenant: &Arc<Tenant>, group: &str) -> Result<Arc<Served>, Status> {
        let served = self.current(tenant).await?;
        if served.resources.iter().any(|resource| resource.group == group) {
            return Ok(served);
        }
        self.newest(tenant).await
    }

    /// The revision up to which the definitions are known.
    pub(crate) fn reached(&self) -> Revision {
        Revision::new(self.served.load().revision.load(Ordering::Relaxed))
    }

    /// The snapshot at the store's newest revision: a resource may just have been defined by another replica.
    async fn newest(&self, tenant: &Arc<Tenant>) -> Result<Arc<Served>, Status> {
        self.refreshing.call(|| async { self.reach(tenant, tenant.revision().await?).await }).await?;
        self.current(tenant).await
    }

    /// Waits until all definitions up to a revision are served.
    pub(crate) async fn reach(&self, tenant: &Arc<Tenant>, revision: Revision) -> Result<(), Status> {
        self.at(tenant, revision).await.map(|_| ())
    }

    /// The custom resource at a path.
    pub(crate) async fn find(
        &self,
        tenant: &Arc<Tenant>,
        gvr: GroupVersionResource<&str>,
    ) -> Result<Option<Arc<Resource>>, Status> {
        let found = self.current(tenant).await?.find(gvr);
        if found.is_some() {
            return Ok(found);
        }
        Ok(self.newest(tenant).await?.find(gvr))
    }

    async fn at(&self, tenant: &Arc<Tenant>, revision: Revision) -> Result<Arc<Served>, Status> {
        let Some(definitions) = tenant.shared.catalog.find(DEFINITIONS) else {
            return Ok(self.served.load_full());
        };
        let snapshot = tenant.cache(&definitions).at_least(revision, PATIENCE).await?;
        let _one = self.renewing.lock();
        let served = self.served.load_full();
        let revision = snapshot.revision.get();
        if served.revision.load(Ordering::Relaxed) >= revision {
            return Ok(served);
        }
        if served.entries.is_same(&snapshot.entries) {
            served.revision.store(revision, Ordering::Relaxed);
            return Ok(served);
        }
        let mut next = Served { entries: snapshot.entries.clone(), ..Served::default() };
        next.revision = AtomicU64::new(revision);
        for entry in snapshot.entries.iter() {
            let known = served.definitions.get(&entry.key);
            let definition = match known.filter(|known| known.revision == entry.stored.revision) {
                Some(known) => known.clone(),
                // An unreadable definition is not served; the others are.
                None => match definitions.read(&entry.stored) {
                    Ok(crd) => Arc::new(Definition::new(&crd, &entry.stored, known)),
                    Err(why) => {
                        tracing::error!(definition = entry.name(), %why, "an unreadable definition is not served");
                        continue;
                    }
                },
            };
            next.resources.extend(definition.resources.iter().cloned());
            next.ordered.push(definition.clone());
            next.definitions.insert(entry.key.clone(), definition);
        }
        next.fingerprint = fingerprint(next.ordered.iter().filter(|one| !one.resources.is_empty()));
        let next = Arc::new(next);
        self.served.store(next.clone());
        for (key, old) in &served.definitions {
            if next.definitions.get(key).is_none_or(|new| new.identity != old.identity) {
                // Selectable fields, and how stored objects are read, may have changed.
                tenant.forget_caches(&old.group, &old.plural);
                old.replaced.send_replace(revision);
            }
        }
        Ok(next)
    }
}

impl Definition {
    /// Its resources of a group version.
    pub(crate) fn resources_of<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        self.resources.iter().filter(move |one| one.group == group && one.version == version)
    }

    /// Compiles a definition. Watches stay open if nothing relevant has changed since `known`.
    fn new(crd: &Value, stored: &Stored, known: Option<&Arc<Definition>>) -> Definition {
        let mut hasher = DefaultHasher::new();
        let (spec, names) = (crd["spec"].to_string(), crd["status"]["acceptedNames"].to_string());
        let established = names::is_true(crd, "Established");
        meta_text(crd, "uid").hash(&mut hasher);
        spec.hash(&mut hasher);
        names.hash(&mut hasher);
        established.hash(&mut hasher);
        let identity = hasher.finish();
        let fingerprint = {
            use sha2::Digest as _;
            sha2::Sha256::digest(format!("{}{spec}{}{names}{established}", spec.len(), names.len())).into()
        };
        let replaced = match known {
            Some(known) if known.identity == identity => known.replaced.clone(),
            _ => Arc::new(watch::Sender::new(0)),
        };
        Definition {
            revision: stored.revision,
            identity,
            fingerprint,
            stored: stored.clone(),
            group: text(&crd["spec"]["group"]).to_owned(),
            plural: text(&crd["spec"]["names"]["plural"]).to_owned(),
            resources: compile(crd, stored, &replaced),
            replaced,
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
