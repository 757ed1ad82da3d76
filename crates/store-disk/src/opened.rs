//! The open log of a store, with the state read from it.

use std::{io, sync::Arc};

use k1s_store::{Error, Revision};

use crate::{
    checkpoint::Checkpoint,
    error::{OpenError, is_full},
    folder::Folder,
    heads::{Heads, State},
    keys::Keys,
    lock::Access,
    log::{Log, Segments},
    options::DiskOptions,
    record::Totals,
    view::View,
};

/// Matches no checkpoint, so that the next one is written.
const NOTHING: (Revision, Revision) = (Revision::new(0), Revision::new(0));

/// Files that could not be read, but can be rebuilt from the log.
#[derive(Default)]
pub(crate) struct Lost {
    /// The checkpoint rebuilt from the log.
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) watermark: bool,
    /// The last revision known to have been acknowledged.
    pub(crate) acknowledged: Option<Revision>,
    /// Whether the watermark should be replaced: it is torn, or its synced slot is old.
    pub(crate) renew_watermark: bool,
}

/// An open store, for the writer thread.
pub(crate) struct Opened {
    pub(crate) log: Log,
    pub(crate) heads: Arc<Heads>,
    pub(crate) state: State,
    /// The contents of the last checkpoint: the oldest revision, and the revision swept to.
    pub(crate) checkpointed: (Revision, Revision),
    /// Why writes are not possible yet, if so.
    pub(crate) write_error: Option<io::Error>,
}

impl Opened {
    /// Creates an empty store.
    pub(crate) fn create(folder: &Folder, options: &DiskOptions) -> Result<Self, OpenError> {
        let log = Log::create(folder.files(), &folder.log(), options.segment_bytes)?;
        let state = State::NEW;
        let checkpoint = Checkpoint::new(state.oldest, state.swept, &log.segments());
        checkpoint
            .write(&**folder.files(), &folder.checkpoint(), &folder.log())
            .map_err(OpenError::io(&folder.checkpoint()))?;
        let heads = Arc::new(Heads::new(Keys::new(), log.segments(), state));
        Ok(Self { log, heads, state, checkpointed: (state.oldest, state.swept), write_error: None })
    }

    /// Opens an existing store, if it holds everything that was acknowledged. Damaged files that can be
    /// rebuilt from the log are rebuilt.
    pub(crate) fn open(folder: &Folder, options: &DiskOptions) -> Result<Self, OpenError> {
        folder.check_format()?;
        let (mut opened, lost) = Self::read(folder, options, Access::Write)?;
        // Readers will see what was found, so it must be durable: the previous process may have been killed
        // before it synced. (On a full disk, nothing is written until this succeeds.)
        let durable = folder.make_durable().and_then(|()| opened.log.make_durable(lost.acknowledged));
        if let Err(error) = &durable
            && !is_full(error)
        {
            return Err(OpenError::io(folder.store())(io::Error::new(error.kind(), error.to_string())));
        }
        // The store is sound, so torn writes can be cut. If the disk is full, that is done before the next
        // write; the store is readable anyway.
        let mut prepared = durable.and_then(|()| opened.log.prepare());
        if let Some(checkpoint) = lost.checkpoint {
            let written = checkpoint.write(&**folder.files(), &folder.checkpoint(), &folder.log());
            if written.is_err() {
                opened.checkpointed = NOTHING;
            }
            prepared = prepared.and(written);
        }
        opened.write_error = prepared.err();
        if lost.renew_watermark && opened.write_error.is_none() {
            // The contents of the log are durable now.
            folder.renew_watermark(opened.state.revision);
        }
        opened.heads.set_log(opened.log.segments());
        Ok(opened)
    }

    /// Reads a store without changing anything. Also returns which files must be rebuilt from the log.
    pub(crate) fn read(
        folder: &Folder,
        options: &DiskOptions,
        access: Access,
    ) -> Result<(Self, Lost), OpenError> {
        let mut lost = Lost::default();
        let acknowledged = match folder.acknowledged() {
            Ok(acknowledged) => {
                lost.watermark = acknowledged.torn;
                lost.renew_watermark = acknowledged.renew;
                Some(acknowledged.revision)
            }
            Err(OpenError::Damaged { path, reason }) => {
                tracing::warn!(path = %path.display(), reason, "the watermark is rebuilt from the log");
                (lost.watermark, lost.renew_watermark) = (true, true);
                None
            }
            Err(error) => return Err(error),
        };
        lost.acknowledged = acknowledged;
        let (log_path, checkpoint_path) = (folder.log(), folder.checkpoint());
        let log = Log::open(folder.files(), &log_path, options.segment_bytes, acknowledged, access)?;
        let segments = log.segments();
        let damaged = |error: Error| OpenError::damaged(&log_path, error.to_string());
        let (revision, totals) = end_of(&segments).map_err(damaged)?;
        if let Some(acknowledged) = acknowledged.filter(|acknowledged| revision < *acknowledged) {
            return Err(OpenError::damaged(
                &log_path,
                format!("it ends at revision {revision}, but revision {acknowledged} had been acknowledged"),
            ));
        }
        let Checkpoint { oldest, swept, .. } = match Checkpoint::read(&**folder.files(), &checkpoint_path) {
            Ok(checkpoint) => {
                checkpoint.apply(&segments).map_err(|reason| OpenError::damaged(&checkpoint_path, reason))?;
                checkpoint
            }
            Err(OpenError::Damaged { path, reason }) => {
                tracing::warn!(path = %path.display(), reason, "the checkpoint is rebuilt from the log");
                let checkpoint = Checkpoint::rebuild(&segments).map_err(damaged)?;
                lost.checkpoint = Some(checkpoint.clone());
                checkpoint
            }
            Err(error) => return Err(error),
        };
        let state = State { revision, oldest, swept, totals };
        if oldest > revision || swept > oldest {
            return Err(OpenError::damaged(
                &checkpoint_path,
                format!(
                    "it contradicts itself or the log: newest revision {revision}, oldest {oldest}, swept {swept}"
                ),
            ));
        }
        let (keys, found) = keys_of(&segments).map_err(damaged)?;
        if found != totals {
            let why = match lost.checkpoint {
                Some(_) => "; the checkpoint, which lists the deleted ones, is damaged",
                None => "",
            };
            return Err(OpenError::damaged(
                &log_path,
                format!(
                    "there are {} keys with {} bytes, but the newest record says {} keys with {} bytes{why}",
                    found.keys, found.bytes, totals.keys, totals.bytes
                ),
            ));
        }
        let heads = Arc::new(Heads::new(keys, segments, state));
        let opened = Self { log, heads, state, checkpointed: (state.oldest, state.swept), write_error: None };
        Ok((opened, lost))
    }

    pub(crate) fn view(&self) -> View {
        View { heads: self.heads.clone(), state: self.state }
    }
}

/// The end of a log, and the size of the store according to its last record.
pub(crate) fn end_of(log: &Segments) -> Result<(Revision, Totals), Error> {
    let Some(last) = log.last() else { return Ok((Revision::FIRST, Totals::default())) };
    let record = log.get(last)?.ok_or_else(|| last.missing())?;
    Ok((last.revision, record.totals))
}

/// The newest live record of each key in the log, and the size of the store that they add up to.
pub(crate) fn keys_of(log: &Segments) -> Result<(Keys, Totals), Error> {
    let (mut keys, mut totals) = (Keys::new(), Totals::default());
    for segment in log.iter() {
        let dead = segment.dead();
        segment.each_listed(|listed| {
            if dead.contains(listed.number) {
                return;
            }
            let before = keys.insert(listed.key, listed.head).and_then(|head| head.size);
            totals.keys = totals.keys + u64::from(listed.head.live()) - u64::from(before.is_some());
            totals.bytes =
                totals.bytes + u64::from(listed.head.size.unwrap_or(0)) - u64::from(before.unwrap_or(0));
        })?;
    }
    Ok((keys, totals))
}
