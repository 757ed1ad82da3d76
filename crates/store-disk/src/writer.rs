//! The one thread that writes: group commit, compaction, and getting back on its feet after a failure.
//!
//! What is queued goes into one batch: preconditions are judged on the state that includes the batch's
//! earlier writes, the batch goes into the log and is synced once, and only then published: the view, then the events, then
//! the acknowledgements. The engine hears of it later.

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

use bytes::Bytes;
use fjall::{OwnedWriteBatch, PersistMode};
use k1s_env::{Env, Instant};
use k1s_store::{Change, Error, Result, Revision, Txn};
use smallvec::SmallVec;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{
    batch::Batch,
    error::{OpenError, engine_error, io_error, no_panic},
    folder::{Folder, Watermark},
    heads::Hint,
    history::{History, sweep_until},
    log::{
        Frame, Segment,
        clean::{self, Run},
    },
    opened::Opened,
    record::Dead,
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

/// For each step of a transaction.
pub(crate) type Hints = SmallVec<[Option<Hint>; 1]>;

pub(crate) struct Write {
    pub(crate) txn: Txn,
    /// What is known of the keys in it, if anything is.
    pub(crate) hints: Hints,
    pub(crate) reply: oneshot::Sender<Result<Revision>>,
    /// Its place in the queue, free again when the write is answered.
    pub(crate) permit: OwnedSemaphorePermit,
}

pub(crate) struct Writer {
    shared: Arc<Shared>,
    folder: Folder,
    watermark: Watermark,
    /// `None` only while the engine is being reopened, or if that failed.
    opened: Option<Opened>,
    /// The records of the batch that is being put together.
    frame: Frame,
    history: History,
    queue: Receiver<Command>,
    /// The other end of `queue`, as long as somebody has the store.
    commands: Weak<Sender<Command>>,
    /// The thread that cleans segments, if it is at work.
    cleaning: Option<Cleaning>,
    /// Why the last batch failed, and when recovery was tried last.
    failed: Option<(Error, Instant)>,
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
        Self {
            shared,
            folder,
            watermark,
            opened: Some(opened),
            frame: Frame::default(),
            history,
            queue,
            commands,
            cleaning: None,
            failed: None,
            resting: None,
            sync_time: Duration::ZERO,
            likely_writes: 1,
        }
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
        let closed = self.close();
        if let Some(reply) = reply {
            let _ = reply.send(closed);
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
            (None, _) => self.opened.as_ref().and_then(|opened| self.history.due(&opened.state, now)),
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
        let Some((opened, view)) = self.opened.as_mut().zip(self.shared.view.load_full()) else {
            refuse(writes, &Error::Closed);
            return;
        };
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
                    opened.recent.note(heads, &opened.log.segments(), state);
                    opened.state = state;
                    self.publish(changes);
                }
                Err(error) => {
                    tracing::error!(folder = %self.folder.path().display(), %error, "a write to disk failed");
                    let error = self.fail(io_error(&error));
                    // Also what was refused was judged on writes that did not happen.
                    for (_, answer) in &mut answers {
                        *answer = Err(error.clone());
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
        let Some(opened) = &self.opened else { return };
        if let Err(error) = self.watermark.raise(opened.state.revision) {
            tracing::warn!(path = %self.watermark.path().display(), %error, "could not note what was acknowledged");
        }
        let view = Arc::new(opened.view());
        self.shared.feed.publish_with(changes, || self.shared.view.store(Some(view)));
    }

    /// Tells the engine of the heads of all records up to `revision`.
    fn apply_heads(&mut self, revision: Revision) -> Result<()> {
        let Some(opened) = &mut self.opened else { return Err(Error::Closed) };
        let (writes, keys) = opened.recent.take(revision);
        self.commit(writes, PersistMode::Buffer)?;
        self.show(keys, Some(revision));
        Ok(())
    }

    /// Writes a batch to the engine, or notes that it needs help.
    fn commit(&mut self, writes: OwnedWriteBatch, mode: PersistMode) -> Result<()> {
        let Some(opened) = &self.opened else { return Err(Error::Closed) };
        // The engine's own thread may be behind, or have failed since the last time. Wait for it here,
        // where that can be seen, rather than inside of the engine, which would wait for ever.
        let working = loop {
            match opened.engine().working() {
                Ok(()) if opened.engine().behind() => std::thread::park_timeout(Duration::from_millis(1)),
                working => break working,
            }
        };
        let commit = || writes.durability(Some(mode)).commit().map_err(|error| engine_error(&error));
        let committed = working.and_then(|()| no_panic(commit));
        if let Err(error) = committed {
            tracing::error!(folder = %self.folder.path().display(), %error, "a write to the engine failed");
            return Err(self.fail(error));
        }
        Ok(())
    }

    /// Lets readers see what the engine, which has the heads of `keys` and all up to `applied`, and the log have now.
    fn show(&mut self, keys: Vec<Bytes>, applied: Option<Revision>) {
        if let Some(opened) = &mut self.opened {
            opened.recent.show(keys, applied, &opened.log.segments(), opened.state);
            self.shared.view.store(Some(Arc::new(opened.view())));
        }
    }

    fn fail(&mut self, error: Error) -> Error {
        *self.shared.trouble.lock() = Some(error.clone());
        self.failed = Some((error.clone(), self.shared.env.now()));
        error
    }

    /// Whether writes can be made; after a failure, tries to bring that about.
    fn ready(&mut self) -> Result<()> {
        let Some((error, tried)) = &mut self.failed else { return Ok(()) };
        let now = self.shared.env.now();
        if now - *tried < RECOVERY_PAUSE && self.opened.is_some() {
            return Err(error.clone());
        }
        *tried = now;
        if let Err(full) = self.folder.probe() {
            return Err(self.fail(io_error(&full)));
        }
        match self.reopen() {
            Ok(()) => {
                tracing::info!(folder = %self.folder.path().display(), "writing to disk works again");
                self.failed = None;
                *self.shared.trouble.lock() = None;
                Ok(())
            }
            Err(error) => {
                tracing::error!(folder = %self.folder.path().display(), %error, "the store could not be reopened");
                Err(self.fail(error))
            }
        }
    }

    /// Removes from the log what was never acknowledged, and opens the engine anew.
    fn reopen(&mut self) -> Result<()> {
        self.stop_cleaning();
        let shared = self.shared.clone();
        let _gate = shared.gate.write();
        shared.view.store(None);
        let acknowledged = self.watermark.revision();
        let opened = match self.opened.take() {
            Some(mut before) => {
                if let Err(error) = before.log.prepare() {
                    shared.view.store(Some(Arc::new(before.view())));
                    self.opened = Some(before);
                    return Err(io_error(&error));
                }
                let Opened { log, recent, .. } = before;
                // With it, the engine is closed: nobody reads now.
                drop(recent);
                Opened::with_log(log, &self.folder, &shared.options)
            }
            None => Opened::open(&self.folder, &shared.options),
        };
        let opened = opened.map_err(OpenError::into_store_error)?;
        if opened.state.revision != acknowledged {
            return Err(Error::corrupt(format!(
                "after a failed write, the store is at revision {} instead of {acknowledged}",
                opened.state.revision
            )));
        }
        shared.view.store(Some(Arc::new(opened.view())));
        self.opened = Some(opened);
        Ok(())
    }

    /// Compacts because somebody asked for it.
    fn compact(&mut self, revision: Revision) -> Result<()> {
        if self.opened.is_none() {
            self.ready()?;
        }
        let Some(opened) = &self.opened else { return Err(Error::Closed) };
        if revision > opened.state.revision {
            return Err(Error::FutureRevision { requested: revision, current: opened.state.revision });
        }
        if revision > opened.state.oldest {
            self.ready()?;
            self.sweep(revision, PersistMode::SyncData)?;
        }
        Ok(())
    }

    /// Tells the engine what is new, and keeps the history to its bounds, a little at a time.
    fn keep_house(&mut self) {
        let Some(opened) = &self.opened else { return };
        let now = self.shared.env.now();
        let state = opened.state;
        self.history.note(state.revision, now);
        if self.failed.is_some() {
            return;
        }
        while let Some(revision) = self.opened.as_ref().and_then(|opened| opened.recent.due()) {
            if self.apply_heads(revision).is_err() {
                return;
            }
        }
        if self.resting.is_some_and(|until| until > now) {
            return;
        }
        let oldest = self.history.bound(&state, now).max(state.oldest);
        if oldest > state.oldest || self.history.unswept(&state) {
            match self.sweep(oldest, PersistMode::Buffer) {
                Ok(()) => self.clean(),
                Err(error) => self.rest("compaction failed", &error),
            }
        }
    }

    /// Leaves the history alone for a while.
    fn rest(&mut self, what: &str, error: &Error) {
        tracing::warn!(folder = %self.folder.path().display(), %error, "{what}");
        self.resting = Some(self.shared.env.now() + COMPACTION_PAUSE);
    }

    /// Moves the beginning of the history to `oldest` and counts some of what is superfluous before it.
    fn sweep(&mut self, oldest: Revision, mode: PersistMode) -> Result<()> {
        let Some(opened) = &self.opened else { return Err(Error::Closed) };
        // Heads go from where they are looked for: from the engine.
        let until = sweep_until(opened.state.revision, oldest);
        if opened.recent.reach(until) {
            self.apply_heads(until)?;
        }
        let Some((opened, view)) = self.opened.as_ref().zip(self.shared.view.load_full()) else {
            return Err(Error::Closed);
        };
        let mut writes = opened.engine().batch(64);
        let swept = no_panic(|| History::sweep(&view, oldest, &mut writes))?;
        self.commit(writes, mode)?;
        if let Some(opened) = &mut self.opened {
            opened.state = swept.state;
            for segment in opened.log.segments().iter() {
                if let Some(Dead { dead, .. }) = swept.dead.get(&segment.id()) {
                    segment.set_dead(*dead);
                }
            }
        }
        self.show(Vec::new(), None);
        self.shared.feed.compact(swept.state.oldest);
        Ok(())
    }

    /// Begins to clean segments, if that is worth it.
    fn clean(&mut self) {
        let Some((opened, commands)) = self.opened.as_ref().zip(self.commands.upgrade()) else { return };
        if self.cleaning.is_some() {
            return;
        }
        let Some(run) = clean::choose(&opened.log.segments(), self.shared.options.segment_bytes) else {
            return;
        };
        let view = opened.view().pinned();
        let stop = Arc::new(AtomicBool::new(false));
        // While it works, this is one more who has the store.
        let (token, folder, commands) = (stop.clone(), self.folder.log(), Sender::clone(&commands));
        let work = move || {
            let copy = no_panic(|| {
                // What the log is about to forget must be safe in the engine.
                view.heads.engine().sync()?;
                clean::clean(&view, &run, &folder, &token)
            });
            drop(view);
            let _ = commands.send(Command::Cleaned(Cleaned { run, copy, stop: token }));
        };
        match self.shared.env.spawn_thread("store-disk-clean", work) {
            Ok(thread) => self.cleaning = Some(Cleaning { stop, thread }),
            Err(error) => self.rest("no thread to clean segments", &io_error(&error)),
        }
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
            return;
        }
        let Some(opened) = &mut self.opened else { return };
        let copy = match copy {
            Ok(Some(copy)) => copy,
            Ok(None) => return,
            Err(error) => return self.rest("segments could not be cleaned", &error),
        };
        let run = run.segments;
        let sum = |count: fn(&Segment) -> u32| run.iter().map(|segment| count(segment)).sum::<u32>();
        // What died since it was copied is in it still.
        let dead = sum(Segment::dead).saturating_sub(sum(Segment::records) - copy.records());
        copy.set_dead(dead);
        let (id, dead) = (copy.id(), Dead { dead, of: copy.records() });
        if let Err(error) = opened.log.replace(&run, copy) {
            return self.rest("cleaned segments could not be put into place", &io_error(&error));
        }
        let mut writes = opened.engine().batch(run.len());
        for segment in &run {
            opened.engine().put_dead(&mut writes, segment.id(), (segment.id() == id).then_some(dead));
        }
        if self.commit(writes, PersistMode::Buffer).is_ok() {
            self.show(Vec::new(), None);
        }
        // The last one to close a large file that is gone already has to wait for it.
        let _ = self.shared.env.spawn_thread("store-disk-close", || drop(run));
        self.clean();
    }

    fn close(mut self) -> Result<()> {
        self.shared.feed.close();
        self.stop_cleaning();
        if self.failed.is_none()
            && let Some(revision) = self.opened.as_ref().map(|opened| opened.state.revision)
        {
            // It is opened faster then. If it fails, the log has it all.
            let _ = self.apply_heads(revision);
        }
        // Those who come now are told; those who read are waited for.
        let _gate = self.shared.gate.write();
        self.shared.view.store(None);
        let synced = self.opened.take().map_or(Ok(()), |opened| opened.engine().sync());
        while let Ok(command) = self.queue.try_recv() {
            match command {
                Command::Write(write) => drop(write.reply.send(Err(Error::Closed))),
                Command::Compact(_, reply) => drop(reply.send(Err(Error::Closed))),
                Command::Cleaned(..) => {}
                Command::Close(reply) => drop(reply.send(Ok(()))),
            }
        }
        synced
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
