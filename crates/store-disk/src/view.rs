//! Reading: a snapshot of the store.

use std::sync::Arc;

use bytes::Bytes;
use k1s_store::{
    Change, Event, GetResult, KeyValue, Previous, Range, RangeResult, Result, Revision, WatchRequest,
    feed::Backfilled, read_revision,
};

use crate::{
    heads::{Dead, Heads, State},
    log::Segments,
    record::{Head, Pointer, Record},
};

/// The store as of a synced batch of writes.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) heads: Arc<Heads>,
    pub(crate) state: State,
}

impl View {
    /// The newest state, with heads and files that no longer change, and the dead records: for reads of the
    /// whole store.
    pub(crate) fn pinned(&self) -> (Self, Dead) {
        let (heads, dead) = self.heads.pinned();
        (Self { state: heads.state(), heads: Arc::new(heads) }, dead)
    }

    /// The revision to read at, if it is readable.
    pub(crate) fn read_revision(&self, at: Option<Revision>) -> Result<Revision> {
        read_revision(at, self.state.oldest, self.state.revision)
    }

    pub(crate) fn get(&self, key: &[u8], at: Option<Revision>) -> Result<GetResult> {
        let revision = self.read_revision(at)?;
        let entry = match self.heads.find(key) {
            Some((head, log)) => self.entry_at(&log, head, revision)?,
            None => None,
        };
        self.heads.still_there(revision)?;
        Ok(GetResult { revision, entry })
    }

    /// The entries of a range. Entries that `recall` returns from memory, by key and revision, are not read
    /// from disk.
    pub(crate) fn range(
        &self,
        range: &Range,
        recall: &dyn Fn(&[u8], Revision) -> Option<KeyValue>,
    ) -> Result<RangeResult> {
        let revision = self.read_revision(range.revision)?;
        let mut result = RangeResult { revision, entries: Vec::new(), more: false };
        for (key, head) in self.heads.range(range) {
            let recalled = if head.live() && head.pointer.revision <= revision {
                recall(&key, head.pointer.revision)
            } else {
                None
            };
            let entry = match recalled {
                Some(entry) => Some(entry),
                None => self.entry_at(&self.heads.log(), head, revision)?,
            };
            let Some(entry) = entry else { continue };
            if result.entries.len() == range.max_entries() {
                result.more = true;
                break;
            }
            result.entries.push(entry);
        }
        self.heads.still_there(revision)?;
        Ok(result)
    }

    /// The entry at `revision` of the key whose newest record is `head`.
    fn entry_at(&self, log: &Segments, head: Head, revision: Revision) -> Result<Option<KeyValue>> {
        if !head.live() && head.pointer.revision <= revision {
            return Ok(None);
        }
        let mut pointer = head.pointer;
        loop {
            let Some(record) = log.get(pointer)? else {
                self.heads.still_there(revision)?;
                // The record of a deletion is removed when it is compacted. At any revision that is still
                // readable, the key then had no value until its next record.
                if pointer.revision <= self.heads.state().oldest && pointer != head.pointer {
                    return Ok(None);
                }
                return Err(pointer.missing());
            };
            if pointer.revision <= revision {
                let Record { key, value, .. } = record;
                return Ok(value.map(|value| KeyValue::detached(&key, &value, pointer.revision)));
            }
            match record.replaced {
                Some(replaced) => pointer = replaced,
                None => return Ok(None),
            }
        }
    }

    /// The value before a record that did not create its key.
    fn previous(log: &Segments, record: &Record) -> Result<Option<Previous>> {
        let (false, Some(pointer)) = (record.created, record.replaced) else { return Ok(None) };
        match log.get(pointer)? {
            Some(Record { value: Some(value), .. }) => {
                Ok(Some(Previous { value: Bytes::copy_from_slice(&value), revision: pointer.revision }))
            }
            _ => Err(pointer.missing()),
        }
    }

    /// A page of the changes after `request.after`.
    pub(crate) fn backfill(&self, request: &WatchRequest) -> Result<Backfilled> {
        const RECORDS: u32 = 1024;
        const BYTES: usize = 4 << 20;
        let after = self.read_revision(request.after)?;
        let mut page = Backfilled { changes: Vec::new(), through: self.state.revision };
        let mut events = Vec::new();
        let (mut records, mut bytes) = (0, 0);
        let log = self.heads.log();
        let read = log.each(Pointer::new(after.next(), 0), |pointer, bytes_of_record| {
            if pointer.revision > self.state.revision {
                return Ok(false);
            }
            let record = Record::read(pointer, &bytes_of_record)?;
            records += 1;
            let last_of_revision = pointer.index + 1 == record.steps;
            if record.key.starts_with(&request.prefix) {
                let previous = if request.previous { Self::previous(&log, &record)? } else { None };
                let Record { key, value, created, .. } = record.detached();
                bytes += key.len() + value.as_ref().map_or(0, Bytes::len);
                bytes += previous.as_ref().map_or(0, |previous| previous.value.len());
                events.push(Event { key, value, created, previous });
            }
            if last_of_revision {
                if !events.is_empty() {
                    page.changes.push(Arc::new(Change::new(pointer.revision, events.drain(..))));
                }
                // A page ends at the end of a revision.
                if records >= RECORDS || bytes >= BYTES {
                    page.through = pointer.revision;
                    return Ok(false);
                }
            }
            Ok(true)
        });
        // The log is the newest one: records compacted meanwhile may be missing from it.
        self.heads.still_there(after)?;
        read?;
        Ok(page)
    }
}
