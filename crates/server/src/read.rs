//! GET of an object and of a list.

use std::sync::Arc;

use base64::Engine as _;
use bytes::Bytes;
use http::Response;
use k1s_object::{FieldError, Status, field::quote};
use k1s_store::{Range, Revision};
use serde_json::{Value, json};

use crate::{
    body::Body,
    cache::{Cache, Entry, Snapshot},
    context::{Cx, invalid_options},
    conversion,
    errors::Error,
    respond::{self, List},
    select::{Scope, Selection},
    stored::Stored,
};

/// GET of one object.
pub(crate) async fn get(cx: &Cx) -> Result<Response<Body>, Error> {
    if crate::health::is_component_status(cx) {
        return Ok(crate::health::component_status(cx).await?);
    }
    // Every read is of the newest state, so a requested revision is only waited for.
    let wanted = cx.query.get("resourceVersion");
    let wanted: u64 = match wanted {
        "" => 0,
        text => text.parse().map_err(|_| bad_revision(text, true))?,
    };
    if wanted > 0 {
        wait_for(cx, Revision::new(wanted)).await?;
    }
    let key = cx.key();
    let found = match cached(cx, &key, Revision::new(wanted)) {
        Some(found) => found,
        None => cx.tenant.get(&key).await?,
    };
    let stored = found.ok_or_else(|| cx.not_found())?;
    let stored = conversion::one(cx, stored).await?;
    if !respond::goes_as_stored(cx, &stored) {
        cx.weigh(stored.len())?;
    }
    // Reading does not parse. Only a shared store can hold values that this server did not encode.
    if cx.tenant.store().is_shared() {
        stored.check().map_err(|why| cx.resource.unreadable(&cx.name, &why))?;
    }
    Ok(respond::stored(cx, 200, &stored)?)
}

/// The object under a key, from a cache that is known to have everything that was in the store when the request came, and what
/// is `wanted`.
fn cached(cx: &Cx, key: &Bytes, wanted: Revision) -> Option<Option<Stored>> {
    let snapshot = cx.tenant.started_cache(&cx.resource)?.settled_to(cx.newest?.max(wanted))?;
    match snapshot.entries.get(key) {
        // The store says why.
        None if snapshot.is_unreadable(key) => None,
        found => Some(found.map(|entry| entry.stored.clone())),
    }
}

/// Waits until the store has reached a revision that the client may know from another replica.
async fn wait_for(cx: &Cx, revision: Revision) -> Result<(), Status> {
    let current = cx.tenant.revision().await?;
    if current >= revision {
        return Ok(());
    }
    let cache = cx.tenant.cache(&cx.resource);
    cache.at_least(revision, cx.tenant.options().future_revision_patience).await.map(|_| ())
}

/// Kubernetes' error for a resourceVersion that is not a number: 500 for a GET, 400 for a list.
fn bad_revision(text: &str, get: bool) -> Status {
    let quoted = quote(text);
    let message = format!(
        "resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: invalid syntax"
    );
    if get {
        Status::new(500, "", message)
    } else {
        Status::bad_request(format!("invalid resource version: {message}"))
    }
}

/// The state that a list returns, by resourceVersion and resourceVersionMatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freshness {
    /// The newest.
    MostRecent,
    /// Whatever the cache has.
    Any,
    /// This revision or a newer one.
    NotOlderThan(Revision),
    /// This revision.
    Exact(Revision),
}

/// A list's options, after validation.
struct Options {
    freshness: Freshness,
    limit: usize,
    /// The key to begin at, for a page after the first.
    start: Option<Bytes>,
    /// Whether this is a page after the first: its 410 carries a token for the rest of the current state.
    is_continued: bool,
    /// Whether the token is older than [`TOKEN_LIFE`].
    expired: bool,
}

/// Maximum age of a continue token, in seconds, so that snapshots are not kept forever. Clients have to handle expiry:
/// kube-apiserver compacts the revision of a list after five to ten minutes.
const TOKEN_LIFE: i64 = 300;

fn options(cx: &Cx, prefix: &str) -> Result<Options, Status> {
    let query = &cx.query;
    let limit = query.number("limit")?.unwrap_or(0);
    if let Some(text) = query.find("timeoutSeconds").filter(|text| text.parse::<i64>().is_err()) {
        let quoted = quote(text);
        return Err(Status::bad_request(format!("strconv.ParseInt: parsing {quoted}: invalid syntax")));
    }
    let (version, matching, token) =
        (query.get("resourceVersion"), query.get("resourceVersionMatch"), query.get("continue"));
    let mut errors = Vec::new();
    if !matching.is_empty() {
        let field = "resourceVersionMatch";
        if version.is_empty() {
            errors.push(FieldError::forbidden(
                field,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !token.is_empty() {
            errors.push(FieldError::forbidden(
                field,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            errors.push(FieldError::not_supported(field, matching, &["Exact", "NotOlderThan", ""]));
        }
        if matching == "Exact" && version == "0" {
            errors.push(FieldError::forbidden(
                field,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
    }
    if query.find("sendInitialEvents").is_some() {
        errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    if !errors.is_empty() {
        return Err(invalid_options("ListOptions", &errors));
    }
    let number = match version {
        "" => None,
        text => Some(Revision::new(text.parse().map_err(|_| bad_revision(text, false))?)),
    };
    let mut limit = usize::try_from(limit).unwrap_or(0);
    if !token.is_empty() {
        let token = Continue::parse(token, prefix)?;
        if number.is_some_and(|number| number.get() != 0) {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        return Ok(Options {
            freshness: token.revision.map_or(Freshness::MostRecent, Freshness::Exact),
            limit,
            start: Some(token.start),
            is_continued: true,
            expired: token.revision.is_some()
                && token.issued.is_some_and(|issued| now(cx).saturating_sub(issued) > TOKEN_LIFE),
        });
    }
    let freshness = match (number, matching) {
        (None, _) => Freshness::MostRecent,
        (Some(number), _) if number.get() == 0 => {
            limit = 0;
            Freshness::Any
        }
        (Some(number), "Exact") => Freshness::Exact(number),
        (Some(number), "") if limit > 0 => Freshness::Exact(number),
        (Some(number), _) => Freshness::NotOlderThan(number),
    };
    Ok(Options { freshness, limit, start: None, is_continued: false, expired: false })
}

fn now(cx: &Cx) -> i64 {
    crate::time::now(cx.tenant.env()).as_second()
}

/// A continue token: the revision of the list, and the key where the next page begins.
struct Continue {
    revision: Option<Revision>,
    start: Bytes,
    /// When it was issued, in Unix seconds.
    issued: Option<i64>,
}

impl Continue {
    fn parse(token: &str, prefix: &str) -> Result<Continue, Status> {
        let bad = |why: String| {
            Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let raw = base64::engine::general_purpose::URL_SAFE_NO_PAD
            .decode(token.trim_end_matches('='))
            .map_err(|error| bad(format!("illegal base64 data at input byte {}", offset(&error, token))))?;
        let value: Value = serde_json::from_slice(&raw).map_err(|error| bad(error.to_string()))?;
        if value["v"] != "meta.k8s.io/v1" {
            let shown = value["v"].as_str().unwrap_or_default();
            return Err(bad(format!("server does not recognize this encoded version {shown}")));
        }
        let revision = match value["rv"].as_i64() {
            None | Some(0) => {
                return Err(bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)".into()));
            }
            Some(-1) => None,
            Some(number) => {
                Some(Revision::new(u64::try_from(number).map_err(|_| bad("negative revision".into()))?))
            }
        };
        let start = value["start"].as_str().unwrap_or_default();
        if start.is_empty() {
            return Err(bad("encoded start key empty (version meta.k8s.io/v1)".into()));
        }
        if start.split('/').any(|part| part == "..") {
            return Err(bad(format!("continue key is not valid: {start}")));
        }
        let start = format!("{prefix}{}", start.trim_start_matches('/')).into();
        Ok(Continue { revision, start, issued: value["issued"].as_i64() })
    }

    fn token(revision: i64, last: &[u8], prefix: &str, now: i64) -> String {
        let last = last.strip_prefix(prefix.as_bytes()).unwrap_or(last);
        let start = format!("{}\u{0}", String::from_utf8_lossy(last));
        let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start, "issued": now});
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token.to_string())
    }
}

/// The offset of a base64 error as Go counts it.
fn offset(error: &base64::DecodeError, token: &str) -> usize {
    match error {
        base64::DecodeError::InvalidByte(offset, _)
        | base64::DecodeError::InvalidLastSymbol { offset, .. } => *offset,
        _ => token.len(),
    }
}

/// GET of a list.
pub(crate) async fn list(cx: &Cx) -> Result<Response<Body>, Error> {
    if crate::health::is_component_status(cx) {
        return Ok(crate::health::component_statuses(cx).await?);
    }
    let selection = Selection::parse(cx)?;
    if cx.accepted.form == crate::negotiate::Form::Table {
        crate::table::include(cx)?;
    }
    let mut list = collect(cx, &selection).await?;
    let held = conversion::room(cx, &cx.resource, &list.items).await?;
    list.items = conversion::all(cx, list.items).await?;
    let charge = respond::afford(cx, &list).await?.or(held);
    warn_of_unreadable(cx, &list);
    Ok(respond::list(cx, list, charge)?)
}

/// Maximum number of unreadable objects that a warning names.
const MAX_NAMED: usize = 10;

/// Warns about the objects that a list leaves out.
fn warn_of_unreadable(cx: &Cx, list: &List) {
    if list.unreadable.is_empty() {
        return;
    }
    let prefix = cx.tenant.keys(&cx.resource, "");
    let names: Vec<String> = list
        .unreadable
        .iter()
        .take(MAX_NAMED)
        .map(|key| String::from_utf8_lossy(key.strip_prefix(prefix.as_bytes()).unwrap_or(key)).into_owned())
        .collect();
    let more = if list.unreadable.len() > MAX_NAMED { ", ..." } else { "" };
    cx.warn(format!(
        "{} of {} cannot be read from the storage and are left out; they can be deleted: {}{more}",
        list.unreadable.len(),
        cx.resource.plural,
        names.join(", ")
    ));
}

/// The objects of a list.
pub(crate) async fn collect(cx: &Cx, selection: &Selection) -> Result<List, Error> {
    let prefix = cx.tenant.keys(&cx.resource, &cx.namespace);
    let options = options(cx, &prefix)?;
    let cache = cx.tenant.cache(&cx.resource);
    let patience = cx.tenant.options().future_revision_patience;
    let expired = || expired(cx, options.start.as_deref(), &prefix);
    if options.expired {
        return Err(expired().into());
    }
    let snapshot = match options.freshness {
        Freshness::MostRecent => {
            let newest = match cx.newest {
                Some(newest) => newest,
                None => cx.tenant.revision().await?,
            };
            cache.at_least(newest, crate::cache::PATIENCE).await?
        }
        Freshness::Any => cache.at_least(Revision::FIRST, crate::cache::PATIENCE).await?,
        Freshness::NotOlderThan(revision) => {
            // The cache soon reaches a revision that the store has; a later one may never come.
            let patience =
                if cx.tenant.revision().await? >= revision { crate::cache::PATIENCE } else { patience };
            cache.at_least(revision, patience).await?
        }
        Freshness::Exact(revision) => match exact(cx, &cache, revision).await {
            Ok(snapshot) => snapshot,
            Err(Error::Expired(_)) if options.is_continued => return Err(expired().into()),
            Err(error) => return Err(error),
        },
    };
    let mut scope = selection.scope(cx, &prefix);
    let from = options.start.as_deref().unwrap_or_default();
    let left = snapshot.entries.count_under(&scope.prefix, from).min(scope.max);
    // A page costs what is looked at for it: at least the objects in it. How many selectors skip is only known when it is
    // full, so it is tried with as many as a small request may look at.
    cx.weigh_scan(if options.limit > 0 { left.min(options.limit) } else { left })?;
    scope.max = scope.max.min(cx.max_scan());
    let (shown, _held) = match selection.reads_objects() {
        true => conversion::snapshot(cx, &cache, snapshot.clone(), &scope).await?,
        false => (snapshot.clone(), None),
    };
    let list = page(&shown, &prefix, &options, (selection, &scope), now(cx));
    if list.continue_token.is_empty() && left > scope.max {
        cx.weigh_scan(left)?;
    }
    if !list.continue_token.is_empty() {
        cache.pin(snapshot);
    }
    Ok(list)
}

/// The snapshot at a revision: one that is pinned, one made from the current one by undoing events, or one read from the
/// store's history.
async fn exact(cx: &Cx, cache: &Cache, revision: Revision) -> Result<Arc<Snapshot>, Error> {
    if let Some(snapshot) = cache.pinned(revision) {
        return Ok(snapshot);
    }
    let patience = match cx.tenant.revision().await? < revision {
        true => cx.tenant.options().future_revision_patience,
        false => crate::cache::PATIENCE,
    };
    cache.at_least(revision, patience).await?;
    if let Some(snapshot) = cache.rewound(revision) {
        return Ok(snapshot);
    }
    let range = Range::prefix(cache.prefix().clone()).at(revision);
    let found = cx.tenant.store().range(range).await.map_err(|error| match error {
        k1s_store::Error::Compacted { .. } => Error::Expired(
            "The provided resource version is too old: the requested state is no longer available".into(),
        ),
        other => other.into(),
    })?;
    let mut snapshot = Snapshot::empty(revision);
    for kv in found.entries {
        snapshot.put(&kv.key, &kv.value, kv.revision, cache.fields());
    }
    Ok(Arc::new(snapshot))
}

/// 410 with a token for the rest of the current state.
fn expired(cx: &Cx, start: Option<&[u8]>, prefix: &str) -> Status {
    let message = "The provided continue parameter is too old to display a consistent list result. You can start a \
                   new list without the continue parameter, or use the continue token in this response to retrieve \
                   the remainder of the results. Continuing with the provided token results in an inconsistent list \
                   - objects that were created, modified, or deleted between the time the first chunk was returned \
                   and now may show up in the list.";
    let start = start.unwrap_or_default();
    let last = start.strip_suffix(b"\0").unwrap_or(start);
    let continue_token = Continue::token(-1, last, prefix, now(cx));
    Status { continue_token, ..Status::expired(message) }
}

/// One page of a snapshot.
fn page(
    snapshot: &Snapshot,
    prefix: &str,
    options: &Options,
    (selection, scope): (&Selection, &Scope),
    now: i64,
) -> List {
    let start = options.start.as_deref().unwrap_or_default();
    let looked_at = snapshot.entries.under(&scope.prefix, start).take(scope.max);
    let mut found = looked_at.filter(|entry| selection.matches(entry));
    let limit = if options.limit == 0 { usize::MAX } else { options.limit };
    let entries: Vec<&Arc<Entry>> = found.by_ref().take(limit).collect();
    let mut list = List {
        revision: snapshot.revision.get(),
        items: entries.iter().map(|entry| entry.stored.clone()).collect(),
        unreadable: snapshot.unreadable(prefix).cloned().collect(),
        continue_token: String::new(),
        remaining: None,
    };
    if let (true, Some(last), Some(_)) = (entries.len() == limit, entries.last(), found.next()) {
        let revision = i64::try_from(snapshot.revision.get()).unwrap_or(i64::MAX);
        list.continue_token = Continue::token(revision, &last.key, prefix, now);
        // With selectors there is no count, as in Kubernetes: it would require checking every object.
        if selection.is_everything() {
            list.remaining =
                Some(snapshot.entries.count_under(&scope.prefix, start).saturating_sub(entries.len()));
        }
    }
    list
}
