//! Custom resources: the definitions a tenant serves, compiled, and what their versions do with objects.

use std::{
    collections::HashMap,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use k1s_object::{
    Status,
    columns::Columns,
    decode::Duplicate,
    field::At,
    field::quote,
    gvk::{GroupVersion, GroupVersionResource},
};
use k1s_schema::{CustomKind, CustomVersion, Structural, names};
use k1s_store::Revision;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    cache::{Entries, Fields, PATIENCE},
    context::{Cx, FieldValidation},
    documents::Fingerprint,
    input,
    request::Verb,
    resource::{Resource, Source, Subresource},
    shared_call::SharedCall,
    stored::Stored,
    tenant::Tenant,
    write::meta_text,
};

/// The custom resources that a tenant serves at one moment.
#[derive(Default)]
pub(crate) struct Served {
    /// The revision up to which these are the definitions.
    revision: AtomicU64,
    /// What they were made of.
    entries: Entries,
    definitions: HashMap<Bytes, Arc<Definition>>,
    /// The same in the order of their names.
    ordered: Vec<Arc<Definition>>,
    fingerprint: Fingerprint,
    resources: Vec<Arc<Resource>>,
}

impl Served {
    /// All versions of all kinds.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter()
    }

    /// The group versions there are with their definitions, in the order of the definitions' names.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = (&str, &str, &Arc<Definition>)> {
        self.ordered.iter().flat_map(|definition| {
            definition.resources.iter().map(move |one| (&*one.group, &*one.version, definition))
        })
    }

    /// What all of this is made of; zeros if there is nothing.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    fn find(&self, gvr: GroupVersionResource<&str>) -> Option<Arc<Resource>> {
        self.resources.iter().find(|resource| resource.gvr() == gvr).cloned()
    }
}

/// What documents about these definitions are made of.
pub(crate) fn fingerprint<'a>(definitions: impl Iterator<Item = &'a Arc<Definition>>) -> Fingerprint {
    use sha2::Digest as _;
    let mut hasher = sha2::Sha256::new();
    let mut none = true;
    for definition in definitions {
        hasher.update(definition.fingerprint);
        none = false;
    }
    if none { Fingerprint::default() } else { hasher.finalize().into() }
}

/// A definition, compiled.
pub(crate) struct Definition {
    revision: Revision,
    /// What its resources follow from, as a hash.
    identity: u64,
    /// What is published of it, as a hash that is the same wherever it is defined.
    fingerprint: Fingerprint,
    /// Its bytes, which lie in the cache anyway.
    pub(crate) stored: Stored,
    group: String,
    plural: String,
    resources: Vec<Arc<Resource>>,
    /// Tells watches when it was replaced or deleted.
    replaced: Arc<watch::Sender<u64>>,
}

/// The custom resources of a tenant, as they change.
#[derive(Default)]
pub(crate) struct Customs {
    served: ArcSwap<Served>,
    /// One at a time brings `served` up to date.
    renewing: Mutex<()>,
    /// Those who look for what is not served share a look at the store.
    looking: SharedCall<Result<(), Status>>,
}

/// Where definitions are served.
pub(crate) const DEFINITIONS: GroupVersionResource<&str> =
    GroupVersionResource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");

impl Customs {
    /// What is served now, as far as this process has heard.
    pub(crate) async fn current(&self, tenant: &Arc<Tenant>) -> Result<Arc<Served>, Status> {
        self.at(tenant, Revision::FIRST).await
    }

    /// What is served now, with a group that was just asked for.
    pub(crate) async fn fresh(&self, tenant: &Arc<Tenant>, group: &str) -> Result<Arc<Served>, Status> {
        let served = self.current(tenant).await?;
        if served.resources.iter().any(|resource| resource.group == group) {
            return Ok(served);
        }
        self.newest(tenant).await
    }

    /// What is served as of now: perhaps it was defined a moment ago, here or at another replica.
    async fn newest(&self, tenant: &Arc<Tenant>) -> Result<Arc<Served>, Status> {
        self.looking.call(|| async { self.reach(tenant, tenant.revision().await?).await }).await?;
        self.current(tenant).await
    }

    /// Waits until all definitions up to a revision are served.
    pub(crate) async fn reach(&self, tenant: &Arc<Tenant>, revision: Revision) -> Result<(), Status> {
        self.at(tenant, revision).await.map(|_| ())
    }

    /// The custom resource at a path.
    pub(crate) async fn find(
        &self,
        tenant: &Arc<Tenant>,
        gvr: GroupVersionResource<&str>,
    ) -> Result<Option<Arc<Resource>>, Status> {
        let found = self.current(tenant).await?.find(gvr);
        if found.is_some() {
            return Ok(found);
        }
        Ok(self.newest(tenant).await?.find(gvr))
    }

    async fn at(&self, tenant: &Arc<Tenant>, revision: Revision) -> Result<Arc<Served>, Status> {
        let Some(definitions) = tenant.shared.catalog.find(DEFINITIONS) else {
            return Ok(self.served.load_full());
        };
        let snapshot = tenant.cache(&definitions).at_least(revision, PATIENCE).await?;
        let _one = self.renewing.lock();
        let served = self.served.load_full();
        let revision = snapshot.revision.get();
        if served.revision.load(Ordering::Relaxed) >= revision {
            return Ok(served);
        }
        if served.entries.is_same(&snapshot.entries) {
            served.revision.store(revision, Ordering::Relaxed);
            return Ok(served);
        }
        let mut next = Served { entries: snapshot.entries.clone(), ..Served::default() };
        next.revision = AtomicU64::new(revision);
        for entry in snapshot.entries.iter() {
            let known = served.definitions.get(&entry.key);
            let definition = match known.filter(|known| known.revision == entry.stored.revision) {
                Some(known) => known.clone(),
                // One that cannot be read is not served, and does not keep others from being served.
                None => match definitions.read(&entry.stored) {
                    Ok(crd) => Arc::new(Definition::new(&crd, &entry.stored, known)),
                    Err(why) => {
                        tracing::error!(definition = entry.name(), %why, "a definition cannot be read and is not served");
                        continue;
                    }
                },
            };
            next.resources.extend(definition.resources.iter().cloned());
            next.ordered.push(definition.clone());
            next.definitions.insert(entry.key.clone(), definition);
        }
        next.fingerprint = fingerprint(next.ordered.iter().filter(|one| !one.resources.is_empty()));
        let next = Arc::new(next);
        self.served.store(next.clone());
        for (key, old) in &served.definitions {
            if next.definitions.get(key).is_none_or(|new| new.identity != old.identity) {
                // What can be selected on may have changed, and how stored objects are read.
                tenant.forget_caches(&old.group, &old.plural);
                old.replaced.send_replace(revision);
            }
        }
        Ok(next)
    }
}

impl Definition {
    /// What it serves of a group version.
    pub(crate) fn resources_of<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        self.resources.iter().filter(move |one| one.group == group && one.version == version)
    }

    /// Compiles a definition, which may be known from before.
    fn new(crd: &Value, stored: &Stored, known: Option<&Arc<Definition>>) -> Definition {
        let mut hasher = DefaultHasher::new();
        let (spec, names) = (crd["spec"].to_string(), crd["status"]["acceptedNames"].to_string());
        let established = names::is_true(crd, "Established");
        meta_text(crd, "uid").hash(&mut hasher);
        spec.hash(&mut hasher);
        names.hash(&mut hasher);
        established.hash(&mut hasher);
        let identity = hasher.finish();
        let fingerprint = {
            use sha2::Digest as _;
            sha2::Sha256::digest(format!("{}{spec}{}{names}{established}", spec.len(), names.len())).into()
        };
        let replaced = match known {
            Some(known) if known.identity == identity => known.replaced.clone(),
            _ => Arc::new(watch::Sender::new(0)),
        };
        Definition {
            revision: stored.revision,
            identity,
            fingerprint,
            stored: stored.clone(),
            group: text(&crd["spec"]["group"]).to_owned(),
            plural: text(&crd["spec"]["names"]["plural"]).to_owned(),
            resources: compile(crd, stored, &replaced),
            replaced,
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The verbs of every custom resource, in discovery's order.
const VERBS: [Verb<'static>; 8] = [
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];

/// The served versions of a definition that is established.
fn compile(crd: &Value, stored: &Stored, replaced: &watch::Sender<u64>) -> Vec<Arc<Resource>> {
    if !names::is_true(crd, "Established") {
        return Vec::new();
    }
    // The definition lies in the cache anyway: its schemas are made of these bytes when an object needs them.
    let stored = stored.clone();
    let kind = match CustomKind::compile_later(crd, move || serde_json::from_slice(stored.json()).ok()) {
        Ok(kind) => Arc::new(kind),
        Err(error) => {
            tracing::error!(definition = meta_text(crd, "name"), %error, "a definition cannot be served");
            return Vec::new();
        }
    };
    let terminating = !meta_text(crd, "deletionTimestamp").is_empty();
    let stamps: Vec<u64> = kind.versions.iter().map(|version| stamp(crd, &version.name)).collect();
    let storage_place = kind.versions.iter().position(|version| version.storage).unwrap_or_default();
    let storage_hash =
        kind.storage().map(|storage| hash(&kind.group, &storage.name, &kind.kind)).unwrap_or_default();
    kind.versions
        .iter()
        .enumerate()
        .filter(|(_, version)| version.served)
        .map(|(place, version)| {
            Arc::new(Resource {
                group: kind.group.to_string(),
                version: version.name.to_string(),
                api_version: GroupVersion::new(&*kind.group, &*version.name).to_string(),
                kind: kind.kind.to_string(),
                list_kind: kind.list_kind.to_string(),
                plural: kind.plural.to_string(),
                singular: kind.singular.to_string(),
                namespaced: kind.namespaced,
                short_names: kind.short_names.iter().map(ToString::to_string).collect(),
                categories: kind.categories.iter().map(ToString::to_string).collect(),
                verbs: VERBS.to_vec(),
                subresources: subresources(&kind, version),
                storage_hash: storage_hash.clone(),
                source: Source::Custom(CustomResource {
                    kind: kind.clone(),
                    place,
                    storage_place,
                    stamp: stamps.get(place).copied().unwrap_or_default(),
                    storage_stamp: stamps.get(storage_place).copied().unwrap_or_default(),
                    terminating,
                    replaced: replaced.subscribe(),
                    columns: Columns::new(printer_columns(crd, &version.name)),
                }),
            })
        })
        .collect()
}

fn printer_columns<'a>(crd: &'a Value, version: &str) -> Option<&'a Value> {
    let versions = crd["spec"]["versions"].as_array();
    versions.into_iter().flatten().find(|one| one["name"] == version)?.get("additionalPrinterColumns")
}

fn subresources(kind: &CustomKind, version: &CustomVersion) -> Vec<Subresource> {
    let verbs = vec![Verb::Get, Verb::Patch, Verb::Update];
    let mut subresources = Vec::new();
    if version.has_status {
        subresources.push(Subresource {
            name: "status",
            group: String::new(),
            version: String::new(),
            kind: kind.kind.to_string(),
            verbs: verbs.clone(),
        });
    }
    if version.scale.is_some() {
        subresources.push(Subresource {
            name: "scale",
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
            verbs,
        });
    }
    subresources
}

/// What tells one schema from another: an object with another stamp is looked at when it is read.
fn stamp(crd: &Value, version: &str) -> u64 {
    let versions = crd["spec"]["versions"].as_array();
    let schema = versions.into_iter().flatten().find(|one| one["name"] == version).map(|one| &one["schema"]);
    let mut hasher = DefaultHasher::new();
    schema.map(ToString::to_string).hash(&mut hasher);
    // 0 stands for objects that have no schema.
    hasher.finish() | 1
}

/// The storageVersionHash of discovery.
fn hash(group: &str, version: &str, kind: &str) -> String {
    use base64::Engine as _;
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(format!("{group}/{version}/{kind}"));
    base64::engine::general_purpose::STANDARD.encode(digest.get(..8).unwrap_or_default())
}

/// One version of a custom resource, and how it treats objects.
pub(crate) struct CustomResource {
    kind: Arc<CustomKind>,
    place: usize,
    storage_place: usize,
    stamp: u64,
    storage_stamp: u64,
    terminating: bool,
    /// Not 0: the revision at which the definition was changed or deleted.
    replaced: watch::Receiver<u64>,
    columns: Columns,
}

impl fmt::Debug for CustomResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomResource").field("kind", &self.kind.kind).finish_non_exhaustive()
    }
}

/// Why a document is no custom resource.
pub(crate) enum Malformed {
    /// It does not say what it is; nothing was done to it.
    NoKind,
    /// What else is wrong with it.
    Other(String),
}

/// What is said of a document without a kind.
pub(crate) fn no_kind(document: &str) -> String {
    format!("Object 'Kind' is missing in '{document}'")
}

fn handled(kind: &str, api_version: &str, expected: &str, why: &dyn fmt::Display) -> String {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    format!("{kind} in version {} cannot be handled as a {expected}: {why}", quote(version))
}

impl CustomResource {
    fn version(&self) -> Option<&CustomVersion> {
        self.kind.versions.get(self.place)
    }

    fn schema(&self) -> Option<&Structural> {
        self.version().map(|version| &*version.schema)
    }

    fn storage(&self) -> Option<&CustomVersion> {
        self.kind.versions.get(self.storage_place)
    }

    pub(crate) fn storage_version(&self) -> &str {
        self.storage().map_or("", |version| &version.name)
    }

    pub(crate) fn is_storage_version(&self) -> bool {
        self.place == self.storage_place
    }

    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    pub(crate) fn storage_stamp(&self) -> u64 {
        self.storage_stamp
    }

    /// Tells when objects are no longer read as this resource reads them: its value is no longer 0.
    pub(crate) fn replaced(&self) -> watch::Receiver<u64> {
        self.replaced.clone()
    }

    pub(crate) fn is_terminating(&self) -> bool {
        self.terminating
    }

    pub(crate) fn deprecation(&self) -> Option<String> {
        self.version().and_then(|version| version.warning.clone())
    }

    /// Where `/scale` reads and writes.
    pub(crate) fn scale(&self) -> Option<&k1s_schema::kind::ScalePaths> {
        self.version().and_then(|version| version.scale.as_ref())
    }

    /// Refuses what a webhook has to convert: nobody calls it, and an object that is shown as it is would be a wrong answer.
    /// The error is what is said of it.
    pub(crate) fn check_conversion(&self, from: &str, to: &str) -> Result<(), String> {
        if !self.needs_webhook(from, to) {
            return Ok(());
        }
        let (group, kind) = (&self.kind.group, &self.kind.kind);
        let why = "conversion webhooks are not called by this server";
        Err(format!("conversion webhook for {group}/{from}, Kind={kind} failed: {why} (to {group}/{to})"))
    }

    /// Whether only a webhook can bring an object from one version to another.
    pub(crate) fn needs_webhook(&self, from: &str, to: &str) -> bool {
        self.kind.webhook_conversion && from != to
    }

    /// An object that was stored by another schema, as this version shows it: with the defaults of the version it was
    /// stored in, and without the fields that this one does not know.
    pub(crate) fn show(&self, object: &mut Value, stored_version: &str) {
        let stored = self.kind.version(stored_version).or_else(|| self.storage());
        if let Some(stored) = stored {
            self.prune_stored(&stored.schema, object);
            // What is too large is shown without the rest of its defaults.
            let _ = stored.schema.default(object);
        }
        if self.version().is_some_and(|version| *version.name != *stored_version)
            && let Some(schema) = self.schema()
        {
            self.prune_stored(schema, object);
        }
    }

    /// An object of this version as it is stored.
    pub(crate) fn to_storage(&self, object: &mut Value) {
        if let Some(storage) = self.storage() {
            self.prune_stored(&storage.schema, object);
            let _ = storage.schema.default(object);
        }
    }

    fn prune_stored(&self, schema: &Structural, object: &mut Value) {
        if !self.kind.preserve_unknown {
            schema.prune_stored(object);
        }
    }

    /// An object that was sent: read, pruned, defaulted. Its kind may be another one; validation tells.
    pub(crate) fn decode(
        &self,
        cx: &Cx,
        mut object: Value,
        duplicates: &[Duplicate],
        validation: FieldValidation,
    ) -> Result<Value, Status> {
        let resource = &cx.resource;
        let api_version = text(&object["apiVersion"]).to_owned();
        let kind = text(&object["kind"]).to_owned();
        let mut unknown = Vec::new();
        self.admit(resource, &mut object, &mut unknown).map_err(|why| {
            Status::bad_request(match why {
                Malformed::NoKind => format!(
                    "the object provided is unrecognized (must be of type {}): {} ({})",
                    resource.kind,
                    no_kind(&String::from_utf8_lossy(&cx.body)),
                    input::summary(&cx.body, 30)
                ),
                Malformed::Other(why) => handled(&kind, &api_version, &resource.kind, &why),
            })
        })?;
        let mut complaints: Vec<String> = Vec::new();
        if validation != FieldValidation::Ignore {
            complaints.extend(
                duplicates.iter().map(|duplicate| format!("duplicate field {}", quote(&duplicate.path))),
            );
            complaints.extend(unknown);
        }
        input::report(cx, complaints, validation, &|why| {
            Status::bad_request(handled(&kind, &api_version, &resource.kind, why))
        })?;
        if api_version != resource.api_version {
            return Err(Status::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({})",
                resource.api_version
            )));
        }
        Ok(object)
    }

    /// Makes a document an object of this version, unless it says that it is of another kind.
    pub(crate) fn admit(
        &self,
        resource: &Resource,
        object: &mut Value,
        unknown: &mut Vec<String>,
    ) -> Result<(), Malformed> {
        let (kind, api_version) = (text(&object["kind"]), text(&object["apiVersion"]));
        if kind.is_empty() || api_version.matches('/').count() > 1 {
            return Err(Malformed::NoKind);
        }
        let own = kind == resource.kind && api_version == resource.api_version;
        if let Some(metadata) = object.get_mut("metadata") {
            let mut names = Vec::new();
            k1s_schema::meta::coerce(metadata, k1s_schema::meta::Malformed::Refuse, &mut names)
                .map_err(Malformed::Other)?;
            names.sort();
            unknown.extend(
                names.iter().map(|name| format!("unknown field {}", quote(&format!("metadata.{name}")))),
            );
        }
        let Some(schema) = self.schema().filter(|_| own) else { return Ok(()) };
        if !self.kind.preserve_unknown {
            let mut names = Vec::new();
            schema.prune(object, Some(&mut names)).map_err(|error| Malformed::Other(error.to_string()))?;
            unknown.extend(names.iter().map(|name| format!("unknown field {}", quote(name))));
        }
        schema.default(object).map_err(|error| Malformed::Other(error.to_string()))?;
        Ok(())
    }

    pub(crate) fn prepare_create(&self, object: &mut Value) {
        if self.version().is_some_and(|version| version.has_status)
            && let Some(map) = object.as_object_mut()
        {
            map.shift_remove("status");
        }
    }

    pub(crate) fn prepare_update(&self, new: &mut Value, old: &Value) {
        if self.version().is_some_and(|version| version.has_status) {
            k1s_kinds::rules::keep_status(new, old);
        }
    }

    /// A write through `/status` changes the status alone, and no metadata but what the server counts.
    pub(crate) fn prepare_status(&self, new: &mut Value, old: &Value) {
        let status = new.get("status").cloned();
        let managed = new["metadata"].get("managedFields").cloned();
        *new = old.clone();
        if let Some(map) = new.as_object_mut() {
            match status {
                Some(status) => map.insert("status".into(), status),
                None => map.shift_remove("status"),
            };
        }
        if let (Some(managed), Some(metadata)) = (managed, new["metadata"].as_object_mut()) {
            metadata.insert("managedFields".into(), managed);
        }
    }

    pub(crate) fn validate(&self, new: At<'_, '_>, old: Option<At<'_, '_>>) {
        if let Some(schema) = self.schema() {
            schema.validate(new, old);
        }
        if let Some(scale) = self.scale() {
            scale.validate(new, true);
        }
    }

    pub(crate) fn validate_status(&self, new: At<'_, '_>, old: At<'_, '_>) {
        if let Some(schema) = self.schema() {
            schema.validate_status(new, Some(old));
        }
        if let Some(scale) = self.scale() {
            scale.validate(new, false);
        }
    }

    /// `spec.color` of `.spec.color`
    pub(crate) fn selectable_fields(&self) -> impl Iterator<Item = &str> {
        self.version()
            .into_iter()
            .flat_map(|version| version.selectable.iter().map(|path| path.trim_start_matches('.')))
    }

    pub(crate) fn field_reader(&self) -> Fields {
        let paths: Vec<Vec<String>> =
            self.selectable_fields().map(|path| path.split('.').map(str::to_owned).collect()).collect();
        (!paths.is_empty()).then(|| {
            let read = move |object: &Value| {
                let read_one = |path: &Vec<String>| {
                    let found = path.iter().try_fold(object, |at, name| at.get(name));
                    match found {
                        Some(Value::String(text)) => text.clone(),
                        None | Some(Value::Null) => String::new(),
                        Some(other) => other.to_string(),
                    }
                };
                paths.iter().map(read_one).collect()
            };
            Arc::new(read) as Arc<dyn Fn(&Value) -> Vec<String> + Send + Sync>
        })
    }

    /// The columns of tables, as definitions.
    pub(crate) fn columns(&self) -> Value {
        self.columns.definitions().to_vec().into()
    }

    /// The cells of a row.
    pub(crate) fn cells(&self, object: &Value, now: k1s_object::time::Time) -> Vec<Value> {
        self.columns.cells(object, now)
    }
}
