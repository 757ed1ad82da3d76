//! Conversion of custom resources by their webhooks.
//!
//! A request in the version that objects are stored in never comes here for more than a look at a flag. In another version,
//! an object is converted once: to a [`Stored`] of that version, which every handler then treats like one that was stored so.
//! Conversions are made in batches, and remembered ([`crate::converted`]).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use k1s_object::Status;
use k1s_schema::conversion::{Review, gvk};
use k1s_store::Revision;
use serde_json::Value;

use crate::{
    cache::{Cache, Entry, Event, Snapshot},
    capacity::Charge,
    context::Cx,
    converted::{Key, Lookup, Ticket},
    errors, flow, managed,
    objectmeta::metadata_mut,
    resource::{CustomResource, Resource, Source},
    select::Scope,
    stored::{Stored, Unreadable},
};

/// How long a webhook may take, as in kube-apiserver.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum objects of a call.
const MAX_OBJECTS: usize = 500;
/// Maximum bytes of objects of a call, plus one object.
const MAX_BYTES: usize = 1 << 20;
/// Maximum conversions of one write for its field managers: each of their versions needs two.
const MAX_ROUNDS: usize = 200;

/// The custom resource of a request, if a webhook converts it.
fn converted_resource(resource: &Resource) -> Option<&CustomResource> {
    match &resource.source {
        Source::Custom(custom) if custom.has_webhook() => Some(custom),
        _ => None,
    }
}

/// An object in the version of the request.
pub(crate) async fn one(cx: &Cx, stored: Stored) -> Result<Stored, Status> {
    if !cx.resource.needs_webhook(&stored) {
        return Ok(stored);
    }
    let mut all = all(cx, vec![stored]).await?;
    all.pop().ok_or_else(|| Status::internal("a conversion without a result"))
}

/// Objects in the version of the request. Those that cannot be read stay as they are: whoever reads them reports them.
pub(crate) async fn all(cx: &Cx, items: Vec<Stored>) -> Result<Vec<Stored>, Status> {
    all_of(cx, &cx.resource, items).await
}

/// Objects of a resource, which need not be that of the request, in its version.
pub(crate) async fn all_of(
    cx: &Cx,
    resource: &Resource,
    mut items: Vec<Stored>,
) -> Result<Vec<Stored>, Status> {
    let Some(custom) = converted_resource(resource) else { return Ok(items) };
    let places: Vec<usize> =
        items.iter().enumerate().filter(|(_, item)| resource.needs_webhook(item)).map(|(at, _)| at).collect();
    let mut places = &*places;
    while !places.is_empty() {
        let mut bytes = 0;
        let fits = |at: &&usize| {
            let before = bytes;
            bytes += items.get(**at).map_or(0, Stored::len);
            before < MAX_BYTES
        };
        let count = places.iter().take(MAX_OBJECTS).take_while(fits).count().max(1);
        let (now, later) = places.split_at(count.min(places.len()));
        let sources: Vec<Stored> = now.iter().filter_map(|at| items.get(*at).cloned()).collect();
        let converted = batch(cx, (resource, custom), &sources).await?;
        for (at, converted) in now.iter().zip(converted) {
            if let Some(item) = items.get_mut(*at) {
                *item = converted;
            }
        }
        places = later;
    }
    Ok(items)
}

/// Reserves memory for objects that have to be converted: unlike those that are sent as they are stored, they are not in the
/// cache.
pub(crate) async fn room(cx: &Cx, resource: &Resource, items: &[Stored]) -> Result<Option<Charge>, Status> {
    if !resource.has_webhook() || !items.iter().any(|item| resource.needs_webhook(item)) {
        return Ok(None);
    }
    flow::room(cx, items).await.map(Some)
}

/// Converts the objects of one call. Those that another request is converting are waited for.
async fn batch(cx: &Cx, of: (&Resource, &CustomResource), sources: &[Stored]) -> Result<Vec<Stored>, Status> {
    let custom = of.1;
    let memory = &cx.tenant.shared.converted;
    let mut done: Vec<Option<Stored>> = vec![None; sources.len()];
    loop {
        let (mut mine, mut awaited) = (Vec::new(), Vec::new());
        for (at, source) in sources.iter().enumerate() {
            if done.get(at).is_some_and(Option::is_some) {
                continue;
            }
            let key = Key::new(custom.converter_id(), custom.version_name(), source.value());
            match memory.look_up(&key, source.value()) {
                Lookup::Found(value) => put(&mut done, at, with(&value, source)?),
                Lookup::Awaited(outcome) => awaited.push((at, outcome)),
                Lookup::Mine(ticket) => mine.push((at, ticket)),
            }
        }
        // Its own first: whoever waits for these waits for nothing else.
        make(cx, of, sources, mine, &mut done).await?;
        let mut again = false;
        for (at, mut outcome) in awaited {
            let outcome = outcome.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
            match (outcome, sources.get(at)) {
                (Some(Ok(value)), Some(source)) => put(&mut done, at, with(&value, source)?),
                (Some(Err(why)), _) => return Err(errors::unconvertible(why)),
                // The other request has given up.
                _ => again = true,
            }
        }
        if !again {
            let fill = |(done, source): (Option<Stored>, &Stored)| done.unwrap_or_else(|| source.clone());
            return Ok(done.into_iter().zip(sources).map(fill).collect());
        }
    }
}

fn put(done: &mut [Option<Stored>], at: usize, stored: Stored) {
    if let Some(place) = done.get_mut(at) {
        *place = Some(stored);
    }
}

/// The converted bytes as an object at the revision of its source.
fn with(value: &Bytes, source: &Stored) -> Result<Stored, Status> {
    Stored::written(value, source.revision)
}

/// Converts objects by a call.
async fn make(
    cx: &Cx,
    (resource, custom): (&Resource, &CustomResource),
    sources: &[Stored],
    mine: Vec<(usize, Ticket)>,
    done: &mut [Option<Stored>],
) -> Result<(), Status> {
    let (mut tickets, mut objects) = (Vec::new(), Vec::new());
    for (at, ticket) in mine {
        let Some(source) = sources.get(at) else { continue };
        match read(resource, custom, source) {
            Ok(object) => {
                tickets.push((at, ticket));
                objects.push(object);
            }
            Err(Unreadable::Unconvertible(why)) => return Err(errors::unconvertible(why)),
            Err(_) => put(done, at, source.clone()),
        }
    }
    if objects.is_empty() {
        return Ok(());
    }
    let converted = call(cx, custom, objects, &resource.api_version).await;
    let values = match converted {
        Ok(converted) => converted,
        Err(why) => {
            for (_, ticket) in tickets {
                ticket.finish(Err(why.clone()));
            }
            return Err(errors::unconvertible(why));
        }
    };
    for ((at, ticket), mut object) in tickets.into_iter().zip(values) {
        custom.prune(&mut object);
        let value = Stored::encode(&object, &resource.version, custom.stamp())?;
        if let Some(source) = sources.get(at) {
            put(done, at, with(&value, source)?);
        }
        ticket.finish(Ok(value));
    }
    Ok(())
}

/// An object as its converter gets it: in the version it is stored in, with the defaults of that version, without a
/// resourceVersion.
fn read(resource: &Resource, custom: &CustomResource, source: &Stored) -> Result<Value, Unreadable> {
    let from = format!("{}/{}", resource.group, source.version());
    let mut object = source.to_value(&resource.kind, &from)?;
    custom.refresh(&mut object, source.version()).map_err(Unreadable::Unconvertible)?;
    metadata_mut(&mut object).shift_remove("resourceVersion");
    Ok(object)
}

/// Calls the webhook. The error is a whole message.
async fn call(
    cx: &Cx,
    custom: &CustomResource,
    objects: Vec<Value>,
    desired: &str,
) -> Result<Vec<Value>, String> {
    let (config, version) = custom.webhook()?;
    let shared = &cx.tenant.shared;
    let uid = shared.env.uuid().to_string();
    let review = Review { version, uid: &uid, desired, objects: &objects };
    let of = objects.first().map(gvk).unwrap_or_default();
    let body = Bytes::from(review.body());
    let answered = {
        // A slow webhook must not occupy what other large requests are waiting for.
        let lent = cx.lend_turn();
        let answered = shared.caller.call(&cx.tenant.name, config, body, TIMEOUT).await;
        lent.take_back(cx).await.map_err(|status| status.message)?;
        answered
    };
    let answer = answered.map_err(|error| format!("conversion webhook for {of} failed: {error}"))?;
    review.answer(&answer.body).map_err(|why| format!("conversion webhook for {of}{why}"))
}

/// An object for the store, in two encodings: the one to store, and the one that the client gets, in the version of the
/// request.
pub(crate) struct Encoded {
    pub(crate) value: Bytes,
    pub(crate) shown: Bytes,
}

/// Encodes an object of the request's version. The response is converted before anything is stored, so that a converter that
/// fails loses nothing.
pub(crate) async fn encode(cx: &Cx, object: &Value) -> Result<Encoded, Status> {
    let custom = match converted_resource(&cx.resource) {
        Some(custom) if !custom.is_storage_version() => custom,
        _ => {
            let value = cx.resource.encode(object)?;
            return Ok(Encoded { shown: value.clone(), value });
        }
    };
    let storage = format!("{}/{}", cx.resource.group, custom.storage_version());
    let mut sent = object.clone();
    managed::expand(&mut sent);
    metadata_mut(&mut sent).shift_remove("resourceVersion");
    let converted = call(cx, custom, vec![sent], &storage).await.map_err(errors::unconvertible)?;
    let mut converted =
        converted.into_iter().next().ok_or_else(|| Status::internal("no converted object"))?;
    custom.to_storage(&mut converted);
    let value = Stored::encode(&converted, custom.storage_version(), custom.storage_stamp())?;
    let shown = one(cx, Stored::written(&value, Revision::FIRST)?).await?;
    Ok(Encoded { shown: shown.value().clone(), value })
}

/// The response to a dry run: the object as it would be read.
pub(crate) async fn dry_run(cx: &Cx, object: Value) -> Result<Value, Status> {
    match converted_resource(&cx.resource) {
        Some(custom) if !custom.is_storage_version() => {}
        _ => return Ok(object),
    }
    let revision = object["metadata"].get("resourceVersion").cloned();
    let shown = encode(cx, &object).await?.shown;
    let mut shown = cx.read(&Stored::written(&shown, Revision::FIRST)?)?;
    match revision {
        Some(revision) => metadata_mut(&mut shown).insert("resourceVersion".into(), revision),
        None => metadata_mut(&mut shown).shift_remove("resourceVersion"),
    };
    Ok(shown)
}

/// Computes something that may need objects in other versions for their field managers: again, until all are converted.
pub(crate) async fn with_managers<T: Send>(
    cx: &Cx,
    mut compute: impl FnMut() -> T + Send,
) -> Result<T, Status> {
    for _ in 0..MAX_ROUNDS {
        let outcome = compute();
        let wanted = cx.converted.take_wanted();
        if wanted.is_empty() {
            return Ok(outcome);
        }
        let Some(custom) = converted_resource(&cx.resource) else { return Ok(outcome) };
        drop(outcome);
        for wanted in wanted {
            let mut object = wanted.object.clone();
            cx.resource.set_missing_type(&mut object);
            managed::expand(&mut object);
            // kube-apiserver drops the managers here, and loses who owns what until everybody has written again.
            let converted =
                call(cx, custom, vec![object], &wanted.version).await.map_err(errors::unconvertible)?;
            let converted =
                converted.into_iter().next().ok_or_else(|| Status::internal("no converted object"))?;
            cx.converted.add(wanted, converted);
        }
    }
    Err(Status::internal("the managers of the object need too many conversions"))
}

/// An object in another version of its resource, for webhooks and policies that match requests for that version.
pub(crate) async fn to_version(
    cx: &Cx,
    resource: &Resource,
    object: Value,
    version: &str,
) -> Result<Value, Status> {
    match converted_resource(resource) {
        Some(custom) if resource.api_version != version => {
            let converted = call(cx, custom, vec![object], version).await.map_err(Status::internal)?;
            converted.into_iter().next().ok_or_else(|| Status::internal("no converted object"))
        }
        _ => managed::convert(resource, &object, version).map_err(Status::internal),
    }
}

/// Sets the managers of an object that is about to be created.
pub(crate) async fn tracked_create(cx: &Cx, mut object: Value) -> Result<Value, Status> {
    if converted_resource(&cx.resource).is_none() {
        managed::on_create(cx, &mut object);
        return Ok(object);
    }
    // Managers that the client sends may be of other versions.
    with_managers(cx, || {
        let mut object = object.clone();
        managed::on_create(cx, &mut object);
        object
    })
    .await
}

/// The objects of a snapshot in the version of the request, for selectors that look at more than their keys.
pub(crate) async fn snapshot(
    cx: &Cx,
    cache: &Cache,
    snapshot: Arc<Snapshot>,
    scope: &Scope,
) -> Result<(Arc<Snapshot>, Option<Charge>), Status> {
    let needs = |entry: &&Arc<Entry>| cx.resource.needs_webhook(&entry.stored);
    let entries = || snapshot.entries.under(&scope.prefix, b"").take(scope.max);
    if converted_resource(&cx.resource).is_none() || !entries().any(|entry| needs(&entry)) {
        return Ok((snapshot, None));
    }
    let found: Vec<Arc<Entry>> = entries().cloned().collect();
    let items: Vec<Stored> = found.iter().map(|entry| entry.stored.clone()).collect();
    let charge = flow::room(cx, &items).await?;
    let converted = self::entries(cx, cache, found).await?;
    let mut next = Snapshot::clone(&snapshot);
    for entry in converted {
        next.replace(entry);
    }
    Ok((Arc::new(next), Some(charge)))
}

/// Entries in the version of the request.
pub(crate) async fn entries(
    cx: &Cx,
    cache: &Cache,
    entries: Vec<Arc<Entry>>,
) -> Result<Vec<Arc<Entry>>, Status> {
    if !entries.iter().any(|entry| cx.resource.needs_webhook(&entry.stored)) {
        return Ok(entries);
    }
    let items = all(cx, entries.iter().map(|entry| entry.stored.clone()).collect()).await?;
    let again = |(entry, item): (Arc<Entry>, Stored)| match cx.resource.needs_webhook(&entry.stored) {
        true => cache.entry(entry.key.clone(), item.value(), item.revision).map_or(entry, Arc::new),
        false => entry,
    };
    Ok(entries.into_iter().zip(items).map(again).collect())
}

/// The events of a watch in the version of the request, without those of keys that it does not watch.
pub(crate) async fn events(
    cx: &Cx,
    cache: &Cache,
    events: Vec<Arc<Event>>,
    prefix: &[u8],
) -> Result<Vec<Arc<Event>>, Status> {
    if converted_resource(&cx.resource).is_none() {
        return Ok(events);
    }
    let of = |event: &Event| [event.old.clone(), event.new.clone()];
    let watched = |event: &&Arc<Event>| of(event).iter().flatten().any(|entry| entry.key.starts_with(prefix));
    let events: Vec<Arc<Event>> = events.iter().filter(watched).cloned().collect();
    let all: Vec<Arc<Entry>> = events.iter().flat_map(|event| of(event).into_iter().flatten()).collect();
    if !all.iter().any(|entry| cx.resource.needs_webhook(&entry.stored)) {
        return Ok(events);
    }
    let mut converted = self::entries(cx, cache, all).await?.into_iter();
    let mut next = |entry: &Option<Arc<Entry>>| entry.as_ref().and_then(|_| converted.next());
    Ok(events
        .iter()
        .map(|event| {
            let (old, new) = (next(&event.old), next(&event.new));
            Arc::new(Event::new(event.revision, old, new))
        })
        .collect())
}
