//! What a manager has applied of an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value};

use super::{ApplyConfiguration, owned};
use crate::{Object, ObjectKey};

/// Why the fields of a manager could not be extracted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The object has no managed fields, so nothing is known about its managers.
    #[error(
        "{object} has no managedFields: read it from the server, or from a cache that does not strip them \
         (strip_managed_fields)"
    )]
    NoManagedFields {
        /// The object.
        object: ObjectKey,
    },
    /// The manager applied in another version, whose fields may have other names.
    #[error("{manager:?} has applied {object} as {applied}, but it was read as {read}: read it as {applied}")]
    OtherVersion {
        /// The object.
        object: ObjectKey,
        /// The manager.
        manager: String,
        /// The version that was applied: `apps/v1beta1`.
        applied: String,
        /// The version that was read.
        read: String,
    },
    /// The managed fields are not a field set.
    #[error("the managedFields of {manager:?} in {object} cannot be read: {reason}")]
    Unreadable {
        /// The object.
        object: ObjectKey,
        /// The manager.
        manager: String,
        /// What is wrong.
        reason: String,
    },
    /// The object cannot be written as JSON.
    #[error("{object} is not JSON: {source}")]
    Encode {
        /// The object.
        object: ObjectKey,
        /// The encoding error.
        source: serde_json::Error,
    },
}

impl<K: Object> ApplyConfiguration<K> {
    /// What a manager has applied of an object: the fields it owns, with the values they have now. To be changed, and
    /// applied again. Without any, as for a manager that has not applied yet, only the object's kind, name and namespace.
    ///
    /// Fields that the manager wrote by updates or other patches are not included, nor are those it applied through a
    /// subresource: see [`extract_subresource`](ApplyConfiguration::extract_subresource).
    ///
    /// ```
    /// # use k1s_runtime::{BoxError, Client, ObjectKey, client::ApplyConfiguration};
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use serde_json::json;
    /// # async fn example(client: Client, key: ObjectKey) -> Result<(), BoxError> {
    /// let deployment = client.get::<Deployment>(&key).await?;
    /// let mine = ApplyConfiguration::extract(&*deployment, "my-operator")?;
    /// client.apply(&mine.with(json!({"spec": {"replicas": 5}}))).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the object has no managed fields, or they cannot be read.
    pub fn extract(object: &K, manager: &str) -> Result<ApplyConfiguration<K>, ExtractError> {
        extract(object, manager, None)
    }

    /// What a manager has applied of an object through a subresource: `status`.
    ///
    /// # Errors
    /// As [`extract`](ApplyConfiguration::extract).
    pub fn extract_subresource(
        object: &K,
        manager: &str,
        subresource: &str,
    ) -> Result<ApplyConfiguration<K>, ExtractError> {
        extract(object, manager, Some(subresource))
    }
}

fn extract<K: Object>(
    object: &K,
    manager: &str,
    subresource: Option<&str>,
) -> Result<ApplyConfiguration<K>, ExtractError> {
    let key = ObjectKey::of(object);
    let entries = object.meta().managed_fields.as_deref().unwrap_or_default();
    if entries.is_empty() {
        return Err(ExtractError::NoManagedFields { object: key });
    }
    let value = serde_json::to_value(object)
        .map_err(|source| ExtractError::Encode { object: key.clone(), source })?;
    let mut content = match entries.iter().find(|entry| is_of(entry, manager, subresource)) {
        Some(entry) => fields_of::<K>(entry, entries, &value, &key)?,
        None => Map::new(),
    };
    identify::<K>(&mut content, &value, &key);
    Ok(ApplyConfiguration::from_map(content))
}

fn is_of(entry: &ManagedFieldsEntry, manager: &str, subresource: Option<&str>) -> bool {
    let through = entry.subresource.as_deref().filter(|name| !name.is_empty());
    entry.operation.as_deref() == Some("Apply")
        && entry.manager.as_deref() == Some(manager)
        && through == subresource
}

fn fields_of<K: Object>(
    entry: &ManagedFieldsEntry,
    all: &[ManagedFieldsEntry],
    value: &Value,
    key: &ObjectKey,
) -> Result<Map<String, Value>, ExtractError> {
    let manager = || entry.manager.clone().unwrap_or_default();
    let (applied, read) = (entry.api_version.as_deref(), value.get("apiVersion").and_then(Value::as_str));
    if let (Some(applied), Some(read)) = (applied, read)
        && applied != read
        && !K::metadata_api()
    {
        let (applied, read) = (applied.to_owned(), read.to_owned());
        return Err(ExtractError::OtherVersion { object: key.clone(), manager: manager(), applied, read });
    }
    // Elsewhere an empty node is a leaf, and selects its whole value.
    let set = entry.fields_v1.as_ref().filter(|set| set.0.as_object().is_none_or(|set| !set.is_empty()));
    let Some(set) = set else { return Ok(Map::new()) };
    let same_version = all.iter().filter(|other| other.api_version == entry.api_version);
    let others: Vec<&Value> =
        same_version.filter_map(|other| other.fields_v1.as_ref()).map(|set| &set.0).collect();
    match owned::select(value, &set.0, &others) {
        Ok(Some(Value::Object(fields))) => Ok(fields),
        Ok(_) => Ok(Map::new()),
        Err(error) => Err(ExtractError::Unreadable {
            object: key.clone(),
            manager: manager(),
            reason: error.to_string(),
        }),
    }
}

/// Adds what says which object is meant. No manager owns that.
fn identify<K: Object>(content: &mut Map<String, Value>, value: &Value, key: &ObjectKey) {
    if !K::metadata_api() {
        for name in ["apiVersion", "kind"] {
            if let Some(known) = value.get(name) {
                content.insert(name.to_owned(), known.clone());
            }
        }
    }
    let meta = content.entry("metadata").or_insert_with(|| Map::new().into());
    if let Value::Object(meta) = meta {
        meta.insert("name".to_owned(), key.name().into());
        if let Some(namespace) = key.namespace() {
            meta.insert("namespace".to_owned(), namespace.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use kube::core::{DynamicObject, PartialObjectMeta};
    use serde_json::json;

    use super::*;

    fn stored() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "web", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"mine": "1", "theirs": "2"},
                "managedFields": [
                    {"manager": "me", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                     "fieldsV1": {"f:spec": {"f:paused": {}}}},
                    {"manager": "me", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                     "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:mine": {}}},
                        "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {
                            "k:{\"name\":\"app\"}": {".": {}, "f:name": {}, "f:image": {}}}}}},
                     }},
                    {"manager": "me", "operation": "Apply", "apiVersion": "apps/v1", "subresource": "status",
                     "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:replicas": {}}}},
                    {"manager": "old", "operation": "Apply", "apiVersion": "apps/v1beta1", "fieldsType": "FieldsV1",
                     "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                    {"manager": "odd", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                     "fieldsV1": {"x": {}}},
                    {"manager": "idle", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                     "fieldsV1": {}},
                ],
            },
            "spec": {
                "replicas": 3, "paused": true, "selector": {"matchLabels": {"a": "b"}},
                "template": {"spec": {"containers": [
                    {"name": "app", "image": "a:1", "imagePullPolicy": "Always"}, {"name": "sidecar", "image": "s:1"},
                ]}},
            },
            "status": {"replicas": 3, "readyReplicas": 2},
        })
    }

    fn typed() -> Deployment {
        serde_json::from_value(stored()).expect("a deployment")
    }

    fn identity() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "n"}})
    }

    #[test]
    fn the_fields_that_a_manager_applied_are_extracted() {
        let expected = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "n", "labels": {"mine": "1"}},
            "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "app", "image": "a:1"}]}}},
        });
        let mine = ApplyConfiguration::extract(&typed(), "me").expect("extracted");
        assert_eq!(mine.into_value(), expected);
        let object: DynamicObject = serde_json::from_value(stored()).expect("an object");
        let mine = ApplyConfiguration::extract(&object, "me").expect("extracted");
        assert_eq!(mine.into_value(), expected);
    }

    #[test]
    fn each_subresource_has_its_own_fields() {
        let status = ApplyConfiguration::extract_subresource(&typed(), "me", "status").expect("extracted");
        let mut expected = identity();
        expected["status"] = json!({"replicas": 3});
        assert_eq!(status.into_value(), expected);
        let scale = ApplyConfiguration::extract_subresource(&typed(), "me", "scale").expect("extracted");
        assert!(scale.is_empty());
    }

    #[test]
    fn a_manager_that_applied_nothing_owns_nothing() {
        for manager in ["nobody", "idle"] {
            let none = ApplyConfiguration::extract(&typed(), manager).expect("extracted");
            assert!(none.is_empty());
            assert_eq!(none.into_value(), identity());
        }
    }

    #[test]
    fn metadata_is_extracted_alone() {
        let object: PartialObjectMeta<Deployment> = serde_json::from_value(stored()).expect("metadata");
        let mine = ApplyConfiguration::extract(&object, "me").expect("extracted").into_value();
        assert_eq!(mine, json!({"metadata": {"name": "web", "namespace": "n", "labels": {"mine": "1"}}}));
    }

    #[test]
    fn what_cannot_be_extracted_is_an_error() {
        let error = |object: &Deployment, manager| {
            ApplyConfiguration::extract(object, manager).unwrap_err().to_string()
        };
        assert_eq!(
            error(&typed(), "old"),
            r#""old" has applied n/web as apps/v1beta1, but it was read as apps/v1: read it as apps/v1beta1"#
        );
        assert_eq!(
            error(&typed(), "odd"),
            r#"the managedFields of "odd" in n/web cannot be read: "x" is not a path element"#
        );
        let mut lean = typed();
        lean.metadata.managed_fields = None;
        assert!(error(&lean, "me").starts_with("n/web has no managedFields: "), "{}", error(&lean, "me"));
    }
}
