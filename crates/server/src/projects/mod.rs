//! `/apis/resourcemanager.miloapis.com/v1alpha1/projects/{name}/control-plane/…`: the control planes of projects.
//!
//! A Project is an object of the default tenant, and its control plane is the tenant of the same name. A controller outside
//! of this crate creates that tenant, and reports in the Project's condition `ControlPlaneReady` whether it may be used;
//! that condition is all this crate knows of projects. Who may enter is decided as for `/clusters/{name}`.

mod watches;

use std::sync::Arc;

use k1s_object::{Status, gvk::GroupVersionResource, status::Details};
use serde::Deserialize;

use crate::{
    cache::{Cache, Snapshot},
    errors::Error,
    registry::Registry,
    resource::Resource,
    tenant::{Shared, Tenant},
};

pub(crate) use watches::watch;

const GROUP: &str = "resourcemanager.miloapis.com";
const VERSION: &str = "v1alpha1";
const RESOURCE: &str = "projects";

/// The condition that tells whether a project's control plane may be used, and its reason while the project is suspended.
const CONDITION: &str = "ControlPlaneReady";
const SUSPENDED: &str = "Suspended";

/// When a client should try again to reach a control plane that is not ready.
const RETRY_AFTER_SECONDS: u32 = 1;

/// How a request names a project's control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// By the project's path. The tenant has to be a project's, and ready.
    Project,
    /// By `/clusters/{name}`. The tenant may be nobody's.
    Cluster,
}

/// Refuses a request for a project's control plane that may not be used.
///
/// # Errors
/// 403 if the project is suspended. At its own path also 404 if there is no such project, and 503 if it is not ready.
pub(crate) async fn admit(
    registry: &Registry,
    shared: &Shared,
    name: &str,
    entrance: Entrance,
) -> Result<(), Error> {
    if !shared.options.projects || *name == *shared.options.default_tenant {
        return match entrance {
            Entrance::Project => Err(Error::not_found(GROUP, RESOURCE, name)),
            Entrance::Cluster => Ok(()),
        };
    }
    let found = match Projects::of(registry, shared).await? {
        Some(projects) => projects.find(&*projects.cache.with_own_writes().await?, name)?,
        None => None,
    };
    let Some(project) = found else {
        return match entrance {
            Entrance::Project => Err(Error::not_found(GROUP, RESOURCE, name)),
            Entrance::Cluster => Ok(()),
        };
    };
    if let Some(suspended) = project.suspended(name) {
        return Err(suspended.into());
    }
    let condition = project.status.conditions.into_iter().find(|one| one.kind == CONDITION);
    match (condition, entrance) {
        (_, Entrance::Cluster) => Ok(()),
        (Some(Condition { status, .. }), _) if status == "True" => Ok(()),
        (Some(Condition { reason, message, .. }), _) => {
            Err(not_ready(name, &format!("{message} ({reason})")))
        }
        (None, _) => Err(not_ready(name, "it is being created")),
    }
}

/// 503: the control plane of a project is not ready.
fn not_ready(name: &str, why: &str) -> Error {
    let details = Details { retry_after_seconds: RETRY_AFTER_SECONDS, ..Details::of(GROUP, RESOURCE, name) };
    let message = format!("the control plane of project {name:?} is not ready: {why}");
    Status::new(503, "ServiceUnavailable", message).with(details).into()
}

/// The part of a Project that decides about its control plane.
#[derive(Debug, Default, Deserialize)]
struct Project {
    #[serde(default)]
    status: ProjectStatus,
}

#[derive(Debug, Default, Deserialize)]
struct ProjectStatus {
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: String,
    message: String,
}

impl Project {
    /// 403 if it is suspended.
    fn suspended(&self, name: &str) -> Option<Status> {
        let condition = self.status.conditions.iter().find(|one| one.kind == CONDITION)?;
        let message = || condition.message.clone();
        (condition.reason == SUSPENDED).then(|| Status::forbidden(GROUP, RESOURCE, name, message()))
    }
}

/// The Projects of the host. They are read from the cache: on a shared store a read would be a round trip per request.
struct Projects {
    host: Arc<Tenant>,
    resource: Arc<Resource>,
    cache: Arc<Cache>,
}

impl Projects {
    /// `None` if the host has no definition of Projects.
    async fn of(registry: &Registry, shared: &Shared) -> Result<Option<Projects>, Error> {
        Projects::in_host(registry.find(&shared.options.default_tenant, true).await?).await
    }

    async fn in_host(host: Arc<Tenant>) -> Result<Option<Projects>, Error> {
        let Some(resource) = host.resource(GroupVersionResource::new(GROUP, VERSION, RESOURCE)).await? else {
            return Ok(None);
        };
        let cache = host.cache(&resource);
        Ok(Some(Projects { host, resource, cache }))
    }

    fn find(&self, snapshot: &Snapshot, name: &str) -> Result<Option<Project>, Error> {
        let Some(entry) = snapshot.entries.get(&self.host.key(&self.resource, "", name)) else {
            return Ok(None);
        };
        let project = serde_json::from_slice(entry.stored.json());
        Ok(Some(
            project.map_err(|error| Status::internal(format!("project {name:?} cannot be read: {error}")))?,
        ))
    }
}
