//! The one thread that writes: group commit, compaction, and getting back on its feet after a failure.
//!
//! What is queued goes into one batch: preconditions are judged on the state that includes the batch's
//! earlier writes, the batch goes into the log and is synced once, and only then published: the view, then the events, then
//! the acknowledgements.

use std::{
    ops::RangeInclusive,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError},
    },
    thread::JoinHandle,
    time::Duration,
};

use k1s_env::{Env, Instant, OutsideWork};
use k1s_store::{Change, Error, Result, Revision, Txn};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{
    batch::Batch,
    checkpoint::Checkpoint,
    error::io_error,
    folder::{Folder, Watermark},
    history::History,
    log::{
        Frame, Segment,
        clean::{self, Run},
    },
    opened::Opened,
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

/// How long to leave the history alone after compacting it has failed.
const COMPACTION_PAUSE: Duration = Duration::from_secs(30);

/// What the writing thread is asked to do.
pub(crate) enum Command {
    Write(Write),
    Compact(Revision, oneshot::Sender<Result<()>>),
    /// Segments of the log have been cleaned.
    Cleaned(Cleaned),
    Close(oneshot::Sender<Result<()>>),
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
    folder: Folder,
    watermark: Watermark,
    opened: Opened,
    /// The records of the batch that is being put together.
    frame: Frame,
    history: History,
    /// Behind `folder`, which goes first: who finds nobody here any more can lock the folder.
    queue: Receiver<Command>,
    /// The other end of `queue`, as long as somebody has the store.
    commands: Weak<Sender<Command>>,
    /// The thread that cleans segments, if it is at work.
    cleaning: Option<Cleaning>,
    /// Why the last batch failed, and when recovery was tried last.
    failed: Option<(Error, Instant)>,
    /// How many records were written since the history was swept last.
    unswept: usize,
    /// Compaction rests until then.
    resting: Option<Instant>,
    /// A moving average of what a sync takes.
    sync_time: Duration,
    /// How many writes the next batch is likely to have, if it waits for them.
    likely_writes: usize,
}

struct Cleaning {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
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
        folder: Folder,
        watermark: Watermark,
        opened: Opened,
        queue: Receiver<Command>,
        commands: Weak<Sender<Command>>,
    ) -> Self {
        let history = History::new(&shared.options, shared.env.now(), opened.state);
        let trouble = opened.trouble.as_ref().map(io_error);
        let mut writer = Self {
            shared,
            folder,
            watermark,
            opened,
            frame: Frame::default(),
            history,
            queue,
            commands,
            cleaning: None,
            failed: None,
            unswept: 0,
            resting: None,
            sync_time: Duration::ZERO,
            likely_writes: 1,
        };
        if let Some(error) = trouble {
            tracing::error!(folder = %writer.folder.path().display(), %error, "the store is open, but cannot be written to");
            writer.fail(error);
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
        let due = match (&self.failed, self.resting) {
            // The next write sees to it.
            (Some(_), _) => None,
            (None, Some(until)) if until > now => Some(until - now),
            (None, _) => self.history.due(&self.opened.state, now),
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

    /// A command that comes very soon.
    fn imminent_command(&self) -> Option<Command> {
        let mut turns = Turns::new(&self.shared.env, STAY_AWAKE);
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
        let mut turns = Turns::new(&self.shared.env, patience);
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
            Command::Cleaned(cleaned) => self.finish_cleaning(cleaned),
            Command::Write(write) => self.write(vec![write]),
        }
        None
    }

    fn write(&mut self, writes: Vec<Write>) {
        if let Err(error) = self.ready() {
            refuse(writes, &error);
            return;
        }
        let opened = &mut self.opened;
        let view = Arc::new(opened.view());
        let mut batch = Batch::new(&mut self.frame, view, opened.state, writes.len());
        for write in writes {
            batch.add(&self.shared, write);
        }
        let Batch { state, heads, changes, mut answers, .. } = batch;
        if !changes.is_empty() {
            let began = self.shared.env.now();
            match opened.log.append(&mut self.frame) {
                Ok(()) => {
                    self.sync_time = (self.sync_time * 7 + (self.shared.env.now() - began)) / 8;
                    opened.heads.note(&heads, opened.log.segments(), state);
                    opened.state = state;
                    self.unswept += heads.len();
                    self.publish(changes);
                }
                Err(error) => {
                    tracing::error!(folder = %self.folder.path().display(), %error, "a write to disk failed");
                    let taken_back = opened.log.take_back();
                    let mut answer = self.fail(io_error(&error));
                    if taken_back.is_err() {
                        // It may be on disk, whole. If the next who opens the store finds it there, it has happened.
                        answer = Error::outcome_unknown(format!("I/O error: {error}"));
                    }
                    // Also what was refused was judged on writes that did not happen.
                    for (_, given) in &mut answers {
                        *given = Err(answer.clone());
                    }
                }
            }
        }
        for (write, answer) in answers {
            drop(write.permit);
            // Whoever does not wait any more has given up on the answer, not on the write.
            let _ = write.reply.send(answer);
        }
    }

    fn publish(&mut self, changes: Vec<(Arc<Change>, bool)>) {
        if let Err(error) = self.watermark.raise(self.opened.state.revision) {
            tracing::warn!(path = %self.watermark.path().display(), %error, "could not note what was acknowledged");
        }
        let view = Arc::new(self.opened.view());
        self.shared.feed.publish_with(changes, || self.shared.view.store(Some(view)));
    }

    fn fail(&mut self, error: Error) -> Error {
        *self.shared.trouble.lock() = Some(error.clone());
        self.failed = Some((error.clone(), self.shared.env.now()));
        error
    }

    /// Whether writes can be made; after a failure, tries to bring that about: what was never acknowledged is removed from the
    /// log.
    fn ready(&mut self) -> Result<()> {
        let Some((error, tried)) = &mut self.failed else { return Ok(()) };
        let now = self.shared.env.now();
        if now - *tried < RECOVERY_PAUSE {
            return Err(error.clone());
        }
        // Whatever is in the way of it goes first.
        let mended = self.opened.log.prepare().and_then(|()| self.folder.probe());
        if let Err(error) = mended {
            return Err(self.fail(io_error(&error)));
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
            self.ready()?;
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
        if self.failed.is_some() || self.resting.is_some_and(|until| until > now) {
            return;
        }
        let oldest = self.history.bound(&state, now).max(state.oldest);
        if oldest > state.oldest || self.history.unswept(&state) {
            let done = self.sweep(oldest).and_then(|()| {
                if self.opened.state.swept.get() - self.opened.written_down.1.get() >= CHECKPOINT {
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
        self.resting = Some(self.shared.env.now() + COMPACTION_PAUSE);
    }

    /// Moves the beginning of the history to `oldest` and finds some of what is superfluous before it.
    fn sweep(&mut self, oldest: Revision) -> Result<()> {
        let opened = &mut self.opened;
        let written = std::mem::take(&mut self.unswept);
        let swept = History::sweep(&opened.log.segments(), opened.state, oldest, written)?;
        opened.state = swept.state;
        opened.heads.sweep(&swept.dead, &swept.deleted, swept.state);
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
            let checkpoint = Checkpoint::new(oldest, swept, &opened.log.segments());
            checkpoint
                .write(&self.folder.checkpoint(), &self.folder.log())
                .map_err(|error| io_error(&error))?;
            opened.written_down = (oldest, swept);
        }
        Ok(())
    }

    /// Begins to clean segments, if that is worth it.
    fn clean(&mut self) -> Result<()> {
        let Some(commands) = self.commands.upgrade() else { return Ok(()) };
        if self.cleaning.is_some() {
            return Ok(());
        }
        let segments = self.opened.log.segments();
        let Some(run) = clean::choose(&segments, self.shared.options.segment_bytes) else { return Ok(()) };
        self.checkpoint()?;
        let swept = self.opened.state.swept;
        let stop = Arc::new(AtomicBool::new(false));
        // While it works, this is one more who has the store.
        let (token, folder, commands) = (stop.clone(), self.folder.log(), Sender::clone(&commands));
        let work = move || {
            let copy = clean::clean(&run, swept, &folder, &token);
            let _ = commands.send(Command::Cleaned(Cleaned { run, copy, stop: token }));
        };
        let thread =
            self.shared.env.spawn_thread("store-disk-clean", work).map_err(|error| io_error(&error))?;
        self.cleaning = Some(Cleaning { stop, thread });
        Ok(())
    }

    fn stop_cleaning(&mut self) {
        if let Some(Cleaning { stop, thread }) = self.cleaning.take() {
            stop.store(true, Ordering::Relaxed);
            let _ = thread.join();
        }
    }

    /// Puts a cleaned segment into its place.
    fn finish_cleaning(&mut self, Cleaned { run, copy, stop }: Cleaned) {
        // One that was stopped has come too late.
        if self.cleaning.take_if(|cleaning| Arc::ptr_eq(&cleaning.stop, &stop)).is_none()
            || self.failed.is_some()
        {
            if let (Ok(Some(copy)), None) = (&copy, &self.cleaning) {
                copy.discard();
            }
            return;
        }
        let copy = match copy {
            Ok(Some(copy)) => copy,
            Ok(None) => return,
            Err(error) => return self.rest("segments could not be cleaned", &error),
        };
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
        let written_down = self.checkpoint();
        let mut closing = Vec::new();
        while let Ok(command) = self.queue.try_recv() {
            match command {
                Command::Write(write) => drop(write.reply.send(Err(Error::Closed))),
                Command::Compact(_, reply) => drop(reply.send(Err(Error::Closed))),
                Command::Cleaned(..) => {}
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
