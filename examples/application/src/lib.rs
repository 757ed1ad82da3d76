//! The Application operator: an `Application` becomes a Deployment, a Service and a ConfigMap, and says how they are doing.
//!
//! - [`crd`]: the kind, as people write it.
//! - [`children`]: what an Application should have; pure functions over objects.
//! - [`status`]: what there is to say about an Application; pure, too.
//! - [`reconciler`]: makes the one like the other.
//! - [`rollout`]: pretends to be the cluster's Deployment controller, for control planes that have none.
//! - [`demo`]: all of it with a control plane, in one command.
//!
//! It runs on the embedded runtime and on any other cluster: all it needs is a [`Manager`].

pub mod children;
pub mod crd;
pub mod demo;
pub mod reconciler;
pub mod rollout;
pub mod status;

use std::time::Duration;

use k1s::{
    Controller, ControllerOptions, Manager,
    controller::{BuildError, predicate},
    kind,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service},
};

pub use crd::{Application, ApplicationSpec, ApplicationStatus, Phase, Strategy};

/// How the operator works.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many Applications are reconciled at the same time.
    pub max_concurrent_reconciles: usize,
    /// Pretends to roll Deployments out, one replica after each such time. Off on a cluster that has a Deployment controller.
    pub simulated_rollout: Option<Duration>,
}

impl Default for Options {
    fn default() -> Options {
        Options { max_concurrent_reconciles: 4, simulated_rollout: None }
    }
}

/// Adds the operator's controllers to a manager. The definition of [`Application`] has to be on the server, or has to come: the
/// controller waits for it.
///
/// # Errors
/// If the manager has controllers of the same names.
pub fn add_to(manager: &Manager, options: &Options) -> Result<(), BuildError> {
    // What the operator itself writes to the status, and what it adds to the metadata, is not worth a second look.
    Controller::managed_by(manager)
        .for_(kind::<Application>().with_predicate(predicate::generation_changed()))
        .owns(kind::<Deployment>())
        .owns(kind::<Service>())
        .owns(kind::<ConfigMap>())
        .with_options(ControllerOptions::concurrent(options.max_concurrent_reconciles))
        .complete(reconciler::ApplicationReconciler::new(manager))?;
    if let Some(step) = options.simulated_rollout {
        rollout::add_to(manager, step)?;
    }
    Ok(())
}
