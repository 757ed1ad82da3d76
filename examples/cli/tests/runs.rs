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

/// Nothing is logged in this program: the errors of its controller are in what the commands print.
#[test]
fn what_the_controller_cannot_do_is_named_and_ends_a_run_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let team = |name: &str, members: &str| {
        let file = folder.path().join(format!("{name}.yaml"));
        let text = format!(
            "apiVersion: example.k1s.dev/v1\nkind: Team\nmetadata: {{name: {name}}}\nspec: {{members: [{members}]}}\n"
        );
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let told = |output: &Output| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };

    // An error that is not retried: the program is idle, and has failed.
    let nobody = team("nobody", "");
    let (code, out, error) = told(&run(&["run", "-f", &nobody]));
    assert_eq!(code, Some(1), "{out}{error}");
    assert!(
        out.contains("team.example.k1s.dev/nobody created") && out.contains("1 error (1 not retried)"),
        "{out}"
    );
    assert_eq!(error, "error: not reconciled: team nobody: terminal error: a team needs members\n");

    // One that is retried until there is no time left. The name is no key of a ConfigMap.
    let (code, out, error) = told(&run(&["run", "-f", &team("odd", "\"no key\""), "--timeout=500ms"]));
    assert_eq!(code, Some(1), "{out}{error}");
    assert!(error.contains("warning: not reconciled: team odd: ") && error.contains("no key"), "{error}");
    assert!(error.contains("error: not idle after 500ms"), "{error}");

    // A command that only applies has done its work.
    let place = folder.path().join("db");
    let (code, _, error) = told(&run(&["apply", "-f", &nobody, "--data-dir", place.to_str().unwrap()]));
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(error, "warning: not reconciled: team nobody: terminal error: a team needs members\n");
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
