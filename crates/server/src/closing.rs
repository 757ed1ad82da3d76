//! Which projects are watched in, and what ends those watches.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use k1s_object::Status;
use parking_lot::Mutex;
use tokio::sync::watch;

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

/// Nobody watches in a project.
pub(crate) struct Nobody;

impl Watches {
    /// Notes a watch; also whether the Projects are not followed yet, and are to be from now on.
    pub(crate) fn open(&self, name: &str) -> (Closing, bool) {
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
    pub(crate) fn names(&self) -> Result<Vec<String>, Nobody> {
        let mut state = self.state.lock();
        state.open.retain(|_, teller| teller.strong_count() > 0);
        state.followed = !state.open.is_empty();
        if state.followed { Ok(state.open.keys().cloned().collect()) } else { Err(Nobody) }
    }

    pub(crate) fn is_open(&self, name: &str) -> bool {
        self.state.lock().open.contains_key(name)
    }

    pub(crate) fn close(&self, name: &str, why: Status) {
        let teller = self.state.lock().open.get(name).and_then(Weak::upgrade);
        if let Some(teller) = teller {
            teller.send_replace(Some(why));
        }
    }
}
