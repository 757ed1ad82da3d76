//! The embedded, durable backend of [`k1s_store`]: a folder on disk.
//!
//! - A write is acknowledged, and becomes visible, only after it has been synced. Concurrent writes share a
//!   sync (group commit).
//! - One process at a time. A second process gets an error that names the holder.
//! - Damage is refused or reported with its position, and nothing is changed. Acknowledged data is never
//!   dropped silently.
//! - On a full or failing disk, writes fail and reads keep working; writes resume when there is room again.
//!   Deletions succeed even on a full disk: some space is reserved for them.
//!
//! The store does not interpret keys and values. It starts one writer thread, and at times a second thread
//! that reclaims space.
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
//! The folder's contents are specified in `docs/disk-format.md`.

mod backup;
mod batch;
mod check;
mod checkpoint;
mod compact;
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
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod view;
mod writer;

pub use check::Report;
pub use compact::{Compacted, compact_folder};
pub use error::OpenError;
pub use options::DiskOptions;
pub use repair::{FolderReport, Repaired, check_folder, repair_folder};
pub use salvage::{Fate, Lost, Progress};
pub use store::DiskStore;
