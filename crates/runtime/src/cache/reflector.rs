//! Keeps an informer's objects in sync with the server: a list, then a watch from the list's revision, and a new list
//! when the watch expires. After any failure, states are listed again, so none is lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use kube::{client::Body, core::Status};
use tokio_util::sync::CancellationToken;

use super::{
    Informer, Problem,
    codec::Undecodable,
    informer::Part,
    objects::{Incoming, Known},
    wire::{self, Page},
};
use crate::{
    Form, Object, ObjectKey,
    client::{Query, lines::Lines, selectors},
    panics::message,
};

/// Maximum objects of a page decoded before handlers receive them and the lock is released: a lean cache keeps none of
/// them decoded, and readers wait for one batch only.
const DECODE_BATCH: usize = 16;

/// Why a list or a watch ended.
enum End {
    /// The server closed the watch: it can be resumed.
    Closed,
    /// The server no longer has the revision: list again.
    Expired,
    Failed(Problem),
}

/// Runs until it is stopped.
pub(super) async fn run<K: Object>(informer: Arc<Informer<K>>, part: usize, stop: CancellationToken) {
    let mut listed = false;
    let follow = async {
        let mut backoff = Backoff::default();
        loop {
            // Panics of user code are caught where it is called. Any other panic, in a client's layers for example, must
            // not leave an informer that looks healthy and receives nothing.
            let ended = AssertUnwindSafe(follow(&informer, part, &mut listed)).catch_unwind().await;
            if let Err(panic) = ended {
                let message = format!("panic: {} [recovered]", message(&*panic));
                backoff.sleep(&informer, part, Some(Problem::Failed { message })).await;
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow => {}
    }
}

/// Whether the kind is namespaced. Retries until discovery answers.
pub(super) async fn is_namespaced<K: Object>(informer: &Informer<K>) -> bool {
    let gvk = informer.kind().group_version_kind();
    let mut backoff = Backoff::default();
    loop {
        let discovered = informer.core.mapper.is_namespaced(&gvk);
        let discovered = informer.core.env.timeout(informer.core.settings.request_timeout, discovered).await;
        let problem = match discovered {
            Ok(Ok(namespaced)) => return namespaced,
            Err(_) => Problem::Failed { message: "the discovery timed out".to_owned() },
            Ok(Err(error)) if error.is_no_match() => {
                Problem::NotServed { resource: full_name(informer.kind().resource()) }
            }
            Ok(Err(error)) if error.is_forbidden() || error.is_unauthorized() => Problem::Forbidden {
                verb: "get",
                resource: format!("the discovery of {}", full_name(informer.kind().resource())),
                namespace: None,
                message: error.to_string(),
            },
            Ok(Err(error)) => Problem::Failed { message: error.to_string() },
        };
        backoff.sleep(informer, 0, Some(problem)).await;
    }
}

async fn follow<K: Object>(informer: &Informer<K>, part: usize, listed: &mut bool) {
    let env = &informer.core.env;
    let mut backoff = Backoff::default();
    loop {
        let mut revision = match list(informer, part, !*listed).await {
            Ok(revision) => {
                if !*listed {
                    informer.mark_synced();
                    *listed = true;
                }
                informer.report(part, None);
                backoff = Backoff::default();
                revision
            }
            Err(End::Failed(problem)) => {
                backoff.sleep(informer, part, Some(problem)).await;
                continue;
            }
            // The snapshot of the pages has expired, or the connection was lost: start over.
            Err(End::Expired | End::Closed) => {
                backoff.sleep(informer, part, None).await;
                continue;
            }
        };
        loop {
            let began = env.now();
            let before = revision.clone();
            match watch(informer, part, &mut revision).await {
                End::Closed => {}
                End::Expired => break,
                End::Failed(problem) => {
                    let vanished = matches!(problem, Problem::NotServed { .. });
                    backoff.sleep(informer, part, Some(problem)).await;
                    // A definition that was deleted may come back with other objects.
                    if vanished {
                        break;
                    }
                    continue;
                }
            }
            informer.report(part, None);
            // A watch that ends at once without events is not reopened at once.
            if revision == before && env.now() - began < Duration::from_secs(1) {
                backoff.sleep(informer, part, None).await;
            } else {
                backoff = Backoff::default();
            }
        }
    }
}

/// Exponential backoff after failures.
#[derive(Default)]
struct Backoff {
    failures: u32,
}

impl Backoff {
    async fn sleep<K: Object>(&mut self, informer: &Informer<K>, part: usize, problem: Option<Problem>) {
        if let Some(problem) = problem {
            // Transient problems are logged at growing intervals, so that the log shows what is being waited for.
            if self.failures == 0 || self.failures.is_power_of_two() || problem.is_lasting() {
                tracing::warn!(kind = %informer.kind(), %problem, "cannot watch");
            }
            informer.report(part, Some(problem));
        }
        let settings = &informer.core.settings;
        let pause = settings.retry_initial.saturating_mul(1 << self.failures.min(16)).min(settings.retry_max);
        self.failures += 1;
        let env = &informer.core.env;
        env.sleep(pause.mul_f64(1.0 + env.random_f64() * 0.5)).await;
    }
}

/// Lists the whole collection; returns its revision.
async fn list<K: Object>(informer: &Informer<K>, part: usize, first: bool) -> Result<String, End> {
    informer.parts()[part].objects.write().begin_list();
    let mut continue_token = String::new();
    let mut bad = BTreeSet::new();
    loop {
        let page = get_page(informer, part, informer.kind().form(), &continue_token).await?;
        let page: Page<'_> = serde_json::from_slice(&page).map_err(|error| unreadable("list", &error))?;
        for items in page.items.as_deref().unwrap_or_default().chunks(DECODE_BATCH) {
            informer.apply(part, |objects, events| {
                for item in items {
                    let skipped = take(informer, item.get().as_bytes(), first, !first, objects, events).err();
                    bad.extend(skipped.map(|(key, _)| key));
                }
            });
        }
        if page.metadata.r#continue.is_empty() {
            let revision = page.metadata.resource_version;
            informer.apply(part, |objects, events| objects.end_list(wire::revision(&revision), events));
            informer.retain_undecodable(part, &bad);
            return Ok(revision);
        }
        continue_token = page.metadata.r#continue;
    }
}

/// Stores one state of an object; returns its revision. The error is the key and revision of a skipped object.
fn take<K: Object>(
    informer: &Informer<K>,
    raw: &[u8],
    initial: bool,
    look_first: bool,
    objects: &mut super::objects::Objects<K>,
    events: &mut Vec<crate::Event<K>>,
) -> Result<u64, (ObjectKey, u64)> {
    // Parsing the head costs another pass over the bytes; it pays off if decoding can be skipped.
    let mut known = None;
    if (look_first || objects.has_pending_writes())
        && let Ok(head) = wire::head(raw)
    {
        let key = head.key();
        match objects.known(&key, head.revision()) {
            Known::Same => {
                objects.touch(&key);
                return Ok(head.revision());
            }
            Known::Written(kept) => known = informer.codec.open(&kept).map(|object| (kept, object)),
            Known::New => {}
        }
    }
    let decoded = known.map_or_else(|| informer.codec.take(raw), Ok);
    let taken = decoded.and_then(|(kept, object)| {
        let meta = object.meta();
        let key = ObjectKey::of(&*object);
        let revision = wire::revision(meta.resource_version.as_deref().unwrap_or_default());
        let uid = meta.uid.clone().unwrap_or_default();
        let incoming = Incoming { key: key.clone(), revision, uid, kept, object };
        objects.upsert(incoming, initial, events).map_err(Undecodable::Panicked)?;
        informer.report_object(&key, None);
        Ok(revision)
    });
    taken.or_else(|error| {
        let Ok(head) = wire::head(raw) else {
            tracing::error!(kind = %informer.kind(), %error, "skipped an item that is not an object");
            return Ok(0);
        };
        let key = head.key();
        tracing::error!(kind = %informer.kind(), object = %key, %error, "skipped an object that cannot be decoded");
        informer.core.undecodable(&informer.codec.kind.to_string());
        informer.report_object(&key, Some(&error.to_string()));
        // Its last good state stays in the cache.
        objects.touch(&key);
        Err((key, head.revision()))
    })
}

/// Watches from a revision, and advances it.
async fn watch<K: Object>(informer: &Informer<K>, part: usize, revision: &mut String) -> End {
    let core = &informer.core;
    let settings = &core.settings;
    // Jitter, so that watches do not reconnect together: between one and two times the minimum.
    let lifetime = settings.watch_timeout.mul_f64(1.0 + core.env.random_f64());
    let seconds = lifetime.as_secs().max(1).to_string();
    let query = [
        ("watch", "true"),
        ("resourceVersion", &**revision),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", &*seconds),
    ];
    let body = match send(informer, part, "watch", informer.kind().form(), &query).await {
        Ok(body) => body,
        Err(end) => return end,
    };
    let mut stream = body.into_data_stream();
    let mut lines = Lines::default();
    loop {
        // Servers send bookmarks: a silent connection is dead.
        let chunk = match core.env.timeout(settings.watch_silence, stream.next()).await {
            Ok(Some(Ok(chunk))) => chunk,
            // However the connection ended: resume from the last revision.
            Ok(Some(Err(_)) | None) | Err(_) => return End::Closed,
        };
        lines.push(chunk);
        while let Some(line) = lines.next() {
            let line: wire::Line<'_> = match serde_json::from_slice(&line) {
                Ok(line) => line,
                Err(error) => return unreadable("watch", &error),
            };
            let raw = line.object.get().as_bytes();
            match &*line.r#type {
                "ADDED" | "MODIFIED" => informer.apply(part, |objects, events| {
                    let reached = take(informer, raw, false, false, objects, events);
                    let reached = reached.unwrap_or_else(|(_, revision)| revision);
                    objects.progress(reached);
                    if reached != 0 {
                        *revision = reached.to_string();
                    }
                }),
                "DELETED" => informer.apply(part, |objects, events| {
                    let Ok(head) = wire::head(raw) else { return };
                    let key = head.key();
                    informer.report_object(&key, None);
                    // If its last state cannot be decoded, the previous one is delivered.
                    let object = informer.codec.decode(raw).ok();
                    informer.codec.panics.forget(&informer.codec.site, |other| *other == key);
                    objects.forget_panics(|other| *other == key);
                    objects.delete(&key, head.revision(), object, events);
                    objects.progress(head.revision());
                    *revision = head.resource_version.into_owned();
                }),
                "BOOKMARK" => {
                    if let Ok(head) = wire::head(raw) {
                        informer.apply(part, |objects, _| objects.progress(head.revision()));
                        *revision = head.resource_version.into_owned();
                    }
                }
                "ERROR" => {
                    let status: Status = serde_json::from_slice(raw).unwrap_or_default();
                    return ended("watch", informer, part, status.code, status);
                }
                other => {
                    tracing::warn!(kind = %informer.kind(), r#type = other, "unknown watch event type")
                }
            }
        }
    }
}

/// Lists the metadata of all objects, and waits until they were delivered to handlers.
pub(super) async fn catch_up<K: Object>(informer: &Informer<K>) -> Result<(), Problem> {
    for (index, part) in informer.parts().iter().enumerate() {
        let mut listed = BTreeMap::new();
        let mut continue_token = String::new();
        let mut snapshot = 0;
        loop {
            let page = match get_page(informer, index, Form::Metadata, &continue_token).await {
                Ok(page) => page,
                Err(End::Failed(problem)) => return Err(problem),
                Err(End::Closed | End::Expired) => {
                    return Err(Problem::Failed { message: "the list was interrupted".to_owned() });
                }
            };
            let page: Page<'_> = match serde_json::from_slice(&page) {
                Ok(page) => page,
                Err(error) => return Err(Problem::Failed { message: error.to_string() }),
            };
            for item in page.items.as_deref().unwrap_or_default() {
                if let Ok(head) = wire::head(item.get().as_bytes()) {
                    listed.insert(head.key(), head.revision());
                }
            }
            snapshot = snapshot.max(wire::revision(&page.metadata.resource_version));
            if page.metadata.r#continue.is_empty() {
                break;
            }
            continue_token = page.metadata.r#continue;
        }
        let mut changes = informer.core.changes();
        loop {
            changes.borrow_and_update();
            let caught_up = is_delivered(informer, part, &listed, snapshot);
            if caught_up {
                break;
            }
            if changes.changed().await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Whether handlers have received at least these revisions, and the deletion of objects that are not listed.
fn is_delivered<K: Object>(
    informer: &Informer<K>,
    part: &Part<K>,
    listed: &BTreeMap<ObjectKey, u64>,
    snapshot: u64,
) -> bool {
    let objects = part.objects.read();
    if objects.revision() >= snapshot {
        return true;
    }
    let status = informer.status.borrow();
    let delivered = |key: &ObjectKey| objects.delivered_revision(key);
    listed.iter().all(|(key, revision)| {
        delivered(key).is_some_and(|delivered| delivered >= *revision) || status.undecodable.contains_key(key)
    }) && objects.delivered().all(|(key, _)| {
        listed.contains_key(key) || delivered(key).is_some_and(|delivered| delivered > snapshot)
    })
}

async fn get_page<K: Object>(
    informer: &Informer<K>,
    part: usize,
    form: Form,
    continue_token: &str,
) -> Result<Bytes, End> {
    let limit = informer.core.settings.page_size.to_string();
    let mut query = vec![("limit", &*limit)];
    if !continue_token.is_empty() {
        query.push(("continue", continue_token));
    }
    let body = send(informer, part, "list", form, &query).await?;
    let collected = informer.core.env.timeout(informer.core.settings.request_timeout, body.collect()).await;
    match collected {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) => Err(End::Failed(Problem::Failed { message: error.to_string() })),
        Err(_) => Err(End::Failed(Problem::Failed { message: "the list timed out".to_owned() })),
    }
}

async fn send<K: Object>(
    informer: &Informer<K>,
    part: usize,
    verb: &'static str,
    form: Form,
    query: &[(&str, &str)],
) -> Result<Body, End> {
    let uri = uri(informer, part, query);
    let accept = match (form, verb) {
        (Form::Full, _) => "application/json",
        (Form::Metadata, "list") => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        (Form::Metadata, _) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    };
    let failed = |message: String| End::Failed(Problem::Failed { message });
    let request = Request::get(uri)
        .header(header::ACCEPT, accept)
        .body(Body::empty())
        .map_err(|error| failed(error.to_string()))?;
    let sent = informer.core.send(request).await;
    let answer = sent.as_ref().ok().and_then(|sent| sent.as_ref().ok());
    informer.core.telemetry.answered(&http::Method::GET, answer);
    let response = match sent {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(failed(error_text(&error))),
        Err(_) => return Err(failed("the request timed out".to_owned())),
    };
    let code = response.status();
    if code == StatusCode::OK {
        return Ok(response.into_body());
    }
    // What cannot be read in time is not needed: the code tells what to do.
    let body =
        informer.core.env.timeout(informer.core.settings.request_timeout, response.into_body().collect());
    let body =
        body.await.ok().and_then(Result::ok).map(http_body_util::Collected::to_bytes).unwrap_or_default();
    Err(ended(verb, informer, part, code.as_u16(), wire::status(code.as_u16(), &body)))
}

fn uri<K: Object>(informer: &Informer<K>, part: usize, parameters: &[(&str, &str)]) -> String {
    let mut query = Query::of(informer.kind().path(informer.parts()[part].namespace.as_deref()));
    for (name, value) in parameters {
        query.add(name, value);
    }
    selectors(&mut query, informer.options.labels.as_ref(), informer.options.fields.as_ref());
    query.into_uri()
}

/// An error with its sources.
fn error_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = error.source();
    }
    text
}

fn unreadable(what: &str, error: &serde_json::Error) -> End {
    End::Failed(Problem::Failed { message: format!("the {what} cannot be read: {error}") })
}

/// Interprets an error of the server.
fn ended<K: Object>(
    verb: &'static str,
    informer: &Informer<K>,
    part: usize,
    code: u16,
    status: Status,
) -> End {
    let resource = informer.kind().resource();
    match code {
        410 => End::Expired,
        // A server restored from a backup rejects revisions that it has not reached yet.
        504 if status.details.as_ref().is_some_and(|details| {
            details.causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
        }) =>
        {
            End::Expired
        }
        404 => End::Failed(Problem::NotServed { resource: full_name(resource) }),
        401 | 403 => End::Failed(Problem::Forbidden {
            verb,
            resource: full_name(resource),
            namespace: informer.parts()[part].namespace.clone(),
            message: status.message,
        }),
        _ => End::Failed(Problem::Failed { message: format!("{verb}: {} ({code})", status.message) }),
    }
}

fn full_name(resource: &kube::api::ApiResource) -> String {
    if resource.group.is_empty() {
        format!("{} ({})", resource.plural, resource.version)
    } else {
        format!("{}.{} ({})", resource.plural, resource.group, resource.version)
    }
}
