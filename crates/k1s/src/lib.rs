//! k1s: a Kubernetes-compatible control plane and a controller runtime, small enough to live inside a program.
//!
//! - [`Runtime`] is a control plane: a store, the API server and its controllers, started and stopped
//!   together.
//! - [`Manager`], [`Controller`], [`Reconciler`] and [`Client`] are for writing controllers, on a [`Runtime`] or on any other
//!   cluster. The most common types are here at the root; [`controller`] has the rest of the library.
//! - [`multicluster`] runs controllers over many clusters that come and go: tenants, projects, kubeconfigs.
//! - [`manifests`] applies objects and custom resource definitions to a server.
//!
//! This crate combines the others and adds no behaviour of its own. The program `k1s` is `k1s-cli`.
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `disk` | yes | the store in a folder: `RuntimeBuilder::disk` |
//! | `etcd` | | the store on etcd: `RuntimeBuilder::etcd` |
//! | `server-tls` | yes | a [`Runtime`] that listens, over HTTPS or HTTP, for kubectl and other clients: `RuntimeBuilder::listen` |
//! | `client-tls` | yes | `kube::Client` for clusters over HTTPS; metrics over HTTPS |
//! | `webhook` | yes | admission and conversion webhooks: `controller::webhook` |
//! | `derive` | yes | `#[derive(CustomResource)]` as `k1s::CustomResource` |
//! | `latest` | yes | Kubernetes' types in their newest version; without it, choose one in your own `k8s-openapi` |
//! | `pprof` | | CPU profiles of a manager |
//!
//! With `default-features = false` a program has the memory store and clients in process, and builds neither TLS nor gRPC.
//!
//! ```
//! use k1s::{
//!     Action, Context, Controller, IdleOptions, Manager, ManagerOptions, Request, Runtime, controller::client, kind,
//! };
//! use k1s::k8s_openapi::api::core::v1::ConfigMap;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), k1s::BoxError> {
//! let runtime = Runtime::builder().memory().start().await?;
//! runtime.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: hello}}").await?;
//!
//! let manager = Manager::new(&runtime, ManagerOptions::local())?;
//! let client = manager.client();
//! Controller::managed_by(&manager).for_(kind::<ConfigMap>()).complete(move |request: Request, _: Context| {
//!     let client = client.clone();
//!     async move {
//!         if let Some(object) = client.get_opt::<ConfigMap>(&request).await? {
//!             println!("{request} is at resource version {:?}", object.metadata.resource_version);
//!         }
//!         Ok::<_, client::Error>(Action::done())
//!     }
//! })?;
//! let report = manager.run_until_idle(IdleOptions::default()).await?;
//! assert!(report.reconciles() > 0);
//! runtime.stop().await?;
//! # Ok(())
//! # }
//! ```

mod control_plane;
pub mod controller;
mod election;
mod embedded;
pub mod manifests;
pub mod migration;
mod tenants;

// The control plane.
pub use election::Election;
#[cfg(feature = "server-tls")]
pub use embedded::{KnownCertificate, NewUser, Pki, folder_kubeconfig, issue_kubeconfig, write_kubeconfig};
pub use embedded::{Runtime, RuntimeBuilder, StartError, StopError};
pub use k1s_controllers::{CertificatesOptions, ControllersOptions, ProjectsOptions, projects};

// The most common types of the controller library; `controller` has the others.
#[doc(no_inline)]
pub use k1s_runtime::{
    Action, BoxError, Client, Connect, Context, Controller, ControllerOptions, Handler, IdleOptions, Manager,
    ManagerError, ManagerOptions, Object, ObjectKey, Reconciler, Request, TerminalError, kind::kind,
    shutdown_on_signals,
};

/// Time, tasks, ids and randomness: [`Env::system`](env::Env::system), or [`Env::simulated`](env::Env::simulated) in tests.
pub mod env {
    pub use k1s_env::*;
}

/// Encryption at rest.
#[cfg(feature = "encryption")]
pub mod encryption {
    pub use k1s_encryption::*;
}

/// Controllers over many clusters: the multi-cluster manager and its providers.
pub mod multicluster {
    pub use k1s_multicluster::*;
}

/// Kubernetes objects as JSON: selectors, patches, errors, YAML.
pub mod object {
    pub use k1s_object::*;
}

/// The API server as a tower Service, its options, users and TLS files.
pub mod server {
    pub use k1s_server::*;
}

/// The revisioned byte store: the trait, the memory store, and the backends on disk and on etcd.
pub mod store {
    /// The durable store in a folder.
    #[cfg(feature = "disk")]
    pub mod disk {
        pub use k1s_store_disk::*;
    }
    /// The store on etcd.
    #[cfg(feature = "etcd")]
    pub mod etcd {
        pub use k1s_store_etcd::*;
    }
    pub use k1s_store::*;
}

// Dependencies in this crate's public API, in matching versions. Programs that use these need no dependencies
// of their own; see docs/controllers.md for deriving a kind this way.
pub use async_trait::async_trait;
pub use bytes;
pub use k8s_openapi;
pub use kube;
#[cfg(feature = "derive")]
pub use kube::CustomResource;
#[cfg(feature = "derive")]
pub use schemars;
pub use serde;
pub use serde_json;
pub use tokio;
pub use tokio_util::sync::CancellationToken;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/controllers.md")]
mod guide {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/multicluster.md")]
mod multicluster_guide {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
mod embedding_guide {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-go.md")]
mod from_go_guide {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/schemas.md")]
mod schemas_guide {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/versions.md")]
mod versions_guide {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/audit.md")]
mod audit_guide {}

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
