//! Looking at the engine's journal before the engine does.
//!
//! The engine replays its journal up to the first thing it does not understand and cuts off the rest:
//! right for a write that was torn by a crash, wrong for damage in the middle, which would take
//! acknowledged writes with it, silently. So the journal is read here first. What is torn and was never
//! acknowledged is cut off; any other damage is an error, and the file is left as it is.
//!
//! The format is that of the engine's version that the workspace pins: a batch is
//! `1, items: u32, sequence: u64`, then each item as `2, kind: u8, compression: u8, tree: u64, key: u16,
//! value: u32, stored: u32` with key and value behind it, then `3, checksum: u64, "FJL\x03"`; the checksum
//! is xxh3 over the items; numbers are little-endian; a new file is filled up with zeros.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use k1s_store::Revision;
use xxhash_rust::xxh3::Xxh3;

use crate::{
    error::OpenError,
    record::{Pointer, Record},
};

const TRAILER: &[u8; 4] = b"FJL\x03";

/// Makes sure that the journal holds everything up to `acknowledged` that the trees may not hold yet, and
/// cuts off what was torn behind it.
///
/// Only what was written last can be torn. If nothing before it in the journal tells how far the store was, it
/// is cut off all the same, but returned: the trees must tell.
pub(crate) fn inspect(engine: &Path, acknowledged: Revision) -> Result<Option<CutOff>, OpenError> {
    let journals = list(engine)?;
    let mut last_revision = None;
    let mut last_sequence = None;
    let mut cut_off = None;
    for (position, path) in journals.iter().enumerate() {
        let scan = Scan::of(path, last_sequence, None).map_err(OpenError::io(path))?;
        last_revision = last_revision.max(scan.last_revision);
        last_sequence = scan.last_sequence;
        let Some(reason) = scan.damage else { continue };
        let is_last =
            position + 1 == journals.len() && !batch_follows(path, scan.len).map_err(OpenError::io(path))?;
        let whole_up_to = last_revision.unwrap_or(if is_last { acknowledged } else { Revision::FIRST });
        if !is_last || whole_up_to < acknowledged {
            return Err(OpenError::damaged(
                path,
                format!(
                    "{reason} at byte {}; it is whole up to revision {whole_up_to}, \
                     and revision {acknowledged} had been acknowledged",
                    scan.len
                ),
            ));
        }
        tracing::warn!(
            journal = %path.display(), byte = scan.len, reason,
            "cutting off a write that was interrupted and never acknowledged"
        );
        if last_revision.is_none() {
            let bytes = fs::read(path).map_err(OpenError::io(path))?;
            cut_off = Some(CutOff { path: path.clone(), bytes });
        }
        cut(path, scan.len)?;
    }
    Ok(cut_off)
}

/// A journal as it was before its end was cut off.
pub(crate) struct CutOff {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl CutOff {
    /// Puts the journal back as it was: it was not just a torn write.
    pub(crate) fn restore(self) -> Result<(), OpenError> {
        fs::write(&self.path, &self.bytes).map_err(OpenError::io(&self.path))
    }
}

/// Cuts off what is later than `acknowledged`: a batch that failed must not come back.
pub(crate) fn cut_after(engine: &Path, acknowledged: Revision) -> Result<(), OpenError> {
    for path in list(engine)? {
        let scan = Scan::of(&path, None, Some(acknowledged)).map_err(OpenError::io(&path))?;
        if scan.damage.is_some() || scan.stopped {
            cut(&path, scan.len)?;
        }
    }
    Ok(())
}

fn list(engine: &Path) -> Result<Vec<PathBuf>, OpenError> {
    let mut journals = Vec::new();
    for entry in fs::read_dir(engine).map_err(OpenError::io(engine))? {
        let path = entry.map_err(OpenError::io(engine))?.path();
        let number =
            path.file_name().and_then(|name| name.to_str()?.strip_suffix(".jnl")?.parse::<u64>().ok());
        journals.extend(number.map(|number| (number, path)));
    }
    journals.sort();
    if journals.is_empty() {
        return Err(OpenError::damaged(engine, "its journal is missing"));
    }
    Ok(journals.into_iter().map(|(_, path)| path).collect())
}

fn cut(path: &Path, len: u64) -> Result<(), OpenError> {
    let cut = || {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(len)?;
        file.sync_all()
    };
    cut().map_err(OpenError::io(path))
}

/// What is in one journal file.
struct Scan {
    /// Bytes of whole batches from the beginning.
    len: u64,
    /// The last revision in them.
    last_revision: Option<Revision>,
    /// The engine's number of the last of them.
    last_sequence: Option<u64>,
    /// What is wrong behind them, unless there is nothing.
    damage: Option<&'static str>,
    /// Whether a whole batch behind them is later than what was to be kept.
    stopped: bool,
}

impl Scan {
    /// Reads a file whose batches come after number `sequence`, up to one that is later than `keep`.
    fn of(path: &Path, sequence: Option<u64>, keep: Option<Revision>) -> io::Result<Self> {
        let mut reader = BufReader::with_capacity(1 << 18, File::open(path)?);
        let mut scan =
            Self { len: 0, last_revision: None, last_sequence: sequence, damage: None, stopped: false };
        loop {
            match Batch::read(&mut reader)? {
                Step::Batch(batch) if keep.is_some_and(|keep| batch.revision > Some(keep)) => {
                    scan.stopped = true;
                    return Ok(scan);
                }
                // The engine's checksum does not cover the number; a wrong one would let an old record win.
                Step::Batch(batch) if Some(batch.sequence) <= scan.last_sequence => {
                    scan.damage = Some("a batch is out of order");
                    return Ok(scan);
                }
                Step::Batch(batch) => {
                    scan.last_sequence = Some(batch.sequence);
                    scan.len += batch.len;
                    scan.last_revision = scan.last_revision.max(batch.revision);
                }
                Step::End => return Ok(scan),
                Step::Unused => {
                    if !only_zeros(reader.into_inner(), scan.len)? {
                        scan.damage = Some("there are bytes behind the end of the journal");
                    }
                    return Ok(scan);
                }
                Step::Damage(reason) => {
                    scan.damage = Some(reason);
                    return Ok(scan);
                }
            }
        }
    }
}

/// Whether there is a whole batch behind `offset`, where something is damaged. A crash cannot leave that: a batch is
/// written when the one before it is synced.
fn batch_follows(path: &Path, offset: u64) -> io::Result<bool> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut rest = Vec::new();
    file.read_to_end(&mut rest)?;
    for end in memchr::memmem::find_iter(&rest, TRAILER) {
        if let Step::Batch(_) = Batch::read(&mut &rest[end + TRAILER.len()..])? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a file has nothing but zeros from `offset` on. Does not read what was never written.
fn only_zeros(mut file: File, mut offset: u64) -> io::Result<bool> {
    let len = file.metadata()?.len();
    let mut chunk = vec![0; 1 << 16];
    while let Some(written) = next_written(&file, offset, len)? {
        file.seek(SeekFrom::Start(written))?;
        let read = file.read(&mut chunk)?;
        if chunk[..read].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        offset = written + read.max(1) as u64;
    }
    Ok(true)
}

/// The first offset that was written, not before `offset`.
#[cfg(target_os = "linux")]
fn next_written(file: &File, offset: u64, len: u64) -> io::Result<Option<u64>> {
    if offset >= len {
        return Ok(None);
    }
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(offset)) {
        Ok(written) => Ok(Some(written)),
        Err(rustix::io::Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn next_written(_file: &File, offset: u64, len: u64) -> io::Result<Option<u64>> {
    Ok((offset < len).then_some(offset))
}

struct Batch {
    len: u64,
    sequence: u64,
    /// The last revision it writes, if it writes any.
    revision: Option<Revision>,
}

enum Step {
    Batch(Batch),
    /// The file ends here.
    End,
    /// The rest of the file has not been used.
    Unused,
    Damage(&'static str),
}

impl Batch {
    fn read(reader: &mut impl BufRead) -> io::Result<Step> {
        match reader.fill_buf()?.first() {
            None => return Ok(Step::End),
            Some(0) => return Ok(Step::Unused),
            Some(1) => {}
            Some(_) => return Ok(Step::Damage("a batch begins with the wrong byte")),
        }
        match Self::parse(reader) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Ok(Step::Damage("a batch is cut off"))
            }
            other => other,
        }
    }

    fn parse(reader: &mut impl BufRead) -> io::Result<Step> {
        const ITEM: usize = 1 + 1 + 1 + 8 + 2 + 4 + 4;
        let [_tag] = take(reader)?;
        let items = u32::from_le_bytes(take(reader)?);
        let sequence = u64::from_le_bytes(take(reader)?);
        let mut batch = Self { len: 13, sequence, revision: None };
        let mut hash = Xxh3::new();
        for _ in 0..items {
            let header = take::<ITEM>(reader)?;
            let [2, _kind, 0, .., k0, k1, v0, v1, v2, v3, s0, s1, s2, s3] = header else {
                return Ok(Step::Damage("an item of a batch begins with the wrong bytes"));
            };
            let value_len = u32::from_le_bytes([v0, v1, v2, v3]);
            if value_len != u32::from_le_bytes([s0, s1, s2, s3]) {
                return Ok(Step::Damage("an item of a batch has two lengths"));
            }
            let key = take_slice(reader, u64::from(u16::from_le_bytes([k0, k1])))?;
            let value = take_slice(reader, u64::from(value_len))?;
            hash.update(&header);
            hash.update(&key);
            hash.update(&value);
            batch.len += (ITEM + key.len() + value.len()) as u64;
            if key.len() == Pointer::LEN
                && let Some(pointer) = Pointer::decode(&key)
                && Record::decode(pointer, &value).is_some()
            {
                batch.revision = batch.revision.max(Some(pointer.revision));
            }
        }
        let [tag, sum @ .., t0, t1, t2, t3] = take::<13>(reader)?;
        if tag != 3 || [t0, t1, t2, t3] != *TRAILER {
            return Ok(Step::Damage("a batch has no proper end"));
        }
        if u64::from_le_bytes(sum) != hash.digest() {
            return Ok(Step::Damage("a batch does not match its checksum"));
        }
        batch.len += 13;
        Ok(Step::Batch(batch))
    }
}

fn take<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// So many bytes. The length is not to be trusted: memory is taken as bytes come.
fn take_slice(reader: &mut impl Read, len: u64) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    if reader.take(len).read_to_end(&mut bytes)? as u64 != len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes.into())
}
