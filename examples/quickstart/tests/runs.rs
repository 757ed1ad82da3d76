//! The example runs as it is.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[test]
fn the_greeting_becomes_a_config_map() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_k1s-example-quickstart")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("0 errors") && text.contains("Hello, world!"), "{text}");
}
