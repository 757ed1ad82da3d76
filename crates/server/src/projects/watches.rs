//! Watches in the control plane of a project end when it is suspended.
//!
//! One task follows the Projects of the host while there are such watches: a watch that asked itself would be woken by every
//! change of every project.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use k1s_object::Status;
use k1s_store::Revision;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::Projects;
use crate::{
    cache::{PATIENCE, Took},
    errors::Error,
    registry::Registry,
    resource::Source,
    tenant::{Shared, Tenant},
};

/// Before the Projects are looked for again that cannot be followed.
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum number of changes that are looked at together.
const BATCH: usize = 256;

/// Tells all watches of a project when it is suspended, and why they end.
type Teller = watch::Sender<Option<Status>>;

/// The projects that are watched in.
#[derive(Default)]
pub(crate) struct Watches {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By project, while there are watches.
    open: HashMap<String, Weak<Teller>>,
    /// Whether a task follows the Projects.
    followed: bool,
}

/// Ends a watch when its project is suspended.
#[derive(Clone)]
pub(crate) struct Closing {
    told: watch::Receiver<Option<Status>>,
    _teller: Arc<Teller>,
}

impl Closing {
    /// Why the watch ends, if it does.
    pub(crate) fn reason(&self) -> Option<Status> {
        self.told.borrow().clone()
    }

    /// Waits until the watch has to end.
    pub(crate) async fn closed(&mut self) {
        if self.told.wait_for(Option::is_some).await.is_err() {
            std::future::pending().await
        }
    }
}

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

/// Nobody watches in a project.
struct Nobody;

impl Watches {
    /// Notes a watch; also whether the Projects are not followed yet, and are to be from now on.
    fn open(&self, name: &str) -> (Closing, bool) {
        let mut state = self.state.lock();
        let teller = state.open.get(name).and_then(Weak::upgrade);
        let teller = teller.filter(|teller| teller.borrow().is_none()).unwrap_or_else(|| {
            let teller = Arc::new(Teller::new(None));
            state.open.insert(name.to_owned(), Arc::downgrade(&teller));
            teller
        });
        let first = !std::mem::replace(&mut state.followed, true);
        (Closing { told: teller.subscribe(), _teller: teller }, first)
    }

    /// The names of projects with watches, for the task that follows the Projects. If there are none, it has to end: the next
    /// watch starts another one.
    fn names(&self) -> Result<Vec<String>, Nobody> {
        let mut state = self.state.lock();
        state.open.retain(|_, teller| teller.strong_count() > 0);
        state.followed = !state.open.is_empty();
        if state.followed { Ok(state.open.keys().cloned().collect()) } else { Err(Nobody) }
    }

    fn is_open(&self, name: &str) -> bool {
        self.state.lock().open.contains_key(name)
    }

    fn close(&self, name: &str, why: Status) {
        let teller = self.state.lock().open.get(name).and_then(Weak::upgrade);
        if let Some(teller) = teller {
            teller.send_replace(Some(why));
        }
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
