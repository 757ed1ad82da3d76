//! Create and update: prepare, admit, validate, store. All other writes use these.

mod preconditions;
mod same;
mod valid;

use std::collections::{BTreeSet, HashSet};

use bytes::Bytes;
use http::Response;
use k1s_object::{FieldError, Status, depth, field::quote, gvk::GroupVersion, meta};
use k1s_store::{Action, Error as StoreError, Op, Precondition, Revision, Txn};
use serde_json::{Map, Value};

pub(crate) use self::preconditions::uid_conflict;
use self::{
    preconditions::{check_revision, check_uid, nothing_has_uid, revision_number},
    same::same,
};
use crate::{
    admission::{self, Admission, Begin},
    authz,
    body::Body,
    context::Cx,
    controllers::{self, Change},
    conversion::{self, Encoded},
    errors::{self, AlreadyExists, Error},
    escalation,
    hooks::Operation,
    input, managed,
    objectmeta::{finalizers, is_gone, meta_text, metadata_mut},
    parts::{self, Part},
    request::Verb,
    resource::{Resource, Source},
    respond,
    stored::Stored,
    unenforced,
};

/// Sets the timestamps that the server manages.
fn stamp_times(cx: &Cx, new: &mut Value, old: Option<&Value>) {
    if let Some(rules) = cx.resource.rules() {
        (rules.stamp_times)(new, old, &crate::time::stamp(cx.tenant.env()));
    }
}

/// The result of a write.
pub(crate) enum Written {
    /// The object is in the store.
    Stored(Stored),
    /// The result of a dry run, or the last state of an object that the write removed.
    Value(Value),
}

impl Written {
    /// The object as the client sees it.
    pub(crate) fn value(&self, cx: &Cx) -> Result<Value, Error> {
        match self {
            Written::Stored(stored) => Ok(cx.read(stored)?),
            Written::Value(value) => Ok(value.clone()),
        }
    }

    /// The response to the request.
    pub(crate) fn respond(&self, cx: &Cx, code: u16) -> Result<Response<Body>, Error> {
        Ok(match self {
            Written::Stored(stored) => respond::stored(cx, code, stored)?,
            Written::Value(value) => respond::object(cx, code, value)?,
        })
    }
}

/// Checks that the namespace in the body matches that of the path.
pub(crate) fn check_namespace(cx: &Cx, object: &mut Value) -> Result<(), Error> {
    let sent = meta_text(object, "namespace");
    if cx.resource.namespaced {
        if !sent.is_empty() && sent != cx.namespace {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            )
            .into());
        }
        let namespace = cx.namespace.clone();
        metadata_mut(object).insert("namespace".into(), namespace.into());
    } else if !sent.is_empty() {
        // A namespace in the body of a cluster-scoped object is dropped.
        metadata_mut(object).shift_remove("namespace");
    }
    Ok(())
}

/// Checks that the name and namespace of a body match the path.
pub(crate) fn check_identity(cx: &Cx, object: &mut Value) -> Result<(), Error> {
    check_namespace(cx, object)?;
    match meta_text(object, "name") {
        "" => Err(no_name(cx).into()),
        name if name != cx.name => Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            cx.name
        ))
        .into()),
        _ => Ok(()),
    }
}

pub(crate) fn no_name(cx: &Cx) -> Status {
    Status::bad_request(format!(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        cx.name
    ))
}

/// Maximum names drawn for a generateName before the create fails with 409.
const NAME_ATTEMPTS: usize = 8;
/// Maximum retries of a create whose namespace, quotas, addresses or ports other writes changed; then 409.
const TAKEN_RETRIES: usize = 1000;
/// Maximum characters of a generateName that are kept: a suffix of five follows.
const MAX_GENERATED_BASE: usize = 58;

/// Creates an object, decoded and defaulted, in the namespace of the request.
pub(crate) async fn create(cx: &Cx, mut object: Value, dry_run: bool) -> Result<Written, Error> {
    let metadata = metadata_mut(&mut object);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        metadata.shift_remove(field);
    }
    dedupe_owners(cx, &mut object);
    admission::check_definition(cx, &object)?;
    let begin =
        Begin { operation: Operation::Create, part: Part::Main, dry_run, name: meta_text(&object, "name") };
    let mut admission = Admission::begin(cx, begin).await?;
    if admission.mutate(Some(&mut object), None).await? {
        dedupe_owners(cx, &mut object);
        if cx.name.is_empty() {
            check_namespace(cx, &mut object)?;
        } else {
            check_identity(cx, &mut object)?;
        }
    }
    // An attempt differs from the one before only in what has failed: what webhooks have allowed needs no second call.
    let identity =
        Identity { uid: cx.tenant.env().uuid().to_string(), created: crate::time::stamp(cx.tenant.env()) };
    let base = meta_text(&object, "generateName");
    let base: Option<String> = (meta_text(&object, "name").is_empty() && !base.is_empty())
        .then(|| base.chars().take(MAX_GENERATED_BASE).collect());
    let generate = |object: &mut Value| {
        if let Some(base) = &base {
            let name = format!("{base}{}", cx.tenant.env().name_suffix());
            metadata_mut(object).insert("name".into(), name.into());
        }
    };
    generate(&mut object);
    let mut names = if base.is_some() { NAME_ATTEMPTS } else { 1 };
    let version = meta_text(&object, "resourceVersion").to_owned();
    // What is prepared once is good for all attempts, unless it depends on the name, or an attempt reserves something for it.
    let mut original = (base.is_some() || admission::reserves(cx)).then(|| object.clone());
    prepare_create(cx, &mut object, &identity);
    let mut again = false;
    for _ in 0..TAKEN_RETRIES + NAME_ATTEMPTS {
        match create_once(cx, &mut admission, &mut object, &version, dry_run, again).await {
            Err(Error::AlreadyExists(_)) if names > 1 => {
                names -= 1;
                original.iter_mut().for_each(generate);
            }
            Err(Error::Taken) => again = true,
            other => return other,
        }
        if let Some(original) = &original {
            object = original.clone();
            prepare_create(cx, &mut object, &identity);
        }
    }
    let name = meta_text(&object, "name");
    let why =
        "the namespace, its quotas or the requested addresses and ports kept changing; please try again";
    Err(Status::conflict(&cx.resource.group, &cx.resource.plural, name, why).into())
}

/// What the server gives a new object.
struct Identity {
    uid: String,
    created: String,
}

/// The transaction with additional operations.
fn with(txn: Txn, ops: &[Op]) -> Txn {
    ops.iter().cloned().fold(txn, Txn::op)
}

/// Encodes an object and carries out the transaction that stores it. One that is too large for the store loses its managers,
/// as in kube-apiserver, unless they are what the request is about.
async fn store(
    cx: &Cx,
    object: &mut Value,
    txn: impl Fn(Bytes) -> Txn,
) -> Result<(Result<Revision, StoreError>, Bytes), Error> {
    let Encoded { value, shown } = conversion::encode(cx, object).await?;
    let written = cx.tenant.txn(txn(value)).await;
    let is_too_large = matches!(written, Err(StoreError::TooLarge { .. }));
    if !is_too_large || input::is_apply(cx) || metadata_mut(object).shift_remove("managedFields").is_none() {
        return Ok((written, shown));
    }
    let Encoded { value, shown } = conversion::encode(cx, object).await?;
    Ok((cx.tenant.txn(txn(value)).await, shown))
}

/// Drops what a client may not set, and sets what the server does. Preparing a prepared object again may change it: the selectors of
/// a pod would get the requirements of its `matchLabelKeys` twice.
fn prepare_create(cx: &Cx, object: &mut Value, identity: &Identity) {
    let resource = &*cx.resource;
    let metadata = metadata_mut(object);
    for field in ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        metadata.shift_remove(field);
    }
    metadata.insert("uid".into(), identity.uid.as_str().into());
    metadata.insert("creationTimestamp".into(), identity.created.as_str().into());
    if !resource.namespaced {
        // Validation rejects a namespace in a cluster-scoped object, but an empty one is allowed.
        metadata
            .retain(|key, value| key != "namespace" || value.as_str().is_some_and(|text| !text.is_empty()));
    }
    if resource.has_generation() {
        metadata.insert("generation".into(), 1.into());
    }
    resource.prepare_create(object);
    admission::prepared(cx, object);
    stamp_times(cx, object, None);
}

/// `version`: the resourceVersion that was sent. `again`: something that an attempt before relied on has changed.
async fn create_once(
    cx: &Cx,
    admission: &mut Admission<'_>,
    object: &mut Value,
    version: &str,
    dry_run: bool,
    again: bool,
) -> Result<Written, Error> {
    let resource = &*cx.resource;
    let mut ops: Vec<Op> = admission.namespace(object, again).await?.into_iter().collect();
    escalation::check_create(cx, object).await?;
    ops.extend(admission::reserve(cx, object, None).await?);
    let name = meta_text(object, "name").to_owned();
    let wrong_type = resource.type_errors(object);
    if !wrong_type.is_empty() {
        return Err(invalid(cx, object, &name, wrong_type).into());
    }
    valid::create(cx, object, &name).await?;
    warn(cx, Part::Main, object, None);
    ops.extend(admission.validate(Some(object), None, false).await?);
    if dry_run && !version.is_empty() {
        // A dry run has no store revision to replace it.
        metadata_mut(object).insert("resourceVersion".into(), version.into());
    }
    resource.default_status(object);
    resource.finish(object);
    resource.settle(object);
    resource.set_type(object);
    check_depth(cx, object, &name)?;
    let key = cx.tenant.key(resource, &cx.namespace, &name);
    let names_version = version.parse::<u64>().is_ok_and(|version| version != 0);
    if dry_run || names_version {
        return match cx.tenant.get(&key).await? {
            Some(stored) => Err(already_exists(cx, object, Some(&stored))),
            None if dry_run => {
                managed::expand(object);
                Ok(Written::Value(conversion::dry_run(cx, std::mem::take(object)).await?))
            }
            None => {
                Err(Status::new(500, "", "resourceVersion should not be set on objects to be created").into())
            }
        };
    }
    unenforced::warn(cx);
    // Checks come first: a deleted namespace is reported even if the object exists.
    let (checks, ops): (Vec<Op>, Vec<Op>) = ops.into_iter().partition(|op| op.action == Action::Check);
    let (written, shown) = store(cx, object, |value| {
        let checks = with(Txn::new(), &checks);
        with(checks.put(key.clone(), value, Precondition::Absent), &ops)
    })
    .await?;
    match written {
        Ok(revision) => {
            controllers::note(cx, object, Change::Created);
            Ok(Written::Stored(Stored::written(&shown, revision)?))
        }
        Err(StoreError::Conflict(conflict)) if conflict.key != key => Err(Error::Taken),
        Err(StoreError::Conflict(conflict)) => {
            let current = conflict.current.map(|current| Stored::new(&current.value, current.revision));
            Err(already_exists(cx, object, current.and_then(Result::ok).as_ref()))
        }
        Err(error) => Err(cx.tenant.refusal(error)),
    }
}

/// Rejects an object that is nested too deeply to be read again: defaults, patches and admission may have made it deeper
/// than the one sent. Managers are dropped if only they are too deep.
fn check_depth(cx: &Cx, object: &mut Value, name: &str) -> Result<(), Error> {
    let mut errors = depth::check(object);
    let deep_managers = managed::are_deep(object);
    if (deep_managers || !errors.is_empty())
        && metadata_mut(object).shift_remove("managedFields").is_some()
        && !errors.is_empty()
    {
        errors = depth::check(object);
    }
    if errors.is_empty() { Ok(()) } else { Err(invalid(cx, object, name, errors).into()) }
}

/// 409 for a create; `stored` is the existing object, if readable.
fn already_exists(cx: &Cx, object: &Value, stored: Option<&Stored>) -> Error {
    let metadata = stored.and_then(|stored| stored.metadata().ok());
    Error::AlreadyExists(Box::new(AlreadyExists {
        group: cx.resource.group.clone(),
        resource: cx.resource.plural.clone(),
        name: meta_text(object, "name").to_owned(),
        generated: stored.is_some() && !meta_text(object, "generateName").is_empty(),
        terminating: metadata
            .is_some_and(|metadata| metadata["deletionTimestamp"].as_str().is_some_and(|at| !at.is_empty())),
    }))
}

/// Removes duplicate owner references, with a warning.
fn dedupe_owners(cx: &Cx, object: &mut Value) {
    let Some(owners) = object.get_mut("metadata").and_then(|meta| meta.get_mut("ownerReferences")) else {
        return;
    };
    let Some(list) = owners.as_array_mut() else { return };
    let mut seen: HashSet<Value> = HashSet::new();
    let mut twice: BTreeSet<String> = BTreeSet::new();
    list.retain(|owner| {
        if seen.contains(owner) {
            twice.insert(owner["uid"].as_str().unwrap_or_default().to_owned());
            return false;
        }
        seen.insert(owner.clone());
        true
    });
    if !twice.is_empty() {
        let twice: Vec<String> = twice.into_iter().collect();
        cx.warn(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        ));
    }
}

/// Built-in kinds require domain-qualified finalizers or one of the few well-known names. Custom resources and the kinds
/// that extend the API do not.
fn check_finalizers(resource: &Resource, metadata: k1s_object::At<'_, '_>) {
    if !resource.is_custom() && !matches!(&*resource.group, "apiextensions.k8s.io" | "apiregistration.k8s.io")
    {
        meta::validate_kube_finalizers(metadata);
    }
}

/// Warns about new finalizers of custom resources that built-in kinds would reject.
fn finalizer_warnings(cx: &Cx, new: &Value, old: Option<&Value>) {
    let before: HashSet<&str> = old.map_or(&[][..], finalizers).iter().filter_map(Value::as_str).collect();
    let had = |finalizer: &str| before.contains(finalizer);
    let mut added: Vec<&str> =
        finalizers(new).iter().filter_map(Value::as_str).filter(|finalizer| !had(finalizer)).collect();
    added.sort_unstable();
    for finalizer in added {
        if !finalizer.contains('/') && !matches!(finalizer, "orphan" | "foregroundDeletion" | "kubernetes") {
            let with_path = if finalizer.contains('.') { " including a path (/)" } else { "" };
            cx.warn(format!(
                "metadata.finalizers: {}: prefer a domain-qualified finalizer name{with_path} to avoid accidental conflicts with other finalizer writers",
                quote(finalizer)
            ));
        }
    }
}

/// 422 with the kind in the object, which can be wrong for a custom resource. Duplicate errors are removed, except for
/// custom resources.
fn invalid(cx: &Cx, object: &Value, name: &str, errors: Vec<FieldError>) -> Status {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    if cx.resource.is_custom() {
        let group = GroupVersion::split(text("apiVersion")).group;
        return Status::invalid(group, text("kind"), name, &errors);
    }
    let mut unique = errors;
    let mut seen = HashSet::with_capacity(unique.len());
    unique.retain(|error| seen.insert((error.kind.reason(), error.to_string())));
    cx.invalid(name, &unique)
}

fn warn(cx: &Cx, part: Part, new: &Value, old: Option<&Value>) {
    // Controllers write these over and over, and Kubernetes has no warnings about them.
    if part == Part::Status && (cx.resource.is_custom() || matches!(&*cx.resource.group, "apps" | "batch")) {
        return;
    }
    let mut warnings = Vec::new();
    cx.resource.warnings(new, old, &mut warnings);
    for warning in warnings {
        cx.warn(warning);
    }
    if cx.resource.is_custom() {
        finalizer_warnings(cx, new, old);
    }
}

/// Computes the new object from the old one, which it also gets as it is stored. `None`: it stays as it is.
type Compute<'a> = dyn Fn(&Value, Option<&Stored>) -> Result<Option<Value>, Error> + Sync + 'a;

/// An update of the object of a request.
pub(crate) struct Update<'a> {
    pub(crate) part: Part,
    pub(crate) dry_run: bool,
    pub(crate) change: &'a Compute<'a>,
    /// Whether `metadata.uid` of the new object is a precondition (PUT) or an immutable field (PATCH).
    pub(crate) uid_is_precondition: bool,
    /// Whether the object is created if it does not exist.
    pub(crate) create: bool,
    /// Whether the owners of changed fields are still to be found. Otherwise `change` has set `metadata.managedFields`.
    pub(crate) track_owners: bool,
}

/// The outcome of an update.
pub(crate) struct Updated {
    pub(crate) written: Written,
    /// Whether the object did not exist before.
    pub(crate) created: bool,
    /// Whether the update removed the last finalizer of a terminating object, and thereby the object.
    pub(crate) removed: bool,
}

impl Updated {
    /// An update that neither created nor removed the object.
    fn of(written: Written) -> Updated {
        Updated { written, created: false, removed: false }
    }
}

/// Changes the object of the request on behalf of the server; `None` if it does not exist.
pub(crate) async fn change(
    cx: &Cx,
    change: &(dyn Fn(&Value) -> Result<Value, Error> + Sync),
) -> Result<Option<Written>, Error> {
    let update = Update {
        part: Part::Internal,
        dry_run: false,
        change: &|old, _| change(old).map(Some),
        uid_is_precondition: false,
        create: false,
        track_owners: false,
    };
    match self::update(cx, &update).await {
        Ok(updated) => Ok(Some(updated.written)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Maximum attempts of an update without a precondition that conflicts with other writes; then 409.
const UPDATE_ATTEMPTS: usize = 1000;

/// Updates the object of the request.
pub(crate) async fn update(cx: &Cx, update: &Update<'_>) -> Result<Updated, Error> {
    let key = cx.key();
    let mut admission = match update.part {
        Part::Internal => None,
        part => {
            let begin = Begin { operation: Operation::Update, part, dry_run: update.dry_run, name: &cx.name };
            Some(Admission::begin(cx, begin).await?)
        }
    };
    let mut current = cx.tenant.get(&key).await?;
    for _ in 0..UPDATE_ATTEMPTS {
        let Some(stored) = current else {
            if !update.create {
                return Err(cx.not_found());
            }
            let made = conversion::with_managers(cx, || (update.change)(&Value::Null, None)).await?;
            let mut object = made?.unwrap_or_default();
            authorize_create(cx).await?;
            // A missing object cannot match a UID precondition.
            let uid = meta_text(&object, "uid");
            if !uid.is_empty() {
                return Err(match update.uid_is_precondition {
                    true => uid_conflict(cx, uid, ""),
                    false => nothing_has_uid(cx, uid),
                }
                .into());
            }
            revision_number(meta_text(&object, "resourceVersion"))?;
            metadata_mut(&mut object).shift_remove("resourceVersion");
            if update.track_owners {
                object = conversion::tracked_create(cx, object).await?;
            }
            match create(cx, object, update.dry_run).await {
                Ok(written) => return Ok(Updated { written, created: true, removed: false }),
                // Another write has created it: this one updates it.
                Err(Error::AlreadyExists(_)) => {
                    current = cx.tenant.get(&key).await?;
                    continue;
                }
                Err(error) => return Err(error),
            }
        };
        if update.part != Part::Internal {
            cx.weigh(stored.len())?;
        }
        let shown = conversion::one(cx, stored.clone()).await?;
        let old = cx.read_to_write(&shown)?;
        let changed = conversion::with_managers(cx, || {
            let mut new = (update.change)(&old, Some(&stored))?;
            if let Some(new) = new.as_mut().filter(|_| update.track_owners) {
                managed::on_update(cx, &stored, &old, new);
            }
            Ok::<_, Error>(new)
        });
        let new = match changed.await?? {
            Some(new) => new,
            None if is_outdated(cx, &stored, &old) || is_stale(cx, &key).await? => old.clone(),
            None => {
                valid::unchanged(cx, update.part, &old).await?;
                warn(cx, update.part, &old, Some(&old));
                return Ok(Updated::of(Written::Stored(shown)));
            }
        };
        let before = Before { stored: &stored, shown: &shown, old: &old };
        match update_once(cx, update, admission.as_mut(), before, new).await? {
            Attempt::Done(updated) => return Ok(updated),
            Attempt::Again(newer) => current = newer,
        }
    }
    Err(modified(cx).into())
}

/// Checks that a user who may update may also create: an update that creates the object needs both.
async fn authorize_create(cx: &Cx) -> Result<(), Error> {
    let target = authz::Target::Resource {
        group: &cx.resource.group,
        resource: &cx.resource.plural,
        subresource: "",
        namespace: &cx.namespace,
        name: &cx.name,
    };
    let wanted = authz::Attributes::new(Verb::Create, target);
    Ok(authz::check(&*cx.tenant.shared.authorizer, Some(&cx.tenant), &cx.user, &wanted).await?)
}

enum Attempt {
    Done(Updated),
    /// Another write came first: the object as it is now.
    Again(Option<Stored>),
}

/// 409: another write came first.
pub(crate) fn modified(cx: &Cx) -> Status {
    errors::modified(&cx.resource.group, &cx.resource.plural, &cx.name)
}

/// The object before an update.
#[derive(Clone, Copy)]
struct Before<'a> {
    stored: &'a Stored,
    /// The same in the version of the request.
    shown: &'a Stored,
    old: &'a Value,
}

async fn update_once(
    cx: &Cx,
    update: &Update<'_>,
    mut admission: Option<&mut Admission<'_>>,
    Before { stored, shown, old }: Before<'_>,
    mut new: Value,
) -> Result<Attempt, Error> {
    let (resource, key) = (&*cx.resource, cx.key());
    check_uid(cx, update, &new, old)?;
    let conditional = check_revision(cx, update, &new, stored)?;
    keep_metadata(&mut new, old);
    dedupe_owners(cx, &mut new);
    if let Some(admission) = &mut admission
        && admission.mutate(Some(&mut new), Some(old)).await?
    {
        keep_metadata(&mut new, old);
        dedupe_owners(cx, &mut new);
    }
    // What webhooks add, the sender has to be allowed to grant.
    escalation::check_update(cx, &new, old).await?;
    let mut ops = match update.part {
        Part::Main => admission::reserve(cx, &mut new, Some(old)).await?,
        _ => Vec::new(),
    };
    let unchanged_generation = old["metadata"].get("generation").cloned();
    match unchanged_generation {
        Some(generation) => metadata_mut(&mut new).insert("generation".into(), generation),
        None => metadata_mut(&mut new).shift_remove("generation"),
    };
    match update.part {
        Part::Main => resource.prepare_update(&mut new, old),
        Part::Status => resource.prepare_status(&mut new, old),
        Part::Finalize | Part::Approval | Part::EphemeralContainers | Part::Resize => {
            parts::prepare(update.part, &mut new, old);
        }
        Part::Internal => {}
    }
    stamp_times(cx, &mut new, Some(old));
    let wrong_type = resource.type_errors(&new);
    if !wrong_type.is_empty() {
        return Err(invalid(cx, &new, &cx.name, wrong_type).into());
    }
    resource.finish(&mut new);
    resource.set_type(&mut new);
    if counts_generation(update.part) && resource.has_generation() && spec_differs(resource, &new, old) {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        metadata_mut(&mut new).insert("generation".into(), generation.into());
    }
    valid::update(cx, update.part, &new, old).await?;
    warn(cx, update.part, &new, Some(old));
    resource.settle(&mut new);
    check_depth(cx, &mut new, &cx.name)?;
    let unchanged = same(&new, old);
    if let Some(admission) = admission {
        ops.extend(admission.validate(Some(&new), Some(old), unchanged).await?);
    }
    if unchanged && !is_outdated(cx, stored, &new) && !is_stale(cx, &key).await? {
        return Ok(Attempt::Done(Updated::of(Written::Stored(shown.clone()))));
    }
    let gone = is_gone(&new);
    if update.dry_run {
        managed::expand(&mut new);
        let new = conversion::dry_run(cx, new).await?;
        return Ok(Attempt::Done(Updated::of(Written::Value(new))));
    }
    if update.part == Part::Main {
        unenforced::warn(cx);
    }
    // Removing the last finalizer of a terminating object removes the object.
    if gone {
        ops = admission::release(cx, old).await?;
    }
    let expected = Precondition::Revision(stored.revision);
    let (written, shown) = store(cx, &mut new, |value| {
        let txn = match gone {
            true => Txn::new().delete(key.clone(), expected),
            false => Txn::new().put(key.clone(), value, expected),
        };
        with(txn, &ops)
    })
    .await?;
    match written {
        Ok(revision) => {
            controllers::note(cx, &new, if gone { Change::Deleted } else { Change::Updated });
            let written = Written::Stored(Stored::written(&shown, revision)?);
            Ok(Attempt::Done(Updated { written, created: false, removed: gone }))
        }
        Err(StoreError::Conflict(conflict)) if conflict.key != key => {
            Ok(Attempt::Again(Some(stored.clone())))
        }
        Err(StoreError::Conflict(_)) if conditional => Err(modified(cx).into()),
        Err(StoreError::Conflict(conflict)) => {
            let current = conflict.current.map(|current| Stored::new(&current.value, current.revision));
            let current = current.transpose().map_err(|why| resource.unreadable(&cx.name, &why))?;
            Ok(Attempt::Again(current))
        }
        Err(error) => Err(cx.tenant.refusal(error)),
    }
}

/// Restores metadata that a client cannot remove by omitting it.
fn keep_metadata(new: &mut Value, old: &Value) {
    let metadata = metadata_mut(new);
    metadata.shift_remove("selfLink");
    if let Some(revision) = old["metadata"].get("resourceVersion") {
        metadata.insert("resourceVersion".into(), revision.clone());
    }
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let missing = metadata.get(field).is_none_or(|value| value.is_null() || value.as_str() == Some(""));
        if missing {
            match old["metadata"].get(field) {
                Some(kept) => metadata.insert(field.into(), kept.clone()),
                None => metadata.shift_remove(field),
            };
        }
    }
    match old["metadata"].get("creationTimestamp") {
        Some(kept) => metadata.insert("creationTimestamp".into(), kept.clone()),
        None => metadata.shift_remove("creationTimestamp"),
    };
}

fn counts_generation(part: Part) -> bool {
    !matches!(part, Part::Status | Part::Approval | Part::Internal)
}

/// Whether a change increments `metadata.generation`.
fn spec_differs(resource: &Resource, new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else { return false };
    let counts_status = resource.is_custom() && !resource.has_subresource("status");
    let counted =
        |key: &str| !matches!(key, "metadata" | "kind" | "apiVersion") && (counts_status || key != "status");
    let differs = new.iter().any(|(key, value)| counted(key) && old.get(key) != Some(value))
        || old.keys().any(|key| counted(key) && !new.contains_key(key));
    let annotations = |object: &Map<String, Value>| {
        object.get("metadata").and_then(|meta| meta.get("annotations")).cloned()
    };
    let counts_annotations = resource.rules().is_some_and(|rules| rules.annotations_in_generation);
    differs || (counts_annotations && annotations(new) != annotations(old))
}

/// Whether the store would store the object differently now, though it is the same: with another key of encryption. Only writes
/// that change nothing ask.
async fn is_stale(cx: &Cx, key: &[u8]) -> Result<bool, Error> {
    Ok(cx.tenant.store().is_stale(key).await.map_err(|error| errors::store(&error))?)
}

/// Whether the stored object has to be written again although nothing changes in it: it is stored in another version than
/// today's, or other fields and defaults of its version would be stored. So a storage migration is made of such writes.
fn is_outdated(cx: &Cx, stored: &Stored, new: &Value) -> bool {
    let Source::Custom(custom) = &cx.resource.source else { return false };
    if stored.version() != custom.storage_version() {
        return true;
    }
    if stored.stamp == custom.storage_stamp() {
        return false;
    }
    let unpruned = stored.to_write(&cx.resource.kind, &cx.resource.api_version);
    !custom.is_storage_version() || !unpruned.is_ok_and(|old| same(new, &old))
}
