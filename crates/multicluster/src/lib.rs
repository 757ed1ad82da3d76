//! Controllers over many clusters that come and go.
//!
//! - [`MultiClusterManager`] does everything that a [`Manager`](k1s_runtime::Manager) does, and works with clusters that are engaged and
//!   disengaged while it runs.
//! - [`Controller::managed_by`] builds a controller over them. A reconciler that was written for one cluster runs unchanged, and
//!   finds its cluster in [`Context::cluster`](k1s_runtime::Context::cluster); one that knows of clusters gets [`MultiRequest`]s.
//! - A [`Provider`] finds clusters; [`providers`] has those for tenants, projects, kubeconfigs and namespaces.
//!
//! ```
//! use std::sync::Arc;
//!
//! use k1s::{Action, BoxError, Context, IdleOptions, ManagerOptions, Request, Runtime, kind};
//! use k1s::k8s_openapi::api::core::v1::ConfigMap;
//! use k1s_multicluster::{Controller, MultiClusterManager, MultiClusterOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let runtime = Runtime::builder().start().await?;
//! runtime.server().create_tenant("team-a").await?;
//! runtime.server().create_tenant("team-b").await?;
//!
//! let manager = MultiClusterManager::new(&runtime, ManagerOptions::local(), MultiClusterOptions::new())?;
//! manager.add_provider(Arc::new(runtime.tenants_provider()));
//! Controller::managed_by(&manager).for_(kind::<ConfigMap>()).complete(
//!     async |request: Request, context: Context| {
//!         let cluster = context.cluster();
//!         if cluster.client().get_opt::<ConfigMap>(&request).await?.is_some() {
//!             println!("{request} in {}", cluster.name());
//!         }
//!         Ok::<_, BoxError>(Action::done())
//!     },
//! )?;
//! let report = manager.run_until_idle(IdleOptions::default()).await?;
//! assert!(report.controllers["configmap"].reconciles >= 2);
//! # runtime.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! | Go's multicluster-runtime | here |
//! |---|---|
//! | `mcmanager.Manager` | [`MultiClusterManager`] |
//! | `mcbuilder.ControllerManagedBy` | [`Controller::managed_by`] |
//! | `mcreconcile.Request` | [`MultiRequest`] |
//! | `mcreconcile.Func`, a multi-cluster-aware reconciler | [`Builder::complete_multi`] |
//! | `multicluster.Provider`, `multicluster.Aware` | [`Provider`], [`Engager`] |
//! | `mgr.GetCluster` | [`MultiClusterManager::get_cluster`] |
//! | `ClusterFromContext` | [`Context::cluster`](k1s_runtime::Context::cluster) |
//! | `WithEngageWithLocalCluster`, `WithEngageWithProviderClusters` | [`Builder::engage_with_local`], [`Builder::engage_with_providers`] |

mod builder;
mod engagement;
mod fleet;
mod index;
mod manager;
mod metrics;
mod options;
mod provider;
pub mod providers;
mod reconciler;
mod request;
mod state;

pub use builder::{AfterFor, BeforeFor, Builder, Controller};
#[doc(no_inline)]
pub use k1s_runtime::{Cluster, ClusterName, ClusterOptions};
pub use manager::MultiClusterManager;
pub use options::{ClusterLabel, MultiClusterOptions};
pub use provider::{Engager, Provider, ProviderError, Stuck};
pub use request::MultiRequest;
pub use state::{ClusterState, ClusterStatus};
