//! Plays the `console` blocks of a guide in one shell, and compares what is printed.

use std::{
    env,
    io::{BufRead as _, BufReader, Lines, Write as _},
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

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
fn comparable(lines: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
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
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// A shell that keeps its folder, variables and jobs from command to command. Its jobs end with it.
pub(crate) struct Shell {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// What a guide calls `6443`.
    port: u16,
    has_kubectl: bool,
}

const DONE: &str = "@@ done";

impl Shell {
    /// A shell in a folder, which is also the home folder. `k1s` is the program under test.
    pub(crate) fn start(folder: &Path) -> Shell {
        let program = Path::new(env!("CARGO_BIN_EXE_k1s"));
        let path = env::var_os("PATH").unwrap();
        let path = [program.parent().unwrap().to_owned()].into_iter().chain(env::split_paths(&path));
        let mut child = Command::new("bash")
            .args(["--noprofile", "--norc"])
            .current_dir(folder)
            .env("PATH", env::join_paths(path).unwrap())
            .env("HOME", folder)
            .env("no_proxy", "*")
            .env_remove("http_proxy")
            .env_remove("KUBECONFIG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut shell = Shell { child, input, output, port: free_port(), has_kubectl: has("kubectl") };
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

    /// Runs the steps of a guide, and compares what they print; returns how many there were. A command must succeed, unless it
    /// shows what happens if it does not: `|| …`.
    pub(crate) fn play(&mut self, guide: &str) -> usize {
        let steps = steps(guide);
        for Step { command, output } in &steps {
            if command.contains("kubectl ") && !self.has_kubectl {
                continue;
            }
            let (ours, theirs) = (self.port.to_string(), "6443");
            let (code, lines) = self.run(&command.replace(theirs, &ours));
            // Errors in front of an `||` are part of the example, but not of what it shows.
            let shown = lines.iter().filter(|line| !command.contains("||") || !line.starts_with("error: "));
            let lines = comparable(shown.map(|line| line.replace(&ours, theirs)));
            let expected = comparable(output);
            let printed = lines.join("\n");
            assert!(matches(&expected, &lines), "{command}\nprints\n{printed}\nnot\n{}", expected.join("\n"));
            // A watch goes on until it is ended.
            let ended = code == 0 || code == 124 && command.starts_with("timeout 1 ");
            assert!(ended, "{command}\nends with {code}\n{printed}");
        }
        steps.len()
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
