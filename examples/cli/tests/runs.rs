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
            let output = run(&[teams, folder.path().to_str().unwrap()]);
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        })
        .collect();
    assert!(said[0].contains("team red created") && said[0].contains("6 writes"), "{}", said[0]);
    assert!(said[1].contains("team red unchanged") && said[1].contains(" 0 writes"), "{}", said[1]);
}

#[test]
fn a_missing_file_is_reported() {
    let output = run(&["/nowhere/teams.yaml"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("/nowhere/teams.yaml: "), "{output:?}");
}
