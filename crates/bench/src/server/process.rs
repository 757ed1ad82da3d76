//! A measured process: its memory and its CPU time, as `/proc` has them.

use std::process::{Child, ExitStatus};

use crate::{Failure, report};

/// A child process, which is killed when this is dropped.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn new(child: Child) -> Process {
        Process(child)
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        Ok(self.0.try_wait()?)
    }

    /// The most memory that it had so far: `VmHWM`.
    pub(crate) fn peak_bytes(&self) -> Result<u64, Failure> {
        memory(self.0.id(), "VmHWM:")
    }

    /// Its memory: `VmRSS`.
    pub(crate) fn resident_bytes(&self) -> Result<u64, Failure> {
        resident_bytes(self.0.id())
    }

    /// The CPU time it has used, in seconds: a number that other programs on the machine do not disturb.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, Failure> {
        cpu_seconds(self.0.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            report::progress(&format!("process {} cannot be stopped: {error}", self.0.id()));
        }
    }
}

fn proc(process: u32, file: &str) -> Result<String, Failure> {
    Ok(std::fs::read_to_string(format!("/proc/{process}/{file}"))?)
}

/// The memory of a process: `VmRSS`.
pub(crate) fn resident_bytes(process: u32) -> Result<u64, Failure> {
    memory(process, "VmRSS:")
}

fn memory(process: u32, which: &str) -> Result<u64, Failure> {
    let status = proc(process, "status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(which));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes
        .map(|kilobytes| kilobytes << 10)
        .ok_or_else(|| Failure(format!("no {which} for process {process}")))
}

/// The CPU time that the threads of this process have used, in seconds, without the hundredths that `/proc/…/stat` counts in.
pub(crate) fn own_cpu_seconds() -> Result<f64, Failure> {
    let mut nanos = 0.0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        nanos +=
            text.split_whitespace().next().and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    }
    Ok(nanos / 1e9)
}

/// The CPU time that a process has used, in seconds.
pub(crate) fn cpu_seconds(process: u32) -> Result<f64, Failure> {
    // The name of the program is in parentheses; user and system time are the 12th and 13th field after it,
    // in hundredths of a second.
    let stat = proc(process, "stat")?;
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 =
        after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    Ok(ticks / 100.0)
}
