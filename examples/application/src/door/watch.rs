//! `GET /watch`: changes as server-sent events.
//!
//! `event:` is the type of the change, `id:` the resource version, `data:` the object. A client that reconnects with
//! `Last-Event-ID`, as browsers do, continues there.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use k1s::{
    BoxError, CancellationToken,
    controller::changes::{Changes, EventType, Filter, Position, Start, Step, Subscription},
    env::Env,
    server::Status,
};
use parking_lot::Mutex;

use super::respond::{Body, Parameters, typed};

const PARAMETERS: [&str; 6] = ["initial", "kinds", "namespace", "name", "label", "labelSelector"];

/// The clients that are connected, and their positions.
#[derive(Debug, Default)]
pub(super) struct Clients {
    inner: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    clients: BTreeMap<u64, (Position, CancellationToken)>,
    dropped: u64,
}

/// Removes the client when its connection is gone.
struct Connected {
    clients: Arc<Clients>,
    id: u64,
}

impl Clients {
    fn add(self: &Arc<Clients>, position: Position, connection: CancellationToken) -> Connected {
        let mut table = self.inner.lock();
        let id = table.next;
        table.next += 1;
        table.clients.insert(id, (position, connection));
        Connected { clients: self.clone(), id }
    }

    /// How many are connected, and how many were dropped because they were too slow.
    pub(super) fn count(&self) -> (usize, u64) {
        let table = self.inner.lock();
        (table.clients.len(), table.dropped)
    }

    /// Drops the connections of those that have fallen behind the ring: what they would read next is gone, and their
    /// connection may be stuck in a write.
    pub(super) async fn drop_slow(self: Arc<Clients>, changes: Changes) {
        let mut evictions = changes.evictions();
        while evictions.changed().await.is_ok() {
            let oldest = *evictions.borrow_and_update();
            let mut table = self.inner.lock();
            let lost: Vec<u64> = table
                .clients
                .iter()
                .filter(|(_, (position, _))| position.is_lost(oldest))
                .map(|(id, _)| *id)
                .collect();
            for id in lost {
                if let Some((_, connection)) = table.clients.remove(&id) {
                    connection.cancel();
                    table.dropped += 1;
                }
            }
        }
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.clients.inner.lock().clients.remove(&self.id);
    }
}

/// What a watch needs of the door.
pub(super) struct Context<'a> {
    pub(super) env: &'a Env,
    pub(super) changes: &'a Changes,
    pub(super) clients: &'a Arc<Clients>,
    pub(super) heartbeat: Duration,
    /// Closes the client's connection.
    pub(super) connection: &'a CancellationToken,
}

pub(super) fn answer(
    context: &Context<'_>,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response<Body>, Status> {
    let parameters = Parameters::parse(query, &PARAMETERS)?;
    let start = match headers.get("last-event-id").map(HeaderValue::to_str) {
        None | Some(Ok("")) if parameters.flag("initial", true)? => Start::Existing,
        None | Some(Ok("")) => Start::Now,
        Some(Ok(id)) if let Ok(revision) = id.parse() => Start::After(revision),
        Some(id) => {
            let id = id.unwrap_or("?");
            return Err(Status::bad_request(format!("Last-Event-ID: {id:?} is not a resource version")));
        }
    };
    let subscription = context.changes.subscribe(filter(&parameters, context.changes)?, start);
    let connected = context.clients.add(subscription.position(), context.connection.clone());
    let events = Events {
        subscription,
        env: context.env.clone(),
        heartbeat: context.heartbeat,
        parts: VecDeque::new(),
        _connected: connected,
    };
    let frames = stream::unfold(events, |mut events| async move {
        let part = events.next().await?;
        Some((Ok::<_, BoxError>(Frame::data(part)), events))
    });
    Ok(typed(StatusCode::OK, "text/event-stream", StreamBody::new(frames).boxed_unsync()))
}

fn filter(parameters: &Parameters, changes: &Changes) -> Result<Filter, Status> {
    // The first kind is the Application; what it owns is added on request.
    let mut kinds = BTreeSet::from([0]);
    for name in parameters.list("kinds") {
        kinds.insert(kind(changes, name)?);
    }
    let mut filter = Filter::default();
    if let Some(selector) = parameters.get("labelSelector").or_else(|| parameters.get("label")) {
        filter = filter.label_selector(selector).map_err(|error| Status::bad_request(error.to_string()))?;
    }
    filter.kinds = Some(kinds);
    filter.namespace = parameters.get("namespace").map(str::to_owned);
    filter.name = parameters.get("name").map(str::to_owned);
    Ok(filter)
}

/// A recorded kind by its name, singular or plural.
pub(super) fn kind(changes: &Changes, name: &str) -> Result<usize, Status> {
    let named = |resource: &kube::api::ApiResource| {
        name.eq_ignore_ascii_case(&resource.kind) || name.eq_ignore_ascii_case(&resource.plural)
    };
    changes.kinds().iter().position(|kind| named(kind.resource())).ok_or_else(|| {
        let known: Vec<&str> = changes.kinds().iter().map(|kind| kind.resource().kind.as_str()).collect();
        Status::bad_request(format!("unknown kind {name:?}: the kinds are {}", known.join(", ")))
    })
}

/// The name of a change, as in a watch of the API.
pub(super) fn name(event: EventType) -> &'static str {
    match event {
        EventType::Added => "ADDED",
        EventType::Modified => "MODIFIED",
        EventType::Deleted => "DELETED",
        EventType::Bookmark => "BOOKMARK",
    }
}

struct Events {
    subscription: Subscription,
    env: Env,
    heartbeat: Duration,
    /// The rest of an event. The object is a part of its own, and not copied: all clients share it.
    parts: VecDeque<Bytes>,
    _connected: Connected,
}

impl Events {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(part) = self.parts.pop_front() {
            return Some(part);
        }
        let step = tokio::select! {
            biased;
            step = self.subscription.next() => step?,
            // A comment, so that a connection which is gone is noticed at both ends.
            () = self.env.sleep(self.heartbeat) => return Some(Bytes::from_static(b": heartbeat\n\n")),
        };
        Some(match step {
            Step::Change(change) => {
                let (event, id) = (name(change.event), change.revision);
                self.parts.extend([change.object, Bytes::from_static(b"\n\n")]);
                format!("event: {event}\nid: {id}\ndata: ").into()
            }
            // Without an id: a client that is interrupted now has to start over again.
            Step::Resync => Bytes::from_static(
                b"event: RESYNC\ndata: {\"message\":\"changes were missed; the current objects follow, and others are gone\"}\n\n",
            ),
        })
    }
}
