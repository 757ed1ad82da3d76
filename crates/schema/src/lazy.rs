//! The schemas of a definition, compiled on first use: most clusters have many definitions and use few.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use serde_json::Value;

use crate::{
    apply::ApplySchema,
    structural::{Compiler, Structural},
};

/// Reads a definition again that was read before.
type Source = Box<dyn Fn() -> Option<Value> + Send + Sync>;

/// The schema of a version. It is compiled on first use, with those of the other versions.
#[derive(Clone)]
pub struct Schema {
    all: Arc<All>,
    version: Arc<str>,
}

struct All {
    source: Source,
    compiled: OnceLock<Compiled>,
}

struct Compiled {
    versions: Box<[Version]>,
    /// For a definition that can no longer be read.
    unknown: Version,
}

struct Version {
    name: Box<str>,
    schema: Arc<Structural>,
    preserve_unknown: bool,
    /// Built with the first write.
    apply: OnceLock<ApplySchema>,
}

impl Version {
    fn new(name: &str, schema: Arc<Structural>, preserve_unknown: bool) -> Version {
        Version { name: name.into(), schema, preserve_unknown, apply: OnceLock::new() }
    }
}

/// Builds the schemas of the versions of a definition.
pub(crate) struct Schemas(Arc<All>);

impl Schemas {
    /// Schemas that are compiled on first use, from the definition that `source` reads.
    pub(crate) fn later(source: impl Fn() -> Option<Value> + Send + Sync + 'static) -> Schemas {
        Schemas(Arc::new(All { source: Box::new(source), compiled: OnceLock::new() }))
    }

    /// Schemas that are compiled immediately.
    pub(crate) fn now(crd: &Value) -> Schemas {
        let compiled = OnceLock::from(Compiled::new(Some(crd)));
        Schemas(Arc::new(All { source: Box::new(|| None), compiled }))
    }

    pub(crate) fn of(&self, version: &Arc<str>) -> Schema {
        Schema { all: self.0.clone(), version: version.clone() }
    }
}

impl Compiled {
    fn new(crd: Option<&Value>) -> Compiled {
        let spec = crd.and_then(|crd| crd.get("spec"));
        let preserve_unknown = spec
            .and_then(|spec| spec.get("preserveUnknownFields"))
            .and_then(Value::as_bool)
            .unwrap_or_default();
        let versions = spec.and_then(|spec| spec.get("versions")?.as_array());
        let mut compiler = Compiler::default();
        let mut known: Vec<(&Value, Arc<Structural>)> = Vec::new();
        let mut all = Vec::new();
        for version in versions.into_iter().flatten() {
            let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
            let schema = version.get("schema").and_then(|schema| schema.get("openAPIV3Schema"));
            let shared = match schema {
                None => Arc::new(Structural::permissive()),
                Some(schema) => match known.iter().find(|(other, _)| *other == schema) {
                    Some((_, shared)) => shared.clone(),
                    None => {
                        let shared = Arc::new(compiler.compile(schema));
                        known.push((schema, shared.clone()));
                        shared
                    }
                },
            };
            all.push(Version::new(name, shared, preserve_unknown));
        }
        let unknown = Version::new("", Arc::new(Structural::permissive()), true);
        Compiled { versions: all.into(), unknown }
    }
}

impl Deref for Schema {
    type Target = Structural;

    fn deref(&self) -> &Structural {
        &self.version().schema
    }
}

impl Schema {
    fn version(&self) -> &Version {
        let compiled = self.all.compiled.get_or_init(|| Compiled::new((self.all.source)().as_ref()));
        let found = compiled.versions.iter().find(|version| *version.name == *self.version);
        found.unwrap_or(&compiled.unknown)
    }

    /// The schema for server-side apply.
    pub fn apply(&self) -> &ApplySchema {
        let version = self.version();
        version.apply.get_or_init(|| ApplySchema::new(&version.schema, version.preserve_unknown))
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("version", &self.version).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_is_compiled_once_and_not_before_it_is_used() {
        static READ: AtomicUsize = AtomicUsize::new(0);
        let schemas = Schemas::later(|| {
            READ.fetch_add(1, Ordering::Relaxed);
            let schema = |kind: &str| json!({"openAPIV3Schema": {"type": kind}});
            Some(json!({"spec": {"versions": [
                {"name": "v1", "schema": schema("object")},
                {"name": "v2", "schema": schema("string")},
                {"name": "v3", "schema": schema("object")},
                {"name": "v4"},
            ]}}))
        });
        let [one, two, three, four, five] =
            ["v1", "v2", "v3", "v4", "v5"].map(|name| schemas.of(&Arc::from(name)));
        assert_eq!(READ.load(Ordering::Relaxed), 0);
        let names = [&one, &two, &four].map(|schema| schema.kind().name());
        assert_eq!(names, ["object", "string", ""]);
        assert!(four.preserves_unknown_fields() && five.preserves_unknown_fields());
        assert!(std::ptr::eq(&*one, &*three) && !std::ptr::eq(&*one, &*two));
        assert_eq!(READ.load(Ordering::Relaxed), 1);
    }
}
