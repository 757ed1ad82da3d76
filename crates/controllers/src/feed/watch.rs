//! The feed of a k1s server: the metadata of all objects, in one watch and in revision order.

use std::time::Duration;

use futures_util::StreamExt as _;
use kube::core::WatchEvent;
use serde::Deserialize;

use super::{Feed, Signal};
use crate::meta::{Meta, Resource};

/// The path of the watch.
pub(crate) const PATH: &str = "/k1s/v1/metadata";
/// Initial and maximum backoff after a failure.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// Timeout of a silent watch: there is a bookmark every minute.
const SILENCE: Duration = Duration::from_secs(150);

/// An object of the watch, or of a list.
#[derive(Clone, Deserialize)]
pub(crate) struct Item {
    pub(crate) resource: Resource,
    pub(crate) metadata: Meta,
}

/// Why a watch ended.
enum Ended {
    /// Closed by the server: continue at the same position.
    Done,
    /// A catch-up request: a new watch, from the same position, answers it.
    CatchUp,
    /// The server no longer has the history of its position.
    Expired,
    /// The server does not serve this path, or denies access.
    NotServed,
    Failed(String),
}

/// Follows a k1s server. Returns `false` if it is another server.
pub(super) async fn follow(feed: &Feed) -> bool {
    let env = &feed.shared.env;
    let mut position = None;
    let mut pause = PAUSE.0;
    loop {
        let begun = env.now();
        let wait = match once(feed, &mut position).await {
            Ended::NotServed if feed.is_k1s() != Some(true) => {
                let _ = feed.shared.is_k1s.set(false);
                return false;
            }
            Ended::CatchUp => Duration::ZERO,
            // A watch that ends at once is not reopened in a tight loop.
            Ended::Done if env.now() - begun > PAUSE.0 => Duration::ZERO,
            Ended::Done => PAUSE.0,
            Ended::Expired => {
                position = None;
                PAUSE.0
            }
            Ended::NotServed => {
                feed.failed("the server no longer serves its metadata watch".to_owned());
                pause
            }
            Ended::Failed(message) => {
                feed.failed(message);
                pause
            }
        };
        pause = if wait == pause { (pause * 2).min(PAUSE.1) } else { PAUSE.0 };
        if !wait.is_zero() {
            env.sleep(wait).await;
        }
    }
}

async fn once(feed: &Feed, position: &mut Option<String>) -> Ended {
    let progress = &feed.shared.progress;
    // Before the watch starts: it delivers everything that existed when it did.
    let requests = progress.asked();
    let asks = !progress.is_answered(requests);
    let request = http::Request::get(path(feed, position.as_deref(), asks)).body(Vec::new());
    let request = match request {
        Ok(request) => request,
        Err(error) => return Ended::Failed(error.to_string()),
    };
    let opened = feed.client().kube().request_events::<Item>(request).await;
    let mut events = match opened {
        Ok(events) => events.boxed(),
        Err(kube::Error::Api(status)) if matches!(status.code, 403..=405) => return Ended::NotServed,
        Err(kube::Error::Api(status)) if status.code == 410 => return Ended::Expired,
        Err(error) => {
            // A server that rejects a position may have lost it, for example with an empty store. Start over.
            if matches!(error, kube::Error::Api(_)) {
                *position = None;
            }
            return Ended::Failed(error.to_string());
        }
    };
    let _ = feed.shared.is_k1s.set(true);
    if position.is_none() {
        feed.deliver(&Signal::Begin { reset: true, ordered: true });
    } else {
        feed.recovered();
    }
    loop {
        let asked = async {
            // One answer at a time, or concurrent requests could restart the watch forever.
            match position.is_some() && progress.is_answered(requests) {
                true => progress.more_than(requests).await,
                false => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            biased;
            event = feed.shared.env.timeout(SILENCE, events.next()) => event,
            () = asked => return Ended::CatchUp,
        };
        let event = match event {
            Err(_) => return Ended::Failed(format!("no event or bookmark for {SILENCE:?}")),
            Ok(None) => return Ended::Done,
            Ok(Some(Err(error))) => return Ended::Failed(error.to_string()),
            Ok(Some(Ok(event))) => event,
        };
        let version = match event {
            WatchEvent::Added(item) | WatchEvent::Modified(item) => {
                feed.deliver(&Signal::Stored(&item.resource, &item.metadata));
                item.metadata.resource_version.into_string()
            }
            WatchEvent::Deleted(item) => {
                feed.deliver(&Signal::Deleted(&item.resource, &item.metadata));
                item.metadata.resource_version.into_string()
            }
            WatchEvent::Bookmark(bookmark) => {
                if position.is_none()
                    && bookmark.metadata.annotations.contains_key("k8s.io/initial-events-end")
                {
                    feed.deliver(&Signal::End);
                    *position = Some(bookmark.metadata.resource_version.clone());
                }
                if position.is_some() {
                    progress.answer(requests);
                }
                bookmark.metadata.resource_version
            }
            WatchEvent::Error(status) if status.code == 410 => return Ended::Expired,
            WatchEvent::Error(status) => return Ended::Failed(status.message.clone()),
        };
        // Until the initial objects are complete, there is no position to resume from.
        if let Some(position) = position {
            *position = version;
        }
    }
}

fn path(feed: &Feed, position: Option<&str>, asks: bool) -> String {
    let mut path = format!("{PATH}?watch=true");
    if let Some(position) = position {
        path.push_str("&resourceVersion=");
        path.push_str(position);
        if asks {
            path.push_str("&progress=true");
        }
    }
    for interest in &*feed.shared.interests.read() {
        path.push_str("&all=");
        path.push_str(&interest.resource.plural);
        if !interest.resource.group.is_empty() {
            path.push('.');
            path.push_str(&interest.resource.group);
        }
        if let Some(name) = interest.name {
            path.push('/');
            path.push_str(name);
        }
    }
    path
}
