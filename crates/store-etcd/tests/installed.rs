//! Tests on a machine without etcd.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

use k1s_store_etcd::testing::EtcdServer;

/// Run by the other tests in a child process.
#[test]
fn a_test_that_needs_etcd() {
    let _ = EtcdServer::is_installed().unwrap();
}

/// Runs that test where there is no etcd.
fn run_without_etcd(required: Option<&str>) -> Output {
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "a_test_that_needs_etcd"]).env("PATH", "/there/is/nothing/here");
    match required {
        Some(value) => test.env("K1S_REQUIRE_ETCD", value),
        None => test.env_remove("K1S_REQUIRE_ETCD"),
    };
    test.output().unwrap()
}

#[test]
fn without_etcd_a_test_reports_that_it_was_skipped() {
    let skipped = run_without_etcd(None);
    assert!(skipped.status.success());
    assert!(String::from_utf8_lossy(&skipped.stderr).contains("SKIPPED: there is no etcd on the PATH"));
    assert!(run_without_etcd(Some("0")).status.success());
}

#[test]
fn without_etcd_where_it_is_required_a_test_fails() {
    let failed = run_without_etcd(Some("1"));
    assert!(!failed.status.success());
    assert!(String::from_utf8_lossy(&failed.stdout).contains("NotInstalled"));
}
