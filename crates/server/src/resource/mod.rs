//! A served resource: one version of one kind, built-in or custom, with everything the handlers need.

mod custom;
mod rule_run;

use std::sync::{Arc, OnceLock};

use k1s_env::Env;
use k1s_kinds::{
    rules::{FieldLabelError, NameRule, Rules},
    table::Kind,
};
use k1s_object::{
    FieldError, Status,
    field::At,
    gvk::{GroupKind, GroupVersion, GroupVersionKind, GroupVersionResource},
    names,
};
use k1s_schema::crd;
use serde_json::Value;

use crate::{
    cache::Fields,
    errors::{self, Error},
    objectmeta::metadata_mut,
    request::Verb,
    stored::{Stored, Unreadable},
    time,
};

pub(crate) use custom::{CustomResource, Malformed, compile, no_kind};
pub(crate) use rule_run::RuleRun;

/// One version of one kind.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    /// `apps/v1`, or `v1`.
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) namespaced: bool,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) verbs: Vec<Verb<'static>>,
    pub(crate) subresources: Vec<Subresource>,
    /// The `storageVersionHash` of discovery.
    pub(crate) storage_hash: String,
    pub(crate) source: Source,
    /// An object in which nothing is set, as Go encodes it.
    pub(crate) empty: OnceLock<Value>,
}

/// A subresource as discovery lists it.
#[derive(Debug)]
pub(crate) struct Subresource {
    pub(crate) name: &'static str,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) verbs: Vec<Verb<'static>>,
}

/// Where a resource comes from.
#[derive(Debug)]
pub(crate) enum Source {
    BuiltIn(BuiltIn),
    Custom(CustomResource),
}

/// A kind of the table of built-in kinds.
#[derive(Debug)]
pub(crate) struct BuiltIn {
    pub(crate) kind: &'static Kind,
    pub(crate) rules: &'static Rules,
    /// The conversion, if its objects are stored as another version.
    pub(crate) view: Option<View>,
}

/// A version whose objects are stored as another one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    /// The storage version.
    pub(crate) stored: GroupVersion<&'static str>,
    pub(crate) to_stored: fn(&Value) -> Value,
    pub(crate) from_stored: fn(&Value) -> Value,
}

/// Definitions are a built-in kind whose rules are in the schema crate.
static DEFINITION: Rules = Rules {
    defaults: crd::default,
    prepare_create: crd::prepare_create,
    prepare_update: crd::prepare_update,
    prepare_status: crd::prepare_status,
    validate: crd::validate_create,
    validate_update: crd::validate_update,
    validate_status: |new, _| crd::validate_status_update(new),
    warnings: crd::warnings,
    // The name follows from the spec; validation checks it.
    name: NameRule::Own(|_, _| Vec::new()),
    generation: true,
    unconditional_update: false,
    delete_answers_object: true,
    ..Rules::PLAIN
};

impl Resource {
    /// A kind of the table of built-in kinds.
    pub(crate) fn built_in(kind: &'static Kind) -> Resource {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Resource {
            group: kind.group.into(),
            version: kind.version.into(),
            api_version: GroupVersion::new(kind.group, kind.version).to_string(),
            kind: kind.kind.into(),
            list_kind: format!("{}List", kind.kind),
            plural: kind.plural.into(),
            singular: kind.singular.into(),
            namespaced: kind.namespaced,
            short_names: own(kind.short_names),
            categories: own(kind.categories),
            verbs: verbs(kind.verbs),
            subresources: kind
                .subresources
                .iter()
                .map(|sub| Subresource {
                    name: sub.name,
                    group: sub.group.into(),
                    version: sub.version.into(),
                    kind: sub.kind.into(),
                    verbs: verbs(sub.verbs),
                })
                .collect(),
            storage_hash: kind.storage_hash.into(),
            source: Source::BuiltIn(BuiltIn {
                kind,
                rules: match (kind.group, kind.kind) {
                    ("apiextensions.k8s.io", "CustomResourceDefinition") => &DEFINITION,
                    _ => k1s_kinds::rules::rules(kind.group, kind.version, kind.kind),
                },
                view: view(kind),
            }),
            empty: OnceLock::new(),
        }
    }

    /// An object in which nothing is set, as Go encodes it: structs by value are there.
    pub(crate) fn empty(&self) -> &Value {
        self.empty.get_or_init(|| {
            let mut object = serde_json::json!({"kind": self.kind, "apiVersion": self.api_version});
            self.finish(&mut object);
            object
        })
    }

    /// The group, version and resource it is served at.
    pub(crate) fn gvr(&self) -> GroupVersionResource<&str> {
        GroupVersionResource::new(&self.group, &self.version, &self.plural)
    }

    /// The kind of its objects.
    pub(crate) fn gvk(&self) -> GroupVersionKind<&str> {
        GroupVersionKind::new(&self.group, &self.version, &self.kind)
    }

    /// The kind of its objects without the version, to match on.
    pub(crate) fn group_kind(&self) -> GroupKind<&str> {
        GroupKind::new(&self.group, &self.kind)
    }

    /// Whether it can only be created and is not stored, like reviews.
    pub(crate) fn is_create_only(&self) -> bool {
        self.verbs == [Verb::Create]
    }

    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.source, Source::Custom(_))
    }

    /// The rules of a built-in kind.
    pub(crate) fn rules(&self) -> Option<&'static Rules> {
        match &self.source {
            Source::BuiltIn(built_in) => Some(built_in.rules),
            Source::Custom(_) => None,
        }
    }

    /// The group in the keys of its objects.
    pub(crate) fn storage_group(&self) -> &str {
        match &self.source {
            Source::BuiltIn(BuiltIn { view: Some(view), .. }) => view.stored.group,
            _ => &self.group,
        }
    }

    /// The version that objects are stored in.
    pub(crate) fn storage_version(&self) -> &str {
        match &self.source {
            Source::BuiltIn(BuiltIn { view: Some(view), .. }) => view.stored.version,
            Source::BuiltIn(_) => &self.version,
            Source::Custom(custom) => custom.storage_version(),
        }
    }

    /// Whether the stored bytes need no conversion to this version.
    pub(crate) fn shows_as_stored(&self, stored: &Stored) -> bool {
        match &self.source {
            Source::BuiltIn(built_in) => built_in.view.is_none(),
            Source::Custom(custom) => stored.stamp == custom.stamp() && stored.version() == self.version,
        }
    }

    /// The object in this version.
    pub(crate) fn read(&self, stored: &Stored) -> Result<Value, Unreadable> {
        self.converted(stored, stored.to_value(&self.kind, &self.api_version)?)
    }

    /// The object in this version for a write; see [`Stored::to_write`].
    pub(crate) fn read_to_write(&self, stored: &Stored) -> Result<Value, Unreadable> {
        self.converted(stored, stored.to_write(&self.kind, &self.api_version)?)
    }

    /// An object as it was stored, converted to this version.
    fn converted(&self, stored: &Stored, mut object: Value) -> Result<Value, Unreadable> {
        match &self.source {
            Source::BuiltIn(BuiltIn { view: Some(view), .. }) => {
                object = (view.from_stored)(&object);
                self.finish(&mut object);
                self.set_type(&mut object);
            }
            Source::BuiltIn(_) => {}
            Source::Custom(custom) => {
                if !self.shows_as_stored(stored) {
                    custom
                        .check_conversion(stored.version(), &self.version)
                        .map_err(Unreadable::Unconvertible)?;
                    custom.show(&mut object, stored.version());
                }
            }
        }
        Ok(object)
    }

    /// Whether a webhook converts objects between its versions.
    pub(crate) fn has_webhook(&self) -> bool {
        matches!(&self.source, Source::Custom(custom) if custom.has_webhook())
    }

    /// Whether only a webhook can convert an object to this version.
    pub(crate) fn needs_webhook(&self, stored: &Stored) -> bool {
        match &self.source {
            Source::BuiltIn(_) => false,
            Source::Custom(custom) => custom.needs_webhook(stored.version(), &self.version),
        }
    }

    /// Returns an error if an object cannot be converted to this version.
    pub(crate) fn check_conversion(&self, stored: &Stored) -> Result<(), Status> {
        match &self.source {
            Source::BuiltIn(_) => Ok(()),
            Source::Custom(custom) => {
                custom.check_conversion(stored.version(), &self.version).map_err(errors::unconvertible)
            }
        }
    }

    /// The object for callers that only need its metadata: unconverted if it cannot be converted, so that it can always be
    /// counted and deleted.
    pub(crate) fn read_any(&self, stored: &Stored) -> Result<Value, Unreadable> {
        match self.needs_webhook(stored) {
            true => stored.to_value(&self.kind, &self.api_version),
            false => self.read(stored),
        }
    }

    /// The same for a write; see [`Stored::to_write`].
    pub(crate) fn read_any_to_write(&self, stored: &Stored) -> Result<Value, Unreadable> {
        match self.needs_webhook(stored) {
            true => stored.to_write(&self.kind, &self.api_version),
            false => self.read_to_write(stored),
        }
    }

    /// The bytes for the store of an object read by [`Resource::read_any_to_write`].
    pub(crate) fn encode_any(&self, object: &Value, stored: &Stored) -> Result<bytes::Bytes, Status> {
        match self.needs_webhook(stored) {
            true => Stored::encode(object, stored.version(), stored.stamp),
            false => self.encode(object),
        }
    }

    /// The bytes for the store.
    pub(crate) fn encode(&self, object: &Value) -> Result<bytes::Bytes, Status> {
        match &self.source {
            Source::BuiltIn(BuiltIn { view: Some(view), .. }) => {
                let GroupVersion { group, version } = view.stored;
                let mut stored = (view.to_stored)(object);
                if let Some(kind) = k1s_kinds::find_kind(group, version, &self.kind) {
                    k1s_kinds::codec::finish(kind.ty, &mut stored);
                }
                Stored::encode(&stored, version, 0)
            }
            Source::BuiltIn(_) => Stored::encode(object, &self.version, 0),
            Source::Custom(custom) => {
                if custom.is_storage_version() {
                    Stored::encode(object, &self.version, custom.stamp())
                } else {
                    custom
                        .check_conversion(&self.version, custom.storage_version())
                        .map_err(errors::unconvertible)?;
                    let mut object = object.clone();
                    custom.to_storage(&mut object);
                    Stored::encode(&object, custom.storage_version(), custom.storage_stamp())
                }
            }
        }
    }

    /// The bytes for the store of an object that the server itself creates, complete with its status.
    pub(crate) fn encode_new(&self, env: &Env, mut object: Value) -> Result<bytes::Bytes, Status> {
        let status = object.get("status").cloned();
        if let Some(rules) = self.rules() {
            (rules.defaults)(&mut object);
        }
        let metadata = metadata_mut(&mut object);
        metadata.insert("uid".into(), env.uuid().to_string().into());
        metadata.insert("creationTimestamp".into(), time::stamp(env).into());
        if self.has_generation() {
            metadata.insert("generation".into(), 1.into());
        }
        self.prepare_create(&mut object);
        if let Some(status) = status {
            object["status"] = status;
        }
        self.finish(&mut object);
        self.set_type(&mut object);
        self.encode(&object)
    }

    /// Sets kind and apiVersion, as the first fields.
    pub(crate) fn set_type(&self, object: &mut Value) {
        if let Value::Object(map) = object {
            let rest = std::mem::take(map);
            map.insert("kind".into(), self.kind.as_str().into());
            map.insert("apiVersion".into(), self.api_version.as_str().into());
            map.extend(rest.into_iter().filter(|(key, _)| key != "kind" && key != "apiVersion"));
        }
    }

    /// The same, unless the object has them.
    pub(crate) fn set_missing_type(&self, object: &mut Value) {
        if let Value::Object(map) = object {
            map.entry("kind").or_insert_with(|| self.kind.as_str().into());
            map.entry("apiVersion").or_insert_with(|| self.api_version.as_str().into());
        }
    }

    /// 404 for an object of this name.
    pub(crate) fn not_found(&self, name: &str) -> Error {
        Error::not_found(&self.group, &self.plural, name)
    }

    /// 500 for an unreadable object in the store.
    pub(crate) fn unreadable(&self, name: &str, why: &Unreadable) -> Status {
        errors::unreadable(&self.group, &self.plural, name, why)
    }

    /// The errors of a name.
    pub(crate) fn name_errors(&self, name: &str, prefix: bool) -> Vec<String> {
        let name = if prefix { mask_trailing_dash(name) } else { name.into() };
        match self.rules().map(|rules| rules.name) {
            None | Some(NameRule::Subdomain) => names::is_dns1123_subdomain(&name),
            Some(NameRule::Label) => names::is_dns1123_label(&name),
            Some(NameRule::Label1035) => names::is_dns1035_label(&name),
            Some(NameRule::PathSegment) => names::is_path_segment_name(&name),
            Some(NameRule::Own(rule)) => rule(&name, prefix),
        }
    }

    /// The selectable fields besides name and namespace.
    pub(crate) fn field_names(&self) -> Vec<&str> {
        match &self.source {
            Source::BuiltIn(built_in) => built_in.rules.fields.iter().map(|field| field.path).collect(),
            Source::Custom(custom) => custom.selectable_fields().collect(),
        }
    }

    /// Whether `metadata.namespace` can be selected on: most cluster-scoped kinds reject it.
    pub(crate) fn selects_on_namespace(&self) -> bool {
        let own_fields =
            matches!(self.rules().map(|rules| rules.field_error), None | Some(FieldLabelError::NotSupported));
        self.namespaced || !own_fields
    }

    /// How the cache reads the selectable fields.
    pub(crate) fn field_reader(&self) -> Fields {
        match &self.source {
            Source::BuiltIn(built_in) => {
                let (fields, view) = (built_in.rules.fields, built_in.view);
                (!fields.is_empty()).then(|| {
                    let read = move |object: &Value| match view {
                        Some(view) => {
                            let seen = (view.from_stored)(object);
                            fields.iter().map(|field| (field.read)(&seen)).collect()
                        }
                        None => fields.iter().map(|field| (field.read)(object)).collect(),
                    };
                    Arc::new(read) as Arc<dyn Fn(&Value) -> Vec<String> + Send + Sync>
                })
            }
            Source::Custom(custom) => custom.field_reader(),
        }
    }

    /// The message for a field that cannot be selected on.
    pub(crate) fn field_error(&self, field: &str) -> String {
        match self.rules().map(|rules| rules.field_error) {
            Some(FieldLabelError::Quoted(kind)) => {
                format!("field label {} not supported for {kind}", k1s_object::field::quote(field))
            }
            Some(FieldLabelError::NotSupportedFor(kind)) => {
                format!("field label not supported for {kind}: {field}")
            }
            Some(FieldLabelError::OnlyMetadata) => format!(
                "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                k1s_object::field::quote(field)
            ),
            _ => format!("field label not supported: {field}"),
        }
    }

    /// Whether a PUT without resourceVersion is an unconditional update.
    pub(crate) fn unconditional_update(&self) -> bool {
        self.rules().is_some_and(|rules| rules.unconditional_update)
    }

    /// Whether the kind has this subresource.
    pub(crate) fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|sub| sub.name == name)
    }

    /// Whether objects of the kind, or of a subresource, can be shown as a table. Kinds that are not stored, such as
    /// reviews, cannot.
    pub(crate) fn has_table(&self, subresource: &str) -> bool {
        match (&self.source, subresource) {
            (Source::Custom(_), _) => true,
            (_, "") => !self.is_create_only(),
            (_, "scale") => true,
            (_, "status") => {
                !matches!(&*self.group, "apiextensions.k8s.io" | "apiregistration.k8s.io" | "resource.k8s.io")
            }
            _ => false,
        }
    }

    /// Before a create: sets server-managed fields and clears those that a client may not set.
    pub(crate) fn prepare_create(&self, object: &mut Value) {
        match &self.source {
            Source::BuiltIn(built_in) => (built_in.rules.prepare_create)(object),
            Source::Custom(custom) => custom.prepare_create(object),
        }
    }

    /// Before an update: restores fields that a client may not change.
    pub(crate) fn prepare_update(&self, new: &mut Value, old: &Value) {
        match &self.source {
            Source::BuiltIn(built_in) => (built_in.rules.prepare_update)(new, old),
            Source::Custom(custom) => custom.prepare_update(new, old),
        }
    }

    /// Before an update of `/status`.
    pub(crate) fn prepare_status(&self, new: &mut Value, old: &Value) {
        match &self.source {
            Source::BuiltIn(built_in) => (built_in.rules.prepare_status)(new, old),
            Source::Custom(custom) => custom.prepare_status(new, old),
        }
    }

    /// Whether `metadata.generation` counts changes: see [`crate::write`].
    pub(crate) fn has_generation(&self) -> bool {
        self.rules().is_none_or(|rules| rules.generation)
    }

    /// Validates a new object.
    pub(crate) fn validate_create(&self, object: At<'_, '_>, run: &RuleRun<'_>) {
        match &self.source {
            Source::BuiltIn(built_in) => (built_in.rules.validate)(object),
            Source::Custom(custom) => custom.validate(object, None, run),
        }
    }

    /// Validates an update.
    pub(crate) fn validate_update(&self, new: At<'_, '_>, old: At<'_, '_>, run: &RuleRun<'_>) {
        match &self.source {
            Source::BuiltIn(built_in) => (built_in.rules.validate_update)(new, old),
            Source::Custom(custom) => custom.validate(new, Some(old), run),
        }
    }

    /// Validates an update of the status.
    pub(crate) fn validate_status(&self, new: At<'_, '_>, old: At<'_, '_>, run: &RuleRun<'_>) {
        match &self.source {
            Source::BuiltIn(built_in) => (built_in.rules.validate_status)(new, old),
            Source::Custom(custom) => custom.validate_status(new, old, run),
        }
    }

    /// Whether validation may refuse an object that it has accepted, if nothing changes in it.
    pub(crate) fn compares_with_old(&self) -> bool {
        matches!(&self.source, Source::Custom(custom) if custom.compares_with_old())
    }

    /// Appends warnings about an object.
    pub(crate) fn warnings(&self, new: &Value, old: Option<&Value>, out: &mut Vec<String>) {
        if let Source::BuiltIn(built_in) = &self.source {
            (built_in.rules.warnings)(new, old, out);
        }
    }

    /// The errors of kind and apiVersion; only custom resources reach this point with wrong ones.
    pub(crate) fn type_errors(&self, object: &Value) -> Vec<FieldError> {
        if !self.is_custom() {
            return Vec::new();
        }
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let own = [("kind", &self.kind), ("apiVersion", &self.api_version)];
        own.iter()
            .filter(|(field, must_be)| text(field) != **must_be)
            .map(|(field, must_be)| FieldError::invalid(*field, text(field), format!("must be {must_be}")))
            .collect()
    }

    /// 405: a custom resource names the verb, as the handler of kube-apiserver that serves them all does.
    pub(crate) fn not_allowed(&self, verb: Verb<'_>) -> Status {
        match self.is_custom() {
            true => Status::method_not_supported(&self.group, &self.plural, verb.as_str()),
            false => Status::method_not_allowed(),
        }
    }

    /// After the validation of a new object: defaults the status, which was not the client's to set.
    pub(crate) fn default_status(&self, object: &mut Value) {
        if let Source::Custom(custom) = &self.source {
            custom.default_status(object);
        }
    }

    /// After validation: normalizes the numbers of a custom resource for the store.
    pub(crate) fn settle(&self, object: &mut Value) {
        if self.is_custom() {
            k1s_schema::settle_numbers(object);
        }
    }

    /// Changes an object, without the fields in `skip`, to what Go encodes before it is stored: what field management compares.
    pub(crate) fn complete(&self, object: &mut Value, skip: &[&str]) {
        if let Source::BuiltIn(built_in) = &self.source {
            k1s_kinds::codec::complete(built_in.kind.ty, object, skip);
        }
    }

    /// Whether [`Resource::complete`] only adds what is not there.
    pub(crate) fn completes_by_adding(&self, object: &Value, skip: &[&str]) -> bool {
        match &self.source {
            Source::BuiltIn(built_in) => !k1s_kinds::codec::would_drop(built_in.kind.ty, object, skip),
            Source::Custom(_) => true,
        }
    }

    /// Applies Go's rules about empty fields before an object is stored.
    pub(crate) fn finish(&self, object: &mut Value) {
        if let Source::BuiltIn(built_in) = &self.source {
            k1s_kinds::codec::finish(built_in.kind.ty, object);
        }
    }
}

fn verbs(names: &'static [&'static str]) -> Vec<Verb<'static>> {
    names.iter().map(|name| Verb::named(name)).collect()
}

/// A generated name may end in a dash, which the suffix follows.
fn mask_trailing_dash(name: &str) -> std::borrow::Cow<'_, str> {
    match name.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a").into(),
        _ => name.into(),
    }
}

/// The conversion of versions that are stored as another one.
pub(crate) fn view(kind: &Kind) -> Option<View> {
    use k1s_kinds::rules::{autoscaling::horizontal_pod_autoscaler as hpa, core::event};
    match (kind.group, kind.version, kind.kind) {
        ("events.k8s.io", "v1", "Event") => Some(View {
            stored: GroupVersion::new("", "v1"),
            to_stored: event::to_core,
            from_stored: event::to_events,
        }),
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => Some(View {
            stored: GroupVersion::new("autoscaling", "v2"),
            to_stored: hpa::v1_to_v2,
            from_stored: hpa::v2_to_v1,
        }),
        _ => None,
    }
}
