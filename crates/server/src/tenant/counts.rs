//! The number of objects of each resource of a tenant, for metrics.
//!
//! The first request counts them and starts a task that watches the store, so later requests read no objects. The task
//! ends after some time without requests.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use k1s_env::{Env, Instant};
use k1s_object::Status;
use k1s_store::{Range, RequestProgress, Revision, Store, WatchItem, WatchRequest};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Tenant;
use crate::{
    cache::PATIENCE,
    errors,
    keys::{self, split_key},
    paging::Page,
};

/// Maximum time without requests before the task ends.
const MAX_UNUSED: Duration = Duration::from_secs(10 * 60);

/// The counts of a tenant, while there are requests for them.
#[derive(Default)]
pub(crate) struct Counts(Mutex<Option<Arc<Counter>>>);

struct Counter {
    env: Env,
    store: Arc<dyn Store>,
    prefix: String,
    /// By resource: `pods`, `deployments.apps`.
    counts: Mutex<BTreeMap<String, usize>>,
    /// The revision of the counts; 0 before the first count is complete.
    reached: watch::Sender<u64>,
    progress: Mutex<Option<Arc<dyn RequestProgress>>>,
    last_request: Mutex<Instant>,
    ended: AtomicBool,
}

impl Counts {
    /// The counts at a revision or later.
    pub(crate) async fn at(
        &self,
        tenant: &Tenant,
        revision: Revision,
    ) -> Result<Vec<(String, usize)>, Status> {
        let counter = self.counter(tenant);
        let mut reached = counter.reached.subscribe();
        let wait = async {
            while *reached.borrow_and_update() < revision.get() {
                if let Some(progress) = counter.progress.lock().clone() {
                    progress.request_progress();
                }
                if counter.ended.load(Ordering::Acquire) || reached.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = counter.env.timeout(PATIENCE, wait).await;
        if *counter.reached.borrow() == 0 {
            return Err(errors::store(&k1s_store::Error::unavailable(
                "objects could not be counted in time",
            )));
        }
        Ok(counter.counts.lock().iter().map(|(name, count)| (name.clone(), *count)).collect())
    }

    fn counter(&self, tenant: &Tenant) -> Arc<Counter> {
        let mut current = self.0.lock();
        if let Some(counter) = current.as_ref().filter(|counter| !counter.ended.load(Ordering::Acquire)) {
            *counter.last_request.lock() = tenant.env().now();
            return counter.clone();
        }
        let counter = Arc::new(Counter {
            env: tenant.env().clone(),
            store: tenant.store().clone(),
            prefix: keys::prefix(&tenant.name),
            counts: Mutex::default(),
            reached: watch::Sender::new(0),
            progress: Mutex::default(),
            last_request: Mutex::new(tenant.env().now()),
            ended: AtomicBool::new(false),
        });
        drop(tenant.env().spawn("object counts", counter.clone().follow(tenant.stop.clone())));
        *current = Some(counter.clone());
        counter
    }
}

impl Counter {
    async fn follow(self: Arc<Self>, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.unused() => {}
            counted = self.count() => {
                if let Err(error) = counted {
                    tracing::debug!(prefix = self.prefix, %error, "the watch of object counts ended; the next request counts again");
                }
            }
        }
        self.ended.store(true, Ordering::Release);
        // Wakes up requests that wait for a revision.
        self.reached.send_modify(|_| ());
    }

    /// Returns after [`MAX_UNUSED`] without requests.
    async fn unused(&self) {
        loop {
            let until = *self.last_request.lock() + MAX_UNUSED;
            if self.env.now() >= until {
                return;
            }
            self.env.sleep_until(until).await;
        }
    }

    async fn count(&self) -> k1s_store::Result<()> {
        let mut range = Range::prefix(self.prefix.clone());
        let mut size = Page::default();
        let revision = loop {
            let page = self.store.range(range.clone().limit(size.entries())).await?;
            size.adapt(&page.entries);
            for entry in &page.entries {
                self.add(&entry.key);
            }
            match page.entries.last() {
                Some(last) if page.more => {
                    range = range.start([&*last.key, b"\0"].concat()).at(page.revision)
                }
                _ => break page.revision,
            }
        };
        let request = WatchRequest::prefix(self.prefix.clone()).after(revision);
        let mut watch = self.store.watch(request).await?;
        *self.progress.lock() = Some(watch.progress_handle());
        self.reach(revision);
        while let Some(item) = watch.next().await {
            match item? {
                WatchItem::Progress(revision) => self.reach(revision),
                WatchItem::Change(change) => {
                    for event in change.events() {
                        match event.value {
                            Some(_) if event.created => self.add(&event.key),
                            Some(_) => {}
                            None => self.remove(&event.key),
                        }
                    }
                    self.reach(change.revision());
                }
            }
        }
        Ok(())
    }

    fn reach(&self, revision: Revision) {
        self.reached.send_replace(revision.get());
    }

    fn add(&self, key: &[u8]) {
        if let Some(name) = self.name(key) {
            *self.counts.lock().entry(name).or_default() += 1;
        }
    }

    fn remove(&self, key: &[u8]) {
        let Some(name) = self.name(key) else { return };
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&name) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&name);
            }
        }
    }

    /// The resource of a key; `None` for the server's own keys.
    fn name(&self, key: &[u8]) -> Option<String> {
        let key = split_key(key, &self.prefix)?;
        Some(if key.group.is_empty() {
            key.plural.to_owned()
        } else {
            format!("{}.{}", key.plural, key.group)
        })
    }
}
