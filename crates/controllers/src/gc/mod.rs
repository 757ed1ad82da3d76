//! Garbage collection: deletes or orphans the dependents of deleted objects.
//!
//! The feed keeps a [`graph`] of owners and dependents up to date, which decides the next job for an object;
//! this controller executes it with ordinary requests. All of them have preconditions on the state that the
//! decision was made for: if that has changed, an event is on its way, and the object is processed again.

mod graph;

use std::{sync::Arc, time::Duration};

use k1s_runtime::{
    Action, Context, ObjectKey, Reconciler,
    client::{Client, DeleteOptions, Error, Patch, Preconditions},
    controller::{BuildError, Builder, ControllerOptions},
    queue::ExponentialLimiter,
};
use parking_lot::Mutex;
use serde_json::json;

use self::graph::{Graph, Job, Uid, Verdict, Work};
use crate::{
    feed::{Feed, Interest, Signal},
    kinds::Kinds,
    meta::Reference,
};

/// Maximum number of objects processed concurrently.
const CONCURRENCY: usize = 16;

/// Adds the controller.
pub(crate) fn add(manager: &k1s_runtime::Manager, feed: &Feed) -> Result<(), BuildError> {
    let graph = Arc::new(Mutex::new(Graph::new(true)));
    let collector =
        Collector { graph: graph.clone(), client: feed.client().clone(), kinds: feed.kinds().clone() };
    let options = ControllerOptions {
        rate_limiter: Arc::new(ExponentialLimiter::new(Duration::from_millis(5), Duration::from_secs(30))),
        ..ControllerOptions::concurrent(CONCURRENCY)
    };
    let controller = Builder::<Uid>::new(manager)
        .named("garbage-collector")
        .with_options(options)
        .watches_raw_source(feed.source())
        .build(collector)?;
    let queue = controller.queue().clone();
    feed.want_every_kind();
    // Changes of definitions mean that kinds were added or removed.
    feed.want([Interest::all("apiextensions.k8s.io", "customresourcedefinitions")]);
    feed.listen(move |signal| {
        let mut graph = graph.lock();
        match signal {
            Signal::Begin { reset: true, ordered } => graph.reset(*ordered),
            Signal::Begin { reset: false, .. } => graph.begin(),
            Signal::End => graph.loaded(),
            Signal::Stored(resource, meta) => {
                graph.put(resource, meta);
                if resource.is_definition() {
                    graph.kinds_changed();
                }
            }
            Signal::Deleted(_, meta) => graph.delete(&meta.uid),
        }
        for uid in graph.take_due() {
            queue.add(uid);
        }
    });
    Ok(())
}

struct Collector {
    graph: Arc<Mutex<Graph>>,
    client: Client,
    kinds: Arc<Kinds>,
}

/// Why an object cannot be collected yet.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CollectError {
    #[error(transparent)]
    Call(#[from] Error),
    #[error("discovery failed: {0}")]
    Kinds(#[from] kube::Error),
    #[error("{0} is no longer served at the same path")]
    Moved(String),
}

impl Reconciler<Uid> for Collector {
    type Error = CollectError;

    async fn reconcile(&self, uid: Uid, _: Context) -> Result<Action, CollectError> {
        match self.collect(&uid).await {
            // Not an error: the kind's cache entry was dropped, and it is discovered again.
            Err(error @ CollectError::Moved(_)) => {
                tracing::debug!(%error, %uid, "looking again");
                Ok(Action::requeue_with_backoff())
            }
            other => other,
        }
    }
}

impl Collector {
    async fn collect(&self, uid: &Uid) -> Result<Action, CollectError> {
        loop {
            let Some(work) = self.graph.lock().next(uid) else { return Ok(Action::done()) };
            let Job::Check(references) = &work.job else {
                return self.act(uid, &work).await;
            };
            let found = self.check(&work, references).await;
            let (verdicts, failed) = match found {
                Ok(verdicts) => (verdicts, None),
                Err(error) => (vec![Verdict::Unknown; references.len()], Some(error)),
            };
            let verdicts = references.iter().cloned().zip(verdicts).collect();
            let all_known = self.graph.lock().judge(uid, &work, verdicts);
            if let Some(error) = failed {
                return Err(error);
            }
            if !all_known {
                return Ok(Action::requeue_after(self.kinds.retry_after()));
            }
        }
    }

    /// Whether these owners exist.
    async fn check(&self, work: &Work, references: &[Reference]) -> Result<Vec<Verdict>, CollectError> {
        let mut verdicts = Vec::with_capacity(references.len());
        for reference in references {
            verdicts.push(self.verdict(work, reference).await?);
        }
        Ok(verdicts)
    }

    async fn verdict(&self, work: &Work, reference: &Reference) -> Result<Verdict, CollectError> {
        let Some(served) = self.kinds.of_kind(&reference.api_version, &reference.kind).await? else {
            return Ok(Verdict::Unserved);
        };
        let namespaced = served.namespaced;
        if namespaced && work.place.namespace.is_empty() {
            tracing::warn!(
                dependent = %work.place.name, resource = %work.place.resource.dotted(),
                kind = %reference.kind, name = %reference.name,
                "a cluster-scoped object references a namespaced owner; ignoring it"
            );
            return Ok(Verdict::WrongScope);
        }
        let key = ObjectKey::new(namespaced.then_some(&*work.place.namespace), &reference.name);
        match self.client.kind(served.metadata()).live().get(&key).await {
            Ok(owner) if owner.metadata.uid.as_deref() == Some(&reference.uid) => {
                Ok(Verdict::Live { namespaced })
            }
            Ok(_) => Ok(Verdict::Absent),
            Err(error) if is_missing(&error, &reference.name) => Ok(Verdict::Absent),
            // An invalid name.
            Err(Error::InvalidRequest { .. }) => Ok(Verdict::Absent),
            Err(error) => Err(self.moved(error, &served.api.plural)),
        }
    }

    /// Changes or deletes the object.
    async fn act(&self, uid: &Uid, work: &Work) -> Result<Action, CollectError> {
        let place = &work.place;
        let Some(served) = self.kinds.of_resource(&place.resource).await? else {
            // The object is deleted with its kind, which is observed as an event; otherwise the kind comes
            // back.
            return Ok(Action::requeue_after(self.kinds.retry_after()));
        };
        let objects = self.client.kind(served.metadata());
        let key = ObjectKey::new(Some(&place.namespace), &place.name);
        let patch = |field: &str, list: serde_json::Value| {
            let list =
                if list.as_array().is_some_and(Vec::is_empty) { serde_json::Value::Null } else { list };
            Patch::merge(&json!({"metadata": {"uid": **uid, "resourceVersion": *work.version, field: list}}))
        };
        let outcome = match &work.job {
            Job::Check(_) => return Ok(Action::done()),
            Job::Delete(policy) => {
                let preconditions = Preconditions {
                    uid: Some(uid.to_string()),
                    resource_version: Some(work.version.to_string()),
                };
                let options =
                    DeleteOptions { preconditions: Some(preconditions), ..DeleteOptions::default() };
                objects.delete_with(&key, options.propagation(*policy)).await.map(drop)
            }
            Job::Refer(references) => {
                objects.patch(&key, patch("ownerReferences", json!(references))).await.map(drop)
            }
            Job::Finish(finalizers) => {
                objects.patch(&key, patch("finalizers", json!(finalizers))).await.map(drop)
            }
        };
        match outcome {
            Ok(()) => Ok(Action::done()),
            // It was deleted or changed: an event is on its way.
            Err(error) if error.is_conflict() || is_missing(&error, &place.name) => Ok(Action::done()),
            Err(error) => Err(self.moved(error, &served.api.plural)),
        }
    }

    /// Drops the cached kind if it is no longer served at its path.
    fn moved(&self, error: Error, plural: &str) -> CollectError {
        if error.is_not_found() {
            self.kinds.changed();
            return CollectError::Moved(plural.to_owned());
        }
        error.into()
    }
}

/// Whether an object does not exist, although its kind does.
pub(crate) fn is_missing(error: &Error, name: &str) -> bool {
    let names_it = |status: &kube::core::Status| status.details.as_ref().is_some_and(|one| one.name == name);
    error.is_not_found() && error.status().is_some_and(names_it)
}
