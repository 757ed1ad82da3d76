//! Runs the example.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_k1s-example-cli")).args(arguments).output().unwrap()
}

#[test]
fn a_second_run_on_the_same_folder_has_nothing_left_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let teams = concat!(env!("CARGO_MANIFEST_DIR"), "/teams.yaml");
    let said: Vec<String> = (0..2)
        .map(|_| {
            let output = run(&["run", "-f", teams, "--data-dir", folder.path().to_str().unwrap()]);
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        })
        .collect();
    assert!(
        said[0].contains("team.example.k1s.dev/red created") && said[0].contains("6 writes"),
        "{}",
        said[0]
    );
    assert!(
        said[1].contains("team.example.k1s.dev/red unchanged") && said[1].contains(" 0 writes"),
        "{}",
        said[1]
    );
}

#[test]
fn controllers_run_after_commands_that_write() {
    let folder = tempfile::tempdir().unwrap();
    let place = ["--data-dir", folder.path().to_str().unwrap()];
    let teams = concat!(env!("CARGO_MANIFEST_DIR"), "/teams.yaml");
    let ok = |arguments: &[&str]| {
        let output = run(&[arguments, &place].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    ok(&["apply", "-f", teams]);
    assert_eq!(ok(&["get", "team", "red", "-o", "jsonpath={.status.members}"]), "2");
    assert_eq!(ok(&["get", "configmap", "members", "-n", "team-red", "-o", "name"]), "configmap/members\n");
    ok(&["delete", "team", "red"]);
    assert_eq!(ok(&["get", "namespace", "team-red", "--ignore-not-found"]), "", "garbage collected");
}

#[test]
fn a_missing_file_is_reported() {
    let output = run(&["run", "-f", "/nowhere/teams.yaml"]);
    assert!(!output.status.success());
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("\"/nowhere/teams.yaml\" does not exist"),
        "{output:?}"
    );
}
