//! Plays the guides in docs/ and the README: each `$ ` line is run, and the lines below it are its output.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod checkout;
mod declared;
mod foreground;
mod player;
mod snippets;
mod terminal;

use player::Shell;

fn plays(guide: &str, at_least: usize) {
    let folder = tempfile::tempdir().unwrap();
    let played = Shell::start(folder.path()).play(guide);
    assert!(played >= at_least, "{played} steps");
}

#[test]
fn the_command_line_works_as_printed() {
    plays(include_str!("../../../../docs/command-line.md"), 26);
}

#[test]
fn operating_a_server_works_as_printed() {
    plays(include_str!("../../../../docs/operating.md"), 20);
}

#[test]
fn an_edge_box_works_as_printed() {
    plays(include_str!("../../../../docs/edge.md"), 10);
}

#[test]
fn testing_an_operator_works_as_printed() {
    const GUIDE: &str = include_str!("../../../../docs/testing.md");
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::start(folder.path());
    // `go test` finds a suite that needs no packages. The one that the page shows is run by `cargo xtask interop`, with the same variable.
    std::fs::write(folder.path().join("go.mod"), "module example.com/suite\n\ngo 1.21\n").unwrap();
    std::fs::write(folder.path().join("suite_test.go"), SUITE).unwrap();
    if let Ok(cache) = std::process::Command::new("go").args(["env", "GOCACHE"]).output() {
        shell.prepare(&format!("export GOCACHE={}", String::from_utf8(cache.stdout).unwrap().trim()));
    }
    // With this flag, CI has built the standard library already.
    shell.prepare("export GOFLAGS=-trimpath");
    assert!(shell.play(GUIDE) >= 12);
}

/// Reads what a suite reads first.
const SUITE: &str = r#"package suite

import (
	"os"
	"strings"
	"testing"
)

func TestKubeconfig(t *testing.T) {
	text, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	if err != nil || !strings.Contains(string(text), "server: https://127.0.0.1:") && !strings.Contains(string(text), "\"server\":") {
		t.Fatal(err, string(text))
	}
}
"#;

#[test]
fn tenants_and_projects_work_as_printed() {
    plays(include_str!("../../../../docs/tenants.md"), 13);
    plays(include_str!("../../../../docs/multicluster.md"), 9);
}

#[test]
fn giving_access_works_as_printed() {
    plays(include_str!("../../../../docs/authorization.md"), 15);
}

#[test]
fn fairness_and_certificates_work_as_printed() {
    plays(include_str!("../../../../docs/security.md"), 11);
}

#[test]
fn encryption_works_as_printed() {
    plays(include_str!("../../../../docs/encryption.md"), 7);
}

/// The suite is built and run by `cargo xtask interop`.
#[test]
fn the_go_code_of_the_guides_is_that_of_the_suite() {
    const SUITE: &str = include_str!("../../../../interop/operator-go/suite_test.go");
    let lines: Vec<&str> = SUITE.lines().map(str::trim).collect();
    for guide in [include_str!("../../../../docs/testing.md"), include_str!("../../../../docs/from-go.md")] {
        let blocks: Vec<&str> =
            guide.split("```go\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
        assert_eq!(blocks.len(), 1);
        for line in blocks[0].lines().map(str::trim).filter(|line| !line.is_empty()) {
            assert!(lines.contains(&line), "{line}");
        }
    }
}
