//! The store that a case runs on.

use std::{any::Any, fmt, future::Future, pin::Pin, sync::Arc};

use k1s_store::Store;

type Open = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Arc<dyn Store>> + Send>> + Send + Sync>;

/// An empty store for one case, and how to reopen it if that is possible.
pub struct Fresh {
    // Drop order: the store before the resources it uses.
    store: Option<Arc<dyn Store>>,
    open: Option<Open>,
    kept: Vec<Box<dyn Any + Send + Sync>>,
}

impl Fresh {
    /// A store that cannot be reopened after it is closed.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store: Some(store), open: None, kept: Vec::new() }
    }

    /// A store that can be reopened. `open` opens the same data each time; it is called immediately, and
    /// later only after the store was closed and every handle to it was dropped.
    pub async fn reopenable<O, F>(open: O) -> Self
    where
        O: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = Arc<dyn Store>> + Send + 'static,
    {
        let store = open().await;
        Self { store: Some(store), open: Some(Box::new(move || Box::pin(open()))), kept: Vec::new() }
    }

    /// Keeps `what` alive until the case ends: a directory, a server, a lock.
    #[must_use]
    pub fn keep(mut self, what: impl Any + Send + Sync) -> Self {
        self.kept.push(Box::new(what));
        self
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        self.store.as_ref().expect("the store is only missing while it is being reopened")
    }

    /// Whether [`reopen`](Self::reopen) can be called.
    pub fn can_reopen(&self) -> bool {
        self.open.is_some()
    }

    /// Closes and reopens the store.
    ///
    /// # Panics
    /// If the store cannot be closed or cannot be reopened.
    pub async fn reopen(&mut self) {
        let open = self.open.as_ref().expect("the backend can reopen its store");
        let store = self.store.take().expect("the store is open");
        store.close().await.expect("a store can be closed");
        drop(store);
        self.store = Some(open().await);
    }
}

impl fmt::Debug for Fresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fresh").field("can_reopen", &self.can_reopen()).finish_non_exhaustive()
    }
}
