//! A revisioned, watchable byte store: the storage layer of k1s.
//!
//! - [`Store`] is the trait: reads at a revision, transactions with preconditions, watches, compaction.
//! - [`MemoryStore`] keeps everything in memory. `k1s-store-disk` and `k1s-store-etcd` are the other backends.
//! - [`feed`] is the fan-out of changes to watches, for backends.
//! - The crate `k1s-store-conformance` is the suite that every backend passes, a third party's too.
//!
//! The store knows nothing of objects: it never looks into a value, and a key is only compared and
//! matched by prefix. Many tenants share one store by prefixing their keys.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> k1s_store::Result<()> {
//! use k1s_store::{MemoryStore, Range, Store, WatchItem, WatchRequest};
//!
//! let store = MemoryStore::default();
//! let created = store.create("/pods/web".into(), "pending".into()).await?;
//! let mut watch = store.watch(WatchRequest::prefix("/pods/").after(created).previous(true)).await?;
//!
//! store.update("/pods/web".into(), "running".into(), created).await?;
//!
//! let Some(Ok(WatchItem::Change(change))) = watch.next().await else { panic!("the watch ended") };
//! assert_eq!(change.events()[0].value.as_deref(), Some(&b"running"[..]));
//! assert_eq!(store.range(Range::prefix("/pods/").at(created)).await?.entries[0].value, "pending");
//! # Ok(())
//! # }
//! ```

mod error;
pub mod feed;
pub mod limits;
mod memory;
mod store;
mod txn;
mod types;
mod unreadable;
mod watch;

pub use error::{Conflict, Error, Outcome, Result};
pub use memory::{MemoryOptions, MemoryStore};
pub use store::Store;
pub use txn::{Action, Op, Precondition, Txn};
pub use types::{GetResult, KeyValue, Range, RangeResult, Revision, Stats, prefix_end, read_revision};
pub use unreadable::{unreadable, why_unreadable};
pub use watch::{Change, Event, EventKind, Previous, RequestProgress, Watch, WatchItem, WatchRequest};
