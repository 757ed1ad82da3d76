//! The options of calls. All have defaults.

use std::{sync::Arc, time::Duration};

use form_urlencoded::byte_serialize;
use k1s_object::selector::{FieldRequirement, FieldSelector, LabelRequirement, LabelSelector, Operator};
use serde::Serialize;

use super::PatchType;

/// An invalid selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid selector: {0}")]
pub struct SelectorError(String);

/// Options of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// In this namespace only.
    pub namespace: Option<Arc<str>>,
    /// With these labels only.
    pub labels: Option<LabelSelector>,
    /// With these fields only. A cache selects by its indexes; a server supports few fields.
    pub fields: Option<FieldSelector>,
    /// Maximum number of objects. A live list has a continue token if there are more.
    pub limit: Option<u32>,
    /// The continue token of the previous page. Live lists only.
    pub continue_token: Option<String>,
    /// The resource version to list at: see Kubernetes' documentation. Live lists only.
    pub resource_version: Option<String>,
    /// How the resource version is interpreted. Live lists only.
    pub resource_version_match: Option<VersionMatch>,
}

/// How the resource version of a list is interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VersionMatch {
    /// Exactly that version.
    Exact,
    /// That version or a newer one.
    NotOlderThan,
}

impl ListOptions {
    /// Objects in a namespace.
    pub fn in_namespace(namespace: impl Into<Arc<str>>) -> ListOptions {
        ListOptions { namespace: Some(namespace.into()), ..ListOptions::default() }
    }

    /// Only objects with all these labels.
    ///
    /// # Errors
    /// If a key or value is not a valid label.
    pub fn matching_labels<'l>(
        mut self,
        labels: impl IntoIterator<Item = (&'l str, &'l str)>,
    ) -> Result<ListOptions, SelectorError> {
        let term = |(key, value): (&str, &str)| {
            LabelRequirement::new(key, Operator::Equals, vec![value.to_owned()]).map_err(SelectorError)
        };
        let mut terms = self.labels.take().map(|known| known.requirements().to_vec()).unwrap_or_default();
        for label in labels {
            terms.push(term(label)?);
        }
        self.labels = Some(LabelSelector::of(terms));
        Ok(self)
    }

    /// Only objects that match a label selector: `app=web,tier in (a, b),!old`.
    ///
    /// # Errors
    /// If it is not a selector.
    pub fn label_selector(mut self, selector: &str) -> Result<ListOptions, SelectorError> {
        self.labels = Some(LabelSelector::parse(selector).map_err(SelectorError)?);
        Ok(self)
    }

    /// Only objects in which all these fields have these values: `("metadata.name", "x")`.
    ///
    /// # Errors
    /// If a name is not a valid field.
    pub fn matching_fields<'f>(
        mut self,
        fields: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> Result<ListOptions, SelectorError> {
        let mut text = self.fields.take().map(|known| known.to_string()).unwrap_or_default();
        for (field, value) in fields {
            if field.is_empty() || field.contains(['=', ',', '!', '\\']) {
                return Err(SelectorError(format!("{field:?} is not the name of a field")));
            }
            if !text.is_empty() {
                text.push(',');
            }
            let term = FieldRequirement { field: field.into(), value: value.into(), negated: false };
            text.push_str(&term.to_string());
        }
        self.fields = Some(FieldSelector::parse(&text).map_err(SelectorError)?);
        Ok(self)
    }

    /// Only objects that match a field selector: `spec.nodeName=a,status.phase!=Failed`.
    ///
    /// # Errors
    /// If it is not a selector.
    pub fn field_selector(mut self, selector: &str) -> Result<ListOptions, SelectorError> {
        self.fields = Some(FieldSelector::parse(selector).map_err(SelectorError)?);
        Ok(self)
    }

    /// Sets the maximum number of objects.
    #[must_use]
    pub fn limit(mut self, limit: u32) -> ListOptions {
        self.limit = Some(limit);
        self
    }

    pub(super) fn query(&self, query: &mut Query) {
        selectors(query, self.labels.as_ref(), self.fields.as_ref());
        query.add_opt("limit", self.limit.map(|n| n.to_string()).as_deref());
        query.add_opt("continue", self.continue_token.as_deref());
        // A continue token contains the version, and servers reject both together.
        if self.continue_token.is_none() {
            query.add_opt("resourceVersion", self.resource_version.as_deref());
            query.add_opt(
                "resourceVersionMatch",
                self.resource_version_match.map(|how| match how {
                    VersionMatch::Exact => "Exact",
                    VersionMatch::NotOlderThan => "NotOlderThan",
                }),
            );
        }
    }
}

/// Adds the selectors that are not empty.
pub(crate) fn selectors(query: &mut Query, labels: Option<&LabelSelector>, fields: Option<&FieldSelector>) {
    if let Some(labels) = labels.filter(|labels| !labels.is_empty()) {
        // A selector that matches nothing has no textual form, and an empty one matches everything. No object both has
        // and lacks a label.
        let nothing = labels.requirements().is_empty();
        let text = if nothing { "nothing,!nothing".to_owned() } else { labels.to_string() };
        query.add("labelSelector", &text);
    }
    if let Some(fields) = fields.filter(|fields| !fields.is_empty()) {
        query.add("fieldSelector", &fields.to_string());
    }
}

/// Options of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchOptions {
    /// In this namespace only.
    pub namespace: Option<Arc<str>>,
    /// With these labels only.
    pub labels: Option<LabelSelector>,
    /// With these fields only.
    pub fields: Option<FieldSelector>,
    /// Events after this version, usually that of a list. Without one, the existing objects come first, as `ADDED` events.
    pub resource_version: Option<String>,
    /// Whether the server may send bookmarks. On by default.
    pub bookmarks: bool,
    /// Whether the existing objects come first, followed by a bookmark with the annotation
    /// `k8s.io/initial-events-end` (a streaming list).
    pub send_initial_events: bool,
    /// Time after which the server ends the watch.
    pub timeout: Option<Duration>,
}

impl Default for WatchOptions {
    fn default() -> WatchOptions {
        WatchOptions {
            namespace: None,
            labels: None,
            fields: None,
            resource_version: None,
            bookmarks: true,
            send_initial_events: false,
            timeout: None,
        }
    }
}

impl WatchOptions {
    /// A watch that continues from a list with these options.
    #[must_use]
    pub fn after(list: &ListOptions, resource_version: impl Into<String>) -> WatchOptions {
        WatchOptions {
            namespace: list.namespace.clone(),
            labels: list.labels.clone(),
            fields: list.fields.clone(),
            resource_version: Some(resource_version.into()),
            ..WatchOptions::default()
        }
    }

    pub(super) fn query(&self, query: &mut Query) {
        query.add("watch", "true");
        selectors(query, self.labels.as_ref(), self.fields.as_ref());
        query.add_opt("resourceVersion", self.resource_version.as_deref());
        if self.bookmarks || self.send_initial_events {
            query.add("allowWatchBookmarks", "true");
        }
        if self.send_initial_events {
            query.add("sendInitialEvents", "true");
            query.add("resourceVersionMatch", "NotOlderThan");
        }
        query.add_opt("timeoutSeconds", self.timeout.map(|t| t.as_secs().max(1).to_string()).as_deref());
    }
}

/// How the server handles unknown and duplicate fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldValidation {
    /// Drops them silently.
    Ignore,
    /// Drops them with a warning.
    Warn,
    /// Rejects the request.
    Strict,
}

impl FieldValidation {
    fn as_str(self) -> &'static str {
        match self {
            FieldValidation::Ignore => "Ignore",
            FieldValidation::Warn => "Warn",
            FieldValidation::Strict => "Strict",
        }
    }
}

/// Options of creating and updating.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Process the request without storing it.
    pub dry_run: bool,
    /// The field manager that owns the written fields.
    pub field_manager: Option<Arc<str>>,
    /// How to handle unknown fields.
    pub field_validation: Option<FieldValidation>,
}

/// Options of creating.
pub type CreateOptions = WriteOptions;
/// Options of updating.
pub type UpdateOptions = WriteOptions;

impl WriteOptions {
    pub(super) fn query(&self, query: &mut Query) {
        query.add_opt("dryRun", self.dry_run.then_some("All"));
        query.add_opt("fieldManager", self.field_manager.as_deref());
        query.add_opt("fieldValidation", self.field_validation.map(FieldValidation::as_str));
    }
}

/// Options of patching.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchOptions {
    /// Process the request without storing it.
    pub dry_run: bool,
    /// The field manager that owns the written fields.
    pub field_manager: Option<Arc<str>>,
    /// How to handle unknown fields.
    pub field_validation: Option<FieldValidation>,
    /// Take fields from other owners. For apply patches only.
    pub force: bool,
}

/// Options of applying. A `&str` converts to options with this field manager.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplyOptions {
    /// The field manager. Required, unless set by [`Client::with_field_owner`](super::Client::with_field_owner).
    pub field_manager: Option<Arc<str>>,
    /// Take fields from other owners instead of failing with a conflict.
    pub force: bool,
    /// Process the request without storing it.
    pub dry_run: bool,
    /// How to handle unknown fields.
    pub field_validation: Option<FieldValidation>,
}

impl ApplyOptions {
    /// Applies as this field manager.
    pub fn owner(field_manager: impl Into<Arc<str>>) -> ApplyOptions {
        ApplyOptions { field_manager: Some(field_manager.into()), ..ApplyOptions::default() }
    }

    /// Applies as the client's field owner, and takes fields from other owners. For controllers, which decide alone about
    /// the fields they apply.
    #[must_use]
    pub fn forced() -> ApplyOptions {
        ApplyOptions::default().force()
    }

    /// Take fields from other owners instead of failing with a conflict.
    #[must_use]
    pub fn force(mut self) -> ApplyOptions {
        self.force = true;
        self
    }
}

impl From<&str> for ApplyOptions {
    fn from(field_manager: &str) -> ApplyOptions {
        ApplyOptions::owner(field_manager)
    }
}

impl From<ApplyOptions> for PatchOptions {
    fn from(options: ApplyOptions) -> PatchOptions {
        let ApplyOptions { field_manager, force, dry_run, field_validation } = options;
        PatchOptions { dry_run, field_manager, field_validation, force }
    }
}

impl PatchOptions {
    /// Whether a patch of this type can be sent with these options, after those of the client were added.
    ///
    /// # Errors
    /// A message if not.
    pub(super) fn check(&self, kind: PatchType) -> Result<(), &'static str> {
        if kind == PatchType::Apply && self.field_manager.is_none() {
            return Err("apply needs a field manager: set it in the options, or with with_field_owner");
        }
        if kind != PatchType::Apply && self.force {
            return Err("only an apply patch can be forced");
        }
        Ok(())
    }

    pub(super) fn query(&self, query: &mut Query) {
        query.add_opt("dryRun", self.dry_run.then_some("All"));
        query.add_opt("fieldManager", self.field_manager.as_deref());
        query.add_opt("fieldValidation", self.field_validation.map(FieldValidation::as_str));
        query.add_opt("force", self.force.then_some("true"));
    }
}

/// What happens to the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum PropagationPolicy {
    /// They stay, without this owner.
    Orphan,
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
}

/// Preconditions of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preconditions {
    /// The object has this uid: it is not another one of the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The object has this resource version: it has not changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
}

/// Options of deleting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteOptions {
    /// Fail with a conflict unless these hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preconditions: Option<Preconditions>,
    /// What happens to its dependents; by default, the kind decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propagation_policy: Option<PropagationPolicy>,
    /// Grace period in seconds; 0 deletes at once.
    #[serde(rename = "gracePeriodSeconds", skip_serializing_if = "Option::is_none")]
    pub grace_period: Option<u32>,
    /// Process the request without deleting.
    #[serde(skip_serializing_if = "std::ops::Not::not", serialize_with = "dry_run_all")]
    pub dry_run: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn dry_run_all<S: serde::Serializer>(_: &bool, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(["All"])
}

impl DeleteOptions {
    /// Deletes the object only if its uid and resource version are unchanged.
    #[must_use]
    pub fn exactly<K: kube::Resource>(object: &K) -> DeleteOptions {
        let meta = object.meta();
        let preconditions =
            Preconditions { uid: meta.uid.clone(), resource_version: meta.resource_version.clone() };
        DeleteOptions { preconditions: Some(preconditions), ..DeleteOptions::default() }
    }

    /// Sets what happens to its dependents.
    #[must_use]
    pub fn propagation(mut self, policy: PropagationPolicy) -> DeleteOptions {
        self.propagation_policy = Some(policy);
        self
    }
}

/// Options of deleting many objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteAllOfOptions {
    /// Selects the objects. A namespaced kind needs a namespace.
    pub list: ListOptions,
    /// Options of each deletion.
    pub delete: DeleteOptions,
}

impl From<ListOptions> for DeleteAllOfOptions {
    fn from(list: ListOptions) -> DeleteAllOfOptions {
        DeleteAllOfOptions { list, delete: DeleteOptions::default() }
    }
}

/// The path and query of a request.
pub(crate) struct Query {
    // Not a `Serializer`: that is not `Send`.
    uri: String,
    separator: char,
}

impl Query {
    /// A path without a query.
    pub(crate) fn of(path: String) -> Query {
        Query { uri: path, separator: '?' }
    }

    pub(crate) fn add(&mut self, name: &str, value: &str) {
        self.uri.push(std::mem::replace(&mut self.separator, '&'));
        self.uri.push_str(name);
        self.uri.push('=');
        self.uri.extend(byte_serialize(value.as_bytes()));
    }

    pub(crate) fn add_opt(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// Path and query.
    pub(crate) fn into_uri(self) -> String {
        self.uri
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(add: impl FnOnce(&mut Query)) -> String {
        let mut query = Query::of("/x".into());
        add(&mut query);
        query.into_uri()
    }

    #[test]
    fn default_options_add_no_query() {
        assert_eq!(uri(|query| ListOptions::default().query(query)), "/x");
        assert_eq!(uri(|query| WriteOptions::default().query(query)), "/x");
        assert_eq!(uri(|query| PatchOptions::default().query(query)), "/x");
    }

    #[test]
    fn selectors_are_escaped_for_the_query() -> Result<(), SelectorError> {
        let options = ListOptions::in_namespace("a")
            .matching_labels([("app", "web"), ("tier", "b")])?
            .matching_fields([("spec.text", "a,b=c")])?
            .limit(5);
        assert_eq!(
            uri(|query| options.query(query)),
            "/x?labelSelector=app%3Dweb%2Ctier%3Db&fieldSelector=spec.text%3Da%5C%2Cb%5C%3Dc&limit=5"
        );
        Ok(())
    }

    #[test]
    fn a_selector_that_matches_nothing_does_not_become_one_that_matches_everything() {
        let options = ListOptions { labels: Some(LabelSelector::nothing()), ..ListOptions::default() };
        assert_eq!(uri(|query| options.query(query)), "/x?labelSelector=nothing%2C%21nothing");
        let options = ListOptions { labels: Some(LabelSelector::default()), ..ListOptions::default() };
        assert_eq!(uri(|query| options.query(query)), "/x");
    }

    #[test]
    fn an_invalid_selector_is_an_error() {
        let error = ListOptions::default().matching_labels([("app", "not a value")]).unwrap_err();
        assert!(error.to_string().starts_with("invalid selector: "), "{error}");
        assert!(ListOptions::default().label_selector("a in").is_err());
        assert!(ListOptions::default().field_selector("a").is_err());
        assert!(ListOptions::default().matching_fields([("a=b", "c")]).is_err());
    }

    #[test]
    fn repeated_label_matches_are_combined() -> Result<(), SelectorError> {
        let options = ListOptions::default().matching_labels([("a", "1")])?.matching_labels([("b", "2")])?;
        assert_eq!(options.labels.map(|labels| labels.to_string()).as_deref(), Some("a=1,b=2"));
        Ok(())
    }

    #[test]
    fn later_pages_do_not_repeat_the_resource_version() {
        let options = ListOptions {
            resource_version: Some("7".into()),
            continue_token: Some("t".into()),
            ..ListOptions::default()
        };
        assert_eq!(uri(|query| options.query(query)), "/x?continue=t");
    }

    #[test]
    fn delete_options_are_encoded_as_the_api_expects() -> Result<(), serde_json::Error> {
        let options = DeleteOptions {
            preconditions: Some(Preconditions { uid: Some("u".into()), resource_version: None }),
            propagation_policy: Some(PropagationPolicy::Foreground),
            grace_period: Some(0),
            dry_run: true,
        };
        assert_eq!(
            serde_json::to_string(&options)?,
            r#"{"preconditions":{"uid":"u"},"propagationPolicy":"Foreground","gracePeriodSeconds":0,"dryRun":["All"]}"#
        );
        assert_eq!(serde_json::to_string(&DeleteOptions::default())?, "{}");
        Ok(())
    }
}
