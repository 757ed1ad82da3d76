//! The log and the engine of a store, open and in agreement.

use std::sync::Arc;

use k1s_store::{Error, Revision};

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
        let (log_path, engine_path) = (folder.log(), folder.engine());
        let damaged = |path| move |error: Error| OpenError::damaged(path, error.to_string());
        let segments = log.segments();
        let (revision, totals) = match segments.last() {
            None => (Revision::FIRST, Totals::default()),
            Some(last) => {
                let record = segments.get(last).and_then(|record| record.ok_or_else(|| last.missing()));
                (last.revision, record.map_err(damaged(&log_path))?.totals)
            }
        };

        let engine = Engine::open(&engine_path, options)?;
        let snapshot = Arc::new(engine.snapshot());
        let read = || Ok((engine.marks(&snapshot)?, engine.dead(&snapshot)?));
        let (marks, dead) = no_panic(read).map_err(damaged(&engine_path))?;
        let state = State { revision, oldest: marks.oldest, swept: marks.swept, totals };
        let cleaned = segments.cleaned();
        if marks.applied > revision || marks.applied < cleaned || marks.swept < cleaned {
            let reason = format!(
                "it is at revision {} and swept to {}, but the log ends at {revision} and has been cleaned up to {cleaned}",
                marks.applied, marks.swept
            );
            return Err(OpenError::damaged(&engine_path, reason));
        }
        if state.oldest > state.revision || state.swept > state.oldest || state.swept > marks.applied {
            let reason = format!(
                "its marks contradict each other: newest revision {}, oldest {}, swept {}",
                state.revision, state.oldest, state.swept
            );
            return Err(OpenError::damaged(&engine_path, reason));
        }
        for (id, dead) in dead {
            if let Some(segment) = segments.iter().find(|segment| segment.id() == id) {
                segment.set_dead(if segment.is_meant_by(dead) { dead.dead } else { 0 });
            }
        }
        let heads = Heads::new(engine, snapshot, segments, state, marks.applied);
        let recent = Recent::read(heads, marks.applied).map_err(damaged(&log_path))?;
        Ok(Self { log, recent, state })
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.recent.heads().engine()
    }

    pub(crate) fn view(&self) -> View {
        View { heads: self.recent.heads().clone(), state: self.state }
    }
}
