//! Makes the tenant, the `ProjectControlPlane` and the conditions of one Project what they should be.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use k1s_env::Env;
use k1s_object::names;
use k1s_runtime::{
    Action, BoxError, Client, Context, Kind, ObjectKey, Reconciler, Request,
    client::{self, DeleteOptions, KindClient, Patch, Preconditions},
    recorder::{EventRecorder, EventType, NewEvent},
    util::{Owner, controller_of, ignore_not_found, set_controller_reference},
};
use kube::{
    Resource as _, ResourceExt as _,
    api::{DynamicObject, ObjectMeta},
};
use serde_json::json;

use super::{
    FINALIZER, INSTALLED, ProjectsOptions, SUSPEND, cleanup, definition, project, project_control_plane,
    status::{self, Cleanup, Definitions, Plane},
    template::{self, Installed},
    tenants::{Phase, Tenant, Tenants},
};

/// When to look again at a project that somebody else's object keeps from being ready.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

pub(super) struct Projects {
    env: Env,
    options: ProjectsOptions,
    events: EventRecorder,
    tenants: Tenants,
    projects: KindClient<DynamicObject>,
    planes: KindClient<DynamicObject>,
    definitions: KindClient<DynamicObject>,
}

/// The tenant of a project, or why it has none.
enum Found {
    Tenant(Tenant),
    Not(Plane),
}

impl Reconciler for Projects {
    type Error = BoxError;

    async fn reconcile(&self, request: Request, _: Context) -> Result<Action, BoxError> {
        let Some(project) = self.projects.get_opt(&request).await? else { return Ok(Action::done()) };
        let outcome = match project.metadata.deletion_timestamp {
            Some(_) => self.remove(&project).await,
            None => self.provide(&project).await,
        };
        match outcome {
            // Somebody else has changed an object that was read from the cache.
            Err(error) if is_conflict(&error) => Ok(Action::requeue_with_backoff()),
            other => other,
        }
    }
}

fn is_conflict(error: &BoxError) -> bool {
    match (error.downcast_ref::<client::Error>(), error.downcast_ref::<kube::Error>()) {
        (Some(error), _) => error.is_conflict() || error.is_already_exists(),
        (_, Some(kube::Error::Api(status))) => status.code == 409,
        _ => false,
    }
}

impl Projects {
    pub(super) fn new(client: &Client, events: EventRecorder, options: ProjectsOptions) -> Projects {
        Projects {
            env: client.env().clone(),
            options,
            events,
            tenants: Tenants::new(client.kube().clone()),
            projects: client.kind(Kind::dynamic(project())),
            planes: client.kind(Kind::dynamic(project_control_plane())),
            definitions: client.kind(Kind::dynamic(definition())),
        }
    }

    /// Gives a project its control plane.
    async fn provide(&self, project: &DynamicObject) -> Result<Action, BoxError> {
        let project = self.with_finalizer(project).await?;
        let Some(control_plane) = self.control_plane(&project).await? else {
            let name = project.name_any();
            let why = format!("a ProjectControlPlane {name:?} exists that is not this project's");
            return self.settle(&project, None, &Plane::NameConflict(why)).await;
        };
        let tenant = match self.tenant(&project).await {
            Ok(Found::Tenant(tenant)) => tenant,
            Ok(Found::Not(plane)) => return self.settle(&project, Some(&control_plane), &plane).await,
            Err(error) => {
                let error = BoxError::from(error);
                // A project that can be used is not taken away because the server is busy.
                if !status::is_ready(&project) && !is_conflict(&error) {
                    let plane = Plane::Failed(format!("the control plane cannot be created: {error}"));
                    self.report_plane(&control_plane, &plane).await?;
                    self.report(&project, &plane, None, false).await?;
                }
                return Err(error);
            }
        };
        if project.annotations().get(SUSPEND).is_some_and(|value| value == "true") {
            return self.settle(&project, Some(&control_plane), &Plane::Suspended).await;
        }
        self.equip(&project, control_plane, &tenant).await
    }

    /// Installs the definitions of the project's templates, and makes it ready.
    async fn equip(
        &self,
        project: &DynamicObject,
        control_plane: DynamicObject,
        tenant: &Tenant,
    ) -> Result<Action, BoxError> {
        let (name, was_ready) = (project.name_any(), status::is_ready(project));
        let wanted = template::definitions(&self.definitions, project, &self.options.template).await?;
        let fingerprint = template::fingerprint(tenant, &wanted);
        let control_plane = self.report_plane(&control_plane, &Plane::Ready).await?;
        if wanted.is_empty() || control_plane.annotations().get(INSTALLED) == Some(&fingerprint) {
            let definitions = Definitions::Installed(wanted.len());
            self.report(project, &Plane::Ready, Some(&definitions), was_ready).await?;
            return Ok(Action::done());
        }
        // A control plane has to be ready before anything can be installed in it. While definitions are refused, that is what
        // is reported: a status that changed with each attempt would cause the next one.
        let meanwhile = status::refused(project).unwrap_or(Definitions::Installing);
        let project = self.report(project, &Plane::Ready, Some(&meanwhile), was_ready).await?;
        let Installed { refused, pending } = template::install(&self.tenants, &name, &wanted).await?;
        if pending {
            return Ok(Action::requeue_with_backoff());
        }
        if !refused.is_empty() {
            let definitions = Definitions::Refused(refused);
            self.report(&project, &Plane::Ready, Some(&definitions), was_ready).await?;
            return Ok(Action::requeue_after(LOOK_AGAIN));
        }
        let patch = json!({"metadata": {"annotations": {INSTALLED: fingerprint}}});
        self.planes.patch(&control_plane, Patch::merge(&patch)).await?;
        let definitions = Definitions::Installed(wanted.len());
        self.report(&project, &Plane::Ready, Some(&definitions), was_ready).await?;
        Ok(Action::done())
    }

    /// Deletes what a project has, then lets it go.
    async fn remove(&self, project: &DynamicObject) -> Result<Action, BoxError> {
        if !project.finalizers().iter().any(|one| one == FINALIZER) {
            return Ok(Action::done());
        }
        let name = project.name_any();
        let uid = project.uid().unwrap_or_default();
        let control_plane = self.planes.get_opt(&ObjectKey::cluster(name.as_str())).await?;
        let control_plane = control_plane.filter(|plane| is_controlled_by(plane, &uid));
        let tenant = self.find(&name).await?.filter(|tenant| tenant.is_of(&uid));
        // One that is being removed already may have lost a part of its content.
        let usable = tenant.as_ref().is_some_and(|tenant| tenant.phase() == Phase::Active)
            && !status::is_for(project, "Terminating");
        let mut project = project.clone();
        let mut outcome = None;
        if usable {
            let (emptied, cleanup) = self.empty(&project, control_plane.as_deref()).await?;
            project = emptied;
            match cleanup {
                Cleanup::Started | Cleanup::Waiting(_) => {
                    return Ok(Action::requeue_after(cleanup::interval(self.emptied_for(&project))));
                }
                cleanup @ (Cleanup::TimedOut(_) | Cleanup::Complete) => outcome = Some(cleanup.condition()),
            }
        }
        let mut conditions = status::of_project(&Plane::Terminating, None, false);
        conditions.extend(outcome);
        let project = status::report(&self.projects, &project, conditions, self.env.wall()).await?;
        if let Some(plane) = control_plane {
            // Its status has changed since it was read.
            let preconditions = Some(Preconditions { uid: plane.uid(), resource_version: None });
            let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
            ignore_not_found(self.planes.delete_with(&*plane, options).await)?;
        }
        if let Some(tenant) = tenant {
            self.tenants.delete(&name, &tenant).await?;
        }
        let mut finalizers = project.metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|one| one != FINALIZER);
        self.set_finalizers(&project, &finalizers).await?;
        Ok(Action::done())
    }

    /// Deletes what is in a project's control plane, which can be used meanwhile, also if the project was suspended: operators
    /// have to remove their finalizers. Returns the project as it is then stored.
    async fn empty(
        &self,
        project: &DynamicObject,
        control_plane: Option<&DynamicObject>,
    ) -> Result<(DynamicObject, Cleanup), BoxError> {
        if let Some(plane) = control_plane {
            self.report_plane(plane, &Plane::Deleting).await?;
        }
        let used = status::is_ready(project) || status::is_for(project, "Suspended");
        let conditions = |cleanup: &Cleanup, project: &DynamicObject| {
            let used = used || status::is_ready(project);
            let mut all = status::of_project(&Plane::Deleting, None, used);
            all.push(cleanup.condition());
            all
        };
        let mut project = project.clone();
        if status::cleanup_began(&project).is_none() {
            let all = conditions(&Cleanup::Started, &project);
            project = status::report(&self.projects, &project, all, self.env.wall()).await?;
        }
        let is_over = self.emptied_for(&project) >= self.options.cleanup_timeout;
        let left = match cleanup::clear(&self.tenants, &project.name_any()).await {
            Ok(left) if left.is_empty() => return Ok((project, Cleanup::Complete)),
            Ok(left) => left.to_string(),
            Err(error) if is_over => format!("they cannot all be deleted: {error}"),
            Err(error) => return Err(error.into()),
        };
        if is_over {
            tracing::warn!(project = %project.name_any(), left, "removed with objects that wait for finalizers");
            let about = project.object_ref(self.projects.kind().resource());
            let cleanup = Cleanup::TimedOut(left);
            let condition = cleanup.condition();
            self.events.publish(NewEvent::regarding(
                about,
                EventType::Warning,
                condition.reason,
                condition.message,
            ));
            return Ok((project, cleanup));
        }
        let cleanup = Cleanup::Waiting(left);
        let all = conditions(&cleanup, &project);
        let project = status::report(&self.projects, &project, all, self.env.wall()).await?;
        Ok((project, cleanup))
    }

    /// Since when what is in a project is being deleted.
    fn emptied_for(&self, project: &DynamicObject) -> Duration {
        let began = status::cleanup_began(project).unwrap_or(SystemTime::UNIX_EPOCH);
        self.env.wall().duration_since(began).unwrap_or_default()
    }

    /// The tenant of a project, created if needed.
    async fn tenant(&self, project: &DynamicObject) -> Result<Found, kube::Error> {
        let (name, uid) = (project.name_any(), project.uid().unwrap_or_default());
        let wrong = names::is_dns1123_label(&name);
        if !wrong.is_empty() {
            let why = format!("the name of a project has to be a DNS label: {}", wrong.join("; "));
            return Ok(Found::Not(Plane::InvalidName(why)));
        }
        // The first tenant of every server is `default`, whichever its host is.
        if name == self.options.host || name == "default" {
            let why = format!("{name:?} is reserved: it is the name of the host's own control plane");
            return Ok(Found::Not(Plane::NameConflict(why)));
        }
        match self.tenants.find(&name).await? {
            Some(tenant) if !tenant.is_of(&uid) => {
                let why = format!("a control plane {name:?} exists that was not made for this project");
                return Ok(Found::Not(Plane::NameConflict(why)));
            }
            Some(tenant) if tenant.phase() == Phase::Active => return Ok(Found::Tenant(tenant)),
            Some(tenant) if tenant.phase() == Phase::Terminating => {
                self.tenants.delete(&name, &tenant).await?;
            }
            Some(_) | None => {}
        }
        let kind = self.projects.kind();
        self.tenants.create(&name, &kind.resource().api_version, &uid).await.map(Found::Tenant)
    }

    /// A tenant by a project's name, which may be no tenant's name.
    async fn find(&self, name: &str) -> Result<Option<Tenant>, kube::Error> {
        match names::is_dns1123_label(name).is_empty() {
            true => self.tenants.find(name).await,
            false => Ok(None),
        }
    }

    /// The `ProjectControlPlane` of a project, created if needed; `None` if it is somebody else's.
    async fn control_plane(&self, project: &DynamicObject) -> Result<Option<DynamicObject>, BoxError> {
        let (name, uid) = (project.name_any(), project.uid().unwrap_or_default());
        if let Some(plane) = self.planes.get_opt(&ObjectKey::cluster(name.as_str())).await? {
            if is_controlled_by(&plane, &uid) {
                return Ok(Some(Arc::unwrap_or_clone(plane)));
            }
            let is_left_over =
                controller_of(&*plane).is_some_and(|one| one.kind == "Project" && one.name == name);
            if !is_left_over {
                return Ok(None);
            }
            // Of an earlier project of this name; the garbage collector has not come to it yet.
            ignore_not_found(self.planes.delete_with(&*plane, DeleteOptions::exactly(&*plane)).await)?;
        }
        let label =
            |name: &str, value: &str| (format!("resourcemanager.miloapis.com/{name}"), value.to_owned());
        let mut plane = DynamicObject::new(&name, self.planes.kind().resource());
        let owner = project.data["spec"]["ownerRef"]["name"].as_str().unwrap_or_default();
        plane.metadata = ObjectMeta {
            labels: Some(BTreeMap::from([label("project-uid", &uid), label("project-name", &name)])),
            annotations: Some(BTreeMap::from([label("owner-name", owner)])),
            ..plane.metadata
        };
        // A label has fewer characters than a name. Such a project fails, and shows why.
        if name.len() > 63 {
            plane.labels_mut().remove("resourcemanager.miloapis.com/project-name");
        }
        set_controller_reference(Owner::of_kind(self.projects.kind(), project), &mut plane)?;
        plane.data = json!({"spec": {}});
        Ok(Some(self.planes.create(&plane).await?))
    }

    async fn with_finalizer(&self, project: &DynamicObject) -> Result<DynamicObject, BoxError> {
        let mut finalizers = project.metadata.finalizers.clone().unwrap_or_default();
        if finalizers.iter().any(|one| one == FINALIZER) {
            return Ok(project.clone());
        }
        finalizers.push(FINALIZER.to_owned());
        self.set_finalizers(project, &finalizers).await
    }

    async fn set_finalizers(
        &self,
        project: &DynamicObject,
        all: &[String],
    ) -> Result<DynamicObject, BoxError> {
        let version = &project.metadata.resource_version;
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": all}});
        Ok(self.projects.patch(project, Patch::merge(&patch)).await?)
    }

    /// Reports a control plane that cannot be used.
    async fn settle(
        &self,
        project: &DynamicObject,
        control_plane: Option<&DynamicObject>,
        plane: &Plane,
    ) -> Result<Action, BoxError> {
        if let Some(control_plane) = control_plane {
            self.report_plane(control_plane, plane).await?;
        }
        self.report(project, plane, None, false).await?;
        // Nothing announces that a tenant is gone.
        Ok(match plane {
            Plane::NameConflict(_) => Action::requeue_after(LOOK_AGAIN),
            _ => Action::done(),
        })
    }

    async fn report(
        &self,
        project: &DynamicObject,
        plane: &Plane,
        definitions: Option<&Definitions>,
        was_ready: bool,
    ) -> Result<DynamicObject, BoxError> {
        let conditions = status::of_project(plane, definitions, was_ready);
        status::report(&self.projects, project, conditions, self.env.wall()).await
    }

    async fn report_plane(&self, object: &DynamicObject, plane: &Plane) -> Result<DynamicObject, BoxError> {
        status::report(&self.planes, object, vec![plane.condition()], self.env.wall()).await
    }
}

/// Whether an object is controlled by the project with this uid.
fn is_controlled_by(object: &DynamicObject, project: &str) -> bool {
    controller_of(object).is_some_and(|owner| owner.uid == project)
}
