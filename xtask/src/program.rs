//! The `k1s` program that the suites run.

use std::{env, path::PathBuf, process::Command};

use crate::tidy;

/// Path of an existing program. CI sets it to the one built by `cargo test`: building it separately selects
/// other features of the dependencies, and so compiles most of them again.
const VARIABLE: &str = "K1S_PROGRAM";

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    let root = tidy::root();
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder))
}

/// Builds the program, unless `K1S_PROGRAM` is set, and returns its path.
pub(crate) fn build() -> Result<PathBuf, String> {
    if let Some(program) = env::var_os(VARIABLE).map(PathBuf::from) {
        return match program.canonicalize() {
            Ok(program) => Ok(program),
            Err(error) => Err(format!("{VARIABLE} names {}: {error}", program.display())),
        };
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "-p", "k1s-cli"])
        .current_dir(tidy::root())
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if status.success() {
        Ok(target().join("debug/k1s"))
    } else {
        Err("`cargo build -p k1s-cli` failed".into())
    }
}
