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

/// The custom resources that a tenant serves at one moment.
#[derive(Default)]
pub(crate) struct Served {
    /// The revision up to which these are the definitions.
    revision: AtomicU64,
    /// What they were made of.
    entries: Entries,
    definitions: HashMap<Bytes, Arc<Definition>>,
    /// The same in the order of their names.
    ordered: Vec<Arc<Definition>>,
    fingerprint: Fingerprint,
    resources: Vec<Arc<Resource>>,
}

impl Served {
    /// All versions of all kinds.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter()
    }

    /// The group versions there are with their definitions, in the order of the definitions' names.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = (&str, &str, &Arc<Definition>)> {
        self.ordered.iter().flat_map(|definition| {
            definition.resources.iter().map(move |one| (&*one.group, &*one.version, definition))
        })
    }

    /// What all of this is made of; zeros if there is nothing.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    fn find(&self, gvr: GroupVersionResource<&str>) -> Option<Arc<Resource>> {
        self.resources.iter().find(|resource| resource.gvr() == gvr).cloned()
    }
}

/// What documents about these definitions are made of.
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
    /// What its resources follow from, as a hash.
    identity: u64,
    /// What is published of it, as a hash that is the same wherever it is defined.
    fingerprint: Fingerprint,
    /// Its bytes, which lie in the cache anyway.
    pub(crate) stored: Stored,
    group: String,
    plural: String,
    resources: Vec<Arc<Resource>>,
    /// Tells watches when it was replaced or deleted.
    replaced: Arc<watch::Sender<u64>>,
}

/// The custom resources of a tenant, as they change.
#[derive(Default)]
pub(crate) struct Customs {
    served: ArcSwap<Served>,
    /// One at a time brings `served` up to date.
    renewing: Mutex<()>,
    /// Those who look for what is not served share a look at the store.
    looking: SharedCall<Result<(), Status>>,
}

/// Where definitions are served.
pub(crate) const DEFINITIONS: GroupVersionResource<&str> =
    GroupVersionResource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");

impl Customs {
    /// What is served now, as far as this process has heard.
    pub(crate) async fn current(&self, tenant: &Arc<Tenant>) -> Result<Arc<Served>, Status> {
        self.at(tenant, Revision::FIRST).await
    }

    /// What is served now, with a group that was just asked for.
    pub(crate) async fn fresh(&self, tenant: &Arc<Tenant>, group: &str) -> Result<Arc<Served>, Status> {
        let served = self.current(tenant).await?;
        if served.resources.iter().any(|resource| resource.group == group) {
            return Ok(served);
        }
        self.newest(tenant).await
    }

    /// What is served as of now: perhaps it was defined a moment ago, here or at another replica.
    async fn newest(&self, tenant: &Arc<Tenant>) -> Result<Arc<Served>, Status> {
        self.looking.call(|| async { self.reach(tenant, tenant.revision().await?).await }).await?;
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
                // One that cannot be read is not served, and does not keep others from being served.
                None => match definitions.read(&entry.stored) {
                    Ok(crd) => Arc::new(Definition::new(&crd, &entry.stored, known)),
                    Err(why) => {
                        tracing::error!(definition = entry.name(), %why, "a definition cannot be read and is not served");
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
                // What can be selected on may have changed, and how stored objects are read.
                tenant.forget_caches(&old.group, &old.plural);
                old.replaced.send_replace(revision);
            }
        }
        Ok(next)
    }
}

impl Definition {
    /// What it serves of a group version.
    pub(crate) fn resources_of<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        self.resources.iter().filter(move |one| one.group == group && one.version == version)
    }

    /// Compiles a definition, which may be known from before.
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
