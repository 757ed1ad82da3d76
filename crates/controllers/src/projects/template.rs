//! Templates: the definitions of the host that projects get.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use k1s_runtime::client::{Error, KindClient, ListOptions};
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

use super::{
    TEMPLATE, TEMPLATES,
    tenants::{Tenant, Tenants},
};

/// Not copied: it describes how the host's definition was written.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The names of a project's templates.
pub(super) fn of_project<'a>(project: &'a DynamicObject, default: &'a str) -> impl Iterator<Item = &'a str> {
    let named = project.metadata.annotations.as_ref().and_then(|all| all.get(TEMPLATES));
    named.map_or(default, String::as_str).split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// The template that a definition of the host belongs to.
pub(super) fn of_definition(definition: &DynamicObject) -> Option<&str> {
    definition.metadata.labels.as_ref()?.get(TEMPLATE).map(String::as_str)
}

/// The definitions of a project's templates, by name, as they are to be applied.
pub(super) async fn definitions(
    host: &KindClient<DynamicObject>,
    project: &DynamicObject,
    default: &str,
) -> Result<Vec<Value>, Error> {
    let templates: Vec<&str> = of_project(project, default).collect();
    let mut found: Vec<Value> = host
        .list(ListOptions::default())
        .await?
        .iter()
        .filter(|definition| definition.metadata.deletion_timestamp.is_none())
        .filter(|definition| of_definition(definition).is_some_and(|name| templates.contains(&name)))
        .map(|definition| copy(definition))
        .collect();
    found.sort_by(|one, other| name_of(one).cmp(name_of(other)));
    Ok(found)
}

fn name_of(definition: &Value) -> &str {
    definition["metadata"]["name"].as_str().unwrap_or_default()
}

/// The part of a definition that projects get: its name, labels, annotations and spec.
fn copy(definition: &DynamicObject) -> Value {
    let metadata = &definition.metadata;
    let mut copied = Map::from_iter([("name".to_owned(), json!(metadata.name))]);
    for (field, texts) in [("labels", &metadata.labels), ("annotations", &metadata.annotations)] {
        let texts: Map<String, Value> = texts
            .iter()
            .flatten()
            .filter(|(name, _)| *name != LAST_APPLIED && !name.starts_with("projects.k1s.dev/"))
            .map(|(name, text)| (name.clone(), text.as_str().into()))
            .collect();
        if !texts.is_empty() {
            copied.insert(field.to_owned(), texts.into());
        }
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": copied, "spec": definition.data["spec"],
    })
}

/// Identifies definitions in a tenant, to skip those that are installed. A version with other hashes installs them once more,
/// which changes nothing.
pub(super) fn fingerprint(tenant: &Tenant, definitions: &[Value]) -> String {
    let mut hasher = DefaultHasher::new();
    for definition in definitions {
        definition.to_string().hash(&mut hasher);
    }
    format!("{}/{:016x}", tenant.uid(), hasher.finish())
}

/// The outcome of installing definitions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Installed {
    /// One message for each definition that the server refuses.
    pub(super) refused: Vec<String>,
    /// Whether some are accepted but not served yet.
    pub(super) pending: bool,
}

/// Installs definitions in a tenant.
///
/// # Errors
/// If the server does not answer, or fails.
pub(super) async fn install(
    tenants: &Tenants,
    tenant: &str,
    definitions: &[Value],
) -> Result<Installed, kube::Error> {
    let mut outcome = Installed::default();
    for definition in definitions {
        match tenants.apply(tenant, definition).await {
            Ok(applied) => match condition(&applied, "NamesAccepted", "False") {
                Some(taken) => {
                    let why = taken["message"].as_str().unwrap_or_default();
                    outcome.refused.push(format!("{}: {why}", name_of(&applied)));
                }
                None => outcome.pending |= condition(&applied, "Established", "True").is_none(),
            },
            Err(kube::Error::Api(status)) if (400..500).contains(&status.code) && status.code != 429 => {
                outcome.refused.push(format!("{}: {}", name_of(definition), status.message));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(outcome)
}

fn condition<'a>(definition: &'a Value, type_: &str, status: &str) -> Option<&'a Value> {
    let conditions = definition["status"]["conditions"].as_array()?;
    conditions.iter().find(|one| one["type"] == type_ && one["status"] == status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(metadata: &Value) -> DynamicObject {
        serde_json::from_value(json!({"metadata": metadata, "spec": {"group": "example.com"}, "status": {}}))
            .unwrap()
    }

    #[test]
    fn a_project_has_the_templates_that_it_names_or_the_default_one() {
        let templates = |annotations: Value| {
            let project = object(&json!({"name": "p", "annotations": annotations}));
            of_project(&project, "default").map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(templates(json!({})), ["default"]);
        assert_eq!(templates(json!({TEMPLATES: " base, gold ,"})), ["base", "gold"]);
        assert_eq!(templates(json!({TEMPLATES: ""})), [""; 0]);
    }

    #[test]
    fn a_copy_has_what_its_author_wrote_and_not_what_the_host_made_of_it() {
        let definition = object(&json!({
            "name": "widgets.example.com", "uid": "u", "resourceVersion": "7",
            "labels": {TEMPLATE: "default", "app": "widgets"},
            "annotations": {LAST_APPLIED: "{}", "api-approved.kubernetes.io": "unapproved"},
        }));
        let copied = copy(&definition);
        assert_eq!(
            copied["metadata"],
            json!({"name": "widgets.example.com", "labels": {"app": "widgets"},
                "annotations": {"api-approved.kubernetes.io": "unapproved"}})
        );
        assert_eq!(copied["spec"], json!({"group": "example.com"}));
        assert!(copied.get("status").is_none());
    }
}
