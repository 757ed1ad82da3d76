//! Patches: given as they are sent, or computed from the difference between two states of an object.

use std::sync::Arc;

use bytes::Bytes;
use k1s_object::patch::merge;
use kube::{Resource, api::ApiResource};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Verb, strategic};

/// The format of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchType {
    /// RFC 6902: a list of operations.
    Json,
    /// RFC 7386: fields to set, and nulls to remove. Lists are replaced.
    Merge,
    /// Like a merge patch, with lists merged by key and with directives. For built-in kinds only.
    Strategic,
    /// Server-side apply: the fields that a field manager wants to own, with their values.
    Apply,
}

impl PatchType {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::Strategic => "application/strategic-merge-patch+json",
            PatchType::Apply => "application/apply-patch+yaml",
        }
    }

    pub(super) fn verb(self) -> Verb {
        if self == PatchType::Apply { Verb::Apply } else { Verb::Patch }
    }
}

/// A change to an object.
///
/// ```
/// # use k1s_runtime::client::{Client, Error, Patch};
/// # use k1s_runtime::ObjectKey;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # async fn example(client: Client, key: ObjectKey) -> Result<(), Error> {
/// let original = client.get::<ConfigMap>(&key).await?;
/// let mut changed = (*original).clone();
/// changed.data.get_or_insert_default().insert("colour".into(), "blue".into());
/// client.patch(&changed, Patch::merge_from(&*original)).await?;
///
/// let annotate = serde_json::json!({"metadata": {"annotations": {"seen": "yes"}}});
/// client.patch::<ConfigMap>(&key, Patch::merge(&annotate)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Patch {
    kind: PatchType,
    content: Content,
}

#[derive(Debug, Clone)]
enum Content {
    Written(Bytes),
    /// The difference between `original` and the object passed to `patch`.
    From {
        original: Value,
        lock: bool,
    },
    /// The value is not JSON. Reported when the patch is sent, so that its constructors are infallible.
    Unwritable(Arc<str>),
}

impl Patch {
    /// The merge patch from `original` to the object passed to `patch`. Sent without a resource version: it never
    /// conflicts, and changes only the fields that differ. Lists are sent whole.
    pub fn merge_from<K: Resource + Serialize>(original: &K) -> Patch {
        Patch::from(PatchType::Merge, original)
    }

    /// The strategic merge patch from `original` to the object passed to `patch`. For built-in kinds only.
    ///
    /// Lists that are merged by a key in pod templates, in metadata and in the specs of Services are sent element by
    /// element, so that elements of other clients (an injected container, another owner) stay. Only the server knows how
    /// any other list is merged, so a struct that contains one that differs is sent whole, with `$patch: replace`: correct
    /// for every kind, but it overwrites concurrent changes inside of that struct. Use
    /// [`with_optimistic_lock`](Patch::with_optimistic_lock) where that matters.
    pub fn strategic_merge_from<K: Resource + Serialize>(original: &K) -> Patch {
        Patch::from(PatchType::Strategic, original)
    }

    fn from<K: Serialize>(kind: PatchType, original: &K) -> Patch {
        let content = match serde_json::to_value(original) {
            Ok(original) => Content::From { original, lock: false },
            Err(error) => Content::Unwritable(error.to_string().into()),
        };
        Patch { kind, content }
    }

    /// Fails with a conflict if the object has changed since `original` was read. Only for patches computed from an
    /// original; other patches contain the resource version themselves.
    #[must_use]
    pub fn with_optimistic_lock(mut self) -> Patch {
        if let Content::From { lock, .. } = &mut self.content {
            *lock = true;
        }
        self
    }

    /// A JSON patch: `json_patch::Patch`, or a list of operations.
    pub fn json(operations: &(impl Serialize + ?Sized)) -> Patch {
        Patch::written(PatchType::Json, operations)
    }

    /// A merge patch.
    pub fn merge(patch: &(impl Serialize + ?Sized)) -> Patch {
        Patch::written(PatchType::Merge, patch)
    }

    /// A strategic merge patch.
    pub fn strategic(patch: &(impl Serialize + ?Sized)) -> Patch {
        Patch::written(PatchType::Strategic, patch)
    }

    /// An apply configuration, with `apiVersion` and `kind`.
    pub fn apply(configuration: &(impl Serialize + ?Sized)) -> Patch {
        Patch::written(PatchType::Apply, configuration)
    }

    /// An encoded patch.
    pub fn raw(kind: PatchType, patch: impl Into<Bytes>) -> Patch {
        Patch { kind, content: Content::Written(patch.into()) }
    }

    fn written(kind: PatchType, patch: &(impl Serialize + ?Sized)) -> Patch {
        let content = match serde_json::to_vec(patch) {
            Ok(bytes) => Content::Written(bytes.into()),
            Err(error) => Content::Unwritable(error.to_string().into()),
        };
        Patch { kind, content }
    }

    /// The format of the patch.
    #[must_use]
    pub fn patch_type(&self) -> PatchType {
        self.kind
    }

    /// The request body for this object.
    ///
    /// # Errors
    /// A message if the patch cannot be computed.
    pub(super) fn into_body<K: Serialize>(
        self,
        resource: &ApiResource,
        modified: Option<&K>,
    ) -> Result<Bytes, String> {
        let (mut original, lock) = match self.content {
            Content::Written(bytes) => return Ok(bytes),
            Content::Unwritable(error) => return Err(format!("the patch is not JSON: {error}")),
            Content::From { original, lock } => (original, lock),
        };
        let Some(modified) = modified else {
            return Err(
                "a patch from an original needs the changed object: pass that to patch, not its key".into()
            );
        };
        let mut modified = serde_json::to_value(modified).map_err(|error| error.to_string())?;
        let version = take_version(&mut original);
        take_version(&mut modified);
        let mut patch = match self.kind {
            PatchType::Strategic => strategic::diff(&resource.group, &resource.kind, &original, &modified),
            _ => merge::diff(&original, &modified),
        };
        if lock {
            let Some(version) = version else {
                return Err("an optimistic lock needs the resource version of the original".into());
            };
            let meta = patch
                .as_object_mut()
                .map(|patch| patch.entry("metadata").or_insert_with(|| Map::new().into()));
            if let Some(Value::Object(meta)) = meta {
                meta.insert("resourceVersion".into(), version);
            }
        }
        serde_json::to_vec(&patch).map(Bytes::from).map_err(|error| error.to_string())
    }
}

fn take_version(object: &mut Value) -> Option<Value> {
    let meta = object.get_mut("metadata")?.as_object_mut()?;
    let version = meta.remove("resourceVersion")?;
    version.as_str().is_some_and(|text| !text.is_empty()).then_some(version)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    fn config_map(value: Value) -> ConfigMap {
        serde_json::from_value(value).expect("a config map")
    }

    fn sent(patch: Patch, modified: Option<&ConfigMap>) -> Result<Value, String> {
        let resource = ApiResource::erase::<ConfigMap>(&());
        let bytes = patch.into_body(&resource, modified)?;
        serde_json::from_slice(&bytes).map_err(|error| error.to_string())
    }

    #[test]
    fn only_fields_that_differ_are_sent() {
        let original = config_map(json!({
            "metadata": {"name": "a", "resourceVersion": "5", "labels": {"x": "1", "y": "2"}}, "data": {"a": "1", "b": "2"},
        }));
        let mut modified = original.clone();
        modified.metadata.labels.as_mut().expect("labels").remove("y");
        modified.metadata.resource_version = Some("7".into());
        modified.data.as_mut().expect("data").insert("b".into(), "3".into());
        let expected = json!({"metadata": {"labels": {"y": null}}, "data": {"b": "3"}});
        assert_eq!(sent(Patch::merge_from(&original), Some(&modified)), Ok(expected.clone()));
        assert_eq!(sent(Patch::strategic_merge_from(&original), Some(&modified)), Ok(expected));
        assert_eq!(sent(Patch::merge_from(&original), Some(&original)), Ok(json!({})));
    }

    #[test]
    fn an_optimistic_lock_sends_the_version_that_was_read() {
        let original = config_map(json!({"metadata": {"name": "a", "resourceVersion": "5"}}));
        let mut modified = original.clone();
        modified.immutable = Some(true);
        let patch = Patch::merge_from(&original).with_optimistic_lock();
        let expected = json!({"immutable": true, "metadata": {"resourceVersion": "5"}});
        assert_eq!(sent(patch, Some(&modified)), Ok(expected));

        let unread = config_map(json!({"metadata": {"name": "a"}}));
        let error = sent(Patch::merge_from(&unread).with_optimistic_lock(), Some(&modified)).unwrap_err();
        assert_eq!(error, "an optimistic lock needs the resource version of the original");
    }

    #[test]
    fn a_patch_from_an_original_needs_the_changed_object() {
        let original = config_map(json!({"metadata": {"name": "a"}}));
        assert!(sent(Patch::merge_from(&original), None).is_err());
        assert_eq!(sent(Patch::merge(&json!({"a": 1})), None), Ok(json!({"a": 1})));
    }
}
