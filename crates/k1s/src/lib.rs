//! k1s: a Kubernetes-compatible control plane and a controller runtime, small enough to live inside a program.
//!
//! - [`Runtime`] is a control plane: a store, the API server and what belongs to it, started and stopped as one.
//! - [`runtime`] has what controllers are written with: Manager, Controller, Client, cache, queue. It works on a [`Runtime`]
//!   and on any other cluster.
//! - [`manifests`] brings objects and custom resource definitions to a server.
//!
//! This crate puts the others together and has no behaviour of its own beyond that. The program `k1s` is `k1s-cli`.
//!
//! ```
//! use k1s::{
//!     Runtime,
//!     k8s_openapi::api::core::v1::ConfigMap,
//!     runtime::{Action, Context, Controller, IdleOptions, Manager, ManagerOptions, Request, kind},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), k1s::runtime::BoxError> {
//! let runtime = Runtime::builder().memory().start().await?;
//! runtime.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: hello}}").await?;
//!
//! let manager = Manager::new(&runtime, ManagerOptions::local())?;
//! let client = manager.client();
//! Controller::managed_by(&manager).for_(kind::<ConfigMap>()).complete(move |key: Request, _: Context| {
//!     let client = client.clone();
//!     async move {
//!         if let Some(object) = client.get_opt::<ConfigMap>(&key).await? {
//!             println!("{key} is at version {:?}", object.metadata.resource_version);
//!         }
//!         Ok::<_, k1s::runtime::client::Error>(Action::done())
//!     }
//! })?;
//! let report = manager.run_until_idle(IdleOptions::default()).await?;
//! assert!(report.reconciles() > 0);
//! runtime.stop().await?;
//! # Ok(())
//! # }
//! ```

pub use k1s_controllers as controllers;
pub use k1s_env as env;
pub use k1s_runtime as runtime;
pub use k1s_server as server;
pub use k1s_store as store;
pub use k1s_store_disk as store_disk;
pub use k1s_store_etcd as store_etcd;

// What the API of this crate is made of, in the versions that fit. A program that uses these needs no others of its own;
// docs/controllers.md shows how a kind is derived then.
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

mod control_plane;
mod election;
mod embedded;
pub mod manifests;

pub use control_plane::{ControlPlane, ControlPlaneError, ControlPlaneOptions};
pub use election::Election;
pub use embedded::{Runtime, RuntimeBuilder, StartError, StopError, write_kubeconfig};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/controllers.md")]
mod guide {}

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
