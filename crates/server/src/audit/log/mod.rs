//! The log: a file with one event per line.

mod backups;
mod file;

use std::sync::Arc;

use k1s_env::Env;
use parking_lot::Mutex;

use self::file::LogFile;
use super::{
    AuditError,
    counters::{Counters, Plugin},
    event::Form,
    options::{AuditLogOptions, AuditMode, AuditTruncation},
    queue::{Backend, Batch, Entry, Losses, Queue},
};

/// The number of events that are written without waiting for more.
const MAX_BATCH: usize = 1000;

/// Opens the log and starts its task.
pub(super) fn start(
    env: &Env,
    options: &AuditLogOptions,
    counters: &Arc<Counters>,
) -> Result<Backend, AuditError> {
    let file = LogFile::open(env, options).map_err(|why| {
        let path = options.path.display().to_string();
        AuditError::Log { path, why }
    })?;
    let queue = Arc::new(Queue::new(options.queue));
    let losses = Losses::new(env, "log", counters);
    let writer = Writer {
        env: env.clone(),
        options: options.clone(),
        queue: queue.clone(),
        log: Arc::new(Mutex::new(file)),
        losses: losses.clone(),
        tidying: Arc::default(),
    };
    let task = env.spawn("audit log", writer.run());
    Ok(Backend { mode: options.mode, queue, losses, task: tokio::sync::Mutex::new(Some(task)) })
}

/// Writes the events of a queue.
struct Writer {
    env: Env,
    options: AuditLogOptions,
    queue: Arc<Queue>,
    log: Arc<Mutex<LogFile>>,
    losses: Arc<Losses>,
    /// Held while renamed files are removed and compressed.
    tidying: Arc<Mutex<()>>,
}

impl Writer {
    async fn run(self) {
        while self.queue.wait().await {
            if self.options.mode == AuditMode::Batch {
                self.queue.fill(&self.env, MAX_BATCH, self.options.linger).await;
            }
            // All of them: what waits has a limit of its own.
            let Batch { mut entries, text, held } = self.queue.take(usize::MAX);
            let count = entries.len();
            let (log, losses, truncation) = (self.log.clone(), self.losses.clone(), self.options.truncation);
            let queue = self.queue.clone();
            let write = async move {
                let rotated = write(&mut log.lock(), &mut entries, &text, truncation, &losses);
                queue.reuse(text);
                rotated
            };
            let written = self.env.drive_apart("audit log", write).await;
            self.queue.release(&held);
            match written {
                Ok(false) => {}
                Ok(true) => backups::tidy(&self.env, &self.options, &self.tidying),
                Err(error) => self.losses.count(Plugin::Log, count, &error),
            }
        }
    }
}

/// Writes events. Returns whether a new file was begun.
fn write(
    log: &mut LogFile,
    entries: &mut [Entry],
    text: &[u8],
    truncation: Option<AuditTruncation>,
    losses: &Losses,
) -> bool {
    let (mut line, mut rotated) = (Vec::new(), false);
    // The first of the events whose lines are not written yet.
    let mut pending = 0;
    for at in 0..entries.len() {
        let Some(entry) = entries.get(at) else { break };
        let limit = truncation.map(|truncation| truncation.max_event_bytes);
        if !entry.write(text, Form::Line, limit, &mut line) {
            losses.count(Plugin::Truncate, 1, &"event is too large even after truncating");
            entries.iter_mut().skip(at).take(1).for_each(|entry| entry.settle(false));
            line.clear();
        }
        if log.is_full_with(line.len()) {
            flush(log, entries, pending..at, losses);
            pending = at;
            rotated |= log.rotate_or_log();
        }
        if log.add(&line) {
            flush(log, entries, pending..at + 1, losses);
            pending = at + 1;
        }
    }
    let end = entries.len();
    flush(log, entries, pending..end, losses);
    rotated
}

fn flush(log: &mut LogFile, entries: &mut [Entry], which: std::ops::Range<usize>, losses: &Losses) {
    let written = log.flush();
    if let Err(why) = &written {
        losses.count(Plugin::Log, which.len(), why);
    }
    for entry in entries.get_mut(which).into_iter().flatten() {
        entry.settle(written.is_ok());
    }
}
