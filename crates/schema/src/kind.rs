//! A compiled definition, which serves its custom resources.

use std::sync::Arc;

use k1s_object::field::{At, FieldError};
use serde_json::Value;

use crate::{
    conversion::ReviewVersion,
    go::go_type,
    lazy::{Schema, Schemas},
    versions,
};

/// The reason why a definition cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// A missing part.
    #[error("the definition has no {0}")]
    Missing(&'static str),
    /// No version is the storage version.
    #[error("invalid apiextensionsv1.CustomResourceDefinition, no storage version")]
    NoStorageVersion,
}

/// A printer column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrinterColumn {
    /// The heading.
    pub name: String,
    /// `integer`, `number`, `string`, `boolean` or `date`
    pub kind: String,
    /// The format, possibly empty.
    pub format: String,
    /// The description.
    pub description: String,
    /// Columns of a priority above 0 are shown in wide output only.
    pub priority: i32,
    /// The path of the value.
    pub json_path: String,
}

/// The paths of the scale subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// `.spec.replicas`
    pub spec_replicas: String,
    /// `.status.replicas`
    pub status_replicas: String,
    /// `.status.selector`
    pub label_selector: Option<String>,
}

/// One version of a custom resource.
#[derive(Debug, Clone)]
pub struct CustomVersion {
    /// `v1`
    pub name: Arc<str>,
    /// Whether it is served.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// The warning on use, if it is deprecated.
    pub warning: Option<String>,
    /// The printer columns; kube-apiserver shows the age if there are none.
    pub columns: Vec<PrinterColumn>,
    /// Selectable fields, such as `.spec.color`.
    pub selectable: Vec<String>,
    /// Whether it has the status subresource.
    pub has_status: bool,
    /// The paths of the scale subresource, if it has one.
    pub scale: Option<ScalePaths>,
    /// The schema.
    pub schema: Schema,
}

/// A kind of custom resources.
#[derive(Debug, Clone)]
pub struct CustomKind {
    /// `example.com`
    pub group: Arc<str>,
    /// `widgets`
    pub plural: Arc<str>,
    /// `widget`
    pub singular: Arc<str>,
    /// `Widget`
    pub kind: Arc<str>,
    /// `WidgetList`
    pub list_kind: Arc<str>,
    /// `wd`
    pub short_names: Vec<Arc<str>>,
    /// `all`
    pub categories: Vec<Arc<str>>,
    /// Whether it is namespaced.
    pub namespaced: bool,
    /// Whether unknown fields are preserved in all versions, as in old definitions.
    pub preserve_unknown: bool,
    /// Whether objects are converted by a webhook.
    pub webhook_conversion: bool,
    /// The `clientConfig` of the webhook.
    pub webhook_config: Option<Value>,
    /// The version of the reviews that the webhook understands, if this program knows one of them.
    pub review_version: Option<ReviewVersion>,
    /// The versions by descending priority.
    pub versions: Vec<CustomVersion>,
    storage: usize,
}

fn text<'v>(value: Option<&'v Value>, key: &str) -> &'v str {
    value.and_then(|value| value.get(key)).and_then(Value::as_str).unwrap_or_default()
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn list<'v>(value: Option<&'v Value>, key: &str) -> &'v [Value] {
    value.and_then(|value| value.get(key)).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl CustomKind {
    /// Compiles a definition. The names are the accepted ones, or the requested ones if there are none yet.
    ///
    /// # Errors
    /// A definition without required parts.
    pub fn compile(crd: &Value) -> Result<CustomKind, CompileError> {
        Self::with_schemas(crd, &Schemas::now(crd))
    }

    /// Like [`CustomKind::compile`], but the schemas are compiled on first use. `source` reads the definition
    /// again.
    ///
    /// # Errors
    /// A definition without required parts.
    pub fn compile_later(
        crd: &Value,
        source: impl Fn() -> Option<Value> + Send + Sync + 'static,
    ) -> Result<CustomKind, CompileError> {
        Self::with_schemas(crd, &Schemas::later(source))
    }

    fn with_schemas(crd: &Value, schemas: &Schemas) -> Result<CustomKind, CompileError> {
        let spec = crd.get("spec").ok_or(CompileError::Missing("spec"))?;
        let asked = spec.get("names");
        let accepted = crd.get("status").and_then(|status| status.get("acceptedNames"));
        let names = if text(accepted, "plural").is_empty() { asked } else { accepted };
        let group = text(Some(spec), "group");
        if group.is_empty() || text(names, "plural").is_empty() || text(names, "kind").is_empty() {
            return Err(CompileError::Missing("group, plural or kind"));
        }
        let mut all: Vec<CustomVersion> = list(Some(spec), "versions")
            .iter()
            .map(|version| compile_version(spec, version, group, text(names, "kind"), schemas))
            .collect();
        all.sort_by(|a, b| versions::compare(&b.name, &a.name));
        let storage = all.iter().position(|version| version.storage).ok_or(CompileError::NoStorageVersion)?;
        let shared_list =
            |key: &str| list(names, key).iter().filter_map(Value::as_str).map(Arc::from).collect();
        let webhook = spec.get("conversion").and_then(|conversion| conversion.get("webhook"));
        Ok(CustomKind {
            group: group.into(),
            plural: text(names, "plural").into(),
            singular: text(names, "singular").into(),
            kind: text(names, "kind").into(),
            list_kind: text(names, "listKind").into(),
            short_names: shared_list("shortNames"),
            categories: shared_list("categories"),
            namespaced: text(Some(spec), "scope") == "Namespaced",
            preserve_unknown: flag(spec, "preserveUnknownFields"),
            webhook_conversion: text(spec.get("conversion"), "strategy") == "Webhook",
            webhook_config: webhook.and_then(|webhook| webhook.get("clientConfig")).cloned(),
            review_version: ReviewVersion::choose(
                list(webhook, "conversionReviewVersions").iter().filter_map(Value::as_str),
            ),
            versions: all,
            storage,
        })
    }

    /// A version, served or not.
    pub fn version(&self, name: &str) -> Option<&CustomVersion> {
        self.versions.iter().find(|version| version.name.as_ref() == name)
    }

    /// The served versions by descending priority.
    pub fn served(&self) -> impl Iterator<Item = &CustomVersion> {
        self.versions.iter().filter(|version| version.served)
    }

    /// The preferred version of those served.
    pub fn preferred(&self) -> Option<&CustomVersion> {
        self.served().next()
    }

    /// The storage version.
    pub fn storage(&self) -> Option<&CustomVersion> {
        self.versions.get(self.storage)
    }
}

fn compile_version(
    spec: &Value,
    version: &Value,
    group: &str,
    kind: &str,
    schemas: &Schemas,
) -> CustomVersion {
    let name = text(Some(version), "name");
    let shared_name: Arc<str> = name.into();
    let warning = flag(version, "deprecated").then(|| {
        match version.get("deprecationWarning").and_then(Value::as_str) {
            Some(warning) => warning.to_owned(),
            None => default_warning(spec, name, group, kind),
        }
    });
    let columns = list(Some(version), "additionalPrinterColumns")
        .iter()
        .map(|column| {
            let owned = |key: &str| text(Some(column), key).to_owned();
            PrinterColumn {
                name: owned("name"),
                kind: owned("type"),
                format: owned("format"),
                description: owned("description"),
                priority: column
                    .get("priority")
                    .and_then(Value::as_i64)
                    .and_then(|priority| i32::try_from(priority).ok())
                    .unwrap_or_default(),
                json_path: owned("jsonPath"),
            }
        })
        .collect();
    let subresources = version.get("subresources");
    let scale = subresources.and_then(|subresources| subresources.get("scale")).map(|scale| ScalePaths {
        spec_replicas: text(Some(scale), "specReplicasPath").to_owned(),
        status_replicas: text(Some(scale), "statusReplicasPath").to_owned(),
        label_selector: scale.get("labelSelectorPath").and_then(Value::as_str).map(str::to_owned),
    });
    CustomVersion {
        schema: schemas.of(&shared_name),
        name: shared_name,
        served: flag(version, "served"),
        storage: flag(version, "storage"),
        warning,
        columns,
        selectable: list(Some(version), "selectableFields")
            .iter()
            .map(|field| text(Some(field), "jsonPath").to_owned())
            .collect(),
        has_status: subresources.is_some_and(|subresources| subresources.get("status").is_some()),
        scale,
    }
}

/// The default deprecation warning, with the best newer version.
fn default_warning(spec: &Value, name: &str, group: &str, kind: &str) -> String {
    let better = list(Some(spec), "versions")
        .iter()
        .filter(|other| flag(other, "served") && !flag(other, "deprecated"))
        .map(|other| text(Some(other), "name"))
        .filter(|other| versions::compare(name, other).is_lt())
        .max_by(|a, b| versions::compare(a, b));
    match better {
        None => format!("{group}/{name} {kind} is deprecated"),
        Some(better) => format!("{group}/{name} {kind} is deprecated; use {group}/{better} {kind}"),
    }
}

impl ScalePaths {
    /// Validates the replicas and the selector of a custom resource, after its schema.
    pub fn validate(&self, object: At<'_, '_>, spec: bool) {
        let Some(value) = object.value() else { return };
        let mut errors = Vec::new();
        if spec {
            check_replicas(value, &self.spec_replicas, &mut errors);
        }
        check_replicas(value, &self.status_replicas, &mut errors);
        if let Some(path) = &self.label_selector
            && let Err(error) = reach(value, path).and_then(|found| match found {
                None | Some(Value::String(_)) => Ok(()),
                Some(other) => Err(not_of_type(path, other, "string")),
            })
        {
            errors.push(FieldError::invalid(path.as_str(), "", error));
        }
        for error in errors {
            object.check().push(error);
        }
    }
}

fn check_replicas(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let replicas = reach(value, path).and_then(|found| match found {
        None => Ok(0),
        Some(found) => found.as_i64().ok_or_else(|| not_of_type(path, found, "int64")),
    });
    match replicas {
        Err(error) => errors.push(FieldError::invalid(path, 0, error)),
        Ok(count) if count < 0 => {
            errors.push(FieldError::invalid(path, count, "should be a non-negative integer"));
        }
        Ok(count) if count > i64::from(i32::MAX) => {
            errors.push(FieldError::invalid(path, count, "should be less than or equal to 2147483647"));
        }
        Ok(_) => {}
    }
}

fn go_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

fn not_of_type(path: &str, value: &Value, wanted: &str) -> String {
    format!("{path} accessor error: {} is of the type {}, expected {wanted}", go_text(value), go_type(value))
}

/// The value at a path of simple names.
fn reach<'v>(value: &'v Value, path: &str) -> Result<Option<&'v Value>, String> {
    let mut at = value;
    let path = path.strip_prefix('.').unwrap_or(path);
    let mut walked = String::new();
    for name in path.split('.') {
        walked.push('.');
        walked.push_str(name);
        at = match at {
            Value::Null => return Ok(None),
            Value::Object(map) => match map.get(name) {
                None => return Ok(None),
                Some(next) => next,
            },
            other => return Err(not_of_type(&walked, other, "map[string]interface{}")),
        };
    }
    Ok(Some(at))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replicas_are_numbers_that_can_be_counted_to() {
        let paths = ScalePaths {
            spec_replicas: ".spec.replicas".to_owned(),
            status_replicas: ".status.replicas".to_owned(),
            label_selector: Some(".status.selector".to_owned()),
        };
        for (object, expected) in [
            (json!({}), &[][..]),
            (
                json!({"spec": {"replicas": -1}}),
                &[".spec.replicas: Invalid value: -1: should be a non-negative integer"],
            ),
            (
                json!({"status": {"replicas": 4_294_967_296_i64}}),
                &[".status.replicas: Invalid value: 4294967296: should be less than or equal to 2147483647"],
            ),
            (
                json!({"spec": {"replicas": "x"}, "status": 5}),
                &[
                    ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected int64",
                    ".status.replicas: Invalid value: 0: .status.replicas accessor error: 5 is of the type int64, expected map[string]interface{}",
                    ".status.selector: Invalid value: \"\": .status.selector accessor error: 5 is of the type int64, expected map[string]interface{}",
                ],
            ),
        ] {
            let check = k1s_object::field::Check::new();
            paths.validate(check.root(&object), true);
            let errors: Vec<String> = check.take().iter().map(ToString::to_string).collect();
            assert_eq!(errors, expected);
        }
    }

    #[test]
    fn versions_are_ordered_and_deprecation_names_the_best() {
        let version = |name: &str, deprecated: bool| {
            json!({"name": name, "served": true, "storage": name == "v1", "deprecated": deprecated,
            "schema": {"openAPIV3Schema": {"type": "object"}}})
        };
        let crd = json!({"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "ws", "singular": "w", "kind": "W", "listKind": "WList"},
            "versions": [version("v1beta1", true), version("v1", false), version("v2", false)]}});
        let kind = CustomKind::compile(&crd).unwrap();
        let names: Vec<&str> = kind.versions.iter().map(|version| version.name.as_ref()).collect();
        assert_eq!(names, ["v2", "v1", "v1beta1"]);
        assert_eq!(kind.storage().map(|version| version.name.as_ref()), Some("v1"));
        assert_eq!(
            kind.version("v1beta1").unwrap().warning.as_deref(),
            Some("example.com/v1beta1 W is deprecated; use example.com/v2 W")
        );
        assert!(std::ptr::eq(&*kind.versions[0].schema, &*kind.versions[1].schema));
    }
}
