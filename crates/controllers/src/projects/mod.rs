//! Projects: each has a control plane of its own, a tenant of the k1s server.
//!
//! The kinds, conditions and paths are those of Milo, so that an operator that finds its clusters with Milo's provider works
//! here unchanged. What k1s adds is in annotations and labels under `projects.k1s.dev`: see [`SUSPEND`], [`TEMPLATES`] and
//! [`TEMPLATE`].
//!
//! For each `Project` of the host the controller keeps
//! - a tenant of the same name, created for it (`metadata.ownerReferences` of the tenant) and deleted with it. A tenant that
//!   was not created for the project is never used, and never deleted;
//! - a `ProjectControlPlane` of the same name, owned by the Project;
//! - in the tenant, the custom resource definitions of the project's templates, as they are in the host.
//!
//! When a Project is deleted, what is in its tenant is deleted first, while operators can still reach it: finalizers are
//! waited for, for a [limited time](ProjectsOptions::cleanup_timeout).
//!
//! Every step can be repeated, and the state is only in the store: after a crash the next reconcile goes on from there.

mod cleanup;
mod reconcile;
mod status;
mod template;
mod tenants;

use std::time::Duration;

use k1s_runtime::{
    Controller, ControllerOptions, Handler, Kind, Manager, ObjectKey, Request,
    client::{KindClient, ListOptions},
    controller::BuildError,
    predicate,
};
use kube::{
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};

use self::reconcile::Projects;

/// The definitions of `Project` and `ProjectControlPlane`, as YAML. The host needs them before the controller starts.
pub const DEFINITIONS: &str = include_str!("definitions.yaml");

/// The annotation of a Project that suspends it, with the value `true`: its control plane keeps everything, and answers 403.
pub const SUSPEND: &str = "projects.k1s.dev/suspend";

/// The annotation of a Project with the names of its templates, separated by commas. Without it, a Project has the
/// [default template](ProjectsOptions::template).
pub const TEMPLATES: &str = "projects.k1s.dev/templates";

/// The label of a custom resource definition of the host with the template that it belongs to. It is installed in every
/// project with that template, and changes of it follow. A definition that leaves a template stays in the projects: deleting
/// it would delete their objects.
pub const TEMPLATE: &str = "projects.k1s.dev/template";

/// The annotation of a `ProjectControlPlane` that tells which definitions its tenant has.
const INSTALLED: &str = "projects.k1s.dev/definitions";

/// The finalizer of a Project, until its tenant is deleted.
const FINALIZER: &str = "resourcemanager.miloapis.com/project-controller";

/// The field manager of what this controller writes.
const FIELD_MANAGER: &str = "k1s-projects";

/// Options of the controller of projects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProjectsOptions {
    /// The tenant in which Projects live; the controller runs in no other. `default` by default.
    pub host: String,
    /// The template of Projects that name none. `default` by default.
    pub template: String,
    /// Maximum number of projects that are reconciled at the same time: 8 by default.
    pub max_concurrent_reconciles: usize,
    /// How long the deletion of a project waits for the finalizers of what is in it: 5 minutes by default. Then the tenant is
    /// removed, whatever is left.
    pub cleanup_timeout: Duration,
}

impl Default for ProjectsOptions {
    fn default() -> ProjectsOptions {
        ProjectsOptions {
            host: "default".into(),
            template: "default".into(),
            max_concurrent_reconciles: 8,
            cleanup_timeout: Duration::from_secs(300),
        }
    }
}

/// `Project`, cluster-scoped.
#[must_use]
pub fn project() -> ApiResource {
    resource("resourcemanager.miloapis.com", "v1alpha1", "Project", "projects")
}

/// `ProjectControlPlane`, cluster-scoped.
#[must_use]
pub fn project_control_plane() -> ApiResource {
    resource("infrastructure.miloapis.com", "v1alpha1", "ProjectControlPlane", "projectcontrolplanes")
}

fn definition() -> ApiResource {
    resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

/// Adds the controller. Its client has to reach all tenants of the server: it may not be bound to the host.
pub(crate) fn add(manager: &Manager, options: &ProjectsOptions) -> Result<(), BuildError> {
    let client = manager.client().with_field_owner(FIELD_MANAGER);
    let [projects, planes, definitions] =
        [project(), project_control_plane(), definition()].map(Kind::<DynamicObject>::dynamic);
    let all = client.kind(projects.clone());
    // The status of a definition changes for reasons that do not concern projects.
    let changed =
        predicate::generation_changed().or(predicate::label_changed()).or(predicate::annotation_changed());
    let default = options.template.clone();
    let affected = Handler::map_object_async(move |definition: std::sync::Arc<DynamicObject>| {
        let (all, default) = (all.clone(), default.clone());
        async move { users_of(&all, template::of_definition(&definition), &default).await }
    });
    Controller::managed_by(manager)
        .for_(projects)
        .owns(planes)
        .watches(definitions.with_predicate(changed), affected)
        .with_options(ControllerOptions::concurrent(options.max_concurrent_reconciles))
        .complete(Projects::new(&client, manager.event_recorder_for(FIELD_MANAGER), options.clone()))
}

/// The projects with a template.
async fn users_of(all: &KindClient<DynamicObject>, template: Option<&str>, default: &str) -> Vec<Request> {
    let Some(template) = template else { return Vec::new() };
    match all.list(ListOptions::default()).await {
        Ok(projects) => projects
            .iter()
            .filter(|project| template::of_project(project, default).any(|name| name == template))
            .map(|project| ObjectKey::of(&**project))
            .collect(),
        Err(error) => {
            tracing::error!(%error, template, "a definition has changed, but its projects cannot be listed");
            Vec::new()
        }
    }
}
