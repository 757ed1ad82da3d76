//! `store`: checks, repairs and copies a data folder that no server has open.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Subcommand;
use k1s::{
    env::Env,
    store::{
        Store as _,
        disk::{
            Compacted, DiskOptions, DiskStore, FolderReport, Progress, Repaired, check_folder,
            compact_folder, repair_folder,
        },
    },
};

use crate::progress::noticed;

/// Exit code: no damage.
const CLEAN: u8 = 0;
/// Exit code: damage, or data that could not be recovered.
const DAMAGE: u8 = 1;
/// Exit code: the check or repair failed.
const FAILED: u8 = 2;

/// Minimum interval between progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of problems printed.
const MAX_PROBLEMS: usize = 50;

/// A command for a data folder.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum StoreCommand {
    /// Reads a whole store and reports damage.
    ///
    /// Nothing is changed, so a read-only folder is accepted. The store must not be open in a server.
    ///
    /// Exit codes: 0 no damage, 1 damage, 2 the check failed.
    Check {
        /// The folder given to `k1s serve --data-dir`, or `store` in it.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Creates a good store from everything readable in a damaged one, and reports the rest.
    ///
    /// The damaged store is kept next to the good one, as `store.damaged-1`, so there must be room for both.
    /// The good one is at a newer revision and has no history: clients list again. The store must not be open
    /// in a server. A store without damage is not changed.
    ///
    /// Exit codes: 0 nothing was lost, 1 data was lost, 2 the repair failed and changed nothing.
    Repair {
        /// The folder given to `k1s serve --data-dir`, or `store` in it.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Creates the good store in this data folder instead, and does not change the damaged one. `pki` is
        /// not copied.
        #[arg(long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Drops the history of a store, and reclaims the space of everything that was replaced or deleted.
    ///
    /// A server does that by itself as it runs, except for the newest 32 MiB. The copy is checked before it replaces the store, so
    /// there must be room for both. Clients that watch from an older revision list again. The store must not be open in a server.
    ///
    /// Exit codes: 0 done, 2 the compaction failed and changed nothing.
    Compact {
        /// The folder given to `k1s serve --data-dir`, or `store` in it.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Shows how much a store holds: keys, bytes, revisions.
    ///
    /// The store must not be open in a server.
    ///
    /// Exit codes: 0, or 2 if the store cannot be opened.
    Stats {
        /// The folder given to `k1s serve --data-dir`.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Copies a store into another folder, and reads the copy back.
    ///
    /// The copy is a data folder of its own, with the history: `k1s serve --data-dir` takes it as it is. The store must not be
    /// open in a server. Certificates and tokens (`pki`) are not copied.
    ///
    /// Exit codes: 0 the copy is complete and sound, 1 the store is damaged, 2 the backup failed.
    Backup {
        /// The folder given to `k1s serve --data-dir`.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The folder of the copy, which must not hold a store.
        #[arg(value_name = "BACKUP")]
        backup: PathBuf,
    },
    /// Copies a backup into a data folder that holds no store, and reads it back.
    ///
    /// The store is as it was, at the revision of the backup: clients that have seen newer ones list again. The backup is not
    /// changed.
    ///
    /// Exit codes: 0 the store is complete and sound, 1 the backup is damaged, 2 the restore failed.
    Restore {
        /// The folder of the backup.
        #[arg(value_name = "BACKUP")]
        backup: PathBuf,
        /// The folder for `k1s serve --data-dir`, which must not hold a store.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

type Failure = Box<dyn std::error::Error>;

pub(crate) async fn run(program: &str, command: &StoreCommand) -> ExitCode {
    let done = match command {
        StoreCommand::Check { folder } => check(program, folder),
        StoreCommand::Repair { folder, output } => repair(folder, output.as_deref()),
        StoreCommand::Compact { folder } => compact(folder),
        StoreCommand::Stats { folder } => stats(folder).await,
        StoreCommand::Backup { folder, backup } => copy(program, folder, backup, "backed up to").await,
        StoreCommand::Restore { backup, folder } => copy(program, backup, folder, "restored to").await,
    };
    let (code, text) = match done {
        Ok((code, text)) => (code, text),
        Err(error) => {
            let _ = writeln!(io::stderr(), "{program}: {error}");
            return FAILED.into();
        }
    };
    let _ = io::stdout().write_all(text.as_bytes());
    code.into()
}

/// Reports progress on stderr, if it takes long.
fn progress() -> impl FnMut(Progress) {
    let env = Env::system();
    let mut reported = env.now();
    move |progress| {
        if env.now() - reported > PROGRESS_INTERVAL {
            reported = env.now();
            let _ = writeln!(io::stderr(), "{}: {} of {}", progress.what, progress.done, progress.of);
        }
    }
}

fn check(program: &str, folder: &Path) -> Result<(u8, String), Failure> {
    let report = check_folder(folder, &mut progress())?;
    if report.is_sound() {
        return Ok((CLEAN, sound(folder, &report)));
    }
    let mut text = damaged(folder, &report, "would be lost by a repair");
    let name = folder.display();
    let _ = writeln!(
        text,
        "\n`{program} store repair {name}` creates a good store of what can be read, and keeps the damaged one."
    );
    Ok((DAMAGE, text))
}

fn repair(folder: &Path, output: Option<&Path>) -> Result<(u8, String), Failure> {
    match repair_folder(folder, output, &mut progress())? {
        Repaired::Saved { report, store, damaged: kept, .. } => {
            let mut text = damaged(folder, &report, "was lost");
            let (store, kept) = (store.display(), kept.display());
            let _ = writeln!(
                text,
                "\nThe repaired store is {store}, at revision {}. The damaged one is kept as {kept}.",
                report.revision.next()
            );
            Ok((if report.lost.is_empty() { CLEAN } else { DAMAGE }, text))
        }
        Repaired::Finished { store, .. } => {
            let text = format!("An interrupted repair was completed: the store is {}.\n", store.display());
            Ok((CLEAN, text))
        }
        Repaired::Sound(report) => {
            Ok((CLEAN, sound(folder, &report) + "There is nothing to repair, and nothing was changed.\n"))
        }
        _ => Ok((CLEAN, String::new())),
    }
}

fn compact(folder: &Path) -> Result<(u8, String), Failure> {
    let Compacted { keys, records, bytes, revision, .. } = compact_folder(folder, &mut progress())?;
    let text = format!(
        "The store in {} was compacted at revision {revision}: {keys} keys, {} records instead of {}, {} bytes on disk instead of {}.\n",
        folder.display(),
        records.1,
        records.0,
        bytes.1,
        bytes.0
    );
    Ok((CLEAN, text))
}

async fn stats(folder: &Path) -> Result<(u8, String), Failure> {
    if !folder.join("store").exists() {
        return Err(format!("there is no store in {}", folder.display()).into());
    }
    let read = async {
        let store = open(folder).await?;
        let stats = store.stats().await;
        store.close().await?;
        Ok::<_, Failure>(stats?)
    };
    let stats =
        noticed(&Env::system(), || format!("reading the store in {}", folder.display()), read).await?;
    let mut text = String::new();
    let _ = writeln!(text, "keys: {}", stats.keys);
    let _ = writeln!(text, "bytes of keys and values: {}", stats.bytes.unwrap_or_default());
    let _ = writeln!(text, "bytes on disk: {}", stats.disk_bytes.unwrap_or_default());
    let _ = writeln!(text, "newest revision: {}", stats.revision);
    let _ = writeln!(text, "oldest revision that can be read: {}", stats.oldest);
    Ok((CLEAN, text))
}

/// Opens a store on another thread: a large one takes a while.
async fn open(folder: &Path) -> Result<DiskStore, Failure> {
    let (env, path) = (Env::system(), folder.to_owned());
    let opening =
        env.clone().spawn_blocking("store", move || DiskStore::open(env, path, DiskOptions::default()));
    Ok(opening.await??)
}

/// Copies a store that is sound, and checks the copy.
async fn copy(program: &str, from: &Path, to: &Path, done: &str) -> Result<(u8, String), Failure> {
    let before = check_folder(from, &mut progress())?;
    if !before.is_sound() {
        let name = from.display();
        let mut text = damaged(from, &before, "would be lost by a repair");
        let _ = writeln!(
            text,
            "\nNothing was copied. `{program} store repair {name}` creates a good store of what can be read."
        );
        return Ok((DAMAGE, text));
    }
    let copying = async {
        let store = open(from).await?;
        let copied = store.backup(to).await;
        store.close().await?;
        Ok::<_, Failure>(copied?)
    };
    noticed(&Env::system(), || format!("copying the store in {}", from.display()), copying).await?;
    let copy = check_folder(to, &mut progress())?;
    if !copy.is_sound() {
        return Err(format!("the copy in {} is damaged: {}", to.display(), copy.problems.join("; ")).into());
    }
    let FolderReport { keys, records, revision, .. } = copy;
    let (source, target) = (from.display(), to.display());
    let mut text = format!(
        "The store in {source} was {done} {target}: {keys} keys, {records} records, revision {revision}.\n"
    );
    if from.join("pki").exists() {
        let _ = writeln!(text, "Certificates and tokens ({source}/pki) were not copied.");
    }
    Ok((CLEAN, text))
}

fn sound(folder: &Path, report: &FolderReport) -> String {
    let FolderReport { keys, records, revision, .. } = report;
    let name = folder.display();
    format!("The store in {name} is sound: {keys} keys, {records} records, revision {revision}.\n")
}

fn damaged(folder: &Path, report: &FolderReport, what: &str) -> String {
    let mut text = format!("The store in {} is damaged:\n", folder.display());
    for problem in report.problems.iter().take(MAX_PROBLEMS) {
        let _ = writeln!(text, "  {problem}");
    }
    if report.problems.len() > MAX_PROBLEMS {
        let _ = writeln!(text, "  and {} more", report.problems.len() - MAX_PROBLEMS);
    }
    let _ = writeln!(text, "\n{} keys can be read.", report.keys);
    if report.lost.is_empty() {
        let _ = writeln!(text, "Nothing {what}.");
    } else {
        let _ = writeln!(text, "This {what}:");
    }
    for lost in &report.lost {
        let _ = writeln!(text, "  {lost}");
    }
    text
}
