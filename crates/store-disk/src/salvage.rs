//! What can be recovered from a damaged store.
//!
//! Every record has its own checksum, so intact records are recognized. For the others, the directory tells
//! the key and the revision; without a directory, the readable parts of the record or the gaps between
//! revisions do. The newest intact live record of each key is kept; later records that cannot be read are
//! reported.

use std::{
    collections::{BTreeMap, HashSet},
    fmt, io,
    path::PathBuf,
};

use bytes::Bytes;
use k1s_store::Revision;

use crate::{
    checkpoint::Checkpoint,
    error::OpenError,
    folder::Folder,
    log::scan::{self, Scan, Unread},
    record::{Pointer, Totals},
};

/// Data that a damaged store held, or may have held.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// The key, if known.
    pub key: Option<Bytes>,
    /// The revision that wrote it, or the first of those that may have.
    pub first: Revision,
    /// The last of those.
    pub last: Revision,
    /// What happened to it.
    pub fate: Fate,
}

/// What happened to data that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// The value is lost, and there is no older one.
    Gone,
    /// The value is lost; the one written by this revision is kept instead.
    Older(Revision),
    /// Writes to unknown keys are lost: a key that is kept may have an older value, or have been deleted.
    Unknown,
    /// The value is kept, but the key may have been deleted since: the record that would tell is damaged.
    PerhapsDeleted,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, first, last, fate } = self;
        match key {
            Some(key) => write!(f, "key \"{}\", revision {first}: ", key.escape_ascii())?,
            None if first == last => write!(f, "revision {first}: ")?,
            None => write!(f, "revisions {first} to {last}: ")?,
        }
        match fate {
            Fate::Gone => f.write_str("lost"),
            Fate::Older(kept) => write!(f, "lost; the value of revision {kept} is kept instead"),
            Fate::Unknown => f.write_str("lost; the keys are unknown"),
            Fate::PerhapsDeleted => f.write_str("kept, but it may have been deleted later"),
        }
    }
}

/// Progress of a long operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The current step.
    pub what: &'static str,
    /// Units done,
    pub done: u64,
    /// of this total.
    pub of: u64,
}

/// What can be recovered of a store, and what cannot.
pub(crate) struct Survey {
    /// The records to keep, in order, by file.
    pub(crate) files: Vec<(PathBuf, Vec<Place>)>,
    /// The size of what is kept.
    pub(crate) totals: Totals,
    /// The newest revision that ever existed, as far as known.
    pub(crate) newest: Revision,
    /// Number of intact records, history included.
    pub(crate) records: u64,
    pub(crate) problems: Vec<String>,
    pub(crate) lost: Vec<Lost>,
}

/// The position of a record in a file.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) pointer: Pointer,
    pub(crate) at: usize,
    pub(crate) len: usize,
}

/// What is known about a key.
#[derive(Default)]
struct Known {
    /// The newest readable value: its file, position, and size including the key.
    value: Option<(usize, Place, u32)>,
    /// A later value that is unreadable.
    lost: Option<Pointer>,
    /// Whether the value may have been deleted later.
    in_doubt: bool,
}

struct Surveyor {
    acknowledged: Option<Revision>,
    checkpoint: Option<Checkpoint>,
    problems: Vec<String>,
    keys: BTreeMap<Bytes, Known>,
    /// Missing revisions whose keys are unknown.
    unknown: Vec<(Revision, Revision)>,
    /// The revision after the last one found.
    reached: Revision,
}

/// Reads a store, no matter how damaged it is.
pub(crate) fn survey(folder: &Folder, progress: &mut dyn FnMut(Progress)) -> Result<Survey, OpenError> {
    let mut problems = Vec::new();
    let acknowledged = match folder.acknowledged() {
        Err(OpenError::Damaged { path, reason }) => {
            problems.push(format!("{}: {reason}", path.display()));
            None
        }
        read => Some(read?.revision),
    };
    let checkpoint = match Checkpoint::read(&**folder.files(), &folder.checkpoint()) {
        Err(OpenError::Damaged { path, reason }) => {
            problems.push(format!("{}: {reason}", path.display()));
            None
        }
        read => Some(read?),
    };
    match folder.check_format() {
        Ok(()) => {}
        Err(OpenError::Damaged { path, reason }) => problems.push(format!("{}: {reason}", path.display())),
        Err(error) => return Err(error),
    }
    let surveyor = Surveyor {
        acknowledged,
        checkpoint,
        problems,
        keys: BTreeMap::new(),
        unknown: Vec::new(),
        reached: Revision::FIRST,
    };
    surveyor.run(folder, progress)
}

impl Surveyor {
    fn run(mut self, folder: &Folder, progress: &mut dyn FnMut(Progress)) -> Result<Survey, OpenError> {
        let log = folder.log();
        let ids = match scan::ids(&**folder.files(), &log) {
            Ok(ids) => ids,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(OpenError::io(&log)(error)),
        };
        let mut scans = Vec::with_capacity(ids.len());
        for (done, id) in (0..).zip(&ids) {
            progress(Progress { what: "reading segments", done, of: ids.len() as u64 });
            scans.push(Scan::read(&**folder.files(), &log, *id).map_err(OpenError::io(&log))?);
        }
        let chain = self.chain(scans);
        if chain.is_empty() {
            self.problems.push(format!("{}: its segments are missing", log.display()));
        }
        for (file, scan) in chain.iter().enumerate() {
            let next = chain.get(file + 1);
            if file + 1 < chain.len() && scan.listed.is_none() && scan.problems.is_empty() {
                self.problems.push(format!("{}: its directory is missing", scan.path.display()));
            }
            self.problems.extend(scan.problems.iter().cloned());
            self.segment(file, scan, next, &chain[file + 1..]);
        }
        Ok(self.finish(&chain))
    }

    /// The segments that are part of the log, oldest first.
    fn chain(&mut self, scans: Vec<Scan>) -> Vec<Scan> {
        let mut chain = Vec::with_capacity(scans.len());
        let mut wanted = None;
        for scan in scans.into_iter().rev() {
            match wanted {
                // Replaced by a cleaned segment.
                Some(wanted) if scan.id > wanted => continue,
                Some(wanted) if scan.id < wanted => self.missing(scan.id + 1, wanted),
                _ => {}
            }
            let known = self.checkpoint.as_ref().and_then(|checkpoint| checkpoint.first_of(scan.id));
            wanted = Some(scan.from().or(known).unwrap_or(scan.id) - 1);
            chain.push(scan);
        }
        if let Some(wanted) = wanted.filter(|wanted| *wanted > 0) {
            self.missing(1, wanted);
        }
        chain.reverse();
        chain
    }

    fn missing(&mut self, first: u64, last: u64) {
        let which = if first == last { first.to_string() } else { format!("{first} to {last}") };
        self.problems.push(format!("segment {which} of the log is missing"));
    }

    /// Processes the records of one segment.
    fn segment(&mut self, file: usize, scan: &Scan, next: Option<&Scan>, later: &[Scan]) {
        let origin = scan.origin();
        let dead = self.checkpoint.as_ref().and_then(|checkpoint| match origin {
            // Segments that the checkpoint does not list were created or cleaned after it.
            Some(origin) => Some(checkpoint.dead_of(scan.id, origin).cloned().unwrap_or_default()),
            None => {
                let records = scan.listed.as_ref().map_or(scan.records.len(), Vec::len);
                checkpoint.dead_among(scan.id, records).cloned()
            }
        });
        // The record of a deletion may have been omitted from a later segment, while the value it deleted is
        // here.
        let cleaned = origin.map_or(Revision::FIRST, |(_, cleaned)| cleaned);
        let may_be_deleted =
            later.iter().any(|later| later.origin().is_none_or(|(_, later)| later > cleaned));
        let mut events = Vec::new();
        for whole in &scan.records {
            let torn = next.is_none()
                && !whole.frame_is_whole
                && self.acknowledged.is_some_and(|acknowledged| whole.pointer.revision > acknowledged);
            if torn {
                // Never acknowledged, and part of its frame is missing.
                continue;
            }
            let known_dead = dead.as_ref().zip(whole.number).map(|(dead, number)| dead.contains(number));
            if known_dead == Some(true) {
                continue;
            }
            let event = match whole.head.size {
                Some(size) => {
                    let place = Place { pointer: whole.pointer, at: whole.at, len: whole.len };
                    Event::Value { place, size, in_doubt: known_dead.is_none() && may_be_deleted }
                }
                None => Event::Deleted,
            };
            events.push((whole.pointer, whole.key.clone(), event));
        }
        match &scan.listed {
            Some(listed) => {
                let whole: HashSet<Pointer> = scan.records.iter().map(|whole| whole.pointer).collect();
                for (number, (key, head)) in listed.iter().enumerate() {
                    let is_dead = dead.as_ref().is_some_and(|dead| dead.contains(number));
                    if !whole.contains(&head.pointer) && !is_dead {
                        // For a deletion, the directory entry is sufficient.
                        let event = if head.live() { Event::Lost } else { Event::Deleted };
                        events.push((head.pointer, key.clone(), event));
                    }
                }
                if next.is_none() {
                    let last = listed.last().map(|(_, head)| head.pointer.revision.next());
                    self.until_acknowledged(last.unwrap_or(self.first_of(scan)));
                }
            }
            None => self.gaps(scan, next, &mut events),
        }
        let listed = scan.listed.as_ref().and_then(|listed| listed.last()).map(|(_, head)| head.pointer);
        if let Some(last) = listed.max(scan.records.last().map(|last| last.pointer)) {
            self.reached = last.revision.next();
        }
        events.sort_by_key(|(pointer, ..)| *pointer);
        for (pointer, key, event) in events {
            let known = self.keys.entry(key).or_default();
            match event {
                Event::Value { place, size, in_doubt } => {
                    *known = Known { value: Some((file, place, size)), lost: None, in_doubt };
                }
                Event::Deleted => *known = Known::default(),
                Event::Lost => known.lost = Some(pointer),
            }
        }
    }

    /// Finds missing records in a segment without a directory.
    fn gaps(&mut self, scan: &Scan, next: Option<&Scan>, events: &mut Vec<(Pointer, Bytes, Event)>) {
        // Up to here, records may have been omitted.
        let cleaned = scan.origin().map(|(_, cleaned)| cleaned);
        let mut expected = Pointer::new(self.first_of(scan), 0);
        for whole in &scan.records {
            if whole.pointer > expected {
                self.gap(scan, expected, whole.pointer, cleaned, events);
            }
            expected = whole.pointer.next(whole.steps);
        }
        match next {
            Some(next) => {
                let end = next.begin().or_else(|| next.records.first().map(|whole| whole.pointer.revision));
                let end = Pointer::new(end.unwrap_or(expected.revision.next()), 0);
                if end > expected {
                    self.gap(scan, expected, end, cleaned, events);
                }
            }
            None => {
                let acknowledged =
                    self.acknowledged.or((!scan.unread.is_empty()).then_some(expected.revision));
                let end = acknowledged.map(|acknowledged| Pointer::new(acknowledged.next(), 0));
                if let Some(end) = end.filter(|end| *end > expected) {
                    self.gap(scan, expected, end, cleaned, events);
                }
            }
        }
    }

    /// Handles missing records from `first` to before `end`.
    fn gap(
        &mut self,
        scan: &Scan,
        first: Pointer,
        end: Pointer,
        cleaned: Option<Revision>,
        events: &mut Vec<(Pointer, Bytes, Event)>,
    ) {
        let last = if end.index == 0 { Revision::new(end.revision.get() - 1) } else { end.revision };
        let here = |unread: &&Unread| unread.pointer.is_some_and(|pointer| (first..end).contains(&pointer));
        let mut named = HashSet::new();
        for unread in scan.unread.iter().filter(here) {
            if let (Some(pointer), Some(key)) = (unread.pointer, &unread.key) {
                // Further records of the same revision may be missing.
                if scan.unread.iter().all(|unread| unread.is_one) {
                    named.insert(pointer.revision);
                }
                // An unreadable record may claim anything about itself: it is reported, but decides nothing.
                events.push((pointer, key.clone(), Event::Lost));
            }
        }
        if scan.unread.is_empty() && cleaned.is_none_or(|cleaned| last <= cleaned) {
            // Most likely omitted when the segment was cleaned.
            return;
        }
        let mut missing = (first.revision.get()..=last.get()).map(Revision::new);
        let one_by_one = last.get() - first.revision.get() < 1000;
        if one_by_one {
            for revision in missing.filter(|revision| !named.contains(revision)) {
                match self.unknown.last_mut() {
                    Some((_, last)) if last.next() == revision => *last = revision,
                    _ => self.unknown.push((revision, revision)),
                }
            }
        } else if missing.next().is_some() {
            self.unknown.push((first.revision, last));
        }
    }

    /// Reports the acknowledged revisions from `first` on as missing.
    fn until_acknowledged(&mut self, first: Revision) {
        if let Some(acknowledged) = self.acknowledged.filter(|acknowledged| *acknowledged >= first) {
            self.unknown.push((first, acknowledged));
        }
    }

    /// The first revision that a segment can hold.
    fn first_of(&self, scan: &Scan) -> Revision {
        // An empty store is at the first revision, which has no record.
        scan.begin().unwrap_or(self.reached).max(Revision::new(2))
    }

    fn finish(mut self, chain: &[Scan]) -> Survey {
        let wholes = || chain.iter().flat_map(|scan| &scan.records);
        let last = wholes().next_back();
        // Missing segments.
        let mut before: Option<&Scan> = None;
        for scan in chain {
            let (from, id) = (scan.from().unwrap_or(scan.id), before.map_or(0, |before| before.id));
            if from > id + 1 {
                let first = before.and_then(|before| before.records.last());
                let first = first.map_or(Revision::new(2), |last| last.pointer.revision.next());
                let begin = scan.begin().or_else(|| scan.records.first().map(|first| first.pointer.revision));
                let end = begin.map_or(first, |begin| Revision::new(begin.get().saturating_sub(1)));
                self.unknown.push((first, end.max(first)));
            }
            before = Some(scan);
        }
        if chain.is_empty() {
            self.until_acknowledged(Revision::new(2));
        }
        self.unknown.sort_unstable();
        self.unknown.dedup();
        let mut lost: Vec<Lost> = Vec::new();
        for (first, last) in std::mem::take(&mut self.unknown) {
            lost.push(Lost { key: None, first, last, fate: Fate::Unknown });
        }
        let mut files: Vec<(PathBuf, Vec<Place>)> =
            chain.iter().map(|scan| (scan.path.clone(), Vec::new())).collect();
        let mut totals = Totals::default();
        let mut in_doubt = Vec::new();
        for (key, known) in std::mem::take(&mut self.keys) {
            if let Some(pointer) = known.lost {
                let fate =
                    known.value.map_or(Fate::Gone, |(_, place, _)| Fate::Older(place.pointer.revision));
                let revision = pointer.revision;
                lost.push(Lost { key: Some(key.clone()), first: revision, last: revision, fate });
            }
            let Some((file, place, size)) = known.value else { continue };
            files[file].1.push(place);
            totals.keys += 1;
            totals.bytes += u64::from(size);
            if known.in_doubt {
                let revision = place.pointer.revision;
                let (key, fate) = (Some(key), Fate::PerhapsDeleted);
                in_doubt.push(Lost { key, first: revision, last: revision, fate });
            }
        }
        for (_, places) in &mut files {
            places.sort_unstable_by_key(|place| place.pointer);
        }
        // If nothing is lost and the size matches the newest record, no deleted key has reappeared.
        if !lost.is_empty() || last.is_some_and(|last| last.totals != totals) {
            if !in_doubt.is_empty() {
                let count = in_doubt.len();
                self.problems.push(format!("{count} keys may have been deleted"));
            }
            lost.extend(in_doubt);
        }
        let begins =
            chain.iter().filter_map(|scan| Some(Revision::new(scan.begin()?.get().saturating_sub(1))));
        let oldest = self.checkpoint.iter().map(|checkpoint| checkpoint.oldest);
        let newest =
            begins.chain(oldest).chain(self.acknowledged).chain(last.map(|last| last.pointer.revision));
        let newest = newest.max().unwrap_or(Revision::FIRST).max(Revision::FIRST);
        let records = wholes().count() as u64;
        Survey { files, totals, newest, records, problems: self.problems, lost }
    }
}

/// What a segment tells about a key.
enum Event {
    Value { place: Place, size: u32, in_doubt: bool },
    Deleted,
    Lost,
}
