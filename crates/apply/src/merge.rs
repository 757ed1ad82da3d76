//! Ownership: what an update or an apply does to the fields of all managers.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde_json::Value;

use crate::{
    path::Path,
    schema::{Schema, TypeRef},
    set::FieldSet,
    typed::{Comparison, Duplicates, TypeErrors, Typed},
    value,
};

/// What a manager does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// It applies configurations.
    Apply,
    /// It writes in any other way.
    Update,
}

impl Operation {
    /// `Apply` or `Update`
    pub fn name(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// Identifies a manager of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ManagerId {
    /// Its name.
    pub name: String,
    /// Appliers and updaters of the same name are two managers.
    pub operation: Operation,
    /// The API version of an updater. Appliers have none: they keep their fields when they change the version.
    pub api_version: String,
    /// The subresource that it writes; empty for the object itself.
    pub subresource: String,
}

/// Managers are sorted as kube-apiserver sorts their identifiers, which are JSON: a name ends with a quote, and empty fields
/// are left out.
impl Ord for ManagerId {
    fn cmp(&self, other: &ManagerId) -> std::cmp::Ordering {
        fn quoted(text: &str) -> impl Iterator<Item = u8> {
            text.bytes().chain(*b"\"")
        }
        let text = |a: &str, b: &str| a.is_empty().cmp(&b.is_empty()).then_with(|| quoted(a).cmp(quoted(b)));
        text(&self.name, &other.name)
            .then_with(|| self.operation.cmp(&other.operation))
            .then_with(|| text(&self.api_version, &other.api_version))
            .then_with(|| text(&self.subresource, &other.subresource))
    }
}

impl PartialOrd for ManagerId {
    fn partial_cmp(&self, other: &ManagerId) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ManagerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| {
            let mut out = String::new();
            value::quote(&mut out, text);
            out
        };
        f.write_str(&quoted(&self.name))?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {}", quoted(&self.subresource))?;
        }
        if self.operation == Operation::Update {
            write!(f, " using {}", self.api_version)?;
        }
        Ok(())
    }
}

/// The fields of a manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// The fields.
    pub fields: FieldSet,
    /// The API version that the fields are of.
    pub version: String,
    /// When it last changed something, in RFC 3339.
    pub time: Option<String>,
}

/// The managers of an object.
pub type Managers = BTreeMap<ManagerId, Owned>;

/// A field that another manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The owner.
    pub manager: ManagerId,
    /// The field.
    pub path: Path,
}

/// The conflicts of an apply, sorted by manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [conflict] = &*self.0 {
            return write!(
                f,
                "Apply failed with 1 conflict: conflict with {}: {}",
                conflict.manager, conflict.path
            );
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut last: Option<&ManagerId> = None;
        for Conflict { manager, path } in &self.0 {
            if last != Some(manager) {
                let newline = if last.is_some() { "\n" } else { "" };
                write!(f, "{newline}conflicts with {manager}:")?;
                last = Some(manager);
            }
            write!(f, "\n- {path}")?;
        }
        Ok(())
    }
}

/// Why a change cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Other managers own fields that would change.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// A value that does not match its schema, or cannot be converted.
    #[error("{0}")]
    Failed(String),
}

fn failed(what: &str, why: impl fmt::Display) -> MergeError {
    MergeError::Failed(format!("{what}: {why}"))
}

/// The versions of a kind.
pub trait Versions {
    /// The schema of a version, with the type of its objects. `None`: there is no such version (any more).
    fn schema(&self, version: &str) -> Option<(&Schema, TypeRef)>;

    /// Converts an object, which has an `apiVersion`, to another version.
    ///
    /// # Errors
    /// The reason why it cannot be converted.
    fn convert(&self, object: &Value, version: &str) -> Result<Value, String>;
}

/// Which fields a manager can own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// All but these, and what is in them.
    Exclude(FieldSet),
    /// Only what is in these, and what leads to them. A pattern is a path of fields in which `*` stands for any element.
    Include(Vec<Vec<&'static str>>),
}

impl Filter {
    fn apply(&self, set: &FieldSet) -> FieldSet {
        match self {
            Filter::Exclude(fields) => set.recursive_difference(fields),
            Filter::Include(patterns) => {
                let matches = |path: &Path| {
                    patterns.iter().any(|pattern| {
                        pattern.iter().zip(&path.0).all(|(name, element)| match element {
                            _ if *name == "*" => true,
                            crate::path::PathElement::Field(field) => **field == **name,
                            _ => false,
                        })
                    })
                };
                set.paths().into_iter().filter(matches).collect()
            }
        }
    }

    fn filter(this: Option<&Filter>, set: FieldSet) -> FieldSet {
        match this {
            Some(Filter::Exclude(fields)) => {
                let mut set = set;
                set.remove_recursive(fields);
                set
            }
            Some(filter) => filter.apply(&set),
            None => set,
        }
    }
}

/// The differences in one version, and what they mean for managers.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) removed: FieldSet,
    /// Modified or added.
    pub(crate) written: FieldSet,
}

/// Computes owners.
pub struct Updater<'a> {
    versions: &'a dyn Versions,
    filter: Option<&'a Filter>,
    /// Whether other versions have the same filter.
    filter_all: bool,
    /// Whether the sets of managers may be of an older schema of their version.
    reconcile: bool,
}

impl fmt::Debug for Updater<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updater").field("filter", &self.filter).finish_non_exhaustive()
    }
}

/// A value in another version.
enum Converted<'t, 'a> {
    Yes(Cow<'t, Typed<'a>>),
    /// There is no such version.
    Missing,
}

impl<'a> Updater<'a> {
    /// An updater for the versions of a kind.
    pub fn new(versions: &'a dyn Versions) -> Updater<'a> {
        Updater { versions, filter: None, filter_all: false, reconcile: true }
    }

    /// Limits what a manager of the current request can own.
    #[must_use]
    pub fn filter(self, filter: Option<&'a Filter>) -> Updater<'a> {
        Updater { filter, ..self }
    }

    /// Whether the filter is also that of the kind's other versions: managers of these then keep fields that it excludes.
    #[must_use]
    pub fn filter_all_versions(self, all: bool) -> Updater<'a> {
        Updater { filter_all: all, ..self }
    }

    /// Says that no schema has changed since the sets of the managers were made.
    #[must_use]
    pub fn schemas_are_unchanged(self) -> Updater<'a> {
        Updater { reconcile: false, ..self }
    }

    fn convert<'t>(&self, object: &'t Typed<'a>, version: &str) -> Result<Converted<'t, 'a>, String> {
        if object.version == version {
            return Ok(Converted::Yes(Cow::Borrowed(object)));
        }
        let Some((schema, ty)) = self.versions.schema(version) else { return Ok(Converted::Missing) };
        let value = self.versions.convert(&object.value, version)?;
        let typed = Typed { value: Cow::Owned(value), schema, ty, version: Cow::Owned(version.to_owned()) };
        typed.validate(Duplicates::Refuse).map_err(|errors: TypeErrors| errors.to_string())?;
        Ok(Converted::Yes(Cow::Owned(typed)))
    }

    /// Adapts the sets of managers to schemas that have changed, and drops managers of versions that are gone.
    fn reconcile(&self, live: &Typed<'a>, managers: &mut Managers) -> Result<(), MergeError> {
        let mut gone = Vec::new();
        for (id, owned) in managers.iter_mut() {
            if !self.reconcile {
                if owned.version != live.version && self.versions.schema(&owned.version).is_none() {
                    gone.push(id.clone());
                }
                continue;
            }
            match self.convert(live, &owned.version).map_err(MergeError::Failed)? {
                Converted::Missing => gone.push(id.clone()),
                Converted::Yes(live) => {
                    if let Some(fields) = live.reconcile(&owned.fields) {
                        owned.fields = fields;
                    }
                }
            }
        }
        for id in gone {
            managers.remove(&id);
        }
        Ok(())
    }

    fn changes(&self, comparison: Comparison, filtered: bool) -> Changes {
        let filter = if filtered { self.filter } else { None };
        let Comparison { removed, modified, added } = comparison;
        Changes {
            removed: Filter::filter(filter, removed),
            written: Filter::filter(filter, modified.into_union(added)),
        }
    }

    /// What changes from one object to another, as far as it counts.
    pub(crate) fn compare(&self, old: &Typed<'a>, new: &Typed<'a>) -> Result<Changes, MergeError> {
        let comparison = old.compare(new).map_err(|why| failed("failed to compare objects", why))?;
        Ok(self.changes(comparison, true))
    }

    /// Takes what has changed from all managers but `applier`.
    fn take(
        &self,
        old: &Typed<'a>,
        new: &Typed<'a>,
        own: &Changes,
        managers: &mut Managers,
        applier: Option<&ManagerId>,
        force: bool,
    ) -> Result<(), MergeError> {
        let mut others: Vec<(String, Option<Changes>)> = Vec::new();
        let mut conflicts = Vec::new();
        for (id, owned) in managers.iter() {
            if Some(id) == applier {
                continue;
            }
            if owned.version != old.version && !others.iter().any(|(version, _)| *version == owned.version) {
                let changes = self.changes_in(old, new, &owned.version)?;
                others.push((owned.version.clone(), changes));
            }
            if force {
                continue;
            }
            let Some(changes) = changes_of(own, &others, old, &owned.version) else { continue };
            let taken = owned.fields.intersection(&changes.written);
            conflicts.extend(taken.paths().into_iter().map(|path| Conflict { manager: id.clone(), path }));
        }
        if !conflicts.is_empty() {
            return Err(MergeError::Conflicts(Conflicts(conflicts)));
        }
        managers.retain(|id, owned| {
            if Some(id) == applier {
                return true;
            }
            let Some(changes) = changes_of(own, &others, old, &owned.version) else { return false };
            for lost in [&changes.written, &changes.removed] {
                if owned.fields.intersects(lost) {
                    owned.fields = owned.fields.difference(lost);
                }
            }
            !owned.fields.is_empty()
        });
        Ok(())
    }

    /// The changes as managers of another version see them; `None` if there is no such version.
    fn changes_in(
        &self,
        old: &Typed<'a>,
        new: &Typed<'a>,
        version: &str,
    ) -> Result<Option<Changes>, MergeError> {
        let old = self.convert(old, version).map_err(|why| failed("failed to convert old object", why))?;
        let new = self.convert(new, version).map_err(|why| failed("failed to convert new object", why))?;
        let (Converted::Yes(old), Converted::Yes(new)) = (old, new) else { return Ok(None) };
        let comparison = old.compare(&new).map_err(|why| failed("failed to compare objects", why))?;
        Ok(Some(self.changes(comparison, self.filter_all)))
    }

    /// After an update of `live` to `new`: everybody loses the fields that have changed. Returns the fields that the updater
    /// gets.
    ///
    /// # Errors
    /// A value that does not match its schema, or cannot be converted.
    pub fn update(
        &self,
        live: &Typed<'a>,
        new: &Typed<'a>,
        managers: &mut Managers,
    ) -> Result<FieldSet, MergeError> {
        let changes = self.compare(live, new)?;
        self.update_with(live, new, changes, managers)
    }

    /// The same with changes that are known already.
    pub(crate) fn update_with(
        &self,
        live: &Typed<'a>,
        new: &Typed<'a>,
        changes: Changes,
        managers: &mut Managers,
    ) -> Result<FieldSet, MergeError> {
        self.reconcile(live, managers)?;
        self.take(live, new, &changes, managers, None, true)?;
        Ok(changes.written)
    }

    /// Applies a configuration to `live`. Returns the new object, or `None` if nothing has changed but owners.
    ///
    /// # Errors
    /// Conflicts, unless `force` is set; a value that does not match its schema, or cannot be converted.
    pub fn apply(
        &self,
        live: &Typed<'a>,
        config: &Typed<'a>,
        managers: &mut Managers,
        applier: &ManagerId,
        force: bool,
    ) -> Result<Option<Typed<'a>>, MergeError> {
        self.reconcile(live, managers)?;
        let merged = live.merge(config).map_err(|why| failed("failed to merge config", why))?;
        let last = managers.get(applier).cloned();
        let fields = self.fields(config);
        let time = last.as_ref().and_then(|last| last.time.clone());
        managers.insert(applier.clone(), Owned { fields, version: config.version.to_string(), time });
        let new = self
            .prune(merged, managers, &config.version, last.as_ref())
            .map_err(|why| failed("failed to prune fields", why))?;
        // Whoever is alone takes nothing from others, whatever has changed.
        if managers.len() > 1 {
            let changes = self.compare(live, &new)?;
            self.take(live, &new, &changes, managers, Some(applier), force)?;
        }
        if managers.get(applier).is_some_and(|owned| owned.fields.is_empty()) {
            managers.remove(applier);
        }
        Ok((!value::equal(&live.value, &new.value)).then_some(new))
    }

    /// The fields that a manager owns by a configuration.
    pub(crate) fn fields(&self, config: &Typed<'a>) -> FieldSet {
        Filter::filter(self.filter, config.field_set())
    }

    /// The object with a configuration merged in; `None` if that changes nothing.
    pub(crate) fn merge(
        &self,
        live: &Typed<'a>,
        config: &Typed<'a>,
    ) -> Result<Option<Typed<'a>>, MergeError> {
        let new = live.merge(config).map_err(|why| failed("failed to merge config", why))?;
        Ok((!value::equal(&live.value, &new.value)).then_some(new))
    }

    /// Removes the fields that the applier no longer applies, and nobody else owns.
    fn prune(
        &self,
        merged: Typed<'a>,
        managers: &Managers,
        version: &str,
        last: Option<&Owned>,
    ) -> Result<Typed<'a>, String> {
        let Some(last) = last.filter(|last| !last.fields.is_empty()) else { return Ok(merged) };
        let applied = managers.values().filter(|owned| owned.version == *last.version);
        if last.version == merged.version && managers.values().all(|owned| owned.version == last.version) {
            // Nothing is removed if all fields that were applied last have an owner.
            let (schema, ty) = (merged.schema, merged.ty);
            let before = last.fields.with_named_fields(schema, ty);
            let owned = FieldSet::union_all(applied.map(|owned| &owned.fields));
            if before.difference(&owned.with_named_fields(schema, ty)).is_empty() {
                return Ok(merged);
            }
        }
        let Converted::Yes(converted) = self
            .convert(&merged, &last.version)
            .map_err(|why| format!("failed to convert merged object to last applied version: {why}"))?
        else {
            return Ok(merged);
        };
        let converted = converted.into_owned();
        let pruned = converted.remove(&last.fields.with_named_fields(converted.schema, converted.ty));
        let pruned = self
            .add_back_owned(&converted, pruned, &last.version, managers)
            .map_err(|why| format!("failed add back owned items: {why}"))?;
        let pruned = self
            .add_back_dangling(&converted, &pruned, last)
            .map_err(|why| format!("failed add back dangling items: {why}"))?;
        match self.convert(&pruned, version)? {
            Converted::Yes(pruned) => Ok(pruned.into_owned()),
            Converted::Missing => Ok(pruned),
        }
    }

    /// Adds back what other managers own, version by version.
    fn add_back_owned(
        &self,
        merged: &Typed<'a>,
        pruned: Typed<'a>,
        pruned_version: &str,
        managers: &Managers,
    ) -> Result<Typed<'a>, String> {
        let mut by_version: BTreeMap<&str, Vec<&FieldSet>> = BTreeMap::new();
        for owned in managers.values() {
            by_version.entry(&owned.version).or_default().push(&owned.fields);
        }
        let mut merged = merged.clone();
        let mut pruned = pruned;
        // Fields of the pruned version come first: a conversion may need them.
        if let Some(owned) = by_version.remove(pruned_version) {
            let owned = FieldSet::union_all(owned);
            (merged, pruned) = self.add_back_version(merged, pruned, pruned_version, &owned)?;
        }
        for (version, owned) in by_version {
            let owned = FieldSet::union_all(owned);
            (merged, pruned) = self.add_back_version(merged, pruned, version, &owned)?;
        }
        Ok(pruned)
    }

    fn add_back_version(
        &self,
        merged: Typed<'a>,
        pruned: Typed<'a>,
        version: &str,
        owned: &FieldSet,
    ) -> Result<(Typed<'a>, Typed<'a>), String> {
        let in_version = |what: &str, object: &Typed<'a>| -> Result<Option<Typed<'a>>, String> {
            match self.convert(object, version) {
                Ok(Converted::Yes(object)) => Ok(Some(object.into_owned())),
                Ok(Converted::Missing) => Ok(None),
                Err(why) => Err(format!("failed to convert {what} object at version {version}: {why}")),
            }
        };
        let Some(merged) = in_version("merged", &merged)? else { return Ok((merged, pruned)) };
        let Some(pruned) = in_version("pruned", &pruned)? else { return Ok((merged, pruned)) };
        let named = |set: &FieldSet| set.with_named_fields(merged.schema, merged.ty);
        let keep = named(&pruned.field_set()).union(&named(owned));
        let pruned = merged.remove(&named(&merged.field_set()).difference(&keep));
        Ok((merged, pruned))
    }

    /// Adds back what was removed only because something around it was: only fields that were applied last may go.
    fn add_back_dangling(
        &self,
        merged: &Typed<'a>,
        pruned: &Typed<'a>,
        last: &Owned,
    ) -> Result<Typed<'a>, String> {
        let converted = match self.convert(pruned, &last.version) {
            Ok(Converted::Yes(converted)) => converted,
            Ok(Converted::Missing) => return Ok(merged.clone()),
            Err(why) => {
                return Err(format!("failed to convert pruned object to last applied version: {why}"));
            }
        };
        let named = |set: &FieldSet| set.with_named_fields(merged.schema, merged.ty);
        let gone = named(&merged.field_set()).difference(&named(&converted.field_set()));
        Ok(merged.remove(&gone.intersection(&named(&last.fields))))
    }
}

/// The changes in a version; `None` if there is no such version.
fn changes_of<'c>(
    own: &'c Changes,
    others: &'c [(String, Option<Changes>)],
    old: &Typed<'_>,
    version: &str,
) -> Option<&'c Changes> {
    if version == old.version {
        return Some(own);
    }
    others.iter().find(|(other, _)| other == version).and_then(|(_, changes)| changes.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those cases of upstream's `TestFilterByPattern` whose patterns are of fields and `*`.
    #[test]
    fn a_pattern_includes_what_is_in_it_and_what_leads_to_it() {
        let resources = vec!["spec", "containers", "*", "resources"];
        let set = |fields: serde_json::Value| FieldSet::from_fields_v1(&fields).unwrap();
        let all = serde_json::json!({"f:spec": {".": {}, "f:containers": {".": {},
            "i:0": {".": {}, "f:resources": {".": {}, "f:limits": {".": {}, "f:cpu": {}}}},
            "i:1": {".": {}, "f:resources": {".": {}, "f:claims": {".": {}, "i:0": {".": {}, "f:name": {}}}}},
        }}});
        let spec = serde_json::json!({"f:spec": {}});
        let fields = serde_json::json!({"f:spec": {".": {}, "f:f1": {".": {}, "f:f11": {}}, "f:f2": {".": {}, "f:f21": {}},
            "f:f3": {".": {}, "f:f31": {}}}});
        let containers = serde_json::json!({"f:spec": {".": {}, "f:containers": {".": {},
            "i:0": {".": {}, "f:image": {}, "f:workingDir": {}, "f:resources": {}}}}});
        for (patterns, input, expected) in [
            (vec![resources.clone()], all.clone(), all),
            (
                vec![resources.clone()],
                serde_json::json!({"f:spec": {}, "f:status": {}, "f:metadata": {}}),
                spec.clone(),
            ),
            (
                vec![resources.clone()],
                serde_json::json!({"f:spec": {".": {}, "f:volumes": {}, "f:hostNetwork": {}}}),
                spec,
            ),
            (
                vec![resources],
                containers,
                serde_json::json!({"f:spec": {".": {}, "f:containers": {".": {}, "i:0": {".": {}, "f:resources": {}}}}}),
            ),
            (
                vec![vec!["spec", "f1"], vec!["spec", "f3"]],
                fields,
                serde_json::json!({"f:spec": {".": {}, "f:f1": {".": {}, "f:f11": {}}, "f:f3": {".": {}, "f:f31": {}}}}),
            ),
        ] {
            assert_eq!(Filter::Include(patterns).apply(&set(input.clone())), set(expected), "{input}");
        }
    }
}
