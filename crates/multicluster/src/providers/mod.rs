//! Providers: where clusters come from.

mod connect;
mod files;
mod known;
mod kubeconfig;
mod multi;
mod namespaces;
mod objects;
mod projects;
mod secrets;
mod sharded;
mod static_;
mod tenants;

use k1s_env::Env;

pub use connect::{Connection, Connector, at_path, connector};
pub use files::KubeconfigFiles;
pub use multi::{MultiProvider, SEPARATOR};
pub use namespaces::Namespaces;
pub use projects::{Discovery, PROJECT_ADDRESS, ProjectsProvider};
pub use secrets::{KUBECONFIG_KEY, KUBECONFIG_LABEL, KubeconfigSecrets};
pub use sharded::ShardedProvider;
pub use static_::StaticProvider;
pub use tenants::TenantsProvider;

use crate::Engager;

/// Time and tasks of the manager that clusters are for.
fn env_of(engager: &dyn Engager) -> Env {
    engager.cluster_options().env.unwrap_or_else(Env::system)
}
