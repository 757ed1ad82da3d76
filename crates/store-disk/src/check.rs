//! Reads a whole store and reports damage.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use k1s_store::{Range, Revision};

use crate::{
    heads::Dead,
    log::Segments,
    record::{Head, Pointer, Record, Totals, describe, entry_size},
    view::View,
};

/// Maximum number of problems reported individually.
const MAX_PROBLEMS: usize = 100;

/// The result of [`DiskStore::check`](crate::DiskStore::check).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The newest revision.
    pub revision: Revision,
    /// The oldest revision that can be read.
    pub oldest: Revision,
    /// Keys that have a value.
    pub keys: u64,
    /// Records that were read, history included.
    pub records: u64,
    /// Descriptions of all problems. Empty for a sound store.
    pub problems: Vec<String>,
}

impl Report {
    /// Whether there are no problems.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    fn problem(&mut self, text: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(text);
        }
    }
}

/// Checks that
/// - all frames and records are intact, and from the oldest revision on, none is missing;
/// - every head points to the newest record of its key, and every key with a value has a head;
/// - every record that was replaced within the readable history is present;
/// - exactly the dead records are marked as dead;
/// - the totals are right.
pub(crate) fn check(view: &View, dead: &Dead) -> Report {
    let state = view.state;
    let mut report = Report { revision: state.revision, oldest: state.oldest, ..Report::default() };
    let mut newest = HashMap::<_, Pointer>::new();
    // Records up to `swept` that are still readable.
    let mut live = HashSet::new();
    let mut present = HashSet::new();
    let mut replaced = Vec::new();
    // The next record expected, from the oldest revision on.
    let mut expected = Pointer::new(state.oldest.next(), 0);

    let log = view.heads.log();
    for segment in log.iter() {
        if let Err(error) = segment.check_frames() {
            report.problem(error.to_string());
        }
    }
    let read = log.each(Pointer::new(Revision::FIRST, 0), |pointer, bytes| {
        if pointer.revision > state.revision {
            return Ok(false);
        }
        report.records += 1;
        let at = format!("record {} of revision {}", pointer.index, pointer.revision);
        let Some(record) = Record::decode(pointer, &bytes) else {
            report.problem(format!("{} does not match its checksum", describe(pointer, &bytes)));
            return Ok(true);
        };
        if pointer.revision > state.oldest {
            if pointer != expected {
                report.problem(format!(
                    "record {} of revision {} is missing before {at}",
                    expected.index, expected.revision
                ));
            }
            expected = pointer.next(record.steps);
            if let (false, Some(before)) = (record.created, record.replaced) {
                replaced.push((pointer, before));
            }
        }
        present.insert(pointer);
        newest.insert(Bytes::copy_from_slice(&record.key), pointer);
        if let (true, false, Some(before)) = (pointer.revision > state.swept, record.created, record.replaced)
        {
            live.extend((before.revision <= state.swept).then_some(before));
        }
        Ok(true)
    });
    if let Err(error) = read {
        report.problem(error.to_string());
    }
    if state.revision > state.oldest && expected != Pointer::new(state.revision.next(), 0) {
        report.problem(format!("record {} of revision {} is missing", expected.index, expected.revision));
    }
    for (pointer, before) in replaced {
        if !present.contains(&before) {
            report.problem(format!(
                "record {} of revision {} replaced record {} of revision {}, which is missing",
                pointer.index, pointer.revision, before.index, before.revision
            ));
        }
    }

    let mut totals = Totals::default();
    for (key, head) in view.heads.range(&Range::default()) {
        check_head(&log, &key, head, newest.remove(&key), &mut totals, &mut report);
        if view.heads.get(&key) != Some(head) {
            report.problem(format!("key \"{}\" is listed, but not found", key.escape_ascii()));
        }
        live.extend((head.live() && head.pointer.revision <= state.swept).then_some(head.pointer));
    }
    check_dead(state.swept, dead, &live, &mut report);
    for (key, pointer) in newest {
        // Only keys whose records are all dead may have no head. (A key that lost its head is missing from
        // the totals.)
        if pointer.revision > state.swept {
            report.problem(format!("key \"{}\" has records but no head", key.escape_ascii()));
        }
    }
    report.keys = totals.keys;
    if totals != state.totals {
        report.problem(format!(
            "there are {} keys with {} bytes, but the newest record says {} keys with {} bytes",
            totals.keys, totals.bytes, state.totals.keys, state.totals.bytes
        ));
    }
    report
}

/// Checks that of the records up to `swept`, exactly those in `live` are not marked as dead.
fn check_dead(swept: Revision, dead: &Dead, live: &HashSet<Pointer>, report: &mut Report) {
    for (segment, dead) in dead {
        let listed = segment.each_listed(|listed| {
            let pointer = listed.head.pointer;
            let can_be_read = pointer.revision > swept || live.contains(&pointer);
            if can_be_read == dead.contains(listed.number) {
                let (can, counts) = if can_be_read { ("can", "dead") } else { ("cannot", "live") };
                report.problem(format!(
                    "record {} of revision {} {can} be read, but counts as {counts}",
                    pointer.index, pointer.revision
                ));
            }
        });
        if let Err(error) = listed {
            report.problem(error.to_string());
        }
    }
}

fn check_head(
    log: &Segments,
    key: &[u8],
    head: Head,
    newest: Option<Pointer>,
    totals: &mut Totals,
    report: &mut Report,
) {
    let key_text = key.escape_ascii();
    if newest != Some(head.pointer) {
        report.problem(format!(
            "the head of key \"{key_text}\" points to revision {}, its newest record is {}",
            head.pointer.revision,
            newest.map_or("missing".to_owned(), |pointer| format!("of revision {}", pointer.revision))
        ));
        return;
    }
    match log.get(head.pointer) {
        Ok(Some(record)) => {
            let size = record.value.as_ref().map(|value| entry_size(&record.key, value));
            if size != head.size {
                report.problem(format!("the head of key \"{key_text}\" does not agree with its record"));
            }
            totals.keys += u64::from(size.is_some());
            totals.bytes += u64::from(size.unwrap_or(0));
        }
        Ok(None) => report.problem(format!("the record of key \"{key_text}\" is missing")),
        Err(error) => report.problem(error.to_string()),
    }
}
