//! Progress marks: requested from a watch only once the feed has everything that was in etcd when its reader asked.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};

use futures_util::StreamExt;
use k1s_store::{RequestProgress, Watch};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{backoff::Backoff, previous::Wish, shared::Shared};

/// The watches with a pending request for a mark.
#[derive(Default)]
pub(crate) struct Marks {
    asked: Mutex<Vec<Arc<Mark>>>,
    news: Notify,
}

/// A watch's request for a mark.
struct Mark {
    inner: Arc<dyn RequestProgress>,
    /// Whether it is in the list: repeated requests are listed once.
    queued: AtomicBool,
}

/// The reader's side.
struct Asked {
    shared: Weak<Shared>,
    mark: Arc<Mark>,
}

impl RequestProgress for Asked {
    fn request_progress(&self) {
        let Some(shared) = self.shared.upgrade() else { return };
        if !self.mark.queued.swap(true, Ordering::AcqRel) {
            shared.marks.asked.lock().push(self.mark.clone());
            shared.marks.news.notify_one();
        }
    }
}

/// Turns a watch of the feed into a watch of the store, whose marks are as new as etcd. `wish` is held until it is dropped.
pub(crate) fn with_marks(shared: &Arc<Shared>, watch: Watch, wish: Option<Wish>) -> Watch {
    let mark = Arc::new(Mark { inner: watch.progress_handle(), queued: AtomicBool::new(false) });
    let progress = Arc::new(Asked { shared: Arc::downgrade(shared), mark });
    match wish {
        None => Watch::new(watch, progress),
        Some(wish) => Watch::new(
            watch.inspect(move |_| {
                let _held = &wish;
            }),
            progress,
        ),
    }
}

/// The task that brings the feed up to date and then passes on all pending requests.
pub(crate) async fn run(shared: Arc<Shared>) {
    let serve = async {
        loop {
            shared.marks.news.notified().await;
            let asked = std::mem::take(&mut *shared.marks.asked.lock());
            // Before etcd is asked for its revision: later requests are for the next round.
            for mark in &asked {
                mark.queued.store(false, Ordering::Release);
            }
            let mut backoff = Backoff::default();
            while let Err(error) = shared.sync().await {
                if shared.check_open().is_err() {
                    return;
                }
                tracing::debug!(%error, "a progress mark has to wait");
                backoff.pause(&shared.env).await;
            }
            for mark in asked {
                mark.inner.request_progress();
            }
        }
    };
    tokio::select! {
        () = shared.stop.cancelled() => {}
        () = serve => {}
    }
}
