//! Brings the cluster into the state that an Application describes.

use std::sync::Arc;

use k1s::{
    Action, Client, Context, Manager, Object, ObjectKey, Reconciler, Request,
    controller::{
        client::{self, ApplyConfiguration, ApplyOptions, DeleteOptions, Patch, PropagationPolicy},
        recorder::{EventRecorder, EventType},
        util::{
            OperationResult, OwnerError, add_finalizer, contains_finalizer, controller_of, create_or_apply,
            ignore_not_found, remove_finalizer,
        },
    },
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::Job,
    core::v1::{ConfigMap, Service},
};
use serde_json::json;

use crate::{Application, ApplicationStatus, Phase, Run, children, status};

/// Keeps an Application until its children are deleted. Garbage collection would delete them, too; the
/// finalizer also works without it, and keeps the Application until they are gone.
pub const FINALIZER: &str = "cloudnative.elide.dev/finalizer";

/// The name of the operator in its Events.
pub const REPORTER: &str = "application-operator";

/// The reconciler of [`Application`].
#[derive(Debug)]
pub struct ApplicationReconciler {
    client: Client,
    events: EventRecorder,
}

/// Errors of a reconcile. All of them are retried with backoff.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server rejected a request, or could not be reached.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// A child cannot be owned.
    #[error(transparent)]
    Owner(#[from] OwnerError),
}

impl ApplicationReconciler {
    /// Uses the manager's client and recorder.
    #[must_use]
    pub fn new(manager: &Manager) -> ApplicationReconciler {
        let events = manager.event_recorder_for(REPORTER);
        ApplicationReconciler { client: manager.client(), events }
    }
}

impl Reconciler for ApplicationReconciler {
    type Error = Error;

    async fn reconcile(&self, request: Request, context: Context) -> Result<Action, Error> {
        let Some(app) = self.client.get_opt::<Application>(&request).await? else {
            return Ok(Action::done());
        };
        tracing::debug!(%request, attempt = context.attempt(), causes = %context.causes(), "reconciling");
        if app.metadata.deletion_timestamp.is_some() {
            return self.clean_up(&app).await;
        }
        let app = self.with_finalizer(app).await?;
        match self.apply_children(&app).await {
            Ok(status) => {
                self.report(&app, status).await?;
                // The controller of Deployments or of Jobs does the rest; its changes trigger a reconcile.
                Ok(Action::done())
            }
            // A concurrent write: the retry is enough, no event is recorded.
            Err(Error::Client(error)) if error.is_conflict() => Err(error.into()),
            Err(error) => {
                let now = self.client.env().wall();
                self.report(&app, status::failed(&app, &error.to_string(), now)).await?;
                Err(error)
            }
        }
    }
}

impl ApplicationReconciler {
    async fn with_finalizer(&self, app: Arc<Application>) -> Result<Arc<Application>, Error> {
        let mut changed = (*app).clone();
        if !add_finalizer(&mut changed, FINALIZER) {
            return Ok(app);
        }
        // With a lock: a list is replaced as a whole, and there may be other finalizers.
        let patch = Patch::merge_from(&*app).with_optimistic_lock();
        Ok(Arc::new(self.client.patch(&changed, patch).await?))
    }

    /// Applies the children, and returns the status that follows. The configuration comes first: the pods need it.
    async fn apply_children(&self, app: &Application) -> Result<ApplicationStatus, Error> {
        self.child(app, &children::config_map(app)?).await?;
        self.child(app, &children::service(app)?).await?;
        let now = || self.client.env().wall();
        Ok(match app.spec.run {
            Run::Always => status::observed(app, &self.child(app, &children::deployment(app)?).await?, now()),
            Run::Once => status::completed(app, &self.child(app, &children::job(app)?).await?, now()),
        })
    }

    async fn child<K: Object<DynamicType = ()>>(&self, app: &Application, wanted: &K) -> Result<K, Error> {
        // Forced: the operator decides about the fields it applies. What others add to a child stays.
        let (child, done) = create_or_apply(&self.client, wanted, ApplyOptions::forced()).await?;
        let reason = match done {
            OperationResult::Unchanged => return Ok(child),
            OperationResult::Created => "Created",
            _ => "Updated",
        };
        let key = ObjectKey::of(wanted);
        self.events.event(app, EventType::Normal, reason, format!("{} {key} {done}", K::kind(&())));
        Ok(child)
    }

    /// Writes the status if it has changed.
    async fn report(&self, app: &Application, status: ApplicationStatus) -> Result<(), Error> {
        let before = app.status.clone().unwrap_or_default();
        if app.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let (phase, ready, wanted) = (status.phase, status.ready_replicas, app.spec.replicas);
        let message = status.conditions.first().map(|ready| ready.message.clone()).unwrap_or_default();
        let applied =
            ApplyConfiguration::<Application>::new(&ObjectKey::of(app)).with(json!({"status": status}));
        self.client.status().apply_with(&applied, ApplyOptions::forced()).await?;
        match phase {
            Phase::Failed if before.phase != phase => {
                self.events.event(app, EventType::Warning, "Failed", message);
            }
            Phase::Running | Phase::Succeeded if before.phase != phase => {
                self.events.event(app, EventType::Normal, phase.to_string(), message);
            }
            _ => tracing::debug!(%phase, ready, wanted, "status"),
        }
        Ok(())
    }

    /// Deletes the children; when they are gone, removes the finalizer.
    async fn clean_up(&self, app: &Application) -> Result<Action, Error> {
        if !contains_finalizer(app, FINALIZER) {
            return Ok(Action::done());
        }
        let key = ObjectKey::of(app);
        let gone = [
            self.delete::<Deployment>(app, &key).await?,
            self.delete::<Job>(app, &key).await?,
            self.delete::<Service>(app, &key).await?,
            self.delete::<ConfigMap>(app, &children::config_map_key(&key)).await?,
        ];
        if gone.contains(&false) {
            // The deletion of the last child triggers another reconcile.
            return Ok(Action::done());
        }
        let mut changed = app.clone();
        remove_finalizer(&mut changed, FINALIZER);
        let patch = Patch::merge_from(app).with_optimistic_lock();
        ignore_not_found(self.client.patch(&changed, patch).await)?;
        self.events.event(
            app,
            EventType::Normal,
            "CleanedUp",
            "workload, service and configuration are deleted",
        );
        Ok(Action::done())
    }

    /// Whether the child is gone. A child with another owner is not deleted.
    async fn delete<K: Object<DynamicType = ()>>(
        &self,
        app: &Application,
        key: &ObjectKey,
    ) -> Result<bool, Error> {
        let Some(child) = self.client.get_opt::<K>(key).await? else { return Ok(true) };
        if controller_of(&*child).is_none_or(|owner| Some(&owner.uid) != app.metadata.uid.as_ref()) {
            return Ok(true);
        }
        if child.meta().deletion_timestamp.is_some() {
            return Ok(false);
        }
        // By default, a Job leaves its pods behind.
        let options = DeleteOptions::exactly(&*child).propagation(PropagationPolicy::Background);
        let deleted = self.client.delete_with::<K>(&*child, options).await;
        Ok(ignore_not_found(deleted)?.is_none_or(|deleted| deleted.is_gone()))
    }
}
