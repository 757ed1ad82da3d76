//! Managers of `/scale`: who owns the replicas of an object owns those of its Scale.

use serde_json::Value;

use super::{
    EntryError, encode,
    entry::{Form, decode_as, form_of, into_entries},
};
use crate::{
    merge::{Managers, Owned},
    path::{Path, PathElement},
    set::FieldSet,
};

/// The API version of a Scale.
const SCALE: &str = "autoscaling/v1";

/// Moves managers between an object and its Scale.
#[derive(Debug)]
pub struct ScaleManagers<'a> {
    /// The version that the object is written in.
    pub version: &'a str,
    /// The path of the replicas in each version of the object; `None` in versions without a scale.
    pub paths: &'a [(String, Option<Path>)],
}

impl ScaleManagers<'_> {
    fn path(&self, version: &str) -> Option<Option<&[PathElement]>> {
        let (_, path) = self.paths.iter().find(|(known, _)| known == version)?;
        Some(path.as_ref().map(|path| &*path.0))
    }

    fn replicas() -> Vec<PathElement> {
        Path::fields(["spec", "replicas"]).0
    }

    /// The managers of the Scale: those that own the replicas.
    ///
    /// # Errors
    /// Entries that cannot be read.
    pub fn of_scale(&self, parent: Option<&Value>) -> Result<Option<Value>, EntryError> {
        let mut out = Managers::new();
        for (id, owned) in decode_as(parent, Form::Json)? {
            if self.path(&owned.version).flatten().is_some_and(|path| owned.fields.has(path)) {
                let mut fields = FieldSet::new();
                fields.insert(&Self::replicas());
                out.insert(id, Owned { fields, version: SCALE.to_owned(), time: owned.time });
            }
        }
        Ok(encode(&out))
    }

    /// The managers of the object after its Scale was written, in the form of those before.
    ///
    /// # Errors
    /// Entries that cannot be read.
    pub fn of_parent(
        &self,
        parent: Option<&Value>,
        scale: Option<&Value>,
    ) -> Result<Option<Value>, EntryError> {
        let mut scale = decode_as(scale, Form::Json)?;
        let mut out = Managers::new();
        for (id, mut owned) in decode_as(parent, Form::Json)? {
            let Some(path) = self.path(&owned.version) else { continue };
            if let Some(path) = path.filter(|path| owned.fields.has(path))
                && scale.remove(&id).is_none()
            {
                let mut lost = FieldSet::new();
                lost.insert(path);
                owned.fields = owned.fields.difference(&lost);
                if owned.fields.is_empty() {
                    continue;
                }
            }
            out.insert(id, owned);
        }
        for (id, owned) in scale {
            if owned.fields.has(&Self::replicas())
                && let Some(path) = self.path(self.version).flatten()
            {
                let mut fields = FieldSet::new();
                fields.insert(path);
                // As in kube-apiserver, an entry of `/scale` has no time.
                out.insert(id, Owned { fields, version: self.version.to_owned(), time: None });
            }
        }
        Ok(into_entries(out, form_of(parent)))
    }
}
