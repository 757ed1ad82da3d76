//! The checks that a change must pass, step by step.

use std::{env, process::Command};

use crate::{print, tidy};

/// A named cargo command.
struct Step {
    name: &'static str,
    cargo: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
}

const FORMAT: Step = Step { name: "format", cargo: &["fmt", "--all", "--check"], variables: &[] };

const LINTS: Step = Step {
    name: "lints",
    cargo: &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"],
    variables: &[],
};

/// `k1s` as an embedder with the memory store builds it.
const WITHOUT_FEATURES: Step = Step {
    name: "lints without features",
    cargo: &["clippy", "--package=k1s", "--no-default-features", "--features=latest", "--", "-D", "warnings"],
    variables: &[],
};

/// The README's command for running the tests.
const TESTS: Step = Step { name: "tests", cargo: &["test"], variables: &[] };

const DOCUMENTATION: Step = Step {
    name: "documentation",
    cargo: &["doc", "--workspace", "--no-deps", "--all-features"],
    variables: &[("RUSTDOCFLAGS", "-D warnings")],
};

pub(crate) fn run(tests: bool) -> Result<(), String> {
    run_step(&FORMAT)?;
    print("== tidy");
    tidy::run()?;
    run_step(&LINTS)?;
    run_step(&WITHOUT_FEATURES)?;
    if tests {
        run_step(&TESTS)?;
    }
    run_step(&DOCUMENTATION)?;
    print("all checks passed");
    Ok(())
}

fn run_step(step: &Step) -> Result<(), String> {
    let line = step.cargo.join(" ");
    print(&format!("== {}: cargo {line}", step.name));
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(step.cargo)
        .envs(step.variables.iter().copied())
        .current_dir(tidy::root())
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("step `{}` failed: cargo {line}", step.name)) }
}
