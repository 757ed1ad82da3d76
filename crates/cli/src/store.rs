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

/// Nothing is damaged.
const CLEAN: u8 = 0;
/// Something is, or was and could not be saved.
const DAMAGE: u8 = 1;
/// It could not be found out.
const FAILED: u8 = 2;

/// What takes longer than this is told about, and as often.
const PATIENCE: Duration = Duration::from_secs(1);

/// So many problems are told one by one.
const TOLD: usize = 50;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Reads a whole store and tells what is damaged in it.
    ///
    /// Nothing is changed, so a folder that cannot be written to will do. No server may have it open.
    ///
    /// Exit codes: 0 nothing is damaged, 1 something is, 2 it could not be found out.
    Check {
        /// The folder that `k1s serve --data-dir` was given, or `store` in it.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Makes a good store of everything that can be read of a damaged one, and names the rest.
    ///
    /// The damaged store is kept, beside the good one, as `store.damaged-1`. There has to be room for both. The good one is at a newer
    /// revision than the damaged one was, and has no history: clients list again. No server may have it open. A store that is not
    /// damaged is left as it is.
    ///
    /// Exit codes: 0 everything is there, 1 something was lost, 2 it could not be repaired, and is as it was.
    Repair {
        /// The folder that `k1s serve --data-dir` was given, or `store` in it.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Makes the good store in this data folder instead, and changes nothing in the damaged one. `pki` is not copied.
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

/// Tells on stderr how far it is, if it takes a while.
fn progress() -> impl FnMut(Progress) {
    let env = Env::system();
    let mut told = env.now();
    move |progress| {
        if env.now() - told > PATIENCE {
            told = env.now();
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
        "\n`k1s store repair {name}` makes a good store of what can be read, and keeps the damaged one."
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
            let text = format!(
                "A repair that had been interrupted is finished: the store is {}.\n",
                store.display()
            );
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
    for problem in report.problems.iter().take(TOLD) {
        let _ = writeln!(text, "  {problem}");
    }
    if report.problems.len() > TOLD {
        let _ = writeln!(text, "  and {} more", report.problems.len() - TOLD);
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
