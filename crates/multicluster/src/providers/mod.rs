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

pub use connect::{Connection, Connector, at_path, connector};
pub use files::KubeconfigFiles;
pub use multi::{MultiProvider, SEPARATOR};
pub use namespaces::Namespaces;
pub use projects::{Discovery, PROJECT_ADDRESS, ProjectsProvider};
pub use secrets::{KUBECONFIG_KEY, KUBECONFIG_LABEL, KubeconfigSecrets};
pub use sharded::ShardedProvider;
pub use static_::StaticProvider;
pub use tenants::TenantsProvider;
