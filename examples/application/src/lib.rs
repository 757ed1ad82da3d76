//! The Application operator: creates a Deployment (or, if it runs once, a Job), a Service and a `ConfigMap` for an
//! `Application`, and reports their status.
//!
//! - [`crd`]: the custom resource.
//! - [`children`]: the objects of an Application; pure functions.
//! - [`status`]: the status of an Application; pure functions, too.
//! - [`reconciler`]: brings the cluster into the desired state.
//! - [`rollout`], [`run`]: simulate the controllers of Deployments and Jobs, for control planes that have none.
//! - [`door`]: the operator and its control plane over plain HTTP, for curl and browsers on this machine.
//! - [`demo`]: everything with a control plane, in one command.
//!
//! It runs on the embedded runtime and on any other cluster: it only needs a [`Manager`].

pub mod children;
pub mod crd;
pub mod demo;
pub mod door;
pub mod reconciler;
pub mod rollout;
pub mod run;
pub mod status;

use std::time::Duration;

use k1s::{
    Client, Controller, ControllerOptions, Manager,
    controller::{
        BuildError,
        changes::{Changes, ChangesOptions, RecordedKind},
        client::SelectorError,
        predicate,
    },
    kind,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::Job,
    core::v1::{ConfigMap, Service},
};

pub use crd::{Application, ApplicationSpec, ApplicationStatus, Phase, Run, Strategy};

/// The field manager of the operator. Whatever it is started as, it owns what it has applied.
pub const FIELD_OWNER: &str = "application-operator";

/// Options of the operator.
#[derive(Debug, Clone)]
pub struct Options {
    /// Maximum number of Applications reconciled concurrently.
    pub max_concurrent_reconciles: usize,
    /// Simulates rollouts of Deployments and runs of Jobs, with this delay per replica. Off on a cluster that has
    /// their controllers.
    pub simulated_rollout: Option<Duration>,
}

impl Default for Options {
    fn default() -> Options {
        Options { max_concurrent_reconciles: 4, simulated_rollout: None }
    }
}

/// Adds the operator's controllers to a manager. The controller waits until the definition of [`Application`]
/// is served.
///
/// # Errors
/// If the manager has controllers with the same names.
pub fn add_to(manager: &Manager, options: &Options) -> Result<(), BuildError> {
    // The operator's own writes to the status and the metadata need no further reconcile.
    Controller::managed_by(manager)
        .for_(kind::<Application>().with_predicate(predicate::generation_changed()))
        .owns(kind::<Deployment>())
        .owns(kind::<Job>())
        .owns(kind::<Service>())
        .owns(kind::<ConfigMap>())
        .with_options(ControllerOptions::concurrent(options.max_concurrent_reconciles))
        .complete(reconciler::ApplicationReconciler::new(manager))?;
    if let Some(step) = options.simulated_rollout {
        rollout::add_to(manager, step)?;
        run::add_to(manager, step)?;
    }
    Ok(())
}

/// A record of the changes of Applications and of what they own; the Application is the first kind.
///
/// # Errors
/// Never in practice: if the label of the children is not a valid selector.
pub fn changes(client: &Client, options: ChangesOptions) -> Result<Changes, SelectorError> {
    let owned = format!("{}={}", children::MANAGED_BY.0, children::MANAGED_BY.1);
    let kinds = [
        RecordedKind::of(&kind::<Application>()),
        RecordedKind::of(&kind::<Deployment>()).with_labels(&owned)?,
        RecordedKind::of(&kind::<Job>()).with_labels(&owned)?,
        RecordedKind::of(&kind::<Service>()).with_labels(&owned)?,
        RecordedKind::of(&kind::<ConfigMap>()).with_labels(&owned)?,
    ];
    Ok(Changes::new(client, kinds, options))
}
