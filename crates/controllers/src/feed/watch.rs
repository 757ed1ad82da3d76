//! The feed of a k1s server: the metadata of everything, in one watch and in the order of revisions.

use std::time::Duration;

use futures_util::StreamExt as _;
use kube::core::WatchEvent;
use serde::Deserialize;

use super::{Feed, Signal};
use crate::meta::{Meta, Resource};

/// Where it is.
pub(crate) const PATH: &str = "/k1s/v1/metadata";
/// How long is waited after a first failure, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// A watch that is silent for so long is taken for dead: there is a bookmark every minute.
const SILENCE: Duration = Duration::from_secs(150);

/// An object of the watch, or of a list.
#[derive(Clone, Deserialize)]
pub(crate) struct Item {
    pub(crate) resource: Resource,
    pub(crate) metadata: Meta,
}

/// How a watch ended.
enum Ended {
    /// By the server's will: it goes on where it was.
    Done,
    /// Somebody wants to know how far it is: a new one, from where it was, tells.
    Asked,
    /// Its position is not known to the server any more.
    Expired,
    /// The server has no such thing, or does not give it to us.
    NotHere,
    Failed(String),
}

/// Follows a k1s server. Returns `false` if it is none.
pub(super) async fn follow(feed: &Feed) -> bool {
    let env = &feed.shared.env;
    let mut position = None;
    let mut pause = PAUSE.0;
    loop {
        let begun = env.now();
        let wait = match once(feed, &mut position).await {
            Ended::NotHere if feed.is_k1s() != Some(true) => {
                let _ = feed.shared.is_k1s.set(false);
                return false;
            }
            Ended::Asked => Duration::ZERO,
            // One that ends as soon as it has begun is not asked for in a loop.
            Ended::Done if env.now() - begun > PAUSE.0 => Duration::ZERO,
            Ended::Done => PAUSE.0,
            Ended::Expired => {
                position = None;
                PAUSE.0
            }
            Ended::NotHere => {
                feed.failed("the server does not tell any more".to_owned());
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
    // Before the watch begins: it tells of all that was there when it did.
    let questions = progress.asked();
    let asks = !progress.is_answered(questions);
    let request = http::Request::get(path(feed, position.as_deref(), asks)).body(Vec::new());
    let request = match request {
        Ok(request) => request,
        Err(error) => return Ended::Failed(error.to_string()),
    };
    let opened = feed.client().kube().request_events::<Item>(request).await;
    let mut events = match opened {
        Ok(events) => events.boxed(),
        Err(kube::Error::Api(status)) if matches!(status.code, 403..=405) => return Ended::NotHere,
        Err(kube::Error::Api(status)) if status.code == 410 => return Ended::Expired,
        Err(error) => {
            // A server that refuses a position may have lost it: an empty store, for example. It is asked for everything.
            if matches!(error, kube::Error::Api(_)) {
                *position = None;
            }
            return Ended::Failed(error.to_string());
        }
    };
    let _ = feed.shared.is_k1s.set(true);
    if position.is_none() {
        feed.tell(&Signal::Begin { reset: true, ordered: true });
    } else {
        feed.works();
    }
    loop {
        let asked = async {
            // One answer after the other, or many who ask could keep each other from any.
            match position.is_some() && progress.is_answered(questions) {
                true => progress.more_than(questions).await,
                false => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            biased;
            event = feed.shared.env.timeout(SILENCE, events.next()) => event,
            () = asked => return Ended::Asked,
        };
        let event = match event {
            Err(_) => return Ended::Failed(format!("nothing was heard for {SILENCE:?}")),
            Ok(None) => return Ended::Done,
            Ok(Some(Err(error))) => return Ended::Failed(error.to_string()),
            Ok(Some(Ok(event))) => event,
        };
        let version = match event {
            WatchEvent::Added(item) | WatchEvent::Modified(item) => {
                feed.tell(&Signal::Stored(&item.resource, &item.metadata));
                item.metadata.resource_version.into_string()
            }
            WatchEvent::Deleted(item) => {
                feed.tell(&Signal::Deleted(&item.resource, &item.metadata));
                item.metadata.resource_version.into_string()
            }
            WatchEvent::Bookmark(bookmark) => {
                if position.is_none()
                    && bookmark.metadata.annotations.contains_key("k8s.io/initial-events-end")
                {
                    feed.tell(&Signal::End);
                    *position = Some(bookmark.metadata.resource_version.clone());
                }
                if position.is_some() {
                    progress.answer(questions);
                }
                bookmark.metadata.resource_version
            }
            WatchEvent::Error(status) if status.code == 410 => return Ended::Expired,
            WatchEvent::Error(status) => return Ended::Failed(status.message.clone()),
        };
        // Before the first ones are complete there is nothing to go on from.
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
