//! The feed of other servers: metadata informers, kind by kind.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k1s_runtime::{
    Event,
    cache::{Informer, Problem, Registration},
};
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};

use super::{Feed, Signal};
use crate::{
    kinds::Served,
    meta::{Meta, Resource},
};

type Object = PartialObjectMeta<DynamicObject>;

/// Interval between checks for kinds that were added without a definition.
const RESYNC: Duration = Duration::from_secs(30);
/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);

struct Watched {
    api: ApiResource,
    informer: Arc<Informer<Object>>,
    /// Whether it was not served at the last check.
    missing: bool,
    _registration: Registration,
}

/// Follows all wanted kinds, as they are added and removed.
pub(super) async fn follow(feed: &Feed) {
    let env = &feed.shared.env;
    let mut watched: BTreeMap<Resource, Watched> = BTreeMap::new();
    feed.deliver(&Signal::Begin { reset: true, ordered: false });
    let progress = &feed.shared.progress;
    let mut loading = true;
    let mut retire = true;
    loop {
        let requests = progress.asked();
        let wanted = match wanted(feed, &watched).await {
            Ok(wanted) => wanted,
            Err(error) => {
                feed.failed(error);
                env.sleep(PAUSE).await;
                continue;
            }
        };
        watched.retain(|resource, one| {
            if !retire {
                return true;
            }
            let missing = wanted.get(resource) != Some(&one.api);
            // Only after the second miss: the last events of a removed kind may still be on their way, and
            // discovery may be briefly wrong. A kind that is not served does not mean that its objects are
            // deleted.
            let stays = !(missing && one.missing);
            one.missing = missing;
            if !stays {
                feed.shared.cache.remove_informer(one.informer.kind());
            }
            stays
        });
        for (resource, api) in wanted {
            if watched.contains_key(&resource) {
                continue;
            }
            if !loading {
                loading = true;
                feed.deliver(&Signal::Begin { reset: false, ordered: false });
            }
            match watch(feed, &resource, api) {
                Ok(one) => drop(watched.insert(resource, one)),
                Err(error) => feed.failed(error),
            }
        }
        if loading {
            for one in watched.values() {
                listed(feed, &one.informer).await;
            }
            loading = false;
            feed.deliver(&Signal::End);
        }
        // Events that the informers have not delivered yet are tracked by the cache's own catch-up.
        progress.answer(requests);
        retire = tokio::select! {
            () = feed.shared.kinds_changed.notified() => true,
            () = env.sleep(RESYNC) => true,
            // Only checks for additional kinds.
            () = progress.more_than(requests) => false,
        };
    }
}

/// Waits until the objects of a kind are known. A kind that cannot be listed is skipped, and must not block the others.
async fn listed(feed: &Feed, informer: &Informer<Object>) {
    let kinds_changed = &feed.shared.kinds_changed;
    let mut changes = feed.shared.cache.changes();
    while !informer.has_synced() {
        let Some(problem) = informer.problem().filter(Problem::is_lasting) else {
            tokio::select! {
                () = informer.synced() => return,
                _ = changes.changed() => continue,
            }
        };
        // A server may need a moment to serve what it has discovered, unless the kind was removed meanwhile.
        tokio::select! {
            () = informer.synced() => return,
            () = kinds_changed.notified() => kinds_changed.notify_one(),
            () = feed.shared.env.sleep(PAUSE) => {}
        }
        tracing::warn!(kind = %informer.kind(), %problem, "skipping a kind");
        return;
    }
}

/// The kinds to watch: in the version already watched, or else the preferred one.
async fn wanted(
    feed: &Feed,
    watched: &BTreeMap<Resource, Watched>,
) -> Result<BTreeMap<Resource, ApiResource>, String> {
    let mapper = feed.client().rest_mapper();
    let named: Vec<Resource> =
        feed.shared.interests.read().iter().map(|interest| interest.resource.clone()).collect();
    let every = feed.shared.every_kind.load(std::sync::atomic::Ordering::Relaxed);
    mapper.refresh().await.map_err(|error| error.to_string())?;
    let mut wanted = BTreeMap::new();
    for mapping in mapper.mappings().await.map_err(|error| error.to_string())? {
        if !["list", "watch", "delete"].iter().all(|verb| mapping.has_verb(verb)) {
            continue;
        }
        let resource = Resource::new(&mapping.resource.group, &mapping.resource.plural);
        // Events have no dependents, and are numerous.
        let is_event = *resource.plural == *"events" && matches!(&*resource.group, "" | "events.k8s.io");
        if named.contains(&resource) || every && !is_event {
            let known = watched.get(&resource).is_some_and(|one| one.api == mapping.resource);
            if known || !wanted.contains_key(&resource) {
                wanted.insert(resource, mapping.resource.clone());
            }
        }
    }
    Ok(wanted)
}

fn watch(feed: &Feed, resource: &Resource, api: ApiResource) -> Result<Watched, String> {
    let kind = Served { api: api.clone(), namespaced: false }.metadata();
    let informer = feed.shared.cache.informer(&kind).map_err(|error| error.to_string())?;
    let (feed, resource) = (feed.clone(), resource.clone());
    let registration = informer.add_handler(Box::new(move |event| match event {
        Event::Deleted { object, .. } => {
            feed.deliver(&Signal::Deleted(&resource, &Meta::from(&object.metadata)));
        }
        Event::Updated { resync: true, .. } => {}
        Event::Updated { old, new, .. } => {
            // Deleted and recreated, and only the result was observed.
            if old.metadata.uid != new.metadata.uid {
                feed.deliver(&Signal::Deleted(&resource, &Meta::from(&old.metadata)));
            }
            feed.deliver(&Signal::Stored(&resource, &Meta::from(&new.metadata)));
        }
        event => feed.deliver(&Signal::Stored(&resource, &Meta::from(&event.object().metadata))),
    }));
    Ok(Watched { api, informer, missing: false, _registration: registration })
}
