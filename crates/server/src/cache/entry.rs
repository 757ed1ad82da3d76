//! What the cache keeps of an object.

use std::borrow::Cow;

use bytes::Bytes;
use k1s_object::Status;
use k1s_store::Revision;
use serde::Deserialize;
use serde_json::Value;

use crate::stored::Stored;

/// Reads the selectable fields of an object, in a fixed order. `None` for kinds that have none but name and namespace.
pub(crate) type Fields = Option<std::sync::Arc<dyn Fn(&Value) -> Vec<String> + Send + Sync>>;

/// An object in the cache.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its key in the store.
    pub(crate) key: Bytes,
    /// The object.
    pub(crate) stored: Stored,
    /// Where the namespace's name ends in the key's tail; 0 for objects without one.
    labels: Box<[(Box<str>, Box<str>)]>,
    fields: Box<[Box<str>]>,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    labels: Option<Labels<'a>>,
}

struct Labels<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Labels<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        #[derive(Deserialize)]
        struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Labels<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("labels")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Labels<'de>, A::Error> {
                let mut labels = Vec::new();
                while let Some((key, value)) = map.next_entry::<Text<'de>, Text<'de>>()? {
                    labels.push((key.0, value.0));
                }
                Ok(Labels(labels))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

impl Entry {
    pub(crate) fn new(
        key: Bytes,
        value: &Bytes,
        revision: Revision,
        fields: &Fields,
    ) -> Result<Entry, Status> {
        let stored = Stored::new(value, revision)?;
        let unreadable =
            |error: serde_json::Error| Status::internal(format!("a stored object cannot be read: {error}"));
        let (labels, fields) = match fields {
            // The labels alone: the rest of the object is skipped over.
            None => {
                let head: Head<'_> = serde_json::from_slice(stored.json()).map_err(unreadable)?;
                let labels = head.metadata.labels.map_or_else(Vec::new, |labels| labels.0);
                (labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect(), Box::default())
            }
            Some(read) => {
                let object: Value = serde_json::from_slice(stored.json()).map_err(unreadable)?;
                let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
                let labels = labels
                    .map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or_default().into()));
                (labels.collect(), read(&object).into_iter().map(String::into_boxed_str).collect())
            }
        };
        Ok(Entry { key, stored, labels, fields })
    }

    /// The value of a label.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(name, _)| **name == *key).map(|(_, value)| &**value)
    }

    /// The value of the selectable field at this place in the resource's list of them.
    pub(crate) fn field(&self, index: usize) -> &str {
        self.fields.get(index).map_or("", |field| field)
    }

    /// The last segment of the key.
    pub(crate) fn name(&self) -> &str {
        let start = self.key.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        self.key.get(start..).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default()
    }

    /// The segment before the last: the namespace, for objects that have one.
    pub(crate) fn namespace(&self) -> &str {
        let Some(end) = self.key.iter().rposition(|byte| *byte == b'/') else { return "" };
        let head = self.key.get(..end).unwrap_or_default();
        let start = head.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        head.get(start..).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default()
    }
}
