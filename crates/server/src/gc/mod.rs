//! Garbage collection: what becomes of the dependents of an object that is deleted.
//!
//! One task per tenant follows the store and keeps a [`graph`] of owners and dependents. It is started by the first
//! write that makes it necessary, so a tenant without owner references pays nothing. All it changes goes through the
//! same functions as a client's requests. The rest of the server knows [`Collector`] alone: until `k1s-controllers`
//! takes over, and where others collect (an envtest), it can be left out.

mod graph;
mod object;

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use k1s_env::{Env, Task};
use k1s_object::Status;
use k1s_store::{Range, Revision, Store, WatchItem, WatchRequest};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::graph::{Graph, Job, Uid, Verdict, Work};
use crate::{
    context::Cx,
    delete, errors,
    resource::Resource,
    tenant::{self, Tenant},
    write::{self, Part, Update, meta_text},
};

/// So many objects are changed at the same time.
const CONCURRENCY: usize = 16;
/// So many objects are read from the store at a time.
const PAGE: usize = 1000;
/// How long an object that could not be changed waits at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(30));

/// The garbage collection of a tenant.
#[derive(Default)]
pub(crate) struct Collector {
    started: AtomicBool,
    task: Mutex<Option<Task<()>>>,
}

impl Collector {
    /// After a tenant was opened that is not new: goes on where it was left.
    pub(crate) async fn open(tenant: &Arc<Tenant>) -> Result<(), Status> {
        if !tenant.options().garbage_collection {
            return Ok(());
        }
        let mut found = false;
        let prefix = tenant::prefix(&tenant.name);
        for_each(tenant.store(), &prefix, |_, value, _| found = found || object::may_matter(value))
            .await
            .map_err(|error| errors::store(&error))?;
        if found {
            tenant.collector.start(tenant);
        }
        Ok(())
    }

    /// After an object was stored.
    pub(crate) fn after_write(tenant: &Arc<Tenant>, object: &Value) {
        let collector = &tenant.collector;
        if tenant.options().garbage_collection
            && !collector.started.load(Ordering::Relaxed)
            && object::matters(object)
        {
            collector.start(tenant);
        }
    }

    fn start(&self, tenant: &Arc<Tenant>) {
        let mut task = self.task.lock();
        if !self.started.swap(true, Ordering::Relaxed) {
            let run = Run {
                tenant: Arc::downgrade(tenant),
                env: tenant.env().clone(),
                store: tenant.store().clone(),
                prefix: tenant::prefix(&tenant.name),
                stop: tenant.stop.clone(),
            };
            *task = Some(tenant.env().spawn("garbage collection", run.run()));
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut() {
            task.abort();
        }
    }
}

/// Reads everything under a prefix, page by page, at one revision.
async fn for_each(
    store: &Arc<dyn Store>,
    prefix: &str,
    mut each: impl FnMut(&Bytes, &Bytes, Revision),
) -> k1s_store::Result<Revision> {
    let mut range = Range::prefix(prefix.to_owned()).limit(PAGE);
    loop {
        let page = store.range(range.clone()).await?;
        for entry in &page.entries {
            each(&entry.key, &entry.value, entry.revision);
        }
        let Some(last) = page.entries.last().filter(|_| page.more) else { return Ok(page.revision) };
        let next = [&*last.key, b"\0"].concat();
        range = range.start(next).at(page.revision);
    }
}

/// The group, the plural and the namespace in a key, and the name.
fn split_key<'a>(key: &'a [u8], prefix: &str) -> Option<(&'a str, &'a str, &'a str, &'a str)> {
    let rest = std::str::from_utf8(key).ok()?.strip_prefix(prefix)?;
    let (group, rest) = rest.split_once('/')?;
    let (plural, rest) = rest.split_once('/')?;
    let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
    let group = if group == "core" { "" } else { group };
    (group != "k1s").then_some((group, plural, namespace, name))
}

type Pending = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// What came of a piece of work.
struct Outcome {
    uid: Uid,
    /// What it was told to find out.
    asked: Option<Vec<object::Reference>>,
    result: Result<Vec<Verdict>, Status>,
    attempt: u32,
}

/// The task of a tenant. It does not keep the tenant alive.
struct Run {
    tenant: Weak<Tenant>,
    env: Env,
    store: Arc<dyn Store>,
    prefix: String,
    stop: CancellationToken,
}

impl Run {
    async fn run(self) {
        let mut pause = PAUSE.0;
        loop {
            let outcome = tokio::select! {
                outcome = self.follow(&mut pause) => outcome,
                () = self.stop.cancelled() => return,
            };
            match outcome {
                Ok(()) | Err(k1s_store::Error::Closed) => return,
                Err(error) => tracing::warn!(%error, "garbage collection starts anew"),
            }
            tokio::select! {
                () = self.env.sleep(pause) => {}
                () = self.stop.cancelled() => return,
            }
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Loads the graph, then follows the store. Ends when the store is closed or the tenant gone.
    async fn follow(&self, pause: &mut Duration) -> k1s_store::Result<()> {
        let mut graph = Graph::default();
        let revision = for_each(&self.store, &self.prefix, |key, value, revision| {
            self.put(&mut graph, key, value, None, revision)
        })
        .await?;
        let request = WatchRequest::prefix(self.prefix.clone()).after(revision).previous(true);
        let mut watch = self.store.watch(request).await?;
        *pause = PAUSE.0;
        let mut working: FuturesUnordered<Pending> = FuturesUnordered::new();
        let mut waiting: FuturesUnordered<Pin<Box<dyn Future<Output = Uid> + Send>>> =
            FuturesUnordered::new();
        let mut attempts = std::collections::HashMap::new();
        loop {
            while working.len() < CONCURRENCY {
                let Some(work) = graph.next() else { break };
                let Some(tenant) = self.tenant.upgrade() else { return Ok(()) };
                let attempt = attempts.get(&work.uid).copied().unwrap_or(0);
                working.push(Box::pin(carry_out(tenant, work, attempt)));
            }
            tokio::select! {
                item = watch.next() => match item {
                    Some(Ok(WatchItem::Change(change))) => self.apply(&mut graph, &change),
                    Some(Ok(WatchItem::Progress(_))) => {}
                    Some(Err(error)) => {
                        // What was begun comes to its end.
                        while working.next().await.is_some() {}
                        return Err(error);
                    }
                    None => return Ok(()),
                },
                Some(outcome) = working.next() => {
                    let Outcome { uid, asked, result, attempt } = outcome;
                    let retry = result.is_err();
                    if let Err(status) = &result {
                        tracing::warn!(%uid, error = %status, "an object cannot be collected yet");
                        attempts.insert(uid.clone(), attempt.saturating_add(1));
                        let wait = (PAUSE.0 * 2_u32.saturating_pow(attempt.min(20))).min(PAUSE.1);
                        let (sleep, uid) = (self.env.sleep(wait), uid.clone());
                        waiting.push(Box::pin(async move {
                            sleep.await;
                            uid
                        }));
                    } else {
                        attempts.remove(&uid);
                    }
                    if let Some(asked) = asked {
                        let verdicts = result.unwrap_or_else(|_| vec![Verdict::Unknown; asked.len()]);
                        graph.judge(&uid, asked.into_iter().zip(verdicts).collect());
                        if !retry {
                            graph.enqueue(&uid);
                        }
                    }
                    graph.done(&uid);
                }
                Some(uid) = waiting.next() => if graph.knows(&uid) {
                    graph.enqueue(&uid);
                } else {
                    attempts.remove(&uid);
                },
            }
        }
    }

    fn apply(&self, graph: &mut Graph, change: &k1s_store::Change) {
        for event in change.events() {
            let previous = event.previous.as_ref().map(|previous| &previous.value);
            match (&event.value, previous) {
                (Some(value), previous) => self.put(graph, &event.key, value, previous, change.revision()),
                (None, Some(previous)) => {
                    if split_key(&event.key, &self.prefix).is_some()
                        && let Some(meta) = object::read(previous)
                    {
                        graph.delete(&meta.uid);
                    }
                }
                (None, None) => {}
            }
        }
    }

    fn put(
        &self,
        graph: &mut Graph,
        key: &Bytes,
        value: &Bytes,
        previous: Option<&Bytes>,
        revision: Revision,
    ) {
        let Some((group, plural, namespace, _)) = split_key(key, &self.prefix) else { return };
        if (object::may_matter(value) || previous.is_some_and(|previous| object::may_matter(previous)))
            && let Some(meta) = object::read(value)
        {
            graph.put(key, namespace, revision, meta);
        }
        if plural == "customresourcedefinitions" && group == "apiextensions.k8s.io" {
            graph.kinds_changed();
        }
    }
}

async fn carry_out(tenant: Arc<Tenant>, work: Work, attempt: u32) -> Outcome {
    let asked = match &work.job {
        Job::Check(references) => Some(references.clone()),
        _ => None,
    };
    let result = match &asked {
        Some(references) => check(&tenant, &work, references).await,
        None => act(&tenant, &work).await.map(|()| Vec::new()),
    };
    Outcome { uid: work.uid, asked, result, attempt }
}

/// Whether these owners are there.
async fn check(
    tenant: &Arc<Tenant>,
    work: &Work,
    references: &[object::Reference],
) -> Result<Vec<Verdict>, Status> {
    let mut verdicts = Vec::with_capacity(references.len());
    for reference in references {
        let verdict = match by_kind(tenant, &reference.api_version, &reference.kind).await? {
            None => Verdict::Unserved,
            Some(resource) if resource.namespaced && work.namespace.is_empty() => {
                tracing::warn!(
                    dependent = %work.key.escape_ascii(), kind = %reference.kind, name = %reference.name,
                    "an object of the cluster names an owner in a namespace, and is left alone"
                );
                Verdict::WrongScope
            }
            Some(resource) => {
                let namespace = if resource.namespaced { &*work.namespace } else { "" };
                let key = tenant.key(&resource, namespace, &reference.name);
                let found =
                    tenant.store().get(&key, None).await.map_err(|error| errors::store(&error))?.entry;
                match found.and_then(|entry| object::read(&entry.value)) {
                    Some(meta) if *meta.uid == *reference.uid => {
                        Verdict::Live { namespaced: resource.namespaced }
                    }
                    _ => Verdict::Absent,
                }
            }
        };
        verdicts.push(verdict);
    }
    Ok(verdicts)
}

/// Changes or deletes the object.
async fn act(tenant: &Arc<Tenant>, work: &Work) -> Result<(), Status> {
    let Some((group, plural, namespace, name)) = split_key(&work.key, &tenant::prefix(&tenant.name)) else {
        return Ok(());
    };
    let Some(resource) = by_key(tenant, group, plural).await? else { return Ok(()) };
    let cx = Cx::internal(tenant, &resource, namespace, name);
    let outcome = match &work.job {
        Job::Check(_) => Ok(()),
        Job::Delete(policy) => {
            let options = delete::Options::exactly(*policy, &work.uid, work.revision);
            delete::delete_object(&cx, &options).await.map(|_| ())
        }
        Job::Release(owners) => {
            let released = |list: &mut Vec<Value>| {
                list.retain(|one| !owners.iter().any(|uid| one["uid"].as_str() == Some(uid)));
            };
            change(&cx, work, "ownerReferences", &released).await
        }
        Job::Unblock => {
            let unblock = |list: &mut Vec<Value>| {
                for one in list.iter_mut().filter(|one| one["blockOwnerDeletion"] == true) {
                    one["blockOwnerDeletion"] = false.into();
                }
            };
            change(&cx, work, "ownerReferences", &unblock).await
        }
        Job::Finish(finalizer) => {
            let finish = |list: &mut Vec<Value>| list.retain(|one| one != finalizer);
            change(&cx, work, "finalizers", &finish).await
        }
    };
    match outcome {
        // It is gone, or has changed: the event that tells is on its way.
        Err(status) if matches!(status.code, 404 | 409) => Ok(()),
        other => other,
    }
}

/// Changes a list in the object's metadata, if it is still the same object.
async fn change(
    cx: &Cx,
    work: &Work,
    field: &str,
    edit: &(dyn Fn(&mut Vec<Value>) + Sync),
) -> Result<(), Status> {
    let change = |old: &Value| {
        let mut new = old.clone();
        if *meta_text(old, "uid") == *work.uid
            && let Some(metadata) = new["metadata"].as_object_mut()
            && let Some(list) = metadata.get_mut(field).and_then(Value::as_array_mut)
        {
            edit(list);
            if list.is_empty() {
                metadata.shift_remove(field);
            }
        }
        Ok(new)
    };
    let update = Update {
        part: Part::Internal,
        dry_run: false,
        change: &change,
        uid_is_precondition: false,
        create: false,
    };
    write::update(cx, &update).await.map(|_| ())
}

/// The resource of a kind that owner references name.
async fn by_kind(
    tenant: &Arc<Tenant>,
    api_version: &str,
    kind: &str,
) -> Result<Option<Arc<Resource>>, Status> {
    find(tenant, |one| one.api_version == api_version && one.kind == kind && one.verbs.contains(&"get")).await
}

/// The resource whose objects lie here, in the version they are stored in if that is served.
async fn by_key(tenant: &Arc<Tenant>, group: &str, plural: &str) -> Result<Option<Arc<Resource>>, Status> {
    let here =
        |one: &Resource| one.storage_group() == group && one.plural == plural && one.verbs.contains(&"get");
    match find(tenant, |one| here(one) && one.group == group && one.version == one.storage_version()).await? {
        Some(resource) => Ok(Some(resource)),
        None => find(tenant, here).await,
    }
}

async fn find(
    tenant: &Arc<Tenant>,
    test: impl Fn(&Resource) -> bool,
) -> Result<Option<Arc<Resource>>, Status> {
    if let Some(resource) = tenant.shared.catalog.all().iter().find(|one| test(one)) {
        return Ok(Some(resource.clone()));
    }
    let customs = tenant.customs.current(tenant).await?;
    if let Some(resource) = customs.resources().find(|one| test(one)) {
        return Ok(Some(resource.clone()));
    }
    // Perhaps it was defined a moment ago.
    tenant.customs.reach(tenant, tenant.revision().await?).await?;
    let customs = tenant.customs.current(tenant).await?;
    Ok(customs.resources().find(|one| test(one)).cloned())
}
