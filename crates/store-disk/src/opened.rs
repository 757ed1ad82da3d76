//! The log and the engine of a store, open and in agreement.

use std::sync::Arc;

use k1s_store::Revision;

use crate::{
    engine::{Engine, State},
    error::{OpenError, no_panic},
    folder::{Folder, MIGRATIONS},
    heads::{Heads, Recent},
    log::Log,
    options::DiskOptions,
    record::Totals,
    view::View,
};

/// What there is to write to.
pub(crate) struct Opened {
    pub(crate) log: Log,
    pub(crate) recent: Recent,
    pub(crate) state: State,
}

impl Opened {
    /// Makes an empty store.
    pub(crate) fn create(folder: &Folder, options: &DiskOptions) -> Result<Self, OpenError> {
        let log = Log::create(&folder.log(), options.segment_bytes)?;
        let engine = Engine::create(&folder.engine(), options)?;
        let snapshot = Arc::new(engine.snapshot());
        let heads = Heads::new(engine, snapshot, log.segments(), State::NEW, Revision::FIRST);
        Ok(Self { log, recent: Recent::new(heads), state: State::NEW })
    }

    /// Opens a store that is there, if it holds all that had been acknowledged.
    pub(crate) fn open(folder: &Folder, options: &DiskOptions) -> Result<Self, OpenError> {
        folder.migrate(MIGRATIONS)?;
        let acknowledged = folder.watermark()?.revision();
        let log = Log::open(&folder.log(), options.segment_bytes, acknowledged)?;
        let end = log.segments().last().map_or(Revision::FIRST, |last| last.revision);
        if end < acknowledged {
            return Err(OpenError::damaged(
                &folder.log(),
                format!("it ends at revision {end}, but revision {acknowledged} had been acknowledged"),
            ));
        }
        let mut opened = Self::with_log(log, folder, options)?;
        // It is sound: what was torn when it was last used can go.
        opened.log.prepare().map_err(OpenError::io(&folder.log()))?;
        Ok(opened)
    }

    /// Opens the engine, and tells it what the log knows.
    pub(crate) fn with_log(log: Log, folder: &Folder, options: &DiskOptions) -> Result<Self, OpenError> {
        let path = folder.engine();
        let engine = Engine::open(&path, options)?;
        let segments = log.segments();
        let snapshot = Arc::new(engine.snapshot());
        let read = || {
            let (revision, totals) = match segments.last() {
                None => (Revision::FIRST, Totals::default()),
                Some(last) => match segments.get(last)? {
                    Some(record) => (last.revision, record.totals),
                    None => return Ok(Err("its last record is missing".to_owned())),
                },
            };
            let marks = engine.marks(&snapshot)?;
            let state = State { revision, oldest: marks.oldest, swept: marks.swept, totals };
            let cleaned = segments.cleaned();
            if marks.applied > revision || marks.applied < cleaned || marks.swept < cleaned {
                return Ok(Err(format!(
                    "the engine is at revision {} and swept to {}, but the log ends at {revision} and has been cleaned up \
                     to {cleaned}",
                    marks.applied, marks.swept
                )));
            }
            if state.oldest > state.revision || state.swept > state.oldest || state.swept > marks.applied {
                return Ok(Err(format!(
                    "its marks contradict each other: newest revision {}, oldest {}, swept {}",
                    state.revision, state.oldest, state.swept
                )));
            }
            for (id, dead) in engine.dead(&snapshot)? {
                if let Some(segment) = segments.iter().find(|segment| segment.id() == id) {
                    segment.set_dead(if segment.is_meant_by(dead) { dead.dead } else { 0 });
                }
            }
            let heads = Heads::new(engine, snapshot, segments, state, marks.applied);
            Ok(Ok((state, Recent::read(heads, marks.applied)?)))
        };
        let (state, recent) = no_panic(read)
            .map_err(|error| error.to_string())
            .flatten()
            .map_err(|reason| OpenError::damaged(&path, reason))?;
        Ok(Self { log, recent, state })
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.recent.heads().engine()
    }

    pub(crate) fn view(&self) -> View {
        View { heads: self.recent.heads().clone(), state: self.state }
    }
}
