//! Client-side apply: the annotation in which older kubectl keep what they applied last.

use serde_json::{Map, Value};

use super::FieldManager;
use crate::{fields_v1::write_json, set::FieldSet, typed::Duplicates};

/// The field manager of kubectl's server-side apply.
pub(super) const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Maximum size of all annotations of an object, in bytes.
const MAX_ANNOTATIONS: usize = 256 << 10;

/// The annotation of an object, if it is set.
pub(super) fn annotation(object: &Value) -> Option<&str> {
    let text = object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    Some(text).filter(|text| !text.is_empty())
}

/// Sets the annotation of an object that has it to a new configuration, or removes it if annotations would be too large.
/// Returns whether it has changed.
pub(super) fn refresh(object: &mut Value, config: &Value) -> bool {
    let Some(before) = annotation(object) else { return false };
    let mut config = config.clone();
    if let Some(annotations) = annotations(&mut config) {
        annotations.shift_remove(ANNOTATION);
    }
    let mut text = String::new();
    write_json(&mut text, &config);
    text.push('\n');
    if text == before {
        return false;
    }
    if let Some(annotations) = annotations(object) {
        annotations.insert(ANNOTATION.to_owned(), text.into());
        let size = |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
        if annotations.iter().map(size).sum::<usize>() > MAX_ANNOTATIONS {
            annotations.shift_remove(ANNOTATION);
        }
    }
    true
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}

impl FieldManager<'_> {
    /// The fields of the last client-side apply that still have the values applied then.
    pub(super) fn last_applied_fields(&self, live: &Value) -> Option<FieldSet> {
        let last: Value = serde_json::from_str(annotation(live)?).ok()?;
        if last.get("apiVersion").and_then(Value::as_str) != Some(self.version) {
            return None;
        }
        let this = self.shorter();
        let live = this.typed(live).ok()?;
        live.validate(Duplicates::Refuse).ok()?;
        let last = this.typed(&last).ok()?;
        last.validate(Duplicates::Refuse).ok()?;
        let comparison = last.compare(&live).ok()?;
        Some(
            last.field_set()
                .difference(&comparison.modified)
                .difference(&comparison.added)
                .difference(&comparison.removed),
        )
    }
}
