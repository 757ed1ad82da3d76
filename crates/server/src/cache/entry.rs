//! An object in the watch cache.

use std::borrow::Cow;

use bytes::Bytes;
use k1s_store::Revision;
use serde::Deserialize;
use serde_json::Value;

use crate::stored::{Stored, Unreadable};

/// Reads the selectable fields of an object, in a fixed order. `None` for kinds that have none but name and namespace.
pub(crate) type Fields = Option<std::sync::Arc<dyn Fn(&Value) -> Vec<String> + Send + Sync>>;

/// An object in the cache.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its key in the store.
    pub(crate) key: Bytes,
    /// The object.
    pub(crate) stored: Stored,
    labels: Box<[(Text, Text)]>,
    fields: Box<[Box<str>]>,
}

/// A string of the object: its place in the JSON, or a copy if it is written with escapes there.
#[derive(Debug)]
enum Text {
    At(u32, u32),
    Own(Box<str>),
}

impl Text {
    /// `text` may be a part of `json`.
    fn new(text: Cow<'_, str>, json: &[u8]) -> Text {
        let found = match text {
            Cow::Owned(_) => None,
            Cow::Borrowed(text) => {
                let start = (text.as_ptr() as usize).checked_sub(json.as_ptr() as usize);
                start.filter(|start| json.get(*start..*start + text.len()) == Some(text.as_bytes()))
            }
        };
        let place = found.and_then(|start| u32::try_from(start).ok()).zip(u32::try_from(text.len()).ok());
        place.map_or_else(|| Text::Own(text.into()), |(start, len)| Text::At(start, len))
    }

    fn read<'a>(&'a self, json: &'a [u8]) -> &'a str {
        match self {
            Text::Own(text) => text,
            Text::At(..) => std::str::from_utf8(self.bytes(json)).unwrap_or_default(),
        }
    }

    /// The same without the check that it is UTF-8, for comparisons.
    fn bytes<'a>(&'a self, json: &'a [u8]) -> &'a [u8] {
        match self {
            Text::Own(text) => text.as_bytes(),
            Text::At(start, len) => {
                let (start, len) = (*start as usize, *len as usize);
                json.get(start..start + len).unwrap_or_default()
            }
        }
    }
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
    ) -> Result<Entry, Unreadable> {
        let stored = Stored::new(value, revision)?;
        let json = stored.json();
        // serde_json does not check the encoding of strings that it skips.
        let text = std::str::from_utf8(json).map_err(<serde_json::Error as serde::de::Error>::custom)?;
        // Parses the labels alone; the rest of the object is skipped.
        let head: Head<'_> = serde_json::from_str(text)?;
        let labels = head.metadata.labels.map_or_else(Vec::new, |labels| labels.0);
        let labels =
            labels.into_iter().map(|(key, value)| (Text::new(key, json), Text::new(value, json))).collect();
        let fields = match fields {
            None => Box::default(),
            Some(read) => {
                let object: Value = serde_json::from_str(text)?;
                read(&object).into_iter().map(String::into_boxed_str).collect()
            }
        };
        Ok(Entry { key, stored, labels, fields })
    }

    /// The value of a label.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        let json = self.stored.json();
        self.labels
            .iter()
            .find(|(name, _)| name.bytes(json) == key.as_bytes())
            .map(|(_, value)| value.read(json))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_are_read_in_place_and_copied_only_with_escapes() {
        let object = json!({"metadata": {"name": "a", "labels": {"app": "web", "od\"d": "va\nlue", "": ""}}});
        let value = Stored::encode(&object, "v1", 0).unwrap();
        let entry = Entry::new("/p/ns/a".into(), &value, Revision::new(7), &None).unwrap();
        let found = ["app", "od\"d", "", "none"].map(|label| entry.label(label));
        assert_eq!(found, [Some("web"), Some("va\nlue"), Some(""), None]);
        let places = entry.labels.iter().filter(|(key, _)| matches!(key, Text::At(..))).count();
        assert_eq!(places, 2, "only strings with escapes are copied");
        assert_eq!((entry.namespace(), entry.name()), ("ns", "a"));
    }
}
