//! Runs the example, and checks that the README shows the same program.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

const README: &str = include_str!("../../../README.md");
const WORKSPACE: &str = include_str!("../../../Cargo.toml");

#[test]
fn the_greeting_becomes_a_config_map() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_k1s-example-quickstart")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("0 errors") && text.contains("Hello, world!"), "{text}");
}

/// The first code block of a language in the README.
fn block(language: &str) -> &str {
    let (_, rest) = README.split_once(&format!("```{language}\n")).expect("the README has such a block");
    rest.split_once("```\n").expect("the block ends").0
}

#[test]
fn the_readme_shows_this_program() {
    let program = include_str!("../src/main.rs");
    // After the header, which is about this package.
    let begin = program.find("use k1s::").expect("it uses k1s");
    assert_eq!(block("rust"), &program[begin..]);
}

/// The lines of a table of a manifest, by name.
fn table<'a>(manifest: &'a str, name: &str) -> BTreeMap<&'a str, &'a str> {
    let (_, rest) = manifest.split_once(&format!("{name}\n")).expect("there is such a table");
    let lines = rest.lines().take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| line.split_once([' ', '.'])).collect()
}

fn version(line: &str) -> &str {
    let (_, rest) = line.split_once('"').expect("a version");
    rest.split_once('"').expect("its end").0
}

#[test]
fn the_readme_names_the_dependencies_of_this_program() {
    let (shown, own) =
        (table(block("toml"), "[dependencies]"), table(include_str!("../Cargo.toml"), "[dependencies]"));
    assert_eq!(shown.keys().collect::<Vec<_>>(), own.keys().collect::<Vec<_>>());
    let workspace = table(WORKSPACE, "[workspace.dependencies]");
    for (name, line) in shown.iter().filter(|(name, _)| **name != "k1s") {
        assert_eq!(version(line), version(workspace[name]), "{name}");
    }
}
