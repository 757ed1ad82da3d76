//! Reading: the store at one moment.

use std::sync::Arc;

use bytes::Bytes;
use fjall::{Readable, Snapshot};
use k1s_store::{
    Change, Error, Event, GetResult, KeyValue, Previous, Range, RangeResult, Result, Revision, WatchRequest,
    feed::Backfilled, moment,
};

use crate::{
    engine::{Engine, State, decode, decode_head},
    error::engine_error,
    record::{Head, Pointer, Record, head_key, key_of_head},
};

/// The store as it was when a batch of writes had been synced.
pub(crate) struct View {
    pub(crate) engine: Engine,
    pub(crate) snapshot: Snapshot,
    pub(crate) state: State,
}

impl View {
    pub(crate) fn new(engine: &Engine, state: State) -> Self {
        Self { snapshot: engine.snapshot(), engine: engine.clone(), state }
    }

    /// The revision to read at, if it can be read.
    pub(crate) fn moment(&self, at: Option<Revision>) -> Result<Revision> {
        moment(at, self.state.oldest, self.state.revision)
    }

    pub(crate) fn get(&self, key: &[u8], at: Option<Revision>) -> Result<GetResult> {
        let revision = self.moment(at)?;
        let entry = match self.engine.head(&self.snapshot, key)? {
            Some(head) => self.entry_at(head, revision)?,
            None => None,
        };
        Ok(GetResult { revision, entry })
    }

    /// The entries of a range. Those that `recall` has in memory already, by key and revision, are not read.
    pub(crate) fn range(
        &self,
        range: &Range,
        recall: &dyn Fn(&[u8], Revision) -> Option<KeyValue>,
    ) -> Result<RangeResult> {
        let revision = self.moment(range.revision)?;
        let mut result = RangeResult { revision, entries: Vec::new(), more: false };
        let (first, prefix) = (head_key(range.first_key()), head_key(&range.prefix));
        for head in self.snapshot.range(&self.engine.heads, first..) {
            let (key, bytes) = head.into_inner().map_err(|error| engine_error(&error))?;
            if !key.starts_with(&prefix) {
                break;
            }
            let head = decode_head(&key[1..], &bytes)?;
            let recalled = if head.live() && head.pointer.revision <= revision {
                recall(&key[1..], head.pointer.revision)
            } else {
                None
            };
            let entry = match recalled {
                Some(entry) => Some(entry),
                None => self.entry_at(head, revision)?,
            };
            let Some(entry) = entry else { continue };
            if result.entries.len() == range.max_entries() {
                result.more = true;
                break;
            }
            result.entries.push(entry);
        }
        Ok(result)
    }

    /// The entry at `revision` of the key whose newest record is `head`.
    fn entry_at(&self, head: Head, revision: Revision) -> Result<Option<KeyValue>> {
        if !head.live() && head.pointer.revision <= revision {
            return Ok(None);
        }
        let mut pointer = head.pointer;
        loop {
            let Some(record) = self.engine.record(&self.snapshot, pointer)? else {
                // A record that was replaced or deletes its key goes when it is compacted. Then, at any
                // moment that can be read, the key had no value until its next record.
                if pointer.revision <= self.state.oldest && pointer != head.pointer {
                    return Ok(None);
                }
                return Err(missing(pointer));
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

    /// What was there before a record that did not create its key.
    pub(crate) fn previous(&self, record: &Record) -> Result<Option<Previous>> {
        let (false, Some(pointer)) = (record.created, record.replaced) else { return Ok(None) };
        match self.engine.record(&self.snapshot, pointer)? {
            Some(Record { value: Some(value), .. }) => {
                Ok(Some(Previous { value: Bytes::copy_from_slice(&value), revision: pointer.revision }))
            }
            _ => Err(missing(pointer)),
        }
    }

    /// A page of the changes after `request.after`.
    pub(crate) fn backfill(&self, request: &WatchRequest) -> Result<Backfilled> {
        const RECORDS: u32 = 1024;
        const BYTES: usize = 4 << 20;
        let after = self.moment(request.after)?;
        let mut page = Backfilled { changes: Vec::new(), through: self.state.revision };
        let mut events = Vec::new();
        let (mut records, mut bytes) = (0, 0);
        let start = Pointer::new(after.next(), 0).encode();
        for stored in self.snapshot.range(&self.engine.data, start..) {
            let (key, value) = stored.into_inner().map_err(|error| engine_error(&error))?;
            let (pointer, record) = decode(&key, &value.into())?;
            records += 1;
            let last_of_revision = pointer.index + 1 == record.steps;
            if record.key.starts_with(&request.prefix) {
                let previous = if request.previous { self.previous(&record)? } else { None };
                let Record { key, value, created, .. } = record.detached();
                bytes += key.len() + value.as_ref().map_or(0, Bytes::len);
                events.push(Event { key, value, created, previous });
            }
            if last_of_revision {
                if !events.is_empty() {
                    page.changes.push(Arc::new(Change::new(pointer.revision, events.drain(..))));
                }
                // A page ends where a revision does.
                if records >= RECORDS || bytes >= BYTES {
                    page.through = pointer.revision;
                    break;
                }
            }
        }
        Ok(page)
    }

    /// The heads of all keys, for those who look at the whole store.
    pub(crate) fn heads(&self) -> impl Iterator<Item = Result<(Bytes, Head)>> {
        self.snapshot.prefix(&self.engine.heads, b"k").map(|stored| {
            let (key, bytes) = stored.into_inner().map_err(|error| engine_error(&error))?;
            let key = key_of_head(&key.into());
            let head = decode_head(&key, &bytes)?;
            Ok((key, head))
        })
    }

    /// All records, oldest first.
    pub(crate) fn records(&self) -> impl Iterator<Item = Result<(Pointer, Bytes)>> {
        self.snapshot.iter(&self.engine.data).map(|stored| {
            let (key, bytes) = stored.into_inner().map_err(|error| engine_error(&error))?;
            match Pointer::decode(&key) {
                Some(pointer) => Ok((pointer, bytes.into())),
                None => Err(Error::corrupt(format!("a record has the key \"{}\"", key.escape_ascii()))),
            }
        })
    }
}

fn missing(pointer: Pointer) -> Error {
    Error::corrupt(format!("record {} of revision {} is missing", pointer.index, pointer.revision))
}
