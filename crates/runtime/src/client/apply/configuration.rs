//! Apply configurations: some fields of an object.

use std::{borrow::Cow, fmt, marker::PhantomData, sync::Arc};

use kube::{api::ApiResource, core::DynamicObject};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::strip;
use crate::{Kind, Object, ObjectKey, TypedObject, kind};

/// What can be applied to objects of kind `K`: an object, or an [`ApplyConfiguration`].
///
/// Of an object, everything is applied that it has, except nulls, the status (which is applied alone, through
/// [`Client::status`](crate::Client::status)) and metadata that the server sets. So build the object: one that was read has
/// the fields of everybody, and applying it would make its manager own them all. Its uid and resource version are applied,
/// as in Go, if they are set: then only that very object is changed, and only if it has not changed meanwhile.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be applied to objects of `{K}`",
    label = "neither such an object nor an `ApplyConfiguration`",
    note = "JSON is applied as `ApplyConfiguration::<K>::from(json!(…))`; `&*object` is the object in the `Arc` of a read"
)]
pub trait Applicable<K: Object>: Sync {
    /// The fields to apply to the object, or to a subresource of it.
    fn configuration(&self, subresource: Option<&str>) -> Cow<'_, ApplyConfiguration<K>>;
}

impl<K: Object> Applicable<K> for K {
    fn configuration(&self, subresource: Option<&str>) -> Cow<'_, ApplyConfiguration<K>> {
        Cow::Owned(ApplyConfiguration::of_object(self, subresource))
    }
}

impl<K: Object> Applicable<K> for ApplyConfiguration<K> {
    fn configuration(&self, _: Option<&str>) -> Cow<'_, ApplyConfiguration<K>> {
        Cow::Borrowed(self)
    }
}

/// Some fields of an object of kind `K`, to be applied: Go's apply configurations. Unlike a `K`, it needs no field but the
/// name.
///
/// What it says is what its manager owns afterwards. Fields that the manager applied before and that it does not have any
/// more are removed from the object, unless another manager owns them, too.
///
/// ```
/// # use k1s_runtime::{Client, ObjectKey, client::{ApplyConfiguration, Error}};
/// # use k8s_openapi::api::apps::v1::Deployment;
/// # use serde_json::json;
/// # async fn example(client: Client) -> Result<(), Error> {
/// let key = ObjectKey::namespaced("default", "web");
/// let scaled = ApplyConfiguration::<Deployment>::new(&key).with(json!({"spec": {"replicas": 3}}));
/// let stored: Deployment = client.apply(&scaled).await?;
///
/// // As JSON that is sent as it is; `apiVersion` and `kind` may be left out.
/// let same = json!({"metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 3}});
/// client.apply(&ApplyConfiguration::<Deployment>::from(same)).await?;
/// # Ok(())
/// # }
/// ```
pub struct ApplyConfiguration<K = DynamicObject> {
    content: Map<String, Value>,
    /// What is wrong with it. Reported when it is applied, so that builders are infallible.
    problem: Option<Arc<str>>,
    kind: PhantomData<fn() -> K>,
}

impl<K: TypedObject> ApplyConfiguration<K> {
    /// Nothing but the kind, name and namespace of an object.
    #[must_use]
    pub fn new(key: &ObjectKey) -> ApplyConfiguration<K> {
        ApplyConfiguration::of_kind(&kind::<K>(), key)
    }

    /// The fields of an object: what is applied of it, as [`Applicable`] says.
    #[must_use]
    pub fn of(object: &K) -> ApplyConfiguration<K> {
        let mut configuration = ApplyConfiguration::of_object(object, None);
        configuration.set_types(kind::<K>().resource());
        configuration
    }
}

impl<K: Object> ApplyConfiguration<K> {
    /// Nothing but the kind, name and namespace of an object whose kind is known at run time only.
    #[must_use]
    pub fn of_kind(kind: &Kind<K>, key: &ObjectKey) -> ApplyConfiguration<K> {
        let mut meta = Map::from_iter([("name".to_owned(), key.name().into())]);
        if let Some(namespace) = key.namespace() {
            meta.insert("namespace".to_owned(), namespace.into());
        }
        let mut configuration = ApplyConfiguration::from_map(Map::new());
        configuration.set_types(kind.resource());
        configuration.content.insert("metadata".to_owned(), meta.into());
        configuration
    }

    fn of_object(object: &K, subresource: Option<&str>) -> ApplyConfiguration<K> {
        let mut configuration = match serde_json::to_value(object) {
            Ok(value) => ApplyConfiguration::from(value),
            Err(error) => ApplyConfiguration::broken(format!("the object is not JSON: {error}")),
        };
        strip::object(&mut configuration.content, subresource);
        // Those of metadata are of their own.
        if K::metadata_api() {
            configuration.content.retain(|name, _| name == "metadata");
        }
        configuration
    }

    pub(super) fn from_map(content: Map<String, Value>) -> ApplyConfiguration<K> {
        ApplyConfiguration { content, problem: None, kind: PhantomData }
    }

    fn broken(problem: String) -> ApplyConfiguration<K> {
        ApplyConfiguration { problem: Some(problem.into()), ..ApplyConfiguration::from_map(Map::new()) }
    }

    fn set_types(&mut self, resource: &ApiResource) {
        self.content.insert("apiVersion".to_owned(), resource.api_version.as_str().into());
        self.content.insert("kind".to_owned(), resource.kind.as_str().into());
    }

    /// Adds fields: a JSON object, or anything that serializes to one. Objects are merged, other values replaced. Fields
    /// that are null are left out.
    #[must_use]
    pub fn with(mut self, fields: impl Serialize) -> ApplyConfiguration<K> {
        match serde_json::to_value(fields) {
            Ok(Value::Object(mut fields)) => {
                strip::fields(&mut fields);
                merge(&mut self.content, fields);
            }
            Ok(other) => self.fail(format!("fields are a JSON object, not {}", shape(&other))),
            Err(error) => self.fail(format!("the fields are not JSON: {error}")),
        }
        self
    }

    /// Adds a label.
    #[must_use]
    pub fn label(self, name: &str, value: &str) -> ApplyConfiguration<K> {
        self.with(json!({"metadata": {"labels": {name: value}}}))
    }

    /// Adds an annotation.
    #[must_use]
    pub fn annotation(self, name: &str, value: &str) -> ApplyConfiguration<K> {
        self.with(json!({"metadata": {"annotations": {name: value}}}))
    }

    /// The value of a field, by its JSON pointer: `/spec/replicas`.
    #[must_use]
    pub fn get(&self, pointer: &str) -> Option<&Value> {
        let (first, rest) = split(pointer)?;
        self.content.get(&first)?.pointer(rest)
    }

    /// The value of a field, by its JSON pointer, to be changed.
    pub fn get_mut(&mut self, pointer: &str) -> Option<&mut Value> {
        let (first, rest) = split(pointer)?;
        self.content.get_mut(&first)?.pointer_mut(rest)
    }

    /// Removes a field or an item of a list, by its JSON pointer: its manager gives it up.
    pub fn remove(&mut self, pointer: &str) -> Option<Value> {
        let (parent, last) = pointer.rsplit_once('/')?;
        let last = unescape(last);
        if parent.is_empty() {
            return self.content.remove(&last);
        }
        match self.get_mut(parent)? {
            Value::Object(fields) => fields.remove(&last),
            Value::Array(items) => {
                let index = last.parse().ok().filter(|index: &usize| *index < items.len())?;
                Some(items.remove(index))
            }
            _ => None,
        }
    }

    /// Whether it has no field but those that say which object is meant.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.content.iter().all(|(name, value)| match (name.as_str(), value) {
            ("apiVersion" | "kind", _) => true,
            ("metadata", Value::Object(meta)) => {
                meta.keys().all(|name| strip::IDENTITY.contains(&name.as_str()))
            }
            _ => false,
        })
    }

    /// The key of the object. The name is empty if there is none.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        let text = |pointer| self.get(pointer).and_then(Value::as_str);
        ObjectKey::new(text("/metadata/namespace"), text("/metadata/name").unwrap_or_default())
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.content.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The same fields, for an object whose kind is known at run time only: for
    /// [`Client::apply_all`](crate::Client::apply_all).
    #[must_use]
    pub fn erase(self) -> ApplyConfiguration {
        ApplyConfiguration { content: self.content, problem: self.problem, kind: PhantomData }
    }

    /// As JSON.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.content.into()
    }

    /// The request body for this resource.
    ///
    /// # Errors
    /// A message if it is not JSON, or of another kind.
    pub(super) fn body(&self, resource: &ApiResource) -> Result<Vec<u8>, String> {
        if let Some(problem) = &self.problem {
            return Err(problem.to_string());
        }
        let fits = |name: &str, wanted: &str| self.content.get(name).is_none_or(|own| own == wanted);
        if fits("apiVersion", &resource.api_version) && fits("kind", &resource.kind) {
            let mut whole = self.clone();
            whole.set_types(resource);
            return serde_json::to_vec(&whole.content).map_err(|error| error.to_string());
        }
        Err(format!(
            "the configuration is of {} {}, not of {} {}",
            self.text("apiVersion"),
            self.text("kind"),
            resource.api_version,
            resource.kind
        ))
    }

    fn fail(&mut self, problem: String) {
        self.problem.get_or_insert_with(|| problem.into());
    }
}

/// The first field of a JSON pointer, and the pointer from there.
fn split(pointer: &str) -> Option<(String, &str)> {
    let path = pointer.strip_prefix('/')?;
    let end = path.find('/').unwrap_or(path.len());
    Some((unescape(path.get(..end)?), path.get(end..)?))
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

fn merge(into: &mut Map<String, Value>, fields: Map<String, Value>) {
    for (name, value) in fields {
        match (into.get_mut(&name), value) {
            (Some(Value::Object(known)), Value::Object(value)) => merge(known, value),
            (_, value) => {
                into.insert(name, value);
            }
        }
    }
}

fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The JSON is applied as it is, with its nulls: a field that is null is owned, and has no value.
impl<K: Object> From<Value> for ApplyConfiguration<K> {
    fn from(value: Value) -> ApplyConfiguration<K> {
        match value {
            Value::Object(content) => ApplyConfiguration::from_map(content),
            other => ApplyConfiguration::broken(format!(
                "an apply configuration is a JSON object, not {}",
                shape(&other)
            )),
        }
    }
}

impl<K> Serialize for ApplyConfiguration<K> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.content.serialize(to)
    }
}

impl<K> Clone for ApplyConfiguration<K> {
    fn clone(&self) -> ApplyConfiguration<K> {
        ApplyConfiguration { content: self.content.clone(), problem: self.problem.clone(), kind: PhantomData }
    }
}

impl<K> PartialEq for ApplyConfiguration<K> {
    fn eq(&self, other: &ApplyConfiguration<K>) -> bool {
        self.content == other.content && self.problem == other.problem
    }
}

impl<K> fmt::Debug for ApplyConfiguration<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            Some(problem) => write!(f, "ApplyConfiguration({problem})"),
            None => write!(f, "ApplyConfiguration({})", Value::Object(self.content.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};

    use super::*;

    fn web() -> ApplyConfiguration<Deployment> {
        ApplyConfiguration::new(&ObjectKey::namespaced("n", "web"))
    }

    fn sent<K: Object>(configuration: &ApplyConfiguration<K>, kind: &Kind<K>) -> Result<Value, String> {
        let body = configuration.body(kind.resource())?;
        serde_json::from_slice(&body).map_err(|error| error.to_string())
    }

    #[test]
    fn required_fields_need_not_be_filled_in() {
        let scaled = web()
            .with(json!({"spec": {"replicas": 3, "paused": null}}))
            .label("a", "1")
            .label("b", "2")
            .annotation("example.com/c", "3")
            .with(json!({"spec": {"minReadySeconds": 1}}));
        assert_eq!(
            sent(&scaled, &kind()),
            Ok(json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {
                    "name": "web", "namespace": "n", "labels": {"a": "1", "b": "2"}, "annotations": {"example.com/c": "3"},
                },
                "spec": {"replicas": 3, "minReadySeconds": 1},
            }))
        );
        assert_eq!(scaled.key(), ObjectKey::namespaced("n", "web"));
        assert!(web().is_empty() && !scaled.is_empty() && !web().label("a", "b").is_empty());
    }

    #[test]
    fn json_is_applied_as_it_is_and_gets_its_kind() {
        let given = json!({"metadata": {"name": "a"}, "data": {"k": null}});
        let configuration = ApplyConfiguration::<ConfigMap>::from(given);
        assert_eq!(
            sent(&configuration, &kind()),
            Ok(
                json!({"metadata": {"name": "a"}, "data": {"k": null}, "apiVersion": "v1", "kind": "ConfigMap"})
            )
        );
    }

    #[test]
    fn what_cannot_be_applied_is_refused() {
        let error = |configuration: ApplyConfiguration<ConfigMap>| sent(&configuration, &kind()).unwrap_err();
        assert_eq!(error(json!([]).into()), "an apply configuration is a JSON object, not a list");
        let key = ObjectKey::namespaced("n", "a");
        assert_eq!(
            error(ApplyConfiguration::new(&key).with(1).label("a", "b")),
            "fields are a JSON object, not a number"
        );
        assert_eq!(
            error(json!({"apiVersion": "v1", "kind": "Secret"}).into()),
            "the configuration is of v1 Secret, not of v1 ConfigMap"
        );
    }

    #[test]
    fn fields_are_found_by_their_pointers() {
        let mut web = web().with(json!({"spec": {"list": [{"a": 1}, {"a": 2}]}, "a/b": {"~": 3}}));
        assert_eq!(web.get("/spec/list/1/a"), Some(&json!(2)));
        assert_eq!(web.get("/a~1b/~0"), Some(&json!(3)));
        assert_eq!((web.get("spec"), web.get("/spec/none"), web.get("")), (None, None, None));
        *web.get_mut("/spec/list/0/a").expect("a field") = json!(7);
        assert_eq!(web.remove("/spec/list/1"), Some(json!({"a": 2})));
        assert_eq!(web.remove("/a~1b"), Some(json!({"~": 3})));
        assert_eq!(
            (web.remove("/spec/list/1"), web.remove("/spec/none/x"), web.remove("x")),
            (None, None, None)
        );
        assert_eq!(web.get("/spec"), Some(&json!({"list": [{"a": 7}]})));
    }
}
