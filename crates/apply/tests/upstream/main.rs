//! The cases of structured-merge-diff and of kube-apiserver's field manager, as data: `cases/*.json`.
//!
//! Each case has the name of the upstream test that it is from. `README.md` in the parent folder counts them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod fieldpath;
mod known;
mod managed;
mod merge;
mod support;
mod typed;

#[test]
fn the_readme_counts_the_cases() {
    let readme = include_str!("../README.md");
    let counts = support::counts();
    assert!(readme.contains(&counts), "tests/README.md should have:\n\n{counts}");
    for (name, _) in known::DIFFERENCES {
        assert!(readme.contains(&format!("`{name}`")), "tests/README.md does not name {name}");
    }
}
