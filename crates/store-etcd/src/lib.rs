//! The store of a control plane that has several replicas: [`k1s_store::Store`] on an etcd cluster.
//!
//! - Everything is kept under a root (`/k1s` by default): the users' keys at `{root}/kv/`, and two keys of the store's own beside
//!   them. Other keys of that etcd are neither read nor written. A [`Revision`](k1s_store::Revision) is etcd's revision; it
//!   has gaps where other clients write.
//! - Reads are linearizable and are repeated, elsewhere if possible, when a connection breaks. A write is
//!   repeated only if it certainly was not carried out; if that is not known, it fails with
//!   [`Outcome::Unknown`](k1s_store::Outcome::Unknown).
//! - One upstream watch feeds all watches of the process. It is always drained, so a local watch that is not read costs
//!   etcd nothing; it is resumed without gap or repetition when its connection breaks. A watch that lags reads
//!   etcd's history. Previous values cost etcd more than the writes: they are requested only while a watch that asks for them
//!   is open, and for ten seconds after.
//! - Members that fail are passed over, and the store recovers when etcd is back after an outage.
//!   An etcd whose revision went back (it was restored from a backup) is not trusted: every request
//!   and watch fails with [`Error::Corrupt`](k1s_store::Error::Corrupt) until the store is opened again.
//! - History older than [`EtcdOptions::compaction`] is compacted, by one of the replicas.
//!
//! etcd 3.4 or later is needed. etcd's users and passwords are not supported; client certificates are.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use k1s_env::Env;
//! use k1s_store::{Range, Store};
//! use k1s_store_etcd::{EtcdOptions, EtcdStore};
//!
//! let store = EtcdStore::connect(Env::system(), EtcdOptions::new(["http://127.0.0.1:2379"])).await?;
//! store.create("/pods/web".into(), "pending".into()).await?;
//! assert_eq!(store.range(Range::prefix("/pods/")).await?.entries.len(), 1);
//! store.close().await?;
//! # Ok(())
//! # }
//! ```

mod backoff;
mod client;
mod compactor;
mod connections;
mod events;
mod failure;
mod history;
mod keys;
mod landmark;
mod marks;
mod options;
mod previous;
mod proto;
mod range;
mod shared;
mod source;
mod store;
mod sync;
#[cfg(feature = "testing")]
pub mod testing;
mod txn;
mod upstream;

pub use options::{ConnectError, EtcdOptions, TlsIdentity, TlsOptions};
pub use store::EtcdStore;
