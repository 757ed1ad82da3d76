//! Finds and deletes all objects in a namespace, or of a kind.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use k1s_runtime::{
    Action, BoxError, ObjectKey,
    client::{DeleteOptions, Deleted, ListOptions, PropagationPolicy},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};
use kube::{api::ApiResource, core::GroupVersionKind};
use serde::Deserialize;

use crate::{
    feed::{Feed, PATH},
    gc::is_missing,
    kinds::Served,
    meta::{Meta, Resource},
};

/// Maximum number of concurrent deletions.
const CONCURRENCY: usize = 16;
/// Number of objects per list page.
const PAGE: u32 = 500;

/// An existing object.
pub(crate) struct Found {
    served: Arc<Served>,
    meta: Meta,
}

impl Found {
    pub(crate) fn is_pod(&self) -> bool {
        self.served.api.group.is_empty() && self.served.api.plural == "pods"
    }
}

/// The result of deleting objects.
#[derive(Debug, Default)]
pub(crate) struct Cleared {
    /// Objects that wait for finalizers or their grace period.
    pub(crate) remains: Vec<Remains>,
    /// Errors of objects that could not be deleted.
    pub(crate) failed: Vec<BoxError>,
}

impl Cleared {
    /// The remaining objects, if nothing failed.
    pub(crate) fn remains(self) -> Result<Vec<Remains>, BoxError> {
        match self.failed.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(self.remains),
        }
    }

    /// The first error caused by a kind that was removed meanwhile, if any.
    pub(crate) fn take_moved(&mut self) -> Option<BoxError> {
        let place = self.failed.iter().position(|error| error.is::<Moved>())?;
        Some(self.failed.swap_remove(place))
    }
}

/// An object that was deleted, but still exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remains {
    /// `pods.`, `deployments.apps`
    pub(crate) resource: String,
    pub(crate) finalizers: Vec<String>,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    resource: Version,
    metadata: Meta,
}

/// The versions in which objects of a resource can be requested.
#[derive(Deserialize)]
struct Version {
    group: String,
    version: String,
    resource: String,
    kind: String,
}

/// What a namespace contains.
#[derive(Default)]
pub(crate) struct Contents {
    pub(crate) found: Vec<Found>,
    /// Errors of resources that could not be listed.
    pub(crate) failed: Vec<BoxError>,
    /// The group versions whose resources are not known, and why.
    pub(crate) undiscovered: Vec<(String, String)>,
}

/// All objects in a namespace.
pub(crate) async fn in_namespace(feed: &Feed, namespace: &str) -> Result<Contents, BoxError> {
    if feed.is_k1s() == Some(true) {
        let found = on_k1s(feed, &format!("{PATH}?namespace={namespace}")).await?;
        let mut contents = Contents { found, ..Contents::default() };
        of_aggregated(feed, namespace, &mut contents).await?;
        return Ok(contents);
    }
    let mapper = feed.client().rest_mapper();
    mapper.refresh().await?;
    let mut seen = std::collections::HashSet::new();
    let mut found = Vec::new();
    for mapping in mapper.mappings().await? {
        let resource = &mapping.resource;
        let fits = mapping.is_namespaced() && mapping.has_verb("list") && mapping.has_verb("delete");
        if fits && seen.insert((resource.group.clone(), resource.plural.clone())) {
            let served = Arc::new(Served { api: resource.clone(), namespaced: true });
            found.extend(listed(feed, served, ListOptions::in_namespace(namespace)).await?);
        }
    }
    Ok(Contents { found, ..Contents::default() })
}

/// Adds the objects of aggregated APIs, which are not in the server's store. An API that does not answer hides its objects, and
/// none of the others.
async fn of_aggregated(feed: &Feed, namespace: &str, contents: &mut Contents) -> Result<(), BoxError> {
    let client = feed.client().kube();
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let list: ServiceList = client.request(http::Request::get(services).body(Vec::new())?).await?;
    let mut seen = std::collections::HashSet::new();
    for ServiceSpec { group, version, .. } in
        list.items.into_iter().map(|item| item.spec).filter(|spec| spec.service.is_some())
    {
        let group_version = format!("{group}/{version}");
        let path = format!("/apis/{group_version}");
        let request = http::Request::get(&path).body(Vec::new())?;
        let resources = match client.request::<APIResourceList>(request).await {
            Ok(list) => list.resources,
            Err(error) => {
                tracing::debug!(%error, group_version, "the resources of an aggregated API are not known");
                let why = format!("stale GroupVersion discovery: {group_version}");
                contents.undiscovered.push((group_version, why));
                continue;
            }
        };
        let has = |resource: &APIResource, verb: &str| resource.verbs.iter().any(|one| one == verb);
        for resource in resources {
            let deletable = resource.namespaced && has(&resource, "list") && has(&resource, "delete");
            if !deletable
                || resource.name.contains('/')
                || !seen.insert((group.clone(), resource.name.clone()))
            {
                continue;
            }
            let gvk = GroupVersionKind::gvk(&group, &version, &resource.kind);
            let api = ApiResource::from_gvk_with_plural(&gvk, &resource.name);
            let served = Arc::new(Served { api, namespaced: true });
            match listed(feed, served, ListOptions::in_namespace(namespace)).await {
                Ok(found) => contents.found.extend(found),
                Err(error) => contents.failed.push(error),
            }
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct ServiceList {
    items: Vec<ServiceItem>,
}

#[derive(Deserialize)]
struct ServiceItem {
    spec: ServiceSpec,
}

#[derive(Deserialize)]
struct ServiceSpec {
    #[serde(default)]
    group: String,
    version: String,
    service: Option<serde::de::IgnoredAny>,
}

/// All objects of a kind.
pub(crate) async fn of_kind(
    feed: &Feed,
    resource: &Resource,
    served: Arc<Served>,
) -> Result<Vec<Found>, BoxError> {
    if feed.is_k1s() == Some(true) {
        return on_k1s(feed, &format!("{PATH}?of={}.{}", resource.plural, resource.group)).await;
    }
    listed(feed, served, ListOptions::default()).await
}

/// From a k1s server in one request: without discovery, and without filling the server's caches.
async fn on_k1s(feed: &Feed, path: &str) -> Result<Vec<Found>, BoxError> {
    let list: List = feed.client().kube().request(http::Request::get(path).body(Vec::new())?).await?;
    let mut last: Option<Arc<Served>> = None;
    let found = list.items.into_iter().map(|item| {
        let Version { group, version, resource, kind } = &item.resource;
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let api = ApiResource::from_gvk_with_plural(&gvk, resource);
        // Objects of a kind are adjacent.
        let served = match last.take().filter(|last| last.api == api) {
            Some(last) => last,
            None => Arc::new(Served { api, namespaced: !item.metadata.namespace.is_empty() }),
        };
        last = Some(Arc::clone(&served));
        Found { served, meta: item.metadata }
    });
    Ok(found.collect())
}

async fn listed(feed: &Feed, served: Arc<Served>, options: ListOptions) -> Result<Vec<Found>, BoxError> {
    let reader = feed.client().kind(served.metadata()).live();
    let items = match reader.pages(options.limit(PAGE)).collect().await {
        Ok(items) => items,
        // The definition was removed meanwhile, with all objects.
        Err(error) if error.is_not_found() => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    Ok(items
        .iter()
        .map(|one| Found { served: Arc::clone(&served), meta: Meta::from(&one.metadata) })
        .collect())
}

/// Deletes objects. A failure does not affect the others.
pub(crate) async fn clear(feed: &Feed, found: Vec<Found>) -> Cleared {
    // On a k1s server no kubelet terminates pods, so there is nothing to wait for.
    let grace_period = (feed.is_k1s() == Some(true)).then_some(0);
    let mut outcomes = stream::iter(found)
        .map(|one| async move { clear_one(feed, one, grace_period).await })
        .buffer_unordered(CONCURRENCY);
    let mut cleared = Cleared::default();
    while let Some(outcome) = outcomes.next().await {
        match outcome {
            Ok(remains) => cleared.remains.extend(remains),
            Err(error) => cleared.failed.push(error),
        }
    }
    cleared
}

async fn clear_one(
    feed: &Feed,
    found: Found,
    grace_period: Option<u32>,
) -> Result<Option<Remains>, BoxError> {
    // A pod in its grace period, which no kubelet will end.
    let is_waiting_pod = found.is_pod() && grace_period.is_some();
    let Found { served, meta } = found;
    let resource = Resource::new(&served.api.group, &served.api.plural).dotted();
    if meta.is_deleting() && !is_waiting_pod {
        let finalizers = meta.finalizers.iter().map(ToString::to_string).collect();
        return Ok(Some(Remains { resource, finalizers }));
    }
    let options = DeleteOptions {
        propagation_policy: Some(PropagationPolicy::Background),
        grace_period,
        ..DeleteOptions::default()
    };
    let key = ObjectKey::new(Some(&meta.namespace), &meta.name);
    match feed.client().kind(served.metadata()).delete_with(&key, options).await {
        Ok(Deleted::Gone { .. }) => Ok(None),
        Ok(Deleted::Deleting(object)) => {
            Ok(Some(Remains { resource, finalizers: object.metadata.finalizers.unwrap_or_default() }))
        }
        Err(error) if is_missing(&error, &meta.name) => Ok(None),
        // The kind is no longer served at this path.
        Err(error) if error.is_not_found() => {
            feed.kinds().changed();
            Err(Moved(resource).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// A kind was removed, or moved to another version, while its objects were being deleted.
#[derive(Debug, thiserror::Error)]
#[error("{0} is no longer served at the same path")]
struct Moved(String);

/// Requeues if a kind was removed meanwhile, which is not an error.
pub(crate) fn again_if_moved(outcome: Result<Action, BoxError>) -> Result<Action, BoxError> {
    match outcome {
        Err(error) if error.is::<Moved>() => {
            tracing::debug!(%error, "looking again");
            Ok(Action::requeue_with_backoff())
        }
        other => other,
    }
}
