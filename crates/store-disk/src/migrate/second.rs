//! From format 2, which had the newest record of each key in a tree of the engine, to format 3, which has them in memory: from
//! the directories of the segments, but for what is dead.

use std::collections::HashSet;

use k1s_store::{Error, Revision};

use super::engine::{APPLIED, COMPACTED, Engine, SWEPT, no_panic};
use crate::{
    checkpoint::Checkpoint,
    error::OpenError,
    folder::Folder,
    lock::Access,
    log::{Expect, Log},
    options::DiskOptions,
    record::{Pointer, Record},
};

/// Gives every full segment a directory, and notes which records are dead. The engine's files stay until the store is opened in
/// its new format: whoever was interrupted here begins anew.
pub(crate) fn heads_into_memory(folder: &Folder) -> Result<(), OpenError> {
    let (log_path, engine_path) = (folder.log(), folder.engine());
    let acknowledged = folder.acknowledged()?;
    let segment_bytes = DiskOptions::default().segment_bytes;
    let log = Log::open(&log_path, segment_bytes, Some(acknowledged), Expect::OlderFormat, Access::Write)?;
    let segments = log.segments();
    let revision = segments.last().map_or(Revision::FIRST, |last| last.revision);
    if revision < acknowledged {
        return Err(OpenError::damaged(
            &log_path,
            format!("it ends at revision {revision}, but revision {acknowledged} had been acknowledged"),
        ));
    }
    let engine = Engine::open(&engine_path)?;
    let (oldest, swept, heads) = no_panic(|| {
        let heads = engine.heads().collect::<Result<Vec<_>, Error>>()?;
        let (applied, oldest, swept) = (engine.mark(APPLIED)?, engine.mark(COMPACTED)?, engine.mark(SWEPT)?);
        let cleaned = segments.iter().map(|segment| segment.cleaned()).max().unwrap_or(Revision::FIRST);
        if applied > revision || applied < cleaned || swept < cleaned || swept > applied || oldest > revision {
            return Err(Error::corrupt(format!(
                "it is at revision {applied}, compacted to {oldest} and swept to {swept}, but the log ends at {revision} and \
                 has been cleaned up to {cleaned}"
            )));
        }
        Ok((oldest, swept, heads))
    })
    .map_err(|error| OpenError::damaged(&engine_path, error.to_string()))?;

    // What was the newest record of its key when the store was swept: it still is, or what came next says so.
    let mut live: HashSet<Pointer> =
        heads.iter().filter(|(_, head)| head.live()).map(|(_, head)| head.pointer).collect();
    let damaged = |error: Error| OpenError::damaged(&log_path, error.to_string());
    // From there on, nothing has been left out.
    let mut expected = Pointer::new(swept.next(), 0);
    segments
        .each(expected, |pointer, bytes| {
            if pointer != expected {
                return Err(expected.missing());
            }
            let record = Record::read(pointer, &bytes)?;
            live.extend(record.replaced.filter(|_| !record.created));
            expected = pointer.next(record.steps);
            Ok(true)
        })
        .map_err(damaged)?;
    for segment in segments.iter() {
        let mut dead = segment.dead();
        segment
            .each_listed(|listed| {
                let pointer = listed.head.pointer;
                if !live.remove(&pointer) && pointer.revision <= swept {
                    dead.set(listed.number);
                }
            })
            .map_err(damaged)?;
        segment.set_dead(dead);
    }
    if let Some(missing) = live.into_iter().min() {
        return Err(damaged(missing.missing()));
    }
    log.seal().map_err(OpenError::io(&log_path))?;
    let checkpoint = Checkpoint::new(oldest, swept, &segments);
    checkpoint.write(&folder.checkpoint(), &log_path).map_err(OpenError::io(&folder.checkpoint()))
}
