//! Plays the `console` blocks of a guide in one shell, and compares what is printed.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Lines, Write as _},
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use tempfile::TempDir;

use crate::foreground::{Running, Terminal};

/// A command of a guide, and what it prints. Without a command: what the one in the other terminal prints.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) output: Vec<String>,
}

/// The steps of all `console` blocks that begin with `$ ` or `...`. The others are not for a test.
pub(crate) fn steps(guide: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for block in guide.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        if !block.starts_with("$ ") && !block.starts_with("...\n") {
            continue;
        }
        let mut lines = block.lines().peekable();
        while let Some(line) = lines.next() {
            let mut step = Step::default();
            match line.strip_prefix("$ ") {
                None => step.output.push(line.to_owned()),
                Some(command) => {
                    command.clone_into(&mut step.command);
                    // To the end of a continued line, of a quoted text, and of a here-document.
                    while is_unfinished(&step.command) {
                        step.command.push('\n');
                        step.command.push_str(lines.next().expect("the rest of a command"));
                    }
                }
            }
            while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
                step.output.push(line.to_owned());
            }
            steps.push(step);
        }
    }
    steps
}

fn is_unfinished(command: &str) -> bool {
    match command.split_once("<<'END'").or_else(|| command.split_once("<<END")) {
        Some((_, text)) => !text.ends_with("\nEND"),
        None => command.ends_with('\\') || command.matches('\'').count() % 2 == 1,
    }
}

/// Whether lines are as expected: `...` stands for any lines, `…` for any part of a line.
pub(crate) fn matches(expected: &[String], lines: &[String]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "..." => {
            (0..=lines.len()).any(|skipped| matches(rest, &lines[skipped..]))
        }
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, others)| line_matches(first, line) && matches(rest, others)),
    }
}

fn line_matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A line without what depends on time, and on the widths of columns.
fn plain(line: &str) -> String {
    let is_age = |word: &str| {
        let digits = word.trim_end_matches(['s', 'm']);
        digits.len() < word.len() && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let indent = line.len() - line.trim_start().len();
    let words = line.split_whitespace().map(|word| if is_age(word) { "AGE" } else { word });
    format!("{}{}", &line[..indent], words.collect::<Vec<_>>().join(" "))
}

/// Lines to compare: empty ones at the end do not count.
pub(crate) fn comparable(lines: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
    let mut lines: Vec<String> = lines.into_iter().map(|line| plain(line.as_ref())).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Whether a program can be run. Otherwise the test says so, and fails if `K1S_REQUIRE_…` is set, as in CI.
#[expect(clippy::print_stdout, reason = "a test that skips something says so")]
pub(crate) fn has(program: &str) -> bool {
    let found = Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        let required = format!("K1S_REQUIRE_{}", program.to_uppercase());
        assert!(env::var_os(&required).is_none(), "this test needs {program}: install it");
        println!("SKIPPED: the lines with {program}, because there is none");
    }
    found
}

/// A port that nothing listens on now.
fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// The ports of a guide.
#[derive(Clone, Copy)]
enum Ports {
    /// Those that it names: the defaults.
    Named,
    /// Others, so that tests run beside each other: for `6443`, and for `3000`.
    Free(u16, u16),
}

/// A shell that keeps its folder, variables and jobs from command to command, and the two other terminals that guides use. What
/// runs in it ends with it.
pub(crate) struct Shell {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    ports: Ports,
    has_kubectl: bool,
    server: Option<Running>,
    watch: Option<Running>,
    /// Programs that stand for others, and the home folder.
    _own: TempDir,
}

const DONE: &str = "@@ done";

/// What stands for `cargo`: for `cargo run --release --`, the program that the tests were built with.
const CARGO: &str = r#"#!/bin/sh
if [ "$1 $2 $3" = "run --release --" ]; then shift 3; exec "$K1S_UNDER_TEST" "$@"; fi
echo "this stands for 'cargo run --release --' only, not for: cargo $*" >&2
exit 1
"#;

impl Shell {
    /// A shell in a folder, whose servers listen on free ports. `k1s` is the program under test.
    pub(crate) fn start(folder: &Path) -> Shell {
        Shell::open(folder, Ports::Free(free_port(), free_port()))
    }

    /// A shell in a checkout, whose servers listen where the guides say.
    pub(crate) fn in_checkout(folder: &Path) -> Shell {
        Shell::open(folder, Ports::Named)
    }

    fn open(folder: &Path, ports: Ports) -> Shell {
        let own = tempfile::tempdir().unwrap();
        // curl shows its progress unless it writes to a terminal.
        fs::write(own.path().join(".curlrc"), "silent\nshow-error\n").unwrap();
        let cargo = own.path().join("cargo");
        fs::write(&cargo, CARGO).unwrap();
        fs::set_permissions(&cargo, PermissionsExt::from_mode(0o755)).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_k1s"));
        let path = env::var_os("PATH").unwrap();
        let path = [own.path().to_owned(), program.parent().unwrap().to_owned()]
            .into_iter()
            .chain(env::split_paths(&path));
        let mut shell = Command::new("bash");
        shell
            .args(["--noprofile", "--norc"])
            .current_dir(folder)
            .env("PATH", env::join_paths(path).unwrap())
            .env("K1S_UNDER_TEST", program)
            .env("HOME", own.path())
            .env("no_proxy", "*")
            .env_remove("http_proxy")
            .env_remove("KUBECONFIG")
            .env_remove("PORT");
        let mut child =
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let (server, watch, has_kubectl) = (None, None, has("kubectl"));
        let mut shell = Shell { child, input, output, ports, has_kubectl, server, watch, _own: own };
        shell.run("trap 'kill $(jobs -p) 2>/dev/null' EXIT");
        shell
    }

    /// Runs a command; returns its exit code and what it printed.
    pub(crate) fn run(&mut self, command: &str) -> (i32, Vec<String>) {
        let text = format!("{{ {command}\n}} 2>&1 </dev/null\nprintf '\\n{DONE} %d\\n' $?\n");
        self.input.write_all(text.as_bytes()).unwrap();
        let mut lines = Vec::new();
        loop {
            let line = self.output.next().unwrap_or_else(|| panic!("the shell ended: {command}")).unwrap();
            if let Some(code) = line.strip_prefix(DONE) {
                // The line break in front of the mark.
                if lines.last().is_some_and(String::is_empty) {
                    lines.pop();
                }
                return (code.trim().parse().unwrap(), lines);
            }
            lines.push(line);
        }
    }

    /// Runs a command that a test needs, and that succeeds.
    pub(crate) fn prepare(&mut self, command: &str) {
        let (code, lines) = self.run(command);
        assert_eq!(code, 0, "{command}\n{}", lines.join("\n"));
    }

    /// Runs the steps of a guide, and compares what they print; returns how many there were. A command must succeed, unless it
    /// shows what happens if it does not: `|| …`.
    pub(crate) fn play(&mut self, guide: &str) -> usize {
        let steps = steps(guide);
        for step in &steps {
            let Step { command, output } = step;
            if command.contains("kubectl ") && !self.has_kubectl
                || command.contains(" go test ") && !has("go")
            {
                continue;
            }
            if command.is_empty() {
                let ports = self.ports;
                self.watch
                    .as_mut()
                    .expect("a command in the other terminal")
                    .read(step, |line| ports.shown(line));
                continue;
            }
            if let Some(terminal) = Terminal::of(command) {
                self.keep(terminal, step);
                continue;
            }
            let (code, lines) = self.run(&self.ports.used(command));
            // Errors in front of an `||` are part of the example, but not of what it shows.
            let shown = lines.iter().filter(|line| !command.contains("||") || !line.starts_with("error: "));
            let lines = comparable(shown.map(|line| self.ports.shown(line)));
            let expected = comparable(output);
            let printed = lines.join("\n");
            assert!(matches(&expected, &lines), "{command}\nprints\n{printed}\nnot\n{}", expected.join("\n"));
            // A watch goes on until it is ended.
            let ended = code == 0 || code == 124 && command.starts_with("timeout 1 ");
            assert!(ended, "{command}\nends with {code}\n{printed}");
        }
        steps.len()
    }

    /// Starts a command that keeps a terminal, and reads what it prints at first.
    fn keep(&mut self, terminal: Terminal, step: &Step) {
        let ports = self.ports;
        // With the folder and the variables of this shell.
        let (_, state) = self.run("export -p; printf 'cd %q\\n' \"$PWD\"");
        let command = ports.used(&step.command);
        let mut step = Step { command: step.command.clone(), output: step.output.clone() };
        let place = match terminal {
            Terminal::Server => {
                if let Some(server) = self.server.take() {
                    server.interrupt();
                }
                ports.expect_free();
                if step.output.is_empty() {
                    step.output = ["...", "Ctrl-C stops it.", "..."].map(str::to_owned).to_vec();
                }
                &mut self.server
            }
            Terminal::Watch => &mut self.watch,
        };
        *place = None;
        let options = if terminal == Terminal::Server { ports.options(&command) } else { String::new() };
        let running = place.insert(Running::start(&format!("{}\nexec {command}{options}", state.join("\n"))));
        running.read(&step, |line| ports.shown(line));
    }

    /// Presses Ctrl-C in the terminal of the server.
    pub(crate) fn stop_server(&mut self) {
        self.server.take().expect("a server").interrupt();
    }
}

impl Ports {
    /// A command of a guide, with the ports that are used instead.
    fn used(self, command: &str) -> String {
        match self {
            Ports::Named => command.to_owned(),
            Ports::Free(https, http) => command
                .replace("6443", &https.to_string())
                .replace("localhost:3000", &format!("localhost:{http}")),
        }
    }

    /// What was printed, with the ports of the guide.
    fn shown(self, line: &str) -> String {
        match self {
            Ports::Named => line.to_owned(),
            Ports::Free(https, http) => {
                line.replace(&https.to_string(), "6443").replace(&http.to_string(), "3000")
            }
        }
    }

    /// What a command in the first terminal needs to use other ports than the defaults.
    fn options(self, command: &str) -> String {
        match self {
            Ports::Free(https, http) if command.contains(" demo") => {
                format!(" --port {https} --http-port {http}")
            }
            Ports::Free(https, _) => format!(" --port {https}"),
            Ports::Named => String::new(),
        }
    }

    fn expect_free(self) {
        if let Ports::Named = self {
            for port in [6443, 3000] {
                if let Err(error) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                    panic!("port {port}, which the guides use, is taken: stop what listens there ({error})");
                }
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Its trap ends what runs in the background.
        let _ = self.input.write_all(b"exit\n");
        let _ = self.child.wait();
    }
}

#[test]
fn patterns_stand_for_lines_and_parts_of_lines() {
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    assert!(matches(&lines("a\n...\nc"), &lines("a\nb\nb\nc")));
    assert!(matches(&lines("...\nb…\n..."), &lines("a\nbcd")));
    assert!(!matches(&lines("a\n...\nc"), &lines("a\nb")));
    assert!(!matches(&lines("a"), &lines("a\nb")));
    assert!(line_matches("id: …", "id: 7") && line_matches("a…c…e", "abcde") && line_matches("a", "a"));
    assert!(!line_matches("a…c…e", "abde") && !line_matches("a", "ab") && !line_matches("x…", "ab"));
    let steps = steps(
        "```console\n$ a '{\n x}'\nb\n$ c <<'END'\n$ x\nEND\n```\n```console\nnot this\n```\n```console\n...\nd\n```\n",
    );
    let step = |command: &str, output: &str| Step { command: command.into(), output: lines(output) };
    assert_eq!(steps, [step("a '{\n x}'", "b"), step("c <<'END'\n$ x\nEND", ""), step("", "...\nd")]);
    assert_eq!(plain("  web   0/3  12s"), "  web 0/3 AGE");
}

#[test]
fn a_shell_keeps_its_state() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::start(folder.path());
    let steps = "```console\n$ mkdir sub && cd sub\n$ X=1\n$ cat > a <<'END'\none\nEND\n$ cat a; echo $X; basename $PWD\none\n1\nsub\n\
                 $ false || echo no\nno\n$ sleep 1000 &\n$ jobs -r | wc -l\n1\n$ kill %1\n```\n";
    assert_eq!(shell.play(steps), 8);
    assert_eq!(shell.run("false").0, 1);
}
