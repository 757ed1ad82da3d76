//! The choice of a runtime's store.

use std::{fmt, path::PathBuf, sync::Arc};

use k1s_env::Env;
use k1s_store::{MemoryOptions, MemoryStore, Store};
use k1s_store_disk::{DiskOptions, DiskStore};
use k1s_store_etcd::{EtcdOptions, EtcdStore};

use super::{StartError, identity::Keep};

/// A store, with its options.
pub(super) enum StoreChoice {
    Memory(MemoryOptions),
    Disk(PathBuf, DiskOptions),
    Etcd(EtcdOptions),
    Given(Arc<dyn Store>),
}

impl StoreChoice {
    /// Where a runtime on this store keeps its identity by default.
    pub(super) fn keep(&self) -> Keep {
        match self {
            StoreChoice::Memory(_) => Keep::Nowhere,
            StoreChoice::Disk(folder, _) => Keep::Folder(folder.join("pki")),
            StoreChoice::Etcd(_) | StoreChoice::Given(_) => Keep::Store,
        }
    }

    pub(super) async fn open(self, env: &Env) -> Result<Arc<dyn Store>, StartError> {
        match self {
            StoreChoice::Memory(options) => Ok(Arc::new(MemoryStore::new(env.clone(), options))),
            StoreChoice::Disk(folder, options) => {
                let owner = env.clone();
                let open = move || {
                    DiskStore::open(owner, &folder, options).map_err(|error| StartError::disk(&folder, error))
                };
                Ok(Arc::new(env.spawn_blocking("opening the store", open).await??))
            }
            StoreChoice::Etcd(_) if env.is_simulated() => Err(StartError::Simulated { what: "etcd" }),
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
            StoreChoice::Disk(folder, _) => write!(f, "disk {}", folder.display()),
            StoreChoice::Etcd(options) => write!(f, "etcd {}", options.endpoints.join(", ")),
            StoreChoice::Given(_) => f.write_str("given"),
        }
    }
}
