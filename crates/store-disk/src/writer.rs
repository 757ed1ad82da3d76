//! The one thread that writes: group commit, compaction, and getting back on its feet after a failure.
//!
//! What is queued goes into one batch: preconditions are judged on the state that includes the batch's
//! earlier writes, the batch goes into the log and is synced once, and only then published: the view, then the events, then
//! the acknowledgements.

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

/// A batch is closed at so many steps, or so many bytes.
const BATCH_STEPS: usize = 1024;
const BATCH_BYTES: usize = 4 << 20;

/// A sync costs about the same for one write as for a hundred. So those who have just been answered, and are likely
/// to write again, get this long to share the next one; a quarter of what a sync takes, within these bounds.
const GATHER: RangeInclusive<Duration> = Duration::from_micros(20)..=Duration::from_millis(1);

/// So long the thread stays awake for the next write: waking it up would take about as long.
const STAY_AWAKE: Duration = Duration::from_micros(50);

/// How long to wait between two attempts to recover from a failure.
const RECOVERY_PAUSE: Duration = Duration::from_millis(100);

/// So many revisions are swept before that is written down. After a crash, they are swept again.
const CHECKPOINT: u64 = 1 << 16;

/// Maximum number of deleted keys that are kept in memory for the next checkpoint.
const MAX_DELETED: usize = 8192;

/// Deleted keys that are forgotten per lock acquisition; readers wait for one batch.
const FORGOTTEN_AT_ONCE: usize = 512;

/// How long to leave the history alone after compacting it has failed.
const COMPACTION_PAUSE: Duration = Duration::from_secs(30);

/// What the writing thread is asked to do.
pub(crate) enum Command {
    Write(Write),
    Compact(Revision, oneshot::Sender<Result<()>>),
    /// Segments of the log have been cleaned.
    Cleaned(Box<Cleaned>),
    /// Somebody wants to know whether writes work again.
    Recover,
    /// A test decides what happens when: see [`Background::Stepped`].
    #[cfg(any(test, feature = "testing"))]
    Step(Step, oneshot::Sender<Result<()>>),
    Close(oneshot::Sender<Result<()>>),
}

/// What a test lets the writing thread do.
#[cfg(any(test, feature = "testing"))]
pub(crate) enum Step {
    /// All sweeping that is due.
    Settle,
    /// The same, and the next step of cleaning segments: copying them, or putting the copy into their place.
    Clean,
    /// Nothing, until the other end of the channel is dropped.
    Hold(Receiver<()>),
}

/// How segments are cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Background {
    /// By a thread.
    Threads,
    /// By the writing thread, at [`Command::Step`]: for tests that decide the order of everything.
    #[cfg(any(test, feature = "testing"))]
    Stepped,
}

pub(crate) struct Write {
    pub(crate) txn: Txn,
    pub(crate) reply: oneshot::Sender<Result<Revision>>,
    /// Its place in the queue, free again when the write is answered.
    pub(crate) permit: OwnedSemaphorePermit,
    /// A simulated clock waits for it. The last field: dropped when the write is answered.
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
    /// The records of the batch that is being put together.
    frame: Frame,
    history: History,
    /// Behind `folder`, which goes first: who finds nobody here any more can lock the folder.
    queue: Receiver<Command>,
    /// The other end of `queue`, as long as somebody has the store.
    commands: Weak<Sender<Command>>,
    /// The cleaning of segments, if that is under way.
    cleaning: Option<Cleaning>,
    /// Why nothing can be written, if that is so.
    failed: Option<Failure>,
    /// How many records were written since the history was swept last.
    unswept: usize,
    /// Deleted keys that have been swept, but not in the last checkpoint. They are kept until then: a record that creates such a key
    /// again has to point to its deletion, since after a crash the history begins where the last checkpoint says.
    deleted: Vec<(Bytes, Pointer)>,
    /// Compaction rests until then.
    resting: Option<Instant>,
    /// Whether segments could not be cleaned: that is tried again, whatever else happens.
    unclean: bool,
    /// Whether that was for lack of room.
    short_of_room: bool,
    /// A moving average of what a sync takes.
    sync_time: Duration,
    /// How many writes the next batch is likely to have, if it waits for them.
    likely_writes: usize,
}

/// Why nothing can be written.
struct Failure {
    error: Error,
    /// When recovery was tried last. `None`: there is none, since the store's folder is not what the path shows any more.
    tried: Option<Instant>,
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

/// What became of some segments.
pub(crate) struct Cleaned {
    run: Run,
    copy: Result<Option<Segment>>,
    /// Tells one cleaning from another.
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
        let trouble = opened.trouble.as_ref().map(io_error);
        let mut reserve =
            Reserve::open(folder.files().clone(), &folder.reserve(), shared.options.reserve_bytes);
        if let Err(error) = reserve.fill() {
            tracing::warn!(folder = %folder.path().display(), %error, "no room can be kept for a full disk");
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
            resting: None,
            unclean: false,
            short_of_room: false,
            sync_time: Duration::ZERO,
            likely_writes: 1,
        };
        if let Some(error) = trouble {
            tracing::error!(folder = %writer.folder.path().display(), %error, "the store is open, but cannot be written to");
            writer.fail(error, false);
        }
        writer
    }

    /// Works until the store is closed, or nobody has it any more.
    pub(crate) fn run(mut self) {
        let reply = loop {
            match self.next_command() {
                Ok(Command::Write(first)) => {
                    if let Some(rest) = self.gather_and_write(first) {
                        match self.other_command(rest) {
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
            self.keep_house();
        };
        for reply in self.close().into_iter().chain(reply) {
            let _ = reply.send(Ok(()));
        }
    }

    /// The next command, or a time-out when there is housekeeping to do.
    fn next_command(&self) -> Result<Command, RecvTimeoutError> {
        if let Some(command) = self.imminent_command() {
            return Ok(command);
        }
        let now = self.shared.env.now();
        let due = match self.resting {
            // The next write sees to it.
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

    fn turns(&self, time: Duration) -> Turns<'_> {
        let time = match self.background {
            Background::Threads => time,
            // A test's clock stands still, and nothing else comes.
            #[cfg(any(test, feature = "testing"))]
            Background::Stepped => Duration::ZERO,
        };
        Turns::new(&self.shared.env, time)
    }

    /// A command that comes very soon.
    fn imminent_command(&self) -> Option<Command> {
        let mut turns = self.turns(STAY_AWAKE);
        loop {
            match self.queue.try_recv() {
                Ok(command) => return Some(command),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if turns.give_way() => {}
                Err(TryRecvError::Empty) => return None,
            }
        }
    }

    /// Writes `first` together with what is queued behind it. Returns a command that is no write.
    fn gather_and_write(&mut self, first: Write) -> Option<Command> {
        let (mut steps, mut bytes) = (first.txn.ops().len(), first.txn.size());
        let mut writes = vec![first];
        let mut other = None;
        let patience = (self.sync_time / 4).clamp(*GATHER.start(), *GATHER.end());
        let mut turns = self.turns(patience);
        while steps < BATCH_STEPS && bytes < BATCH_BYTES {
            let next = match self.queue.try_recv() {
                Ok(command) => command,
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) if writes.len() >= self.likely_writes => break,
                Err(TryRecvError::Empty) if turns.give_way() => continue,
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
        // Follows the number of writers up at once, and down slowly.
        self.likely_writes = writes.len().max(self.likely_writes - self.likely_writes.div_ceil(8)).max(1);
        self.write(writes);
        other
    }

    /// Carries out a command that is no write; returns whom to tell that the store is closed.
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
            // On a full disk, what gives room back goes through.
            let frugal =
                writes.extract_if(.., |write| self.is_full() && self.is_frugal(&write.txn)).collect();
            refuse(std::mem::replace(&mut writes, frugal), &error);
            from_reserve = true;
        }
        let refused = self.commit(writes, from_reserve);
        self.commit(refused, true);
    }

    /// Writes a batch. Returns what failed for lack of room, and may use the reserve.
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
                    tracing::error!(folder = %self.folder.path().display(), %error, "a write to disk failed");
                    let taken_back = self.opened.log.take_back();
                    let mut answer = self.fail_by(&error);
                    if taken_back.is_err() {
                        // It may be on disk, whole. If the next who opens the store finds it there, it has happened.
                        answer = Error::outcome_unknown(format!("I/O error: {error}"));
                    }
                    // Also what was refused was judged on writes that did not happen.
                    for (_, given) in &mut answers {
                        *given = Err(answer.clone());
                    }
                    if taken_back.is_ok() && !from_reserve && self.is_full() {
                        let again = answers.extract_if(.., |(write, _)| {
                            !write.txn.ops().is_empty() && self.is_frugal(&write.txn)
                        });
                        refused = again.map(|(write, _)| write).collect();
                    }
                }
            }
        }
        for (write, answer) in answers {
            drop(write.permit);
            // Whoever does not wait any more has given up on the answer, not on the write.
            let _ = write.reply.send(answer);
        }
        refused
    }

    /// Writes a batch for which there is no room but the reserve.
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
    fn is_frugal(&self, txn: &Txn) -> bool {
        self.reserve.serves(txn, &self.opened.heads)
    }

    /// Whether nothing can be written because the disk is full.
    fn is_full(&self) -> bool {
        matches!(&self.failed, Some(Failure { error: Error::Full { .. }, tried: Some(_) }))
    }

    /// Whether nothing can be written, for another reason.
    fn is_blocked(&self) -> bool {
        self.failed.is_some() && !self.is_full()
    }

    fn publish(&mut self, changes: Vec<(Arc<Change>, bool)>) {
        if let Err(error) = self.watermark.raise(self.opened.state.revision) {
            tracing::warn!(path = %self.watermark.path().display(), %error, "could not note what was acknowledged");
        }
        let view = Arc::new(self.opened.view());
        self.shared.feed.publish_with(changes, || self.shared.view.store(Some(view)));
    }

    fn fail_by(&mut self, error: &io::Error) -> Error {
        self.fail(io_error(error), is_gone(error))
    }

    /// `for_good`: until the store is opened again.
    fn fail(&mut self, error: Error, for_good: bool) -> Error {
        *self.shared.trouble.lock() = Some(error.clone());
        let tried = (!for_good).then(|| self.shared.env.now());
        self.failed = Some(Failure { error: error.clone(), tried });
        error
    }

    /// Fails if the store's folder is not what the path shows any more, and then for ever: whatever is there now, nothing of it
    /// may be touched.
    fn check_in_place(&mut self) -> Result<()> {
        match (self.opened.log.check_in_place(), &self.failed) {
            (_, Some(Failure { error, tried: None })) => Err(error.clone()),
            (Err(error), _) if is_gone(&error) => {
                tracing::error!(folder = %self.folder.path().display(), %error, "the store is gone");
                Err(self.fail_by(&error))
            }
            (Err(error), _) => Err(io_error(&error)),
            (Ok(()), _) => Ok(()),
        }
    }

    /// Whether writes can be made; after a failure, tries to bring that about: what was never acknowledged is removed from the
    /// log.
    fn ready(&mut self) -> Result<()> {
        let Some(Failure { error, tried }) = &self.failed else { return Ok(()) };
        let now = self.shared.env.now();
        if tried.is_none_or(|tried| now - tried < RECOVERY_PAUSE) {
            return Err(error.clone());
        }
        // Whatever is in the way of it goes first.
        let log = &mut self.opened.log;
        let mended = log
            .check_in_place()
            .and_then(|()| log.prepare())
            .and_then(|()| self.reserve.fill())
            .and_then(|()| self.folder.probe());
        if let Err(error) = mended {
            return Err(self.fail_by(&error));
        }
        tracing::info!(folder = %self.folder.path().display(), "writing to disk works again");
        self.failed = None;
        *self.shared.trouble.lock() = None;
        Ok(())
    }

    /// Compacts because somebody asked for it.
    fn compact(&mut self, revision: Revision) -> Result<()> {
        let state = self.opened.state;
        if revision > state.revision {
            return Err(Error::FutureRevision { requested: revision, current: state.revision });
        }
        // Who asks for it can count on it, also if it is so already, but could not be written down yet.
        if revision > self.opened.written_down.0 {
            if let (Err(error), true) = (self.ready(), self.is_blocked()) {
                return Err(error);
            }
            if revision > state.oldest {
                self.sweep(revision)?;
            }
            self.stop_cleaning();
            self.checkpoint()?;
            if let Err(error) = self.clean() {
                self.rest("segments cannot be cleaned", &error);
            }
        }
        Ok(())
    }

    /// Keeps the history to its bounds, a little at a time.
    fn keep_house(&mut self) {
        let now = self.shared.env.now();
        let state = self.opened.state;
        self.history.note(state.revision, now);
        if self.is_blocked() || self.resting.is_some_and(|until| until > now) {
            return;
        }
        self.resting = None;
        let oldest = self.history.bound(&state, now).max(state.oldest);
        if self.unclean || oldest > state.oldest || self.history.unswept(&state) {
            let done = self.sweep(oldest).and_then(|()| {
                if self.opened.state.swept.get() - self.opened.written_down.1.get() >= CHECKPOINT
                    || self.deleted.len() >= MAX_DELETED
                {
                    self.checkpoint()?;
                }
                self.clean()
            });
            if let Err(error) = done {
                self.rest("compaction failed", &error);
            }
        }
    }

    /// Leaves the history alone for a while.
    fn rest(&mut self, what: &str, error: &Error) {
        tracing::warn!(folder = %self.folder.path().display(), %error, "{what}");
        self.unclean = true;
        self.resting = Some(self.shared.env.now() + COMPACTION_PAUSE);
    }

    /// Moves the beginning of the history to `oldest` and finds some of what is superfluous before it.
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

    /// Writes down how far the history is compacted and what is dead, unless segments are being cleaned: what is left out of
    /// those has to be what was written down last.
    fn checkpoint(&mut self) -> Result<()> {
        if self.cleaning.is_some() {
            return Ok(());
        }
        let opened = &mut self.opened;
        let (oldest, swept) = (opened.state.oldest, opened.state.swept);
        if opened.written_down != (oldest, swept) {
            opened.log.check_in_place().map_err(|error| io_error(&error))?;
            let checkpoint = Checkpoint::new(oldest, swept, &opened.log.segments());
            loop {
                match checkpoint.write(&**self.folder.files(), &self.folder.checkpoint(), &self.folder.log())
                {
                    Ok(()) => break,
                    // It leads to room.
                    Err(error) if is_full(&error) && self.reserve.release(0) => {}
                    Err(error) => return Err(io_error(&error)),
                }
            }
            opened.written_down = (oldest, swept);
        }
        for some in std::mem::take(&mut self.deleted).chunks(FORGOTTEN_AT_ONCE) {
            self.opened.heads.forget(some);
        }
        Ok(())
    }

    /// Begins to clean segments, if that is worth it.
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
            // There is no more room for a copy than this.
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
                // While it works, this is one more who has the store.
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
        let is_resting = |writer: &Self| {
            writer.is_blocked() || writer.resting.is_some_and(|until| until > writer.shared.env.now())
        };
        self.keep_house();
        while self.history.unswept(&self.opened.state) && !is_resting(self) {
            self.keep_house();
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
        // One that was stopped has come too late.
        let in_time = self.cleaning.take_if(is_current).is_some();
        self.end_cleaning(cleaned, in_time);
    }

    /// Puts a cleaned segment into its place, if it has come in time.
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
                // Less at a time, in what is kept for this.
                self.short_of_room = true;
                if let Err(error) = self.clean() {
                    self.rest("compaction failed", &error);
                }
                return;
            }
            Err(error) => return self.rest("segments could not be cleaned", &error),
        };
        self.short_of_room = false;
        if let Err(error) = self.check_in_place() {
            return self.rest("segments could not be cleaned", &error);
        }
        // What died since it was copied is in it still.
        copy.set_dead(clean::died_since(&run));
        if let Err(error) = self.opened.log.replace(&run.segments, copy) {
            // Nothing has changed.
            return self.rest("cleaned segments could not be put into place", &io_error(&error));
        }
        self.opened.heads.show(self.opened.log.segments());
        // The last one to close a large file that is gone already has to wait for it.
        let _ = self.shared.env.spawn_thread("store-disk-close", || drop(run));
        if let Err(error) = self.clean() {
            self.rest("compaction failed", &error);
        }
    }

    /// Returns who else is to be told when all is done: whoever is told can open the store again.
    fn close(mut self) -> Vec<oneshot::Sender<Result<()>>> {
        self.shared.feed.close();
        self.stop_cleaning();
        self.shared.view.store(None);
        // Where that was not possible when the write failed, it may be now.
        if let (Some(_), Err(error)) = (&self.failed, self.opened.log.take_back()) {
            tracing::warn!(folder = %self.folder.path().display(), %error, "a write that failed may be on disk");
        }
        let in_place = self.check_in_place();
        if in_place.is_ok()
            && self.failed.is_none()
            && !self.folder.acknowledged().is_ok_and(|acknowledged| !acknowledged.renew)
        {
            self.folder.renew_watermark(self.opened.state.revision);
        }
        let written_down = in_place.and_then(|()| self.checkpoint());
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
        if let Err(error) = written_down {
            // The log has it all; it takes a little longer to open.
            tracing::warn!(folder = %self.folder.path().display(), %error, "could not note how far the history is compacted");
        }
        closing
    }
}

/// Letting other threads go first for a while, without going to sleep.
struct Turns<'a> {
    env: &'a Env,
    until: Instant,
    /// A clock that a test holds still must not keep this thread awake for ever.
    left: u128,
}

impl<'a> Turns<'a> {
    fn new(env: &'a Env, time: Duration) -> Self {
        // A turn takes some tenths of a microsecond if nobody else wants it.
        Self { env, until: env.now() + time, left: 10 * time.as_micros() }
    }

    /// Gives up one turn; false when the time is over.
    fn give_way(&mut self) -> bool {
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
