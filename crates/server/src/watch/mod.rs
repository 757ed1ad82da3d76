//! WATCH: a stream of changes.
//!
//! A watcher holds a position in the cache's ring and reads from there at its client's pace. Events older than the ring
//! come from the store's history.

mod encode;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Response;
use k1s_env::Instant;
use k1s_object::{FieldError, Status, field::quote};
use k1s_store::{Revision, WatchItem, WatchRequest};

use crate::{
    body::Body,
    cache::{Cache, Event, Snapshot, Took},
    closing::Closing,
    context::{Cx, invalid_options},
    conversion, errors,
    metrics::Gauge,
    negotiate::{Form, Media},
    resource::Source,
    select::{Scope, Selection},
};
use encode::{Encoder, WatchEventType};

/// Maximum number of events in a chunk.
const BATCH: usize = 64;
/// Maximum number of objects checked for one chunk of initial events; then other tasks run.
const SCANNED: usize = 4096;
/// Maximum bytes of objects in a chunk of initial events, plus one object.
const BATCH_BYTES: usize = 256 << 10;

/// The options of a watch.
struct Options {
    revision: Option<Revision>,
    /// `sendInitialEvents`, if given.
    initial: Option<bool>,
    bookmarks: bool,
    lifetime: Duration,
}

fn options(cx: &Cx) -> Result<Options, Status> {
    let query = &cx.query;
    let timeout = query.number("timeoutSeconds")?;
    let matching = query.get("resourceVersionMatch");
    let initial = query.find("sendInitialEvents").map(|_| query.flag("sendInitialEvents"));
    let field = "resourceVersionMatch";
    let mut errors = Vec::new();
    match initial {
        None if !matching.is_empty() => errors.push(FieldError::forbidden(
            field,
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )),
        Some(_) if matching != "NotOlderThan" => errors.push(FieldError::forbidden(
            field,
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )),
        _ => {}
    }
    if !matching.is_empty() && matching != "NotOlderThan" {
        errors.push(FieldError::not_supported(field, matching, &["NotOlderThan"]));
    }
    if !query.get("continue").is_empty() {
        errors.push(FieldError::forbidden("continue", "continue is forbidden for watch"));
    }
    if !errors.is_empty() {
        return Err(invalid_options("ListOptions", &errors));
    }
    let revision = match query.get("resourceVersion") {
        "" => None,
        text => Some(Revision::new(text.parse().map_err(|_| {
            let quoted = quote(text);
            let why = format!("strconv.ParseUint: parsing {quoted}: invalid syntax");
            Status::new(500, "", format!("resourceVersion: Invalid value: {quoted}: {why}"))
        })?)),
    };
    let least = cx.tenant.options().min_watch_lifetime;
    let lifetime =
        match timeout.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0) {
            Some(seconds) => Duration::from_secs(seconds.min(365 * 24 * 3600)),
            None => least.mul_f64(1.0 + cx.tenant.env().random_f64()),
        };
    Ok(Options { revision, initial, bookmarks: query.flag("allowWatchBookmarks"), lifetime })
}

/// Opens a watch: the headers are sent at once, events as they occur.
pub(crate) async fn open(cx: Arc<Cx>) -> Result<Response<Body>, Status> {
    let selection = Selection::parse(&cx)?;
    let options = options(&cx)?;
    if cx.accepted.form == Form::Table {
        crate::table::include(&cx)?;
    }
    let content_type = match cx.accepted.media {
        Media::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        _ => "application/json",
    };
    let cache = cx.tenant.cache(&cx.resource);
    let gauge = cx.tenant.shared.metrics.watch_opened(&cx.resource);
    let watcher = Watcher::start(cx, cache, selection, &options, gauge).await?;
    let stream = futures_util::stream::unfold(Some(watcher), |watcher| async move {
        let mut watcher = watcher?;
        let (chunk, more) = watcher.next().await?;
        Some((chunk, more.then_some(watcher)))
    });
    Ok(crate::respond::bytes(200, content_type, Body::stream(stream)))
}

struct Watcher {
    cx: Arc<Cx>,
    cache: Arc<Cache>,
    selection: Selection,
    /// The keys of the selected objects.
    scope: Scope,
    encoder: Encoder,
    /// The position of the next event in the ring.
    position: u64,
    /// The requested revision: events up to it are not sent. It may be in the future.
    after: Revision,
    /// The client has all events up to this revision.
    revision: Revision,
    initial: Option<Initial>,
    history: Option<History>,
    reached: tokio::sync::watch::Receiver<u64>,
    /// The revision at which a custom resource's definition was changed or deleted: its watches end once they have sent all
    /// events up to it.
    replaced: Option<tokio::sync::watch::Receiver<u64>>,
    ended: bool,
    /// Ends the watch when its project is suspended.
    closing: Option<Closing>,
    deadline: Instant,
    /// When the next bookmark is due, if the client requested them.
    bookmark_at: Option<Instant>,
    /// A bookmark to send once all events up to this revision are sent.
    bookmark: Option<u64>,
    _gauge: Gauge,
}

/// The objects that a watch begins with, as ADDED events.
struct Initial {
    snapshot: Arc<Snapshot>,
    next: Option<Bytes>,
    /// Whether a bookmark with `k8s.io/initial-events-end` follows.
    announce_end: bool,
}

/// Events older than the ring, from the store.
struct History {
    watch: k1s_store::Watch,
    /// The ring has all events after this revision.
    until: Revision,
}

impl Watcher {
    async fn start(
        cx: Arc<Cx>,
        cache: Arc<Cache>,
        selection: Selection,
        options: &Options,
        gauge: Gauge,
    ) -> Result<Watcher, Status> {
        let env = cx.tenant.env();
        let now = env.now();
        let interval = cx.tenant.options().bookmark_interval;
        let mut watcher = Watcher {
            scope: selection.scope(&cx, &cx.tenant.keys(&cx.resource, &cx.namespace)),
            encoder: Encoder::new(&cx),
            position: 0,
            after: Revision::default(),
            revision: Revision::default(),
            initial: None,
            history: None,
            reached: cache.subscribe(),
            replaced: match &cx.resource.source {
                Source::BuiltIn(_) => None,
                Source::Custom(custom) => Some(custom.replaced()),
            },
            ended: false,
            closing: cx.closing.clone(),
            deadline: now + options.lifetime,
            bookmark_at: options
                .bookmarks
                .then(|| now + interval.min(options.lifetime.saturating_sub(Duration::from_secs(2)))),
            bookmark: None,
            _gauge: gauge,
            cx: cx.clone(),
            cache,
            selection,
        };
        let zero = Revision::default();
        let from = options.revision.filter(|revision| *revision != zero);
        match (options.initial, from) {
            (Some(true), Some(revision)) => {
                match watcher.cache.at_least(revision, cx.tenant.options().future_revision_patience).await {
                    Ok(snapshot) => watcher.begin_with(snapshot, options.bookmarks),
                    Err(status) => watcher.encoder.fail(status),
                }
            }
            (Some(true), None) => {
                let snapshot = watcher.cache.now().await?;
                watcher.begin_with(snapshot, options.bookmarks);
            }
            (None, None) => {
                let snapshot = match options.revision {
                    None => watcher.cache.now().await?,
                    Some(_) => watcher.cache.at_least(Revision::FIRST, crate::cache::PATIENCE).await?,
                };
                watcher.begin_with(snapshot, false);
            }
            (Some(false), None) => {
                let revision = watcher.cache.now().await?.revision;
                watcher.begin_after(revision).await?;
            }
            (_, Some(revision)) => {
                watcher.cache.at_least(Revision::FIRST, crate::cache::PATIENCE).await?;
                watcher.begin_after(revision).await?;
            }
        }
        Ok(watcher)
    }

    /// Begins with the objects of a snapshot.
    fn begin_with(&mut self, snapshot: Arc<Snapshot>, announce_end: bool) {
        let revision = snapshot.revision;
        self.after = revision;
        self.revision = revision;
        // The ring has all events after a snapshot just taken, unless it has overflowed since: position 0 gets 410.
        self.position = self.cache.ring(|ring| ring.position_after(revision)).unwrap_or_default();
        let next = Some(self.scope.prefix.clone());
        self.initial = Some(Initial { snapshot, next, announce_end });
    }

    /// Begins with the first event after a revision.
    async fn begin_after(&mut self, revision: Revision) -> Result<(), Status> {
        self.after = revision;
        self.revision = revision;
        let (position, end, newest) =
            self.cache.ring(|ring| (ring.position_after(revision), ring.end(), ring.newest()));
        if let Some(position) = position {
            self.position = position;
            return Ok(());
        }
        self.position = end;
        let request = WatchRequest::prefix(self.scope.prefix.clone()).after(revision).previous(true);
        match self.cx.tenant.store().watch(request).await {
            Ok(watch) => {
                watch.request_progress();
                self.history = Some(History { watch, until: newest });
            }
            Err(error) => self.encoder.fail(errors::store(&error)),
        }
        Ok(())
    }

    /// The next chunk, and whether more may follow. `None`: the end.
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        loop {
            if let Some(status) = self.closing.as_ref().and_then(Closing::reason) {
                self.encoder.fail(status);
            }
            if let Some(chunk) = self.encoder.take_failure() {
                return Some((chunk, false));
            }
            // Also checked here: a watcher that never catches up never waits.
            if self.cx.tenant.stop.is_cancelled() || self.cx.tenant.env().now() >= self.deadline {
                return None;
            }
            if self.initial.is_some() {
                let chunk = match self.cx.resource.has_webhook() {
                    true => self.next_converted().await,
                    false => self.next_initial(),
                };
                if let Some(chunk) = chunk {
                    return Some((chunk, true));
                }
                // None of many objects was selected: let other tasks run.
                self.cx.tenant.env().yield_now().await;
                continue;
            }
            if self.history.is_some() {
                if let Some(chunk) = self.next_of_history().await {
                    return Some((chunk, true));
                }
                continue;
            }
            let seen = *self.reached.borrow_and_update();
            match self.cache.ring(|ring| ring.take(self.position, BATCH)) {
                Took::Events(events, position) => {
                    self.position = position;
                    if let Some(chunk) = self.convert_and_encode(events).await {
                        return Some((chunk, true));
                    }
                }
                Took::TooOld => {
                    let oldest = self.cache.ring(|ring| ring.oldest()).get();
                    self.encoder.fail(errors::too_old_resource_version(self.revision.get(), oldest));
                }
                Took::Nothing => {
                    if self.bookmark.is_some_and(|revision| seen >= revision) {
                        self.bookmark = None;
                        self.revision = self.revision.max(Revision::new(seen));
                        return Some((self.encoder.bookmark(&self.cx, self.revision, false), true));
                    }
                    if self.ended || !self.wait().await {
                        return None;
                    }
                }
            }
        }
    }

    /// Waits for events or the next bookmark; `false` at the end of the watch.
    async fn wait(&mut self) -> bool {
        let env = self.cx.tenant.env().clone();
        let wake = self.bookmark_at.map_or(self.deadline, |at| at.min(self.deadline));
        tokio::select! {
            changed = self.reached.changed() => changed.is_ok(),
            revision = replacement(&mut self.replaced) => {
                self.ended = true;
                self.cache.at_least(revision, crate::cache::PATIENCE).await.is_ok()
            }
            () = self.cx.tenant.stop.cancelled() => false,
            () = closed(&mut self.closing) => true,
            () = env.sleep_until(wake) => {
                let now = env.now();
                if self.bookmark_at.is_some_and(|at| at <= now) {
                    let next = now + self.cx.tenant.options().bookmark_interval;
                    // The last one is sent shortly before the end.
                    let last = Some(self.deadline - Duration::from_secs(2)).filter(|last| *last > now);
                    self.bookmark_at = last.map_or((next < self.deadline).then_some(next), |last| Some(next.min(last)));
                    if let Ok(snapshot) = self.cache.now().await {
                        self.bookmark = Some(snapshot.revision.get());
                    }
                }
                now < self.deadline
            }
        }
    }

    /// The next chunk of initial events; `None` if none of the checked objects is selected, or there are no more.
    fn next_initial(&mut self) -> Option<Bytes> {
        let initial = self.initial.as_mut()?;
        let Some(start) = initial.next.take() else {
            let announce = initial.announce_end;
            self.initial = None;
            return announce.then(|| self.encoder.bookmark(&self.cx, self.revision, true));
        };
        let mut out = Vec::new();
        let (mut seen, mut count, mut bytes) = (0, 0, 0);
        for entry in initial.snapshot.entries.under(&self.scope.prefix, &start).take(self.scope.max) {
            if count == BATCH || seen == SCANNED || bytes >= BATCH_BYTES {
                initial.next = Some(entry.key.clone());
                break;
            }
            seen += 1;
            if self.selection.matches(entry) {
                count += 1;
                bytes += entry.stored.len();
                self.encoder.write(&self.cx, &mut out, WatchEventType::Added, &entry.stored);
            }
        }
        (!out.is_empty()).then(|| out.into())
    }

    /// The same for a resource with a conversion webhook. If it fails, the watch ends with an ERROR event: the client starts
    /// again where it was, and misses nothing.
    async fn next_converted(&mut self) -> Option<Bytes> {
        let initial = self.initial.as_mut()?;
        let Some(start) = initial.next.take() else {
            let announce = initial.announce_end;
            self.initial = None;
            return announce.then(|| self.encoder.bookmark(&self.cx, self.revision, true));
        };
        let (mut found, mut bytes) = (Vec::new(), 0);
        for entry in initial.snapshot.entries.under(&self.scope.prefix, &start).take(self.scope.max) {
            if found.len() == SCANNED || bytes >= BATCH_BYTES {
                initial.next = Some(entry.key.clone());
                break;
            }
            bytes += entry.stored.len();
            found.push(entry.clone());
        }
        let cx = self.cx.clone();
        let converted = tokio::select! {
            converted = conversion::entries(&cx, &self.cache, found) => converted,
            () = cx.tenant.stop.cancelled() => return None,
        };
        let entries = converted.map_err(|status| self.fail(status)).ok()?;
        let mut out = Vec::new();
        for entry in entries.iter().filter(|entry| self.selection.matches(entry)) {
            self.encoder.write(&self.cx, &mut out, WatchEventType::Added, &entry.stored);
        }
        (!out.is_empty()).then(|| out.into())
    }

    fn fail(&mut self, status: Status) {
        self.initial = None;
        self.encoder.fail(status);
    }

    /// The selected ones of these events in the version of the request, as one chunk.
    async fn convert_and_encode(&mut self, events: Vec<Arc<Event>>) -> Option<Bytes> {
        if !self.cx.resource.has_webhook() {
            return self.encode(&events);
        }
        let cx = self.cx.clone();
        let converted = tokio::select! {
            converted = conversion::events(&cx, &self.cache, events, &self.scope.prefix) => converted,
            () = cx.tenant.stop.cancelled() => return None,
        };
        let events = converted.map_err(|status| self.fail(status)).ok()?;
        self.encode(&events)
    }

    /// The next chunk from the store's history; `None` if none of its events is selected.
    async fn next_of_history(&mut self) -> Option<Bytes> {
        let history = self.history.as_mut()?;
        match history.watch.next().await {
            Some(Ok(WatchItem::Progress(revision))) => {
                if revision >= history.until {
                    self.history = None;
                }
                None
            }
            Some(Ok(WatchItem::Change(change))) => {
                if change.revision() > history.until {
                    self.history = None;
                    return None;
                }
                let mut events = Vec::new();
                for event in change.events() {
                    let old = event.previous.as_ref().and_then(|previous| {
                        self.cache.entry(event.key.clone(), &previous.value, previous.revision)
                    });
                    let new = event
                        .value
                        .as_ref()
                        .and_then(|value| self.cache.entry(event.key.clone(), value, change.revision()));
                    events.push(Arc::new(Event::new(
                        change.revision(),
                        old.map(Arc::new),
                        new.map(Arc::new),
                    )));
                }
                self.convert_and_encode(events).await
            }
            Some(Err(error)) => {
                self.history = None;
                self.encoder.fail(errors::store(&error));
                None
            }
            None => {
                self.history = None;
                self.encoder.fail(Status::new(503, "ServiceUnavailable", "the server is shutting down"));
                None
            }
        }
    }

    /// The selected ones of these events, as one chunk.
    fn encode(&mut self, events: &[Arc<Event>]) -> Option<Bytes> {
        let mut out = Vec::new();
        let mut single: Option<Bytes> = None;
        for event in events {
            // Compared with the requested revision, not the last one sent: a transaction can change several objects.
            if event.revision <= self.after {
                continue;
            }
            self.revision = event.revision;
            let selected = |entry: &Option<Arc<crate::cache::Entry>>| {
                entry.as_ref().is_some_and(|entry| {
                    entry.key.starts_with(&self.scope.prefix) && self.selection.matches(entry)
                })
            };
            let (event_type, stored) =
                match (selected(&event.old), selected(&event.new), &event.old, &event.new) {
                    (false, true, _, Some(new)) => (WatchEventType::Added, new.stored.clone()),
                    (true, true, _, Some(new)) => (WatchEventType::Modified, new.stored.clone()),
                    (true, false, Some(old), _) => (WatchEventType::Deleted, old.stored.at(event.revision)),
                    _ => continue,
                };
            if let Some(flushed) = single.take() {
                out.extend_from_slice(&flushed);
            }
            match self.encoder.shared_line(&self.cx, event, event_type, &stored) {
                // A single event is sent without copying it.
                Some(line) if out.is_empty() => single = Some(line),
                Some(line) => out.extend_from_slice(&line),
                None => self.encoder.write(&self.cx, &mut out, event_type, &stored),
            }
        }
        match single {
            Some(line) => Some(line),
            None => (!out.is_empty()).then(|| out.into()),
        }
    }
}

/// Waits until the resource's definition is changed or deleted, and returns the revision of that.
async fn replacement(replaced: &mut Option<tokio::sync::watch::Receiver<u64>>) -> Revision {
    match replaced {
        None => std::future::pending().await,
        Some(replaced) => {
            Revision::new(replaced.wait_for(|revision| *revision != 0).await.map_or(1, |at| *at))
        }
    }
}

/// Waits until the watch's project is suspended.
async fn closed(closing: &mut Option<Closing>) {
    match closing {
        None => std::future::pending().await,
        Some(closing) => closing.closed().await,
    }
}
