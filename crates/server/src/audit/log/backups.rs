//! The renamed files of a log: `audit-2026-01-02T15-04-05.000.log`, and `….log.gz` when compressed.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use flate2::{Compression, write::GzEncoder};
use jiff::{SignedDuration, Timestamp, civil::DateTime, tz::TimeZone};
use k1s_env::Env;
use parking_lot::Mutex;

use crate::audit::options::AuditLogOptions;

const FORMAT: &str = "%Y-%m-%dT%H-%M-%S";

/// A file name without its last extension, and the extension with its dot.
fn split(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned());
    let stem = text(path.file_stem()).unwrap_or_default();
    let extension = text(path.extension()).map(|extension| format!(".{extension}")).unwrap_or_default();
    (stem, extension)
}

/// The name of a file that is renamed at this time.
pub(super) fn name(path: &Path, at: Timestamp) -> PathBuf {
    let (stem, extension) = split(path);
    let (time, millis) = (at.strftime(FORMAT), at.subsec_millisecond());
    path.with_file_name(format!("{stem}-{time}.{millis:03}{extension}"))
}

/// The name of such a file when it is compressed.
pub(super) fn compressed(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".gz");
    name.into()
}

/// A renamed file.
#[derive(Debug)]
struct Backup {
    path: PathBuf,
    at: Timestamp,
    is_compressed: bool,
}

/// The renamed files of a log, the newest first.
fn list(log: &Path) -> io::Result<Vec<Backup>> {
    let (stem, extension) = split(log);
    let folder = log.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let plain = name.strip_suffix(".gz");
        let (is_compressed, plain) = (plain.is_some(), plain.unwrap_or(&name));
        let time = plain.strip_prefix(&format!("{stem}-")).and_then(|rest| rest.strip_suffix(&extension));
        if let Some(at) = time.and_then(parse) {
            found.push(Backup { path: entry.path(), at, is_compressed });
        }
    }
    found.sort_by_key(|backup| std::cmp::Reverse(backup.at));
    Ok(found)
}

fn parse(time: &str) -> Option<Timestamp> {
    let (seconds, millis) = time.split_once('.')?;
    let at = DateTime::strptime(FORMAT, seconds).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
    let millis: i64 = (millis.len() == 3).then(|| millis.parse().ok())??;
    at.checked_add(SignedDuration::from_millis(millis)).ok()
}

/// Removes renamed files that are too old or too many, and compresses the others, in the background; `turn` is held meanwhile.
pub(super) fn tidy(env: &Env, options: &AuditLogOptions, turn: &Arc<Mutex<()>>) {
    let (now, options, turn) = (crate::time::now(env), options.clone(), turn.clone());
    drop(env.spawn_blocking("audit log backups", move || {
        let _turn = turn.lock();
        if let Err(error) = tidy_now(now, &options) {
            tracing::error!(%error, "old audit logs cannot be removed or compressed");
        }
    }));
}

fn tidy_now(now: Timestamp, options: &AuditLogOptions) -> io::Result<()> {
    let mut kept: Vec<Timestamp> = Vec::new();
    for backup in list(&options.path)? {
        // A file that is being compressed when the process ends is there twice.
        if !kept.contains(&backup.at) {
            kept.push(backup.at);
        }
        let is_surplus = options.max_backups > 0 && kept.len() > options.max_backups;
        let age = now.duration_since(backup.at);
        let is_old = !options.max_age.is_zero() && age.unsigned_abs() > options.max_age && age.is_positive();
        if is_surplus || is_old {
            fs::remove_file(&backup.path)?;
        } else if options.compress && !backup.is_compressed {
            compress(&backup.path)?;
        }
    }
    Ok(())
}

fn compress(path: &Path) -> io::Result<()> {
    let into = compressed(path);
    let written = write_compressed(path, &into);
    if written.is_err() {
        let _ = fs::remove_file(&into);
    }
    written?;
    fs::remove_file(path)
}

fn write_compressed(path: &Path, into: &Path) -> io::Result<()> {
    let mut from = File::open(path)?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut encoder = GzEncoder::new(options.open(into)?, Compression::default());
    io::copy(&mut from, &mut encoder)?;
    let mut file = encoder.finish()?;
    file.flush()?;
    file.sync_all()
}
