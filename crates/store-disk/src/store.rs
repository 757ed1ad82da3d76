//! The [`DiskStore`] handle: opening a store, and the [`Store`] trait.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread::JoinHandle,
};

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use k1s_env::Env;
use k1s_store::{
    Error, GetResult, Range, RangeResult, Result, Revision, Stats, Store, Txn, Watch, WatchRequest,
    feed::Feed,
};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

#[cfg(any(test, feature = "testing"))]
use crate::writer::Step;
use crate::{
    backup, check,
    check::Report,
    error::{OpenError, io_error},
    files::{self, Files},
    folder::{Content, Folder, Making, disk_bytes},
    opened::Opened,
    options::DiskOptions,
    shared::{Past, Shared},
    writer::{Background, Command, Write, Writer},
};

/// Maximum number of entries of a range that is read on the caller's thread; longer ranges run on a blocking
/// thread.
const SHORT_RANGE: usize = 64;

/// A [`Store`] in a folder: acknowledged writes are on disk.
///
/// Cheap to clone; clones are the same store. It is closed by [`close`](Store::close), or when the last
/// clone is dropped, which waits for writes in flight.
#[derive(Clone)]
pub struct DiskStore {
    files: Arc<dyn Files>,
    path: Arc<PathBuf>,
    shared: Arc<Shared>,
    queue: Arc<Queue>,
}

/// The channel to the writer thread.
struct Queue {
    commands: Option<Arc<mpsc::Sender<Command>>>,
    places: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

impl DiskStore {
    /// Opens the store in `folder`, or creates one if the folder is empty.
    ///
    /// Blocks for some milliseconds, longer for a large store: it reads all keys and the end of the log.
    pub fn open(env: Env, folder: impl AsRef<Path>, options: DiskOptions) -> Result<Self, OpenError> {
        Self::open_on(files::real(), env, folder.as_ref(), options, Background::Threads)
    }

    pub(crate) fn open_on(
        files: Arc<dyn Files>,
        env: Env,
        folder: &Path,
        options: DiskOptions,
        background: Background,
    ) -> Result<Self, OpenError> {
        let folder = Folder::lock(&files, folder)?;
        let opened = match folder.content()? {
            Content::Store => Opened::open(&folder, &options)?,
            Content::Nothing => {
                folder.create(Making::Empty, Revision::FIRST, |folder| Opened::create(folder, &options))?
            }
            Content::PartOfCopy => {
                return Err(OpenError::Unsuitable {
                    folder: folder.path().to_owned(),
                    reason: "a backup into it was interrupted; make it again, or remove the folder `store` to start \
                             with an empty store"
                        .to_owned(),
                });
            }
        };
        let watermark = folder.watermark()?;

        let state = opened.state;
        let shared = Arc::new(Shared {
            feed: Feed::new(env.clone(), options.feed, state.revision, state.oldest),
            view: ArcSwapOption::from_pointee(opened.view()),
            write_error: Mutex::new(None),
            env,
            options,
        });
        let (commands, queue) = mpsc::channel();
        let commands = Arc::new(commands);
        let store_path = folder.path().to_owned();
        let writer = Writer::new(
            shared.clone(),
            background,
            folder,
            watermark,
            opened,
            queue,
            Arc::downgrade(&commands),
        );
        let thread =
            shared.env.spawn_thread("store-disk", || writer.run()).map_err(OpenError::io(&store_path))?;
        Ok(Self {
            files,
            path: Arc::new(store_path),
            shared,
            queue: Arc::new(Queue {
                commands: Some(commands),
                places: Arc::new(Semaphore::new(options.queued_writes.clamp(1, Semaphore::MAX_PERMITS))),
                thread: Some(thread),
            }),
        })
    }

    /// Reads the whole store and reports all damage and inconsistencies.
    pub async fn check(&self) -> Result<Report> {
        self.shared
            .read_much("store-disk-check", |view| {
                let (view, dead) = view.pinned();
                Ok(check::check(&view, &dead))
            })
            .await
    }

    /// Copies a snapshot of the store, with its history, into `folder`, which must not hold a store. Writes
    /// continue meanwhile. The copy can be opened like any store.
    pub async fn backup(&self, folder: impl Into<PathBuf>) -> Result<Revision, OpenError> {
        let (shared, folder) = (self.shared.clone(), folder.into());
        let (files, source, target) = (self.files.clone(), self.path.clone(), folder.clone());
        let copy =
            self.shared.env.spawn_blocking("store-disk-backup", move || match shared.view.load_full() {
                Some(view) => {
                    let (view, dead) = view.pinned();
                    backup::backup(&files, &view, &dead, &source, &folder, &shared.options)
                }
                None => {
                    Err(OpenError::Unsuitable { folder, reason: "the store to copy is not open".to_owned() })
                }
            });
        copy.await
            .unwrap_or_else(|error| Err(OpenError::Unsuitable { folder: target, reason: error.to_string() }))
    }

    /// Runs pending background work on the writer thread. With `clean`, also cleans segments, if the store
    /// was opened by [`SimDisk::open_stepped`](crate::testing::SimDisk::open_stepped): one call copies them,
    /// the next replaces them.
    ///
    /// # Errors
    /// If the store is closed.
    #[cfg(any(test, feature = "testing"))]
    pub async fn step(&self, clean: bool) -> Result<()> {
        self.send_step(if clean { Step::Clean } else { Step::Settle }).await
    }

    /// Blocks the writer thread until the returned guard is dropped: writes made meanwhile form one batch.
    ///
    /// # Errors
    /// If the store is closed.
    #[cfg(any(test, feature = "testing"))]
    pub async fn hold(&self) -> Result<impl Send + use<>> {
        let (hold, released) = mpsc::channel::<()>();
        self.send_step(Step::Hold(released)).await?;
        Ok(hold)
    }

    #[cfg(any(test, feature = "testing"))]
    async fn send_step(&self, step: Step) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Step(step, reply))?;
        self.answer(answer).await
    }

    /// The data folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn send(&self, command: Command) -> Result<()> {
        let commands = self.queue.commands.as_ref().ok_or(Error::Closed)?;
        commands.send(command).map_err(|_| Error::Closed)
    }

    /// Waits for the writer thread's answer, at most for `stall`.
    async fn answer<T>(&self, answer: oneshot::Receiver<Result<T>>) -> Result<T> {
        let stall = self.shared.options.stall;
        match self.shared.env.timeout(stall, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) if self.shared.feed.is_closed() => Err(Error::Closed),
            Ok(Err(_)) => Err(Error::outcome_unknown("the writer thread ended")),
            Err(_) => Err(Error::outcome_unknown(format!("the disk has not answered for {stall:?}"))),
        }
    }
}

#[async_trait]
impl Store for DiskStore {
    async fn revision(&self) -> Result<Revision> {
        self.shared.read(|view| Ok(view.state.revision))
    }

    async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<GetResult> {
        // Reads never wait, so a task that only reads must yield now and then.
        tokio::task::coop::consume_budget().await;
        self.shared.read_at(at, |view| view.get(key, at))
    }

    async fn range(&self, range: Range) -> Result<RangeResult> {
        if range.max_entries() <= SHORT_RANGE {
            tokio::task::coop::consume_budget().await;
            return self.shared.read_at(range.revision, |view| view.range(&range, &|_, _| None));
        }
        // Long ranges are often cached by the caller: values in the feed's ring are shared with it.
        let feed = self.shared.feed.clone();
        let recall = move |key: &[u8], revision| feed.recall(key, revision);
        let (at, shared) = (range.revision, self.shared.clone());
        self.shared
            .blocking("store-disk-range", move || shared.read_at(at, |view| view.range(&range, &recall)))
            .await
    }

    async fn txn(&self, txn: Txn) -> Result<Revision> {
        txn.validate()?;
        let permit = self.queue.places.clone().acquire_owned().await.map_err(|_| Error::Closed)?;
        self.shared.read(|view| {
            view.heads.prefetch(txn.ops().iter().map(|op| &op.key[..]));
            Ok(())
        })?;
        let (reply, answer) = oneshot::channel();
        // Moved into the write: it stays in flight even if the caller stops waiting.
        let under_way = self.shared.env.outside_work();
        self.send(Command::Write(Write { txn, reply, permit, under_way }))?;
        self.answer(answer).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch> {
        self.shared.read(|view| view.read_revision(request.after))?;
        self.shared.feed.watch(request, Arc::new(Past(self.shared.clone())))
    }

    async fn compact(&self, revision: Revision) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        let _under_way = self.shared.env.outside_work();
        self.send(Command::Compact(revision, reply))?;
        self.answer(answer).await
    }

    async fn stats(&self) -> Result<Stats> {
        let mut stats = Stats::default();
        self.shared.read(|view| {
            stats.revision = view.state.revision;
            stats.oldest = view.state.oldest;
            stats.keys = view.state.totals.keys;
            stats.bytes = Some(view.state.totals.bytes);
            Ok(())
        })?;
        stats.disk_bytes =
            Some(disk_bytes(&*self.files, &self.path.join("store")).map_err(|error| io_error(&error))?);
        stats.watches = self.shared.feed.watches() as u64;
        stats.degraded = self.shared.write_error.lock().as_ref().map(ToString::to_string);
        Ok(stats)
    }

    async fn health(&self) -> Result<()> {
        self.shared.read(|view| view.heads.log().check_in_place().map_err(|error| io_error(&error)))?;
        let write_error = self.shared.write_error.lock().clone();
        match write_error {
            Some(error) => {
                // The caller may write nothing until the store is healthy again.
                self.send(Command::Recover)?;
                Err(error)
            }
            None => Ok(()),
        }
    }

    async fn close(&self) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        let _under_way = self.shared.env.outside_work();
        let closed = match self.send(Command::Close(reply)) {
            Ok(()) => self.answer(answer).await,
            Err(error) => Err(error),
        };
        match closed {
            // The thread has ended: closed already.
            Err(Error::Closed) => Ok(()),
            closed => closed,
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Without a sender, the thread drains the queue and ends; then the lock is released.
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for DiskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskStore").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use k1s_store::Precondition;

    use super::*;
    use crate::heads::State;

    /// A started read never misses entries, even if it is overtaken by compaction.
    #[tokio::test]
    async fn a_read_overtaken_by_compaction_fails_with_compacted() {
        let folder = tempfile::tempdir().unwrap();
        let store = DiskStore::open(Env::system(), folder.path(), DiskOptions::default()).unwrap();
        let put = async |value: &'static str| {
            store.txn(Txn::new().put("/a", value, Precondition::Any)).await.unwrap()
        };
        let first = put("1").await;
        let old = store.shared.view.load_full().unwrap();
        put("2").await;
        store.txn(Txn::new().delete("/a", Precondition::Any)).await.unwrap();
        let request = WatchRequest { after: Some(first), ..WatchRequest::default() };
        assert_eq!(old.get(b"/a", None).unwrap().entry.unwrap().value, "1");
        assert_eq!(old.backfill(&request).unwrap().changes.len(), 0, "a view does not change");

        let last = put("3").await;
        put("4").await;
        store.compact(last).await.unwrap();
        let overtaken = |error: Error| matches!(error, Error::Compacted { .. });
        assert!(old.get(b"/a", None).is_err_and(overtaken));
        assert!(old.range(&Range::default(), &|_, _| None).is_err_and(overtaken));
        assert!(old.backfill(&request).is_err_and(overtaken));
        assert_eq!(store.get(b"/a", None).await.unwrap().entry.unwrap().value, "4");
    }

    #[tokio::test]
    async fn an_unpinned_read_that_is_always_overtaken_completes() {
        let folder = tempfile::tempdir().unwrap();
        let store = DiskStore::open(Env::system(), folder.path(), DiskOptions::default()).unwrap();
        put(&store, "/a").await;
        let view = store.shared.view.load_full().unwrap();
        put(&store, "/b").await;
        // The state while a batch is on disk, but not yet published.
        store.shared.view.store(Some(view.clone()));
        let live = view.heads.clone();
        let attempts = std::cell::Cell::new(0);
        let read = store.shared.read_at(None, |view| {
            attempts.set(attempts.get() + 1);
            assert!(attempts.get() < 100, "the read never completes");
            if Arc::ptr_eq(&view.heads, &live) {
                // Simulates many writes and a compaction meanwhile.
                return Err(Error::Compacted { requested: view.state.revision, oldest: view.state.revision });
            }
            view.range(&Range::default(), &|_, _| None)
        });
        let read = read.unwrap();
        assert_eq!((read.revision, read.entries.len()), (view.state.revision, 1));
    }

    #[tokio::test]
    async fn the_size_of_a_history_page_includes_previous_values() {
        let folder = tempfile::tempdir().unwrap();
        let store = DiskStore::open(Env::system(), folder.path(), DiskOptions::default()).unwrap();
        let mut last = Revision::FIRST;
        for number in 0..10 {
            let txn = Txn::new().put(format!("/{number}"), vec![7; 1 << 20], Precondition::Any);
            last = store.txn(txn).await.unwrap();
        }
        for number in 0..10 {
            store.txn(Txn::new().delete(format!("/{number}"), Precondition::Any)).await.unwrap();
        }
        let request = WatchRequest { after: Some(last), previous: true, ..WatchRequest::default() };
        let page = store.shared.read(|view| view.backfill(&request)).unwrap();
        assert_eq!(page.changes.iter().map(|change| change.size() >> 20).sum::<usize>(), 4);
    }

    /// Small segments, and a history that is only compacted on request.
    fn small() -> DiskOptions {
        DiskOptions { segment_bytes: 4096, history_revisions: 1_000_000, ..DiskOptions::default() }
    }

    async fn put(store: &DiskStore, key: &str) -> Revision {
        store.txn(Txn::new().put(key.to_owned(), vec![7; 300], Precondition::Any)).await.unwrap()
    }

    #[tokio::test]
    async fn a_deleted_key_stays_absent_in_the_past_after_the_record_of_its_deletion_is_cleaned() {
        let folder = tempfile::tempdir().unwrap();
        let env = Env::system();
        let store = DiskStore::open(env.clone(), folder.path(), small()).unwrap();
        put(&store, "/a").await;
        let deleted = store.txn(Txn::new().delete("/a", Precondition::Any)).await.unwrap();
        let mut revision = deleted;
        for _ in 0..1000 {
            revision = put(&store, "/b").await;
        }
        let old = store.shared.view.load_full().unwrap();
        assert_eq!(old.get(b"/a", Some(revision)).unwrap().entry, None);
        put(&store, "/a").await;
        store.compact(Revision::new(revision.get() - 100)).await.unwrap();
        let gone = async {
            while old.heads.log().get(crate::record::Pointer::new(deleted, 0)).unwrap().is_some() {
                put(&store, "/b").await;
            }
        };
        env.timeout(std::time::Duration::from_secs(60), gone).await.expect("the segment was not cleaned");
        assert_eq!(old.get(b"/a", Some(revision)).unwrap().entry, None);
    }

    #[tokio::test]
    async fn a_backup_that_omits_dead_records_has_frames_of_bounded_size() {
        let (folder, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let env = Env::system();
        let store = DiskStore::open(env.clone(), folder.path(), DiskOptions::default()).unwrap();
        let mut last = Revision::FIRST;
        for number in 0..300 {
            // The last record of each revision is soon dead.
            let txn = Txn::new().put(format!("/{number}"), vec![7; 20_000], Precondition::Any);
            last = store.txn(txn.put("/counter", format!("{number}"), Precondition::Any)).await.unwrap();
        }
        store.compact(last).await.unwrap();
        let swept = async {
            while store.shared.view.load_full().unwrap().state.swept.next() < last {
                env.yield_now().await;
            }
        };
        env.timeout(std::time::Duration::from_secs(60), swept).await.expect("the history was not swept");
        store.backup(target.path()).await.unwrap();
        let bytes = std::fs::read(target.path().join("store/log/000000000001.log")).unwrap();
        let frames = memchr::memmem::find_iter(&bytes, b"\x01k1s")
            .map(|at| u32::from_be_bytes(bytes[at + 8..at + 12].try_into().unwrap()));
        let frames: Vec<_> = frames.collect();
        assert!(frames.len() > 3 && frames.iter().all(|len| *len < 2 << 20), "{frames:?}");
        let copy = DiskStore::open(env, target.path(), DiskOptions::default()).unwrap();
        assert!(copy.check().await.unwrap().is_sound());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn sweeping_keeps_up_with_writes() {
        let folder = tempfile::tempdir().unwrap();
        let env = Env::system();
        let options = DiskOptions { history_revisions: 0, ..DiskOptions::default() };
        let store = DiskStore::open(env.clone(), folder.path(), options).unwrap();
        let writers: Vec<_> = (0..32)
            .map(|writer| {
                let store = store.clone();
                env.spawn("writer", async move {
                    for _ in 0..40 {
                        let txn = (0..64).fold(Txn::new(), |txn, step| {
                            txn.put(format!("/{writer}/{step}"), "value", Precondition::Any)
                        });
                        store.txn(txn).await.unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        let State { oldest, swept, .. } = store.shared.view.load_full().unwrap().state;
        assert!(oldest.get() > 500, "{oldest}");
        assert!(
            swept.get() > oldest.get() / 4 * 3,
            "the history begins at {oldest}, but is swept to {swept}"
        );
    }

    #[tokio::test]
    async fn a_missing_segment_that_the_checkpoint_lists_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let store = DiskStore::open(Env::system(), folder.path(), small()).unwrap();
        let watermark = folder.path().join("store/watermark");
        // After a power cut, the watermark may be old.
        let old = std::fs::read(&watermark).unwrap();
        for number in 0..100 {
            put(&store, &format!("/{number}")).await;
        }
        store.compact(Revision::new(30)).await.unwrap();
        store.close().await.unwrap();
        let log = std::fs::read_dir(folder.path().join("store/log")).unwrap();
        let last = log.map(|entry| entry.unwrap().path()).max().unwrap();
        std::fs::remove_file(last).unwrap();
        std::fs::write(&watermark, old).unwrap();
        drop(store);
        let error = DiskStore::open(Env::system(), folder.path(), small()).unwrap_err().to_string();
        assert!(error.contains("checkpoint: segment ") && error.contains("is missing"), "{error}");
    }

    #[tokio::test]
    #[cfg(unix)]
    async fn a_damaged_frame_is_found_by_a_check_though_its_records_are_whole() {
        use std::os::unix::fs::FileExt;
        let folder = tempfile::tempdir().unwrap();
        let store = DiskStore::open(Env::system(), folder.path(), DiskOptions::default()).unwrap();
        put(&store, "/a").await;
        put(&store, "/b").await;
        let path = folder.path().join("store/log/000000000001.log");
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        let mut byte = [0];
        let in_its_checksum = 48 + 20;
        file.read_exact_at(&mut byte, in_its_checksum).unwrap();
        file.write_all_at(&[byte[0] ^ 1], in_its_checksum).unwrap();
        let report = store.check().await.unwrap();
        assert!(report.problems[0].contains("a frame does not match its checksum at byte 48"), "{report:?}");
    }

    #[tokio::test]
    async fn a_damaged_record_is_named_with_its_key_and_revision() {
        let disk = crate::testing::SimDisk::new(1);
        let store = disk.open(Env::system(), "/data", DiskOptions::default()).unwrap();
        let revision = put(&store, "/pods/a").await;
        let path = "/data/store/log/000000000001.log";
        let mut bytes = disk.read(path).unwrap();
        let value = memchr::memmem::rfind(&bytes, &[7; 300]).unwrap();
        bytes[value + 100] ^= 1;
        disk.write(path, bytes).unwrap();
        let named = format!("record 0 of revision {revision}, key \"/pods/a\", does not match its checksum");
        let error = store.get(b"/pods/a", None).await.unwrap_err().to_string();
        assert!(error.contains(&named), "{error}");
        let report = store.check().await.unwrap();
        assert!(report.problems.contains(&named), "{report:?}");
    }
}
