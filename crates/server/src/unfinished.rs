//! Finds tenants that need controllers from the contents of the store: for a server that takes over from another one, and for
//! the server whose controllers run when several share a store.

use std::collections::HashSet;

use k1s_object::Status;
use k1s_store::{Change, Error, Range, Revision, Store, WatchItem, WatchRequest};

use crate::{
    controllers::{Tally, is_default_object, may_need_controllers},
    errors,
    keys::{Key, split_key},
    options::TenantEvent,
    server::ApiServer,
};

/// Number of keys read from the store at a time.
const PAGE: usize = 1000;

impl ApiServer {
    /// Reports every tenant that needed controllers at a revision, with the events that a [`TenantHook`](crate::TenantHook)
    /// gets. It opens no tenant, and skips those that are open: they were checked when they were opened.
    ///
    /// # Errors
    /// Those of the store; 410 if that revision was compacted.
    pub async fn find_unfinished(
        &self,
        at: Revision,
        mut report: impl FnMut(TenantEvent<'_>),
    ) -> Result<(), Status> {
        let mut known = self.tenants().into_iter().collect();
        scan(&**self.store(), at, &mut known, &mut report).await
    }

    /// Reports every tenant that needs controllers, now or later, and every tenant that is deleted, by any server over this
    /// store. Runs until it fails or is dropped.
    ///
    /// # Errors
    /// Those of the store. Another call reports everything again.
    pub async fn follow_unfinished(&self, mut report: impl FnMut(TenantEvent<'_>)) -> Result<(), Status> {
        let store = &**self.store();
        let failed = |error: Error| errors::store(&error);
        let at = store.revision().await.map_err(failed)?;
        // Opened before the scan, so that no change in between is missed.
        let mut watch = store.watch(WatchRequest::prefix("/").after(at)).await.map_err(failed)?;
        let mut reported = HashSet::new();
        scan(store, at, &mut reported, &mut report).await?;
        while let Some(item) = watch.next().await {
            if let WatchItem::Change(change) = item.map_err(failed)? {
                changed(&change, &mut reported, &mut report);
            }
        }
        Ok(())
    }
}

/// The tenant of a key, and the object's key within it.
fn split(key: &[u8]) -> Option<(&str, Option<Key<'_>>)> {
    let text = std::str::from_utf8(key).ok()?;
    let (tenant, _) = text.strip_prefix('/')?.split_once('/')?;
    let prefix = text.get(..tenant.len() + 2)?;
    Some((tenant, split_key(key, prefix)))
}

/// Reads the store page by page, skipping the rest of a tenant as soon as it is reported.
async fn scan(
    store: &dyn Store,
    at: Revision,
    reported: &mut HashSet<String>,
    report: &mut impl FnMut(TenantEvent<'_>),
) -> Result<(), Status> {
    let mut range = Range::prefix("/").limit(PAGE).at(at);
    let mut current: Option<(String, Tally)> = None;
    'pages: loop {
        let page = store.range(range.clone()).await.map_err(|error| errors::store(&error))?;
        for entry in &page.entries {
            let Some((tenant, key)) = split(&entry.key) else { continue };
            if current.as_ref().is_none_or(|(name, _)| name != tenant) {
                finish(current.take(), reported, report);
                current = Some((tenant.to_owned(), Tally::default()));
            }
            let found = key.as_ref().is_some_and(|key| may_need_controllers(key, &entry.value));
            if found && reported.insert(tenant.to_owned()) {
                report(TenantEvent::Needed(tenant));
            }
            if reported.contains(tenant) {
                current = None;
                // `0` follows `/` in ASCII, so this skips all keys of the tenant.
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
    finish(current, reported, report);
    Ok(())
}

fn finish(
    current: Option<(String, Tally)>,
    reported: &mut HashSet<String>,
    report: &mut impl FnMut(TenantEvent<'_>),
) {
    if let Some((tenant, tally)) = current
        && !tally.is_complete()
    {
        report(TenantEvent::Needed(&tenant));
        reported.insert(tenant);
    }
}

fn changed(change: &Change, reported: &mut HashSet<String>, report: &mut impl FnMut(TenantEvent<'_>)) {
    for event in change.events() {
        let Some((tenant, key)) = split(&event.key) else { continue };
        let Some(key) = key else {
            if event.value.is_none() && event.key.ends_with(b"/k1s/ready/") {
                reported.remove(tenant);
                report(TenantEvent::Gone(tenant));
            }
            continue;
        };
        if reported.contains(tenant) {
            continue;
        }
        let needed = match &event.value {
            Some(value) => {
                may_need_controllers(&key, value)
                    || !event.created && key.plural == "configmaps" && is_default_object(&key)
            }
            None => is_default_object(&key),
        };
        if needed {
            reported.insert(tenant.to_owned());
            report(TenantEvent::Needed(tenant));
        }
    }
}
