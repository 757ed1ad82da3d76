//! Assembles a batch: transactions become records, and preconditions see the batch's earlier writes.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use k1s_store::{Action, Change, Error, Event, KeyValue, Op, Previous, Result, Revision, Txn};

use crate::{
    heads::State,
    log::Frame,
    record::{Head, Pointer, Record, entry_size},
    shared::Shared,
    view::View,
    writer::Write,
};

/// A key's newest state within the batch being assembled.
struct Pending {
    head: Head,
    value: Option<Bytes>,
}

/// A batch being assembled.
pub(crate) struct Batch<'a> {
    frame: &'a mut Frame,
    view: Arc<View>,
    pub(crate) state: State,
    pending: HashMap<Bytes, Pending>,
    /// The heads the batch has written, in order.
    pub(crate) heads: Vec<(Bytes, Head)>,
    pub(crate) changes: Vec<(Arc<Change>, bool)>,
    pub(crate) answers: Vec<(Write, Result<Revision>)>,
}

impl<'a> Batch<'a> {
    /// An empty batch, whose records go into `frame`.
    pub(crate) fn new(frame: &'a mut Frame, view: Arc<View>, state: State, capacity: usize) -> Self {
        frame.clear();
        Self {
            frame,
            view,
            state,
            pending: HashMap::with_capacity(capacity),
            heads: Vec::with_capacity(capacity),
            changes: Vec::with_capacity(capacity),
            answers: Vec::with_capacity(capacity),
        }
    }

    pub(crate) fn add(&mut self, shared: &Shared, mut write: Write) {
        // Deletions are kept: they are retried from the reserve if the disk is full.
        let deletes = write.txn.ops().iter().any(|op| matches!(op.action, Action::Delete));
        let txn = if deletes { write.txn.clone() } else { std::mem::take(&mut write.txn) };
        let answer = self.apply(shared, txn);
        self.answers.push((write, answer));
    }

    fn apply(&mut self, shared: &Shared, txn: Txn) -> Result<Revision> {
        let mut writes = smallvec::SmallVec::<[(Op, Option<Head>); 1]>::new();
        for op in txn.into_ops() {
            let head = self.head(&op.key);
            let current = head.and_then(Head::live_revision);
            if !op.precondition.holds(current) {
                let current = self.current(&op.key, head)?;
                return Err(Error::conflict(op.key, op.precondition, current));
            }
            match op.action {
                Action::Check => {}
                Action::Delete if current.is_none() => {}
                Action::Put(_) | Action::Delete => writes.push((op, head)),
            }
        }
        if writes.is_empty() {
            return Ok(self.state.revision);
        }
        // Previous values are read before anything is changed, because that can fail. They are read only if a
        // watcher needs them; later watches read them from disk.
        let mut complete = true;
        let mut befores = smallvec::SmallVec::<[Option<KeyValue>; 1]>::new();
        for (op, head) in &writes {
            let live = head.filter(|head| head.live());
            let wanted =
                live.is_none() || self.pending.contains_key(&op.key) || shared.feed.wants_previous(&op.key);
            complete &= wanted;
            befores.push(if wanted { self.current(&op.key, live)? } else { None });
        }
        let revision = self.state.revision.next();
        let steps = writes.len() as u32;
        let mut events = smallvec::SmallVec::<[Event; 1]>::new();
        for (index, ((op, replaced), before)) in (0..).zip(writes.into_iter().zip(befores)) {
            let value = match op.action {
                Action::Put(value) => Some(value),
                Action::Delete | Action::Check => None,
            };
            let size = value.as_ref().map(|value| entry_size(&op.key, value));
            let size_before = replaced.and_then(|head| head.size);
            let created = size_before.is_none();
            let totals = &mut self.state.totals;
            totals.keys = totals.keys + u64::from(size.is_some()) - u64::from(!created);
            totals.bytes = totals.bytes + u64::from(size.unwrap_or(0)) - u64::from(size_before.unwrap_or(0));
            let pointer = Pointer::new(revision, index);
            let record = Record {
                key: op.key,
                value,
                created,
                replaced: replaced.map(|head| head.pointer),
                steps,
                totals: *totals,
            };
            let head = Head { pointer, size };
            self.frame.push(pointer, |bytes| record.encode(pointer, bytes));
            let Record { key, value, .. } = record;
            self.heads.push((key.clone(), head));
            self.pending.insert(key.clone(), Pending { head, value: value.clone() });
            let previous = before.map(|before| Previous { value: before.value, revision: before.revision });
            events.push(Event { key, value, created, previous });
        }
        self.changes.push((Arc::new(Change::new(revision, events)), complete));
        self.state.revision = revision;
        Ok(revision)
    }

    /// The newest record of a key, including the batch's own writes.
    fn head(&self, key: &Bytes) -> Option<Head> {
        match self.pending.get(key) {
            Some(pending) => Some(pending.head),
            None => self.view.heads.get(key),
        }
    }

    /// The entry of a key, including the batch's own writes.
    fn current(&self, key: &Bytes, head: Option<Head>) -> Result<Option<KeyValue>> {
        let Some(head) = head.filter(|head| head.live()) else { return Ok(None) };
        let revision = head.pointer.revision;
        if let Some(pending) = self.pending.get(key) {
            return Ok(pending.value.clone().map(|value| KeyValue { key: key.clone(), value, revision }));
        }
        Ok(self.view.get(key, None)?.entry)
    }
}
