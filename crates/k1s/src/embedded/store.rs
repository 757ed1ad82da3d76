//! The choice of a runtime's store.

#[cfg(feature = "disk")]
use std::path::PathBuf;
use std::{fmt, sync::Arc};

use k1s_env::Env;
use k1s_store::{MemoryOptions, MemoryStore, Store};
#[cfg(feature = "disk")]
use k1s_store_disk::{DiskOptions, DiskStore};
#[cfg(feature = "etcd")]
use k1s_store_etcd::{EtcdOptions, EtcdStore};

use super::StartError;
#[cfg(feature = "server-tls")]
use super::listen::Keep;

/// A store, with its options.
pub(super) enum StoreChoice {
    Memory(MemoryOptions),
    #[cfg(feature = "disk")]
    Disk(PathBuf, DiskOptions),
    #[cfg(feature = "etcd")]
    Etcd(EtcdOptions),
    Given(Arc<dyn Store>),
}

impl StoreChoice {
    /// Where a runtime on this store keeps its identity by default.
    #[cfg(feature = "server-tls")]
    pub(super) fn keep(&self) -> Keep {
        match self {
            StoreChoice::Memory(_) => Keep::Nowhere,
            #[cfg(feature = "disk")]
            StoreChoice::Disk(folder, _) => Keep::Folder(folder.join("pki")),
            #[cfg(feature = "etcd")]
            StoreChoice::Etcd(_) => Keep::Store,
            StoreChoice::Given(_) => Keep::Store,
        }
    }

    /// The data folder, if it is one.
    #[cfg(any(feature = "encryption", feature = "server-tls"))]
    pub(super) fn folder(&self) -> Option<&std::path::Path> {
        match self {
            #[cfg(feature = "disk")]
            StoreChoice::Disk(folder, _) => Some(folder),
            _ => None,
        }
    }

    pub(super) async fn open(self, env: &Env) -> Result<Arc<dyn Store>, StartError> {
        match self {
            StoreChoice::Memory(options) => Ok(Arc::new(MemoryStore::new(env.clone(), options))),
            #[cfg(feature = "disk")]
            StoreChoice::Disk(folder, options) => {
                let owner = env.clone();
                let open = move || {
                    DiskStore::open(owner, &folder, options).map_err(|error| StartError::disk(&folder, error))
                };
                Ok(Arc::new(env.spawn_blocking("opening the store", open).await??))
            }
            #[cfg(feature = "etcd")]
            StoreChoice::Etcd(_) if env.is_simulated() => Err(StartError::Simulated { what: "etcd" }),
            #[cfg(feature = "etcd")]
            StoreChoice::Etcd(options) => {
                let endpoints = options.endpoints.join(", ");
                let connected = EtcdStore::connect(env.clone(), options).await;
                Ok(Arc::new(connected.map_err(|error| StartError::Etcd { endpoints, error })?))
            }
            StoreChoice::Given(store) => Ok(store),
        }
    }
}

impl fmt::Debug for StoreChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreChoice::Memory(_) => f.write_str("memory"),
            #[cfg(feature = "disk")]
            StoreChoice::Disk(folder, _) => write!(f, "disk {}", folder.display()),
            #[cfg(feature = "etcd")]
            StoreChoice::Etcd(options) => write!(f, "etcd {}", options.endpoints.join(", ")),
            StoreChoice::Given(_) => f.write_str("given"),
        }
    }
}
