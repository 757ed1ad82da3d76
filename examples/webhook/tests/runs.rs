//! Runs the example.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[test]
fn tickets_are_defaulted_warned_about_and_refused() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_k1s-example-webhook")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in [
        r#"created: {"title":"paint it","priority":3}"#,
        r#"created: {"title":"fire!","priority":1}, with the warnings ["299 - \"priority 1 wakes people up\""]"#,
        "denied the request: spec.title: a ticket needs a title",
    ] {
        assert!(text.contains(expected), "{text}");
    }
}
