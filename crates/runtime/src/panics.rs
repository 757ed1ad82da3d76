//! Panics of user code: predicates, handlers, mappers, indexes, transforms, sources.
//!
//! They are caught where they happen, so that a single object cannot stop an informer. Each is counted, logged, and
//! reported as a [`Problem`] until the same code succeeds with the same object, or is no longer used.

use std::{
    any::Any,
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use prometheus_client::metrics::{counter::Counter, family::Family};
use tokio::sync::watch;

use crate::{ObjectKey, cache::Problem};

/// Runs user code; a panic becomes an error with its message.
pub(crate) fn catch<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| message(&*panic))
}

/// The message of a panic.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "(no message)".to_owned()
    }
}

/// A piece of user code that is called for events.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Site {
    /// Distinguishes sites that are otherwise equal.
    id: u64,
    code: &'static str,
    /// The name of an index.
    name: Option<Arc<str>>,
    controller: Option<Arc<str>>,
    /// The kind, or the name of the source.
    source: Arc<str>,
}

/// `the predicate of controller "web"`
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {}", self.code)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        if let Some(controller) = &self.controller {
            write!(f, " of controller {controller:?}")?;
        }
        Ok(())
    }
}

/// The panics of a manager's user code. Clones share the same state.
#[derive(Clone)]
pub(crate) struct Panics {
    inner: Arc<Inner>,
}

/// Counts panics by controller, source and code.
pub(crate) type PanicCount = Family<[(&'static str, String); 3], Counter>;

struct Inner {
    count: PanicCount,
    next_id: AtomicU64,
    known: Mutex<BTreeMap<(Site, Option<ObjectKey>), String>>,
    /// The number of known panics: code that never panics pays for a single load.
    len: AtomicUsize,
    /// Counts changes of a cache and its problems.
    changes: watch::Sender<u64>,
}

impl Panics {
    pub(crate) fn new(count: PanicCount, changes: watch::Sender<u64>) -> Panics {
        let (next_id, len) = (AtomicU64::new(0), AtomicUsize::new(0));
        Panics { inner: Arc::new(Inner { count, next_id, known: Mutex::default(), len, changes }) }
    }

    /// A site in the cache itself.
    pub(crate) fn site(&self, code: &'static str, source: &str) -> Site {
        let id = self.inner.next_id.fetch_add(1, Ordering::Relaxed);
        Site { id, code, name: None, controller: None, source: source.into() }
    }

    /// The site of an index.
    pub(crate) fn index(&self, name: &str, source: &str) -> Site {
        Site { name: Some(name.into()), ..self.site("index", source) }
    }

    /// A site in a controller.
    pub(crate) fn of_controller(&self, code: &'static str, controller: &Arc<str>, source: &str) -> Site {
        Site { controller: Some(Arc::clone(controller)), ..self.site(code, source) }
    }

    /// Runs code for an object. A panic is recorded and returned as an error.
    pub(crate) fn run<T>(
        &self,
        site: &Site,
        object: impl Fn() -> ObjectKey,
        run: impl FnOnce() -> T,
    ) -> Result<T, String> {
        match catch(run) {
            Ok(value) => {
                self.passed(site, object);
                Ok(value)
            }
            Err(message) => {
                self.caught(site, Some(object()), &message);
                Err(message)
            }
        }
    }

    /// Records a panic.
    pub(crate) fn caught(&self, site: &Site, object: Option<ObjectKey>, message: &str) {
        let of = object.as_ref().map(ToString::to_string).unwrap_or_default();
        tracing::error!(source = %site.source, object = %of, panic = message, "{site} panicked");
        let labels = [
            ("controller", site.controller.as_deref().unwrap_or_default().to_owned()),
            ("source", site.source.to_string()),
            ("code", site.code.to_owned()),
        ];
        self.inner.count.get_or_create(&labels).inc();
        self.change(|known| {
            known.insert((site.clone(), object), message.to_owned());
        });
    }

    /// Records that code succeeded with an object.
    pub(crate) fn passed(&self, site: &Site, object: impl Fn() -> ObjectKey) {
        if self.inner.len.load(Ordering::Relaxed) > 0 {
            self.change(|known| {
                known.remove(&(site.clone(), Some(object())));
            });
        }
    }

    /// Forgets the panics of code that is no longer used, for all objects that match `which`.
    pub(crate) fn forget(&self, site: &Site, which: impl Fn(&ObjectKey) -> bool) {
        if self.inner.len.load(Ordering::Relaxed) > 0 {
            self.change(|known| {
                known.retain(|(at, object), _| at != site || !object.as_ref().is_none_or(&which))
            });
        }
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<(Site, Option<ObjectKey>), String>)) {
        let mut known = self.inner.known.lock();
        let before = known.len();
        change(&mut known);
        self.inner.len.store(known.len(), Ordering::Relaxed);
        let changed = known.len() != before;
        drop(known);
        if changed {
            self.inner.changes.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// All known panics, each with the kind or source it concerns.
    pub(crate) fn problems(&self) -> Vec<(String, Problem)> {
        if self.inner.len.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let known = self.inner.known.lock();
        known.iter().map(|(at, message)| (at.0.source.to_string(), problem(at, message))).collect()
    }

    /// The first known panic that concerns a kind.
    pub(crate) fn problem_of(&self, source: &str) -> Option<Problem> {
        if self.inner.len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let known = self.inner.known.lock();
        known.iter().find(|(at, _)| *at.0.source == *source).map(|(at, message)| problem(at, message))
    }
}

fn problem((site, object): &(Site, Option<ObjectKey>), message: &str) -> Problem {
    Problem::Panicked { code: site.to_string(), object: object.clone(), message: message.to_owned() }
}

impl fmt::Debug for Panics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panics").field(&*self.inner.known.lock()).finish()
    }
}
