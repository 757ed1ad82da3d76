//! The embedded, durable backend of [`k1s_store`]: a folder on disk.
//!
//! - A write is acknowledged when it is synced, and visible only then; writes that wait together share a sync.
//! - One process at a time. A second one is told who has the store.
//! - What is damaged is refused or reported with the place, and left as it is. What is acknowledged is never
//!   dropped in silence.
//! - A full or failing disk makes writes fail and leaves reads working; when there is room again, so do writes. On a full disk,
//!   what deletes goes through all the same: some room is kept for it.
//!
//! It may not know what keys and values mean, and it starts nothing but its one writing thread, and one that gives back room
//! now and then.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use k1s_env::Env;
//! use k1s_store::Store;
//! use k1s_store_disk::{DiskOptions, DiskStore};
//!
//! # let folder = tempfile::tempdir()?;
//! let store = DiskStore::open(Env::system(), folder.path(), DiskOptions::default())?;
//! let created = store.create("/pods/web".into(), "pending".into()).await?;
//! store.close().await?;
//!
//! let store = DiskStore::open(Env::system(), folder.path(), DiskOptions::default())?;
//! assert_eq!(store.get(b"/pods/web", None).await?.entry.map(|entry| entry.revision), Some(created));
//! # Ok(())
//! # }
//! ```
//!
//! `docs/disk-format.md` describes what is in the folder.

mod backup;
mod batch;
mod check;
mod checkpoint;
mod error;
mod files;
mod folder;
mod heads;
mod history;
mod keys;
mod lock;
mod log;
mod opened;
mod options;
mod record;
mod repair;
mod reserve;
mod salvage;
mod shared;
mod store;
mod view;
mod writer;

/// A simulated disk, for tests.
#[cfg(any(test, feature = "testing"))]
pub mod testing {
    pub use crate::files::sim::{Fault, Loss, Rates, SimDisk};
}

pub use check::Report;
pub use error::OpenError;
pub use options::DiskOptions;
pub use repair::{FolderReport, Repaired, check_folder, repair_folder};
pub use salvage::{Fate, Lost, Progress};
pub use store::DiskStore;
