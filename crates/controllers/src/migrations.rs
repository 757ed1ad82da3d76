//! Storage migrations: rewrites all objects of a resource, so that each is stored in today's storage version.
//!
//! As Kubernetes' controllers do: one migration of a resource runs at a time; each object that is older than the migration gets
//! an empty patch, which the server stores if the object is not stored as it would be today; and the definition of a custom
//! resource says meanwhile that it is migrating, and afterwards that nothing but the storage version is stored.

use std::{cmp::Ordering, time::Duration};

use jiff::Timestamp;
use k1s_runtime::{
    Action, BoxError, Context, Kind, Manager, ObjectKey, Reconciler, Request,
    client::{Error as ClientError, KindClient, ListOptions, Patch},
    controller::{BuildError, Builder},
};
use kube::{
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::{
    feed::{Feed, Interest, Signal},
    gc::is_missing,
    kinds::Served,
    meta::Resource,
};

const GROUP: &str = "storagemigration.k8s.io";
const PLURAL: &str = "storageversionmigrations";
/// How long after its creation a migration waits for its resource to be served.
const PATIENCE: Duration = Duration::from_secs(60);
/// Retry interval while another migration of the same resource runs, or the resource is not served yet.
const AGAIN: Duration = Duration::from_secs(2);
/// Number of objects per page: those of another version are converted a page at a time.
const PAGE: u32 = 500;

/// Adds the controller.
pub(crate) fn add(manager: &Manager, feed: &Feed) -> Result<(), BuildError> {
    let dynamic = |group: &str, kind: &str, plural: &str| {
        let gvk = GroupVersionKind::gvk(group, "v1", kind);
        feed.client().kind(Kind::<DynamicObject>::dynamic(ApiResource::from_gvk_with_plural(&gvk, plural)))
    };
    let migrations = Migrations {
        feed: feed.clone(),
        migrations: dynamic(GROUP, "StorageVersionMigration", PLURAL),
        definitions: dynamic("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions"),
    };
    let controller = Builder::<Request>::new(manager)
        .named("storageversionmigration")
        .watches_raw_source(feed.source())
        .build(migrations)?;
    let queue = controller.queue().clone();
    feed.want([Interest::all(GROUP, PLURAL)]);
    feed.listen(move |signal| {
        if let Signal::Stored(resource, meta) = signal
            && resource.is(GROUP, PLURAL)
            && !meta.is_deleting()
        {
            queue.add(ObjectKey::cluster(&*meta.name));
        }
    });
    Ok(())
}

struct Migrations {
    feed: Feed,
    migrations: KindClient<DynamicObject>,
    definitions: KindClient<DynamicObject>,
}

/// How far a migration has come.
struct Progress {
    left: usize,
    all: usize,
}

/// Why a migration stops.
enum Stop {
    /// It is tried again.
    Later(BoxError),
    /// It has failed.
    Failed(String),
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Stop {
        match is_retriable(&error) {
            true => Stop::Later(error.into()),
            false => Stop::Failed(error.to_string()),
        }
    }
}

/// Whether a request that failed is worth repeating: as Kubernetes decides it.
fn is_retriable(error: &ClientError) -> bool {
    match error.status() {
        None => matches!(error, ClientError::Transport { .. }),
        Some(status) => {
            matches!(status.code, 429 | 503 | 504)
                || matches!(
                    &*status.reason,
                    "ServerTimeout" | "TooManyRequests" | "ServiceUnavailable" | "InternalError" | "Timeout"
                )
        }
    }
}

fn condition<'a>(object: &'a DynamicObject, kind: &str) -> Option<&'a Value> {
    object.data["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == kind)
}

fn is_true(object: &DynamicObject, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}

fn is_terminal(migration: &DynamicObject) -> bool {
    is_true(migration, "Succeeded") || is_true(migration, "Failed")
}

fn resource_of(migration: &DynamicObject) -> Resource {
    let resource = &migration.data["spec"]["resource"];
    let text = |name: &str| resource[name].as_str().unwrap_or_default();
    Resource::new(text("group"), text("resource"))
}

/// The older migration runs first.
fn order(a: &DynamicObject, b: &DynamicObject) -> Ordering {
    let created = |one: &DynamicObject| one.metadata.creation_timestamp.clone();
    created(a).cmp(&created(b)).then_with(|| a.metadata.name.cmp(&b.metadata.name))
}

fn running_message(progress: Option<&Progress>, error: Option<&str>) -> String {
    let mut message = "The migration is running".to_owned();
    if let Some(Progress { left, all }) = progress.filter(|progress| progress.all > 0) {
        message.push_str(&match left {
            0 => format!(", {all} objects verified migrated"),
            left => format!(", {left}/{all} objects not yet migrated"),
        });
    }
    if let Some(error) = error {
        message.push_str("; transient error: ");
        message.push_str(error);
    }
    message
}

impl Reconciler for Migrations {
    type Error = BoxError;

    async fn reconcile(&self, request: Request, _: Context) -> Result<Action, BoxError> {
        let Some(migration) = self.migrations.live().get_opt(&request).await? else {
            return Ok(Action::done());
        };
        let outcome = self.advance(&request, migration).await;
        match outcome {
            // Changed or deleted meanwhile, which is another event.
            Err(error) if error.downcast_ref::<ClientError>().is_some_and(|error| error.is_conflict()) => {
                Ok(Action::requeue_with_backoff())
            }
            Err(error)
                if error
                    .downcast_ref::<ClientError>()
                    .is_some_and(|error| is_missing(error, request.name())) =>
            {
                Ok(Action::done())
            }
            other => other,
        }
    }
}

impl Migrations {
    async fn advance(&self, request: &Request, mut migration: DynamicObject) -> Result<Action, BoxError> {
        let resource = resource_of(&migration);
        if is_terminal(&migration) {
            if is_true(&migration, "Running") {
                self.finish_definition(&resource, is_true(&migration, "Succeeded")).await?;
                let done = ("Running", "False", "MigrationCompleted", "Migration completed");
                self.set(request, &mut migration, &[done], None).await?;
            }
            return Ok(Action::done());
        }
        if !is_true(&migration, "Running") {
            if !self.is_next(&migration, &resource).await? {
                return Ok(Action::requeue_after(AGAIN));
            }
            self.begin_definition(&resource, request.name()).await?;
            let message = running_message(None, None);
            self.set(request, &mut migration, &[("Running", "True", "MigrationRunning", &message)], None)
                .await?;
        }
        let served = match self.served(&resource).await? {
            Some(served) => served,
            None if self.is_recent(&migration) => return Ok(Action::requeue_after(AGAIN)),
            None => {
                let why = "resource does not exist in discovery";
                return self.fail(request, &mut migration, why.to_owned(), None).await;
            }
        };
        if migration.data["status"]["resourceVersion"].as_str().unwrap_or_default().is_empty() {
            let kind = self.feed.client().kind(served.metadata());
            // Of no object, so that nothing has to be converted for it.
            let none = ListOptions::default().field_selector("metadata.name=k1s-storage-migration-none")?;
            let list = kind.live().list(none).await?;
            self.set(request, &mut migration, &[], Some(&list.resource_version.to_string())).await?;
        }
        let mut progress = Progress { left: 0, all: 0 };
        match self.rewrite(&migration, &served, &mut progress).await {
            Ok(()) => {
                let message = running_message(Some(&progress), None);
                let done = [
                    ("Running", "True", "MigrationRunning", &*message),
                    ("Succeeded", "True", "StorageVersionMigrationSucceeded", "Migration completed"),
                ];
                self.set(request, &mut migration, &done, None).await?;
                // The definition and the last condition follow with the event of this change.
                Ok(Action::done())
            }
            Err(Stop::Later(error)) => {
                let message = running_message(Some(&progress), Some(&error.to_string()));
                let running = ("Running", "True", "MigrationRunning", &*message);
                self.set(request, &mut migration, &[running], None).await?;
                Err(error)
            }
            Err(Stop::Failed(why)) => self.fail(request, &mut migration, why, Some(&progress)).await,
        }
    }

    /// Whether no other migration of the resource runs or comes before.
    async fn is_next(&self, migration: &DynamicObject, resource: &Resource) -> Result<bool, BoxError> {
        let all = self.migrations.live().pages(ListOptions::default().limit(PAGE)).collect().await?;
        Ok(!all.iter().any(|other| {
            other.metadata.uid != migration.metadata.uid
                && resource_of(other) == *resource
                && !is_terminal(other)
                && (is_true(other, "Running") || order(other, migration).is_lt())
        }))
    }

    fn is_recent(&self, migration: &DynamicObject) -> bool {
        let created = migration.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let now = Timestamp::try_from(self.feed.env().wall()).ok();
        match (created, now) {
            (Some(created), Some(now)) => now.duration_since(created).unsigned_abs() < PATIENCE,
            _ => false,
        }
    }

    /// The resource in its storage version if that is served: then objects are converted once, and not for the client.
    async fn served(&self, resource: &Resource) -> Result<Option<Served>, BoxError> {
        let Some(served) = self.feed.kinds().of_resource(resource).await? else { return Ok(None) };
        let mut served = Served { api: served.api.clone(), namespaced: served.namespaced };
        if let Some(definition) = self.definition(resource).await? {
            let versions = definition.data["spec"]["versions"].as_array();
            let storage = versions.into_iter().flatten().find(|one| one["storage"] == true);
            if let Some(storage) = storage.filter(|storage| storage["served"] == true)
                && let Some(name) = storage["name"].as_str()
            {
                served.api.version = name.to_owned();
                served.api.api_version = format!("{}/{name}", served.api.group);
            }
        }
        Ok(Some(served))
    }

    /// Patches all objects that were not written since the migration began.
    async fn rewrite(
        &self,
        migration: &DynamicObject,
        served: &Served,
        progress: &mut Progress,
    ) -> Result<(), Stop> {
        let number = |text: &str| text.parse::<u64>().unwrap_or_default();
        let until = number(migration.data["status"]["resourceVersion"].as_str().unwrap_or_default());
        let kind = self.feed.client().kind(served.metadata());
        let found = kind.live().pages(ListOptions::default().limit(PAGE)).collect().await?;
        let old: Vec<_> = found
            .iter()
            .filter(|one| number(one.metadata.resource_version.as_deref().unwrap_or_default()) <= until)
            .collect();
        *progress = Progress { left: old.len(), all: found.len() };
        for object in old {
            let metadata = &object.metadata;
            let key =
                ObjectKey::new(metadata.namespace.as_deref(), metadata.name.as_deref().unwrap_or_default());
            // With its resourceVersion: an object that was written meanwhile is stored in today's version.
            let patch = json!({"apiVersion": served.api.api_version, "kind": served.api.kind,
                "metadata": {"resourceVersion": metadata.resource_version}});
            match kind.patch(&key, Patch::merge(&patch)).await {
                Ok(_) => {}
                Err(error) if error.is_conflict() || error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
            progress.left -= 1;
        }
        Ok(())
    }

    async fn fail(
        &self,
        request: &Request,
        migration: &mut DynamicObject,
        why: String,
        progress: Option<&Progress>,
    ) -> Result<Action, BoxError> {
        let mut why = format!("migration encountered unhandled error: {why}");
        let message = running_message(progress, None);
        let mut conditions = Vec::new();
        if let Some(Progress { left, all }) = progress {
            why = format!("{left}/{all} not yet migrated. {why}");
            conditions.push(("Running", "True", "MigrationRunning", &*message));
        }
        conditions.push(("Failed", "True", "StorageVersionMigrationFailed", &why));
        self.set(request, migration, &conditions, None).await?;
        Ok(Action::done())
    }

    /// Sets conditions, and the resource version of a migration.
    async fn set(
        &self,
        request: &Request,
        migration: &mut DynamicObject,
        conditions: &[(&str, &str, &str, &str)],
        version: Option<&str>,
    ) -> Result<(), BoxError> {
        let mut all = migration.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let mut changed = version.is_some();
        for (kind, status, reason, message) in conditions {
            changed |= self.set_one(&mut all, kind, status, reason, message)?;
        }
        if !changed {
            return Ok(());
        }
        let mut patch = json!({"metadata": {"resourceVersion": migration.metadata.resource_version},
            "status": {"conditions": all}});
        if let Some(version) = version {
            patch["status"]["resourceVersion"] = version.into();
        }
        *migration = self.migrations.status().patch(request, Patch::merge(&patch)).await?;
        Ok(())
    }

    fn set_one(
        &self,
        all: &mut Vec<Value>,
        kind: &str,
        status: &str,
        reason: &str,
        message: &str,
    ) -> Result<bool, BoxError> {
        let now = Timestamp::try_from(self.feed.env().wall())?;
        let mut new = json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()});
        match all.iter_mut().find(|one| one["type"] == kind) {
            Some(known) => {
                if known["status"] == status {
                    new["lastTransitionTime"] = known["lastTransitionTime"].clone();
                }
                if let Some(generation) = known.get("observedGeneration") {
                    new["observedGeneration"] = generation.clone();
                }
                let changed = *known != new;
                *known = new;
                Ok(changed)
            }
            None => {
                all.push(new);
                Ok(true)
            }
        }
    }

    /// The definition of a custom resource.
    async fn definition(&self, resource: &Resource) -> Result<Option<DynamicObject>, BoxError> {
        if resource.group.is_empty() {
            return Ok(None);
        }
        Ok(self.definitions.live().get_opt(&ObjectKey::cluster(resource.dotted())).await?)
    }

    async fn begin_definition(&self, resource: &Resource, migration: &str) -> Result<(), BoxError> {
        let Some(definition) = self.definition(resource).await? else { return Ok(()) };
        let message = format!("Migration {migration} is running");
        let status = json!({});
        self.mark(&definition, ("True", "MigrationRunning", &message), status).await
    }

    /// Nothing but the storage version is stored any more, unless the definition was changed meanwhile.
    async fn finish_definition(&self, resource: &Resource, succeeded: bool) -> Result<(), BoxError> {
        let Some(definition) = self.definition(resource).await? else { return Ok(()) };
        let observed = condition(&definition, "StorageMigrating")
            .and_then(|condition| condition["observedGeneration"].as_i64());
        let unchanged = observed.is_some() && observed == definition.metadata.generation;
        let (reason, message) = match (succeeded, unchanged) {
            (true, true) => (
                "MigrationSucceeded",
                "The migration has succeeded and the stored versions have been updated",
            ),
            (true, false) => (
                "MigrationSucceeded",
                "The migration has succeeded but the stored versions have not been updated due to a generation mismatch",
            ),
            (false, _) => ("MigrationFailed", "The migration has failed"),
        };
        let versions = definition.data["spec"]["versions"].as_array();
        let storage = versions.into_iter().flatten().find(|one| one["storage"] == true);
        let status = match storage.map(|storage| &storage["name"]) {
            // kube-apiserver's controller updates them after a failure, too, and so forgets what is stored.
            Some(name) if unchanged && succeeded => json!({"storedVersions": [name]}),
            _ => json!({}),
        };
        self.mark(&definition, ("False", reason, message), status).await
    }

    /// Sets the condition `StorageMigrating` of a definition, and more of its status.
    async fn mark(
        &self,
        definition: &DynamicObject,
        (status, reason, message): (&str, &str, &str),
        mut more: Value,
    ) -> Result<(), BoxError> {
        let mut all = definition.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        self.set_one(&mut all, "StorageMigrating", status, reason, message)?;
        for condition in all.iter_mut().filter(|one| one["type"] == "StorageMigrating") {
            condition["observedGeneration"] = definition.metadata.generation.into();
        }
        more["conditions"] = all.into();
        // With its resourceVersion: what is said about the stored versions holds for this definition alone.
        let patch =
            json!({"metadata": {"resourceVersion": definition.metadata.resource_version}, "status": more});
        let key = ObjectKey::cluster(definition.metadata.name.as_deref().unwrap_or_default());
        self.definitions.status().patch(&key, Patch::merge(&patch)).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_worded_as_by_kubernetes() {
        let progress = |left, all| running_message(Some(&Progress { left, all }), None);
        assert_eq!(running_message(None, None), "The migration is running");
        assert_eq!(progress(0, 0), "The migration is running");
        assert_eq!(progress(2, 5), "The migration is running, 2/5 objects not yet migrated");
        assert_eq!(progress(0, 5), "The migration is running, 5 objects verified migrated");
        let failed = running_message(Some(&Progress { left: 1, all: 2 }), Some("busy"));
        assert_eq!(failed, "The migration is running, 1/2 objects not yet migrated; transient error: busy");
    }
}
