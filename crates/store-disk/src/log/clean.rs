//! Cleaning: reclaims the space of dead records.
//!
//! Segments with few live records, and small ones, are copied into one that omits the dead records. A
//! separate thread copies, since full segments do not change; the copy then replaces them atomically.

use std::{
    ops::RangeInclusive,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use k1s_store::{Result, Revision};

use super::{
    Bits, Frame, Header, MAX_SEGMENT_BYTES, SEGMENT_HEADER, Segments, new_path_of, segment::Segment,
};
use crate::{
    error::io_error,
    files::Files,
    record::{Pointer, Record},
};

/// Size at which a frame of the copy is closed.
const FRAME_BYTES: usize = 1 << 20;

/// Adjacent segments to be copied into one.
pub(crate) struct Run {
    pub(crate) segments: Vec<Arc<Segment>>,
    /// The records of each to omit: those that were dead when the run was chosen.
    pub(crate) dead: Vec<Bits>,
}

/// The adjacent segments most worth cleaning, if any, that fit into one.
///
/// Segments without live records are always chosen. Others wait, since a mostly dead segment is often dead
/// soon, unless in total more is dead than live or there are many small files.
pub(crate) fn choose(segments: &Segments, segment_bytes: u64) -> Option<Run> {
    let segment_bytes = segment_bytes.min(MAX_SEGMENT_BYTES);
    // The last segment is still being written.
    let full = segments.0.split_last().map_or(&[][..], |(_, full)| full);
    let sizes: Vec<Size> = full.iter().map(|segment| Size::of(segment)).collect();
    let (live, dead) = sizes.iter().fold((0, 0), |(live, dead), size| (live + size.live, dead + size.dead));
    let small_files = sizes.len() as u64 > SPARE_FILES + 2 * (live + dead) / segment_bytes.max(1);
    let patient = dead <= live.max(2 * segment_bytes) && !small_files;
    // The value of one file less, and the minimum gain: more than an empty file can yield.
    let bonus = (segment_bytes / 32).max(SEGMENT_HEADER as u64 + 1);
    let mut best: Option<(u64, u64, RangeInclusive<usize>)> = None;
    for begin in 0..sizes.len() {
        let (mut live, mut gain) = (0, 0);
        for (end, size) in sizes.iter().enumerate().skip(begin) {
            live += size.live;
            gain += size.dead + if end > begin { bonus } else { 0 };
            if live > if patient { 0 } else { segment_bytes } {
                break;
            }
            // The best ratio of reclaimed to copied bytes.
            let better = best.as_ref().is_none_or(|(most, least, _)| {
                u128::from(gain) * u128::from(least + bonus) > u128::from(*most) * u128::from(live + bonus)
            });
            if gain >= bonus && better {
                best = Some((gain, live, begin..=end));
            }
        }
    }
    let mut run = Run { segments: full[best?.2].to_vec(), dead: Vec::new() };
    // So far, sizes were estimates. Now the dead records are exact.
    run.dead = run.segments.iter().map(|segment| segment.dead()).collect();
    let (mut live, mut gain, mut fit) = (0, 0, 0);
    for size in run.segments.iter().map(|segment| Size::of(segment)) {
        live += size.live;
        if fit > 0 && live > segment_bytes {
            break;
        }
        gain += size.dead + if fit > 0 { bonus } else { 0 };
        fit += 1;
    }
    run.segments.truncate(fit);
    run.dead.truncate(fit);
    (gain >= bonus).then_some(run)
}

/// Number of small files that are tolerated.
const SPARE_FILES: u64 = 8;

/// Approximate live and dead bytes of a segment.
struct Size {
    live: u64,
    dead: u64,
}

impl Size {
    fn of(segment: &Segment) -> Self {
        let (dead, live) = segment.dead_and_live_bytes();
        Self { live, dead }
    }
}

/// Copies the live records of `run` into a segment that can replace it. Returns `None` if `stop` is set.
///
/// Only the checkpoint tells which records were omitted, so the checkpoint on disk must list the same dead
/// records as `run`. `swept` is the revision it is swept to.
pub(crate) fn clean(
    files: &Arc<dyn Files>,
    run: &Run,
    swept: Revision,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<Option<Segment>> {
    let (Some(first), Some(last)) = (run.segments.first(), run.segments.last()) else { return Ok(None) };
    let header = Header { id: last.id(), from: first.header.from, begin: first.begin(), cleaned: swept };
    let path = new_path_of(folder, last.id());
    let copied = Segment::create(files, &path, header).map_err(|error| io_error(&error)).and_then(|copy| {
        let complete = copy_live(run, &copy, stop)?;
        Ok(complete.then_some(copy))
    });
    if !matches!(copied, Ok(Some(_))) {
        // The next open would remove it, too, but its space may be needed before.
        let _ = files.remove_file(&path);
    }
    copied
}

/// Returns false if `stop` is set.
fn copy_live(run: &Run, copy: &Segment, stop: &AtomicBool) -> Result<bool> {
    let mut frame = Frame::default();
    let mut stopped = false;
    for (segment, dead) in run.segments.iter().zip(&run.dead) {
        if dead.count() == segment.records() {
            continue;
        }
        let mut number = 0;
        segment.each(Pointer::new(Revision::FIRST, 0), &mut |pointer, bytes| {
            if !dead.contains(number) {
                // Damaged records are not copied.
                Record::read(pointer, &bytes)?;
                frame.push(pointer, |into| into.extend_from_slice(&bytes));
            }
            number += 1;
            if frame.len() >= FRAME_BYTES {
                write(copy, &mut frame)?;
            }
            stopped = stop.load(Ordering::Relaxed);
            Ok(!stopped)
        })?;
        if stopped {
            return Ok(false);
        }
    }
    write(copy, &mut frame)?;
    copy.seal().map_err(|error| io_error(&error))?;
    Ok(true)
}

/// The records in the copy of `run` that have died since it was chosen.
pub(crate) fn died_since(run: &Run) -> Bits {
    let mut died = Bits::default();
    let mut number = 0;
    for (segment, dead) in run.segments.iter().zip(&run.dead) {
        let now = segment.dead();
        for record in (0..segment.records() as usize).filter(|record| !dead.contains(*record)) {
            if now.contains(record) {
                died.set(number);
            }
            number += 1;
        }
    }
    died
}

fn write(copy: &Segment, frame: &mut Frame) -> Result<()> {
    if !frame.is_empty() {
        let at = u64::from(copy.end());
        copy.file.write_all_at(frame.finish(0), at).map_err(|error| io_error(&error))?;
        copy.extend(frame);
        frame.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{files, log::Log, record::Totals};

    #[test]
    fn an_empty_segment_is_not_cleaned_again() {
        for segment_bytes in [0, 100, 1024, 64 << 10] {
            let folder = tempfile::tempdir().unwrap();
            let mut log = Log::create(&files::real(), &folder.path().join("log"), segment_bytes).unwrap();
            // The first segment is empty but sealed, as after all its records have been omitted.
            log.roll().unwrap();
            assert!(choose(&log.segments(), segment_bytes).is_none(), "{segment_bytes}");
        }
    }

    #[test]
    fn a_chosen_run_fits_into_one_segment_even_with_large_live_records() {
        const SEGMENT: u64 = 64 << 10;
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(&files::real(), &folder.path().join("log"), SEGMENT).unwrap();
        let mut frame = Frame::default();
        let mut dead = Vec::new();
        for revision in 2..20_000 {
            let pointer = Pointer::new(Revision::new(revision), 0);
            // Few large live records, and many small dead ones.
            let len = if revision % 400 == 0 { 32 << 10 } else { 20 };
            dead.extend((len == 20).then_some(pointer));
            let record = Record {
                key: format!("/{revision}").into(),
                value: Some(vec![7; len].into()),
                created: true,
                replaced: None,
                steps: 1,
                totals: Totals::default(),
            };
            frame.clear();
            frame.push(pointer, |bytes| record.encode(pointer, bytes));
            log.append_unsynced(&mut frame).unwrap();
        }
        let segments = log.segments();
        for pointer in dead {
            segments.mark_dead(pointer);
        }
        let run = choose(&segments, SEGMENT).unwrap();
        let stop = AtomicBool::new(false);
        let copy = clean(&files::real(), &run, Revision::new(19_999), folder.path(), &stop).unwrap().unwrap();
        assert!(copy.records() > 0 && u64::from(copy.end()) < 2 * SEGMENT, "{} bytes", copy.end());
        stop.store(true, Ordering::Relaxed);
        std::fs::remove_file(&copy.path).unwrap();
        assert!(clean(&files::real(), &run, Revision::new(19_999), folder.path(), &stop).unwrap().is_none());
        assert!(!copy.path.exists(), "an unfinished copy is removed");
    }
}
