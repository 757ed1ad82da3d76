//! Watches in the control plane of a project end when it is suspended.
//!
//! One task follows the Projects of the host while there are such watches: a watch that asked itself would be woken by every
//! change of every project.

use std::{sync::Arc, time::Duration};

use k1s_store::Revision;

use super::Projects;
use crate::{
    cache::{PATIENCE, Took},
    closing::{Closing, Nobody, Watches},
    errors::Error,
    registry::Registry,
    resource::Source,
    tenant::{Shared, Tenant},
};

/// Before the Projects are looked for again that cannot be followed.
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum number of changes that are looked at together.
const BATCH: usize = 256;

/// What ends a watch in the control plane of this name, which its sender has [entered](super::admit); `None` if nothing does.
///
/// # Errors
/// 403 if the project has been suspended meanwhile.
pub(crate) async fn watch(
    registry: &Registry,
    shared: &Arc<Shared>,
    name: &str,
) -> Result<Option<Closing>, Error> {
    if !shared.options.projects || *name == *shared.options.default_tenant {
        return Ok(None);
    }
    let Some(projects) = Projects::of(registry, shared).await? else { return Ok(None) };
    let before = projects.cache.with_own_writes().await?.revision;
    let (closing, first) = shared.project_watches.open(name);
    if first {
        let (own, host) = (shared.clone(), projects.host.clone());
        let stop = host.stop.clone();
        drop(shared.env.spawn("watches of projects", async move {
            // It ends when nobody watches any more.
            let _ = stop.run_until_cancelled(follow(&own, host, before)).await;
        }));
    }
    // Later changes are followed; this one may have been before.
    let snapshot = projects.cache.with_own_writes().await?;
    match projects.find(&snapshot, name)?.and_then(|project| project.suspended(name)) {
        Some(suspended) => Err(suspended.into()),
        None => Ok(Some(closing)),
    }
}

/// Follows the Projects after a revision, while there are watches in any.
async fn follow(shared: &Shared, host: Arc<Tenant>, mut after: Revision) -> Result<(), Nobody> {
    let watches = &shared.project_watches;
    loop {
        watches.names()?;
        // Without a definition there are no Projects; with another one, they are in another cache.
        match Projects::in_host(host.clone()).await {
            Ok(Some(projects)) => follow_cache(watches, &projects, &mut after).await?,
            Ok(None) => {}
            Err(error) => tracing::warn!(?error, "the Projects cannot be followed"),
        }
        host.env().sleep(PAUSE).await;
    }
}

/// Follows them until their definition is replaced.
async fn follow_cache(watches: &Watches, projects: &Projects, after: &mut Revision) -> Result<(), Nobody> {
    let Projects { resource, cache, host } = projects;
    let mut replaced = match &resource.source {
        Source::BuiltIn(_) => return Ok(()),
        Source::Custom(custom) => custom.replaced(),
    };
    let mut reached = cache.subscribe();
    // Projects may have been suspended while nobody followed them.
    let mut position = cache.ring(|ring| ring.position_after(*after));
    let keys = host.keys(resource, "");
    loop {
        let took = position.map_or(Took::TooOld, |position| cache.ring(|ring| ring.take(position, BATCH)));
        let names = match took {
            Took::Nothing => {
                tokio::select! {
                    changed = reached.changed() => if changed.is_err() { return Ok(()) },
                    // Fails if the definition is gone.
                    _ = replaced.wait_for(|revision| *revision != 0) => return Ok(()),
                }
                watches.names()?;
                continue;
            }
            Took::Events(events, next) => {
                position = Some(next);
                *after = events.last().map_or(*after, |event| event.revision);
                let changed = events.iter().filter_map(|event| event.new.as_ref());
                let name = |key: &[u8]| {
                    Some(std::str::from_utf8(key.strip_prefix(keys.as_bytes())?).ok()?.to_owned())
                };
                changed.filter_map(|entry| name(&entry.key)).filter(|name| watches.is_open(name)).collect()
            }
            Took::TooOld => {
                *after = cache.ring(|ring| ring.newest()).max(*after);
                position = cache.ring(|ring| ring.position_after(*after));
                watches.names()?
            }
        };
        if names.is_empty() {
            continue;
        }
        let Ok(snapshot) = cache.at_least(*after, PATIENCE).await else { return Ok(()) };
        for name in names {
            if let Ok(Some(project)) = projects.find(&snapshot, &name)
                && let Some(why) = project.suspended(&name)
            {
                watches.close(&name, why);
            }
        }
    }
}
