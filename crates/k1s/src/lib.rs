//! k1s: a Kubernetes-compatible control plane small enough to live inside a program.
//!
//! The binary `k1s` serves it to the network: `k1s serve --help`. Programs that embed it use [`ApiServer`].
//!
//! [`ApiServer`]: k1s_server::ApiServer

pub use k1s_env as env;
pub use k1s_server as server;
pub use k1s_store as store;

pub mod serve;
