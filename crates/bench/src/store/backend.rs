//! The stores that are measured.

use std::{collections::HashMap, path::Path, sync::Arc};

use bytes::Bytes;
use clap::ValueEnum;
use k1s_env::Env;
use k1s_store::{MemoryOptions, MemoryStore, Precondition, Store, Txn};
use k1s_store_disk::{DiskOptions, DiskStore};
use k1s_store_etcd::{
    EtcdStore,
    testing::{EtcdServer, RawClient, ServerOptions},
};
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::{Failure, report::quantile};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    Memory,
    Disk,
    Etcd,
}

impl Backend {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Etcd => "etcd",
        }
    }
}

impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A number of objects as it appears in the names of measurements.
pub(crate) fn short(number: u64) -> String {
    match number {
        millions if millions % 1_000_000 == 0 => format!("{}m", millions / 1_000_000),
        thousands if thousands % 1000 == 0 => format!("{}k", thousands / 1000),
        other => other.to_string(),
    }
}

/// An open store, with the etcd or folder behind it.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    place: Place,
}

/// A hash map under a lock.
#[derive(Clone, Default)]
pub(crate) struct Map(Arc<Mutex<HashMap<Bytes, Bytes>>>);

/// A target of writes.
#[derive(Clone)]
pub(crate) enum Writer {
    Store(Arc<dyn Store>),
    Etcd(RawClient),
    Map(Map),
}

impl Writer {
    pub(crate) async fn put(&self, key: String, value: Bytes) -> k1s_store::Result<()> {
        match self {
            Self::Store(store) => store.txn(Txn::new().put(key, value, Precondition::Any)).await.map(drop),
            // The key that a store on etcd would use, with default options.
            Self::Etcd(client) => client.put(format!("/k1s/kv/{key}"), value).await.map(drop),
            Self::Map(Map(map)) => {
                // Yields as the memory store does, which never waits either.
                tokio::task::coop::consume_budget().await;
                let replaced = map.lock().insert(key.into(), value);
                drop(replaced);
                Ok(())
            }
        }
    }

    /// Writes all `objects`, in one transaction if possible.
    pub(crate) async fn fill(&self, objects: Vec<(String, Bytes)>) -> k1s_store::Result<()> {
        if let Self::Store(store) = self {
            let put = |txn: Txn, (key, value)| txn.put(key, value, Precondition::Any);
            return store.txn(objects.into_iter().fold(Txn::new(), put)).await.map(drop);
        }
        for (key, value) in objects {
            self.put(key, value).await?;
        }
        Ok(())
    }
}

enum Place {
    Memory,
    Disk(TempDir),
    Etcd(Box<EtcdServer>),
}

impl Opened {
    pub(crate) async fn open(env: &Env, backend: Backend) -> Result<Self, Failure> {
        match backend {
            Backend::Memory => {
                let store = MemoryStore::new(env.clone(), MemoryOptions::default());
                Ok(Self { store: Arc::new(store), place: Place::Memory })
            }
            Backend::Disk => {
                let folder = TempDir::with_prefix("k1s-disk-")?;
                let store = open_disk(env, folder.path())?;
                Ok(Self { store, place: Place::Disk(folder) })
            }
            Backend::Etcd => {
                // Room for a million objects, and no snapshots more often than by default.
                let args = vec![format!("--quota-backend-bytes={}", 8u64 << 30)];
                let options = ServerOptions { args, ..ServerOptions::default() };
                let server = EtcdServer::start_with(env, options)
                    .await?
                    .ok_or_else(|| Failure("there is no etcd on the PATH".to_owned()))?;
                let store = EtcdStore::connect(env.clone(), server.options()).await?;
                Ok(Self { store: Arc::new(store), place: Place::Etcd(Box::new(server)) })
            }
        }
    }

    /// Closes a store on etcd, and writes to that etcd without it. `None` for the other backends.
    pub(crate) async fn without_store(&self) -> Result<Option<Writer>, Failure> {
        let Place::Etcd(server) = &self.place else { return Ok(None) };
        self.store.close().await?;
        Ok(Some(Writer::Etcd(server.client()?)))
    }

    /// Memory of the process that holds the objects.
    pub(crate) fn resident_bytes(&self) -> Result<u64, Failure> {
        let process = match &self.place {
            Place::Memory | Place::Disk(_) => "self".to_owned(),
            Place::Etcd(server) => server.process().unwrap_or_default().to_string(),
        };
        let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kilobytes
            .map(|kilobytes| kilobytes << 10)
            .ok_or_else(|| Failure("no VmRSS for this process".to_owned()))
    }

    pub(crate) async fn disk_bytes(&self) -> Result<Option<u64>, Failure> {
        Ok(self.store.stats().await?.disk_bytes)
    }

    /// Closes the store and opens it again; the milliseconds that opening took, where it means something.
    pub(crate) async fn reopen(&mut self, env: &Env) -> Result<Option<f64>, Failure> {
        let Place::Disk(folder) = &self.place else { return Ok(None) };
        self.store.close().await?;
        let began = env.now();
        self.store = open_disk(env, folder.path())?;
        Ok(Some((env.now() - began).as_secs_f64() * 1e3))
    }
}

fn open_disk(env: &Env, folder: &Path) -> Result<Arc<dyn Store>, Failure> {
    Ok(Arc::new(DiskStore::open(env.clone(), folder, DiskOptions::default())?))
}

/// The milliseconds it takes to open a disk store of a hundred objects: the median of some.
pub(crate) async fn open_small(env: &Env) -> Result<f64, Failure> {
    let folder = TempDir::with_prefix("k1s-disk-")?;
    let store = open_disk(env, folder.path())?;
    super::work::fill(env, &Writer::Store(store.clone()), 100).await?;
    store.close().await?;
    let mut times = Vec::new();
    for _ in 0..11 {
        let began = env.now();
        let store = open_disk(env, folder.path())?;
        times.push((env.now() - began).as_secs_f64() * 1e3);
        store.close().await?;
    }
    Ok(quantile(&mut times, 0.5))
}
