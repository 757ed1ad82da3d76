//! Commands of a guide that go on while others are run: a server in the first terminal, a watch in another one.

use std::{
    io::{BufRead as _, BufReader, Lines},
    os::unix::process::CommandExt as _,
    process::{Child, ChildStdout, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::player::{Step, comparable, matches};

/// Which terminal a command keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terminal {
    /// The one of servers, which are stopped with Ctrl-C before the next one is started.
    Server,
    /// The one of watches.
    Watch,
}

impl Terminal {
    /// The terminal that a command of a guide keeps, if it does not end by itself.
    pub(crate) fn of(command: &str) -> Option<Terminal> {
        let serves = ["cargo run --release -- demo", "cargo run --release -- serve", "k1s demo", "k1s serve"];
        if serves.iter().any(|start| command.starts_with(start)) && !command.ends_with('&') {
            Some(Terminal::Server)
        } else if command.starts_with("curl -N ")
            || command.starts_with("kubectl ") && command.ends_with(" --watch")
        {
            Some(Terminal::Watch)
        } else {
            None
        }
    }
}

/// A command that goes on, and what it prints.
pub(crate) struct Running {
    /// Until it has ended.
    child: Option<Child>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// Starts a script in a process group of its own, as a terminal does.
    pub(crate) fn start(script: &str) -> Running {
        let mut child = Command::new("bash")
            .args(["--noprofile", "--norc", "-c", script])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child: Some(child), lines }
    }

    /// Reads until the lines that were read, as `shown` turns them, are those of a step; fails if the command ends before.
    pub(crate) fn read(&mut self, step: &Step, shown: impl Fn(&str) -> String) {
        let (expected, mut seen) = (comparable(&step.output), Vec::new());
        while !matches(&expected, &comparable(&seen)) {
            match self.lines.next() {
                Some(line) => seen.push(shown(&line.unwrap())),
                None => panic!(
                    "{}\nended after\n{}\nwithout\n{}",
                    step.command,
                    seen.join("\n"),
                    expected.join("\n")
                ),
            }
        }
    }

    /// Presses Ctrl-C, and waits for the end.
    pub(crate) fn interrupt(mut self) {
        let mut child = self.child.take().unwrap();
        kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
        let rest: Vec<String> = self.lines.by_ref().map_while(Result::ok).collect();
        let status = child.wait().unwrap();
        assert!(status.success(), "Ctrl-C: {status}: {}", rest.join("\n"));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
        }
    }
}

#[test]
fn a_command_in_the_background_keeps_no_terminal() {
    assert_eq!(Terminal::of("cargo run --release -- serve"), Some(Terminal::Server));
    assert_eq!(Terminal::of("k1s serve --projects --port 6443 > serve.log 2>&1 &"), None);
    assert_eq!(Terminal::of("kubectl get configmaps --watch"), Some(Terminal::Watch));
    assert_eq!(Terminal::of("timeout 1 kubectl get configmaps --watch"), None);
    assert_eq!(Terminal::of("k1s store check DIR"), None);
}
