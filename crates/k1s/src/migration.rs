//! Storage migration: stores every object of a custom resource in its storage version again.
//!
//! When the storage version of a definition changes, objects that exist stay as they are until they are written again, and
//! their old version has to stay in the definition. This asks the server's controller to rewrite them (a
//! `StorageVersionMigration`), waits for it, and removes the request again.

use std::{fmt, time::Duration};

use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::env::Env;

/// Interval at which a migration is looked at.
const INTERVAL: Duration = Duration::from_millis(100);

/// A resource, and the versions that its objects may be stored in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// `widgets`
    pub plural: String,
    /// `example.com`
    pub group: String,
    /// The storage version.
    pub storage: String,
    /// All versions that objects may be stored in: `status.storedVersions`. Empty if that is not known.
    pub versions: Vec<String>,
}

impl Stored {
    /// Whether objects may be stored in another version than the storage version.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        self.versions.iter().any(|version| *version != self.storage)
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// Why a migration did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] kube::Error),
    /// The controller gave up; its message.
    #[error("{0}")]
    Failed(String),
    /// No controller has begun within this time.
    #[error("no controller has begun the migration within {}s; is the server running its controllers?", .0.as_secs())]
    NotBegun(Duration),
}

fn api(client: &Client, group: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(group, "v1", kind);
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&gvk, plural))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The custom resources of a server.
///
/// # Errors
/// If the definitions cannot be listed.
pub async fn stored(client: &Client) -> Result<Vec<Stored>, MigrateError> {
    let api = api(client, "apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions");
    let definitions = api.list(&ListParams::default()).await?;
    let of = |definition: DynamicObject| {
        let (spec, status) = (&definition.data["spec"], &definition.data["status"]);
        let versions = spec["versions"].as_array();
        let storage = versions.into_iter().flatten().find(|version| version["storage"] == true);
        Stored {
            plural: text(&spec["names"]["plural"]),
            group: text(&spec["group"]),
            storage: storage.map(|version| text(&version["name"])).unwrap_or_default(),
            versions: status["storedVersions"].as_array().into_iter().flatten().map(text).collect(),
        }
    };
    Ok(definitions.items.into_iter().map(of).collect())
}

/// Rewrites all objects of a resource, and returns the controller's last message about it.
///
/// # Errors
/// If a request fails, or the migration does: then nothing is lost, and it can be tried again.
pub async fn migrate(
    client: &Client,
    env: &Env,
    resource: (&str, &str),
    patience: Duration,
) -> Result<String, MigrateError> {
    migrate_with(client, env, resource, patience, |_| {}).await
}

/// As [`migrate`], and tells how far it has come, in the controller's words.
///
/// # Errors
/// As those of [`migrate`].
pub async fn migrate_with(
    client: &Client,
    env: &Env,
    (group, plural): (&str, &str),
    patience: Duration,
    mut progress: impl FnMut(&str),
) -> Result<String, MigrateError> {
    let migrations =
        api(client, "storagemigration.k8s.io", "StorageVersionMigration", "storageversionmigrations");
    let wanted: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
        "metadata": {"generateName": format!("{plural}-")},
        "spec": {"resource": {"group": group, "resource": plural}},
    }))
    .map_err(kube::Error::SerdeError)?;
    let made = migrations.create(&PostParams::default(), &wanted).await?;
    let name = made.metadata.name.unwrap_or_default();
    let begun = env.now();
    let outcome = loop {
        let now = migrations.get(&name).await?;
        let condition = |kind: &str| {
            let conditions = now.data["status"]["conditions"].as_array();
            conditions.into_iter().flatten().find(|one| one["type"] == kind).cloned().unwrap_or_default()
        };
        let running = condition("Running");
        // Its definition has been updated, too.
        if running["status"] == "False" {
            let failed = condition("Failed");
            break match failed["status"] == "True" {
                true => Err(MigrateError::Failed(text(&failed["message"]))),
                false => Ok(text(&condition("Succeeded")["message"])),
            };
        }
        if running.is_null() && env.now() - begun > patience {
            break Err(MigrateError::NotBegun(patience));
        }
        if let Some(message) = running["message"].as_str() {
            progress(message);
        }
        env.sleep(INTERVAL).await;
    };
    migrations.delete(&name, &DeleteParams::default()).await?;
    outcome
}
