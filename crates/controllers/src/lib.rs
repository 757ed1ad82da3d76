//! The controllers that every cluster has, written with [`k1s_runtime`]: what kube-controller-manager is to Kubernetes,
//! as far as a cluster without nodes needs it.
//!
//! - garbage collection: dependents of deleted objects, by every propagation policy
//! - namespaces that are being deleted: emptied, then let go
//! - custom resource definitions that are being deleted: the same
//! - PersistentVolumeClaims, PersistentVolumes and VolumeAttributesClasses that are being deleted: let go when not in use
//! - the default ServiceAccount and the root CA ConfigMap of each namespace
//! - the expiry of Events, and of Leases if asked for
//!
//! They need nothing but a `kube::Client`, and each can be turned off. On a k1s server all of them together follow one
//! watch of everything's metadata; on any other cluster they watch the kinds they need, metadata only. A cluster that
//! has a kube-controller-manager has all of them already: do not run them beside it.
//!
//! ```no_run
//! use k1s_controllers::{ControllersOptions, run};
//! use tokio_util::sync::CancellationToken;
//!
//! # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let options = ControllersOptions { lease_ttl: Some(std::time::Duration::from_secs(3600)), ..Default::default() };
//! run(client, options, CancellationToken::new()).await?;
//! # Ok(())
//! # }
//! ```

mod contents;
mod defaults;
mod definitions;
mod expiry;
mod feed;
mod gc;
mod kinds;
mod meta;
mod namespaces;
mod protection;
mod tenants;

use std::{sync::Arc, time::Duration};

use k1s_runtime::{Connect, Manager, ManagerError, ManagerOptions, controller::BuildError};
use tokio_util::sync::CancellationToken;

pub use tenants::{Standby, TenantControllers, TenantSignal};

/// Which controllers run, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllersOptions {
    /// Whether dependents of deleted objects are deleted, and what waits for them goes on. On by default.
    pub garbage_collection: bool,
    /// Whether namespaces that are being deleted are emptied and let go. On by default.
    pub namespaces: bool,
    /// Whether the objects of definitions that are being deleted are deleted, and the definitions let go. On by default.
    pub definitions: bool,
    /// Whether PersistentVolumeClaims, PersistentVolumes and VolumeAttributesClasses that are being deleted are let go as soon as
    /// they are not in use: the server protects them with a finalizer until then. On by default.
    pub volume_protection: bool,
    /// Whether each namespace has its service account `default`, whoever deletes it. On by default.
    pub default_objects: bool,
    /// The certificate authority, as PEM, that the ConfigMap `kube-root-ca.crt` of each namespace holds. By default there
    /// is none, and no such ConfigMap is made; it is part of the default objects.
    pub root_ca: Option<Arc<str>>,
    /// How long Events are kept after their last occurrence: 1 hour by default, `None` is for ever.
    pub event_ttl: Option<Duration>,
    /// How long Leases are kept after their end, that is when their holder should have renewed them. `None`, for ever, by
    /// default: a Lease belongs to whoever made it, and Kubernetes, too, deletes none but its own servers'.
    pub lease_ttl: Option<Duration>,
}

impl Default for ControllersOptions {
    fn default() -> ControllersOptions {
        ControllersOptions {
            garbage_collection: true,
            namespaces: true,
            definitions: true,
            volume_protection: true,
            default_objects: true,
            root_ca: None,
            event_ttl: Some(Duration::from_secs(3600)),
            lease_ttl: None,
        }
    }
}

impl ControllersOptions {
    /// None of them: to turn on the ones that are wanted.
    #[must_use]
    pub fn none() -> ControllersOptions {
        ControllersOptions {
            garbage_collection: false,
            namespaces: false,
            definitions: false,
            volume_protection: false,
            default_objects: false,
            root_ca: None,
            event_ttl: None,
            lease_ttl: None,
        }
    }
}

/// Why controllers do not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The manager failed.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// A controller could not be added: the manager has one of its name.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Adds the controllers to a manager, before it is started.
///
/// # Errors
/// If the manager has a controller of the same name.
pub fn add_to_manager(manager: &Manager, options: &ControllersOptions) -> Result<(), BuildError> {
    let feed = feed::Feed::new(manager);
    if options.garbage_collection {
        gc::add(manager, &feed)?;
    }
    if options.namespaces {
        namespaces::add(manager, &feed)?;
    }
    if options.definitions {
        definitions::add(manager, &feed)?;
    }
    if options.volume_protection {
        protection::add(manager, &feed)?;
    }
    if options.default_objects {
        defaults::add(manager, &feed, options.root_ca.clone())?;
    }
    let limits = expiry::Limits { events: options.event_ttl, leases: options.lease_ttl };
    if limits.events.is_some() || limits.leases.is_some() {
        expiry::add(manager, &feed, limits)?;
    }
    Ok(())
}

/// A manager that listens nowhere. What a server warns of is what users wrote, or kinds that are looked at because they are
/// there: nothing that the log of a control plane should tell.
fn manager_options() -> ManagerOptions {
    ManagerOptions { log_warnings: false, ..ManagerOptions::local() }
}

/// Runs the controllers, with a manager of their own that listens nowhere, until `stop` is cancelled.
///
/// # Errors
/// If they fail; they can be run again then.
pub async fn run(
    connect: impl Connect,
    options: ControllersOptions,
    stop: CancellationToken,
) -> Result<(), Error> {
    let manager = Manager::new(connect, manager_options())?;
    add_to_manager(&manager, &options)?;
    manager.start(stop).await?;
    Ok(())
}
