//! `metadata.managedFields` of Kubernetes objects.
//!
//! [`FieldManager`] does what kube-apiserver does before it stores an object: it finds out what a request changes, and who owns
//! the object's fields afterwards.

mod entry;
mod last_applied;
mod scale;

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};

use entry::Form;
pub use entry::{EntryError, decode, encode};
pub use scale::ScaleManagers;

use crate::{
    merge::{
        Changes, Conflicts, Filter, ManagerId, Managers, MergeError, Operation, Owned, Updater, Versions,
    },
    path::PathElement,
    schema::{Schema, TypeRef},
    set::FieldSet,
    typed::{Duplicates, NotNew, Typed, UNOWNED_METADATA},
};

/// The manager that owns what an object had before it was first applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The manager that owns what the oldest updaters owned.
const ANCIENT_CHANGES: &str = "ancient-changes";
/// Maximum updaters of an object; the oldest beyond that are merged.
const MAX_UPDATERS: usize = 10;

/// Why a configuration cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own fields that would change: 409.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The configuration is not one of this kind: 400.
    #[error("{0}")]
    BadRequest(String),
    /// A value that does not match its schema, or cannot be converted: 500 in kube-apiserver.
    #[error("{0}")]
    Failed(String),
}

impl From<MergeError> for ApplyError {
    fn from(error: MergeError) -> ApplyError {
        match error {
            MergeError::Conflicts(conflicts) => ApplyError::Conflicts(conflicts),
            MergeError::Failed(why) => ApplyError::Failed(why),
        }
    }
}

/// A kind that has one version.
#[derive(Debug, Clone, Copy)]
pub struct Single<'a> {
    version: &'a str,
    schema: &'a Schema,
    ty: TypeRef,
}

impl<'a> Single<'a> {
    /// A version, with its schema and the type of its objects.
    #[must_use]
    pub fn new(version: &'a str, schema: &'a Schema, ty: TypeRef) -> Single<'a> {
        Single { version, schema, ty }
    }
}

impl Versions for Single<'_> {
    fn schema(&self, version: &str) -> Option<(&Schema, TypeRef)> {
        (version == self.version).then_some((self.schema, self.ty))
    }

    fn convert(&self, object: &Value, _: &str) -> Result<Value, String> {
        Ok(object.clone())
    }
}

/// The result of an apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The object, with its managers.
    pub object: Value,
    /// Whether more than the managers has changed.
    pub changed: bool,
}

/// What managers own as it is stored, and which entry is the applier's.
struct Last<'v> {
    entries: &'v Value,
    texts: Vec<&'v str>,
    own: usize,
}

/// Keeps `metadata.managedFields` of the objects of a kind.
pub struct FieldManager<'a> {
    versions: &'a dyn Versions,
    version: &'a str,
    kind: &'a str,
    subresource: &'a str,
    now: &'a str,
    filter: Option<&'a Filter>,
    filter_all: bool,
    empty: Option<&'a Value>,
    schemas_are_unchanged: bool,
    objects_match: bool,
    form: Form,
}

impl fmt::Debug for FieldManager<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FieldManager")
            .field("version", &self.version)
            .field("kind", &self.kind)
            .field("subresource", &self.subresource)
            .finish_non_exhaustive()
    }
}

/// The entries of an object.
fn entries(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

fn metadata_text<'v>(object: &'v Value, name: &str) -> &'v str {
    object.get("metadata").and_then(|metadata| metadata.get(name)).and_then(Value::as_str).unwrap_or_default()
}

/// Replaces the entries of an object.
fn put_entries(object: &mut Value, entries: Value) {
    let Some(map) = object.as_object_mut() else { return };
    let metadata = map.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("managedFields".into(), entries);
    }
}

/// Replaces the entries of an object by those of its managers.
fn set_entries(object: &mut Value, managers: Managers, form: Form) {
    match entry::into_entries(managers, form) {
        Some(entries) => put_entries(object, entries),
        None => remove_entries(object),
    }
}

/// Removes the entries of an object, and returns them.
fn take_entries(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.shift_remove("managedFields")
}

fn remove_entries(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("managedFields");
    }
}

/// The set without what nobody owns.
fn strip(mut fields: FieldSet) -> FieldSet {
    let is = |element: &PathElement, names: &[&str]| match element {
        PathElement::Field(name) => names.contains(&&**name),
        _ => false,
    };
    fields.members.retain(|member| !is(member, &["apiVersion", "kind", "metadata"]));
    fields.children.retain_mut(|(element, child)| {
        if is(element, &["metadata"]) {
            child.members.retain(|member| !is(member, &UNOWNED_METADATA));
        }
        !child.is_empty()
    });
    fields
}

impl<'a> FieldManager<'a> {
    /// Manages objects of a kind that are written in a version. `now` is the time of the change in RFC 3339, without
    /// fractions of a second.
    pub fn new(
        versions: &'a dyn Versions,
        version: &'a str,
        kind: &'a str,
        now: &'a str,
    ) -> FieldManager<'a> {
        FieldManager {
            versions,
            version,
            kind,
            subresource: "",
            now,
            filter: None,
            filter_all: false,
            empty: None,
            schemas_are_unchanged: false,
            objects_match: false,
            form: Form::Object,
        }
    }

    /// Says that objects were decoded with the schema, so that an update need not check that they match it.
    #[must_use]
    pub fn objects_match_schema(self, objects_match: bool) -> FieldManager<'a> {
        FieldManager { objects_match, ..self }
    }

    /// Writes `fieldsV1` as a string that holds its JSON, and reads it in this form from live objects; requests have it as an
    /// object. A server that stores JSON copies the text, saves the many small maps, and most writes need not decode it.
    #[must_use]
    pub fn fields_as_json(self) -> FieldManager<'a> {
        FieldManager { form: Form::Json, ..self }
    }

    /// The subresource that is written.
    #[must_use]
    pub fn subresource(self, subresource: &'a str) -> FieldManager<'a> {
        FieldManager { subresource, ..self }
    }

    /// What can be owned by writing: a write resets everything else.
    #[must_use]
    pub fn filter(self, filter: Option<&'a Filter>) -> FieldManager<'a> {
        FieldManager { filter, ..self }
    }

    /// Whether a write resets the same in the kind's other versions: managers of these then keep such fields.
    #[must_use]
    pub fn filter_all_versions(self, all: bool) -> FieldManager<'a> {
        FieldManager { filter_all: all, ..self }
    }

    /// An object of the kind as a server encodes it when nothing is set. Without it, one with only kind and version.
    #[must_use]
    pub fn empty(self, empty: &'a Value) -> FieldManager<'a> {
        FieldManager { empty: Some(empty), ..self }
    }

    /// Says that the managers of the object were written with the schemas of today.
    #[must_use]
    pub fn schemas_are_unchanged(self, unchanged: bool) -> FieldManager<'a> {
        FieldManager { schemas_are_unchanged: unchanged, ..self }
    }

    fn updater(&self) -> Updater<'a> {
        let updater = Updater::new(self.versions).filter(self.filter).filter_all_versions(self.filter_all);
        if self.schemas_are_unchanged { updater.schemas_are_unchanged() } else { updater }
    }

    fn id(&self, name: &str, operation: Operation) -> ManagerId {
        ManagerId {
            name: if name.is_empty() { "unknown".to_owned() } else { name.to_owned() },
            operation,
            api_version: if operation == Operation::Update { self.version.to_owned() } else { String::new() },
            subresource: self.subresource.to_owned(),
        }
    }

    fn typed(&self, object: &'a Value) -> Result<Typed<'a>, String> {
        let Some((schema, ty)) = self.versions.schema(self.version) else {
            return Err(format!("no corresponding type for {}, Kind={}", self.version, self.kind));
        };
        Ok(Typed::new(object, schema, ty, self.version))
    }

    /// Sets the managers of `new`, with which `live` is replaced by anything but an apply. Without a live object, `live` is
    /// the empty one.
    ///
    /// What a client sent as `managedFields` counts if it can be read; an empty list makes an object forget its managers.
    /// An object that has none gets none, unless it is new. If owners cannot be computed, they stay.
    pub fn update(&self, live: &Value, new: &mut Value, name: &str) {
        let sent = take_entries(new);
        let before = entries(live);
        if sent.is_none()
            && before.is_none()
            && metadata_text(live, "uid").is_empty()
            && let Ok(entries) = self.created(live, new, name)
        {
            if let Some(entries) = entries {
                put_entries(new, entries);
            }
            return;
        }
        let forget = self.subresource.is_empty() && entry::is_reset(sent.as_ref());
        // Entries that come back unchanged need not be read.
        let is_kept = match (&sent, before) {
            (Some(sent), Some(before)) => entry::are_same(sent, before),
            (sent, before) => sent.as_ref() == before,
        };
        let known = !self.subresource.is_empty() || sent.is_none() || is_kept;
        let mut changes = None;
        if let Some(before) = before.filter(|_| known && !forget && self.schemas_are_unchanged) {
            changes = self.changes(live, new);
            if let Some(changes) = &changes
                && let Some(own) = self.repeated(changes, before, name)
            {
                let at = Some(own).filter(|_| !changes.written.is_empty());
                put_entries(new, self.touched(before, at));
                return;
            }
        }
        let managers = if forget {
            Managers::new()
        } else {
            match decode(sent.as_ref().filter(|_| !known)) {
                Ok(managers) if !managers.is_empty() => managers,
                _ => self.decode(before).unwrap_or_default(),
            }
        };
        match self.updated(live, new, changes, managers, name) {
            Ok(managers) => set_entries(new, managers, self.form),
            Err(_) => {
                if let Some(kept) = before {
                    put_entries(new, kept.clone());
                }
            }
        }
    }

    /// What changes from one object to another, as far as somebody can own it.
    fn changes(&self, live: &Value, new: &Value) -> Option<Changes> {
        let this = self.shorter();
        let (live, new) = (this.typed(live).ok()?, this.typed(new).ok()?);
        let Changes { removed, written } = this.updater().compare(&live, &new).ok()?;
        Some(Changes { removed: strip(removed), written: strip(written) })
    }

    /// The entry of a new object's only manager, if it has fields.
    fn created(&self, empty: &Value, new: &Value, name: &str) -> Result<Option<Value>, NotNew> {
        let excluded = match self.filter {
            Some(Filter::Exclude(excluded)) => Some(excluded),
            Some(Filter::Include(_)) => return Err(NotNew),
            None => None,
        };
        let this = self.shorter();
        let typed = |object| this.typed(object).map_err(|_| NotNew);
        let (empty, new) = (typed(empty)?, typed(new)?);
        if self.form != Form::Json || (!self.objects_match && new.validate(Duplicates::Allow).is_err()) {
            return Err(NotNew);
        }
        let Some(fields) = empty.created(&new, excluded)? else { return Ok(None) };
        let time = Some(self.now.to_owned());
        let owned = Owned { fields: FieldSet::new(), version: self.version.to_owned(), time };
        let entry = entry::entry(&self.id(name, Operation::Update), &owned, Value::String(fields));
        Ok(Some(Value::Array(vec![entry])))
    }

    /// Reads the entries of a live object.
    fn decode(&self, entries: Option<&Value>) -> Result<Managers, EntryError> {
        entry::decode_as(entries, self.form)
    }

    /// The entries with the time of one of them set to now.
    fn touched(&self, entries: &Value, at: Option<usize>) -> Value {
        let mut entries = entries.clone();
        if let Some(list) = entries.as_array_mut()
            && let Some(at) = at
        {
            if let Some(entry) = list.get_mut(at).and_then(Value::as_object_mut) {
                entry.insert("time".into(), self.now.into());
            }
            entry::sort(list);
        }
        entries
    }

    /// The `fieldsV1` of all entries as text, and the place of a manager's own entry. `None` if an entry is in another version
    /// or form.
    fn texts<'v>(&self, entries: &'v Value, id: &ManagerId) -> Option<(Vec<&'v str>, Option<usize>)> {
        let list = entries.as_array().filter(|list| !list.is_empty())?;
        let mut own = None;
        let mut texts = Vec::with_capacity(list.len());
        for (at, entry) in list.iter().enumerate() {
            let text = |field: &str| entry.get(field).and_then(Value::as_str);
            if text("apiVersion") != Some(self.version) {
                return None;
            }
            let is = |field: &str, value: &str| text(field).unwrap_or_default() == value;
            if is("operation", id.operation.name())
                && is("manager", &id.name)
                && is("subresource", &id.subresource)
            {
                own = Some(at);
            }
            texts.push(text("fieldsV1")?);
        }
        Some((texts, own))
    }

    /// The place of a manager's entry, if no field changes hands by its update, as by most: it writes what it owns already.
    /// Nothing is decoded.
    fn repeated(&self, changes: &Changes, entries: &Value, name: &str) -> Option<usize> {
        let (texts, own) = self.texts(entries, &self.id(name, Operation::Update))?;
        for (at, text) in texts.into_iter().enumerate() {
            let keeps = changes.removed.is_empty() || changes.removed.count_in_json(text)? == 0;
            let written = match changes.written.is_empty() {
                true => 0,
                false => changes.written.count_in_json(text)?,
            };
            let expected = if own == Some(at) { changes.written.len() } else { 0 };
            if !keeps || written != expected {
                return None;
            }
        }
        // Who writes nothing needs no entry.
        own.or(changes.written.is_empty().then_some(0))
    }

    fn updated(
        &self,
        live: &Value,
        new: &Value,
        changes: Option<Changes>,
        managers: Managers,
        name: &str,
    ) -> Result<Managers, MergeError> {
        if managers.is_empty() && !metadata_text(live, "uid").is_empty() {
            return Ok(managers);
        }
        self.track_update(live, new, changes, managers, name)
    }

    /// `changes`: if they are known already.
    fn track_update(
        &self,
        live: &Value,
        new: &Value,
        changes: Option<Changes>,
        mut managers: Managers,
        name: &str,
    ) -> Result<Managers, MergeError> {
        let this = self.shorter();
        let typed = |what: &str, object| {
            let failed = |why: String| {
                let object = self.describe(object);
                MergeError::Failed(format!("failed to convert {what} object ({object}) to smd typed: {why}"))
            };
            let typed = this.typed(object).map_err(failed)?;
            if !self.objects_match {
                typed.validate(Duplicates::Allow).map_err(|why| failed(why.to_string()))?;
            }
            Ok(typed)
        };
        let (new, live) = (typed("new", new)?, typed("live", live)?);
        let id = self.id(name, Operation::Update);
        let updater = this.updater();
        let changes = match changes {
            Some(changes) => changes,
            None => updater.compare(&live, &new)?,
        };
        let written = strip(updater.update_with(&live, &new, changes, &mut managers)?);
        if !written.is_empty() {
            let time = Some(self.now.to_owned());
            let fields = match managers.remove(&id) {
                Some(owned) => owned.fields.into_union(written),
                None => written,
            };
            managers.insert(id, Owned { fields, version: self.version.to_owned(), time });
        }
        cap(&mut managers);
        Ok(managers)
    }

    /// The same with a shorter lifetime, for values that live less long.
    fn shorter(&self) -> FieldManager<'_> {
        FieldManager { ..*self }
    }

    /// Applies a configuration. To create an object, `live` is the empty one.
    ///
    /// # Errors
    /// Conflicts, unless `force` is set; a configuration of another kind or version, or that does not match the schema.
    pub fn apply(
        &self,
        live: &Value,
        config: &Value,
        name: &str,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        self.check_type(config)?;
        let this = self.shorter();
        let mut known = None;
        if let Some(last) = self.last(live, name) {
            let pair = self.typed_for_apply(&this, live, config)?;
            if let Some(applied) = self.applied_again(&last, &pair, name)? {
                return Ok(applied);
            }
            known = Some(pair);
        }
        let mut managers = self
            .decode(entries(live))
            .map_err(|why| ApplyError::Failed(format!("failed to decode managed fields: {why}")))?;
        if managers.is_empty() {
            managers = self.before_first_apply(live)?;
        }
        let pair = match known {
            Some(pair) => pair,
            None => self.typed_for_apply(&this, live, config)?,
        };
        let before = (name == last_applied::KUBECTL).then(|| managers.clone());
        let mut result = self.apply_once(&pair, managers, name, force);
        if let Some(managers) = before
            && let Err(ApplyError::Conflicts(conflicts)) = &result
            && let Some(allowed) = self.last_applied_fields(live)
        {
            // Fields of a client-side apply that nobody has changed since belong to kubectl.
            let rest: Vec<_> =
                conflicts.0.iter().filter(|conflict| !allowed.has(&conflict.path.0)).cloned().collect();
            result = if rest.is_empty() {
                self.apply_once(&pair, managers, name, true)
            } else {
                Err(ApplyError::Conflicts(Conflicts(rest)))
            };
        }
        let (mut object, managers, changed) = result?;
        let mut changed = changed;
        if name == last_applied::KUBECTL {
            changed |= last_applied::refresh(&mut object, config);
        }
        set_entries(&mut object, managers, self.form);
        Ok(Applied { object, changed })
    }

    /// Whether a manager has applied this configuration before, and nothing would change if it applied it again, neither the
    /// object nor an owner. Where that is not easily seen, it is `false`: [`FieldManager::apply`] then tells.
    ///
    /// # Errors
    /// A configuration of another kind or version.
    pub fn is_applied(&self, live: &Value, config: &Value, name: &str) -> Result<bool, ApplyError> {
        self.check_type(config)?;
        let Some(before) = entries(live).filter(|_| self.schemas_are_unchanged) else { return Ok(false) };
        let Some((texts, Some(own))) = self.texts(before, &self.id(name, Operation::Apply)) else {
            return Ok(false);
        };
        let this = self.shorter();
        let (Ok(typed_live), Ok(typed_config)) = (this.typed(live), this.typed(config)) else {
            return Ok(false);
        };
        let refreshes = name == last_applied::KUBECTL && last_applied::annotation(live).is_some();
        if refreshes || entries(config).is_some() || !typed_live.holds(&typed_config) {
            return Ok(false);
        }
        let fields = strip(this.updater().fields(&typed_config)).to_fields_v1_json();
        Ok(texts.get(own).copied() == Some(&*fields))
    }

    /// What a manager has applied last, if the managers are those of today's schema and version.
    fn last<'v>(&self, live: &'v Value, name: &str) -> Option<Last<'v>> {
        let entries = entries(live).filter(|_| self.schemas_are_unchanged)?;
        let (texts, own) = self.texts(entries, &self.id(name, Operation::Apply))?;
        Some(Last { entries, texts, own: own? })
    }

    /// Applies a configuration of the same fields as the last one of this manager, if none of them changes hands: so do most
    /// controllers, over and over. Nothing is decoded or pruned.
    fn applied_again(
        &self,
        Last { entries, texts, own }: &Last<'_>,
        (live, config): &(Typed<'_>, Typed<'_>),
        name: &str,
    ) -> Result<Option<Applied>, ApplyError> {
        let updater = self.updater();
        if texts.get(*own).copied() != Some(&*strip(updater.fields(config)).to_fields_v1_json()) {
            return Ok(None);
        }
        let new = updater.merge(live, config)?;
        // Whoever is alone takes nothing from others, whatever has changed.
        if let Some(new) = new.as_ref().filter(|_| texts.len() > 1) {
            let changes = updater.compare(live, new)?;
            let taken = |(at, text): (usize, &&str)| {
                at != *own && changes.written.count_in_json(text).is_none_or(|hits| hits > 0)
            };
            if !changes.removed.is_empty() || texts.iter().enumerate().any(taken) {
                return Ok(None);
            }
        }
        let mut changed = new.is_some();
        let entries = self.touched(entries, changed.then_some(*own));
        let mut object = new.map_or_else(|| live.value.clone().into_owned(), |new| new.value.into_owned());
        if name == last_applied::KUBECTL {
            changed |= last_applied::refresh(&mut object, &config.value);
        }
        put_entries(&mut object, entries);
        Ok(Some(Applied { object, changed }))
    }

    /// The live object and a configuration, checked.
    fn typed_for_apply<'t>(
        &self,
        this: &FieldManager<'t>,
        live: &'t Value,
        config: &'t Value,
    ) -> Result<(Typed<'t>, Typed<'t>), ApplyError> {
        let typed_config = this.typed(config).map_err(ApplyError::Failed)?;
        typed_config.validate(Duplicates::Refuse).map_err(|why| {
            let what = self.describe(config);
            ApplyError::Failed(format!("failed to create typed patch object ({what}): {why}"))
        })?;
        let typed_live = this.typed(live).map_err(ApplyError::Failed)?;
        if !self.objects_match {
            typed_live.validate(Duplicates::Allow).map_err(|why| {
                let what = self.describe(live);
                ApplyError::Failed(format!("failed to create typed live object ({what}): {why}"))
            })?;
        }
        Ok((typed_live, typed_config))
    }

    fn check_type(&self, config: &Value) -> Result<(), ApplyError> {
        let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        if version != self.version || kind != self.kind {
            let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
            let why = format!("invalid object type: {group}/{version}, Kind={kind}");
            return Err(ApplyError::BadRequest(why));
        }
        match entries(config) {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned())),
        }
    }

    /// The managers of an object that has none: one owns all that is there.
    fn before_first_apply(&self, live: &Value) -> Result<Managers, ApplyError> {
        let nothing;
        let empty = match self.empty {
            Some(empty) => empty,
            None => {
                nothing = serde_json::json!({"apiVersion": self.version, "kind": self.kind});
                &nothing
            }
        };
        let unmanaged;
        let before = if entries(live).is_some() {
            unmanaged = without_entries(live);
            &unmanaged
        } else {
            live
        };
        self.track_update(empty, before, None, Managers::new(), BEFORE_FIRST_APPLY)
            .map_err(|why| ApplyError::Failed(format!("failed to create manager for existing fields: {why}")))
    }

    fn apply_once(
        &self,
        (live, config): &(Typed<'_>, Typed<'_>),
        mut managers: Managers,
        name: &str,
        force: bool,
    ) -> Result<(Value, Managers, bool), ApplyError> {
        let id = self.id(name, Operation::Apply);
        // Managers may be those of an older schema, also where updates need not care.
        let updater = Updater::new(self.versions).filter(self.filter).filter_all_versions(self.filter_all);
        let new = updater.apply(live, config, &mut managers, &id, force)?;
        if let Some(owned) = managers.get_mut(&id) {
            owned.fields = strip(std::mem::take(&mut owned.fields));
            if owned.fields.is_empty() {
                managers.remove(&id);
            }
        }
        match new {
            Some(new) => {
                if let Some(owned) = managers.get_mut(&id) {
                    owned.time = Some(self.now.to_owned());
                }
                Ok((new.value.into_owned(), managers, true))
            }
            None => Ok((live.value.clone().into_owned(), managers, false)),
        }
    }

    /// The object in the words of error messages.
    fn describe(&self, object: &Value) -> String {
        let (group, version) = self.version.rsplit_once('/').unwrap_or(("", self.version));
        let (namespace, name) = (metadata_text(object, "namespace"), metadata_text(object, "name"));
        format!("{namespace}/{name}; {group}/{version}, Kind={}", self.kind)
    }

    /// The fields that `manager` has applied, as a configuration that can be changed and applied again.
    ///
    /// # Errors
    /// Entries that cannot be read.
    pub fn extract(&self, object: &Value, manager: &str) -> Result<Option<Value>, ApplyError> {
        let managers = decode(entries(object)).map_err(|why| ApplyError::Failed(why.to_string()))?;
        let Some(owned) = managers.get(&self.id(manager, Operation::Apply)) else { return Ok(None) };
        let typed = self.shorter().typed(object).map_err(ApplyError::Failed)?.extract(&owned.fields);
        let mut out = Map::new();
        out.insert("apiVersion".into(), self.version.into());
        out.insert("kind".into(), self.kind.into());
        let mut metadata = Map::new();
        for name in ["name", "namespace"] {
            let text = metadata_text(object, name);
            if !text.is_empty() {
                metadata.insert(name.into(), text.into());
            }
        }
        out.insert("metadata".into(), Value::Object(metadata));
        if let Value::Object(extracted) = typed.value.into_owned() {
            for (name, value) in extracted {
                match (out.get_mut(&name), value) {
                    (Some(Value::Object(into)), Value::Object(from)) => into.extend(from),
                    (_, value) => {
                        out.insert(name, value);
                    }
                }
            }
        }
        Ok(Some(Value::Object(out)))
    }
}

fn without_entries(object: &Value) -> Value {
    let mut object = object.clone();
    remove_entries(&mut object);
    object
}

/// Merges the oldest updaters of a version until there are no more than allowed.
fn cap(managers: &mut Managers) {
    let mut updaters: Vec<ManagerId> =
        managers.keys().filter(|id| id.operation == Operation::Update).cloned().collect();
    if updaters.len() <= MAX_UPDATERS {
        return;
    }
    let time = |id: &ManagerId| managers.get(id).and_then(|owned| owned.time.as_deref()).unwrap_or_default();
    updaters.sort_by(|a, b| time(a).cmp(time(b)).then_with(|| a.cmp(b)));
    let mut count = updaters.len();
    let mut first_of_version: BTreeMap<String, ManagerId> = BTreeMap::new();
    let mut merged: BTreeMap<ManagerId, Vec<FieldSet>> = BTreeMap::new();
    for id in updaters {
        if count <= MAX_UPDATERS {
            break;
        }
        let Some(version) = managers.get(&id).map(|owned| owned.version.clone()) else { continue };
        let Some(first) = first_of_version.get(&version) else {
            first_of_version.insert(version, id);
            continue;
        };
        let bucket = ManagerId {
            name: ANCIENT_CHANGES.to_owned(),
            operation: Operation::Update,
            api_version: version,
            subresource: String::new(),
        };
        if !managers.contains_key(&bucket)
            && let Some(moved) = managers.remove(first)
        {
            managers.insert(bucket.clone(), moved);
        }
        if let Some(owned) = managers.remove(&id)
            && let Some(ancient) = managers.get_mut(&bucket)
        {
            ancient.time = owned.time;
            merged.entry(bucket).or_default().push(owned.fields);
        }
        count -= 1;
    }
    for (bucket, fields) in merged {
        if let Some(ancient) = managers.get_mut(&bucket) {
            ancient.fields = FieldSet::union_all(fields.iter().chain([&ancient.fields]));
        }
    }
}
