//! One version of a custom resource, compiled from its definition.

use std::{
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, OnceLock},
};

use k1s_object::{
    columns::Columns,
    field::{At, quote},
    gvk::GroupVersion,
};
use k1s_schema::{CustomKind, CustomVersion, Structural, conversion::ReviewVersion, names};
use serde_json::Value;
use tokio::sync::watch;

use super::{Resource, RuleRun, Source, Subresource};
use crate::{cache::Fields, objectmeta::meta_text, request::Verb, stored::Stored, webhook::ClientConfig};

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

/// The served versions of an established definition.
pub(crate) fn compile(crd: &Value, stored: &Stored, replaced: &watch::Sender<u64>) -> Vec<Arc<Resource>> {
    if !names::is_true(crd, "Established") {
        return Vec::new();
    }
    // The bytes are shared with the cache; the schemas are compiled from them on first use.
    let stored = stored.clone();
    let kind = match CustomKind::compile_later(crd, move || serde_json::from_slice(stored.json()).ok()) {
        Ok(kind) => Arc::new(kind),
        Err(error) => {
            tracing::error!(definition = meta_text(crd, "name"), %error, "a definition cannot be compiled and is not served");
            return Vec::new();
        }
    };
    let stamps: Vec<u64> = kind.versions.iter().map(|version| stamp(crd, &version.name)).collect();
    let converter = converter(crd, &kind, &stamps);
    let terminating = !meta_text(crd, "deletionTimestamp").is_empty();
    let storage_place = kind.versions.iter().position(|version| version.storage).unwrap_or_default();
    // Discovery has no hash of a storage version that is not served.
    let storage = kind.storage().filter(|storage| storage.served);
    let storage_hash =
        storage.map(|storage| hash(&kind.group, &storage.name, &kind.kind)).unwrap_or_default();
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
                    converter: converter.clone(),
                }),
                empty: OnceLock::new(),
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

/// A hash of the schema. Objects stored with another stamp are pruned and defaulted when they are read.
fn stamp(crd: &Value, version: &str) -> u64 {
    let versions = crd["spec"]["versions"].as_array();
    let schema = versions.into_iter().flatten().find(|one| one["name"] == version).map(|one| &one["schema"]);
    let mut hasher = DefaultHasher::new();
    schema.map(ToString::to_string).hash(&mut hasher);
    // 0 is the stamp of objects without a schema.
    hasher.finish() | 1
}

/// The `storageVersionHash` of discovery.
fn hash(group: &str, version: &str, kind: &str) -> String {
    use base64::Engine as _;
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(format!("{group}/{version}/{kind}"));
    base64::engine::general_purpose::STANDARD.encode(digest.get(..8).unwrap_or_default())
}

/// One version of a custom resource.
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
    converter: Option<Arc<Converter>>,
}

/// A conversion webhook.
struct Converter {
    config: ClientConfig,
    id: u64,
}

fn converter(crd: &Value, kind: &CustomKind, stamps: &[u64]) -> Option<Arc<Converter>> {
    if !kind.webhook_conversion {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    stamps.hash(&mut hasher);
    crd["spec"]["conversion"].to_string().hash(&mut hasher);
    meta_text(crd, "uid").hash(&mut hasher);
    kind.preserve_unknown.hash(&mut hasher);
    let config = ClientConfig::of(kind.webhook_config.as_ref().unwrap_or(&Value::Null));
    Some(Arc::new(Converter { config, id: hasher.finish() }))
}

impl fmt::Debug for CustomResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomResource").field("kind", &self.kind.kind).finish_non_exhaustive()
    }
}

/// Why a document is not a custom resource.
pub(crate) enum Malformed {
    /// It has no kind. The document is unchanged.
    NoKind,
    /// Any other error.
    Other(String),
}

/// The message for a document without a kind.
pub(crate) fn no_kind(document: &str) -> String {
    format!("Object 'Kind' is missing in '{document}'")
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

    /// Changes to a value other than 0 when the definition is changed or deleted.
    pub(crate) fn replaced(&self) -> watch::Receiver<u64> {
        self.replaced.clone()
    }

    pub(crate) fn is_terminating(&self) -> bool {
        self.terminating
    }

    pub(crate) fn deprecation(&self) -> Option<String> {
        self.version().and_then(|version| version.warning.clone())
    }

    /// The paths that `/scale` reads and writes.
    pub(crate) fn scale(&self) -> Option<&k1s_schema::kind::ScalePaths> {
        self.version().and_then(|version| version.scale.as_ref())
    }

    /// All versions, with the paths of their `/scale`.
    pub(crate) fn scales(&self) -> impl Iterator<Item = (&str, Option<&k1s_schema::kind::ScalePaths>)> {
        self.kind.versions.iter().map(|version| (&*version.name, version.scale.as_ref()))
    }

    /// The schema of a version for server-side apply.
    pub(crate) fn apply_schema(&self, version: &str) -> Option<&k1s_schema::ApplySchema> {
        self.kind.version(version).map(|version| version.schema.apply())
    }

    /// Returns an error if only a webhook could convert the object: returning it unconverted would be wrong. Handlers convert
    /// objects before they read them ([`crate::conversion`]).
    pub(crate) fn check_conversion(&self, from: &str, to: &str) -> Result<(), String> {
        if !self.needs_webhook(from, to) {
            return Ok(());
        }
        let (group, kind) = (&self.kind.group, &self.kind.kind);
        let why = "the object was not converted";
        Err(format!("conversion webhook for {group}/{from}, Kind={kind} failed: {why} (to {group}/{to})"))
    }

    /// Whether only a webhook can convert an object from one version to another.
    pub(crate) fn needs_webhook(&self, from: &str, to: &str) -> bool {
        self.kind.webhook_conversion && from != to
    }

    /// Whether a webhook converts objects between versions.
    pub(crate) fn has_webhook(&self) -> bool {
        self.converter.is_some()
    }

    /// The webhook, and the version of its reviews.
    pub(crate) fn webhook(&self) -> Result<(&ClientConfig, ReviewVersion), String> {
        let converter = self.converter.as_ref().ok_or("the definition has no conversion webhook")?;
        let version = self.kind.review_version.ok_or("no supported conversion review versions")?;
        Ok((&converter.config, version))
    }

    /// Identifies the webhook and the schemas that its answers are pruned by.
    pub(crate) fn converter_id(&self) -> u64 {
        self.converter.as_ref().map_or(0, |converter| converter.id)
    }

    pub(crate) fn version_name(&self) -> &Arc<str> {
        static NONE: std::sync::LazyLock<Arc<str>> = std::sync::LazyLock::new(|| Arc::from(""));
        self.version().map_or(&NONE, |version| &version.name)
    }

    /// Prunes a converted object by the schema of this version.
    pub(crate) fn prune(&self, object: &mut Value) {
        if let Some(schema) = self.schema() {
            self.prune_stored(schema, object);
        }
    }

    /// Prunes and defaults an object by the schema of the version it was stored in, which may have changed since.
    pub(crate) fn refresh(&self, object: &mut Value, stored_version: &str) -> Result<(), String> {
        let stored = self.kind.version(stored_version).ok_or_else(|| {
            let group = &self.kind.group;
            format!("request to convert CR from an invalid group/version: {group}/{stored_version}")
        })?;
        self.prune_stored(&stored.schema, object);
        // An object that grows too large is converted without the remaining defaults.
        let _ = stored.schema.default(object);
        Ok(())
    }

    /// Converts an object stored with another schema to this version: applies the defaults of the version it was stored
    /// in, and prunes the fields that this version does not have.
    pub(crate) fn show(&self, object: &mut Value, stored_version: &str) {
        let stored = self.kind.version(stored_version).or_else(|| self.storage());
        if let Some(stored) = stored {
            self.prune_stored(&stored.schema, object);
            // An object that grows too large is returned without the remaining defaults.
            let _ = stored.schema.default(object);
        }
        if self.version().is_some_and(|version| *version.name != *stored_version)
            && let Some(schema) = self.schema()
        {
            self.prune_stored(schema, object);
        }
    }

    /// Converts an object of this version to the storage version.
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

    /// Prunes and defaults a document, unless it is of another kind. Adds pruned fields to `unknown`.
    pub(crate) fn prune_and_default(
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

    /// Prunes and defaults an object that a configuration was applied to.
    pub(crate) fn prune_and_default_applied(&self, object: &mut Value) -> Result<(), String> {
        if let Some(metadata) = object.get_mut("metadata") {
            k1s_schema::meta::coerce(metadata, k1s_schema::meta::Malformed::Refuse, &mut Vec::new())?;
        }
        let Some(schema) = self.schema() else { return Ok(()) };
        if !self.kind.preserve_unknown {
            schema.prune_applied(object).map_err(|error| error.to_string())?;
        }
        schema.set_defaults(object).map_err(|error| error.to_string())
    }

    pub(crate) fn prepare_create(&self, object: &mut Value) {
        if self.version().is_some_and(|version| version.has_status)
            && let Some(map) = object.as_object_mut()
        {
            map.shift_remove("status");
        }
    }

    /// Sets the default of a status that [`CustomResource::prepare_create`] may have removed.
    pub(crate) fn default_status(&self, object: &mut Value) {
        let status =
            |schema: &&Structural| schema.property("status").is_some_and(|one| one.default_value().is_some());
        if self.version().is_some_and(|version| version.has_status)
            && let Some(schema) = self.schema().filter(status)
        {
            // What is too large stays without its defaults.
            let _ = schema.default(object);
        }
    }

    pub(crate) fn prepare_update(&self, new: &mut Value, old: &Value) {
        if self.version().is_some_and(|version| version.has_status) {
            k1s_kinds::rules::keep_status(new, old);
        }
    }

    /// A write through `/status` changes only the status and `metadata.managedFields`.
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

    pub(crate) fn validate(&self, new: At<'_, '_>, old: Option<At<'_, '_>>, run: &RuleRun<'_>) {
        let check_scale = || {
            self.start(run);
            if let Some(scale) = self.scale() {
                scale.validate(new, true);
            }
        };
        match self.schema() {
            Some(schema) => schema.validate_with(new, old, run.work(), check_scale),
            None => check_scale(),
        }
    }

    /// Whether a rule uses `oldSelf`.
    pub(crate) fn compares_with_old(&self) -> bool {
        self.schema().is_some_and(Structural::compares_with_old)
    }

    fn start(&self, run: &RuleRun<'_>) {
        if self.schema().is_some_and(Structural::evaluates_rules) {
            run.start();
        }
    }

    pub(crate) fn validate_status(&self, new: At<'_, '_>, old: At<'_, '_>, run: &RuleRun<'_>) {
        let check_scale = || {
            self.start(run);
            if let Some(scale) = self.scale() {
                scale.validate(new, false);
            }
        };
        match self.schema() {
            Some(schema) => schema.validate_status_with(new, Some(old), run.work(), check_scale),
            None => check_scale(),
        }
    }

    /// The selectable fields without their leading dot: `spec.color`.
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

    /// The column definitions of tables.
    pub(crate) fn columns(&self) -> Value {
        self.columns.definitions().to_vec().into()
    }

    /// The cells of a row.
    pub(crate) fn cells(&self, object: &Value, now: k1s_object::time::Time) -> Vec<Value> {
        self.columns.cells(object, now)
    }
}
