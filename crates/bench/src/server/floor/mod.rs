//! The floor: what hyper alone does for the same bytes on this machine.
//!
//! A process of its own answers the requests of the measurements with what k1s answered to them: no object is parsed, found or
//! encoded, except by applies and patches of a status, which no server can do without (see `apply`). What k1s needs more than this is
//! what it costs to be an API server. The floor of a store that survives power cuts also appends each write to a file, and answers
//! when it is synced; writes that wait together share a sync. The floors of security do the least of it that is possible (see
//! `secure`).

mod answers;
mod apply;
pub(super) mod etcd;
mod log;
mod secure;
mod serve;

use std::{
    ffi::OsStr,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use super::{client::Target, notes::Notes, process::Process};
use crate::{Failure, report::Measurement};

pub(super) use answers::Answers;
pub(crate) use serve::{Options, run};

/// The floor of servers that keep objects in memory.
const WITHOUT_FSYNC: &str = "floor";
/// The floor of servers that sync what they answer.
const WITH_FSYNC: &str = "floor-fsync";
/// The floors of each subject. A peer is measured over HTTPS throughout, so it has none.
pub(super) const FLOORS: [(&str, &str); 4] =
    [("memory", WITHOUT_FSYNC), ("disk", WITH_FSYNC), ("etcd", WITH_FSYNC), ("etcd", etcd::SUBJECT)];

/// What a floor has to answer, in a folder.
pub(super) struct Recording {
    subject: &'static str,
    folder: TempDir,
}

impl Recording {
    pub(super) fn new(subject: &'static str, answers: &Answers, folder: &Path) -> Result<Recording, Failure> {
        let recording = Recording { subject, folder: TempDir::with_prefix_in("k1s-floor-", folder)? };
        std::fs::create_dir(recording.answers())?;
        answers.write(&recording.answers())?;
        Ok(recording)
    }

    fn answers(&self) -> PathBuf {
        self.folder.path().join("answers")
    }

    pub(super) fn start(&self, tls: bool) -> Result<Floor, Failure> {
        self.start_with(tls.then_some("--tls"))
    }

    /// Starts one with rules.
    pub(super) fn start_with_rules(&self) -> Result<Floor, Failure> {
        self.start_with(["--rules"])
    }

    /// Starts one with an audit log.
    pub(super) fn start_with_audit(&self) -> Result<Floor, Failure> {
        let path = self.folder.path().join("audit");
        self.start_with([OsStr::new("--audit"), path.as_os_str()])
    }

    /// Starts one that encrypts.
    pub(super) fn start_with_encryption(&self) -> Result<Floor, Failure> {
        self.start_with(["--seal"])
    }

    fn start_with(&self, flags: impl IntoIterator<Item: AsRef<OsStr>>) -> Result<Floor, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("floor").arg(self.answers()).args(flags);
        if self.subject == WITH_FSYNC {
            command.arg("--log").arg(self.folder.path().join("log"));
        }
        Floor::start(command)
    }

    pub(super) fn notes<'a>(&self, all: &'a mut Vec<Measurement>) -> Notes<'a> {
        Notes { subject: self.subject, all }
    }
}

/// A running floor.
pub(super) struct Floor {
    pub(super) target: Target,
    pub(super) process: Process,
}

impl Floor {
    fn start(mut command: Command) -> Result<Floor, Failure> {
        let tls = command.get_args().any(|argument| argument == "--tls");
        // It ends when its input does, so it does not outlive this process.
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let said = child.stdout.take();
        let process = Process::new(child);
        let mut line = String::new();
        if let Some(said) = said {
            BufReader::new(said).read_line(&mut line)?;
        }
        let address = line.trim().parse().map_err(|_| Failure(format!("the floor says {line:?}")))?;
        Ok(Floor { target: Target { address, tls, token: "none".to_owned() }, process })
    }
}
