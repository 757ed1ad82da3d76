//! Runs the example.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[test]
fn usages_are_computed_in_process_and_over_https() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_k1s-example-aggregated")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    // The ConfigMaps a, b and c, and the authority of the server.
    let each = "  table: [\"shop\",4,0]\n  \"Usage\" \"shop\": {\"configmaps\":4,\"secrets\":0,\"services\":0,\"pods\":0,\
                \"deployments\":0}\n  delete: 405 \"MethodNotAllowed\"\n\n";
    assert_eq!(text, format!("usage.example.com\n{each}remote.example.com\n{each}"));
}
