//! Plays the recordings of a real kube-apiserver against `k1s serve`, and holds the line at what passed before.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use serde_json::Value;

use crate::{print, program, tidy};

/// The areas that this version of the server is held to.
const AREAS: [&str; 5] = ["core-crud", "list-watch", "patch", "crd", "kinds"];

/// The scenarios that pass, one `area/name` a line.
const EXPECTED: &str = "xtask/oracle/expected.txt";

const TOKENS: &str = "admin-token,admin,admin,\"system:masters\"\nalice-token,alice,alice,\"devs\"\n";

/// Where the recordings are, if they are there: beside the workspace.
fn recordings() -> Option<PathBuf> {
    let folder = tidy::root().join("../shared/oracle");
    folder.join("replay").is_file().then_some(folder)
}

/// Plays all areas. With `update`, writes the list of what passes instead of comparing with it.
pub(crate) fn run(update: bool) -> Result<(), String> {
    let Some(recordings) = recordings() else {
        print("the recordings are not beside this workspace: nothing is compared");
        return Ok(());
    };
    let k1s = program::build()?;
    let mut passed = BTreeSet::new();
    let mut failed = BTreeSet::new();
    for area in AREAS {
        let (good, bad) = play(&recordings, &k1s, area)?;
        print(&format!("{area}: {} passed, {} failed", good.len(), bad.len()));
        passed.extend(good);
        failed.extend(bad);
    }
    let list = tidy::root().join(EXPECTED);
    if update {
        let text: String = passed.iter().map(|name| format!("{name}\n")).collect();
        return fs::write(&list, text).map_err(|error| format!("{EXPECTED}: {error}"));
    }
    let text = fs::read_to_string(&list).map_err(|error| format!("{EXPECTED}: {error}"))?;
    let expected: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    let new: Vec<&String> = passed.difference(&expected).collect();
    if !new.is_empty() {
        print(&format!("{} more than expected pass; `cargo xtask oracle --update` keeps them:", new.len()));
        new.iter().for_each(|name| print(&format!("  {name}")));
    }
    let lost: Vec<&String> = expected.difference(&passed).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let names = lost.iter().map(|name| name.as_str()).collect::<Vec<_>>().join("\n  ");
    Err(format!("{} scenarios that passed before fail now:\n  {names}", lost.len()))
}

/// A server that ends with this value.
struct Server {
    child: Child,
    url: String,
    /// Kept open for what it says later.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    fn start(k1s: &Path) -> Result<Server, String> {
        let folder = program::target().join("oracle");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let tokens = folder.join("tokens.csv");
        fs::write(&tokens, TOKENS).map_err(|error| format!("{}: {error}", tokens.display()))?;
        let mut child = Command::new(k1s)
            .args(["serve", "--http", "--port", "0", "--token-auth-file"])
            .arg(&tokens)
            .arg("--kubeconfig")
            .arg(folder.join("kubeconfig"))
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start k1s: {error}"))?;
        let stdout = child.stdout.take().ok_or("k1s has no output")?;
        let mut line = String::new();
        let mut stdout = BufReader::new(stdout);
        stdout.read_line(&mut line).map_err(|error| format!("k1s says nothing: {error}"))?;
        let url = line.split_whitespace().last().filter(|word| word.starts_with("http")).map(str::to_owned);
        let mut server = Server { child, url: String::new(), _stdout: stdout };
        server.url = url.ok_or_else(|| format!("k1s did not say where it listens: {line:?}"))?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The scenarios of an area that pass, and those that do not.
fn play(recordings: &Path, k1s: &Path, area: &str) -> Result<(Vec<String>, Vec<String>), String> {
    let server = Server::start(k1s)?;
    let output = Command::new("python3")
        .arg(recordings.join("replay"))
        .args(["check", &server.url, "--token", "admin-token", "--without", "managedFields", "--json"])
        .arg(recordings.join(format!("{area}.json")))
        .output()
        .map_err(|error| format!("cannot run the replay: {error}"))?;
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for line in String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with('{')) {
        let result: Value =
            serde_json::from_str(line).map_err(|error| format!("the replay's output: {error}"))?;
        let name = format!("{area}/{}", result["scenario"].as_str().unwrap_or_default());
        if result["ok"] == true { good.push(name) } else { bad.push(name) }
    }
    if good.is_empty() && bad.is_empty() {
        return Err(format!(
            "the replay of {area} said nothing: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok((good, bad))
}
