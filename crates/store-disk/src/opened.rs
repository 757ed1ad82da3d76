//! The log of a store, open, and what is known of it.

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

/// No checkpoint says this.
const NOTHING: (Revision, Revision) = (Revision::new(0), Revision::new(0));

/// Files that could not be read, and follow from the log.
#[derive(Default)]
pub(crate) struct Lost {
    /// What there is in the place of the checkpoint.
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) watermark: bool,
    /// The last revision that is known to have been acknowledged.
    pub(crate) acknowledged: Option<Revision>,
    /// Whether the watermark should be replaced: also if all of it can be read, but the synced part is old.
    pub(crate) renew_watermark: bool,
}

/// What there is to write to.
pub(crate) struct Opened {
    pub(crate) log: Log,
    pub(crate) heads: Arc<Heads>,
    pub(crate) state: State,
    /// What the last checkpoint says: the oldest revision, and how far it was swept.
    pub(crate) written_down: (Revision, Revision),
    /// Why nothing can be written yet, if that is so.
    pub(crate) trouble: Option<io::Error>,
}

impl Opened {
    /// Makes an empty store.
    pub(crate) fn create(folder: &Folder, options: &DiskOptions) -> Result<Self, OpenError> {
        let log = Log::create(folder.files(), &folder.log(), options.segment_bytes)?;
        let state = State::NEW;
        let checkpoint = Checkpoint::new(state.oldest, state.swept, &log.segments());
        checkpoint
            .write(&**folder.files(), &folder.checkpoint(), &folder.log())
            .map_err(OpenError::io(&folder.checkpoint()))?;
        let heads = Arc::new(Heads::new(Keys::new(), log.segments(), state));
        Ok(Self { log, heads, state, written_down: (state.oldest, state.swept), trouble: None })
    }

    /// Opens a store that is there, if it holds all that had been acknowledged. What is damaged, but follows from the log, is made
    /// again.
    pub(crate) fn open(folder: &Folder, options: &DiskOptions) -> Result<Self, OpenError> {
        folder.check_format()?;
        let (mut opened, lost) = Self::read(folder, options, Access::Write)?;
        // What is found here will be seen, so it must not be gone later: the process before may have been killed before it had synced
        // it. (On a full disk there is nothing to lose: nothing is written before this works.)
        let durable = folder.make_durable().and_then(|()| opened.log.make_durable(lost.acknowledged));
        if let Err(error) = &durable
            && !is_full(error)
        {
            return Err(OpenError::io(folder.store())(io::Error::new(error.kind(), error.to_string())));
        }
        // It is sound: what was torn when it was last used can go.
        // If not now, because the disk is full, then before the next write. It can be read all the same.
        let mut prepared = durable.and_then(|()| opened.log.prepare());
        if let Some(checkpoint) = lost.checkpoint {
            let written = checkpoint.write(&**folder.files(), &folder.checkpoint(), &folder.log());
            if written.is_err() {
                opened.written_down = NOTHING;
            }
            prepared = prepared.and(written);
        }
        opened.trouble = prepared.err();
        if lost.renew_watermark && opened.trouble.is_none() {
            // What is in the log is durable now.
            folder.renew_watermark(opened.state.revision);
        }
        opened.heads.show(opened.log.segments());
        Ok(opened)
    }

    /// Reads a store without changing anything. Returns, too, which files follow from the log and have to be made again.
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
                tracing::warn!(path = %path.display(), reason, "what was acknowledged last is found in the log");
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
                tracing::warn!(path = %path.display(), reason, "what is dead is found in the log");
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
                Some(_) => "; the checkpoint, which is damaged, knew which of them had been deleted",
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
        let opened = Self { log, heads, state, written_down: (state.oldest, state.swept), trouble: None };
        Ok((opened, lost))
    }

    pub(crate) fn view(&self) -> View {
        View { heads: self.heads.clone(), state: self.state }
    }
}

/// Where a log ends, and what its last record says about the size of the store.
pub(crate) fn end_of(log: &Segments) -> Result<(Revision, Totals), Error> {
    let Some(last) = log.last() else { return Ok((Revision::FIRST, Totals::default())) };
    let record = log.get(last)?.ok_or_else(|| last.missing())?;
    Ok((last.revision, record.totals))
}

/// The newest record of each key, as the log has it, and how large that makes the store.
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
