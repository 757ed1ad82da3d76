//! The watch: pages of existing objects, then changes.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use k1s_env::Instant;
use k1s_object::Status;
use k1s_store::{Change, Error, Range, Revision, Watch, WatchItem, WatchRequest};

use super::{PAGE, Selection, revision};
use crate::{
    body::Body,
    errors,
    keys::{self, split_key},
    request::Query,
    respond,
    stored::Stored,
    tenant::Tenant,
};

/// Opens a watch.
pub(super) async fn open(tenant: &Arc<Tenant>, query: &Query) -> Result<Response<Body>, Status> {
    let prefix = keys::prefix(&tenant.name);
    let selection = Selection::parse(query);
    let store = |error| errors::store(&error);
    let (after, initial) = match revision(query)? {
        Some(after) => (after, None),
        None => {
            let after = tenant.revision().await?;
            (after, Some(Range::prefix(prefix.clone()).limit(PAGE).at(after)))
        }
    };
    // Opened before the pages are read, so that changes in between are not compacted.
    let request = WatchRequest::prefix(prefix.clone()).after(after).previous(true);
    let watch = match tenant.store().watch(request).await {
        Err(Error::Compacted { oldest, .. }) => {
            return Err(errors::too_old_resource_version(after.get(), oldest.get()));
        }
        other => other.map_err(store)?,
    };
    if query.flag("progress") {
        watch.request_progress();
    }
    let (env, options) = (tenant.env(), tenant.options());
    let now = env.now();
    let lifetime = options.min_watch_lifetime.mul_f64(1.0 + env.random_f64());
    let follower = Follower {
        deadline: now + lifetime,
        bookmark_at: now + options.bookmark_interval,
        tenant: tenant.clone(),
        prefix,
        selection,
        initial,
        after,
        watch,
    };
    let stream = futures_util::stream::unfold(Some(follower), |follower| async move {
        let mut follower = follower?;
        let (chunk, more) = follower.next().await?;
        Some((chunk, more.then_some(follower)))
    });
    Ok(respond::bytes(200, "application/json", Body::stream(stream)))
}

struct Follower {
    tenant: Arc<Tenant>,
    prefix: String,
    selection: Selection,
    /// The next page of the initial objects.
    initial: Option<Range>,
    after: Revision,
    watch: Watch,
    deadline: Instant,
    bookmark_at: Instant,
}

impl Follower {
    /// The next lines, and whether the watch goes on.
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        let mut out = Vec::new();
        while let Some(range) = self.initial.take() {
            if let Err(status) = self.page(range, &mut out).await {
                return Some((failure(&status), false));
            }
            if !out.is_empty() {
                return Some((out.into(), true));
            }
        }
        let tenant = self.tenant.clone();
        let env = tenant.env();
        loop {
            let item = tokio::select! {
                biased;
                () = tenant.stop.cancelled() => return None,
                item = self.watch.next() => item,
                () = env.sleep_until(self.bookmark_at.min(self.deadline)) => {
                    if env.now() >= self.deadline {
                        return None;
                    }
                    self.bookmark_at = env.now() + tenant.options().bookmark_interval;
                    self.watch.request_progress();
                    continue;
                }
            };
            match item {
                None => return None,
                Some(Ok(WatchItem::Progress(revision))) => return Some((bookmark(revision, false), true)),
                Some(Ok(WatchItem::Change(change))) => {
                    self.change(&change, &mut out);
                    if !out.is_empty() {
                        return Some((out.into(), true));
                    }
                }
                Some(Err(Error::Compacted { oldest, .. })) => {
                    let status = errors::too_old_resource_version(self.after.get(), oldest.get());
                    return Some((failure(&status), false));
                }
                Some(Err(error)) => return Some((failure(&errors::store(&error)), false)),
            }
        }
    }

    async fn page(&mut self, range: Range, out: &mut Vec<u8>) -> Result<(), Status> {
        let page = self.tenant.store().range(range.clone()).await.map_err(|error| errors::store(&error))?;
        for entry in &page.entries {
            let Some(key) = split_key(&entry.key, &self.prefix) else { continue };
            if self.selection.wants(&key, &entry.value, None) {
                line(out, "ADDED", (key.group, key.plural), &entry.value, entry.revision);
            }
        }
        match page.entries.last().filter(|_| page.more) {
            Some(last) => self.initial = Some(range.start([&*last.key, b"\0"].concat())),
            None => out.extend_from_slice(&bookmark(self.after, true)),
        }
        Ok(())
    }

    fn change(&mut self, change: &Change, out: &mut Vec<u8>) {
        for event in change.events() {
            let Some(key) = split_key(&event.key, &self.prefix) else { continue };
            let of = (key.group, key.plural);
            let previous = event.previous.as_ref().map(|previous| &previous.value);
            match (&event.value, previous) {
                (Some(value), previous) => {
                    if self.selection.wants(&key, value, previous.map(|previous| &**previous)) {
                        let what = if event.created { "ADDED" } else { "MODIFIED" };
                        line(out, what, of, value, change.revision());
                    }
                }
                (None, Some(previous)) => line(out, "DELETED", of, previous, change.revision()),
                (None, None) => {}
            }
        }
    }
}

/// Writes an event; nothing for a value that is not an object.
fn line(out: &mut Vec<u8>, what: &str, (group, plural): (&str, &str), value: &Bytes, revision: Revision) {
    let Ok(stored) = Stored::new(value, revision) else { return };
    let start = out.len();
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(what.as_bytes());
    out.extend_from_slice(b"\",\"object\":{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"resource\":{\"group\":\"");
    out.extend_from_slice(group.as_bytes());
    out.extend_from_slice(b"\",\"resource\":\"");
    out.extend_from_slice(plural.as_bytes());
    out.extend_from_slice(b"\"},");
    if stored.write_metadata(out).is_err() {
        out.truncate(start);
        return;
    }
    out.extend_from_slice(b"}}\n");
}

fn bookmark(revision: Revision, initial_end: bool) -> Bytes {
    let annotations =
        if initial_end { ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" } else { "" };
    format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{{\"resourceVersion\":\"{revision}\"{annotations}}}}}}}\n"
    )
    .into()
}

fn failure(status: &Status) -> Bytes {
    format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", status.to_json()).into()
}
