//! The tree of heads, on fjall.

use std::{
    fs::{self, OpenOptions},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use bytes::Bytes;
use fjall::{
    AbstractTree, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode, Readable,
    Snapshot,
    config::{CompressionPolicy, FilterPolicy, PinningPolicy},
};
use k1s_store::{Error, Result, Revision};
use xxhash_rust::xxh3::xxh3_128;

use crate::{
    error::{OpenError, engine_error, panic_text},
    options::DiskOptions,
    record::{APPLIED, COMPACTED, Dead, Head, SWEPT, Totals, dead_key, head_key},
};

/// The name of the tree.
const HEADS: &str = "heads";

/// Where a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// The newest revision.
    pub(crate) revision: Revision,
    /// The oldest revision that can be read and watched from.
    pub(crate) oldest: Revision,
    /// Records that `oldest` made superfluous have been counted up to this revision.
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
    heads: Keyspace,
}

/// What the marks in the tree say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The heads of all records up to this revision are in the tree.
    pub(crate) applied: Revision,
    pub(crate) oldest: Revision,
    pub(crate) swept: Revision,
}

impl Engine {
    /// Makes an empty engine in a folder that does not exist.
    pub(crate) fn create(path: &Path, options: &DiskOptions) -> Result<Self, OpenError> {
        Self::open_or_create(path, options, false)
    }

    /// Opens an engine that is there.
    pub(crate) fn open(path: &Path, options: &DiskOptions) -> Result<Self, OpenError> {
        // The engine makes anew what it does not find, and drops a tree it finds incomplete.
        let version = path.join("version");
        if !version.exists() {
            return Err(OpenError::damaged(&version, "the file is missing"));
        }
        check_lists(&path.join("keyspaces"))?;
        // Empty, and of no account here: the folder has a lock of its own. The engine wants it to be there.
        let lock = path.join("lock");
        OpenOptions::new().create(true).append(true).open(&lock).map_err(OpenError::io(&lock))?;
        Self::open_or_create(path, options, true)
    }

    fn open_or_create(path: &Path, options: &DiskOptions, is_there: bool) -> Result<Self, OpenError> {
        let open = || -> fjall::Result<Option<Self>> {
            let db = database(path, options.cache_bytes).open()?;
            if is_there && !db.keyspace_exists(HEADS) {
                return Ok(None);
            }
            // The cache is small. What every read goes through is small too and stays in memory, but in the lowest
            // levels, where it is cut into pieces that are read like blocks.
            let pinned = || PinningPolicy::new([true, true, true, false]);
            let heads = db.keyspace(HEADS, || {
                KeyspaceCreateOptions::default()
                    .max_memtable_size(options.memtable_bytes)
                    .data_block_compression_policy(CompressionPolicy::disabled())
                    .index_block_pinning_policy(pinned())
                    .filter_block_pinning_policy(pinned())
                    .filter_policy(FilterPolicy::all(fjall::config::FilterPolicyEntry::Bloom(
                        fjall::config::BloomConstructionPolicy::BitsPerKey(10.0),
                    )))
            })?;
            // Format 1 had the records here. They are in the log now.
            if db.keyspace_exists("data") {
                db.delete_keyspace(db.keyspace("data", KeyspaceCreateOptions::default)?)?;
            }
            Ok(Some(Self { path: path.into(), db, heads }))
        };
        let open = || open().map_err(|error| OpenError::from_engine(path, error));
        match catch_unwind(AssertUnwindSafe(open)) {
            Ok(opened) => {
                opened?.ok_or_else(|| OpenError::damaged(path, "its tree is missing or incomplete"))
            }
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

    pub(crate) fn batch(&self, capacity: usize) -> OwnedWriteBatch {
        OwnedWriteBatch::with_capacity(self.db.clone(), capacity)
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
        self.heads.tree.sealed_memtable_count() >= 3 || self.heads.tree.l0_run_count() >= 19
    }

    pub(crate) fn marks(&self, snapshot: &Snapshot) -> Result<Marks> {
        let mark = |name: &[u8]| match self.get(snapshot, name)? {
            None => Ok(Revision::FIRST),
            Some(bytes) => <[u8; 8]>::try_from(&bytes[..])
                .map(|number| Revision::new(u64::from_be_bytes(number)))
                .map_err(|_| {
                    Error::corrupt(format!("the mark {} has the wrong length", name.escape_ascii()))
                }),
        };
        Ok(Marks { applied: mark(APPLIED)?, oldest: mark(COMPACTED)?, swept: mark(SWEPT)? })
    }

    fn get(&self, snapshot: &Snapshot, key: &[u8]) -> Result<Option<Bytes>> {
        let bytes = snapshot.get(&self.heads, key).map_err(|error| engine_error(&error))?;
        Ok(bytes.map(Into::into))
    }

    /// The newest record of a key, if it has any.
    pub(crate) fn head(&self, snapshot: &Snapshot, key: &[u8]) -> Result<Option<Head>> {
        match self.get(snapshot, &head_key(key))? {
            None => Ok(None),
            Some(bytes) => decode_head(key, &bytes).map(Some),
        }
    }

    /// The heads of the keys from `first` on, in order.
    pub(crate) fn heads(
        &self,
        snapshot: &Snapshot,
        first: &[u8],
    ) -> impl Iterator<Item = Result<(Bytes, Head)>> + use<> {
        snapshot.range(&self.heads, &head_key(first)[..]..&b"l"[..]).map(|stored| {
            let (key, bytes) = stored.into_inner().map_err(|error| engine_error(&error))?;
            let key = Bytes::from(key).slice(1..);
            let head = decode_head(&key, &bytes)?;
            Ok((key, head))
        })
    }

    /// How many records of each segment of the log nobody can read any more, and how many it had then.
    pub(crate) fn dead(&self, snapshot: &Snapshot) -> Result<Vec<(u64, Dead)>> {
        let counts = snapshot.prefix(&self.heads, b"s").map(|stored| {
            let (key, bytes) = stored.into_inner().map_err(|error| engine_error(&error))?;
            match (<[u8; 8]>::try_from(&key[1..]), Dead::decode(&bytes)) {
                (Ok(segment), Some(dead)) => Ok((u64::from_be_bytes(segment), dead)),
                _ => Err(Error::corrupt("the number of dead records of a segment is malformed")),
            }
        });
        counts.collect()
    }

    pub(crate) fn put_head(&self, writes: &mut OwnedWriteBatch, key: &[u8], head: Head) {
        writes.insert(&self.heads, head_key(key), head.encode());
    }

    pub(crate) fn remove_head(&self, writes: &mut OwnedWriteBatch, key: &[u8]) {
        writes.remove(&self.heads, head_key(key));
    }

    pub(crate) fn put_mark(&self, writes: &mut OwnedWriteBatch, name: &[u8], revision: Revision) {
        writes.insert(&self.heads, name, revision.get().to_be_bytes());
    }

    /// Notes how many records of a segment are dead; `None` if there is no such segment any more.
    pub(crate) fn put_dead(&self, writes: &mut OwnedWriteBatch, segment: u64, dead: Option<Dead>) {
        match dead {
            Some(dead) => writes.insert(&self.heads, dead_key(segment), dead.encode()),
            None => writes.remove(&self.heads, dead_key(segment)),
        }
    }
}

/// Checks the list of files that each tree has. The engine knows their checksums, but does not look: what it then takes for
/// the length of a list may be more than there is memory.
fn check_lists(trees: &Path) -> Result<(), OpenError> {
    let entries = match fs::read_dir(trees) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(OpenError::damaged(trees, "the folder is missing"));
        }
        Err(error) => return Err(OpenError::io(trees)(error)),
    };
    for entry in entries {
        let tree = entry.map_err(OpenError::io(trees))?.path();
        let current = tree.join("current");
        // A tree that was being made or removed. If it is one that is needed, it will be missed.
        if !current.exists() && tree.file_name().is_none_or(|name| name != "0") {
            continue;
        }
        let bytes = read_or_damaged(&current)?;
        // The list's number, its checksum, and the kind of that, little-endian.
        let parts = bytes
            .split_first_chunk::<8>()
            .and_then(|(number, rest)| Some((number, rest.first_chunk::<16>()?)));
        let Some((number, sum)) = parts else {
            return Err(OpenError::damaged(&current, "it is cut off"));
        };
        let list = tree.join(format!("v{}", u64::from_le_bytes(*number)));
        if xxh3_128(&read_or_damaged(&list)?) != u128::from_le_bytes(*sum) {
            return Err(OpenError::damaged(&list, "it does not match its checksum"));
        }
    }
    Ok(())
}

fn read_or_damaged(path: &Path) -> Result<Vec<u8>, OpenError> {
    fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => OpenError::damaged(path, "the file is missing"),
        _ => OpenError::io(path)(error),
    })
}

/// How the engine is opened, this format's and the ones before.
pub(crate) fn database(path: &Path, cache_bytes: u64) -> fjall::DatabaseBuilder<Database> {
    Database::builder(path)
        .cache_size(cache_bytes)
        // The least there is: what is in the journal is replayed when the store is opened.
        .max_journaling_size(64 << 20)
        // Of two, one would do nothing but wait for the other, and that without a pause.
        .worker_threads(1)
}

/// Bytes that the files in a folder take up on disk. Parts that were never written do not count.
pub(crate) fn disk_bytes(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => bytes += allocated(&metadata),
                // Files are removed while we look.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(bytes)
}

#[cfg(unix)]
fn allocated(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(metadata) * 512
}

#[cfg(not(unix))]
fn allocated(metadata: &fs::Metadata) -> u64 {
    metadata.len()
}

/// A stored head, or what is wrong with it.
fn decode_head(key: &[u8], bytes: &[u8]) -> Result<Head> {
    Head::decode(bytes)
        .ok_or_else(|| Error::corrupt(format!("the head of key \"{}\" is malformed", key.escape_ascii())))
}
