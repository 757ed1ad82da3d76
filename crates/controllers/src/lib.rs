//! The built-in controllers of a cluster, written with [`k1s_runtime`]: the parts of kube-controller-manager
//! that a cluster without nodes needs.
//!
//! - garbage collection: deletes dependents of deleted objects, with all propagation policies
//! - terminating namespaces: deletes their contents, then removes the finalizer
//! - terminating custom resource definitions: the same
//! - terminating `PersistentVolumeClaims`, `PersistentVolumes` and `VolumeAttributesClasses`: removes the
//!   finalizer when not in use
//! - the default `ServiceAccount` and the root CA `ConfigMap` of each namespace
//! - storage migrations: rewrites the objects of a resource in its storage version
//! - certificate signing requests: approved where the requester may have that, signed by a signer that the program gives,
//!   and deleted when they are old
//! - expiry of Events and, optionally, of Leases
//! - optionally, on a k1s server: [`projects`], each with a control plane of its own
//!
//! They need only a `kube::Client`, and each can be turned off. On a k1s server all of them share a single
//! watch of all metadata; on any other cluster they watch the metadata of the kinds they need. A cluster with
//! a kube-controller-manager has all of them already: do not run them there.
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

mod certificates;
mod contents;
mod defaults;
mod definitions;
mod expiry;
mod feed;
mod gc;
mod kinds;
mod meta;
mod migrations;
mod namespaces;
pub mod projects;
mod protection;
mod tenants;

use std::{sync::Arc, time::Duration};

use k1s_runtime::{Connect, Manager, ManagerError, ManagerOptions, controller::BuildError};
use tokio_util::sync::CancellationToken;

pub use certificates::{CertificateRequest, CertificateSigner, CertificatesOptions, SharedSigner, SignError};
pub use projects::ProjectsOptions;
pub use tenants::{Standby, TenantControllers, TenantSignal};

/// Which controllers run, and their settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllersOptions {
    /// Garbage collection: deletes dependents of deleted objects, and finishes foreground and orphaning
    /// deletions. On by default.
    pub garbage_collection: bool,
    /// Deletes the contents of terminating namespaces, then finalizes them. On by default.
    pub namespaces: bool,
    /// Deletes the objects of terminating definitions, then finalizes those. On by default.
    pub definitions: bool,
    /// Removes the protection finalizer of terminating `PersistentVolumeClaims`, `PersistentVolumes` and
    /// `VolumeAttributesClasses` when they are no longer in use. On by default.
    pub volume_protection: bool,
    /// Ensures that each namespace has a service account `default`, even if it is deleted. On by default.
    pub default_objects: bool,
    /// The CA certificate, as PEM, for the `ConfigMap` `kube-root-ca.crt` of each namespace, which is one of
    /// the default objects. `None`, and no such `ConfigMap`, by default.
    pub root_ca: Option<Arc<str>>,
    /// Runs `StorageVersionMigrations`: rewrites all objects of a resource, so that each is stored in the storage version. On
    /// by default.
    pub storage_migration: bool,
    /// Approves, signs and deletes `CertificateSigningRequests`. On by default, without a signer.
    pub certificates: Option<CertificatesOptions>,
    /// How long Events are kept after their last occurrence: 1 hour by default; `None` keeps them forever.
    pub event_ttl: Option<Duration>,
    /// How long Leases are kept after they expire. `None`, forever, by default: a Lease belongs to its
    /// creator, and Kubernetes only deletes those of its own servers, too.
    pub lease_ttl: Option<Duration>,
    /// Gives each Project a control plane of its own: see [`projects`]. `None`, off, by default. Only on a k1s server, in
    /// its default tenant, with a client that may manage tenants; and [`projects::DEFINITIONS`] have to be installed.
    pub projects: Option<ProjectsOptions>,
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
            storage_migration: true,
            certificates: Some(CertificatesOptions::default()),
            event_ttl: Some(Duration::from_secs(3600)),
            lease_ttl: None,
            projects: None,
        }
    }
}

impl ControllersOptions {
    /// All controllers off, to turn on individual ones.
    #[must_use]
    pub fn none() -> ControllersOptions {
        ControllersOptions {
            garbage_collection: false,
            namespaces: false,
            definitions: false,
            volume_protection: false,
            default_objects: false,
            root_ca: None,
            storage_migration: false,
            certificates: None,
            event_ttl: None,
            lease_ttl: None,
            projects: None,
        }
    }
}

/// Error of adding or running the controllers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The manager failed.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// A controller could not be added: the manager has one with the same name.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Adds the controllers to a manager that has not been started.
///
/// # Errors
/// If the manager has a controller with the same name.
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
    if options.storage_migration {
        migrations::add(manager, &feed)?;
    }
    if let Some(options) = &options.certificates {
        certificates::add(manager, &feed, options.clone())?;
    }
    let limits = expiry::Limits { events: options.event_ttl, leases: options.lease_ttl };
    if limits.events.is_some() || limits.leases.is_some() {
        expiry::add(manager, &feed, limits)?;
    }
    if let Some(options) = &options.projects {
        projects::add(manager, options)?;
    }
    Ok(())
}

/// Options of a manager without listeners. Server warnings are not logged: they are about objects of users,
/// or kinds that are watched only because they exist. The field owner is that of Kubernetes' own controllers.
fn manager_options() -> ManagerOptions {
    ManagerOptions {
        log_warnings: false,
        field_owner: Some("kube-controller-manager".into()),
        ..ManagerOptions::local()
    }
}

/// Runs the controllers with their own manager, without listeners, until `stop` is cancelled.
///
/// # Errors
/// If they fail; they can be run again.
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
