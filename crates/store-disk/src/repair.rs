//! Checks and repairs a store that is not open.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use k1s_store::{Error, Revision};

use crate::{
    check,
    checkpoint::Checkpoint,
    error::{OpenError, io_error},
    files::{self, Files},
    folder::{Content, Folder, Making, REPAIRED},
    lock::Access,
    log::{Frame, Log},
    opened::Opened,
    options::DiskOptions,
    record::{Pointer, Record},
    salvage::{self, Lost, Progress, Survey},
};

/// Size at which a frame is closed.
const FRAME_BYTES: usize = 1 << 20;

/// The key of a repaired store's newest record, which holds its revision and size. It deletes a key that has
/// no value.
const MARK: &str = "/_k1s/repaired";

/// The result of [`check_folder`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FolderReport {
    /// The newest revision, as far as known.
    pub revision: Revision,
    /// Keys whose value can be read.
    pub keys: u64,
    /// Number of readable records, history included.
    pub records: u64,
    /// Descriptions of the damage. Empty for a sound store.
    pub problems: Vec<String>,
    /// Data that a repair could not recover.
    pub lost: Vec<Lost>,
}

impl FolderReport {
    /// Whether there is no damage.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty() && self.lost.is_empty()
    }
}

/// The result of [`repair_folder`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repaired {
    /// Nothing was damaged, and nothing was changed.
    Sound(FolderReport),
    /// A new store holds everything that could be read.
    Saved {
        /// The damage, and the data that could not be recovered.
        report: FolderReport,
        /// The path of the good store.
        store: PathBuf,
        /// The path of the damaged one.
        damaged: PathBuf,
    },
    /// An earlier repair was interrupted before its last step, which has been completed now.
    Finished {
        /// The path of the good store.
        store: PathBuf,
    },
}

/// Resolves a path given by a user, a data folder or the `store` in one, to both.
pub(crate) fn places(files: &dyn Files, path: &Path) -> Result<(PathBuf, PathBuf), OpenError> {
    let inner = path.join("store");
    if files.is_dir(&inner) || files.is_dir(&path.join(REPAIRED)) {
        return Ok((path.to_owned(), inner));
    }
    if files.is_dir(&path.join("log")) || files.exists(&path.join("FORMAT")) {
        let parent = files.canonicalize(path).map_err(OpenError::io(path))?;
        if let Some(folder) = parent.parent() {
            return Ok((folder.to_owned(), parent.clone()));
        }
    }
    let reason = if files.exists(path) { "there is no store in it" } else { "there is no such folder" };
    Err(OpenError::Unsuitable { folder: path.to_owned(), reason: reason.to_owned() })
}

/// Fails unless the folder holds a store of the supported format.
pub(crate) fn suitable(folder: &Folder) -> Result<(), OpenError> {
    if folder.content()? == Content::PartOfCopy {
        let reason = "a backup into it was interrupted; make it again".to_owned();
        return Err(OpenError::Unsuitable { folder: folder.path().to_owned(), reason });
    }
    match folder.check_format() {
        Ok(()) | Err(OpenError::Damaged { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Reads the store in `path`, a data folder or the folder `store` in one, and reports all damage and what a
/// repair would lose. Nothing is changed, and a read-only folder is accepted; but the store must not be open.
///
/// # Errors
/// If it cannot be read, is not a store, or is open.
pub fn check_folder(
    path: impl AsRef<Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<FolderReport, OpenError> {
    check_on(&files::real(), path.as_ref(), progress)
}

pub(crate) fn check_on(
    files: &Arc<dyn Files>,
    path: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<FolderReport, OpenError> {
    let (path, store) = places(&**files, path)?;
    let folder = Folder::lock_existing(files, &path, &store, Access::Read)?;
    suitable(&folder)?;
    Ok(examine(&folder, progress)?.0)
}

/// Checks a store; if it is damaged, surveys what can be recovered.
fn examine(
    folder: &Folder,
    progress: &mut dyn FnMut(Progress),
) -> Result<(FolderReport, Option<Survey>), OpenError> {
    let first = match sound(folder, progress) {
        Ok(report) if report.is_sound() => return Ok((report, None)),
        Ok(report) => report.problems,
        Err(OpenError::Damaged { path, reason }) => vec![format!("{}: {reason}", path.display())],
        Err(error) => return Err(error),
    };
    let survey = salvage::survey(folder, progress)?;
    // The survey finds more than the first error.
    let problems = if survey.problems.is_empty() { first } else { survey.problems.clone() };
    let report = FolderReport {
        revision: survey.newest,
        keys: survey.totals.keys,
        records: survey.records,
        problems,
        lost: survey.lost.clone(),
    };
    Ok((report, Some(survey)))
}

/// Opens a store like a server does, but read-only, and checks everything.
pub(crate) fn sound(folder: &Folder, progress: &mut dyn FnMut(Progress)) -> Result<FolderReport, OpenError> {
    folder.check_format()?;
    progress(Progress { what: "reading keys", done: 0, of: 1 });
    let (opened, lost) = Opened::read(folder, &DiskOptions::default(), Access::Read)?;
    progress(Progress { what: "checking records", done: 0, of: 1 });
    let (view, dead) = opened.view().pinned();
    let report = check::check(&view, &dead);
    let mut problems = report.problems;
    if lost.watermark {
        problems.push("the watermark is missing or damaged".to_owned());
    }
    if lost.checkpoint.is_some() {
        problems.push("the checkpoint is missing or damaged".to_owned());
    }
    problems.extend(
        opened.log.unsealed().map(|path| format!("{}: its directory is missing or damaged", path.display())),
    );
    Ok(FolderReport {
        revision: report.revision,
        keys: report.keys,
        records: report.records,
        problems,
        lost: Vec::new(),
    })
}

/// Creates a good store of everything that can be read in `path`, a data folder or the folder `store` in one.
/// Its revision is newer than any the damaged store ever had, and it has no history, so older watches must
/// list again.
///
/// With `output`, the good store is created in that data folder, and nothing else is changed. Without, it
/// replaces the damaged one, which is kept as `store.damaged-1`. A sound store is left unchanged.
///
/// # Errors
/// If it cannot be read or written, is not a store, or is open. The damaged store is then unchanged.
pub fn repair_folder(
    path: impl AsRef<Path>,
    output: Option<&Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Repaired, OpenError> {
    repair_on(&files::real(), path.as_ref(), output, progress)
}

pub(crate) fn repair_on(
    files: &Arc<dyn Files>,
    path: &Path,
    output: Option<&Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Repaired, OpenError> {
    let (path, store) = places(&**files, path)?;
    let access = if output.is_some() { Access::Read } else { Access::Write };
    let folder = Folder::lock_existing(files, &path, &store, access)?;
    let beside = folder.beside(REPAIRED);
    if finish_swap(&folder, &beside)? {
        return Ok(Repaired::Finished { store });
    }
    suitable(&folder)?;
    let (report, survey) = match examine(&folder, progress)? {
        (report, Some(survey)) => (report, survey),
        (report, None) => return Ok(Repaired::Sound(report)),
    };
    let Some(output) = output else {
        make(&beside, &survey, progress)?;
        own_like(&**files, &store, beside.store());
        let damaged = (1_u32..)
            .map(|number| store.with_file_name(format!("{}.damaged-{number}", name_of(&store))))
            .find(|place| !files.exists(place))
            .unwrap_or_else(|| store.with_extension("damaged"));
        swap(&folder, &beside, &damaged)?;
        return Ok(Repaired::Saved { report, store, damaged });
    };
    let target = Folder::lock(files, output)?;
    if target.content()? == Content::Store {
        return Err(OpenError::Unsuitable {
            folder: output.to_owned(),
            reason: "there is a store already; a repaired one needs a folder of its own".to_owned(),
        });
    }
    make(&target, &survey, progress)?;
    Ok(Repaired::Saved { report, store: target.store().to_owned(), damaged: store })
}

/// Replaces the store of a folder by the one beside it, and keeps it under another name.
pub(crate) fn swap(folder: &Folder, beside: &Folder, aside: &Path) -> Result<(), OpenError> {
    let (files, store) = (folder.files(), folder.store());
    // Between the two renames there is no store. Opening it then fails with a hint to repair it, which does the second rename.
    let swap = || {
        files.rename(store, aside)?;
        files.sync_dir(folder.path())?;
        files.rename(beside.store(), store)?;
        files.sync_dir(folder.path())
    };
    swap().map_err(OpenError::io(store))
}

/// Completes a swap that was interrupted between its renames; whether there was one.
pub(crate) fn finish_swap(folder: &Folder, beside: &Folder) -> Result<bool, OpenError> {
    let (files, store) = (folder.files(), folder.store());
    if files.exists(store) || beside.content()? != Content::Store {
        return Ok(false);
    }
    let renamed = beside
        .make_durable()
        .and_then(|()| files.rename(beside.store(), store))
        .and_then(|()| files.sync_dir(folder.path()));
    renamed.map_err(OpenError::io(store))?;
    Ok(true)
}

fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(|| "store".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Creates a store of what can be recovered, and checks it.
fn make(target: &Folder, survey: &Survey, progress: &mut dyn FnMut(Progress)) -> Result<(), OpenError> {
    let revision = survey.newest.next();
    let made = target.create(Making::Copy, revision, |target| {
        copy(target, survey, revision, progress).map_err(|error| match error {
            Error::Full { .. } | Error::Unavailable { .. } | Error::Corrupt { .. } => {
                OpenError::io(target.store())(std::io::Error::other(error.to_string()))
            }
            other => OpenError::damaged(target.store(), other.to_string()),
        })
    });
    let checked = made.and_then(|()| sound(target, progress));
    match checked {
        Ok(report) if report.is_sound() && report.keys == survey.totals.keys => Ok(()),
        Ok(report) => Err(OpenError::damaged(
            target.store(),
            format!("the repaired store is not sound: {:?}; the damaged store is unchanged", report.problems),
        )),
        Err(error) => {
            // The partial copy may be what filled the disk.
            let _ = target.files().remove_dir_all(target.store());
            Err(error)
        }
    }
}

fn copy(
    target: &Folder,
    survey: &Survey,
    revision: Revision,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let io = |error: std::io::Error| io_error(&error);
    let mut log = Log::create(target.files(), &target.log(), DiskOptions::default().segment_bytes)
        .map_err(OpenError::into_store_error)?;
    let mut frame = Frame::default();
    let mut last = Revision::FIRST;
    for (done, (path, places)) in (0..).zip(&survey.files) {
        progress(Progress { what: "writing records", done, of: survey.files.len() as u64 });
        if places.is_empty() {
            continue;
        }
        let bytes = crate::log::scan::read_all(&**target.files(), path).map_err(io)?;
        for place in places {
            // A revision is never split across frames.
            if frame.len() >= FRAME_BYTES && place.pointer.revision > last {
                log.append_unsynced(&mut frame).map_err(io)?;
                frame.clear();
            }
            let record = bytes.get(place.at..place.at + place.len).unwrap_or_default();
            // It may have changed since the survey.
            Record::read(place.pointer, &bytes.slice_ref(record))?;
            frame.push(place.pointer, |into| into.extend_from_slice(record));
            last = place.pointer.revision;
        }
    }
    if !frame.is_empty() {
        log.append_unsynced(&mut frame).map_err(io)?;
        frame.clear();
    }
    // The newest record holds the store's revision and size.
    let (pointer, totals) = (Pointer::new(revision, 0), survey.totals);
    let mark = Record { key: MARK.into(), value: None, created: true, replaced: None, steps: 1, totals };
    frame.push(pointer, |into| mark.encode(pointer, into));
    log.append_unsynced(&mut frame).map_err(io)?;
    log.sync().map_err(io)?;
    let swept = Revision::new(revision.get() - 1);
    Checkpoint::new(revision, swept, &log.segments())
        .write(&**target.files(), &target.checkpoint(), &target.log())
        .map_err(io)
}

/// Gives a folder and its contents the owner of another: a repair is often run by a different user than the
/// server.
pub(crate) fn own_like(files: &dyn Files, like: &Path, folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let names = files.list(&folder).unwrap_or_default();
        for path in names.iter().map(|name| folder.join(name)).chain([folder.clone()]) {
            if let Err(error) = files.chown_like(like, &path) {
                tracing::warn!(path = %path.display(), %error, "could not change the owner");
            }
            if path != folder && files.is_dir(&path) {
                folders.push(path);
            }
        }
    }
}
