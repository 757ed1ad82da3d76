//! The objects that configure admission: webhook configurations, policies and their bindings.
//!
//! They are read by every write, so one watch cache follows all of their kinds, and what is compiled from them is kept until
//! one of them changes. A tenant without any of them holds an empty cache.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use k1s_object::Status;
use k1s_store::Revision;

use super::Tenant;
use crate::{
    cache::{Cache, Snapshot},
    hooks::{GROUP, Hooks},
};

#[derive(Default)]
pub(super) struct Registrations {
    cache: ArcSwapOption<Cache>,
    hooks: ArcSwapOption<Hooks>,
}

impl Registrations {
    /// Reports a write of this server to one of the objects.
    pub(super) fn note_write(&self, revision: Revision) {
        if let Some(cache) = &*self.cache.load() {
            cache.note_write(revision);
        }
    }

    pub(super) fn clear(&self) {
        self.cache.store(None);
    }
}

impl Tenant {
    /// The key prefix of these objects; the name of a resource follows.
    pub(crate) fn registration_keys(&self) -> String {
        format!("{}{GROUP}/", self.prefix)
    }

    /// A snapshot of these objects with every write of this server. Recent writes of other servers may be missing.
    pub(crate) async fn registrations(&self) -> Result<Arc<Snapshot>, Status> {
        let held = &self.registrations.cache;
        if let Some(cache) = held.load_full() {
            return cache.with_own_writes().await;
        }
        let started = Arc::new(Cache::start(self.env(), self.store(), self.registration_keys().into(), None));
        // Only the first of two that start at once is kept.
        let before = held.compare_and_swap(std::ptr::null::<Cache>(), Some(started.clone()));
        let cache = before.as_ref().map_or(started, Arc::clone);
        cache.with_own_writes().await
    }

    /// The webhooks of the tenant.
    pub(crate) async fn hooks(&self) -> Result<Arc<Hooks>, Status> {
        let snapshot = self.registrations().await?;
        if let Some(hooks) = &*self.registrations.hooks.load()
            && hooks.is_of(&snapshot)
        {
            return Ok(hooks.clone());
        }
        let before = self.registrations.hooks.load_full();
        let hooks =
            Hooks::compile(&self.shared.catalog, &self.registration_keys(), &snapshot, before.as_deref());
        let hooks = Arc::new(hooks);
        self.registrations.hooks.store(Some(hooks.clone()));
        Ok(hooks)
    }
}
