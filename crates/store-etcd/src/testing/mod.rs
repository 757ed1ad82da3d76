//! Real etcd servers, for tests and benchmarks (feature `testing`).
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use k1s_env::Env;
//! use k1s_store_etcd::{EtcdStore, testing::EtcdServer};
//!
//! let env = Env::system();
//! let Some(server) = EtcdServer::start(&env).await? else { return Ok(()) };
//! let store = EtcdStore::connect(env, server.options()).await?;
//! # Ok(())
//! # }
//! ```

mod raw;
mod server;

pub use raw::RawClient;
pub use server::{EtcdServer, ServerOptions, StartError};
