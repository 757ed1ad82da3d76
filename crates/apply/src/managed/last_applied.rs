//! Client-side apply: the annotation in which older kubectl keep what they applied last.

use serde_json::Value;

use super::FieldManager;
use crate::{set::FieldSet, typed::Duplicates};

/// The field manager of kubectl's server-side apply.
pub(super) const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The annotation of an object, if it is set.
fn annotation(object: &Value) -> Option<&str> {
    let text = object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    Some(text).filter(|text| !text.is_empty())
}

/// Sets the annotation of an object that has it to a new configuration. Returns whether it has changed.
pub(super) fn refresh(object: &mut Value, config: &Value) -> bool {
    let Some(before) = annotation(object) else { return false };
    let mut config = config.clone();
    if let Some(annotations) = config
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("annotations"))
        .and_then(Value::as_object_mut)
    {
        annotations.shift_remove(ANNOTATION);
        if annotations.is_empty()
            && let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.shift_remove("annotations");
        }
    }
    config.sort_all_objects();
    let text = format!("{config}\n");
    if text == before {
        return false;
    }
    if let Some(annotations) = object
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("annotations"))
        .and_then(Value::as_object_mut)
    {
        annotations.insert(ANNOTATION.to_owned(), text.into());
    }
    true
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
