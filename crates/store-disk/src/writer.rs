//! The writer thread: group commit, compaction, and recovery after a failed write.
//!
//! Queued writes form one batch. Preconditions are checked against a state that includes the batch's earlier
//! writes. The batch is appended to the log and synced once, and only then published: first the view, then
//! the events, then the acknowledgements.

use std::{
    io,
    ops::RangeInclusive,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError},
    },
    thread::JoinHandle,
    time::Duration,
};

use bytes::Bytes;
use k1s_env::{Env, Instant, OutsideWork};
use k1s_store::{Change, Error, Result, Revision, Txn};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{
    batch::Batch,
    checkpoint::Checkpoint,
    error::{io_error, is_full},
    folder::{Folder, Watermark},
    history::History,
    lock::is_gone,
    log::{
        Frame, Segment,
        clean::{self, Run},
    },
    opened::Opened,
    record::Pointer,
    reserve::Reserve,
    shared::Shared,
};

/// Operations, and bytes, at which a batch is closed.
const BATCH_STEPS: usize = 1024;
const BATCH_BYTES: usize = 4 << 20;

/// How long a batch waits for further writes: a quarter of a sync's duration, within these bounds. A sync
/// costs about the same for one write as for a hundred, and clients that were just acknowledged are likely to
/// write again.
const GATHER: RangeInclusive<Duration> = Duration::from_micros(20)..=Duration::from_millis(1);

/// How long the thread spins for the next command before it sleeps; waking it up would take about as long.
const SPIN: Duration = Duration::from_micros(50);

/// Minimum interval between two attempts to recover from a failure.
const RECOVERY_PAUSE: Duration = Duration::from_millis(100);

/// Number of swept revisions between checkpoints. After a crash, they are swept again.
const CHECKPOINT_REVISIONS: u64 = 1 << 16;

/// Maximum number of deleted keys kept in memory for the next checkpoint.
const MAX_DELETED: usize = 8192;

/// Deleted keys removed per lock acquisition; readers wait for one batch.
const REMOVED_AT_ONCE: usize = 512;

/// Pause after a failed compaction.
const COMPACTION_PAUSE: Duration = Duration::from_secs(30);

/// A request to the writer thread.
pub(crate) enum Command {
    Write(Write),
    Compact(Revision, oneshot::Sender<Result<()>>),
    /// Segments of the log have been cleaned.
    Cleaned(Box<Cleaned>),
    /// Retry a failed write path now: a health probe is waiting for the result.
    Recover,
    /// Tests drive background work step by step: see [`Background::Stepped`].
    #[cfg(any(test, feature = "testing"))]
    Step(Step, oneshot::Sender<Result<()>>),
    Close(oneshot::Sender<Result<()>>),
}

/// Background work that a test triggers.
#[cfg(any(test, feature = "testing"))]
pub(crate) enum Step {
    /// All pending sweeps.
    Settle,
    /// All pending sweeps, and the next step of segment cleaning: copying, or replacing the segments by the
    /// copy.
    Clean,
    /// Block until the sender is dropped.
    Hold(Receiver<()>),
}

/// Where segments are cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Background {
    /// On a separate thread.
    Threads,
    /// On the writer thread, at [`Command::Step`]: for tests that control the order of all operations.
    #[cfg(any(test, feature = "testing"))]
    Stepped,
}

pub(crate) struct Write {
    pub(crate) txn: Txn,
    pub(crate) reply: oneshot::Sender<Result<Revision>>,
    /// The write's slot in the queue, released when the write is answered.
    pub(crate) permit: OwnedSemaphorePermit,
    /// Marks the write as in flight for a simulated clock. The last field, so it is dropped last.
    #[expect(dead_code, reason = "it counts as long as it is there")]
    pub(crate) under_way: OutsideWork,
}

pub(crate) struct Writer {
    shared: Arc<Shared>,
    background: Background,
    folder: Folder,
    watermark: Watermark,
    opened: Opened,
    reserve: Reserve,
    /// The records of the batch being assembled.
    frame: Frame,
    history: History,
    /// Declared after `folder`, so that the folder is unlocked before the channel disconnects.
    queue: Receiver<Command>,
    /// Upgradable while a handle to the store exists.
    commands: Weak<Sender<Command>>,
    /// The segment cleaning in flight, if any.
    cleaning: Option<Cleaning>,
    /// The failure that blocks writes, if any.
    failed: Option<Failure>,
    /// Number of records written since the last sweep.
    unswept: usize,
    /// Keys swept as deleted since the last checkpoint. Their heads are kept until then: a record that
    /// creates such a key again must point to its deletion, since after a crash the history begins at the
    /// last checkpoint.
    deleted: Vec<(Bytes, Pointer)>,
    /// Compaction is paused until then.
    paused_until: Option<Instant>,
    /// Whether the last cleaning failed, and must be retried even if nothing else happens.
    unclean: bool,
    /// Whether it failed for lack of space.
    short_of_room: bool,
    /// Moving average of the duration of a sync.
    sync_time: Duration,
    /// Expected number of writes in the next batch.
    likely_writes: usize,
}

/// Why writes fail.
struct Failure {
    error: Error,
    /// Time of the last recovery attempt. `None` if recovery is impossible, because the store's folder was
    /// removed, moved or replaced.
    last_attempt: Option<Instant>,
}

struct Cleaning {
    stop: Arc<AtomicBool>,
    worker: Worker,
}

enum Worker {
    Thread(JoinHandle<()>),
    #[cfg(any(test, feature = "testing"))]
    Waiting(Box<dyn FnOnce() -> Cleaned + Send>),
    #[cfg(any(test, feature = "testing"))]
    Done(Box<Cleaned>),
}

/// The result of cleaning some segments.
pub(crate) struct Cleaned {
    run: Run,
    copy: Result<Option<Segment>>,
    /// Identifies the cleaning that produced this.
    stop: Arc<AtomicBool>,
}

impl Writer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        background: Background,
        folder: Folder,
        watermark: Watermark,
        opened: Opened,
        queue: Receiver<Command>,
        commands: Weak<Sender<Command>>,
    ) -> Self {
        let history = History::new(&shared.options, shared.env.now(), opened.state);
        let write_error = opened.write_error.as_ref().map(io_error);
        let mut reserve =
            Reserve::open(folder.files().clone(), &folder.reserve(), shared.options.reserve_bytes);
        if let Err(error) = reserve.fill() {
            tracing::warn!(folder = %folder.path().display(), %error, "could not reserve space for a full disk");
        }
        let mut writer = Self {
            shared,
            background,
            folder,
            watermark,
            opened,
            reserve,
            frame: Frame::default(),
            history,
            queue,
            commands,
            cleaning: None,
            failed: None,
            unswept: 0,
            deleted: Vec::new(),
            paused_until: None,
            unclean: false,
            short_of_room: false,
            sync_time: Duration::ZERO,
            likely_writes: 1,
        };
        if let Some(error) = write_error {
            tracing::error!(folder = %writer.folder.path().display(), %error, "the store was opened, but is not writable");
            writer.fail(error, false);
        }
        writer
    }

    /// Runs until the store is closed or all handles are dropped.
    pub(crate) fn run(mut self) {
        let reply = loop {
            match self.next_command() {
                Ok(Command::Write(first)) => {
                    if let Some(other) = self.gather_and_write(first) {
                        match self.other_command(other) {
                            Some(reply) => break Some(reply),
                            None => continue,
                        }
                    }
                }
                Ok(command) => {
                    if let Some(reply) = self.other_command(command) {
                        break Some(reply);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break None,
            }
            self.maintain();
        };
        for reply in self.close().into_iter().chain(reply) {
            let _ = reply.send(Ok(()));
        }
    }

    /// The next command, or a timeout when maintenance is due.
    fn next_command(&self) -> Result<Command, RecvTimeoutError> {
        if let Some(command) = self.spin_for_command() {
            return Ok(command);
        }
        let now = self.shared.env.now();
        let due = match self.paused_until {
            // The next write retries it.
            _ if self.is_blocked() => None,
            Some(until) if until > now => Some(until - now),
            _ => self.history.due(&self.opened.state, now),
        };
        match due {
            None => self.queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(Duration::ZERO) => self.queue.try_recv().map_err(|error| match error {
                TryRecvError::Empty => RecvTimeoutError::Timeout,
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            }),
            Some(wait) => self.queue.recv_timeout(wait),
        }
    }

    fn spin(&self, time: Duration) -> Spin<'_> {
        let time = match self.background {
            Background::Threads => time,
            // With a simulated clock, time stands still and no other commands arrive.
            #[cfg(any(test, feature = "testing"))]
            Background::Stepped => Duration::ZERO,
        };
        Spin::new(&self.shared.env, time)
    }

    /// A command that arrives within [`SPIN`].
    fn spin_for_command(&self) -> Option<Command> {
        let mut spin = self.spin(SPIN);
        loop {
            match self.queue.try_recv() {
                Ok(command) => return Some(command),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if spin.yield_once() => {}
                Err(TryRecvError::Empty) => return None,
            }
        }
    }

    /// Writes `first` together with the writes queued behind it. Returns the first other command, which ends
    /// the batch.
    fn gather_and_write(&mut self, first: Write) -> Option<Command> {
        let (mut steps, mut bytes) = (first.txn.ops().len(), first.txn.size());
        let mut writes = vec![first];
        let mut other = None;
        let patience = (self.sync_time / 4).clamp(*GATHER.start(), *GATHER.end());
        let mut spin = self.spin(patience);
        while steps < BATCH_STEPS && bytes < BATCH_BYTES {
            let next = match self.queue.try_recv() {
                Ok(command) => command,
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) if writes.len() >= self.likely_writes => break,
                Err(TryRecvError::Empty) if spin.yield_once() => continue,
                Err(TryRecvError::Empty) => break,
            };
            match next {
                Command::Write(write) => {
                    steps += write.txn.ops().len();
                    bytes += write.txn.size();
                    writes.push(write);
                }
                command => {
                    other = Some(command);
                    break;
                }
            }
        }
        // Grows at once with the number of writers, and shrinks slowly.
        self.likely_writes = writes.len().max(self.likely_writes - self.likely_writes.div_ceil(8)).max(1);
        self.write(writes);
        other
    }

    /// Executes a command. Returns the sender to notify if the command closes the store.
    fn other_command(&mut self, command: Command) -> Option<oneshot::Sender<Result<()>>> {
        match command {
            Command::Close(reply) => return Some(reply),
            Command::Compact(revision, reply) => {
                let done = self.compact(revision);
                let _ = reply.send(done);
            }
            Command::Cleaned(cleaned) => self.finish_cleaning(*cleaned),
            Command::Recover => drop(self.ready()),
            #[cfg(any(test, feature = "testing"))]
            Command::Step(step, reply) => {
                let held = self.step(step);
                let _ = reply.send(Ok(()));
                let _ = held.map(|released| released.recv());
            }
            Command::Write(write) => self.write(vec![write]),
        }
        None
    }

    fn write(&mut self, mut writes: Vec<Write>) {
        let mut from_reserve = false;
        if let Err(error) = self.ready() {
            // On a full disk, writes that free space are made from the reserve.
            let allowed =
                writes.extract_if(.., |write| self.is_full() && self.may_use_reserve(&write.txn)).collect();
            refuse(std::mem::replace(&mut writes, allowed), &error);
            from_reserve = true;
        }
        let refused = self.commit(writes, from_reserve);
        self.commit(refused, true);
    }

    /// Writes a batch. Returns writes that failed for lack of space and may use the reserve.
    fn commit(&mut self, writes: Vec<Write>, from_reserve: bool) -> Vec<Write> {
        let mut refused = Vec::new();
        if writes.is_empty() {
            return refused;
        }
        let view = Arc::new(self.opened.view());
        let mut batch = Batch::new(&mut self.frame, view, self.opened.state, writes.len());
        for write in writes {
            batch.add(&self.shared, write);
        }
        let Batch { state, heads, changes, mut answers, .. } = batch;
        if !changes.is_empty() {
            let began = self.shared.env.now();
            let appended = if from_reserve {
                self.append_from_reserve()
            } else {
                self.opened.log.append(&mut self.frame)
            };
            match appended {
                Ok(()) => {
                    self.sync_time = (self.sync_time * 7 + (self.shared.env.now() - began)) / 8;
                    self.opened.heads.note(&heads, self.opened.log.segments(), state);
                    self.opened.state = state;
                    self.unswept += heads.len();
                    self.publish(changes);
                }
                Err(error) => {
                    tracing::error!(folder = %self.folder.path().display(), %error, "writing to disk failed");
                    let taken_back = self.opened.log.take_back();
                    let mut answer = self.fail_by(&error);
                    if taken_back.is_err() {
                        // The frame may be on disk, complete. If the store is opened again and finds it, the
                        // write happened.
                        answer = Error::outcome_unknown(format!("I/O error: {error}"));
                    }
                    // Conflicts are replaced, too: they were decided on writes that did not happen.
                    for (_, given) in &mut answers {
                        *given = Err(answer.clone());
                    }
                    if taken_back.is_ok() && !from_reserve && self.is_full() {
                        let again = answers.extract_if(.., |(write, _)| {
                            !write.txn.ops().is_empty() && self.may_use_reserve(&write.txn)
                        });
                        refused = again.map(|(write, _)| write).collect();
                    }
                }
            }
        }
        for (write, answer) in answers {
            drop(write.permit);
            // A caller that has stopped waiting abandons the answer, not the write.
            let _ = write.reply.send(answer);
        }
        refused
    }

    /// Appends the batch, releasing the reserve as needed.
    fn append_from_reserve(&mut self) -> io::Result<()> {
        loop {
            let log = &mut self.opened.log;
            let appended = log.prepare().and_then(|()| log.append_tightly(&mut self.frame));
            match appended {
                Err(error) if is_full(&error) => {
                    let _ = log.take_back();
                    if !self.reserve.release(0) {
                        return Err(error);
                    }
                }
                appended => return appended,
            }
        }
    }

    /// Whether a transaction may use the reserve.
    fn may_use_reserve(&self, txn: &Txn) -> bool {
        self.reserve.serves(txn, &self.opened.heads)
    }

    /// Whether writes are blocked because the disk is full.
    fn is_full(&self) -> bool {
        matches!(&self.failed, Some(Failure { error: Error::Full { .. }, last_attempt: Some(_) }))
    }

    /// Whether writes are blocked for another reason.
    fn is_blocked(&self) -> bool {
        self.failed.is_some() && !self.is_full()
    }

    fn publish(&mut self, changes: Vec<(Arc<Change>, bool)>) {
        if let Err(error) = self.watermark.raise(self.opened.state.revision) {
            tracing::warn!(path = %self.watermark.path().display(), %error, "could not update the watermark");
        }
        let view = Arc::new(self.opened.view());
        self.shared.feed.publish_with(changes, || self.shared.view.store(Some(view)));
    }

    fn fail_by(&mut self, error: &io::Error) -> Error {
        self.fail(io_error(error), is_gone(error))
    }

    /// `for_good`: until the store is reopened.
    fn fail(&mut self, error: Error, for_good: bool) -> Error {
        *self.shared.write_error.lock() = Some(error.clone());
        let last_attempt = (!for_good).then(|| self.shared.env.now());
        self.failed = Some(Failure { error: error.clone(), last_attempt });
        error
    }

    /// Fails permanently if the store's folder was removed, moved or replaced: whatever is at the path now
    /// must not be touched.
    fn check_in_place(&mut self) -> Result<()> {
        match (self.opened.log.check_in_place(), &self.failed) {
            (_, Some(Failure { error, last_attempt: None })) => Err(error.clone()),
            (Err(error), _) if is_gone(&error) => {
                tracing::error!(folder = %self.folder.path().display(), %error, "the store is no longer in place");
                Err(self.fail_by(&error))
            }
            (Err(error), _) => Err(io_error(&error)),
            (Ok(()), _) => Ok(()),
        }
    }

    /// Succeeds if writes are possible. After a failure, tries to recover: unacknowledged writes are cut from
    /// the log.
    fn ready(&mut self) -> Result<()> {
        let Some(Failure { error, last_attempt }) = &self.failed else { return Ok(()) };
        let now = self.shared.env.now();
        if last_attempt.is_none_or(|last_attempt| now - last_attempt < RECOVERY_PAUSE) {
            return Err(error.clone());
        }
        // In this order: a later step needs the earlier ones.
        let log = &mut self.opened.log;
        let mended = log
            .check_in_place()
            .and_then(|()| log.prepare())
            .and_then(|()| self.reserve.fill())
            .and_then(|()| self.folder.probe());
        if let Err(error) = mended {
            return Err(self.fail_by(&error));
        }
        tracing::info!(folder = %self.folder.path().display(), "writes to disk have recovered");
        self.failed = None;
        *self.shared.write_error.lock() = None;
        Ok(())
    }

    /// Compacts on request.
    fn compact(&mut self, revision: Revision) -> Result<()> {
        let state = self.opened.state;
        if revision > state.revision {
            return Err(Error::FutureRevision { requested: revision, current: state.revision });
        }
        // An acknowledged compaction is durable, so a checkpoint is written even if the history already
        // begins there.
        if revision > self.opened.checkpointed.0 {
            if let (Err(error), true) = (self.ready(), self.is_blocked()) {
                return Err(error);
            }
            if revision > state.oldest {
                self.sweep(revision)?;
            }
            self.stop_cleaning();
            self.checkpoint()?;
            if let Err(error) = self.clean() {
                self.pause("could not clean segments", &error);
            }
        }
        Ok(())
    }

    /// Enforces the limits of the history, in small steps.
    fn maintain(&mut self) {
        let now = self.shared.env.now();
        let state = self.opened.state;
        self.history.note(state.revision, now);
        if self.is_blocked() || self.paused_until.is_some_and(|until| until > now) {
            return;
        }
        self.paused_until = None;
        let oldest = self.history.bound(&state, now).max(state.oldest);
        if self.unclean || oldest > state.oldest || self.history.unswept(&state) {
            let done = self.sweep(oldest).and_then(|()| {
                if self.opened.state.swept.get() - self.opened.checkpointed.1.get() >= CHECKPOINT_REVISIONS
                    || self.deleted.len() >= MAX_DELETED
                {
                    self.checkpoint()?;
                }
                self.clean()
            });
            if let Err(error) = done {
                self.pause("compaction failed", &error);
            }
        }
    }

    /// Pauses compaction after a failure.
    fn pause(&mut self, what: &str, error: &Error) {
        tracing::warn!(folder = %self.folder.path().display(), %error, "{what}");
        self.unclean = true;
        self.paused_until = Some(self.shared.env.now() + COMPACTION_PAUSE);
    }

    /// Moves the beginning of the history to `oldest` and finds some of the records that this makes dead.
    fn sweep(&mut self, oldest: Revision) -> Result<()> {
        let opened = &mut self.opened;
        let written = std::mem::take(&mut self.unswept);
        let swept = History::sweep(&opened.log.segments(), opened.state, oldest, written)?;
        opened.state = swept.state;
        opened.heads.sweep(&swept.dead, swept.state);
        self.deleted.extend(swept.deleted);
        self.shared.view.store(Some(Arc::new(opened.view())));
        self.shared.feed.compact(swept.state.oldest);
        Ok(())
    }

    /// Writes a checkpoint, unless segments are being cleaned: a cleaned segment must omit exactly the
    /// records that are dead in the last checkpoint.
    fn checkpoint(&mut self) -> Result<()> {
        if self.cleaning.is_some() {
            return Ok(());
        }
        let opened = &mut self.opened;
        let (oldest, swept) = (opened.state.oldest, opened.state.swept);
        if opened.checkpointed != (oldest, swept) {
            opened.log.check_in_place().map_err(|error| io_error(&error))?;
            let checkpoint = Checkpoint::new(oldest, swept, &opened.log.segments());
            loop {
                match checkpoint.write(&**self.folder.files(), &self.folder.checkpoint(), &self.folder.log())
                {
                    Ok(()) => break,
                    // Worth spending the reserve: a checkpoint is needed to reclaim space.
                    Err(error) if is_full(&error) && self.reserve.release(0) => {}
                    Err(error) => return Err(io_error(&error)),
                }
            }
            opened.checkpointed = (oldest, swept);
        }
        for some in std::mem::take(&mut self.deleted).chunks(REMOVED_AT_ONCE) {
            self.opened.heads.forget(some);
        }
        Ok(())
    }

    /// Starts to clean segments, if worthwhile.
    fn clean(&mut self) -> Result<()> {
        let Some(commands) = self.commands.upgrade() else { return Ok(()) };
        if self.cleaning.is_some() {
            return Ok(());
        }
        self.check_in_place()?;
        let segments = self.opened.log.segments();
        self.unclean = false;
        let mut largest = self.shared.options.segment_bytes;
        if self.is_full() || self.short_of_room {
            // There is no more space for a copy.
            largest = largest.min(self.reserve.left() / 2);
        }
        let Some(run) = clean::choose(&segments, largest) else { return Ok(()) };
        if self.is_full() || self.short_of_room {
            self.reserve.release(largest);
        }
        self.checkpoint()?;
        let swept = self.opened.state.swept;
        let stop = Arc::new(AtomicBool::new(false));
        let (token, files, folder) = (stop.clone(), self.folder.files().clone(), self.folder.log());
        let work = move || {
            let copy = clean::clean(&files, &run, swept, &folder, &token);
            Cleaned { run, copy, stop: token }
        };
        let worker = match self.background {
            Background::Threads => {
                // The thread keeps the channel open while it works.
                let commands = Sender::clone(&commands);
                let work = move || drop(commands.send(Command::Cleaned(Box::new(work()))));
                let thread = self.shared.env.spawn_thread("store-disk-clean", work);
                Worker::Thread(thread.map_err(|error| io_error(&error))?)
            }
            #[cfg(any(test, feature = "testing"))]
            Background::Stepped => Worker::Waiting(Box::new(work)),
        };
        self.cleaning = Some(Cleaning { stop, worker });
        Ok(())
    }

    fn stop_cleaning(&mut self) {
        let Some(Cleaning { stop, worker }) = self.cleaning.take() else { return };
        stop.store(true, Ordering::Relaxed);
        match worker {
            Worker::Thread(thread) => drop(thread.join()),
            #[cfg(any(test, feature = "testing"))]
            Worker::Waiting(_) => {}
            #[cfg(any(test, feature = "testing"))]
            Worker::Done(cleaned) => self.end_cleaning(*cleaned, false),
        }
    }

    #[cfg(any(test, feature = "testing"))]
    fn step(&mut self, step: Step) -> Option<Receiver<()>> {
        let clean = match step {
            Step::Hold(released) => return Some(released),
            Step::Clean => true,
            Step::Settle => false,
        };
        let is_paused = |writer: &Self| {
            writer.is_blocked() || writer.paused_until.is_some_and(|until| until > writer.shared.env.now())
        };
        self.maintain();
        while self.history.unswept(&self.opened.state) && !is_paused(self) {
            self.maintain();
        }
        let Cleaning { stop, worker } = self.cleaning.take_if(|_| clean)?;
        match worker {
            Worker::Waiting(work) => {
                let worker = Worker::Done(Box::new(work()));
                self.cleaning = Some(Cleaning { stop, worker });
            }
            Worker::Done(cleaned) => self.end_cleaning(*cleaned, true),
            worker @ Worker::Thread(_) => self.cleaning = Some(Cleaning { stop, worker }),
        }
        None
    }

    fn finish_cleaning(&mut self, cleaned: Cleaned) {
        let is_current = |cleaning: &mut Cleaning| Arc::ptr_eq(&cleaning.stop, &cleaned.stop);
        // The result of a cancelled cleaning is dropped.
        let in_time = self.cleaning.take_if(is_current).is_some();
        self.end_cleaning(cleaned, in_time);
    }

    /// Replaces the segments of `run` by their cleaned copy, unless it arrived too late.
    fn end_cleaning(&mut self, Cleaned { run, copy, .. }: Cleaned, in_time: bool) {
        if !in_time || self.is_blocked() {
            if let (Ok(Some(copy)), None) = (&copy, &self.cleaning) {
                copy.discard();
            }
            return;
        }
        let copy = match copy {
            Ok(Some(copy)) => copy,
            Ok(None) => return,
            Err(Error::Full { .. }) if !self.short_of_room => {
                // Retry with smaller runs, from the reserve.
                self.short_of_room = true;
                if let Err(error) = self.clean() {
                    self.pause("compaction failed", &error);
                }
                return;
            }
            Err(error) => return self.pause("could not clean segments", &error),
        };
        self.short_of_room = false;
        if let Err(error) = self.check_in_place() {
            return self.pause("could not clean segments", &error);
        }
        // Records that died since they were copied.
        copy.set_dead(clean::died_since(&run));
        if let Err(error) = self.opened.log.replace(&run.segments, copy) {
            // Nothing was changed.
            return self.pause("could not replace segments by their cleaned copy", &io_error(&error));
        }
        self.opened.heads.set_log(self.opened.log.segments());
        // Closing the last handle of a large deleted file blocks, so it is done elsewhere.
        let _ = self.shared.env.spawn_thread("store-disk-close", || drop(run));
        if let Err(error) = self.clean() {
            self.pause("compaction failed", &error);
        }
    }

    /// Returns the senders of further close requests, to notify when the folder is unlocked.
    fn close(mut self) -> Vec<oneshot::Sender<Result<()>>> {
        self.shared.feed.close();
        self.stop_cleaning();
        self.shared.view.store(None);
        // Cutting the log may have failed when the write did, and succeed now.
        if let (Some(_), Err(error)) = (&self.failed, self.opened.log.take_back()) {
            tracing::warn!(folder = %self.folder.path().display(), %error, "a failed write may still be on disk");
        }
        let in_place = self.check_in_place();
        if in_place.is_ok()
            && self.failed.is_none()
            && !self.folder.acknowledged().is_ok_and(|acknowledged| !acknowledged.renew)
        {
            self.folder.renew_watermark(self.opened.state.revision);
        }
        let checkpointed = in_place.and_then(|()| self.checkpoint());
        let mut closing = Vec::new();
        while let Ok(command) = self.queue.try_recv() {
            match command {
                Command::Write(write) => drop(write.reply.send(Err(Error::Closed))),
                Command::Compact(_, reply) => drop(reply.send(Err(Error::Closed))),
                Command::Cleaned(..) | Command::Recover => {}
                #[cfg(any(test, feature = "testing"))]
                Command::Step(_, reply) => drop(reply.send(Err(Error::Closed))),
                Command::Close(reply) => closing.push(reply),
            }
        }
        if let Err(error) = checkpointed {
            // Nothing is lost, but opening the store takes longer.
            tracing::warn!(folder = %self.folder.path().display(), %error, "could not write the checkpoint");
        }
        closing
    }
}

/// Spins for a while, yielding to other threads.
struct Spin<'a> {
    env: &'a Env,
    until: Instant,
    /// Maximum number of yields, so that a stopped test clock cannot keep this thread spinning forever.
    left: u128,
}

impl<'a> Spin<'a> {
    fn new(env: &'a Env, time: Duration) -> Self {
        // A yield takes some tenths of a microsecond if no other thread is runnable.
        Self { env, until: env.now() + time, left: 10 * time.as_micros() }
    }

    /// Yields once. Returns false when the time is over.
    fn yield_once(&mut self) -> bool {
        if self.left == 0 || self.env.now() >= self.until {
            return false;
        }
        self.left -= 1;
        std::thread::yield_now();
        true
    }
}

fn refuse(writes: Vec<Write>, error: &Error) {
    for write in writes {
        let _ = write.reply.send(Err(error.clone()));
    }
}
