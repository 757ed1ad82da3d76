//! Getting back the room of records that nobody can read any more.
//!
//! Segments with few live records, and small ones, are copied into one without the others. That is done beside the
//! writing thread, on files that do not change; the copy then takes their place at once.

use std::{
    ops::RangeInclusive,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use k1s_store::{Result, Revision};

use super::{Bits, Frame, Header, MOST_BYTES, SEGMENT_HEADER, Segments, new_path_of, segment::Segment};
use crate::{
    error::io_error,
    files::Files,
    record::{Pointer, Record},
};

/// Frames of the copy have about so many bytes.
const FRAME_BYTES: usize = 1 << 20;

/// Neighbours that are to be copied into one segment.
pub(crate) struct Run {
    pub(crate) segments: Vec<Arc<Segment>>,
    /// Which records of each are left out: those that were dead when it was chosen.
    pub(crate) dead: Vec<Bits>,
}

/// Neighbours that are worth cleaning, if there are any, and that fit into one segment.
///
/// Where nothing is live, there is nothing to copy. Anything else waits: what is almost dead is often dead soon. But all in
/// all, no more may be dead than live, and there may not be many small files.
pub(crate) fn choose(segments: &Segments, segment_bytes: u64) -> Option<Run> {
    let segment_bytes = segment_bytes.min(MOST_BYTES);
    // The last one is written to.
    let full = segments.0.split_last().map_or(&[][..], |(_, full)| full);
    let sizes: Vec<Size> = full.iter().map(|segment| Size::of(segment)).collect();
    let (live, dead) = sizes.iter().fold((0, 0), |(live, dead), size| (live + size.live, dead + size.dead));
    let small_files = sizes.len() as u64 > SPARE_FILES + 2 * (live + dead) / segment_bytes.max(1);
    let patient = dead <= live.max(2 * segment_bytes) && !small_files;
    // What a file less is worth, and the least that is worth the trouble: more than an empty file has.
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
            // The most room for what has to be copied.
            let better = best.as_ref().is_none_or(|(most, least, _)| {
                u128::from(gain) * u128::from(least + bonus) > u128::from(*most) * u128::from(live + bonus)
            });
            if gain >= bonus && better {
                best = Some((gain, live, begin..=end));
            }
        }
    }
    let mut run = Run { segments: full[best?.2].to_vec(), dead: Vec::new() };
    // Up to here, sizes were estimates. Now it is known what is dead.
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

/// So many small files are nothing to worry about.
const SPARE_FILES: u64 = 8;

/// About how many bytes of a segment are live and dead.
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

/// Copies what is live in `run` into a segment that can take its place. `None` if `stop` says so.
///
/// What is dead is known from the checkpoint, and from nothing else when it is left out: that must be on disk, and say the
/// same as `run` does. `swept` is how far it goes.
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
        // It would go the next time the store is opened, too, but may take up the room that is needed until then.
        let _ = files.remove_file(&path);
    }
    copied
}

/// False if `stop` says so.
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
                // What is damaged is not copied.
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

/// Which records of the copy of `run` have died since it was chosen.
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
    fn a_segment_that_nothing_is_left_of_is_not_cleaned_again_and_again() {
        for segment_bytes in [0, 100, 1024, 64 << 10] {
            let folder = tempfile::tempdir().unwrap();
            let mut log = Log::create(&files::real(), &folder.path().join("log"), segment_bytes).unwrap();
            // The first one is empty, and full all the same, as it is when all that was in it has been left out.
            log.roll().unwrap();
            assert!(choose(&log.segments(), segment_bytes).is_none(), "{segment_bytes}");
        }
    }

    #[test]
    fn what_is_copied_together_fits_into_one_segment_however_large_the_live_ones_are() {
        const SEGMENT: u64 = 64 << 10;
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(&files::real(), &folder.path().join("log"), SEGMENT).unwrap();
        let mut frame = Frame::default();
        let mut dead = Vec::new();
        for revision in 2..20_000 {
            let pointer = Pointer::new(Revision::new(revision), 0);
            // Few that are large and live, and many that are small and dead.
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
            segments.kill(pointer);
        }
        let run = choose(&segments, SEGMENT).unwrap();
        let stop = AtomicBool::new(false);
        let copy = clean(&files::real(), &run, Revision::new(19_999), folder.path(), &stop).unwrap().unwrap();
        assert!(copy.records() > 0 && u64::from(copy.end()) < 2 * SEGMENT, "{} bytes", copy.end());
        stop.store(true, Ordering::Relaxed);
        std::fs::remove_file(&copy.path).unwrap();
        assert!(clean(&files::real(), &run, Revision::new(19_999), folder.path(), &stop).unwrap().is_none());
        assert!(!copy.path.exists(), "what was not finished takes up no room");
    }
}
