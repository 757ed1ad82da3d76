//! `cargo xtask guides`: the README and the getting-started guide, word for word, in a clean checkout.
//!
//! The player is `crates/cli/tests/guides`; here, the repository is cloned for it. What is committed counts.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use crate::{print, tidy};

/// Plays both pages. `cargo run --release --` runs the program that the tests have built.
pub(crate) fn run() -> Result<(), String> {
    let checkout = Checkout::of(&tidy::root())?;
    if !git(&["status", "--porcelain"])?.is_empty() {
        print("note: what is not committed is not played");
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut tests = Command::new(cargo);
    tests.args(["test", "--quiet", "--test=guides", "--", "--test-threads=1", "checkout::"]);
    tests.current_dir(tidy::root()).env("K1S_CHECKOUT", &checkout.0);
    let status = tests.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err("the README or the getting-started guide does not work as printed".into())
    }
}

/// What git says about the repository.
fn git(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").arg("-C").arg(tidy::root()).args(arguments).output();
    let output = output.map_err(|error| format!("cannot run git: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// A clone in a temporary folder, which is removed at the end.
struct Checkout(PathBuf);

impl Checkout {
    fn of(repository: &Path) -> Result<Self, String> {
        let folder = env::temp_dir().join(format!("k1s-guides-{}", process::id()));
        let checkout = Self(folder);
        let mut git = Command::new("git");
        git.args(["clone", "--quiet", "--no-hardlinks"]).arg(repository).arg(&checkout.0);
        let status = git.status().map_err(|error| format!("cannot run git: {error}"))?;
        if status.success() { Ok(checkout) } else { Err(format!("cannot clone {}", repository.display())) }
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
