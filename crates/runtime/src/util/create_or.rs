//! Creating an object, or changing the existing one.

use std::{fmt, sync::Arc};

use k1s_object::patch::merge;
use serde_json::{Map, Value};

use crate::{
    BoxError, Object, ObjectKey, TypedObject,
    client::{Applicable, ApplyOptions, Client, Error, KindClient, Patch},
};

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationResult {
    /// It already was in the desired state.
    Unchanged,
    /// It did not exist.
    Created,
    /// It was changed.
    Updated,
    /// It and its status were changed.
    UpdatedStatus,
    /// Its status was changed.
    UpdatedStatusOnly,
}

impl OperationResult {
    /// The name that Go uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            OperationResult::Unchanged => "unchanged",
            OperationResult::Created => "created",
            OperationResult::Updated => "updated",
            OperationResult::UpdatedStatus => "updatedStatus",
            OperationResult::UpdatedStatusOnly => "updatedStatusOnly",
        }
    }
}

impl fmt::Display for OperationResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The result of a function that changes an object: `()`, or a `Result`.
#[diagnostic::on_unimplemented(
    message = "a function that changes an object returns `()` or `Result<(), E>`, not `{Self}`",
    label = "neither `()` nor `Result<(), E>`",
    note = "a `;` after the last expression drops its value"
)]
pub trait Mutation {
    /// The error, if there was one.
    fn into_result(self) -> Result<(), BoxError>;
}

impl Mutation for () {
    fn into_result(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E: Into<BoxError>> Mutation for Result<(), E> {
    fn into_result(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

/// Brings an object into the state that `mutate` describes: creates it, updates it, or leaves it alone if nothing differs.
///
/// `skeleton` has the name and namespace. The object is read through the client: from its cache, if it has one; from the
/// server, if the cache watches other namespaces, or selects by labels or fields and does not hold the object. `mutate`
/// changes what was read, or the skeleton if there is no such object. It must only set the fields it cares about: the
/// server fills others with defaults, and resetting these would cause an update every time. Changes to the status are not
/// written.
///
/// ```
/// # use k1s_runtime::{client::{Client, Error}, util::{create_or_update, set_controller_reference}};
/// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// # async fn example(client: Client, owner: Deployment, skeleton: ConfigMap) -> Result<(), Error> {
/// let (settings, done) = create_or_update(&client, skeleton, |settings| {
///     settings.data = Some([("colour".to_owned(), "blue".to_owned())].into());
///     set_controller_reference(&owner, settings)
/// })
/// .await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Of `mutate`, also if it changed the name or the namespace; of reading and writing. A conflict
/// ([`Error::is_conflict`]) means that another client was faster: try again later.
pub async fn create_or_update<K: TypedObject, M: Mutation>(
    client: &Client,
    skeleton: K,
    mutate: impl FnOnce(&mut K) -> M,
) -> Result<(K, OperationResult), Error> {
    client.typed().create_or_update(skeleton, mutate).await
}

/// Brings an object into the state that `mutate` describes: creates it, patches it and its status, or leaves it alone if
/// nothing differs.
///
/// Like [`create_or_update`], but only differences are sent, without a resource version; and a changed status is patched,
/// too, if the object existed. (A created object has no status: call this again to set it.)
///
/// # Errors
/// Of `mutate`, also if it changed the name or the namespace; of reading and writing.
pub async fn create_or_patch<K: TypedObject, M: Mutation>(
    client: &Client,
    skeleton: K,
    mutate: impl FnOnce(&mut K) -> M,
) -> Result<(K, OperationResult), Error> {
    client.typed().create_or_patch(skeleton, mutate).await
}

/// [Applies](Client::apply_with) an object, or some of its fields, and says what that did.
///
/// The object is read through the client before, as by [`create_or_update`]. It is unchanged if what is stored afterwards
/// equals what was read, apart from the status and who owns what.
///
/// ```
/// # use k1s_runtime::{client::{ApplyOptions, Client, Error}, util::{OperationResult, create_or_apply}};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # async fn example(client: Client, settings: ConfigMap) -> Result<(), Error> {
/// let (stored, done) = create_or_apply(&client, &settings, ApplyOptions::forced()).await?;
/// if done != OperationResult::Unchanged {
///     println!("settings {done}"); // created, updated
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Of reading and applying.
pub async fn create_or_apply<K: TypedObject>(
    client: &Client,
    configuration: &(impl Applicable<K> + ?Sized),
    options: impl Into<ApplyOptions>,
) -> Result<(K, OperationResult), Error> {
    client.typed().create_or_apply(configuration, options).await
}

impl<K: Object> KindClient<K> {
    /// [`create_or_apply`] for this kind.
    ///
    /// # Errors
    /// As there.
    pub async fn create_or_apply(
        &self,
        configuration: &(impl Applicable<K> + ?Sized),
        options: impl Into<ApplyOptions>,
    ) -> Result<(K, OperationResult), Error> {
        let before = self.read(&configuration.configuration(None).key()).await?;
        let stored = self.apply_with(configuration, options).await?;
        let Some(before) = before else { return Ok((stored, OperationResult::Created)) };
        let unchanged = same(&content(value(self, &*before)?), &content(value(self, &stored)?));
        Ok((stored, if unchanged { OperationResult::Unchanged } else { OperationResult::Updated }))
    }

    /// [`create_or_update`] for this kind.
    ///
    /// # Errors
    /// As there.
    pub async fn create_or_update<M: Mutation>(
        &self,
        skeleton: K,
        mutate: impl FnOnce(&mut K) -> M,
    ) -> Result<(K, OperationResult), Error> {
        let Some(existing) = self.read(&ObjectKey::of(&skeleton)).await? else {
            return self.create_mutated(skeleton, mutate).await;
        };
        let mut wanted = (*existing).clone();
        change(self, &mut wanted, mutate)?;
        if same(&value(self, &*existing)?, &value(self, &wanted)?) {
            return Ok((wanted, OperationResult::Unchanged));
        }
        Ok((self.update(&wanted).await?, OperationResult::Updated))
    }

    /// [`create_or_patch`] for this kind.
    ///
    /// # Errors
    /// As there.
    pub async fn create_or_patch<M: Mutation>(
        &self,
        skeleton: K,
        mutate: impl FnOnce(&mut K) -> M,
    ) -> Result<(K, OperationResult), Error> {
        let Some(existing) = self.read(&ObjectKey::of(&skeleton)).await? else {
            return self.create_mutated(skeleton, mutate).await;
        };
        let mut wanted = (*existing).clone();
        change(self, &mut wanted, mutate)?;
        let (mut before, mut after) = (value(self, &*existing)?, value(self, &wanted)?);
        let (status_before, status_after) = (take(&mut before, "status"), take(&mut after, "status"));
        let differs = !same(&before, &after);
        let status_differs = !same(&status_before, &status_after);
        let mut stored = None;
        if differs {
            let patch = Patch::merge(&merge::diff(&before, &after));
            stored = Some(self.patch(&wanted, patch).await?);
        }
        if status_differs {
            let status = match &status_after {
                Value::Null => Value::Null,
                after => merge::diff(&status_before, after),
            };
            let patch = Patch::merge(&Map::from_iter([("status".to_owned(), status)]));
            stored = Some(self.status().patch(&wanted, patch).await?);
        }
        let result = match (differs, status_differs) {
            (false, false) => OperationResult::Unchanged,
            (true, false) => OperationResult::Updated,
            (true, true) => OperationResult::UpdatedStatus,
            (false, true) => OperationResult::UpdatedStatusOnly,
        };
        Ok((stored.unwrap_or(wanted), result))
    }

    /// The existing object: from the cache, or from the server if the cache does not cover it.
    async fn read(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, Error> {
        let held = match self.get_opt(key).await {
            Ok(None) => self.cache().is_none_or(|cache| cache.selects_all(self.kind())),
            Err(error) if error.is_outside_cache() => false,
            other => return other,
        };
        if held {
            return Ok(None);
        }
        self.get_past_cache(key).await
    }

    async fn create_mutated<M: Mutation>(
        &self,
        mut object: K,
        mutate: impl FnOnce(&mut K) -> M,
    ) -> Result<(K, OperationResult), Error> {
        change(self, &mut object, mutate)?;
        Ok((self.create(&object).await?, OperationResult::Created))
    }
}

fn named<K: Object>(client: &KindClient<K>, key: &ObjectKey) -> Box<str> {
    format!("{} {key}", client.kind()).into()
}

fn change<K: Object, M: Mutation>(
    client: &KindClient<K>,
    object: &mut K,
    mutate: impl FnOnce(&mut K) -> M,
) -> Result<(), Error> {
    let key = ObjectKey::of(object);
    let failed = |source| Error::Mutate { object: named(client, &key), source };
    mutate(object).into_result().map_err(failed)?;
    let renamed = ObjectKey::of(object);
    if renamed == key {
        return Ok(());
    }
    Err(failed(format!("its name and namespace must stay, but became {renamed}").into()))
}

fn value<K: Object>(client: &KindClient<K>, object: &K) -> Result<Value, Error> {
    serde_json::to_value(object).map_err(|source| Error::Mutate {
        object: named(client, &ObjectKey::of(object)),
        source: source.into(),
    })
}

fn take(object: &mut Value, field: &str) -> Value {
    object.as_object_mut().and_then(|object| object.remove(field)).unwrap_or_default()
}

/// An object without its status, and without the metadata that changes with every write.
fn content(mut object: Value) -> Value {
    take(&mut object, "status");
    if let Some(meta) = object.get_mut("metadata") {
        for name in ["managedFields", "resourceVersion", "generation"] {
            take(meta, name);
        }
    }
    object
}

/// Whether two states of an object are equivalent: an empty list equals no list, and empty labels equal no labels.
/// Elsewhere an empty object has a meaning (`emptyDir: {}`).
fn same(a: &Value, b: &Value) -> bool {
    same_within(a, b, false)
}

fn same_within(a: &Value, b: &Value, in_metadata: bool) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let counts = |value: &Value| !is_nothing(value, in_metadata);
            let covered = |a: &Map<String, Value>, b: &Map<String, Value>| {
                b.iter().all(|(name, value)| a.contains_key(name) || !counts(value))
            };
            covered(a, b)
                && a.iter().all(|(name, value)| match b.get(name) {
                    Some(other) => same_within(value, other, in_metadata || name == "metadata"),
                    None => !counts(value),
                })
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_within(a, b, in_metadata))
        }
        (a, b) => a == b || (is_nothing(a, in_metadata) && is_nothing(b, in_metadata)),
    }
}

fn is_nothing(value: &Value, in_metadata: bool) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => in_metadata && object.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_lists_and_labels_equal_missing_ones() {
        let a = json!({"metadata": {"name": "a", "labels": {}, "finalizers": []}, "spec": {"list": []}});
        let b = json!({"metadata": {"name": "a"}, "spec": {"other": null}});
        assert!(same(&a, &b) && same(&b, &a));
    }

    #[test]
    fn an_empty_object_elsewhere_is_a_difference() {
        let a = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
        let b = json!({"spec": {"volumes": [{"name": "v"}]}});
        assert!(!same(&a, &b) && !same(&b, &a));
        assert!(same(&a, &a));
    }

    #[test]
    fn the_status_and_who_owns_what_are_not_content() {
        let a = json!({"metadata": {"name": "a", "resourceVersion": "1", "managedFields": [{}]}, "spec": 1});
        let b = json!({"metadata": {"name": "a", "resourceVersion": "2", "generation": 2}, "spec": 1, "status": 3});
        assert!(same(&content(a.clone()), &content(b)));
        assert!(!same(&content(a), &content(json!({"metadata": {"name": "a"}, "spec": 2}))));
    }

    #[test]
    fn differences_are_found_on_either_side() {
        let a = json!({"data": {"x": "1"}});
        for b in [
            json!({"data": {"x": "2"}}),
            json!({"data": {"x": "1", "y": "1"}}),
            json!({}),
            json!({"data": 1}),
        ] {
            assert!(!same(&a, &b) && !same(&b, &a), "{b}");
        }
        assert!(!same(&json!([1, 2]), &json!([2, 1])));
    }
}
