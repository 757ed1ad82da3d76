//! Plays docs/getting-started.md word for word against a fresh `k1s demo`.

use std::{
    fs,
    io::{BufRead as _, BufReader, Lines},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use crate::player::{Step, has, matches, steps};

const GUIDE: &str = include_str!("../../../../docs/getting-started.md");

/// A process and its output. It is killed at the end.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    seen: Vec<String>,
}

impl Running {
    fn start(mut command: Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines, seen: Vec::new() }
    }

    fn read_until(&mut self, text: &str) -> String {
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            if line.contains(text) {
                return line;
            }
            self.seen.push(line);
        }
        panic!("it never printed {text:?}: {:#?}", self.seen);
    }

    /// Reads until the lines that were read match.
    fn read_while_not(&mut self, expected: &[String]) {
        let mut seen: Vec<String> = Vec::new();
        while !matches(expected, &seen) {
            match self.lines.next() {
                Some(line) => seen.push(line.unwrap()),
                None => panic!("it ended without {expected:#?}: {seen:#?}"),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn shell(folder: &Path, command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(folder).env_remove("http_proxy").env("no_proxy", "*");
    shell
}

#[test]
fn the_guide_works_as_printed() {
    assert!(has("curl"), "this test needs curl: install it");
    let has_kubectl = has("kubectl");
    let folder = tempfile::tempdir().unwrap();
    let mut demo = Command::new(env!("CARGO_BIN_EXE_k1s"));
    demo.args(["demo", "--port", "0", "--http-port", "0", "--step-ms", "1"]).current_dir(folder.path());
    let mut demo = Running::start(demo);
    let url = demo.read_until("over HTTP");
    let url = url.split_whitespace().nth(2).unwrap().to_owned();
    demo.read_until("Running    ■■■ 3/3");
    // Nobody reads the rest; the demo does not mind.
    let steps = steps(GUIDE);
    assert!(steps.len() > 10, "{steps:#?}");
    let (mut exports, mut other) = (String::new(), None::<Running>);
    for Step { command, output } in &steps {
        let command = command.replace("http://localhost:3000", &url);
        if command.starts_with("export ") {
            exports.push_str(&command);
            exports.push('\n');
        } else if command.is_empty() {
            other.as_mut().expect("a command in the other terminal").read_while_not(output);
        } else if command.starts_with("curl -N") {
            let mut running = Running::start(shell(folder.path(), &format!("exec {command} --silent")));
            running.read_while_not(output);
            other = Some(running);
        } else if has_kubectl || !command.starts_with("kubectl") {
            let quiet = if command.starts_with("curl") { " --silent --show-error" } else { "" };
            let done = shell(folder.path(), &format!("{exports}{command}{quiet}")).output().unwrap();
            let text = String::from_utf8(done.stdout).unwrap();
            let errors = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{command}\n{text}\n{errors}");
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            assert!(
                matches(output, &lines),
                "{command}\nprints\n{text}\n{errors}\nnot\n{}",
                output.join("\n")
            );
        }
    }
    assert!(other.is_some());
    assert!(fs::exists(folder.path().join("k1s.kubeconfig")).unwrap());
}
