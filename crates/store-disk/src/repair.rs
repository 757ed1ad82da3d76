//! Checking and repairing a store that nobody has open.

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

/// So many bytes go into one frame.
const FRAME_BYTES: usize = 1 << 20;

/// The key of the record that says where a repaired store is. It deletes a key that has no value.
const MARK: &str = "/_k1s/repaired";

/// What [`check_folder`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FolderReport {
    /// The newest revision, as far as is known.
    pub revision: Revision,
    /// Keys that have a value that can be read.
    pub keys: u64,
    /// Records that can be read, history included.
    pub records: u64,
    /// What is damaged, in words. Empty for a sound store.
    pub problems: Vec<String>,
    /// What a repair could not save.
    pub lost: Vec<Lost>,
}

impl FolderReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty() && self.lost.is_empty()
    }
}

/// What [`repair_folder`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repaired {
    /// Nothing is damaged, and nothing was done.
    Sound(FolderReport),
    /// There is a store with everything that could be read.
    Saved {
        /// What was damaged, and what could not be saved.
        report: FolderReport,
        /// Where the good store is.
        store: PathBuf,
        /// Where the damaged one is kept.
        damaged: PathBuf,
    },
    /// An earlier repair had been interrupted right before its end; the store that it made is in its place now.
    Finished {
        /// Where the good store is.
        store: PathBuf,
    },
}

/// The data folder and the store in it that a user means, who may name either.
fn places(files: &dyn Files, path: &Path) -> Result<(PathBuf, PathBuf), OpenError> {
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

/// Fails for what is not a store of the format that this program writes.
fn suitable(folder: &Folder) -> Result<(), OpenError> {
    if folder.content()? == Content::PartOfCopy {
        let reason = "a backup into it did not come to its end; make it again".to_owned();
        return Err(OpenError::Unsuitable { folder: folder.path().to_owned(), reason });
    }
    match folder.check_format() {
        Ok(()) | Err(OpenError::Damaged { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Reads the store in `path`, a data folder or the folder `store` in one, and tells everything that is damaged in it, and what
/// would be lost by a repair. Nothing is changed, and a folder that cannot be written to will do; but nobody may have it open.
///
/// # Errors
/// If it cannot be read, is not a store, or somebody has it open.
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

/// What is in a store; and if it is damaged, what can be saved.
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
    // What was looked for tells more than what was stumbled upon.
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

/// Opens a store as a server does, but for reading, and looks at everything in it.
fn sound(folder: &Folder, progress: &mut dyn FnMut(Progress)) -> Result<FolderReport, OpenError> {
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

/// Makes a good store of everything that can be read of the one in `path`, a data folder or the folder `store` in one. It is at a
/// newer revision than the damaged one ever was, and has no history: watches of the past begin anew.
///
/// With `output`, the good store is made in that data folder, and nothing else is changed. Without, it takes the place of the damaged
/// one, which is kept beside it as `store.damaged-1`. A sound store is left as it is.
///
/// # Errors
/// If it cannot be read or written, is not a store, or somebody has it open. Then the damaged store is where it was.
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
    if !files.exists(&store) && beside.content()? == Content::Store {
        let renamed = beside
            .make_durable()
            .and_then(|()| files.rename(beside.store(), &store))
            .and_then(|()| files.sync_dir(&path));
        renamed.map_err(OpenError::io(&store))?;
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
        // Between the two there is no store. Who opens it then is told to repair it again, which does the second.
        let swap = || {
            files.rename(&store, &damaged)?;
            files.sync_dir(&path)?;
            files.rename(beside.store(), &store)?;
            files.sync_dir(&path)
        };
        swap().map_err(OpenError::io(&store))?;
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

fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(|| "store".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Makes a store of what can be saved, and sees that it is sound.
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
            format!("what was saved is not sound: {:?}; the damaged store is where it was", report.problems),
        )),
        Err(error) => {
            // What was written may be what filled the disk.
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
        progress(Progress { what: "writing what was saved", done, of: survey.files.len() as u64 });
        if places.is_empty() {
            continue;
        }
        let bytes = crate::log::scan::read_all(&**target.files(), path).map_err(io)?;
        for place in places {
            // A revision is in one frame.
            if frame.len() >= FRAME_BYTES && place.pointer.revision > last {
                log.append_unsynced(&mut frame).map_err(io)?;
                frame.clear();
            }
            let record = bytes.get(place.at..place.at + place.len).unwrap_or_default();
            // It may have changed since it was looked at.
            Record::read(place.pointer, &bytes.slice_ref(record))?;
            frame.push(place.pointer, |into| into.extend_from_slice(record));
            last = place.pointer.revision;
        }
    }
    if !frame.is_empty() {
        log.append_unsynced(&mut frame).map_err(io)?;
        frame.clear();
    }
    // The newest record says where the store is, and how large.
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

/// Gives a folder and everything in it to whom another belongs: a repair is often made by somebody else than the server's user.
fn own_like(files: &dyn Files, like: &Path, folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let names = files.list(&folder).unwrap_or_default();
        for path in names.iter().map(|name| folder.join(name)).chain([folder.clone()]) {
            if let Err(error) = files.chown_like(like, &path) {
                tracing::warn!(path = %path.display(), %error, "it could not be given to the owner of the damaged store");
            }
            if path != folder && files.is_dir(&path) {
                folders.push(path);
            }
        }
    }
}
