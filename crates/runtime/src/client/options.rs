//! The options of calls. Each has defaults; `..Default::default()` takes the rest.

use std::{sync::Arc, time::Duration};

use form_urlencoded::byte_serialize;
use k1s_object::selector::{FieldRequirement, FieldSelector, LabelRequirement, LabelSelector, Operator};
use serde::Serialize;

/// A selector that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid selector: {0}")]
pub struct SelectorError(String);

/// Which objects are listed, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// In this namespace only.
    pub namespace: Option<Arc<str>>,
    /// With these labels only.
    pub labels: Option<LabelSelector>,
    /// With these fields only. A cache answers it from registered indexes; a server knows few fields.
    pub fields: Option<FieldSelector>,
    /// At most so many. A live list has a continue token if there are more.
    pub limit: Option<u32>,
    /// Where the page before ended. Live lists only.
    pub continue_token: Option<String>,
    /// What state of the server is good enough: see Kubernetes' documentation. Live lists only.
    pub resource_version: Option<String>,
    /// How the resource version is meant. Live lists only.
    pub resource_version_match: Option<VersionMatch>,
}

/// How the resource version of a list is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VersionMatch {
    /// Exactly that state.
    Exact,
    /// That state or a newer one.
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
    /// If a key or value cannot be a label's.
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

    /// Only objects that a label selector selects: `app=web,tier in (a, b),!old`.
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
    /// If a name cannot be a field's.
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

    /// Only objects that a field selector selects: `spec.nodeName=a,status.phase!=Failed`.
    ///
    /// # Errors
    /// If it is not a selector.
    pub fn field_selector(mut self, selector: &str) -> Result<ListOptions, SelectorError> {
        self.fields = Some(FieldSelector::parse(selector).map_err(SelectorError)?);
        Ok(self)
    }

    /// At most so many.
    #[must_use]
    pub fn limit(mut self, limit: u32) -> ListOptions {
        self.limit = Some(limit);
        self
    }

    pub(super) fn query(&self, query: &mut Query) {
        selectors(query, self.labels.as_ref(), self.fields.as_ref());
        query.add_opt("limit", self.limit.map(|n| n.to_string()).as_deref());
        query.add_opt("continue", self.continue_token.as_deref());
        // A continue token carries the version itself, and servers refuse both.
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

/// Adds what selects, if anything does.
pub(crate) fn selectors(query: &mut Query, labels: Option<&LabelSelector>, fields: Option<&FieldSelector>) {
    if let Some(labels) = labels.filter(|labels| !labels.is_empty()) {
        // A selector of nothing has no text of its own, and no text is everything. No label is there and not there.
        let nothing = labels.requirements().is_empty();
        let text = if nothing { "nothing,!nothing".to_owned() } else { labels.to_string() };
        query.add("labelSelector", &text);
    }
    if let Some(fields) = fields.filter(|fields| !fields.is_empty()) {
        query.add("fieldSelector", &fields.to_string());
    }
}

/// Which changes are watched, and from where on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchOptions {
    /// In this namespace only.
    pub namespace: Option<Arc<str>>,
    /// With these labels only.
    pub labels: Option<LabelSelector>,
    /// With these fields only.
    pub fields: Option<FieldSelector>,
    /// Changes after this version: that of a list. Without one, the objects there are come first, as if just added.
    pub resource_version: Option<String>,
    /// Whether the server may say how far it is when nothing changes. On by default.
    pub bookmarks: bool,
    /// Whether the objects there are come first, closed by a bookmark with the annotation
    /// `k8s.io/initial-events-end` (a streaming list).
    pub send_initial_events: bool,
    /// After what time the server ends the watch.
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
    /// The changes after a list with these options, from its resource version on.
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

/// What the server does about fields that it does not know, and about duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldValidation {
    /// Drops them silently.
    Ignore,
    /// Drops them with a warning.
    Warn,
    /// Refuses the request.
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
    /// Do all but store.
    pub dry_run: bool,
    /// Who is said to own the fields.
    pub field_manager: Option<Arc<str>>,
    /// What to do about unknown fields.
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
    /// Do all but store.
    pub dry_run: bool,
    /// Who is said to own the fields.
    pub field_manager: Option<Arc<str>>,
    /// What to do about unknown fields.
    pub field_validation: Option<FieldValidation>,
    /// Take fields from other owners. For apply patches only.
    pub force: bool,
}

/// Options of applying. A `&str` is the options with this field manager.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplyOptions {
    /// Who applies. Needed here, or from [`Client::with_field_owner`](super::Client::with_field_owner).
    pub field_manager: Option<Arc<str>>,
    /// Take fields from other owners instead of failing with a conflict.
    pub force: bool,
    /// Do all but store.
    pub dry_run: bool,
    /// What to do about unknown fields.
    pub field_validation: Option<FieldValidation>,
}

impl ApplyOptions {
    /// In the name of this field manager.
    pub fn owner(field_manager: impl Into<Arc<str>>) -> ApplyOptions {
        ApplyOptions { field_manager: Some(field_manager.into()), ..ApplyOptions::default() }
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
    pub(super) fn query(&self, query: &mut Query) {
        query.add_opt("dryRun", self.dry_run.then_some("All"));
        query.add_opt("fieldManager", self.field_manager.as_deref());
        query.add_opt("fieldValidation", self.field_validation.map(FieldValidation::as_str));
        query.add_opt("force", self.force.then_some("true"));
    }
}

/// What happens to the objects that a deleted one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum PropagationPolicy {
    /// They stay, without their owner.
    Orphan,
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
}

/// What must be so for a deletion to happen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preconditions {
    /// It is this very object, not another one of the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// It has not changed since.
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
    /// What happens to the objects it owns; the kind's own way, if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propagation_policy: Option<PropagationPolicy>,
    /// How many seconds it has to end in good order; 0 is at once.
    #[serde(rename = "gracePeriodSeconds", skip_serializing_if = "Option::is_none")]
    pub grace_period: Option<u32>,
    /// Do all but delete.
    #[serde(skip_serializing_if = "std::ops::Not::not", serialize_with = "dry_run_all")]
    pub dry_run: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn dry_run_all<S: serde::Serializer>(_: &bool, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(["All"])
}

impl DeleteOptions {
    /// Only the object that was read: of this uid, and unchanged since.
    #[must_use]
    pub fn exactly<K: kube::Resource>(object: &K) -> DeleteOptions {
        let meta = object.meta();
        let preconditions =
            Preconditions { uid: meta.uid.clone(), resource_version: meta.resource_version.clone() };
        DeleteOptions { preconditions: Some(preconditions), ..DeleteOptions::default() }
    }

    /// What happens to the objects it owns.
    #[must_use]
    pub fn propagation(mut self, policy: PropagationPolicy) -> DeleteOptions {
        self.propagation_policy = Some(policy);
        self
    }
}

/// Which objects are deleted together, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteAllOfOptions {
    /// Which ones. Of a namespaced kind, a namespace is needed.
    pub list: ListOptions,
    /// How.
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
    fn no_options_make_no_query() {
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
    fn a_selector_of_nothing_does_not_become_one_of_everything() {
        let options = ListOptions { labels: Some(LabelSelector::nothing()), ..ListOptions::default() };
        assert_eq!(uri(|query| options.query(query)), "/x?labelSelector=nothing%2C%21nothing");
        let options = ListOptions { labels: Some(LabelSelector::default()), ..ListOptions::default() };
        assert_eq!(uri(|query| options.query(query)), "/x");
    }

    #[test]
    fn a_selector_that_is_none_says_so() {
        let error = ListOptions::default().matching_labels([("app", "not a value")]).unwrap_err();
        assert!(error.to_string().starts_with("invalid selector: "), "{error}");
        assert!(ListOptions::default().label_selector("a in").is_err());
        assert!(ListOptions::default().field_selector("a").is_err());
        assert!(ListOptions::default().matching_fields([("a=b", "c")]).is_err());
    }

    #[test]
    fn terms_add_up() -> Result<(), SelectorError> {
        let options = ListOptions::default().matching_labels([("a", "1")])?.matching_labels([("b", "2")])?;
        assert_eq!(options.labels.map(|labels| labels.to_string()).as_deref(), Some("a=1,b=2"));
        Ok(())
    }

    #[test]
    fn a_page_after_the_first_does_not_repeat_the_version() {
        let options = ListOptions {
            resource_version: Some("7".into()),
            continue_token: Some("t".into()),
            ..ListOptions::default()
        };
        assert_eq!(uri(|query| options.query(query)), "/x?continue=t");
    }

    #[test]
    fn delete_options_are_what_the_api_expects() -> Result<(), serde_json::Error> {
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
