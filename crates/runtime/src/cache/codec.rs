//! How an informer decodes objects, and the form in which it stores them.

use std::{any::TypeId, borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use k1s_object::selector::LabelSelector;
use kube::api::DynamicObject;
use serde::Deserialize;

use super::wire;
use crate::{
    Kind, Object, ObjectKey,
    panics::{Panics, Site, catch},
};

/// A change made to every object before it is stored in the cache.
pub type Transform<K> = Arc<dyn Fn(&mut K) + Send + Sync>;

/// Decodes objects of a kind, and decides in which form they are stored.
pub(super) struct Codec<K: Object> {
    pub(super) kind: Kind<K>,
    pub(super) transform: Option<Transform<K>>,
    /// Whether objects are stored encoded instead of decoded.
    pub(super) lean: bool,
    /// Whether `metadata.managedFields` is left out.
    pub(super) strip_managed_fields: bool,
    pub(super) panics: Panics,
    /// Where a panic of the type's `Deserialize` or of the transform is reported.
    pub(super) site: Site,
}

/// Why an object is skipped.
#[derive(Debug, thiserror::Error)]
pub(super) enum Undecodable {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The transform, an index, or the type's `Deserialize`.
    #[error("panic: {0} [recovered]")]
    Panicked(String),
}

impl<K: Object> fmt::Debug for Codec<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec").field("kind", &self.kind).field("lean", &self.lean).finish_non_exhaustive()
    }
}

/// An object as it is stored. Cheap to clone.
#[derive(Debug)]
pub(super) enum Kept<K> {
    Typed(Arc<K>),
    /// Its JSON, which has been decoded once without error.
    Lean(Arc<[u8]>),
}

impl<K> Clone for Kept<K> {
    fn clone(&self) -> Kept<K> {
        match self {
            Kept::Typed(object) => Kept::Typed(Arc::clone(object)),
            Kept::Lean(bytes) => Kept::Lean(Arc::clone(bytes)),
        }
    }
}

impl<K: Object> Codec<K> {
    /// Decodes an object, and transforms it.
    pub(super) fn decode(&self, raw: &[u8]) -> Result<Arc<K>, Undecodable> {
        let key = || wire::head(raw).map_or_else(|_| ObjectKey::cluster(""), |head| head.key());
        match catch(|| self.decode_or_panic(raw)) {
            Ok(decoded) => {
                self.panics.passed(&self.site, key);
                Ok(decoded?)
            }
            Err(message) => {
                self.panics.caught(&self.site, Some(key()), &message);
                Err(Undecodable::Panicked(message))
            }
        }
    }

    fn decode_or_panic(&self, raw: &[u8]) -> Result<Arc<K>, serde_json::Error> {
        let resource = self.kind.resource();
        let kinded = || wire::with_kind(raw, &resource.api_version, &resource.kind);
        // List items have no `kind`. Typed objects do not need it; dynamic ones do.
        let bytes =
            if TypeId::of::<K>() == TypeId::of::<DynamicObject>() { kinded() } else { Cow::Borrowed(raw) };
        let mut object: K = match serde_json::from_slice(&bytes) {
            Ok(object) => object,
            Err(error) => match kinded() {
                Cow::Owned(bytes) => serde_json::from_slice(&bytes)?,
                Cow::Borrowed(_) => return Err(error),
            },
        };
        if self.strip_managed_fields {
            object.meta_mut().managed_fields = None;
        }
        if let Some(transform) = &self.transform {
            transform(&mut object);
        }
        Ok(Arc::new(object))
    }

    /// Decodes an object; returns the stored form and the object.
    pub(super) fn take(&self, raw: &[u8]) -> Result<(Kept<K>, Arc<K>), Undecodable> {
        let object = self.decode(raw)?;
        let kept = if self.lean { Kept::Lean(self.pack(raw)) } else { Kept::Typed(Arc::clone(&object)) };
        Ok((kept, object))
    }

    fn pack(&self, raw: &[u8]) -> Arc<[u8]> {
        if self.strip_managed_fields
            && memchr::memmem::find(raw, b"\"managedFields\"").is_some()
            && let Some(bytes) = without_managed_fields(raw)
        {
            return bytes.into();
        }
        raw.into()
    }

    /// The object of a stored form.
    pub(super) fn open(&self, kept: &Kept<K>) -> Option<Arc<K>> {
        match kept {
            Kept::Typed(object) => Some(Arc::clone(object)),
            // It was decoded when it arrived, so it can be decoded again.
            Kept::Lean(bytes) => self.decode(bytes).ok(),
        }
    }

    /// Whether a state is of the object with this uid, not of a predecessor or successor of the same name.
    pub(super) fn same_object(&self, kept: &Kept<K>, uid: &str) -> bool {
        uid.is_empty() || self.with_uid(kept, |known| known.is_empty() || known == uid)
    }

    fn with_uid<T>(&self, kept: &Kept<K>, f: impl FnOnce(&str) -> T) -> T {
        match kept {
            Kept::Typed(object) => f(object.meta().uid.as_deref().unwrap_or_default()),
            Kept::Lean(bytes) => f(wire::head(bytes).map(|head| head.uid).unwrap_or_default().as_ref()),
        }
    }

    /// Whether an object matches a selector, without decoding all of it.
    pub(super) fn labels_match(&self, kept: &Kept<K>, selector: &LabelSelector) -> bool {
        #[derive(Deserialize, Default)]
        struct Labelled {
            #[serde(default)]
            metadata: Labels,
        }
        #[derive(Deserialize, Default)]
        struct Labels {
            labels: Option<BTreeMap<String, String>>,
        }
        let matches = |labels: Option<&BTreeMap<String, String>>| {
            selector.matches(|key| labels.and_then(|labels| labels.get(key)).map(String::as_str))
        };
        match kept {
            Kept::Typed(object) => matches(object.meta().labels.as_ref()),
            Kept::Lean(bytes) => {
                let labelled: Labelled = serde_json::from_slice(bytes).unwrap_or_default();
                matches(labelled.metadata.labels.as_ref())
            }
        }
    }
}

/// The JSON of an object without `metadata.managedFields`.
fn without_managed_fields(raw: &[u8]) -> Option<Vec<u8>> {
    use serde_json::value::RawValue;
    // The order of fields is preserved, and nothing but metadata is parsed.
    let outer: Fields<'_> = serde_json::from_slice(raw).ok()?;
    let mut out = Vec::with_capacity(raw.len());
    out.push(b'{');
    for (name, value) in &outer.0 {
        separate(&mut out);
        serde_json::to_writer(&mut out, name).ok()?;
        out.push(b':');
        if name == "metadata" {
            let inner: Fields<'_> = serde_json::from_str(value.get()).ok()?;
            out.push(b'{');
            for (name, value) in inner.0.iter().filter(|(name, _)| name != "managedFields") {
                separate(&mut out);
                serde_json::to_writer(&mut out, name).ok()?;
                out.push(b':');
                out.extend_from_slice(value.get().as_bytes());
            }
            out.push(b'}');
        } else {
            out.extend_from_slice(value.get().as_bytes());
        }
    }
    out.push(b'}');
    return Some(out);

    fn separate(out: &mut Vec<u8>) {
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
    }

    struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

    impl<'de> Deserialize<'de> for Fields<'de> {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = Fields<'de>;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> Result<Self::Value, A::Error> {
                    let mut fields = Vec::new();
                    while let Some(field) = map.next_entry::<Cow<'de, str>, &'de RawValue>()? {
                        fields.push(field);
                    }
                    Ok(Fields(fields))
                }
            }
            deserializer.deserialize_map(Visitor)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_managed_fields;

    #[test]
    fn managed_fields_are_left_out_and_nothing_else() {
        let raw = br#"{"kind":"A","metadata":{"name":"a","managedFields":[{"x":{}}],"uid":"u"},"spec":{"managedFields":1}}"#;
        assert_eq!(
            String::from_utf8(without_managed_fields(raw).unwrap()).unwrap(),
            r#"{"kind":"A","metadata":{"name":"a","uid":"u"},"spec":{"managedFields":1}}"#
        );
    }
}
