//! A controller across clusters: a template, a ConfigMap of the host with the label [`SET`], is copied into every project whose
//! `Project` has the same label. Copies follow the template, and are deleted when the project does not select it any more, or
//! when the template is deleted.
//!
//! Owner references do not reach into another cluster, so nobody else deletes the copies. For each project with a copy, the
//! template has a finalizer that names the project:
//!
//! - it is added *before* the copy is made, and removed *after* the copy is seen to be gone, so that a crash in between leaves
//!   no copy that nobody remembers;
//! - a project that cannot be reached keeps its finalizer, and its copy is deleted when it is back;
//! - a project that was deleted has taken its copy with it: its finalizer is removed.
//!
//! Copies have no finalizer: it would keep a project from deleting them while this program does not run.

use std::sync::Arc;

use k1s::{
    Action, BoxError, Context, Handler, ObjectKey, Reconciler, TerminalError,
    controller::{
        BuildError,
        client::{self, DeleteOptions, KindClient, ListOptions},
        event::Event,
        kind::Kind,
        predicate::Predicate,
        source,
        util::{
            Backoff, add_finalizer, contains_finalizer, ignore_not_found, remove_finalizer, retry_on_conflict,
        },
    },
    kind,
    multicluster::{Cluster, Controller, MultiClusterManager, MultiRequest},
    projects,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Resource, ResourceExt as _,
    api::{DynamicObject, ObjectMeta},
};

use crate::Log;

/// The label of templates and of the Projects that select them.
pub(crate) const SET: &str = "fleet.example.com/set";

/// The label of copies.
const COPY: &str = "fleet.example.com/copy";

/// The beginning of finalizers of templates; the name of a project follows.
const HOLDS: &str = "fleet.example.com/in-";

pub(crate) fn add(manager: &MultiClusterManager, log: Log) -> Result<(), BuildError> {
    let host = manager.local_cluster().clone();
    let (of_projects, in_host) = (host.clone(), host.clone());
    Controller::managed_by(manager)
        .named("templates")
        // The host's own requests are about projects that are gone.
        .engage_with_local(true)
        // For each cluster the templates of the host: those that exist when it is engaged, then all changes.
        .watches_multi(move |cluster| {
            let name = cluster.name().clone();
            let request = move |map: &ConfigMap| [MultiRequest::new(name.clone(), ObjectKey::of(map))];
            let templates = kind::<ConfigMap>().with_predicate(either_state(is_template));
            in_host.source(source::kind(templates, Handler::map_object(request)))
        })
        // In each cluster the copies, whose keys are those of their templates.
        .watches(kind::<ConfigMap>().with_predicate(either_state(is_copy)), |_| Handler::for_object())
        // A Project that selects other templates, or is gone.
        .watches_host(
            project_kind(),
            Handler::map_object_async(move |project: Arc<DynamicObject>| {
                let host = of_projects.clone();
                async move { every_template(&host, &project.name_any()).await }
            }),
        )
        .complete_multi(Templates { projects: host.client().kind(project_kind()), host, log })
}

fn project_kind() -> Kind<DynamicObject> {
    Kind::dynamic(projects::project())
}

/// Accepts events of objects that are, or were, of some sort.
fn either_state(is: fn(&ConfigMap) -> bool) -> Predicate<ConfigMap> {
    Predicate::new(move |event: &Event<ConfigMap>| {
        event.old().into_iter().chain([event.object()]).any(|map| is(map))
    })
}

fn set_of(object: &impl Resource) -> Option<&str> {
    object.meta().labels.as_ref()?.get(SET).map(String::as_str)
}

/// One that has lost its label is still a template, as long as there are copies.
fn is_template(map: &ConfigMap) -> bool {
    set_of(map).is_some() || holders(map).next().is_some()
}

fn is_copy(map: &ConfigMap) -> bool {
    map.labels().contains_key(COPY)
}

/// The projects that may have a copy of a template.
pub(crate) fn holders(template: &ConfigMap) -> impl Iterator<Item = &str> {
    template.finalizers().iter().filter_map(|finalizer| finalizer.strip_prefix(HOLDS))
}

/// Requests for every template: in a project, and in the host.
async fn every_template(host: &Cluster, project: &str) -> Vec<MultiRequest> {
    // The cache of the host answers, so there is nothing to fail but its end.
    let maps = host.client().list::<ConfigMap>(ListOptions::default()).await.unwrap_or_default();
    let templates = maps.iter().filter(|map| is_template(map));
    templates
        .flat_map(|map| [project, ""].map(|cluster| MultiRequest::new(cluster, ObjectKey::of(&**map))))
        .collect()
}

struct Templates {
    host: Cluster,
    projects: KindClient<DynamicObject>,
    log: Log,
}

impl Reconciler<MultiRequest> for Templates {
    type Error = BoxError;

    async fn reconcile(&self, request: MultiRequest, context: Context) -> Result<Action, BoxError> {
        let MultiRequest { cluster, request: key } = request;
        let template = self.host.client().get_opt::<ConfigMap>(&key).await?;
        if cluster.is_local() {
            if let Some(template) = template {
                self.forget_deleted_projects(&key, &template).await?;
            }
            return Ok(Action::done());
        }
        let project = self.projects.get_opt(&ObjectKey::cluster(cluster.as_str())).await?;
        // A project that is being deleted takes its copies with it.
        let Some(project) = project.filter(|one| one.metadata.deletion_timestamp.is_none()) else {
            return Ok(Action::done());
        };
        let selected = template.as_ref().filter(|template| {
            let set = set_of(&***template);
            template.metadata.deletion_timestamp.is_none() && set.is_some() && set == set_of(&*project)
        });
        match selected {
            Some(selected) => self.copy(&key, selected, context.cluster()).await?,
            None => self.clean_up(&key, template.as_deref(), context.cluster()).await?,
        }
        Ok(Action::done())
    }
}

impl Templates {
    /// Makes the copy in a project what the template is.
    async fn copy(&self, key: &ObjectKey, template: &ConfigMap, project: &Cluster) -> Result<(), BoxError> {
        let existing = project.client().get_opt::<ConfigMap>(key).await?;
        if existing.as_ref().is_some_and(|map| !is_copy(map)) {
            let why = format!("{}: {key} exists and is no copy; it is left alone", project.name());
            return Err(TerminalError::new(why).into());
        }
        let holder = format!("{HOLDS}{}", project.name());
        if !contains_finalizer(template, &holder) {
            let held = self.change(key, |template| add_finalizer(template, &holder)).await?;
            // It is being deleted: an event of that comes.
            if !held.is_some_and(|template| contains_finalizer(&template, &holder)) {
                return Ok(());
            }
        }
        let done = match existing {
            None => {
                let metadata = ObjectMeta {
                    name: Some(key.name().to_owned()),
                    namespace: key.namespace().map(str::to_owned),
                    labels: Some([(COPY.to_owned(), "true".to_owned())].into()),
                    ..ObjectMeta::default()
                };
                let copy = ConfigMap { metadata, data: template.data.clone(), ..ConfigMap::default() };
                project.client().create(&copy).await?;
                "created"
            }
            Some(copy) if copy.data != template.data => {
                let copy = ConfigMap { data: template.data.clone(), ..(*copy).clone() };
                project.client().update(&copy).await?;
                "updated"
            }
            Some(_) => return Ok(()),
        };
        self.log.say(format!("{}: copy of {} {done}", project.name(), key.name()));
        Ok(())
    }

    /// Deletes the copy in a project, then the finalizer that stands for it.
    async fn clean_up(
        &self,
        key: &ObjectKey,
        template: Option<&ConfigMap>,
        project: &Cluster,
    ) -> Result<(), BoxError> {
        let holder = format!("{HOLDS}{}", project.name());
        let held = template.is_some_and(|template| contains_finalizer(template, &holder));
        if !held && !project.client().get_opt::<ConfigMap>(key).await?.is_some_and(|map| is_copy(&map)) {
            return Ok(());
        }
        // Asks the server: nobody would look for the copy again.
        let copy = project.api_reader().get_opt::<ConfigMap>(key).await?;
        if let Some(copy) = copy.filter(is_copy) {
            let deleted = project.client().delete_with(&copy, DeleteOptions::exactly(&copy)).await;
            // Finalizers of others may keep it; an event comes when it is gone.
            if ignore_not_found(deleted)?.is_some_and(|deleted| !deleted.is_gone()) {
                return Ok(());
            }
            self.log.say(format!("{}: copy of {} deleted", project.name(), key.name()));
        }
        self.change(key, |template| remove_finalizer(template, &holder)).await?;
        Ok(())
    }

    /// Removes the finalizers that stand for copies in projects that do not exist any more.
    async fn forget_deleted_projects(&self, key: &ObjectKey, template: &ConfigMap) -> Result<(), BoxError> {
        for project in holders(template) {
            if self.projects.live().get_opt(&ObjectKey::cluster(project)).await?.is_none() {
                let holder = format!("{HOLDS}{project}");
                self.change(key, |template| remove_finalizer(template, &holder)).await?;
                self.log.say(format!("host: {} has no copy in {project} any more", key.name()));
            }
        }
        Ok(())
    }

    /// Changes a template in the host, and returns it; several projects do that at the same time. `None` if it is gone.
    async fn change(
        &self,
        key: &ObjectKey,
        change: impl Fn(&mut ConfigMap) -> bool + Send + Sync,
    ) -> Result<Option<ConfigMap>, client::Error> {
        let (client, change) = (self.host.client(), &change);
        retry_on_conflict(client.env(), Backoff::DEFAULT_RETRY, || async move {
            let Some(mut template) = client.live().get_opt::<ConfigMap>(key).await? else { return Ok(None) };
            match change(&mut template) {
                true => client.update(&template).await.map(Some),
                false => Ok(Some(template)),
            }
        })
        .await
    }
}
