//! DELETE of an object and of a collection.

use bytes::Bytes;
use http::Response;
use k1s_object::{FieldError, Status};
use k1s_schema::names::{Termination, set_terminating};
use k1s_store::{Error as StoreError, KeyValue, Precondition, Revision, Txn};
use serde_json::{Value, json};

use crate::{
    admission::{self, Admission, Begin},
    body::Body,
    context::{Cx, check_dry_run, invalid_options},
    controllers::{self, Change},
    conversion,
    errors::Error,
    hooks::Operation,
    input, lifecycle, managed,
    objectmeta::{finalizers, is_gone, meta_text, metadata_mut},
    parts::Part,
    read, respond,
    select::Selection,
    stored::Stored,
    write::modified,
};

/// The finalizer that keeps a definition until its objects are deleted.
const DEFINITION_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The propagation policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Dependents are deleted after the object.
    Background,
    /// Dependents are deleted before the object.
    Foreground,
    /// Dependents are kept.
    Orphan,
}

/// The options of a DELETE.
#[derive(Debug, Default)]
pub(crate) struct Options {
    policy: Option<Policy>,
    grace: Option<i64>,
    uid: Option<String>,
    revision: Option<String>,
    dry_run: bool,
    /// As they were sent, or made of the query.
    sent: Value,
    /// Whether the request names a collection: admission is not told the names of its objects.
    of_collection: bool,
}

impl Options {
    /// The options in the body of an eviction.
    pub(crate) fn of(body: &Value, dry_run: bool) -> Options {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Options {
            policy: None,
            grace: body["gracePeriodSeconds"].as_i64(),
            uid: text(&body["preconditions"]["uid"]),
            revision: text(&body["preconditions"]["resourceVersion"]),
            dry_run,
            sent: body.clone(),
            of_collection: false,
        }
    }
}

/// Reads `DeleteOptions` from the body or, without one, from the query.
pub(crate) fn options(cx: &Cx) -> Result<Options, Error> {
    let body = if cx.body.is_empty() {
        let mut body = json!({});
        if let Some(policy) = cx.query.find("propagationPolicy") {
            body["propagationPolicy"] = policy.into();
        }
        if let Some(orphan) = cx.query.find("orphanDependents") {
            body["orphanDependents"] = (!matches!(orphan, "false" | "0")).into();
        }
        if let Some(grace) = cx.query.number("gracePeriodSeconds")? {
            body["gracePeriodSeconds"] = grace.into();
        }
        let dry_run: Vec<&str> = cx.query.all("dryRun").collect();
        if !dry_run.is_empty() {
            body["dryRun"] = dry_run.into();
        }
        body
    } else {
        let ty = k1s_kinds::type_by_name("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")
            .ok_or_else(|| Status::internal("DeleteOptions is not in the table of types"))?;
        input::delete_options(cx, ty)?
    };
    let mut errors = Vec::new();
    let dry_run: Vec<&str> =
        body["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    check_dry_run(&dry_run, &mut errors);
    let mut policy = None;
    if let Some(text) = body["propagationPolicy"].as_str() {
        policy = match text {
            "Background" => Some(Policy::Background),
            "Foreground" => Some(Policy::Foreground),
            "Orphan" => Some(Policy::Orphan),
            other => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported("propagationPolicy", other, &supported));
                None
            }
        };
    }
    if let Some(orphan) = body["orphanDependents"].as_bool() {
        if let Some(text) = body["propagationPolicy"].as_str() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.insert(0, FieldError::invalid("propagationPolicy", text, why));
        }
        policy = Some(if orphan { Policy::Orphan } else { Policy::Background });
    }
    if !errors.is_empty() {
        return Err(invalid_options("DeleteOptions", &errors).into());
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Ok(Options {
        policy,
        grace: body["gracePeriodSeconds"].as_i64(),
        uid: text(&body["preconditions"]["uid"]),
        revision: text(&body["preconditions"]["resourceVersion"]),
        dry_run: !dry_run.is_empty(),
        sent: body,
        of_collection: false,
    })
}

/// The result of a DELETE, as an object for a write ([`Stored::to_write`]).
pub(crate) enum Deleted {
    /// The last state of an object that is deleted, would be (dry run), or cannot be converted.
    Gone(Value),
    /// The object waits for finalizers or its grace period.
    Marked(Value),
}

/// The answer with the last state of an object.
fn answer(cx: &Cx, mut object: Value) -> Result<Response<Body>, Error> {
    managed::expand(&mut object);
    Ok(respond::object(cx, 200, &object)?)
}

/// DELETE of one object.
pub(crate) async fn delete(cx: &Cx) -> Result<Response<Body>, Error> {
    let options = options(cx)?;
    let resource = &cx.resource;
    if let Some(refused) = admission::keeps(cx) {
        return Err(refused.into());
    }
    let orphans = resource.rules().is_some_and(|rules| rules.orphans_by_default);
    if orphans && options.policy.is_none() && resource.kind == "Job" {
        cx.warn(k1s_kinds::rules::batch::JOB_DELETE_WARNING);
    }
    match delete_object(cx, &options).await? {
        Deleted::Marked(object) => answer(cx, object),
        Deleted::Gone(object) if resource.rules().is_some_and(|rules| rules.delete_answers_object) => {
            answer(cx, object)
        }
        Deleted::Gone(object) => {
            let mut details = serde_json::Map::new();
            details.insert("name".into(), cx.name.as_str().into());
            if !resource.group.is_empty() {
                details.insert("group".into(), resource.group.as_str().into());
            }
            details.insert("kind".into(), resource.plural.as_str().into());
            details.insert("uid".into(), meta_text(&object, "uid").into());
            Ok(respond::success(cx, &Value::Object(details)))
        }
    }
}

/// Maximum attempts of a DELETE that conflicts with other writes; then 409. As many as a create has: every create in a namespace
/// changes its quotas, and a quota has to be deletable meanwhile.
const DELETE_ATTEMPTS: usize = 1000;

/// Deletes the object of the request.
pub(crate) async fn delete_object(cx: &Cx, options: &Options) -> Result<Deleted, Error> {
    let key = cx.key();
    // The entry that the last attempt conflicted with, which saves reading it.
    let mut current = None;
    for _ in 0..DELETE_ATTEMPTS {
        let entry = match current.take() {
            Some(entry) => entry,
            None => cx.tenant.store().get(&key, None).await?.entry.ok_or_else(|| cx.not_found())?,
        };
        if cx.subresource.is_empty() {
            cx.weigh(entry.value.len())?;
        }
        let read = Stored::new(&entry.value, entry.revision)
            .and_then(|stored| cx.resource.read_any_to_write(&stored).map(|old| (stored, old)));
        let Ok((stored, old)) = read else {
            match delete_unreadable(cx, options, &key, &entry).await? {
                Some(deleted) => return Ok(deleted),
                None => continue,
            }
        };
        check_preconditions(cx, options, &old, stored.revision)?;
        admit(cx, options, &old, false).await?;
        let (object, is_gone) = mark(cx, options, &old);
        if is_gone && options.dry_run {
            return Ok(Deleted::Gone(old));
        }
        let (mut old, mut revision) = (old, stored.revision);
        // Watchers of a pod see its grace period end before the pod is deleted. If the server is killed in between, the next
        // DELETE completes the deletion.
        if is_gone && is_pod(cx) && object != old {
            let value = cx.resource.encode(&object)?;
            revision = match cx.tenant.store().update(key.clone(), value, revision).await {
                Ok(revision) => revision,
                Err(StoreError::Conflict(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            old = object.clone();
            metadata_mut(&mut old).insert("resourceVersion".into(), revision.to_string().into());
        }
        let marked = (!is_gone).then_some(object);
        let converts = cx.resource.needs_webhook(&stored);
        let mut written = None;
        let outcome = match &marked {
            None => {
                let txn = Txn::new().delete(key.clone(), Precondition::Revision(revision));
                let txn = admission::release(cx, &old).await?.into_iter().fold(txn, Txn::op);
                cx.tenant.txn(txn).await
            }
            Some(object) if *object == old || options.dry_run => {
                let value = converts.then(|| cx.resource.encode_any(object, &stored)).transpose()?;
                let value = value.as_ref();
                return Ok(shown(cx, object.clone(), value, stored.revision).await);
            }
            Some(object) => {
                let value = cx.resource.encode_any(object, &stored)?;
                written = converts.then(|| value.clone());
                cx.tenant.update(key.clone(), value, stored.revision).await
            }
        };
        match (outcome, marked) {
            (Ok(_), None) => {
                lifecycle::after_delete(cx);
                controllers::note(cx, &old, Change::Deleted);
                return Ok(Deleted::Gone(old));
            }
            (Ok(revision), Some(mut object)) => {
                metadata_mut(&mut object).insert("resourceVersion".into(), revision.to_string().into());
                controllers::note(cx, &object, Change::Updated);
                return Ok(shown(cx, object, written.as_ref(), revision).await);
            }
            (Err(StoreError::Conflict(conflict)), _) => {
                current = conflict.current.filter(|_| conflict.key == key);
            }
            (Err(error), _) => return Err(cx.tenant.refusal(error)),
        }
    }
    Err(modified(cx).into())
}

/// An object that was marked. One that is stored in another version, as `value`, has to be converted; if that fails, it is
/// not returned, but a deletion never fails for it.
async fn shown(cx: &Cx, object: Value, value: Option<&Bytes>, revision: Revision) -> Deleted {
    let Some(value) = value else { return Deleted::Marked(object) };
    let converted = match Stored::written(value, revision) {
        Ok(stored) => conversion::one(cx, stored).await,
        Err(status) => Err(status),
    };
    match converted.and_then(|stored| cx.read_to_write(&stored)) {
        Ok(object) => Deleted::Marked(object),
        Err(status) => {
            cx.warn(format!("the object is being deleted; it cannot be shown: {}", status.message));
            Deleted::Gone(object)
        }
    }
}

fn is_kind(cx: &Cx, group: &str, kind: &str) -> bool {
    cx.resource.group == group && cx.resource.kind == kind
}

fn is_pod(cx: &Cx) -> bool {
    is_kind(cx, "", "Pod")
}

/// Deletes an unreadable object without waiting for finalizers. The objects of an unreadable definition stay in the store and
/// reappear when it is created again. `None`: the object was changed meanwhile.
async fn delete_unreadable(
    cx: &Cx,
    options: &Options,
    key: &Bytes,
    entry: &KeyValue,
) -> Result<Option<Deleted>, Error> {
    let (resource, revision) = (&cx.resource, entry.revision);
    let metadata = Stored::any_depth(&entry.value, revision).and_then(|stored| stored.metadata());
    let metadata = metadata.ok().filter(Value::is_object);
    let mut old = json!({"kind": resource.kind, "apiVersion": resource.api_version});
    old["metadata"] = metadata.unwrap_or_else(|| json!({}));
    metadata_mut(&mut old).insert("name".into(), cx.name.as_str().into());
    if resource.kind == "CustomResourceDefinition"
        && let Some((plural, group)) = cx.name.split_once('.')
    {
        old["spec"] = json!({"group": group, "names": {"plural": plural}});
    }
    check_preconditions(cx, options, &old, revision)?;
    admit(cx, options, &old, true).await?;
    cx.warn("the stored object could not be read; it was deleted without waiting for its finalizers");
    if options.dry_run {
        return Ok(Some(Deleted::Gone(old)));
    }
    tracing::warn!(key = %key.escape_ascii(), "an unreadable object was deleted");
    let txn = Txn::new().delete(key.clone(), Precondition::Revision(revision));
    match cx.tenant.txn(txn).await {
        Ok(_) => {
            lifecycle::after_delete(cx);
            controllers::note(cx, &old, Change::Deleted);
            Ok(Some(Deleted::Gone(old)))
        }
        Err(StoreError::Conflict(_)) => Ok(None),
        Err(error) => Err(cx.tenant.refusal(error)),
    }
}

/// Asks admission whether an object may be deleted. Webhooks and policies cannot be shown an unreadable one, which has to
/// remain deletable.
async fn admit(cx: &Cx, options: &Options, old: &Value, unreadable: bool) -> Result<(), Error> {
    let begin = Begin { operation: Operation::Delete, part: Part::Main, dry_run: options.dry_run, name: "" };
    let mut admission = match unreadable {
        true => Admission::begin_plain(cx, begin),
        false => Admission::begin(cx, begin).await?,
    };
    admission.attributes.delete_options = Some(&options.sent);
    if options.of_collection {
        admission.attributes.name.clear();
    }
    admission.mutate(None, Some(old)).await?;
    admission.validate(None, Some(old), false).await?;
    Ok(())
}

fn check_preconditions(cx: &Cx, options: &Options, old: &Value, revision: Revision) -> Result<(), Error> {
    let refuse = |why: String| Status::conflict(&cx.resource.group, &cx.resource.kind, &cx.name, why);
    let uid = meta_text(old, "uid");
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        let again = "The object might have been deleted and then recreated";
        return Err(refuse(format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). {again}"
        ))
        .into());
    }
    let revision = revision.to_string();
    if let Some(wanted) = options.revision.as_deref().filter(|wanted| *wanted != revision) {
        let again = "The object might have been modified";
        return Err(refuse(format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({revision}). {again}"
        )).into());
    }
    Ok(())
}

/// The object with its deletion metadata, and whether it can be removed at once.
fn mark(cx: &Cx, options: &Options, old: &Value) -> (Value, bool) {
    let mut object = old.clone();
    let wait = grace(cx, options, old);
    let finalizers_now = wanted_finalizers(cx, options, old);
    let marked_before = !meta_text(old, "deletionTimestamp").is_empty();
    let now = crate::time::now(cx.tenant.env());
    mark_kind(cx, &mut object);
    let metadata = metadata_mut(&mut object);
    if finalizers_now.is_empty() {
        metadata.shift_remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), finalizers_now.clone().into());
    }
    let old_grace = old["metadata"]["deletionGracePeriodSeconds"].as_i64();
    // A grace period can only be shortened.
    let wait = if marked_before { old_grace.map_or(wait, |old| old.min(wait)) } else { wait };
    if !marked_before || old_grace.is_some_and(|old| wait < old) {
        // A shortened period counts from the first deletion.
        let ends: Option<jiff::Timestamp> = meta_text(old, "deletionTimestamp").parse().ok();
        let (from, wait_from) = match ends.zip(old_grace).filter(|_| marked_before) {
            Some((ends, old_grace)) => (ends, wait.saturating_sub(old_grace)),
            None => (now, wait),
        };
        let at = from.checked_add(jiff::SignedDuration::from_secs(wait_from)).unwrap_or(now);
        metadata.insert("deletionTimestamp".into(), crate::time::format(at).into());
        if !matches!(&*cx.resource.kind, "Namespace" | "CustomResourceDefinition") {
            metadata.insert("deletionGracePeriodSeconds".into(), wait.into());
        }
        let counts = cx.resource.has_generation() && cx.resource.kind != "CustomResourceDefinition";
        if !marked_before && counts && (wait > 0 || !finalizers_now.is_empty() || is_pod(cx)) {
            let generation = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            metadata.insert("generation".into(), generation.into());
        }
    }
    let gone = is_gone(&object);
    (object, gone)
}

/// Deletion status that only some kinds have.
fn mark_kind(cx: &Cx, object: &mut Value) {
    if is_kind(cx, "", "Namespace") {
        object["status"]["phase"] = "Terminating".into();
    } else if is_kind(cx, "apiextensions.k8s.io", "CustomResourceDefinition")
        && meta_text(object, "deletionTimestamp").is_empty()
    {
        set_terminating(object, Termination::Pending, &crate::time::stamp(cx.tenant.env()));
    }
}

/// The grace period in seconds: only pods on a node have one.
fn grace(cx: &Cx, options: &Options, old: &Value) -> i64 {
    if !is_pod(cx) {
        return 0;
    }
    let phase = old["status"]["phase"].as_str().unwrap_or_default();
    if old["spec"]["nodeName"].as_str().unwrap_or_default().is_empty()
        || matches!(phase, "Succeeded" | "Failed")
    {
        return 0;
    }
    match options.grace.or_else(|| old["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(0) {
        negative if negative < 0 => 1,
        other => other,
    }
}

/// The finalizers with those of the propagation policy, in place of those of another policy.
fn wanted_finalizers(cx: &Cx, options: &Options, old: &Value) -> Vec<Value> {
    let has = |name: &str| finalizers(old).iter().any(|finalizer| finalizer == name);
    let default = cx.resource.rules().is_some_and(|rules| rules.orphans_by_default);
    let (mut orphan, mut foreground) = match options.policy {
        Some(Policy::Orphan) => (true, false),
        Some(Policy::Foreground) => (false, true),
        Some(Policy::Background) => (false, false),
        None if has("orphan") => (true, false),
        None if has("foregroundDeletion") => (false, true),
        None => (default, false),
    };
    if cx.resource.kind == "Namespace" {
        (orphan, foreground) = (has("orphan"), has("foregroundDeletion"));
    }
    let mut wanted: Vec<Value> = finalizers(old)
        .iter()
        .filter(|finalizer| match finalizer.as_str() {
            Some("orphan") => orphan,
            Some("foregroundDeletion") => foreground,
            _ => true,
        })
        .cloned()
        .collect();
    if cx.resource.kind == "CustomResourceDefinition" && cx.resource.group == "apiextensions.k8s.io" {
        let name = DEFINITION_FINALIZER;
        let marked_before = !meta_text(old, "deletionTimestamp").is_empty();
        if !marked_before && !wanted.iter().any(|finalizer| finalizer == name) {
            wanted.push(name.into());
        }
    }
    for (name, is_wanted) in [("orphan", orphan), ("foregroundDeletion", foreground)] {
        if is_wanted && !wanted.iter().any(|finalizer| finalizer == name) {
            wanted.push(name.into());
        }
    }
    wanted
}

/// DELETE of a collection. Returns the objects as they were before.
pub(crate) async fn delete_collection(cx: &Cx) -> Result<Response<Body>, Error> {
    let options = Options { of_collection: true, ..options(cx)? };
    let selection = Selection::parse(cx)?;
    let mut list = read::collect(cx, &selection).await?;
    // An object that cannot be converted is deleted nevertheless.
    if let Ok(items) = conversion::all(cx, list.items.clone()).await {
        list.items = items;
    }
    cx.weigh_list(&list.items)?;
    let charge = respond::afford(cx, &list).await?;
    let mut names: Vec<(String, String)> = Vec::with_capacity(list.items.len());
    for stored in &list.items {
        let metadata = stored.metadata().unwrap_or_default();
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        names.push((text("namespace"), text("name")));
    }
    if selection.is_everything() {
        let prefix = cx.tenant.keys(&cx.resource, "");
        for key in &list.unreadable {
            let rest = key.strip_prefix(prefix.as_bytes()).and_then(|rest| std::str::from_utf8(rest).ok());
            let rest = rest.unwrap_or_default();
            let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
            names.push((namespace.to_owned(), name.to_owned()));
        }
    }
    for (namespace, name) in names {
        let one = cx.for_object(&namespace, &name);
        let deleted = delete_object(&one, &options).await;
        for warning in one.warnings.into_inner() {
            cx.warn(warning);
        }
        match deleted {
            Ok(_) | Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if list.items.iter().any(|stored| cx.resource.needs_webhook(stored)) {
        return Ok(respond::success(cx, &json!({})));
    }
    Ok(respond::list(cx, list, charge)?)
}
