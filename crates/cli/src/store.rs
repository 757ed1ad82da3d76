//! `k1s store`: checks and repairs a data folder that no server has open.

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
    store::disk::{FolderReport, OpenError, Progress, Repaired, check_folder, repair_folder},
};

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

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
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
}

pub(crate) fn run(command: &Command) -> ExitCode {
    let done = match command {
        Command::Check { folder } => check(folder),
        Command::Repair { folder, output } => repair(folder, output.as_deref()),
    };
    let (code, text) = match done {
        Ok((code, text)) => (code, text),
        Err(error) => {
            let _ = writeln!(io::stderr(), "k1s: {error}");
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

fn check(folder: &Path) -> Result<(u8, String), OpenError> {
    let report = check_folder(folder, &mut progress())?;
    if report.is_sound() {
        return Ok((CLEAN, sound(folder, &report)));
    }
    let mut text = damaged(folder, &report, "would be lost by a repair");
    let name = folder.display();
    let _ = writeln!(
        text,
        "\n`k1s store repair {name}` creates a good store of what can be read, and keeps the damaged one."
    );
    Ok((DAMAGE, text))
}

fn repair(folder: &Path, output: Option<&Path>) -> Result<(u8, String), OpenError> {
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
