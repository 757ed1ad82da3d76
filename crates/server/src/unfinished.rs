//! Which tenants have something for controllers to do, by what is in the store: for a server that takes over from one that is
//! gone, and for the one among several over a store whose controllers run.

use std::collections::HashSet;

use k1s_object::Status;
use k1s_store::{Change, Error, Range, Revision, Store, WatchItem, WatchRequest};

use crate::{
    controllers::{Tally, is_default_object, waits},
    errors,
    keys::{Key, split_key},
    options::TenantEvent,
    server::ApiServer,
};

/// Keys read from the store at a time.
const PAGE: usize = 1000;

impl ApiServer {
    /// Tells of every tenant that had something for controllers to do at a revision, as a [`TenantHook`](crate::TenantHook)
    /// is told of it when it happens. It opens no tenant, and leaves out those that are open: they are looked at when that
    /// happens.
    ///
    /// # Errors
    /// Those of the store; 410 if that revision is not there any more.
    pub async fn find_unfinished(
        &self,
        at: Revision,
        mut tell: impl FnMut(TenantEvent<'_>),
    ) -> Result<(), Status> {
        let mut known = self.tenants().into_iter().collect();
        scan(&**self.store(), at, &mut known, &mut tell).await
    }

    /// Tells of every tenant that has something for controllers to do, and of those that come to have it, whichever server
    /// over this store is asked to change them; and of those that another server deletes. It goes on until it fails or is
    /// dropped.
    ///
    /// # Errors
    /// Those of the store. Who calls this again is told of everything again.
    pub async fn follow_unfinished(&self, mut tell: impl FnMut(TenantEvent<'_>)) -> Result<(), Status> {
        let store = &**self.store();
        let failed = |error: Error| errors::store(&error);
        let at = store.revision().await.map_err(failed)?;
        // Opened first, so that nothing between the two is missed.
        let mut watch = store.watch(WatchRequest::prefix("/").after(at)).await.map_err(failed)?;
        let mut told = HashSet::new();
        scan(store, at, &mut told, &mut tell).await?;
        while let Some(item) = watch.next().await {
            if let WatchItem::Change(change) = item.map_err(failed)? {
                changed(&change, &mut told, &mut tell);
            }
        }
        Ok(())
    }
}

/// The tenant of a key, and where the object is in it.
fn split(key: &[u8]) -> Option<(&str, Option<Key<'_>>)> {
    let text = std::str::from_utf8(key).ok()?;
    let (tenant, _) = text.strip_prefix('/')?.split_once('/')?;
    let prefix = text.get(..tenant.len() + 2)?;
    Some((tenant, split_key(key, prefix)))
}

/// Reads everything once, page by page, and leaves out the rest of a tenant as soon as something is found in it.
async fn scan(
    store: &dyn Store,
    at: Revision,
    told: &mut HashSet<String>,
    tell: &mut impl FnMut(TenantEvent<'_>),
) -> Result<(), Status> {
    let mut range = Range::prefix("/").limit(PAGE).at(at);
    let mut current: Option<(String, Tally)> = None;
    'pages: loop {
        let page = store.range(range.clone()).await.map_err(|error| errors::store(&error))?;
        for entry in &page.entries {
            let Some((tenant, key)) = split(&entry.key) else { continue };
            if current.as_ref().is_none_or(|(name, _)| name != tenant) {
                finish(current.take(), told, tell);
                current = Some((tenant.to_owned(), Tally::default()));
            }
            let found = key.as_ref().is_some_and(|key| waits(key, &entry.value));
            if found && told.insert(tenant.to_owned()) {
                tell(TenantEvent::Needed(tenant));
            }
            if told.contains(tenant) {
                current = None;
                // `0` follows `/`: everything of this tenant is before it.
                range = range.start(format!("/{tenant}0"));
                continue 'pages;
            }
            let Some(key) = key else { continue };
            if let Some((_, tally)) = &mut current {
                tally.count(&key);
            }
        }
        let Some(last) = page.entries.last().filter(|_| page.more) else { break };
        range = range.start([&*last.key, b"\0"].concat());
    }
    finish(current, told, tell);
    Ok(())
}

fn finish(
    current: Option<(String, Tally)>,
    told: &mut HashSet<String>,
    tell: &mut impl FnMut(TenantEvent<'_>),
) {
    if let Some((tenant, tally)) = current
        && !tally.is_complete()
    {
        tell(TenantEvent::Needed(&tenant));
        told.insert(tenant);
    }
}

fn changed(change: &Change, told: &mut HashSet<String>, tell: &mut impl FnMut(TenantEvent<'_>)) {
    for event in change.events() {
        let Some((tenant, key)) = split(&event.key) else { continue };
        let Some(key) = key else {
            if event.value.is_none() && event.key.ends_with(b"/k1s/ready/") {
                told.remove(tenant);
                tell(TenantEvent::Gone(tenant));
            }
            continue;
        };
        if told.contains(tenant) {
            continue;
        }
        let needed = match &event.value {
            Some(value) => {
                waits(&key, value) || !event.created && key.plural == "configmaps" && is_default_object(&key)
            }
            None => is_default_object(&key),
        };
        if needed {
            told.insert(tenant.to_owned());
            tell(TenantEvent::Needed(tenant));
        }
    }
}
