//! The two trees of a store, on fjall.

use std::{
    fs::{self, OpenOptions},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use bytes::Bytes;
use fjall::{
    AbstractTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable,
    Snapshot,
    config::{BlockSizePolicy, CompressionPolicy, FilterPolicy, PinningPolicy},
};
use k1s_store::{Error, Result, Revision};

use crate::{
    error::{OpenError, engine_error, io_error, panic_text},
    options::DiskOptions,
    record::{COMPACTED, Head, Pointer, Record, SWEPT, Totals, head_key},
};

/// The names of the trees, in the order they are made in. The engine numbers them from 1; 0 is its own.
const TREES: [&str; 2] = ["data", "heads"];

/// Where a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// The newest revision.
    pub(crate) revision: Revision,
    /// The oldest revision that can be read and watched from.
    pub(crate) oldest: Revision,
    /// Records that `oldest` made superfluous have been removed up to this revision.
    pub(crate) swept: Revision,
    pub(crate) totals: Totals,
}

impl State {
    pub(crate) const NEW: Self = Self {
        revision: Revision::FIRST,
        oldest: Revision::FIRST,
        swept: Revision::FIRST,
        totals: Totals { keys: 0, bytes: 0 },
    };
}

/// The open engine.
#[derive(Clone)]
pub(crate) struct Engine {
    path: Arc<Path>,
    db: Database,
    pub(crate) data: Keyspace,
    pub(crate) heads: Keyspace,
}

impl Engine {
    /// Makes an empty engine in a folder that does not exist.
    pub(crate) fn create(path: &Path, options: &DiskOptions) -> Result<Self, OpenError> {
        Self::open_or_create(path, options)
    }

    /// Opens an engine that is there.
    pub(crate) fn open(path: &Path, options: &DiskOptions) -> Result<Self, OpenError> {
        // The engine makes anew what it does not find, and drops a tree it finds incomplete.
        let trees =
            (0..=TREES.len()).map(|number| path.join("keyspaces").join(number.to_string()).join("current"));
        for needed in trees.chain([path.join("version")]) {
            if !needed.exists() {
                return Err(OpenError::damaged(&needed, "the file is missing"));
            }
        }
        // Empty, and of no account here: the folder has a lock of its own. The engine wants it to be there.
        let lock = path.join("lock");
        OpenOptions::new().create(true).append(true).open(&lock).map_err(OpenError::io(&lock))?;
        Self::open_or_create(path, options)
    }

    fn open_or_create(path: &Path, options: &DiskOptions) -> Result<Self, OpenError> {
        let open = || -> fjall::Result<Self> {
            let db = Database::builder(path)
                .cache_size(options.cache_bytes)
                // Records must stand in the journal as they are: see `journal`.
                .journal_compression(CompressionType::None)
                // The least there is: what is in the journal is replayed when the store is opened.
                .max_journaling_size(64 << 20)
                // Of two, one would do nothing but wait for the other, and that without a pause.
                .worker_threads(1)
                .open()?;
            let [data, heads] = TREES;
            // The cache is small. What every read goes through is small too and stays in memory, but in the lowest
            // levels, where it is cut into pieces that are read like blocks.
            let pinned = || PinningPolicy::new([true, true, true, false]);
            let data = db.keyspace(data, || {
                KeyspaceCreateOptions::default()
                    .max_memtable_size(options.memtable_bytes)
                    .data_block_size_policy(BlockSizePolicy::all(8 << 10))
                    .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
                    .index_block_pinning_policy(pinned())
                    .filter_block_pinning_policy(pinned())
                    // Records are only asked for where they are.
                    .expect_point_read_hits(true)
            })?;
            let heads = db.keyspace(heads, || {
                KeyspaceCreateOptions::default()
                    .max_memtable_size(options.memtable_bytes / 2)
                    .data_block_compression_policy(CompressionPolicy::disabled())
                    .index_block_pinning_policy(pinned())
                    .filter_block_pinning_policy(pinned())
                    .filter_policy(FilterPolicy::all(fjall::config::FilterPolicyEntry::Bloom(
                        fjall::config::BloomConstructionPolicy::BitsPerKey(10.0),
                    )))
            })?;
            Ok(Self { path: path.into(), db, data, heads })
        };
        match catch_unwind(AssertUnwindSafe(open)) {
            Ok(opened) => opened.map_err(|error| OpenError::from_engine(path, error)),
            Err(panic) => Err(OpenError::damaged(
                path,
                format!("the disk engine could not make sense of it: {}", panic_text(&*panic)),
            )),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.db.snapshot()
    }

    pub(crate) fn batch(&self, capacity: usize) -> fjall::OwnedWriteBatch {
        fjall::OwnedWriteBatch::with_capacity(self.db.clone(), capacity)
    }

    /// Makes everything durable.
    pub(crate) fn sync(&self) -> Result<()> {
        self.db.persist(PersistMode::SyncAll).map_err(|error| engine_error(&error))
    }

    /// Fails if the engine has stopped taking writes after an error.
    pub(crate) fn working(&self) -> Result<()> {
        self.db.persist(PersistMode::Buffer).map_err(|error| engine_error(&error))
    }

    /// Whether the engine is so far behind with its own work that it would block a write, perhaps for
    /// ever: it does not look whether those who do that work are still alive.
    pub(crate) fn behind(&self) -> bool {
        [&self.data, &self.heads]
            .iter()
            .any(|tree| tree.tree.sealed_memtable_count() >= 3 || tree.tree.l0_run_count() >= 19)
    }

    /// Bytes that the engine's files take up on disk. Parts of the journal that were never written do not count.
    pub(crate) fn disk_bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        let mut folders = vec![self.path.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).map_err(|error| io_error(&error))? {
                let entry = entry.map_err(|error| io_error(&error))?;
                match entry.metadata() {
                    Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                    Ok(metadata) => bytes += allocated(&metadata),
                    // The engine removes files while we look.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(io_error(&error)),
                }
            }
        }
        Ok(bytes)
    }

    /// Where the store is, by what the newest record says.
    pub(crate) fn state(&self, snapshot: &Snapshot) -> Result<State> {
        let mark = |name: &[u8]| match self.get(snapshot, &self.heads, name)? {
            None => Ok(Revision::FIRST),
            Some(bytes) => <[u8; 8]>::try_from(&bytes[..])
                .map(|number| Revision::new(u64::from_be_bytes(number)))
                .map_err(|_| {
                    Error::corrupt(format!("the mark {} has the wrong length", name.escape_ascii()))
                }),
        };
        let (oldest, swept) = (mark(COMPACTED)?, mark(SWEPT)?);
        let Some(newest) = snapshot.last_key_value(&self.data) else {
            return Ok(State { oldest, swept, ..State::NEW });
        };
        let (pointer, bytes) = newest.into_inner().map_err(|error| engine_error(&error))?;
        let (pointer, record) = decode(&pointer, &bytes.into())?;
        Ok(State { revision: pointer.revision, oldest, swept, totals: record.totals })
    }

    pub(crate) fn get(&self, snapshot: &Snapshot, tree: &Keyspace, key: &[u8]) -> Result<Option<Bytes>> {
        let bytes = snapshot.get(tree, key).map_err(|error| engine_error(&error))?;
        Ok(bytes.map(Into::into))
    }

    /// The newest record of a key, if it has any.
    pub(crate) fn head(&self, snapshot: &Snapshot, key: &[u8]) -> Result<Option<Head>> {
        match self.get(snapshot, &self.heads, &head_key(key))? {
            None => Ok(None),
            Some(bytes) => decode_head(key, &bytes).map(Some),
        }
    }

    /// The record at `pointer`, if it is there.
    pub(crate) fn record(&self, snapshot: &Snapshot, pointer: Pointer) -> Result<Option<Record>> {
        match self.get(snapshot, &self.data, &pointer.encode())? {
            None => Ok(None),
            Some(bytes) => decode(&pointer.encode(), &bytes).map(|(_, record)| Some(record)),
        }
    }
}

#[cfg(unix)]
fn allocated(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(metadata) * 512
}

#[cfg(not(unix))]
fn allocated(metadata: &fs::Metadata) -> u64 {
    metadata.len()
}

/// A stored record, or what is wrong with it.
pub(crate) fn decode(pointer: &[u8], bytes: &Bytes) -> Result<(Pointer, Record)> {
    let Some(pointer) = Pointer::decode(pointer) else {
        return Err(Error::corrupt(format!("a record has the key \"{}\"", pointer.escape_ascii())));
    };
    match Record::decode(pointer, bytes) {
        Some(record) => Ok((pointer, record)),
        None => Err(Error::corrupt(format!(
            "record {} of revision {} does not match its checksum",
            pointer.index, pointer.revision
        ))),
    }
}

/// A stored head, or what is wrong with it.
pub(crate) fn decode_head(key: &[u8], bytes: &[u8]) -> Result<Head> {
    Head::decode(bytes)
        .ok_or_else(|| Error::corrupt(format!("the head of key \"{}\" is malformed", key.escape_ascii())))
}
