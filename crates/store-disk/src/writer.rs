//! The one thread that writes: group commit, compaction, and getting back on its feet after a failure.
//!
//! What is queued goes into one batch: preconditions are judged on the state that includes the batch's
//! earlier writes, the batch is synced once, and only then published: the view, then the events, then the
//! acknowledgements.

use std::{
    collections::HashMap,
    ops::RangeInclusive,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    },
    time::Duration,
};

use bytes::Bytes;
use fjall::PersistMode;
use k1s_env::{Env, Instant};
use k1s_store::{Change, Error, Result, Revision, Txn};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{
    batch::{Batch, Pending},
    engine::{Engine, State},
    error::{engine_error, io_error, no_panic},
    folder::{Folder, Watermark},
    history::History,
    journal,
    record::Head,
    shared::Shared,
    view::View,
};

/// A batch is closed at so many steps, or so many bytes.
const BATCH_STEPS: usize = 1024;
const BATCH_BYTES: usize = 4 << 20;

/// A sync costs about the same for one write as for a hundred. So those who have just been answered, and are likely
/// to write again, get this long to share the next one; a quarter of what a sync takes, within these bounds.
const GATHER: RangeInclusive<Duration> = Duration::from_micros(20)..=Duration::from_millis(1);

/// So long the thread stays awake for the next write: waking it up would take about as long.
const STAY_AWAKE: Duration = Duration::from_micros(50);

/// So many heads of keys that were written lately are remembered.
const KNOWN_HEADS: usize = 16 << 10;

/// How long to wait between two attempts to recover from a failure.
const RECOVERY_PAUSE: Duration = Duration::from_millis(100);

/// How long to leave the history alone after compacting it has failed.
const COMPACTION_PAUSE: Duration = Duration::from_secs(30);

/// What the writing thread is asked to do.
pub(crate) enum Command {
    Write(Write),
    Compact(Revision, oneshot::Sender<Result<()>>),
    Close(oneshot::Sender<Result<()>>),
}

pub(crate) struct Write {
    pub(crate) txn: Txn,
    pub(crate) reply: oneshot::Sender<Result<Revision>>,
    /// Its place in the queue, free again when the write is answered.
    pub(crate) permit: OwnedSemaphorePermit,
}

pub(crate) struct Writer {
    shared: Arc<Shared>,
    folder: Folder,
    watermark: Watermark,
    /// `None` only while it is being reopened, or if that failed.
    engine: Option<Engine>,
    state: State,
    history: History,
    queue: Receiver<Command>,
    /// Why the last batch failed, and when recovery was tried last.
    failed: Option<(Error, Instant)>,
    /// Compaction rests until then.
    resting: Option<Instant>,
    /// A moving average of what a sync takes.
    sync_time: Duration,
    /// How many writes the next batch is likely to have, if it waits for them.
    likely_writes: usize,
    /// The heads of keys that have a value and were written lately, as they are on disk.
    known: HashMap<Bytes, Head>,
}

impl Writer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        folder: Folder,
        watermark: Watermark,
        engine: Engine,
        state: State,
        queue: Receiver<Command>,
    ) -> Self {
        let history = History::new(&shared.options, shared.env.now(), state);
        Self {
            shared,
            folder,
            watermark,
            engine: Some(engine),
            state,
            history,
            queue,
            failed: None,
            resting: None,
            sync_time: Duration::ZERO,
            likely_writes: 1,
            known: HashMap::new(),
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
            (None, _) => self.history.due(&self.state, now),
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
            Command::Write(write) => self.write(vec![write]),
        }
        None
    }

    fn write(&mut self, writes: Vec<Write>) {
        if let Err(error) = self.ready() {
            refuse(writes, &error);
            return;
        }
        let Some((engine, view)) = self.engine.clone().zip(self.shared.view.load_full()) else {
            refuse(writes, &Error::Closed);
            return;
        };
        let mut batch = Batch::new(&engine, view, &self.known, self.state, writes.len());
        for write in writes {
            batch.add(&self.shared, write);
        }
        let Batch { writes, state, pending, changes, mut answers, .. } = batch;
        if !changes.is_empty() {
            match self.commit(writes, PersistMode::SyncData) {
                Ok(()) => {
                    self.remember(pending);
                    self.publish(&engine, state, changes);
                }
                Err(error) => {
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

    /// Makes a batch durable, or notes that the engine needs help.
    fn commit(&mut self, writes: fjall::OwnedWriteBatch, mode: PersistMode) -> Result<()> {
        let began = self.shared.env.now();
        let committed =
            no_panic(|| writes.durability(Some(mode)).commit().map_err(|error| engine_error(&error)));
        if let Err(error) = committed {
            tracing::error!(folder = %self.folder.path().display(), %error, "a write to disk failed");
            return Err(self.fail(error));
        }
        if mode == PersistMode::SyncData {
            self.sync_time = (self.sync_time * 7 + (self.shared.env.now() - began)) / 8;
        }
        Ok(())
    }

    fn remember(&mut self, written: HashMap<Bytes, Pending>) {
        if self.known.len() + written.len() > KNOWN_HEADS {
            self.known.clear();
        }
        for (key, Pending { head, .. }) in written {
            // The head of a deleted key goes when it is compacted.
            if head.live() {
                self.known.insert(key, head);
            } else {
                self.known.remove(&key);
            }
        }
    }

    fn publish(&mut self, engine: &Engine, state: State, changes: Vec<(Arc<Change>, bool)>) {
        self.state = state;
        if let Err(error) = self.watermark.raise(state.revision) {
            tracing::warn!(path = %self.watermark.path().display(), %error, "could not note what was acknowledged");
        }
        let view = Arc::new(View::new(engine, state));
        self.shared.feed.publish_with(changes, || self.shared.view.store(Some(view)));
    }

    fn fail(&mut self, error: Error) -> Error {
        *self.shared.trouble.lock() = Some(error.clone());
        self.failed = Some((error.clone(), self.shared.env.now()));
        error
    }

    /// Whether the engine takes writes; after a failure, tries to bring it back.
    fn ready(&mut self) -> Result<()> {
        if self.failed.is_none()
            && let Some(engine) = &self.engine
        {
            // The engine's own thread may be behind, or have failed since the last write. Wait for it here,
            // where that can be seen, rather than inside of the engine, which would wait for ever.
            let working = loop {
                match engine.working() {
                    Ok(()) if engine.behind() => std::thread::park_timeout(Duration::from_millis(1)),
                    working => break working,
                }
            };
            match working {
                Ok(()) => return Ok(()),
                Err(error) => drop(self.fail(error)),
            }
        }
        let Some((error, tried)) = &mut self.failed else { return Err(Error::Closed) };
        let now = self.shared.env.now();
        if now - *tried < RECOVERY_PAUSE && self.engine.is_some() {
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

    /// Closes the engine, removes from its journal what was never acknowledged, and opens it again.
    fn reopen(&mut self) -> Result<()> {
        let shared = self.shared.clone();
        let _gate = shared.gate.write();
        shared.view.store(None);
        self.engine = None;
        self.known.clear();
        let path = self.folder.engine();
        let open = || {
            journal::cut_after(&path, self.state.revision)?;
            journal::inspect(&path, self.state.revision)?;
            Engine::open(&path, &shared.options)
        };
        let engine = open().map_err(|error| error.into_store_error())?;
        let state = no_panic(|| engine.state(&engine.snapshot()))?;
        if (state.revision, state.totals) != (self.state.revision, self.state.totals) {
            return Err(Error::corrupt(format!(
                "after a failed write, the store is at revision {} instead of {}",
                state.revision, self.state.revision
            )));
        }
        self.state = state;
        shared.view.store(Some(Arc::new(View::new(&engine, state))));
        self.engine = Some(engine);
        Ok(())
    }

    /// Compacts because somebody asked for it.
    fn compact(&mut self, revision: Revision) -> Result<()> {
        if revision > self.state.revision {
            return Err(Error::FutureRevision { requested: revision, current: self.state.revision });
        }
        if revision > self.state.oldest {
            self.ready()?;
            self.sweep(revision, PersistMode::SyncData)?;
        }
        Ok(())
    }

    /// Keeps the history to its bounds, a little at a time.
    fn keep_house(&mut self) {
        let now = self.shared.env.now();
        self.history.note(self.state.revision, now);
        if self.failed.is_some() || self.resting.is_some_and(|until| until > now) {
            return;
        }
        let oldest = self.history.bound(&self.state, now).max(self.state.oldest);
        if (oldest > self.state.oldest || self.history.unswept(&self.state))
            && let Err(error) = self.ready().and_then(|()| self.sweep(oldest, PersistMode::Buffer))
        {
            tracing::warn!(folder = %self.folder.path().display(), %error, "compaction failed");
            self.resting = Some(now + COMPACTION_PAUSE);
        }
    }

    /// Moves the beginning of the history to `oldest` and removes some of what is superfluous before it.
    fn sweep(&mut self, oldest: Revision, mode: PersistMode) -> Result<()> {
        let Some((engine, view)) = self.engine.clone().zip(self.shared.view.load_full()) else {
            return Err(Error::Closed);
        };
        let mut writes = engine.batch(64);
        let state = no_panic(|| History::sweep(&view, oldest, &mut writes))?;
        self.commit(writes, mode)?;
        self.state = state;
        self.shared.view.store(Some(Arc::new(View::new(&engine, state))));
        self.shared.feed.compact(state.oldest);
        Ok(())
    }

    fn close(mut self) -> Result<()> {
        self.shared.feed.close();
        // Those who come now are told; those who read are waited for.
        let _gate = self.shared.gate.write();
        self.shared.view.store(None);
        let synced = self.engine.take().map_or(Ok(()), |engine| engine.sync());
        while let Ok(command) = self.queue.try_recv() {
            match command {
                Command::Write(write) => drop(write.reply.send(Err(Error::Closed))),
                Command::Compact(_, reply) => drop(reply.send(Err(Error::Closed))),
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
