//! The feed of any other server: informers of metadata, kind by kind.

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

/// How often is looked for kinds that came without a definition, and how long for one that is not complete.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);

struct Watched {
    api: ApiResource,
    informer: Arc<Informer<Object>>,
    /// Whether it was not served when that was last looked at.
    missing: bool,
    _registration: Registration,
}

/// Follows all kinds that are wanted, as they come and go.
pub(super) async fn follow(feed: &Feed) {
    let env = &feed.shared.env;
    let mut watched: BTreeMap<Resource, Watched> = BTreeMap::new();
    feed.tell(&Signal::Begin { reset: true, ordered: false });
    let progress = &feed.shared.progress;
    let mut loading = true;
    let mut retire = true;
    loop {
        let questions = progress.asked();
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
            // Not at once: the last events of a kind that goes may still be on their way, and discovery may be wrong for a
            // moment. That a kind is not served says nothing about its objects.
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
                feed.tell(&Signal::Begin { reset: false, ordered: false });
            }
            match watch(feed, &resource, api) {
                Ok(one) => drop(watched.insert(resource, one)),
                Err(error) => feed.failed(error),
            }
        }
        if loading {
            for one in watched.values() {
                // A kind that nobody may list is left out; it must not stop the others.
                while env.timeout(PAUSE, one.informer.synced()).await.is_err() {
                    if let Some(problem) = one.informer.problem().filter(Problem::is_lasting) {
                        tracing::warn!(kind = %one.informer.kind(), %problem, "a kind is left out");
                        break;
                    }
                }
            }
            loading = false;
            feed.tell(&Signal::End);
        }
        // What the informers have not told yet is known to the cache, which is asked itself.
        progress.answer(questions);
        retire = tokio::select! {
            () = feed.shared.kinds_changed.notified() => true,
            () = env.sleep(LOOK_AGAIN) => true,
            // Only whether there are more kinds.
            () = progress.more_than(questions) => false,
        };
    }
}

/// The kinds to watch, in their preferred versions, or those that they are watched in already.
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
        // Events have no dependents, and there are many of them.
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
            feed.tell(&Signal::Deleted(&resource, &Meta::from(&object.metadata)));
        }
        Event::Updated { resync: true, .. } => {}
        Event::Updated { old, new, .. } => {
            // Deleted and made anew, and only the outcome was seen.
            if old.metadata.uid != new.metadata.uid {
                feed.tell(&Signal::Deleted(&resource, &Meta::from(&old.metadata)));
            }
            feed.tell(&Signal::Stored(&resource, &Meta::from(&new.metadata)));
        }
        event => feed.tell(&Signal::Stored(&resource, &Meta::from(&event.object().metadata))),
    }));
    Ok(Watched { api, informer, missing: false, _registration: registration })
}
